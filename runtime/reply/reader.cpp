#include "reply/reader.h"

#include <algorithm>
#include <cstring>

#include "reply/parameter.h"

namespace oriel_internal {

ExprId textUpTo(Grammar* grammar, const char* mark) {
  // One rule per prefix of the mark: the state is the longest prefix that the text so far ends with.
  constexpr size_t kMostBytes = 64;
  const size_t bytes = std::strlen(mark);
  RuleId rules[kMostBytes] = {};
  if (bytes == 0 || bytes > kMostBytes) {
    return grammar->never();
  }
  CharRange of_mark[kMostBytes];
  size_t n_chars = 0;
  for (size_t i = 0; i < bytes; ++i) {
    rules[i] = grammar->newRule();
    if (std::memchr(mark, mark[i], i) == nullptr) {
      const uint32_t c = static_cast<unsigned char>(mark[i]);
      of_mark[n_chars++] = {c, c};
    }
  }
  const ExprId others = grammar->chars(of_mark, n_chars, true);
  for (uint32_t i = 0; i < bytes; ++i) {
    ExprId next = grammar->sequence(others, grammar->rule(rules[0]));
    for (size_t k = 0; k < n_chars; ++k) {
      const char c = static_cast<char>(of_mark[k].first);
      const uint32_t matched = matchOn(mark, i, c);
      const ExprId byte = grammar->bytes(&c, 1);
      next = grammar->choice(
          next, matched == bytes ? byte : grammar->sequence(byte, grammar->rule(rules[matched])));
    }
    grammar->define(rules[i], next);
  }
  return grammar->rule(rules[0]);
}

namespace {

constexpr uint16_t kMarksInAnswers = kMarkTrigger | kMarkThought | kMarkThoughtEnd | kMarkSkip;

/// Trailing bytes of an incomplete character.
uint32_t unfinishedBytes(const char* text, size_t bytes) {
  for (uint32_t back = 1; back <= 3 && back <= bytes; ++back) {
    const unsigned char byte = static_cast<unsigned char>(text[bytes - back]);
    if (byte >= 0xC0) {
      const uint32_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      return length > back ? back : 0;
    }
    if (byte < 0x80) {
      return 0;
    }
  }
  return 0;
}

}  // namespace

void ReplyReader::start(const ReplySettings& settings, OnPart on_part, void* user) {
  *this = ReplyReader();
  settings_ = settings;
  on_part_ = on_part;
  user_ = user;
  for (uint8_t row = 0; row < kMarkCount; ++row) {
    const Mark& mark = kMarks[row];
    if ((mark.forms & (settings.forms | kFormThinkTag)) != 0 &&
        (settings.calls || (mark.kinds & kMarkTrigger) == 0)) {
      activate(row);
    }
  }
  if (settings.inside_thought) {
    mode_ = Mode::kThought;
    thought_mark_ = settings.thought;
  }
}

/// Adds a mark to the group with the same first byte.
void ReplyReader::activate(uint8_t row) {
  const unsigned char byte = static_cast<unsigned char>(kMarks[row].text[0]);
  uint8_t group = 1;
  while (group < kMostFirst && group_end_[group] != 0 &&
         kMarks[active_[group_end_[group] - 1]].text[0] != kMarks[row].text[0]) {
    ++group;
  }
  if (group == kMostFirst) {
    return;  // tests ensure that this is not exceeded
  }
  const bool is_new = group_end_[group] == 0;
  const uint8_t at = is_new ? active_count_ : group_end_[group];
  std::memmove(active_ + at + 1, active_ + at, active_count_ - at);
  active_[at] = row;
  ++active_count_;
  group_end_[group] = at;
  for (uint8_t later = group; later < kMostFirst && (later == group || group_end_[later] != 0);
       ++later) {
    ++group_end_[later];
  }
  first_[byte] = group;
  if ((kMarks[row].kinds & kMarksInAnswers) != 0) {
    const unsigned char next = static_cast<unsigned char>(kMarks[row].text[1]);
    in_answers_[group] = true;
    second_[group][next / 8] |= static_cast<uint8_t>(1u << next % 8);
  }
}

void ReplyReader::forget() {
  volatile unsigned char* const bytes = reinterpret_cast<unsigned char*>(this);
  for (size_t i = 0; i < sizeof(*this); ++i) {
    bytes[i] = 0;
  }
  *this = ReplyReader();
}

void ReplyReader::push(const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes;) {
    const size_t run = pushRun(text + i, bytes - i);
    i += run;
    if (run == 0) {
      pushByte(text[i++]);
    }
  }
  flush();
}

