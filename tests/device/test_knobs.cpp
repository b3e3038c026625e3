// Reply options besides sampling: stop texts, biases, minimum lengths, log-probabilities.
#include <cmath>
#include <functional>
#include <limits>

#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_knobs {
namespace {

/// A token as reported to the app.
struct Told {
  int32_t id;
  std::string text;
  float logprob;
  std::vector<oriel_token_logprob> top;
};

struct Reply {
  std::vector<Told> events;
  oriel_generation result = {};

  std::string text() const {
    std::string all;
    for (const Told& event : events) {
      all += event.text;
    }
    return all;
  }
  std::vector<int32_t> ids() const {
    std::vector<int32_t> all;
    for (const Told& event : events) {
      all.push_back(event.id);
    }
    all.resize(std::min<size_t>(all.size(), result.tokens));
    return all;
  }
};

int note(const oriel_token_event* event, void* user) {
  static_cast<Reply*>(user)->events.push_back({event->id,
                                               std::string(event->text, event->text_bytes),
                                               event->logprob,
                                               {event->top, event->top + event->top_count}});
  return 0;
}

class Knobs : public WatchedSession {
 protected:
  /// From the same prompt each time.
  Reply reply(const ReplyOptions& sampling) {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(model_->session()));
    const std::vector<int32_t> prompt = {11, 42, 7, 99, 3};
    EXPECT_EQ(ORIEL_OK, oriel_session_append(model_->session(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    return more(sampling);
  }
  Reply more(const ReplyOptions& sampling) {
    Reply out;
    out.result.struct_size = sizeof(out.result);
    model_->executor->forgetCounts();
    EXPECT_EQ(ORIEL_OK,
              oriel_session_generate(model_->session(), &sampling, note, &out, &out.result))
        << log_.errors();
    return out;
  }
  uint64_t position() { return statsOf(model_->loaded).position; }
  /// Sampled as in WatchedSession, and greedy.
  static std::vector<ReplyOptions> bothWays() {
    std::vector<ReplyOptions> ways = {options(), options()};
    ways[1].greedy = 1;
    return ways;
  }
};

// For a stop text at any place of a reply: the reply ends before it, and the session equals a session that stopped
// at that token.
RUNS_ON(kCpu);
TEST_F(Knobs, a_reply_ends_in_front_of_a_stop_text) {
  for (ReplyOptions sampling : bothWays()) {
    const Reply all = reply(sampling);
    const std::string text = all.text();
    ASSERT_EQ(kTokens, all.result.tokens);
    size_t cut_tokens = 0;
    for (size_t at = 0; at + 4 < text.size(); at += 5) {
      const std::string stop = text.substr(at, 1 + at % 4);
      if (!isText(stop)) {
        continue;
      }
      const char* const stops[] = {"certainly not in the text", stop.c_str()};
      sampling.stop = stops;
      sampling.stop_count = 2;
      sampling.max_tokens = kTokens;
      const Reply cut = reply(sampling);
      EXPECT_EQ(ORIEL_STOP_TEXT, cut.result.stop_reason);
      EXPECT_EQ(text.substr(0, text.find(stop)), cut.text()) << stop;
      const std::vector<int32_t> ids = cut.ids();
      ASSERT_EQ(cut.result.tokens, ids.size());
      EXPECT_EQ(cut.events.size(), ids.size()) << "an event for each token, and no other";
      EXPECT_TRUE(std::equal(ids.begin(), ids.end(), all.ids().begin()));
      EXPECT_EQ(5 + ids.size(), position()) << "what ended it is part of the session";
      const std::vector<float> logits = logitsOf(model_->loaded);
      ReplyOptions counted = sampling;
      counted.stop_count = 0;
      counted.max_tokens = cut.result.tokens;
      EXPECT_EQ(ids, reply(counted).ids());
      EXPECT_EQ(logits, logitsOf(model_->loaded));
      cut_tokens += ids.size();
    }
    EXPECT_GT(cut_tokens, 40u);
  }
}

RUNS_ON(kCpu);
TEST_F(Knobs, what_was_held_back_comes_when_the_reply_ends_otherwise) {
  const Reply all = reply(options());
  const std::string text = all.text();
  size_t held = 0;
  for (uint32_t tokens = 1; tokens < kTokens; ++tokens) {
    ReplyOptions sampling = options();
    sampling.max_tokens = tokens;
    const std::string part = reply(sampling).text();
    if (part.size() < 3 || !isText(part.substr(part.size() - 2))) {
      continue;
    }
    const std::string stop = part.substr(part.size() - 2) + "\x01";
    const char* const stops[] = {stop.c_str()};
    sampling.stop = stops;
    sampling.stop_count = 1;
    const Reply again = reply(sampling);
    EXPECT_EQ(part, again.text());
    EXPECT_EQ(ORIEL_STOP_LENGTH, again.result.stop_reason);
    held += again.events.size() - again.result.tokens;
  }
  EXPECT_GT(held, 10u);
}

RUNS_ON(kCpu);
TEST_F(Knobs, neither_stop_tokens_nor_stop_texts_end_a_reply_before_its_least_length) {
  ReplyOptions sampling = options();
  const Reply all = reply(sampling);
  const std::string first = all.events[0].text + all.events[1].text;
  ASSERT_TRUE(isText(first) && !first.empty());
  const char* const stops[] = {first.c_str()};
  sampling.stop = stops;
  sampling.stop_count = 1;
  EXPECT_LE(reply(sampling).result.tokens, 2u);
  sampling.set("min_tokens", 3);
  EXPECT_GE(reply(sampling).result.tokens, 3u);

  // A stop token that would always be the best.
  const int32_t eos_id = describe(model_->loaded.model)["eos_id"];
  for (ReplyOptions way : bothWays()) {
    way.set("ignore_stop", false);
    addBiases(&way, {{eos_id, 1000}});
    EXPECT_EQ(0u, reply(way).result.tokens);
    for (const uint32_t least : {1u, 2u, 17u}) {
      way.set("min_tokens", least);
      const Reply late = reply(way);
      EXPECT_EQ(least, late.result.tokens);
      EXPECT_EQ(ORIEL_STOP_TOKEN, late.result.stop_reason);
      const std::vector<int32_t> ids = late.ids();
      EXPECT_EQ(0, std::count(ids.begin(), ids.end(), eos_id));
    }
    way.set("ignore_stop", true);  // treated like any token
    EXPECT_EQ(std::vector<int32_t>(kTokens, eos_id), reply(way).ids());
  }
}

RUNS_ON(kCpu);
TEST_F(Knobs, log_probabilities_are_of_the_models_own_distribution) {
  const Reply plain = reply(options());
  ReplyOptions sampling = options();
  addBiases(&sampling, {{7, -INFINITY}});
  sampling.set("top_logprobs", 20);
  const Reply told = reply(sampling);
  EXPECT_EQ(kTokens, model_->executor->logits_asked);

  // The same tokens as a prompt, with logits after each.
  std::vector<int32_t> ids = {11, 42, 7, 99, 3};
  const std::vector<int32_t> said = told.ids();
  ids.insert(ids.end(), said.begin(), said.end());
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(model_->session()));
  const std::vector<std::vector<float>> rows = evaluate(model_->loaded, ids);
  for (size_t t = 0; t < said.size(); ++t) {
    const std::vector<float>& logits = rows[t + 4];
    double most = -INFINITY;
    double total = 0;
    for (const float logit : logits) {
      most = std::max<double>(most, logit);
    }
    for (const float logit : logits) {
      total += std::exp(logit - most);
    }
    const auto want = [&](int32_t id) { return logits[id] - most - std::log(total); };
    EXPECT_NEAR(want(said[t]), told.events[t].logprob, 2e-3) << "chunks round in another order";
    ASSERT_EQ(20u, told.events[t].top.size());
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_NEAR(want(told.events[t].top[i].id), told.events[t].top[i].logprob, 2e-3);
      EXPECT_TRUE(i == 0 || told.events[t].top[i - 1].logprob >= told.events[t].top[i].logprob);
    }
    EXPECT_NEAR(-std::log(total), told.events[t].top[0].logprob, 2e-3) << "the best";
  }
  ReplyOptions unbiased = options();
  unbiased.set("top_logprobs", 20);
  EXPECT_EQ(plain.ids(), reply(unbiased).ids()) << "asking changes nothing";
  EXPECT_EQ(0.0f, plain.events[0].logprob);
  EXPECT_TRUE(plain.events[0].top.empty());
  unbiased.set("top_logprobs", 0);
  EXPECT_NE(0.0f, reply(unbiased).events[0].logprob) << "the token's own";
  EXPECT_TRUE(reply(unbiased).events[0].top.empty());
}

RUNS_ON(kCpu);
TEST_F(Knobs, biases_and_penalties_read_the_best_tokens_only_where_they_are_enough) {
  const std::vector<int32_t> said = reply(options()).ids();
  ReplyOptions sampling = options();
  sampling.set("presence_penalty", 0.5f);
  sampling.set("frequency_penalty", 0.25f);
  sampling.set("repeat_window", 256);
  addBiases(&sampling, {{said[0], -INFINITY}});
  for (const uint32_t greedy : {0u, 1u}) {
    sampling.greedy = greedy;
    const std::vector<int32_t> ids = reply(sampling).ids();
    EXPECT_EQ(0u, model_->executor->logits_asked);
    EXPECT_EQ(0, std::count(ids.begin(), ids.end(), said[0]));
    model_->executor->hidden = true;
    EXPECT_EQ(ids, reply(sampling).ids());
    EXPECT_EQ(kTokens, model_->executor->logits_asked);
    model_->executor->hidden = false;
  }
}

RUNS_ON(kCpu);
TEST_F(Knobs, only_replies_that_take_the_best_whatever_it_is_go_ahead) {
  model_->executor->ahead = false;
  ReplyOptions sampling = options();
  sampling.greedy = 1;
  const auto askedAhead = [&] {
    (void)reply(sampling);
    return model_->executor->asked_ahead;
  };
  EXPECT_EQ(0u, askedAhead());
  if (!onVulkan()) {
    return;
  }
  model_->executor->ahead = true;
  EXPECT_EQ(kTokens - 1, askedAhead());
  {
    ReplyOptions told = sampling;
    told.set("top_logprobs", 0);
    (void)reply(told);
    EXPECT_EQ(0u, model_->executor->asked_ahead) << "its logits are read";
  }
  sampling.set("presence_penalty", 1);
  EXPECT_EQ(0u, askedAhead());
  sampling.set("presence_penalty", 0);
  sampling.set("ignore_stop", false);
  sampling.set("min_tokens", 10);
  EXPECT_EQ(askedAhead() + 10, reply(sampling).result.tokens) << "while stop tokens are held back";
}

RUNS_ON(kCpu);
TEST_F(Knobs, all_tokens_forbidden_is_an_error_that_says_so) {
  const int32_t n_vocab = describe(model_->loaded.model)["n_vocab"];
  ASSERT_LE(n_vocab, 1024);
  ReplyOptions sampling = options();
  for (int32_t id = 0; id + 1 < n_vocab; ++id) {
    addBiases(&sampling, {{id, -INFINITY}});
  }
  EXPECT_EQ(std::vector<int32_t>(kTokens, n_vocab - 1), reply(sampling).ids());
  addBiases(&sampling, {{n_vocab - 1, -INFINITY}});
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_generate(model_->session(), &sampling, nullptr, nullptr, nullptr));
  EXPECT_NE(std::string::npos, log_.errors().find("all are forbidden")) << log_.errors();
  EXPECT_EQ(kTokens, reply(options()).result.tokens) << "the session goes on";
}

