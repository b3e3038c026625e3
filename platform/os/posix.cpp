// Linux, Android, macOS and other POSIX systems.
#define _FILE_OFFSET_BITS 64  // 32-bit systems: what is too large to map is told from what is not there
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__APPLE__)
#include <mach/mach.h>
#endif

#include "os/os.h"

namespace oriel {
namespace {

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
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

int openRetrying(const char* path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// A file that this process has open already, from "/dev/fd/N" or "/proc/self/fd/N"; -1: another path.
/// Opening such a path anew would ask for rights that who handed the descriptor over may have only
/// himself, as with documents that a user picks on Android.
int openDescriptorIn(const char* path) {
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

// Messages cut a path (%.600s) rather than the advice after it.

/// "WHAT TO DO" for an errno; a constant (strerror is not thread-safe everywhere).
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

/// Reads the start of a small file as text; false when it cannot be read.
template <size_t N>
bool readText(const char* path, char (&text)[N]) {
  const Descriptor file(openRetrying(path, O_RDONLY));
  if (!file.valid()) {
    return false;
  }
  size_t used = 0;
  while (used < N - 1) {
    const ssize_t got = ::read(file.get(), text + used, N - 1 - used);
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

#if defined(__linux__)
/// The number after `label` in a list of "label value" lines; 0 when there is none.
uint64_t numberAfter(const char* text, const char* label) {
  const char* at = std::strstr(text, label);
  return at == nullptr ? 0 : std::strtoull(at + std::strlen(label), nullptr, 10);
}

/// What the process's control groups (version 2) still allow; UINT64_MAX: no limit. Pages of files
/// that the group has not used lately count as free.
uint64_t freeInControlGroups() {
  char group[1024];
  uint64_t least = UINT64_MAX;
  if (!readText("/proc/self/cgroup", group)) {
    return least;
  }
  const char* line = std::strstr(group, "0::/");
  if (line == nullptr) {
    return least;
  }
  char path[kMaxPathBytes];
  const size_t length = std::strcspn(line + 3, "\n");
  const int head = std::snprintf(path, sizeof(path) - 32, "/sys/fs/cgroup%.*s",
                                 static_cast<int>(length), line + 3);
  if (head < 0 || static_cast<size_t>(head) >= sizeof(path) - 32) {
    return least;
  }
  const size_t root = std::strlen("/sys/fs/cgroup");
  size_t end = static_cast<size_t>(head);
  // The limits of all groups above hold, too.
  for (;;) {
    while (end > root && path[end - 1] == '/') {
      --end;
    }
    char text[4096];
    std::strcpy(path + end, "/memory.max");
    if (readText(path, text) && text[0] >= '0' && text[0] <= '9') {
      const uint64_t limit = std::strtoull(text, nullptr, 10);
      std::strcpy(path + end, "/memory.current");
      uint64_t used = readText(path, text) ? std::strtoull(text, nullptr, 10) : 0;
      std::strcpy(path + end, "/memory.stat");
      const uint64_t idle = readText(path, text) ? numberAfter(text, "\ninactive_file ") : 0;
      used = used > idle ? used - idle : 0;
      const uint64_t left = limit > used ? limit - used : 0;
      least = left < least ? left : least;
    }
    if (end <= root) {
      return least;
    }
    while (end > root && path[end - 1] != '/') {
      --end;
    }
  }
}
#endif

/// Creates the folders a file's path goes through. Says nothing: what went wrong shows when the file
/// is created.
void makeParents(const char* path) {
  char folder[kMaxPathBytes];
  for (size_t i = 0; path[i] != '\0' && i < sizeof(folder); ++i) {
    if (path[i] == '/' && i > 0) {
      folder[i] = '\0';
      (void)::mkdir(folder, 0777);
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

/// Opens the temporary file of a write for this thread alone: another that writes it is waited for, and what
/// one left that was ended in the middle is written over. -1: errno says why not.
int openAlone(const char* temporary) {
  for (;;) {
    const int fd = openRetrying(temporary, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0) {
      return -1;
    }
    while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {  // without, where files cannot be locked
    }
    struct stat own = {};
    struct stat named = {};
    // Who was waited for has renamed it.
    const bool gone = ::fstat(fd, &own) != 0 || ::lstat(temporary, &named) != 0 ||
                      own.st_dev != named.st_dev || own.st_ino != named.st_ino;
    if (!gone && ::ftruncate(fd, 0) == 0) {
      return fd;
    }
    const int error = errno;
    (void)::close(fd);
    if (!gone) {
      errno = error;
      return -1;
    }
  }
}

}  // namespace

// --- Files ---------------------------------------------------------------------------------------

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(bytes_));
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
  other.data_ = nullptr;
  other.bytes_ = 0;
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));  // unmaps what this one had
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

Status MappedFile::open(const char* path, const Log& log) {
  *this = MappedFile();
  const int given = openDescriptorIn(path);
  // O_NONBLOCK: opening a pipe must not wait for somebody to write to it.
  const Descriptor file(given >= 0 ? ::fcntl(given, F_DUPFD_CLOEXEC, 0)
                                   : openRetrying(path, O_RDONLY | O_NONBLOCK));
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(EISDIR));
  }
  if (!S_ISREG(info.st_mode)) {
    return log.fail(ORIEL_ERROR_IO, "cannot map %.600s: it is a device or a pipe, give a file",
                    path);
  }
  if (info.st_size <= 0) {
    return log.fail(ORIEL_ERROR_IO, "%.600s is empty: download it again", path);
  }
  const uint64_t bytes = static_cast<uint64_t>(info.st_size);
  if (bytes > SIZE_MAX / 2) {
    return log.fail(ORIEL_ERROR_IO,
                    "%.600s has %" PRIu64
                    " bytes, more than a 32-bit process can map: use a smaller "
                    "model or a 64-bit build",
                    path, bytes);
  }
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return log.fail(ORIEL_ERROR_IO, "cannot map %.600s: %s", path, adviceFor(errno));
  }
  (void)::madvise(data, static_cast<size_t>(bytes), MADV_SEQUENTIAL);  // read once, front to back
  data_ = static_cast<const uint8_t*>(data);
  bytes_ = bytes;
  return kOk;
}

Status MappedFile::openIfThere(const char* path) { return open(path, Log{}); }

InputFile::~InputFile() {
  if (handle_ >= 0) {
    (void)::close(static_cast<int>(handle_));
  }
}

bool InputFile::open(const char* path, bool* missing) {
  const int given = openDescriptorIn(path);
  const int fd = given >= 0 ? ::fcntl(given, F_DUPFD_CLOEXEC, 0)
                            : openRetrying(path, O_RDONLY | O_NONBLOCK);
  *missing = fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG);
  struct stat info = {};
  if (fd < 0 || handle_ >= 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (fd >= 0) {
      (void)::close(fd);
    }
    return false;
  }
  handle_ = fd;
  return true;
}

size_t InputFile::read(void* buffer, size_t capacity) {
  ssize_t got = 0;
  do {
    got = ::read(static_cast<int>(handle_), buffer, capacity);
  } while (got < 0 && errno == EINTR);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

void MappedFile::dropPages(uint64_t offset, uint64_t bytes) const {
  const long page_size = ::sysconf(_SC_PAGESIZE);
  if (page_size <= 0 || offset >= bytes_) {
    return;
  }
  const uint64_t page = static_cast<uint64_t>(page_size);
  const uint64_t rest = bytes_ - offset;
  const uint64_t end = offset + (bytes < rest ? bytes : rest);
  const uint64_t first = (offset + page - 1) / page * page;
  // The file's last page is dropped whole: nothing else lies in it.
  const uint64_t last = end == bytes_ ? end : end / page * page;
  if (first < last) {
    (void)::madvise(const_cast<uint8_t*>(data_) + first, static_cast<size_t>(last - first),
                    MADV_DONTNEED);
  }
}

void preferLargePages(void* block, uint64_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr uint64_t kLargePage = 2 << 20;
  const uint64_t begin = reinterpret_cast<uintptr_t>(block);
  const uint64_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const uint64_t last = (begin + bytes) / kLargePage * kLargePage;
  if (first < last) {
    (void)::madvise(static_cast<uint8_t*>(block) + (first - begin),
                    static_cast<size_t>(last - first), MADV_HUGEPAGE);
  }
#else
  (void)block;
  (void)bytes;
#endif
}

Status writeFileAtomically(const char* path, const void* data, size_t bytes, const Log& log,
                           bool lasts) {
  struct stat old = {};
  char target[PATH_MAX];  // of a link, which stays
  if (::lstat(path, &old) == 0 && S_ISLNK(old.st_mode) && ::realpath(path, target) != nullptr) {
    path = target;
  }
  if (::stat(path, &old) == 0 && !S_ISREG(old.st_mode)) {  // which renaming would replace
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path,
                    S_ISDIR(old.st_mode) ? adviceFor(EISDIR) : "it is a device or a pipe, give a file");
  }
  char temporary[kMaxPathBytes];
  const int length = std::snprintf(temporary, sizeof(temporary), "%s.oriel-tmp", path);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(temporary)) {
    return log.fail(ORIEL_ERROR_IO, "cannot write a file: %s", adviceFor(ENAMETOOLONG));
  }
  int fd = openAlone(temporary);
  if (fd < 0 && errno == ENOENT) {
    makeParents(path);
    fd = openAlone(temporary);
  }
  Descriptor file(fd);
  if (!file.valid()) {
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(errno));
  }
  // Closed last: until then nobody else takes up the temporary file.
  if (!writeAll(file.get(), data, bytes) || (lasts && ::fsync(file.get()) != 0) ||
      ::rename(temporary, path) != 0) {
    const int error = errno;
    (void)::unlink(temporary);
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(error));
  }
  return kOk;
}

