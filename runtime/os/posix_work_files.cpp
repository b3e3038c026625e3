// Working files on POSIX systems: spilled memory, and markers.
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "os/os.h"
#include "os/posix_file.h"

namespace oriel_internal {

// --- Spilled memory -------------------------------------------------------------------------------

// The lock protects the file from removal while it is open.
Status SpillFile::create(const char* folder, uint64_t bytes, const Log& log) {
  Place place;
  char path[kMaxPathBytes];
  const int length = std::snprintf(path, sizeof(path), "%s/oriel-trim", folder);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path) || !splitPath(path, &place)) {
    return log.fail(ORIEL_ERROR_IO, "cannot write to %.600s: %s", folder, adviceFor(ENAMETOOLONG));
  }
  removeLeftBehind(place);
  Descriptor in(openRetrying(place.folder, O_RDONLY | O_DIRECTORY));
  Descriptor file(in.valid() ? makeTemporary(place, O_RDWR, kPrivateFile, path) : -1);
  if (!file.valid()) {
    return errno == ENOENT
               ? log.fail(ORIEL_ERROR_IO,
                          "cannot write to %.600s: the folder is not there, make it "
                          "first",
                          folder)
               : log.fail(ORIEL_ERROR_IO, "cannot write to %.600s: %s", folder, adviceFor(errno));
  }
  static_assert(sizeof("oriel-trim.") + kRandomDigits + sizeof(kTemporaryEnd) <= kNameBytes,
                "the name's room");
  std::snprintf(name_, sizeof(name_), "%s", path + std::strlen(place.folder));
  handle_ = file.release();
  if (::unlinkat(in.get(), name_, 0) == 0) {
    const size_t shown = std::strlen(folder);
    std::snprintf(name_, sizeof(name_), "%s",
                  folder + (shown < sizeof(name_) ? 0 : shown + 1 - sizeof(name_)));
  } else {
    folder_ = in.release();
  }
  const SizeSignal no_signal;
  int result = 0;
  do {
    result = ::ftruncate(static_cast<int>(handle_), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    const int error = errno;
    remove();
    return log.fail(ORIEL_ERROR_IO, "cannot write to %.600s: %s", folder, adviceFor(error));
  }
  return kOk;
}

Status SpillFile::write(uint64_t offset, const void* from, uint64_t bytes, const Log& log) {
  const SizeSignal no_signal;
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1u << 30;
    const ssize_t written =
        ::pwrite(static_cast<int>(handle_), at, static_cast<size_t>(bytes < kMost ? bytes : kMost),
                 static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return log.fail(ORIEL_ERROR_IO, "cannot put memory aside in %s: %s", name_, adviceFor(errno));
    }
    at += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<uint64_t>(written);
  }
  return kOk;
}

Status SpillFile::read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  const ReadEnd end = readWhole(handle_, offset, to, bytes);
  return end == ReadEnd::kWhole
             ? Status(kOk)
             : log.fail(ORIEL_ERROR_IO, "cannot read the spilled data in %s: %s", name_,
                        end == ReadEnd::kFailed ? adviceFor(errno)
                                                : "it was cut off, begin the conversation anew");
}

void SpillFile::remove() {
  if (!isOpen()) {
    return;
  }
  (void)::close(static_cast<int>(handle_));
  if (folder_ != kNoHandle) {
    (void)::unlinkat(static_cast<int>(folder_), name_, 0);
    (void)::close(static_cast<int>(folder_));
  }
  handle_ = folder_ = kNoHandle;
}

// --- Markers of work that may crash ---------------------------------------------------------------

bool WorkMarker::begin(const char* path, uint8_t (&was)[kMostBytes], size_t* left) {
  *left = 0;
  if (isHeld() || std::strlen(path) >= sizeof(path_)) {
    return false;
  }
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  for (int i = 0; i < kMostTries; ++i) {
    int fd = openRetrying(path, kFlags, kPrivateFile);
    if (fd < 0 && errno == ENOENT) {
      makeParents(path);
      fd = openRetrying(path, kFlags, kPrivateFile);
    }
    Descriptor file(fd);
    struct stat info = {};
    if (!file.valid() || tryLock(file.get()) != Lock::kTaken || ::fstat(file.get(), &info) != 0 ||
        !S_ISREG(info.st_mode)) {
      return false;
    }
    if (info.st_nlink == 0) {  // its owner removed it in the meantime
      continue;
    }
    // Refuse another user's file and a file with a second name.
    if (info.st_uid != ::geteuid() || info.st_nlink != 1 ||
        (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return false;
    }
    const ssize_t got = ::pread(file.get(), was, kMostBytes, 0);
    *left = got > 0 ? static_cast<size_t>(got) : 0;
    std::snprintf(path_, sizeof(path_), "%s", path);
    handle_ = file.release();
    return true;
  }
  return false;
}

void WorkMarker::write(const void* data, size_t bytes) const {
  if (isHeld()) {
    const SizeSignal no_signal;
    // A failed write leaves an empty marker, which is harmless.
    const ssize_t written = ::pwrite(static_cast<int>(handle_), data, bytes, 0);
    (void)written;
  }
}

void WorkMarker::end() {
  if (isHeld()) {
    const int fd = static_cast<int>(handle_);
    // Runs before the lock is released. A marker that cannot be removed is emptied. If it was removed already, another
    // process may own the name.
    struct stat ours = {};
    struct stat named = {};
    const bool other = ::fstat(fd, &ours) == 0 && ::lstat(path_, &named) == 0 &&
                       (ours.st_ino != named.st_ino || ours.st_dev != named.st_dev);
    const bool silent = other || ::unlink(path_) == 0 || ::ftruncate(fd, 0) == 0;
    (void)silent;
    (void)::close(fd);
    handle_ = kNoHandle;
  }
}

uint32_t removeFiles(const char* folder, const char* beginning, const char* end, uint32_t* left) {
  DIR* const open = ::opendir(folder);
  if (open == nullptr) {
    *left += errno == ENOENT || errno == ENOTDIR ? 0 : 1;  // the contents are unknown
    return 0;
  }
  uint32_t removed = 0;
  const struct dirent* entry = nullptr;
  for (int i = 0; i < kMostEntries && (entry = ::readdir(open)) != nullptr; ++i) {
    const size_t length = std::strlen(entry->d_name);
    const size_t tail = std::strlen(end);
    if (std::strncmp(entry->d_name, beginning, std::strlen(beginning)) == 0 && length > tail &&
        std::strcmp(entry->d_name + length - tail, end) == 0) {
      if (::unlinkat(::dirfd(open), entry->d_name, 0) == 0) {
        ++removed;
      } else if (errno != ENOENT) {  // or removed by another process
        ++*left;
      }
    }
  }
  (void)::closedir(open);
  return removed;
}

}  // namespace oriel_internal
