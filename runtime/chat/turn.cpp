#include "chat/turn.h"

#include <algorithm>
#include <cstring>

namespace oriel_internal {
namespace {

bool hasCalls(const JsonValue& message) {
  const JsonValue* const calls = message.find("tool_calls");
  return calls != nullptr && calls->isArray() && calls->count() != 0;
}

bool isBlank(const JsonValue& message) {
  const JsonValue* const content = message.find("content");
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  const bool none =
      content == nullptr || content->isNull() ||
      (content->isString() &&
       std::all_of(content->text().data, content->text().data + content->text().bytes, blank));
  return none && !hasCalls(message);
}

JsonText withoutBlanks(JsonText text) {
  while (text.bytes != 0 &&
         (text.data[text.bytes - 1] == '\n' || text.data[text.bytes - 1] == ' ')) {
    --text.bytes;
  }
  return text;
}

/// Bytes of `text` that match `end`, the closing text of a message.
size_t closingBytes(const JsonText& end, const char* text, size_t bytes) {
  const size_t same = commonBytes(end, text, bytes);
  return same == end.bytes ? same : wholeMarks(text, same);
}

class TurnCutter : private Renderer {
 public:
  TurnCutter(TemplateRun* run, const LearnedTemplate& learned, const Log& log)
      : Renderer(run, learned), log_(log) {}

  /// Call before cutNew().
  Status render(const Messages& messages, bool generation) {
    list_ = messages.list;
    count_ = list_ != nullptr ? list_->count() : 0;
    given_ = run_.scratch()->take<const JsonValue*>(uint64_t{count_} + 1);
    if (given_ == nullptr) {
      return noTemplateMemory(log_);
    }
    uint32_t n = 0;
    for (const JsonValue* one = count_ != 0 ? list_->first() : nullptr; one != nullptr;
         one = one->next()) {
      given_[n++] = one;
    }
    // Some templates need a question after a system message, and put the system text there. Some write the last answer
    // differently.
    generation_ = generation;
    const Role last = count_ != 0 ? roleOf(*at(count_ - 1)) : Role::kNone;
    leads_ = !generation &&
             (last == Role::kSystem || (last == Role::kAssistant && !hasCalls(*at(count_ - 1))));
    ORIEL_TRY(renderWith(count_, SIZE_MAX, log_, &out_));
    return findSpans();
  }

  /// Handles templates that write the system text only in the latest question. Returns the number of messages up to the
  /// first question if the held text has the system text there, or lacks it because no question ended the list.
  /// Otherwise 0.
  uint32_t leadingMessages(const Messages& given) const {
    const uint32_t system = given.held != 0 ? given.held - 1 : 0;
    if (system + 2 >= count_ || roleOf(*at(system)) != Role::kSystem || isBlank(*at(system))) {
      return 0;
    }
    const Span& text = spans_[system];
    const Span& next = spans_[system + 1];
    const bool moves = given.held != 0 && next.found() && text.begin > next.end;
    return moves || !text.found() ? system + 2 : 0;
  }

  Status cutNew(const Messages& given, bool generation, NewText* text) {
    size_t begin = 0;
    for (uint32_t i = given.held; begin == 0 && i != 0; --i) {
      ORIEL_TRY(textEnd(i - 1, &begin));
    }
    if (given.replied && given.held != 0) {
      ORIEL_TRY(afterCalls(given.held - 1, given.stop, &begin));
    }
    if (given.closed && given.held != 0) {
      begin += closingBytes(learned_.ends.of(roleOf(*at(given.held - 1))), out_.text + begin,
                            out_.bytes - begin);
    }
    const uint32_t count = count_ - given.held;
    NewMessage* const messages = run_.scratch()->take<NewMessage>(uint64_t{count} + 1);
    if (messages == nullptr) {
      return noTemplateMemory(log_);
    }
    size_t end = begin;
    for (uint32_t i = 0; i < count; ++i) {
      const JsonValue& message = *at(given.held + i);
      size_t own_end = 0;
      ORIEL_TRY(textEnd(given.held + i, &own_end));
      // Some templates reorder results: a message that appears earlier ends with its predecessor.
      if (own_end <= begin && !isBlank(message)) {
        return lost(message);
      }
      own_end = std::max(own_end, end);
      messages[i] = {std::min(turnBegin(given.held + i, end), own_end), own_end};
      end = own_end;
    }
    end = generation ? out_.bytes : end;
    ORIEL_TRY(cut(begin, end, text));
    for (uint32_t i = 0; i < count; ++i) {
      messages[i].body -= std::min(messages[i].body, begin + skipped_);
      messages[i].end -= std::min(messages[i].end, begin + skipped_);
    }
    text->messages = messages;
    return kOk;
  }

