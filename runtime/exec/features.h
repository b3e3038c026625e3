// Optional features of Vulkan devices by the names that LoadOptions.disabled_features takes. The baseline
// needs none of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"

namespace oriel_internal {

enum class VulkanFeature : uint32_t {
  kSubgroup,    ///< arithmetic over the lanes of a subgroup
  kIntegerDot,  ///< dot products of four packed bytes
  kTexels,      ///< texel buffers as long as the longest binding
  kRunAhead,  ///< no processor: gains from going on with the best token before the host has seen it
  kCooperativeMatrix,  ///< matrix_units.h
  kFloat16,            ///< arithmetic in half precision; matrix units need it, too
};
/// Of every device: prompts leave out layers that write no memory, but for tokens whose logits are wanted.
constexpr uint32_t kEarlyStopFeature = 9;

/// Names of features that no kernel uses yet are known, too: turning them off changes nothing. The last is of every
/// device.
constexpr const char* kVulkanFeatureNames[] = {
    "subgroup", "integer_dot",  "texel_buffers", "run_ahead", "cooperative_matrix",
    "float16",  "int8_storage", "int16_storage", "timeline",  "early_stop"};
constexpr uint32_t kVulkanFeatures = sizeof(kVulkanFeatureNames) / sizeof(kVulkanFeatureNames[0]);

static_assert(kVulkanFeatures == kEarlyStopFeature + 1, "the last name is that of the early stop");

constexpr uint32_t featureBit(VulkanFeature feature) {
  return 1u << static_cast<uint32_t>(feature);
}

/// What else LoadOptions.enabled_features may name: submissions of any length where a device is known to lose itself
/// over long ones, and a device that is not to be used at all. Not among "all".
constexpr uint32_t kLongSubmissions = kVulkanFeatures;
constexpr uint32_t kDeviceItself = kVulkanFeatures + 1;
constexpr const char* kOverrideNames[] = {"long_submissions", "device"};

/// Reads names separated by commas ("all": every one; null: none) into a set of bits, one per entry of
/// kVulkanFeatureNames. ORIEL_ERROR_ARGUMENT, the log saying which names there are, for any other.
Status readFeatureNames(const char* names, const Log& log, uint32_t* bits);
/// The same of LoadOptions.enabled_features, which may name kOverrideNames, too.
Status readOverrideNames(const char* names, const Log& log, uint32_t* bits);

/// Adds an item to a list that is separated by commas.
void appendToList(const char* item, char* list, size_t capacity);

/// The names of `bits`, separated by commas.
void writeFeatureNames(uint32_t bits, char* text, size_t capacity);

}  // namespace oriel_internal
