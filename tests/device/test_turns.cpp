// Conversations longer than the window: whole turns are evicted, and going back is possible exactly while the required
// tokens are stored.
#include <algorithm>

#include <gtest/gtest.h>

#include "chat/chat_template.h"
#include "support/allocators.h"
#include "support/files.h"
#include "support/golden.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/target.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_turns {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

std::vector<uint64_t> turnsOf(const Loaded& loaded) {
  const std::vector<uint64_t> starts = describe(loaded)["turns"];
  EXPECT_EQ(starts.size(), statsOf(loaded).turn_count);
  return starts;
}

oriel_status reply(const Loaded& loaded, uint32_t max_tokens) {
  const ReplyOptions options = greedyOptions(max_tokens);
  return oriel_chat_reply(loaded.session.get(), &options, nullptr, nullptr, nullptr);
}

/// Turns of many lengths, all far shorter than the window.
std::string message(uint32_t turn) {
  std::string text = "Turn " + std::to_string(turn) + ".";
  for (uint32_t i = 0; i < turn * 5 % 7; ++i) {
    text += " I saw a hedgehog.";
  }
  return text;
}

uint32_t pinnedTokens(const std::string& system) {
  Options options;
  options.device = "none";
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model));
  const ModelPtr owner(model);
  const std::string only = messagesJson({{"system", system}});
  size_t count = 0;
  (void)oriel_render_tokens(model, nullptr, only.data(), only.size(), ORIEL_TEXT_BOS, nullptr, 0,
                            &count);
  return static_cast<uint32_t>(count);
}

TEST(Turns, the_first_token_seen_is_always_the_start_of_a_turn) {
  CapturedLog log;
  const std::string system = "You are a kind and patient helper.";
  Options options = cpuOptions(&log, 256, 32);
  options.set("sinks", pinnedTokens(system));
  const Loaded loaded = load(kTrained, options);
  ASSERT_TRUE(loaded.session);
  const uint32_t sinks = planOf(loaded).sink_tokens;
  ASSERT_EQ(pinnedTokens(system), sinks);
  ASSERT_EQ(ORIEL_OK, add(loaded, "system", system));
  ASSERT_EQ(sinks, statsOf(loaded).position);

  std::vector<uint64_t> starts;
  uint64_t evictions = 0;
  for (uint32_t turn = 0; turn < 200; ++turn) {
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", message(turn)));
    starts.push_back(turnsOf(loaded).back());
    const oriel_stats view = statsOf(loaded);
    EXPECT_EQ(sinks, view.sinks_used);
    EXPECT_LE(view.position - view.first_visible, 256u);
    EXPECT_LE(view.first_stored, view.first_visible);
    const bool is_start =
        std::find(starts.begin(), starts.end(), view.first_visible) != starts.end();
    ASSERT_TRUE(is_start) << "turn " << turn << " sees from token " << view.first_visible;
    // As many whole turns as fit.
    if (view.first_visible != starts.front()) {
      ++evictions;
      const auto before = std::find(starts.begin(), starts.end(), view.first_visible) - 1;
      EXPECT_GT(view.position - *before, 256u);
    }
    // An occasional reply, as in a chat.
    if (turn % 10 == 3) {
      ASSERT_EQ(ORIEL_OK, reply(loaded, 12));
    }
  }
  EXPECT_GT(evictions, 150u);
  EXPECT_EQ("", log.errors());
}

TEST(Turns, split_turns_evicts_token_by_token) {
  CapturedLog log;
  const Options options = cpuOptions(&log, 64);
  oriel_model* model = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_model_load(kRandom, &options, &model));
  Loaded loaded;
  loaded.model.reset(model);
  SessionOptions session_options;
  session_options.set("evict", "tokens");
  oriel_session* session = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
  loaded.session.reset(session);
  for (uint32_t turn = 0; turn < 60; ++turn) {
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Turn " + std::to_string(turn)));
    const oriel_stats view = statsOf(loaded);
    EXPECT_EQ(std::min<uint64_t>(view.position - view.sinks_used, 64),
              view.position - view.first_visible);
  }
}

