// Every kernel variant against a plain computation in double, over many shapes. Runs on the executor
// under test; on Vulkan each test runs with and without subgroup arithmetic. Kernels of the cache are in
// test_kernels_attention.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

std::vector<Variant> variants() {
  if (onVulkan()) {
    return {{Path::kSubgroup}, {Path::kShared}};
  }
  std::vector<Variant> all = {{Path::kReference}};
#ifdef ORIEL_CPU_SIMD
  const uint32_t threads[kSimdTargets] = {3, 2, 7, 3};
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

/// In an ordinary run each of several instruction sets runs in one thread, or in several.
std::vector<Variant> someVariants() {
  std::vector<Variant> some = variants();
  constexpr size_t kOfOneSet = 3;  // with the reference executor
  if (!allCases() && some.size() > kOfOneSet) {
    some.erase(std::remove_if(some.begin(), some.end(),
                              [](const Variant& v) {
                                return v.path == Path::kSimd &&
                                       (v.threads == 1) == (v.simd_level % 2 == 0);
                              }),
               some.end());
  }
  return some;
}

std::vector<Variant> simdVariants() {
  std::vector<Variant> all = variants();
  all.erase(
      std::remove_if(all.begin(), all.end(),
                     [](const Variant& v) { return v.path != Path::kSimd || v.threads != 1; }),
      all.end());
  return all;
}

std::string nameOf(const testing::TestParamInfo<Variant>& info) { return variantName(info.param); }

INSTANTIATE_TEST_SUITE_P(Device, Kernels, testing::ValuesIn(someVariants()), nameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SimdKernels);  // by programs of Vulkan devices
INSTANTIATE_TEST_SUITE_P(Device, SimdKernels, testing::ValuesIn(simdVariants()), nameOf);

std::vector<WeightType> allWeights() {
  std::vector<WeightType> types;
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    types.push_back(static_cast<WeightType>(i));
  }
  return types;
}

// ---- embed ---------------------------------------------------------------------------------------

TEST_P(Kernels, embed_gives_the_scaled_row_of_each_token_in_the_slice_and_touches_no_other) {
  constexpr uint32_t kChunk = 5;
  for (const WeightType type : allWeights()) {
    if (isOthersTurn(static_cast<size_t>(type))) {
      continue;
    }
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
        const EmbedPush push = {cols,
                                m.geometry.groupWords(),
                                m.geometry.sideWord(),
                                first_rows[s],
                                m.rows,
                                stride,
                                1.5f,
                                0,
                                0};
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
            const double want =
                here && c < cols ? 1.5 * slices[s].at(tokens[t] - first_rows[s], c) : kUntouched;
            ASSERT_NEAR(rig.floats(out)[t * stride + c], want, 1e-6 * std::fabs(want))
                << "token " << t << " col " << c;
          }
        }
      }
    }
  }
}

// ---- rms_norm ------------------------------------------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
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
    RmsNormPush push = {cols, in_stride, out_stride, 0, 1e-5f, 1, 0, 0, 0, 1, 0};
    rig.add(StepList::kChunk, OpKind::kRmsNorm, push, {in_piece, out, weight_piece});
    push.of_outputs = 1;
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
      rig.token(0).output = n_tokens - 1;
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
// activations rounded to 1/32639 of the largest of their unit.
double rounding(Path path, WeightType type, const float* in, uint32_t cols, uint32_t i) {
  if (path != Path::kSimd || type == WeightType::kF32 || type == WeightType::kF16 ||
      type == WeightType::kBf16) {
    return 0;
  }
  float most = 0;
  for (uint32_t c = i / kUnit * kUnit; c < std::min(cols, i / kUnit * kUnit + kUnit); ++c) {
    most = std::max(most, std::fabs(in[c]));
  }
  return 0.5001 * static_cast<double>(most) / 32639;
}

