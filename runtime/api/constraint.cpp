#include "api/constraint.h"
#include "api/generate_options.h"

#include <cstring>

#include "base/scratch.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "json/json.h"
#include "reply/call_grammar.h"
#include "text/utf8.h"

namespace oriel_internal {
namespace {

// Working memory for one schema or grammar. Large ones need a tenth of it.
constexpr size_t kMostCompileBytes = size_t{64} << 20;

// The source of tools and forms, and the callback for unchecked tools.
struct Source {
  const oriel_model& model;
  ReplyForms forms = 0;
  JsonText tools;
  StopCheck stop;
  Log log;
  IgnoredKeywords* ignored = nullptr;  // for the reply; null: not reported
  void (*tell)(const JsonText& name, void* user) = nullptr;
  void* user = nullptr;
};

// The compiled constraint and the point in the reply where it starts.
struct Held {
  bool constrained = false;
  const char* trigger = nullptr;
  bool again = false;
  const JsonValue* tools = nullptr;  // set while the grammar is read; records unchecked arguments
};

bool hasForm(const ReplyChoices& options) {
  return options.json_schema != nullptr || options.grammar != nullptr;
}

bool checksCalls(const ReplyChoices& options) {
  return options.tool_choice == ToolChoice::kChecked ||
         options.tool_choice == ToolChoice::kRequired;
}

Status checkTexts(const ReplyChoices& options, const Log& log) {
  if (options.json_schema != nullptr && options.grammar != nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a reply matches \"schema\" or \"grammar\", not both: leave one out");
  }
  if (options.trigger == nullptr) {
    return kOk;
  }
  if (checksCalls(options)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "checked tool calls have a trigger of their own: leave \"trigger\" out");
  }
  const size_t bytes = std::strlen(options.trigger);
  size_t bad = 0;
  if (bytes == 0 || bytes > kMostTriggerBytes) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a trigger has 1 to %zu bytes, not %zu: choose another",
                    kMostTriggerBytes, bytes);
  }
  if (!isValidUtf8(options.trigger, bytes, &bad)) {
    return log.fail(ORIEL_ERROR_TEXT, "the trigger is not UTF-8 at byte %zu: correct it", bad);
  }
  if (!hasForm(options)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a trigger without a schema or a grammar: give a schema or a grammar");
  }
  return kOk;
}

// The schema rules: a reply's form may have unlisted members, arguments of tools may not.
SchemaRules rulesOf(const ReplyChoices& options, const Source& source, bool of_tools) {
  return {options.strict_schema != 0, options.open_objects != 0 && !of_tools, source.ignored};
}

void reportIgnored(const IgnoredKeywords* ignored, const Log& log) {
  if (ignored != nullptr && !ignored->isEmpty()) {
    log.write(ORIEL_LOG_WARNING,
              "replies are not held to these parts of the schema: %s: leave them out, or set "
              "\"strict_schema\" to have them refused",
              ignored->json());
  }
}

/// The schema or the grammar as one expression.
Status readForm(const ReplyChoices& options, const Source& source, Grammar* grammar, ExprId* form) {
  if (options.grammar != nullptr) {
    ORIEL_TRY(readGbnf(options.grammar, options.grammar_bytes, source.log, grammar));
    *form = grammar->rule(grammar->root());
    return kOk;
  }
  const JsonValue* schema = nullptr;
  ORIEL_TRY(parseJson(options.json_schema, options.json_schema_bytes, "the schema", source.stop,
                      source.log, grammar->scratch(), &schema));
  grammar->work()->allow(options.json_schema_bytes);
  return readJsonSchema(*schema, *schema, rulesOf(options, source, false), source.log, grammar,
                        form);
}

// Several calls in sequence, separated by white space.
ExprId severalCalls(const CallGrammar& calls, Grammar* grammar) {
  constexpr CharRange kSpace[] = {{' ', ' '}, {'\n', '\n'}};
  const RuleId one = grammar->newRule();
  grammar->define(one, calls.whole);
  const ExprId space = grammar->repeat(grammar->chars(kSpace, 2), 0, 2);
  const ExprId more = grammar->sequence(space, grammar->rule(one));
  return grammar->sequence(grammar->rule(one), grammar->repeat(more, 0, kAnyTimes));
}

// Calls of the conversation's tools, in the form of its template. With a schema or a grammar the reply is either calls
// or an answer of that form. Both start at the first token, so no trigger is needed.
Status readCalls(const ReplyChoices& options, const Source& source, CallChecks checks,
                 Grammar* grammar, ExprId* root, Held* held) {
  const Log& log = source.log;
  if (source.tools.bytes == 0) {
    return log.fail(ORIEL_ERROR_STATE, "no tools to call: give tools to the session (\"tools\")");
  }
  const JsonValue* tools = nullptr;
  ORIEL_TRY(readTools(source.tools, source.stop, log, grammar->scratch(), &tools));
  grammar->work()->allow(source.tools.bytes);
  const bool required = options.tool_choice == ToolChoice::kRequired;
  CallGrammar calls;
  if (tools != nullptr && !required && !hasForm(options) && !hasCallGrammar(source.forms) &&
      !anyStrict(*tools)) {
    for (const JsonValue* tool = tools->first(); tool != nullptr; tool = tool->next()) {
      const_cast<JsonValue*>(tool)->note();  // read for this call
    }
  } else {
    const JsonValue none;
    const SchemaRules rules = rulesOf(options, source, true);
    ORIEL_TRY(readCallGrammar(tools != nullptr ? *tools : none, source.forms,
                              source.model.tokenizer, checks, rules, log, grammar, &calls));
    held->constrained = true;
  }
  held->tools = tools;
  if (!held->constrained || required) {
    *root = calls.whole;
    return kOk;
  }
  if (!hasForm(options)) {
    *root = calls.behind;
    held->trigger = calls.trigger;
    held->again = true;
    return kOk;
  }
  ExprId form = grammar->never();
  ORIEL_TRY(readForm(options, source, grammar, &form));
  *root = grammar->choice(severalCalls(calls, grammar), form);
  return kOk;
}

