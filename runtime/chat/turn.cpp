#include "chat/turn.h"

#include <algorithm>
#include <cstring>

namespace oriel_internal {
namespace {

/// Stands for messages that are in the session. Templates look at the content of some: this one says nothing.
constexpr char kStandIn[] = "Hello";
/// Some templates want nine letters or digits.
constexpr char kStandInCall[] = "call00001";

struct Span {
  size_t begin = SIZE_MAX;
  size_t end = 0;
  bool found() const { return begin != SIZE_MAX; }
};

/// From the first to the last byte of a message's own.
Span spanOf(const JinjaOutput& out, uint32_t message) {
  Span span;
  for (size_t i = 0; i < out.n_ranges; ++i) {
    const SourceRange& range = out.ranges[i];
    if (range.source == kFirstMessageSource + message) {
      span.begin = std::min(span.begin, range.begin);
      span.end = range.end;
    }
  }
  return span;
}

bool isBlank(const JsonValue* content) {
  if (content == nullptr || content->isNull()) {
    return true;
  }
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  return content->isString() &&
         std::all_of(content->text().data, content->text().data + content->text().bytes, blank);
}

size_t commonBytes(const char* a, size_t n_a, const char* b, size_t n_b) {
  const size_t most = std::min(n_a, n_b);
  return static_cast<size_t>(std::mismatch(a, a + most, b).first - a);
}

/// Where `part` begins in [begin, end) of a text; SIZE_MAX: nowhere.
size_t findPart(const char* text, size_t begin, size_t end, const char* part, size_t bytes) {
  const char* const found = std::search(text + begin, text + end, part, part + bytes);
  return bytes == 0 || found == text + end ? SIZE_MAX : static_cast<size_t>(found - text);
}

class TurnCutter {
 public:
  TurnCutter(TemplateRun* run, const TurnPlace& place)
      : run_(*run), place_(place), make_(run->scratch()) {}

  Status message(const JsonValue& message, TurnText* turn) {
    const JsonValue* const role = message.find("role");
    role_ = role != nullptr && role->isString() ? role->text() : JsonText{};
    calls_ = message.find("tool_call_id");
    const bool is_tool = lastMessageOf(role_) == LastMessage::kTool;
    return tryShapes(is_tool, [&](uint32_t n_calls, const Log& log) {
      return messageBehind(n_calls, message, is_tool, log, turn);
    });
  }

  Status opening(TurnText* turn) {
    return tryShapes(false, [&](uint32_t n_calls, const Log& log) -> Status {
      const JsonValue* const messages = shape(n_calls);
      ORIEL_TRY(render(messages, true, log, &out_));
      ORIEL_TRY(findStart(messages, out_.bytes, false, log));
      return cut(out_.bytes, log, turn);
    });
  }

  /// A first question without what opens any later one.
  Status preamble(TurnText* turn) {
    *turn = {};
    JinjaOutput later;
    JsonMade* const talk = make_.list();
    make_.append(talk, user());
    make_.append(talk, make_.message(textOf("assistant"), textOf(kStandIn)));
    make_.append(talk, user());
    if (!render(talk, false, Log(), &later).ok()) {
      return run_.scratch()->failed() ? noMemory(run_.log()) : kOk;
    }
    JsonMade* const first = make_.list();
    make_.append(first, user());
    ORIEL_TRY(render(first, false, run_.log(), &out_));
    const size_t answer_end = spanOf(later, 1).end;
    const Span question = spanOf(out_, 0);
    const Span next = spanOf(later, 2);
    if (!question.found() || !next.found() || answer_end > next.begin) {
      return kOk;
    }
    size_t same = 0;
    while (same < question.begin && same < next.begin - answer_end &&
           out_.text[question.begin - same - 1] == later.text[next.begin - same - 1]) {
      ++same;
    }
    return cut(question.begin - same, run_.log(), turn);
  }

