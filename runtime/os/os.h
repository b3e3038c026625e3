// The operating system interface: files, memory sizes, a clock, random seeds, shared libraries. One implementation per
// system (posix.cpp, win32.cpp, ...). Knows nothing of models or devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"

namespace oriel_internal {

/// A file that is read in pieces while others may write to it or truncate it. Reads may then give old or new data;
/// expectUnchanged() detects it. Closed by the destructor.
class InputFile {
 public:
  InputFile() = default;
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Call once. `path` is UTF-8 and must outlive this object. On POSIX systems "/dev/fd/N" and "/proc/self/fd/N" mean
  /// descriptor N itself, which stays open with its offset unchanged. ORIEL_ERROR_IO with the reason (missing, a folder,
  /// a device, empty, no permission). On Windows others cannot write to the file while it is open.
  Status open(const char* path, const Log& log);
  /// Like open(), but a missing file is not an error (isOpen() is false), the file may be empty, and others may write to
  /// it on Windows, too.
  Status openIfThere(const char* path, const Log& log);
  bool isOpen() const { return handle_ != kNoHandle; }
  /// Size when it was opened, including appended files.
  uint64_t bytes() const {
    return next_.file != nullptr ? next_.file->bytes() : first_ + was_.bytes;
  }
  /// Makes its first byte byte `first` of a longer file.
  void shift(uint64_t first) { first_ = first; }
  /// Appends another file, whose first byte becomes byte `first`; the gap cannot be read. Like open().
  Status append(const char* path, uint64_t first, const oriel_allocator& allocator, const Log& log);
  /// Reads exactly `bytes` from `offset`. ORIEL_ERROR_IO if the file is too short or cannot be read.
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const;
  /// Asks the system to read `bytes` from `offset` on into its cache, and does not wait. A no-op where it cannot.
  void readAhead(uint64_t offset, uint64_t bytes) const;
  /// Size and time of the last write when it was opened, of appended files, too.
  uint64_t stateHash() const;
  /// ORIEL_ERROR_IO if the file's size or the time of its last change differs from the values at open(). Removing the
  /// file, or replacing it under its name, does not count as a change: the open file keeps its bytes.
  Status expectUnchanged(const Log& log) const;
  /// Takes the open file from `other`, with its recorded state, and closes `other`. `path` as in open().
  void takeOver(InputFile* other, const char* path) {
    path_ = path;
    handle_ = other->handle_;
    was_ = other->was_;
    first_ = other->first_;
    next_.takeOver(&other->next_);
    other->handle_ = kNoHandle;
  }
  /// Reads all bytes(); fails if the file changed.
  Status readAll(void* to, const Log& log) const;

 private:
  /// Detects that a file was written to.
  struct State {
    uint64_t bytes = 0;
    uint64_t links = 0;       ///< names
    int64_t written[2] = {};  ///< time of the last write: seconds and nanoseconds, or one number
    int64_t changed[2] = {};  ///< time of the last change of data or metadata, e.g. names
  };
  /// An appended file, followed by its path.
  struct Next {
    ~Next();
    void takeOver(Next* other);
    InputFile* file = nullptr;
    size_t bytes = 0;
    oriel_allocator allocator = {};
  };
  bool readState(State* state) const;
  Status readOwn(uint64_t offset, void* to, uint64_t bytes, const Log& log) const;
  void readOwnAhead(uint64_t offset, uint64_t bytes) const;
  Status expectOwnUnchanged(const Log& log) const;
#if defined(_WIN32)
  Status openShared(const char* path, uint32_t sharing, const Log& log);
#endif

  static constexpr intptr_t kNoHandle = -1;

