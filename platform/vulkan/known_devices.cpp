#include "vulkan/known_devices.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "vulkan/device_caps.h"

namespace oriel_internal {
namespace {

constexpr VkPhysicalDeviceType kAnyType = VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM;
constexpr VkPhysicalDeviceType kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
constexpr uint32_t kLast = UINT32_MAX;

constexpr uint32_t kMatrix = featureBit(VulkanFeature::kCooperativeMatrix);
constexpr uint32_t kHalf = featureBit(VulkanFeature::kFloat16);
constexpr uint32_t kDot = featureBit(VulkanFeature::kIntegerDot);
constexpr uint32_t kSubgroupSums = featureBit(VulkanFeature::kSubgroup);

/// The initial limit of a submission (exec/running_call.h), which then never grows.
constexpr double kShortSubmission = 1 << 25;

constexpr const char* kNoUnits = "the driver claims matrix units that the device does not have";
constexpr const char* kNoUnitsSource = "llama.cpp#11074";
constexpr const char* kAsking = "the driver crashes when it is asked about its matrix units";
constexpr const char* kAskingSource = "llama.cpp#22750, AMDVLK#422";

}  // namespace

const KnownDevice kKnownDevices[] = {
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "", 0, kLast, kMatrix, 0, false,
     "unrolled tiles of matrix units break", "ncnn#6719, ncnn#6972"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "", 0, kLast, 0, kShortSubmission,
     false, "the driver gives long submissions up", "flutter-engine#54846"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "X2-", 0, kLast, kDot, 0, false,
     "packed integer dot products come out wrong", "ggml#1601"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "Adreno (TM) 830", 0, kLast,
     kSubgroupSums, 0, false, "kernels that sum over subgroups do not compile", "llama.cpp#28635"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "Adreno (TM) 750", 0, kLast,
     kSubgroupSums, 0, false, "kernels that sum over subgroups do not compile", "llama.cpp#29165"},
    {vendor::kBroadcom, driver::kV3d, kAnyType, "", 0, kLast, 0, 0, true,
     "products take minutes to compile and keep their values in memory",
     "Mesa 26.1 for V3D 4.2: one product, 49 s"},
    {vendor::kAny, driver::kDozen, kAnyType, "", 0, kLast, 0, 0, true,
     "Direct3D 12 behind Vulkan, which this library was never run on", "Mesa calls it incomplete"},
    {vendor::kIntel, driver::kIntelMesa, kIntegrated, "(TGL", 0, kLast, kDot, 0, false,
     "text comes out garbled since packed integer dot products are used",
     "llama.cpp#17106, llama.cpp#17056"},
    {vendor::kAmd, driver::kAmdProprietary, kIntegrated, "", 0, kLast, kMatrix, 0, false, kAsking,
     kAskingSource},
    {vendor::kAmd, driver::kAmdOpenSource, kIntegrated, "", 0, kLast, kMatrix, 0, false, kAsking,
     kAskingSource},
    {vendor::kAmd, driver::kAmdProprietary, kAnyType, "RX 5", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kAmdProprietary, kAnyType, "RX 6", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kAmdOpenSource, kAnyType, "RX 5", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kAmdOpenSource, kAnyType, "RX 6", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kMoltenVk, kAnyType, "", 0, kLast, kSubgroupSums, 0, false,
     "subgroups are said to be larger than they are", "llama.cpp#20029, llama.cpp#15846"},
    {vendor::kAny, driver::kIntelMesa, kAnyType, "", 0, kLast, kHalf, 0, false,
     "matrix products in half precision come out wrong", "llama.cpp#18814, llama.cpp#17106"},
    {vendor::kImagination, driver::kImaginationProprietary, kAnyType, "", 0, kLast, kMatrix | kDot,
     0, false, "products with matrix units or packed dot products come out wrong",
     "llama.cpp#28502"},
    {vendor::kSamsung, driver::kSamsungProprietary, kAnyType, "", 0, kLast, kMatrix, 0, false,
     "loops around matrix units crash or come out wrong", "workarounds in ncnn"},
};
const uint32_t kKnownDeviceCount = sizeof(kKnownDevices) / sizeof(kKnownDevices[0]);

bool matches(const KnownDevice& row, const DeviceCaps& caps) {
  return (row.vendor_id == vendor::kAny || row.vendor_id == caps.vendor_id) &&
         (row.driver_id == driver::kAny || row.driver_id == caps.driver_id) &&
         (row.type == kAnyType || row.type == caps.type) &&
         std::strstr(caps.name, row.name_part) != nullptr &&
         caps.driver_version >= row.first_driver && caps.driver_version <= row.last_driver;
}

KnownFaults findFaults(const KnownDevice* rows, uint32_t count, const DeviceCaps& caps,
                       uint32_t enabled) {
  KnownFaults faults;
  for (uint32_t i = 0; i < count; ++i) {
    const KnownDevice& row = rows[i];
    if (!matches(row, caps)) {
      continue;
    }
    const uint32_t off = row.features_off & ~enabled;
    const bool refused = row.refused && (enabled >> kDeviceItself & 1u) == 0;
    const bool bound = row.most_work != 0 && (enabled >> kLongSubmissions & 1u) == 0;
    if (off == 0 && !refused && !bound) {
      continue;
    }
    faults.features_off |= off;
    faults.refused = faults.refused || refused;
    if (bound) {
      faults.most_work =
          faults.most_work == 0 ? row.most_work : std::min(faults.most_work, row.most_work);
    }
    char what[128];
    writeFeatureNames(off, what, sizeof(what));
    if (bound) {
      appendToList(kOverrideNames[0], what, sizeof(what));
    }
    if (refused) {
      appendToList("the whole device", what, sizeof(what));
    }
    const size_t used = std::strlen(faults.text);
    std::snprintf(faults.text + used, sizeof(faults.text) - used, "%s%s off: %s (%s)",
                  used == 0 ? "" : "; ", what, row.reason, row.source);
  }
  return faults;
}

}  // namespace oriel_internal
