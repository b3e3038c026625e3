// What a loaded model takes to read weights that stay in its file.
#pragma once

#include "base/arena.h"
#include "exec/expert_cache.h"
#include "gguf/model_file.h"
#include "plan/plan.h"

namespace oriel_internal {

struct WeightsOnFile {
  WeightsOnFile(const Plan& plan, const Log& log) : experts(plan, source, log) {}

  InputFile file;  ///< open from handOver() on
  WeightSource source;
  ExpertCache experts;
  char* path = nullptr;  ///< a copy: the app's is its own after the call

  /// The model's file stays open here.
  void handOver(ModelFile* model) { model->handOver(path, &file); }
};

/// In `arena`, which the plan outlives like the log; null when measuring, and where the plan has nothing on file.
WeightsOnFile* takeWeightsOnFile(const Plan& plan, const char* path, const Log& log, Arena* arena);
/// Closes the file; the memory is the arena's. Null is allowed.
void dropWeightsOnFile(WeightsOnFile* weights);

}  // namespace oriel_internal
