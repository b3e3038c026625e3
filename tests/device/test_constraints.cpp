// Replies constrained by a schema or a grammar, on every device.
#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "device/count_mallocs.h"
#include "support/allocators.h"
#include "support/files.h"
#include "support/random_llama.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_constraints {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

using Json = nlohmann::json;

const char* const kSchema =
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "role": {"enum": ["admin", "user"]}}, "required": ["name", "age", "role"],
        "additionalProperties": false})";

struct Reply {
  std::string text;
  oriel_generation result = {};
  oriel_status status = ORIEL_OK;
  const MallocCount* mallocs = nullptr;
  uint64_t first_calls = 0;
  uint64_t last_calls = 0;
};

int note(const oriel_token_event* event, void* user) {
  Reply& reply = *static_cast<Reply*>(user);
  if (reply.mallocs != nullptr) {
    reply.last_calls = reply.mallocs->calls();
    reply.first_calls = reply.first_calls == 0 ? reply.last_calls + 1 : reply.first_calls;
    return 0;
  }
  reply.text.append(event->text, event->text_bytes);
  return 0;
}

class Constraints : public testing::Test {
 protected:
  void loadWith(const char* path, Options options) {
    options.set("constraints", true);
    loaded_ = test::load(path, options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  ReplyOptions wild(uint64_t seed, uint32_t tokens = 200) {
    ReplyOptions options;
    options.temperature = 1.5f;
    options.set("top_k", 0);
    options.set("top_p", 1);
    options.set("min_p", 0);
    options.seed = seed;
    options.max_tokens = tokens;
    return options;
  }
  Reply generate(const ReplyOptions& options, const std::string& prompt = "So: ") {
    Reply reply;
    reply.result.struct_size = sizeof(reply.result);
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    EXPECT_EQ(ORIEL_OK, oriel_session_append_text(loaded_.session.get(), prompt.data(),
                                                  prompt.size(), ORIEL_TEXT_BOS));
    reply.status =
        oriel_session_generate(loaded_.session.get(), &options, note, &reply, &reply.result);
    return reply;
  }

  CapturedLog log_;
  Loaded loaded_;
};

bool isValid(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_object() && value.size() == 3 && value.contains("name") &&
         value["name"].is_string() && value.contains("age") && value["age"].is_number_integer() &&
         value["age"] >= 0 && value["age"] <= 150 && value.contains("role") &&
         (value["role"] == "admin" || value["role"] == "user");
}

TEST_F(Constraints, random_weights_write_what_the_schema_asks_for) {
  loadWith(kRandom, sessionOptions(&log_));
  int whole = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    ReplyOptions options = wild(seed);
    options.greedy = seed == 1 ? 1 : 0;
    if (seed % 3 == 0) {
      options.set("repeat_penalty", 1.3f);
    }
    options.schema = kSchema;
    const Reply reply = generate(options);
    ASSERT_EQ(ORIEL_OK, reply.status) << log_.errors();
    if (reply.result.stop_reason == ORIEL_STOP_TOKEN) {
      EXPECT_TRUE(isValid(reply.text)) << reply.text;
      ++whole;
    } else {
      EXPECT_EQ(ORIEL_STOP_LENGTH, reply.result.stop_reason);
      EXPECT_EQ(200u, reply.result.tokens);
    }
  }
  EXPECT_GE(whole, 10);
}

TEST_F(Constraints, the_same_seed_writes_the_same_and_a_free_reply_is_free_again) {
  loadWith(kRandom, sessionOptions(&log_));
  const ReplyOptions free = wild(5, 60);
  const std::string free_text = generate(free).text;
  ReplyOptions options = free;
  const char* const grammar = "root ::= [a-z ]{10,20} \"!\"";
  options.set("grammar", grammar);
  const Reply held = generate(options);
  EXPECT_EQ('!', held.text.back());
  EXPECT_EQ(std::string::npos, held.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz !"));
  EXPECT_EQ(held.text, generate(options).text);
  EXPECT_EQ(free_text, generate(free).text);
}

TEST_F(Constraints, a_trigger_lets_it_take_hold) {
  loadWith(kRandom, sessionOptions(&log_));
  ReplyOptions options = wild(9, 150);
  options.set("ignore_stop", true);
  const std::string free_text = generate(options).text;
  // A letter that is certain to come.
  const size_t letter = free_text.find_first_of("abcdefghijklmnopqrstuvwxyz", free_text.size() / 4);
  ASSERT_LT(letter, free_text.size() / 2);
  const std::string trigger(1, free_text[letter]);
  const char* const grammar = "root ::= \"[\" [0-9]{3} \"]\"";
  options.set("grammar", grammar);
  options.set("trigger", trigger);
  const Reply reply = generate(options);
  ASSERT_EQ(ORIEL_OK, reply.status) << log_.errors();
  const size_t at = reply.text.find(trigger);
  ASSERT_LT(at + 6, reply.text.size());
  EXPECT_EQ('[', reply.text[at + 1]);
  EXPECT_EQ(']', reply.text[at + 5]);
  EXPECT_EQ(150u, reply.result.tokens);
}

TEST_F(Constraints, a_chat_reply_is_held_to_it) {
  loadWith(kTrained, sessionOptions(&log_));
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Tell me about a cat."));
  ReplyOptions options = wild(3, 100);
  options.schema = kSchema;
  Reply reply;
  reply.result.struct_size = sizeof(reply.result);
  ASSERT_EQ(ORIEL_OK,
            oriel_chat_reply(loaded_.session.get(), &options, note, &reply, &reply.result))
      << log_.errors();
  EXPECT_EQ(ORIEL_STOP_TOKEN, reply.result.stop_reason);
  EXPECT_TRUE(isValid(reply.text)) << reply.text;
}

// Comparing all pairs of branches is the longest part of such a call.
TEST_F(Constraints, what_takes_long_to_work_out_can_be_cancelled) {
  std::string schema = R"({"oneOf": [)";
  for (uint32_t i = 0; i < 250; ++i) {
    schema += i == 0 ? "" : ",";
    schema += R"({"type": "object", "properties": {"k": {"type": "string", "pattern": "^(a|b)*)" +
              std::to_string(i) + R"($"}}, "required": ["k"]})";
  }
  schema += "]}";
  loadWith(kTrained, cpuOptions(&log_));
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello."));
  const uint64_t position = statsOf(loaded_).position;
  ReplyOptions options = wild(1, 4);
  options.schema = schema.c_str();
  oriel_generation result = ORIEL_INIT(oriel_generation);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, cancelledBy(loaded_.session.get(), [&] {
              return oriel_chat_reply(loaded_.session.get(), &options, nullptr, nullptr, &result);
            }));
  EXPECT_EQ(ORIEL_STOP_CANCELLED, result.stop_reason);
  EXPECT_EQ(0u, result.tokens);
  EXPECT_EQ(position, statsOf(loaded_).position);
  EXPECT_EQ(ORIEL_OK, oriel_chat_reply(loaded_.session.get(), &options, nullptr, nullptr, &result))
      << log_.errors();
}

