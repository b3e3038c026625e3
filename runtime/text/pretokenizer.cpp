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

}  // namespace oriel_internal
