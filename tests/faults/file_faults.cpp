#include "faults/file_faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace oriel_internal::test {

const std::vector<FileCall>& fileCalls() {
  static const std::vector<FileCall> calls = {
      {"open64", {ENOENT, EACCES, EMFILE, EINTR}},
      {"openat64", {EACCES, EMFILE}},
      {"close", {EIO, EINTR}},
      {"fcntl64", {EMFILE, EBADF}},
      {"read", {EIO, EINTR, kCutShort, kAtEnd}},
      {"pread64", {EIO, EINTR, kCutShort, kAtEnd}},
      {"write", {ENOSPC, EIO, EINTR, kCutShort}},
      {"pwrite64", {ENOSPC, EIO, EINTR, kCutShort}},
      {"fsync", {EIO, ENOSPC, EINTR}},
      {"ftruncate64", {ENOSPC, EIO, EINTR}},
      {"rename", {EACCES, ENOSPC, EIO}},
      {"link", {EPERM, EACCES, EIO}},
      {"unlink", {EACCES, EIO}},
      {"unlinkat", {EACCES, EIO}},
      {"mkdir", {EACCES, ENOSPC}},
      {"fstat64", {EIO, EOVERFLOW}},
      {"stat64", {EACCES, EIO}},
      {"lstat64", {EACCES, EIO}},
      {"fstatat64", {EACCES, EIO}},
      {"realpath", {EACCES, ELOOP}},
      {"readlink", {EACCES, EIO}},
      {"flock", {ENOLCK, EWOULDBLOCK, EINTR}},
      {"opendir", {EACCES, EMFILE}},
      {"readdir64", {EIO}},
      {"closedir", {EIO}},
      {"posix_fadvise64", {EINVAL}},
      {"madvise", {ENOMEM}},
      {"fopen", {EACCES, EMFILE}},
      {"__isoc99_fscanf", {kAbsent}},
      {"fclose", {EIO}},
      {"sysconf", {EINVAL}},
      {"dlopen", {kAbsent}},
      {"dlsym", {kAbsent}},
      {"dlsym system", {kAbsent}},
      {"pthread_attr_init", {ENOMEM}},
      {"pthread_attr_setstacksize", {EINVAL}},
      {"pthread_create", {EAGAIN}},
      {"sched_getaffinity", {EINVAL}},
  };
  return calls;
}

std::string nameOfFileResult(int result) {
  switch (result) {
    case kCutShort:
      return "cut short";
    case kAtEnd:
      return "at the end";
    case kAbsent:
      return "nothing";
#define ORIEL_NAME(name) \
  case name:             \
    return #name;
      ORIEL_NAME(EPERM)
      ORIEL_NAME(ENOENT)
      ORIEL_NAME(EINTR)
      ORIEL_NAME(EIO)
      ORIEL_NAME(EBADF)
      ORIEL_NAME(EAGAIN)
      ORIEL_NAME(ENOMEM)
      ORIEL_NAME(EACCES)
      ORIEL_NAME(EINVAL)
      ORIEL_NAME(EMFILE)
      ORIEL_NAME(ENOSPC)
      ORIEL_NAME(ENOLCK)
      ORIEL_NAME(ELOOP)
      ORIEL_NAME(EOVERFLOW)
#undef ORIEL_NAME
    default:
      return std::to_string(result);
  }
}

FileFaults& FileFaults::all() {
  static FileFaults faults;
  return faults;
}

void FileFaults::arm(const std::string& site, uint64_t nth, int result) {
  counts_.clear();
  site_ = site;
  nth_ = nth;
  result_ = result;
  fired_ = false;
  const pthread_t self = pthread_self();
  std::memcpy(&thread_, &self, sizeof(thread_));
  armed_ = true;
}

std::string FileFaults::kindOf(const char* path) const {
  size_t longest = 0;
  std::string kind = "other";
  for (const auto& [begin, name] : kinds_) {
    if (begin.size() > longest && std::strncmp(path, begin.c_str(), begin.size()) == 0) {
      longest = begin.size();
      kind = name;
    }
  }
  return kind;
}

int FileFaults::decideAt(const char* call, const std::string& kind) {
  const pthread_t self = pthread_self();
  if (!armed_ || std::memcmp(&thread_, &self, sizeof(thread_)) != 0) {
    return 0;
  }
  const std::string site = kind.empty() ? call : std::string(call) + " " + kind;
  const uint64_t nth = ++counts_[site];
  if (fired_ || site != site_ || nth != nth_) {
    return 0;
  }
  fired_ = true;
  return result_;
}

int FileFaults::decide(const char* call, const char* path) { return decideAt(call, kindOf(path)); }

int FileFaults::decide(const char* call, int descriptor) {
  const auto found = descriptors_.find(descriptor);
  return decideAt(call, found == descriptors_.end() ? "other" : found->second);
}

// Files that the test program opens while nothing is armed are not tracked.
void FileFaults::opened(int descriptor, const char* path) { remember(descriptor, kindOf(path)); }

void FileFaults::opened(int descriptor, int in_folder) {
  const auto found = descriptors_.find(in_folder);
  remember(descriptor, found == descriptors_.end() ? "other" : found->second);
}

