#include "vulkan/kernels.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
namespace {

bool inQuads(uint32_t a, uint32_t b, uint32_t c = 0) { return (a | b | c) % 4 == 0; }

// True if made_row.glsl can do the op's work.
bool canBeMade(const Op& op) {
  if (!opTraits(op.kind).makes_row(op)) {
    return false;
  }
  switch (op.kind) {
    case OpKind::kRmsNorm: {
      const RmsNormPush& p = op.push.rms_norm;
      return p.centred == 0 && p.has_factor == 0 && p.of_outputs == 0 &&
             inQuads(p.cols, p.in_stride);
    }
    case OpKind::kGatedActivation: {
      const GatedActivationPush& p = op.push.gated_activation;
      return p.plain == 0 && p.gate_offset == 0 && inQuads(p.cols, p.in_stride, p.up_offset) &&
             (p.activation == kSilu || p.activation == kGelu);
    }
    case OpKind::kAttentionMerge:
      return op.push.attention_merge.head_dim % 4 == 0;
    default:
      return false;
  }
}

// Types with kernels that make their input.
bool makesInput(WeightType type) { return type <= WeightType::kIq4Xs; }

bool reads(const Op& product, const Op& maker) {
  return product.kind == OpKind::kMatmul && product.push.matmul.of_outputs == 0 &&
         makesInput(product.weights) &&
         samePlace(product.bindings[kMatmulInput], maker.bindings[kOpOut]) &&
         product.push.matmul.in_stride == opTraits(maker.kind).columns(maker).stride &&
         !overlap(product.bindings[kOpOut], maker.bindings[0]);
}

enum class Touch : uint8_t { kNone, kReads, kReplaces };

Touch touch(const Op& op, const BufferRef& row) {
  for (uint32_t i = 0; i < op.n_bindings; ++i) {
    const bool scratch = op.kind == OpKind::kMatmul && i == kMatmulStaged;
    if (i != kOpOut && !scratch && overlap(op.bindings[i], row)) {
      return Touch::kReads;
    }
  }
  if (!overlap(op.bindings[kOpOut], row)) {
    return Touch::kNone;
  }
  const bool replaces = opTraits(op.kind).makes_row(op) ||
                        (op.kind == OpKind::kMatmul && op.push.matmul.accumulate == 0) ||
                        op.kind == OpKind::kRopeAppend || op.kind == OpKind::kAttention;
  return replaces ? Touch::kReplaces : Touch::kReads;
}

Touch firstTouch(const Plan& plan, StepList list, uint32_t first, const BufferRef& row) {
  const uint32_t l = static_cast<uint32_t>(list);
  Touch found = Touch::kNone;
  for (uint32_t i = first; i < plan.n_ops[l] && found == Touch::kNone; ++i) {
    found = touch(plan.ops[l][i], row);
  }
  return found;
}

bool isReadLater(const Plan& plan, StepList list, uint32_t first, const BufferRef& row) {
  const Touch found = firstTouch(plan, list, first, row);
  const auto reads = [&](StepList later) {
    return firstTouch(plan, later, 0, row) == Touch::kReads;
  };
  return found == Touch::kReads ||
         (found == Touch::kNone &&
          (reads(StepList::kHead) || reads(StepList::kBatchHead) || reads(StepList::kDraft)));
}

}  // namespace

bool makesInputs(const DeviceCaps& caps) {
  return !caps.isSoftware() && caps.has(VulkanFeature::kFusedOps);
}

bool isMadeByReaders(const Plan& plan, StepList list, uint32_t index, const DeviceCaps& caps) {
  const uint32_t l = static_cast<uint32_t>(list);
  const Op* const ops = plan.ops[l];
  if ((list != StepList::kDecode && list != StepList::kBatch) || !makesInputs(caps) ||
      !canBeMade(ops[index])) {
    return false;
  }
  const Op& maker = ops[index];
  const CostClass& costs = costsOf(caps);
  double gain_us = separateUs(maker, costs);
  uint32_t end = index + 1;
  for (; end < plan.n_ops[l] && reads(ops[end], maker); ++end) {
    gain_us -= makingUs(ops[end], &maker, costs);
  }
  return end != index + 1 && gain_us > 0 && !isReadLater(plan, list, end, maker.bindings[kOpOut]);
}

bool stagesItself(const Op& product, const DeviceCaps& caps) {
  const CostClass& costs = costsOf(caps);
  return makesInputs(caps) && makingUs(product, nullptr, costs) < stagingUs(costs);
}

uint32_t makeOf(const Op* maker) {
  return maker == nullptr                          ? kMakeCopied
         : maker->kind == OpKind::kRmsNorm         ? kMakeNormed
         : maker->kind == OpKind::kGatedActivation ? kMakeActivated
                                                   : kMakeMerged;
}

Op withMaker(const Op& product, const Op& maker) {
  Op op = product;
  op.bindings[kMatmulInput] = maker.bindings[0];
  op.n_bindings = kMatmulInput + 1;
  if (maker.kind == OpKind::kRmsNorm) {
    op.bindings[op.n_bindings++] = maker.bindings[3];
  }
  return op;
}

