#include "vulkan/fused_ops.h"

#include "base/checked.h"
#include "vulkan/expected_time.h"

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

}  // namespace oriel_internal
