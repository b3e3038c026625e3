// Contracts of oriel.h with hostile or careless apps and files.
#include <cstring>

#include <gtest/gtest.h>

#include "exec/snapshot.h"
#include "oriel/advanced.h"
#include "support/api.h"
#include "support/files.h"
#include "support/forged_snapshots.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_contracts {
namespace {

FILE_RUNS_ON(kCpu);

const char* const kTiny = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";

// The rules are the session's: one device is enough.
Options onTheCpu(CapturedLog* log = nullptr) {
  Options options = makeOptions(log);
  options.device = "cpu";
  options.window_tokens = 200;
  return options;
}

std::vector<uint8_t> savedSession(const Loaded& loaded) { return savedBytes(loaded.session.get()); }

// End of the snapshot's description, including its checksum.
size_t endOfDescription(const SnapshotHeader& header) {
  return sizeof(header) + header.n_memories * sizeof(SnapshotMemory) + 8;
}

TEST(Contracts, a_forged_snapshot_with_a_valid_checksum_is_refused) {
  const Loaded loaded = load(kTiny, onTheCpu());
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", "Hello!", 6));
  const std::vector<uint8_t> honest = savedSession(loaded);
  const auto restore = [&](const std::vector<uint8_t>& bytes) {
    return restoreFrom(loaded.session.get(), bytes);
  };
  EXPECT_EQ(ORIEL_OK, restore(forged(honest, [](SessionState*) {})));
  EXPECT_EQ(ORIEL_ERROR_FORMAT,
            restore(forged(honest, [](SessionState* s) { s->sampler.recent[0] = 0x40000000; })));
  EXPECT_EQ(ORIEL_ERROR_FORMAT,
            restore(forged(honest, [](SessionState* s) { s->sampler.recent[1] = -1; })));
  EXPECT_EQ(ORIEL_ERROR_FORMAT,
            restore(forged(honest, [](SessionState* s) { s->position = s->stored = UINT64_MAX; })));
  EXPECT_EQ(ORIEL_ERROR_FORMAT, restore(forged(honest, [](SessionState* s) { s->stored = 0; })));
}

// After the header: turn starts, then token ids.
TEST(Contracts, forged_turns_and_ids_of_a_snapshot_are_refused) {
  const Loaded loaded = load(kTiny, onTheCpu());
  for (const char* text : {"Hello!", "Hello again!", "And again!"}) {
    ASSERT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", text, std::strlen(text)));
  }
  const std::vector<uint8_t> honest = savedSession(loaded);
  SnapshotHeader header;
  std::memcpy(static_cast<void*>(&header), honest.data(), sizeof(header));
  ASSERT_EQ(3u, header.n_turns);
  const auto restoredWith = [&](size_t offset, auto value) {
    std::vector<uint8_t> bytes = honest;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    bytes = forged(bytes, [](SessionState*) {});
    return restoreFrom(loaded.session.get(), bytes);
  };
  const size_t turns = endOfDescription(header);
  const size_t ids = turns + 3 * sizeof(uint64_t);
  const uint64_t position = header.state.position;
  EXPECT_EQ(ORIEL_OK, restoredWith(turns + 16, position));
  EXPECT_EQ(ORIEL_ERROR_FORMAT, restoredWith(turns + 16, position + 1));
  EXPECT_EQ(ORIEL_ERROR_FORMAT, restoredWith(turns + 16, UINT64_MAX));
  EXPECT_EQ(ORIEL_ERROR_FORMAT, restoredWith(turns + 16, uint64_t{0})) << "before the turn before";
  EXPECT_EQ(ORIEL_ERROR_FORMAT, restoredWith(turns, position)) << "behind the next one";
  EXPECT_EQ(ORIEL_OK, restoredWith(ids, int32_t{-1})) << "not known";
  EXPECT_EQ(ORIEL_OK, restoredWith(ids + 4 * (position - 1), int32_t{2047}));
  for (const int32_t bad : {-2, INT32_MIN, 2048, INT32_MAX}) {
    EXPECT_EQ(ORIEL_ERROR_FORMAT, restoredWith(ids, bad)) << bad;
    EXPECT_EQ(ORIEL_ERROR_FORMAT, restoredWith(ids + 4 * (position - 1), bad)) << bad;
  }
}

TEST(Contracts, a_snapshot_belongs_to_one_way_of_evicting) {
  const Loaded loaded = load(kTiny, onTheCpu());
  const std::vector<uint8_t> bytes = savedSession(loaded);
  Loaded other = load(kTiny, onTheCpu());
  other.session.reset();
  SessionOptions options;
  options.set("evict", "tokens");
  other.session = newSession(other.model, &options);
  EXPECT_EQ(ORIEL_ERROR_FORMAT, oriel_snapshot_restore(other.session.get(), bytes.data(),
                                                       bytes.size(), ORIEL_RESTORE_EXACT, nullptr));
  EXPECT_EQ(ORIEL_OK, restoreFrom(other.session.get(), bytes))
      << "from one to the other it is carried over";
}

TEST(Contracts, editing_the_last_message_gives_the_same_conversation) {
  const Loaded loaded = load(kTiny, onTheCpu());
  oriel_session* session = loaded.session.get();
  const ReplyOptions options = greedyOptions(10);
  const auto say = [&](const char* text) {
    EXPECT_EQ(ORIEL_OK, oriel_chat_add(session, "user", text, std::strlen(text)));
  };
  say("Hello!");
  ASSERT_EQ(ORIEL_OK, oriel_chat_reply(session, &options, nullptr, nullptr, nullptr));
  const uint64_t after_reply = statsOf(loaded).position;
  say("My name is Ada.");
  const std::vector<float> want = logitsOf(loaded);
  ASSERT_EQ(ORIEL_OK, goBackTo(session, after_reply));
  say("My name is Ada.");
  EXPECT_EQ(want, logitsOf(loaded));
}

TEST(Contracts, a_reply_goes_on_past_its_end_when_told_to) {
  const Loaded loaded = load(kTiny, onTheCpu());
  const auto reply = [&](uint32_t ignore_stop) {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    EXPECT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", "Hello!", 6));
    ReplyOptions options = greedyOptions(60);
    options.set("ignore_stop", ignore_stop != 0);
    oriel_generation result = ORIEL_INIT(oriel_generation);
    EXPECT_EQ(ORIEL_OK,
              oriel_chat_reply(loaded.session.get(), &options, nullptr, nullptr, &result));
    return result;
  };
  ASSERT_EQ(ORIEL_STOP_TOKEN, reply(0).stop_reason);
  const oriel_generation endless = reply(1);
  EXPECT_EQ(ORIEL_STOP_LENGTH, endless.stop_reason);
  EXPECT_EQ(60u, endless.tokens);
}

TEST(Contracts, a_long_system_prompt_is_pinned_as_far_as_the_trained_context_allows) {
  Options options = onTheCpu();
  options.window_tokens = 0;
  oriel_plan plan = ORIEL_PLAN_INIT;
  options.set("prefix_tokens", 605);  // of 1024
  EXPECT_EQ(ORIEL_OK, oriel_plan_file(kTiny, &options, &plan));
  EXPECT_EQ(605u, plan.sink_tokens);
  EXPECT_EQ(1024u - 605u, plan.window_tokens);
  options.set("prefix_tokens", 1024 - 16);
  EXPECT_EQ(ORIEL_OK, oriel_plan_file(kTiny, &options, &plan));
  options.set("prefix_tokens", 1024 - 15);
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, oriel_plan_file(kTiny, &options, &plan));
}

