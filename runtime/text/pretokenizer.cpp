#include "text/pretokenizer.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace oriel {
namespace {

struct Name {
  const char* text;
  PreTokenizerRules rules;
};
/// The first name of each kind is what it is called here.
constexpr Name kNames[] = {
    {"gpt-2", {PreTokenizer::kGpt2, false, false}},
    {"phi-2", {PreTokenizer::kGpt2, false, false}},
    {"mpt", {PreTokenizer::kGpt2, false, false}},
    {"olmo", {PreTokenizer::kGpt2, false, false}},
    {"exaone4", {PreTokenizer::kGpt2, false, false}},
    {"gigachat", {PreTokenizer::kGpt2, false, false}},
    {"smollm", {PreTokenizer::kSmolLm, false, false}},
    {"starcoder", {PreTokenizer::kSmolLm, false, false}},
    {"refact", {PreTokenizer::kSmolLm, false, false}},
    {"command-r", {PreTokenizer::kSmolLm, false, false}},
    {"codeshell", {PreTokenizer::kSmolLm, false, false}},
    {"exaone", {PreTokenizer::kSmolLm, false, false}},
    {"minerva-7b", {PreTokenizer::kSmolLm, false, false}},
    {"qwen2", {PreTokenizer::kQwen2, false, false}},
    {"deepseek-r1-qwen", {PreTokenizer::kQwen2, false, false}},
    {"stablelm2", {PreTokenizer::kQwen2, false, false}},
    {"hunyuan", {PreTokenizer::kQwen2, false, false}},
    {"megrez", {PreTokenizer::kQwen2, false, false}},
    {"qwen35", {PreTokenizer::kQwen35, false, false}},
    {"llama-bpe", {PreTokenizer::kLlama3, true, true}},
    {"llama3", {PreTokenizer::kLlama3, true, true}},
    {"llama-v3", {PreTokenizer::kLlama3, true, true}},
    {"falcon3", {PreTokenizer::kLlama3, true, true}},
    {"falcon-h1", {PreTokenizer::kLlama3, true, true}},
    {"pixtral", {PreTokenizer::kLlama3, true, true}},
    {"lfm2", {PreTokenizer::kLlama3, true, true}},
    {"smaug-bpe", {PreTokenizer::kLlama3, false, false}},
    {"dbrx", {PreTokenizer::kLlama3, false, false}},
    {"glm4", {PreTokenizer::kLlama3, false, false}},
    {"chatglm-bpe", {PreTokenizer::kLlama3, false, false}},
    {"tekken", {PreTokenizer::kTekken, true, true}},
    {"gpt-4o", {PreTokenizer::kGpt4o, false, false}},
    {"llama4", {PreTokenizer::kGpt4o, false, false}},
};

struct Char {
  uint32_t code_point = 0;
  uint32_t bytes = 0;  ///< 0: there is none
  CharClass kind = CharClass::kOther;

  bool exists() const { return bytes != 0; }
  bool is(char c) const { return code_point == static_cast<unsigned char>(c) && exists(); }
  bool newline() const { return is('\r') || is('\n'); }
  bool letter() const { return exists() && isLetter(kind); }
  bool mark() const { return exists() && kind == CharClass::kMark; }
  bool letterOrMark() const { return letter() || mark(); }
  bool number() const { return exists() && kind == CharClass::kNumber; }
  bool space() const { return exists() && kind == CharClass::kSpace; }
  /// [^\s\p{L}\p{N}]
  bool rest() const { return exists() && !isLetter(kind) && !number() && !space(); }
  /// [^\s\p{L}\p{M}\p{N}]
  bool restWithoutMarks() const { return rest() && !mark(); }
  /// [^\r\n\p{L}\p{N}]
  bool leadsWord() const { return exists() && !isLetter(kind) && !number() && !newline(); }
  /// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  bool notLower() const { return letterOrMark() && kind != CharClass::kLower; }
  /// [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  bool notUpper() const {
    return letterOrMark() && kind != CharClass::kUpper && kind != CharClass::kTitle;
  }
};

/// A stretch of text as a matcher sees it.
class Reader {
 public:
  Reader(const char* text, size_t end, bool stop_at_numbers, bool* reached_end)
      : text_(text), end_(end), stop_at_numbers_(stop_at_numbers), reached_end_(reached_end) {}

