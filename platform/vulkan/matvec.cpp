#include "vulkan/matvec.h"

#include <cstddef>
#include <cstring>

#include "base/hash.h"
#include "os/os.h"
#include "vulkan/cache_path.h"
#include "vulkan/shader_table.h"

namespace oriel {
namespace {

// Few, so that they are all tried in a moment. The first is what the kernel table says; the first with dot
// products is the standard where the driver calls those accelerated.
constexpr MatvecCandidate kSoftwareCandidates[] = {
    {"float", false, 0, 0, 0},
    {"dot, 8 lanes, 8 rows each", true, 8, 8, 8},
    {"dot, 8 lanes, 4 rows each", true, 8, 8, 4},
};
constexpr MatvecCandidate kGpuCandidates[] = {
    {"float", false, 0, 0, 0},
    {"float, 64 lanes, 2 rows each", false, 64, kGroupRows, 2},
    {"float, 32 lanes, 1 row each", false, 32, kGroupRows, 1},
    {"dot, 64 lanes, 1 row each", true, 64, kGroupRows, 1},
    {"dot, 64 lanes, 2 rows each", true, 64, kGroupRows, 2},
    {"dot, 32 lanes, 1 row each", true, 32, kGroupRows, 1},
};

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'K', 'C', '\n'};
constexpr uint32_t kVersion = 1;

struct ChoicesFile {
  char magic[8];
  uint32_t version;
  uint32_t features;        ///< in use when it was measured
  uint64_t shaders_hash;    ///< of all SPIR-V in this build
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  uint32_t divided_as_gpu;  ///< tests only
  uint8_t device_uuid[VK_UUID_SIZE];
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
  uint32_t chosen[kWeightTypes];
  uint32_t measured[kWeightTypes];
  uint64_t hash;            ///< of everything before
};
static_assert(sizeof(ChoicesFile) == 72 + 8 * kWeightTypes + 8, "no padding: hashed as bytes");

// Everything but the choices and the hash.
ChoicesFile expectedFile(const DeviceCaps& caps) {
  ChoicesFile file;
  std::memset(&file, 0, sizeof(file));
  std::memcpy(file.magic, kMagic, sizeof(kMagic));
  file.version = kVersion;
  file.features = caps.features;
  file.shaders_hash = kShadersHash;
  file.vendor_id = caps.vendor_id;
  file.device_id = caps.device_id;
  file.driver_version = caps.driver_version;
  file.divided_as_gpu = caps.divide_as_gpu ? 1 : 0;
  std::memcpy(file.device_uuid, caps.device_uuid, VK_UUID_SIZE);
  std::memcpy(file.pipeline_cache_uuid, caps.pipeline_cache_uuid, VK_UUID_SIZE);
  return file;
}

uint64_t hashOf(const ChoicesFile& file) { return hashBytes(&file, offsetof(ChoicesFile, hash)); }

bool hasDotKernel(WeightType type) {
  switch (type) {
    case WeightType::kQ8_0:
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ2_K:
    case WeightType::kQ3_K:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
    case WeightType::kQ6_K:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool MatvecChoices::usesDot(WeightType type) const {
  return hasDotKernel(type) && caps_.has(VulkanFeature::kIntegerDot);
}

const MatvecCandidate* MatvecChoices::candidate(WeightType type, uint32_t index) const {
  const bool software = caps_.isSoftware();
  const MatvecCandidate* all = software ? kSoftwareCandidates : kGpuCandidates;
  const size_t bytes = software ? sizeof(kSoftwareCandidates) : sizeof(kGpuCandidates);
  if (index >= bytes / sizeof(all[0]) || (all[index].dot && !usesDot(type))) {
    return nullptr;  // candidates with dot products come last
  }
  return &all[index];
}

uint32_t MatvecChoices::standard(WeightType type) const {
  if (caps_.fast_integer_dot) {
    const MatvecCandidate* c = candidate(type, 0);
    for (uint32_t i = 0; c != nullptr; c = candidate(type, ++i)) {
      if (c->dot) {
        return i;
      }
    }
  }
  return 0;
}

const MatvecCandidate* MatvecChoices::candidateFor(const Op& op, uint32_t tokens) const {
  if (tokens != 1 && op.push.matmul.one_row == 0) {
    return nullptr;
  }
  return candidate(op.weights, op.candidate != 0 ? op.candidate - 1u : choice(op.weights));
}

void MatvecChoices::create(const DeviceCaps& caps, const char* dir, const Log& log) {
  caps_ = caps;
  for (uint32_t t = 0; t < kWeightTypes; ++t) {
    chosen_[t] = standard(static_cast<WeightType>(t));
    measured_[t] = 0;
  }
  MappedFile mapping;
  if (dir == nullptr || !makeCachePath(caps, dir, "kernels", path_, sizeof(path_))) {
    path_[0] = '\0';
    return;
  }
  if (!mapping.openIfThere(path_).ok()) {
    return;
  }
  const ChoicesFile expected = expectedFile(caps);
  ChoicesFile file;
  bool good = mapping.bytes() == sizeof(file);
  if (good) {
    std::memcpy(&file, mapping.data(), sizeof(file));
    good = std::memcmp(&file, &expected, offsetof(ChoicesFile, chosen)) == 0 &&
           file.hash == hashOf(file);
  }
  for (uint32_t t = 0; good && t < kWeightTypes; ++t) {
    good = file.measured[t] == 0 ||
           candidate(static_cast<WeightType>(t), file.chosen[t]) != nullptr;
  }
  if (!good) {
    log.write(ORIEL_LOG_INFO,
              "%s is damaged or from another build, driver or set of features; not used", path_);
    return;
  }
  for (uint32_t t = 0; t < kWeightTypes; ++t) {
    if (file.measured[t] != 0) {
      chosen_[t] = file.chosen[t];
      measured_[t] = 1;
    }
  }
}

bool MatvecChoices::keep(WeightType type, uint32_t index, const Log& log) {
  take(type, index);
  measured_[static_cast<uint32_t>(type)] = 1;
  if (path_[0] == '\0') {
    return false;
  }
  ChoicesFile file = expectedFile(caps_);
  std::memcpy(file.chosen, chosen_, sizeof(file.chosen));
  std::memcpy(file.measured, measured_, sizeof(file.measured));
  file.hash = hashOf(file);
  if (!writeFileAtomically(path_, &file, sizeof(file), Log()).ok()) {
    log.write(ORIEL_LOG_DEBUG, "cannot write %s; choices of kernels are not kept", path_);
    return false;
  }
  return true;
}

}  // namespace oriel