TEST(Contracts, a_load_that_the_app_stops_is_cancelled_and_no_error_is_logged) {
  CapturedLog log;
  Options options = onTheCpu(&log);
  options.progress = [](uint64_t, uint64_t, void*) { return 1; };
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_model_load(kTiny, &options, &model));
  EXPECT_EQ(nullptr, model);
  EXPECT_EQ("", log.errors());
}

TEST(Contracts, a_load_ends_at_the_step_at_which_the_app_says_so) {
  struct Steps {
    uint32_t until = UINT32_MAX;
    uint32_t done = 0;
  } steps;
  Options options = onTheCpu();
  options.progress = [](uint64_t, uint64_t, void* user) {
    auto* const count = static_cast<Steps*>(user);
    return ++count->done >= count->until ? 1 : 0;
  };
  options.progress_user = &steps;
  oriel_model* model = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_model_load(kTiny, &options, &model));
  oriel_model_free(model);
  const uint32_t all = steps.done;
  ASSERT_LT(2u, all);
  const uint32_t stride = allCases() ? 1 : 3;
  for (uint32_t step = 1 + (all - 1) % stride; step <= all; step += stride) {  // the last, too
    steps = {step, 0};
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_model_load(kTiny, &options, &model)) << step;
    EXPECT_EQ(step, steps.done) << "work went on behind a cancel";
  }
}

