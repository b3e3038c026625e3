// Vendor and driver ids (VkDriverId). The oldest supported headers do not have all of them.
#pragma once

#include <cstdint>

namespace oriel_internal {

namespace vendor {
constexpr uint32_t kAny = 0;
constexpr uint32_t kAmd = 0x1002;
constexpr uint32_t kImagination = 0x1010;
constexpr uint32_t kApple = 0x106B;
constexpr uint32_t kNvidia = 0x10DE;
constexpr uint32_t kArm = 0x13B5;
constexpr uint32_t kSamsung = 0x144D;
constexpr uint32_t kBroadcom = 0x14E4;
constexpr uint32_t kQualcomm = 0x5143;
constexpr uint32_t kIntel = 0x8086;
constexpr uint32_t kMesa = 0x10005;  ///< for example of Apple GPUs
}  // namespace vendor

namespace driver {
constexpr uint32_t kAny = 0;
constexpr uint32_t kAmdProprietary = 1;
constexpr uint32_t kAmdOpenSource = 2;
constexpr uint32_t kRadv = 3;
constexpr uint32_t kNvidiaProprietary = 4;
constexpr uint32_t kIntelMesa = 6;
constexpr uint32_t kImaginationProprietary = 7;
constexpr uint32_t kQualcommProprietary = 8;
constexpr uint32_t kMoltenVk = 14;
constexpr uint32_t kTurnip = 18;
constexpr uint32_t kV3d = 19;
constexpr uint32_t kSamsungProprietary = 21;
constexpr uint32_t kDozen = 23;
constexpr uint32_t kNvk = 24;
}  // namespace driver

}  // namespace oriel_internal
