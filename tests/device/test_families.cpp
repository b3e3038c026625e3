// Granite, MiniCPM, ERNIE 4.5, Hunyuan, Mistral 3, EXAONE 4, OLMo 2 and 3, Gemma 2 and LFM2: any shape, window and
// chunk against float64.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "support/against_float64.h"
#include "support/encoding.h"
#include "support/file_blocks.h"
#include "support/files.h"
#include "support/model_mutants.h"
#include "support/random_families.h"
#include "support/reply.h"
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
RUNS_ON(kOneDevice, "mamba2");
TEST_P(Families, streaming_past_every_window_equals_float64) {
  struct Setting {
    uint32_t sinks, window, chunk;
  };
  // Their own windows of 7 or 8: shorter than the session's, equal, longer.
  size_t number = GetParam()->name.size();
  for (const Setting s : {Setting{4, 20, 7}, Setting{0, 8, 1}, Setting{2, 3, 0}}) {
    if (!allCases() && !onVulkan() && ++number % 3 == 0) {
      continue;  // an ordinary run leaves one to other families
    }
    expectReference(file_.path(), s.sinks, s.window, s.chunk, ids(70), kTolerance);
  }
}

// Families whose scores depend only on distances. Hunyuan's norms after RoPE make its scores depend on the start
// position.
class FarFamilies : public Families {};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "gemma4");
TEST_P(FarFamilies, far_from_zero_is_as_exact_as_near_it) {
  expectReference(file_.path(), 2, 20, 8, ids(40), kTolerance, (uint64_t{1} << 40) + 12345);
}

RUNS_ON(kNightly);
RUNS_ON(kCpu, "granite", "gemma2", "hunyuan_dense", "lfm2", "qwen3moe", "gemma4", "qwen35",
        "falcon_h1", "deepseek2", "minicpm3", "exaone4_of_windows");
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

