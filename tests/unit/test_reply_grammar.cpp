// Grammars of tool calls: every accepted text is read as a call with valid arguments.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exec/replier.h"
#include "grammar/automaton.h"
#include "grammar/state_sets.h"
#include "reply/call_values.h"
#include "reply/reader.h"
#include "support/captured_log.h"
#include "support/grammar_case.h"
#include "support/reply.h"

namespace oriel_internal::test::test_reply_grammar {
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
  /// Number of allowed bytes; `whole`: and the text may end there.
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

  /// Any text; "": none.
  std::string first() {
    std::string text;
    StateSets::Id set = sets_.start();
    while (!sets_.complete(set)) {
      StateSets::Id next = StateSets::kNothing;
      // Letters and digits of ids before marks; excludes repeatable blanks.
      for (const auto& [from, to] : {std::pair(0x30, 0x100), std::pair(0x0a, 0x30)}) {
        for (int byte = from; byte < to && next == StateSets::kNothing; ++byte) {
          next = sets_.step(set, static_cast<uint8_t>(byte));
          text += next != StateSets::kNothing ? std::string(1, static_cast<char>(byte)) : "";
        }
      }
      if (next == StateSets::kNothing || next == StateSets::kFull || text.size() > 2000) {
        return "";
      }
      set = next;
    }
    return text;
  }

 private:
  std::vector<uint8_t> memory_;
  std::vector<uint8_t> sets_memory_;
  Automaton automaton_;
  StateSets sets_;
};

/// An unsupported schema is an error for them.
json strict(json tools) {
  for (json& tool : tools) {
    tool["strict"] = true;
  }
  return tools;
}

enum class Strict : uint8_t { kNo, kYes };

class CallCase {
 public:
  CallCase(ReplyForms forms, const json& given, Strict asked = Strict::kYes)
      : tools_(asked == Strict::kYes ? strict(given) : given), forms_(forms) {
    status = readCallGrammar(*tools_.value(), forms, nullptr, CallChecks::kAll, {}, log.log(),
                             &grammar_, &calls);
    if (status.ok()) {
      const RuleId root = grammar_.newRule();
      grammar_.define(root, calls.behind);
      grammar_.setRoot(root);
    }
  }
  /// True if the grammar accepts the text after its trigger.
  bool has(const std::string& text) {
    const std::string trigger = calls.trigger;
    EXPECT_EQ(0u, text.find(trigger)) << text;
    bool whole = false;
    Matcher(grammar_, log.log()).match(text.substr(trigger.size()), &whole);
    return whole;
  }
  /// The text made of the first allowed bytes; "": none.
  std::string only() { return calls.trigger + Matcher(grammar_, log.log()).first(); }
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
  const char* wrong[3];  ///< not calls of these tools
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
    {"horizon",
     kFormHorizon,
     "<ifm|tool_calls>\n<ifm|tool_call>weather\n<ifm|arg_key>city</ifm|arg_key>\n"
     "<ifm|arg_value>Oslo</ifm|arg_value>\n<ifm|arg_key>unit</ifm|arg_key>\n"
     "<ifm|arg_value>C</ifm|arg_value>\n<ifm|arg_key>days</ifm|arg_key>\n"
     "<ifm|arg_value>3</ifm|arg_value>\n<ifm|arg_key>tags</ifm|arg_key>\n"
     "<ifm|arg_value>[\"a\", \"b\"]</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>",
     "<ifm|tool_calls>\n<ifm|tool_call>battery\n</ifm|tool_call>\n</ifm|tool_calls>",
     {"<ifm|tool_calls>\n<ifm|tool_call>weather\n</ifm|tool_call>\n</ifm|tool_calls>",
      "<ifm|tool_calls>\n<ifm|tool_call>other\n</ifm|tool_call>\n</ifm|tool_calls>",
      "<ifm|tool_calls>\n</ifm|tool_calls>"}},
    {"harmony",
     kFormHarmony,
     "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Oslo\", "
     "\"unit\": \"C\", \"days\": 3, \"tags\": [\"a\", \"b\"]}",
     "<|channel|>commentary to=functions.battery <|constrain|>json<|message|>{}",
     {"<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{}",
      "<|channel|>commentary to=functions.other <|constrain|>json<|message|>{}",
      "<|channel|>commentary to=functions.battery <|constrain|>json<|message|>{\"a\": 1}"}},
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

TEST(ReplyGrammars, a_schema_that_cannot_be_held_leaves_any_object) {
  json given = tools();
  given[0]["function"]["parameters"]["properties"]["city"] = {
      {"type", "array"}, {"items", {{"type", "string"}}}, {"uniqueItems", true}};
  for (const Written& written : kWritten) {
    SCOPED_TRACE(written.name);
    CallCase call(written.forms, given, Strict::kNo);
    ASSERT_TRUE(call.status.ok()) << call.log.errors();
    EXPECT_TRUE(call.has(written.full));
    EXPECT_TRUE(call.has(written.least));
    for (const char* const wrong : written.wrong) {
      // Arguments of weather are unchecked now; other tools, and arguments of battery, are still wrong.
      const bool of_weather = std::string(wrong).find("weather") != std::string::npos;
      EXPECT_TRUE(of_weather || !call.has(wrong)) << wrong;
    }
    EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, CallCase(written.forms, given).status.code());
  }
}

