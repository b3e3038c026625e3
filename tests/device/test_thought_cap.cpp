// A cap on thought tokens: in every form of a thought, opened by the template or the model.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/sessions.h"

namespace oriel_internal::test::test_thought_cap {
namespace {

/// A character that spans the cap may be completed.
constexpr size_t kMostOver = 3;

struct Form {
  const char* name;
  const char* opening;
  const char* closing;
  const char* speaks;  ///< text that gives a template this form
};
const Form kForms[] = {
    {"think", "<think>\n", "</think>", ""},
    {"thinking", "<thinking>", "</thinking>", "<thinking> <tool_call>"},
    {"seed", "<seed:think>", "</seed:think>", "<seed:think>"},
    {"minimax", "<mm:think>", "</mm:think>", "<mm:think>"},
    {"mistral", "[THINK]", "[/THINK]", "[TOOL_CALLS]"},
    {"gemma", "<|channel>thought", "<channel|>", "<|channel>"},
    {"cohere", "<|START_THINKING|>", "<|END_THINKING|>", "<|START_THINKING|>"},
    {"apertus", "<|inner_prefix|>", "<|inner_suffix|>", "<|inner_prefix|>"},
    {"solar", "<|think|>", "<|end|>", "<|tool_call:begin|>"},
    {"harmony", "<|channel|>analysis<|message|>", "<|end|>", "<|channel|>"},
    {"kimi", "<|open|>think<|sep|>", "<|close|>think<|sep|>", "<|open|>"},
    {"hunyuan", "<think:opensource>", "</think:opensource>", "\xEF\xBD\x9Chy_"},
    {"final_response", "Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]",
     "[BEGIN FINAL RESPONSE] <tool_calls>"},
    {"atem", " to=self<|message|>", "<|eom|>", "<atem:function_calls>"},
};

struct Told {
  Heard heard;
  std::string thought;
  std::string answer;
  bool answered_first = false;
};

int notePart(const oriel_part* part, void* user) {
  Told& told = *static_cast<Told*>(user);
  const bool thinks = part->kind == ORIEL_PART_THOUGHT;
  told.answered_first = told.answered_first || (thinks && !told.answer.empty());
  (thinks ? told.thought : told.answer).append(part->text, part->text_bytes);
  return 0;
}

class ThoughtCaps : public testing::Test {
 protected:
  void loadWith(Options options, const char* path = kRandom) {
    loaded_ = load(path, options);
    ASSERT_TRUE(loaded_.model) << log_.errors();
  }
  void useTemplate(const Form& form, bool opens) {
    const auto quoted = [](const char* text) {
      return "{{ " + nlohmann::json(text).dump() + " }}";
    };
    template_ = std::string("{# ") + form.speaks + " #}" +
                "{% for message in messages %}[{{ message.role }}] {{ message.content }} [end]\n"
                "{% endfor %}{% if add_generation_prompt %}[assistant] " +
                (opens ? quoted(form.opening) : std::string()) + "{% endif %}";
    SessionOptions chat;
    chat.chat_template = template_.c_str();
    loaded_.session.reset();
    loaded_.session = newSession(loaded_.model, &chat);
  }
  Told chat(ReplyOptions options) {
    Told told;
    options.on_part = notePart;
    options.part_user = &told;
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    EXPECT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!")) << log_.errors();
    told.heard = listen(oriel_chat_reply, loaded_, options);
    EXPECT_EQ(ORIEL_OK, told.heard.status) << log_.errors();
    return told;
  }
  static ReplyOptions capped(uint32_t cap, uint64_t seed = 5, uint32_t most = 40) {
    ReplyOptions options = wildOptions(most, seed);
    options.set("ignore_stop", true).set("max_thought_tokens", cap);
    return options;
  }
  std::vector<int32_t> idsOf(const std::string& text) {
    return tokens(loaded_, text, ORIEL_TEXT_SPECIAL);
  }
  /// Tokens of the reply before this text; -1: not found.
  int64_t tokensBefore(const std::vector<int32_t>& ids, const std::string& text) {
    std::string all;
    std::vector<size_t> ends;
    for (size_t i = 0; i < ids.size(); ++i) {
      char piece[256];
      size_t needed = 0;
      EXPECT_EQ(ORIEL_OK, oriel_detokenize(loaded_.model.get(), ids.data() + i, 1,
                                           ORIEL_TEXT_SPECIAL, piece, sizeof(piece), &needed));
      all.append(piece, needed);
      ends.push_back(all.size());
    }
    const size_t at = all.find(text);
    return at == std::string::npos
               ? -1
               : std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= at; });
  }

