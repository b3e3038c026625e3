// What Oriel asks of the operating system: file mapping, memory sizes, a clock, small files.
// One implementation per system (posix.cpp, win32.cpp, ...); nothing here knows of models or devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"

namespace oriel {

/// A read-only mapping of a whole file; unmapped by the destructor. Move-only.
class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// `path` is UTF-8; on POSIX systems "/dev/fd/N" and "/proc/self/fd/N" are the descriptor N itself, which
  /// stays open where it is. ORIEL_ERROR_IO with a reason (missing, a folder, empty, no permission, too large
  /// for a 32-bit process).
  Status open(const char* path, const Log& log);
  /// As open, but says nothing and fails quietly when the file is not there.
  Status openIfThere(const char* path);

  const uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  /// Tells the system that [offset, offset + bytes) will not be needed again (page-aligned inwards).
  void dropPages(uint64_t offset, uint64_t bytes) const;

 private:
  const uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// A file that is read in order and never mapped: what is cut off or changed meanwhile is read short or as other
/// bytes, which readers of such files expect anyway. Closed by the destructor.
class InputFile {
 public:
  InputFile() = default;
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// False, quietly, when there is no such file (`missing`), it may not be read or is no file (a folder, a pipe,
  /// a device). `path` as for MappedFile.
  bool open(const char* path, bool* missing);
  /// The next bytes, at most `capacity`; 0: the end, or it cannot be read.
  size_t read(void* buffer, size_t capacity);

 private:
  intptr_t handle_ = -1;
};

/// Writes `bytes` to a temporary file beside `path` and renames it over `path`: readers see the old or
/// the new file, never a part. Creates the folder (one level and its parents) if missing. Refuses to
/// replace what is no file. A process that is ended meanwhile leaves nothing (Windows) or one file that the
/// next write takes up. `lasts`: once written the file survives a power failure, which takes the time of
/// writing to the disk.
Status writeFileAtomically(const char* path, const void* data, size_t bytes, const Log& log,
                           bool lasts = false);

/// Does nothing where there is no such file, or it cannot be removed.
void removeFile(const char* path);

/// Asks for pages of 2 MiB where whole ones fit into a block that nothing has touched yet: one that is read
/// from end to end is read faster so. Takes no more memory than the block has; where the system has none such,
/// nothing happens.
void preferLargePages(void* block, uint64_t bytes);

/// Memory the system could give without swapping, in bytes; 0: unknown.
uint64_t freeMemoryBytes();
/// Monotonic, in milliseconds.
double nowMs();
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

}  // namespace oriel