void FileFaults::remember(int descriptor, const std::string& kind) {
  if (descriptor >= 0 && (armed_ || kind != "other")) {
    descriptors_[descriptor] = kind;
  } else {
    descriptors_.erase(descriptor);
  }
}

}  // namespace oriel_internal::test

using oriel_internal::test::FileFaults;
using oriel_internal::test::kAtEnd;
using oriel_internal::test::kCutShort;

namespace {

FileFaults& faults() { return FileFaults::all(); }

int failedWith(int error) {
  errno = error;
  return -1;
}

/// Reads and writes: `perform(bytes)` does that many.
template <typename Perform>
ssize_t transfer(int decision, size_t bytes, const Perform& perform) {
  if (decision == kAtEnd) {
    return 0;
  }
  if (decision == kCutShort) {
    return perform(bytes > 1 ? bytes / 2 : bytes);
  }
  return decision != 0 ? failedWith(decision) : perform(bytes);
}

}  // namespace

// The linker redirects calls here, and renames the real ones.
#define ORIEL_WRAPPED(result, name, parameters) \
  result __real_##name parameters;              \
  result __wrap_##name parameters

extern "C" {

int __real_open64(const char* path, int flags, ...);
int __wrap_open64(const char* path, int flags, ...);
int __wrap_open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (const int error = faults().decide("open64", path); error != 0) {
    return failedWith(error);
  }
  const int descriptor = __real_open64(path, flags, mode);
  faults().opened(descriptor, path);
  return descriptor;
}

int __real_openat64(int folder, const char* path, int flags, ...);
int __wrap_openat64(int folder, const char* path, int flags, ...);
int __wrap_openat64(int folder, const char* path, int flags, ...) {
  if (const int error = faults().decide("openat64", folder); error != 0) {
    return failedWith(error);
  }
  const int descriptor = __real_openat64(folder, path, flags);
  faults().opened(descriptor, folder);
  return descriptor;
}

// Closed in any case, as Linux does it.
ORIEL_WRAPPED(int, close, (int descriptor)) {
  const int error = faults().decide("close", descriptor);
  const int result = __real_close(descriptor);
  return error != 0 ? failedWith(error) : result;
}

int __real_fcntl64(int descriptor, int what, ...);
int __wrap_fcntl64(int descriptor, int what, ...);
int __wrap_fcntl64(int descriptor, int what, ...) {
  va_list more;
  va_start(more, what);
  const int argument = va_arg(more, int);
  va_end(more);
  if (const int error = faults().decide("fcntl64", descriptor); error != 0) {
    return failedWith(error);
  }
  const int duplicate = __real_fcntl64(descriptor, what, argument);
  faults().opened(duplicate, descriptor);
  return duplicate;
}

ORIEL_WRAPPED(ssize_t, read, (int descriptor, void* to, size_t bytes)) {
  return transfer(faults().decide("read", descriptor), bytes,
                  [&](size_t some) { return __real_read(descriptor, to, some); });
}
ORIEL_WRAPPED(ssize_t, pread64, (int descriptor, void* to, size_t bytes, off64_t offset)) {
  return transfer(faults().decide("pread64", descriptor), bytes,
                  [&](size_t some) { return __real_pread64(descriptor, to, some, offset); });
}
ORIEL_WRAPPED(ssize_t, write, (int descriptor, const void* from, size_t bytes)) {
  return transfer(faults().decide("write", descriptor), bytes,
                  [&](size_t some) { return __real_write(descriptor, from, some); });
}
ORIEL_WRAPPED(ssize_t, pwrite64, (int descriptor, const void* from, size_t bytes, off64_t offset)) {
  return transfer(faults().decide("pwrite64", descriptor), bytes,
                  [&](size_t some) { return __real_pwrite64(descriptor, from, some, offset); });
}

