// Kernels that write and read the cache, in every variant, against a plain computation in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kv/quantise.h"
#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_attention {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

// ---- rope_append ---------------------------------------------------------------------------------

struct RopeCase {
  uint32_t n_heads, n_kv_heads, head_dim, rope_dims;
  bool halves;  // pairs (i, i + rope_dims / 2) instead of (2i, 2i + 1)
};

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, rope_append_rotates_both_queries_and_stores_keys_and_values_in_their_slots) {
  constexpr uint32_t kChunk = 4, kSinks = 3, kRing = 7;
  const RopeCase cases[] = {{1, 1, 8, 8, false},    {4, 2, 16, 16, true},    {3, 3, 20, 20, false},
                            {9, 3, 64, 64, false},  {6, 1, 96, 48, true},    {2, 2, 256, 256, true},
                            {2, 1, 20, 10, false},  {2, 1, 16, 2, true},     {8, 1, 512, 512, true},
                            {8, 2, 512, 256, true}, {2, 1, 320, 320, false}, {4, 2, 48, 40, true}};
  for (const RopeCase& shape : cases) {
    SCOPED_TRACE(std::to_string(shape.head_dim) + " " + std::to_string(shape.rope_dims));
    Random random(shape.head_dim + shape.n_heads);
    KernelRig rig(kChunk, shape.rope_dims);
    const uint32_t d = shape.head_dim;
    const uint32_t qkv_stride = unitsOf((shape.n_heads + 2 * shape.n_kv_heads) * d) * kUnit;
    const uint32_t query_stride = shape.n_heads * 2 * d + 8;
    std::vector<float> qkv =
        paddedRows(kChunk, (shape.n_heads + 2 * shape.n_kv_heads) * d, qkv_stride, &random);
    // Values whose rounding is delicate: overflow, subnormal halves, ties.
    const float delicate[] = {65504.0f, -65520.0f, 65519.9f,      1e-8f, 2.98023223876953125e-8f,
                              3e-8f,    -6.1e-5f,  1.00048828125f};
    const uint32_t v_at = (shape.n_heads + shape.n_kv_heads) * d;
    std::copy(std::begin(delicate), std::end(delicate), qkv.begin() + v_at);
    const BufferRef in = rig.input(qkv);
    const BufferRef queries = rig.output(kChunk * query_stride);
    const uint32_t cache_words = shape.n_kv_heads * (kSinks + kRing) * d / 2;
    const BufferRef keys = rig.output(cache_words);
    const BufferRef values = rig.output(cache_words);
    RopeAppendPush push = {};
    push.n_heads = shape.n_heads;
    push.n_kv_heads = shape.n_kv_heads;
    push.head_dim = d;
    push.rope_dims = shape.rope_dims;
    push.pair_stride = shape.halves ? shape.rope_dims / 2 : 1;
    push.qkv_stride = qkv_stride;
    push.query_stride = query_stride;
    push.sinks = kSinks;
    rig.rings[0] = kRing;
    push.rotation_stride = rig.rotationStride();
    push.key_rotation = push.query_rotation = rig.rotationWord(0);
    push.sink_rotation = rig.rotationWord(1);
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kRopeAppend, push, {in, queries, keys, values});
    }
    load(&rig);

    const uint32_t slots[kChunk] = {2, kSinks, kSinks + kRing - 1, 0};
    std::vector<double> angles(kChunk * shape.rope_dims);  // [token][table][pair]
    for (double& angle : angles) {
      angle = 3.0 * static_cast<double>(random.normal());
    }
    // Value `dim` of the head at `at`, rotated by the token's table `table`.
    const auto rotated = [&](uint32_t t, uint32_t table, size_t at, uint32_t dim) {
      const double x = static_cast<double>(qkv[at + dim]);
      if (dim >= shape.rope_dims) {
        return x;
      }
      const uint32_t half = shape.rope_dims / 2;
      const bool first = shape.halves ? dim < half : dim % 2 == 0;
      const uint32_t pair = shape.halves ? dim % half : dim / 2;
      const uint32_t stride = shape.halves ? half : 1;
      const double partner =
          static_cast<double>(qkv[first ? at + dim + stride : at + dim - stride]);
      const double angle = angles[t * shape.rope_dims + table * half + pair];
      return first ? x * std::cos(angle) - partner * std::sin(angle)
                   : x * std::cos(angle) + partner * std::sin(angle);
    };
    for (const uint32_t n_tokens : {1u, 3u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      for (uint32_t t = 0; t < kChunk; ++t) {
        rig.view(t).slot = slots[t];
        for (uint32_t i = 0; i < shape.rope_dims; ++i) {
          rig.rotations(t)[2 * i] = static_cast<float>(std::cos(angles[t * shape.rope_dims + i]));
          rig.rotations(t)[2 * i + 1] =
              static_cast<float>(std::sin(angles[t * shape.rope_dims + i]));
        }
      }
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t i = 0; i < query_stride; ++i) {
          const uint32_t head = i / (2 * d), table = i / d % 2, dim = i % d;
          const bool written = t < n_tokens && head < shape.n_heads;
          const double want =
              written ? rotated(t, table, size_t{t} * qkv_stride + head * d, dim) : kUntouched;
          ASSERT_NEAR(rig.floats(queries)[t * query_stride + i], want, 2e-6) << t << " " << i;
        }
      }
      for (uint32_t slot = 0; slot < kSinks + kRing; ++slot) {
        const uint32_t* found = std::find(slots, slots + n_tokens, slot);
        const uint32_t t = static_cast<uint32_t>(found - slots);
        for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
          const uint32_t vector = slot < kSinks
                                      ? head * kSinks + slot
                                      : shape.n_kv_heads * kSinks + head * kRing + slot - kSinks;
          for (uint32_t dim = 0; dim < d; ++dim) {
            const uint32_t k_word = rig.words(keys)[vector * d / 2 + dim / 2];
            const uint32_t v_word = rig.words(values)[vector * d / 2 + dim / 2];
            if (t == n_tokens) {
              ASSERT_EQ(k_word, floatToBits(KernelRig::kUntouched));
              ASSERT_EQ(v_word, floatToBits(KernelRig::kUntouched));
              continue;
            }
            const size_t k_at = size_t{t} * qkv_stride + (shape.n_heads + head) * d;
            const double key = rotated(t, 0, k_at, dim);
            const uint16_t k_half = static_cast<uint16_t>(k_word >> (16 * (dim % 2)));
            ASSERT_NEAR(halfToFloat(k_half), key, 1e-6 + std::fabs(key) / 2048) << slot;
            // Values are only rounded: alike on every device.
            const size_t value_at = k_at + shape.n_kv_heads * d + dim;
            const uint16_t v_half = static_cast<uint16_t>(v_word >> (16 * (dim % 2)));
            ASSERT_EQ(v_half, floatToHalf(qkv[value_at])) << qkv[value_at];
          }
        }
      }
    }
  }
}

