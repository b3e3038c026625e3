#include "exec/features.h"

#include <cstdio>
#include <cstring>

namespace oriel {
namespace {

constexpr uint32_t kAllFeatures = (1u << kVulkanFeatures) - 1;

uint32_t bitsOf(const char* name, size_t length) {
  if (length == 3 && std::memcmp(name, "all", length) == 0) {
    return kAllFeatures;
  }
  for (uint32_t i = 0; i < kVulkanFeatures; ++i) {
    if (std::strlen(kVulkanFeatureNames[i]) == length &&
        std::memcmp(kVulkanFeatureNames[i], name, length) == 0) {
      return 1u << i;
    }
  }
  return 0;
}

}  // namespace

Status readFeatureNames(const char* names, const Log& log, uint32_t* bits) {
  *bits = 0;
  for (const char* name = names != nullptr ? names : ""; *name != '\0';) {
    const size_t length = std::strcspn(name, ", ");
    const uint32_t found = bitsOf(name, length);
    if (length != 0 && found == 0) {
      char known[256];
      writeFeatureNames(kAllFeatures, known, sizeof(known));
      return log.fail(
          ORIEL_ERROR_ARGUMENT,
          "there is no optional Vulkan feature \"%.*s\" to turn off: name some of %s, or all",
          static_cast<int>(length < 64 ? length : 64), name, known);
    }
    *bits |= found;
    name += length;
    name += std::strspn(name, ", ");
  }
  return kOk;
}

void appendToList(const char* item, char* list, size_t capacity) {
  const size_t used = std::strlen(list);
  std::snprintf(list + used, capacity - used, "%s%s", used == 0 ? "" : ", ", item);
}

void writeFeatureNames(uint32_t bits, char* text, size_t capacity) {
  text[0] = '\0';
  for (uint32_t i = 0; i < kVulkanFeatures; ++i) {
    if ((bits >> i & 1u) != 0) {
      appendToList(kVulkanFeatureNames[i], text, capacity);
    }
  }
}

}  // namespace oriel
