// What oriel_trim gives back, and what it takes to have it again.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "exec/executor.h"
#include "exec/guard.h"
#include "exec/load_weights.h"
#include "gguf/model_file.h"
#include "oriel/advanced.h"
#include "os/os.h"

struct oriel_model;

namespace oriel_internal {

constexpr uint32_t kTrimLevels = 5;

/// Arenas that are given back at a level. Weights go before the cache: they are far larger, and lie in a file anyway.
constexpr ArenaSet arenasOf(oriel_trim_level level) {
  return (level >= ORIEL_TRIM_SCRATCH ? arenaBit(ArenaKind::kActivations) | arenaBit(ArenaKind::kIo)
                                      : 0) |
         (level >= ORIEL_TRIM_WEIGHTS ? arenaBit(ArenaKind::kWeights) : 0) |
         (level >= ORIEL_TRIM_CACHE ? arenaBit(ArenaKind::kCache) : 0);
}

/// Where a model's weights can be read again. The file is closed while they are there, so that an app may replace it;
/// but one that was given as a descriptor cannot be opened again.
class ModelSource {
 public:
  /// Takes room for the path in `arena`; measures likewise. `header_hash`: headerHash() of the file.
  void init(const char* path, uint64_t header_hash, Arena* arena);
  bool keepsFile() const { return keeps_file_; }
  void handOver(ModelFile* model) { model->handOver(path_, &file_); }
  const char* path() const { return path_; }
  const InputFile& file() const { return file_; }
  uint64_t headerHash() const { return header_hash_; }

 private:
  char* path_ = nullptr;
  uint64_t header_hash_ = 0;
  bool keeps_file_ = false;
  InputFile file_;  ///< open if keepsFile()
};

/// How far a model is trimmed.
struct Trimmed {
  oriel_trim_level level = ORIEL_TRIM_NONE;
  SpillFile spill;  ///< the cache, byte by byte as it lay; open at ORIEL_TRIM_CACHE
  uint64_t spill_hash = 0;
};

/// For a model whose executor was created just now: reads the weights and, where it is in a file, the cache.
Status refillDevice(oriel_model* model, Guard::Call* call, const LoadProgress& progress);

/// Calls on the device may begin again, unless the model is trimmed or paused.
void openUntrimmed(oriel_model* model);

}  // namespace oriel_internal