/// Shows the longest prefix of `text` that can only be answer, unchanged; returns its length.
size_t ReplyReader::pushRun(const char* text, size_t bytes) {
  if (mode_ != Mode::kText || held_ != 0 || at_start_ || after_call_ || drop_space_ ||
      close_pending_ || quoted_) {
    return 0;
  }
  size_t run = 0;
  for (; run < bytes; ++run) {
    const uint8_t group = first_[static_cast<unsigned char>(text[run])];
    if (group == 0 || !in_answers_[group]) {
      continue;
    }
    const unsigned char next = run + 1 < bytes ? static_cast<unsigned char>(text[run + 1]) : 0;
    if (run + 1 == bytes || (second_[group][next / 8] >> next % 8 & 1) != 0) {
      break;
    }
  }
  if (run == 0) {
    return 0;
  }
  flush();
  run -= unfinishedBytes(text, run);
  if (out_bytes_ != 0 || run == 0) {
    return 0;
  }
  tell(PartKind::kText, text, run);
  last_shown_ = text[run - 1];
  return run;
}

void ReplyReader::finish() {
  // A mark that might have become a longer one is final.
  while (mark_from_ != kNoMark && best_row_ != kNoRow) {
    takeMark(best_row_, best_bytes_);
  }
  const bool partial_end =
      mode_ == Mode::kCall && (committed_ || at_ == At::kBetween || at_ == At::kAgain);
  const bool only_space = mode_ != Mode::kCall && mark_from_ == kNoMark;
  if (mode_ == Mode::kThought) {
    putHeld(PartKind::kThought, 0, only_space ? 0 : held_);
  } else if (!partial_end && !(only_space && after_call_)) {
    putHeld(from_thought_ ? PartKind::kThought : PartKind::kText, 0, held_);
  }
  held_ = 0;
  mark_from_ = kNoMark;
  flush();
  if (out_bytes_ != 0) {  // the start of a character
    tell(out_kind_, out_, out_bytes_);
    out_bytes_ = 0;
  }
}

void ReplyReader::pushByte(char c) {
  switch (mode_) {
    case Mode::kText:
      return text(c);
    case Mode::kThought:
      return thought(c);
    case Mode::kCall:
      return call(c);
  }
}

/// Removes the held bytes from `from` on and reads them again.
void ReplyReader::pushAgain(uint32_t from) {
  char again[kMostSpace + kMostMark];
  const uint32_t count = std::min<uint32_t>(held_ - from, sizeof(again));
  std::memcpy(again, hold_ + from, count);
  held_ = from;
  for (uint32_t i = 0; i < count; ++i) {
    pushByte(again[i]);
  }
}

// ---- Showing -------------------------------------------------------------------------------------

void ReplyReader::put(PartKind kind, char c) {
  if (kind != out_kind_ || out_bytes_ == sizeof(out_)) {
    flush();
    if (kind != out_kind_ && out_bytes_ != 0) {
      tell(out_kind_, out_, out_bytes_);
      out_bytes_ = 0;
    }
    out_kind_ = kind;
  }
  if (kind == PartKind::kText) {
    last_shown_ = c;
    closed_unopened_ = closed_unopened_ || (close_pending_ && !isSpace(c));
    mentions_ -= quoted_ && c == '`' ? 1 : 0;  // a lone tag: nothing will close it
    quoted_ = false;
  }
  out_[out_bytes_++] = c;
}

void ReplyReader::putHeld(PartKind kind, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; ++i) {
    put(kind, hold_[i]);
  }
}

/// Shows whole characters; keeps an incomplete one.
void ReplyReader::flush() {
  const uint32_t rest = unfinishedBytes(out_, out_bytes_);
  if (out_bytes_ != rest) {
    tell(out_kind_, out_, out_bytes_ - rest);
    std::memmove(out_, out_ + out_bytes_ - rest, rest);
    out_bytes_ = rest;
  }
}

void ReplyReader::tell(PartKind kind, const char* text, size_t bytes) {
  ReplyPart part;
  part.kind = kind;
  part.call = calls_ == 0 ? 0 : calls_ - 1;
  part.text = text;
  part.bytes = bytes;
  if (on_part_ != nullptr) {
    on_part_(part, user_);
  }
}

void ReplyReader::putArgument(char c, void* user) {
  static_cast<ReplyReader*>(user)->put(PartKind::kCallArguments, c);
}