RUNS_ON(kCpu);
TEST_F(Knobs, a_stop_text_ends_the_turn_of_a_chat) {
  CapturedLog log;
  const Loaded loaded = test::load(kTrained, sessionOptions(&log));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Tell me a story."));
  ReplyOptions sampling = greedyOptions(40);
  const Heard all = listen(oriel_chat_reply, loaded, sampling);
  ASSERT_GT(all.text.size(), 20u);
  const std::string stop = all.text.substr(10, 5);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Tell me a story."));
  const char* const stops[] = {stop.c_str()};
  sampling.stop = stops;
  sampling.stop_count = 1;
  const Heard cut = listen(oriel_chat_reply, loaded, sampling);
  EXPECT_EQ(ORIEL_STOP_TEXT, cut.result.stop_reason);
  EXPECT_EQ(all.text.substr(0, all.text.find(stop)), cut.text);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "And then?"));
  EXPECT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(5)).status);
  EXPECT_EQ("", log.errors());
}

// The repetition window is longer than the former 64, and a snapshot stores all of it.
RUNS_ON(kCpu);
TEST_F(Knobs, a_snapshot_remembers_as_many_tokens_as_penalties_look_back) {
  ReplyOptions sampling = options();
  sampling.set("presence_penalty", 4);
  sampling.set("repeat_window", 256);
  sampling.max_tokens = 200;
  (void)reply(sampling);
  const std::vector<uint8_t> snapshot = save();
  sampling.greedy = 1;
  const std::vector<int32_t> expected = more(sampling).ids();
  ASSERT_EQ(ORIEL_OK, restoreFrom(model_->session(), snapshot));
  EXPECT_EQ(expected, more(sampling).ids());
  ASSERT_EQ(ORIEL_OK, restoreFrom(model_->session(), snapshot));
  sampling.set("repeat_window", 64);
  EXPECT_NE(expected, more(sampling).ids());
}

