#include "reply/call_values.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "grammar/grammar.h"
#include "reply/parameter.h"
#include "reply/reader.h"

namespace oriel_internal {
namespace {

ExprId enclosed(Grammar* grammar, const char* open, ExprId what, const char* close) {
  return grammar->sequence(grammar->text(open), grammar->sequence(what, grammar->text(close)));
}

/// -?(0|[1-9][0-9]*)(.[0-9]+)?, with enough digits for a double.
ExprId anyNumber(Grammar* grammar) {
  constexpr CharRange kDigits[] = {{'0', '9'}};
  constexpr CharRange kFirst[] = {{'1', '9'}};
  const ExprId digit = grammar->chars(kDigits, 1);
  const ExprId whole =
      grammar->choice(grammar->text("0"),
                      grammar->sequence(grammar->chars(kFirst, 1), grammar->repeat(digit, 0, 14)));
  const ExprId fraction = grammar->sequence(grammar->text("."), grammar->repeat(digit, 1, 15));
  return grammar->sequence(grammar->optional(grammar->text("-")),
                           grammar->sequence(whole, grammar->optional(fraction)));
}

}  // namespace

ExprId anyKey(Grammar* grammar) {
  constexpr CharRange kOfKeys[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return grammar->repeat(grammar->chars(kOfKeys, 4), 1, 64);
}

ExprId anyList(Grammar* grammar, ExprId one, const char* between) {
  const RuleId rule = grammar->newRule();
  grammar->define(rule, one);
  const ExprId more = grammar->sequence(grammar->text(between), grammar->rule(rule));
  return grammar->optional(
      grammar->sequence(grammar->rule(rule), grammar->repeat(more, 0, kAnyTimes)));
}

ExprId anyGemmaObject(Grammar* grammar) {
  const RuleId value = grammar->newRule();
  const RuleId object = grammar->newRule();
  const ExprId member = grammar->sequence(
      anyKey(grammar), grammar->sequence(grammar->text(":"), grammar->rule(value)));
  grammar->define(object, enclosed(grammar, "{", anyList(grammar, member, ","), "}"));
  const ExprId array = enclosed(grammar, "[", anyList(grammar, grammar->rule(value), ","), "]");
  ExprId any = grammar->sequence(grammar->text(kGemmaQuote), textUpTo(grammar, kGemmaQuote));
  for (const ExprId each : {array, grammar->rule(object), anyNumber(grammar), grammar->text("true"),
                            grammar->text("false"), grammar->text("null")}) {
    any = grammar->choice(any, each);
  }
  grammar->define(value, any);
  return grammar->rule(object);
}

namespace {

/// The syntax of one call in a form.
enum class CallShape : uint8_t { kItem, kNameAndJson, kTags, kPython, kGemma };

struct CallForm {
  ReplyForms forms;  ///< all of them
  const char* trigger;
  CallShape shape;
  const char* open;               ///< before the first call
  const char* before;             ///< the name
  const char* behind;             ///< it
  const char* close;              ///< after the arguments
  const char* between;            ///< between two calls of a list; null: only one call
  const char* end;                ///< after the last call
  const char* key = nullptr;      ///< for kTags: before a parameter's name
  const char* key_end = nullptr;  ///< after the name
  const char* value_end = nullptr;
  bool at_start = false;
};

#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"
#define DSML BAR "DSML" BAR
constexpr char kItemName[] = "{\"name\": \"";
constexpr char kItemArguments[] = "\", \"arguments\": ";

// clang-format off
// In order of preference: the first row among a model's forms is used.
const CallForm kCallForms[] = {
    {kFormGemma4, "<|tool_call>", CallShape::kGemma, "", "call:", "", "", nullptr, "<tool_call|>"},
    {kFormSeed, "<seed:tool_call>", CallShape::kTags, "\n", "<function=", ">\n", "</function>", nullptr, "\n</seed:tool_call>",
     "<parameter=", ">", "</parameter>"},
    {kFormToolCall | kFormFunctionTag, "<tool_call>", CallShape::kTags, "\n", "<function=", ">\n", "</function>", nullptr,
     "\n</tool_call>", "<parameter=", ">\n", "\n</parameter>"},
    {kFormToolCall | kFormArgKey, "<tool_call>", CallShape::kTags, "", "", "\n", "", nullptr, "</tool_call>",
     "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"},
    {kFormHorizon, "<ifm|tool_calls>", CallShape::kTags, "\n", "<ifm|tool_call>", "\n", "</ifm|tool_call>\n", nullptr, "</ifm|tool_calls>",
     "<ifm|arg_key>", "</ifm|arg_key>\n<ifm|arg_value>", "</ifm|arg_value>"},
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
    {kFormHarmony, "<|channel|>commentary to=functions.", CallShape::kNameAndJson, "", "", " <|constrain|>json<|message|>", "", nullptr, ""},
    {kFormGigaChat, "<|function_call|>", CallShape::kItem, "", kItemName, kItemArguments, "}", nullptr, ""},
    {kFormApertus, "<|tools_prefix|>", CallShape::kItem, "[", "{\"", "\": ", "}", ", ", "]<|tools_suffix|>"},
    {kFormBareJson, kItemName, CallShape::kItem, "", "", "\", \"parameters\": ", "}", nullptr, "", nullptr, nullptr, nullptr, true},
    {kFormBarePython, "[", CallShape::kPython, "", "", "(", ")", ", ", "]", nullptr, nullptr, nullptr, true},
};
// clang-format on

/// True if the schema allows only {}: it declares no parameters.
bool saysNothing(const JsonValue& parameters) {
  constexpr const char* kOfProperties[] = {"type",        "properties",  "additionalProperties",
                                           "description", "title",       "$schema",
                                           "$defs",       "definitions", "$id",
                                           "$comment",    "examples",    "default",
                                           "strict"};
  if ((typesOf(&parameters) & kTypeObject) == 0) {
    return false;
  }
  for (const JsonValue* each = parameters.first(); each != nullptr; each = each->next()) {
    const bool is_empty_list =
        each->key().is("required") && each->isArray() && each->first() == nullptr;
    bool known = is_empty_list;
    for (const char* const name : kOfProperties) {
      known = known || each->key().is(name);
    }
    if (!known) {
      return false;
    }
  }
  return true;
}

// To write a call and parse it again.
constexpr uint64_t kStepsOfTool = 4000;
constexpr uint64_t kStepsOfByte = 20;

Status tooMuch(const Log& log, const Work& work) {
  return work.stopped()
             ? Status(ORIEL_ERROR_CANCELLED)
             : log.fail(ORIEL_ERROR_UNSUPPORTED,
                        "the tools are too much to work out: give fewer, or do not ask for checked "
                        "calls");
}

Status noMemory(const Log& log) {
  return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                  "no memory for the grammar of tool calls: free some, or give fewer tools");
}

bool isTrue(const JsonValue* value) { return value != nullptr && value->boolean(); }

bool isStrict(const JsonValue& tool) {
  const JsonValue* const function = tool.find("function");
  return isTrue(tool.find("strict")) || (function != nullptr && isTrue(function->find("strict")));
}

constexpr char kAnyObject[] = R"({"type":"object"})";
constexpr char kAnyValue[] = "{}";

class CallReader {
 public:
  CallReader(const CallForm& form, ReplyForms forms, const Tokenizer* tokenizer, CallChecks checks,
             const SchemaRules& rules, const Log& log, Grammar* grammar)
      : form_(form),
        forms_(forms),
        tokenizer_(tokenizer),
        checks_(checks),
        rules_(rules),
        log_(log),
        grammar_(*grammar) {}

  /// One call of any tool.
  Status call(const JsonValue& tools, ExprId* out) {
    *out = grammar_.never();
    for (const JsonValue* tool = tools.first(); tool != nullptr; tool = tool->next()) {
      const JsonValue* const inner = tool->find("function");
      const JsonValue& function = inner != nullptr ? *inner : *tool;
      const JsonValue* const name = function.find("name");
      if (name == nullptr || !name->isString() || name->text().bytes == 0) {
        return log_.fail(ORIEL_ERROR_ARGUMENT,
                         "a tool has no name: write {\"type\": \"function\", \"function\": "
                         "{\"name\": ...}}");
      }
      if (!grammar_.work()->spend(kStepsOfTool + kStepsOfByte * name->text().bytes)) {
        return tooMuch(log_, *grammar_.work());
      }
      ExprId arguments = grammar_.never();
      ORIEL_TRY(checkName(name->text()));
      ORIEL_TRY(argumentsOf(*tool, function, &arguments));
      const ExprId begin =
          grammar_.sequence(text(form_.before),
                            grammar_.sequence(grammar_.bytes(name->text().data, name->text().bytes),
                                              text(form_.behind)));
      const ExprId whole =
          grammar_.sequence(begin, grammar_.sequence(arguments, text(form_.close)));
      *out = grammar_.choice(*out, whole);
    }
    return kOk;
  }

  /// `#` stands for an id of nine letters or digits.
  ExprId text(const char* text) {
    const char* const id = std::strchr(text, '#');
    if (id == nullptr) {
      return marked(text, std::strlen(text));
    }
    constexpr CharRange kOfIds[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
    const ExprId nine = grammar_.repeat(grammar_.chars(kOfIds, 3), 9, 9);
    return grammar_.sequence(marked(text, static_cast<size_t>(id - text)),
                             grammar_.sequence(nine, marked(id + 1, std::strlen(id + 1))));
  }
  /// Marks become the model's control tokens, if it has them.
  ExprId marked(const char* text, size_t bytes) {
    ExprId all = grammar_.empty();
    size_t from = 0;
    for (size_t at = 0; at < bytes;) {
      size_t length = 0;
      const int32_t id = controlAt(text + at, bytes - at, &length);
      if (id < 0) {
        ++at;
        continue;
      }
      all = grammar_.sequence(
          all, grammar_.sequence(grammar_.bytes(text + from, at - from), grammar_.token(id)));
      from = at += length;
    }
    return grammar_.sequence(all, grammar_.bytes(text + from, bytes - from));
  }

 private:
  bool hasBraces() const {
    return form_.shape != CallShape::kTags && form_.shape != CallShape::kPython;
  }

  /// Names are written verbatim in calls, and some forms cannot hold every name.
  Status checkName(const JsonText& name) const {
    return isReadBack(name, nullptr)
               ? kOk
               : log_.fail(
                     ORIEL_ERROR_UNSUPPORTED,
                     "the tool \"%.*s\" cannot be called in this model's form, which has no place "
                     "for its name: use up to 64 letters, digits, _ and -",
                     shownBytes(name), name.data);
  }

  Status checkKeys(const JsonText& name, const JsonValue* parameters, const Log& log) const {
    const JsonValue* const properties =
        parameters == nullptr ? nullptr : parameters->find("properties");
    const bool keys_stand_bare =
        form_.shape == CallShape::kTags || form_.shape == CallShape::kPython;
    const JsonValue* each =
        properties == nullptr || !keys_stand_bare ? nullptr : properties->first();
    for (; each != nullptr; each = each->next()) {
      if (!grammar_.work()->spend(kStepsOfTool +
                                  kStepsOfByte * (uint64_t{name.bytes} + each->key().bytes))) {
        return tooMuch(log, *grammar_.work());
      }
      if (!isReadBack(name, &each->key())) {
        return failOfKey(log, each->key());
      }
    }
    return kOk;
  }

  bool isReadBack(const JsonText& name, const JsonText* key) const {
    CallTrial trial(forms_, name, key);
    const auto push = [&trial](const char* text) {
      const char* const id = std::strchr(text, '#');
      trial.push(text, id == nullptr ? std::strlen(text) : static_cast<size_t>(id - text));
      if (id != nullptr) {
        trial.push("123456789");
        trial.push(id + 1);
      }
    };
    push(form_.trigger);
    push(form_.open);
    push(form_.before);
    trial.push(name);
    push(form_.behind);
    if (key == nullptr) {
      push(hasBraces() ? "{}" : "");
    } else {
      push(form_.shape == CallShape::kTags ? form_.key : "");
      trial.push(*key);
      push(form_.shape == CallShape::kTags ? form_.key_end : "=");
      push("1");
      push(form_.shape == CallShape::kTags ? form_.value_end : "");
    }
    push(form_.close);
    push(form_.end);
    return trial.succeeds();
  }

  /// By the tool's schema. Any object if that cannot be enforced, unless the tool is strict.
  Status argumentsOf(const JsonValue& tool, const JsonValue& function, ExprId* out) {
    if (isStrict(tool)) {
      return heldArguments(function, log_, out);
    }
    if (checks_ == CallChecks::kAll) {
      LenientLog lenient(log_);
      const Status status = heldArguments(function, lenient.log(), out);
      if (status.ok()) {
        return kOk;
      }
      if (grammar_.work()->ended()) {
        return tooMuch(log_, *grammar_.work());
      }
      if (grammar_.failed()) {
        return noMemory(log_);
      }
    }
    const_cast<JsonValue&>(tool).note();  // the tools were parsed for this grammar
    return anyArguments(out);
  }

  Status heldArguments(const JsonValue& function, const Log& log, ExprId* out) {
    const JsonText& name = function.find("name")->text();
    const JsonValue* const parameters = function.find("parameters");
    char what[80];
    std::snprintf(what, sizeof(what), "tool %.*s",
                  static_cast<int>(std::min<size_t>(name.bytes, 60)), name.data);
    NamingLog named(log, what);
    ORIEL_TRY(checkKeys(name, parameters, named.log()));
    return schemaArguments(parameters, named.log(), out);
  }

  /// Any object, in the form's notation.
  Status anyArguments(ExprId* out) {
    switch (form_.shape) {
      case CallShape::kItem:
      case CallShape::kNameAndJson:
        return anyJson(kAnyObject, out);
      case CallShape::kGemma:
        *out = anyGemmaObject(&grammar_);
        return kOk;
      case CallShape::kTags: {
        const ExprId key = grammar_.sequence(
            text(form_.key), grammar_.sequence(anyKey(&grammar_), text(form_.key_end)));
        const ExprId value =
            grammar_.sequence(textUpTo(&grammar_, form_.value_end), grammar_.text("\n"));
        *out = grammar_.repeat(grammar_.sequence(key, value), 0, kAnyTimes);
        return kOk;
      }
      case CallShape::kPython: {
        ExprId value = grammar_.never();
        ORIEL_TRY(anyJson(kAnyValue, &value));
        const ExprId one =
            grammar_.sequence(anyKey(&grammar_), grammar_.sequence(grammar_.text("="), value));
        *out = anyList(&grammar_, one, ", ");
        return kOk;
      }
    }
    return kOk;
  }

  /// JSON by a built-in schema: fails only for lack of memory or steps.
  Status anyJson(const char* schema, ExprId* out) {
    const JsonValue* read = nullptr;
    Status status =
        parseJson(schema, std::strlen(schema), "a schema", {}, Log(), grammar_.scratch(), &read);
    status =
        status.ok() ? readJsonSchema(*read, *read, SchemaRules(), Log(), &grammar_, out) : status;
    return status.ok()                ? kOk
           : grammar_.work()->ended() ? tooMuch(log_, *grammar_.work())
                                      : noMemory(log_);
  }

  Status schemaArguments(const JsonValue* parameters, const Log& log, ExprId* out) {
    const JsonValue* const properties =
        parameters == nullptr ? nullptr : parameters->find("properties");
    const bool none = properties == nullptr || properties->count() == 0;
    if (parameters == nullptr || parameters->isNull()) {
      *out = grammar_.text(hasBraces() ? "{}" : "");
      return kOk;
    }
    CallValues values(*parameters, rules_, log, &grammar_);
    if (none && saysNothing(*parameters)) {
      // The form has its own notation, but the schema must still be valid.
      (void)values.value(*parameters, ArgumentNotation::kJson);
      *out = grammar_.text(hasBraces() ? "{}" : "");
      return values.status();
    }
    switch (form_.shape) {
      case CallShape::kItem:
      case CallShape::kNameAndJson:
        *out = values.jsonObject(*parameters);
        break;
      case CallShape::kGemma:
        *out = values.gemmaObject(values.members(*parameters));
        break;
      case CallShape::kTags:
        *out = tags(values.members(*parameters), &values);
        break;
      case CallShape::kPython:
        *out = keywords(values.members(*parameters), &values);
        break;
    }
    return values.status();
  }

  ExprId tags(const JsonValue& parameters, CallValues* values) {
    return membersInOrder(
        &grammar_, parameters.find("properties"), parameters.find("required"), "",
        [&](const JsonValue& property) {
          const ExprId key = grammar_.sequence(
              text(form_.key),
              grammar_.sequence(grammar_.bytes(property.key().data, property.key().bytes),
                                text(form_.key_end)));
          const ExprId value = values->value(property, ArgumentNotation::kRaw, form_.value_end);
          return grammar_.sequence(key, grammar_.sequence(value, grammar_.text("\n")));
        });
  }

  /// Python keyword arguments; JSON values are accepted by the reader there, too.
  ExprId keywords(const JsonValue& parameters, CallValues* values) {
    return membersInOrder(
        &grammar_, parameters.find("properties"), parameters.find("required"), ", ",
        [&](const JsonValue& property) {
          return grammar_.sequence(
              grammar_.bytes(property.key().data, property.key().bytes),
              grammar_.sequence(grammar_.text("="),
                                values->value(property, ArgumentNotation::kJson)));
        });
  }

  /// The longest control token without text at this place; -1: none.
  int32_t controlAt(const char* text, size_t bytes, size_t* length) const {
    for (size_t n = std::min<size_t>(bytes, kMostMark); n > 1 && tokenizer_ != nullptr; --n) {
      const int32_t id = tokenizer_->find(text, n);
      if (id >= 0 && tokenizer_->isControl(id) && tokenizer_->piece(id, false).bytes == 0) {
        *length = n;
        return id;
      }
    }
    return -1;
  }

  const CallForm& form_;
  const ReplyForms forms_;
  const Tokenizer* const tokenizer_;
  const CallChecks checks_;
  const SchemaRules& rules_;
  const Log& log_;
  Grammar& grammar_;
};

const CallForm* preferredForm(ReplyForms forms) {
  // If the template shows no known form, the model's form is unknown: the bare form needs no special tokens.
  const bool anything = (forms & formsOfAnything()) == formsOfAnything();
  const ReplyForms wanted = anything ? kFormBareJson : forms;
  for (const CallForm& form : kCallForms) {
    if ((form.forms & wanted) == form.forms) {
      return &form;
    }
  }
  return nullptr;
}

}  // namespace

bool hasCallGrammar(ReplyForms forms) { return preferredForm(forms) != nullptr; }

bool anyStrict(const JsonValue& tools) {
  const JsonValue* tool = tools.first();
  while (tool != nullptr && !isStrict(*tool)) {
    tool = tool->next();
  }
  return tool != nullptr;
}

Status readCallGrammar(const JsonValue& tools, ReplyForms forms, const Tokenizer* tokenizer,
                       CallChecks checks, const SchemaRules& rules, const Log& log,
                       Grammar* grammar, CallGrammar* calls) {
  const CallForm* const form = preferredForm(forms);
  if (form == nullptr) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "calls in this model's form cannot be held to a grammar: ask for no required "
                    "call, no strict tool and no schema beside the tools");
  }
  if (!tools.isArray() || tools.count() == 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "no tools to call: give a list of tools");
  }
  ExprId one = 0;
  CallReader reader(*form, forms, tokenizer, checks, rules, log, grammar);
  ORIEL_TRY(reader.call(tools, &one));
  if (grammar->work()->ended()) {
    return tooMuch(log, *grammar->work());
  }
  ExprId all = one;
  if (form->between != nullptr) {
    const RuleId rule = grammar->newRule();
    grammar->define(rule, one);
    one = grammar->rule(rule);
    all = grammar->sequence(
        one, grammar->repeat(grammar->sequence(reader.text(form->between), one), 0, kAnyTimes));
  }
  calls->trigger = form->trigger;
  calls->at_start = form->at_start;
  calls->behind =
      grammar->sequence(reader.text(form->open), grammar->sequence(all, reader.text(form->end)));
  calls->whole = grammar->sequence(reader.text(form->trigger), calls->behind);
  return grammar->failed() ? noMemory(log) : kOk;
}

