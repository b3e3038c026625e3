// Grammars of tool calls: what they let pass is read as a call with valid arguments.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/state_sets.h"
#include "reply/call_grammar.h"
#include "reply/raw_text.h"
#include "support/captured_log.h"
#include "support/reply.h"

namespace oriel::test {
namespace {

using json = nlohmann::ordered_json;  // the order of properties counts

json tools() {
  return json::parse(R"([
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}, "days": {"type": "integer"},
                     "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2}},
      "required": ["city"], "additionalProperties": false}}},
    {"name": "battery", "parameters": {"type": "object", "properties": {}}}])");
}

/// A grammar at work, byte by byte.
class Matcher {
 public:
  Matcher(const Grammar& grammar, const Log& log) : memory_(1u << 22), sets_memory_(1u << 22) {
    const Status status =
        compileAutomaton(grammar, log, memory_.data(), memory_.size(), &automaton_);
    EXPECT_TRUE(status.ok());
    EXPECT_TRUE(sets_.init(&automaton_, sets_memory_.data(), sets_memory_.size()));
  }
  /// How many bytes may come; `whole`: and the text may end there.
  size_t match(const std::string& text, bool* whole) {
    StateSets::Id set = sets_.start();
    size_t at = 0;
    for (; at < text.size(); ++at) {
      const StateSets::Id next = sets_.step(set, static_cast<uint8_t>(text[at]));
      if (next == StateSets::kNothing || next == StateSets::kFull) {
        break;
      }
      set = next;
    }
    *whole = at == text.size() && sets_.complete(set);
    return at;
  }

 private:
  std::vector<uint8_t> memory_;
  std::vector<uint8_t> sets_memory_;
  Automaton automaton_;
  StateSets sets_;
};

class CallCase {
 public:
  CallCase(ReplyForms forms, const json& given) : tools_(given), forms_(forms) {
    status = readCallGrammar(*tools_.value(), forms, log.log(), &grammar_, &calls);
    if (status.ok()) {
      const RuleId root = grammar_.newRule();
      grammar_.define(root, calls.behind);
      grammar_.setRoot(root);
    }
  }
  /// Whether the grammar has the text behind its trigger.
  bool has(const std::string& text) {
    const std::string trigger = calls.trigger;
    EXPECT_EQ(0u, text.find(trigger)) << text;
    bool whole = false;
    Matcher(grammar_, log.log()).match(text.substr(trigger.size()), &whole);
    return whole;
  }
  ReadReply read(const std::string& text) { return readReply(forms_, text, &tools_); }

  Status status = kOk;
  CallGrammar calls;
  CapturedLog log;

 private:
  const Tools tools_;
  const ReplyForms forms_;
  Scratch scratch_{defaultAllocator(), size_t{64} << 20};
  Grammar grammar_{&scratch_};
};

struct Written {
  const char* name;
  ReplyForms forms;
  const char* full;      ///< weather with all arguments
  const char* least;     ///< battery
  const char* wrong[3];  ///< no call of these tools
};

