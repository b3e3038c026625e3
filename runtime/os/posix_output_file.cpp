// Writing files on POSIX systems: under a temporary name, then renamed.
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "os/os.h"
#include "os/posix_file.h"

namespace oriel_internal {
namespace {

bool writeAll(int fd, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, from, bytes);
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

/// A remote disk may take long enough for a signal to arrive.
bool syncWhole(int fd) {
  int result = 0;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

/// Gives a file a new name. On file systems without hard links it first creates an empty file.
bool nameNew(const char* temporary, const char* path) {
  if (::link(temporary, path) == 0) {
    (void)::unlink(temporary);
    return true;
  }
  if (errno == EEXIST || errno == ENOENT) {
    return false;
  }
  const Descriptor reserved(::open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kPrivateFile));
  if (!reserved.valid()) {
    return false;
  }
  if (::rename(temporary, path) == 0) {
    return true;
  }
  const int error = errno;
  (void)::unlink(path);
  errno = error;
  return false;
}

/// Another user, who can write to the folder, has put a file there. Another process of this user may write it as well.
bool isOthers(const struct stat& written, const char* path) {
  struct stat named = {};
  return ::fstatat(AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         named.st_uid != written.st_uid;
}

/// One attempt of writeFileAtomically(); the errno of the failure, or 0.
int writeOnce(const char* path, const Place& place, mode_t mode, const void* data, size_t bytes,
              FileUse use) {
  const bool lasts = use != FileUse::kCache;
  char temporary[kMaxPathBytes];
  Descriptor file(makeTemporary(place, O_WRONLY, mode, temporary));
  if (!file.valid()) {
    return errno;
  }
  struct stat written = {};
  // Closed last: an open lock protects the temporary file from removal.
  if (::fstat(file.get(), &written) != 0 || !writeAll(file.get(), data, bytes) ||
      (lasts && !syncWhole(file.get())) ||
      !(use == FileUse::kNew ? nameNew(temporary, path) : ::rename(temporary, path) == 0)) {
    const int error = errno;
    (void)::unlink(temporary);
    return error;
  }
  return isOthers(written, path) ? EPERM : 0;
}

bool isAbsent(int error) { return error == ENOENT || error == ENOTDIR; }

/// The target of a link that points to nothing. 0, or an errno.
int followLink(const char* path, char (&target)[PATH_MAX]) {
  constexpr int kMostLinks = 40;  // Linux's limit
  std::snprintf(target, sizeof(target), "%s", path);
  for (int i = 0; i < kMostLinks; ++i) {
    char to[PATH_MAX];
    const ssize_t bytes = ::readlink(target, to, sizeof(to) - 1);
    if (bytes < 0) {
      return errno == EINVAL || isAbsent(errno) ? 0 : errno;
    }
    to[bytes] = '\0';
    // Relative targets are relative to the link's folder.
    char* const slash = to[0] == '/' ? nullptr : std::strrchr(target, '/');
    const size_t folder = slash != nullptr ? static_cast<size_t>(slash + 1 - target) : 0;
    if (folder + static_cast<size_t>(bytes) >= sizeof(target)) {
      return ENAMETOOLONG;
    }
    std::memcpy(target + folder, to, static_cast<size_t>(bytes) + 1);
  }
  return ELOOP;
}

/// Looks at `*path`. For a link `*path` becomes the `target`, so that the link stays; in a cache, where Oriel makes no
/// links, the link is replaced. `*mode` becomes a file's mode if stricter. Returns null, or the reason why it cannot be
/// replaced: not a file.
const char* lookAt(const char** path, FileUse use, char (&target)[PATH_MAX], mode_t* mode) {
  struct stat old = {};
  if (::lstat(*path, &old) != 0) {
    return isAbsent(errno) ? nullptr : adviceFor(errno);
  }
  if (S_ISLNK(old.st_mode)) {
    if (use == FileUse::kCache) {
      return nullptr;
    }
    if (::realpath(*path, target) == nullptr) {
      if (!isAbsent(errno)) {
        return adviceFor(errno);
      }
      if (const int error = followLink(*path, target); error != 0) {
        return adviceFor(error);
      }
    }
    *path = target;
  }
  if (::stat(*path, &old) != 0) {
    return isAbsent(errno) ? nullptr : adviceFor(errno);
  }
  if (!S_ISREG(old.st_mode)) {
    return S_ISDIR(old.st_mode) ? adviceFor(EISDIR) : "it is a device or a pipe, give a file";
  }
  *mode &= old.st_mode;
  return nullptr;
}

}  // namespace

Status writeFileAtomically(const char* path, const void* data, size_t bytes, FileUse use,
                           const Log& log) {
  const SizeSignal no_signal;
  char target[PATH_MAX];
  mode_t mode = kPrivateFile;
  if (const char* const refused = lookAt(&path, use, target, &mode); refused != nullptr) {
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, refused);
  }
  Place place;
  if (!splitPath(path, &place)) {
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(ENAMETOOLONG));
  }
  removeLeftBehind(place);
  int error = writeOnce(path, place, mode, data, bytes, use);
  if (error == ENOENT && use == FileUse::kCache) {
    makeParents(path);
  }
  // ENOENT: the folder was just created, or (without file locks) another process removed the temporary file.
  for (int i = 0; i < kMostTries && error == ENOENT; ++i) {
    struct stat folder = {};
    if (::stat(place.folder[0] == '\0' ? "." : place.folder, &folder) != 0) {
      return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: its folder is not there, make it first",
                      path);
    }
    error = writeOnce(path, place, mode, data, bytes, use);
  }
  return error == 0 ? kOk
                    : log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(error));
}

void removeFile(const char* path) { (void)::unlink(path); }

}  // namespace oriel_internal
