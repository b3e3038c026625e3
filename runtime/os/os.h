// What Oriel asks of the operating system: files, memory sizes, a clock, chance, shared libraries.
// One implementation per system (posix.cpp, win32.cpp, ...); nothing here knows of models or devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"

namespace oriel_internal {

/// A file that is read piece by piece, while others may write to it or cut it off: what is read may then be
/// old or new, and expectUnchanged() tells; nothing worse happens. Closed by the destructor.
class InputFile {
 public:
  InputFile() = default;
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Once only. `path`, which must outlive this object, is UTF-8; on POSIX systems "/dev/fd/N" and
  /// "/proc/self/fd/N" are the descriptor N itself, which stays open where it is, its offset untouched.
  /// ORIEL_ERROR_IO with a reason (missing, a folder, a device, empty, no permission). Windows: nobody else may
  /// write to the file while it is open.
  Status open(const char* path, const Log& log);
  /// As open(), but a file that is not there is no error (then isOpen() is false), it may be empty, and others may
  /// write to it on Windows, too.
  Status openIfThere(const char* path, const Log& log);
  bool isOpen() const { return handle_ != kNoHandle; }
  /// When it was opened; with what it goes on in.
  uint64_t bytes() const {
    return next_.file != nullptr ? next_.file->bytes() : first_ + was_.bytes;
  }
  /// Its first byte is byte `first` of a longer file from now on.
  void shift(uint64_t first) { first_ = first; }
  /// It goes on in a file of its own, whose first byte is byte `first`; what lies between cannot be read. As open().
  Status append(const char* path, uint64_t first, const oriel_allocator& allocator, const Log& log);
  /// Exactly `bytes` from `offset` on. ORIEL_ERROR_IO when there are no longer so many or they cannot be read.
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const;
  /// Asks the system to read `bytes` from `offset` on into its cache, and does not wait. A no-op where it cannot.
  void readAhead(uint64_t offset, uint64_t bytes) const;
  /// ORIEL_ERROR_IO when the file's size or the time of its last change is no longer what it was. That it was
  /// removed, or replaced by another under its name, is no change: this one stays what it was.
  Status expectUnchanged(const Log& log) const;
  /// The open file of `other`, which is then closed, as what was found when that was opened. `path` as in open().
  void takeOver(InputFile* other, const char* path) {
    path_ = path;
    handle_ = other->handle_;
    was_ = other->was_;
    first_ = other->first_;
    next_.takeOver(&other->next_);
    other->handle_ = kNoHandle;
  }
  /// All bytes() of it, unchanged.
  Status readAll(void* to, const Log& log) const;

 private:
  /// What tells that a file was written to.
  struct State {
    uint64_t bytes = 0;
    uint64_t links = 0;       ///< names
    int64_t written[2] = {};  ///< time of the last write: seconds and nanoseconds, or one number
    int64_t changed[2] = {};  ///< of the last change of anything, names included
  };
  /// A file that this one goes on in, with its path behind it.
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

/// Reads a file that has exactly so many bytes. False for any other, and one that is not there.
bool readIfThere(const char* path, void* to, uint64_t bytes);

/// What a file is for.
enum class FileUse {
  kCache,  ///< it can be made again: its folder is made if it is missing (one level and its parents)
  kNew,    ///< as kKept, and no file of that name may be there: ORIEL_ERROR_IO
  kKept,  ///< its folder must be there; once written the file survives a power failure, which takes its time
};

/// Writes a temporary file beside `path`, of a name that nobody else has, and renames it over `path`: readers see
/// the old or the new file, never a part. Never waits for another process. Refuses to replace what is no file. On
/// POSIX systems the file is its owner's alone (0600), or stricter where the one it replaces is. What a process
/// leaves that is ended meanwhile, the system removes (Windows) or the next write of this path.
Status writeFileAtomically(const char* path, const void* data, size_t bytes, FileUse use,
                           const Log& log);

/// What has to leave memory for a while: a file without a name (POSIX; 0600) or that nobody can open (Windows), of which
/// nothing is left however the process ends. Where a file that is open has to keep its name, what a process leaves that
/// is ended meanwhile goes as with writeFileAtomically(), at the next create() in that folder.
class SpillFile {
 public:
  SpillFile() = default;
  ~SpillFile() { remove(); }
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Of `bytes` zeros, where the system can without taking room for them. The folder must be there.
  Status create(const char* folder, uint64_t bytes, const Log& log);
  bool isOpen() const { return handle_ != kNoHandle; }
  /// Within its bytes.
  Status write(uint64_t offset, const void* from, uint64_t bytes, const Log& log);
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const;
  void remove();

 private:
  static constexpr intptr_t kNoHandle = -1;
  static constexpr size_t kNameBytes = 64;

  intptr_t handle_ = kNoHandle;
  intptr_t folder_ = kNoHandle;  ///< where it has a name
  char name_[kNameBytes] = "";   ///< that name, else the end of its folder's path, for people
};

/// Whether such a path names a descriptor of this process, as InputFile::open says: another file may be open under its
/// number later.
bool isDescriptorPath(const char* path);

/// Makes a folder and its parents where they are missing. Says nothing: what went wrong shows when a file is made there.
void makeFolder(const char* path);

/// Does nothing where there is no such file, or it cannot be removed.
void removeFile(const char* path);
/// Of every file in `folder` whose name has this beginning and this end; looks at so many names at most as a cache
/// folder has. How many were removed; `*left` grows by those that could not be, and by one where nobody may look.
uint32_t removeFiles(const char* folder, const char* beginning, const char* end, uint32_t* left);

/// A small file that is there while this process is in the midst of something that may end it. One whose owner is gone
/// was left behind by a process that was ended there. It is its owner's for as long as that lives, by a lock that ends
/// with the process. What a power failure leaves is not said.
class WorkMarker {
 public:
  static constexpr size_t kMostBytes = 64;

  WorkMarker() = default;
  ~WorkMarker() { end(); }
  WorkMarker(const WorkMarker&) = delete;
  WorkMarker& operator=(const WorkMarker&) = delete;

  /// Makes it, and its folder if that is missing. False, and then the rest does nothing: another process (or another
  /// marker of this one) holds it, or it cannot be made or locked there. *left is how many bytes of what another
  /// process had written are in `was`, 0 where nothing was left behind.
  bool begin(const char* path, uint8_t (&was)[kMostBytes], size_t* left);
  bool isHeld() const { return handle_ != kNoHandle; }
  /// What whoever finds it will read: at most kMostBytes, as many each time. In the system's hands when this returns.
  void write(const void* data, size_t bytes) const;
  /// Removes it.
  void end();

 private:
  static constexpr intptr_t kNoHandle = -1;

  intptr_t handle_ = kNoHandle;
  char path_[768] = "";  // a longer one has no marker
};

/// Asks for pages of 2 MiB where whole ones fit into a block that nothing has touched yet: one that is read
/// from end to end is read faster so. Takes no more memory than the block has; where the system has none such,
/// nothing happens.
void preferLargePages(void* block, uint64_t bytes);

/// Zeros over part of a block of this process alone. Where the system can, whole pages are given back to it, and pages of
/// zeros come when they are touched: what was never used stays untouched.
void wipePages(void* data, uint64_t bytes);

/// Memory the system could give without swapping, in bytes; 0: unknown.
uint64_t freeMemoryBytes();
/// Monotonic, in milliseconds.
double nowMs();
/// Seconds since 1970, UTC, as the system's clock has it; 0: it has none.
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

}  // namespace oriel_internal
