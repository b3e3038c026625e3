#include "reply/call_grammar.h"

#include <cstring>

#include "grammar/json_schema.h"
#include "reply/call_values.h"
#include "reply/parameter.h"

namespace oriel {
namespace {

/// How a form writes one call.
enum class CallShape : uint8_t { kItem, kNameAndJson, kTags, kPython, kGemma };

struct CallForm {
  ReplyForms forms;  ///< all of them
  const char* trigger;
  CallShape shape;
  const char* open;               ///< before the first call
  const char* before;             ///< the name
  const char* behind;             ///< it
  const char* close;              ///< behind the arguments
  const char* between;            ///< two calls of a list; null: one call
  const char* end;                ///< behind the last
  const char* key = nullptr;      ///< of kTags: before a parameter's name
  const char* key_end = nullptr;  ///< behind it
  const char* value_end = nullptr;
  bool at_start = false;
};

#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"
#define DSML BAR "DSML" BAR
constexpr char kItemName[] = "{\"name\": \"";
constexpr char kItemArguments[] = "\", \"arguments\": ";

// clang-format off
/// The first that the forms have is the one that a model prefers.
const CallForm kCallForms[] = {
    {kFormGemma4, "<|tool_call>", CallShape::kGemma, "", "call:", "", "", nullptr, "<tool_call|>"},
    {kFormSeed, "<seed:tool_call>", CallShape::kTags, "\n", "<function=", ">\n", "</function>", nullptr, "\n</seed:tool_call>",
     "<parameter=", ">", "</parameter>"},
    {kFormToolCall | kFormFunctionTag, "<tool_call>", CallShape::kTags, "\n", "<function=", ">\n", "</function>", nullptr,
     "\n</tool_call>", "<parameter=", ">\n", "\n</parameter>"},
    {kFormToolCall | kFormArgKey, "<tool_call>", CallShape::kTags, "", "", "\n", "", nullptr, "</tool_call>",
     "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"},
    {kFormFunctionTag, "<function=", CallShape::kNameAndJson, "", "", ">", "", nullptr, "</function>"},
    {kFormNamedTag, "<function name=\"", CallShape::kTags, "", "", "\">", "", nullptr, "</function>",
     "<param name=\"", "\">", "</param>"},
    {kFormMiniMax, "<minimax:tool_call>", CallShape::kTags, "\n", "<invoke name=\"", "\">\n", "</invoke>\n", nullptr,
     "</minimax:tool_call>", "<parameter name=\"", "\">", "</parameter>"},
    {kFormToolCall, "<tool_call>", CallShape::kItem, "\n", kItemName, kItemArguments, "}", nullptr, "\n</tool_call>"},
    {kFormMistral | kFormArgsMark | kFormIdMark, "[TOOL_CALLS]", CallShape::kNameAndJson, "", "", "[CALL_ID]#[ARGS]", "", nullptr, ""},
    {kFormMistral | kFormArgsMark, "[TOOL_CALLS]", CallShape::kNameAndJson, "", "", "[ARGS]", "", nullptr, ""},
    {kFormMistral, "[TOOL_CALLS]", CallShape::kItem, "[", kItemName, kItemArguments, ", \"id\": \"#\"}", ", ", "]"},
    {kFormLfm, "<|tool_call_start|>", CallShape::kPython, "[", "", "(", ")", ", ", "]<|tool_call_end|>"},
    {kFormFunctools, "functools[", CallShape::kItem, "", kItemName, kItemArguments, "}", ", ", "]"},
    {kFormBarCall, "<|tool_call|>", CallShape::kItem, "[", kItemName, kItemArguments, "}", ", ", "]"},
    {kFormCapitals, "<TOOLCALL>", CallShape::kItem, "[", kItemName, kItemArguments, "}", ", ", "]</TOOLCALL>"},
    {kFormToolCalls, "<tool_calls>", CallShape::kItem, "[", kItemName, kItemArguments, "}", ", ", "]</tool_calls>"},
    {kFormCohere, "<|START_ACTION|>", CallShape::kItem, "[\n    ", "{\"tool_call_id\": \"0\", \"tool_name\": \"", "\", \"parameters\": ",
     "}", nullptr, "\n]<|END_ACTION|>"},
    {kFormKimi, "<|tool_calls_section_begin|>", CallShape::kNameAndJson, "", "<|tool_call_begin|>functions.",
     ":0<|tool_call_argument_begin|>", "<|tool_call_end|>", nullptr, "<|tool_calls_section_end|>"},
    {kFormDeepSeek, "<" BAR "tool" LOW "calls" LOW "begin" BAR ">", CallShape::kNameAndJson, "", "<" BAR "tool" LOW "call" LOW "begin" BAR ">",
     "<" BAR "tool" LOW "sep" BAR ">", "<" BAR "tool" LOW "call" LOW "end" BAR ">", "", "<" BAR "tool" LOW "calls" LOW "end" BAR ">"},
    {kFormGigaChat, "<|function_call|>", CallShape::kItem, "", kItemName, kItemArguments, "}", nullptr, ""},
    {kFormApertus, "<|tools_prefix|>", CallShape::kItem, "[", "{\"", "\": ", "}", ", ", "]<|tools_suffix|>"},
    {kFormBareJson, kItemName, CallShape::kItem, "", "", "\", \"parameters\": ", "}", nullptr, "", nullptr, nullptr, nullptr, true},
    {kFormBarePython, "[", CallShape::kPython, "", "", "(", ")", ", ", "]", nullptr, nullptr, nullptr, true},
};
// clang-format on

class CallReader {
 public:
  CallReader(const CallForm& form, const Log& log, Grammar* grammar)
      : form_(form), log_(log), grammar_(*grammar) {}