// ---- attention -----------------------------------------------------------------------------------

struct Seen {
  uint32_t n_sinks, ring_begin, n_ring;
};

struct AttentionCase {
  uint32_t n_heads, n_kv_heads, head_dim, sinks, ring, splits, split_slots;
};

// A token's visible values for a head, in double.
class AttentionReference {
 public:
  AttentionReference(const AttentionCase& shape, const std::vector<float>& queries,
                     uint32_t query_stride, const std::vector<double>& keys,
                     const std::vector<double>& values, double scale)
      : shape_(shape),
        queries_(queries),
        query_stride_(query_stride),
        keys_(keys),
        values_(values),
        scale_(scale) {}

  std::vector<double> output(uint32_t t, uint32_t head, const Seen& seen) const {
    const uint32_t d = shape_.head_dim;
    const uint32_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
    std::vector<double> out(d, 0.0);
    std::vector<double> scores;
    std::vector<size_t> at;
    for (uint32_t i = 0; i < seen.n_sinks + seen.n_ring; ++i) {
      const bool sink = i < seen.n_sinks;
      const uint32_t ring_slot = (seen.ring_begin + i - seen.n_sinks) % shape_.ring;
      at.push_back(size_t{d} *
                   (sink ? kv_head * shape_.sinks + i
                         : shape_.n_kv_heads * shape_.sinks + kv_head * shape_.ring + ring_slot));
      double score = 0;
      for (uint32_t c = 0; c < d; ++c) {
        score +=
            static_cast<double>(queries_[size_t{t} * query_stride_ + (head * 2 + sink) * d + c]) *
            keys_[at.back() + c];
      }
      scores.push_back(score * scale_);
    }
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double weight = std::exp(scores[i] - most);
      sum += weight;
      for (uint32_t c = 0; c < d; ++c) {
        out[c] += weight * values_[at[i] + c];
      }
    }
    for (double& value : out) {
      value /= sum;
    }
    return out;
  }

 private:
  const AttentionCase& shape_;
  const std::vector<float>& queries_;
  uint32_t query_stride_;
  const std::vector<double>& keys_;
  const std::vector<double>& values_;
  double scale_;
};

