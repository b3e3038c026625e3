#include "text/pretokenizer.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace oriel {
namespace {

struct Name {
  const char* text;
  PreTokenizer pre;
};
constexpr Name kNames[] = {
    {"gpt-2", PreTokenizer::kGpt2},
    {"smollm", PreTokenizer::kSmolLm},
};

struct Char {
  uint32_t code_point = 0;
  uint32_t bytes = 0;  ///< 0: there is none
  CharClass kind = CharClass::kOther;

  bool exists() const { return bytes != 0; }
  bool letter() const { return exists() && isLetter(kind); }
  bool number() const { return exists() && kind == CharClass::kNumber; }
  bool space() const { return exists() && kind == CharClass::kSpace; }
  /// [^\s\p{L}\p{N}]
  bool rest() const { return exists() && !isLetter(kind) && !number() && !space(); }
};

/// A stretch of text as a matcher sees it.
class Reader {
 public:
  Reader(const char* text, size_t end, bool stop_at_numbers)
      : text_(text), end_(end), stop_at_numbers_(stop_at_numbers) {}

  Char at(size_t position) const {
    Char c;
    if (position >= end_) {
      return c;
    }
    const Utf8Char decoded = decodeUtf8(text_ + position, end_ - position);
    c.kind = decoded.valid ? charClass(decoded.code_point) : CharClass::kSymbol;
    if (stop_at_numbers_ && c.kind == CharClass::kNumber) {
      return c;
    }
    c.code_point = decoded.code_point;
    c.bytes = decoded.valid ? decoded.bytes : 1;
    return c;
  }

  /// Past all characters from `position` on of which `is` is true.
  size_t skip(size_t position, bool (Char::*is)() const) const {
    for (Char c = at(position); (c.*is)(); c = at(position)) {
      position += c.bytes;
    }
    return position;
  }

 private:
  const char* text_;
  size_t end_;
  bool stop_at_numbers_;
};

/// Bytes of 's 't 're 've 'm 'll 'd at `position`, or 0.
size_t contraction(const Reader& reader, size_t position) {
  const uint32_t first = reader.at(position + 1).code_point;
  if (first == 's' || first == 't' || first == 'm' || first == 'd') {
    return 2;
  }
  const uint32_t second = reader.at(position + 2).code_point;
  if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l')) {
    return 3;
  }
  return 0;
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2WordEnd(const Reader& reader, size_t begin) {
  const Char first = reader.at(begin);
  if (first.code_point == '\'') {
    if (const size_t bytes = contraction(reader, begin); bytes != 0) {
      return begin + bytes;
    }
  }
  const size_t body = begin + (first.code_point == ' ' ? 1 : 0);
  const Char head = reader.at(body);
  if (head.letter()) {
    return reader.skip(body, &Char::letter);
  }
  if (head.number()) {
    return reader.skip(body, &Char::number);
  }
  if (head.rest()) {
    return reader.skip(body, &Char::rest);
  }
  // White space: all of it at the end, otherwise all but the last, which belongs to what follows.
  size_t end = begin;
  size_t last = begin;
  for (Char c = first; c.space(); c = reader.at(end)) {
    last = end;
    end += c.bytes;
  }
  return reader.at(end).exists() && last > begin ? last : end;
}

}  // namespace

bool preTokenizerByName(const GgufString& name, PreTokenizer* pre) {
  for (const Name& known : kNames) {
    if (name.equals(known.text)) {
      *pre = known.pre;
      return true;
    }
  }
  return false;
}

const char* preTokenizerName(PreTokenizer pre) {
  for (const Name& known : kNames) {
    if (known.pre == pre) {
      return known.text;
    }
  }
  return "none";
}

size_t wordEnd(PreTokenizer pre, const char* text, size_t begin, size_t end) {
  switch (pre) {
    case PreTokenizer::kNone:
      return end;
    case PreTokenizer::kGpt2:
      return gpt2WordEnd(Reader(text, end, false), begin);
    case PreTokenizer::kSmolLm: {
      // \p{N} cuts first, so that for the second expression the text ends before every number.
      const Char first = Reader(text, end, false).at(begin);
      return first.number() ? begin + first.bytes : gpt2WordEnd(Reader(text, end, true), begin);
    }
  }
  return end;
}

}  // namespace oriel