json toolNamed(const std::string& name) {
  json tools = json::array({{{"name", name}, {"parameters", {{"type", "object"}}}}});
  tools[0]["parameters"]["properties"] = json::object();
  return tools;
}

/// Every form for which there is a grammar.
std::vector<ReplyForms> writtenForms() {
  std::vector<ReplyForms> forms;
  for (const Written& written : kWritten) {
    forms.push_back(written.forms);
  }
  return forms;
}

TEST(ReplyGrammars, names_are_read_back_or_refused) {
  const struct {
    const char* name;
    bool everywhere;  ///< every form can hold it
  } cases[] = {{"get_weather", true},  {"getWeather2", true}, {"get-weather", true},
               {"3d-print", true},     {"a.b", true},         {"\u00e9t\u00e9", true},
               {"get weather", false}, {"a(b", false},        {"a>b", false},
               {"a\"b", false},        {"a{b", false},        {"a\nb", false},
               {" a", false},          {"a ", false},         {"call:a", true},
               {"<tool_call>", false}, {"a\\b", false}};
  for (const ReplyForms forms : writtenForms()) {
    for (const auto& one : cases) {
      SCOPED_TRACE(one.name + std::string(" in forms ") + std::to_string(forms));
      CallCase call(forms, toolNamed(one.name));
      if (!call.status.ok()) {
        EXPECT_FALSE(one.everywhere);
        EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, call.status.code());
        EXPECT_NE(std::string::npos, call.log.errors().find("has no place for its name"));
        continue;
      }
      const std::string text = call.only();
      const ReadReply read = call.read(text);
      ASSERT_EQ(1u, read.calls.size()) << text;
      EXPECT_EQ(one.name, read.calls[0].name) << text;
      EXPECT_EQ("{}", read.calls[0].arguments) << text;
      EXPECT_TRUE(read.calls[0].ended) << text;
    }
  }
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
            CallCase(kFormToolCall, toolNamed(std::string(257, 'x'))).status.code());
}

TEST(ReplyGrammars, gemmas_names_have_blanks) {
  const json given = json::array(
      {{{"name", "get the weather"},
        {"parameters",
         {{"type", "object"}, {"properties", {{"the city", {{"type", "integer"}}}}}}}}});
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, CallCase(kFormGemma4, given).status.code());
  const ReadReply read =
      readReply(kFormGemma4, "<|tool_call>call:get the weather {a:1}<tool_call|>", nullptr);
  ASSERT_EQ(1u, read.calls.size());
  EXPECT_EQ("get the weather", read.calls[0].name);
  EXPECT_EQ("{\"a\":1}", read.calls[0].arguments);
  CallCase call(kFormGemma4, toolNamed("get the weather"));
  ASSERT_TRUE(call.status.ok()) << call.log.errors();
  EXPECT_TRUE(call.has("<|tool_call>call:get the weather{}<tool_call|>"));
}