AttentionPush attentionPush(const AttentionCase& shape, uint32_t query_stride, uint32_t out_stride,
                            float scale) {
  AttentionPush push = {};
  push.n_heads = shape.n_heads;
  push.n_kv_heads = shape.n_kv_heads;
  push.head_dim = shape.head_dim;
  push.query_stride = query_stride;
  push.out_stride = out_stride;
  push.sinks = shape.sinks;
  push.ring = shape.ring;
  push.splits = shape.splits;
  push.split_slots = shape.split_slots;
  push.scale = scale;
  return push;
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, attention_weighs_the_visible_slots_whatever_the_split) {
  constexpr uint32_t kChunk = 6;
  const AttentionCase cases[] = {
      {1, 1, 8, 0, 5, 1, 5},      {4, 4, 16, 2, 37, 1, 39},    {6, 2, 20, 3, 37, 4, 13},
      {9, 3, 64, 4, 300, 1, 304}, {9, 3, 64, 4, 300, 3, 110},  {4, 1, 96, 4, 150, 2, 80},
      {2, 2, 256, 1, 40, 5, 9},   {3, 3, 126, 130, 20, 2, 75}, {8, 1, 512, 4, 90, 1, 94},
      {8, 2, 512, 4, 90, 3, 32},  {4, 2, 258, 4, 90, 3, 32}};
  for (const AttentionCase& shape : cases) {
    if (isOthersTurn(static_cast<size_t>(&shape - cases))) {
      continue;
    }
    SCOPED_TRACE(std::to_string(shape.head_dim) + " splits " + std::to_string(shape.splits));
    Random random(shape.head_dim + shape.splits);
    KernelRig rig(kChunk);
    const uint32_t d = shape.head_dim;
    const uint32_t query_stride = shape.n_heads * 2 * d + 8;
    const uint32_t out_stride = unitsOf(shape.n_heads * d) * kUnit + 8;
    const size_t cache_values = size_t{shape.n_kv_heads} * (shape.sinks + shape.ring) * d;
    const std::vector<float> queries = random.normals(kChunk * query_stride, 2.0f);
    const PackedHalves keys = packHalves(random.normals(cache_values));
    const PackedHalves values = packHalves(random.normals(cache_values));
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const BufferRef out = rig.output(kChunk * out_stride);
    const bool split = shape.splits > 1;
    const uint64_t partial_words =
        uint64_t{kChunk} * shape.n_heads * shape.splits * (d + kPartialExtra);
    const BufferRef partials = split ? rig.activation(partial_words) : out;
    const std::vector<BufferRef> inputs = {rig.input(queries), rig.input(keys.words),
                                           rig.input(values.words)};
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kAttention, attentionPush(shape, query_stride, out_stride, scale),
              {inputs[0], partials, inputs[1], inputs[2]});
      if (split) {
        rig.add(
            list, OpKind::kAttentionMerge,
            AttentionMergePush{shape.n_heads, d, out_stride, shape.splits, shape.split_slots, 0},
            {partials, out});
      }
    }
    load(&rig);
    const uint32_t last = shape.ring - 1;
    const Seen seen[kChunk] = {{0, 0, 1},
                               {shape.sinks, last, shape.ring},  // all, wrapping
                               {shape.sinks, 3, 1},
                               {shape.sinks, shape.ring / 2, last},
                               {shape.sinks / 2, last, 2},
                               {shape.sinks, 0, shape.sinks == 0 ? 2u : 0u}};  // sinks alone
    const AttentionReference reference(shape, queries, query_stride, keys.values, values.values,
                                       static_cast<double>(scale));
    for (const uint32_t n_tokens : {1u, 2u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      for (uint32_t t = 0; t < kChunk; ++t) {
        rig.view(t).n_sinks = seen[t].n_sinks;
        rig.view(t).begin = seen[t].ring_begin;
        rig.view(t).count = seen[t].n_ring;
      }
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t head = 0; head < shape.n_heads; ++head) {
          std::vector<double> want(d, kUntouched);
          if (t < n_tokens) {
            want = reference.output(t, head, seen[t]);
          }
          for (uint32_t c = 0; c < d; ++c) {
            ASSERT_NEAR(rig.floats(out)[t * out_stride + head * d + c], want[c], 2e-5)
                << "token " << t << " head " << head << " dim " << c;
          }
        }
        for (uint32_t c = shape.n_heads * d; c < out_stride; ++c) {
          ASSERT_EQ(rig.floats(out)[t * out_stride + c], KernelRig::kUntouched);
        }
      }
    }
  }
}