#define ORIEL_BY_DESCRIPTOR(name, parameters, ...)                      \
  ORIEL_WRAPPED(int, name, parameters) {                                \
    const int error = faults().decide(#name, descriptor);               \
    return error != 0 ? failedWith(error) : __real_##name(__VA_ARGS__); \
  }
ORIEL_BY_DESCRIPTOR(fsync, (int descriptor), descriptor)
ORIEL_BY_DESCRIPTOR(ftruncate64, (int descriptor, off64_t bytes), descriptor, bytes)
ORIEL_BY_DESCRIPTOR(unlinkat, (int descriptor, const char* path, int flags), descriptor, path,
                    flags)
ORIEL_BY_DESCRIPTOR(fstat64, (int descriptor, struct stat64* info), descriptor, info)
ORIEL_BY_DESCRIPTOR(fstatat64, (int descriptor, const char* path, struct stat64* info, int flags),
                    descriptor, path, info, flags)
ORIEL_BY_DESCRIPTOR(flock, (int descriptor, int how), descriptor, how)

#define ORIEL_BY_PATH(name, parameters, ...)                            \
  ORIEL_WRAPPED(int, name, parameters) {                                \
    const int error = faults().decide(#name, path);                     \
    return error != 0 ? failedWith(error) : __real_##name(__VA_ARGS__); \
  }
ORIEL_BY_PATH(rename, (const char* path, const char* to), path, to)
ORIEL_BY_PATH(link, (const char* path, const char* to), path, to)
ORIEL_BY_PATH(unlink, (const char* path), path)
ORIEL_BY_PATH(mkdir, (const char* path, mode_t mode), path, mode)
ORIEL_BY_PATH(stat64, (const char* path, struct stat64* info), path, info)
ORIEL_BY_PATH(lstat64, (const char* path, struct stat64* info), path, info)

ORIEL_WRAPPED(char*, realpath, (const char* path, char* to)) {
  if (const int error = faults().decide("realpath", path); error != 0) {
    (void)failedWith(error);
    return nullptr;
  }
  return __real_realpath(path, to);
}

ORIEL_WRAPPED(ssize_t, readlink, (const char* path, char* to, size_t bytes)) {
  const int error = faults().decide("readlink", path);
  return error != 0 ? failedWith(error) : __real_readlink(path, to, bytes);
}

ORIEL_WRAPPED(DIR*, opendir, (const char* path)) {
  if (const int error = faults().decide("opendir", path); error != 0) {
    (void)failedWith(error);
    return nullptr;
  }
  DIR* const folder = __real_opendir(path);
  if (folder != nullptr) {
    faults().opened(dirfd(folder), path);
  }
  return folder;
}
ORIEL_WRAPPED(struct dirent64*, readdir64, (DIR * folder)) {
  if (const int error = faults().decide("readdir64", dirfd(folder)); error != 0) {
    (void)failedWith(error);
    return nullptr;
  }
  return __real_readdir64(folder);
}
ORIEL_WRAPPED(int, closedir, (DIR * folder)) {
  const int error = faults().decide("closedir", dirfd(folder));
  const int result = __real_closedir(folder);
  return error != 0 ? failedWith(error) : result;
}

// These two return the error.
ORIEL_WRAPPED(int, posix_fadvise64, (int descriptor, off64_t begin, off64_t bytes, int advice)) {
  const int error = faults().decide("posix_fadvise64", descriptor);
  return error != 0 ? error : __real_posix_fadvise64(descriptor, begin, bytes, advice);
}
ORIEL_WRAPPED(int, pthread_create,
              (pthread_t * thread, const pthread_attr_t* attributes, void* (*body)(void*),
               void* user)) {
  const int error = faults().decide("pthread_create");
  return error != 0 ? error : __real_pthread_create(thread, attributes, body, user);
}
ORIEL_WRAPPED(int, pthread_attr_init, (pthread_attr_t * attributes)) {
  const int error = faults().decide("pthread_attr_init");
  return error != 0 ? error : __real_pthread_attr_init(attributes);
}
ORIEL_WRAPPED(int, pthread_attr_setstacksize, (pthread_attr_t * attributes, size_t bytes)) {
  const int error = faults().decide("pthread_attr_setstacksize");
  return error != 0 ? error : __real_pthread_attr_setstacksize(attributes, bytes);
}

ORIEL_WRAPPED(int, madvise, (void* block, size_t bytes, int advice)) {
  const int error = faults().decide("madvise");
  return error != 0 ? failedWith(error) : __real_madvise(block, bytes, advice);
}

ORIEL_WRAPPED(FILE*, fopen, (const char* path, const char* mode)) {
  if (const int error = faults().decide("fopen", path); error != 0) {
    (void)failedWith(error);
    return nullptr;
  }
  return __real_fopen(path, mode);
}
int __wrap___isoc99_fscanf(FILE* file, const char* format, ...);
int __wrap___isoc99_fscanf(FILE* file, const char* format, ...) {
  if (faults().decide("__isoc99_fscanf") != 0) {
    return 0;
  }
  va_list more;
  va_start(more, format);
  const int found = std::vfscanf(file, format, more);
  va_end(more);
  return found;
}
ORIEL_WRAPPED(int, fclose, (FILE * file)) {
  const int error = faults().decide("fclose");
  const int result = __real_fclose(file);
  return error != 0 ? failedWith(error) : result;
}

ORIEL_WRAPPED(long, sysconf, (int name)) {
  const int error = faults().decide("sysconf");
  return error != 0 ? failedWith(error) : __real_sysconf(name);
}
ORIEL_WRAPPED(int, sched_getaffinity, (pid_t process, size_t bytes, cpu_set_t* processors)) {
  const int error = faults().decide("sched_getaffinity");
  return error != 0 ? failedWith(error) : __real_sched_getaffinity(process, bytes, processors);
}

ORIEL_WRAPPED(void*, dlopen, (const char* name, int flags)) {
  return faults().decide("dlopen") != 0 ? nullptr : __real_dlopen(name, flags);
}
ORIEL_WRAPPED(void*, dlsym, (void* library, const char* name)) {
  return faults().decide(library == RTLD_DEFAULT ? "dlsym system" : "dlsym") != 0
             ? nullptr
             : oriel_internal::test::watched(name, __real_dlsym(library, name));
}

}  // extern "C"