TEST(Turns, a_turn_longer_than_the_window_is_seen_as_far_as_it_fits) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log, 32));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", std::string(300, 'a')));
  const oriel_stats view = statsOf(loaded);
  EXPECT_EQ(32u, view.position - view.first_visible);
}

/// The definition, token by token: after the sinks a token in the window is visible if its turn is completely in the
/// window, unfinished, or longer than half the window. Text before the first turn counts as a turn.
uint64_t firstVisible(const std::vector<uint64_t>& starts, uint64_t position, uint64_t sinks,
                      uint64_t window) {
  const uint64_t oldest = position - std::min(position, window);
  uint64_t first = position;
  for (uint64_t t = position; t-- > std::max(sinks, oldest);) {
    const auto next = std::upper_bound(starts.begin(), starts.end(), t);
    const uint64_t begin = next == starts.begin() ? 0 : *(next - 1);
    const bool ended = next != starts.end();
    const bool whole = begin >= oldest || oldest <= sinks;
    if (whole || !ended || 2 * (*next - begin) > window) {
      EXPECT_EQ(first, t + 1) << "what is seen has no gaps";
      first = t;
    }
  }
  return first;
}

/// `n` words of at most a few tokens each.
std::string words(uint32_t n) {
  std::string text;
  for (uint32_t i = 0; i < n; ++i) {
    text += "dog ";
  }
  return text;
}

TEST(Turns, what_is_left_of_a_turn_longer_than_half_the_window_stays_in_sight) {
  constexpr uint32_t kWindow = 128;
  for (const uint32_t seed : {1u, 2u, 3u}) {
    CapturedLog log;
    const Loaded loaded = load(kTrained, cpuOptions(&log, kWindow, 16));
    ASSERT_TRUE(loaded.session);
    uint64_t seen_from = 0;
    bool kept_a_part = false;
    uint32_t random = seed * 2654435761u;
    if (seed == 3) {  // text outside turns, longer than half the window
      const std::string text = words(80);
      ASSERT_EQ(ORIEL_OK,
                oriel_session_append_text(loaded.session.get(), text.data(), text.size(), 0));
    }
    const uint32_t turns = allCases() ? 60 : 36;
    for (uint32_t turn = 0; turn < turns; ++turn) {
      random = random * 1664525u + 1013904223u;
      ASSERT_EQ(ORIEL_OK,
                add(loaded, "user", words(random >> 30 == 0 ? 90 : 1 + (random >> 20) % 40)));
      if (turn % 4 == 1) {
        ASSERT_EQ(ORIEL_OK, reply(loaded, 5));
      }
      const oriel_stats view = statsOf(loaded);
      ASSERT_EQ(firstVisible(turnsOf(loaded), view.position, view.sinks_used, kWindow),
                view.first_visible)
          << "turn " << turn;
      EXPECT_GE(view.first_visible, seen_from) << "what was forgotten stays forgotten";
      seen_from = view.first_visible;
      const std::vector<uint64_t> starts = turnsOf(loaded);
      kept_a_part = kept_a_part || (view.first_visible < starts.back() &&
                                    std::count(starts.begin(), starts.end(), seen_from) == 0);
    }
    EXPECT_TRUE(kept_a_part);
    EXPECT_EQ("", log.errors());
  }
}

// A document in the first question used to disappear at the second one.
TEST(Turns, a_document_is_still_read_at_the_next_question) {
  constexpr uint32_t kWindow = 128;
  CapturedLog log;
  const std::string document = words(110);
  std::vector<float> expected;
  for (const uint32_t split : {1u, 0u}) {  // both see the same of such a turn
    const Options options = sessionOptions(&log, kWindow, 16);
    oriel_model* model = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model));
    Loaded loaded;
    loaded.model.reset(model);
    SessionOptions session_options;
    session_options.set("evict", split != 0 ? "tokens" : "turns");
    oriel_session* session = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded.session.reset(session);
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", document));
    ASSERT_EQ(ORIEL_OK, reply(loaded, 10));
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", "What is in it?"));
    const oriel_stats view = statsOf(loaded);
    ASSERT_GT(view.position - view.sinks_used, uint64_t{kWindow});
    EXPECT_EQ(view.position - kWindow, view.first_visible);
    ASSERT_EQ(ORIEL_OK, reply(loaded, 10));
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", "And then?"));
    expected = expected.empty() ? logitsOf(loaded) : expected;
    EXPECT_EQ(expected, logitsOf(loaded));

    // Through a snapshot, too.
    const std::vector<uint8_t> snapshot = savedBytes(session);
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(session));
    ASSERT_EQ(ORIEL_OK, restoreFrom(session, snapshot));
    EXPECT_EQ(statsOf(loaded).position - kWindow, statsOf(loaded).first_visible);
    EXPECT_EQ(expected, logitsOf(loaded));
  }
}

