// Temporary files on POSIX systems: created next to their target, removed when their writer has died.
#define _FILE_OFFSET_BITS 64
#include "os/posix_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "os/os.h"

namespace oriel_internal {
namespace {

/// Without file locks, older files count as leftovers.
constexpr time_t kLeftBehindSeconds = 24 * 60 * 60;
constexpr mode_t kPrivateFolder = 0700;

bool isTemporaryOf(const Place& place, const char* entry) {
  const size_t length = std::strlen(place.name);
  if (std::strncmp(entry, place.name, length) != 0) {
    return false;
  }
  entry += length;
  if (std::strcmp(entry, kTemporaryEnd) == 0) {
    return true;
  }
  return entry[0] == '.' && std::strspn(entry + 1, "0123456789abcdef") == kRandomDigits &&
         std::strcmp(entry + 1 + kRandomDigits, kTemporaryEnd) == 0;
}

/// Removes a leftover file: its lock is free, or without locks it is old.
void removeIfLeft(int folder, const char* entry, time_t written) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int fd = ::openat(folder, entry, O_WRONLY | kFlags);  // NFS requires write access for a lock
  if (fd < 0) {
    fd = ::openat(folder, entry, O_RDONLY | kFlags);
  }
  const Descriptor file(fd);
  const Lock lock = file.valid() ? tryLock(file.get()) : Lock::kUnknown;
  if (lock == Lock::kTaken ||
      (lock == Lock::kUnknown && ::time(nullptr) - written > kLeftBehindSeconds)) {
    // The lock is held: a writer that is just creating the file notices, and takes another name.
    (void)::unlinkat(folder, entry, 0);
  }
}

}  // namespace

void makeParents(const char* path) {
  char folder[kMaxPathBytes];
  for (size_t i = 0; path[i] != '\0' && i < sizeof(folder); ++i) {
    if (path[i] == '/' && i > 0) {
      folder[i] = '\0';
      (void)::mkdir(folder, kPrivateFolder);
    }
    folder[i] = path[i];
  }
}

void makeFolder(const char* path) {
  makeParents(path);
  (void)::mkdir(path, kPrivateFolder);
}

Lock tryLock(int fd) {
  int result = 0;
  do {
    result = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Lock::kTaken : errno == EWOULDBLOCK ? Lock::kHeld : Lock::kUnknown;
}

bool splitPath(const char* path, Place* place) {
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash == nullptr ? path : slash + 1;
  const size_t head = static_cast<size_t>(name - path);
  if (head >= sizeof(place->folder)) {
    return false;
  }
  std::memcpy(place->folder, path, head);
  place->folder[head] = '\0';
  size_t length = std::strlen(name);
  if (length > kMostNameBytes) {
    length = kMostNameBytes;
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) {
      --length;  // some systems refuse partial characters
    }
  }
  std::memcpy(place->name, name, length);
  place->name[length] = '\0';
  return true;
}

void removeLeftBehind(const Place& place) {
  DIR* const folder = ::opendir(place.folder[0] == '\0' ? "." : place.folder);
  if (folder == nullptr) {
    return;
  }
  const int fd = ::dirfd(folder);
  const struct dirent* entry = nullptr;
  for (int i = 0; i < kMostEntries && (entry = ::readdir(folder)) != nullptr; ++i) {
    struct stat info = {};
    if (isTemporaryOf(place, entry->d_name) &&
        ::fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == ::geteuid()) {
      removeIfLeft(fd, entry->d_name, info.st_mtime);
    }
  }
  (void)::closedir(folder);
}

int makeTemporary(const Place& place, int flags, mode_t mode, char (&path)[kMaxPathBytes]) {
  for (int i = 0; i < kMostTries; ++i) {
    const int length = std::snprintf(path, sizeof(path), "%s%s.%016" PRIx64 "%s", place.folder,
                                     place.name, entropy(), kTemporaryEnd);
    if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int fd = openRetrying(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd < 0) {
      if (errno == EEXIST) {
        continue;
      }
      return -1;
    }
    struct stat info = {};
    // Another process may have removed it as a leftover before it was locked.
    if (tryLock(fd) != Lock::kHeld && ::fstat(fd, &info) == 0 && info.st_nlink > 0) {
      return fd;
    }
    (void)::close(fd);
    (void)::unlink(path);
  }
  errno = EEXIST;
  return -1;
}

}  // namespace oriel_internal
