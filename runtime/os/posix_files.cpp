// Files on POSIX systems: read in pieces that may change meanwhile; written under a name of one's own, then renamed.
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "os/os.h"
#include "os/posix_file.h"

namespace oriel {
namespace {

// A temporary file is called NAME.0123456789abcdef.oriel-tmp; older versions called it NAME.oriel-tmp.
constexpr char kTemporaryEnd[] = ".oriel-tmp";
constexpr size_t kRandomDigits = 16;
/// Of a longer NAME its beginning is taken: most systems allow names of 255 bytes.
constexpr size_t kMostNameBytes = 200;
/// Names tried, and files written once more when theirs was taken away.
constexpr int kMostTries = 16;
/// Entries of a folder that are looked at for what was left behind; a bound of time.
constexpr int kMostEntries = 1 << 16;
/// Where files cannot be locked, what is this much older than now was left behind.
constexpr time_t kLeftBehindSeconds = 24 * 60 * 60;

/// What is kept may be anybody's conversation: the user's alone.
constexpr mode_t kPrivateFile = 0600;
constexpr mode_t kPrivateFolder = 0700;

/// -1: another path.
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

/// Creates the folders a file's path goes through. Says nothing: what went wrong shows when the file
/// is created.
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

/// On a disk far away it takes its time, in which a signal may come.
bool syncWhole(int fd) {
  int result = 0;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

enum class Lock { kTaken, kHeld, kUnknown };

/// Takes a lock that ends with the process, without waiting. kUnknown: files cannot be locked there.
Lock tryLock(int fd) {
  int result = 0;
  do {
    result = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Lock::kTaken : errno == EWOULDBLOCK ? Lock::kHeld : Lock::kUnknown;
}

/// A path in two: up to its last slash, and the part of the name that temporary files begin with.
struct Place {
  char folder[kMaxPathBytes];  ///< "" or with its slash
  char name[kMostNameBytes + 1];
};

/// False: too long.
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
      --length;  // some systems want whole characters
    }
  }
  std::memcpy(place->name, name, length);
  place->name[length] = '\0';
  return true;
}

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

/// Removes a file whose writer is gone: its lock can be had, or where there are none, it is old.
void removeIfLeft(int folder, const char* entry, time_t written) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int fd = ::openat(folder, entry, O_WRONLY | kFlags);  // what NFS wants for a lock
  if (fd < 0) {
    fd = ::openat(folder, entry, O_RDONLY | kFlags);
  }
  const Descriptor file(fd);
  const Lock lock = file.valid() ? tryLock(file.get()) : Lock::kUnknown;
  if (lock == Lock::kTaken ||
      (lock == Lock::kUnknown && ::time(nullptr) - written > kLeftBehindSeconds)) {
    // With the lock held: a writer that made the file only now finds out, and takes another name.
    (void)::unlinkat(folder, entry, 0);
  }
}

/// Removes what processes left that were ended while they wrote this file. Never waits, and leaves alone what
/// is being written, links and other users' files.
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

/// Makes a file that nobody else has, under a name that nobody can guess. -1: errno says why not.
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
    // Between these two lines and above somebody may have taken it for left behind.
    if (tryLock(fd) != Lock::kHeld && ::fstat(fd, &info) == 0 && info.st_nlink > 0) {
      return fd;
    }
    (void)::close(fd);
    (void)::unlink(path);
  }
  errno = EEXIST;
  return -1;
}

/// Gives a file its name, which nobody has: where the file system knows no second names, by way of an empty file.
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

/// One attempt of writeFileAtomically(); errno of what failed, else 0.
int writeOnce(const char* path, const Place& place, mode_t mode, const void* data, size_t bytes,
              FileUse use) {
  const bool lasts = use != FileUse::kCache;
  char temporary[kMaxPathBytes];
  Descriptor file(makeTemporary(place, O_WRONLY, mode, temporary));
  if (!file.valid()) {
    return errno;
  }
  // Closed last: until then nobody takes the temporary file for left behind.
  if (!writeAll(file.get(), data, bytes) || (lasts && !syncWhole(file.get())) ||
      !(use == FileUse::kNew ? nameNew(temporary, path) : ::rename(temporary, path) == 0)) {
    const int error = errno;
    (void)::unlink(temporary);
    return error;
  }
  return 0;
}

}  // namespace

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

// --- Reading -------------------------------------------------------------------------------------

namespace {

Status changedMeanwhile(const char* path, const Log& log) {
  return log.fail(ORIEL_ERROR_IO,
                  "%.600s was changed while it was being read: try again when nobody writes to it",
                  path);
}

bool sameTime(const int64_t (&a)[2], const int64_t (&b)[2]) { return a[0] == b[0] && a[1] == b[1]; }

}  // namespace

InputFile::~InputFile() {
  if (isOpen()) {
    (void)::close(static_cast<int>(handle_));
  }
}

