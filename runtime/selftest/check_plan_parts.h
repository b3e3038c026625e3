// Shared parts of CheckPlan, for check_plan*.cpp only.
#pragma once

#include <algorithm>
#include <cstring>

#include "selftest/check_plan.h"

namespace oriel_internal {

constexpr uint32_t kChunk = 8;
constexpr uint32_t kRows = 40;  // of matrices: not a multiple of the group size
constexpr uint32_t kCols = 512;
constexpr uint32_t kOutputs = 3;
// For attention, and its part of the step block.
constexpr uint32_t kHeads = 4;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kHeadDim = 64;
constexpr uint32_t kQkvStride = (kHeads + 2 * kKvHeads) * kHeadDim;
constexpr uint32_t kSinks = 2;
constexpr uint32_t kRing = 40;
// Tables of a token: at its position, and for sink keys.
constexpr uint32_t kRotationWords = 2 * kHeadDim;
// For the short convolution.
constexpr uint32_t kTaps = 3;
constexpr uint32_t kConvRing = kTaps + kChunk - 1;
constexpr uint32_t kCheckedSlots = 2;  // of states
// Views of a token: of the cache, of the convolution's columns, of states.
constexpr uint32_t kConvView = 1;
constexpr uint32_t kStateView = 2;
constexpr uint32_t kViews = 3;

// Another order of summation, or 16-bit inputs, differ by a few 1e-5; one wrong product of kCols by 4e-2.
constexpr double kFloatLimit = 3e-4;

constexpr StepList kLists[] = {StepList::kDecode, StepList::kChunk};

// `bindings`: bindings 0, 2, 3, ... of the op; 1 is the step block.
template <typename Push, uint32_t kBindings>
Op* CheckPlan::add(StepList list, OpKind kind, const Push& push,
                   const BufferRef (&bindings)[kBindings]) {
  static_assert(kBindings < kMaxOpBindings, "bindings of an op");
  const uint32_t l = static_cast<uint32_t>(list);
  Op* const op = &ops_[l][plan_.n_ops[l]++];
  op->kind = kind;
  op->bindings[0] = bindings[0];
  op->bindings[1] = plan_.device_step;
  std::copy(bindings + 1, bindings + kBindings, op->bindings + 2);
  op->n_bindings = kBindings + 1;
  std::memcpy(static_cast<void*>(&op->push), &push, sizeof(push));
  op->push_bytes = sizeof(push);
  return op;
}

}  // namespace oriel_internal
