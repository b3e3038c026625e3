#include "vulkan/kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/checked.h"
#include "base/limits.h"
#include "vulkan/shader_table.h"

namespace oriel {
namespace {

/// Workgroup size of kernels that work on one value per lane; two to eight subgroups on most devices.
constexpr uint32_t kLanes = 64;
/// Workgroups along one side of a grid that every device allows, less what rounds.
constexpr uint32_t kMaxGridSide = 32768;
/// Lanes that share a row in the shared-memory matmul.
constexpr uint32_t kSharedTeamLanes = 16;
/// Tokens that share one unpacking of the weights; bounded by registers.
constexpr uint32_t kMatmulTokens = 8;

/// How matmul divides its work. `rows`: rows a team works on at once; more reuse each input more often
/// but leave fewer workgroups.
struct MatmulShape {
  uint32_t lanes;
  uint32_t rows;
};
/// Measured on lavapipe (2 cores, subgroups of 8): 8 rows gain 40% over 4 and 70% over 2, 16 nothing;
/// 32 lanes are no slower than 64 and leave small matrices enough workgroups.
constexpr MatmulShape kSoftwareMatmul = {32, 8};
/// GPUs have lanes to spare and too few rows per matrix to fill them.
constexpr MatmulShape kGpuDecodeMatmul = {64, 2};
constexpr MatmulShape kGpuChunkMatmul = {64, 4};

constexpr bool fitsSharedMemory(MatmulShape shape, uint32_t tokens) {
  return shape.lanes * shape.rows * tokens * sizeof(float) <= 16384;
}
static_assert(fitsSharedMemory(kSoftwareMatmul, kMatmulTokens), "shared-memory matmul");
static_assert(fitsSharedMemory(kGpuChunkMatmul, kMatmulTokens), "shared-memory matmul");

uint32_t workgroups(uint32_t items, uint32_t per_group) {
  return static_cast<uint32_t>(ceilDiv(items, per_group));
}

void divideMatmul(const MatmulPush& push, uint32_t tokens, const DeviceCaps& caps,
                  Kernel* kernel) {
  tokens = push.one_row != 0 ? 1 : tokens;
  uint32_t tile = 1;
  while (tile < kMatmulTokens && tile < tokens) {
    tile *= 2;
  }
  const MatmulShape shape = caps.isSoftware() ? kSoftwareMatmul
                            : tile == 1       ? kGpuDecodeMatmul
                                              : kGpuChunkMatmul;
  const uint32_t team_lanes =
      caps.subgroup_arithmetic ? std::min(caps.subgroup_size, shape.lanes) : kSharedTeamLanes;
  const uint32_t teams = shape.lanes / team_lanes;
  kernel->constants[0] = shape.lanes;
  kernel->constants[1] = shape.rows;
  kernel->constants[2] = tile;
  kernel->constants[3] = teams;
  const uint32_t row_groups = workgroups(push.rows, teams * shape.rows);
  kernel->grid[0] = workgroups(tokens, tile);
  kernel->grid[1] = std::min(row_groups, kMaxGridSide);
  kernel->grid[2] = workgroups(row_groups, kernel->grid[1]);
}

/// Shared memory of attention, see the shader: queries, lane values and weights of each head, sums.
constexpr uint32_t attentionSharedBytes(uint32_t head_dim, uint32_t heads) {
  return heads * (2 * head_dim + 2 * 128 + 8) * 4 + 128 * 8;
}
static_assert(attentionSharedBytes(kMaxHeadDim, 1) <= 16384, "shared memory of attention");

// Heads that one workgroup works on: CPUs gain from reading keys and values once for all heads that
// share them, GPUs from more workgroups.
uint32_t headsTogether(const AttentionPush& push, const DeviceCaps& caps) {
  const uint32_t sharing = push.n_heads / push.n_kv_heads;
  uint32_t heads = caps.isSoftware() ? std::min(sharing, 8u) : 1;
  while (sharing % heads != 0 || attentionSharedBytes(push.head_dim, heads) > 16384) {
    --heads;
  }
  return heads;
}

// One lane per item of a token.
void divideItems(uint32_t items, uint32_t tokens, Kernel* kernel) {
  kernel->constants[0] = kLanes;
  kernel->grid[0] = workgroups(items, kLanes);
  kernel->grid[1] = tokens;
}

Status findShader(const char* name, const Log& log, uint32_t* shader) {
  for (uint32_t i = 0; i < kShaderCount; ++i) {
    if (std::strcmp(kShaders[i].name, name) == 0) {
      *shader = i;
      return kOk;
    }
  }
  return log.fail(ORIEL_ERROR_UNSUPPORTED, "no kernel named %s in this build: use the CPU", name);
}

}  // namespace

Status chooseKernel(const Op& op, uint32_t tokens, const DeviceCaps& caps, const Log& log,
                    Kernel* kernel) {
  *kernel = Kernel();
  char name[64] = "";
  const char* path = caps.subgroup_arithmetic ? "subgroup" : "shared";
  const char* weights = weightTypeName(op.weights);
  switch (op.kind) {
    case OpKind::kEmbed:
      std::snprintf(name, sizeof(name), "embed_%s", weights);
      divideItems(workgroups(op.push.embed.cols, kUnit), tokens, kernel);
      break;
    case OpKind::kRmsNorm:
      std::snprintf(name, sizeof(name), "rms_norm_%s", path);
      kernel->grid[0] = op.push.rms_norm.head_row_only != 0 ? 1 : tokens;
      break;
    case OpKind::kMatmul:
      std::snprintf(name, sizeof(name), "matmul_%s_%s", weights, path);
      divideMatmul(op.push.matmul, tokens, caps, kernel);
      break;
    case OpKind::kRopeAppend: {
      const RopeAppendPush& push = op.push.rope_append;
      std::snprintf(name, sizeof(name), "rope_append_%s", kvFormatName(op.k_format));
      divideItems(2 * (push.n_heads + push.n_kv_heads) * (push.head_dim / 2), tokens, kernel);
      break;
    }
    case OpKind::kAttention:
      std::snprintf(name, sizeof(name), "attention_%s", kvFormatName(op.k_format));
      kernel->constants[0] = op.push.attention.head_dim;
      kernel->constants[1] = headsTogether(op.push.attention, caps);
      kernel->grid[0] = op.push.attention.n_heads / kernel->constants[1];
      kernel->grid[1] = tokens;
      kernel->grid[2] = op.push.attention.splits;
      break;
    case OpKind::kAttentionMerge:
      std::snprintf(name, sizeof(name), "attention_merge");
      kernel->constants[0] = kLanes;
      kernel->grid[0] = op.push.attention_merge.n_heads;
      kernel->grid[1] = tokens;
      break;
    case OpKind::kGatedActivation:
      std::snprintf(name, sizeof(name), "gated_activation");
      divideItems(op.push.gated_activation.cols, tokens, kernel);
      break;
  }
  return findShader(name, log, &kernel->shader);
}

}  // namespace oriel
