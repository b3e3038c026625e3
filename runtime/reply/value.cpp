#include "reply/parameter.h"

#include <cstring>

#include "reply/reader.h"
#include "text/special_tokens.h"
#include "text/unicode.h"

namespace oriel_internal {
namespace {

constexpr uint8_t kGemmaQuoteBytes = sizeof(kGemmaQuote) - 1;
constexpr uint32_t kReplacement = 0xFFFD;

bool isWord(const char* text, size_t bytes, const char* word) {
  return bytes == std::strlen(word) && std::memcmp(text, word, bytes) == 0;
}

/// RFC 8259's grammar.
bool isJsonNumber(const char* text, size_t bytes) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t from = at;
    while (at < bytes && isDigit(text[at])) {
      ++at;
    }
    return at - from;
  };
  const auto take = [&](char c) {
    const bool there = at < bytes && text[at] == c;
    at += there ? 1 : 0;
    return there;
  };
  take('-');
  const size_t from = at;
  const size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[from] == '0')) {
    return false;
  }
  if (take('.') && digits() == 0) {
    return false;
  }
  if (take('e') || take('E')) {
    if (!take('-')) {
      take('+');
    }
    if (digits() == 0) {
      return false;
    }
  }
  return at == bytes;
}

}  // namespace

void ByteSink::put(const char* text) const {
  for (; *text != '\0'; ++text) {
    put(*text);
  }
}

void putJsonByte(char byte, const ByteSink& to) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '"':
    case '\\':
      to.put('\\');
      to.put(byte);
      return;
    case '\n':
      return to.put("\\n");
    case '\r':
      return to.put("\\r");
    case '\t':
      return to.put("\\t");
    case '\b':
      return to.put("\\b");
    case '\f':
      return to.put("\\f");
    default:
      break;
  }
  if (static_cast<unsigned char>(byte) < 0x20) {
    to.put("\\u00");
    to.put(kHex[byte >> 4 & 15]);
    to.put(kHex[byte & 15]);
  } else {
    to.put(byte);
  }
}

WordKind kindOfWord(const char* text, size_t bytes) {
  if (isWord(text, bytes, "null") || isWord(text, bytes, "None")) {
    return WordKind::kNull;
  }
  if (isWord(text, bytes, "true") || isWord(text, bytes, "True") || isWord(text, bytes, "false") ||
      isWord(text, bytes, "False")) {
    return WordKind::kBool;
  }
  return isJsonNumber(text, bytes) ? WordKind::kNumber : WordKind::kNone;
}

void ValueReader::start(ValueNotation notation) {
  *this = ValueReader();
  notation_ = notation;
}

ValueStep ValueReader::push(char c, const ByteSink& out) {
  switch (state_) {
    case State::kString:
    case State::kMaybeEnd:
    case State::kMaybeEmpty:
      return pushString(c, out);
    case State::kEscape:
      return pushEscape(c, out);
    case State::kHex:
      return pushHex(c, out);
    case State::kGemmaOpen:
      return pushGemmaQuote(c, out);
    case State::kWord:
    case State::kLongWord:
      return pushWord(c, out);
    case State::kColon:
      if (c == ':') {
        state_ = State::kValue;
        wanted_ = true;
        out.put(':');
        return ValueStep::kMore;
      }
      return isSpace(c) ? ValueStep::kMore : ValueStep::kWrong;
    case State::kCommaOrEnd:
      if (depth_ == 0) {
        return isSpace(c) ? ValueStep::kMore : ValueStep::kWrong;
      }
      if (c == ',') {
        state_ = inObject() ? State::kKeyOrEnd : State::kValueOrEnd;
        wanted_ = notation_ == ValueNotation::kStrict;
        comma_ = true;
        return ValueStep::kMore;
      }
      return isSpace(c) ? ValueStep::kMore : close(c, out);
    default:
      return isSpace(c) ? ValueStep::kMore : pushValue(c, out);
  }
}

