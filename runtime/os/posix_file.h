// What the POSIX files of this folder share: descriptors, and what to tell people about an errno.
#pragma once

#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64  // before any system header; as in every file that includes this one
#endif
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace oriel_internal {

/// Longest path handled, with its NUL; what Linux takes.
constexpr size_t kMaxPathBytes = 4096;

/// A file descriptor closed by the destructor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { (void)close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  bool close() {
    const int fd = release();
    return fd < 0 || ::close(fd) == 0;
  }
  /// The descriptor is the caller's from now on.
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

inline int openRetrying(const char* path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Opens a file to read. "/dev/fd/N" and "/proc/self/fd/N" are the descriptor N itself: opening such a path anew
/// would ask for rights that who handed the descriptor over may have only himself, as with documents that a user
/// picks on Android. Never waits for somebody to write to a pipe. -1: errno says why not.
int openToRead(const char* path);

enum class ReadEnd : uint8_t { kWhole, kCutOff, kFailed };

/// All of these bytes; where that failed errno says why.
ReadEnd readWhole(intptr_t file, uint64_t offset, void* to, uint64_t bytes);

// Messages cut a path (%.600s) rather than the advice after it.

/// "WHAT TO DO" for an errno; a constant (strerror is not thread-safe everywhere).
const char* adviceFor(int error);

/// Reads the start of a small file as text; false when it cannot be read.
bool readText(const char* path, char* text, size_t capacity);

/// The number after `label` in a list of "label value" lines; 0 when there is none.
inline uint64_t numberAfter(const char* text, const char* label) {
  const char* at = std::strstr(text, label);
  return at == nullptr ? 0 : std::strtoull(at + std::strlen(label), nullptr, 10);
}

}  // namespace oriel_internal
