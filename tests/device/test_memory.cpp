// The memory promise: allocated bytes equal planned bytes, the cap is never exceeded, and generating allocates nothing.
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#if defined(__linux__)
#endif

#include "device/count_mallocs.h"
#include "oriel/advanced.h"
#include "support/allocators.h"
#include "support/api.h"
#include "support/files.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_memory {
namespace {

const char* const kSmall = ORIEL_TEST_DATA "/models/llama-mqa.gguf";
const char* const kTrained = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";

std::string testModel(const std::string& name) {
  return dataFile("models/llama-" + name + ".gguf");
}

Options budgetOptions(const Ledger& ledger, CapturedLog* log, uint64_t memory_bytes) {
  Options options = makeOptions(log);
  options.memory_bytes = memory_bytes;
  options.allocator = ledger.allocator();
  return options;
}

oriel_plan planFile(const std::string& path, const Options& options) {
  oriel_plan plan = ORIEL_PLAN_INIT;
  EXPECT_EQ(ORIEL_OK, oriel_plan_file(path.c_str(), &options, &plan)) << path;
  return plan;
}

/// Loads, makes a session, runs some steps and generates some tokens.
void expectExactly(const std::string& path, const Options& options, const Ledger& ledger,
                   uint32_t steps) {
  const oriel_plan plan = planFile(path, options);
  ASSERT_EQ(1u, plan.fits);
  EXPECT_EQ(0u, ledger.live_bytes) << "planning must leave nothing behind";
  EXPECT_EQ(plan.total_bytes, plan.weights_bytes + plan.kv_bytes + plan.activation_bytes +
                                  plan.staging_bytes + plan.host_bytes);
  EXPECT_LE(plan.total_bytes, plan.memory_bytes);
  {
    const Loaded loaded = load(path, options);
    ASSERT_TRUE(loaded.session);
    const FullPlan done = planOf(loaded);
    EXPECT_EQ(plan.total_bytes, done.total_bytes);
    EXPECT_EQ(plan.host_bytes, done.host_bytes);
    EXPECT_EQ(plan.window_tokens, done.window_tokens);
    const oriel_stats stats = statsOf(loaded);
    EXPECT_EQ(plan.host_bytes, stats.host_bytes);
    EXPECT_EQ(plan.total_bytes, stats.device_bytes + stats.host_bytes);
    // The CPU's arenas are host memory, too.
    const bool cpu = !onVulkan();
    EXPECT_EQ(cpu ? plan.total_bytes : plan.host_bytes, ledger.live_bytes);
    // The header and the weights' read buffer were freed before the rest was allocated. On a GPU the rest is the
    // device's.
    EXPECT_LE(ledger.peak_bytes, plan.total_bytes) << "more was taken for a while";
    const uint64_t peak = ledger.peak_bytes;
    EXPECT_TRUE(!cpu || peak == ledger.live_bytes) << peak;
    const std::vector<int32_t> prompt(40, 7);
    ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    EXPECT_EQ(steps, greedy(loaded, steps).size());
    EXPECT_EQ(peak, ledger.peak_bytes);
    EXPECT_EQ(stats.device_bytes, statsOf(loaded).device_bytes);
  }
  EXPECT_EQ(0u, ledger.live_bytes);
  EXPECT_LE(ledger.peak_bytes, options.memory_bytes);
}

/// Resident bytes of this process; 0: unknown.
uint64_t residentBytes() {
  uint64_t pages = 0;
#if defined(__linux__)
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long long all = 0;
  unsigned long long resident = 0;
  if (file != nullptr && std::fscanf(file, "%llu %llu", &all, &resident) == 2) {
    pages = resident;
  }
  if (file != nullptr) {
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
#else
  return pages;
#endif
}

TEST(Memory, what_is_not_used_yet_is_not_touched) {
  Options options = makeOptions();
  if (onVulkan() || residentBytes() == 0) {
    GTEST_SKIP() << "the memory of a device, or a system that does not say what is resident";
  }
  options.memory_bytes = uint64_t{8} << 30;
  options.window_tokens = 2000000;
  options.set("kv", "f16");
  const uint64_t before = residentBytes();
  const auto more = [&] { return std::max(before, residentBytes()) - before; };
  uint64_t cache_bytes = 0;
  {
    const Loaded loaded = load(kSmall, options);
    ASSERT_TRUE(loaded.session);
    cache_bytes = planOf(loaded).kv_bytes;
    ASSERT_GT(cache_bytes, uint64_t{400} << 20);
    EXPECT_LT(more(), cache_bytes / 4) << "loaded";
    const std::vector<int32_t> prompt(40, 7);
    ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    EXPECT_LT(more(), cache_bytes / 4) << "with a few tokens";
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    EXPECT_LT(more(), cache_bytes / 4) << "after a reset";
    // Wiped and taken again: zeros both times, on untouched pages.
    ASSERT_EQ(ORIEL_OK, oriel_trim(loaded.model.get(), ORIEL_TRIM_SCRATCH, nullptr));
    ASSERT_EQ(ORIEL_OK, oriel_resume(loaded.model.get(), nullptr, nullptr));
    EXPECT_LT(more(), cache_bytes / 4) << "after a trim";
  }
  EXPECT_LT(more(), cache_bytes / 4) << "freed";
}

RUNS_ON(kCpu);
TEST(Memory, what_is_planned_is_what_is_taken_to_the_byte) {
  struct Case {
    std::string path;
    uint64_t memory_bytes;
    uint32_t window, sinks, chunk;
    oriel_kv_format k, v;
  };
  constexpr uint32_t kDefault = UINT32_MAX;  // of sinks
  std::vector<Case> cases = {
      {testModel("q4_0"), 1000000, 0, kDefault, 0, ORIEL_KV_AUTO, ORIEL_KV_AUTO},
      {testModel("mha"), 64u << 20, 100, 7, 33, ORIEL_KV_F16, ORIEL_KV_F16},
      {kTrained, 12000001, 0, 0, 0, ORIEL_KV_F16, ORIEL_KV_F16},
      {ORIEL_TEST_DATA "/models/gemma3.gguf", 5000000, 50, 4, 9, ORIEL_KV_INT8, ORIEL_KV_INT4},
  };
  if (!onVulkan()) {
    for (const char* name : {"f32", "f16", "bf16", "q8_0", "q4_0", "mqa"}) {
      cases.push_back({testModel(name), 5000000, 0, kDefault, 0, ORIEL_KV_AUTO, ORIEL_KV_AUTO});
      cases.push_back({testModel(name), 64u << 20, 1, 1, 1, ORIEL_KV_F16, ORIEL_KV_F16});
      cases.push_back({testModel(name), 64u << 20, 3000, 50, 512, ORIEL_KV_INT8, ORIEL_KV_INT4});
      cases.push_back({testModel(name), 64u << 20, 129, 0, 17, ORIEL_KV_INT4, ORIEL_KV_INT8});
    }
    for (const char* name : {"gemma3", "qwen3", "phi2", "lfm3", "minicpm-nokeys"}) {
      const std::string path = std::string(ORIEL_TEST_DATA "/models/") + name + ".gguf";
      cases.push_back({path, 5000000, 0, kDefault, 0, ORIEL_KV_AUTO, ORIEL_KV_AUTO});
      cases.push_back({path, 64u << 20, 7, 1, 3, ORIEL_KV_INT8, ORIEL_KV_INT4});
      cases.push_back({path, 64u << 20, 300, 0, 17, ORIEL_KV_INT4, ORIEL_KV_F16});
    }
    cases.push_back({kTrained, 1u << 30, 0, kDefault, 0, ORIEL_KV_AUTO, ORIEL_KV_AUTO});
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path + " in " + std::to_string(c.memory_bytes) + " bytes, window " +
                 std::to_string(c.window));
    Ledger ledger;
    CapturedLog log;
    Options options = budgetOptions(ledger, &log, c.memory_bytes);
    options.window_tokens = c.window;
    if (c.sinks != kDefault) {
      options.set("sinks", c.sinks);
    }
    options.set("prefill_batch", c.chunk);
    setFormats(&options, c.k, c.v);
    expectExactly(c.path, options, ledger, 10);
    EXPECT_EQ("", log.errors());
  }
}

RUNS_ON(kEachDevice);
TEST(Memory, an_encoder_of_pictures_is_planned_to_the_byte) {
  ORIEL_NEED_DATA(model, "vision/gemma4.gguf");
  ORIEL_NEED_DATA(encoder, "vision/mmproj-gemma4v.gguf");
  if (onVulkan()) {
    GTEST_SKIP() << "the encoder's memory is the device's";
  }
  for (const char* const tokens : {"70", "560"}) {
    Ledger ledger;
    CapturedLog log;
    Options options = budgetOptions(ledger, &log, 64u << 20);
    options.window_tokens = 200;
    options.set("mmproj", encoder);
    options.set("image_tokens", tokens);
    expectExactly(model, options, ledger, 10);
    EXPECT_EQ("", log.errors());
  }
}

void expectTightMinimum(const std::string& path, oriel_kv_format format) {
  SCOPED_TRACE(path + (format == ORIEL_KV_AUTO ? ", any format" : ", f16"));
  Ledger ledger;
  CapturedLog log;
  Options options = budgetOptions(ledger, &log, 1);
  setFormats(&options, format);
  const uint64_t minimum = planFile(path, options).minimum_bytes;
  options.memory_bytes = minimum;
  expectExactly(path, options, ledger, 80);
  EXPECT_EQ("", log.errors());

  options.memory_bytes = minimum - 1;
  uint64_t calls = ledger.calls;
  const oriel_plan refused = planFile(path, options);
  calls = 2 * ledger.calls - calls;
  EXPECT_EQ(0u, refused.fits);
  EXPECT_EQ(minimum, refused.minimum_bytes);
  EXPECT_EQ(minimum, refused.total_bytes) << "the smallest plan is described instead";
  oriel_model* model = nullptr;
  log.clear();
  EXPECT_EQ(ORIEL_ERROR_MEMORY_BUDGET, oriel_model_load(path.c_str(), &options, &model));
  EXPECT_EQ(nullptr, model);
  EXPECT_EQ(calls, ledger.calls) << "refused before more is taken than a plan borrows";
  EXPECT_EQ(0u, ledger.live_bytes);
  EXPECT_TRUE(log.says(std::to_string(minimum))) << log.errors();
  EXPECT_EQ(log.errors().find('\n'), std::string::npos);
}

RUNS_ON(kCpu);
TEST(Memory, the_minimum_is_enough_and_one_byte_less_is_refused) {
  expectTightMinimum(kSmall, ORIEL_KV_F16);
  expectTightMinimum(kSmall, ORIEL_KV_AUTO);
  if (!onVulkan()) {
    for (const std::string& path :
         {testModel("q4_0"), testModel("f16"), testModel("mha"), std::string(kTrained)}) {
      expectTightMinimum(path, ORIEL_KV_F16);
      expectTightMinimum(path, ORIEL_KV_AUTO);
    }
  }
}

RUNS_ON(kEachDevice);
TEST(Memory, a_load_stopped_by_the_app_gives_everything_back) {
  Ledger ledger;
  CapturedLog log;
  Options options = budgetOptions(ledger, &log, 64u << 20);
  int calls = 0;
  options.progress_user = &calls;
  options.progress = [](uint64_t done, uint64_t total, void* user) {
    EXPECT_LE(done, total);
    return ++*static_cast<int*>(user) == 3 ? 1 : 0;
  };
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_model_load(kSmall, &options, &model));
  EXPECT_EQ(3, calls);
  EXPECT_EQ(nullptr, model);
  EXPECT_GT(ledger.calls, 0u);
  EXPECT_EQ(0u, ledger.live_bytes);
}