  Status closing(JsonText* end) {
    JsonMade* const messages = shape(0);
    const Status status = render(messages, false, Log(), &out_);
    if (run_.scratch()->failed()) {
      return noMemory(run_.log());  // not that nothing ends a reply
    }
    const Span answer = status.ok() ? spanOf(out_, previous_) : Span();
    *end = answer.found() ? JsonText{out_.text + answer.end, out_.bytes - answer.end} : JsonText{};
    return status.code() == ORIEL_ERROR_CANCELLED ? status : kOk;
  }

 private:
  /// Templates differ in the calls that they want in front of results: some refuse several, some show none. The first
  /// number of them that works counts; if none does, what the first one met is said.
  template <typename Try>
  Status tryShapes(bool is_tool, const Try& attempt) {
    const uint32_t most = place_.last == LastMessage::kTool                   ? (is_tool ? 2 : 1)
                          : place_.last == LastMessage::kAssistant && is_tool ? 1
                                                                              : 0;
    for (uint32_t n_calls = most; most != 0; --n_calls) {
      const Status status = attempt(n_calls, Log());
      if (status.ok() || status.code() == ORIEL_ERROR_CANCELLED) {
        return status;
      }
      const bool refused =
          status.code() == ORIEL_ERROR_ARGUMENT || status.code() == ORIEL_ERROR_UNSUPPORTED;
      if (!refused || n_calls == 0) {
        break;
      }
    }
    return attempt(most, run_.log());
  }

  Status messageBehind(uint32_t n_calls, const JsonValue& message, bool is_tool, const Log& log,
                       TurnText* turn) {
    JsonMade* const messages = shape(n_calls);
    const uint32_t index = messages != nullptr ? messages->count() : 0;
    make_.append(messages, make_.copyOf(message));
    // Some templates want a question, and put the system's text into it.
    const bool leads =
        place_.last == LastMessage::kNothing && lastMessageOf(role_) == LastMessage::kSystem;
    if (leads) {
      make_.append(messages, user());
    }
    ORIEL_TRY(render(messages, false, log, &out_));
    Span own = spanOf(out_, index);
    const JsonValue* const calls = message.find("tool_calls");
    const bool has_calls = calls != nullptr && calls->isArray() && calls->count() != 0;
    if (!has_calls && isBlank(message.find("content"))) {
      ORIEL_TRY(renderBlank(*messages, index, log));
      own = spanOf(out_, index);
      own.end = lastRangeBegin(index);
    }
    if (!own.found()) {
      return lost(log);
    }
    ORIEL_TRY(findStart(messages, own.begin, is_tool, log));
    if (start_ > own.end) {
      return lost(log);
    }
    return cut(own.end, log, turn);
  }

  JsonMade* user() { return make_.message(textOf("user"), textOf(kStandIn)); }
  static JsonText textOf(const char* text) { return {text, std::strlen(text)}; }

  /// The shortest conversation that ends as the session does, with so many calls in its answer where there is one.
  JsonMade* shape(uint32_t n_calls) {
    JsonMade* const messages = make_.list();
    if (place_.has_system) {
      make_.append(messages, make_.message(textOf("system"), textOf(kStandIn)));
    }
    if (place_.last == LastMessage::kUser || place_.last == LastMessage::kAssistant ||
        place_.last == LastMessage::kTool) {
      make_.append(messages, user());
    }
    const bool after_tool = place_.last == LastMessage::kTool;
    if (after_tool || place_.last == LastMessage::kAssistant) {
      JsonMade* const answer =
          make_.message(textOf("assistant"), textOf(n_calls != 0 ? "" : kStandIn));
      if (n_calls != 0) {
        make_.set(answer, "tool_calls", callList(n_calls));
      }
      make_.append(messages, answer);
    }
    if (after_tool) {
      JsonMade* const result = make_.message(textOf("tool"), textOf(kStandIn));
      make_.set(result, "tool_call_id", make_.text(kStandInCall));
      make_.set(result, "name", make_.text(kStandIn));
      make_.append(messages, result);
    }
    previous_ = messages != nullptr && messages->count() != 0 ? messages->count() - 1 : 0;
    return messages;
  }

