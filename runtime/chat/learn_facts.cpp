// Learns a template's needs by trial renderings.
#include <algorithm>
#include <cstring>

#include "chat/prepare.h"
#include "chat/prepare_calls.h"

namespace oriel_internal {
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