ValueStep ValueReader::pushValue(char c, const ByteSink& out) {
  if (c == '}' || c == ']' || c == ')') {
    return wanted_ || depth_ == 0 ? ValueStep::kWrong : close(c, out);
  }
  if (c == ',' || c == ':') {
    return ValueStep::kWrong;
  }
  const bool strict = notation_ == ValueNotation::kStrict;
  is_key_ = state_ == State::kKeyOrEnd;
  if (notation_ == ValueNotation::kPlain && c != '"' && c != '\'') {
    return ValueStep::kWrong;
  }
  if (c == '"' || (c == '\'' && !strict)) {
    beginString(c, out);
    return ValueStep::kMore;
  }
  if (c == '<' && notation_ == ValueNotation::kGemma) {
    state_ = State::kGemmaOpen;
    n_quotes_ = 1;
    return ValueStep::kMore;
  }
  if (c == '{' || c == '[' || (c == '(' && !strict)) {
    if (is_key_ || depth_ == kMostDepth) {
      return ValueStep::kWrong;
    }
    putSeparator(out);
    out.put(c == '{' ? '{' : '[');
    open(c == '{');
    return ValueStep::kMore;
  }
  if (strict && is_key_) {
    return ValueStep::kWrong;
  }
  state_ = State::kWord;
  word_[0] = c;
  n_word_ = 1;
  return ValueStep::kMore;
}

void ValueReader::open(bool object) {
  const uint64_t bit = uint64_t{1} << depth_;
  objects_ = object ? objects_ | bit : objects_ & ~bit;
  ++depth_;
  comma_ = wanted_ = false;
  state_ = object ? State::kKeyOrEnd : State::kValueOrEnd;
}

ValueStep ValueReader::close(char c, const ByteSink& out) {
  const bool strict = notation_ == ValueNotation::kStrict;
  const bool fits = inObject() ? c == '}' : c == ']' || (c == ')' && !strict);
  if (!fits || wanted_) {
    return ValueStep::kWrong;
  }
  out.put(inObject() ? '}' : ']');
  --depth_;
  return afterValue(ValueStep::kEnded);
}

ValueStep ValueReader::afterValue(ValueStep at_the_end) {
  comma_ = wanted_ = false;
  state_ = State::kCommaOrEnd;
  return depth_ == 0 ? at_the_end : ValueStep::kMore;
}

void ValueReader::putSeparator(const ByteSink& out) {
  if (comma_) {
    out.put(',');
  }
  comma_ = wanted_ = false;
}

void ValueReader::beginString(char quote, const ByteSink& out) {
  putSeparator(out);
  if (notation_ != ValueNotation::kPlain) {
    out.put('"');
  }
  state_ = State::kString;
  quote_ = quote;
  n_quotes_ = 0;
  raw_ = long_ = false;
  code_ = 0;
}

ValueStep ValueReader::endString(const ByteSink& out, ValueStep at_the_end) {
  putLoneHalf(out);
  if (notation_ != ValueNotation::kPlain) {
    out.put('"');
  }
  if (is_key_) {
    is_key_ = false;
    state_ = State::kColon;
    return ValueStep::kMore;
  }
  return afterValue(at_the_end);
}

void ValueReader::putText(char c, const ByteSink& out) const {
  if (notation_ == ValueNotation::kPlain) {
    out.put(c);
  } else {
    putJsonByte(c, out);
  }
}

void ValueReader::putCodePoint(uint32_t code, const ByteSink& out) const {
  char bytes[kMaxUtf8Bytes];
  const size_t count = encodeUtf8(code, bytes);
  for (size_t i = 0; i < count; ++i) {
    putText(bytes[i], out);
  }
}

void ValueReader::putLoneHalf(const ByteSink& out) {
  if (high_half_ != 0) {
    high_half_ = 0;
    putCodePoint(kReplacement, out);
  }
}