TEST(Turns, what_is_seen_does_not_depend_on_the_chunk) {
  std::vector<uint64_t> expected;
  for (const uint32_t chunk : {1u, 7u, 32u}) {
    CapturedLog log;
    const Loaded loaded = load(kTrained, cpuOptions(&log, 128, chunk));
    std::vector<uint64_t> seen_from;
    for (const uint32_t n : {80u, 5u, 20u, 90u, 10u, 10u, 60u, 3u, 70u, 2u}) {
      ASSERT_EQ(ORIEL_OK, add(loaded, "user", words(n)));
      seen_from.push_back(statsOf(loaded).first_visible);
    }
    expected = expected.empty() ? seen_from : expected;
    EXPECT_EQ(expected, seen_from);
  }
}

TEST(Turns, the_view_of_a_new_session_is_empty) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log, 32));
  const oriel_stats view = statsOf(loaded);
  EXPECT_EQ(0u, view.position);
  EXPECT_EQ(0u, view.first_visible);
  EXPECT_EQ(0u, view.first_stored);
  EXPECT_EQ(0u, view.sinks_used);
  EXPECT_EQ(std::vector<uint64_t>(), turnsOf(loaded));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_get_stats(nullptr, nullptr));
  const Json described = describe(loaded.model);
  for (const Json& layer : described["layers"]) {
    EXPECT_EQ("f16", layer.at("k_format"));
    EXPECT_EQ("f16", layer.at("v_format"));
  }
}

// ---- Going back ----------------------------------------------------------------------------------

TEST(Rewind, the_same_text_again_gives_the_same_logits) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, sessionOptions(&log, 200));
  ASSERT_TRUE(loaded.session);
  ASSERT_EQ(ORIEL_OK, add(loaded, "system", "Be brief."));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello!"));
  ASSERT_EQ(ORIEL_OK, reply(loaded, 8));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "And then?"));
  const std::vector<float> expected = logitsOf(loaded);
  const uint64_t position = statsOf(loaded).position;
  const uint64_t start = turnsOf(loaded).back();

  ASSERT_EQ(ORIEL_OK, reply(loaded, 8));
  ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), start));
  EXPECT_EQ(start, statsOf(loaded).position);
  EXPECT_EQ(1u, turnsOf(loaded).size());
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_logits(loaded.session.get(), &logits, &count));
  // The turn's mark is after the end of the previous reply, so the reply is closed only once.
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "And then?"));
  EXPECT_EQ(position, statsOf(loaded).position);
  EXPECT_LT(relativeL2(expected, logitsOf(loaded)), 1e-5);

  ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 0));
  EXPECT_EQ(0u, statsOf(loaded).position);
  EXPECT_EQ(std::vector<uint64_t>(), turnsOf(loaded));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(loaded.session.get(), 1));
}

