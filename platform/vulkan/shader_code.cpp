#include "vulkan/shader_table.h"
#include "vulkan/spirv.h"

namespace oriel_internal {
namespace {

// The same values as in cmake/renumber_spirv.py.
constexpr uint32_t kResult = 0x80000000u;
constexpr uint32_t kOther = 0x40000000u;
constexpr uint32_t kReach = 0x8000;

void restoreWord(uint32_t* word, uint32_t* latest) {
  if (const uint32_t step = *word - kResult; step != 0 && step < kReach) {
    *latest += step;
    *word = *latest;
  } else if (*word - (kOther - kReach + 1) < 2 * kReach - 1) {
    *word = *latest - (*word - kOther);
  }
}

}  // namespace

bool restoreIds(uint32_t* words, size_t count) {
  uint32_t latest = 0;
  bool in_functions = false;
  for (size_t at = kSpirvHeaderWords; at < count;) {
    const size_t length = words[at] >> 16;
    if (length == 0 || length > count - at) {
      return false;
    }
    in_functions = in_functions || (words[at] & 0xFFFF) == kOpFunction;
    for (size_t i = 1; i < length && in_functions; ++i) {
      restoreWord(&words[at + i], &latest);
    }
    at += length;
  }
  return count > kSpirvHeaderWords;
}

}  // namespace oriel_internal
