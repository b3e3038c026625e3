#include "api/on_file.h"

#include <cstring>
#include <new>

namespace oriel_internal {

WeightsOnFile* takeWeightsOnFile(const Plan& plan, const char* path, const Log& log, Arena* arena) {
  if (!plan.on_file.any()) {
    return nullptr;
  }
  static_assert(alignof(WeightsOnFile) <= Arena::kAlignment, "raise kAlignment");
  void* const room = arena->take<uint8_t>(sizeof(WeightsOnFile));
  const size_t path_bytes = std::strlen(path) + 1;
  char* const copy = arena->take<char>(path_bytes);
  if (room == nullptr || copy == nullptr) {
    WeightsOnFile measured(plan, log);
    measured.experts.init(arena);
    return nullptr;
  }
  std::memcpy(copy, path, path_bytes);
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
