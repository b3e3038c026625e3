// Properties of a device: capabilities, matrix units, known faults, and the work per lane of its kernels.
#pragma once

#include <cstdint>

#include "exec/host_executor.h"
#include "vulkan/loader.h"

namespace oriel_internal {

// Matrix units (VK_KHR_cooperative_matrix) that multiply f16 and accumulate in float32, and the other requirements of
// their kernels: f16 shaders (VulkanFeature::kFloat16), Vulkan's memory model, and a known subgroup size.

/// Workgroup size of kernels with matrix units; every Vulkan device allows it. Large tiles have twice as many lanes.
constexpr uint32_t kMatrixLanes = 128;
constexpr uint32_t kLargeMatrixLanes = 2 * kMatrixLanes;
/// Shared memory for the kernels' tiles; the Vulkan minimum is too small.
constexpr uint32_t kMatrixSharedBytes = 32768;
/// Sums that kMatrixLanes store in shared memory at a time, a matrix for each subgroup.
constexpr uint32_t kMatrixSums = 1024;

constexpr const char* kSubgroupSizeControl = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
constexpr const char* kMatrixExtensions[] = {
    "VK_KHR_cooperative_matrix", VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, kSubgroupSizeControl};
constexpr uint32_t kMatrixExtensionCount = 3;

/// The feature structures of those extensions in one chain, to query and to enable them.
class MatrixFeatures {
 public:
  MatrixFeatures();
  MatrixFeatures(const MatrixFeatures&) = delete;
  MatrixFeatures& operator=(const MatrixFeatures&) = delete;
  void* chain(void* next);
  /// Keeps only the features that kernels need. False if any of these features is missing.
  bool keepNeeded();

 private:
  VkPhysicalDeviceVulkanMemoryModelFeaturesKHR memory_model_ = {};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroups_ = {};
  CooperativeMatrixFeatures matrices_ = {};
};

/// a[m][k] times b[k][n], by a subgroup.
struct MatrixShape {
  uint32_t m = 0;  ///< 0: no matrix units
  uint32_t n = 0;
  uint32_t k = 0;
  bool asks_for_size =
      false;  ///< a pipeline asks for its subgroup size; else the device has only one
};

/// For a device with the extensions and f16 shaders, and subgroups of `subgroup_size` lanes.
MatrixShape findMatrixShape(const VulkanApi& api, VkPhysicalDevice physical,
                            uint32_t subgroup_size);

// Vendor and driver ids (VkDriverId). The oldest supported headers do not have all of them.

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

// Capabilities that a physical device reports, corrected for known faults.

/// The capabilities of a physical device that the executor uses or reports.
struct DeviceCaps {
  char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
  char driver[256];
  char reason[256];  ///< reason for a refusal; empty: usable
  VkPhysicalDeviceType type;
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  uint32_t driver_id;  ///< VkDriverId; 0: not reported
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
  uint8_t device_uuid[VK_UUID_SIZE];
  uint32_t compute_family;
  bool needs_portability_subset;
  bool creation_feedback;  ///< reports if a pipeline came from the cache
  uint32_t features;       ///< featureBit()s of the device, minus those turned off
  bool fast_integer_dot;   ///< the driver calls packed dot products accelerated
  uint32_t subgroup_size;  ///< as reported; 1 if invalid; actual subgroups may be narrower
  uint32_t most_lanes;     ///< of a workgroup
  bool full_subgroups;     ///< a pipeline may require subgroups without idle lanes
  MatrixShape matrix;      ///< of kCooperativeMatrix
  uint64_t max_allocation_bytes;
  uint64_t non_coherent_atom_bytes;  ///< granularity of flushes and invalidations of such memory
  uint64_t memory_bytes;             ///< of the largest device-local heap
  uint64_t free_bytes;               ///< free part of that heap, without paging; 0: not reported
  char faults[320];                  ///< known faults, as text for people; ""
  double most_work;                  ///< limit of a submission, as plan/op.h counts; 0: no limit

  float timestamp_ns;  ///< duration of a timestamp tick in ns; 0: no timestamps
  uint32_t timestamp_bits;

  bool divide_as_gpu;  ///< tests only: divide work as on a GPU, on any device

  bool has(VulkanFeature feature) const { return (features & featureBit(feature)) != 0; }
  bool usable() const { return reason[0] == '\0'; }
  bool isSoftware() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU && !divide_as_gpu; }
  /// True for a GPU with memory of its own. It needs many loads in flight.
  bool isDiscrete() const {
    return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || (divide_as_gpu && !isSoftware());
  }
  /// True if kernels read weights, inputs and caches as texels: see texel_views.h.
  bool readsTexels() const { return isSoftware() && has(VulkanFeature::kTexels); }
};

