// Heads of every size, in every pair of cache formats: stored and attended to in one step, against plain computation in
// double. Device/Kernels is instantiated in test_kernels.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "exec/sampler.h"
#include "kv/quantise.h"
#include "plan/memory_layout.h"
#include "support/kernel_rig.h"
#include "support/product.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_heads {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

constexpr uint32_t kChunk = 5, kSinks = 3, kRing = 150;
constexpr KvFormat kFormats[] = {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4};

struct HeadCase {
  uint32_t n_heads, n_kv_heads, head_dim, rope_dims, splits;
};

double real(float value) { return static_cast<double>(value); }

/// Slow to compute, and the same for all formats of a shape.
struct Known {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> spread;    ///< by token and head
  std::map<std::pair<bool, KvFormat>, std::vector<uint32_t>> old_memory;  ///< by side and format
};

/// A layer whose memory is full of old data; its tokens come from `qkv`.
class Layer {
 public:
  Layer(const HeadCase& shape, KvFormat k, KvFormat v, Known* known)
      : shape_(shape),
        k_(k),
        v_(v),
        d_(shape.head_dim),
        rig(kChunk, shape.rope_dims),
        random_(d_),
        known_(*known) {
    const CacheShape cache = {shape.n_kv_heads, d_, kSinks, 0, kRing};
    keys_ = rig.output(sideLayout(k, cache).bytes / 4);
    values_ = rig.output(sideLayout(v, cache).bytes / 4);
    const uint32_t width = shape.n_heads * d_;
    queries_ = rig.output(kChunk * 2 * width);
    out_ = rig.output(kChunk * width);
    stride_ = (shape.n_heads + 2 * shape.n_kv_heads) * d_;
    qkv_ = random_.normals(kChunk * stride_);
    const BufferRef in = rig.input(qkv_);
    const BufferRef partials =
        shape.splits > 1
            ? rig.activation(kChunk * shape.n_heads * shape.splits * (d_ + kPartialExtra))
            : out_;
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      const bool split = list == StepList::kDecode && shape.splits > 1;
      add(list, OpKind::kRopeAppend, appendPush(), {in, queries_, keys_, values_});
      attend_ = attentionPush(split ? shape.splits : 1);
      add(list, OpKind::kAttention, attend_, {queries_, split ? partials : out_, keys_, values_});
      if (split) {
        rig.add(list, OpKind::kAttentionMerge,
                AttentionMergePush{shape.n_heads, d_, width, shape.splits, attend_.split_slots, 0},
                {partials, out_});
      }
    }
  }

  /// Tokens go to the ring one after another, wrapping, the last to a sink.
  void prepare(uint32_t n_tokens) {
    restore(false, k_, keys_);
    restore(true, v_, values_);
    rig.header().n_tokens = n_tokens;
    for (uint32_t t = 0; t < n_tokens; ++t) {
      rig.view(t) = {slotOf(t), kSinks, (t + 20) % kRing, kRing - 10, kRing, 0, 0, kRing};
      for (uint32_t i = 0; i < shape_.rope_dims; ++i) {
        rig.rotations(t)[2 * i] = static_cast<float>(std::cos(angle(t, i)));
        rig.rotations(t)[2 * i + 1] = static_cast<float>(std::sin(angle(t, i)));
      }
    }
  }

  void expectQueries(uint32_t t) {
    for (uint32_t head = 0; head < shape_.n_heads; ++head) {
      const std::vector<double> window =
          k_ == KvFormat::kF16 ? turned(t, 0, head) : spreadOf(t, head);
      const std::vector<double> sink = turned(t, 1, head);
      const float* got = rig.floats(queries_) + (t * shape_.n_heads + head) * 2 * d_;
      for (uint32_t c = 0; c < d_; ++c) {
        ASSERT_NEAR(got[c], window[c], 1e-5) << "token " << t << " head " << head << " dim " << c;
        ASSERT_NEAR(got[d_ + c], sink[c], 1e-5) << "token " << t << " head " << head;
      }
    }
  }

  void expectStored(uint32_t t) {
    const bool in_sink = slotOf(t) < kSinks;
    for (uint32_t head = 0; head < shape_.n_kv_heads; ++head) {
      const bool whole = in_sink || k_ == KvFormat::kF16;
      expectSlot(keys(), k_, head, t,
                 whole ? turned(t, 0, shape_.n_heads + head) : spreadOf(t, shape_.n_heads + head));
      const float* value =
          qkv_.data() + t * stride_ + (shape_.n_heads + shape_.n_kv_heads + head) * size_t{d_};
      expectSlot(values(), v_, head, t, std::vector<double>(value, value + d_));
    }
  }

  void expectAttended(uint32_t n_tokens, double error) {
    const CacheShape cache = {shape_.n_kv_heads, d_, kSinks, 0, kRing};
    const Unpacked keys_now(keys(), cache), values_now(values(), cache);
    const uint32_t width = shape_.n_heads * d_;
    for (uint32_t i = 0; i < n_tokens * shape_.n_heads; ++i) {
      const uint32_t t = i / shape_.n_heads, head = i % shape_.n_heads;
      const std::vector<double> want = attended(
          attend_, keys_now, values_now, rig.floats(queries_) + t * 2 * width, head, rig.view(t));
      for (uint32_t c = 0; c < d_; ++c) {
        ASSERT_NEAR(rig.floats(out_)[t * width + head * d_ + c], want[c], error)
            << "token " << t << " head " << head << " dim " << c;
      }
    }
  }

 private:
  template <typename Push>
  void add(StepList list, OpKind kind, const Push& push, const std::vector<BufferRef>& bindings) {
    Op& op = rig.add(list, kind, push, bindings);
    op.k_format = k_;
    op.v_format = v_;
  }

  RopeAppendPush appendPush() const {
    RopeAppendPush push = {};
    push.n_heads = shape_.n_heads;
    push.n_kv_heads = shape_.n_kv_heads;
    push.head_dim = d_;
    push.rope_dims = shape_.rope_dims;
    push.pair_stride = shape_.rope_dims / 2;
    push.qkv_stride = stride_;
    push.query_stride = 2 * shape_.n_heads * d_;
    push.sinks = kSinks;
    push.rotation_stride = rig.rotationStride();
    push.key_rotation = push.query_rotation = rig.rotationWord(0);
    push.sink_rotation = rig.rotationWord(1);
    return push;
  }

  AttentionPush attentionPush(uint32_t splits) const {
    AttentionPush push = {};
    push.n_heads = shape_.n_heads;
    push.n_kv_heads = shape_.n_kv_heads;
    push.head_dim = d_;
    push.query_stride = 2 * shape_.n_heads * d_;
    push.out_stride = shape_.n_heads * d_;
    push.sinks = kSinks;
    push.ring = kRing;
    push.splits = splits;
    push.split_slots = (kSinks + kRing + splits - 1) / splits;
    push.scale = 1.0f / std::sqrt(static_cast<float>(d_));
    return push;
  }

  KvSide side(KvFormat format, const BufferRef& words) {
    return KvSide(format, CacheShape{shape_.n_kv_heads, d_, kSinks, 0, kRing},
                  const_cast<uint32_t*>(rig.words(words)));
  }
  KvSide keys() { return side(k_, keys_); }
  KvSide values() { return side(v_, values_); }

  /// The memory before a step: the same before each.
  void restore(bool of_values, KvFormat format, const BufferRef& words) {
    std::vector<uint32_t>& before = known_.old_memory[{of_values, format}];
    if (before.empty()) {
      before.resize(words.size_bytes / 4);
      Random random(d_ + (of_values ? 2 : 1));
      KvSide to(format, CacheShape{shape_.n_kv_heads, d_, kSinks, 0, kRing}, before.data());
      for (uint32_t head = 0; head < shape_.n_kv_heads; ++head) {
        for (uint32_t slot = 0; slot < kSinks; ++slot) {
          to.storeSink(head, slot, random.normals(d_).data());
        }
        for (uint32_t slot = 0; slot < kRing; ++slot) {
          to.storeRing(head, slot, random.normals(d_).data());
        }
      }
    }
    std::copy(before.begin(), before.end(), const_cast<uint32_t*>(rig.words(words)));
  }

  static uint32_t slotOf(uint32_t t) {
    return t == kChunk - 1 ? 1 : kSinks + (kRing - 2 + t) % kRing;
  }
  double angle(uint32_t t, uint32_t i) const {  // i counts over both tables
    return 0.7 * t + 0.9 * i + 0.01 * i * i;
  }
  /// Head `head` of qkv, rotated by table `table`.
  std::vector<double> turned(uint32_t t, uint32_t table, uint32_t head) const {
    const float* in = qkv_.data() + t * size_t{stride_} + head * size_t{d_};
    std::vector<double> out(in, in + d_);
    const uint32_t half = shape_.rope_dims / 2;
    for (uint32_t i = 0; i < half; ++i) {
      const double a = angle(t, table * half + i);
      out[i] = real(in[i]) * std::cos(a) - real(in[i + half]) * std::sin(a);
      out[i + half] = real(in[i]) * std::sin(a) + real(in[i + half]) * std::cos(a);
    }
    return out;
  }

  /// Independent of the step: computed once.
  const std::vector<double>& spreadOf(uint32_t t, uint32_t head) {
    std::vector<double>& known = known_.spread[{t, head}];
    if (known.empty()) {
      known = spread(turned(t, 0, head));
    }
    return known;
  }

  void expectSlot(const KvSide& from, KvFormat format, uint32_t head, uint32_t t,
                  const std::vector<double>& want) {
    const bool in_sink = slotOf(t) < kSinks;
    std::vector<float> got(d_);
    in_sink ? from.loadSink(head, slotOf(t), got.data())
            : from.loadRing(head, slotOf(t) - kSinks, got.data());
    // Each group separately: every value of a head is compared, with its own scale.
    for (uint32_t first = 0; first < d_; first += kKvGroup) {
      double errors = 0, squares = 0;
      for (uint32_t c = first; c < std::min(first + kKvGroup, d_); ++c) {
        errors += std::pow(real(got[c]) - want[c], 2);
        squares += std::pow(want[c], 2);
      }
      const double limit = in_sink || format == KvFormat::kF16 ? 1e-3
                           : format == KvFormat::kInt8         ? 1e-2
                                                               : 0.15;
      ASSERT_LT(std::sqrt(errors / squares), limit)
          << "token " << t << " head " << head << " from " << first;
    }
  }

  HeadCase shape_;
  KvFormat k_, v_;
  uint32_t d_;

 public:
  KernelRig rig;

 private:
  Random random_;
  Known& known_;
  BufferRef keys_, values_, queries_, out_;
  std::vector<float> qkv_;
  uint32_t stride_ = 0;
  AttentionPush attend_ = {};
};