void tellUnchecked(const Source& source, const JsonValue* tools) {
  const JsonValue* tool = source.tell != nullptr && tools != nullptr ? tools->first() : nullptr;
  for (; tool != nullptr; tool = tool->next()) {
    if (tool->noted()) {
      source.tell(tool->find("function")->find("name")->text(), source.user);
    }
  }
}

Status compileOnce(const ReplyChoices& options, const Source& source, CallChecks checks,
                   Constraint* constraint, Held* held) {
  *held = Held();
  if (source.ignored != nullptr) {
    source.ignored->clear();
  }
  Scratch scratch(source.model.allocator, kMostCompileBytes);
  Grammar grammar(&scratch, source.stop);
  ExprId expression = grammar.never();
  if (checksCalls(options)) {
    ORIEL_TRY(readCalls(options, source, checks, &grammar, &expression, held));
  } else {
    ORIEL_TRY(readForm(options, source, &grammar, &expression));
    held->constrained = true;
    held->trigger = options.trigger;
  }
  if (held->constrained) {
    const RuleId root = grammar.newRule();
    grammar.define(root, expression);
    grammar.setRoot(root);
    ORIEL_TRY(constraint->compile(grammar, -1, source.log));
  }
  reportIgnored(source.ignored, source.log);
  tellUnchecked(source, held->tools);
  held->tools = nullptr;
  return kOk;
}

// Log of an attempt that may be repeated: passes warnings on and drops errors.
void passWarning(oriel_log_level level, const char* message, void* user) {
  if (level != ORIEL_LOG_ERROR) {
    static_cast<const Log*>(user)->write(level, "%s", message);
  }
}

// If the schemas of all tools together are too large, only strict tools are constrained.
Status compile(const ReplyChoices& options, const Source& source, Constraint* constraint,
               Held* held) {
  if (!checksCalls(options)) {
    return compileOnce(options, source, CallChecks::kAll, constraint, held);
  }
  Source attempt = source;
  attempt.log = {passWarning, const_cast<Log*>(&source.log)};
  const Status status = compileOnce(options, attempt, CallChecks::kAll, constraint, held);
  if (status.ok()) {
    return kOk;
  }
  const bool too_much = status.code() == ORIEL_ERROR_UNSUPPORTED;
  return compileOnce(options, source, too_much ? CallChecks::kStrict : CallChecks::kAll, constraint,
                     held);
}

}  // namespace

Status readConstraint(const oriel_model& model, const ReplyChoices& options, Session* session,
                      GenerateSettings* settings) {
  const SessionContext& context = session->facts().context;
  ORIEL_TRY(checkTexts(options, context.log));
  if (!hasForm(options) && !checksCalls(options)) {
    return kOk;
  }
  if (session->replier().constrained() == nullptr) {
    return context.log.fail(
        ORIEL_ERROR_STATE,
        "the model was loaded without constraints: load it with \"constraints\"");
  }
  const Source source = {model,
                         context.forms,
                         context.settings.tools,
                         session->call().stop(),
                         context.log,
                         &session->replier().constrained()->ignored(),
                         nullptr,
                         nullptr};
  Held held;
  ORIEL_TRY(compile(options, source, &session->replier().constrained()->constraint(), &held));
  settings->constrained = held.constrained;
  settings->trigger = held.trigger;
  settings->trigger_bytes = held.trigger != nullptr ? std::strlen(held.trigger) : 0;
  settings->trigger_again = held.again;
  return kOk;
}

Status checkConstraint(const oriel_model& model, const ChatChoice& chat,
                       const ReplyChoices& options, const Log& log,
                       void (*tell)(const JsonText& name, void* user), void* user) {
  ORIEL_TRY(checkTexts(options, log));
  if (!hasForm(options) && !checksCalls(options)) {
    return kOk;
  }
  if (model.trie == nullptr) {
    return log.fail(ORIEL_ERROR_STATE,
                    "the model was loaded without constraints: load it with \"constraints\"");
  }
  Arena measure;
  (void)Constraint::create(model.desc.n_vocab, nullptr, nullptr, &measure);
  void* const block = allocateZeroed(model.allocator, measure.used());
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to compile a grammar: close other apps");
  }
  Arena arena(block, measure.used());
  Constraint* const constraint =
      Constraint::create(model.desc.n_vocab, model.tokenizer, model.trie, &arena);
  const Source source = {model, chat.forms, chat.settings.tools, {}, log, nullptr, tell, user};
  Held held;
  const Status status = compile(options, source, constraint, &held);
  constraint->release();
  release(model.allocator, block, measure.used());
  return status;
}

}  // namespace oriel_internal
