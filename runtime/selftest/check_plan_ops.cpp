#include <cstdio>
#include <initializer_list>

#include "plan/codebooks.h"
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

// ---- Weights and experts ------------------------------------------------------------------------

namespace {

constexpr uint32_t kExperts = 4;
constexpr uint32_t kExpertsHeld = 3;  // in the stack: row groups of a matrix
constexpr uint32_t kExpertsUsed = 2;
constexpr uint32_t kExpertRows = 13;
constexpr uint32_t kRoutes = kChunk * kExpertsUsed;
// tried for each type and use; the executor knows how many exist
constexpr uint8_t kCandidates = 8;

}  // namespace

// Two experts for each token, chosen by the first words of its row.
BufferRef CheckPlan::addRoutes(StepList list) {
  const BufferRef routes =
      take(ArenaKind::kActivations, uint64_t{kRouteParts} * kRoutes + kExperts + 1);
  add(list, OpKind::kRoute, RoutePush{kExperts, kExpertsUsed, kCols, kRoutes, 0, 1, 0, 1},
      {in_, routes});
  add(list, OpKind::kSortRoutes, SortRoutesPush{kExperts, kExpertsUsed, kRoutes}, {routes, routes});
  return routes;
}

void CheckPlan::addExperts() {
  const BufferRef bias = vector(kExperts);
  for (const StepList list : kLists) {
    const BufferRef routes = addRoutes(list);
    const auto part = [&](uint32_t first, uint64_t words) {
      return BufferRef(routes.arena, routes.segment, routes.offset_bytes + 4ull * first, 4 * words);
    };
    expect(list, "route", part(0, kRoutes), 0)->words = true;
    expect(list, "route (weights)", part(kRoutes, kRoutes), kFloatLimit);
    expect(list, "sort_routes", part(2 * kRoutes, 2ull * kRoutes + kExperts + 1), 0)->words = true;

    const BufferRef biased = take(ArenaKind::kActivations, 2ull * kRoutes);
    add(list, OpKind::kRoute, RoutePush{kExperts, kExpertsUsed, kCols, kRoutes, 1, 0, 1, 1},
        {in_, biased, bias});
    expect(list, "route (sigmoid)", biased, kFloatLimit);

    constexpr uint32_t kHalf = kCols / 2;  // as many rows as routes
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kHalf);
    add(list, OpKind::kExpertCombine, ExpertCombinePush{kHalf, kExpertsUsed, kRoutes, kHalf, kHalf},
        {in_, out, routes});
    expect(list, "expert_combine", out, kFloatLimit);
    RoutePush grouped = {kExperts, kExpertsUsed, kCols, kRoutes, 1, 1, 1, 1, 2, 1};
    const BufferRef in_groups = take(ArenaKind::kActivations, 2ull * kRoutes);
    add(list, OpKind::kRoute, grouped, {in_, in_groups, bias});
    expect(list, "route (groups)", in_groups, kFloatLimit);
    const BufferRef changed = take(ArenaKind::kActivations, kRoutes * kExperts);
    for (const uint32_t change : {kChangeAdd, kChangeTimes}) {
      add(list, OpKind::kExpertBias, ExpertBiasPush{1, kExpertsUsed, kRoutes, kExperts, 1, change},
          {bias, changed, routes});
    }
    expect(list, "expert_bias", changed, kFloatLimit);
  }
}

// The matrix as a stack of smaller ones, for all experts except the last.
void CheckPlan::addExpertProduct(WeightType type, const BufferRef& weights) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  ExpertMatmulPush push = {};
  push.rows = kExpertRows;
  geometry.describe(&push);
  push.in_stride = kCols;
  push.out_stride = kExpertRows;
  push.n_experts = kExperts;
  push.n_used = kExpertsUsed;
  push.routes = kRoutes;
  push.of_tokens = 1;
  push.count = kExpertsHeld;
  char name[32];
  std::snprintf(name, sizeof(name), "expert_matmul_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    BufferRef* const routes = &routes_[list == StepList::kChunk ? 1 : 0];
    if (routes->size_bytes == 0) {
      *routes = addRoutes(list);
    }
    const BufferRef out = take(ArenaKind::kActivations, kRoutes * kExpertRows);
    add(list, OpKind::kExpertMatmul, push, {weights, out, in_, *routes})->weights = type;
    expect(list, name, out, kFloatLimit);
  }
}

