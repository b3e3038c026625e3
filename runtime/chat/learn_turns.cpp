// Finds the text that closes messages of a template, once, from short conversations.
#include <algorithm>
#include <cstring>

#include "chat/prepare.h"
#include "chat/turn.h"

namespace oriel_internal {
namespace {

void set(TurnEnds* ends, Role role, const JsonText& text) {
  const size_t bytes =
      text.bytes > TurnEnds::kMost ? wholeMarks(text.data, TurnEnds::kMost) : text.bytes;
  const auto i = static_cast<uint32_t>(role);
  ends->bytes[i] = static_cast<uint8_t>(bytes);
  std::copy_n(text.data, bytes, ends->text[i]);
}

class ClosingLearner : private Renderer {
 public:
  ClosingLearner(TemplateRun* run, const LearnedTemplate& learned, const Log& log)
      : Renderer(run, learned), log_(log) {}

  /// Learns the closings of answers and system messages. The text between two messages is a closing and an opening; a
  /// question's opening also precedes the first message.
  Status learnClosings(TurnEnds* ends) {
    JinjaOutput alone;
    JinjaOutput first;
    JinjaOutput later;
    Status status = renderQuietly(talkOf({"user"}), false, &alone);
    status =
        status.ok() ? renderQuietly(talkOf({"user", "assistant", "user"}), false, &later) : status;
    const Span answer = spanOf(later, 1);
    const Span next = spanOf(later, 2);
    const Span question_alone = spanOf(alone, 0);
    if (status.ok() && question_alone.found() && answer.found() && next.found() &&
        answer.end <= next.begin) {
      const JsonText between = {later.text + answer.end, next.begin - answer.end};
      const JsonText after = ends->of(Role::kAssistant);
      const size_t opening = commonEnd({alone.text, question_alone.begin}, between);
      const bool whole = after.bytes != 0 && beginsWith(between, after);
      const size_t closing = whole ? after.bytes : between.bytes - opening;
      set(ends, Role::kAssistant, {between.data, closing});
      status = renderQuietly(talkOf({"system", "user"}), false, &first);
      const Span system = spanOf(first, 0);
      const Span question = spanOf(first, 1);
      if (status.ok() && system.found() && question.found() && system.end <= question.begin) {
        const JsonText open = {between.data + closing, between.bytes - closing};
        const JsonText gap = {first.text + system.end, question.begin - system.end};
        const bool opens = open.bytes != 0 && commonEnd(gap, open) == open.bytes;
        ends->system_joins = !opens && open.bytes != 0;
        set(ends, Role::kSystem, {gap.data, gap.bytes - (opens ? open.bytes : 0)});
      }
    }
    return run_.scratch()->noMemory()               ? noTemplateMemory(log_)
           : status.code() == ORIEL_ERROR_CANCELLED ? status
                                                    : Status(kOk);
  }

  /// The text that closes the last message. Errors are not logged.
  Status closing(JsonMade* messages, JsonText* end) {
    ORIEL_TRY(textAfter(messages, false, end));
    const JsonText& eos = run_.settings().eos;
    JsonText longer;
    if (!endsWith(*end, eos)) {
      return kOk;
    }
    ORIEL_TRY(textAfter(messages, true, &longer));
    if (beginsWith(longer, *end)) {
      return kOk;
    }
    // This EOS ends the whole text, not a message.
    end->bytes -= eos.bytes;
    if (end->bytes == 0 && beginsWith(longer, learned_.ends.of(Role::kUser))) {
      *end = learned_.ends.of(Role::kUser);
    }
    return kOk;
  }

 private:
  Status textAfter(JsonMade* messages, bool generation, JsonText* end) {
    JinjaOutput out;
    ORIEL_TRY(renderQuietly(messages, generation, &out));
    const Span span = spanOf(out, messages->count() - 1);
    *end = span.found() ? JsonText{out.text + span.end, out.bytes - span.end} : JsonText{};
    return kOk;
  }

