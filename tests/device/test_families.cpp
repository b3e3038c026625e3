// Granite, MiniCPM, ERNIE 4.5, Hunyuan, Mistral 3, EXAONE 4, OLMo 2 and 3, Gemma 2 and LFM2: any shape, window and
// chunk against float64.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/against_float64.h"
#include "support/random_families.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_families {
namespace {

// A float64 pass with only keys and values rounded to f16 differs by up to 2e-3.
constexpr double kTolerance = 2.5e-3;

std::vector<FamilyParam> everyFamily() {
  static const RandomFamily exaone4{"exaone4 of windows", smallExaone4OfWindows()};
  std::vector<FamilyParam> families = familyParams();
  families.push_back(&exaone4);
  return families;
}

class Families : public testing::TestWithParam<FamilyParam> {
 protected:
  static std::vector<int32_t> ids(size_t count) {
    return someIds(count, static_cast<int32_t>(GetParam()->model.n_vocab));
  }
  TemporaryModel file_{GetParam()->model};
};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "gemma4", "qwen35", "falcon_h1", "mamba2", "deepseek2", "minicpm3");
TEST_P(Families, streaming_past_every_window_equals_float64) {
  struct Setting {
    uint32_t sinks, window, chunk;
  };
  // Their own windows of 7 or 8: shorter than the session's, equal, longer.
  for (const Setting s : {Setting{4, 20, 7}, Setting{0, 8, 1}, Setting{2, 3, 0}}) {
    expectReference(file_.path(), s.sinks, s.window, s.chunk, ids(70), kTolerance);
  }
}

// Families whose scores depend only on distances. Hunyuan's norms after RoPE make its scores depend on the start
// position.
class FarFamilies : public Families {};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "gemma4", "qwen35", "deepseek2");
TEST_P(FarFamilies, far_from_zero_is_as_exact_as_near_it) {
  expectReference(file_.path(), 2, 20, 8, ids(40), kTolerance, (uint64_t{1} << 40) + 12345);
}

RUNS_ON(kCpu);
TEST_P(Families, caches_of_few_bits_stay_near) {
  const auto exact = evaluate(load(file_.path(), windowOptions(4, 20, 7)), ids(50));
  struct Formats {
    oriel_kv_format k, v;
    double mean;
  };
  for (const Formats& f :
       {Formats{ORIEL_KV_INT8, ORIEL_KV_INT8, 0.05}, Formats{ORIEL_KV_INT4, ORIEL_KV_INT4, 0.5}}) {
    const auto rows = evaluate(load(file_.path(), windowOptions(4, 20, 7, f.k, f.v)), ids(50));
    ASSERT_EQ(exact.size(), rows.size());
    double mean = 0;
    for (size_t t = 0; t < rows.size(); ++t) {
      mean += relativeL2(rows[t], exact[t]) / static_cast<double>(rows.size());
    }
    EXPECT_LT(mean, f.mean);
  }
}

RUNS_ON(kCpu);
TEST_P(Families, every_device_agrees_with_the_reference_executor) {
  Options options = windowOptions(3, 24, 8, ORIEL_KV_INT8, ORIEL_KV_INT4);
  const auto got = evaluate(load(file_.path(), options), ids(50));
  options.device = "cpu";
  const auto want = evaluate(load(file_.path(), options), ids(50));
  ASSERT_EQ(want.size(), got.size());
  double mean = 0;
  for (size_t t = 0; t < got.size(); ++t) {
    mean += relativeL2(got[t], want[t]) / static_cast<double>(got.size());
  }
  EXPECT_LT(mean, 0.03);  // as in test_cache_formats.cpp: a last-bit difference may change a code
}

std::vector<FamilyParam> farFamilies() {
  std::vector<FamilyParam> families = everyFamily();
  families.erase(std::remove_if(families.begin(), families.end(),
                                [](FamilyParam family) {
                                  return family->model.architecture == "hunyuan-dense";
                                }),
                 families.end());
  return families;
}

INSTANTIATE_TEST_SUITE_P(Random, Families, testing::ValuesIn(everyFamily()), familyName);
INSTANTIATE_TEST_SUITE_P(Random, FarFamilies, testing::ValuesIn(farFamilies()), familyName);

// ---- Shapes that no published model has ----------------------------------------------------------

struct Shape {
  uint32_t n_embd, n_heads, n_kv_heads, head_dim, n_ff, window;
  bool tied;
};

