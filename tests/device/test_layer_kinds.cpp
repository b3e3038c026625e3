// Promises of sessions for models with gates, norms after branches, an extra score per head, experts with a shared
// feed-forward, layer norms, several passes or one-bit weights: snapshots, going back, cancelling, streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/against_float64.h"
#include "support/files.h"
#include "support/guessed_replies.h"
#include "support/model_mutants.h"
#include "support/read_files.h"
#include "support/sessions.h"

namespace oriel_internal::test::test_layer_kinds {
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