TEST(Rewind, past_the_window_it_goes_back_by_the_slack_and_no_further) {
  CapturedLog log;
  const uint32_t window = 64;
  const uint32_t chunk = 16;
  const Loaded loaded = load(kRandom, cpuOptions(&log, window, chunk));
  std::vector<int32_t> ids(301);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(i * 31 % 200);
  }
  const std::vector<std::vector<float>> rows = evaluate(loaded, ids);
  const uint64_t end = ids.size();
  log.clear();
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(loaded.session.get(), end - chunk - 1));
  EXPECT_TRUE(log.says("go back"));
  EXPECT_EQ(end, statsOf(loaded).position);
  EXPECT_EQ(rows.back(), logitsOf(loaded));  // nothing has changed

  ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), end - chunk));
  // Single tokens are added in another order than a chunk, so the CPU may round some activations to neighbouring
  // integers (as in Streaming.chunk_size_does_not_change_what_is_seen).
  for (uint64_t t = end - chunk; t < end; ++t) {
    ASSERT_EQ(ORIEL_OK, append(loaded, {ids[t]}));
    EXPECT_LT(relativeL2(logitsOf(loaded), rows[t]), 5e-4) << "token " << t;
  }
}

TEST(Rewind, to_the_beginning_makes_everything_possible_that_was_at_first) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, sessionOptions(&log, 64, 16));
  const std::vector<int32_t> ids(70, 5);
  ASSERT_EQ(ORIEL_OK, append(loaded, ids));
  const std::vector<float> expected = logitsOf(loaded);
  ASSERT_EQ(ORIEL_OK, append(loaded, std::vector<int32_t>(300, 7)));
  ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 0));
  ASSERT_EQ(ORIEL_OK, append(loaded, ids));
  EXPECT_EQ(expected, logitsOf(loaded));
  EXPECT_EQ(statsOf(loaded).sinks_used, statsOf(loaded).first_stored);
  EXPECT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 10));
}

// A device may have started the token after the reply. Counting it on all devices makes their sessions equal.
TEST(Rewind, behind_a_greedy_reply_that_was_cut_short_it_goes_back_one_token_less) {
  CapturedLog log;
  const uint32_t chunk = 16;
  const Loaded loaded = load(kRandom, sessionOptions(&log, 64, chunk));
  oriel_session* const session = loaded.session.get();
  const oriel_token_fn cancel_at_once = [](const oriel_token_event*, void* user) {
    oriel_session_cancel(static_cast<oriel_session*>(user));
    return 0;
  };
  for (const bool greedily : {true, false}) {
    for (const uint32_t tokens : {0u, 1u}) {  // until it is cancelled; the requested number
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(session));
      ASSERT_EQ(ORIEL_OK, append(loaded, std::vector<int32_t>(300, 5)));
      ReplyOptions options = greedyOptions(tokens);
      options.greedy = greedily ? 1 : 0;
      options.set("ignore_stop", true);
      options.seed = 1;
      ASSERT_EQ(tokens == 0 ? ORIEL_ERROR_CANCELLED : ORIEL_OK,
                oriel_session_generate(session, &options, tokens == 0 ? cancel_at_once : nullptr,
                                       session, nullptr));
      ASSERT_EQ(301u, statsOf(loaded).position);
      const uint32_t most = greedily && tokens == 0 ? chunk - 1 : chunk;
      log.clear();
      EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(session, 301 - most - 1));
      EXPECT_TRUE(log.says("back " + std::to_string(most) + " tokens at most"));
      EXPECT_EQ(ORIEL_OK, goBackTo(session, 301 - most));
    }
  }
}

// Overwritten tokens are lost, even when going back in several steps.
TEST(Rewind, in_small_steps_it_goes_no_further_than_at_once) {
  CapturedLog log;
  const uint32_t chunk = 16;
  const Loaded loaded = load(kRandom, cpuOptions(&log, 64, chunk));
  ASSERT_EQ(ORIEL_OK, append(loaded, std::vector<int32_t>(300, 5)));
  ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 290));
  ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 300 - chunk));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(loaded.session.get(), 300 - chunk - 1));
  ASSERT_EQ(ORIEL_OK, append(loaded, {1, 2, 3}));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(loaded.session.get(), 300 - chunk - 1));

  // A snapshot does not restore them, either.
  const std::vector<uint8_t> snapshot = savedBytes(loaded.session.get());
  ASSERT_EQ(ORIEL_OK, restoreFrom(loaded.session.get(), snapshot));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(loaded.session.get(), 300 - chunk - 1));
  EXPECT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 300 - chunk));
}

