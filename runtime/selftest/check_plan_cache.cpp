#include <cstdio>
#include <initializer_list>

#include "selftest/check_plan_parts.h"

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

}  // namespace oriel_internal