TEST(ReplyGrammars, keys_without_quotes_are_read_back_or_refused) {
  const struct {
    const char* key;
    bool everywhere;
  } cases[] = {{"city", true}, {"\u00e9", true}, {"the city", false}, {"a:b", false},
               {"a=b", false}, {"a>b", false},   {"", false},         {"a\"b", false}};
  for (const ReplyForms forms : writtenForms()) {
    for (const auto& one : cases) {
      json given = toolNamed("f");
      given[0]["parameters"]["properties"][one.key] = {{"type", "null"}};
      given[0]["parameters"]["required"] = {one.key};
      CallCase call(forms, given);
      if (!call.status.ok()) {
        EXPECT_FALSE(one.everywhere) << one.key << forms;
        EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, call.status.code());
        continue;
      }
      const std::string text = call.only();
      const ReadReply read = call.read(text);
      ASSERT_EQ(1u, read.calls.size()) << text;
      EXPECT_EQ(json({{one.key, nullptr}}), json::parse(read.calls[0].arguments)) << text;
    }
  }
}

TEST(ReplyGrammars, parameters_that_are_no_schema_are_refused) {
  for (const ReplyForms forms : writtenForms()) {
    for (const char* const parameters :
         {R"({"type": "object<x>", "properties": {}})", R"({"type": "object<x>"})", "1",
          R"({"type": "object<x>", "properties": {"a": {"type": "integer"}}})",
          R"({"type": "string"})", R"({"$ref": "#/x"})"}) {
      json given = toolNamed("f");
      given[0]["parameters"] = json::parse(parameters);
      EXPECT_FALSE(CallCase(forms, given).status.ok()) << parameters << " in " << forms;
    }
    json given = toolNamed("f");
    given[0]["parameters"] = nullptr;
    EXPECT_TRUE(CallCase(forms, given).status.ok());
    given[0]["parameters"] = json::object();
    EXPECT_TRUE(CallCase(forms, given).status.ok());
  }
}

TEST(ReplyGrammars, what_is_said_of_all_properties_together_is_named) {
  for (const ReplyForms forms : {kFormGemma4, kFormLfm, kFormToolCall | kFormFunctionTag}) {
    for (const char* const keyword :
         {R"("required": ["b"])", R"("minProperties": 2)", R"("anyOf": [{"required": ["a"]}])",
          R"("enum": [{"a": 1}])", R"("not": {})"}) {
      json given = toolNamed("f");
      given[0]["parameters"] =
          json::parse(R"({"type": "object", "properties": {"a": {"type": "integer"}}, )" +
                      std::string(keyword) + "}");
      EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, CallCase(forms, given).status.code()) << keyword;
      given[0]["parameters"]["properties"] = json::object();
      EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, CallCase(forms, given).status.code()) << keyword;
    }
  }
}

TEST(ReplyGrammars, listed_values_of_gemma_are_what_they_are) {
  const json given = json::parse(R"([{"name": "f", "parameters": {"type": "object", "properties":
    {"a": {"enum": ["x", null, true]}, "b": {"const": false}}, "required": ["a", "b"]}}])");
  CallCase call(kFormGemma4, given);
  ASSERT_TRUE(call.status.ok()) << call.log.errors();
  EXPECT_TRUE(call.has("<|tool_call>call:f{a:<|\"|>x<|\"|>,b:false}<tool_call|>"));
  EXPECT_TRUE(call.has("<|tool_call>call:f{a:null,b:false}<tool_call|>"));
  EXPECT_TRUE(call.has("<|tool_call>call:f{a:true,b:false}<tool_call|>"));
  EXPECT_FALSE(call.has("<|tool_call>call:f{a:false,b:false}<tool_call|>"));
  EXPECT_FALSE(call.has("<|tool_call>call:f{a:null,b:true}<tool_call|>"));
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
}  // namespace oriel_internal::test::test_reply_grammar