  /// True if the new text repeats a held system message because the template moves it to the latest question.
  bool repeatsSystem(const Messages& given, const NewText& text) const {
    const char* const end = text.text + text.bytes;
    for (size_t i = 0; i < out_.n_ranges; ++i) {
      const SourceRange& range = out_.ranges[i];
      const bool is_new = out_.text + range.end > text.text && out_.text + range.begin < end;
      const uint64_t index = uint64_t{range.source} - kFirstMessageSource;
      if (is_new && index < given.held &&
          roleOf(*at(static_cast<uint32_t>(index))) == Role::kSystem) {
        return true;
      }
    }
    return false;
  }

  Status preamble(NewText* text) {
    *text = {};
    JinjaOutput later;
    if (const Status status = renderQuietly(talkOf({"user", "assistant", "user"}), false, &later);
        !status.ok()) {
      return run_.scratch()->failed() ? noTemplateMemory(log_) : kOk;
    }
    ORIEL_TRY(render({talkOf({"user"}), 0, false, false, {}}, false));
    const Span& question = spans_[0];
    const Span next = spanOf(later, 2);
    const size_t answer_end = spanOf(later, 1).end;
    if (!question.found() || !next.found() || answer_end > next.begin) {
      return kOk;
    }
    const size_t same =
        commonEnd({out_.text, question.begin}, {later.text + answer_end, next.begin - answer_end});
    return cut(0, question.begin - same, text);
  }

 private:
  const JsonValue* at(uint32_t i) const { return given_[i]; }
  /// Renders the first `count` messages, with a stand-in for the text of message `blank`.
  Status renderWith(uint32_t count, size_t blank, const Log& log, JinjaOutput* out) {
    JsonMade* const list = make_.list();
    for (uint32_t i = 0; i < count; ++i) {
      const JsonValue* const role = at(i)->find("role");
      make_.append(list, i == blank && role != nullptr ? make_.message(role->text(), kStandIn)
                                                       : make_.copyOf(*at(i)));
    }
    if (leads_ && count == count_) {
      make_.append(list, make_.message("user", kStandIn));
    }
    if (list == nullptr || run_.scratch()->failed()) {
      return noTemplateMemory(log);
    }
    return renderPrepared(*list, generation_ && count == count_, log, out);
  }

  /// Finds all messages in one pass over the text's sources.
  Status findSpans() {
    spans_ = run_.scratch()->take<Span>(uint64_t{count_} + 1);
    if (spans_ == nullptr) {
      return noTemplateMemory(log_);
    }
    std::fill_n(spans_, count_, Span());
    for (size_t i = 0; i < out_.n_ranges; ++i) {
      const uint64_t index = uint64_t{out_.ranges[i].source} - kFirstMessageSource;
      if (index < count_) {
        spans_[index].add(out_.ranges[i]);
      }
    }
    return kOk;
  }

