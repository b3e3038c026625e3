// Every kernel variant against a plain computation in double, over many shapes. Runs on the executor
// under test; on Vulkan each test runs with and without subgroup arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "support/kernel_fixture.h"

namespace oriel::test {
namespace {

std::vector<Variant> variants() {
  if (onVulkan()) {
    return {{Path::kSubgroup}, {Path::kShared}};
  }
  std::vector<Variant> all = {{Path::kReference}};
#ifdef ORIEL_CPU_SIMD
  const uint32_t threads[] = {3, 2, 7};
  for (uint32_t level = 0; level < kSimdTargets; ++level) {
    SimdTarget target;
    if (chooseSimdTarget(static_cast<SimdTarget>(level), &target) &&
        static_cast<uint32_t>(target) == level) {
      all.push_back({Path::kSimd, level, 1});
      all.push_back({Path::kSimd, level, threads[level]});
    }
  }
#endif
  return all;
}

std::string variantName(const testing::TestParamInfo<Variant>& info) {
  switch (info.param.path) {
    case Path::kSubgroup:
      return "subgroup";
    case Path::kShared:
      return "shared";
    case Path::kReference:
      return "reference";
    case Path::kSimd:
      break;
  }
  return "simd" + std::to_string(info.param.simd_level) + "_threads" +
         std::to_string(info.param.threads);
}

INSTANTIATE_TEST_SUITE_P(Device, Kernels, testing::ValuesIn(variants()), variantName);

std::vector<WeightType> allWeights() {
  std::vector<WeightType> types;
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    types.push_back(static_cast<WeightType>(i));
  }
  return types;
}

// [tokens][stride] inputs whose padding (cols up to a multiple of kUnit) is zero, as plans promise.
std::vector<float> paddedRows(uint32_t tokens, uint32_t cols, uint32_t stride, Random* random) {
  std::vector<float> rows(static_cast<size_t>(tokens) * stride, 0.0f);
  for (uint32_t t = 0; t < tokens; ++t) {
    for (uint32_t c = 0; c < cols; ++c) {
      rows[static_cast<size_t>(t) * stride + c] = random->normal();
    }
  }
  return rows;
}

// ---- embed ---------------------------------------------------------------------------------------

TEST_P(Kernels, embed_gives_the_scaled_row_of_each_token_in_the_slice_and_touches_no_other) {
  constexpr uint32_t kChunk = 5;
  for (const WeightType type : allWeights()) {
    for (const uint32_t cols : {8u, 64u, 172u, 300u}) {
      SCOPED_TRACE(std::string(weightTypeName(type)) + " " + std::to_string(cols));
      Random random(cols);
      KernelRig rig(kChunk);
      const uint32_t stride = unitsOf(cols) * kUnit + 8;
      const BufferRef out = rig.output(kChunk * stride);
      // Rows 10..29 and 30..36 of a table that goes on.
      const uint32_t first_rows[] = {10, 30};
      const PackedMatrix slices[] = {randomMatrix(type, 20, cols, &random),
                                     randomMatrix(type, 7, cols, &random)};
      for (int s = 0; s < 2; ++s) {
        const PackedMatrix& m = slices[s];
        const EmbedPush push = {cols,          m.geometry.groupWords(), m.geometry.sideWord(),
                                first_rows[s], m.rows,                  stride, 1.5f};
        for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
          rig.add(list, OpKind::kEmbed, push, {rig.input(m.words), out}).weights = type;
        }
      }
      load(&rig);
      const uint32_t tokens[kChunk] = {36, 10, 29, 9, 30};
      for (const uint32_t n_tokens : {1u, 4u, kChunk}) {
        rig.clearOutputs();
        rig.header().n_tokens = n_tokens;
        for (uint32_t t = 0; t < kChunk; ++t) {
          rig.token(t).token = tokens[t];
        }
        run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
        for (uint32_t t = 0; t < kChunk; ++t) {
          const int s = tokens[t] >= first_rows[1];
          const bool here = t < n_tokens && tokens[t] >= first_rows[0];
          for (uint32_t c = 0; c < stride; ++c) {
            const double want = here && c < cols
                                    ? 1.5 * slices[s].at(tokens[t] - first_rows[s], c)
                                    : kUntouched;
            ASSERT_NEAR(rig.floats(out)[t * stride + c], want, 1e-6 * std::fabs(want))
                << "token " << t << " col " << c;
          }
        }
      }
    }
  }
}