const Written kWritten[] = {
    {"json",
     kFormToolCall,
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"unit\": \"C\", "
     "\"days\": 3, \"tags\": [\"a\", \"b\"]}}\n</tool_call>",
     "<tool_call>\n{\"name\": \"battery\", \"arguments\": {}}\n</tool_call>",
     {"<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>",
      "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>",
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": 3}}\n</tool_call>"}},
    {"tags",
     kFormToolCall | kFormFunctionTag,
     "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=unit>\nC\n"
     "</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=tags>\n[\"a\", \"b\"]\n"
     "</parameter>\n</function>\n</tool_call>",
     "<tool_call>\n<function=battery>\n</function>\n</tool_call>",
     {"<tool_call>\n<function=weather>\n</function>\n</tool_call>",
      "<tool_call>\n<function=weather>\n<parameter=city>\nx\n</parameter>\n<parameter=unit>\nK\n"
      "</parameter>\n</function>\n</tool_call>",
      "<tool_call>\n<function=weather>\n<parameter=city>\nx\n</parameter>\n<parameter=days>\nmany\n"
      "</parameter>\n</function>\n</tool_call>"}},
    {"keys",
     kFormToolCall | kFormArgKey,
     "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>unit"
     "</arg_key>\n<arg_value>C</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n"
     "<arg_key>tags</arg_key>\n<arg_value>[\"a\", \"b\"]</arg_value>\n</tool_call>",
     "<tool_call>battery\n</tool_call>",
     {"<tool_call>weather\n</tool_call>", "<tool_call>other\n</tool_call>",
      "<tool_call>battery\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>"}},
    {"named",
     kFormNamedTag,
     "<function name=\"weather\"><param name=\"city\">Oslo</param>\n<param "
     "name=\"unit\">C</param>\n"
     "<param name=\"days\">3</param>\n<param name=\"tags\">[\"a\", \"b\"]</param>\n</function>",
     "<function name=\"battery\"></function>",
     {"<function name=\"weather\"></function>", "<function name=\"x\"></function>",
      "<function name=\"battery\"><param name=\"a\">1</param>\n</function>"}},
    {"gemma",
     kFormGemma4,
     "<|tool_call>call:weather{city:<|\"|>Oslo<|\"|>,unit:<|\"|>C<|\"|>,days:3,tags:[<|\"|>a<|\"|>,"
     "<|\"|>b<|\"|>]}<tool_call|>",
     "<|tool_call>call:battery{}<tool_call|>",
     {"<|tool_call>call:weather{}<tool_call|>",
      "<|tool_call>call:weather{city:<|\"|>x<|\"|>,unit:<|\"|>K<|\"|>}<tool_call|>",
      "<|tool_call>call:weather{city:Oslo}<tool_call|>"}},
    {"python",
     kFormLfm,
     "<|tool_call_start|>[weather(city=\"Oslo\", unit=\"C\", days=3, tags=[\"a\", \"b\"])]"
     "<|tool_call_end|>",
     "<|tool_call_start|>[battery()]<|tool_call_end|>",
     {"<|tool_call_start|>[weather()]<|tool_call_end|>", "<|tool_call_start|>[]<|tool_call_end|>",
      "<|tool_call_start|>[weather(city=Oslo)]<|tool_call_end|>"}},
    {"mistral_args",
     kFormMistral | kFormArgsMark,
     "[TOOL_CALLS]weather[ARGS]{\"city\": \"Oslo\", \"unit\": \"C\", \"days\": 3, \"tags\": "
     "[\"a\", "
     "\"b\"]}",
     "[TOOL_CALLS]battery[ARGS]{}",
     {"[TOOL_CALLS]weather[ARGS]{}", "[TOOL_CALLS]x[ARGS]{}",
      "[TOOL_CALLS]battery[ARGS]{\"a\": 1}"}},
    {"mistral_id",
     kFormMistral | kFormArgsMark | kFormIdMark,
     "[TOOL_CALLS]weather[CALL_ID]abcdef012[ARGS]{\"city\": \"Oslo\", \"unit\": \"C\", \"days\": "
     "3, "
     "\"tags\": [\"a\", \"b\"]}",
     "[TOOL_CALLS]battery[CALL_ID]ABCdef012[ARGS]{}",
     {"[TOOL_CALLS]battery[ARGS]{}", "[TOOL_CALLS]battery[CALL_ID]a[ARGS]{}",
      "[TOOL_CALLS]weather[CALL_ID]abcdef012[ARGS]{}"}},
    {"mistral_list",
     kFormMistral,
     "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"unit\": \"C\", "
     "\"days\": 3, \"tags\": [\"a\", \"b\"]}, \"id\": \"abcdef012\"}]",
     "[TOOL_CALLS][{\"name\": \"battery\", \"arguments\": {}, \"id\": \"abcdef012\"}]",
     {"[TOOL_CALLS][]", "[TOOL_CALLS][{\"name\": \"battery\", \"arguments\": {}}]",
      "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {}, \"id\": \"abcdef012\"}]"}},
    {"bare",
     kFormBareJson | kFormPythonTag,
     "{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\", \"unit\": \"C\", \"days\": 3, "
     "\"tags\": [\"a\", \"b\"]}}",
     "{\"name\": \"battery\", \"parameters\": {}}",
     {"{\"name\": \"weather\", \"parameters\": {}}", "{\"name\": \"x\", \"parameters\": {}}",
      "{\"name\": \"battery\", \"parameters\": {\"a\": 1}}"}},
    {"functools",
     kFormFunctools,
     "functools[{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"unit\": \"C\", "
     "\"days\": 3, \"tags\": [\"a\", \"b\"]}}]",
     "functools[{\"name\": \"battery\", \"arguments\": {}}]",
     {"functools[]", "functools[{\"name\": \"weather\", \"arguments\": {}}]",
      "functools[{\"name\": \"battery\"}]"}},
};