namespace {

constexpr char kBehindKey[] = "\":1}";

/// Byte `at` of {"key":1}, without escapes: a key that needs escapes would be read differently. -1: past the end.
int argumentAt(const JsonText& key, size_t at) {
  const size_t behind = 2 + key.bytes;
  const char c = at == 0       ? '{'
                 : at == 1     ? '"'
                 : at < behind ? key.data[at - 2]
                               : kBehindKey[at < behind + 4 ? at - behind : 4];
  return at < behind + 4 ? static_cast<unsigned char>(c) : -1;
}

}  // namespace

CallTrial::CallTrial(ReplyForms forms, const JsonText& name, const JsonText* key)
    : name_(name), has_key_(key != nullptr), key_(has_key_ ? *key : JsonText()) {
  ReplySettings settings;
  settings.forms = forms;
  reader_.start(settings, onPart, this);
}

void CallTrial::push(const char* text) { push(text, std::strlen(text)); }

bool CallTrial::succeeds() {
  reader_.finish();
  const bool whole = !has_key_ ? at_ == 2 : argumentAt(key_, at_) < 0;
  return same_ && named_ && ended_ && whole && calls_ == 1;
}

void CallTrial::onPart(const ReplyPart& part, void* user) {
  CallTrial& self = *static_cast<CallTrial*>(user);
  switch (part.kind) {
    case PartKind::kText:
    case PartKind::kThought:
      self.same_ = false;
      return;
    case PartKind::kCallBegun:
      ++self.calls_;
      self.named_ = JsonText{part.text, part.bytes} == self.name_;
      return;
    case PartKind::kCallArguments:
      return self.compare(part.text, part.bytes);
    case PartKind::kCallEnded:
      self.ended_ = true;
      return;
  }
}

void CallTrial::compare(const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i, ++at_) {
    const int wanted = has_key_ ? argumentAt(key_, at_) : at_ == 0 ? '{' : '}';
    same_ = same_ && wanted == static_cast<unsigned char>(text[i]);
  }
}

bool isGemmaKey(const JsonText& key) {
  ValueReader reader;
  reader.start(ValueNotation::kGemma);
  struct Seen {
    const JsonText& key;
    size_t at = 0;
    bool same = true;
  } seen{key};
  const ByteSink out = {[](char byte, void* user) {
                          Seen& self = *static_cast<Seen*>(user);
                          self.same = self.same &&
                                      argumentAt(self.key, self.at++) == static_cast<uint8_t>(byte);
                        },
                        &seen};
  ValueStep step = reader.push('{', out);
  for (size_t i = 0; i < key.bytes && step == ValueStep::kMore; ++i) {
    step = reader.push(key.data[i], out);
  }
  for (const char c : {':', '1', '}'}) {
    step = step == ValueStep::kMore ? reader.push(c, out) : ValueStep::kWrong;
  }
  return step == ValueStep::kEnded && seen.same && argumentAt(key, seen.at) < 0;
}

}  // namespace oriel_internal
