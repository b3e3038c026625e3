// Shared by the POSIX files of this folder: descriptors, and advice for an errno.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#ifndef _FILE_OFFSET_BITS
// Before any system header, in every file that includes this one.
#define _FILE_OFFSET_BITS 64
#endif

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

// On POSIX systems: exceeding the file size limit becomes an error instead of killing the process.

/// During its lifetime a write beyond RLIMIT_FSIZE gives EFBIG. Blocks the signal that the system also sends to the
/// writing thread, which kills processes by default.
class SizeSignal {
 public:
  SizeSignal() {
    sigset_t before;
    (void)::sigemptyset(&only_);
    (void)::sigaddset(&only_, SIGXFSZ);
    blocked_ =
        ::pthread_sigmask(SIG_BLOCK, &only_, &before) == 0 && ::sigismember(&before, SIGXFSZ) == 0;
  }
  ~SizeSignal() {
    if (!blocked_) {
      return;
    }
    const int error = errno;
    sigset_t pending;
    int taken = 0;
    if (::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1) {
      (void)::sigwait(&only_, &taken);
    }
    (void)::pthread_sigmask(SIG_UNBLOCK, &only_, nullptr);
    errno = error;
  }
  SizeSignal(const SizeSignal&) = delete;
  SizeSignal& operator=(const SizeSignal&) = delete;

 private:
  sigset_t only_;
  bool blocked_ = false;
};

// Shared by code that writes files on POSIX systems: temporary files, and locks that end with the process.

// Temporary files are called NAME.0123456789abcdef.oriel-tmp; older versions used NAME.oriel-tmp.
constexpr char kTemporaryEnd[] = ".oriel-tmp";
constexpr size_t kRandomDigits = 16;
/// Longer NAMEs are truncated: most systems allow 255 bytes.
constexpr size_t kMostNameBytes = 200;
/// Attempts to find a free name, and to rewrite a removed temporary file.
constexpr int kMostTries = 16;
/// Folder entries to search for leftovers; limits the time.
constexpr int kMostEntries = 1 << 16;
/// The contents may be a private conversation: readable by the user only.
constexpr mode_t kPrivateFile = 0600;

enum class Lock { kTaken, kHeld, kUnknown };

/// Takes a lock that ends with the process, without waiting. kUnknown: locks are not supported there.
Lock tryLock(int fd);

/// Creates the folders of a file's path. Reports nothing: an error shows when the file is created.
void makeParents(const char* path);

/// A split path: up to the last slash, and the beginning of temporary names.
struct Place {
  char folder[kMaxPathBytes];  ///< "" or ends with a slash
  char name[kMostNameBytes + 1];
};

/// False: too long.
bool splitPath(const char* path, Place* place);

/// Creates a file with an unguessable unique name. -1: see errno.
int makeTemporary(const Place& place, int flags, mode_t mode, char (&path)[kMaxPathBytes]);

/// Removes temporary files of dead writers of this path. Never waits. Skips files in use, links and other users' files.
void removeLeftBehind(const Place& place);

}  // namespace oriel_internal
