#include <cstdio>
#include <initializer_list>

#include "selftest/check_plan_parts.h"

namespace oriel_internal {
namespace {

// Columns of an input use only a part of its row.
constexpr uint32_t kStateHeads = 4;
constexpr uint32_t kStateKeyHeads = 2;
constexpr uint32_t kStateKeyDim = 40;
constexpr uint32_t kStateValueDim = 20;
constexpr uint32_t kStateTaps = 4;
constexpr uint32_t kStateValues = kStateHeads * kStateValueDim;
constexpr uint32_t kStateChannels = 2 * kStateKeyHeads * kStateKeyDim + kStateValues;
constexpr uint32_t kStateDecays = kStateHeads * kStateKeyDim;  // the most
constexpr uint32_t kMixedCols = kStateChannels + kStateDecays + kStateHeads;
static_assert(kMixedCols + kStateValues <= kCols, "what states take in");

// Rounding of a low-bit state accumulates over the steps.
constexpr double kStateWordsLimit = 0.05;
constexpr double kInt8StateLimit = 0.03;

}  // namespace

void CheckPlan::addState(StateRule of, StateFormat format, const BufferRef& taps,
                         const BufferRef& gates) {
  const bool delta = of != StateRule::kMamba2;
  const uint32_t matrix_words = stateMatrixWords(format, kStateValues, kStateKeyDim);
  StateInputsPush inputs = {};
  inputs.in_stride = kCols;
  inputs.out_stride = kMixedCols;
  inputs.delta = delta ? 1 : 0;
  inputs.heads = kStateHeads;
  inputs.key_heads = kStateKeyHeads;
  inputs.key_dim = kStateKeyDim;
  inputs.value_dim = kStateValueDim;
  inputs.taps = kStateTaps;
  inputs.has_bias = delta ? 0 : 1;
  inputs.eps = 1e-6f;
  inputs.slot_words = matrix_words + (kStateTaps - 1) * kStateChannels;
  inputs.view = kStateView;
  inputs.by_key = of == StateRule::kKda ? 1 : 0;
  inputs.least = -1;
  StateScanPush scan = {};
  scan.in_stride = kMixedCols;
  scan.out_stride = kStateValues;
  scan.heads = kStateHeads;
  scan.key_heads = kStateKeyHeads;
  scan.key_dim = kStateKeyDim;
  scan.value_dim = kStateValueDim;
  scan.delta = scan.tiled = inputs.delta;
  scan.format = static_cast<uint32_t>(format);
  scan.scale = delta ? 0.5f : 1.0f;
  scan.slot_words = inputs.slot_words;
  scan.view = kStateView;
  scan.by_key = inputs.by_key;
  const BufferRef state = take(ArenaKind::kCache, uint64_t{kCheckedSlots} * inputs.slot_words);
  const char* const rule = inputs.by_key != 0 ? "kda" : delta ? "delta" : "mamba2";
  char name[48];
  for (const StepList list : kLists) {
    const BufferRef mixed = take(ArenaKind::kActivations, kChunk * kMixedCols);
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kStateValues);
    add(list, OpKind::kStateInputs, inputs, {in_, mixed, state, taps, gates});
    add(list, OpKind::kStateScan, scan, {mixed, out, state, gates});
    if (format == StateFormat::kF32) {
      std::snprintf(name, sizeof(name), "state_inputs_%s", rule);
      expect(list, name, mixed, kFloatLimit);
    }
    std::snprintf(name, sizeof(name), "state_scan_%s_%s", rule, stateFormatName(format));
    expect(list, name, out, format == StateFormat::kInt8 ? kInt8StateLimit : kFloatLimit);
  }
  std::snprintf(name, sizeof(name), "state_scan_%s_%s (state)", rule, stateFormatName(format));
  const bool rounded = format != StateFormat::kF32;
  expect(StepList::kDecode, name, state, rounded ? kStateWordsLimit : kFloatLimit)->words = rounded;
}

void CheckPlan::addStates() {
  const BufferRef taps = vector(kStateChannels * (kStateTaps + 1));
  const BufferRef gates =
      vector(kStateDecays + kStateHeads, Fill::kBelowZero);  // makes states decay
  for (const StateFormat format : {StateFormat::kF32, StateFormat::kF16, StateFormat::kInt8}) {
    addState(StateRule::kDelta, format, taps, gates);
  }
  addState(StateRule::kMamba2, StateFormat::kF32, taps, gates);
  addState(StateRule::kKda, StateFormat::kF32, taps, gates);
}

void CheckPlan::addGatedNorms() {
  constexpr uint32_t kNormRows = 4, kNormCols = 40, kGateFirst = 200;
  constexpr uint32_t kWidth = kNormRows * kNormCols;
  const BufferRef weight = vector(kWidth);
  const GatedNormPush norm_first = {kNormRows, kNormCols, kCols, kWidth, kCols, kGateFirst,
                                    0,         1,         0,     0,      1e-5f};
  const GatedNormPush gate_only = {1, kWidth, kCols, kWidth, kCols, kGateFirst, 1, 0, 0, 0, 0};
  const GatedNormPush norm_last = {kNormRows, kNormCols, kWidth, kWidth, kCols, kGateFirst,
                                   0,         1,         1,      1,      1e-5f};
  for (const StepList list : kLists) {
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kWidth);
    add(list, OpKind::kGatedNorm, norm_first, {in_, out, in_, weight});
    expect(list, "gated_norm", out, kFloatLimit);
    const BufferRef in_place = take(ArenaKind::kActivations, kChunk * kWidth);
    add(list, OpKind::kGatedNorm, gate_only, {in_, in_place, in_});
    add(list, OpKind::kGatedNorm, norm_last, {in_place, in_place, in_, weight});
    expect(list, "gated_norm (in place)", in_place, kFloatLimit);
    for (const uint32_t gate : {kGateSoftplus, kGateSoftplus2}) {
      GatedNormPush rows = {kNormRows, kNormCols, kCols, kWidth, kCols, kGateFirst,
                            gate,      0,         0,     0,      0};
      rows.gate_rows = 1;
      const BufferRef gated = take(ArenaKind::kActivations, kChunk * kWidth);
      add(list, OpKind::kGatedNorm, rows, {in_, gated, in_});
      expect(list,
             gate == kGateSoftplus ? "gated_norm (softplus)" : "gated_norm (softplus, base 2)",
             gated, kFloatLimit);
    }
  }
}

}  // namespace oriel_internal
