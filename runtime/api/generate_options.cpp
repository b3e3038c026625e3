#include "api/generate_options.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/arena.h"
#include "exec/replier.h"
#include "grammar/grammar.h"
#include "json/json.h"
#include "options/settings.h"
#include "reply/call_values.h"
#include "text/unicode.h"

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

namespace {

constexpr float kDefaultTemperature = 0.7f;
constexpr uint32_t kDefaultTopK = 40;
constexpr float kDefaultTopP = 0.95f;
constexpr float kDefaultMinP = 0.05f;
constexpr uint32_t kDefaultRepeatWindow = 64;
constexpr float kDefaultXtcThreshold = 0.1f;
constexpr float kDefaultDryBase = 1.75f;
constexpr uint32_t kDefaultDryLength = 2;
constexpr const char* kDefaultDryBreakers[] = {"\n", ":", "\"", "*"};

Status checkCount(const char* what, uint64_t count, uint64_t most, const Log& log) {
  return count <= most ? kOk
                       : log.fail(ORIEL_ERROR_ARGUMENT, "%llu %s are asked for: give %llu at most",
                                  static_cast<unsigned long long>(count), what,
                                  static_cast<unsigned long long>(most));
}

Status checkNumbers(const ReplyChoices& options, const Log& log) {
  if (options.max_tokens != 0 && options.min_tokens > options.max_tokens) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "at least %u tokens are more than at most %u: ask for fewer, or allow more",
                    options.min_tokens, options.max_tokens);
  }
  return kOk;
}

Status checkText(const char* what, const char* text, size_t number, uint32_t most_bytes,
                 const Log& log) {
  size_t bytes = 0;
  while (text != nullptr && bytes <= most_bytes && text[bytes] != '\0') {
    ++bytes;
  }
  if (bytes == 0 || bytes > most_bytes) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "%s %zu has %s: give 1 to %u bytes", what, number + 1,
                    bytes == 0 ? "no bytes" : "too many bytes", most_bytes);
  }
  size_t bad = 0;
  return isValidUtf8(text, bytes, &bad)
             ? kOk
             : log.fail(ORIEL_ERROR_TEXT, "%s %zu is not valid UTF-8 at byte %zu: convert it first",
                        what, number + 1, bad);
}

Status checkStopTexts(const ReplyChoices& options, const Log& log) {
  for (size_t i = 0; i < options.stop_count; ++i) {
    ORIEL_TRY(checkText("stop text", options.stop[i], i, StopTexts::kMostBytes, log));
  }
  for (size_t i = 0; i < options.dry_breakers_count; ++i) {
    ORIEL_TRY(
        checkText("DRY breaker", options.dry_breakers[i], i, DryOptions::kMostBreakerBytes, log));
  }
  return kOk;
}

Status checkBiases(const ReplyChoices& options, uint32_t n_vocab, const Log& log) {
  static_assert(kMostBiases == Sampler::kMaxBiases && kMostStops == StopTexts::kMost,
                "as many as the sampler takes");
  for (size_t i = 0; i < options.logit_bias_count; ++i) {
    const LogitBias& bias = options.logit_bias[i];
    if (bias.id < 0 || static_cast<uint32_t>(bias.id) >= n_vocab) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "the logit bias of token %d is outside the vocabulary: use ids from 0 to %u",
                      bias.id, n_vocab - 1);
    }
    if (!std::isfinite(bias.bias) && bias.bias != -INFINITY) {
      return log.fail(
          ORIEL_ERROR_ARGUMENT,
          "the logit bias of token %d is %g: give a number, or minus infinity for never", bias.id,
          double{bias.bias});
    }
  }
  return kOk;
}

// The text of a token in a reply. Control tokens have no text.
TokenText textOf(int32_t id, const void* tokenizer) {
  const Tokenizer::Piece piece = static_cast<const Tokenizer*>(tokenizer)->piece(id, false);
  return {piece.data, piece.bytes};
}

DryOptions dryOptions(const oriel_model& model, const ReplyChoices& options) {
  DryOptions dry;
  dry.multiplier = options.dry_multiplier;
  dry.base = options.dry_base != 0 ? options.dry_base : kDefaultDryBase;
  dry.allowed_length =
      options.dry_allowed_length != 0 ? options.dry_allowed_length : kDefaultDryLength;
  dry.window = options.dry_window != 0 ? options.dry_window : SamplerState::kRecentTokens;
  const bool given = options.dry_breakers_count != 0;
  dry.breakers = given ? options.dry_breakers : kDefaultDryBreakers;
  dry.n_breakers =
      static_cast<uint32_t>(given ? options.dry_breakers_count : std::size(kDefaultDryBreakers));
  dry.text_of = textOf;
  dry.text_user = model.tokenizer;
  return dry;
}

}  // namespace

Status takeReplyOptions(const oriel_reply_options* given, const Log& log, ReplyChoices* options) {
  *options = {};
  oriel_reply_options front;
  ORIEL_TRY(takeOptions(given, "oriel_reply_options", log, &front));
  options->max_tokens = front.max_tokens;
  options->greedy = front.greedy;
  options->temperature = front.temperature;
  options->seed = front.seed;
  options->on_part = front.on_part;
  options->part_user = front.part_user;
  options->on_logits = front.on_logits;
  options->logits_user = front.logits_user;
  ORIEL_TRY(checkCount("stop texts", front.stop_count, kMostStops, log));
  if (front.stop == nullptr && front.stop_count != 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a count of stop texts without the texts: give both");
  }
  std::copy_n(front.stop, front.stop_count, options->stop);
  options->stop_count = front.stop_count;
  ORIEL_TRY(applyText(OptionScope::kReply, "schema", front.schema, log, options));
  ORIEL_TRY(applySettings(OptionScope::kReply, front.settings, front.setting_count, log, options,
                          nullptr));
  return checkRanges(OptionScope::kReply, options, log);
}