namespace oriel_internal::test::test_constrained_reply {

// The constraint of a reply starts at the reply's beginning, at the end of the thought, or at a trigger.

namespace {

const std::vector<std::string> kTokens = {"yes",      "no",        "CALL", "a CALL:y",
                                          "a CALL:z", "CA",        "LL:",  "think",
                                          "<",        "</think>y", "\n",   "</think>\n"};

class Constrained : public testing::Test {
 protected:
  Constrained() {
    Vocabulary vocabulary = byteVocabulary(kTokens);
    open_ = vocabulary.add("<think>", kUserType);
    close_ = vocabulary.add("</think>", kControlType);
    stop_ = vocabulary.add("<|im_end|>", kControlType);
    c_ = std::make_unique<GrammarCase>(vocabulary);
    const uint32_t n_vocab = c_->tokens.tokenizer->vocabSize();
    Arena measure;
    EXPECT_EQ(nullptr, ConstrainedReply::create(n_vocab, nullptr, nullptr, &measure));
    block_.resize(measure.used() / 8);
    Arena arena(block_.data(), measure.used());
    reply_ = ConstrainedReply::create(n_vocab, c_->tokens.tokenizer, c_->trie, &arena);
    EXPECT_EQ(measure.used(), arena.used());
    EXPECT_TRUE(c_->compileGbnf(&reply_->constraint(), "root ::= \"yes\" | \"no\" \"!\"*").ok());
  }

  int32_t id(const std::string& text) const {
    for (int32_t i = 255 + static_cast<int32_t>(kTokens.size()); i >= 0; --i) {
      if (c_->textOf(i) == text) {
        return i;
      }
    }
    return -1;
  }
  bool say(const std::string& text) { return reply_->accept(id(text)); }
  bool allows(int32_t token) {
    const uint32_t* const mask = reply_->mask();
    return mask == nullptr || bitOf(mask, token);
  }
  bool isFree() { return reply_->mask() == nullptr; }

  std::unique_ptr<GrammarCase> c_;
  ConstrainedReply* reply_ = nullptr;
  int32_t open_ = 0;
  int32_t close_ = 0;
  int32_t stop_ = 0;