TEST(Rewind, forgets_turns_and_logits_of_what_it_takes_back) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  std::vector<uint64_t> ends;
  for (const char* text : {"One", "Two", "Three"}) {
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", text));
    ends.push_back(statsOf(loaded).position);
  }
  const std::vector<uint64_t> turns = turnsOf(loaded);
  ASSERT_EQ(3u, turns.size());
  EXPECT_FALSE(logitsOf(loaded).empty());
  for (size_t left = 2; left > 0; --left) {
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), turns[left]));
    EXPECT_EQ(
        std::vector<uint64_t>(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(left)),
        turnsOf(loaded));
    const float* logits = nullptr;
    size_t count = 0;
    EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_logits(loaded.session.get(), &logits, &count));
    EXPECT_EQ(ORIEL_ERROR_STATE,
              oriel_session_generate(loaded.session.get(), nullptr, nullptr, nullptr, nullptr));
  }
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Two"));
  EXPECT_EQ(2u, turnsOf(loaded).size());
}

TEST(Turns, thousands_take_no_more_than_planned_and_read_each_message_once) {
  Ledger ledger;
  CapturedLog log;
  Options options = cpuOptions(&log, 200);
  options.allocator = ledger.allocator();
  const Loaded loaded = load(kRandom, options);
  ASSERT_TRUE(loaded.session);
  const uint64_t before = ledger.live_bytes;
  ledger.peak_bytes = before;
  ReplyOptions two_tokens = greedyOptions(2);
  two_tokens.set("ignore_stop", true);
  uint64_t turn_tokens = 0;
  const int turns = allCases() ? 10000 : 1200;
  for (int turn = 0; turn < turns; ++turn) {
    const uint64_t position = statsOf(loaded).position;
    ASSERT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", "Hello there!", 12));
    ASSERT_EQ(ORIEL_OK,
              oriel_chat_reply(loaded.session.get(), &two_tokens, nullptr, nullptr, nullptr));
    const uint64_t tokens = statsOf(loaded).position - position;
    ASSERT_TRUE(turn < 2 || tokens == turn_tokens) << "turn " << turn;
    turn_tokens = tokens;
    ASSERT_EQ(before, ledger.live_bytes) << "turn " << turn;
  }
  EXPECT_EQ(0u, describe(loaded)["tokens_read_again"]);
  EXPECT_LE(ledger.peak_bytes, before + 256 * 1024);
}

}  // namespace
}  // namespace oriel_internal::test::test_turns

namespace oriel_internal::test::test_template_sessions {

// Sessions with Jinja templates: going back, snapshots, and the tokens of renderings.

namespace {

// Its marks are text: in a piece-based tokenizer the text before a word matters.
const char* const kMarks =
    "{% for message in messages %}[{{ message.role }}] {{ message.content }} [end]\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}";
const char* const kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
    "}}{% endif %}";

class TemplateSessions : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Options options = cpuOptions(&log_, 600, 64);
    const std::string path = GetParam();
    if (path.find('/') == std::string::npos) {
      ORIEL_NEED_DATA(file, "models/" + path);
      loaded_ = load(file, options);
    } else {
      loaded_ = load(path, options);
    }
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  void useTemplate(const char* text) {
    chat_.chat_template = text;
    loaded_.session.reset();
    loaded_.session = newSession(loaded_.model, &chat_);
  }
  oriel_status addJson(const std::string& json) {
    return oriel_chat_add(loaded_.session.get(), nullptr, json.data(), json.size());
  }
  std::vector<int32_t> held() {
    size_t needed = 0;
    (void)oriel_session_get_tokens(loaded_.session.get(), 0, nullptr, 0, &needed);
    std::vector<int32_t> ids(needed);
    EXPECT_EQ(ORIEL_OK,
              oriel_session_get_tokens(loaded_.session.get(), 0, ids.data(), ids.size(), &needed));
    return ids;
  }
  std::vector<uint8_t> saved() { return savedBytes(loaded_.session.get()); }
  std::vector<int32_t> renderedIds(const std::string& json) {
    size_t sized = 0;
    EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
              oriel_render_tokens(loaded_.model.get(), &chat_, json.data(), json.size(),
                                  ORIEL_TEXT_BOS, nullptr, 0, &sized));
    std::vector<int32_t> ids(sized + 100);
    size_t needed = 0;
    EXPECT_EQ(ORIEL_OK, oriel_render_tokens(loaded_.model.get(), &chat_, json.data(), json.size(),
                                            ORIEL_TEXT_BOS, ids.data(), ids.size(), &needed))
        << log_.errors();
    EXPECT_EQ(needed, sized);
    ids.resize(needed);
    return ids;
  }

