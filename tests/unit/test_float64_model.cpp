// Validates the float64 pass that tests compare with: against logits of another float64 implementation
// (tests/data/README.md).
#include <gtest/gtest.h>

#include "support/distances.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"

namespace oriel_internal::test::test_float64_model {
namespace {

constexpr size_t kEverything = 1u << 30;

int32_t best(const std::vector<double>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class Float64 : public testing::TestWithParam<const char*> {};

TEST_P(Float64, logits_and_greedy_tokens_equal_the_other_implementation) {
  const std::string name = GetParam();
  ORIEL_NEED_DATA(model, "models/" + name + ".gguf");
  ORIEL_NEED_DATA(golden, "logits/" + name + ".json");
  const nlohmann::json prompts = readJson(golden)["prompts"];
  ASSERT_FALSE(prompts.empty());
  for (const nlohmann::json& prompt : prompts) {
    const std::vector<int32_t> ids = prompt["ids"];
    const nlohmann::json& exact = prompt["exact"];
    Float64Model reference(model);
    std::vector<double> logits;
    for (const int32_t id : ids) {
      logits = reference.step(id, 0, kEverything);
    }
    // Stored as float32: 6e-8 of each value.
    EXPECT_LT(relativeL2(logits, base64As<float>(exact["logits_f32_b64"])), 1e-6)
        << name << ", prompt of " << ids.size();
    const std::vector<int32_t> want = exact["greedy"];
    std::vector<int32_t> got;
    while (got.size() < want.size()) {
      got.push_back(best(logits));
      logits = reference.step(got.back(), 0, kEverything);
    }
    EXPECT_EQ(want, got) << name;
  }
}

std::string caseName(const testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Float64,
                         testing::Values("llama-mqa", "llama3-rope", "qwen3", "gemma3", "smollm3",
                                         "phi3", "granite", "granite-nope", "minicpm",
                                         "minicpm-nokeys", "ernie4_5", "hunyuan-dense", "mistral3",
                                         "exaone4", "exaone4-swa", "olmo2", "olmo3", "gemma2",
                                         "lfm2", "lfm2-q8_0", "lfm2-q4_0", "lfm2-b", "qwen35",
                                         "qwen35-q8_0", "qwen35-128", "qwen35-nextn",
                                         "granitehybrid", "granitehybrid-moe", "falcon-h1"),
                         caseName);

TEST(Float64States, equal_the_other_implementation) {
  for (const std::string name : {"qwen35", "qwen35-128", "qwen35-nextn", "granitehybrid",
                                 "granitehybrid-moe", "falcon-h1"}) {
    ORIEL_NEED_DATA(model, "models/" + name + ".gguf");
    ORIEL_NEED_DATA(golden, "logits/" + name + ".json");
    for (const nlohmann::json& prompt : readJson(golden)["prompts"]) {
      const nlohmann::json& state = prompt["exact"]["recurrent_state"];
      Float64Model reference(model);
      for (const int32_t id : prompt["ids"]) {
        (void)reference.step(id, 0, kEverything);
      }
      const size_t layer = state["layer"];
      std::vector<double> got, columns;
      for (const std::vector<double>& row : reference.states().matrix(layer, state["head"])) {
        got.insert(got.end(), row.begin(), row.end());
      }
      for (const std::vector<double>& column : reference.states().columns(layer)) {
        columns.insert(columns.end(), column.begin(), column.end());
      }
      EXPECT_LT(relativeL2(got, base64As<float>(state["state_f32_b64"])), 1e-6) << name;
      EXPECT_LT(relativeL2(columns, base64As<float>(state["conv_f32_b64"])), 1e-6) << name;
    }
  }
}

void expectLosses(const std::string& model, const std::string& golden) {
  const nlohmann::json file = readJson(golden);
  const std::vector<int32_t> ids = file["ids"];
  size_t compared = 0;
  for (const nlohmann::json& run : file["runs"]) {
    const std::string kind = run["kind"];
    if (kind == "sinks-absolute-positions") {  // a deliberately wrong method
      continue;
    }
    const bool all = kind == "full-absolute";
    const size_t sinks = all ? 0 : run["sinks"].get<size_t>();
    const size_t window = all ? kEverything : run["window"].get<size_t>();
    const std::vector<double> want = base64As<double>(run["nll_f64_b64"]);
    ASSERT_EQ(ids.size() - 1, want.size());
    Float64Model reference(model);
    double worst = 0;
    for (size_t t = 0; t + 1 < ids.size(); ++t) {
      const std::vector<double> logits = reference.step(ids[t], sinks, window);
      const double nll = logSumExp(logits) - logits[static_cast<size_t>(ids[t + 1])];
      worst = worse(worst, std::abs(nll - want[t]));
    }
    EXPECT_LT(worst, 1e-9) << kind << " sinks " << sinks << " window " << window;
    ++compared;
  }
  EXPECT_EQ(3u, compared);
}

TEST(Float64Streaming, losses_of_short_convolutions_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/lfm2.gguf");
  ORIEL_NEED_DATA(golden, "streaming/lfm2-sampled.json");
  expectLosses(model, golden);
}

TEST(Float64Streaming, losses_of_states_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/qwen35.gguf");
  ORIEL_NEED_DATA(golden, "streaming/qwen35-random-ids.json");
  expectLosses(model, golden);
}

void expectGreedy(const std::string& model, const std::string& golden) {
  const nlohmann::json file = readJson(golden);
  for (const nlohmann::json& run : file["runs"]) {
    const size_t sinks = run["sinks"];
    const size_t window = run["window"];
    Float64Model reference(model);
    std::vector<double> logits;
    for (const int32_t id : file["prompt_ids"].get<std::vector<int32_t>>()) {
      logits = reference.step(id, sinks, window);
    }
    const std::vector<int32_t> want = run["greedy"];
    ASSERT_EQ(600u, want.size());
    std::vector<int32_t> got;
    while (got.size() < want.size()) {
      got.push_back(best(logits));
      logits = reference.step(got.back(), sinks, window);
    }
    EXPECT_EQ(want, got) << "sinks " << sinks << " window " << window;
  }
}

TEST(Float64Streaming, greedy_tokens_of_short_convolutions_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/lfm2.gguf");
  ORIEL_NEED_DATA(golden, "streaming/generate-lfm2.json");
  expectGreedy(model, golden);
}

TEST(Float64Streaming, greedy_tokens_of_states_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/qwen35.gguf");
  ORIEL_NEED_DATA(golden, "streaming/generate-qwen35.json");
  expectGreedy(model, golden);
}

}  // namespace
}  // namespace oriel_internal::test::test_float64_model