ValueStep ValueReader::pushString(char c, const ByteSink& out) {
  if (quote_ == '<') {
    return pushGemmaQuote(c, out);
  }
  if (long_) {
    return pushLongString(c, out);
  }
  if (state_ == State::kMaybeEmpty && c == quote_) {
    long_ = true;
    n_quotes_ = 0;
    state_ = State::kString;
    return ValueStep::kMore;
  }
  if (state_ != State::kString) {
    if (isSpace(c) || c == ',' || c == ':' || c == '}' || c == ']' || c == ')') {
      const ValueStep step = endString(out, ValueStep::kEndedBefore);
      return step == ValueStep::kMore ? push(c, out) : step;
    }
    putLoneHalf(out);
    putText(quote_, out);  // not escaped
    state_ = State::kString;
  }
  if (c == quote_) {
    if (!loose()) {
      return endString(out, ValueStep::kEnded);
    }
    state_ = n_quotes_ == 0 ? State::kMaybeEmpty : State::kMaybeEnd;
    n_quotes_ = 1;
    return ValueStep::kMore;
  }
  n_quotes_ = 1;  // the string is not empty
  if (c == '\\' && !raw_) {
    state_ = State::kEscape;
  } else {
    putLoneHalf(out);
    putText(c, out);
  }
  return ValueStep::kMore;
}

ValueStep ValueReader::pushLongString(char c, const ByteSink& out) {
  if (c == quote_) {
    return ++n_quotes_ == 3 ? endString(out, ValueStep::kEnded) : ValueStep::kMore;
  }
  for (; n_quotes_ != 0; --n_quotes_) {
    putLoneHalf(out);
    putText(quote_, out);
  }
  if (c == '\\' && !raw_) {
    state_ = State::kEscape;
  } else {
    putLoneHalf(out);
    putText(c, out);
  }
  return ValueStep::kMore;
}

ValueStep ValueReader::pushGemmaQuote(char c, const ByteSink& out) {
  if (c == kGemmaQuote[n_quotes_]) {
    if (++n_quotes_ < kGemmaQuoteBytes) {
      return ValueStep::kMore;
    }
    if (state_ == State::kString) {
      return endString(out, ValueStep::kEnded);
    }
    beginString('<', out);
    return ValueStep::kMore;
  }
  if (state_ == State::kGemmaOpen) {
    return ValueStep::kWrong;
  }
  for (uint8_t i = 0; i < n_quotes_; ++i) {
    putText(kGemmaQuote[i], out);
  }
  n_quotes_ = c == '<' ? 1 : 0;  // no other byte of the mark can restart it
  if (n_quotes_ == 0) {
    putText(c, out);
  }
  return ValueStep::kMore;
}

ValueStep ValueReader::pushEscape(char c, const ByteSink& out) {
  state_ = State::kString;
  if (c == 'u' || c == 'U' || (c == 'x' && hasPythonEscapes())) {
    state_ = State::kHex;
    n_hex_ = c == 'u' ? 4 : c == 'x' ? 2 : 8;
    code_ = 0;
    word_[0] = c;
    n_word_ = 1;
    return ValueStep::kMore;
  }
  putLoneHalf(out);
  // Python's \a, \v and \0 are not decoded: arguments never mean these characters, but Windows paths contain such
  // names.
  constexpr char kNames[] = "ntrbf";
  constexpr char kBytes[] = "\n\t\r\b\f";
  const char* const name = c == '\0' ? nullptr : std::strchr(kNames, c);
  if (name != nullptr) {
    putText(kBytes[name - kNames], out);
  } else if (c != '\n') {  // Python skips a line end here
    if (c != '"' && c != '\'' && c != '\\' && c != '/') {
      putText('\\', out);
    }
    putText(c, out);
  }
  return ValueStep::kMore;
}