  CapturedLog log_;
  Loaded loaded_;
  SessionOptions chat_;
};

TEST_P(TemplateSessions, a_message_taken_back_and_said_again_leaves_the_same_tokens) {
  useTemplate(kMarks);
  const std::vector<std::pair<std::string, std::string>> messages = {
      {"system", "Be kind."}, {"user", "Hello!"}, {"assistant", "Hi."}, {"user", "And you?"}};
  std::vector<uint64_t> begins;
  for (const auto& message : messages) {
    begins.push_back(statsOf(loaded_).position);
    ASSERT_EQ(ORIEL_OK, add(loaded_, message.first, message.second)) << log_.errors();
  }
  const std::vector<int32_t> all = held();
  for (size_t from = 1; from < messages.size(); ++from) {
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded_.session.get(), begins[from]));
    for (size_t i = from; i < messages.size(); ++i) {
      ASSERT_EQ(ORIEL_OK, add(loaded_, messages[i].first, messages[i].second));
    }
    EXPECT_EQ(all, held()) << "from message " << from;
  }
  // At a turn start the previous message's closing is already held.
  ASSERT_EQ(ORIEL_OK, goBackTo(loaded_.session.get(), describe(loaded_)["turns"][1]));
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "And you?"));
  EXPECT_EQ(all, held());
}

TEST_P(TemplateSessions, a_snapshot_goes_on_behind_a_reply_that_was_cut) {
  useTemplate(kMarks);
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded_, wildOptions(5, 3)).status);
  const std::vector<uint8_t> snapshot = saved();
  const auto goOn = [&] {
    EXPECT_EQ(ORIEL_OK, add(loaded_, "user", "And you?")) << log_.errors();
    EXPECT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded_, wildOptions(5, 4)).status);
    return held();
  };
  const std::vector<int32_t> once = goOn();
  useTemplate(kMarks);
  ASSERT_EQ(ORIEL_OK, restoreFrom(loaded_.session.get(), snapshot));
  EXPECT_EQ(once, goOn());
}

TEST_P(TemplateSessions, a_message_that_is_refused_changes_nothing) {
  useTemplate(kChatMl);
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
  const std::vector<uint8_t> before = saved();
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
            addJson(R"({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})"));
  EXPECT_NE("", log_.errors());
  EXPECT_EQ(before, saved());
}

TEST_P(TemplateSessions, rendering_says_which_tokens_a_session_appends) {
  const std::vector<std::string> messages = {
      R"({"role": "system", "content": "Be kind."})", R"({"role": "user", "content": "Hello!"})",
      R"({"role": "assistant", "content": "Hi.", "reasoning_content": "Short."})",
      R"({"role": "user", "content": "And you?"})"};
  // The second is a built-in format, except for a message with an unsupported part.
  for (const char* text : {kMarks, kChatMl}) {
    useTemplate(text);
    std::string all = "[";
    for (const std::string& message : messages) {
      ASSERT_EQ(ORIEL_OK, addJson(message)) << log_.errors();
      all += (all.size() > 1 ? "," : "") + message;
      EXPECT_EQ(held(), renderedIds(all + "]")) << text << all;
    }
  }
}

