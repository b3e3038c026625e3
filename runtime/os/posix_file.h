// Shared by the POSIX files of this folder: descriptors, and advice for an errno.
#pragma once

#ifndef _FILE_OFFSET_BITS
// Before any system header, in every file that includes this one.
#define _FILE_OFFSET_BITS 64
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

/// Longest supported path with its NUL; Linux's limit.
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
  /// The caller owns the descriptor from now on.
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

/// Opens a file for reading. "/dev/fd/N" and "/proc/self/fd/N" mean descriptor N itself: reopening such a path may need
/// rights that only the giver of the descriptor has, as for documents picked on Android. Never waits for a pipe's
/// writer. -1: see errno.
int openToRead(const char* path);

enum class ReadEnd : uint8_t { kWhole, kCutOff, kFailed };

/// Reads all of these bytes; on failure see errno.
ReadEnd readWhole(intptr_t file, uint64_t offset, void* to, uint64_t bytes);

// Messages truncate the path (%.600s), so that the advice after it stays.

/// "WHAT TO DO" for an errno; a constant (strerror is not thread-safe everywhere).
const char* adviceFor(int error);

/// Reads the start of a small file as text; false on failure.
bool readText(const char* path, char* text, size_t capacity);

/// The number after `label` in a list of "label value" lines; 0 if missing.
inline uint64_t numberAfter(const char* text, const char* label) {
  const char* at = std::strstr(text, label);
  return at == nullptr ? 0 : std::strtoull(at + std::strlen(label), nullptr, 10);
}

}  // namespace oriel_internal