  /// The last one has the id that the message answers.
  JsonMade* callList(uint32_t count) {
    JsonMade* const list = make_.list();
    for (uint32_t i = 0; i < count; ++i) {
      JsonMade* const function = make_.object();
      make_.set(function, "name", make_.text(kStandIn));
      make_.set(function, "arguments", make_.object());
      JsonMade* const call = make_.object();
      make_.set(call, "type", make_.text("function"));
      const bool answered = i + 1 == count && calls_ != nullptr && calls_->isString();
      make_.set(call, "id", answered ? make_.text(calls_->text()) : make_.text(kStandInCall));
      make_.set(call, "function", function);
      make_.append(list, call);
    }
    return list;
  }

  Status render(const JsonValue* messages, bool generation, const Log& log, JinjaOutput* out) {
    if (messages == nullptr || run_.scratch()->failed()) {
      return noMemory(log);
    }
    return run_.render(*messages, generation, log, out);
  }

  /// With something in the message's place that has no text of its own.
  Status renderBlank(const JsonValue& messages, uint32_t index, const Log& log) {
    JsonMade* const filled = make_.list();
    uint32_t i = 0;
    for (const JsonValue* one = messages.first(); one != nullptr; one = one->next(), ++i) {
      make_.append(filled,
                   i == index ? make_.message(role_, textOf(kStandIn)) : make_.copyOf(*one));
    }
    return render(filled, false, log, &out_);
  }

  size_t lastRangeBegin(uint32_t message) const {
    size_t begin = SIZE_MAX;
    for (size_t i = 0; i < out_.n_ranges; ++i) {
      begin = out_.ranges[i].source == kFirstMessageSource + message ? out_.ranges[i].begin : begin;
    }
    return begin;
  }

  /// Where in out_, before `end`, that begins which the session does not have.
  Status findStart(const JsonValue* messages, size_t end, bool behind_calls, const Log& log) {
    start_ = body_ = 0;
    if (place_.last == LastMessage::kNothing) {
      return kOk;
    }
    const Span before = spanOf(out_, previous_);
    if (!before.found()) {
      return lost(log);
    }
    start_ = before.end;
    if (behind_calls && place_.last == LastMessage::kAssistant) {
      // What the model wrote of its calls is there; so is not the token that ended them.
      size_t stop = findPart(out_.text, start_, std::max(start_, end), place_.reply_stop.data,
                             place_.reply_stop.bytes);
      if (stop == SIZE_MAX) {
        const JsonText usual = usualEnd();
        stop = findPart(out_.text, start_, std::max(start_, end), usual.data, usual.bytes);
      }
      start_ = stop != SIZE_MAX ? stop : start_;
    }
    // Of a turn that a question begins, and where what closes the one before is there.
    const bool begins_turn = lastMessageOf(role_) == LastMessage::kUser && role_.bytes != 0;
    body_ = start_ + (begins_turn || place_.closed ? closingBytes(*messages) : 0);
    start_ = place_.closed ? body_ : start_;
    return kOk;
  }

  /// What ends an answer without calls, but for white space behind it.
  JsonText usualEnd() {
    const uint32_t previous = previous_;
    JinjaOutput plain;
    const Status status = render(shape(0), false, Log(), &plain);
    const Span answer = status.ok() ? spanOf(plain, previous_) : Span();
    previous_ = previous;
    if (!answer.found()) {
      return {};
    }
    size_t end = plain.bytes;
    while (end > answer.end && (plain.text[end - 1] == '\n' || plain.text[end - 1] == ' ')) {
      --end;
    }
    return {plain.text + answer.end, end - answer.end};
  }

  /// Bytes from start_ on that stand there as well where nothing follows.
  size_t closingBytes(const JsonValue& messages) {
    JsonMade* const alone = make_.list();
    uint32_t i = 0;
    for (const JsonValue* one = messages.first(); one != nullptr && i <= previous_;
         one = one->next(), ++i) {
      make_.append(alone, make_.copyOf(*one));
    }
    JinjaOutput ended;
    if (!render(alone, false, Log(), &ended).ok()) {
      return 0;  // no template of a conversation that ends so
    }
    const Span before = spanOf(ended, previous_);
    if (!before.found()) {
      return 0;
    }
    return commonBytes(ended.text + before.end, ended.bytes - before.end, out_.text + start_,
                       out_.bytes - start_);
  }

