// Adapters of a load: their files while they are read, and how sessions choose among them.
#pragma once

#include "api/trim.h"
#include "base/choices.h"
#include "exec/load_weights.h"
#include "gguf/model_file.h"
#include "model/adapters.h"

namespace oriel_internal {

/// Adapters that are wanted for a model, and their open files. Borrows memory until it is destroyed.
class AdapterFiles {
 public:
  /// What a loaded model keeps of them, in its arena.
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

  /// Reads the files that the options name, checks them against the model, and makes them part of its description and of
  /// its tensors. Nothing happens where they name none.
  Status open(const LoadOptions& options, const GgufFile& base, const Log& log,
              const StopCheck& stop, ModelDesc* desc, TensorIndex* tensors);
  /// To read the weights of a loaded model again. ORIEL_ERROR_IO if a file is another one.
  Status openAgain(const Kept& kept, const oriel_allocator& allocator, const Log& log);
  /// After reading: the hashes are those of the load.
  Status expectSame(const Kept& kept, const Log& log) const;
  bool any() const { return adapters_ != nullptr; }
  Adapters* adapters() const { return adapters_; }
  void addTo(WeightFiles* files) const;
  Status expectUnchanged(const Log& log) const;

  /// Measures likewise.
  void keep(Arena* arena, Kept* kept) const;
  /// Files without a name go on with the model.
  void handOver(const Kept& kept);

 private:
  struct File {
    const char* path = nullptr;  ///< as the system takes it
    ModelFile file;
    uint64_t header_hash = 0;
    GgufFile data;       ///< where the model has the file open already
    bool given = false;  ///< and `file` is unused
  };
  Status takeRoom(uint32_t count, size_t path_bytes, const Log& log);
  static Status refuseOther(const ModelSource& source, const Log& log);
  Status openOne(const char* given, bool is_control, const LoadOptions& options,
                 const GgufFile& base, const Log& log, const StopCheck& stop, ModelDesc* desc,
                 TensorIndex* tensors);

  oriel_allocator allocator_ = {};
  Adapters* adapters_ = nullptr;
  File* files_ = nullptr;
  char* paths_ = nullptr;  ///< where those of the files are made
  void* block_ = nullptr;
  size_t block_bytes_ = 0;
  uint32_t opened_ = 0;
};

/// Scales for a session: "none", or a list of names, each with ":SCALE" or as loaded; null or "": all as loaded.
/// ORIEL_ERROR_ARGUMENT with the names that there are.
Status readAdapterChoice(const ModelDesc& desc, const char* text, const Log& log,
                         float (&scales)[kMaxAdapters]);

}  // namespace oriel_internal
