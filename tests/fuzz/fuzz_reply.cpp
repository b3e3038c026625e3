// Replies: thought, answer and calls do not depend on the split, arguments are JSON, and texts of the call grammar are
// read as calls. An input: eight bytes of forms, one of options, tools, a line of =, and the reply.
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "fuzz/grammar_walk.h"
#include "fuzz/words.h"
#include "reply/call_values.h"
#include "support/reply.h"
#include "text/unicode.h"

namespace oriel_internal::fuzz::fuzz_reply {
namespace {

constexpr char kBetween[] = "\n=====\n";
constexpr size_t kHead = 9;

bool isJson(const std::string& text) {
  if (nlohmann::json::accept(text)) {
    return true;
  }
  // The other reader refuses numbers that a double does not hold.
  Scratch scratch(defaultAllocator(), size_t{16} << 20);
  const JsonValue* value = nullptr;
  return text.find_first_of("eE0") != std::string::npos &&
         parseJson(text.data(), text.size(), "the arguments", Log(), &scratch, &value).ok();
}

std::vector<std::string> cut(const std::string& text, size_t most, Chance* chance) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = 1 + chance->below(most);
    pieces.push_back(text.substr(at, bytes));
    at += bytes;
  }
  return pieces;
}

test::ReadReply check(const ReplySettings& settings, const std::string& reply, Chance* chance) {
  const test::ReadReply whole = test::readPieces(settings, {reply});
  EXPECT_EQ(whole, test::readPieces(settings, cut(reply, 7, chance)));
  EXPECT_EQ(whole, test::readPieces(settings, cut(reply, 300, chance)));
  EXPECT_EQ(whole, test::readPieces(settings, cut(reply, 1, chance)));
  EXPECT_TRUE(standsIn(whole.text, reply));
  EXPECT_TRUE(standsIn(whole.thought, reply));
  EXPECT_TRUE(settings.calls || whole.calls.empty());
  size_t bad = 0;
  const bool is_text = isValidUtf8(reply.data(), reply.size(), &bad);
  for (const test::ReadCall& call : whole.calls) {
    EXPECT_FALSE(call.name.empty());
    EXPECT_LE(call.name.size(), ReplyReader::kMostName);
    if (call.ended && is_text) {
      EXPECT_TRUE(isJson(call.arguments)) << call.arguments;
      EXPECT_EQ('{', call.arguments[0]);
    }
  }
  return whole;
}