// ---- rms_norm ------------------------------------------------------------------------------------

TEST_P(Kernels, rms_norm_divides_by_the_root_mean_square_and_multiplies_by_the_weight) {
  constexpr uint32_t kChunk = 3;
  for (const uint32_t cols : {8u, 20u, 127u, 576u, 2049u}) {
    SCOPED_TRACE(cols);
    Random random(cols);
    KernelRig rig(kChunk);
    const uint32_t in_stride = unitsOf(cols) * kUnit;
    const uint32_t out_stride = in_stride + 16;
    const std::vector<float> in = paddedRows(kChunk, cols, in_stride, &random);
    const std::vector<float> weight = random.normals(cols);
    const BufferRef in_piece = rig.input(in);
    const BufferRef weight_piece = rig.input(weight);
    const BufferRef out = rig.output(kChunk * out_stride);
    const BufferRef head_out = rig.output(out_stride);
    RmsNormPush push = {cols, in_stride, out_stride, 0, 1e-5f, 1, 0, 0};
    rig.add(StepList::kChunk, OpKind::kRmsNorm, push, {in_piece, out, weight_piece});
    push.head_row_only = 1;
    rig.add(StepList::kHead, OpKind::kRmsNorm, push, {in_piece, head_out, weight_piece});
    load(&rig);
    const auto want = [&](uint32_t t, uint32_t c) {
      double squares = 0;
      for (uint32_t i = 0; i < cols; ++i) {
        const double x = static_cast<double>(in[t * in_stride + i]);
        squares += x * x;
      }
      return static_cast<double>(in[t * in_stride + c]) / std::sqrt(squares / cols + 1e-5) *
             static_cast<double>(weight[c]);
    };
    for (const uint32_t n_tokens : {1u, 2u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      rig.header().head_row = n_tokens - 1;
      run(&rig, StepRun::kChunkHead);
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t c = 0; c < out_stride; ++c) {
          const double expected = t < n_tokens && c < cols ? want(t, c) : kUntouched;
          ASSERT_NEAR(rig.floats(out)[t * out_stride + c], expected,
                      1e-6 + 1e-5 * std::fabs(expected))
              << "token " << t << " col " << c;
        }
      }
      for (uint32_t c = 0; c < out_stride; ++c) {
        const double expected = c < cols ? want(n_tokens - 1, c) : kUntouched;
        ASSERT_NEAR(rig.floats(head_out)[c], expected, 1e-6 + 1e-5 * std::fabs(expected));
      }
    }
  }
}

// ---- matmul --------------------------------------------------------------------------------------

struct MatmulCase {
  uint32_t rows;
  uint32_t cols;
  uint32_t accumulate;
  uint32_t out_first;
};

// Most that value i of an input may be off: the CPU executor multiplies quantised weights with
// activations rounded to 1/32767 of the largest of their unit.
double rounding(Path path, WeightType type, const float* in, uint32_t cols, uint32_t i) {
  if (path != Path::kSimd || type == WeightType::kF32 || type == WeightType::kF16 ||
      type == WeightType::kBf16) {
    return 0;
  }
  float most = 0;
  for (uint32_t c = i / kUnit * kUnit; c < std::min(cols, i / kUnit * kUnit + kUnit); ++c) {
    most = std::max(most, std::fabs(in[c]));
  }
  return 0.5001 * static_cast<double>(most) / 32767;
}