 private:
  std::vector<uint64_t> block_;
};

TEST_F(Constrained, from_the_beginning) {
  reply_->start({});
  EXPECT_TRUE(allows(id("yes")));
  EXPECT_FALSE(allows(id("CALL")));
  EXPECT_FALSE(allows(open_));
  EXPECT_FALSE(say("CALL"));
  EXPECT_FALSE(reply_->ended());
  ASSERT_TRUE(say("no"));
  EXPECT_TRUE(allows(stop_));
  EXPECT_TRUE(allows(id("!")));
  EXPECT_FALSE(reply_->ended());
  reply_->start({});
  ASSERT_TRUE(say("yes"));
  EXPECT_TRUE(reply_->ended());
  reply_->stop();
  EXPECT_FALSE(reply_->ended());
  EXPECT_TRUE(isFree());
}

TEST_F(Constrained, behind_a_thought_that_the_model_opens) {
  ConstrainedStart start;
  start.may_think = true;
  reply_->start(start);
  EXPECT_TRUE(allows(open_));
  EXPECT_TRUE(allows(id("yes")));
  EXPECT_FALSE(allows(id("CALL")));
  ASSERT_TRUE(reply_->accept(open_));
  EXPECT_TRUE(isFree());
  for (const char* text : {"CALL", "yes", "<", "think", "\n"}) {
    ASSERT_TRUE(say(text));
    EXPECT_TRUE(isFree());
  }
  ASSERT_TRUE(reply_->accept(close_));
  EXPECT_FALSE(allows(open_));
  EXPECT_FALSE(allows(id("CALL")));
  ASSERT_TRUE(say("yes"));
  EXPECT_TRUE(reply_->ended());
  // Or without one.
  reply_->start(start);
  ASSERT_TRUE(say("yes"));
  EXPECT_TRUE(reply_->ended());
}

TEST_F(Constrained, behind_a_thought_that_the_prompt_opened) {
  ConstrainedStart start;
  start.inside_thought = true;
  for (const char* end : {"</think>\n", "</think>y"}) {
    reply_->start(start);
    EXPECT_TRUE(isFree());
    ASSERT_TRUE(say("CALL"));
    ASSERT_TRUE(say(end));
    EXPECT_FALSE(isFree());
    EXPECT_EQ(std::string(end) == "</think>\n", allows(id("yes")));
    EXPECT_EQ(std::string(end) == "</think>y", allows(id("e")));
  }
}

TEST_F(Constrained, behind_a_trigger_wherever_tokens_are_cut) {
  ConstrainedStart start;
  start.trigger = "CALL:";
  start.trigger_bytes = 5;
  reply_->start(start);
  EXPECT_TRUE(isFree());
  for (const char* text : {"no", "CALL", "CA", "CA", "LL:"}) {
    EXPECT_TRUE(isFree()) << text;
    ASSERT_TRUE(say(text));
  }
  EXPECT_FALSE(isFree());
  EXPECT_TRUE(allows(id("yes")));
  EXPECT_FALSE(allows(id("CALL")));
  EXPECT_FALSE(allows(stop_));
  ASSERT_TRUE(say("yes"));
  // The constrained part is complete: everything else is free, including the trigger.
  EXPECT_FALSE(reply_->ended());
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("CALL"));
  ASSERT_TRUE(say(":"));
  EXPECT_TRUE(isFree());
}

TEST_F(Constrained, what_may_go_on_or_be_left_is_free) {
  ConstrainedStart start;
  start.trigger = "CALL:";
  start.trigger_bytes = 5;
  reply_->start(start);
  ASSERT_TRUE(say("CALL"));
  ASSERT_TRUE(say(":"));
  ASSERT_TRUE(say("no"));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("!"));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("think"));
  EXPECT_TRUE(isFree());
}

TEST_F(Constrained, a_token_with_the_trigger_and_wrong_text_behind_it_is_refused) {
  ConstrainedStart start;
  start.trigger = "CALL:";
  start.trigger_bytes = 5;
  reply_->start(start);
  EXPECT_TRUE(isFree());
  EXPECT_FALSE(say("a CALL:z"));
  EXPECT_TRUE(isFree());
  reply_->forbid(id("a CALL:z"));
  EXPECT_FALSE(allows(id("a CALL:z")));
  EXPECT_TRUE(allows(id("a CALL:y")));
  ASSERT_TRUE(say("a CALL:y"));
  EXPECT_TRUE(allows(id("e")));
  EXPECT_FALSE(allows(id("y")));
}

TEST_F(Constrained, a_trigger_inside_of_a_thought_does_not_count) {
  ConstrainedStart start;
  start.trigger = "CALL";
  start.trigger_bytes = 4;
  reply_->start(start);
  ASSERT_TRUE(reply_->accept(open_));
  ASSERT_TRUE(say("CALL"));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(reply_->accept(close_));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("CALL"));
  EXPECT_FALSE(isFree());
}

TEST_F(Constrained, nothing_to_go_on_with_is_said) {
  ASSERT_TRUE(c_->compileGbnf(&reply_->constraint(), "root ::= \"a\" .").ok());
  reply_->start({});
  EXPECT_FALSE(reply_->stuck());
  for (int32_t token = 0; token < c_->size(); ++token) {
    if (allows(token)) {
      reply_->forbid(token);
    }
  }
  EXPECT_TRUE(reply_->stuck());
}

}  // namespace
}  // namespace oriel_internal::test::test_constrained_reply