// The matrix as a stack for three heads with the same input.
void CheckPlan::addHeadProduct(WeightType type, const BufferRef& weights) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  constexpr uint32_t kHeadRows = kExpertRows;
  const uint32_t stride = kExpertsHeld * kHeadRows;
  const HeadMatmulPush push = {kHeadRows,
                               geometry.units,
                               geometry.groupWords(),
                               geometry.sideWord(),
                               kCols,
                               0,
                               stride,
                               kHeadRows,
                               0,
                               0,
                               kExpertsHeld};
  char name[32];
  std::snprintf(name, sizeof(name), "head_matmul_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    const BufferRef out = take(ArenaKind::kActivations, kChunk * stride);
    add(list, OpKind::kHeadMatmul, push, {weights, out, in_})->weights = type;
    expect(list, name, out, kFloatLimit);
  }
}

void CheckPlan::addMatrix(WeightType type) {
  const BufferRef weights = matrix(type);
  addEmbed(type, weights);
  addProduct(type, weights, kCandidates);
  addExpertProduct(type, weights);
  addHeadProduct(type, weights);
}

void CheckPlan::addEmbed(WeightType type, const BufferRef& weights) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  char name[32];
  const EmbedPush embed = {
      kCols, geometry.groupWords(), geometry.sideWord(), 0, kRows, kCols, 1.5f, 0, 0};
  std::snprintf(name, sizeof(name), "embed_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kCols);
    add(list, OpKind::kEmbed, embed, {weights, out})->weights = type;
    expect(list, name, out, kFloatLimit);
  }
}

// `candidates`: number to try; 0: the executor's choice.
void CheckPlan::addProduct(WeightType type, const BufferRef& weights, uint8_t candidates) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  MatmulPush push = {};
  push.rows = kRows;
  geometry.describe(&push);
  push.in_stride = kCols;
  push.out_stride = kRows;
  char name[32];
  std::snprintf(name, sizeof(name), "matmul_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    for (uint8_t candidate = candidates != 0 ? 1 : 0; candidate <= candidates; ++candidate) {
      const BufferRef out = take(ArenaKind::kActivations, kChunk * kRows);
      Op* const op = add(list, OpKind::kMatmul, push, {weights, out, in_, staged_});
      op->weights = type;
      op->candidate = candidate;
      Check* const check = expect(list, name, out, kFloatLimit);
      check->weights = type;
      check->candidate = candidates != 0 ? candidate : kChosenCandidate;
    }
  }
  if (candidates == 0 && plan_.n_ops[static_cast<uint32_t>(StepList::kDecode)] < kMaxOps / 2) {
    addMadeProducts(type, weights, push);
  }
}

// A norm and an activation, each followed by a product. Only the product's result is compared, because a device may
// leave the norm or the activation to the product.
void CheckPlan::addMadeProducts(WeightType type, const BufferRef& weights, const MatmulPush& push) {
  if (norm_.size_bytes == 0) {
    norm_ = vector(kCols);
  }
  char name[48];
  for (const bool normed : {true, false}) {
    const BufferRef row = take(ArenaKind::kActivations, kCols);
    const BufferRef out = take(ArenaKind::kActivations, kRows);
    if (normed) {
      add(StepList::kDecode, OpKind::kRmsNorm,
          RmsNormPush{kCols, kCols, kCols, 0, 1e-5f, 1, 0, 0, 0, 1.0f, 0}, {in_, row, norm_});
    } else {
      add(StepList::kDecode, OpKind::kGatedActivation,
          GatedActivationPush{kCols, 2 * kCols, 0, kCols, kCols, kSilu, 1}, {in_, row});
    }
    add(StepList::kDecode, OpKind::kMatmul, push, {weights, out, row, staged_})->weights = type;
    std::snprintf(name, sizeof(name), "matmul_%s of %s", weightTypeName(type),
                  normed ? "a norm" : "an activation");
    expect(StepList::kDecode, name, out, kFloatLimit);
  }
}

// ---- The cache and attention --------------------------------------------------------------------

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
