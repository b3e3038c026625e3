// Whole models against logits computed in float64 by an independent implementation.
#include <gtest/gtest.h>

#include "support/api.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/random_llama.h"

namespace oriel::test {
namespace {

struct Case {
  const char* model;
  double tolerance;  ///< relative L2, against the dequantised weights, cache in f16
};

std::string caseName(const testing::TestParamInfo<Case>& tested) {
  std::string name = tested.param.model;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class ModelLogits : public testing::TestWithParam<Case> {};

// Greedy continuations must be equal up to the first step whose two best logits lie closer than the
// error that the tolerance allows one of them: six times the root mean square.
size_t trustedSteps(const nlohmann::json& exact, double tolerance) {
  const std::vector<float> logits = base64As<float>(exact["logits_f32_b64"]);
  double norm = 0;
  for (const float logit : logits) {
    norm += static_cast<double>(logit) * logit;
  }
  const double error = 6 * tolerance * std::sqrt(norm / static_cast<double>(logits.size()));
  size_t steps = 0;
  for (const double margin : exact["greedy_margin"]) {
    if (margin < error) {
      break;
    }
    ++steps;
  }
  return steps;
}

TEST_P(ModelLogits, equal_the_float64_reference) {
  const Case& c = GetParam();
  ORIEL_NEED_DATA(model, std::string("models/") + c.model + ".gguf");
  ORIEL_NEED_DATA(golden, std::string("logits/") + c.model + ".json");
  const nlohmann::json prompts = readJson(golden)["prompts"];
  ASSERT_FALSE(prompts.empty());
  for (const uint32_t chunk : {0u, 1u, 7u}) {
    oriel_options options = makeOptions();
    options.memory_bytes = 256u << 20;
    options.chunk_tokens = chunk;
    const Loaded loaded = load(model, options);
    ASSERT_TRUE(loaded.session);
    size_t compared = 0;
    for (const nlohmann::json& prompt : prompts) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      const std::vector<int32_t> ids = prompt["ids"];
      ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), ids.data(), ids.size()));
      const nlohmann::json& exact = prompt["exact"];
      EXPECT_LT(relativeL2(logitsOf(loaded), base64As<float>(exact["logits_f32_b64"])), c.tolerance)
          << c.model << " chunk " << chunk << " prompt of " << ids.size();
      std::vector<int32_t> want = exact["greedy"];
      want.resize(std::min(want.size(), trustedSteps(exact, c.tolerance)));
      if (!want.empty()) {  // none asked for would mean no end
        EXPECT_EQ(want, greedy(loaded, static_cast<uint32_t>(want.size()))) << c.model;
        compared += want.size();
      }
    }
    EXPECT_GT(compared, 0u) << "no step can be trusted: the tolerance is too wide";
  }
}

// smollm3: the same float64 forward pass with nothing but keys and values rounded to f16 is 2.24e-3 away.
INSTANTIATE_TEST_SUITE_P(
    Models, ModelLogits,
    testing::Values(Case{"llama-f32", 2e-3}, Case{"llama-f16", 2e-3}, Case{"llama-bf16", 2e-3},
                    Case{"llama-mha", 2e-3}, Case{"llama-mqa", 2e-3}, Case{"stories260K", 2e-3},
                    Case{"llama-q8_0", 5e-3}, Case{"llama-q4_0", 5e-3}, Case{"llama-q4_1", 5e-3},
                    Case{"llama-q5_0", 5e-3}, Case{"llama-q5_1", 5e-3}, Case{"llama-iq4_nl", 5e-3},
                    Case{"llama-q2_k", 5e-3}, Case{"llama-q3_k", 5e-3}, Case{"llama-q4_k", 5e-3},
                    Case{"llama-q4_k_m", 5e-3}, Case{"llama-q5_k", 5e-3}, Case{"llama-q6_k", 5e-3},
                    Case{"TinyStories-656K-Q2_K", 1e-3}, Case{"llama3-rope", 2e-3},
                    Case{"qwen3", 2e-3}, Case{"gemma3", 2e-3}, Case{"smollm3", 2.5e-3},
                    Case{"phi3", 2e-3}),
    caseName);

// Shapes that no published model has: odd rows, every GQA ratio, heads of any even size.
TEST(Logits, odd_shapes_equal_the_float64_reference) {
  struct Shape {
    uint32_t n_embd, n_heads, n_kv_heads, head_dim, n_ff;
    bool tied;
  };
  for (const Shape& s : {Shape{60, 3, 1, 20, 100, true}, Shape{33, 4, 2, 8, 50, false},
                         Shape{64, 6, 3, 10, 172, true}, Shape{100, 2, 2, 256, 31, true},
                         Shape{48, 8, 1, 6 * 4, 77, false}}) {
    RandomLlama llama;
    llama.n_embd = s.n_embd;
    llama.n_heads = s.n_heads;
    llama.n_kv_heads = s.n_kv_heads;
    llama.head_dim = s.head_dim;
    llama.n_ff = s.n_ff;
    llama.tied_output = s.tied;
    const TemporaryModel file(llama);
    oriel_options options = makeOptions();
    options.memory_bytes = 256u << 20;
    options.k_format = options.v_format = ORIEL_KV_F16;
    const std::vector<int32_t> ids = someIds(40, static_cast<int32_t>(llama.n_vocab));
    const auto rows = evaluate(load(file.path(), options), ids);
    Float64Model reference(file.path());
    for (size_t t = 0; t < ids.size(); ++t) {
      EXPECT_LT(relativeL2(rows[t], reference.step(ids[t], 4, 512)), 2e-3)
          << "n_embd " << s.n_embd << " head_dim " << s.head_dim << " token " << t;
    }
  }
}

class OrielTiny : public testing::TestWithParam<size_t> {};

TEST_P(OrielTiny, equals_its_float64_reference) {
  const nlohmann::json file = readJson(ORIEL_TEST_DATA "/oriel-tiny-golden.json")["files"][GetParam()];
  const std::string path =
      ORIEL_SOURCE_DIR "/models/oriel-tiny/" + file["file"].get<std::string>();
  const Loaded loaded = load(path, makeOptions());
  ASSERT_TRUE(loaded.session);
  for (const nlohmann::json& c : file["cases"]) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    const std::string text = c["prompt"];
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(loaded.session.get(), text.data(), text.size(),
                                                  ORIEL_TEXT_SPECIAL));
    EXPECT_EQ(c["prompt_ids"].size(), statsOf(loaded).position);
    const std::vector<float> logits = logitsOf(loaded);
    std::vector<float> top;
    for (const int32_t id : c["top_ids"]) {
      top.push_back(logits[static_cast<size_t>(id)]);
    }
    EXPECT_LT(relativeL2(top, c["top_logits"].get<std::vector<double>>()), 2e-3) << c["name"];
    // The two best logits are never closer than 0.048 on any of these paths: far wider than our error.
    std::vector<int32_t> want = c["greedy_ids"];
    EXPECT_EQ(want, greedy(loaded, static_cast<uint32_t>(want.size()))) << c["name"];
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OrielTiny, testing::Values(0, 1));

}  // namespace
}  // namespace oriel::test
