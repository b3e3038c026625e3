// Optional features of Vulkan devices, with their names in LoadOptions.disabled_features. The baseline needs none of
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"

namespace oriel_internal {

enum class VulkanFeature : uint32_t {
  kSubgroup,    ///< arithmetic over the lanes of a subgroup
  kIntegerDot,  ///< dot products of four packed bytes
  kTexels,      ///< texel buffers that cover the longest binding
  kRunAhead,    ///< not a CPU: continuing with the best token before the host has seen it is faster
  kCooperativeMatrix,  ///< matrix_units.h
  kFloat16,            ///< half-precision arithmetic; matrix units also need it
  kFusedOps = 9,       ///< products that make their input themselves (vulkan/fused_ops.h)
};
/// For every device: tokens of a prompt skip the layers that write no memory, unless their logits are needed.
constexpr uint32_t kEarlyStopFeature = 10;

/// Names of features that no kernel uses yet are also accepted; turning them off has no effect. The last applies to
/// every device.
constexpr const char* kVulkanFeatureNames[] = {
    "subgroup",     "integer_dot",   "texel_buffers", "run_ahead", "cooperative_matrix", "float16",
    "int8_storage", "int16_storage", "timeline",      "fused_ops", "early_stop"};
constexpr uint32_t kVulkanFeatures = sizeof(kVulkanFeatureNames) / sizeof(kVulkanFeatureNames[0]);

static_assert(kVulkanFeatures == kEarlyStopFeature + 1, "the last name is that of the early stop");

constexpr uint32_t featureBit(VulkanFeature feature) {
  return 1u << static_cast<uint32_t>(feature);
}

/// Further names for LoadOptions.enabled_features: submissions of any length on a device that fails in long ones, and
/// use of a device that is excluded. "all" does not include them.
constexpr uint32_t kLongSubmissions = kVulkanFeatures;
constexpr uint32_t kDeviceItself = kVulkanFeatures + 1;
constexpr const char* kOverrideNames[] = {"long_submissions", "device"};

/// Parses names separated by commas ("all": every name; null: none) into a set of bits, one per entry of
/// kVulkanFeatureNames. Other names give ORIEL_ERROR_ARGUMENT, and the log lists the valid names.
Status readFeatureNames(const char* names, const Log& log, uint32_t* bits);
/// The same for LoadOptions.enabled_features, which also accepts kOverrideNames.
Status readOverrideNames(const char* names, const Log& log, uint32_t* bits);

/// Appends an item to a list separated by commas.
void appendToList(const char* item, char* list, size_t capacity);

/// The names of `bits`, separated by commas.
void writeFeatureNames(uint32_t bits, char* text, size_t capacity);

}  // namespace oriel_internal