Status InputFile::open(const char* path, const Log& log) {
  ORIEL_TRY(openIfThere(path, log));
  if (!isOpen()) {  // errno is still that of opening
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

namespace {

enum class ReadEnd : uint8_t { kWhole, kCutOff, kFailed };

// All of these bytes; where that failed errno says why.
ReadEnd readWhole(intptr_t file, uint64_t offset, void* to, uint64_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1u << 30;  // what every system takes at a time
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

}  // namespace

Status InputFile::read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  switch (readWhole(handle_, offset, to, bytes)) {
    case ReadEnd::kWhole:
      break;
    case ReadEnd::kCutOff:  // its end was farther away when it was opened
      return changedMeanwhile(path_, log);
    case ReadEnd::kFailed:
      return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: %s", path_, adviceFor(errno));
  }
  return kOk;
}

Status InputFile::expectUnchanged(const Log& log) const {
  State is;
  if (!readState(&is)) {
    return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: %s", path_, adviceFor(errno));
  }
  // Giving or taking a name changes the second time, too, and nothing in the file.
  const bool same = is.bytes == was_.bytes && sameTime(is.written, was_.written) &&
                    (is.links != was_.links || sameTime(is.changed, was_.changed));
  return same ? kOk : changedMeanwhile(path_, log);
}

// --- Writing -------------------------------------------------------------------------------------

namespace {

bool isAbsent(int error) { return error == ENOENT || error == ENOTDIR; }

/// Where a link leads at which nothing is yet. 0, or why that is not known.
int followLink(const char* path, char (&target)[PATH_MAX]) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::snprintf(target, sizeof(target), "%s", path);
  for (int i = 0; i < kMostLinks; ++i) {
    char to[PATH_MAX];
    const ssize_t bytes = ::readlink(target, to, sizeof(to) - 1);
    if (bytes < 0) {
      return errno == EINVAL || isAbsent(errno) ? 0 : errno;
    }
    to[bytes] = '\0';
    // Beside the link, unless it says otherwise.
    char* const slash = to[0] == '/' ? nullptr : std::strrchr(target, '/');
    const size_t folder = slash != nullptr ? static_cast<size_t>(slash + 1 - target) : 0;
    if (folder + static_cast<size_t>(bytes) >= sizeof(target)) {
      return ENAMETOOLONG;
    }
    std::memcpy(target + folder, to, static_cast<size_t>(bytes) + 1);
  }
  return ELOOP;
}

/// What is at `*path` now: of a link it becomes the `target`, so that the link stays. `*mode`
/// becomes that of a file, where it is stricter. What is no file would be replaced by renaming: why not, or null.
const char* lookAt(const char** path, char (&target)[PATH_MAX], mode_t* mode) {
  struct stat old = {};
  if (::lstat(*path, &old) != 0) {
    return isAbsent(errno) ? nullptr : adviceFor(errno);
  }
  if (S_ISLNK(old.st_mode)) {
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
  char target[PATH_MAX];
  mode_t mode = kPrivateFile;
  if (const char* const refused = lookAt(&path, target, &mode); refused != nullptr) {
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
  // ENOENT: the folder was made just now, or where files cannot be locked another process took the
  // temporary file for left behind.
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

bool isDescriptorPath(const char* path) { return descriptorIn(path) >= 0; }

// --- For a while ---------------------------------------------------------------------------------

// Its lock says for as long as the file is open that it was not left behind.
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
  folder_ = in.release();
  handle_ = file.release();
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
      return log.fail(ORIEL_ERROR_IO, "cannot write %s: %s", shownName(), adviceFor(errno));
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
             : log.fail(ORIEL_ERROR_IO, "cannot read %s: %s", shownName(),
                        end == ReadEnd::kFailed ? adviceFor(errno)
                                                : "it was cut off, begin the conversation anew");
}

void SpillFile::hide() {
  if (isOpen() && name_[0] != '\0') {
    (void)::unlinkat(static_cast<int>(folder_), name_, 0);
    name_[0] = '\0';
  }
}

void SpillFile::remove() {
  if (!isOpen()) {
    return;
  }
  hide();
  (void)::close(static_cast<int>(handle_));
  (void)::close(static_cast<int>(folder_));
  handle_ = folder_ = kNoHandle;
}

// --- Markers of work that may end the process ----------------------------------------------------

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
    if (info.st_nlink == 0) {  // its owner removed it in between
      continue;
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
    // What cannot be written is a marker that says nothing.
    const ssize_t written = ::pwrite(static_cast<int>(handle_), data, bytes, 0);
    (void)written;
  }
}

void WorkMarker::end() {
  if (isHeld()) {
    const int fd = static_cast<int>(handle_);
    // Before the lock goes. One that cannot be removed is to say nothing.
    const bool silent = ::unlink(path_) == 0 || ::ftruncate(fd, 0) == 0;
    (void)silent;
    (void)::close(fd);
    handle_ = kNoHandle;
  }
}

uint32_t removeFiles(const char* folder, const char* beginning, const char* end, uint32_t* left) {
  DIR* const open = ::opendir(folder);
  if (open == nullptr) {
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
      } else if (errno != ENOENT) {  // or somebody else was faster
        ++*left;
      }
    }
  }
  (void)::closedir(open);
  return removed;
}

}  // namespace oriel