/// A conversation past a small window, a reset, and `text_bytes` (up to 2000) of a new one. With all reply options that
/// do not end this reply.
const ReplyOptions& talkOptions() {
  static const ReplyOptions made = [] {
    ReplyOptions options;
    options.seed = 5;
    options.set("ignore_stop", true);
    options.set("repeat_penalty", 1.1f);
    static const char* const stops[] = {"Nobody says this.", "\xE2\x82\xAC\xE2\x82\xAC"};
    options.stop = stops;
    options.stop_count = 2;
    addBiases(&options, {{5, 1.5f}, {9, -INFINITY}, {5, 0.5f}});
    options.set("presence_penalty", 0.2f);
    options.set("frequency_penalty", 0.1f);
    options.set("repeat_window", 256);
    options.set("min_tokens", 3);
    options.set("top_logprobs", 20);
    return options;
  }();
  return made;
}

void talk(const Loaded& loaded, uint32_t decode_tokens, size_t text_bytes) {
  oriel_reply_options options = talkOptions();
  options.max_tokens = decode_tokens;
  oriel_session* session = loaded.session.get();
  static char message[2001];
  for (size_t i = 0; i < 2000; ++i) {
    message[i] = i % 7 == 6 ? ' ' : static_cast<char>('a' + i % 26);
  }
  ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session, message, 40, ORIEL_TEXT_SPECIAL));
  ASSERT_EQ(ORIEL_OK, oriel_session_generate(session, &options, nullptr, nullptr, nullptr));
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(session));
  ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session, message, text_bytes, ORIEL_TEXT_SPECIAL));
  --options.setting_count;  // no log-probabilities
  options.max_tokens = 5;
  ASSERT_EQ(ORIEL_OK, oriel_session_generate(session, &options, nullptr, nullptr, nullptr));
}

