// Products in half precision: accepted sizes of inputs and weights, and errors that do not grow with the row length.
// Coverage of rows and tokens: test_matmul.cpp. Needs a Vulkan target.
#include <gtest/gtest.h>

#include <cstring>

#include "support/golden.h"
#include "support/product.h"
#include "support/tiers.h"

#ifdef ORIEL_VULKAN

namespace oriel_internal::test::test_matmul_half {
namespace {

class MatmulInHalves : public Products {
 protected:
  /// In Op::candidate's numbering: the first with this name prefix; 0: none.
  uint8_t firstOf(WeightType type, const std::string& kind, const char* disabled = nullptr) {
    KernelRig rig(2);
    Random random(1);
    const Product product(&rig, type, 16, 64, &random);
    prepare(&rig, 0);
    if (disabled != nullptr) {
      rig.options.disabled_features = disabled;
    }
    EXPECT_TRUE(rig.load().ok()) << rig.log.errors();
    rig.executor->describeFeatures(features_, sizeof(features_));
    for (uint32_t i = 0; i < kMostCandidates; ++i) {
      const char* const name = candidateName(rig.executor, MatmulUse::kChunk, type, i);
      if (name != nullptr && std::string(name).compare(0, kind.size(), kind) == 0) {
        return static_cast<uint8_t>(i + 1);
      }
    }
    return 0;
  }

  void prepare(KernelRig* rig, uint8_t candidate) {
    rig->options.divide_as_gpu = GetParam();
    rig->candidate = candidate;
  }

  /// Runs all tokens of the only product. Returns the largest error relative to the norm of a sum's terms, as if each
  /// term were rounded separately.
  double run(KernelRig* rig, const Product& product, uint32_t tokens) {
    EXPECT_TRUE(rig->load().ok()) << rig->log.errors();
    rig->header().n_tokens = tokens;
    EXPECT_TRUE(rig->executor->run(StepRun::kChunk).ok()) << rig->log.errors();
    const float* const got = rig->floats(product.out);
    product.check(got, Rounds::kInputsAndRunsToHalves, tokens);
    double worst = 0;
    for (uint32_t t = 0; t < tokens; ++t) {
      for (uint32_t r = 0; r < product.matrix.rows; ++r) {
        double sum = 0;
        double squares = 0;
        for (uint32_t c = 0; c < product.matrix.cols; ++c) {
          const double term =
              product.matrix.at(r, c) * static_cast<double>(product.in[product.in_stride * t + c]);
          sum += term;
          squares += term * term;
        }
        const double value = static_cast<double>(got[product.out_stride * t + r]);
        worst = worse(worst, std::fabs(value - sum) / std::sqrt(squares));
      }
    }
    return worst;
  }

