// Models with latent attention: unpublished shapes, weights of every layout, and sessions that go back, are saved and
// round their memory.
#include <gtest/gtest.h>

#include "support/against_float64.h"
#include "support/file_blocks.h"
#include "support/random_families.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_latents {
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