// 1 ms per chunk of 64 tokens, and 1 ms more for a full window of 1024.
TEST(Contracts, prompts_of_any_length_are_predicted_at_once) {
  Json step = {{"tokens", 1},         {"overhead_s", 1e-3}, {"weights_s", 0},
               {"weights_once_s", 0}, {"head_s", 0},        {"groups", Json::array()}};
  Json plan = {{"sink_tokens", 4}, {"window_tokens", 1020}, {"decode", step}, {"prefill", step}};
  plan["prefill"]["tokens"] = 64;
  plan["prefill"]["groups"] = Json::array({{{"window_tokens", 0}, {"s_per_token", 1e-3 / 1024}}});
  const auto seconds = [&](uint64_t depth, uint32_t tokens) {
    oriel_prediction prediction = ORIEL_INIT(oriel_prediction);
    const std::string text = plan.dump();
    EXPECT_EQ(ORIEL_OK, oriel_plan_predict(text.data(), text.size(), depth, tokens, &prediction));
    return tokens / prediction.prefill_tokens_per_s;
  };
  EXPECT_NEAR(2e-3, seconds(1024, 64), 1e-9);
  EXPECT_NEAR(20e-3, seconds(1024, 640), 1e-9);
  // Into an empty window, past its end, and a partial chunk: their sum.
  EXPECT_NEAR(seconds(0, 1024) + seconds(1024, 640) + seconds(1024, 10), seconds(0, 1674), 1e-9);
  const double chunks = static_cast<double>(UINT32_MAX) / 64;
  EXPECT_NEAR(chunks * 2e-3, seconds(UINT64_MAX, UINT32_MAX), 1);
  plan["prefill"]["tokens"] = 1;
  EXPECT_GT(seconds(0, UINT32_MAX), 4e6);
}

RUNS_ON(kEachDevice);
TEST(Contracts, the_cpu_is_the_last_of_all_devices) {
  const Json devices = describeDevices(Options());
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ("cpu", devices.back().at("kind"));
}

TEST(Contracts, values_nobody_defined_are_refused) {
  oriel_model* model = nullptr;
  CapturedLog log;
  Options options = onTheCpu(&log);
  options.device = "vulkano";
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kTiny, &options, &model));
  options = onTheCpu(&log);
  const oriel_allocator half = {nullptr, nullptr, nullptr};
  options.allocator = &half;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kTiny, &options, &model));
  EXPECT_FALSE(log.errors().empty());
}

TEST(Contracts, messages_are_one_line_whatever_the_path) {
  CapturedLog log;
  const Options options = onTheCpu(&log);
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_model_load("/no\nsuch\nfile", &options, &model));
  EXPECT_EQ(std::string::npos, log.errors().find('\n')) << log.errors();
}

Json modelOn(const char* device) {
  Options options = makeOptions();
  options.device = device;
  return describe(load(kTiny, options).model);
}

RUNS_ON(kEachDevice);
TEST(Contracts, a_driver_that_is_the_same_processor_is_not_chosen_before_its_vector_instructions) {
  for (const Json& device : describeDevices(Options())) {
    const std::string kind = device.at("kind");
    if (kind != "software" && kind != "cpu") {
      GTEST_SKIP() << "there is a GPU: " << device.at("name");
    }
  }
  Json cpu = modelOn("cpu");
  if (cpu["driver"].get<std::string>().find("reference") != std::string::npos) {
    GTEST_SKIP() << "plain code only";
  }
  EXPECT_EQ(cpu["device"], modelOn("auto")["device"]);
  EXPECT_EQ(cpu["driver"], modelOn("auto")["driver"]);
}

}  // namespace
}  // namespace oriel_internal::test::test_contracts