/// `enabled`: readOverrideNames(), features used despite known faults.
DeviceCaps readDeviceCaps(const VulkanApi& api, VkPhysicalDevice physical, uint32_t enabled = 0);
/// Lists the features in `caps.features` that kernels can use, as text for people.
void describeFeatures(const DeviceCaps& caps, char* text, size_t capacity);
/// Limits, memory types and queue families as the driver reports them, in one line.
void describeLimits(const VulkanApi& api, VkPhysicalDevice physical, const DeviceCaps& caps,
                    char* text, size_t capacity);
/// "discrete", as in DeviceInfo.
const char* kindName(VkPhysicalDeviceType type);
/// Bit i is set if the device has extension names[i]; without a device, the instance.
uint32_t findExtensions(const VulkanApi& api, VkPhysicalDevice physical, const char* const* names,
                        uint32_t count);

constexpr const char* kPortabilitySubset = "VK_KHR_portability_subset";
constexpr const char* kCreationFeedback = VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME;
constexpr const char* kIntegerDotProduct = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
constexpr const char* kFloat16Int8 = VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME;

// Work per lane of a kernel, by device: as much as the device's compiler keeps in registers. A kernel that spills to
// memory is several times slower. scripts/gpu_compilers.sh checks the table's rows.

/// How matmul divides its work (matmul.comp defines the numbers). More rows per lane reuse each
/// input more often; more tokens reuse each unpacked weight more often. Both leave fewer
/// workgroups and need registers.
struct MatmulShape {
  uint32_t lanes;
  uint32_t team_lanes;
  uint32_t rows;
  uint32_t tokens;
};

/// How attention divides its work: see shaders/attention.comp.
struct AttentionShape {
  uint32_t lanes;
  uint32_t lane_octets;  ///< at least
  /// Lanes that share a vector; twice as many for heads wider than kWideHead.
  uint32_t most_pieces;
  /// Upper limits per workgroup: heads of up to kNarrowHead values, of up to kWideHead, wider heads and latents.
  uint32_t queries[3];
  uint32_t widest_on_units;  ///< head for matrix units (attention_matrix.comp); 0: none
};
constexpr uint32_t kNarrowHead = 128;
constexpr uint32_t kWideHead = 256;

enum class MatmulKernel : uint8_t {
  kFloat,   ///< matmul.comp
  kDot,     ///< matmul_dot.comp: packed integer dot products
  kHalf,    ///< matmul.comp in half precision
  kMatrix,  ///< matmul_matrix.comp: matrix units
};
constexpr uint32_t kMatmulKernels = 4;
/// Best first; missing ones are kFloat.
struct KernelOrder {
  MatmulKernel kernels[kMatmulKernels];
};

struct DeviceShapes {
  uint32_t vendor_id;     ///< 0: any
  const char* name_part;  ///< of the device's name; "": any
  MatmulShape decode;     ///< one token, in float
  MatmulShape chunk;      ///< several tokens
  MatmulShape small;      ///< either, with a matrix of few rows (kSmallRows)
  /// Sums per lane, at most, by MatmulKernel: a candidate with more is not tried.
  uint32_t most_sums[kMatmulKernels];
  /// Kernels for chunks until a measurement finds the fastest: the first that the device has. Dot products count if the
  /// driver calls them accelerated.
  KernelOrder chunk_kernels;
  AttentionShape attention;

  uint32_t queries(uint32_t head_dim) const {
    return attention.queries[head_dim <= kNarrowHead ? 0 : head_dim <= kWideHead ? 1 : 2];
  }
};
/// A matrix with fewer rows is small.
constexpr uint32_t kSmallRows = 1024;

const DeviceShapes& shapesOf(const DeviceCaps& caps);

// Known faults of devices and drivers, and the features that Oriel does not use there: docs/devices.md. The
// self-test detects wrong results. The table covers faults that crash a process or occur too rarely for the test.

/// A row matches a device if all its fields match.
struct KnownDevice {
  uint32_t vendor_id;         ///< 0: any
  uint32_t driver_id;         ///< VkDriverId; 0: any
  VkPhysicalDeviceType type;  ///< VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM: any
  const char* name_part;      ///< of the device's name; "": any
  uint32_t first_driver;      ///< driverVersion in the driver's encoding: first ...
  uint32_t last_driver;       ///< ... and last, both included
  uint32_t features_off;      ///< featureBit()s
  double most_work;           ///< limit of a submission, as plan/op.h counts; 0: no limit
  bool refused;               ///< the device is never used
  const char* reason;         ///< "WHAT HAPPENS"
  const char* source;         ///< source of the report
};

/// The restrictions of matching rows, without the features in `enabled` (readOverrideNames).
struct KnownFaults {
  uint32_t features_off = 0;
  double most_work = 0;
  bool refused = false;
  char text[320] = "";  ///< faults, reasons and sources, for people; "": no row matches
};

extern const KnownDevice kKnownDevices[];
extern const uint32_t kKnownDeviceCount;

/// Uses the ids, type, name and version in `caps`.
bool matches(const KnownDevice& row, const DeviceCaps& caps);
KnownFaults findFaults(const KnownDevice* rows, uint32_t count, const DeviceCaps& caps,
                       uint32_t enabled);

}  // namespace oriel_internal