TEST(Memory, generating_takes_nothing_from_the_app) {
  Ledger ledger;
  CapturedLog log;
  Options options = budgetOptions(ledger, &log, 64u << 20);
  options.window_tokens = 50;
  const Loaded loaded = load(kSmall, options);
  ASSERT_TRUE(loaded.session);
  ledger.refuse_all = true;
  const uint64_t calls = ledger.calls;
  talk(loaded, 300, 200);
  EXPECT_EQ(calls, ledger.calls);
  EXPECT_EQ("", log.errors());
  EXPECT_GT(statsOf(loaded).evicted, 0u);
}

// Drivers allocate freely; on the CPU the whole process is checked.
TEST(Memory, generating_takes_nothing_from_the_heap) {
  if (!canCountMallocs()) {
    GTEST_SKIP() << "malloc belongs to the sanitizer, or to a C library that is not glibc";
  }
  CapturedLog log;
  Options options = makeOptions(&log);
  options.device = "cpu";
  options.memory_bytes = 64u << 20;
  options.window_tokens = 50;
  options.log = [](oriel_log_level, const char*, void*) {};  // storing a line allocates
  const Loaded loaded = load(kSmall, options);
  ASSERT_TRUE(loaded.session);
  {
    const MallocCount count;
    void* volatile block = std::malloc(1);  // volatile: prevents optimising it away
    std::free(block);
    ASSERT_EQ(1u, count.calls()) << "the counter does not count";
  }
  (void)talkOptions();
  const MallocCount count;
  talk(loaded, 300, 2000);
  EXPECT_EQ(0u, count.calls());
}