  const char* path_ = nullptr;
  intptr_t handle_ = kNoHandle;
  State was_;
  uint64_t first_ = 0;
  Next next_;
};

/// Reads a file of exactly `bytes` bytes. False for other sizes and missing files.
bool readIfThere(const char* path, void* to, uint64_t bytes);

/// The purpose of a file.
enum class FileUse {
  kCache,  ///< reproducible; its folder is created if missing, with parents
  kNew,    ///< like kKept, and the file must not exist: ORIEL_ERROR_IO
  kKept,   ///< its folder must exist; survives a power failure once written, which takes time
};

/// Writes a uniquely named temporary file in the same folder and renames it to `path`: readers see the old or the new
/// file, never a part. Does not wait for other processes. Refuses to replace anything but a file. On POSIX systems the
/// mode is 0600, or the replaced file's mode if it is stricter. If the process dies meanwhile, the system (Windows) or the
/// next write of this path removes the temporary file.
Status writeFileAtomically(const char* path, const void* data, size_t bytes, FileUse use,
                           const Log& log);

/// Writes a large file in parts, under a temporary name until finish(). For files that can be made again: like
/// FileUse::kCache, and unfinished files disappear in the same ways. POSIX systems only; elsewhere
/// ORIEL_ERROR_UNSUPPORTED.
class FileInParts {
 public:
  FileInParts() = default;
  ~FileInParts();
  FileInParts(const FileInParts&) = delete;
  FileInParts& operator=(const FileInParts&) = delete;

  /// Creates a file of `bytes` zeros. `path` must outlive this object.
  Status create(const char* path, uint64_t bytes, const Log& log);
  /// The range must be within the file.
  Status write(uint64_t offset, const void* from, uint64_t bytes, const Log& log);
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const;
  /// Gives the file its name. A file of this name is replaced.
  Status finish(const Log& log);

 private:
  static constexpr intptr_t kNoHandle = -1;

  // Unused where the system has no mapping.
  [[maybe_unused]] const char* path_ = nullptr;
  [[maybe_unused]] intptr_t handle_ = kNoHandle;
  [[maybe_unused]] char temporary_[1024] = "";
};

/// A private file in memory, for reading. The system may take its pages back and reads them again when they are used.
/// If another process of the same user shortens the file, reading ends this process (SIGBUS). POSIX systems only.
class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile() { close(); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// False: the file is missing, is no file of this user that only this user can write, or cannot be mapped.
  bool open(const char* path);
  void close();
  bool isOpen() const { return data_ != nullptr; }
  const uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  /// Gives the pages back until they are used again.
  void forget() const;

 private:
  const uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// Removes files of `folder` whose names have this end, oldest first, until all of them have at most `most_bytes`.
void removeOldest(const char* folder, const char* end, uint64_t most_bytes);
/// Bytes of these files.
uint64_t bytesOfFiles(const char* folder, const char* end);

/// Stores memory contents temporarily in a file without a name (POSIX; 0600) or with exclusive access (Windows), which
/// disappears when the process ends. On systems where an open file must keep its name, the next create() in that folder
/// removes leftovers, as with writeFileAtomically().
class SpillFile {
 public:
  SpillFile() = default;
  ~SpillFile() { remove(); }
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Creates a file of `bytes` zeros, sparse if possible. The folder must exist.
  Status create(const char* folder, uint64_t bytes, const Log& log);
  bool isOpen() const { return handle_ != kNoHandle; }
  /// The range must be within the file.
  Status write(uint64_t offset, const void* from, uint64_t bytes, const Log& log);
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const;
  void remove();

 private:
  static constexpr intptr_t kNoHandle = -1;
  static constexpr size_t kNameBytes = 64;

  intptr_t handle_ = kNoHandle;
  intptr_t folder_ = kNoHandle;  ///< if it has a name
  char name_[kNameBytes] = "";   ///< its name, or else the end of its folder's path, for messages
};

/// True if the path names a descriptor of this process, see InputFile::open. The number may later belong to another
/// file.
bool isDescriptorPath(const char* path);

/// Creates a folder and its parents if missing. Reports nothing: an error shows when a file is created there.
void makeFolder(const char* path);

/// Ignores missing files and failures.
void removeFile(const char* path);
/// Removes the files in `folder` whose names have this beginning and end, looking at no more names than a cache folder
/// has. Returns the number removed. `*left` grows by the files that could not be removed, and by one if the folder is
/// unreadable.
uint32_t removeFiles(const char* folder, const char* beginning, const char* end, uint32_t* left);

/// A small file that exists while this process does work that may crash it. A marker without an owner was left by a
/// crashed process. Ownership is a lock that ends with the process. After a power failure the contents are undefined.
class WorkMarker {
 public:
  static constexpr size_t kMostBytes = 64;