namespace oriel_internal::test::test_given_options {

// Options given by name: texts are copied during the call, and error lines use the caller's words.

namespace {

/// A setting whose memory is overwritten after the call.
class Passing {
 public:
  Passing& add(const std::string& name, const std::string& value) {
    texts_.push_back(std::make_unique<std::string>(name));
    texts_.push_back(std::make_unique<std::string>(value));
    list_.push_back({texts_[texts_.size() - 2]->c_str(), texts_.back()->c_str()});
    return *this;
  }
  const char* text(const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));
    return texts_.back()->c_str();
  }
  template <typename Struct>
  void give(Struct* options) const {
    options->settings = list_.data();
    options->setting_count = list_.size();
  }
  void end() {
    for (const auto& one : texts_) {
      std::fill(one->begin(), one->end(), '?');
    }
    texts_.clear();
    std::fill(list_.begin(), list_.end(), oriel_setting{"?", "?"});
    list_.clear();
  }

 private:
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<oriel_setting> list_;
};

const char* const kTools =
    R"([{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}])";
const char* const kTemplate =
    "{% if tools %}<tools>{{ tools|tojson }}{{ docs_of }}</tools>{% endif %}"
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

TEST(GivenOptions, a_session_keeps_copies_of_its_texts) {
  CapturedLog log;
  Options options = cpuOptions(&log, 600, 64);
  options.sessions = 2;
  Loaded loaded = load(kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  loaded.session.reset();
  const auto talk = [&](const SessionPtr& session) {
    Heard heard;
    for (const char* text : {"What time is it?", "And now?"}) {
      EXPECT_EQ(ORIEL_OK, oriel_chat_add(session.get(), "user", text, std::strlen(text)));
      const ReplyOptions greedy = greedyOptions(12);
      EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session.get(), &greedy, hear, &heard, nullptr));
    }
    return heard.ids;
  };
  const auto held = [](const SessionPtr& session) {
    std::vector<int32_t> ids(600);
    size_t needed = 0;
    EXPECT_EQ(ORIEL_OK,
              oriel_session_get_tokens(session.get(), 0, ids.data(), ids.size(), &needed));
    ids.resize(needed);
    return ids;
  };
  SessionOptions staying;
  staying.chat_template = kTemplate;
  staying.tools = kTools;
  staying.set("template_variables", R"({"docs_of": "today"})").set("thinking", "off");
  oriel_session* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), &staying, &made)) << log.errors();
  const SessionPtr expected(made);

  Passing passing;
  passing.add("template_variables", R"({"docs_of": "today"})").add("thinking", "off");
  oriel_session_options given = ORIEL_SESSION_OPTIONS_INIT;
  given.chat_template = passing.text(kTemplate);
  given.tools = passing.text(kTools);
  passing.give(&given);
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), &given, &made)) << log.errors();
  const SessionPtr session(made);
  passing.end();

  EXPECT_EQ(describe(expected)["options"], describe(session)["options"]);
  EXPECT_EQ(talk(expected), talk(session));
  EXPECT_EQ(held(expected), held(session));
  EXPECT_EQ("", log.errors());
}

TEST(GivenOptions, a_model_keeps_copies_of_its_settings) {
  CapturedLog log;
  Passing passing;
  passing.add("kv", "k8v4").add("sinks", "7").add("session_windows", "64,48");
  oriel_options given = ORIEL_OPTIONS_INIT;
  given.memory_bytes = 64u << 20;
  given.window_tokens = 96;
  given.sessions = 3;
  given.device = passing.text("cpu");
  given.system_prompt = passing.text("Be kind.");
  passing.give(&given);
  oriel_model* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &given, &made));
  const ModelPtr model(made);
  passing.end();
  const Json options = describe(model)["options"];
  EXPECT_EQ("k8v4", options.at("kv"));
  EXPECT_EQ("7", options.at("sinks"));
  EXPECT_EQ("64,48,96", options.at("session_windows"));
  EXPECT_EQ("cpu", options.at("device"));
  ASSERT_EQ(ORIEL_OK, oriel_trim(model.get(), ORIEL_TRIM_WEIGHTS, nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model.get(), nullptr, nullptr));
}

TEST(GivenOptions, a_value_by_name_replaces_the_field) {
  Options options = cpuOptions(nullptr, 64);
  options.set("window", 48);
  EXPECT_EQ(48u, planOf(kTrained, options).window_tokens);
  const Loaded loaded = load(kTrained, cpuOptions(nullptr));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello"));
  ReplyOptions reply = greedyOptions(9);
  reply.set("max_tokens", 2);
  EXPECT_EQ(2u, listen(oriel_chat_reply, loaded, reply).ids.size());
}