namespace {

// Estimates; the first GPU corrects them.
constexpr CostClass kDiscrete = {3, 0.25, 4e5, 8e6, {4e6, 5e6, 7e6, 2.2e7}, 16384};
constexpr CostClass kOther = {8, 0.5, 5e4, 5e5, {2.5e5, 4e5, 4.5e5, 8e5}, 2048};

double iterations(uint32_t items, uint32_t at_once) {
  return static_cast<double>(ceilDiv(items, at_once));
}

/// Bytes that an op reads to make a row, and its loads that wait for each other.
struct Making {
  double bytes;
  double separate_loads;
  double fused_loads;  ///< before the first span
  double span_loads;   ///< per span
};

Making makingOf(const Op& op) {
  if (op.kind == OpKind::kRmsNorm) {
    const uint32_t cols = op.push.rms_norm.cols;
    return {12.0 * cols, iterations(cols, 128), 2 * iterations(cols, 512), 1};
  }
  if (op.kind == OpKind::kGatedActivation) {
    return {8.0 * op.push.gated_activation.cols, 1, 0, 1};
  }
  const AttentionMergePush& p = op.push.attention_merge;
  // Four splits at a time, in as many turns as a workgroup of 64 lanes needs for quads of values.
  const double turns = iterations(std::min(p.n_heads * p.head_dim, kSpanUnits * kUnit), 4 * 64);
  return {4.0 * p.splits * p.n_heads * p.head_dim, 2.0 * p.splits, 0,
          2 * iterations(p.splits, 4) * turns};
}

// Bytes of the cache that attention reads for one visible token.
double bytesPerSeen(const Op& op) {
  if (op.kind == OpKind::kLatentAttention) {
    const LatentAttentionPush& p = op.push.latent_attention;
    return 2.0 * (p.latent_dim + p.rope_dim);
  }
  const AttentionPush& p = op.push.attention;
  return 4.0 * p.n_kv_heads * p.head_dim;
}

// Products per us of a kernel for many tokens. A subgroup with matrix units multiplies as often as it loads values if
// its tile is 64 by 64; smaller tiles load more. Attention loads a matrix for each product of two.
double productsPerUs(const Op& op, const Kernel& kernel, const CostClass& costs) {
  const double most = costs.products_per_us[static_cast<uint32_t>(kernel.staging)];
  const double groups = 1.0 * kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  const uint32_t lanes = kernel.constants[0] != 0 ? kernel.constants[0] : 128;
  const double busy = std::min(1.0, groups * lanes / costs.lanes);
  if (op.kind == OpKind::kAttention && kernel.full_subgroups) {
    return busy * costs.products_per_us[static_cast<uint32_t>(Staging::kMatrixHalves)] / 2;
  }
  if (kernel.staging != Staging::kMatrixHalves) {
    return most * busy;
  }
  const double rows = kernel.constants[4] * kernel.constants[1];
  const double tokens = kernel.constants[5] * kernel.constants[2];
  return most * busy * std::min(1.0, rows * tokens / (rows + tokens) / 32);
}

}  // namespace

const CostClass& costsOf(const DeviceCaps& caps) { return caps.isDiscrete() ? kDiscrete : kOther; }

double separateUs(const Op& maker, const CostClass& costs) {
  return costs.launch_us + costs.load_us * makingOf(maker).separate_loads;
}

double makingUs(const Op& product, const Op* maker, const CostClass& costs) {
  const MatmulPush& p = product.push.matmul;
  const Making making =
      maker != nullptr ? makingOf(*maker) : Making{4.0 * kUnit * p.units, 0, 0, 1};
  const double spans = iterations(p.units, kSpanUnits);
  const double loads = making.fused_loads + spans * (1 + making.span_loads);
  return costs.load_us * loads +
         iterations(p.rows, kGroupRows) * making.bytes / costs.cached_bytes_per_us;
}

double stagingUs(const CostClass& costs) { return costs.launch_us + costs.load_us; }

double expectedUs(const Op& op, const Op* maker, const Kernel& kernel, uint32_t rows, double seen,
                  const CostClass& costs) {
  double bytes = 0;
  double loads = 2;
  double more_us = 0;
  switch (op.kind) {
    case OpKind::kMatmul: {
      const uint32_t teams =
          kernel.staging == Staging::kMatrixHalves
              ? 2  // units of a step
              : std::max(1u, kernel.constants[0] / std::max(1u, kernel.constants[3]));
      bytes = op.bindings[0].size_bytes;
      loads = iterations(op.push.matmul.units, teams);
      more_us = maker != nullptr                   ? makingUs(op, maker, costs)
                : kernel.staging != Staging::kNone ? stagingUs(costs)
                                                   : 0;
      break;
    }
    case OpKind::kExpertMatmul: {
      const ExpertMatmulPush& p = op.push.expert_matmul;
      bytes = double{1} * op.bindings[0].size_bytes / std::max(1u, p.count) * p.n_used;
      loads = p.units / 4.0;
      break;
    }
    case OpKind::kRmsNorm:
    case OpKind::kAttentionMerge:
      loads = makingOf(op).separate_loads;
      break;
    case OpKind::kAttention:
    case OpKind::kLatentAttention:
      bytes = seen * bytesPerSeen(op);
      loads = seen / (16.0 * std::max(1u, kernel.grid[2]));
      break;
    default:
      break;
  }
  const double work_us =
      rows > 1 ? opWork(op, rows).at(seen) / productsPerUs(op, kernel, costs) : 0;
  return costs.launch_us + more_us +
         std::max({bytes / costs.bytes_per_us, loads * costs.load_us, work_us});
}

}  // namespace oriel_internal