  Status cut(size_t end, const Log& log, TurnText* turn) {
    const JsonText& bos = run_.settings().bos;
    turn->begins_bos = place_.last == LastMessage::kNothing && bos.bytes != 0 &&
                       out_.bytes >= bos.bytes && end >= bos.bytes &&
                       std::memcmp(out_.text, bos.data, bos.bytes) == 0;
    const size_t begin = start_ + (turn->begins_bos ? bos.bytes : 0);
    TextRange* const literals = run_.scratch()->take<TextRange>(out_.n_ranges + 1);
    if (literals == nullptr) {
      return noMemory(log);
    }
    size_t n = 0;
    for (size_t i = 0; i < out_.n_ranges; ++i) {
      const size_t from = std::max(out_.ranges[i].begin, begin);
      const size_t to = std::min(out_.ranges[i].end, end);
      if (from >= to) {
        continue;
      }
      if (n != 0 && literals[n - 1].end == from - begin) {
        literals[n - 1].end = to - begin;
      } else {
        literals[n++] = {from - begin, to - begin};
      }
    }
    turn->text = out_.text + begin;
    turn->bytes = end - begin;
    turn->literals = literals;
    turn->n_literals = n;
    turn->body = std::clamp(body_, begin, end) - begin;
    turn->repeats_system =
        place_.has_system && place_.last != LastMessage::kSystem && repeats(begin, end);
    return kOk;
  }

  /// Whether the stand-in for the system's text is part of what is cut out.
  bool repeats(size_t begin, size_t end) const {
    return std::any_of(out_.ranges, out_.ranges + out_.n_ranges, [&](const SourceRange& range) {
      return range.source == kFirstMessageSource && range.begin < end && range.end > begin;
    });
  }

  static Status noMemory(const Log& log) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to run the chat template: free some");
  }

  static Status lost(const Log& log) {
    return log.fail(
        ORIEL_ERROR_UNSUPPORTED,
        "the chat template leaves out a message of this kind, so that it cannot be continued "
        "message by message: render the whole conversation and append its tokens");
  }

  TemplateRun& run_;
  const TurnPlace& place_;
  JsonBuilder make_;
  JsonText role_;
  const JsonValue* calls_ = nullptr;  ///< the id of the call that the message answers
  uint32_t previous_ = 0;             ///< number of the message that the session ends with
  JinjaOutput out_;
  size_t start_ = 0;
  size_t body_ = 0;
};

}  // namespace

LastMessage lastMessageOf(const JsonText& role) {
  return role.is("system") || role.is("developer")  ? LastMessage::kSystem
         : role.is("assistant") || role.is("model") ? LastMessage::kAssistant
         : role.is("tool") || role.is("ipython") || role.is("function") || role.is("tool_response")
             ? LastMessage::kTool
             : LastMessage::kUser;
}

bool isPlainMessage(const JsonValue& message) {
  const JsonValue* const content = message.find("content");
  const JsonValue* const role = message.find("role");
  return message.count() == 2 && content != nullptr && content->isString() &&
         (role->text().is("system") || role->text().is("user") || role->text().is("assistant"));
}

Status renderTurn(TemplateRun* run, const TurnPlace& place, const JsonValue& message,
                  TurnText* turn) {
  ORIEL_TRY(TurnCutter(run, place).message(message, turn));
  if (!turn->repeats_system) {
    return kOk;
  }
  // The system's text moves to the latest question in this template. It stays where it was written.
  TurnPlace without = place;
  without.has_system = false;
  return TurnCutter(run, without).message(message, turn);
}

Status renderReplyEnd(TemplateRun* run, JsonText* end) {
  TurnPlace place;
  place.last = LastMessage::kAssistant;
  return TurnCutter(run, place).closing(end);
}

Status renderPreamble(TemplateRun* run, TurnText* turn) {
  const TurnPlace place;
  return TurnCutter(run, place).preamble(turn);
}

Status renderReplyOpening(TemplateRun* run, const TurnPlace& place, TurnText* turn) {
  return TurnCutter(run, place).opening(turn);
}

}  // namespace oriel_internal