TEST_P(Kernels, matmul_multiplies_every_row_with_every_token_and_writes_nothing_else) {
  constexpr uint32_t kChunk = 11, kOutputs = 7;
  const MatmulCase cases[] = {{1, 8, 0, 0},    {3, 64, 1, 5},   {64, 172, 0, 8}, {33, 96, 1, 0},
                              {100, 40, 0, 3}, {17, 576, 0, 0}, {576, 20, 1, 1}, {2, 1500, 0, 0}};
  for (const WeightType type : allWeights()) {
    if (isOthersTurn(static_cast<size_t>(type))) {
      continue;
    }
    Random random(static_cast<uint32_t>(type) + 1);
    KernelRig rig(kChunk, 0, 2, 1, kOutputs);
    struct Want {
      double value, error;
    };
    struct Placed {
      MatmulCase shape;
      PackedMatrix matrix;
      std::vector<float> in;
      uint32_t in_stride, out_stride, head_stride;
      BufferRef out, head_out;
      std::vector<Want> want;  // [kChunk][rows]
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
      p.head_stride = shape.out_first + shape.rows;  // rows of logits have no padding
      p.head_out = rig.output((kOutputs + 1) * p.head_stride);
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
      push.of_outputs = 1;
      push.out_stride = p.head_stride;
      rig.add(StepList::kHead, OpKind::kMatmul, push, {weights, p.head_out, in}).weights = type;
      for (uint32_t t = 0; t < kChunk; ++t) {
        const float* const row = p.in.data() + t * p.in_stride;
        std::vector<double> rounded;  // of activations to integers
        for (uint32_t i = 0; i < shape.cols; ++i) {
          rounded.push_back(rounding(GetParam().path, type, row, shape.cols, i));
        }
        for (uint32_t r = 0; r < shape.rows; ++r) {
          Want want = {shape.accumulate != 0 ? kUntouched : 0, 0};
          want.error = 1e-6 * std::fabs(want.value);
          for (uint32_t i = 0; i < shape.cols; ++i) {
            const double product = p.matrix.at(r, i) * static_cast<double>(row[i]);
            want.value += product;
            want.error += 1e-6 * std::fabs(product) + std::fabs(p.matrix.at(r, i)) * rounded[i];
          }
          p.want.push_back(want);
        }
      }
      placed.push_back(p);
    }
    load(&rig);
    const auto check = [&](const Placed& p, const float* out, uint32_t out_stride, uint32_t rows,
                           uint32_t n_tokens) {
      for (uint32_t t = 0; t < rows; ++t) {
        for (uint32_t c = 0; c < out_stride; ++c) {
          const bool written =
              t < n_tokens && c >= p.shape.out_first && c < p.shape.out_first + p.shape.rows;
          const Want want =
              written ? p.want[t * p.shape.rows + c - p.shape.out_first] : Want{kUntouched, 0};
          ASSERT_NEAR(out[t * out_stride + c], want.value, want.error)
              << weightTypeName(type) << " rows " << p.shape.rows << " cols " << p.shape.cols
              << " token " << t << " of " << n_tokens << " at " << c;
        }
      }
    };
    for (const uint32_t n_tokens : {1u, 2u, 7u, 8u, 9u, kChunk}) {
      const uint32_t n_outputs = n_tokens <= kOutputs ? n_tokens : 1;
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      rig.header().n_outputs = n_outputs;
      run(&rig, StepRun::kChunkHead);
      for (const Placed& p : placed) {
        check(p, rig.floats(p.out), p.out_stride, kChunk, n_tokens);
        check(p, rig.floats(p.head_out), p.head_stride, kOutputs + 1, n_outputs);
      }
    }
    rig.clearOutputs();
    rig.header().n_tokens = 1;
    run(&rig, StepRun::kDecode);
    for (const Placed& p : placed) {
      check(p, rig.floats(p.out), p.out_stride, kChunk, 1);
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, matmul_covers_more_rows_than_one_side_of_a_grid_has_workgroups) {
  // Narrow rows, so that the largest vocabulary stays a small matrix. Processors know no grids.
  const uint32_t n_rows = onVulkan() || allCases() ? kMaxVocabulary : kMaxVocabulary / 8;
  Random random(9);
  KernelRig rig;
  const PackedMatrix matrix = randomMatrix(WeightType::kQ8_0, n_rows, 8, &random);
  const std::vector<float> in = paddedRows(1, 8, kUnit, &random);
  const BufferRef out = rig.output(n_rows);
  MatmulPush push = {};
  push.rows = n_rows;
  push.units = 1;
  push.group_words = matrix.geometry.groupWords();
  push.side_word = matrix.geometry.sideWord();
  push.in_stride = kUnit;
  push.out_stride = n_rows;
  push.of_outputs = 1;
  rig.add(StepList::kHead, OpKind::kMatmul, push, {rig.input(matrix.words), out, rig.input(in)})
      .weights = WeightType::kQ8_0;
  load(&rig);
  run(&rig, StepRun::kHead);
  for (uint32_t r = 0; r < n_rows; ++r) {
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

// ---- gated_activation ----------------------------------------------------------------------------

/// GatedActivationPush's functions of a gate and its factor.
double activated(const GatedActivationPush& p, double x) {
  const auto of = [](float value) { return static_cast<double>(value); };
  const double positive = std::max(x, 0.0);
  const double cut = std::min(x, of(p.a));
  switch (p.activation) {
    case kGelu: {
      const double scale = std::sqrt(2 / 3.14159265358979323846);
      return 0.5 * x * (1 + std::tanh(scale * (x + 0.044715 * x * x * x)));
    }
    case kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case kRelu:
      return positive;
    case kReluSquared:
      return positive * positive;
    case kClampedSilu:
      return cut / (1 + std::exp(-of(p.b) * cut));
    case kXielu:
      return of(p.c) * x +
             (x > 0 ? of(p.a) * x * x : (std::expm1(std::min(x, of(p.d))) - x) * of(p.b));
    default:
      return x / (1 + std::exp(-x));
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, gated_activation_multiplies_what_it_makes_of_the_gate_with_up) {
  constexpr uint32_t kChunk = 3;
  struct Case {
    uint32_t cols, activation, plain;
  };
  for (const Case& c : {Case{8, kSilu, 0}, Case{172, kGelu, 0}, Case{1536, kSilu, 0},
                        Case{24, kGelu, 0}, Case{171, kGeluErf, 0}, Case{40, kGeluErf, 1},
                        Case{33, kRelu, 0}, Case{90, kReluSquared, 1}, Case{77, kClampedSilu, 0},
                        Case{50, kXielu, 1}, Case{20, kSilu, 1}}) {
    const uint32_t cols = c.cols;
    SCOPED_TRACE(c.activation);
    Random random(cols);
    KernelRig rig(kChunk);
    const uint32_t padded = unitsOf(cols) * kUnit;
    std::vector<float> in = random.normals(size_t{kChunk} * 2 * padded, 5.0f);
    in[0] = -1000.0f;  // exp overflows
    in[1] = 1000.0f;
    const BufferRef out = rig.output(kChunk * padded);
    GatedActivationPush push = {cols, 2 * padded, 0, padded, padded, c.activation, 1};
    push.plain = c.plain;
    if (c.activation > kGelu) {
      push.scale = 0.5f;
      push.a = 7;
      push.b = 1.702f;
      push.c = 0.5f;
      push.d = -1e-6f;
    }
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kGatedActivation, push, {rig.input(in), out});
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t i = 0; i < padded; ++i) {
          double want = kUntouched;
          double least = 1e-6;
          if (t < n_tokens && i < cols) {
            const double gate = static_cast<double>(in[t * 2 * padded + i]);
            double up = static_cast<double>(in[t * 2 * padded + padded + i]);
            up = c.plain != 0                   ? 1
                 : c.activation == kClampedSilu ? std::clamp(up, -7.0, 7.0) + 1
                                                : up;
            want = activated(push, gate) * up * static_cast<double>(push.scale);
            // Far below zero 1 + erf suffers from cancellation.
            least += c.activation == kGeluErf ? 5e-7 * std::fabs(gate * up) : 0;
          }
          ASSERT_NEAR(rig.floats(out)[t * padded + i], want, least + 1e-5 * std::fabs(want))
              << "of " << in[t * 2 * padded + i];
        }
      }
    }
  }
}

// ---- Layer norms, and effects on products --------------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, layer_norms_take_the_mean_off_each_row) {
  constexpr uint32_t kChunk = 3, kRows = 3, kCols = 37;
  Random random(11);
  KernelRig rig(kChunk);
  std::vector<float> in = random.normals(size_t{kChunk} * kRows * kCols, 2.0f);
  for (float& value : in) {
    value += 5;
  }
  const std::vector<float> weight = random.normals(kRows * kCols, 1.0f);
  const BufferRef in_piece = rig.input(in);
  const BufferRef weight_piece = rig.input(weight);
  RmsNormPush push = {kCols, kRows * kCols, kRows * kCols, 0, 1e-5f, kRows, 0, 0, 0, 1, 0};
  push.centred = 1;
  BufferRef outs[2];
  for (const uint32_t own : {0u, 1u}) {
    push.weight_rows = own;
    outs[own] = rig.output(kChunk * kRows * kCols);
    rig.add(StepList::kChunk, OpKind::kRmsNorm, push, {in_piece, outs[own], weight_piece});
  }
  load(&rig);
  rig.header().n_tokens = kChunk;
  run(&rig, StepRun::kChunk);
  for (uint32_t row = 0; row < kChunk * kRows; ++row) {
    double mean = 0;
    double squares = 0;
    for (uint32_t c = 0; c < kCols; ++c) {
      mean += static_cast<double>(in[row * kCols + c]) / kCols;
    }
    for (uint32_t c = 0; c < kCols; ++c) {
      const double x = static_cast<double>(in[row * kCols + c]) - mean;
      squares += x * x / kCols;
    }
    for (uint32_t c = 0; c < kCols; ++c) {
      const double x =
          (static_cast<double>(in[row * kCols + c]) - mean) / std::sqrt(squares + 1e-5);
      for (const uint32_t own : {0u, 1u}) {
        const float by = weight[(own != 0 ? row % kRows * kCols : 0) + c];
        ASSERT_NEAR(rig.floats(outs[own])[row * kCols + c], x * static_cast<double>(by), 2e-5);
      }
    }
  }
}

// ---- Chains --------------------------------------------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, an_op_sees_what_the_ones_before_it_wrote) {
  // A permutation applied repeatedly: any read before the write is detected.
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
  const MatmulPush push = packed.product();
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

RUNS_ON(kEachDevice, "subgroup");
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
}  // namespace oriel_internal::test::test_kernels