TEST_F(Constraints, the_plan_counts_what_they_take) {
  Ledger ledger;
  Options options = sessionOptions(&log_);
  options.device = "cpu";
  options.allocator = ledger.allocator();
  const FullPlan without = planOf(test::load(kRandom, options));
  EXPECT_EQ(0u, without.count("constraint_bytes"));
  loadWith(kRandom, options);
  const FullPlan plan = planOf(loaded_);
  EXPECT_GT(plan.count("constraint_bytes"), 1u << 20);
  EXPECT_EQ(without.host_bytes + plan.count("constraint_bytes"), plan.host_bytes);
  EXPECT_EQ(plan.host_bytes, statsOf(loaded_).host_bytes);
  EXPECT_EQ(plan.total_bytes, ledger.live_bytes);
  loaded_.session.reset();
  loaded_.model.reset();
}

TEST_F(Constraints, nothing_is_allocated_from_one_token_to_the_next) {
  if (!canCountMallocs()) {
    GTEST_SKIP() << "malloc belongs to the sanitizer, or to a C library that is not glibc";
  }
  Options options = sessionOptions(&log_);
  options.device = "cpu";
  loadWith(kRandom, options);
  ReplyOptions sampling = wild(4);
  const char* const grammar =
      "root ::= \"[\" item (\",\" item){20,40} \"]\"\nitem ::= root | \"\\\"\" "
      "[^\"\\x00-\\x1F]{0,30} \"\\\"\"";
  sampling.set("grammar", grammar);
  const std::string prompt = "x";
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append_text(loaded_.session.get(), prompt.data(), 1, ORIEL_TEXT_BOS));
  const MallocCount count;
  Reply reply;
  reply.mallocs = &count;
  EXPECT_EQ(ORIEL_OK,
            oriel_session_generate(loaded_.session.get(), &sampling, note, &reply, nullptr));
  EXPECT_EQ(reply.first_calls, reply.last_calls + 1);
}