RUNS_ON(kNightly);  // the CPU agrees with itself
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
    size_t number = family.name.size();
    for (const Shape& s : shapes) {
      if (!allCases() && !onVulkan() && ++number % 2 == 0) {
        continue;  // an ordinary run tries every second shape with a family
      }
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

namespace oriel_internal::test::test_latents {

// Models with latent attention: unpublished shapes, weights of every layout, and sessions that go back, are saved and
// round their memory.

namespace {

RandomLlama smallLatents(bool joined) {
  RandomLlama model;
  model.architecture = joined ? "minicpm3" : "deepseek2";
  model.n_layers = 2;
  model.n_kv_heads = joined ? 4 : 1;
  model.head_dim = 48;
  model.rope_dims = 16;
  model.latent_dim = 64;
  model.value_dim = 32;
  model.query_latent_dim = 32;
  model.joined_latents = joined;
  if (joined) {
    model.short_factors = std::vector<float>(8, 1.5f);
    model.long_factors = std::vector<float>(8, 30.0f);
  } else {
    model.n_experts = 4;
    model.expert_ff = 32;
    model.dense_layers = 2;  // no close choices
  }
  return model;
}

/// A model's file with other bytes in some of its tensors.
class ChangedModel {
 public:
  explicit ChangedModel(const GgufWriter& writer)
      : path_(testing::TempDir() + "oriel-latents-" + std::to_string(getpid()) + ".gguf") {
    const std::vector<uint8_t> bytes = writer.build();
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~ChangedModel() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

RUNS_ON(kCpu);
TEST(Latents, matrices_of_heads_run_in_every_type_and_layout) {
  for (const bool joined : {false, true}) {
    for (const TensorType type :
         {TensorType::kF16, TensorType::kBf16, TensorType::kQ8_0, TensorType::kQ4_0}) {
      SCOPED_TRACE(std::to_string(joined) + " " + tensorTypeName(static_cast<uint32_t>(type)));
      GgufWriter writer = smallLatents(joined).writer();
      std::mt19937_64 random(7);
      for (GgufWriter::Tensor& tensor : writer.tensors()) {
        if (tensor.name.find("_b.weight") == std::string::npos) {
          continue;
        }
        uint64_t count = 1;
        for (const uint64_t dim : tensor.dims) {
          count *= dim;
        }
        const bool single = blockValues(type) == 1;
        std::normal_distribution<float> normal(0, single ? 0.15f : 0.002f);
        tensor.type = static_cast<uint32_t>(type);
        tensor.data = randomBlocks(type, count / blockValues(type), &random,
                                   [&] { return floatToHalf(std::fabs(normal(random)) + 0.001f); });
      }
      const ChangedModel file(writer);
      for (const uint32_t chunk : {1u, 6u}) {
        expectReference(file.path(), 3, 14, chunk, someIds(30, 320), 5e-3);
      }
    }
  }
}

RUNS_ON(kCpu);
TEST(Latents, odd_shapes_equal_float64) {
  struct Shape {
    uint32_t heads, head_dim, rope, latent, value, query;
  };
  for (const bool joined : {false, true}) {
    for (const Shape& s :
         {Shape{1, 10, 2, 8, 6, 0}, Shape{3, 22, 6, 26, 14, 18}, Shape{5, 40, 32, 512, 40, 0},
          Shape{9, 96, 64, 100, 8, 70}, Shape{50, 12, 8, 36, 4, 24}}) {
      RandomLlama model = smallLatents(joined);
      model.n_heads = s.heads;
      model.n_kv_heads = joined ? s.heads : 1;
      model.head_dim = s.head_dim;
      model.rope_dims = s.rope;
      model.latent_dim = s.latent;
      model.value_dim = s.value;
      model.query_latent_dim = s.query;
      if (joined) {
        model.short_factors.assign(s.rope / 2, 1.5f);
        model.long_factors.assign(s.rope / 2, 9.0f);
      }
      SCOPED_TRACE(std::to_string(joined) + ", latents of " + std::to_string(s.latent));
      const TemporaryModel file(model);
      expectReference(file.path(), 3, 14, 6, someIds(40, 320), 2.5e-3);
    }
  }
}

// The model's context is longer than its short factors support.
RUNS_ON(kCpu);
TEST(Latents, long_factors_count_where_the_window_is_longer_than_the_trained_context) {
  RandomLlama model = smallLatents(true);
  model.context = 16;
  const TemporaryModel file(model);
  const std::vector<int32_t> ids = someIds(12, 320);
  const auto narrow = evaluate(load(file.path(), windowOptions(4, 12, 4)), ids);
  const auto wide = evaluate(load(file.path(), windowOptions(4, 13, 4)), ids);
  EXPECT_GT(relativeL2(wide.back(), narrow.back()), 1e-2);
}

RUNS_ON(kCpu);
TEST(Latents, a_token_takes_one_vector_in_the_format_of_keys) {
  const TemporaryModel file(smallLatents(false));
  struct Row {
    oriel_kv_format k, v;
    uint64_t bytes;
  };
  for (const Row& row :
       {Row{ORIEL_KV_F16, ORIEL_KV_F16, 2 * 80}, Row{ORIEL_KV_INT8, ORIEL_KV_F16, 80 + 2 * 3},
        Row{ORIEL_KV_INT4, ORIEL_KV_INT8, 40 + 2 * 3}}) {
    const FullPlan plan = planOf(load(file.path(), windowOptions(4, 40, 4, row.k, row.v)));
    EXPECT_EQ(2 * row.bytes, plan.kv_bytes_per_token);
    EXPECT_EQ(plan.k_format, plan.v_format);
  }
}

RUNS_ON(kCpu);
TEST(Latents, going_back_and_being_saved_change_nothing) {
  const TemporaryModel file(smallLatents(true));
  const std::vector<int32_t> ids = someIds(60, 320);
  const auto from = [&](size_t begin, size_t end) {
    return std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                ids.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const oriel_kv_format format : {ORIEL_KV_F16, ORIEL_KV_INT8, ORIEL_KV_INT4}) {
    const Options options = windowOptions(4, 24, 8, format, format);
    const Loaded loaded = load(file.path(), options);
    ASSERT_EQ(ORIEL_OK, append(loaded, ids));
    const std::vector<float> want = logitsOf(loaded);
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 56));
    ASSERT_EQ(ORIEL_OK, append(loaded, from(56, 60)));
    EXPECT_LT(relativeL2(logitsOf(loaded), want), 1e-3);

    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, from(0, 45)));
    const std::vector<uint8_t> bytes = savedBytes(loaded.session.get());
    ASSERT_EQ(ORIEL_OK, append(loaded, from(45, 60)));
    const std::vector<float> went_on = logitsOf(loaded);
    const Loaded other = load(file.path(), options);
    ASSERT_EQ(ORIEL_OK, restoreFrom(other.session.get(), bytes));
    ASSERT_EQ(ORIEL_OK, append(other, from(45, 60)));
    EXPECT_EQ(went_on, logitsOf(other)) << "to the bit";
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_latents

namespace oriel_internal::test::test_layer_kinds {

// Promises of sessions for models with gates, norms after branches, an extra score per head, experts with a shared
// feed-forward, layer norms, several passes or one-bit weights: snapshots, going back, cancelling, streams.

namespace {

class LayerKinds : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint32_t kSinks = 4;

  void SetUp() override {
    ORIEL_NEED_DATA(model, "models/" + std::string(GetParam()) + ".gguf");
    path_ = model;
  }

  Loaded fresh(uint32_t window, uint32_t chunk) const {
    Options options = windowOptions(kSinks, window, chunk);
    options.set("checkpoints", 2);
    return load(path_, options);
  }
  static std::vector<uint8_t> save(const Loaded& loaded) {
    size_t needed = 0;
    (void)oriel_snapshot_save(loaded.session.get(), nullptr, 0, &needed);
    std::vector<uint8_t> bytes(needed);
    EXPECT_EQ(ORIEL_OK,
              oriel_snapshot_save(loaded.session.get(), bytes.data(), bytes.size(), &needed));
    return bytes;
  }

  std::string path_;
};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "laguna");
TEST_P(LayerKinds, go_on_from_a_snapshot_to_the_bit) {
  const Loaded loaded = fresh(40, 8);
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(70, 250)));
  const std::vector<uint8_t> snapshot = save(loaded);
  const Loaded other = fresh(40, 8);
  ASSERT_EQ(ORIEL_OK, oriel_snapshot_restore(other.session.get(), snapshot.data(), snapshot.size(),
                                             0, nullptr));
  EXPECT_EQ(snapshot, save(other));
  EXPECT_EQ(greedy(loaded, 12), greedy(other, 12));
  EXPECT_EQ(logitsOf(loaded), logitsOf(other));
}

RUNS_ON(kCpu);
TEST_P(LayerKinds, that_went_back_are_those_that_were_never_further) {
  const std::vector<int32_t> all = someIds(61, 250);
  const Loaded loaded = fresh(200, 8);
  const Loaded other = fresh(200, 8);
  for (const size_t position : {8u, 30u, 57u}) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, all));
    const oriel_status status = goBackTo(loaded.session.get(), position - 1);
    if (status == ORIEL_ERROR_CONTEXT) {
      continue;  // some layer's window has evicted that position
    }
    ASSERT_EQ(ORIEL_OK, status);
    ASSERT_EQ(ORIEL_OK, append(loaded, {all[position - 1]}));
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(other.session.get()));
    ASSERT_EQ(ORIEL_OK, append(other, {all.begin(), all.begin() + static_cast<long>(position)}));
    EXPECT_EQ(greedy(other, 8), greedy(loaded, 8)) << position;
  }
}