  char features_[256] = "";
};

constexpr const char* kNoHalves =
    "the device has no arithmetic in f16 (VK_KHR_shader_float16_int8), or it is turned off";

INSTANTIATE_TEST_SUITE_P(Device, MatmulInHalves, testing::Bool(), [](const auto& tested) {
  return std::string(tested.param ? "as_gpu" : "as_it_is");
});

PackedMatrix matrixOf(WeightType type, uint32_t rows, uint32_t cols, const void* file,
                      const std::vector<double>& values) {
  PackedMatrix m;
  m.type = type;
  m.rows = rows;
  m.cols = cols;
  m.geometry = weightGeometry(type, cols);
  m.words.assign(m.geometry.sliceBytes(rows) / 4, 0);
  repackRows(type, static_cast<const uint8_t*>(file), rows, cols, 0, m.words.data());
  m.values = values;
  return m;
}

/// Every unit of a row has numbers of another size; F16 or BF16.
PackedMatrix matrixOfSizes(WeightType type, uint32_t rows, const std::vector<float>& sizes,
                           Random* random) {
  std::vector<uint16_t> file;
  std::vector<double> values;
  for (uint32_t r = 0; r < rows; ++r) {
    for (const float size : sizes) {
      for (uint32_t i = 0; i < kUnit; ++i) {
        const float value = size * std::min(1.0f, 0.3f * std::fabs(random->normal()) + 0.1f) *
                            (random->below(2) != 0 ? 1.0f : -1.0f);
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof(bits));
        const bool half = type == WeightType::kF16;
        file.push_back(half ? floatToHalf(value) : static_cast<uint16_t>(bits >> 16));
        values.push_back(
            static_cast<double>(half ? halfToFloat(file.back()) : bfloat16ToFloat(file.back())));
      }
    }
  }
  return matrixOf(type, rows, static_cast<uint32_t>(sizes.size()) * kUnit, file.data(), values);
}

/// Q8_0, every quant the same.
PackedMatrix matrixOfBytes(uint32_t rows, uint32_t cols, float scale, int8_t quant) {
  const uint16_t half = floatToHalf(scale);
  std::vector<uint8_t> file;
  for (uint32_t block = 0; block < rows * cols / 32; ++block) {
    file.push_back(static_cast<uint8_t>(half & 0xff));
    file.push_back(static_cast<uint8_t>(half >> 8));
    file.insert(file.end(), 32, static_cast<uint8_t>(quant));
  }
  return matrixOf(WeightType::kQ8_0, rows, cols, file.data(),
                  std::vector<double>(rows * cols, quant * static_cast<double>(halfToFloat(half))));
}

RUNS_ON(kEachGpu);
RUNS_ON(kNightlyGpu, "as_gpu");
TEST_P(MatmulInHalves, inputs_of_any_size_are_multiplied) {
  // Sizes of tokens: ordinary, about the largest that f16 holds, far above, about the smallest, far below.
  constexpr float kSizes[] = {1.0f,  2e4f,  65504.0f, 7e4f,  1e6f,   3e9f,   1e20f,
                              1e30f, 6e-5f, 6e-8f,    1e-8f, 1e-20f, 1e-30f, 1e-35f};
  constexpr uint32_t kTokens = sizeof(kSizes) / sizeof(kSizes[0]);
  double worst = 0;
  for (uint32_t t = 0; t < kWeightTypes; ++t) {
    if (isOthersTurn(t, GetParam())) {
      continue;
    }
    const WeightType type = static_cast<WeightType>(t);
    const uint8_t candidate = firstOf(type, "half");
    if (candidate == 0) {
      continue;
    }
    SCOPED_TRACE(weightTypeName(type));
    Random random(t + 7);
    KernelRig rig(kTokens);
    prepare(&rig, candidate);
    const Product product(
        &rig, randomMatrix(type, 21, 320, &random), kTokens, false, 0,
        [&](uint32_t token, uint32_t) { return random.normal() * kSizes[token]; });
    worst = worse(worst, run(&rig, product, kTokens));
  }
  if (worst == 0) {
    GTEST_SKIP() << kNoHalves;
  }
  std::printf("worst error: %.2e of the norm of a sum's terms\n", worst);
  EXPECT_LT(worst, 4e-3) << "as the self-test has it";
}

RUNS_ON(kNightlyGpu);
TEST_P(MatmulInHalves, weights_of_any_size_are_multiplied) {
  constexpr uint32_t kRows = 5, kTokens = 3;
  const std::vector<float> half_sizes = {6e4f, 7e-4f, 1.0f, 3e-2f};
  const std::vector<float> bfloat_sizes = {1e20f, 1e-30f, 1.0f, 3e15f};
  for (const WeightType type : {WeightType::kF16, WeightType::kBf16}) {
    const uint8_t candidate = firstOf(type, "half");
    if (candidate == 0) {
      GTEST_SKIP() << kNoHalves;
    }
    SCOPED_TRACE(weightTypeName(type));
    const std::vector<float>& sizes = type == WeightType::kF16 ? half_sizes : bfloat_sizes;
    for (uint32_t unit = 0; unit < sizes.size(); ++unit) {
      // The others meet zeros: in a sum the largest would hide what becomes of the rest.
      Random random(unit + 1);
      KernelRig rig(kTokens);
      prepare(&rig, candidate);
      const Product product(
          &rig, matrixOfSizes(type, kRows, sizes, &random), kTokens, false, 0,
          [&](uint32_t, uint32_t col) { return col / kUnit == unit ? random.normal() : 0.0f; });
      EXPECT_LT(run(&rig, product, kTokens), 4e-3);
    }
  }
}

RUNS_ON(kEachGpu);
RUNS_ON(kNightlyGpu, "as_gpu");
TEST_P(MatmulInHalves, the_largest_weights_with_the_largest_inputs_do_not_overflow) {
  constexpr uint32_t kRows = 5, kTokens = 3, kCols = 4 * kUnit;
  const uint8_t candidate = firstOf(WeightType::kQ8_0, "half");
  if (candidate == 0) {
    GTEST_SKIP() << kNoHalves;
  }
  for (const float scale : {65504.0f, 1.0f, 6e-8f}) {
    for (const int8_t quant : {int8_t{-128}, int8_t{127}}) {
      KernelRig rig(kTokens);
      prepare(&rig, candidate);
      // Values just below a power of two are rounded up to it.
      const Product product(&rig, matrixOfBytes(kRows, kCols, scale, quant), kTokens, false, 0,
                            [](uint32_t, uint32_t) { return 1.0f - 1.0f / 16384; });
      // All errors have the same sign: the bound is per term, not by the norm.
      EXPECT_LT(run(&rig, product, kTokens) / std::sqrt(kCols), 1e-3);
    }
  }
}

RUNS_ON(kNightlyGpu);
TEST_P(MatmulInHalves, long_rows_are_as_exact_as_short_ones) {
  // All terms of one sign: a running sum in halves would stop growing at 2048 times a term.
  constexpr uint32_t kCols[2] = {2 * kUnit, 63 * kUnit};
  constexpr uint32_t kTokens = 32;
  double errors[2] = {};  // relative, the root of their mean square
  for (int i = 0; i < 2; ++i) {
    const uint8_t candidate = firstOf(WeightType::kF16, "half");
    if (candidate == 0) {
      GTEST_SKIP() << kNoHalves;
    }
    Random random(5);
    KernelRig rig(kTokens);
    prepare(&rig, candidate);
    const PackedMatrix matrix = randomMatrix(WeightType::kF16, 1, kCols[i], &random);
    const Product product(&rig, matrix, kTokens, false, 0, [&](uint32_t, uint32_t c) {
      return std::fabs(random.normal()) * (matrix.at(0, c) < 0 ? -1.0f : 1.0f);
    });
    run(&rig, product, kTokens);
    for (uint32_t t = 0; t < kTokens; ++t) {
      double want = 0;
      for (uint32_t c = 0; c < kCols[i]; ++c) {
        want += matrix.at(0, c) * static_cast<double>(product.in[product.in_stride * t + c]);
      }
      const double error =
          static_cast<double>(rig.floats(product.out)[product.out_stride * t]) / want - 1;
      errors[i] += error * error / kTokens;
    }
    errors[i] = std::sqrt(errors[i]);
  }
  std::printf("relative error: %.2e of %u columns, %.2e of %u\n", errors[0], kCols[0], errors[1],
              kCols[1]);
  EXPECT_LT(errors[0], 1e-3);
  EXPECT_LT(errors[1], errors[0]) << "roundings that are independent average out";
}

RUNS_ON(kEachGpu);
RUNS_ON(kNightlyGpu, "as_gpu");
TEST_P(MatmulInHalves, inputs_staged_in_two_ways_in_turns_follow_what_the_ops_before_wrote) {
  // A permutation applied many times over through the same two vectors by products in halves; each time another
  // takes the same input as integers, where the device has those.
  constexpr uint32_t kCols = 64, kTimes = 12, kTokens = 3;
  const uint8_t half = firstOf(WeightType::kQ8_0, "half");
  const uint8_t dot = firstOf(WeightType::kQ8_0, "dot");
  if (half == 0) {
    GTEST_SKIP() << kNoHalves;
  }
  std::vector<uint8_t> file;
  for (uint32_t r = 0; r < kCols; ++r) {
    for (uint32_t block = 0; block < kCols / 32; ++block) {
      file.insert(file.end(), {0x00, 0x24});  // 1/64
      for (uint32_t i = 0; i < 32; ++i) {
        file.push_back(block * 32 + i == (r + 1) % kCols ? 64 : 0);
      }
    }
  }
  const PackedMatrix matrix = matrixOf(WeightType::kQ8_0, kCols, kCols, file.data(), {});
  KernelRig rig(kTokens);
  prepare(&rig, half);
  std::vector<float> in;
  for (uint32_t i = 0; i < kCols * kTokens; ++i) {
    in.push_back(static_cast<float>(i));
  }
  const BufferRef weights = rig.input(matrix.words);
  const BufferRef start = rig.input(in);
  const BufferRef ping = rig.activation(kCols * kTokens), pong = rig.activation(kCols * kTokens);
  const BufferRef out = rig.output(kCols * kTokens), twin = rig.output(kCols * kTokens);
  MatmulPush push = {};
  push.rows = kCols;
  push.units = kCols / kUnit;
  push.group_words = matrix.geometry.groupWords();
  push.side_word = matrix.geometry.sideWord();
  push.in_stride = push.out_stride = kCols;
  for (uint32_t i = 0; i < kTimes; ++i) {
    const BufferRef from = i == 0 ? start : (i % 2 != 0 ? ping : pong);
    const BufferRef to = i == kTimes - 1 ? out : (i % 2 != 0 ? pong : ping);
    rig.add(StepList::kChunk, OpKind::kMatmul, push, {weights, to, from}).weights = matrix.type;
    Op& other = rig.add(StepList::kChunk, OpKind::kMatmul, push, {weights, twin, from});
    other.weights = matrix.type;
    other.candidate = dot != 0 ? dot : half;
  }
  ASSERT_TRUE(rig.load().ok()) << rig.log.errors();
  for (int repeat = 0; repeat < 5; ++repeat) {
    rig.clearOutputs();
    rig.header().n_tokens = kTokens;
    ASSERT_TRUE(rig.executor->run(StepRun::kChunk).ok());
    for (uint32_t i = 0; i < kCols * kTokens; ++i) {
      const float want = in[i / kCols * kCols + (i % kCols + kTimes) % kCols];
      ASSERT_EQ(rig.floats(out)[i], want) << "halves hold these numbers exactly";
      ASSERT_NEAR(rig.floats(twin)[i], want, 0.03f);
    }
  }
}

RUNS_ON(kEachGpu);
RUNS_ON(kNightlyGpu, "as_gpu");
TEST_P(MatmulInHalves, turned_off_by_name_they_are_gone_and_matrix_units_with_them) {
  if (firstOf(WeightType::kQ8_0, "half") == 0) {
    GTEST_SKIP() << kNoHalves;
  }
  EXPECT_NE(std::string(features_).find("f16 arithmetic"), std::string::npos) << features_;
  EXPECT_EQ(0, firstOf(WeightType::kQ8_0, "half", "float16"));
  EXPECT_EQ(std::string(features_).find("f16"), std::string::npos) << features_;
  EXPECT_EQ(0, firstOf(WeightType::kQ8_0, "matrix", "float16"));
  EXPECT_NE(0, firstOf(WeightType::kQ8_0, "half", "cooperative_matrix"));
}

}  // namespace
}  // namespace oriel_internal::test::test_matmul_half

#endif