  const Log log_;
};

}  // namespace

JsonMade* standInCall(JsonBuilder* make, const JsonText& id, const JsonText& name) {
  JsonMade* const function = make->object();
  make->set(function, "name", make->text(name));
  make->set(function, "arguments", make->object());
  JsonMade* const call = make->object();
  make->set(call, "type", make->text("function"));
  make->set(call, "id", make->text(id));
  make->set(call, "function", function);
  return call;
}

Status learnTemplate(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                     const oriel_allocator& allocator, LearnedTemplate* out) {
  *out = {};
  ORIEL_TRY(learnFacts(settings, stop, log, allocator, &out->facts));
  Scratch scratch(allocator, templateScratchBytes(settings.bytes()));
  TemplateRun run(settings, stop, log, &scratch);
  ORIEL_TRY(run.read());
  JsonBuilder make(&scratch);
  JsonMade* const answer = make.message("assistant", "");
  JsonMade* const calls = make.list();
  make.append(calls, standInCall(&make, kStandInCall, kStandIn));
  make.set(answer, "tool_calls", calls);
  JsonMade* const result = make.message("tool", kStandIn);
  make.set(result, "tool_call_id", make.text(kStandInCall));
  make.set(result, "name", make.text(kStandIn));
  const JsonValue* const conversations[kRoles][4] = {
      {},
      {},
      {make.message("user", kStandIn)},
      {make.message("user", kStandIn), make.message("assistant", kStandIn)},
      {make.message("user", kStandIn), answer, result},
  };
  for (uint32_t role = 2; role < kRoles; ++role) {
    const Scratch::Place place = scratch.place();
    JsonMade* const list = make.list();
    for (const JsonValue* const* one = conversations[role]; *one != nullptr; ++one) {
      make.append(list, make.copyOf(**one));
    }
    JsonText end;
    const Status status = ClosingLearner(&run, *out, log).closing(list, &end);
    if (status.code() == ORIEL_ERROR_CANCELLED) {
      return status;
    }
    if (scratch.noMemory()) {
      return noTemplateMemory(log);  // distinct from "nothing closes the message"
    }
    if (!status.ok() && status.code() != ORIEL_ERROR_ARGUMENT) {
      return kOk;  // too many steps or too much memory: the other trials would need as much
    }
    set(&out->ends, static_cast<Role>(role), end);
    scratch.releaseTo(place);
  }
  return ClosingLearner(&run, *out, log).learnClosings(&out->ends);
}

// Learns a template's needs by trial renderings.

namespace {

struct Trial {
  const char* messages;  ///< JSON
  const char* words[6];  ///< words in the messages that the template must write
  bool calls = false;    ///< with tools; a call's name and key may appear twice
};
constexpr size_t kWords = sizeof(Trial::words) / sizeof(Trial::words[0]);

constexpr Trial kQuestion = {R"([{"role": "user", "content": "qamber"}])", {"qamber"}};
constexpr Trial kParts = {
    R"([{"role": "user", "content": [{"type": "text", "text": "qamber"}, {"type": "text", "text": "qbirch"}]},
{"role": "assistant", "content": [{"type": "text", "text": "qcedar"}]}, {"role": "user", "content": "qdogwood"}])",
    {"qamber", "qbirch", "qcedar", "qdogwood"}};
constexpr Trial kWithSystem = {
    R"([{"role": "system", "content": "qamber"}, {"role": "user", "content": "qbirch"}])",
    {"qamber", "qbirch"}};
constexpr Trial kSecondSystem = {
    R"([{"role": "system", "content": "qamber"}, {"role": "system", "content": "qbirch"},
{"role": "user", "content": "qcedar"}])",
    {"qamber", "qbirch", "qcedar"}};
constexpr Trial kLateSystem = {
    R"([{"role": "system", "content": "qamber"}, {"role": "user", "content": "qbirch"},
{"role": "assistant", "content": "qcedar"}, {"role": "system", "content": "qdogwood"}, {"role": "user", "content": "qelder"}])",
    {"qamber", "qbirch", "qcedar", "qdogwood", "qelder"}};
