// Contracts of oriel.h with hostile or careless apps and files.
#include <gtest/gtest.h>

#include <cstring>

#include "exec/snapshot.h"
#include "oriel/advanced.h"
#include "support/api.h"
#include "support/files.h"
#include "support/forged_snapshots.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_contracts {
namespace {

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
  for (uint32_t step = 1; step <= all; ++step) {
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