  /// Start of the turn of message i, if the previous message's text ends at `end`.
  size_t turnBegin(uint32_t i, size_t end) const {
    if (i == 0 || (i == 1 && roleOf(*at(0)) == Role::kSystem)) {
      return end;
    }
    const Span& span = spans_[i];
    const bool joins = learned_.ends.system_joins && roleOf(*at(0)) == Role::kSystem;
    if (joins && roleOf(*at(i)) == Role::kUser && span.found() && span.begin >= end) {
      // The opening of the system turn may open a later turn after eviction.
      size_t begin = span.begin;
      while (begin > end && out_.text[begin - 1] == ' ') {
        --begin;  // a space is part of the word after it
      }
      return begin;
    }
    return end +
           closingBytes(learned_.ends.of(roleOf(*at(i - 1))), out_.text + end, out_.bytes - end);
  }

  /// End of the text of message i; 0 if the template omits the message. The closing of a leading system message is part
  /// of its text, so it survives eviction.
  Status textEnd(uint32_t i, size_t* end) {
    ORIEL_TRY(ownEnd(i, end));
    if (*end != 0 && i == 0 && roleOf(*at(0)) == Role::kSystem) {
      const JsonText& closing = learned_.ends.of(Role::kSystem);
      *end += beginsWith({out_.text + *end, out_.bytes - *end}, closing) ? closing.bytes : 0;
    }
    return kOk;
  }

  Status ownEnd(uint32_t i, size_t* end) {
    const Span& span = spans_[i];
    *end = span.end;
    const bool is_shown = span.found() && !isBlank(*at(i));
    // Results may contain the names of their calls.
    const bool is_last = i + 1 == count_ || !hasCalls(*at(i));
    if (is_shown && is_last) {
      return kOk;
    }
    const Scratch::Place place = run_.scratch()->place();
    JsonText after;
    const Status status = is_shown ? asLatest(i, end, &after) : endOfBlank(i, end);
    run_.scratch()->releaseTo(place);
    return status;
  }

  /// A stand-in text shows the position of the message.
  Status endOfBlank(uint32_t i, size_t* end) {
    JinjaOutput shown;
    ORIEL_TRY(renderWith(count_, i, log_, &shown));
    const Span place = spanOf(shown, i);
    const JsonText before = {shown.text, place.found() ? place.last : 0};
    *end = 0;
    if (place.found() && commonBytes(before, out_.text, out_.bytes) == before.bytes) {
      const JsonValue* const content = at(i)->find("content");
      const JsonText blank =
          content != nullptr && content->isString() ? content->text() : JsonText();
      *end = place.last + commonBytes(blank, out_.text + place.last, out_.bytes - place.last);
    }
    return kOk;
  }

  /// Finds the end of message i without its successors, and the text after it. Leaves `end` unchanged if the template
  /// does not continue that text.
  Status asLatest(uint32_t i, size_t* end, JsonText* after) {
    JinjaOutput latest;
    const Status status = renderWith(i + 1, SIZE_MAX, Log(), &latest);
    if (run_.scratch()->noMemory()) {
      return noTemplateMemory(log_);
    }
    const Span span = status.ok() ? spanOf(latest, i) : Span();
    if (span.found() && commonBytes({latest.text, span.end}, out_.text, out_.bytes) == span.end) {
      *end = span.end;
      *after = {latest.text + span.end, latest.bytes - span.end};
    }
    return status.code() == ORIEL_ERROR_CANCELLED ? status : kOk;
  }

