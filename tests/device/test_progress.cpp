// Progress of calls that read tokens, and of loads.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "support/allocators.h"
#include "support/api.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/timing.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_progress {
namespace {

using Told = std::vector<std::pair<uint64_t, uint64_t>>;

/// A session that records its progress calls, and stops at the n-th.
class Progress : public testing::Test {
 protected:
  void SetUp() override {
    oriel_model* model = nullptr;
    const Options options = cpuOptions(&log_, 300, 16);
    ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model));
    loaded_.model.reset(model);
    SessionOptions session_options;
    session_options.progress = [](uint64_t done, uint64_t total, void* user) {
      auto* const self = static_cast<Progress*>(user);
      self->told_.emplace_back(done, total);
      return self->told_.size() == self->stop_at_ ? 1 : 0;
    };
    session_options.progress_user = this;
    oriel_session* session = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded_.session.reset(session);
  }
  oriel_session* session() const { return loaded_.session.get(); }
  uint64_t position() const { return statsOf(loaded_).position; }

  /// Checks that progress grows and ends with everything since `begin`. Returns and clears the record.
  Told expectSound(uint64_t begin) {
    uint64_t before = 0;
    for (const auto& [done, total] : told_) {
      EXPECT_LT(before, done);
      EXPECT_LE(done, total);
      before = done;
    }
    EXPECT_FALSE(told_.empty());
    if (!told_.empty()) {
      EXPECT_EQ(told_.back().first, told_.back().second);
      EXPECT_EQ(position() - begin, told_.back().second);
    }
    Told told;
    told.swap(told_);
    return told;
  }

  CapturedLog log_;
  Loaded loaded_;
  Told told_;
  size_t stop_at_ = 0;
};

RUNS_ON(kCpu);
TEST_F(Progress, comes_after_every_batch_of_ids) {
  ASSERT_EQ(ORIEL_OK, append(loaded_, someIds(40, 2000)));
  EXPECT_EQ((Told{{16, 40}, {32, 40}, {40, 40}}), expectSound(0));
  ASSERT_EQ(ORIEL_OK, append(loaded_, {1}));
  EXPECT_EQ((Told{{1, 1}}), expectSound(40));
  ASSERT_EQ(ORIEL_OK, append(loaded_, {}));
  EXPECT_TRUE(told_.empty());
}

RUNS_ON(kCpu);
TEST_F(Progress, knows_the_tokens_of_a_text_however_long) {
  const std::string sentence = "The little dog went to the big house, and it was 12 o'clock. ";
  for (const uint32_t times : {1u, 20u, 300u}) {
    std::string text;
    for (uint32_t i = 0; i < times; ++i) {
      text += sentence;
    }
    const uint64_t begin = position();
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session(), text.data(), text.size(), 0));
    const Told told = expectSound(begin);
    for (const auto& [done, total] : told) {
      ASSERT_EQ(position() - begin, total) << "from the beginning, at " << done;
    }
    EXPECT_EQ((position() - begin + 15) / 16, told.size());
  }
  EXPECT_LT(2048u, position()) << "more than is encoded at once";
}

RUNS_ON(kCpu);
TEST_F(Progress, is_of_messages_and_of_what_opens_a_reply) {
  uint64_t begin = position();
  ASSERT_EQ(ORIEL_OK,
            add(loaded_, "user", "Tell me a story about a little dog, please, and a long one."));
  const Told message = expectSound(begin);
  EXPECT_EQ(position(), message.front().second) << "exactly";
  begin = position();
  const ReplyOptions few = greedyOptions(5);
  ASSERT_EQ(ORIEL_OK, oriel_chat_reply(session(), &few, nullptr, nullptr, nullptr));
  const uint64_t opening = told_.back().second;
  EXPECT_LT(0u, opening);
  EXPECT_GE(position() - begin, opening + 1) << "tokens of the reply are none of them";
  EXPECT_EQ(told_.back().first, opening);
}

RUNS_ON(kCpu);
TEST_F(Progress, of_a_list_of_messages_is_of_all_of_them) {
  const std::string words = "one two three four five six seven eight nine ten eleven twelve ";
  const std::string json = R"([{"role": "user", "content": ")" + words + words +
                           R"("}, {"role": "assistant", "content": ")" + words +
                           R"("}, {"role": "user", "content": ")" + words + words + R"("}])";
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session(), nullptr, json.data(), json.size()));
  const Told told = expectSound(0);
  EXPECT_GT(told.front().second, position() / 2) << "those to come are estimated";
}

