#include "plan/weight_placement.h"
#include "selftest/check_plan.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kChannels = 160;  // of the convolution: three do not fill a row

}  // namespace

void CheckPlan::addNorms() {
  const BufferRef weight = vector(kCols);
  for (const StepList list : kLists) {
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kCols);
    add(list, OpKind::kRmsNorm, RmsNormPush{kCols, kCols, kCols, 0, 1e-5f, 1, 0, 0, 0, 1.0f, 0},
        {in_, out, weight});
    expect(list, "rms_norm", out, kFloatLimit);
  }
  constexpr uint32_t kRowsOfToken = 4;
  RmsNormPush centred = {kCols / kRowsOfToken, kCols, kCols, 0, 1e-5f, kRowsOfToken, 0, 0, 0, 1, 0};
  centred.centred = centred.weight_rows = 1;
  const BufferRef normed = take(ArenaKind::kActivations, kChunk * kCols);
  add(StepList::kChunk, OpKind::kRmsNorm, centred, {in_, normed, weight});
  expect(StepList::kChunk, "rms_norm (centred)", normed, kFloatLimit);
  const BufferRef out = take(ArenaKind::kActivations, kOutputs * kCols);
  add(StepList::kHead, OpKind::kRmsNorm,
      RmsNormPush{kCols, kCols, kCols, 1, 1e-5f, 1, 0, 0, 0, 0.5f, 0}, {in_, out, weight});
  expect(StepList::kHead, "rms_norm of outputs", out, kFloatLimit);
}

void CheckPlan::addOutputs() {
  const WeightGeometry geometry = weightGeometry(WeightType::kQ8_0, kCols);
  MatmulPush push = {};
  push.rows = kRows;
  geometry.describe(&push);
  push.in_stride = kCols;
  push.out_stride = kRows;
  push.of_outputs = 1;
  const BufferRef weights = matrix(WeightType::kQ8_0);
  const StepList list = StepList::kHead;
  for (const bool capped : {false, true}) {
    const BufferRef out = take(ArenaKind::kActivations, kOutputs * kRows);
    add(list, OpKind::kMatmul, push, {weights, out, in_, staged_})->weights = WeightType::kQ8_0;
    if (capped) {
      add(list, OpKind::kSoftCap, SoftCapPush{kRows, kRows, 2.0f}, {out, out});
    }
    expect(list, capped ? "soft_cap" : "matmul of outputs", out, kFloatLimit);
  }
  const TopPush top_push = {kCols, kCols, 0};
  const BufferRef keys = take(ArenaKind::kActivations, top_push.blocks);
  const BufferRef top = take(ArenaKind::kActivations, sizeof(TopTokens) / 4);
  add(list, OpKind::kTopBlocks, top_push, {in_, keys});
  add(list, OpKind::kTopTokens, top_push, {in_, top, keys});
  expect(list, "top_tokens of outputs", top, 0)->words = true;
}

void CheckPlan::addConv() {
  const BufferRef taps = vector(kChannels * kTaps);
  const BufferRef columns = take(ArenaKind::kCache, kConvRing * kChannels);
  for (const StepList list : kLists) {
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kChannels);
    add(list, OpKind::kShortConv, ShortConvPush{kChannels, kCols, kChannels, kTaps, kConvView},
        {in_, out, columns, taps});
    expect(list, "short_conv", out, kFloatLimit);
  }
  expect(StepList::kDecode, "short_conv (columns)", columns, kFloatLimit);
}

void CheckPlan::addBias() {
  const BufferRef bias = vector(kCols);
  for (const StepList list : kLists) {
    const BufferRef biased = take(ArenaKind::kActivations, kChunk * kCols);
    // The destination is initially zero, and grows with every chunk.
    add(list, OpKind::kAddBias, AddBiasPush{kCols, kCols, 0}, {bias, biased});
    AddBiasPush change = {kCols / 2, kCols, 3, 0, kChangeTimes, 0};
    add(list, OpKind::kAddBias, change, {bias, biased});
    change.change = kChangeClamp;
    change.limit = 0.25f;
    add(list, OpKind::kAddBias, change, {bias, biased});
    expect(list, "add_bias", biased, kFloatLimit);
  }
}

void CheckPlan::addActivations() {
  for (const StepList list : kLists) {
    constexpr const char* kNames[] = {"gated_activation",           "gated_activation (gelu)",
                                      "gated_activation (erf)",     "gated_activation (relu)",
                                      "gated_activation (squared)", "gated_activation (clamped)",
                                      "gated_activation (xielu)"};
    for (uint32_t kind = kSilu; kind <= kXielu; ++kind) {
      const BufferRef out = take(ArenaKind::kActivations, kChunk * kCols / 2);
      GatedActivationPush push = {kCols / 2, kCols, 0, kCols / 2, kCols / 2, kind, 1};
      push.plain = kind == kXielu || kind == kReluSquared ? 1 : 0;
      push.a = push.b = 0.75f;
      push.c = push.scale = 0.5f;
      push.d = -1e-6f;
      add(list, OpKind::kGatedActivation, push, {in_, out});
      expect(list, kNames[kind], out, kFloatLimit);
    }
  }
}

// Inputs are distinct, so their order is unique.
void CheckPlan::addTop() {
  const TopPush push = {kChunk * kCols, kChunk * kCols / 3, 0};
  const BufferRef keys = take(ArenaKind::kActivations, push.blocks);
  const BufferRef top = take(ArenaKind::kActivations, sizeof(TopTokens) / 4);
  const StepList list = StepList::kDecode;
  add(list, OpKind::kTopBlocks, push, {in_, keys});
  add(list, OpKind::kTopTokens, push, {in_, top, keys});
  expect(list, "top_blocks", keys, 0)->words = true;
  expect(list, "top_tokens", top, 0)->words = true;
}

void CheckPlan::addTail() {
  constexpr uint32_t kHalf = kCols / 2;
  const BufferRef out = take(ArenaKind::kActivations, kChunk * kHalf);
  const StepList list = StepList::kChunk;
  add(list, OpKind::kGatedActivation, GatedActivationPush{kHalf, kCols, 0, kHalf, kHalf, 0, 1},
      {in_, out});
  add(list, OpKind::kTail, TailPush{kHalf, kHalf}, {out, out});
  expect(list, "tail", out, kFloatLimit);
}

}  // namespace oriel_internal