  /// The model wrote the calls in its own form, but without the text that ends a reply.
  Status afterCalls(uint32_t i, const JsonText& stop, size_t* begin) {
    if (!hasCalls(*at(i))) {
      return kOk;
    }
    const Scratch::Place place = run_.scratch()->place();
    JsonText closing;
    ORIEL_TRY(asLatest(i, begin, &closing));
    const JsonText end = withoutBlanks(learned_.ends.of(Role::kAssistant));
    const Span next = i + 1 < count_ ? spans_[i + 1] : Span();
    const char* const from = out_.text + *begin;
    const char* const to = out_.text + std::max(*begin, std::min(next.begin, out_.bytes));
    const char* found = to;
    for (const JsonText& one : {stop, end}) {
      found = found == to && one.bytes != 0 ? std::search(from, to, one.data, one.data + one.bytes)
                                            : found;
    }
    if (found == to && closing.bytes != 0) {
      // Closing texts may differ except for their last marks.
      closing = withoutBlanks(closing);
      size_t same = commonEnd(closing, end);
      while (same != 0 && std::strchr("<[", closing.data[closing.bytes - same]) == nullptr) {
        --same;
      }
      found = from + closingBytes({closing.data, closing.bytes - same}, from,
                                  static_cast<size_t>(to - from));
    }
    *begin += found == to ? 0 : static_cast<size_t>(found - from);
    run_.scratch()->releaseTo(place);
    return kOk;
  }

  Status cut(size_t begin, size_t end, NewText* text) {
    const JsonText& bos = run_.settings().bos;
    text->begins_bos = begin == 0 && bos.bytes != 0 && end >= bos.bytes &&
                       std::memcmp(out_.text, bos.data, bos.bytes) == 0;
    skipped_ = text->begins_bos ? bos.bytes : 0;
    begin += skipped_;
    TextRange* const literals = run_.scratch()->take<TextRange>(out_.n_ranges + 1);
    if (literals == nullptr) {
      return noTemplateMemory(log_);
    }
    size_t n = 0;
    for (size_t i = 0; i < out_.n_ranges; ++i) {
      const size_t from = std::max(out_.ranges[i].begin, begin);
      const size_t to = std::min(out_.ranges[i].end, end);
      if (from >= to || out_.ranges[i].is_picture) {
        continue;
      }
      if (n != 0 && literals[n - 1].end == from - begin) {
        literals[n - 1].end = to - begin;
      } else {
        literals[n++] = {from - begin, to - begin};
      }
    }
    text->text = out_.text + begin;
    text->bytes = end - begin;
    text->literals = literals;
    text->n_literals = n;
    return kOk;
  }

  Status lost(const JsonValue& message) const {
    const JsonValue* const role = message.find("role");
    const JsonText name = role != nullptr && role->isString() ? role->text() : JsonText();
    return log_.fail(
        ORIEL_ERROR_UNSUPPORTED,
        "the chat template leaves out a message of the role \"%.*s\" here: use another "
        "role, or render the whole conversation and append its tokens",
        static_cast<int>(name.bytes), name.data);
  }