RUNS_ON(kCpu);
TEST_P(Kernels, heads_of_any_size_are_stored_and_seen_in_every_pair_of_formats) {
  // 512: Gemma 4's full layers. 258: just above a former limit, not a multiple of the vector size.
  const HeadCase cases[] = {{8, 1, 512, 512, 3}, {8, 2, 512, 128, 1}, {4, 1, 320, 320, 2},
                            {8, 1, 258, 258, 2}, {4, 2, 48, 48, 2},   {4, 2, 40, 20, 1}};
  // Pipelines that divide the work as a GPU would take long to compile on a CPU.
  const bool as_gpu = GetParam().path == Path::kShared;
  const bool some = as_gpu || (onVulkan() && !allCases());
  for (const HeadCase& shape : cases) {
    if ((as_gpu && shape.head_dim % 64 != 0) || isOthersTurn(static_cast<size_t>(&shape - cases))) {
      continue;
    }
    Known known;
    for (const KvFormat k : kFormats) {
      for (const KvFormat v : kFormats) {
        // All pairs of the widest, of the others each format of either side once; on Vulkan f16 is tested elsewhere.
        const bool alike = (static_cast<int>(k) + static_cast<int>(v)) % 3 == 0;
        const bool whole = k == KvFormat::kF16 && v == KvFormat::kF16;
        if ((&shape != cases || some) && (!alike || (onVulkan() && whole))) {
          continue;
        }
        if (onVulkan() && !allCases() && (k < v) != (&shape == cases)) {
          continue;
        }
        SCOPED_TRACE(std::to_string(shape.head_dim) + " " + kvFormatName(k) + " " +
                     kvFormatName(v));
        Layer layer(shape, k, v, &known);
        load(&layer.rig);
        // Queries for int8 keys may have 16 bits.
        const bool rounds = k == KvFormat::kInt8 && GetParam().path == Path::kSimd;
        for (const uint32_t n_tokens : {1u, 3u, kChunk}) {
          SCOPED_TRACE(n_tokens);
          layer.rig.clearOutputs();
          layer.prepare(n_tokens);
          run(&layer.rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
          for (uint32_t t = 0; t < n_tokens && !HasFatalFailure(); ++t) {
            layer.expectQueries(t);
            layer.expectStored(t);
          }
          if (!HasFatalFailure()) {
            layer.expectAttended(n_tokens, rounds ? 6e-5 : 2e-5);
          }
        }
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_heads

namespace oriel_internal::test::test_kernels_top {

// The kernels that find the best tokens, against a plain sort. Device/Kernels is instantiated in
// test_kernels.cpp.

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Ids of all logits above minus infinity, best first, on a tie the lower id first.
std::vector<uint32_t> sortedIds(const std::vector<float>& logits) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > -kInfinity) {
      ids.push_back(id);
    }
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  return ids;
}

struct TopRig : KernelRig {
  explicit TopRig(const std::vector<float>& logits)
      : n_vocab(static_cast<uint32_t>(logits.size())) {
    const TopPush push = {n_vocab, topBlocks(n_vocab), 0};
    const BufferRef in = input(logits);
    keys = output(push.blocks);
    top = output(sizeof(TopTokens) / 4);
    add(StepList::kHead, OpKind::kTopBlocks, push, {in, keys});
    add(StepList::kHead, OpKind::kTopTokens, push, {in, top, keys});
  }
  TopTokens result() const {
    TopTokens tokens;
    std::memcpy(static_cast<void*>(&tokens), words(top), sizeof(tokens));
    return tokens;
  }

  uint32_t n_vocab;
  BufferRef keys;
  BufferRef top;
};

void expectBest(const TopTokens& top, const std::vector<float>& logits) {
  const std::vector<uint32_t> want = sortedIds(logits);
  ASSERT_LE(top.count, std::min<size_t>(want.size(), kTopCapacity));
  for (uint32_t i = 0; i < top.count; ++i) {
    ASSERT_EQ(want[i], top.best[i].id) << i;
    ASSERT_EQ(0, std::memcmp(&logits[want[i]], &top.best[i].logit, sizeof(float))) << i;
  }
  if (top.all != 0) {
    EXPECT_EQ(want.size(), top.count);
  }
}

TEST_P(Kernels, top_tokens_are_the_first_of_all_that_are_sorted) {
  size_t number = 0;
  for (const uint32_t n_vocab :
       {1u, 5u, 127u, 128u, 129u, 160u, 161u, 300u, 2047u, 2048u, 2049u, 5000u, 49152u, 262144u}) {
    number += 1;
    for (const float scale : {4.0f, 1e-40f}) {  // and subnormal ones
      if (!onVulkan() && isOthersTurn(number++)) {
        continue;
      }
      SCOPED_TRACE(std::to_string(n_vocab) + " times " + std::to_string(scale));
      Random random(n_vocab);
      std::vector<float> logits = random.normals(n_vocab, scale);
      if (n_vocab >= 127) {
        logits[n_vocab / 2] = NAN;
        logits[n_vocab / 3] = -NAN;
        logits[n_vocab / 4] = -kInfinity;
        logits[n_vocab / 5] = kInfinity;
        logits[n_vocab - 1] = logits[7] = 3 * scale;
        logits[n_vocab - 2] = -0.0f;
        logits[3] = 0.0f;
      }
      TopRig rig(logits);
      load(&rig);
      run(&rig, StepRun::kHead);
      const TopTokens top = rig.result();
      expectBest(top, logits);
      const size_t numbers = sortedIds(logits).size();
      EXPECT_EQ(std::min<size_t>(numbers, kTopCapacity), top.count);
      EXPECT_EQ(numbers <= kTopCapacity ? 1u : 0u, top.all);
    }
  }
}

// The likeliest tokens of many vocabularies have the lowest ids.
RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_tokens_are_found_where_they_are_neighbours) {
  std::vector<float> logits(50000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = -0.001f * static_cast<float>(i);
  }
  for (int turn = 0; turn < 2; ++turn) {
    TopRig rig(logits);
    load(&rig);
    run(&rig, StepRun::kHead);
    expectBest(rig.result(), logits);
    EXPECT_EQ(kTopCapacity, rig.result().count);
    std::reverse(logits.begin(), logits.end());
  }
}

TEST_P(Kernels, top_tokens_have_the_lowest_of_many_equals_first) {
  for (const uint32_t n_vocab : {200u, 5000u, 49152u}) {
    for (const uint32_t values : {1u, 2u, 40u, 1000u}) {
      SCOPED_TRACE(std::to_string(values) + " among " + std::to_string(n_vocab));
      Random random(values);
      std::vector<float> logits(n_vocab);
      for (float& logit : logits) {
        logit = static_cast<float>(random.below(values)) - 20.0f;
      }
      TopRig rig(logits);
      load(&rig);
      run(&rig, StepRun::kHead);
      const TopTokens top = rig.result();
      expectBest(top, logits);
      EXPECT_GE(top.count, 1u) << "enough to choose greedily";
      EXPECT_EQ(0u, top.all);
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_tokens_are_none_where_no_logit_is_a_number) {
  for (const float nothing : {-kInfinity, static_cast<float>(NAN)}) {
    const std::vector<float> logits(3000, nothing);
    TopRig rig(logits);
    load(&rig);
    run(&rig, StepRun::kHead);
    EXPECT_EQ(0u, rig.result().count);
    EXPECT_EQ(1u, rig.result().all);
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_blocks_have_keys_that_order_as_their_best_logits_do) {
  Random random(3);
  std::vector<float> logits = random.normals(7000);
  logits[11] = NAN;
  TopRig rig(logits);
  load(&rig);
  run(&rig, StepRun::kHead);
  std::vector<float> best(kMaxTopBlocks, -kInfinity);
  for (uint32_t id = 0; id < logits.size(); ++id) {
    best[id % kMaxTopBlocks] = std::fmax(best[id % kMaxTopBlocks], logits[id]);
  }
  const uint32_t* const keys = rig.words(rig.keys);
  for (uint32_t a = 0; a + 1 < kMaxTopBlocks; ++a) {
    ASSERT_EQ(best[a] < best[a + 1], keys[a] < keys[a + 1]) << a;
    ASSERT_NE(0u, keys[a]);
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_top