RUNS_ON(kCpu);
TEST(Memory, long_text_borrows_and_gives_back_and_may_be_refused) {
  Ledger ledger;
  CapturedLog log;
  Options options = budgetOptions(ledger, &log, 64u << 20);
  options.device = "cpu";
  options.window_tokens = 50;
  const Loaded loaded = load(kSmall, options);
  ASSERT_TRUE(loaded.session);
  const uint64_t before = ledger.live_bytes;
  const std::string text(100000, 'x');
  ledger.refuse_all = true;
  EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY,
            oriel_session_append_text(loaded.session.get(), text.data(), text.size(), 0));
  EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY,
            oriel_chat_add(loaded.session.get(), "user", text.data(), text.size()));
  EXPECT_EQ(0u, statsOf(loaded).position);
  ledger.refuse_all = false;
  EXPECT_EQ(ORIEL_OK, oriel_session_append_text(loaded.session.get(), text.data(), 5000, 0));
  EXPECT_EQ(before, ledger.live_bytes);
  EXPECT_GT(ledger.peak_bytes, before);
}

RUNS_ON(kCpu);
TEST(Memory, a_message_borrows_for_the_template_and_gives_back) {
  Ledger ledger;
  CapturedLog log;
  Options options = budgetOptions(ledger, &log, 64u << 20);
  options.device = "cpu";
  options.window_tokens = 50;
  const Loaded loaded = load(kSmall, options);
  ASSERT_TRUE(loaded.session);
  const uint64_t before = ledger.live_bytes;
  ledger.peak_bytes = before;
  for (int turn = 0; turn < 30; ++turn) {
    ASSERT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", "Hello there!", 12));
    ASSERT_EQ(ORIEL_OK, oriel_chat_reply(loaded.session.get(), nullptr, nullptr, nullptr, nullptr));
    ASSERT_EQ(before, ledger.live_bytes);
  }
  EXPECT_LE(ledger.peak_bytes, before + 256 * 1024);
  ledger.refuse_all = true;
  const uint64_t position = statsOf(loaded).position;
  EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY,
            oriel_chat_add(loaded.session.get(), "user", "Hello there!", 12));
  EXPECT_EQ(position, statsOf(loaded).position);
  ledger.refuse_all = false;
  EXPECT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", "Hello there!", 12));
}