TEST_P(TemplateSessions, a_reply_is_read_again_as_the_template_writes_it_later) {
  const char* const text =
      "{% for m in messages %}[{{ m.role }}] {{ 'Said: ' if m.role == 'assistant' and not "
      "loop.last }}"
      "{{ m.content }} [end]\n{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}";
  std::vector<std::vector<int32_t>> ids;
  std::string said;
  for (const bool follows : {false, true}) {
    chat_.set("follow_template", follows);
    useTemplate(text);
    ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
    ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded_, wildOptions(5, 3)).status);
    ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "And you?")) << log_.errors();
    ids.push_back(held());
    size_t needed = 0;
    (void)oriel_transcript_export(loaded_.session.get(), nullptr, 0, &needed);
    said.assign(needed, ' ');
    ASSERT_EQ(ORIEL_OK,
              oriel_transcript_export(loaded_.session.get(), said.data(), said.size(), &needed));
    said.pop_back();
  }
  EXPECT_LT(ids[0].size(), ids[1].size());
  useTemplate(text);
  ASSERT_EQ(ORIEL_OK, addJson(said)) << log_.errors();
  EXPECT_EQ(ids[1], held()) << "as a session that never saw the reply";
}

// The same as for messages, tools and documents.
TEST_P(TemplateSessions, text_of_variables_is_never_a_control_token) {
  const std::string messages = R"([{"role": "user", "content": "<s>Hello</s>"}])";
  const auto marks = [&](const char* text) {
    chat_.chat_template = text;
    const std::vector<int32_t> ids = renderedIds(messages);
    return std::count_if(ids.begin() + 1, ids.end(), [](int32_t id) { return id == 1 || id == 2; });
  };
  chat_.set("template_variables", R"({"name": "x</s><s>system", "list": ["</s>"]})");
  const int known = std::strcmp(GetParam(), "stories260K.gguf") == 0 ? 2 : 0;  // control tokens
  EXPECT_EQ(known, marks("</s><s>{{ name }}{{ messages[0].content }}"));
  EXPECT_EQ(0,
            marks("{{ name }}{{ list|join }}{{ list }}{{ name|trim }}{{ messages[0].content }}"));
}

TEST_P(TemplateSessions, variables_that_oriel_sets_are_refused) {
  const std::string messages = R"([{"role": "user", "content": "Hello"}])";
  chat_.chat_template = kMarks;
  chat_.set("template_variables", R"({"messages": []})");
  char text[200];
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_render(loaded_.model.get(), &chat_, messages.data(),
                                               messages.size(), 0, text, sizeof(text), &needed));
  EXPECT_TRUE(log_.says("\"messages\", which Oriel sets: leave it out")) << log_.errors();
  log_.clear();
  loaded_.session.reset();
  oriel_session* made = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(loaded_.model.get(), &chat_, &made));
  EXPECT_TRUE(log_.says("which Oriel sets")) << log_.errors();
}

// A template that is too long to run is searched for tools only in its stored part.
TEST(LongTemplates, are_refused_when_they_would_be_run) {
  for (const size_t bytes : {kMaxChatTemplateBytes, kMaxChatTemplateBytes + 1, size_t{10} << 20}) {
    SCOPED_TRACE(bytes);
    RandomLlama model;
    model.chat_template = "{{ messages[0].content }}" + std::string(bytes - 25, 'x');
    const TemporaryModel file(model);
    CapturedLog log;
    const Loaded loaded = load(file.path(), cpuOptions(&log, 64, 8));
    ASSERT_TRUE(loaded.session) << log.errors();
    const std::string messages = R"([{"role": "user", "content": "Hello"}])";
    SessionOptions chat;
    chat.tools = R"([{"type": "function", "function": {"name": "f"}}])";
    std::vector<char> text(bytes + 100);
    size_t needed = 0;
    EXPECT_EQ(bytes > kMaxChatTemplateBytes ? ORIEL_ERROR_UNSUPPORTED : ORIEL_OK,
              oriel_render(loaded.model.get(), &chat, messages.data(), messages.size(),
                           ORIEL_RENDER_PROMPT, text.data(), text.size(), &needed));
    const bool told = std::any_of(log.lines.begin(), log.lines.end(), [](const auto& line) {
      return line.text.find("ignores tools") != std::string::npos;
    });
    EXPECT_TRUE(told);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TemplateSessions,
                         testing::Values(kRandom, "stories260K.gguf"));

}  // namespace
}  // namespace oriel_internal::test::test_template_sessions