void PrintTo(const Written& written, std::ostream* out) { *out << written.name; }

class ReplyGrammar : public ::testing::TestWithParam<Written> {};

TEST_P(ReplyGrammar, has_the_calls_that_are_read_as_valid_ones) {
  const Written& written = GetParam();
  CallCase call(written.forms, tools());
  ASSERT_TRUE(call.status.ok()) << call.log.errors();
  EXPECT_TRUE(call.has(written.full));
  EXPECT_TRUE(call.has(written.least));
  for (const char* const wrong : written.wrong) {
    EXPECT_FALSE(call.has(wrong)) << wrong;
  }
  const ReadReply full = call.read(written.full);
  ASSERT_EQ(1u, full.calls.size());
  EXPECT_EQ("weather", full.calls[0].name);
  EXPECT_EQ(R"({"city":"Oslo","unit":"C","days":3,"tags":["a","b"]})", full.calls[0].arguments);
  EXPECT_TRUE(full.calls[0].ended);
  const ReadReply least = call.read(written.least);
  ASSERT_EQ(1u, least.calls.size());
  EXPECT_EQ("battery", least.calls[0].name);
  EXPECT_EQ("{}", least.calls[0].arguments);
  EXPECT_TRUE(least.calls[0].ended);
}

INSTANTIATE_TEST_SUITE_P(Forms, ReplyGrammar, ::testing::ValuesIn(kWritten),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ReplyGrammars, lists_have_several_calls) {
  CallCase call(kFormLfm, tools());
  EXPECT_TRUE(
      call.has("<|tool_call_start|>[battery(), weather(city=\"x\"), battery()]"
               "<|tool_call_end|>"));
}

TEST(ReplyGrammars, a_text_ends_where_its_mark_stands_first) {
  Scratch scratch(defaultAllocator(), size_t{16} << 20);
  Grammar grammar(&scratch);
  const RuleId root = grammar.newRule();
  grammar.define(root, textUpTo(&grammar, "</ab></ac>"));
  grammar.setRoot(root);
  Matcher matcher(grammar, Log());
  for (const char* const text :
       {"</ab></ac>", "x</ab></ab></ac>", "é</a</ab></ac>", "<</ab><</ab></a</ab></ac>"}) {
    bool whole = false;
    EXPECT_EQ(std::string(text).size(), matcher.match(std::string(text) + "x", &whole)) << text;
    matcher.match(text, &whole);
    EXPECT_TRUE(whole) << text;
    matcher.match(std::string(text).substr(0, std::string(text).size() - 1), &whole);
    EXPECT_FALSE(whole) << text;
  }
}

TEST(ReplyGrammars, what_cannot_be_promised_is_named) {
  json given = tools();
  given[0]["function"]["parameters"]["properties"]["city"]["pattern"] = "^[A-Z]";
  CallCase tags(kFormToolCall | kFormFunctionTag, given);
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, tags.status.code());
  EXPECT_NE(std::string::npos, tags.log.errors().find("pattern"));
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, CallCase(kFormRecipient, tools()).status.code());
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, CallCase(kFormToolCall, json::array()).status.code());
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            CallCase(kFormToolCall, json::array({json::object()})).status.code());
}

TEST(ReplyGrammars, references_in_parameters_are_followed) {
  const json given = json::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"s": {"$ref": "#/$defs/text"}}, "required": ["s"],
    "$defs": {"text": {"type": "string"}}}}])");
  CallCase gemma(kFormGemma4, given);
  ASSERT_TRUE(gemma.status.ok()) << gemma.log.errors();
  EXPECT_TRUE(gemma.has("<|tool_call>call:f{s:<|\"|>\"x\"<|\"|>}<tool_call|>"));
}

}  // namespace
}  // namespace oriel::test