RUNS_ON(kCpu);
TEST_F(Knobs, every_option_out_of_range_is_refused_with_a_line_of_its_own) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::string long_stop(257, 'x');
  const char* const good[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                              "j", "k", "l", "m", "n", "o", "p", "q"};
  const char* const empty[] = {"a", ""};
  const char* const null[] = {nullptr};
  const char* const too_long[] = {long_stop.c_str()};
  const char* const broken[] = {"ab\xFF"};
  const std::vector<Bias> many(1025, {1, 1});
  using Options = ReplyOptions;
  const auto stopped = [](Options* o, const char* const* stop, size_t count) {
    o->stop = stop;
    o->stop_count = count;
  };
  const struct {
    const char* says;
    std::function<void(Options*)> set;
    oriel_status status;
  } cases[] = {
      {"\"presence_penalty\" cannot be \"10.5\"",
       [](Options* o) { o->set("presence_penalty", 10.5f); }, ORIEL_OK},
      {"\"presence_penalty\"", [&](Options* o) { o->set("presence_penalty", nan); }, ORIEL_OK},
      {"\"frequency_penalty\" cannot be \"-11\"",
       [](Options* o) { o->set("frequency_penalty", -11); }, ORIEL_OK},
      {"\"frequency_penalty\"", [&](Options* o) { o->set("frequency_penalty", inf); }, ORIEL_OK},
      {"\"repeat_window\" cannot be \"257\"", [](Options* o) { o->set("repeat_window", 257); },
       ORIEL_OK},
      {"\"top_logprobs\" cannot be \"21\"", [](Options* o) { o->set("top_logprobs", 21); },
       ORIEL_OK},
      {"at least 49 tokens are more than at most 48", [](Options* o) { o->set("min_tokens", 49); },
       ORIEL_OK},
      {"17 stop texts", [&](Options* o) { stopped(o, good, 17); }, ORIEL_OK},
      {"a count of stop texts without the texts", [&](Options* o) { stopped(o, nullptr, 1); },
       ORIEL_OK},
      {"stop text 2 has no bytes", [&](Options* o) { stopped(o, empty, 2); }, ORIEL_OK},
      {"stop text 1 has no bytes", [&](Options* o) { stopped(o, null, 1); }, ORIEL_OK},
      {"stop text 1 has too many bytes", [&](Options* o) { stopped(o, too_long, 1); }, ORIEL_OK},
      {"UTF-8 at byte 2", [&](Options* o) { stopped(o, broken, 1); }, ORIEL_ERROR_TEXT},
      {"\"logit_bias\"", [&](Options* o) { addBiases(o, many); }, ORIEL_OK},
      {"token 100000 is outside", [](Options* o) { o->set("logit_bias", "100000:1"); }, ORIEL_OK},
      {"\"logit_bias\" cannot be \"-1:1\"", [](Options* o) { o->set("logit_bias", "-1:1"); },
       ORIEL_OK},
      {"\"logit_bias\" cannot be \"1:nan\"", [](Options* o) { o->set("logit_bias", "1:nan"); },
       ORIEL_OK},
      {"\"logit_bias\" cannot be \"1:inf\"", [](Options* o) { o->set("logit_bias", "1:inf"); },
       ORIEL_OK},
  };
  (void)reply(options());
  const uint64_t before = position();
  for (const auto& c : cases) {
    log_.lines.clear();
    Options sampling = options();
    c.set(&sampling);
    EXPECT_EQ(c.status == ORIEL_OK ? ORIEL_ERROR_ARGUMENT : c.status,
              oriel_session_generate(model_->session(), &sampling, nullptr, nullptr, nullptr))
        << c.says;
    EXPECT_EQ(1u, errorLines(log_));
    EXPECT_NE(std::string::npos, log_.errors().find(c.says)) << log_.errors();
  }
  EXPECT_EQ(before, position());
  ReplyOptions sampling = options();
  stopped(&sampling, good, 16);
  addBiases(&sampling, {many.begin(), many.end() - 1});
  sampling.set("presence_penalty", -10);
  sampling.set("frequency_penalty", 10);
  sampling.set("repeat_window", 256);
  sampling.set("min_tokens", sampling.max_tokens);
  sampling.set("top_logprobs", 20);
  EXPECT_EQ(kTokens, reply(sampling).result.tokens) << "the most that may be asked for";
}

}  // namespace
}  // namespace oriel_internal::test::test_knobs
