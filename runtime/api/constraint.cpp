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

/// Of one schema or grammar: what large ones take is a tenth of it.
constexpr size_t kMostCompileBytes = size_t{64} << 20;

Status checkTexts(const ReplyChoices& options, const Log& log) {
  if (options.json_schema != nullptr && options.grammar != nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a reply matches \"schema\" or \"grammar\", not both: leave one out");
  }
  if (options.trigger == nullptr) {
    return kOk;
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
  if (options.json_schema == nullptr && options.grammar == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a trigger without a schema or a grammar: give one of them");
  }
  return kOk;
}

// Starts a new list of ignored keywords. The arguments of tools have no members that their schemas do not list.
SchemaRules rulesOf(const ReplyChoices& options, bool of_tools, Session* session) {
  IgnoredKeywords& ignored = session->replier().constrained()->ignored();
  ignored.clear();
  return {options.strict_schema != 0, options.open_objects != 0 && !of_tools, &ignored};
}

void reportIgnored(const IgnoredKeywords& ignored, const Log& log) {
  if (!ignored.isEmpty()) {
    log.write(ORIEL_LOG_WARNING,
              "replies are not held to these parts of the schema: %s: leave them out, or set "
              "\"strict_schema\" to have them refused",
              ignored.json());
  }
}

Status readGrammar(const ReplyChoices& options, const SchemaRules& rules, Session* session,
                   Scratch* scratch, Grammar* grammar) {
  const Log& log = session->context().log;
  if (options.grammar != nullptr) {
    return readGbnf(options.grammar, options.grammar_bytes, log, grammar);
  }
  const JsonValue* schema = nullptr;
  ORIEL_TRY(parseJson(options.json_schema, options.json_schema_bytes, "the schema",
                      session->call().stop(), log, scratch, &schema));
  grammar->work()->allow(options.json_schema_bytes);
  ExprId expression = 0;
  ORIEL_TRY(readJsonSchema(*schema, *schema, rules, log, grammar, &expression));
  const RuleId root = grammar->newRule();
  grammar->define(root, expression);
  grammar->setRoot(root);
  return kOk;
}

// Calls of the conversation's tools, in the form of its template.
Status readToolCalls(const oriel_model& model, bool required, const SchemaRules& rules,
                     Session* session, Grammar* grammar, GenerateSettings* settings) {
  const SessionContext& context = session->context();
  if (context.settings.tools.bytes == 0) {
    return context.log.fail(ORIEL_ERROR_STATE,
                            "there are no tools to call: give them to the session (\"tools\")");
  }
  const JsonValue* tools = nullptr;
  ORIEL_TRY(readTools(context.settings.tools, session->call().stop(), context.log,
                      grammar->scratch(), &tools));
  grammar->work()->allow(context.settings.tools.bytes);
  CallGrammar calls;
  ORIEL_TRY(
      readCallGrammar(*tools, context.forms, model.tokenizer, rules, context.log, grammar, &calls));
  reportIgnored(*rules.ignored, context.log);
  const RuleId root = grammar->newRule();
  grammar->define(root, required ? calls.whole : calls.behind);
  grammar->setRoot(root);
  ORIEL_TRY(session->replier().constrained()->constraint().compile(*grammar, -1, context.log));
  settings->constrained = true;
  settings->trigger = required ? nullptr : calls.trigger;
  settings->trigger_bytes = required ? 0 : std::strlen(calls.trigger);
  settings->trigger_again = true;
  return kOk;
}

}  // namespace

Status readConstraint(const oriel_model& model, const ReplyChoices& options, Session* session,
                      GenerateSettings* settings) {
  const Log& log = session->context().log;
  ORIEL_TRY(checkTexts(options, log));
  const ToolChoice choice = options.tool_choice;
  const bool checks = choice == ToolChoice::kChecked || choice == ToolChoice::kRequired;
  if (options.json_schema == nullptr && options.grammar == nullptr && !checks) {
    return kOk;
  }
  if (checks && (options.json_schema != nullptr || options.grammar != nullptr)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a reply has to match a schema, a grammar or its tools: leave the others out");
  }
  if (session->replier().constrained() == nullptr) {
    return log.fail(ORIEL_ERROR_STATE,
                    "the model was loaded without constraints: load it with \"constraints\"");
  }
  Scratch scratch(model.allocator, kMostCompileBytes);
  Grammar grammar(&scratch, session->call().stop());
  const SchemaRules rules = rulesOf(options, checks, session);
  if (checks) {
    return readToolCalls(model, choice == ToolChoice::kRequired, rules, session, &grammar,
                         settings);
  }
  ORIEL_TRY(readGrammar(options, rules, session, &scratch, &grammar));
  reportIgnored(*rules.ignored, log);
  ORIEL_TRY(session->replier().constrained()->constraint().compile(grammar, -1, log));
  settings->constrained = true;
  settings->trigger = options.trigger;
  settings->trigger_bytes = options.trigger != nullptr ? std::strlen(options.trigger) : 0;
  return kOk;
}

}  // namespace oriel_internal