  WorkMarker() = default;
  ~WorkMarker() { end(); }
  WorkMarker(const WorkMarker&) = delete;
  WorkMarker& operator=(const WorkMarker&) = delete;

  /// Creates the marker, and its folder if missing. False if another process (or another marker of this one) holds it,
  /// or it cannot be created or locked; then the other functions do nothing. *left: bytes in `was` from a crashed
  /// process; 0: none.
  bool begin(const char* path, uint8_t (&was)[kMostBytes], size_t* left);
  bool isHeld() const { return handle_ != kNoHandle; }
  /// Writes the marker's contents: at most kMostBytes, the same number each time. The system has the data when this
  /// returns.
  void write(const void* data, size_t bytes) const;
  /// Removes it.
  void end();

 private:
  static constexpr intptr_t kNoHandle = -1;

  intptr_t handle_ = kNoHandle;
  char path_[768] = "";  // longer paths get no marker
};

/// Requests 2 MiB pages inside an untouched block, which speeds up sequential reading. Takes no additional memory. A
/// no-op where unsupported.
void preferLargePages(void* block, uint64_t bytes);

/// Zeroes part of a private block. If possible, whole pages are returned to the system and reappear as zeros when
/// touched; unused pages stay untouched.
void wipePages(void* data, uint64_t bytes);

/// Memory the system could give without swapping, in bytes; 0: unknown.
uint64_t freeMemoryBytes();
/// Monotonic, in milliseconds.
double nowMs();
/// Waits, at most about this long; less than 1 ms may be none.
void sleepMs(double ms);
/// Seconds since 1970, UTC, from the system clock; 0: no clock.
int64_t unixSeconds();
/// A seed that differs from call to call.
uint64_t entropy();

/// A shared library found at run time. Closed by the destructor.
class SharedLibrary {
 public:
  SharedLibrary() = default;
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  bool open(const char* name);
  void* symbol(const char* name) const;
  bool isOpen() const { return handle_ != nullptr; }

 private:
  void* handle_ = nullptr;
};

// Memory that a Linux process's control groups leave free.

/// Bytes still allowed by all groups of the process and their parents; UINT64_MAX: no limit. Supports both cgroup
/// versions, also mixed. Cached file pages count as free; shmem and tmpfs do not. `root` is put before "/proc" and
/// "/sys"; "" except in tests.
uint64_t freeInControlGroups(const char* root);

// Detects a possible GPU without loading a driver.

/// False only if Vulkan could offer nothing but software: Linux without any GPU device node, and no drivers named in the
/// environment. Loading Vulkan's drivers takes tens of megabytes, partly for good.
bool mayHaveGpu();

// Threads for the CPU executor. Does not use the app's allocator; stacks come from the system.

/// A joinable thread. Not movable.
class Thread {
 public:
  Thread() = default;
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Runs body(user) with at least `stack_bytes` of stack, besides the C library's own part (the app's thread-local
  /// data, a guard page). False if the system refuses.
  bool start(void (*body)(void* user), void* user, uint32_t stack_bytes);
  bool running() const { return running_; }
  void join();

 private:
  void (*body_)(void* user) = nullptr;
  void* user_ = nullptr;
  uintptr_t handle_ = 0;  // pthread_t or HANDLE
  bool running_ = false;

  friend struct ThreadEntry;
};

/// Processors that this process may use, at least 1.
uint32_t allowedProcessors();
/// Cores among them: processors that share a core count once. At most allowedProcessors().
uint32_t allowedCores();
/// Pins the calling thread to the `index`-th of allowedCores(). A no-op where unsupported.
void pinToCore(uint32_t index);
/// Index in allowedCores() of the calling thread's current core; UINT32_MAX: unknown.
uint32_t currentCore();
/// True for a 64-bit Arm processor with byte dot products (FEAT_DotProd).
bool processorHasDotProducts();
/// Lets another thread run.
void yieldProcessor();
/// Identifies the calling thread among live threads; never 0.
uintptr_t threadId();

}  // namespace oriel_internal
