// Finds the text that closes messages of a template, once, from short conversations.
#include <algorithm>

#include "chat/renderer.h"

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

}  // namespace oriel_internal