/// Families by architecture, each in all of `shapes`. Families without windows ignore a shape's window.
void expectOddShapes(const std::vector<std::string>& architectures,
                     const std::vector<Shape>& shapes) {
  for (const RandomFamily& family : randomFamilies()) {
    if (std::find(architectures.begin(), architectures.end(), family.model.architecture) ==
        architectures.end()) {
      continue;
    }
    for (const Shape& s : shapes) {
      RandomLlama model = family.model;
      model.n_embd = s.n_embd;
      model.n_heads = s.n_heads;
      model.n_kv_heads = s.n_kv_heads;
      model.head_dim = s.head_dim;
      model.n_ff = s.n_ff;
      model.local_window = model.local_window != 0 ? s.window : 0;
      model.tied_output = s.tied && model.tied_output;
      if (!model.rope_freqs.empty()) {
        model.rope_freqs.assign(s.head_dim / 2, 2.5f);
      }
      if (!model.short_factors.empty()) {
        model.short_factors.assign(s.head_dim / 2, 1.5f);
        model.long_factors.assign(s.head_dim / 2, 9.0f);
      }
      for (uint32_t& kv_heads : model.kv_heads_by_layer) {
        kv_heads = kv_heads != 0 ? s.n_kv_heads : 0;
      }
      SCOPED_TRACE(family.name + ", heads of " + std::to_string(s.head_dim));
      const TemporaryModel file(model);
      expectReference(file.path(), 3, 14, 6, someIds(40, static_cast<int32_t>(model.n_vocab)),
                      kTolerance);
    }
  }
}

RUNS_ON(kCpu);
TEST(FamilyShapes, odd_shapes_equal_float64_where_heads_have_a_width_of_their_own) {
  expectOddShapes({"granite", "minicpm", "ernie4_5", "hunyuan-dense", "mistral3", "gemma2"},
                  {{60, 3, 1, 20, 100, 5, true},
                   {33, 4, 2, 8, 50, 1, false},
                   {100, 6, 3, 10, 172, 17, true},
                   {48, 2, 2, 256, 31, 9, true}});
}

RUNS_ON(kCpu);
TEST(FamilyShapes, odd_shapes_equal_float64_where_heads_fill_the_width) {
  expectOddShapes({"exaone4", "olmo2", "lfm2"}, {{60, 3, 1, 20, 100, 5, true},
                                                 {56, 7, 1, 8, 33, 1, false},
                                                 {60, 6, 3, 10, 172, 17, true},
                                                 {34, 1, 1, 34, 20, 2, false},
                                                 {512, 2, 2, 256, 31, 9, true}});
}

RUNS_ON(kCpu);
TEST(FamilyShapes, gemma2_has_caps_and_a_window_when_its_file_does_not_say) {
  RandomLlama gemma2;
  gemma2.architecture = "gemma2";
  const TemporaryModel file(gemma2);
  expectReference(file.path(), 4, 20, 7, someIds(60, 320), kTolerance);
}

// Published files of LFM2 state the width before its adjustment.
RUNS_ON(kCpu);
TEST(FamilyShapes, lfm2_is_as_wide_as_its_tensors_whatever_the_file_says) {
  RandomLlama lfm2 = smallLfm2();
  lfm2.says_n_ff = 144;
  const TemporaryModel file(lfm2);
  expectReference(file.path(), 4, 20, 7, someIds(40, 320), kTolerance);
}

RUNS_ON(kCpu);
TEST(FamilyShapes, a_window_in_a_file_of_lfm2_is_that_of_all_its_attention) {
  RandomLlama lfm2 = smallLfm2();
  lfm2.local_window = 7;
  const TemporaryModel file(lfm2);
  for (const uint32_t window : {3u, 20u}) {  // shorter than theirs, longer
    expectReference(file.path(), 4, window, 5, someIds(60, 320), kTolerance);
  }
}

RUNS_ON(kCpu);
TEST(FamilyShapes, counts_may_differ_from_layer_to_layer) {
  for (const char* architecture : {"llama", "qwen3"}) {
    RandomLlama model;
    model.architecture = architecture;
    model.n_layers = 4;
    model.n_heads = 4;
    model.kv_heads_by_layer = {2, 4, 1, 2};
    model.n_ff_by_layer = {96, 40, 160, 33};
    const TemporaryModel file(model);
    for (const uint32_t chunk : {1u, 7u}) {
      expectReference(file.path(), 3, 14, chunk, someIds(40, 320), kTolerance);
    }
  }
}

RUNS_ON(kCpu);
TEST(FamilyShapes, kinds_of_layers_may_come_in_any_order) {
  for (const std::vector<uint32_t>& kv_heads :
       std::vector<std::vector<uint32_t>>{{2, 0, 0, 2, 0}, {0, 2}, {2, 0}, {0, 0, 0, 2}, {2}}) {
    RandomLlama lfm2 = smallLfm2();
    lfm2.n_layers = static_cast<uint32_t>(kv_heads.size());
    lfm2.kv_heads_by_layer = kv_heads;
    const TemporaryModel file(lfm2);
    expectReference(file.path(), 2, 9, 5, someIds(40, 320), kTolerance);
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_families