  /// One call of any of the tools.
  Status call(const JsonValue& tools, ExprId* out) {
    *out = grammar_.never();
    for (const JsonValue* tool = tools.first; tool != nullptr; tool = tool->next) {
      const JsonValue* const inner = tool->find("function");
      const JsonValue& function = inner != nullptr ? *inner : *tool;
      const JsonValue* const name = function.find("name");
      if (name == nullptr || !name->isString() || name->text.bytes == 0) {
        return log_.fail(ORIEL_ERROR_ARGUMENT,
                         "a tool has no name: write {\"type\": \"function\", \"function\": "
                         "{\"name\": ...}}");
      }
      ExprId arguments = grammar_.never();
      const JsonValue* const parameters = function.find("parameters");
      ORIEL_TRY(argumentsOf(parameters, &arguments));
      const ExprId named = grammar_.sequence(
          grammar_.text(form_.before),
          grammar_.sequence(grammar_.bytes(name->text.data, name->text.bytes), text(form_.behind)));
      const ExprId whole =
          grammar_.sequence(named, grammar_.sequence(arguments, text(form_.close)));
      *out = grammar_.choice(*out, whole);
    }
    return kOk;
  }

 private:
  /// With nine letters or digits for #, an id.
  ExprId text(const char* text) {
    const char* const id = std::strchr(text, '#');
    if (id == nullptr) {
      return grammar_.text(text);
    }
    constexpr CharRange kOfIds[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
    const ExprId nine = grammar_.repeat(grammar_.chars(kOfIds, 3), 9, 9);
    return grammar_.sequence(grammar_.bytes(text, static_cast<size_t>(id - text)),
                             grammar_.sequence(nine, grammar_.text(id + 1)));
  }

  Status argumentsOf(const JsonValue* parameters, ExprId* out) {
    const JsonValue* const properties =
        parameters == nullptr ? nullptr : parameters->find("properties");
    const bool none = properties == nullptr || properties->count == 0;
    if (parameters == nullptr || (none && parameters->find("$ref") == nullptr)) {
      const bool braces = form_.shape == CallShape::kItem ||
                          form_.shape == CallShape::kNameAndJson ||
                          form_.shape == CallShape::kGemma;
      *out = grammar_.text(braces ? "{}" : "");
      return kOk;
    }
    CallValues values(*parameters, log_, &grammar_);
    switch (form_.shape) {
      case CallShape::kItem:
      case CallShape::kNameAndJson:
        *out = values.value(*parameters, ArgumentNotation::kJson);
        break;
      case CallShape::kGemma:
        *out = values.gemmaObject(*parameters);
        break;
      case CallShape::kTags:
        *out = tags(*parameters, &values);
        break;
      case CallShape::kPython:
        *out = keywords(*parameters, &values);
        break;
    }
    return values.status();
  }

  ExprId tags(const JsonValue& parameters, CallValues* values) {
    return membersInOrder(
        &grammar_, parameters.find("properties"), parameters.find("required"), "",
        [&](const JsonValue& property) {
          const ExprId key = grammar_.sequence(
              grammar_.text(form_.key),
              grammar_.sequence(grammar_.bytes(property.key.data, property.key.bytes),
                                grammar_.text(form_.key_end)));
          const ExprId value = values->value(property, ArgumentNotation::kRaw, form_.value_end);
          return grammar_.sequence(key, grammar_.sequence(value, grammar_.text("\n")));
        });
  }

  /// As Python: JSON's values are read there, too.
  ExprId keywords(const JsonValue& parameters, CallValues* values) {
    return membersInOrder(
        &grammar_, parameters.find("properties"), parameters.find("required"), ", ",
        [&](const JsonValue& property) {
          return grammar_.sequence(
              grammar_.bytes(property.key.data, property.key.bytes),
              grammar_.sequence(grammar_.text("="),
                                values->value(property, ArgumentNotation::kJson)));
        });
  }

  const CallForm& form_;
  const Log& log_;
  Grammar& grammar_;
};

const CallForm* preferredForm(ReplyForms forms) {
  for (const CallForm& form : kCallForms) {
    if ((form.forms & forms) == form.forms) {
      return &form;
    }
  }
  return nullptr;
}

}  // namespace

Status readCallGrammar(const JsonValue& tools, ReplyForms forms, const Log& log, Grammar* grammar,
                       CallGrammar* calls) {
  // Of a model whose template speaks for no form nobody knows which one it writes: the bare ones need no tokens.
  const bool anything = (forms & formsOfAnything()) == formsOfAnything();
  const CallForm* const form = preferredForm(anything ? kFormBareJson : forms);
  if (form == nullptr) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "how this model's calls have to look is not known here: leave them unchecked");
  }
  if (!tools.isArray() || tools.count == 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "there are no tools to call: give a list of them");
  }
  ExprId one = 0;
  ORIEL_TRY(CallReader(*form, log, grammar).call(tools, &one));
  ExprId all = one;
  if (form->between != nullptr) {
    const RuleId rule = grammar->newRule();
    grammar->define(rule, one);
    one = grammar->rule(rule);
    all = grammar->sequence(
        one, grammar->repeat(grammar->sequence(grammar->text(form->between), one), 0, kAnyTimes));
  }
  calls->trigger = form->trigger;
  calls->at_start = form->at_start;
  calls->behind = grammar->sequence(grammar->text(form->open),
                                    grammar->sequence(all, grammar->text(form->end)));
  return grammar->failed() ? log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                      "no memory for the grammar of tool calls: free some, or give "
                                      "fewer tools")
                           : kOk;
}

}  // namespace oriel
