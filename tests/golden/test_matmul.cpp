// Every matmul variant for one vector or a chunk on Vulkan, against plain computation in double, and the choice among
// them. Needs a Vulkan target.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/api.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/golden.h"
#include "support/product.h"
#include "support/tiers.h"

#ifdef ORIEL_VULKAN

namespace oriel_internal::test::test_matmul {
namespace {

namespace fs = std::filesystem;

class Matmul : public Products {};

INSTANTIATE_TEST_SUITE_P(Device, Matmul, testing::Bool(), [](const auto& tested) {
  return std::string(tested.param ? "as_gpu" : "as_it_is");
});

RUNS_ON(kEachGpu);
RUNS_ON(kNightlyGpu, "as_gpu");
TEST_P(Matmul, every_candidate_multiplies_every_row_and_writes_nothing_else) {
  int dot_products = 0;
  for (uint32_t t = 0; t < kWeightTypes; ++t) {
    if (isOthersTurn(t, GetParam())) {
      continue;
    }
    const WeightType type = static_cast<WeightType>(t);
    for (uint32_t index = 0; index < kMostCandidates; ++index) {
      Random random(t + 1);
      KernelRig rig;
      rig.options.divide_as_gpu = GetParam();
      rig.candidate = static_cast<uint8_t>(index + 1);
      const Product products[] = {{&rig, type, 1, 8, &random},
                                  {&rig, type, 3, 64, &random, true, 5},
                                  {&rig, type, 64, 172, &random},
                                  {&rig, type, 33, 96, &random, true},
                                  {&rig, type, 100, 40, &random, false, 3},
                                  {&rig, type, 17, 576, &random},
                                  {&rig, type, 200, 300, &random, true, 1},
                                  {&rig, type, 2, 1500, &random}};
      ASSERT_TRUE(rig.load().ok()) << rig.log.errors();
      const char* const name = candidateName(rig.executor, MatmulUse::kVector, type, index);
      if (name == nullptr) {
        break;  // no more variants for this type
      }
      SCOPED_TRACE(name);
      dot_products += roundsOf(name) == Rounds::kInputsTo16Bits;
      for (int run = 0; run < 2; ++run) {
        rig.clearOutputs();
        rig.header().n_tokens = 1;
        ASSERT_TRUE(rig.executor->run(StepRun::kDecode).ok()) << rig.log.errors();
        for (const Product& product : products) {
          product.check(rig.floats(product.out), roundsOf(name));
          product.check(rig.floats(product.head_out), roundsOf(name));
        }
      }
    }
  }
  const std::string disabled = disabledFeatures() != nullptr ? disabledFeatures() : "";
  if (disabled.find("integer_dot") != std::string::npos || disabled == "all") {
    EXPECT_EQ(dot_products, 0);
  } else {
    EXPECT_GE(dot_products, allCases() ? 20 : 4)
        << "both software devices have packed dot products";
  }
}

RUNS_ON(kNightlyGpu);
TEST_P(Matmul, every_candidate_multiplies_every_token_of_a_chunk_and_writes_nothing_else) {
  constexpr uint32_t kChunk = 35;
  int dot_products = 0;
  int matrix_units = 0;
  int halves = 0;
  char features[256] = "";
  for (uint32_t t = 0; t < kWeightTypes; ++t) {
    if (isOthersTurn(t, GetParam())) {
      continue;
    }
    const WeightType type = static_cast<WeightType>(t);
    for (uint32_t index = 0; index < kMostCandidates; ++index) {
      Random random(t + 1);
      KernelRig rig(kChunk);
      rig.options.divide_as_gpu = GetParam();
      rig.candidate = static_cast<uint8_t>(index + 1);
      const Product products[] = {{&rig, type, 3, 64, &random, true, 5, kChunk},
                                  {&rig, type, 70, 40, &random, false, 3, kChunk},
                                  {&rig, type, 150, 96, &random, true, 0, kChunk},
                                  {&rig, type, 17, 576, &random, false, 0, kChunk}};
      ASSERT_TRUE(rig.load().ok()) << rig.log.errors();
      const char* const name = candidateName(rig.executor, MatmulUse::kChunk, type, index);
      if (name == nullptr) {
        break;  // no more variants for this type
      }
      SCOPED_TRACE(name);
      dot_products += roundsOf(name) == Rounds::kInputsTo16Bits;
      matrix_units += roundsOf(name) == Rounds::kBothToHalves;
      halves += roundsOf(name) == Rounds::kInputsAndRunsToHalves;
      rig.executor->describeFeatures(features, sizeof(features));
      for (const uint32_t n_tokens : {kChunk, 2u, 8u}) {
        rig.clearOutputs();
        rig.header().n_tokens = n_tokens;
        ASSERT_TRUE(rig.executor->run(StepRun::kChunk).ok()) << rig.log.errors();
        for (const Product& product : products) {
          product.check(rig.floats(product.out), roundsOf(name), n_tokens);
        }
      }
    }
  }
  std::printf("%d candidates with dot products, %d in half precision, %d with matrix units\n",
              dot_products, halves, matrix_units);
  const std::string disabled = disabledFeatures() != nullptr ? disabledFeatures() : "";
  if (disabled.find("integer_dot") != std::string::npos || disabled == "all") {
    EXPECT_EQ(dot_products, 0);
  } else {
    EXPECT_GE(dot_products, allCases() ? 10 : 2)
        << "both software devices have packed dot products, for ten types";
  }
  if (disabled.find("cooperative_matrix") != std::string::npos || disabled == "all") {
    EXPECT_EQ(matrix_units, 0);
  }
  if (std::string(features).find("f16 arithmetic") == std::string::npos) {
    EXPECT_EQ(halves, 0);
  } else {
    EXPECT_GE(halves, allCases() ? 14 : 2) << "every type but F32";
  }
}

RUNS_ON(kEachGpu | kValidated);
RUNS_ON(kOneGpu | kValidated, "as_gpu");
TEST_P(Matmul, staged_inputs_follow_what_the_ops_before_wrote) {
  // A permutation applied many times over through the same two vectors, by products with dot products: an
  // input that was staged too early or kept too long shows. Q8_0 holds 64 and 0 exactly.
  constexpr uint32_t kCols = 64, kTimes = 24;
  KernelRig rig;
  rig.options.divide_as_gpu = GetParam();
  rig.candidate = GetParam() ? 4 : 2;
  std::vector<uint8_t> file;
  for (uint32_t r = 0; r < kCols; ++r) {
    for (uint32_t block = 0; block < kCols / 32; ++block) {
      const uint16_t scale = floatToHalf(1.0f / 64);
      file.push_back(static_cast<uint8_t>(scale & 0xff));
      file.push_back(static_cast<uint8_t>(scale >> 8));
      for (uint32_t i = 0; i < 32; ++i) {
        file.push_back(block * 32 + i == (r + 1) % kCols ? 64 : 0);
      }
    }
  }
  const WeightGeometry geometry = weightGeometry(WeightType::kQ8_0, kCols);
  std::vector<uint32_t> words(geometry.sliceBytes(kCols) / 4, 0);
  repackRows(WeightType::kQ8_0, file.data(), kCols, kCols, 0, words.data());
  std::vector<float> in(kCols);
  for (uint32_t c = 0; c < kCols; ++c) {
    in[c] = static_cast<float>(c);
  }
  const BufferRef weights = rig.input(words);
  const BufferRef start = rig.input(in);
  const BufferRef ping = rig.activation(kCols), pong = rig.activation(kCols);
  const BufferRef out = rig.output(kCols), twin = rig.output(kCols);
  MatmulPush push = {};
  push.rows = kCols;
  push.units = kCols / kUnit;
  push.group_words = geometry.groupWords();
  push.side_word = geometry.sideWord();
  push.in_stride = push.out_stride = kCols;
  for (uint32_t i = 0; i < kTimes; ++i) {
    const BufferRef from = i == 0 ? start : (i % 2 != 0 ? ping : pong);
    const BufferRef to = i == kTimes - 1 ? out : (i % 2 != 0 ? pong : ping);
    rig.add(StepList::kDecode, OpKind::kMatmul, push, {weights, to, from}).weights =
        WeightType::kQ8_0;
    if (i == kTimes - 1) {  // shares the input
      rig.add(StepList::kDecode, OpKind::kMatmul, push, {weights, twin, from}).weights =
          WeightType::kQ8_0;
    }
  }
  ASSERT_TRUE(rig.load().ok()) << rig.log.errors();
  for (int repeat = 0; repeat < 5; ++repeat) {
    rig.clearOutputs();
    rig.header().n_tokens = 1;
    ASSERT_TRUE(rig.executor->run(StepRun::kDecode).ok());
    for (uint32_t c = 0; c < kCols; ++c) {
      ASSERT_NEAR(rig.floats(out)[c], static_cast<float>((c + kTimes) % kCols), 0.03f);
      ASSERT_EQ(rig.floats(out)[c], rig.floats(twin)[c]);
    }
  }
}

// ---- The choice ----------------------------------------------------------------------------------

class MatmulChoice : public testing::Test {
 protected:
  void SetUp() override {
    if (!onVulkan()) {
      GTEST_SKIP() << "the target is not Vulkan";
    }
    folder_ = fs::temp_directory_path() / ("oriel-choices-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Loads with the folder; the executor's report on Q8_0.
  struct Seen {
    bool measured;
    std::string log;
  };
  Seen load(uint32_t keep = UINT32_MAX, const char* disabled = nullptr) {
    KernelRig rig;
    Random random(1);
    rig.candidate = 0;
    const Product product(&rig, WeightType::kQ8_0, 40, 64, &random);
    const std::string folder = folder_.string();
    rig.options.cache_dir = folder.c_str();
    if (disabled != nullptr) {
      rig.options.disabled_features = disabled;
    }
    EXPECT_TRUE(rig.load().ok()) << rig.log.errors();
    Seen seen = {rig.executor->matmulTuning()->isMeasured(MatmulUse::kVector, WeightType::kQ8_0),
                 ""};
    for (const CapturedLog::Line& line : rig.log.lines) {
      seen.log += line.text + "\n";
    }
    if (keep != UINT32_MAX) {
      EXPECT_TRUE(
          rig.executor->matmulTuning()->take(MatmulUse::kVector, WeightType::kQ8_0, keep).ok());
      rig.clearOutputs();
      rig.header().n_tokens = 1;
      EXPECT_TRUE(rig.executor->run(StepRun::kDecode).ok());
      product.check(rig.floats(product.out), Rounds::kInputsTo16Bits);
      EXPECT_TRUE(rig.executor->matmulTuning()->keep(MatmulUse::kVector, WeightType::kQ8_0, keep));
    }
    return seen;
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".kernels") {
        return entry.path();
      }
    }
    return {};
  }