  CapturedLog log_;
  Loaded loaded_;
  std::string template_;
};

TEST_F(ThoughtCaps, end_a_thought_that_the_prompt_opened_in_every_form) {
  loadWith(sessionOptions(&log_));
  for (const Form& form : kForms) {
    useTemplate(form, true);
    for (const uint32_t cap : {0u, 1u, 6u}) {
      const Told told = chat(capped(cap));
      const int64_t before = tokensBefore(told.heard.ids, form.closing);
      EXPECT_GE(before, cap) << form.name;
      EXPECT_LE(before, cap + kMostOver) << form.name;
      EXPECT_EQ(40u, told.heard.result.tokens);
      EXPECT_FALSE(told.answered_first) << form.name;
      EXPECT_FALSE(told.answer.empty()) << form.name;
      EXPECT_EQ(std::string::npos, told.answer.find(form.closing)) << form.name;
      EXPECT_TRUE(cap != 0 || told.thought.empty()) << form.name << told.thought;
    }
  }
}

TEST_F(ThoughtCaps, end_a_thought_that_the_model_opens) {
  loadWith(sessionOptions(&log_));
  for (const Form& form : kForms) {
    useTemplate(form, false);
    const std::vector<int32_t> opening = idsOf(form.opening);
    struct Opens {
      const std::vector<int32_t>& ids;
    } opens = {opening};
    for (const uint32_t cap : {0u, 4u}) {
      ReplyOptions options = capped(cap, 5, 60);
      options.logits_user = &opens;
      options.on_logits = [](const oriel_step_logits* step, void* user) {
        const std::vector<int32_t>& ids = static_cast<const Opens*>(user)->ids;
        if (step->tokens < ids.size()) {
          step->logits[ids[step->tokens]] = INFINITY;
        }
        return 0;
      };
      const Told told = chat(options);
      const int64_t before = tokensBefore(told.heard.ids, form.closing);
      EXPECT_GE(before, static_cast<int64_t>(cap)) << form.name;
      EXPECT_LE(before, static_cast<int64_t>(opening.size() + cap + kMostOver)) << form.name;
      EXPECT_FALSE(told.answer.empty()) << form.name;
    }
  }
}

TEST_F(ThoughtCaps, leave_the_rest_of_a_mark_to_be_added) {
  loadWith(sessionOptions(&log_));
  useTemplate(kForms[0], true);
  const std::vector<int32_t> begun = idsOf("x</thi");
  ReplyOptions options = capped(static_cast<uint32_t>(begun.size()));
  struct Says {
    const std::vector<int32_t>& ids;
  } says = {begun};
  options.logits_user = &says;
  options.on_logits = [](const oriel_step_logits* step, void* user) {
    const std::vector<int32_t>& ids = static_cast<const Says*>(user)->ids;
    if (step->tokens < ids.size()) {
      step->logits[ids[step->tokens]] = INFINITY;
    }
    return 0;
  };
  const Told told = chat(options);
  EXPECT_EQ("x", told.thought);
  EXPECT_FALSE(told.answer.empty());
}

