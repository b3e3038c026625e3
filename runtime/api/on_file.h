// The parts of a loaded model that read weights from its file.
#pragma once

#include "base/arena.h"
#include "exec/expert_cache.h"
#include "gguf/model_file.h"
#include "plan/plan.h"

namespace oriel_internal {

struct WeightsOnFile {
  WeightsOnFile(const Plan& plan, const Log& log) : experts(plan, source, log) {}

  InputFile file;  // open after handOver()
  WeightSource source;
  ExpertCache experts;
  char* path = nullptr;  // a copy, since the app's string may be freed after the call

  // Keeps the model's file open here.
  void handOver(ModelFile* model) { model->handOver(path, &file); }
};

// Takes it from `arena`. The plan and the log must outlive it. Null when measuring, or if the plan leaves no weights on
// file.
WeightsOnFile* takeWeightsOnFile(const Plan& plan, const char* path, const Log& log, Arena* arena);
// Closes the file; the arena keeps the memory. Accepts null.
void dropWeightsOnFile(WeightsOnFile* weights);

}  // namespace oriel_internal
