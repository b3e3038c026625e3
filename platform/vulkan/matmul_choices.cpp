#include "vulkan/kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "base/hash.h"
#include "os/os.h"
#include "plan/weight_placement.h"
#include "vulkan/pipelines.h"
#include "vulkan/shader_table.h"

namespace oriel_internal {
namespace {

// Few, so that trying all takes little time. The first is the kernel table's choice.
constexpr MatmulKernel kFloat = MatmulKernel::kFloat;
constexpr MatmulKernel kDot = MatmulKernel::kDot;
constexpr MatmulKernel kHalf = MatmulKernel::kHalf;
constexpr MatmulKernel kMatrix = MatmulKernel::kMatrix;
constexpr MatmulCandidate kSoftwareVector[] = {
    {"float", kFloat, 0, 0, 0, 0},
    {"dot, 8 lanes, 8 rows each", kDot, 8, 8, 8, 1},
    {"dot, 8 lanes, 4 rows each", kDot, 8, 8, 4, 1},
};
constexpr MatmulCandidate kGpuVector[] = {
    {"float", kFloat, 0, 0, 0, 0},
    {"float, 64 lanes, 2 rows each", kFloat, 64, kGroupRows, 2, 1},
    {"dot", kDot, 0, 0, 0, 0},
    {"dot, 64 lanes, 2 rows each", kDot, 64, kGroupRows, 2, 1},
};
constexpr MatmulCandidate kSoftwareChunk[] = {
    {"float", kFloat, 0, 0, 0, 0},
    {"dot, 8 lanes, 4 rows each, 4 tokens", kDot, 8, 8, 4, 4},
    {"half, 8 lanes, 4 rows each, 4 tokens", kHalf, 8, 8, 4, 4},
    {"matrix units, 64 rows, 64 tokens", kMatrix, kMatrixLanes, 0, 64, 64},
};
constexpr MatmulCandidate kGpuChunk[] = {
    {"float", kFloat, 0, 0, 0, 0},
    {"dot, 64 lanes, 2 rows each, 4 tokens", kDot, 64, kGroupRows, 2, 4},
    {"dot, 64 lanes, 4 rows each, 4 tokens", kDot, 64, kGroupRows, 4, 4},
    {"half, 64 lanes, 2 rows each, 8 tokens", kHalf, 64, kGroupRows, 2, 8},
    {"half, 64 lanes, 4 rows each, 8 tokens", kHalf, 64, kGroupRows, 4, 8},
    {"matrix units, 128 rows, 128 tokens", kMatrix, kLargeMatrixLanes, 0, 128, 128},
    {"matrix units, 64 rows, 64 tokens", kMatrix, kMatrixLanes, 0, 64, 64},
    {"matrix units, 32 rows, 64 tokens", kMatrix, kMatrixLanes, 0, 32, 64},
};

struct Candidates {
  const MatmulCandidate* first;
  uint32_t count;
};
template <uint32_t kCount>
constexpr Candidates all(const MatmulCandidate (&table)[kCount]) {
  return {table, kCount};
}

Candidates candidatesOf(MatmulUse use, bool software) {
  if (use == MatmulUse::kVector) {
    return software ? all(kSoftwareVector) : all(kGpuVector);
  }
  return software ? all(kSoftwareChunk) : all(kGpuChunk);
}

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'K', 'C', '\n'};
constexpr uint32_t kVersion = 5;
constexpr uint32_t kFileChoices = kMatmulUses * kWeightTypes;

struct ChoicesFile {
  CacheHeader header;             ///< its detail: the features in use during the measurement
  uint64_t aside_hash;            ///< of the candidates with wrong results
  uint32_t chosen[kFileChoices];  ///< by use, then by type
  uint32_t measured[kFileChoices];
  uint64_t hash;  ///< of all preceding bytes
};
static_assert(sizeof(ChoicesFile) == 80 + 8 * kFileChoices + 8, "no padding: hashed as bytes");

// Fills in the file except its choices and its hash.
ChoicesFile expectedFile(const DeviceCaps& caps, const Verdict& verdict) {
  ChoicesFile file;
  std::memset(&file, 0, sizeof(file));
  file.header = cacheHeader(caps, kMagic, kVersion, caps.features);
  file.aside_hash = verdict.asideHash();
  return file;
}

uint64_t hashOf(const ChoicesFile& file) { return hashBytes(&file, offsetof(ChoicesFile, hash)); }

// By MatmulKernel: name suffixes and required device features.
struct KernelNeeds {
  const char* suffix;
  uint32_t features;
};
constexpr KernelNeeds kNeeds[] = {
    {"", 0},
    {"_dot", featureBit(VulkanFeature::kIntegerDot)},
    {"_half", featureBit(VulkanFeature::kFloat16)},
    {"_matrix", featureBit(VulkanFeature::kCooperativeMatrix)},
};
static_assert(std::size(kNeeds) == kMatmulKernels, "one line per kernel");

// Types with such a kernel, as bits.
uint32_t typesOf(const KernelNeeds& needs) {
  uint32_t types = 0;
  for (uint32_t type = 0; type < kWeightTypes; ++type) {
    char name[kShaderNameBytes];
    std::snprintf(name, sizeof(name), "matmul_%s%s",
                  weightKernelName(static_cast<WeightType>(type)), needs.suffix);
    const bool found = std::any_of(
        kShaders, kShaders + kShaderCount,
        [&name](const ShaderCode& code) { return std::strcmp(code.name(), name) == 0; });
    types |= found ? 1u << type : 0;
  }
  return types;
}

MatmulUse useOf(uint32_t choice) { return static_cast<MatmulUse>(choice / kWeightTypes); }
WeightType typeOf(uint32_t choice) { return static_cast<WeightType>(choice % kWeightTypes); }

}  // namespace