TEST_P(Kernels, matmul_multiplies_every_row_with_every_token_and_writes_nothing_else) {
  constexpr uint32_t kChunk = 11;
  const MatmulCase cases[] = {{1, 8, 0, 0},    {3, 64, 1, 5},   {64, 172, 0, 8}, {33, 96, 1, 0},
                              {100, 40, 0, 3}, {17, 576, 0, 0}, {576, 20, 1, 1}, {2, 1500, 0, 0}};
  for (const WeightType type : allWeights()) {
    Random random(static_cast<uint32_t>(type) + 1);
    KernelRig rig(kChunk);
    struct Placed {
      MatmulCase shape;
      PackedMatrix matrix;
      std::vector<float> in;
      uint32_t in_stride, out_stride;
      BufferRef out, head_out;
    };
    std::vector<Placed> placed;
    for (const MatmulCase& shape : cases) {
      Placed p;
      p.shape = shape;
      p.matrix = randomMatrix(type, shape.rows, shape.cols, &random);
      p.in_stride = p.matrix.geometry.units * kUnit + 8;
      p.out_stride = (shape.out_first + shape.rows + 8) / 8 * 8 + 8;
      p.in = paddedRows(kChunk, shape.cols, p.in_stride, &random);
      p.out = rig.output(kChunk * p.out_stride);
      p.head_out = rig.output(kChunk * p.out_stride);
      MatmulPush push = {};
      push.rows = shape.rows;
      push.units = p.matrix.geometry.units;
      push.group_words = p.matrix.geometry.groupWords();
      push.side_word = p.matrix.geometry.sideWord();
      push.in_stride = p.in_stride;
      push.out_stride = p.out_stride;
      push.out_first = shape.out_first;
      push.accumulate = shape.accumulate;
      const BufferRef weights = rig.input(p.matrix.words);
      const BufferRef in = rig.input(p.in);
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        rig.add(list, OpKind::kMatmul, push, {weights, p.out, in}).weights = type;
      }
      push.one_row = 1;
      rig.add(StepList::kHead, OpKind::kMatmul, push, {weights, p.head_out, in}).weights = type;
      placed.push_back(p);
    }
    load(&rig);
    const auto check = [&](const Placed& p, const float* out, uint32_t n_tokens) {
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t c = 0; c < p.out_stride; ++c) {
          double want = kUntouched;
          double magnitude = 0;
          double rounded = 0;  // of activations in 15 bits
          if (t < n_tokens && c >= p.shape.out_first && c < p.shape.out_first + p.shape.rows) {
            want = p.shape.accumulate != 0 ? kUntouched : 0;
            magnitude = std::fabs(want);
            for (uint32_t i = 0; i < p.shape.cols; ++i) {
              const double product = p.matrix.at(c - p.shape.out_first, i) *
                                     static_cast<double>(p.in[t * p.in_stride + i]);
              want += product;
              magnitude += std::fabs(product);
              rounded += std::fabs(p.matrix.at(c - p.shape.out_first, i)) *
                          rounding(GetParam().path, type, p.in.data() + t * p.in_stride, p.shape.cols, i);
            }
          }
          ASSERT_NEAR(out[t * p.out_stride + c], want, 1e-6 * magnitude + rounded)
              << weightTypeName(type) << " rows " << p.shape.rows << " cols " << p.shape.cols
              << " token " << t << " of " << n_tokens << " at " << c;
        }
      }
    };
    for (const uint32_t n_tokens : {1u, 2u, 7u, 8u, 9u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      run(&rig, StepRun::kChunkHead);
      for (const Placed& p : placed) {
        check(p, rig.floats(p.out), n_tokens);
        check(p, rig.floats(p.head_out), 1);
      }
    }
    rig.clearOutputs();
    rig.header().n_tokens = 1;
    run(&rig, StepRun::kDecode);
    for (const Placed& p : placed) {
      check(p, rig.floats(p.out), 1);
    }
  }
}

TEST_P(Kernels, matmul_covers_more_rows_than_one_side_of_a_grid_has_workgroups) {
  // Narrow rows, so that the largest vocabulary stays a small matrix.
  constexpr uint32_t kRows = kMaxVocabulary;
  Random random(9);
  KernelRig rig;
  const PackedMatrix matrix = randomMatrix(WeightType::kQ8_0, kRows, 8, &random);
  const std::vector<float> in = paddedRows(1, 8, kUnit, &random);
  const BufferRef out = rig.output(kRows);
  MatmulPush push = {};
  push.rows = kRows;
  push.units = 1;
  push.group_words = matrix.geometry.groupWords();
  push.side_word = matrix.geometry.sideWord();
  push.in_stride = kUnit;
  push.out_stride = kRows;
  push.one_row = 1;
  rig.add(StepList::kHead, OpKind::kMatmul, push, {rig.input(matrix.words), out, rig.input(in)})
      .weights = WeightType::kQ8_0;
  load(&rig);
  run(&rig, StepRun::kHead);
  for (uint32_t r = 0; r < kRows; ++r) {
    double want = 0;
    double rounded = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      want += matrix.at(r, i) * static_cast<double>(in[i]);
      rounded += std::fabs(matrix.at(r, i)) *
                 rounding(GetParam().path, WeightType::kQ8_0, in.data(), 8, i);
    }
    ASSERT_NEAR(rig.floats(out)[r], want, 1e-4 + rounded) << "row " << r;
  }
}

// ---- rope_append ---------------------------------------------------------------------------------