// Far past the window, repeatedly with the same result.
RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen35moe");
TEST_P(LayerKinds, stream_past_their_window) {
  const Loaded loaded = fresh(24, 7);
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, someIds(150, 250)));
    (void)greedy(loaded, 20);
    const std::vector<float> logits = logitsOf(loaded);
    EXPECT_TRUE(
        std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
    first = round == 0 ? logits : first;
    EXPECT_EQ(first, logits);
  }
}

RUNS_ON(kCpu);
TEST_P(LayerKinds, that_were_cancelled_go_on) {
  const std::vector<int32_t> all = someIds(60, 250);
  const Loaded loaded = fresh(200, 8);
  ASSERT_EQ(ORIEL_OK, append(loaded, {all.begin(), all.begin() + 16}));
  oriel_session_cancel(loaded.session.get());
  const oriel_status status = append(loaded, {all.begin() + 16, all.end()});
  const uint64_t done = statsOf(loaded).position;
  if (status == ORIEL_ERROR_CANCELLED) {
    ASSERT_EQ(ORIEL_OK, append(loaded, {all.begin() + static_cast<long>(done), all.end()}));
  } else {
    ASSERT_EQ(ORIEL_OK, status);
  }
  const Loaded other = fresh(200, 8);
  ASSERT_EQ(ORIEL_OK, append(other, all));
  EXPECT_EQ(logitsOf(other), logitsOf(loaded));
}