  Char at(size_t position) const {
    Char c;
    if (reached_end_ != nullptr && position + kMaxUtf8Bytes > end_) {
      *reached_end_ = true;
    }
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
  template <typename Is>
  size_t skip(size_t position, const Is& is) const {
    for (Char c = at(position); is(c); c = at(position)) {
      position += c.bytes;
    }
    return position;
  }
  template <bool (Char::*is)() const>
  size_t skip(size_t position) const {
    return skip(position, [](const Char& c) { return (c.*is)(); });
  }

 private:
  const char* text_;
  size_t end_;
  bool stop_at_numbers_;
  bool* reached_end_;
};

/// Bytes of 's|'t|'re|'ve|'m|'ll|'d at `position`, or 0.
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

/// Bytes of (?i:'s|'t|'re|'ve|'m|'ll|'d) at `position`, or 0. Case folding makes the long s an s.
size_t anyCaseContraction(const Reader& reader, size_t position) {
  if (!reader.at(position).is('\'')) {
    return 0;
  }
  const auto lower = [&](size_t at) {
    const uint32_t c = reader.at(at).code_point;
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
  };
  constexpr uint32_t kLongS = 0x17F;
  const uint32_t first = lower(position + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') {
    return 2;
  }
  if (first == kLongS) {
    return 3;
  }
  const uint32_t second = lower(position + 2);
  const bool two =
      ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

/// \s+(?!\S)|\s+ where `begin` is white space: all of it at the end, otherwise all but the last,
/// which belongs to what follows. With `lines`, \s*[\r\n]+ goes first: up to the last line end.
size_t spaceEnd(const Reader& reader, size_t begin, bool lines) {
  size_t end = begin;
  size_t last = begin;
  size_t line_end = begin;
  for (Char c = reader.at(begin); c.space(); c = reader.at(end)) {
    last = end;
    end += c.bytes;
    line_end = c.newline() ? end : line_end;
  }
  if (lines && line_end > begin) {
    return line_end;
  }
  return reader.at(end).exists() && last > begin ? last : end;
}

/// \p{N}{1,limit} where `begin` is a number.
size_t numberEnd(const Reader& reader, size_t begin, int limit) {
  size_t end = begin;
  for (Char c = reader.at(begin); c.number() && limit > 0; c = reader.at(end), --limit) {
    end += c.bytes;
  }
  return end;
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2WordEnd(const Reader& reader, size_t begin) {
  const Char first = reader.at(begin);
  if (first.is('\'')) {
    if (const size_t bytes = contraction(reader, begin); bytes != 0) {
      return begin + bytes;
    }
  }
  const size_t body = begin + (first.is(' ') ? 1 : 0);
  const Char head = reader.at(body);
  if (head.letter()) {
    return reader.skip<&Char::letter>(body);
  }
  if (head.number()) {
    return reader.skip<&Char::number>(body);
  }
  if (head.rest()) {
    return reader.skip<&Char::rest>(body);
  }
  return spaceEnd(reader, begin, false);
}

/// What the expressions of llama-bpe, qwen2 and tekken have in common after their words: numbers of
/// at most `digits`, ` ?[^\s\p{L}\p{N}]+[\r\n]*` and white space that ends with the line. `tail`
/// stands for [\r\n].
template <bool (Char::*rest)() const, typename Tail>
size_t otherEnd(const Reader& reader, size_t begin, int digits, const Tail& tail) {
  const Char first = reader.at(begin);
  if (first.number()) {
    return numberEnd(reader, begin, digits);
  }
  const size_t body = begin + (first.is(' ') ? 1 : 0);
  if ((reader.at(body).*rest)()) {
    return reader.skip(reader.skip<rest>(body), tail);
  }
  return spaceEnd(reader, begin, true);
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}
/// | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
/// `letter` is \p{L} and `rest` what is left of it: qwen35 counts marks among the letters.
template <bool (Char::*letter)() const, bool (Char::*rest)() const>
size_t llama3WordEnd(const Reader& reader, size_t begin, int digits) {
  if (const size_t bytes = anyCaseContraction(reader, begin); bytes != 0) {
    return begin + bytes;
  }
  const Char first = reader.at(begin);
  const bool leads = !(first.*letter)() && first.leadsWord();
  const size_t body = begin + (leads ? first.bytes : 0);
  if ((reader.at(body).*letter)()) {
    return reader.skip<letter>(body);
  }
  return otherEnd<rest>(reader, begin, digits, [](const Char& c) { return c.newline(); });
}

/// U*L+ with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and L = [\p{Ll}\p{Lm}\p{Lo}\p{M}]; `begin` if there
/// is none. U* gives back what L+ needs: without a small letter behind it, all after the last
/// character that is in both sets.
size_t capitalisedEnd(const Reader& reader, size_t begin) {
  size_t end = begin;
  size_t after_both = begin;
  for (Char c = reader.at(begin); c.notLower(); c = reader.at(end)) {
    end += c.bytes;
    after_both = c.notUpper() ? end : after_both;
  }
  return reader.at(end).notUpper() ? reader.skip<&Char::notUpper>(end) : after_both;
}

/// U+L*; `begin` if there is none.
size_t capitalsEnd(const Reader& reader, size_t begin) {
  const size_t end = reader.skip<&Char::notLower>(begin);
  return end > begin ? reader.skip<&Char::notUpper>(end) : begin;
}

/// [^\r\n\p{L}\p{N}]?U*L+c?|[^\r\n\p{L}\p{N}]?U+L*c?|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*
/// |\s*[\r\n]+|\s+(?!\S)|\s+ with U and L as above; c is (?i:'s|'t|'re|'ve|'m|'ll|'d) or nothing.
size_t casedWordEnd(const Reader& reader, size_t begin, int digits, bool with_contraction) {
  const Char first = reader.at(begin);
  const size_t body = begin + (first.leadsWord() ? first.bytes : 0);
  // The lead is taken if it can be; a mark can also begin the word itself.
  size_t (*const matches[])(const Reader&, size_t) = {&capitalisedEnd, &capitalsEnd};
  const size_t starts[] = {body, begin};
  for (const auto match : matches) {
    for (const size_t start : starts) {
      if (const size_t end = match(reader, start); end > start) {
        return end + (with_contraction ? anyCaseContraction(reader, end) : 0);
      }
    }
  }
  return otherEnd<&Char::rest>(reader, begin, digits,
                               [](const Char& c) { return c.newline() || c.is('/'); });
}

}  // namespace

bool preTokenizerByName(const GgufString& name, PreTokenizerRules* rules) {
  for (const Name& known : kNames) {
    if (name.equals(known.text)) {
      *rules = known.rules;
      return true;
    }
  }
  return false;
}

const char* preTokenizerName(PreTokenizer pre) {
  for (const Name& known : kNames) {
    if (known.rules.pre == pre) {
      return known.text;
    }
  }
  return "none";
}

size_t wordEnd(PreTokenizer pre, const char* text, size_t begin, size_t end, bool* reached_end) {
  const Reader reader(text, end, false, reached_end);
  switch (pre) {
    case PreTokenizer::kNone:
      if (reached_end != nullptr) {
        *reached_end = true;
      }
      return end;
    case PreTokenizer::kGpt2:
      return gpt2WordEnd(reader, begin);
    case PreTokenizer::kSmolLm: {
      // \p{N} cuts first, so that for the second expression the text ends before every number.
      const Char first = reader.at(begin);
      return first.number() ? begin + first.bytes
                            : gpt2WordEnd(Reader(text, end, true, reached_end), begin);
    }
    case PreTokenizer::kQwen2:
      return llama3WordEnd<&Char::letter, &Char::rest>(reader, begin, 1);
    case PreTokenizer::kQwen35:
      return llama3WordEnd<&Char::letterOrMark, &Char::restWithoutMarks>(reader, begin, 1);
    case PreTokenizer::kLlama3:
      return llama3WordEnd<&Char::letter, &Char::rest>(reader, begin, 3);
    case PreTokenizer::kTekken:
      return casedWordEnd(reader, begin, 1, false);
    case PreTokenizer::kGpt4o:
      return casedWordEnd(reader, begin, 3, true);
  }
  return end;
}

}  // namespace oriel
