// Memory levels of oriel_trim, and the state needed to undo them.
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

// Arenas given back at a level. Weights go before the cache: they are much larger and can be read from the file again.
constexpr ArenaSet arenasOf(oriel_trim_level level) {
  return (level >= ORIEL_TRIM_SCRATCH ? arenaBit(ArenaKind::kActivations) | arenaBit(ArenaKind::kIo)
                                      : 0) |
         (level >= ORIEL_TRIM_WEIGHTS ? arenaBit(ArenaKind::kWeights) : 0) |
         (level >= ORIEL_TRIM_CACHE ? arenaBit(ArenaKind::kCache) : 0);
}

// The source to read a model's weights again. The file is closed while the weights are in memory, so an app may replace
// it. A file given as a descriptor cannot be reopened.
class ModelSource {
 public:
  // Takes memory for the path from `arena`, which may be a measuring arena. `header_hash`: headerHash() of the file.
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

// The trim level and its spilled cache.
struct Trimmed {
  oriel_trim_level level = ORIEL_TRIM_NONE;
  SpillFile spill;  // a byte-for-byte copy of the cache; open at ORIEL_TRIM_CACHE
  uint64_t spill_hash = 0;
};

// For a model with a new executor: reads the weights, and the cache if it was spilled.
Status refillDevice(oriel_model* model, Guard::Call* call, const LoadProgress& progress);

// Allows calls on the device again, unless the model is trimmed or paused.
void openUntrimmed(oriel_model* model);

}  // namespace oriel_internal