  const Log log_;
  const JsonValue* list_ = nullptr;
  const JsonValue** given_ = nullptr;
  uint32_t count_ = 0;
  bool generation_ = false;
  bool leads_ = false;  ///< a question follows outside the list
  JinjaOutput out_;
  Span* spans_ = nullptr;  ///< of the messages in out_
  size_t skipped_ = 0;     ///< bytes of BOS
};

// The held messages without system messages.
Status withoutSystem(const Messages& given, Scratch* scratch, const Log& log, Messages* out) {
  JsonBuilder make(scratch);
  JsonMade* const list = make.list();
  *out = {list, 0, given.replied, given.closed, given.stop};
  uint32_t i = 0;
  for (const JsonValue* one = given.list->first(); one != nullptr; one = one->next(), ++i) {
    if (i >= given.held || roleOf(*one) != Role::kSystem) {
      make.append(list, make.copyOf(*one));
      out->held += i < given.held ? 1 : 0;
    }
  }
  return list != nullptr && !scratch->failed() ? kOk : noTemplateMemory(log);
}

Messages firstOf(const Messages& given, uint32_t count, Scratch* scratch) {
  JsonBuilder make(scratch);
  JsonMade* const list = make.list();
  const JsonValue* one = given.list->first();
  for (uint32_t i = 0; i < count; ++i, one = one->next()) {
    make.append(list, make.copyOf(*one));
  }
  return {list, given.held, given.replied, given.closed, given.stop};
}

/// Appends `b`, the messages after `a`.
Status join(const NewText& a, uint32_t n_a, const NewText& b, uint32_t n_b, Scratch* scratch,
            const Log& log, NewText* out) {
  char* const text = scratch->takeText(uint64_t{a.bytes} + b.bytes + 1);
  TextRange* const literals = scratch->take<TextRange>(uint64_t{a.n_literals} + b.n_literals + 1);
  NewMessage* const messages = scratch->take<NewMessage>(uint64_t{n_a} + n_b + 1);
  if (text == nullptr || literals == nullptr || messages == nullptr) {
    return noTemplateMemory(log);
  }
  std::copy_n(b.text, b.bytes, std::copy_n(a.text, a.bytes, text));
  std::transform(b.literals, b.literals + b.n_literals,
                 std::copy_n(a.literals, a.n_literals, literals), [&](const TextRange& one) {
                   return TextRange{a.bytes + one.begin, a.bytes + one.end};
                 });
  std::transform(b.messages, b.messages + n_b, std::copy_n(a.messages, n_a, messages),
                 [&](const NewMessage& one) {
                   return NewMessage{a.bytes + one.body, a.bytes + one.end};
                 });
  *out = {text, a.bytes + b.bytes, literals, a.n_literals + b.n_literals, messages, a.begins_bos};
  return kOk;
}

}  // namespace

Status renderNew(TemplateRun* run, const LearnedTemplate& learned, const Messages& messages,
                 bool generation, NewText* out) {
  TurnCutter cutter(run, learned, run->log());
  ORIEL_TRY(cutter.render(messages, generation));
  if (const uint32_t first = cutter.leadingMessages(messages); first != 0) {
    const Messages leading = firstOf(messages, first, run->scratch());
    if (leading.list == nullptr || run->scratch()->failed()) {
      return noTemplateMemory(run->log());
    }
    NewText question;
    NewText rest;
    ORIEL_TRY(renderNew(run, learned, leading, false, &question));
    ORIEL_TRY(renderNew(run, learned, {messages.list, first, false, false, {}}, generation, &rest));
    return join(question, first - messages.held, rest, messages.list->count() - first,
                run->scratch(), run->log(), out);
  }
  ORIEL_TRY(cutter.cutNew(messages, generation, out));
  if (!cutter.repeatsSystem(messages, *out)) {
    return kOk;
  }
  // It stays at its original place.
  Messages others;
  ORIEL_TRY(withoutSystem(messages, run->scratch(), run->log(), &others));
  if (others.held == 0) {
    return kOk;
  }
  TurnCutter without(run, learned, run->log());
  ORIEL_TRY(without.render(others, generation));
  return without.cutNew(others, generation, out);
}

Status renderPreamble(TemplateRun* run, const LearnedTemplate& learned, NewText* out) {
  return TurnCutter(run, learned, run->log()).preamble(out);
}

// ---- The renderer -------------------------------------------------------------------------------

Span spanOf(const JinjaOutput& out, uint32_t index) {
  Span span;
  for (size_t i = 0; i < out.n_ranges; ++i) {
    const SourceRange& range = out.ranges[i];
    if (range.source == kFirstMessageSource + index) {
      span.add(range);
    }
  }
  return span;
}

size_t commonBytes(const JsonText& a, const char* b, size_t n_b) {
  const size_t most = std::min<size_t>(a.bytes, n_b);
  return static_cast<size_t>(std::mismatch(a.data, a.data + most, b).first - a.data);
}

size_t commonEnd(const JsonText& a, const JsonText& b) {
  const size_t most = std::min(a.bytes, b.bytes);
  size_t same = 0;
  while (same < most && a.data[a.bytes - same - 1] == b.data[b.bytes - same - 1]) {
    ++same;
  }
  return same;
}

size_t wholeMarks(const char* text, size_t bytes) {
  while (bytes != 0 && std::strchr(">]\n", text[bytes - 1]) == nullptr) {
    --bytes;
  }
  return bytes;
}

bool endsWith(const JsonText& text, const JsonText& end) {
  return end.bytes != 0 && end.bytes <= text.bytes &&
         std::memcmp(text.data + text.bytes - end.bytes, end.data, end.bytes) == 0;
}

bool beginsWith(const JsonText& text, const JsonText& begin) {
  return commonBytes(begin, text.data, text.bytes) == begin.bytes;
}

Status noTemplateMemory(const Log& log) {
  return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to run the chat template: free some");
}

JsonMade* Renderer::talkOf(std::initializer_list<const char*> roles) {
  JsonMade* const list = make_.list();
  for (const char* role : roles) {
    make_.append(list, make_.message(role, kStandIn));
  }
  return list;
}

Status Renderer::renderQuietly(JsonMade* messages, bool generation, JinjaOutput* out) {
  if (messages == nullptr || run_.scratch()->failed()) {
    return noTemplateMemory(Log());
  }
  return renderPrepared(*messages, generation, Log(), out);
}

Status Renderer::renderPrepared(const JsonValue& messages, bool generation, const Log& log,
                                JinjaOutput* out) {
  const JsonValue* prepared = nullptr;
  const PictureWords pictures = run_.settings().pictures;
  ORIEL_TRY(prepareMessages(learned_.facts, messages, run_.scratch(), log, &prepared, pictures));
  ORIEL_TRY(run_.render(*prepared, generation, log, out));
  return pictures != PictureWords::kNone ? claimPictures(messages, log, out) : Status(kOk);
}

// The n-th placeholder in the template's own text belongs to the n-th picture of the messages.
Status Renderer::claimPictures(const JsonValue& messages, const Log& log, JinjaOutput* out) {
  size_t count = 0;
  const auto forEach = [&](const auto& visit) {
    TextOrigin source = kFirstMessageSource;
    for (const JsonValue* one = messages.first(); one != nullptr; one = one->next(), ++source) {
      ORIEL_TRY(forEachPicture(*one, [&](const JsonValue&) { return visit(source); }));
    }
    return Status(kOk);
  };
  ORIEL_TRY(forEach([&](TextOrigin) {
    ++count;
    return kOk;
  }));
  if (count == 0) {
    return kOk;
  }
  SourceRange* const ranges = run_.scratch()->take<SourceRange>(out->n_ranges + 2 * count + 1);
  if (ranges == nullptr) {
    return noTemplateMemory(log);
  }
  const char* const placeholder = rowOf(run_.settings().pictures).placeholder;
  const size_t bytes = std::strlen(placeholder);
  size_t n = 0;
  size_t next = 0;  // of out->ranges
  size_t at = 0;
  const Status found = forEach([&](TextOrigin source) -> Status {
    for (;; ++at) {
      for (; next < out->n_ranges && out->ranges[next].begin <= at; ++next) {
        ranges[n++] = out->ranges[next];
        at = out->ranges[next].end;
      }
      const size_t end = next < out->n_ranges ? out->ranges[next].begin : out->bytes;
      const char* const place =
          std::search(out->text + at, out->text + end, placeholder, placeholder + bytes);
      at = static_cast<size_t>(place - out->text);
      if (at != end) {
        ranges[n++] = {at, at + bytes, source, true};
        at += bytes;
        return kOk;
      }
      if (end == out->bytes) {
        return ORIEL_ERROR_UNSUPPORTED;
      }
      --at;
    }
  });
  if (!found.ok()) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the chat template has no place for %zu pictures: name another (\"template\")",
                    count);
  }
  n = static_cast<size_t>(std::copy(out->ranges + next, out->ranges + out->n_ranges, ranges + n) -
                          ranges);
  out->ranges = ranges;
  out->n_ranges = n;
  return kOk;
}

}  // namespace oriel_internal