ValueStep ValueReader::pushHex(char c, const ByteSink& out) {
  const int digit = hexDigit(c);
  if (digit < 0) {  // C:\Users: not an escape
    putUnreadEscape(out);
    return push(c, out);
  }
  word_[n_word_++] = c;
  code_ = code_ << 4 | static_cast<uint32_t>(digit);
  if (--n_hex_ != 0) {
    return ValueStep::kMore;
  }
  state_ = State::kString;
  const bool low_half = code_ >= 0xDC00 && code_ <= 0xDFFF;
  if (low_half && high_half_ != 0) {
    const uint32_t pair = 0x10000 + ((high_half_ - 0xD800) << 10) + (code_ - 0xDC00);
    high_half_ = 0;
    putCodePoint(pair, out);
    return ValueStep::kMore;
  }
  putLoneHalf(out);
  if (code_ >= 0xD800 && code_ <= 0xDBFF) {
    high_half_ = code_;
  } else {
    putCodePoint(low_half || code_ > 0x10FFFF ? kReplacement : code_, out);
  }
  return ValueStep::kMore;
}

/// An escape without its digits stays as written.
void ValueReader::putUnreadEscape(const ByteSink& out) {
  state_ = State::kString;
  putLoneHalf(out);
  putText('\\', out);
  for (uint8_t i = 0; i < n_word_; ++i) {
    putText(word_[i], out);
  }
}

ValueStep ValueReader::pushWord(char c, const ByteSink& out) {
  const bool prefix = n_word_ == 1 && std::strchr("rRbBuUfF", word_[0]) != nullptr;
  if ((c == '"' || c == '\'') && prefix && loose()) {
    beginString(c, out);
    raw_ = word_[0] == 'r' || word_[0] == 'R';
    return ValueStep::kMore;
  }
  const bool ends =
      isSpace(c) || c == ',' || c == '}' || c == ']' || c == ')' || (c == ':' && is_key_);
  if (ends) {
    if (!endWord(out)) {
      return ValueStep::kWrong;
    }
    if (is_key_) {
      is_key_ = false;
      state_ = State::kColon;
      return push(c, out);
    }
    const ValueStep step = afterValue(ValueStep::kEndedBefore);
    return step == ValueStep::kMore ? push(c, out) : step;
  }
  if (c == '"' || c == '{' || c == '[' || c == '(' || c == '<' || c == '>' || c == '=') {
    return ValueStep::kWrong;
  }
  if (state_ == State::kLongWord) {
    putText(c, out);
  } else if (n_word_ < kMostWord - 1) {
    word_[n_word_++] = c;
  } else if (notation_ == ValueNotation::kStrict) {
    return ValueStep::kWrong;
  } else {
    putSeparator(out);
    out.put('"');
    for (uint8_t i = 0; i < n_word_; ++i) {
      putText(word_[i], out);
    }
    putText(c, out);
    state_ = State::kLongWord;
  }
  return ValueStep::kMore;
}

/// Writes the word as a number, a constant or a string.
bool ValueReader::endWord(const ByteSink& out) {
  if (state_ == State::kLongWord) {
    out.put('"');
    return true;
  }
  const WordKind kind = is_key_ ? WordKind::kNone : kindOfWord(word_, n_word_);
  if (kind == WordKind::kNone && notation_ == ValueNotation::kStrict) {
    return false;
  }
  putSeparator(out);
  if (kind == WordKind::kNone) {
    out.put('"');
  }
  for (uint8_t i = 0; i < n_word_ && kind != WordKind::kNull; ++i) {
    const bool capital = kind == WordKind::kBool && i == 0;
    const char c = capital ? static_cast<char>(word_[i] | 0x20) : word_[i];
    if (kind == WordKind::kNone) {
      putText(c, out);
    } else {
      out.put(c);
    }
  }
  out.put(kind == WordKind::kNull ? "null" : kind == WordKind::kNone ? "\"" : "");
  return true;
}

}  // namespace oriel_internal