  fs::path folder_;
};

RUNS_ON(kOneGpu);
TEST_F(MatmulChoice, is_kept_for_executors_to_come) {
  EXPECT_FALSE(load(0).measured);
  ASSERT_FALSE(file().empty());
  EXPECT_TRUE(load().measured);
}

RUNS_ON(kOneGpu);
TEST_F(MatmulChoice, made_with_other_features_is_not_used) {
  load(0, "all");
  EXPECT_TRUE(load(UINT32_MAX, "all").measured);
  EXPECT_FALSE(load(UINT32_MAX, "").measured);
}

RUNS_ON(kNightlyGpu);
TEST_F(MatmulChoice, from_a_damaged_or_cut_file_is_not_used_and_one_line_says_so) {
  load(0);
  std::ifstream in(file(), std::ios::binary);
  const std::vector<char> good{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(good.size(), 80u);
  const fs::path path = file();
  const auto write = [&](const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  // The folder may be written with other separators.
  const auto lines = [name = path.filename().string()](const std::string& log) {
    size_t n = 0;
    for (size_t at = log.find(name); at != std::string::npos; at = log.find(name, at + 1)) {
      ++n;
    }
    return n;
  };
  for (size_t at = 0; at < good.size(); at += 13) {
    SCOPED_TRACE(at);
    std::vector<char> damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    write(damaged);
    const Seen seen = load();
    EXPECT_FALSE(seen.measured);
    EXPECT_EQ(lines(seen.log), 1u) << seen.log;
    write({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at)});
    EXPECT_FALSE(load().measured);
  }
  write(good);
  EXPECT_TRUE(load().measured);
}

// Logits of published models with the first candidate of a kind, and with the default.
class MatmulChoiceOf : public MatmulChoice {
 protected:
  /// How many types of weights have such a candidate; it is then kept for them.
  uint32_t keepFirst(MatmulUse use, const std::string& kind) {
    KernelRig rig;
    Random random(1);
    const Product product(&rig, WeightType::kQ8_0, 40, 64, &random);
    const std::string folder = folder_.string();
    rig.options.cache_dir = folder.c_str();
    EXPECT_TRUE(rig.load().ok()) << rig.log.errors();
    uint32_t kept = 0;
    for (uint32_t t = 0; t < kWeightTypes; ++t) {
      const WeightType type = static_cast<WeightType>(t);
      for (uint32_t i = 0; i < kMostCandidates; ++i) {
        const char* const name = candidateName(rig.executor, use, type, i);
        if (name != nullptr && std::string(name).compare(0, kind.size(), kind) == 0) {
          EXPECT_TRUE(rig.executor->matmulTuning()->keep(use, type, i));
          ++kept;
          break;
        }
      }
    }
    return kept;
  }

  void checkLogits(MatmulUse use, const std::string& kind, std::vector<std::string> models) {
    const std::string folder = folder_.string();
    double worst[2] = {};  // with those candidates, in float
    for (const std::string& name : models) {
      SCOPED_TRACE(name);
      ORIEL_NEED_DATA(model, "models/" + name + ".gguf");
      ORIEL_NEED_LOGITS(prompts, name);
      Options options = makeOptions();
      options.memory_bytes = 256u << 20;
      options.set("prefill_batch",
                  use == MatmulUse::kVector ? 1 : 0);  // 1: every token is one vector
      options.cache_folder = folder.c_str();
      const Loaded with_kind = oriel_internal::test::load(model, options);
      options.set("disable_features", "all");
      const Loaded in_float = oriel_internal::test::load(model, options);
      ASSERT_TRUE(with_kind.session && in_float.session);
      bool differ = false;
      for (const nlohmann::json& prompt : prompts) {
        const std::vector<int32_t> ids = prompt["ids"];
        std::vector<float> logits[2];
        for (const Loaded* loaded : {&with_kind, &in_float}) {
          ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded->session.get()));
          ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded->session.get(), ids.data(), ids.size(),
                                                   nullptr, nullptr));
          logits[loaded == &in_float] = logitsOf(*loaded);
        }
        const std::vector<float> exact = base64As<float>(prompt["exact"]["logits_f32_b64"]);
        for (int i = 0; i < 2; ++i) {
          const double error = relativeL2(logits[i], exact);
          EXPECT_LT(error, 5e-3) << "prompt of " << ids.size();
          worst[i] = worse(worst[i], error);
        }
        differ = differ || logits[0] != logits[1];
      }
      EXPECT_TRUE(differ) << kind << " was not used";
    }
    std::printf("worst relative error of logits: %.2e with %s, %.2e in float\n", worst[0],
                kind.c_str(), worst[1]);
  }
};

