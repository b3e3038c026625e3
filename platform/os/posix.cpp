// Linux, Android, macOS and other POSIX systems.
#define _FILE_OFFSET_BITS 64  // 32-bit systems: what is too large to map is told from what is not there
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__APPLE__)
#include <mach/mach.h>
#endif

#include "os/control_groups.h"
#include "os/os.h"
#include "os/posix_file.h"

namespace oriel {
namespace {

Status changedMeanwhile(const char* path, const Log& log) {
  return log.fail(ORIEL_ERROR_IO,
                  "%.600s was changed while it was being read: try again when nobody writes to it",
                  path);
}

bool sameTime(const int64_t (&a)[2], const int64_t (&b)[2]) { return a[0] == b[0] && a[1] == b[1]; }

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
  const Descriptor file(openToRead(path));
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

InputFile::~InputFile() {
  if (handle_ >= 0) {
    (void)::close(static_cast<int>(handle_));
  }
}

Status InputFile::openIfThere(const char* path, const Log& log) {
  const Status status = open(path, Log());
  if (status.ok() || (handle_ < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG))) {
    return kOk;
  }
  return log.fail(ORIEL_ERROR_IO, "%.600s cannot be read: check its access rights, and that it is a file", path);
}

Status InputFile::open(const char* path, const Log& log) {
  path_ = path;
  handle_ = openToRead(path);
  struct stat info = {};
  if (handle_ < 0 || ::fstat(static_cast<int>(handle_), &info) != 0) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(EISDIR));
  }
  if (!S_ISREG(info.st_mode)) {
    return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: it is a device or a pipe, give a file",
                    path);
  }
  if (!readState(&was_)) {
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

bool InputFile::readState(State* state) const {
  struct stat info = {};
  if (::fstat(static_cast<int>(handle_), &info) != 0) {
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

Status InputFile::read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1u << 30;  // what every system takes at a time
    const ssize_t got = ::pread(static_cast<int>(handle_), at,
                                static_cast<size_t>(bytes < kMost ? bytes : kMost),
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: %s", path_, adviceFor(errno));
    }
    if (got == 0) {  // its end was farther away when it was opened
      return changedMeanwhile(path_, log);
    }
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
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

// --- Memory, time, chance ------------------------------------------------------------------------

uint64_t freeMemoryBytes() {
#if defined(__linux__)
  char text[1024];  // MemAvailable is among the first lines
  if (!readText("/proc/meminfo", text, sizeof(text))) {
    return 0;
  }
  const uint64_t available = numberAfter(text, "MemAvailable:") * 1024;
  const uint64_t allowed = freeInControlGroups("");
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