Status readGenerateOptions(const oriel_model& model, const ReplyChoices& options, const Log& log,
                           GenerateSettings* settings) {
  ORIEL_TRY(checkNumbers(options, log));
  ORIEL_TRY(checkStopTexts(options, log));
  ORIEL_TRY(checkBiases(options, model.desc.n_vocab, log));
  settings->drafts = options.draft == DraftChoice::kAlways  ? DraftUse::kAlways
                     : options.draft == DraftChoice::kNever ? DraftUse::kNever
                                                            : DraftUse::kAsItPays;
  const auto orDefault = [](auto value, auto by_default) {
    return value != 0 ? value : by_default;
  };
  SamplerOptions& sampling = settings->sampling;
  sampling.greedy = options.greedy != 0;
  sampling.temperature = orDefault(options.temperature, kDefaultTemperature);
  sampling.top_k = orDefault(options.top_k, kDefaultTopK);
  sampling.top_p = orDefault(options.top_p, kDefaultTopP);
  sampling.min_p = orDefault(options.min_p, kDefaultMinP);
  sampling.repeat_penalty = orDefault(options.repeat_penalty, 1.0f);
  sampling.presence_penalty = options.presence_penalty;
  sampling.frequency_penalty = options.frequency_penalty;
  sampling.repeat_window = orDefault(options.repeat_window, kDefaultRepeatWindow);
  sampling.typical_p = orDefault(options.typical_p, 1.0f);
  sampling.top_n_sigma = options.top_n_sigma;
  sampling.xtc_probability = options.xtc_probability;
  sampling.xtc_threshold = orDefault(options.xtc_threshold, kDefaultXtcThreshold);
  sampling.dry = dryOptions(model, options);
  sampling.biases = options.logit_bias;
  sampling.n_biases = static_cast<uint32_t>(options.logit_bias_count);
  sampling.seed = options.seed != 0 ? options.seed : entropy();
  settings->max_tokens = options.max_tokens;
  settings->min_tokens = options.min_tokens;
  settings->max_thought_tokens = options.max_thought_tokens == 0 ? ThoughtCap::kUnlimited
                                 : options.max_thought_tokens == UINT32_MAX
                                     ? 0
                                     : options.max_thought_tokens;
  settings->ignore_stop = options.ignore_stop != 0;
  settings->stop = options.stop;
  settings->n_stop = options.stop_count;
  settings->logprobs = options.logprobs != 0;
  settings->top_logprobs = options.top_logprobs;
  settings->on_part = options.on_part;
  settings->part_user = options.part_user;
  settings->value_parts = options.value_parts != 0;
  settings->on_logits = options.on_logits;
  settings->logits_user = options.logits_user;
  settings->reads_calls = options.tool_choice != ToolChoice::kNone;
  return kOk;
}

namespace {

constexpr size_t kMostCheckBytes = size_t{64} << 20;

// A text member, NUL-terminated as options require. Null: out of memory.
char* copyOf(const JsonText& value, Scratch* scratch) {
  char* const copy = scratch->take<char>(uint64_t{value.bytes} + 1);
  if (copy != nullptr) {
    std::memcpy(copy, value.data, value.bytes);
    copy[value.bytes] = '\0';
  }
  return copy;
}

Status readOptions(const JsonValue& given, const Log& log, Scratch* scratch,
                   ReplyChoices* options) {
  if (!given.isObject()) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "reply options are not an object: write {\"schema\": ...}");
  }
  for (const JsonValue* each = given.first(); each != nullptr; each = each->next()) {
    if (!each->isString()) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "a reply option is not a text: write it as a text");
    }
    const oriel_setting setting = {copyOf(each->key(), scratch), copyOf(each->text(), scratch)};
    if (setting.name == nullptr || setting.value == nullptr) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for reply options: close other apps");
    }
    ORIEL_TRY(applySettings(OptionScope::kReply, &setting, 1, log, options, nullptr));
  }
  return kOk;
}

// True for an error in the request, false for a system failure.
bool isRefusal(oriel_status code) {
  return code == ORIEL_ERROR_ARGUMENT || code == ORIEL_ERROR_UNSUPPORTED ||
         code == ORIEL_ERROR_TEXT || code == ORIEL_ERROR_FORMAT || code == ORIEL_ERROR_STATE;
}

}  // namespace

oriel_status renderCheck(const oriel_model& model, const ChatChoice& chat, const char* json,
                         size_t bytes, char* text, size_t capacity, size_t* needed) {
  Scratch scratch(model.allocator, kMostCheckBytes);
  const JsonValue* given = nullptr;
  ReplyChoices options = {};
  if (const Status status =
          parseJson(json, bytes, "the reply options", {}, model.log, &scratch, &given);
      !status.ok()) {
    return status.code();
  }
  if (const Status status = readOptions(*given, model.log, &scratch, &options); !status.ok()) {
    return status.code();
  }
  JsonWriter out(text, capacity);
  out.object();
  out.list("unchecked_tools");
  ErrorLine line;
  const Log log = {nullptr, nullptr, &line};
  const Status status = checkConstraint(
      model, chat, options, log,
      [](const JsonText& name, void* user) { static_cast<JsonWriter*>(user)->text(nullptr, name); },
      &out);
  if (!status.ok() && !isRefusal(status.code())) {
    return model.log.fail(status.code(), "%s", line.text()).code();
  }
  out.end();
  status.ok() ? out.null("error") : out.text("error", line.text());
  out.end();
  return out.finish(needed);
}

}  // namespace oriel_internal