/// A call made by the grammar, token by token, is read as a call.
void checkGrammar(const JsonValue& tools, const std::string& tools_text, ReplyForms forms,
                  uint32_t hash) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  Watch watch;
  Scratch scratch(*watch.allocator(), kMostBytes);
  Grammar grammar(&scratch);
  CallGrammar calls;
  const oriel_status status = watch.ended(
      readCallGrammar(tools, forms, nullptr, CallChecks::kAll, {}, watch.log(), &grammar, &calls)
          .code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT ||
              status == ORIEL_ERROR_UNSUPPORTED || status == ORIEL_ERROR_OUT_OF_MEMORY);
  watch.expectPeakBelow(kMostBytes);
  std::vector<bool> takes_anything;  // tools whose schema cannot be held
  for (const JsonValue* tool = tools.first(); tool != nullptr; tool = tool->next()) {
    takes_anything.push_back(tool->noted());
  }
  // Works for any memory limit, with an error.
  Chance chance(hash);
  for (const size_t most_bytes : {size_t{3000}, size_t{16000}, size_t{64000}}) {
    Scratch less(*watch.allocator(), chance.below(most_bytes));
    Grammar cut_off(&less);
    CallGrammar some;
    (void)watch.ended(
        readCallGrammar(tools, forms, nullptr, CallChecks::kAll, {}, watch.log(), &cut_off, &some)
            .code());
  }
  if (status != ORIEL_OK) {
    return;
  }
  const RuleId root = grammar.newRule();
  grammar.define(root, calls.whole);
  grammar.setRoot(root);
  nlohmann::json known = nlohmann::json::parse(tools_text, nullptr, false);
  // Numbers that no double holds are the second reader's own business.
  const bool readable = !known.is_discarded();
  known = readable ? known : nlohmann::json::array();
  for (const std::string& walked : walkGrammar(grammar, hash, &watch)) {
    ReplySettings settings;
    settings.forms = forms;
    settings.tools = &tools;
    EXPECT_EQ(0u, walked.find(calls.trigger)) << walked;
    const test::ReadReply read = check(settings, walked, &chance);
    EXPECT_FALSE(read.calls.empty()) << walked;
    for (const test::ReadCall& call : read.calls) {
      EXPECT_TRUE(call.ended) << walked;
      bool valid = !readable;
      const nlohmann::json arguments = nlohmann::json::parse(call.arguments, nullptr, false);
      for (size_t i = 0; i < known.size(); ++i) {
        const nlohmann::json& tool = known[i];
        const nlohmann::json& function = tool.contains("function") ? tool["function"] : tool;
        if (function.value("name", "") == call.name) {
          nlohmann::json schema = function.value("parameters", nlohmann::json::object());
          schema = schema.is_null() ? nlohmann::json::object() : schema;
          valid = valid || takes_anything[i] || arguments.is_discarded() ||
                  SchemaValidator(schema).valid(arguments);
        }
      }
      EXPECT_TRUE(valid) << call.name << call.arguments << " in " << walked << " of " << tools_text;
    }
  }
}

}  // namespace

ORIEL_FUZZ(reply) {
  Input input(data, size);
  ReplySettings settings;
  settings.forms = input.number(8);
  const uint8_t wishes = input.byte();
  const std::vector<std::string> parts = partsOf(input.takeRest(), kBetween, 2);
  settings.calls = (wishes & 1) == 0;
  settings.inside_thought = (wishes & 2) != 0;
  if ((wishes & 4) != 0) {
    settings.forms = formsOfTemplate(parts[1].data(), parts[1].size());
  } else if ((wishes & 8) != 0) {
    settings.forms = formsOfAnything();
  }
  (void)opensThought(parts[1].data(), parts[1].size(), settings.forms);
  Watch watch;
  Scratch scratch(*watch.allocator(), size_t{16} << 20);
  const bool is_json = watch.ended(parseJson(parts[0].data(), parts[0].size(), "the tools",
                                             watch.log(), &scratch, &settings.tools)
                                       .code()) == ORIEL_OK;
  if (is_json && !parts[1].empty()) {
    pastFirstCheck();
  }
  Chance chance(hashOf(data, size));
  check(settings, parts[1], &chance);
  if (is_json && (wishes & 16) != 0) {
    checkGrammar(*settings.tools, parts[0], settings.forms, hashOf(data, size));
  }
}