// Combined with all other reply options.
TEST_F(Constraints, neither_are_triggers_parts_stop_texts_and_log_probabilities) {
  if (!canCountMallocs()) {
    GTEST_SKIP() << "malloc belongs to the sanitizer, or to a C library that is not glibc";
  }
  Options options = sessionOptions(&log_);
  options.device = "cpu";
  loadWith(kRandom, options);
  ReplyOptions sampling = wild(7);
  sampling.schema = kSchema;
  sampling.set("trigger", "e");
  const char* const stop[] = {"no such text at all", "nor this"};
  sampling.stop = stop;
  sampling.stop_count = 2;
  sampling.set("top_logprobs", 20);
  sampling.set("min_tokens", 20);
  sampling.set("ignore_stop", true);
  uint32_t parts = 0;
  sampling.part_user = &parts;
  sampling.on_part = [](const oriel_part*, void* user) {
    ++*static_cast<uint32_t*>(user);
    return 0;
  };
  ASSERT_EQ(ORIEL_OK, oriel_session_append_text(loaded_.session.get(), "x", 1, ORIEL_TEXT_BOS));
  const MallocCount count;
  Reply reply;
  reply.mallocs = &count;
  EXPECT_EQ(ORIEL_OK,
            oriel_session_generate(loaded_.session.get(), &sampling, note, &reply, nullptr))
      << log_.errors();
  EXPECT_EQ(reply.first_calls, reply.last_calls + 1);
  EXPECT_GT(parts, 20u);
}

// Scores of another type with the same size: counting the vocabulary's trie detects it first.
using ConstraintsOfBadFiles = ScratchFolder;

TEST_F(ConstraintsOfBadFiles, a_tokenizer_that_cannot_be_built_is_said) {
  std::vector<uint8_t> bytes = RandomLlama().bytes();
  const std::string key = "tokenizer.ggml.scores";
  const auto at = std::search(bytes.begin(), bytes.end(), key.begin(), key.end());
  ASSERT_NE(bytes.end(), at);
  const uint8_t int32s = 5;  // after the key: the type of the value, then of its elements
  *(at + static_cast<std::ptrdiff_t>(key.size()) + 4) = int32s;
  const std::string model_path = write("model.gguf", std::string(bytes.begin(), bytes.end()));
  CapturedLog log;
  Options options = makeOptions(&log);
  options.set("constraints", true);
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_FORMAT, oriel_model_load(model_path.c_str(), &options, &model));
  EXPECT_EQ(1u, errorLines(log)) << log.errors();
  EXPECT_TRUE(log.says("tokenizer.ggml.scores")) << log.errors();
}

