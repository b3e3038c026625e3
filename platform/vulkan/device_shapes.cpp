#include "vulkan/device_shapes.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "shaders/shared/layout.h"
#include "vulkan/device_caps.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kAny = UINT32_MAX;
constexpr KernelOrder kFloats = {{MatmulKernel::kFloat}};
constexpr KernelOrder kUnits = {{MatmulKernel::kMatrix, MatmulKernel::kDot}};
/// GPUs that multiply halves faster than floats, and whose registers hold few floats.
constexpr KernelOrder kHalves = {{MatmulKernel::kMatrix, MatmulKernel::kDot, MatmulKernel::kHalf}};

/// Measured on lavapipe (2 cores, subgroups of 8). A team of its own reads its rows as streams: twice
/// the speed of alternating teams if a matrix is larger than the caches. 8 rows gain up to a quarter
/// over 4, but leave too few workgroups for small matrices.
constexpr MatmulShape kSoftware = {8, 8, 8, 4};
constexpr MatmulShape kSmallSoftware = {8, 8, 4, 4};
/// A lane holds a whole head: lanes of a CPU's vector have no fast exchange, and its
/// compiler takes too long with more values.
constexpr DeviceShapes kSoftwareShapes = {
    vendor::kAny,           "", kSoftware, kSoftware, kSmallSoftware, {kAny, 16, 16, 32}, kFloats,
    {8, 8, 8, {1, 1, 1}, 0}};

/// GPUs have more lanes than a matrix has rows to fill.
constexpr MatmulShape kOneRow = {64, kGroupRows, 1, 1};
constexpr MatmulShape kRows2Tokens8 = {64, kGroupRows, 2, 8};
constexpr MatmulShape kRow1Tokens4 = {64, kGroupRows, 1, 4};
constexpr MatmulShape kRow1Tokens2 = {64, kGroupRows, 1, 2};

struct MostSums {
  uint32_t dot;
  uint32_t half;
  uint32_t matrix;
};

constexpr DeviceShapes gpu(uint32_t vendor_id, const char* name_part, const MatmulShape& chunk,
                           const MostSums& most, const KernelOrder& order, uint32_t narrow,
                           uint32_t wide, uint32_t widest, uint32_t widest_on_units = 0) {
  // Neighbouring lanes read neighbouring pieces.
  return {vendor_id, name_part,
          kOneRow,   chunk,
          chunk,     {kAny, most.dot, most.half, most.matrix},
          order,     {128, 1, 16, {narrow, wide, widest}, widest_on_units}};
}

// The first matching row applies. Checked with Mesa 26.1: AMD, NVIDIA, Qualcomm, Apple (tests/compilers/bounds.json);
// set by hand: Intel and Arm. The last row is for devices without a checked compiler.
constexpr DeviceShapes kGpuShapes[] = {
    gpu(vendor::kAmd, "VEGA", kRow1Tokens4, {16, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kAmd, "POLARIS", kRow1Tokens4, {16, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kAmd, "", kRows2Tokens8, {16, 32, 64}, kUnits, 4, 2, 2, 128),
    gpu(vendor::kSamsung, "", kRows2Tokens8, {16, 32, 32}, kUnits, 4, 2, 2),
    gpu(vendor::kNvidia, "", kRows2Tokens8, {16, 16, 64}, kUnits, 4, 2, 2, 128),
    gpu(vendor::kQualcomm, "(TM) 6", kRow1Tokens2, {4, 4, 32}, kUnits, 1, 1, 1),
    gpu(vendor::kQualcomm, "", kRow1Tokens4, {16, 16, 32}, kHalves, 2, 1, 1),
    gpu(vendor::kApple, "", kRow1Tokens4, {4, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kMesa, "Apple", kRow1Tokens4, {4, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kIntel, "", kRow1Tokens4, {8, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kArm, "", kRow1Tokens4, {8, 16, 32}, kHalves, 1, 1, 1),
    gpu(vendor::kAny, "", kRow1Tokens4, {8, 16, 32}, kUnits, 1, 1, 1),
};
/// Tests divide the work of software devices like this: the largest division of any GPU.
constexpr const DeviceShapes& kLargest = kGpuShapes[2];

constexpr bool fitsSharedMemory(const MatmulShape& shape) {
  return shape.lanes * shape.rows * shape.tokens * sizeof(float) <= 16384;
}
constexpr bool fitSharedMemory() {
  bool fit = fitsSharedMemory(kSoftwareShapes.decode);
  for (const DeviceShapes& shapes : kGpuShapes) {
    fit = fit && fitsSharedMemory(shapes.decode) && fitsSharedMemory(shapes.chunk);
  }
  return fit;
}
static_assert(fitSharedMemory(), "matmul's partial sums");

}  // namespace

const DeviceShapes& shapesOf(const DeviceCaps& caps) {
  if (caps.isSoftware()) {
    return kSoftwareShapes;
  }
  if (caps.divide_as_gpu && caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    return kLargest;
  }
  return *std::find_if(
      std::begin(kGpuShapes), std::end(kGpuShapes) - 1, [&caps](const DeviceShapes& row) {
        return (row.vendor_id == vendor::kAny || row.vendor_id == caps.vendor_id) &&
               std::strstr(caps.name, row.name_part) != nullptr;
      });
}

}  // namespace oriel_internal
