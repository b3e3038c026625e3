// Reading files in pieces on POSIX systems while others may change them.
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "os/os.h"
#include "os/posix_file.h"

namespace oriel_internal {
namespace {

/// -1: not a descriptor path.
int descriptorIn(const char* path) {
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"}) {
    const size_t length = std::strlen(folder);
    if (std::strncmp(path, folder, length) != 0) {
      continue;
    }
    const char* digit = path + length;
    int number = 0;
    for (; *digit >= '0' && *digit <= '9' && number < 100000000; ++digit) {
      number = number * 10 + (*digit - '0');
    }
    return *digit == '\0' && digit != path + length ? number : -1;
  }
  return -1;
}

Status changedMeanwhile(const char* path, const Log& log) {
  return log.fail(ORIEL_ERROR_IO,
                  "%.600s was changed while it was being read: try again without other writers",
                  path);
}

bool sameTime(const int64_t (&a)[2], const int64_t (&b)[2]) { return a[0] == b[0] && a[1] == b[1]; }

}  // namespace

bool isDescriptorPath(const char* path) { return descriptorIn(path) >= 0; }

int openToRead(const char* path) {
  const int given = descriptorIn(path);
  return given >= 0 ? ::fcntl(given, F_DUPFD_CLOEXEC, 0)
                    : openRetrying(path, O_RDONLY | O_NONBLOCK);
}

const char* adviceFor(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "it is not there, check the path";
    case EBADF:
      return "no such descriptor is open, check its number";
    case EACCES:
    case EPERM:
      return "no permission, check its access rights";
    case EISDIR:
      return "it is a folder, give a file";
    case EEXIST:
      return "a file of that name is there already, choose another name";
    case ENOSPC:
    case EDQUOT:
      return "the disk is full, free some space";
    case EROFS:
      return "the file system is read-only, choose another folder";
    case ENAMETOOLONG:
      return "its path is too long, shorten it";
    case EMFILE:
    case ENFILE:
      return "too many files are open, close some";
    case EOVERFLOW:
    case ENOMEM:
      return "the address space is full, close something or use a 64-bit build";
    default:
      return "the system refused, check the file and its disk";
  }
}

bool readText(const char* path, char* text, size_t capacity) {
  const Descriptor file(openRetrying(path, O_RDONLY));
  size_t used = 0;
  while (file.valid() && used < capacity - 1) {
    const ssize_t got = ::read(file.get(), text + used, capacity - 1 - used);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    used += static_cast<size_t>(got);
  }
  text[used] = '\0';
  return used > 0;
}

InputFile::~InputFile() {
  if (isOpen()) {
    (void)::close(static_cast<int>(handle_));
  }
}

Status InputFile::open(const char* path, const Log& log) {
  ORIEL_TRY(openIfThere(path, log));
  if (!isOpen()) {  // errno is still from open()
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(errno));
  }
  if (was_.bytes == 0) {
    return log.fail(ORIEL_ERROR_IO, "%.600s is empty: download it again", path);
  }
#if defined(POSIX_FADV_SEQUENTIAL)
  (void)::posix_fadvise(static_cast<int>(handle_), 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
  return kOk;
}

Status InputFile::openIfThere(const char* path, const Log& log) {
  path_ = path;
  Descriptor file(openToRead(path));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG)) {
    return kOk;
  }
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return log.fail(
        ORIEL_ERROR_IO, "cannot open %.600s: %s", path,
        S_ISDIR(info.st_mode) ? adviceFor(EISDIR) : "it is a device or a pipe, give a file");
  }
  handle_ = file.release();
  if (!readState(&was_)) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(errno));
  }
  return kOk;
}

bool InputFile::readState(State* state) const {
  struct stat info = {};
  if (::fstat(static_cast<int>(handle_), &info) != 0 || info.st_size < 0) {
    return false;
  }
#if defined(__APPLE__)
  const struct timespec written = info.st_mtimespec;
  const struct timespec changed = info.st_ctimespec;
#else
  const struct timespec written = info.st_mtim;
  const struct timespec changed = info.st_ctim;
#endif
  state->bytes = static_cast<uint64_t>(info.st_size);
  state->links = static_cast<uint64_t>(info.st_nlink);
  state->written[0] = static_cast<int64_t>(written.tv_sec);
  state->written[1] = static_cast<int64_t>(written.tv_nsec);
  state->changed[0] = static_cast<int64_t>(changed.tv_sec);
  state->changed[1] = static_cast<int64_t>(changed.tv_nsec);
  return true;
}

ReadEnd readWhole(intptr_t file, uint64_t offset, void* to, uint64_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1u << 30;  // the most that every system accepts at once
    const ssize_t got =
        ::pread(static_cast<int>(file), at, static_cast<size_t>(bytes < kMost ? bytes : kMost),
                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return got < 0 ? ReadEnd::kFailed : ReadEnd::kCutOff;
    }
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return ReadEnd::kWhole;
}

Status InputFile::readOwn(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  switch (readWhole(handle_, offset, to, bytes)) {
    case ReadEnd::kWhole:
      break;
    case ReadEnd::kCutOff:  // the file was longer when it was opened
      return changedMeanwhile(path_, log);
    case ReadEnd::kFailed:
      return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: %s", path_, adviceFor(errno));
  }
  return kOk;
}

void InputFile::readOwnAhead(uint64_t offset, uint64_t bytes) const {
#if defined(__APPLE__)
  radvisory range = {static_cast<off_t>(offset), static_cast<int>(bytes)};
  (void)fcntl(static_cast<int>(handle_), F_RDADVISE, &range);
#else
  (void)posix_fadvise(static_cast<int>(handle_), static_cast<off_t>(offset),
                      static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
#endif
}

Status InputFile::expectOwnUnchanged(const Log& log) const {
  State is;
  if (!readState(&is)) {
    return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: %s", path_, adviceFor(errno));
  }
  // Renaming or linking also changes the second time, but not the contents.
  const bool same = is.bytes == was_.bytes && sameTime(is.written, was_.written) &&
                    (is.links != was_.links || sameTime(is.changed, was_.changed));
  return same ? kOk : changedMeanwhile(path_, log);
}

}  // namespace oriel_internal
