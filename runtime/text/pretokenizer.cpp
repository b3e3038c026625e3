#include "text/pretokenizer.h"

namespace oriel_internal {
namespace {

struct Name {
  const char* text;
  PreTokenizerRules rules;
};
/// The first name of each kind is Oriel's name for it. If llama.cpp splits differently from a model's published
/// tokenizer, the published one counts: for tekken, gpt-4o and youtu (letters by case in every script), kimi-k2 (marks
/// are letters), deepseek-llm (digits one by one), falcon (numbers separate from the space before them), white space
/// outside ASCII for the DeepSeek ones, and NFC for Qwen's.
constexpr Name kNames[] = {
    {"gpt-2", {PreTokenizer::kGpt2, false, false}},
    {"phi-2", {PreTokenizer::kGpt2, false, false}},
    {"mpt", {PreTokenizer::kGpt2, false, false}},
    {"olmo", {PreTokenizer::kGpt2, false, false}},
    {"exaone4", {PreTokenizer::kGpt2, false, false}},
    {"gigachat", {PreTokenizer::kGpt2, false, false}},
    {"granite-docling", {PreTokenizer::kGpt2, false, false}},
    {"trillion", {PreTokenizer::kGpt2, false, false}},
    {"a.x-4.0", {PreTokenizer::kGpt2, false, false}},
    {"mellum", {PreTokenizer::kGpt2, false, false}},
    {"modern-bert", {PreTokenizer::kGpt2, false, false}},
    {"jina-v2-code", {PreTokenizer::kGpt2, false, false}},
    {"roberta-bpe", {PreTokenizer::kGpt2, false, false}},
    {"smollm", {PreTokenizer::kSmolLm, false, false}},
    {"mellum2", {PreTokenizer::kSmolLm, false, false}},
    {"starcoder", {PreTokenizer::kSmolLm, false, false}},
    {"refact", {PreTokenizer::kSmolLm, false, false}},  // Granite 3, too
    {"command-r", {PreTokenizer::kSmolLm, false, false}},
    {"codeshell", {PreTokenizer::kSmolLm, false, false}},
    {"exaone", {PreTokenizer::kSmolLm, false, false}},
    {"minerva-7b", {PreTokenizer::kSmolLm, false, false}},
    {"qwen2", {PreTokenizer::kQwen2, false, false, true}},
    {"deepseek-r1-qwen", {PreTokenizer::kQwen2, false, false}},
    {"stablelm2", {PreTokenizer::kQwen2, false, false}},
    {"hunyuan", {PreTokenizer::kQwen2, false, false}},
    {"megrez", {PreTokenizer::kQwen2, false, false}},
    {"kormo", {PreTokenizer::kQwen2, false, false}},
    // Possessive quantifiers and \s*[\r\n] match the same here.
    {"bailingmoe", {PreTokenizer::kQwen2, false, false}},
    {"bailingmoe2", {PreTokenizer::kQwen2, false, false}},
    {"llada-moe", {PreTokenizer::kQwen2, false, false}},
    {"qwen35", {PreTokenizer::kQwen35, false, false, true}},
    {"llama-bpe", {PreTokenizer::kLlama3, true, true}},
    {"llama3", {PreTokenizer::kLlama3, true, true}},
    {"llama-v3", {PreTokenizer::kLlama3, true, true}},
    {"falcon3", {PreTokenizer::kLlama3, true, true}},
    {"falcon-h1", {PreTokenizer::kLlama3, true, true}},
    {"pixtral", {PreTokenizer::kLlama3, true, true}},
    {"lfm2", {PreTokenizer::kLlama3, true, true}},
    {"midm-2.0", {PreTokenizer::kLlama3, true, true}},
    {"smaug-bpe", {PreTokenizer::kLlama3, false, false}},
    {"dbrx", {PreTokenizer::kLlama3, false, false}},  // Granite 4, OLMo 2 and 3, Phi 4, too
    {"glm4", {PreTokenizer::kLlama3, false, false}},
    {"chatglm-bpe", {PreTokenizer::kLlama3, false, false}},
    {"tekken", {PreTokenizer::kTekken, true, true}},
    {"gpt-4o", {PreTokenizer::kGpt4o, false, false}},
    {"llama4", {PreTokenizer::kGpt4o, false, false}},
    {"granite-embed-multi-97m", {PreTokenizer::kGpt4o, true, false}},
    {"seed-coder", {PreTokenizer::kSeedCoder, false, false}},
    {"minicpm5", {PreTokenizer::kMiniCpm5, true, false}},
    {"kimi-k2", {PreTokenizer::kKimiK2, false, false}},
    {"youtu", {PreTokenizer::kYoutu, true, false}},
    {"deepseek-llm", {PreTokenizer::kDeepSeekLlm, false, false}},
    {"deepseek-coder", {PreTokenizer::kDeepSeekCoder, false, false}},
    {"deepseek-v3", {PreTokenizer::kDeepSeek3, false, false}},
    {"hunyuan-dense", {PreTokenizer::kDeepSeek3, false, false}},
    {"falcon", {PreTokenizer::kFalcon, false, false}},
    {"bloom", {PreTokenizer::kBloom, false, false}},
    {"viking", {PreTokenizer::kViking, false, false}},
    {"superbpe", {PreTokenizer::kSuperBpe, false, false}},
    {"k2-horizon", {PreTokenizer::kK2Horizon, false, false}},
    {"jais-2", {PreTokenizer::kJais2, false, false}},
    {"afmoe", {PreTokenizer::kAfmoe, false, false}},
    {"spark2_5", {PreTokenizer::kSpark, false, false}},
    {"laguna", {PreTokenizer::kLaguna, false, false}},
    {"exaone-moe", {PreTokenizer::kExaoneMoe, false, false}},
    {"tiny_aya", {PreTokenizer::kTinyAya, false, false}},
    {"cohere2moe", {PreTokenizer::kTinyAya, false, false}},
};

/// Length of 's|'t|'re|'ve|'m|'ll|'d at `position`, or 0.
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

/// Length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at `position`, or 0. Case folding maps the long s to s.
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

/// Characters allowed after the punctuation of an expression: [\r\n]*, [\r\n/]* or nothing.
bool isLineEnd(const Char& c) { return c.newline(); }
bool isLineEndOrSlash(const Char& c) { return c.newline() || c.is('/'); }
bool isNothing(const Char&) { return false; }

/// The common end of the expressions of llama-bpe, qwen2 and tekken: numbers of at most `digits`,
/// ` ?[^\s\p{L}\p{N}]+[\r\n]*` and white space that ends with the line. `tail` stands for [\r\n].
template <bool (Char::*rest)() const>
size_t otherEnd(const Reader& reader, size_t begin, int digits, bool (*tail)(const Char&)) {
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
/// `letter` is \p{L} and `rest` its complement: qwen35 counts marks as letters. `tail` stands for the first [\r\n].
template <bool (Char::*letter)() const, bool (Char::*rest)() const>
size_t llama3WordEnd(const Reader& reader, size_t begin, int digits, bool (*tail)(const Char&)) {
  if (const size_t bytes = anyCaseContraction(reader, begin); bytes != 0) {
    return begin + bytes;
  }
  const Char first = reader.at(begin);
  const bool leads = !(first.*letter)() && first.leadsWord();
  const size_t body = begin + (leads ? first.bytes : 0);
  if ((reader.at(body).*letter)()) {
    return reader.skip<letter>(body);
  }
  return otherEnd<rest>(reader, begin, digits, tail);
}

/// U*L+ with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and L = [\p{Ll}\p{Lm}\p{Lo}\p{M}]; `begin` without a match. U*
/// backtracks for L+: without a lowercase letter after it, up to the last character in both sets.
template <bool (Char::*upper)() const, bool (Char::*lower)() const>
size_t capitalisedEnd(const Reader& reader, size_t begin) {
  size_t end = begin;
  size_t after_both = begin;
  for (Char c = reader.at(begin); (c.*upper)(); c = reader.at(end)) {
    end += c.bytes;
    after_both = (c.*lower)() ? end : after_both;
  }
  return (reader.at(end).*lower)() ? reader.skip<lower>(end) : after_both;
}

/// U+L*; `begin` without a match.
template <bool (Char::*upper)() const, bool (Char::*lower)() const>
size_t capitalsEnd(const Reader& reader, size_t begin) {
  const size_t end = reader.skip<upper>(begin);
  return end > begin ? reader.skip<lower>(end) : begin;
}

/// [^\r\n\p{L}\p{N}]?U*L+c?|[^\r\n\p{L}\p{N}]?U+L*c?|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*
/// |\s*[\r\n]+|\s+(?!\S)|\s+ with U and L as above; c is (?i:'s|'t|'re|'ve|'m|'ll|'d) or nothing. `tail`
/// stands for [\r\n/].
template <bool (Char::*upper)() const, bool (Char::*lower)() const>
size_t casedWordEnd(const Reader& reader, size_t begin, int digits, bool with_contraction,
                    bool (*tail)(const Char&)) {
  const Char first = reader.at(begin);
  const size_t body = begin + (first.leadsWord() ? first.bytes : 0);
  // The lead is taken if possible; a mark may also begin the word.
  size_t (*const matches[])(const Reader&, size_t) = {&capitalisedEnd<upper, lower>,
                                                      &capitalsEnd<upper, lower>};
  const size_t starts[] = {body, begin};
  for (const auto match : matches) {
    for (const size_t start : starts) {
      if (const size_t end = match(reader, start); end > start) {
        return end + (with_contraction ? anyCaseContraction(reader, end) : 0);
      }
    }
  }
  return otherEnd<&Char::rest>(reader, begin, digits, tail);
}

/// gpt-2's expression after \p{N}, which makes the text end before every number.
size_t smolLmWordEnd(const Reader& reader, size_t begin) {
  const auto region = [](const Char& c) -> uint8_t { return c.number() ? 1 : 0; };
  const Char first = reader.at(begin);
  return first.number() ? begin + first.bytes : gpt2WordEnd(reader.within(region, begin), begin);
}

/// qwen2's expression after [^\n]+|\n+.
size_t lagunaWordEnd(const Reader& reader, size_t begin) {
  const auto region = [](const Char& c) -> uint8_t { return c.is('\n') ? 1 : 0; };
  return llama3WordEnd<&Char::letter, &Char::rest>(reader.within(region, begin), begin, 1,
                                                   isLineEnd);
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}
/// | ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+: several words with single spaces between them are one.
size_t exaoneMoeWordEnd(const Reader& reader, size_t begin) {
  if (const size_t bytes = anyCaseContraction(reader, begin); bytes != 0) {
    return begin + bytes;
  }
  const Char first = reader.at(begin);
  size_t end = begin + (!first.letter() && first.leadsWord() ? first.bytes : 0);
  if (reader.at(end).letter()) {
    while (true) {
      end += reader.at(end).bytes;
      end = reader.skip<&Char::mark>(end);
      const size_t next = end + (reader.at(end).is(' ') ? 1 : 0);
      if (!reader.at(next).letter()) {
        return end;
      }
      end = next;
    }
  }
  end = otherEnd<&Char::rest>(reader, begin, 1, isNothing);
  const bool behind_rest = first.rest() || (first.is(' ') && reader.at(begin + 1).rest());
  return end + (behind_rest && reader.at(end).newline() ? 1 : 0);
}

/// llama-bpe's expression after \p{N}{1,3}.
size_t miniCpm5WordEnd(const Reader& reader, size_t begin) {
  const auto region = [](const Char& c) -> uint8_t { return c.number() ? 1 : 0; };
  return reader.at(begin).number() ? numberEnd(reader, begin, 3)
                                   : llama3WordEnd<&Char::letter, &Char::rest>(
                                         reader.within(region, begin), begin, 3, isLineEnd);
}

/// \p{Han}+, and gpt-4o's expression without Han in U and L, and without a slash after punctuation.
size_t kimiWordEnd(const Reader& reader, size_t begin) {
  if (reader.at(begin).han()) {
    return reader.skip<&Char::han>(begin);
  }
  return casedWordEnd<&Char::notLowerNorHan, &Char::notUpperNorHan>(reader, begin, 3, true,
                                                                    isLineEnd);
}

/// gpt-4o's expression with single digits, after four kinds of runs: Hangul, East Asian punctuation, Bopomofo, and
/// Chinese with Japanese.
size_t youtuWordEnd(const Reader& reader, size_t begin) {
  const auto region = [](const Char& c) -> uint8_t {
    if (c.between(0xAC00, 0xD7A3) || c.between(0x3131, 0x318E)) {
      return 1;
    }
    if (c.between(0x3001, 0x303F) || c.between(0xFE30, 0xFE4F) || c.between(0x2018, 0x2019) ||
        c.between(0x201C, 0x201D) || c.between(0x2014, 0x2014) || c.between(0x2026, 0x2026) ||
        c.between(0xFF01, 0xFF01) || c.between(0xFF0C, 0xFF0C) || c.between(0xFF1A, 0xFF1B)) {
      return 2;
    }
    if (c.between(0x3105, 0x312F)) {
      return 3;
    }
    return c.between(0x4E00, 0x9FA5) || c.between(0x3040, 0x30FF) ? 4 : 0;
  };
  return casedWordEnd<&Char::notLower, &Char::notUpper>(reader.within(region, begin), begin, 1,
                                                        true, isLineEndOrSlash);
}

/// llama-bpe's expression with other white space.
size_t jaisWordEnd(const Reader& reader, size_t begin, DigitCount* count) {
  const Char first = reader.at(begin);
  const Char next = reader.at(begin + first.bytes);
  const bool leads = (!first.newline() && next.letter()) || (first.is(' ') && next.rest());
  return first.space() && !leads
             ? jaisSpaceEnd(reader, begin, count)
             : llama3WordEnd<&Char::letter, &Char::rest>(reader, begin, 3, isLineEnd);
}

/// gpt-4o's expression after \d{1,3}(?=(?:\d{3})*\b), which makes the text end before every matching number.
size_t tinyAyaWordEnd(const Reader& reader, size_t begin, DigitCount* count) {
  const Char first = reader.at(begin);
  if (first.digit()) {
    if (const size_t end = boundDigitsEnd(reader, begin, count); end > begin) {
      return end;
    }
  }
  // Other numbers also end before matching digits.
  if (first.number() && !first.digit()) {
    size_t at = begin;
    for (int n = 0; n < 3 && reader.at(at).number(); ++n) {
      DigitCount ahead;
      if (reader.at(at).digit() && boundDigitsEnd(reader, at, &ahead) > at) {
        break;
      }
      at += reader.at(at).bytes;
    }
    return at;
  }
  const size_t end =
      casedWordEnd<&Char::notLower, &Char::notUpper>(reader, begin, 3, true, isLineEndOrSlash);
  const size_t second = begin + first.bytes;
  const bool all_spaces = first.space() && (end == second || reader.at(second).space());
  if (all_spaces && reader.at(end).space()) {
    const size_t behind = end + reader.at(end).bytes;
    DigitCount ahead;
    if (reader.at(behind).digit() && boundDigitsEnd(reader, behind, &ahead) > behind) {
      return behind;  // only white space is left
    }
  }
  return end;
}

/// [^\n]+|\n+
size_t lineEnd(const char* text, size_t begin, size_t end, bool* reached_end) {
  const bool feeds = text[begin] == '\n';
  size_t at = begin + 1;
  while (at < end && (text[at] == '\n') == feeds) {
    ++at;
  }
  if (reached_end != nullptr && at == end) {
    *reached_end = true;
  }
  return at;
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
  if (pre == PreTokenizer::kLines) {
    return "gemma4";  // a tokenizer's name: not selectable by a file
  }
  for (const Name& known : kNames) {
    if (known.rules.pre == pre) {
      return known.text;
    }
  }
  return "none";
}

size_t WordCutter::wordEnd(size_t begin, bool* reached_end) {
  const Reader reader(text_, end_, reached_end);
  switch (pre_) {
    case PreTokenizer::kNone:
      if (reached_end != nullptr) {
        *reached_end = true;
      }
      return end_;
    case PreTokenizer::kGpt2:
      return gpt2WordEnd(reader, begin);
    case PreTokenizer::kSmolLm:
      return smolLmWordEnd(reader, begin);
    case PreTokenizer::kQwen2:
      return llama3WordEnd<&Char::letter, &Char::rest>(reader, begin, 1, isLineEnd);
    case PreTokenizer::kQwen35:
      return llama3WordEnd<&Char::letterOrMark, &Char::restWithoutMarks>(reader, begin, 1,
                                                                         isLineEnd);
    case PreTokenizer::kLlama3:
      return llama3WordEnd<&Char::letter, &Char::rest>(reader, begin, 3, isLineEnd);
    case PreTokenizer::kSeedCoder:
      return llama3WordEnd<&Char::letter, &Char::rest>(reader, begin, 1, isNothing);
    case PreTokenizer::kMiniCpm5:
      return miniCpm5WordEnd(reader, begin);
    case PreTokenizer::kTekken:
      return casedWordEnd<&Char::notLower, &Char::notUpper>(reader, begin, 1, false,
                                                            isLineEndOrSlash);
    case PreTokenizer::kGpt4o:
      return casedWordEnd<&Char::notLower, &Char::notUpper>(reader, begin, 3, true,
                                                            isLineEndOrSlash);
    case PreTokenizer::kKimiK2:
      return kimiWordEnd(reader, begin);
    case PreTokenizer::kYoutu:
      return youtuWordEnd(reader, begin);
    case PreTokenizer::kDeepSeekLlm:
      return deepSeekLlmWordEnd(reader, begin);
    case PreTokenizer::kDeepSeekCoder:
      return deepSeekCoderWordEnd(reader, begin);
    case PreTokenizer::kDeepSeek3:
      return deepSeek3WordEnd(reader, begin);
    case PreTokenizer::kFalcon:
      return falconWordEnd(reader, begin);
    case PreTokenizer::kBloom:
      return bloomWordEnd(reader, begin, false);
    case PreTokenizer::kViking:
      return bloomWordEnd(reader, begin, true);
    case PreTokenizer::kSuperBpe:
      return superBpeWordEnd(reader, begin, &count_);
    case PreTokenizer::kK2Horizon:
      return llama3WordEnd<&Char::letterMarkOrJoiner, &Char::rest>(reader, begin, 3, isLineEnd);
    case PreTokenizer::kJais2:
      return jaisWordEnd(reader, begin, &count_);
    case PreTokenizer::kAfmoe:
      return afmoeWordEnd(reader, begin, &count_);
    case PreTokenizer::kSpark:
      return sparkWordEnd(reader, begin);
    case PreTokenizer::kLaguna:
      return lagunaWordEnd(reader, begin);
    case PreTokenizer::kExaoneMoe:
      return exaoneMoeWordEnd(reader, begin);
    case PreTokenizer::kTinyAya:
      return tinyAyaWordEnd(reader, begin, &count_);
    case PreTokenizer::kLines:
      return lineEnd(text_, begin, end_, reached_end);
  }
  return end_;
}

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