RUNS_ON(kCpu);
TEST_F(Progress, that_says_stop_cancels_the_call) {
  stop_at_ = 2;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, append(loaded_, someIds(40, 2000)));
  EXPECT_EQ(32u, position()) << "as a cancel from a second thread";
  EXPECT_EQ(2u, told_.size());
  told_.clear();
  stop_at_ = 3;
  EXPECT_EQ(ORIEL_OK, append(loaded_, someIds(40, 2000))) << "it had nothing more to begin";
  EXPECT_EQ(3u, told_.size());
  EXPECT_EQ(ORIEL_OK, append(loaded_, someIds(4, 2000)));
  EXPECT_EQ("", log_.errors());
}

RUNS_ON(kCpu);
TEST_F(Progress, that_says_stop_takes_a_message_back) {
  ASSERT_EQ(ORIEL_OK, append(loaded_, {1, 2, 3}));
  told_.clear();
  stop_at_ = 1;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            add(loaded_, "user", "Tell me a story about a little dog, please, and a long one."));
  EXPECT_EQ(3u, position());
  told_.clear();
  stop_at_ = 1;
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello"));
  told_.clear();
  oriel_generation result = ORIEL_INIT(oriel_generation);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_chat_reply(session(), nullptr, nullptr, nullptr, &result));
  EXPECT_EQ(ORIEL_STOP_CANCELLED, result.stop_reason);
  EXPECT_EQ(0u, result.tokens);
}

// Counting and reporting do not change the results.
RUNS_ON(kCpu);
TEST_F(Progress, leaves_the_same_session_as_without) {
  std::string text;
  for (uint32_t i = 0; i < 200; ++i) {
    text += "A long story about dog number " + std::to_string(i) + ". ";
  }
  const Loaded plain = load(kTrained, cpuOptions(nullptr, 300, 16));
  for (const Loaded* one : {&plain, static_cast<const Loaded*>(&loaded_)}) {
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(one->session.get(), text.data(), text.size(), 0));
  }
  EXPECT_EQ(logitsOf(plain), logitsOf(loaded_));
  EXPECT_EQ(statsOf(plain).position, position());
}

// A load reports its progress from the start, and ends soon after a stop request: counted, not timed.

/// Progress of a load; stops at the `stop_at`-th report.
struct LoadWatch {
  explicit LoadWatch(const Ledger* ledger_of_app) : ledger(ledger_of_app) {}

  static int onProgress(uint64_t done, uint64_t total, void* user) {
    auto* const self = static_cast<LoadWatch*>(user);
    EXPECT_LE(done, total);
    EXPECT_GE(done, self->last) << "it went back";
    EXPECT_GT(total, 0u);
    EXPECT_TRUE(self->last == 0 || total == self->total) << "the total changed";
    self->taken_before_first =
        self->asks == 0 ? self->ledger->live_bytes : self->taken_before_first;
    self->most_at_once = std::max(self->most_at_once, done - self->last);
    self->asks_before_weights += done == 0 ? 1 : 0;
    self->asks_after_weights += done == total ? 1 : 0;
    self->last = done;
    self->total = total;
    return ++self->asks == self->stop_at ? 1 : 0;
  }

  const Ledger* ledger;
  uint64_t stop_at = 0;
  uint64_t asks = 0;
  uint64_t last = 0;
  uint64_t total = 0;
  uint64_t taken_before_first = 0;
  uint64_t most_at_once = 0;
  uint64_t asks_before_weights = 0;
  uint64_t asks_after_weights = 0;
};

oriel_status loadOnce(Options options, const Ledger& ledger, LoadWatch* told) {
  options.allocator = ledger.allocator();
  options.progress = LoadWatch::onProgress;
  options.progress_user = told;
  oriel_model* model = nullptr;
  const oriel_status status = oriel_model_load(kTrained, &options, &model);
  EXPECT_EQ(status == ORIEL_OK, model != nullptr);
  oriel_model_free(model);
  return status;
}

TEST(LoadProgress, begins_before_anything_is_taken_and_covers_every_phase) {
  Ledger ledger;
  LoadWatch told(&ledger);
  Options options = makeOptions();
  options.memory_bytes = 64u << 20;
  ASSERT_EQ(ORIEL_OK, loadOnce(options, ledger, &told));
  EXPECT_EQ(0u, told.taken_before_first);
  EXPECT_EQ(told.total, told.last);
  // The header, each pass over the vocabulary, plans, templates, the executor; then pieces that are read and sent.
  EXPECT_GE(told.asks_before_weights, 10u);
  EXPECT_GE(told.asks_after_weights, 1u);
  EXPECT_GE(told.asks, told.total / (256 << 10));
}