struct RopeCase {
  uint32_t n_heads, n_kv_heads, head_dim, rope_dims;
  bool halves;  // pairs (i, i + rope_dims / 2) instead of (2i, 2i + 1)
};

TEST_P(Kernels, rope_append_rotates_both_queries_and_stores_keys_and_values_in_their_slots) {
  constexpr uint32_t kChunk = 4, kSinks = 3, kRing = 7;
  const RopeCase cases[] = {{1, 1, 8, 8, false},   {4, 2, 16, 16, true},  {3, 3, 20, 20, false},
                            {9, 3, 64, 64, false}, {6, 1, 96, 48, true},  {2, 2, 256, 256, true},
                            {2, 1, 20, 10, false}, {2, 1, 16, 2, true}};
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
    const float delicate[] = {65504.0f, -65520.0f, 65519.9f, 1e-8f, 2.98023223876953125e-8f,
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
    push.chunk = kChunk;
    push.sinks = kSinks;
    push.ring = kRing;
    push.rotation_stride = rotationWords(shape.rope_dims, false);
    push.sink_rotation = shape.rope_dims;
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kRopeAppend, push, {in, queries, keys, values});
    }
    load(&rig);

    const uint32_t slots[kChunk] = {2, kSinks, kSinks + kRing - 1, 0};
    std::vector<double> angles(kChunk * shape.rope_dims);  // [token][table][pair]
    for (double& angle : angles) {
      angle = 3.0 * static_cast<double>(random.normal());
    }
    // Value `dim` of the head at `at`, turned by one of the token's tables.
    const auto rotated = [&](uint32_t t, uint32_t table, size_t at, uint32_t dim) {
      const double x = static_cast<double>(qkv[at + dim]);
      if (dim >= shape.rope_dims) {
        return x;
      }
      const uint32_t half = shape.rope_dims / 2;
      const bool first = shape.halves ? dim < half : dim % 2 == 0;
      const uint32_t pair = shape.halves ? dim % half : dim / 2;
      const uint32_t stride = shape.halves ? half : 1;
      const double partner = static_cast<double>(qkv[first ? at + dim + stride : at + dim - stride]);
      const double angle = angles[t * shape.rope_dims + table * half + pair];
      return first ? x * std::cos(angle) - partner * std::sin(angle)
                   : x * std::cos(angle) + partner * std::sin(angle);
    };
    for (const uint32_t n_tokens : {1u, 3u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      for (uint32_t t = 0; t < kChunk; ++t) {
        rig.token(t).slot = slots[t];
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
          const uint32_t vector = slot < kSinks ? head * kSinks + slot
                                                : shape.n_kv_heads * kSinks + head * kRing + slot -
                                                      kSinks;
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

// What a head of a token sees, in double.
class AttentionReference {
 public:
  AttentionReference(const AttentionCase& shape, const std::vector<float>& queries,
                     uint32_t query_stride, const std::vector<double>& keys,
                     const std::vector<double>& values, double scale)
      : shape_(shape), queries_(queries), query_stride_(query_stride), keys_(keys),
        values_(values), scale_(scale) {}

  std::vector<double> output(uint32_t t, uint32_t head, const Seen& seen) const {
    const uint32_t d = shape_.head_dim;
    const uint32_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
    std::vector<double> out(d, 0.0);
    std::vector<double> scores;
    std::vector<size_t> at;
    for (uint32_t i = 0; i < seen.n_sinks + seen.n_ring; ++i) {
      const bool sink = i < seen.n_sinks;
      const uint32_t ring_slot = (seen.ring_begin + i - seen.n_sinks) % shape_.ring;
      at.push_back(size_t{d} * (sink ? kv_head * shape_.sinks + i
                                     : shape_.n_kv_heads * shape_.sinks + kv_head * shape_.ring +
                                           ring_slot));
      double score = 0;
      for (uint32_t c = 0; c < d; ++c) {
        score += static_cast<double>(
                     queries_[size_t{t} * query_stride_ + (head * 2 + sink) * d + c]) *
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

AttentionPush attentionPush(const AttentionCase& shape, uint32_t chunk, uint32_t query_stride,
                            uint32_t out_stride, float scale) {
  AttentionPush push = {};
  push.n_heads = shape.n_heads;
  push.n_kv_heads = shape.n_kv_heads;
  push.head_dim = shape.head_dim;
  push.query_stride = query_stride;
  push.out_stride = out_stride;
  push.chunk = chunk;
  push.sinks = shape.sinks;
  push.ring = shape.ring;
  push.splits = shape.splits;
  push.split_slots = shape.split_slots;
  push.scale = scale;
  return push;
}

TEST_P(Kernels, attention_weighs_the_visible_slots_whatever_the_split) {
  constexpr uint32_t kChunk = 6;
  const AttentionCase cases[] = {
      {1, 1, 8, 0, 5, 1, 5},      {4, 4, 16, 2, 37, 1, 39},   {6, 2, 20, 3, 37, 4, 13},
      {9, 3, 64, 4, 300, 1, 304}, {9, 3, 64, 4, 300, 3, 110}, {4, 1, 96, 4, 150, 2, 80},
      {2, 2, 256, 1, 40, 5, 9},   {3, 3, 126, 130, 20, 2, 75}};
  for (const AttentionCase& shape : cases) {
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
      rig.add(list, OpKind::kAttention,
              attentionPush(shape, kChunk, query_stride, out_stride, scale),
              {inputs[0], partials, inputs[1], inputs[2]});
      if (split) {
        rig.add(list, OpKind::kAttentionMerge,
                AttentionMergePush{shape.n_heads, d, out_stride, shape.splits,
                                   shape.split_slots, 0},
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
        rig.token(t).n_sinks = seen[t].n_sinks;
        rig.token(t).ring_begin = seen[t].ring_begin;
        rig.token(t).n_ring = seen[t].n_ring;
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
    rig.add(StepList::kDecode, OpKind::kAttention,
            attentionPush(shape, 1, 2 * width, width, 0.2f),
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
    rig.token(0).n_sinks = seen.n_sinks;
    rig.token(0).ring_begin = seen.ring_begin;
    rig.token(0).n_ring = seen.n_ring;
    run(&rig, StepRun::kDecode);
    for (uint32_t c = 0; c < width; ++c) {
      ASSERT_TRUE(std::isfinite(rig.floats(out)[c])) << c;
    }
  }
}

TEST_P(Kernels, attention_survives_scores_far_apart_and_empty_splits) {
  // One key far above all others, in the last split but one; the last split is empty, and what
  // lies there from before plays no part.
  const AttentionCase shape = {1, 1, 8, 0, 300, 4, 100};
  KernelRig rig;
  std::vector<float> keys(300 * 8, 0.0f);
  std::vector<float> values(300 * 8, 1.0f);
  std::fill(keys.begin() + 250 * 8, keys.begin() + 251 * 8, 60000.0f);
  std::fill(values.begin() + 250 * 8, values.begin() + 251 * 8, -2.0f);
  const BufferRef out = rig.output(8);
  const BufferRef partials = rig.output(4 * (8 + kPartialExtra));
  rig.add(StepList::kDecode, OpKind::kAttention, attentionPush(shape, 1, 16, 8, 1.0f),
          {rig.input(std::vector<float>(16, 100.0f)), partials, rig.input(packHalves(keys).words),
           rig.input(packHalves(values).words)});
  rig.add(StepList::kDecode, OpKind::kAttentionMerge, AttentionMergePush{1, 8, 8, 4, 100, 0},
          {partials, out});
  load(&rig);
  rig.header().n_tokens = 1;
  rig.token(0).n_ring = 300;
  run(&rig, StepRun::kDecode);
  for (uint32_t c = 0; c < 8; ++c) {
    EXPECT_EQ(rig.floats(out)[c], -2.0f);
  }
}

// ---- gated_activation ----------------------------------------------------------------------------

TEST_P(Kernels, gated_activation_multiplies_silu_or_gelu_of_the_gate_with_up) {
  constexpr uint32_t kChunk = 3;
  const auto tanhGelu = [](double x) {
    const double scale = std::sqrt(2 / 3.14159265358979323846);
    return 0.5 * x * (1 + std::tanh(scale * (x + 0.044715 * x * x * x)));
  };
  for (const auto& [cols, gelu] : {std::pair{8u, 0u}, std::pair{172u, 1u}, std::pair{1536u, 0u},
                                   std::pair{24u, 1u}}) {
    SCOPED_TRACE(gelu);
    Random random(cols);
    KernelRig rig(kChunk);
    const uint32_t padded = unitsOf(cols) * kUnit;
    std::vector<float> in = random.normals(size_t{kChunk} * 2 * padded, 5.0f);
    in[0] = -1000.0f;  // exp overflows
    in[1] = 1000.0f;
    const BufferRef out = rig.output(kChunk * padded);
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kGatedActivation,
              GatedActivationPush{cols, 2 * padded, padded, padded, gelu}, {rig.input(in), out});
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t c = 0; c < padded; ++c) {
          double want = kUntouched;
          if (t < n_tokens && c < cols) {
            const double gate = static_cast<double>(in[t * 2 * padded + c]);
            want = (gelu != 0 ? tanhGelu(gate) : gate / (1 + std::exp(-gate))) *
                   static_cast<double>(in[t * 2 * padded + padded + c]);
          }
          ASSERT_NEAR(rig.floats(out)[t * padded + c], want, 1e-6 + 1e-5 * std::fabs(want));
        }
      }
    }
  }
}

// ---- Chains --------------------------------------------------------------------------------------

TEST_P(Kernels, an_op_sees_what_the_ones_before_it_wrote) {
  // A permutation applied many times over: any read before the write shows.
  constexpr uint32_t kCols = 256, kTimes = 40;
  KernelRig rig;
  std::vector<float> matrix(kCols * kCols, 0.0f);
  for (uint32_t r = 0; r < kCols; ++r) {
    matrix[r * kCols + (r + 1) % kCols] = 1.0f;
  }
  std::vector<float> in(kCols);
  for (uint32_t c = 0; c < kCols; ++c) {
    in[c] = static_cast<float>(c);
  }
  const PackedMatrix packed = floatMatrix(kCols, kCols, matrix);
  const BufferRef weights = rig.input(packed.words);
  const BufferRef start = rig.input(in);
  const BufferRef ping = rig.activation(kCols), pong = rig.activation(kCols);
  const BufferRef out = rig.output(kCols);
  MatmulPush push = {};
  push.rows = kCols;
  push.units = kCols / kUnit;
  push.group_words = packed.geometry.groupWords();
  push.side_word = packed.geometry.sideWord();
  push.in_stride = kCols;
  push.out_stride = kCols;
  for (uint32_t i = 0; i < kTimes; ++i) {
    const BufferRef from = i == 0 ? start : (i % 2 != 0 ? ping : pong);
    const BufferRef to = i == kTimes - 1 ? out : (i % 2 != 0 ? pong : ping);
    rig.add(StepList::kDecode, OpKind::kMatmul, push, {weights, to, from});
  }
  load(&rig);
  for (int repeat = 0; repeat < 5; ++repeat) {
    rig.clearOutputs();
    rig.header().n_tokens = 1;
    run(&rig, StepRun::kDecode);
    for (uint32_t c = 0; c < kCols; ++c) {
      ASSERT_EQ(rig.floats(out)[c], static_cast<float>((c + kTimes) % kCols));
    }
  }
}

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
  append.chunk = 1;
  append.ring = kRing;
  append.rotation_stride = rotationWords(kDim, false);
  append.sink_rotation = kDim;
  rig.add(StepList::kDecode, OpKind::kRopeAppend, append, {in, queries, keys, values});
  rig.add(StepList::kHead, OpKind::kAttention, attentionPush(shape, 1, 2 * kDim, kDim, 0.0f),
          {queries, out, keys, values});
  load(&rig);
  const auto mean = [&](StepRun what, uint32_t slot) {
    rig.header().n_tokens = 1;
    rig.token(0).slot = slot;
    rig.token(0).n_ring = kRing;
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
  ASSERT_TRUE(rig.executor->clearCache().ok());
  EXPECT_EQ(mean(StepRun::kHead, 0), 0.0f);
}

TEST_P(Kernels, allocated_bytes_equal_planned_bytes) {
  KernelRig rig(3, 16);
  rig.input(std::vector<float>(5000));
  rig.cache(100);
  rig.output(1000);
  load(&rig);
  EXPECT_EQ(rig.executor->allocatedBytes(ArenaKind::kWeights), rig.plan.weights_bytes);
  EXPECT_EQ(rig.executor->allocatedBytes(ArenaKind::kCache), rig.plan.cache_bytes);
  EXPECT_EQ(rig.executor->allocatedBytes(ArenaKind::kActivations), rig.plan.activation_bytes);
  EXPECT_EQ(rig.executor->allocatedBytes(ArenaKind::kIo), rig.plan.io_bytes);
  EXPECT_STRNE(rig.executor->deviceName(), "");
  EXPECT_STRNE(rig.executor->driverName(), "");
}

}  // namespace
}  // namespace oriel::test