const std::vector<std::string> kDotModels = {
    "llama-q8_0", "llama-q4_0", "llama-q4_1",   "llama-q5_0", "llama-q5_1", "llama-q2_k",
    "llama-q3_k", "llama-q4_k", "llama-q4_k_m", "llama-q5_k", "llama-q6_k"};

RUNS_ON(kNightlyGpu);
TEST_F(MatmulChoiceOf, dot_products_keep_logits_within_what_the_float_kernels_are_held_to) {
  if (keepFirst(MatmulUse::kVector, "dot") == 0) {
    GTEST_SKIP() << "the device has no packed integer dot product, or it is turned off";
  }
  checkLogits(MatmulUse::kVector, "dot products", kDotModels);
}

RUNS_ON(kNightlyGpu);
TEST_F(MatmulChoiceOf,
       dot_products_for_chunks_keep_logits_within_what_the_float_kernels_are_held_to) {
  if (keepFirst(MatmulUse::kChunk, "dot") == 0) {
    GTEST_SKIP() << "the device has no packed integer dot product, or it is turned off";
  }
  checkLogits(MatmulUse::kChunk, "dot products", {"llama-q8_0", "llama-q4_0", "llama-q4_k_m"});
}

RUNS_ON(kNightlyGpu);
TEST_F(MatmulChoiceOf, half_precision_keeps_logits_within_what_the_float_kernels_are_held_to) {
  if (keepFirst(MatmulUse::kChunk, "half") == 0) {
    GTEST_SKIP() << "the device has no arithmetic in f16, or it is turned off";
  }
  std::vector<std::string> models = kDotModels;
  models.insert(models.end(), {"llama-f16", "llama-bf16", "llama-iq4_nl"});
  checkLogits(MatmulUse::kChunk, "half precision", models);
}

RUNS_ON(kOneGpu);
TEST_F(MatmulChoiceOf, matrix_units_keep_logits_within_what_the_float_kernels_are_held_to) {
  if (keepFirst(MatmulUse::kChunk, "matrix") == 0) {
    GTEST_SKIP() << "the device has no matrix units that multiply f16, they are turned off, or "
                    "this build has "
                    "no kernels for them";
  }
  std::vector<std::string> models = kDotModels;
  models.insert(models.end(), {"llama-f16", "llama-iq4_nl"});
  checkLogits(MatmulUse::kChunk, "matrix units", models);
}

RUNS_ON(kOneGpu);
TEST_F(MatmulChoice, names_of_features_that_do_not_exist_are_refused_with_those_that_do) {
  KernelRig rig;
  rig.options.disabled_features = "subgroup,warp_speed";
  EXPECT_EQ(rig.load().code(), ORIEL_ERROR_ARGUMENT);
  EXPECT_TRUE(rig.log.says("warp_speed")) << rig.log.errors();
  EXPECT_TRUE(rig.log.says("integer_dot")) << rig.log.errors();
}

}  // namespace
}  // namespace oriel_internal::test::test_matmul

#endif