// If the app's allocator returns nonzero memory, arenas are zeroed explicitly.
TEST(LoadProgress, goes_on_while_memory_is_zeroed) {
  Options options = makeOptions();
  if (onVulkan()) {
    GTEST_SKIP() << "the driver zeroes";
  }
  Ledger ledger;
  const auto asks = [&](uint32_t window) {
    options.memory_bytes = uint64_t{2} << 30;
    options.window_tokens = window;
    options.set("kv", "f16");
    LoadWatch told(&ledger);
    EXPECT_EQ(ORIEL_OK, loadOnce(options, ledger, &told));
    return told.asks_before_weights;
  };
  const uint64_t few = asks(1000);
  const uint64_t peak = ledger.peak_bytes;
  const uint64_t many = asks(60000);
  ASSERT_GT(ledger.peak_bytes, peak + (100u << 20)) << "the larger window is no larger";
  EXPECT_GE(many, few + (ledger.peak_bytes - peak) / (16 << 20) - 1);
}

RUNS_ON(kCpu);
TEST(LoadProgress, a_load_that_is_stopped_at_any_ask_leaves_nothing_behind) {
  CapturedLog log;
  Options options = makeOptions(&log);
  options.memory_bytes = 64u << 20;
  options.set("constraints", true);
  options.system_prompt = "You are kind, and you know a lot about hedgehogs.";
  Ledger ledger;
  LoadWatch all(&ledger);
  ASSERT_EQ(ORIEL_OK, loadOnce(options, ledger, &all));
  const bool is_cpu = !onVulkan();
  const uint64_t step = is_cpu ? (allCases() ? 1 : 3) : std::max<uint64_t>(all.asks / 12, 1);
  for (uint64_t k = 1; k <= all.asks; k += step) {
    LoadWatch told(&ledger);
    told.stop_at = k;
    const oriel_status status = loadOnce(options, ledger, &told);
    if (!is_cpu && told.asks < k) {  // while kernels are compiled, it reports once a millisecond
      EXPECT_EQ(ORIEL_OK, status);
      break;
    }
    ASSERT_EQ(ORIEL_ERROR_CANCELLED, status) << "ask " << k;
    EXPECT_EQ(k, told.asks) << "it went on asking";
    EXPECT_EQ(0u, ledger.live_bytes) << "ask " << k;
  }
  EXPECT_EQ("", log.errors());
}

}  // namespace
}  // namespace oriel_internal::test::test_progress

// A process that was stopped during a step continues, regardless of its time limit.

#ifndef _WIN32

namespace oriel_internal::test::test_stopped_process {
namespace {

constexpr uint32_t kTimeoutMs = 200;
constexpr long kStoppedMs = 700;

/// Forwards everything, and stops the process during a run.
class StoppingExecutor final : public ForwardingExecutor {
 public:
  using ForwardingExecutor::ForwardingExecutor;

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    stop_ = stop;
    return ForwardingExecutor::run(
        what, {[](void* self) { return static_cast<StoppingExecutor*>(self)->ask(); }, this});
  }
  uint32_t stop_at = 0;  ///< after this many checks; 0: never
  uint32_t stopped = 0;

 private:
  bool ask() {
    if (stop_at != 0 && --stop_at == 0) {
      stopThisProcess(kStoppedMs);
      ++stopped;
    }
    return stop_();
  }
  StopCheck stop_;
};

TEST(StoppedProcess, a_session_on_the_cpu_goes_on_where_it_was) {
  CapturedLog log;
  Options options = makeOptions(&log);
  options.device = "cpu";
  options.set("device_timeout_ms", kTimeoutMs);
  options.window_tokens = 64;
  options.set("prefill_batch", 16);
  WatchedModel<StoppingExecutor> model(ORIEL_TEST_DATA "/models/llama-mqa.gguf", options);
  ASSERT_NE(nullptr, model.session()) << log.errors();
  const std::vector<int32_t> ids = someIds(40, 500);
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(model.session(), ids.data(), ids.size(), nullptr, nullptr));
  const std::vector<float> expected = logitsOf(model.loaded);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(model.session()));
  model.executor->stop_at = 12;  // between two operations of the first chunk
  EXPECT_EQ(ORIEL_OK,
            oriel_session_append(model.session(), ids.data(), ids.size(), nullptr, nullptr))
      << log.errors();
  EXPECT_EQ(1u, model.executor->stopped);
  EXPECT_EQ(expected, logitsOf(model.loaded));
}

}  // namespace
}  // namespace oriel_internal::test::test_stopped_process

#endif

namespace oriel_internal::test::test_streaming {

// The sliding window against its definition.

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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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