TEST_F(ThoughtCaps, that_are_not_reached_change_nothing) {
  loadWith(sessionOptions(&log_));
  useTemplate(kForms[0], true);
  for (const bool greedy : {false, true}) {
    ReplyOptions free = capped(0);
    free.set("max_thought_tokens", nullptr);
    free.greedy = greedy ? 1 : 0;
    ReplyOptions high = free;
    high.set("max_thought_tokens", 1000);
    EXPECT_EQ(chat(free).heard.ids, chat(high).heard.ids);
  }
  useTemplate(kForms[0], false);
  ReplyOptions free = capped(0);
  const std::vector<int32_t> none = chat(free).heard.ids;
  free.set("max_thought_tokens", nullptr);
  EXPECT_EQ(chat(free).heard.ids, none) << "there is no thought";
}

TEST_F(ThoughtCaps, give_the_same_tokens_with_drafts_ahead_and_without_parts) {
  std::vector<std::vector<int32_t>> all;
  for (const uint32_t drafts : {0u, 4u}) {
    Options options = sessionOptions(&log_);
    options.set("speculate", drafts);
    loadWith(options);
    useTemplate(kForms[0], true);
    ReplyOptions how = capped(9);
    how.greedy = 1;
    how.set("draft", "always");
    all.push_back(chat(how).heard.ids);
    how.set("top_logprobs", 2);
    all.push_back(chat(how).heard.ids);
    how.set("top_logprobs", nullptr);
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
    all.push_back(listen(oriel_chat_reply, loaded_, how).ids);
    EXPECT_LE(9, tokensBefore(all.back(), "</think>"));
  }
  for (const std::vector<int32_t>& ids : all) {
    EXPECT_EQ(all[0], ids);
  }
}

TEST_F(ThoughtCaps, come_before_a_schema_and_a_limit_cuts_them) {
  Options options = sessionOptions(&log_);
  options.set("constraints", true);
  loadWith(options);
  const char* const schema = R"({"type": "array", "items": {"enum": [1, 2]}, "maxItems": 3})";
  for (const bool opens : {true, false}) {
    useTemplate(kForms[0], opens);
    for (const uint32_t cap : {0u, 7u}) {
      ReplyOptions how = capped(cap, 8, 100);
      how.schema = schema;
      how.set("ignore_stop", nullptr);
      const Told told = chat(how);
      EXPECT_TRUE(nlohmann::json::parse(told.answer, nullptr, false).is_array()) << told.answer;
      EXPECT_TRUE(cap != 0 || told.thought.empty()) << told.thought;
    }
  }
  useTemplate(kForms[0], true);
  const Told cut = chat(capped(3, 5, 4));
  EXPECT_EQ(4u, cut.heard.result.tokens);
  EXPECT_EQ(ORIEL_STOP_LENGTH, cut.heard.result.stop_reason);
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Go on.")) << log_.errors();
}

TEST_F(ThoughtCaps, of_several_sessions_are_their_own) {
  Options options = sessionOptions(&log_);
  options.sessions = 2;
  loadWith(options);
  useTemplate(kForms[0], true);
  SessionOptions chat_options;
  chat_options.chat_template = template_.c_str();
  oriel_session* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded_.model.get(), &chat_options, &made));
  const std::unique_ptr<oriel_session, void (*)(oriel_session*)> other(made, oriel_session_destroy);
  const ReplyOptions hows[2] = {capped(5, 3, 30), capped(11, 4, 30)};
  const std::vector<int32_t> alone[2] = {chat(hows[0]).heard.ids, chat(hows[1]).heard.ids};
  Heard heard[2];
  oriel_reply replies[2] = {};
  for (int i = 0; i < 2; ++i) {
    replies[i].struct_size = sizeof(oriel_reply);
    replies[i].session = i == 0 ? loaded_.session.get() : other.get();
    replies[i].options = &hows[i];
    replies[i].on_token = hear;
    replies[i].user = &heard[i];
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(replies[i].session));
    ASSERT_EQ(ORIEL_OK, oriel_chat_add(replies[i].session, "user", "Hello!", 6));
  }
  ASSERT_EQ(ORIEL_OK, oriel_reply_many(replies, 2)) << log_.errors();
  for (int i = 0; i < 2; ++i) {
    heard[i].ids.resize(std::min(heard[i].ids.size(), alone[i].size()));
    EXPECT_EQ(alone[i], heard[i].ids);
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_thought_cap
