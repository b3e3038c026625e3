// The sliding window against its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/api.h"
#include "support/distances.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_streaming {
namespace {

Options windowOptions(uint32_t sinks, uint32_t window, uint32_t chunk) {
  Options options = makeOptions();
  options.memory_bytes = 256u << 20;
  options.set("sinks", sinks);
  options.window_tokens = window;
  options.set("prefill_batch", chunk);
  return options;
}

double nll(const std::vector<float>& logits, int32_t id) {
  return logSumExp(logits) - logits[static_cast<size_t>(id)];
}

TEST(Streaming, every_position_equals_streaming_llm_computed_in_float64) {
  const std::string model = ORIEL_TEST_DATA "/models/llama-mqa.gguf";
  const std::vector<int32_t> ids = someIds(90, 512);
  struct Setting {
    uint32_t sinks, window, chunk;
  };
  for (const Setting s :
       {Setting{4, 20, 8}, Setting{0, 16, 5}, Setting{1, 1, 1}, Setting{2, 30, 64}}) {
    const Loaded loaded = load(model, windowOptions(s.sinks, s.window, s.chunk));
    ASSERT_TRUE(loaded.session);
    const auto rows = evaluate(loaded, ids);
    ASSERT_EQ(ids.size(), rows.size());
    Float64Model reference(model);
    for (size_t t = 0; t < ids.size(); ++t) {
      EXPECT_LT(relativeL2(rows[t], reference.step(ids[t], s.sinks, s.window)), 2e-3)
          << "token " << t << " sinks " << s.sinks << " window " << s.window << " chunk "
          << s.chunk;
    }
  }
}

TEST(Streaming, far_from_zero_is_as_exact_as_near_it) {
  const std::string model = ORIEL_TEST_DATA "/models/llama-mqa.gguf";
  const std::vector<int32_t> ids = someIds(60, 512);
  for (const uint64_t first : {uint64_t{1} << 24, (uint64_t{1} << 40) + 12345}) {
    const Loaded loaded = load(model, windowOptions(2, 20, 8), first);
    ASSERT_TRUE(loaded.session);
    const auto rows = evaluate(loaded, ids);
    Float64Model reference(model);
    for (size_t t = 0; t < ids.size(); ++t) {
      EXPECT_LT(relativeL2(rows[t], reference.step(ids[t], 2, 20)), 2e-3) << first << " + " << t;
    }
  }
}

TEST(Streaming, before_the_window_fills_a_ring_equals_a_full_cache_to_the_bit) {
  const std::string model = ORIEL_TEST_DATA "/models/llama-q8_0.gguf";
  const std::vector<int32_t> ids = someIds(64, 384);
  const Loaded full = load(model, windowOptions(4, 500, 8));
  const auto want = evaluate(full, ids);
  // 4 + 60 = 64: the last token still sees everything. An equal split of attention work keeps the order of additions,
  // hence the bits.
  const Loaded ring = load(model, windowOptions(4, 60, 8));
  EXPECT_EQ(want, evaluate(ring, ids));
}

RUNS_ON(kCpu);
TEST(Streaming, chunk_size_does_not_change_what_is_seen) {
  const std::string model = ORIEL_TEST_DATA "/models/llama-q4_0.gguf";
  const std::vector<int32_t> ids = someIds(200, 384);
  // The CPU rounds activations to 15 bits for quantised weights. Last-bit differences of sums, due to the ring's
  // length, may round to neighbouring integers. A wrongly visible token changes percents.
  const double tolerance = !onVulkan() ? 5e-4 : 1e-4;
  std::vector<std::vector<float>> first;
  for (const uint32_t chunk : {1u, 3u, 16u, 64u, 200u}) {
    const Loaded loaded = load(model, windowOptions(3, 40, chunk));
    const auto rows = evaluate(loaded, ids);
    if (first.empty()) {
      first = rows;
      continue;
    }
    for (size_t t = 0; t < ids.size(); ++t) {
      ASSERT_LT(relativeL2(rows[t], first[t]), tolerance) << "chunk " << chunk << " token " << t;
    }
  }
}

// The reference's runs with windows (and sinks) of `span` tokens. The licence of stories260K's weights does not allow a
// copy in the repository.
void expectMeanNllOfTheReference(uint32_t span) {
  ORIEL_NEED_DATA(model, "models/stories260K.gguf");
  ORIEL_NEED_DATA(golden, "streaming/stories260K-tinystories-valid.json");
  const nlohmann::json reference = readJson(golden);
  const std::vector<int32_t> ids = reference["ids"];
  // Mean and last logits by sinks and window, shared by several runs.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<double, std::vector<float>>> measured;
  int compared = 0;
  for (const nlohmann::json& run : reference["runs"]) {
    const std::string kind = run["kind"];
    if (kind == "full-absolute") {
      continue;
    }
    const uint32_t sinks = run["sinks"];
    const uint32_t window = run["window"];
    if (window > span || window + 4 < span) {
      continue;
    }
    auto& [mean, last] = measured[{sinks, window}];
    if (last.empty()) {
      const Loaded loaded = load(model, windowOptions(sinks, window, 0));
      const auto rows = evaluate(loaded, ids);
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        mean += nll(rows[i], ids[i + 1]) / static_cast<double>(ids.size() - 1);
      }
      last = rows.back();
    }
    const double want = run["mean_all"];
    if (kind == "streaming") {
      EXPECT_NEAR(want, mean, 0.005 * want) << "sinks " << sinks << " window " << window;
      EXPECT_LT(relativeL2(last, base64As<float>(run["last_logits_f32_b64"])), 5e-3);
      ++compared;
    } else if (kind == "sinks-absolute-positions") {
      // The result of a cache that does not reassign positions: ours must differ.
      EXPECT_GT(std::abs(want - mean), 0.005 * want) << "sinks " << sinks << " window " << window;
    }
  }
  EXPECT_GE(compared, 3);
}

