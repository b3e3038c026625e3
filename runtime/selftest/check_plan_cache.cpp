#include <cstdio>
#include <initializer_list>

#include "selftest/check_plan.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kQueryStride = kHeads * 2 * kHeadDim;
constexpr uint32_t kOutStride = kHeads * kHeadDim;
constexpr uint32_t kSplits = 2;
constexpr uint32_t kSplitSlots = 24;
// For latent attention.
constexpr uint32_t kLatentHeads = 2;
constexpr uint32_t kLatentDim = 96;
constexpr uint32_t kLatentRope = 32;
constexpr uint32_t kLatentCols = kLatentDim + kLatentRope;
constexpr uint32_t kLatentQueries = kLatentHeads * (kLatentDim + 2 * kLatentRope);
constexpr uint32_t kLatentSums = kLatentHeads * kLatentDim;

constexpr double kWordsLimit = 0.01;

}  // namespace

void CheckPlan::addCache(KvFormat k, KvFormat v, bool bent) {
  char formats[24];
  std::snprintf(formats, sizeof(formats), "%s%s%s%s", kvFormatName(k), k == v ? "" : "_",
                k == v ? "" : kvFormatName(v), bent ? " capped" : "");
  const CacheShape shape = {kKvHeads, kHeadDim, kSinks, kRing - kChunk + 1, kRing};
  const BufferRef keys = take(ArenaKind::kCache, sideLayout(k, shape).bytes / 4);
  const BufferRef values = take(ArenaKind::kCache, sideLayout(v, shape).bytes / 4);
  const BufferRef queries = take(ArenaKind::kActivations, kChunk * kQueryStride);
  RopeAppendPush append = {};
  append.n_heads = kHeads;
  append.n_kv_heads = kKvHeads;
  append.head_dim = kHeadDim;
  append.rope_dims = kHeadDim;
  append.pair_stride = kHeadDim / 2;
  append.qkv_stride = kQkvStride;
  append.query_stride = kQueryStride;
  append.sinks = kSinks;
  append.all_sinks = kSinks;
  append.rotation_stride = kRotationWords;
  append.key_rotation = append.query_rotation =
      static_cast<uint32_t>(stepRotationWord(kChunk, kViews, kRotationWords, 0));
  append.sink_rotation = append.key_rotation + kHeadDim;
  AttentionPush attend = {};
  attend.n_heads = kHeads;
  attend.n_kv_heads = kKvHeads;
  attend.head_dim = kHeadDim;
  attend.query_stride = kQueryStride;
  attend.out_stride = kOutStride;
  attend.sinks = kSinks;
  attend.all_sinks = kSinks;
  attend.ring = kRing;
  attend.scale = 0.125f;
  attend.soft_cap = bent ? 0.5f : 0.0f;
  char name[48];
  for (const StepList list : kLists) {
    Op* op = bent ? add(list, OpKind::kRopeAppend, append, {qkv_, queries, keys, values, norms_})
                  : add(list, OpKind::kRopeAppend, append, {qkv_, queries, keys, values});
    op->k_format = k;
    op->v_format = v;
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kOutStride);
    const bool split = list == StepList::kDecode;
    const BufferRef partials =
        split ? take(ArenaKind::kActivations, kHeads * kSplits * (kHeadDim + kPartialExtra)) : out;
    attend.splits = split ? kSplits : 1;
    attend.split_slots = split ? kSplitSlots : kSinks + kRing;
    op = add(list, OpKind::kAttention, attend, {queries, partials, keys, values});
    op->k_format = k;
    op->v_format = v;
    if (split) {
      add(list, OpKind::kAttentionMerge,
          AttentionMergePush{kHeads, kHeadDim, kOutStride, kSplits, kSplitSlots, 0},
          {partials, out});
    }
    std::snprintf(name, sizeof(name), "attention_%s", formats);
    expect(list, name, out, kFloatLimit);
  }
  std::snprintf(name, sizeof(name), "rope_append_%s", formats);
  expect(StepList::kDecode, name, queries, kFloatLimit);
  std::snprintf(name, sizeof(name), "rope_append_%s (keys)", formats);
  expect(StepList::kDecode, name, keys, kWordsLimit)->words = true;
  std::snprintf(name, sizeof(name), "rope_append_%s (values)", formats);
  expect(StepList::kDecode, name, values, kWordsLimit)->words = true;
}

void CheckPlan::addLatents() {
  const BufferRef weight = vector(kLatentQueries);  // of norms
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4}) {
    addLatents(format, weight);
  }
}

void CheckPlan::addLatents(KvFormat format, const BufferRef& weight) {
  const CacheShape shape = {1, kLatentCols, kSinks, kRing - kChunk + 1, kRing};
  const BufferRef memory = take(ArenaKind::kCache, sideLayout(format, shape).bytes / 4);
  LatentAppendPush append = {};
  append.n_heads = kLatentHeads;
  append.latent_dim = kLatentDim;
  append.rope_dim = kLatentRope;
  append.pair_stride = 1;
  append.heads_stride = append.vector_stride = kQkvStride;
  append.head_dim = kHeadDim;
  append.vector_first = kLatentHeads * kHeadDim;
  append.query_stride = kLatentQueries;
  append.sinks = kSinks;
  append.all_sinks = kSinks;
  append.rotation_stride = kRotationWords;
  append.key_rotation = append.query_rotation =
      static_cast<uint32_t>(stepRotationWord(kChunk, kViews, kRotationWords, 0));
  append.sink_rotation = append.key_rotation + kHeadDim;
  char name[48];
  for (const StepList list : kLists) {
    const BufferRef queries = take(ArenaKind::kActivations, kChunk * kLatentQueries);
    RmsNormPush norm = {kLatentQueries, kCols, kLatentQueries, 0, 1e-5f, 1, 0, 0, 0, 1, 0};
    add(list, OpKind::kRmsNorm, norm, {in_, queries, weight});
    Op* op = add(list, OpKind::kLatentAppend, append, {qkv_, queries, memory, qkv_});
    op->k_format = op->v_format = format;
    std::snprintf(name, sizeof(name), "latent_append_%s", kvFormatName(format));
    expect(list, name, queries, kFloatLimit);
    const bool split = list == StepList::kDecode;
    const uint32_t splits = split ? kSplits : 1;
    const BufferRef sums = take(ArenaKind::kActivations, kChunk * kLatentSums);
    const BufferRef partials =
        split ? take(ArenaKind::kActivations, kLatentHeads * kSplits * (kLatentDim + kPartialExtra))
              : sums;
    op = add(list, OpKind::kLatentAttention,
             LatentAttentionPush{kLatentHeads, kLatentDim, kLatentRope, kLatentQueries, kLatentSums,
                                 0, kSinks, kSinks, kRing, splits,
                                 split ? kSplitSlots : kSinks + kRing, 0.1f},
             {queries, partials, memory});
    op->k_format = op->v_format = format;
    if (split) {
      add(list, OpKind::kAttentionMerge,
          AttentionMergePush{kLatentHeads, kLatentDim, kLatentSums, kSplits, kSplitSlots, 0},
          {partials, sums});
    }
    add(list, OpKind::kHadamard,
        HadamardPush{kLatentHeads, kLatentDim, hadamardBlock(kLatentDim), kLatentSums},
        {sums, sums});
    std::snprintf(name, sizeof(name), "latent_attention_%s", kvFormatName(format));
    expect(list, name, sums, kFloatLimit);
  }
  std::snprintf(name, sizeof(name), "latent_append_%s (memory)", kvFormatName(format));
  expect(StepList::kDecode, name, memory, kWordsLimit)->words = true;
}

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