void ReplyReader::putName(char c, void* user) {
  ReplyReader& reader = *static_cast<ReplyReader*>(user);
  if (reader.name_bytes_ == kMostName) {
    reader.too_long_ = true;
  } else {
    reader.name_[reader.name_bytes_++] = c;
  }
}

void ReplyReader::putKey(char c, void* user) {
  ReplyReader& reader = *static_cast<ReplyReader*>(user);
  if (reader.key_bytes_ == kMostKey) {
    reader.too_long_ = true;
  } else {
    reader.key_[reader.key_bytes_++] = c;
  }
}

void ReplyReader::putInner(char c, void* user) { static_cast<ReplyReader*>(user)->pushInner(c); }

// ---- Marks ---------------------------------------------------------------------------------------

bool ReplyReader::hold(char c) {
  if (held_ == kMostHeld) {
    return false;
  }
  hold_[held_++] = c;
  return true;
}

bool ReplyReader::eligible(const Mark& mark) const {
  if ((mark.kinds & mark_kinds_) == 0) {
    return false;
  }
  if (mode_ == Mode::kCall) {
    return true;
  }
  if (mode_ == Mode::kThought) {
    if ((mark.kinds & (kMarkThought | kMarkThoughtEnd)) != 0) {
      return closesThought(mark) && ((mark.kinds & kMarkThought) == 0 || !thought_shown_);
    }
    return (mark.flags & kEndsThought) != 0;
  }
  return (mark.flags & kAtStart) == 0 || at_start_;
}

/// True if a mark may start with this byte, which is then held.
bool ReplyReader::beginsMark(char c) {
  const uint8_t group = first_[static_cast<unsigned char>(c)];
  open_count_ = 0;
  for (uint8_t i = group == 0 ? 0 : group_end_[group - 1]; i < group_end_[group]; ++i) {
    if (eligible(kMarks[active_[i]])) {
      open_[open_count_++] = active_[i];
    }
  }
  mark_from_ = open_count_ != 0 ? held_ : kNoMark;
  best_row_ = kNoRow;
  return open_count_ != 0 && hold(c);
}

bool ReplyReader::stepMark() {
  const uint32_t bytes = held_ - mark_from_;
  const char c = hold_[held_ - 1];
  uint8_t still = 0;
  for (uint8_t i = 0; i < open_count_; ++i) {
    const Mark& mark = kMarks[open_[i]];
    if (mark.text[bytes - 1] != c) {
      continue;
    }
    if (mark.text[bytes] != '\0') {
      open_[still++] = open_[i];
    } else if (best_row_ == kNoRow || best_bytes_ != bytes) {
      best_row_ = open_[i];
      best_bytes_ = bytes;
    }
  }
  open_count_ = still;
  if (still != 0) {
    return true;
  }
  if (best_row_ == kNoRow) {
    return false;
  }
  takeMark(best_row_, best_bytes_);
  return true;
}

/// The first `bytes` held bytes are a mark; the rest is read again.
void ReplyReader::takeMark(uint8_t row, uint32_t bytes) {
  char rest[kMostMark];
  const uint32_t count = held_ - mark_from_ - bytes;
  std::memcpy(rest, hold_ + mark_from_ + bytes, count);
  held_ -= count;
  const uint32_t from = mark_from_;
  mark_from_ = kNoMark;
  best_row_ = kNoRow;
  if (mode_ == Mode::kCall) {
    takeCallMark(row);
  } else {
    mark_from_ = from;
    takeTextMark(row);
  }
  for (uint32_t i = 0; i < count; ++i) {
    pushByte(rest[i]);
  }
}

uint32_t ReplyReader::thoughtEndBegun() const {
  const uint32_t bytes = mark_from_ != kNoMark ? held_ - mark_from_ : 0;
  return std::strncmp(hold_ + held_ - bytes, thoughtEnd(), bytes) == 0 ? bytes : 0;
}

/// True if the mark belongs to the open thought: it closes the thought, or reopens it.
bool ReplyReader::closesThought(const Mark& mark) const {
  const ReplyForms all = ~ReplyForms{0};
  return thought_forms_ == 0 || mark.forms == thought_forms_ ||
         (mark.forms != all && thought_forms_ != all && (mark.forms & thought_forms_) != 0);
}

