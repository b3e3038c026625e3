#include "exec/features.h"

#include <cstdio>
#include <cstring>

namespace oriel_internal {
namespace {

constexpr uint32_t kAllFeatures = (1u << kVulkanFeatures) - 1;

bool isName(const char* name, size_t length, const char* known) {
  return std::strlen(known) == length && std::memcmp(known, name, length) == 0;
}

uint32_t bitsOf(const char* name, size_t length, bool overrides) {
  if (isName(name, length, "all")) {
    return kAllFeatures;
  }
  for (uint32_t i = 0; overrides && i < sizeof(kOverrideNames) / sizeof(kOverrideNames[0]); ++i) {
    if (isName(name, length, kOverrideNames[i])) {
      return 1u << (kVulkanFeatures + i);
    }
  }
  for (uint32_t i = 0; i < kVulkanFeatures; ++i) {
    if (isName(name, length, kVulkanFeatureNames[i])) {
      return 1u << i;
    }
  }
  return 0;
}

Status readNames(const char* names, bool overrides, const Log& log, uint32_t* bits) {
  *bits = 0;
  for (const char* name = names != nullptr ? names : ""; *name != '\0';) {
    const size_t length = std::strcspn(name, ", ");
    const uint32_t found = bitsOf(name, length, overrides);
    if (length != 0 && found == 0) {
      char known[256];
      writeFeatureNames(kAllFeatures, known, sizeof(known));
      for (uint32_t i = 0; overrides && i < 2; ++i) {
        appendToList(kOverrideNames[i], known, sizeof(known));
      }
      return log.fail(
          ORIEL_ERROR_ARGUMENT,
          "there is no optional Vulkan feature \"%.*s\" to turn %s: name some of %s, or all",
          static_cast<int>(length < 64 ? length : 64), name, overrides ? "on" : "off", known);
    }
    *bits |= found;
    name += length;
    name += std::strspn(name, ", ");
  }
  return kOk;
}

}  // namespace

Status readFeatureNames(const char* names, const Log& log, uint32_t* bits) {
  return readNames(names, false, log, bits);
}

Status readOverrideNames(const char* names, const Log& log, uint32_t* bits) {
  return readNames(names, true, log, bits);
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

}  // namespace oriel_internal
