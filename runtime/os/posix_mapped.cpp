// Large private files on POSIX systems: written in parts, and mapped for reading.
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "os/os.h"
#include "os/posix_file.h"

namespace oriel_internal {
namespace {

constexpr uint64_t kMostAtOnce = 1u << 30;  // that every system accepts

bool isPrivate(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int64_t writtenAt(const struct stat& info) {
#if defined(__APPLE__)
  const struct timespec written = info.st_mtimespec;
#else
  const struct timespec written = info.st_mtim;
#endif
  return static_cast<int64_t>(written.tv_sec) * 1000000000 + written.tv_nsec;
}

bool endsWith(const char* name, const char* end) {
  const size_t length = std::strlen(name);
  const size_t tail = std::strlen(end);
  return length >= tail && std::strcmp(name + length - tail, end) == 0;
}

/// The oldest private file with this end, and the bytes of all of them.
uint64_t findOldest(const char* folder, const char* end, char (&oldest)[NAME_MAX + 1]) {
  oldest[0] = '\0';
  DIR* const open = ::opendir(folder);
  if (open == nullptr) {
    return 0;
  }
  uint64_t bytes = 0;
  int64_t first = INT64_MAX;
  const struct dirent* entry = nullptr;
  for (int i = 0; i < kMostEntries && (entry = ::readdir(open)) != nullptr; ++i) {
    struct stat info = {};
    if (!endsWith(entry->d_name, end) ||
        ::fstatat(::dirfd(open), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !isPrivate(info)) {
      continue;
    }
    bytes += static_cast<uint64_t>(info.st_size);
    if (writtenAt(info) < first) {
      first = writtenAt(info);
      std::snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
    }
  }
  (void)::closedir(open);
  return bytes;
}

}  // namespace

// --- FileInParts -----------------------------------------------------------------------------------

FileInParts::~FileInParts() {
  if (handle_ != kNoHandle) {
    (void)::unlink(temporary_);
    (void)::close(static_cast<int>(handle_));
  }
}

Status FileInParts::create(const char* path, uint64_t bytes, const Log& log) {
  const SizeSignal no_signal;
  path_ = path;
  Place place;
  char temporary[kMaxPathBytes];
  if (!splitPath(path, &place)) {
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(ENAMETOOLONG));
  }
  makeParents(path);
  removeLeftBehind(place);
  const int file = makeTemporary(place, O_RDWR, kPrivateFile, temporary);
  if (file < 0 || std::strlen(temporary) >= sizeof(temporary_) ||
      ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    if (file >= 0) {
      (void)::unlink(temporary);
      (void)::close(file);
    }
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(error));
  }
  std::memcpy(temporary_, temporary, std::strlen(temporary) + 1);
  handle_ = file;
  return kOk;
}

Status FileInParts::write(uint64_t offset, const void* from, uint64_t bytes, const Log& log) {
  const SizeSignal no_signal;
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t written = ::pwrite(static_cast<int>(handle_), at,
                                     static_cast<size_t>(bytes < kMostAtOnce ? bytes : kMostAtOnce),
                                     static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path_,
                      adviceFor(written < 0 ? errno : ENOSPC));
    }
    at += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<uint64_t>(written);
  }
  return kOk;
}

Status FileInParts::read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  return readWhole(handle_, offset, to, bytes) == ReadEnd::kWhole
             ? Status(kOk)
             : log.fail(ORIEL_ERROR_IO, "cannot read %.600s back: free space on its disk", path_);
}

Status FileInParts::finish(const Log& log) {
  if (::rename(temporary_, path_) != 0) {
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path_, adviceFor(errno));
  }
  (void)::close(static_cast<int>(handle_));
  handle_ = kNoHandle;
  return kOk;
}

// --- MappedFile ------------------------------------------------------------------------------------

void MappedFile::close() {
  if (data_ != nullptr) {
    (void)::munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(bytes_));
    data_ = nullptr;
  }
}

bool MappedFile::open(const char* path) {
  const Descriptor file(openRetrying(path, O_RDONLY | O_NOFOLLOW, 0));
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !isPrivate(info) || info.st_size <= 0 ||
      static_cast<uint64_t>(info.st_size) > SIZE_MAX) {
    return false;
  }
  void* const data =
      ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    return false;
  }
  data_ = static_cast<const uint8_t*>(data);
  bytes_ = static_cast<uint64_t>(info.st_size);
  return true;
}

void MappedFile::forget() const {
  if (data_ != nullptr) {
    (void)::madvise(const_cast<uint8_t*>(data_), static_cast<size_t>(bytes_), MADV_DONTNEED);
  }
}

void removeOldest(const char* folder, const char* end, uint64_t most_bytes) {
  char oldest[NAME_MAX + 1];
  while (findOldest(folder, end, oldest) > most_bytes && oldest[0] != '\0') {
    char path[kMaxPathBytes];
    const int length = std::snprintf(path, sizeof(path), "%s/%s", folder, oldest);
    if (length < 0 || static_cast<size_t>(length) >= sizeof(path) || ::unlink(path) != 0) {
      return;
    }
  }
}

uint64_t bytesOfFiles(const char* folder, const char* end) {
  char oldest[NAME_MAX + 1];
  return findOldest(folder, end, oldest);
}

}  // namespace oriel_internal
