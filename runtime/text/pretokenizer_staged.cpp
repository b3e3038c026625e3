#include "text/pretokenizer.h"

namespace oriel_internal {
namespace {

template <uint32_t n>
bool isIn(const Char& c, const CodePointRange (&ranges)[n]) {
  return c.exists() && isInRanges(c.code_point, ranges, n);
}

// --- DeepSeek ------------------------------------------------------------------------------------

/// DeepSeek's (incomplete) list of letters of bicameral scripts, from its tokenizers.
constexpr CodePointRange kDeepSeekLetters[] = {
    {'A', 'Z'},         {'a', 'z'},         {0xB5, 0xB5},       {0xC0, 0xD6},
    {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},
    {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x377},     {0x37B, 0x37D},
    {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},
    {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
    {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},
    {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},
    {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
    {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},
    {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
    {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},
    {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
    {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},
    {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},
    {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
    {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},
    {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};
/// Its list of punctuation, [!-/:-~...], which includes ASCII letters and the ideographic space.
constexpr CodePointRange kDeepSeekPunctuation[] = {
    {'!', '/'}, {':', '~'}, {0x2018, 0x201F}, {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E},
};
constexpr uint32_t kIdeographicSpace = 0x3000;

/// [U+0800-U+9FA5 U+AC00-U+D7FF], from Samaritan to Hangul with all symbols between.
bool isAsian(const Char& c) { return c.between(0x800, 0x9FA5) || c.between(0xAC00, 0xD7FF); }

bool isListedLetter(const Char& c) { return isIn(c, kDeepSeekLetters); }
bool isListedPunctuation(const Char& c) { return isIn(c, kDeepSeekPunctuation); }

/// A text as seen by deepseek-llm's expressions.
class DeepSeekLlm {
 public:
  explicit DeepSeekLlm(const Reader& reader) : reader_(reader) {}

  size_t wordEnd(size_t begin) const {
    const Char first = reader_.at(begin);
    if (first.newline() || first.number()) {
      return begin + first.bytes;
    }
    const size_t body = begin + (first.space() ? first.bytes : 0);
    if (isListedLetter(reader_.at(body))) {
      return lettersEnd(begin, body);
    }
    if (opensPunctuation(begin)) {
      return punctuationEnd(begin, begin);
    }
    if (first.space() && opensPunctuation(body)) {
      return punctuationEnd(begin, body);
    }
    return gapEnd(begin);
  }

 private:
  /// \s?L+ split by \s?P+, since P contains ASCII letters, and by the Asian ranges.
  size_t lettersEnd(size_t begin, size_t body) const {
    const Char first = reader_.at(begin);
    const Char head = reader_.at(body);
    const bool listed = isListedPunctuation(head);
    const bool asian = isAsian(head);
    if (body > begin && (first.code_point == kIdeographicSpace || isAsian(first) != asian)) {
      return body;
    }
    return reader_.skip(body, [&](const Char& c) {
      return isListedLetter(c) && isListedPunctuation(c) == listed && isAsian(c) == asian;
    });
  }

  /// P outside a match of \s?L+.
  bool opensPunctuation(size_t at) const {
    const Char c = reader_.at(at);
    return isListedPunctuation(c) && !isListedLetter(c) &&
           !(c.space() && isListedLetter(reader_.at(at + c.bytes)));
  }

  /// \s?P+ without trailing white space, split by the Asian ranges.
  size_t punctuationEnd(size_t begin, size_t body) const {
    const bool asian = isAsian(reader_.at(begin));
    if (isAsian(reader_.at(body)) != asian) {
      return body;
    }
    size_t solid = begin;
    size_t end = body;
    while (opensPunctuation(end)) {
      const Char c = reader_.at(end);
      if (isAsian(c) != asian) {
        return end;
      }
      end += c.bytes;
      solid = c.space() ? solid : end;
    }
    return solid > begin ? solid : end;
  }

  /// True at the end of text that the first three expressions left unmatched.
  bool gapEndsAt(size_t at) const {
    const Char c = reader_.at(at);
    if (!c.exists() || c.newline() || isListedLetter(c) || opensPunctuation(at)) {
      return true;
    }
    const size_t next = at + c.bytes;
    return c.space() && (isListedLetter(reader_.at(next)) || opensPunctuation(next));
  }

  /// The rest, without trailing white space, split by numbers and the Asian ranges.
  size_t gapEnd(size_t begin) const {
    const bool asian = isAsian(reader_.at(begin));
    size_t solid = begin;
    size_t end = begin;
    while (end == begin || !gapEndsAt(end)) {
      const Char c = reader_.at(end);
      if (c.number()) {
        return end;
      }
      if (isAsian(c) != asian) {
        // The rest may be only white space with changing ranges.
        size_t behind = end;
        while (solid > begin && solid < end && reader_.at(behind).space() && !gapEndsAt(behind)) {
          behind += reader_.at(behind).bytes;
        }
        return solid > begin && solid < end && gapEndsAt(behind) ? solid : end;
      }
      end += c.bytes;
      solid = c.space() ? solid : end;
    }
    return solid > begin ? solid : end;
  }

  const Reader& reader_;
};

/// [U+4E00-U+9FA5], Hiragana and Katakana.
bool isChineseOrJapanese(const Char& c) {
  return c.between(0x4E00, 0x9FA5) || c.between(0x3040, 0x30FF);
}

/// [!-/:-@[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+
/// |\s+(?!\S)|\s+ in text without numbers. Without `lines`, [\r\n] replaces [\r\n]* and \s*[\r\n]+.
size_t deepSeek3PartEnd(const Reader& reader, size_t begin, bool lines = true) {
  const Char first = reader.at(begin);
  if (first.asciiPunctuation() && reader.at(begin + 1).asciiLetter()) {
    return reader.skip<&Char::asciiLetter>(begin + 1);
  }
  const bool leads = !first.letterOrMark() && !first.punctuationOrSymbol() && !first.newline();
  const size_t letters = begin + (leads ? first.bytes : 0);
  if (reader.at(letters).letterOrMark()) {
    return reader.skip<&Char::letterOrMark>(letters);
  }
  const size_t body = begin + (first.is(' ') ? 1 : 0);
  if (reader.at(body).punctuationOrSymbol()) {
    const size_t end = reader.skip<&Char::punctuationOrSymbol>(body);
    return lines ? reader.skip<&Char::newline>(end) : end;
  }
  if (first.newline() && !lines) {
    return begin + first.bytes;
  }
  if (first.space()) {
    return spaceEnd(reader, begin, lines);
  }
  // Controls and similar characters match nothing, except the last character before letters: it joins the word.
  size_t end = begin + first.bytes;
  for (Char c = reader.at(end); c.other() && !reader.at(end + c.bytes).letterOrMark();
       c = reader.at(end)) {
    end += c.bytes;
  }
  return end;
}

// --- Falcon --------------------------------------------------------------------------------------

bool isFalconPunctuation(const Char& c) { return c.punctuation() || c.asciiPunctuation(); }

bool hasThreeDigits(const Reader& reader, size_t at) {
  return reader.at(at).asciiDigit() && reader.at(at + 1).asciiDigit() &&
         reader.at(at + 2).asciiDigit();
}

// --- BLOOM ---------------------------------------------------------------------------------------

/// [(\s|.,!?...)], followed by full stops and commas of other scripts.
bool isBloomStop(const Char& c) {
  switch (c.code_point) {
    case '(':
    case ')':
    case '|':
    case '.':
    case ',':
    case '!':
    case '?':
    case 0x2026:  // horizontal ellipsis
    case 0x3002:  // ideographic full stop
    case 0xFF0C:  // fullwidth comma
    case 0x3001:  // ideographic comma
    case 0x0964:  // Devanagari danda
    case 0x06D4:  // Arabic full stop
    case 0x060C:  // Arabic comma
      return true;
    default:
      return c.space();
  }
}

/// True if ` ?[^...]+` matches at `at`; *body is after its space.
bool isBloomWord(const Reader& reader, size_t at, size_t* body) {
  const Char first = reader.at(at);
  *body = at + (first.is(' ') ? 1 : 0);
  const Char head = reader.at(*body);
  return head.exists() && !isBloomStop(head);
}

}  // namespace

size_t deepSeekCoderWordEnd(const Reader& reader, size_t begin) {
  const Char first = reader.at(begin);
  if (first.newline() || first.number()) {
    return begin + first.bytes;
  }
  const bool asian = isAsian(first);
  const size_t body = begin + (first.space() ? first.bytes : 0);
  const Char head = reader.at(body);
  if (head.letter() || head.punctuation()) {
    if (isAsian(head) != asian) {
      return body;
    }
    return reader.skip(body, [&](const Char& c) {
      return (head.letter() ? c.letter() : c.punctuation()) && isAsian(c) == asian;
    });
  }
  const auto matches = [](const Char& c) { return c.letter() || c.punctuation(); };
  size_t end = begin + first.bytes;
  for (Char c = reader.at(end);
       c.exists() && !c.newline() && !c.number() && !matches(c) && isAsian(c) == asian &&
       !(c.space() && matches(reader.at(end + c.bytes)));
       c = reader.at(end)) {
    end += c.bytes;
  }
  return end;
}

size_t deepSeekLlmWordEnd(const Reader& reader, size_t begin) {
  return DeepSeekLlm(reader).wordEnd(begin);
}

size_t deepSeek3WordEnd(const Reader& reader, size_t begin) {
  if (reader.at(begin).number()) {
    return numberEnd(reader, begin, 3);
  }
  const auto region = [](const Char& c) -> uint8_t {
    return c.number() ? 1 : isChineseOrJapanese(c) ? 2 : 0;
  };
  return deepSeek3PartEnd(reader.within(region, begin), begin);
}

size_t sparkWordEnd(const Reader& reader, size_t begin) {
  const Char first = reader.at(begin);
  const auto region = [](const Char& c) -> uint8_t {
    return c.number() ? 1 : isChineseOrJapanese(c) ? 2 : 0;
  };
  return first.number() ? begin + first.bytes
                        : deepSeek3PartEnd(reader.within(region, begin), begin, false);
}

namespace {

/// Counts the characters after `begin` that satisfy `is`, unless already counted; returns the count.
template <typename Is>
size_t counted(const Reader& reader, size_t begin, const Is& is, DigitCount* count) {
  if (count->at != begin) {
    size_t n = 0;
    size_t behind = begin;
    for (Char c = reader.at(begin); is(c); c = reader.at(behind)) {
      behind += c.bytes;
      ++n;
    }
    *count = {begin, n, behind};
  }
  (void)reader.at(count->behind);  // marks the answer as dependent on the text here
  return count->digits;
}

/// The end of the first `step` counted characters.
size_t takeCounted(const Reader& reader, size_t begin, size_t step, DigitCount* count) {
  size_t end = begin;
  for (size_t i = 0; i < step; ++i) {
    end += reader.at(end).bytes;
  }
  *count = {end, count->digits - step, count->behind};
  return end;
}

/// The digits that leave a multiple of three.
size_t threesEnd(const Reader& reader, size_t begin, DigitCount* count) {
  const size_t rest = count->digits % 3;
  return takeCounted(reader, begin, rest == 0 ? 3 : rest, count);
}

/// Scripts that afmoe separates from others.
constexpr CodePointRange kAfmoeScripts[] = {
    {0x0E40, 0x0EFF}, {0x1000, 0x109F}, {0x1100, 0x11FF}, {0x1780, 0x17FF}, {0x2F00, 0x2FDF},
    {0x3040, 0x30FF}, {0x3400, 0x4DBF}, {0x4E00, 0xFAFF}, {0xFF65, 0xFF9F},
};

}  // namespace

size_t afmoeWordEnd(const Reader& reader, size_t begin, DigitCount* count) {
  if (reader.at(begin).number()) {
    (void)counted(
        reader, begin, [](const Char& c) { return c.number(); }, count);
    return threesEnd(reader, begin, count);
  }
  const auto region = [](const Char& c) -> uint8_t {
    return c.number() ? 1 : isIn(c, kAfmoeScripts) ? 2 : 0;
  };
  return deepSeek3PartEnd(reader.within(region, begin), begin);
}

size_t boundDigitsEnd(const Reader& reader, size_t begin, DigitCount* count) {
  const size_t digits = counted(
      reader, begin, [](const Char& c) { return c.digit(); }, count);
  const Char next = reader.at(count->behind);
  const bool bound = !next.letterOrMark() && !next.is('_');
  return digits != 0 && bound ? threesEnd(reader, begin, count) : begin;
}

size_t jaisSpaceEnd(const Reader& reader, size_t begin, DigitCount* count) {
  if (count->at != begin) {
    const size_t lines = spaceEnd(reader, begin, true);
    if (reader.at(begin).newline() || lines > begin + 1) {
      size_t line_end = begin;
      for (size_t at = begin; at < lines; at += reader.at(at).bytes) {
        line_end = reader.at(at).newline() ? at + 1 : line_end;
      }
      if (line_end > begin) {
        return line_end;
      }
    }
  }
  const size_t n = counted(
      reader, begin, [](const Char& c) { return c.space(); }, count);
  const bool ends = !reader.at(count->behind).exists();
  for (size_t step = 512; step > 1; step /= 2) {
    if (n > step || (n == step && ends)) {
      return takeCounted(reader, begin, step, count);
    }
  }
  return takeCounted(reader, begin, 1, count);
}

size_t falconWordEnd(const Reader& whole, size_t begin) {
  const auto region = [](const Char& c) -> uint8_t { return isFalconPunctuation(c) ? 1 : 0; };
  const Reader reader = whole.within(region, begin);
  const Char first = reader.at(begin);
  if (isFalconPunctuation(first)) {
    return reader.skip(begin, isFalconPunctuation);
  }
  if (first.number()) {
    if (hasThreeDigits(reader, begin)) {
      return begin + 3;
    }
    size_t end = begin + first.bytes;
    while (reader.at(end).number() && !hasThreeDigits(reader, end)) {
      end += reader.at(end).bytes;
    }
    return end;
  }
  const size_t body = begin + (first.is(' ') ? 1 : 0);
  const Char head = reader.at(body);
  if (head.number()) {
    return body;
  }
  if (head.letter()) {
    return reader.skip<&Char::letter>(body);
  }
  if (head.rest()) {
    return reader.skip<&Char::rest>(body);
  }
  return spaceEnd(reader, begin, false);
}

size_t bloomWordEnd(const Reader& reader, size_t begin, bool cuts_numbers) {
  size_t body = begin;
  if (isBloomWord(reader, begin, &body)) {
    const Char head = reader.at(body);
    if (cuts_numbers && head.number()) {
      return body > begin ? body : begin + head.bytes;
    }
    return reader.skip(body, [&](const Char& c) {
      return c.exists() && !isBloomStop(c) && !(cuts_numbers && c.number());
    });
  }
  size_t end = begin + reader.at(begin).bytes;
  while (reader.at(end).exists() && !isBloomWord(reader, end, &body)) {
    end += reader.at(end).bytes;
  }
  return end;
}

size_t superBpeWordEnd(const Reader& reader, size_t begin, DigitCount* count) {
  if (!reader.at(begin).number()) {
    return reader.skip(begin, [](const Char& c) { return c.exists() && !c.number(); });
  }
  size_t end = begin;
  for (Char c = reader.at(begin); c.number(); c = reader.at(end)) {
    if (!c.digit()) {
      end += c.bytes;
      continue;
    }
    if (count->at != end) {
      size_t behind = end;
      size_t digits = 0;
      for (Char digit = c; digit.digit(); digit = reader.at(behind)) {
        behind += digit.bytes;
        ++digits;
      }
      *count = {end, digits, behind};
    }
    (void)reader.at(count->behind);  // marks the answer as dependent on the text here
    // Splits where the number of remaining digits is a multiple of three.
    if (end > begin && count->digits % 3 == 0) {
      return end;
    }
    size_t step = count->digits % 3 == 0 ? 3 : count->digits % 3;
    const size_t left = count->digits - step;
    for (; step > 0; --step) {
      end += reader.at(end).bytes;
    }
    *count = {end, left, count->behind};
    if (left > 0) {
      return end;
    }
  }
  return end;
}

}  // namespace oriel_internal