constexpr Trial kDeveloper = {
    R"([{"role": "developer", "content": "qamber"}, {"role": "user", "content": "qbirch"}])",
    {"qamber", "qbirch"}};
constexpr char kResultWord[] = "qhazel";
constexpr Trial kCalls = {
    R"([{"role": "user", "content": "qamber"}, {"role": "assistant", "content": null, "tool_calls":
[{"id": "call_0123456789abcdef", "type": "function", "function": {"name": "qelder", "arguments": "{\"qfir\": \"qgorse\"}"}}]},
{"role": "tool", "tool_call_id": "call_0123456789abcdef", "name": "qelder", "content": "qhazel"}])",
    {"qelder", "qfir", "qamber", "qgorse", kResultWord},
    true};
constexpr Trial kOffer = {kQuestion.messages, {"qamber"}, true};
constexpr char kTrialTools[] =
    R"([{"type": "function", "function": {"name": "qelder", "description": "It grows.", "parameters":
{"type": "object", "properties": {"qfir": {"type": "string", "description": "It grows."}}, "required": ["qfir"]}}}])";

enum class Outcome : uint8_t { kWritten, kLost, kLostResult, kRefused };

/// How often a word of the messages (not of the tools) appears in the output.
size_t timesWritten(const JinjaOutput& out, const char* word) {
  const size_t bytes = std::strlen(word);
  size_t times = 0;
  for (size_t i = 0; i < out.n_ranges; ++i) {
    const SourceRange& range = out.ranges[i];
    const char* at = out.text + range.begin;
    const char* const end = out.text + range.end;
    while (range.source < kToolsSource && (at = std::search(at, end, word, word + bytes)) != end) {
      ++times;
      at += bytes;
    }
  }
  return times;
}

class Learner {
 public:
  Learner(const TemplateSettings& settings, const StopCheck& stop, Scratch* scratch)
      : plain_(settings), tools_(settings), stop_(stop), scratch_(*scratch) {
    tools_.tools = {kTrialTools, sizeof kTrialTools - 1};
  }

  TemplateFacts learn() {
    TemplateFacts facts;
    facts.call_spelling = callSpellingOf(plain_.text);
    if (run(kQuestion, facts) != Outcome::kWritten) {
      facts.parts_only = true;
      if (run(kQuestion, facts) != Outcome::kWritten) {
        return {};
      }
    }
    facts.takes_parts = !facts.parts_only && holds(kParts, facts, &TemplateFacts::takes_parts);
    facts.no_system = run(kWithSystem, facts) != Outcome::kWritten;
    // If the template raises an error, its message is the error.
    facts.loses_second = !facts.no_system && run(kSecondSystem, facts) == Outcome::kLost;
    facts.loses_late = !facts.no_system && run(kLateSystem, facts) == Outcome::kLost;
    facts.no_developer = run(kDeveloper, facts) != Outcome::kWritten;
    return learnCalls(facts);
  }
  bool cancelled() const { return cancelled_; }

 private:
  bool holds(const Trial& trial, TemplateFacts facts, bool TemplateFacts::*fact) {
    facts.*fact = true;
    return run(trial, facts) == Outcome::kWritten;
  }

  TemplateFacts learnCalls(const TemplateFacts& facts) {
    struct Way {
      bool null_content, text_arguments, short_ids;
    };
    constexpr Way kWays[] = {{false, false, false}, {false, false, true}, {false, true, false},
                             {true, true, false},   {true, false, false}, {false, true, true}};
    const bool knows_calls = templateContains(plain_.text.data, plain_.text.bytes, "tool_calls");
    TemplateFacts tried = facts;
    for (const Way& way : kWays) {
      tried.null_content = way.null_content;
      tried.text_arguments = way.text_arguments;
      tried.short_ids = way.short_ids;
      Outcome outcome = run(kCalls, tried);
      if (&way == kWays && outcome == Outcome::kRefused && run(kOffer, facts) == outcome) {
        offers_ = false;  // the template fails because of the tools
        outcome = run(kCalls, tried);
      }
      tried.no_results = outcome == Outcome::kLostResult;
      if (outcome == Outcome::kWritten || outcome == Outcome::kLostResult) {
        tried.null_content =
            tried.null_content || (!tried.no_results && emptyAnswerIsWritten(tried));
        return tried;
      }
      if (!knows_calls) {
        break;
      }
    }
    tried = facts;
    tried.no_calls = true;
    if (run(kCalls, tried) != Outcome::kWritten) {
      tried.no_results = true;
      if (run(kCalls, tried) != Outcome::kWritten) {
        return facts;
      }
    }
    return tried;
  }