// Ids of a long prompt used to take 34 times the budget of a small model.
RUNS_ON(kCpu);
TEST(Memory, a_long_prompt_of_ordinary_words_borrows_nothing) {
  Ledger ledger;
  CapturedLog log;
  Options options = budgetOptions(ledger, &log, 64u << 20);
  options.device = "cpu";
  options.window_tokens = 50;
  const Loaded loaded = load(kSmall, options);
  ASSERT_TRUE(loaded.session);
  std::string text;
  while (text.size() < 60000) {
    text += "A hedgehog saw " + std::to_string(text.size()) + " others.\n";
  }
  ledger.refuse_all = true;
  const uint64_t calls = ledger.calls;
  EXPECT_EQ(ORIEL_OK, oriel_session_append_text(loaded.session.get(), text.data(), text.size(), 0));
  EXPECT_EQ(calls, ledger.calls);

  // A call that fails at its end changes nothing: text is checked, and memory taken, before the first token.
  const uint64_t position = statsOf(loaded).position;
  const std::string broken = text + "\xFF";
  EXPECT_EQ(ORIEL_ERROR_TEXT,
            oriel_session_append_text(loaded.session.get(), broken.data(), broken.size(), 0));
  const std::string unbroken = text + std::string(100000, 'x');
  EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY,
            oriel_session_append_text(loaded.session.get(), unbroken.data(), unbroken.size(), 0));
  EXPECT_EQ(position, statsOf(loaded).position);
}

RUNS_ON(kCpu);
TEST(Memory, a_long_prompt_gives_the_tokens_of_the_whole) {
  CapturedLog log;
  Options options = makeOptions(&log);
  options.device = "cpu";
  options.window_tokens = 50;
  options.set("prefill_batch", 48);
  const Loaded loaded = load(kSmall, options);
  std::string text;
  while (text.size() < 20000) {
    text += "A hedgehog saw " + std::to_string(text.size()) + " others.\n";
  }
  size_t count = 0;
  std::vector<int32_t> ids(text.size());
  ASSERT_EQ(ORIEL_OK, oriel_tokenize(loaded.model.get(), text.data(), text.size(), 0, ids.data(),
                                     ids.size(), &count));
  ids.resize(count);
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr));
  const std::vector<float> expected = logitsOf(loaded);
  const uint64_t steps = countOf(loaded, "submissions");
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK, oriel_session_append_text(loaded.session.get(), text.data(), text.size(), 0));
  EXPECT_EQ(count, statsOf(loaded).position);
  EXPECT_EQ(2 * steps, countOf(loaded, "submissions"));
  EXPECT_EQ(expected, logitsOf(loaded));

  // A long message is not copied into its frame.
  const std::string message = Json({{"role", "user"}, {"content", text}}).dump();
  ids.resize(text.size());
  ASSERT_EQ(ORIEL_OK,
            oriel_render_tokens(loaded.model.get(), nullptr, message.data(), message.size(),
                                ORIEL_TEXT_BOS, ids.data(), ids.size(), &count));
  ids.resize(count);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr));
  const std::vector<float> of_message = logitsOf(loaded);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", text.data(), text.size()));
  EXPECT_EQ(count, statsOf(loaded).position);
  EXPECT_EQ(of_message, logitsOf(loaded));
}

TEST(Memory, a_pipeline_cache_costs_the_app_nothing) {
  const std::string folder = testing::TempDir() + "/oriel-pipelines";
  for (int i = 0; i < 2; ++i) {  // written, then read
    Ledger ledger;
    CapturedLog log;
    Options options = budgetOptions(ledger, &log, 3000000);
    options.cache_folder = folder.c_str();
    options.set("kv", "f16");
    expectExactly(kSmall, options, ledger, 3);
    EXPECT_EQ("", log.errors());
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_memory

namespace oriel_internal::test::test_validation {

// A session's whole life on the device in one test. Also run under the Khronos validation layer, where any message is a
// failure (support/device_main.cpp).

namespace {

/// A private folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(testing::TempDir() + "/oriel-validation-cache-" + std::to_string(getpid())) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

RUNS_ON(kOneDevice | kValidated);
TEST(Validation, a_whole_life_loads_prefills_slides_evaluates_resets_and_loads_again) {
  const TemporaryFolder cache;
  std::vector<int32_t> first_life;
  for (int life = 0; life < 2; ++life) {  // the second finds the pipelines of the first
    CapturedLog log;
    Options options = makeOptions(&log);
    options.memory_bytes = 64u << 20;
    options.window_tokens = 24;
    options.set("prefill_batch", 8);
    options.cache_folder = cache.path();
    const Loaded loaded = load(ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf", options);
    ASSERT_TRUE(loaded.session) << log.errors();
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 21; ++i) {  // two whole chunks and a part of one
      prompt.push_back(300 + i * 7);
    }
    ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    const std::vector<int32_t> ids = greedy(loaded, 20);  // past the window
    EXPECT_GT(statsOf(loaded).evicted, 0u);
    EXPECT_EQ(prompt.size(), evaluate(loaded, prompt).size());
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    EXPECT_EQ(ids, greedy(loaded, 20));
    if (life == 0) {
      first_life = ids;
    }
    EXPECT_EQ(first_life, ids);
    EXPECT_EQ("", log.errors());
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_validation
