// The adapters of a model: opens and reads their files, and reads a session's choice of adapters.
#pragma once

#include "api/trim.h"
#include "base/choices.h"
#include "exec/load_weights.h"
#include "gguf/model_file.h"
#include "model/adapters.h"

namespace oriel_internal {

/// The adapters requested for a model, and their open files. Borrows memory until it is destroyed.
class AdapterFiles {
 public:
  /// The part that a loaded model keeps in its arena.
  struct Kept {
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept();

    Adapters* adapters = nullptr;
    ModelSource* sources = nullptr;  ///< of each
  };

  AdapterFiles() = default;
  AdapterFiles(const AdapterFiles&) = delete;
  AdapterFiles& operator=(const AdapterFiles&) = delete;
  ~AdapterFiles();

  /// Reads the adapter files in the options, checks them against the model, and adds them to `desc` and `tensors`.
  /// A no-op if the options name no adapter.
  Status open(const LoadOptions& options, const GgufFile& base, const Log& log,
              const StopCheck& stop, ModelDesc* desc, TensorIndex* tensors);
  /// Opens the files again to reread the weights of a loaded model. ORIEL_ERROR_IO if a file was replaced.
  Status openAgain(const Kept& kept, const oriel_allocator& allocator, const Log& log);
  /// Call after reading. Checks that the hashes equal the hashes at load.
  Status expectSame(const Kept& kept, const Log& log) const;
  bool any() const { return adapters_ != nullptr; }
  Adapters* adapters() const { return adapters_; }
  void addTo(WeightFiles* files) const;
  /// Continues `hash` over the headers and InputFile::stateHash of the files.
  uint64_t stateHash(uint64_t hash) const;
  Status expectUnchanged(const Log& log) const;

  /// Copies the kept part into `arena`, which may be a measuring arena.
  void keep(Arena* arena, Kept* kept) const;
  /// Moves files without a name to the model, which keeps them open.
  void handOver(const Kept& kept);

 private:
  struct File {
    const char* path = nullptr;  ///< in the form that the system opens
    ModelFile file;
    uint64_t header_hash = 0;
    GgufFile data;       ///< if `given`: the file that the model has open
    bool given = false;  ///< `data` is used instead of `file`
  };
  Status takeRoom(uint32_t count, size_t path_bytes, const Log& log);
  static Status refuseOther(const ModelSource& source, const Log& log);
  Status openOne(const char* given, bool is_control, const LoadOptions& options,
                 const GgufFile& base, const Log& log, const StopCheck& stop, ModelDesc* desc,
                 TensorIndex* tensors);

  oriel_allocator allocator_ = {};
  Adapters* adapters_ = nullptr;
  File* files_ = nullptr;
  char* paths_ = nullptr;  ///< room for the paths of the files
  void* block_ = nullptr;
  uint64_t block_bytes_ = 0;
  uint32_t opened_ = 0;
};

/// Reads the scales for a session. "none" turns all adapters off. A list names adapters, each with an optional ":SCALE";
/// the default is the scale at load. Null or "": all adapters at their scale at load.
/// An unknown name is ORIEL_ERROR_ARGUMENT; the message lists the names.
Status readAdapterChoice(const ModelDesc& desc, const char* text, const Log& log,
                         float (&scales)[kMaxAdapters]);

}  // namespace oriel_internal
