// A model file on disk, of which the header is in memory.
#pragma once

#include "base/stop_check.h"
#include "gguf/gguf.h"
#include "os/os.h"

namespace oriel_internal {

/// The header is read once, into memory of its own, and checked there; tensor data is read when it is asked
/// for. So a file that somebody writes to meanwhile is at worst an error.
class ModelFile {
 public:
  ModelFile() = default;
  ~ModelFile() { dropHeader(); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  /// Once only. As GgufFile::open; of a model in several files any part, whose name says where the others are: all are
  /// checked, and are as one file from then on. Borrows at most twice the header's bytes from `allocator`. `path` and
  /// `allocator` must outlive this object.
  Status open(const char* path, const oriel_allocator& allocator, const Log& log,
              const StopCheck& stop = {});
  const GgufFile& gguf() const { return gguf_; }
  /// Gives the memory back: of gguf() only read() may be called from here on.
  void dropHeader();
  uint64_t bytes() const { return input_.bytes(); }
  const InputFile& input() const { return input_; }
  /// As InputFile::read.
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
    return input_.read(offset, to, bytes, log);
  }
  /// The open file goes to `to`; nothing more may be asked of this one. `path` outlives `to`.
  void handOver(const char* path, InputFile* to) { to->takeOver(&input_, path); }
  /// ORIEL_ERROR_IO when somebody has written to the file since it was opened.
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