ORIEL_FUZZ_MUTATE(reply) {
  static const WordMutator mutator([] {
    std::vector<std::string> words = jsonWordsAnd({"'",
                                                   "(",
                                                   ")",
                                                   ";",
                                                   "=",
                                                   "<",
                                                   ">",
                                                   "-2.5",
                                                   "None",
                                                   "True",
                                                   "f",
                                                   "\"name\": \"f\"",
                                                   "\"arguments\": {",
                                                   "\"parameters\": {\"a\": ",
                                                   "{\"name\": \"f\", ",
                                                   "\"function\": {",
                                                   "{\"f\": {",
                                                   "```",
                                                   "```json\n",
                                                   "🙂",
                                                   "<![CDATA[",
                                                   "]]>",
                                                   "f(a=",
                                                   "'''",
                                                   "\"\"\"",
                                                   "r'",
                                                   "f'",
                                                   "<|\"|>",
                                                   "all\n",
                                                   " to=functions.f",
                                                   "<|channel|>commentary",
                                                   "\xE6",
                                                   "]<]minimax[>[",
                                                   "call:f{a:",
                                                   "Action: ",
                                                   "{\"type\": \"string\"}",
                                                   "\"integer\"",
                                                   "\"properties\": {\"a\": {}}",
                                                   "\"required\": [\"a\"]",
                                                   "\"name\": \"a b\"",
                                                   "\"name\": \"3d-x.y:z\"",
                                                   "\"a b\": {\"type\": \"null\"}",
                                                   "\"enum\": [1, \"b\"]"});
    for (uint8_t i = 0; i < kMarkCount; ++i) {
      for (const char* part :
           {kMarks[i].text, kMarks[i].open_end, kMarks[i].value_end, kMarks[i].tail_end}) {
        if (part != nullptr) {
          words.push_back(part);
        }
      }
    }
    return words;
  }());
  Chance chance(seed);
  if (size <= kHead || chance.once(6)) {
    return mutateBytes(data, size, max_size, seed);
  }
  std::string head = text(data, kHead);
  if (chance.once(4)) {
    head[chance.below(kHead)] = static_cast<char>(chance());
  }
  std::vector<std::string> parts = partsOf(text(data + kHead, size - kHead), kBetween, 2);
  std::string& part = parts[chance.once(4) ? 0 : 1];
  part = mutator.mutate(part, &chance);
  return put(head + parts[0] + kBetween + parts[1], data, max_size);
}

