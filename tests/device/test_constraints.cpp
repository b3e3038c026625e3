// Replies constrained by a schema or a grammar, on every device.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "device/count_mallocs.h"
#include "support/ledger.h"
#include "support/random_llama.h"
#include "support/scratch_folder.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_constraints {
namespace {

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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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
RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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
RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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
