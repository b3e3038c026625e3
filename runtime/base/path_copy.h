// Paths stored in a model.
#pragma once

#include <cstring>

#include "base/arena.h"

namespace oriel_internal {

/// Paths take a multiple of this, so a plan does not change when a file moves.
constexpr uint64_t kPathStepBytes = 1024;

/// Null while measuring.
inline char* copyPath(const char* path, Arena* arena) {
  const size_t bytes = std::strlen(path) + 1;
  char* const copy = arena->take<char>(alignUp(bytes, kPathStepBytes));
  if (copy != nullptr) {
    std::memcpy(copy, path, bytes);
  }
  return copy;
}

}  // namespace oriel_internal