void ReplyReader::text(char c) {
  mark_kinds_ = kMarksInAnswers;
  if (mark_from_ != kNoMark) {
    hold(c);
    if (!stepMark()) {
      showHeldByte();
    }
    return;
  }
  if (isSpace(c) && drop_space_) {
    return;
  }
  if (isSpace(c) && (at_start_ || after_call_) && first_[static_cast<unsigned char>(c)] == 0) {
    hold(c);
    if (held_ == kMostSpace) {
      putHeld(PartKind::kText, 0, held_);
      held_ = 0;
      at_start_ = after_call_ = false;
    }
    return;
  }
  if (!beginsMark(c)) {
    textByte(c);
  }
}

/// A byte that starts no mark.
void ReplyReader::textByte(char c) {
  const ReplyForms forms = settings_.calls ? settings_.forms : 0;
  const bool json = (forms & kFormBareJson) != 0;
  const bool python = (forms & kFormBarePython) != 0;
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  hold(c);
  if (at_start_ && ((c == '{' && json) || (c == '[' && (json || python)) ||
                    (letter && (forms & kFormRecipient) != 0))) {
    beginBareCall();
    return;
  }
  putHeld(PartKind::kText, 0, held_);
  held_ = 0;
  at_start_ = after_call_ = drop_space_ = false;
}

/// The held bytes are not a mark: the first byte is text.
void ReplyReader::showHeldByte() {
  const uint32_t from = mark_from_;
  const char c = hold_[from];
  char again[kMostMark];
  const uint32_t count = held_ - from - 1;
  std::memcpy(again, hold_ + from + 1, count);
  held_ = from;
  mark_from_ = kNoMark;
  if (mode_ == Mode::kText) {
    textByte(c);
  } else {
    hold(c);
    putHeld(PartKind::kThought, 0, held_);
    held_ = 0;
    thought_shown_ = true;
  }
  for (uint32_t i = 0; i < count; ++i) {
    pushByte(again[i]);
  }
}

void ReplyReader::thought(char c) {
  mark_kinds_ = kMarkThought | kMarkThoughtEnd | kMarkTrigger;
  if (mark_from_ != kNoMark) {
    hold(c);
    if (!stepMark()) {
      showHeldByte();
    }
    return;
  }
  if (isSpace(c)) {
    if (thought_shown_) {
      hold(c);
      if (held_ == kMostSpace) {
        putHeld(PartKind::kThought, 0, held_);
        held_ = 0;
      }
    }
    return;
  }
  if (!beginsMark(c)) {
    hold(c);
    putHeld(PartKind::kThought, 0, held_);
    held_ = 0;
    thought_shown_ = true;
  }
}

void ReplyReader::takeTextMark(uint8_t row) {
  const Mark& mark = kMarks[row];
  const uint32_t from = mark_from_;
  mark_from_ = kNoMark;
  if (mode_ == Mode::kThought && (mark.kinds & kMarkThoughtEnd) != 0) {
    held_ = 0;
    mode_ = Mode::kText;
    at_start_ = drop_space_ = true;
    after_call_ = false;
    return;
  }
  if ((mark.kinds & kMarkTrigger) != 0 || mark.open_end != nullptr) {
    space_bytes_ = from;
    beginCall(row);
    return;
  }
  if ((mark.kinds & kMarkSkip) != 0) {
    held_ = 0;
    return;
  }
  if (!takeThoughtMark(mark, from)) {
    const bool quoted = isQuoted(from) && (mark.kinds & kMarkThought) != 0;
    putHeld(PartKind::kText, 0, held_);
    quoted_ = quoted;
    at_start_ = after_call_ = drop_space_ = false;
  }
  held_ = 0;
}

/// A thought mark in an answer, after `from` held bytes of white space. False: it is text.
bool ReplyReader::takeThoughtMark(const Mark& mark, uint32_t from) {
  const bool quoted = isQuoted(from);
  if ((mark.kinds & kMarkThought) != 0) {
    if (quoted || ((mark.flags & kAnywhere) == 0 && !at_start_ && !after_call_)) {
      ++mentions_;
      return false;
    }
    mode_ = Mode::kThought;
    thought_opened_ = true;
    thought_shown_ = false;
    thought_forms_ = mark.forms;
    thought_mark_ = &mark;
    return true;
  }
  if (quoted || mentions_ != 0) {
    mentions_ -= mentions_ != 0 ? 1 : 0;
    return false;
  }
  const bool unopened = !thought_opened_ && !settings_.inside_thought;
  if ((mark.flags & kStray) != 0 && !at_start_) {
    close_pending_ = close_pending_ || unopened;
    return true;
  }
  closed_unopened_ = closed_unopened_ || unopened;
  drop_space_ = drop_space_ || at_start_;  // an empty thought
  return at_start_;
}

}  // namespace oriel_internal