// Right and wrong guesses change no token. Recurrent states cannot be rolled back, so models with them make no guesses.
RUNS_ON(kCpu);
TEST_P(LayerKinds, write_the_same_with_guesses) {
  Options options = windowOptions(kSinks, 24, 8);
  const Loaded plain = load(path_, options);
  options.set("speculate", 4);
  const Loaded guessing = load(path_, options);
  ASSERT_TRUE(plain.session && guessing.session);
  for (const Loaded* const loaded : {&plain, &guessing}) {
    ASSERT_EQ(ORIEL_OK, append(*loaded, someIds(30, 250)));
  }
  for (const uint64_t seed : {1u, 2u}) {
    const Written expected = generate(plain, few(seed, 30), "auto");
    const Written got = generate(guessing, few(seed, 30), "always");
    EXPECT_EQ(ORIEL_OK, got.status);
    EXPECT_EQ(expected.ids, got.ids);
    EXPECT_EQ(logitsOf(plain), logitsOf(guessing));
  }
}

/// Halves, quarters or doubles every matrix of a layer, and gives it the scale that makes up for it.
GgufWriter withScales(const std::string& path) {
  GgufWriter writer = takeApart(readBytes(path));
  const std::vector<GgufWriter::Tensor> tensors = writer.tensors();
  std::mt19937 random(5);
  for (const GgufWriter::Tensor& tensor : tensors) {
    const std::string stem = tensor.name.substr(0, tensor.name.rfind('.'));
    const bool has_scale = std::any_of(tensors.begin(), tensors.end(), [&](const auto& other) {
      return other.name == stem + ".scale";
    });
    bool is_matrix = tensor.name.rfind("blk.", 0) == 0 && tensor.dims.size() > 1 &&
                     tensor.dims[1] > 1 && stem + ".weight" == tensor.name && tensor.type == 0;
    // Not of a product, or of the heads' own products.
    for (const char* const other : {"norm", "conv.", "conv1d", "attn_k_b", "attn_v_b"}) {
      is_matrix = is_matrix && stem.find(other) == std::string::npos;
    }
    if (!is_matrix || has_scale) {
      continue;
    }
    const uint64_t depth = tensor.dims.size() > 2 ? tensor.dims[2] : 1;
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(float));
    std::vector<float> scales;
    for (uint64_t i = 0; i < depth; ++i) {
      const float scale = std::ldexp(1.0f, static_cast<int>(random() % 4) - 1);
      const size_t size = static_cast<size_t>(tensor.dims[0] * tensor.dims[1]);
      for (size_t v = i * size; v < (i + 1) * size; ++v) {
        values[v] /= scale;
      }
      scales.push_back(scale);
    }
    writer.addTensorF32(tensor.name, tensor.dims, values);
    writer.addTensorF32(stem + ".scale", {depth}, scales);
  }
  return writer;
}

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "nemotron_h_moe_latent");
TEST_P(LayerKinds, multiply_every_product_by_its_scale) {
  const std::vector<uint8_t> bytes = withScales(path_).build();
  const std::string scaled =
      testing::TempDir() + "oriel-scaled-" + std::to_string(getpid()) + ".gguf";
  std::ofstream(scaled, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const std::vector<int32_t> ids = someIds(9, 250);
  const Loaded plain = fresh(40, 8);
  const Loaded with_scales = load(scaled, windowOptions(kSinks, 40, 8));
  std::remove(scaled.c_str());
  ASSERT_TRUE(plain.session && with_scales.session);
  ASSERT_EQ(ORIEL_OK, append(plain, ids));
  ASSERT_EQ(ORIEL_OK, append(with_scales, ids));
  EXPECT_LT(relativeL2(logitsOf(with_scales), logitsOf(plain)), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, LayerKinds,
                         testing::Values("lfm3", "gpt-oss-mxfp4", "gemma4-moe-fused", "phi2",
                                         "nanbeige-skip", "llama-q1_0", "nemotron_h_moe-latent",
                                         "qwen35moe", "spark2_5", "granite_swa", "k2-horizon-mova",
                                         "laguna", "deepseek2-groups", "cohere2moe",
                                         "bailingmoe3-small", "gemma4-moe", "qwen3next", "hy_v3"),
                         [](const testing::TestParamInfo<const char*>& row) {
                           std::string name = row.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace oriel_internal::test::test_layer_kinds
