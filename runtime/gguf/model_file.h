// A model file on disk with its header in memory.
#pragma once

#include "base/steps.h"
#include "gguf/gguf.h"
#include "os/os.h"

namespace oriel_internal {

/// The header is read once into its own memory and checked there. Tensor data is read on demand. A change
/// of the file meanwhile therefore causes at worst an error.
class ModelFile {
 public:
  ModelFile() = default;
  ~ModelFile() { dropHeader(); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  /// Call once. Like GgufFile::open. A split model is opened by any of its parts, whose name leads to the others; all
  /// parts are checked and then act as one file. Borrows at most twice the header's size from `allocator`. `path` and
  /// `allocator` must outlive this object.
  Status open(const char* path, const oriel_allocator& allocator, const Log& log,
              const StopCheck& stop = {});
  const GgufFile& gguf() const { return gguf_; }
  /// Frees the header: afterwards only read() may be called on gguf().
  void dropHeader();
  uint64_t bytes() const { return input_.bytes(); }
  const InputFile& input() const { return input_; }
  /// Like InputFile::read.
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
    return input_.read(offset, to, bytes, log);
  }
  /// Moves the open file to `to`; this object must not be used afterwards. `path` must outlive `to`.
  void handOver(const char* path, InputFile* to) { to->takeOver(&input_, path); }
  /// ORIEL_ERROR_IO if the file was written to since it was opened.
  Status expectUnchanged(const Log& log) const { return input_.expectUnchanged(log); }

 private:
  Status openOne(const char* path, const oriel_allocator& allocator, const Log& log,
                 const StopCheck& stop);
  Status join(const char* path, const oriel_allocator& allocator, uint64_t number, uint64_t count,
              const Log& log, const StopCheck& stop);
  Status readHeader(uint64_t bytes, const Log& log, const StopCheck& stop);

  InputFile input_;
  GgufFile gguf_;
  const oriel_allocator* allocator_ = nullptr;
  uint8_t* header_ = nullptr;
  uint64_t header_bytes_ = 0;
};

}  // namespace oriel_internal