/// One line, which names the caller's text.
void expectSaid(const CapturedLog& log, const std::vector<std::string>& words) {
  EXPECT_EQ(1u, errorLines(log)) << log.errors();
  for (const std::string& word : words) {
    EXPECT_TRUE(log.says(word)) << word << ": " << log.errors();
  }
}

TEST(GivenOptions, of_a_wrong_scope_are_told_where_they_belong) {
  CapturedLog log;
  Options load_options = cpuOptions(&log);
  load_options.set("temperature", 1);
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kTrained, &load_options, &model));
  expectSaid(log, {"\"temperature\"", "reply"});

  log.clear();
  Loaded loaded = load(kTrained, cpuOptions(&log));
  SessionOptions session_options;
  session_options.set("kv", "f16");
  loaded.session.reset();
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_create(loaded.model.get(), &session_options, &session));
  expectSaid(log, {"\"kv\"", "load"});
  EXPECT_STREQ(log.errors().c_str(), oriel_model_last_error(loaded.model.get()));

  log.clear();
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), nullptr, &session));
  loaded.session.reset(session);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello"));
  ReplyOptions reply = greedyOptions(2);
  reply.set("template", "chatml");
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_chat_reply(session, &reply, nullptr, nullptr, nullptr));
  expectSaid(log, {"\"template\"", "session"});
}

TEST(GivenOptions, that_are_not_known_are_guessed_and_wrong_values_get_the_range) {
  const std::pair<std::pair<const char*, const char*>, std::vector<std::string>> cases[] = {
      {{"prefil_batch", "8"}, {"\"prefil_batch\"", "did you mean \"prefill_batch\""}},
      {{"activation_bits", "9"}, {"\"activation_bits\"", "\"9\"", "16 or 8"}},
      {{"speculate", "16"}, {"\"speculate\"", "\"16\"", "0 to 15"}},
      {{"offload", "some"}, {"\"offload\"", "\"some\"", "rows"}},
      {{"device", "vulkan:x"}, {"\"device\"", "\"vulkan:x\""}},
      {{"colour", "red"}, {"\"colour\"", "not known"}}};
  for (const auto& [given, words] : cases) {
    CapturedLog log;
    char line[1024] = "";
    Options options = cpuOptions(&log);
    options.set(given.first, given.second);
    options.error_line = line;
    options.error_line_bytes = sizeof(line);
    oriel_plan plan = ORIEL_PLAN_INIT;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_plan_file(kTrained, &options, &plan)) << given.first;
    expectSaid(log, words);
    EXPECT_EQ(log.errors(), line);
  }
}

TEST(GivenOptions, that_contradict_each_other_are_refused_by_name) {
  struct Pair {
    const char* first;
    const char* value;
    const char* second;
    const char* other;
  };
  const Pair pairs[] = {{"min_window", "300", "window", "200"},
                        {"draft_model", "none.gguf", "sessions", "2"},
                        {"prefix_file", "none.bin", "system_prompt", "Be kind."},
                        {"retrieval", "1MB", "prefix_tokens", "8"}};
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.first);
    CapturedLog log;
    Options options = cpuOptions(&log);
    options.set("retrieval_folder", testing::TempDir());
    options.set(pair.first, pair.value).set(pair.second, pair.other);
    oriel_model* model = nullptr;
    const oriel_status status = oriel_model_load(kTrained, &options, &model);
    EXPECT_TRUE(status == ORIEL_ERROR_ARGUMENT || status == ORIEL_ERROR_UNSUPPORTED) << status;
    expectSaid(log,
               {std::string("\"") + pair.first + "\"", std::string("\"") + pair.second + "\""});
  }
  CapturedLog log;
  Options with_constraints = cpuOptions(&log);
  with_constraints.set("constraints", true);
  Loaded loaded = load(kTrained, with_constraints);
  ReplyOptions both = greedyOptions(4);
  both.schema = "{}";
  both.set("grammar", "root ::= \"a\"");
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello"));
  log.clear();
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, listen(oriel_chat_reply, loaded, both).status);
  expectSaid(log, {"\"schema\"", "\"grammar\""});
  log.clear();
  loaded.session.reset();
  SessionOptions forgets;
  forgets.set("forget", true).set("evict", "tokens");
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(loaded.model.get(), &forgets, &session));
  expectSaid(log, {"\"forget\"", "\"evict\""});
}

}  // namespace
}  // namespace oriel_internal::test::test_given_options