TEST_F(Constraints, what_cannot_be_is_said) {
  loadWith(kRandom, sessionOptions(&log_));
  struct Wrong {
    const char* schema;
    const char* grammar;
    const char* trigger;
    oriel_status status;
    const char* says;
  };
  const std::string long_trigger(257, 'x');
  const Wrong kWrong[] = {
      {"{}", "root ::= \"a\"", nullptr, ORIEL_ERROR_ARGUMENT, "not both"},
      {nullptr, "root ::= foo", nullptr, ORIEL_ERROR_ARGUMENT, "foo"},
      {"{\"type\": ", nullptr, nullptr, ORIEL_ERROR_ARGUMENT, "schema"},
      {"{}", nullptr, "", ORIEL_ERROR_ARGUMENT, "trigger"},
      {"{}", nullptr, "\xFF", ORIEL_ERROR_TEXT, "trigger"},
      {"{}", nullptr, long_trigger.c_str(), ORIEL_ERROR_ARGUMENT, "257"},
      {nullptr, nullptr, "x", ORIEL_ERROR_ARGUMENT, "trigger"},
      {nullptr, "root ::= root \"a\" | \"b\"", nullptr, ORIEL_ERROR_ARGUMENT, "left recursion"},
  };
  for (const Wrong& wrong : kWrong) {
    log_.clear();
    ReplyOptions options = wild(1, 5);
    options.schema = wrong.schema;
    setText(&options, "grammar", wrong.grammar);
    setText(&options, "trigger", wrong.trigger);
    EXPECT_EQ(wrong.status, generate(options).status) << log_.errors();
    EXPECT_EQ(1u, errorLines(log_)) << log_.errors();
    EXPECT_TRUE(log_.says(wrong.says)) << log_.errors();
  }
  loaded_.session.reset();
  loaded_.model.reset();
  loaded_ = test::load(kRandom, sessionOptions(&log_));
  log_.clear();
  ReplyOptions options = wild(1, 5);
  options.schema = kSchema;
  EXPECT_EQ(ORIEL_ERROR_STATE, generate(options).status);
  EXPECT_TRUE(log_.says("without constraints")) << log_.errors();
}

TEST_F(Constraints, are_checked_without_a_session) {
  loadWith(kRandom, sessionOptions(&log_));
  SessionOptions chat;
  chat.tools =
      R"([{"type": "function", "function": {"name": "free", "parameters": {"type": "object",
           "properties": {"a": {"unevaluatedItems": false}}}}},
          {"type": "function", "function": {"name": "held"}}])";
  const auto check = [&](const std::string& asked, oriel_status wanted = ORIEL_OK) {
    std::string text(4096, '\0');
    size_t needed = 0;
    EXPECT_EQ(wanted, oriel_render(loaded_.model.get(), &chat, asked.data(), asked.size(),
                                   ORIEL_RENDER_CHECK, text.data(), text.size(), &needed))
        << log_.errors();
    return wanted == ORIEL_OK ? Json::parse(text.c_str()) : Json();
  };
  const Json nothing = check("{}");
  EXPECT_TRUE(nothing["error"].is_null() && nothing["unchecked_tools"].empty()) << nothing;
  const Json form = check(R"({"schema": "{\"unevaluatedItems\": false}"})");
  EXPECT_NE(std::string::npos, form["error"].get<std::string>().find("\"unevaluatedItems\""))
      << form;
  for (const char* const choice : {"checked", "required"}) {
    const Json tools = check(std::string(R"({"tool_choice": ")") + choice + "\"}");
    EXPECT_TRUE(tools["error"].is_null()) << tools;
    EXPECT_EQ(Json::array({"free"}), tools["unchecked_tools"]);
    const Json both =
        check(std::string(R"({"schema": "{\"const\": 1}", "tool_choice": ")") + choice + "\"}");
    EXPECT_TRUE(both["error"].is_null()) << both;
  }
  log_.clear();
  EXPECT_TRUE(check(R"({"temperature": "9"})")["error"].is_null()) << "held to nothing";
  (void)check("[]", ORIEL_ERROR_ARGUMENT);
  (void)check(R"({"schema": 3})", ORIEL_ERROR_ARGUMENT);
  (void)check(R"({"no_such_option": "x"})", ORIEL_ERROR_ARGUMENT);
  (void)check("{", ORIEL_ERROR_ARGUMENT);
  EXPECT_EQ(4u, errorLines(log_)) << log_.errors();
}

}  // namespace
}  // namespace oriel_internal::test::test_constraints

namespace oriel_internal::test::test_thought_cap {

// A cap on thought tokens: in every form of a thought, opened by the template or the model.

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