  /// Some templates close an empty answer next to calls for "", but not for null.
  bool emptyAnswerIsWritten(TemplateFacts facts) {
    const size_t bytes = written_bytes_;
    facts.null_content = true;
    return run(kCalls, facts) == Outcome::kWritten && written_bytes_ < bytes;
  }

  Outcome run(const Trial& trial, const TemplateFacts& facts) {
    if (given_up_) {
      return Outcome::kRefused;
    }
    const Scratch::Place place = scratch_.place();
    TemplateRun run(trial.calls && offers_ ? tools_ : plain_, stop_, Log(), &scratch_);
    const JsonValue* messages = nullptr;
    JinjaOutput out;
    Status status = run.read();
    if (status.ok()) {
      status = parseJson(trial.messages, std::strlen(trial.messages), "a trial", Log(), &scratch_,
                         &messages);
    }
    if (status.ok()) {
      status = prepareMessages(facts, *messages, &scratch_, Log(), &messages);
    }
    if (status.ok()) {
      status = run.render(*messages, false, &out);
    }
    const Outcome outcome = status.ok() ? outcomeOf(trial, out) : Outcome::kRefused;
    cancelled_ = cancelled_ || status.code() == ORIEL_ERROR_CANCELLED;
    // Too many steps or too much memory: a real conversation will fail, too.
    given_up_ = !status.ok() && status.code() != ORIEL_ERROR_ARGUMENT;
    written_bytes_ = out.bytes;
    scratch_.releaseTo(place);
    return outcome;
  }

  static Outcome outcomeOf(const Trial& trial, const JinjaOutput& out) {
    Outcome outcome = Outcome::kWritten;
    for (size_t i = 0; i < kWords && trial.words[i] != nullptr; ++i) {
      const size_t times = timesWritten(out, trial.words[i]);
      const bool right = times == 1 || (times > 1 && trial.calls && i < 2);
      if (!right) {
        outcome = trial.words[i] == kResultWord && outcome == Outcome::kWritten
                      ? Outcome::kLostResult
                      : Outcome::kLost;
      }
    }
    // A part or arguments, as Python or JSON writes them inside another text.
    for (const char* raw : {"'type'", "\"type\"", "'qfir'", "\\\"qfir"}) {
      outcome =
          timesWritten(out, raw) != 0 && (trial.calls == (std::strstr(raw, "qfir") != nullptr))
              ? Outcome::kLost
              : outcome;
    }
    return outcome;
  }

  const TemplateSettings plain_;
  TemplateSettings tools_;
  const StopCheck stop_;
  Scratch& scratch_;
  size_t written_bytes_ = 0;
  bool offers_ = true;
  bool cancelled_ = false;
  bool given_up_ = false;
};

}  // namespace

Status learnFacts(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                  const oriel_allocator& allocator, TemplateFacts* facts) {
  *facts = {};
  if (settings.text.bytes == 0) {
    return kOk;
  }
  Scratch scratch(allocator, templateScratchBytes(settings.bytes() + sizeof kTrialTools));
  Learner learner(settings, stop, &scratch);
  const TemplateFacts found = learner.learn();
  if (learner.cancelled()) {
    return ORIEL_ERROR_CANCELLED;
  }
  if (scratch.noMemory()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no memory to run the model's chat template: close other programs");
  }
  *facts = found;
  return kOk;
}

}  // namespace oriel_internal
