#include "api/on_file.h"

#include <new>

#include "base/path_copy.h"

namespace oriel_internal {

WeightsOnFile* takeWeightsOnFile(const Plan& plan, const char* path, const Log& log, Arena* arena) {
  if (!plan.on_file.any()) {
    return nullptr;
  }
  static_assert(alignof(WeightsOnFile) <= Arena::kAlignment, "raise kAlignment");
  void* const room = arena->take<uint8_t>(sizeof(WeightsOnFile));
  char* const copy = copyPath(path, arena);
  if (room == nullptr || copy == nullptr) {
    WeightsOnFile measured(plan, log);
    measured.experts.init(arena);
    return nullptr;
  }
  WeightsOnFile* const weights = new (room) WeightsOnFile(plan, log);
  weights->path = copy;
  weights->source.file = &weights->file;
  weights->experts.init(arena);
  return weights;
}

void dropWeightsOnFile(WeightsOnFile* weights) {
  if (weights != nullptr) {
    weights->~WeightsOnFile();
  }
}

}  // namespace oriel_internal