bool MatmulChoices::runs(MatmulUse use, uint32_t position, WeightType type) const {
  const MatmulCandidate& candidate = candidatesOf(use, caps_.isSoftware()).first[position];
  if (position != 0 && verdict_->isAside(at(use, type), position)) {
    return false;
  }
  const uint32_t kernel = static_cast<uint32_t>(candidate.kernel);
  if ((types_[kernel] >> static_cast<uint32_t>(type) & 1) == 0 ||
      (kNeeds[kernel].features & ~caps_.features) != 0) {
    return false;
  }
  // With matrix units rows and tokens are a workgroup's.
  const uint32_t sums =
      candidate.rows * candidate.tokens / (candidate.kernel == kMatrix ? candidate.lanes : 1);
  if (candidate.lanes > kMatrixLanes && candidate.lanes > caps_.most_lanes) {
    return false;
  }
  return sums <= shapesOf(caps_).most_sums[kernel];
}

const MatmulCandidate* MatmulChoices::candidate(MatmulUse use, WeightType type,
                                                uint32_t index) const {
  const Candidates candidates = candidatesOf(use, caps_.isSoftware());
  for (uint32_t i = 0; i < candidates.count; ++i) {
    if (runs(use, i, type) && index-- == 0) {
      return &candidates.first[i];
    }
  }
  return nullptr;
}

// The first candidate of the best kernel. For one vector: dot products. They count if the driver calls them accelerated.
uint32_t MatmulChoices::standard(MatmulUse use, WeightType type) const {
  constexpr KernelOrder kVectorKernels = {{kDot}};
  const KernelOrder& order =
      use == MatmulUse::kVector ? kVectorKernels : shapesOf(caps_).chunk_kernels;
  for (const MatmulKernel kernel : order.kernels) {
    const MatmulCandidate* c =
        kernel == kDot && !caps_.fast_integer_dot ? nullptr : candidate(use, type, 0);
    for (uint32_t i = 0; c != nullptr; c = candidate(use, type, ++i)) {
      if (c->kernel == kernel) {
        return i;
      }
    }
  }
  return 0;
}

const MatmulCandidate& MatmulChoices::candidateFor(const Op& op, uint32_t rows) const {
  const MatmulUse use = rows == 1 ? MatmulUse::kVector : MatmulUse::kChunk;
  const MatmulCandidate* const chosen =
      candidate(use, op.weights, op.candidate != 0 ? op.candidate - 1u : choice(use, op.weights));
  const bool can_run = chosen != nullptr &&
                       (chosen->kernel == MatmulKernel::kFloat || op.n_bindings > kMatmulStaged);
  return can_run ? *chosen : *candidate(use, op.weights, 0);
}

uint32_t MatmulChoices::positionOf(MatmulUse use, const MatmulCandidate& candidate) const {
  return static_cast<uint32_t>(&candidate - candidatesOf(use, caps_.isSoftware()).first);
}

void MatmulChoices::create(const DeviceCaps& caps, const Verdict& verdict, const char* dir,
                           const Log& log) {
  caps_ = caps;
  verdict_ = &verdict;
  std::transform(std::begin(kNeeds), std::end(kNeeds), types_, typesOf);
  for (uint32_t i = 0; i < kChoices; ++i) {
    chosen_[i] = standard(useOf(i), typeOf(i));
    measured_[i] = 0;
  }
  if (dir == nullptr || !makeCachePath(caps, dir, "kernels", path_, sizeof(path_))) {
    path_[0] = '\0';
    return;
  }
  InputFile kept;
  if (!kept.openIfThere(path_, Log()).ok() || !kept.isOpen()) {
    return;
  }
  const ChoicesFile expected = expectedFile(caps, verdict);
  ChoicesFile file;
  bool good = kept.bytes() == sizeof(file) && kept.readAll(&file, Log()).ok() &&
              std::memcmp(&file, &expected, offsetof(ChoicesFile, chosen)) == 0 &&
              file.hash == hashOf(file);
  for (uint32_t i = 0; good && i < kChoices; ++i) {
    good = file.measured[i] == 0 || candidate(useOf(i), typeOf(i), file.chosen[i]) != nullptr;
  }
  if (!good) {
    log.write(ORIEL_LOG_INFO,
              "%s is damaged or from another build, driver or set of features; not used", path_);
    return;
  }
  for (uint32_t i = 0; i < kChoices; ++i) {
    if (file.measured[i] != 0) {
      chosen_[i] = file.chosen[i];
      measured_[i] = 1;
    }
  }
}

bool MatmulChoices::keep(MatmulUse use, WeightType type, uint32_t index, const Log& log) {
  take(use, type, index);
  measured_[at(use, type)] = 1;
  if (path_[0] == '\0') {
    return false;
  }
  ChoicesFile file = expectedFile(caps_, *verdict_);
  std::memcpy(file.chosen, chosen_, sizeof(file.chosen));
  std::memcpy(file.measured, measured_, sizeof(file.measured));
  file.hash = hashOf(file);
  if (!writeFileAtomically(path_, &file, sizeof(file), FileUse::kCache, Log()).ok()) {
    log.write(ORIEL_LOG_DEBUG, "cannot write %s; choices of kernels are not kept", path_);
    return false;
  }
  return true;
}

}  // namespace oriel_internal