ORIEL_FUZZ_SEEDS(reply) {
  const std::string tools =
      R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {)"
      R"("a": {"type": "string"}, "b": {"type": "integer"}, "c": {"enum": ["x", 2, null]}, "d": {"type": "array", )"
      R"("items": {"type": "boolean"}}, "e": {"type": "object", "properties": {"g": {"type": "number"}}}}, )"
      R"("required": ["a"], "additionalProperties": false}}}, {"name": "g", "parameters": {"type": "object", "properties": {}}}])";
  const auto add = [&](ReplyForms forms, uint8_t wishes, const std::string& given,
                       const std::string& reply) {
    std::string head(kHead, '\0');
    for (size_t i = 0; i < 8; ++i) {
      head[i] = static_cast<char>(forms >> (8 * i));
    }
    head[8] = static_cast<char>(wishes);
    seeds->push_back(head + given + kBetween + reply);
  };
  // The grammar of every form, and of forms that go together.
  for (uint32_t form = 0; form < 35; ++form) {
    add(ReplyForms{1} << form, 16, tools, "");
  }
  add(kFormToolCall | kFormFunctionTag, 16, tools, "");
  add(kFormToolCall | kFormArgKey, 16, tools, "");
  add(kFormMistral | kFormArgsMark, 16, tools, "");
  add(kFormMistral | kFormArgsMark | kFormIdMark, 16, tools, "");
  for (const char* reply :
       {"<think>a</think>\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
        "\"b\"}}\n</tool_call>",
        "<tool_call>\n<function=f>\n<parameter=a>\n[1, {\"b\": "
        "2}]\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        "[TOOL_CALLS]f[CALL_ID]x[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}",
        "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": \"b\"}, \"id\": \"abcdefghi\"}]",
        "<|tool_call_start|>[f(a='b', c=[1, None]), g()]<|tool_call_end|>",
        "<|channel>thought\nx<channel|><|tool_call>call:f{a:<|\"|>b<|\"|>,c:[1,{d:2}]}<tool_call|>",
        "<function name=\"f\"><param name=\"a\"><![CDATA[<]]></param></function>",
        "{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"g\", \"parameters\": {}}",
        "[f(a=1, b=\"x\\n\", c='''y'''), g(b={'k': True})]",
        "functools[{\"arguments\": {\"a\": 1}, \"name\": \"f\"}, {\"name\": \"g\"}]",
        "<|tool_call|>[{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}]<|/tool_call|>",
        "Action: ```json\n[{\"tool_name\": \"f\", \"parameters\": {}}]\n```",
        "<|START_THINKING|>t<|END_THINKING|><|START_ACTION|>[{\"tool_call_id\": \"0\", "
        "\"tool_name\": "
        "\"f\", \"parameters\": {\"a\": 1}}]<|END_ACTION|>",
        "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.f "
        "<|constrain|>json<|message|>{\"a\":1}<|call|>",
        ">>>all\nHello>>>f\n{\"a\": 1}",
        "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter "
        "name=\"a\">1</parameter>\n</invoke>\n</minimax:tool_call>",
        "<seed:think>t</seed:think><seed:tool_call>\n<function=f>\n<parameter=a>1</parameter></"
        "function>\n</seed:tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        "<|python_tag|>f.call(a=1)",
        "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"a\": \"b\"}}",
        "a <b> c [d] {e}",
        "<think>never closed",
        "closed</think> only"}) {
    add(~ReplyForms{0}, 0, tools, reply);
    add(0, 8, tools, reply);
    add(0, 4 | 2, "[]", reply);
  }
  // Values of each kind, which the forms write in their own ways.
  const std::string kinds =
      R"([{"name": "h", "parameters": {"type": "object", "properties": {"n": {"type": "null"}, "o": {"type": "boolean"}, )"
      R"("p": {"type": ["integer", "string"]}, "q": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "r": {}, )"
      R"("s": {"const": "x<y"}, "t": {"enum": ["a", "b\"c"]}, "u": {"type": "string", "pattern": "^[ab]+$"}, )"
      R"("v": {"type": "array", "items": {"type": "object", "properties": {"w": {"type": "string"}}}}}, "required": ["n", "o", "p", "q", "r", "s", "t", "u", "v"]}}])";
  const std::string refused[] = {
      R"([{"name": "h", "parameters": {"type": "object", "properties": {"a": {"type": "string", "minLength": 3}}, "additionalProperties": true}}])",
      R"([{"name": "a b", "parameters": {"type": "object", "properties": {"x y": {"type": "integer"}}}}])",
      R"([{"name": "h", "parameters": {"$ref": "#/x"}}])",
      R"([{"name": ""}])",
      R"([{"name": "a \"b\" c"}, {"name": "3d"}])",
      R"([{"name": "h", "parameters": null}])",
      R"([{"name": "h", "parameters": {"type": "object<x>", "properties": {}}}])",
      R"([{"name": "h", "parameters": {"type": "object", "properties": {"a": {"enum": ["x", null, true, 2]}}, "required": ["b"]}}])",
      R"([{"name": "h"}, 1])",
      R"([{"name": "h", "parameters": {"anyOf": [{"type": "object"}]}}])",
      R"({})",
      R"([])",
      R"([{"name": "h", "parameters": {"type": "object", "minProperties": 1, "properties": {"a": {"allOf": [{"type": "string"}]}}}}])"};
  for (uint32_t form = 0; form < 32; ++form) {
    add(ReplyForms{1} << form, 16, kinds, "");
    for (const std::string& given : refused) {
      if (form % 3 == 0) {
        add(ReplyForms{1} << form, 16, given, "");
      }
    }
  }
  add(kFormToolCall | kFormFunctionTag, 16, kinds, "");
  add(kFormToolCall | kFormArgKey, 16, kinds, "");
  add(~ReplyForms{0}, 1, "null", "<tool_call>{\"name\": \"f\"}</tool_call>");
  add(kFormBareJson, 0, tools, "{\"name\": \"" + std::string(5000, 'x') + "\"}");
  add(kFormToolCall, 0, tools,
      "<tool_call>" + std::string(700, ' ') + "{\"name\": \"f\", \"x\": \"" +
          std::string(5000, 'y'));
}

}  // namespace oriel_internal::fuzz::fuzz_reply