RUNS_ON(kNightly);
RUNS_ON(kOneGpu, "subgroup");
TEST_P(Kernels, attention_of_a_prompt_weighs_the_same_slots_on_a_gpu) {
  // Divided as on a GPU; on matrix units if the device has some.
  constexpr uint32_t kChunk = 40;
  // Short heads: the software driver with matrix units takes minutes to compile longer ones.
  constexpr struct {
    AttentionCase shape;
    KvFormat k, v;
  } kCases[] = {{{6, 2, 16, 4, 300, 1, 304}, KvFormat::kF16, KvFormat::kF16},
                {{4, 1, 32, 40, 50, 1, 90}, KvFormat::kInt8, KvFormat::kInt4}};
  if (GetParam().path != Path::kSubgroup) {
    GTEST_SKIP() << "only of interest once a device";
  }
  for (const auto& [shape, k, v] : kCases) {
    SCOPED_TRACE(std::to_string(shape.head_dim));
    Random random(shape.head_dim);
    KernelRig rig(kChunk);
    const uint32_t d = shape.head_dim;
    const uint32_t query_stride = shape.n_heads * 2 * d + 8;
    const uint32_t out_stride = unitsOf(shape.n_heads * d) * kUnit + 8;
    const std::vector<float> queries = random.normals(kChunk * query_stride, 2.0f);
    // A token sees its slot and those before it; the window begins to slide inside the prompt. What no token sees is
    // not a number.
    const uint32_t first_slot = shape.ring - kChunk / 2;
    const uint32_t before = std::min(shape.ring - kChunk, 33u);
    std::vector<Seen> seen;
    for (uint32_t t = 0; t < kChunk; ++t) {
      const uint32_t n_ring = before + std::min(t, kChunk / 2) + 1;
      seen.push_back({std::min(shape.sinks, t + 1),
                      (first_slot + t + 1 + shape.ring - n_ring) % shape.ring, n_ring});
    }
    const auto isSeen = [&, ring = shape.ring](uint32_t slot) {
      return std::any_of(seen.begin(), seen.end(), [&](const Seen& by) {
        return (slot + ring - by.ring_begin) % ring < by.n_ring;
      });
    };
    struct Side {
      std::vector<uint32_t> words;
      std::vector<double> values;
    };
    const auto makeSide = [&, d, sinks = shape.sinks, ring = shape.ring,
                           heads = shape.n_kv_heads](KvFormat format) {
      const CacheShape cache = {heads, d, sinks, 0, ring};
      Side side = {std::vector<uint32_t>(sideLayout(format, cache).bytes / 4), {}};
      KvSide store(format, cache, side.words.data());
      std::vector<float> stored(d);
      for (uint32_t i = 0; i < heads * sinks; ++i) {
        store.storeSink(i / sinks, i % sinks, random.normals(d).data());
        store.loadSink(i / sinks, i % sinks, stored.data());
        side.values.insert(side.values.end(), stored.begin(), stored.end());
      }
      for (uint32_t i = 0; i < heads * ring; ++i) {
        const bool unseen = format == KvFormat::kF16 && !isSeen(i % ring);
        const std::vector<float> numbers =
            unseen ? std::vector<float>(d, std::numeric_limits<float>::quiet_NaN())
                   : random.normals(d);
        store.storeRing(i / ring, i % ring, numbers.data());
        store.loadRing(i / ring, i % ring, stored.data());
        side.values.insert(side.values.end(), stored.begin(), stored.end());
      }
      return side;
    };
    const Side keys = makeSide(k), values = makeSide(v);
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const BufferRef out = rig.output(kChunk * out_stride);
    Op& op = rig.add(StepList::kChunk, OpKind::kAttention,
                     attentionPush(shape, query_stride, out_stride, scale),
                     {rig.input(queries), out, rig.input(keys.words), rig.input(values.words)});
    op.k_format = k;
    op.v_format = v;
    rig.options.divide_as_gpu = true;
    load(&rig);
    char features[256];
    rig.executor->describeFeatures(features, sizeof(features));
    const bool on_units = std::string(features).find("matrix units") != std::string::npos;
    const double limit = on_units ? 4e-3 : 2e-5;
    std::printf("heads of %u: %s\n", d, on_units ? "on matrix units" : "in float");
    const AttentionReference reference(shape, queries, query_stride, keys.values, values.values,
                                       static_cast<double>(scale));
    for (const uint32_t n_tokens : {2u, 21u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      for (uint32_t t = 0; t < kChunk; ++t) {
        rig.view(t).n_sinks = seen[t].n_sinks;
        rig.view(t).begin = seen[t].ring_begin;
        rig.view(t).count = seen[t].n_ring;
        rig.token(t).base = t < 17 ? 0 : 1;  // texts are walked one after the other
      }
      run(&rig, StepRun::kChunk);
      double most = 0;
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t head = 0; head < shape.n_heads; ++head) {
          const std::vector<double> want = t < n_tokens ? reference.output(t, head, seen[t])
                                                        : std::vector<double>(d, kUntouched);
          for (uint32_t c = 0; c < d; ++c) {
            const double got = rig.floats(out)[t * out_stride + head * d + c];
            ASSERT_NEAR(got, want[c], limit) << "token " << t << " head " << head << " dim " << c;
            most = std::max(most, std::fabs(got - want[c]));
          }
        }
      }
      std::printf("%u tokens: at most %.1e off\n", n_tokens, most);
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, attention_reads_nothing_from_slots_that_are_not_visible) {
  const AttentionCase shapes[] = {{2, 1, 32, 4, 200, 1, 204}, {2, 1, 32, 4, 200, 4, 51}};
  for (const AttentionCase& shape : shapes) {
    Random random(3);
    KernelRig rig;
    const Seen seen = {2, 190, 20};
    const size_t cache_values = size_t{shape.sinks + shape.ring} * shape.head_dim;
    std::vector<float> keys = random.normals(cache_values);
    std::vector<float> values = random.normals(cache_values);
    for (uint32_t slot = 0; slot < shape.sinks + shape.ring; ++slot) {
      const uint32_t from_begin =
          (slot + shape.ring - shape.sinks + shape.ring - seen.ring_begin) % shape.ring;
      const bool visible = slot < shape.sinks ? slot < seen.n_sinks : from_begin < seen.n_ring;
      for (uint32_t c = 0; !visible && c < shape.head_dim; ++c) {
        keys[slot * shape.head_dim + c] = std::numeric_limits<float>::quiet_NaN();
        values[slot * shape.head_dim + c] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    const uint32_t width = shape.n_heads * shape.head_dim;
    const BufferRef out = rig.output(width);
    const bool split = shape.splits > 1;
    const BufferRef partials =
        split ? rig.activation(shape.n_heads * shape.splits * (shape.head_dim + kPartialExtra))
              : out;
    rig.add(StepList::kDecode, OpKind::kAttention, attentionPush(shape, 2 * width, width, 0.2f),
            {rig.input(random.normals(2 * width)), partials, rig.input(packHalves(keys).words),
             rig.input(packHalves(values).words)});
    if (split) {
      rig.add(StepList::kDecode, OpKind::kAttentionMerge,
              AttentionMergePush{shape.n_heads, shape.head_dim, width, shape.splits,
                                 shape.split_slots, 0},
              {partials, out});
    }
    load(&rig);
    rig.header().n_tokens = 1;
    rig.view(0).n_sinks = seen.n_sinks;
    rig.view(0).begin = seen.ring_begin;
    rig.view(0).count = seen.n_ring;
    run(&rig, StepRun::kDecode);
    for (uint32_t c = 0; c < width; ++c) {
      ASSERT_TRUE(std::isfinite(rig.floats(out)[c])) << c;
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, attention_survives_scores_far_apart_and_empty_splits) {
  // One key far above all others, in the last split but one; the last split is empty, and its old contents have no
  // effect.
  const AttentionCase shape = {1, 1, 8, 0, 300, 4, 100};
  KernelRig rig;
  std::vector<float> keys(300 * 8, 0.0f);
  std::vector<float> values(300 * 8, 1.0f);
  std::fill(keys.begin() + 250 * 8, keys.begin() + 251 * 8, 60000.0f);
  std::fill(values.begin() + 250 * 8, values.begin() + 251 * 8, -2.0f);
  const BufferRef out = rig.output(8);
  const BufferRef partials = rig.output(4 * (8 + kPartialExtra));
  rig.add(StepList::kDecode, OpKind::kAttention, attentionPush(shape, 16, 8, 1.0f),
          {rig.input(std::vector<float>(16, 100.0f)), partials, rig.input(packHalves(keys).words),
           rig.input(packHalves(values).words)});
  rig.add(StepList::kDecode, OpKind::kAttentionMerge, AttentionMergePush{1, 8, 8, 4, 100, 0},
          {partials, out});
  load(&rig);
  rig.header().n_tokens = 1;
  rig.view(0).count = 300;
  run(&rig, StepRun::kDecode);
  for (uint32_t c = 0; c < 8; ++c) {
    EXPECT_EQ(rig.floats(out)[c], -2.0f);
  }
}

// ---- Both ----------------------------------------------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, the_cache_outlives_a_step_and_is_zero_after_load_and_after_clearing) {
  constexpr uint32_t kDim = 8, kRing = 6;
  const AttentionCase shape = {1, 1, kDim, 0, kRing, 1, kRing};
  KernelRig rig(1, kDim);
  // Equal keys: attention is the mean of the values seen.
  std::vector<float> qkv(3 * kDim, 1.0f);
  std::fill(qkv.begin() + 2 * kDim, qkv.end(), 6.0f);
  const BufferRef in = rig.input(qkv);
  const BufferRef queries = rig.activation(2 * kDim);
  const BufferRef keys = rig.cache(kRing * kDim / 2), values = rig.cache(kRing * kDim / 2);
  const BufferRef out = rig.output(kDim);
  RopeAppendPush append = {};
  append.n_heads = 1;
  append.n_kv_heads = 1;
  append.head_dim = kDim;
  append.rope_dims = kDim;
  append.pair_stride = 1;
  append.qkv_stride = 3 * kDim;
  append.query_stride = 2 * kDim;
  append.rotation_stride = rig.rotationStride();
  append.key_rotation = append.query_rotation = rig.rotationWord(0);
  append.sink_rotation = rig.rotationWord(1);
  rig.add(StepList::kDecode, OpKind::kRopeAppend, append, {in, queries, keys, values});
  rig.add(StepList::kHead, OpKind::kAttention, attentionPush(shape, 2 * kDim, kDim, 0.0f),
          {queries, out, keys, values});
  load(&rig);
  const auto mean = [&](StepRun what, uint32_t slot) {
    rig.header().n_tokens = 1;
    rig.header().n_outputs = 1;
    rig.view(0).slot = slot;
    rig.view(0).count = kRing;
    for (uint32_t i = 0; i < kDim; ++i) {
      rig.rotations(0)[2 * i] = 1.0f;
      rig.rotations(0)[2 * i + 1] = 0.0f;
    }
    run(&rig, what);
    return rig.floats(out)[0];
  };
  EXPECT_EQ(mean(StepRun::kHead, 0), 0.0f);
  EXPECT_NEAR(mean(StepRun::kDecode, 0), 1.0f, 1e-6f);
  EXPECT_NEAR(mean(StepRun::kDecode, 4), 2.0f, 1e-6f);
  EXPECT_NEAR(mean(StepRun::kHead, 0), 2.0f, 1e-6f);
  ASSERT_TRUE(rig.executor->forget().ok());
  EXPECT_EQ(mean(StepRun::kHead, 0), 0.0f);
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_attention