void removeFile(const char* path) { (void)::unlink(path); }

// --- Memory, time, chance ------------------------------------------------------------------------

uint64_t freeMemoryBytes() {
#if defined(__linux__)
  char text[1024];  // MemAvailable is among the first lines
  if (!readText("/proc/meminfo", text)) {
    return 0;
  }
  const uint64_t available = numberAfter(text, "MemAvailable:") * 1024;
  const uint64_t allowed = freeInControlGroups();
  return available < allowed ? available : allowed;
#elif defined(__APPLE__)
  vm_statistics64_data_t statistics = {};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = mach_host_self();
  const kern_return_t result =
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&statistics), &count);
  (void)mach_port_deallocate(mach_task_self(), host);
  if (result != KERN_SUCCESS) {
    return 0;
  }
  return (static_cast<uint64_t>(statistics.free_count) + statistics.inactive_count) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
#elif defined(_SC_AVPHYS_PAGES)
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  const long page_size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_size > 0
             ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size)
             : 0;
#else
  return 0;
#endif
}

double nowMs() {
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

uint64_t entropy() {
  uint64_t seed = 0;
  const Descriptor file(openRetrying("/dev/urandom", O_RDONLY));
  if (file.valid() &&
      ::read(file.get(), &seed, sizeof(seed)) == static_cast<ssize_t>(sizeof(seed))) {
    return seed;
  }
  // A sandbox without it: the clock, the process and the stack's address, mixed as in splitmix64.
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  seed = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
  seed ^= static_cast<uint64_t>(::getpid()) << 40 ^ reinterpret_cast<uintptr_t>(&now);
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  return seed ^ (seed >> 31);
}

// --- Shared libraries ----------------------------------------------------------------------------

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) {
    (void)::dlclose(handle_);
  }
}

bool SharedLibrary::open(const char* name) {
  if (handle_ != nullptr) {
    (void)::dlclose(handle_);
  }
  handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return handle_ != nullptr;
}

void* SharedLibrary::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace oriel