RUNS_ON(kCpu);
TEST(Streaming, mean_nll_of_stories260k_equals_the_reference_in_windows_of_64) {
  expectMeanNllOfTheReference(64);
}

RUNS_ON(kCpu);
TEST(Streaming, mean_nll_of_stories260k_equals_the_reference_in_windows_of_128) {
  expectMeanNllOfTheReference(128);
}

size_t best(const std::vector<float>& logits) {
  return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// A step whose two best logits are closer than 0.05 may go either way. The session runs freely up to the first of them;
// then the reference's tokens are read, and the next token after each is compared.
void expectGreedyTokensOfTheReference(const std::string& name, size_t least_own) {
  ORIEL_NEED_DATA(model, "models/" + name + ".gguf");
  ORIEL_NEED_DATA(golden, "streaming/generate-" + name + ".json");
  const nlohmann::json reference = readJson(golden);
  const std::vector<int32_t> prompt = reference["prompt_ids"];
  for (const nlohmann::json& run : reference["runs"]) {
    const Loaded loaded = load(model, windowOptions(run["sinks"], run["window"], 0));
    ASSERT_TRUE(loaded.session);
    ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    const std::vector<int32_t> want = run["greedy"];
    const std::vector<double> margins = run["greedy_margin"];
    ASSERT_EQ(600u, want.size());
    size_t trusted = 0;
    while (trusted < want.size() && margins[trusted] > 0.05) {
      ++trusted;
    }
    EXPECT_GE(trusted, least_own);
    EXPECT_EQ(
        std::vector<int32_t>(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(trusted)),
        greedy(loaded, static_cast<uint32_t>(trusted)));
    std::vector<int32_t> all = prompt;
    all.insert(all.end(), want.begin(), want.end());
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    const auto rows = evaluate(loaded, all);
    ASSERT_EQ(all.size(), rows.size());
    size_t compared = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      if (margins[i] > 0.05) {
        EXPECT_EQ(static_cast<size_t>(want[i]), best(rows[prompt.size() - 1 + i])) << "token " << i;
        ++compared;
      }
    }
    EXPECT_GT(compared, want.size() / 2);
  }
}

RUNS_ON(kCpu);
TEST(Streaming, six_hundred_greedy_tokens_equal_the_reference) {
  expectGreedyTokensOfTheReference("stories260K", 21);
}

RUNS_ON(kCpu);
TEST(Streaming, six_hundred_greedy_tokens_of_short_convolutions_equal_the_reference) {
  expectGreedyTokensOfTheReference("lfm2", 17);
}

RUNS_ON(kCpu);
TEST(Streaming, six_hundred_greedy_tokens_of_states_equal_the_reference) {
  expectGreedyTokensOfTheReference("qwen35", 1);
}

void expectLossesOfTheReference(const std::string& model, const std::string& golden) {
  const nlohmann::json reference = readJson(golden);
  const std::vector<int32_t> ids = reference["ids"];
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> measured;
  int compared = 0;
  for (const nlohmann::json& run : reference["runs"]) {
    const std::string kind = run["kind"];
    if (kind == "full-absolute") {
      continue;
    }
    const std::vector<double> want = base64As<double>(run["nll_f64_b64"]);
    ASSERT_EQ(ids.size() - 1, want.size());
    std::vector<double>& got = measured[{run["sinks"], run["window"]}];
    if (got.empty()) {
      const auto rows = evaluate(load(model, windowOptions(run["sinks"], run["window"], 0)), ids);
      ASSERT_EQ(ids.size(), rows.size());
      for (size_t i = 0; i < want.size(); ++i) {
        got.push_back(nll(rows[i], ids[i + 1]));
      }
      EXPECT_LT(relativeL2(rows.back(), base64As<float>(run["last_logits_f32_b64"])), 5e-3);
    }
    double mean = 0;
    double difference = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      mean += got[i] / static_cast<double>(want.size());
      difference += std::abs(got[i] - want[i]) / static_cast<double>(want.size());
    }
    if (kind == "streaming") {
      const double expected = run["mean_all"];
      EXPECT_NEAR(expected, mean, 0.005 * expected);
      EXPECT_LT(difference, 0.01);
      ++compared;
    } else {  // positions never reassigned: 0.05 nats and more per token
      EXPECT_GT(difference, 0.03);
    }
  }
  EXPECT_EQ(2, compared);
}

RUNS_ON(kCpu);
TEST(Streaming, losses_of_short_convolutions_equal_the_reference) {
  ORIEL_NEED_DATA(model, "models/lfm2.gguf");
  ORIEL_NEED_DATA(golden, "streaming/lfm2-sampled.json");
  expectLossesOfTheReference(model, golden);
}

RUNS_ON(kCpu);
TEST(Streaming, losses_of_states_equal_the_reference) {
  ORIEL_NEED_DATA(model, "models/qwen35.gguf");
  ORIEL_NEED_DATA(golden, "streaming/qwen35-random-ids.json");
  expectLossesOfTheReference(model, golden);
}

}  // namespace
}  // namespace oriel_internal::test::test_streaming
