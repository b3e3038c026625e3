// Pre-tokenizers against the regular expressions of published models.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/encoding.h"
#include "support/files.h"
#include "support/target.h"
#include "support/timing.h"
#include "support/tokenizer_case.h"
#include "text/normalise.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace oriel_internal::test::test_pretokenizer {
namespace {

using Words = std::vector<std::string>;

Words split(PreTokenizer pre, const std::string& text) {
  Words words;
  WordCutter cutter(pre, text.data(), text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = cutter.wordEnd(at);
    EXPECT_GT(end, at);
    EXPECT_LE(end, text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

constexpr PreTokenizer kAll[] = {
    PreTokenizer::kGpt2,          PreTokenizer::kSmolLm,    PreTokenizer::kQwen2,
    PreTokenizer::kQwen35,        PreTokenizer::kLlama3,    PreTokenizer::kTekken,
    PreTokenizer::kGpt4o,         PreTokenizer::kSeedCoder, PreTokenizer::kMiniCpm5,
    PreTokenizer::kKimiK2,        PreTokenizer::kYoutu,     PreTokenizer::kDeepSeekLlm,
    PreTokenizer::kDeepSeekCoder, PreTokenizer::kDeepSeek3, PreTokenizer::kFalcon,
    PreTokenizer::kBloom,         PreTokenizer::kViking,    PreTokenizer::kSuperBpe,
};

PreTokenizerRules rulesOf(const std::string& name) {
  PreTokenizerRules rules;
  EXPECT_TRUE(preTokenizerByName({name.data(), name.size()}, &rules)) << name;
  return rules;
}

/// Written by scripts/make_pretokenizer_cases.py with an ordinary backtracking engine.
nlohmann::json readCases() {
  return readJson(std::string(ORIEL_TEST_DATA) + "/tokenizer/pretokenizer-cases.json");
}

TEST(PreTokenizer, words_are_those_of_the_published_expressions) {
  const nlohmann::json golden = readCases();
  size_t n_compared = 0;
  for (const nlohmann::json& one : golden["cases"]) {
    const std::string text = one["text"].get<std::string>();
    for (const auto& [name, expected] : one["word_bytes"].items()) {
      std::vector<size_t> found;
      for (const std::string& word : split(rulesOf(name).pre, text)) {
        found.push_back(word.size());
      }
      ASSERT_EQ(found, expected.get<std::vector<size_t>>())
          << name << " of " << nlohmann::json(text).dump(-1, ' ', true);
      ++n_compared;
    }
  }
  EXPECT_GE(n_compared, std::size(kAll) * 500);
}

TEST(PreTokenizer, a_word_that_did_not_reach_the_end_is_the_same_whatever_follows) {
  const nlohmann::json golden = readCases();
  size_t n_decided = 0;
  for (const nlohmann::json& one : golden["cases"]) {
    const std::string text = one["text"].get<std::string>() + "1 \u3000a.";
    for (const PreTokenizer pre : kAll) {
      const Words words = split(pre, text);
      for (size_t cut = 0; cut <= text.size(); ++cut) {
        WordCutter cutter(pre, text.data(), cut);
        size_t at = 0;
        for (const std::string& word : words) {
          bool reached_end = false;
          if (at >= cut || (cutter.wordEnd(at, &reached_end) != at + word.size() && reached_end)) {
            break;
          }
          if (!reached_end) {
            ASSERT_EQ(cutter.wordEnd(at), at + word.size())
                << preTokenizerName(pre) << ", " << cut << " bytes of "
                << nlohmann::json(text).dump(-1, ' ', true);
            ++n_decided;
          }
          at += word.size();
        }
      }
    }
  }
  EXPECT_GE(n_decided, 1'000'000u);
}

TEST(PreTokenizer, what_stands_before_a_word_does_not_matter) {
  const nlohmann::json golden = readCases();
  for (const nlohmann::json& one : golden["cases"]) {
    const std::string text = one["text"].get<std::string>();
    for (const PreTokenizer pre : kAll) {
      size_t at = 0;
      for (const std::string& word : split(pre, text)) {
        ASSERT_EQ(split(pre, text.substr(at)).front(), word)
            << preTokenizerName(pre) << " of " << nlohmann::json(text).dump(-1, ' ', true);
        at += word.size();
      }
    }
  }
}

TEST(PreTokenizer, gpt2_splits_as_its_expression_does) {
  const auto words = [](const std::string& text) { return split(PreTokenizer::kGpt2, text); };
  EXPECT_EQ(words("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words("a  b"), (Words{"a", " ", " b"}));
  EXPECT_EQ(words("a \n b"), (Words{"a", " \n", " b"}));
  EXPECT_EQ(words("a  "), (Words{"a", "  "}));
  EXPECT_EQ(words("a\tb"), (Words{"a", "\t", "b"}));
  EXPECT_EQ(words("a\xC2\xA0\xC2\xA0\x62"), (Words{"a", "\xC2\xA0", "\xC2\xA0", "b"}));
  EXPECT_EQ(words("x=12 345!"), (Words{"x", "=", "12", " 345", "!"}));
  EXPECT_EQ(words("it's I'll 'tis can'tn"),
            (Words{"it", "'s", " I", "'ll", " '", "tis", " can", "'t", "n"}));
  EXPECT_EQ(words("IT'S '"), (Words{"IT", "'", "S", " '"}));
  EXPECT_EQ(words("'"), (Words{"'"}));
  EXPECT_EQ(words("'r'l"), (Words{"'", "r", "'", "l"}));
  EXPECT_EQ(words("e\xCC\x81"), (Words{"e", "\xCC\x81"}));
}

TEST(PreTokenizer, smollm_takes_numbers_one_by_one_and_first) {
  const auto words = [](const std::string& text) { return split(PreTokenizer::kSmolLm, text); };
  EXPECT_EQ(words("a 12"), (Words{"a", " ", "1", "2"}));
  EXPECT_EQ(words("a  1"), (Words{"a", "  ", "1"})) << "the text ends before a number";
  EXPECT_EQ(words("v2.5s"), (Words{"v", "2", ".", "5", "s"}));
  EXPECT_EQ(words("\xC2\xBDx"), (Words{"\xC2\xBD", "x"}));
  EXPECT_EQ(words("'1's"), (Words{"'", "1", "'s"}));
}

TEST(PreTokenizer, broken_bytes_count_as_symbols_and_are_kept) {
  for (const PreTokenizer pre : kAll) {
    const std::string name = preTokenizerName(pre);
    if (pre == PreTokenizer::kBloom || pre == PreTokenizer::kViking) {
      EXPECT_EQ(split(pre, "a\xFF\xFE!b"), (Words{"a\xFF\xFE", "!", "b"})) << name;
      continue;
    }
    if (pre == PreTokenizer::kSuperBpe) {
      EXPECT_EQ(split(pre, "a\xFF\xFE!b"), (Words{"a\xFF\xFE!b"})) << name;
      continue;
    }
    if (pre == PreTokenizer::kFalcon || pre == PreTokenizer::kDeepSeekLlm ||
        pre == PreTokenizer::kDeepSeekCoder) {
      EXPECT_EQ(split(pre, "a\xFF\xFE!b"), (Words{"a", "\xFF\xFE", "!", "b"})) << name;
      continue;
    }
    if (pre == PreTokenizer::kDeepSeek3) {
      EXPECT_EQ(split(pre, "a\xFF\xFE! b"), (Words{"a", "\xFF\xFE!", " b"})) << name;
      continue;
    }
    EXPECT_EQ(split(pre, "a\xFF\xFE!b"), (Words{"a", "\xFF\xFE!", "b"})) << name;
    EXPECT_EQ(split(pre, " \xE2\x82"), (Words{" \xE2\x82"})) << name;
    const bool no_lines = pre == PreTokenizer::kGpt2 || pre == PreTokenizer::kSmolLm ||
                          pre == PreTokenizer::kSeedCoder;
    EXPECT_EQ(split(pre, "\xC3(\na").front(), no_lines ? "\xC3(" : "\xC3(\n") << name;
  }
}

TEST(PreTokenizer, names_go_both_ways) {
  for (const PreTokenizer pre : kAll) {
    const std::string name = preTokenizerName(pre);
    PreTokenizerRules found;
    EXPECT_TRUE(preTokenizerByName({name.data(), name.size()}, &found));
    EXPECT_EQ(found.pre, pre);
  }
  EXPECT_STREQ(preTokenizerName(PreTokenizer::kNone), "none");
}

TEST(PreTokenizer, families_share_an_expression_but_not_their_habits) {
  for (const char* name : {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"}) {
    const PreTokenizerRules rules = rulesOf(name);
    EXPECT_EQ(rules.pre, PreTokenizer::kLlama3) << name;
    EXPECT_TRUE(rules.whole_words && rules.add_bos) << name;
  }
  for (const char* name : {"falcon-h1", "midm-2.0"}) {
    EXPECT_EQ(rulesOf(name).pre, PreTokenizer::kLlama3) << name;
    EXPECT_TRUE(rulesOf(name).whole_words && rulesOf(name).add_bos) << name;
  }
  for (const char* name : {"minicpm5", "youtu"}) {
    EXPECT_TRUE(rulesOf(name).whole_words) << name;
    EXPECT_FALSE(rulesOf(name).add_bos) << name;
  }
  for (const char* name : {"smaug-bpe", "dbrx", "glm4"}) {
    const PreTokenizerRules rules = rulesOf(name);
    EXPECT_EQ(rules.pre, PreTokenizer::kLlama3) << name;
    EXPECT_FALSE(rules.whole_words || rules.add_bos) << name;
  }
  EXPECT_TRUE(rulesOf("tekken").whole_words && rulesOf("tekken").add_bos);
  for (const char* name : {"qwen2", "gpt-4o", "gpt-2", "smollm", "phi-2", "refact", "hunyuan-dense",
                           "exaone4", "deepseek-llm", "kimi-k2", "bailingmoe"}) {
    EXPECT_FALSE(rulesOf(name).whole_words || rulesOf(name).add_bos) << name;
  }
  EXPECT_EQ(rulesOf("deepseek-r1-qwen").pre, PreTokenizer::kQwen2);
  EXPECT_EQ(rulesOf("phi-2").pre, PreTokenizer::kGpt2);
  PreTokenizerRules rules;
  EXPECT_FALSE(preTokenizerByName({"llama", 5}, &rules));
}

TEST(PreTokenizer, random_bytes_are_cut_into_whole_words_without_loss) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 60, 0);
    for (char& c : text) {
      c = i % 2 == 0 ? static_cast<char>(random())
                     : "aB1 \n'/\xC3\xA9\xCC\x81\xE3\x80\x80"[random() % 14];
    }
    for (const PreTokenizer pre : kAll) {
      split(pre, text);  // checks that every word has an end
    }
  }
}

/// Processor time to split a text into words.
double secondsToCut(PreTokenizer pre, const std::string& text) {
  size_t at = 0;
  const double seconds = processorSeconds([&] {
    WordCutter cutter(pre, text.data(), text.size());
    while (at < text.size()) {
      bool reached_end = false;
      const size_t end = cutter.wordEnd(at, &reached_end);
      ASSERT_GT(end, at);
      at = end;
    }
  });
  EXPECT_EQ(at, text.size());
  return seconds;
}

TEST(PreTokenizer, no_text_takes_quadratic_time) {
  // Each makes some expression look ahead or backtrack: a naive implementation takes a second at least.
  constexpr size_t n = 1u << 16;
  constexpr double kMostSeconds = 0.3;  // twenty times the usual time; for slow cases:
  constexpr double kTimesOrdinary = 30;
  const auto repeated = [](const std::string& part) {
    std::string text;
    while (text.size() < n) {
      text += part;
    }
    return text;
  };
  std::map<PreTokenizer, double> most;
  for (const PreTokenizer pre : kAll) {
    most[pre] = std::max(kMostSeconds, kTimesOrdinary * secondsToCut(pre, repeated("word 1, ")));
  }
  size_t texts = 0;
  for (const std::string& text : {repeated("a"),
                                  repeated("A"),
                                  repeated(" "),
                                  repeated("\n"),
                                  repeated(" \n"),
                                  repeated("1"),
                                  "\n" + repeated(" ") + "x",
                                  repeated("\xCC\x81"),
                                  repeated("\xCA\xB0") + repeated("A"),
                                  repeated("\xE6\x97\xA5"
                                           "A"),
                                  repeated("'"),
                                  repeated("/"),
                                  repeated("!\n"),
                                  repeated("\xF0\x9F\x98\x80"),
                                  repeated("\xFF"),
                                  repeated("\u3000"),
                                  "\u0561" + repeated(" \u2003") + "a",
                                  "\u0561" + repeated(" ") + "\n",
                                  repeated("\u3002\u3000"),
                                  repeated("!\u3000"),
                                  repeated("\u3000\u2018"),
                                  repeated("\u0663"),
                                  repeated("\u00BD1"),
                                  repeated("12\u0663"),
                                  repeated("\x01"),
                                  repeated("\x01\u200B"),
                                  repeated("\u4E00"),
                                  repeated("\u30AB\u30FB"),
                                  repeated("(|"),
                                  repeated("\u0561 "),
                                  repeated("\u0561 \u2003")}) {
    size_t number = ++texts;
    for (const PreTokenizer pre : kAll) {
      if (allCases() || ++number % 2 == 0) {  // the others cut the next text
        EXPECT_LT(secondsToCut(pre, text), most.at(pre));
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_pretokenizer

namespace oriel_internal::test::test_normalise {

// Normalisation Form C, alone and before the words of pre-tokenizers that use it.

namespace {

std::string utf8(const std::vector<uint32_t>& codes) {
  std::string text;
  for (const uint32_t code : codes) {
    char bytes[kMaxUtf8Bytes];
    text.append(bytes, encodeUtf8(code, bytes));
  }
  return text;
}

/// From the definitions of Unicode Standard Annex 15 and section 3.12.
struct Case {
  std::vector<uint32_t> given;
  std::vector<uint32_t> wanted;
};
const Case kCases[] = {
    {{'e', 0x301}, {0xE9}},
    {{0xE9}, {0xE9}},
    {{'a', 0x302, 0x323}, {0x1EAD}},  // marks in the other order, three in one
    {{'a', 0x323, 0x302}, {0x1EAD}},
    {{0xE2, 0x323}, {0x1EAD}},                   // which takes a composite apart
    {{'q', 0x307, 0x323}, {'q', 0x323, 0x307}},  // no composite: ordered
    {{0x1E0B, 0x323}, {0x1E0D, 0x307}},
    {{0x212B}, {0xC5}},  // ANGSTROM SIGN is another name
    {{0x2126}, {0x3A9}},
    {{0x340}, {0x300}},
    {{0x344}, {0x308, 0x301}},
    {{0x958}, {0x915, 0x93C}},  // left out of composition
    {{0x2ADC}, {0x2ADD, 0x338}},
    {{0xFB2C}, {0x5E9, 0x5BC, 0x5C1}},
    {{0x1D160}, {0x1D158, 0x1D165, 0x1D16E}},
    {{0x2F800}, {0x4E3D}},
    {{0xFA6C}, {0x242EE}},
    {{0x1100, 0x1161}, {0xAC00}},  // Hangul
    {{0x1100, 0x1161, 0x11A8}, {0xAC01}},
    {{0xAC00, 0x11A8}, {0xAC01}},
    {{0xAC01, 0x11A8}, {0xAC01, 0x11A8}},
    {{0xAC00, 0x11A7}, {0xAC00, 0x11A7}},  // no trailing consonant
    {{0x1112, 0x1175, 0x11C2}, {0xD7A3}},
    {{0x1100, 0x300, 0x1161}, {0x1100, 0x300, 0x1161}},
    {{0x9C7, 0x9BE}, {0x9CB}},
    {{0x9C7, 0x334, 0x9BE}, {0x9C7, 0x334, 0x9BE}},  // something stands between
    {{'e', 0x301, 0x301}, {0xE9, 0x301}},            // of one class the first
    {{'e', 0x316, 0x301}, {0xE9, 0x316}},
    {{0x301, 'e'}, {0x301, 'e'}},
    {{0x30AB, 0x3099}, {0x30AC}},
    {{'<', 0x338}, {0x226E}},
    {{0x1F60A, ' ', 0x4E2D}, {0x1F60A, ' ', 0x4E2D}},
};

TEST(Normalise, composes_what_the_standard_composes) {
  for (const Case& one : kCases) {
    EXPECT_EQ(utf8(one.wanted), toNfc(utf8(one.given))) << utf8(one.given);
    EXPECT_EQ(utf8(one.wanted), toNfc(utf8(one.wanted))) << "it stays";
  }
  EXPECT_EQ("", toNfc(""));
  EXPECT_EQ("a\xCC", toNfc("a\xCC")) << "what is no UTF-8 stays";
  EXPECT_EQ("\xC3\xA9\xFF\xCC\x81", toNfc("e\xCC\x81\xFF\xCC\x81"));
}

/// The hash is of unicodedata.normalize() of Python 3.11, with Unicode 14.0. Characters new in 15.0 do not change it:
/// alone none has another NFC, and none follows a combining mark here.
TEST(Normalise, every_code_point_is_as_in_another_implementation) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  const auto add = [&](const std::vector<uint32_t>& codes) {
    for (const char byte : toNfc(utf8(codes))) {
      hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
    }
  };
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) {
      continue;  // surrogates are not characters
    }
    add({code});
    if (code < 0x3200 || (code >= 0xAC00 && code < 0xD7A4) || (code >= 0x11000 && code < 0x12000)) {
      for (const uint32_t second : {0x301, 0x323, 0x1161, 0x11A8}) {
        add({code, second});
      }
    }
  }
  EXPECT_EQ(0xc1066f3563886b0ull, hash);
}

TEST(Normalise, a_text_without_a_changed_character_stays) {
  std::mt19937 engine(1);
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  int changed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint32_t> codes;
    for (uint32_t n = random() % 5 + 1; n > 0; --n) {
      const uint32_t kind = random() % 4;
      codes.push_back(kind == 0   ? 0x300 + random() % 0x70
                      : kind == 1 ? 'a' + random() % 26
                      : kind == 2 ? random() % 0x3400
                                  : 0xA000 + random() % 0x3000);
    }
    const std::string text = utf8(codes);
    const std::string normal = toNfc(text);
    EXPECT_EQ(normal, toNfc(normal));
    const size_t first = firstChangedByNfc(text.data(), text.size());
    EXPECT_TRUE(first < text.size() || text == normal) << text;
    changed += text == normal ? 0 : 1;
  }
  EXPECT_GT(changed, 1000);
}

TEST(Normalise, many_marks_are_sorted_quickly) {
  std::string text = "a";
  for (int i = 0; i < 100000; ++i) {
    text += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";  // classes 230 and 220
  }
  const std::string normal = toNfc(text);
  EXPECT_EQ("\xE1\xBA\xA1", normal.substr(0, 3));  // a with dot below
  EXPECT_EQ(normal, toNfc(normal));
}

/// A byte as byte-level BPE writes it.
std::string written(uint32_t byte) {
  const auto printable = [](uint32_t b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  uint32_t code = printable(byte) ? byte : 256;
  for (uint32_t other = 0; !printable(byte) && other < byte; ++other) {
    code += printable(other) ? 0 : 1;
  }
  return utf8({code});
}

/// Each byte is a token.
TokenizerCase& bytesWith(const char* pre) {
  static std::vector<std::unique_ptr<TokenizerCase>> kept;
  Vocabulary v;
  v.pre = pre;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    v.add(written(byte));
  }
  v.add("<|x|>", kControlType);
  kept.push_back(std::make_unique<TokenizerCase>(v.writer().build()));
  return *kept.back();
}

TEST(Normalise, words_of_qwen_are_normalised) {
  const std::string nfd =
      "Bu\xCC\x8B"
      "fe\xCC\x81 na\xCC\xA3\xCC\x82"
      "ng <|x|>e\xCC\x81\n\xE1\x84\x80\xE1\x85\xA1 z";
  const std::string composed = toNfc(nfd);
  ASSERT_NE(nfd, composed);
  EncodeOptions options;
  options.special = true;
  for (const char* const pre : {"qwen2", "qwen35"}) {
    TokenizerCase& c = bytesWith(pre);
    ASSERT_TRUE(c.status.ok()) << c.log.errors();
    EXPECT_EQ(c.encode(composed, options), c.encode(nfd, options)) << pre;
    EXPECT_EQ(composed, c.decode(c.encode(nfd, options), true));
    // A mark after a special token does not combine with the text before it.
    EXPECT_EQ("e<|x|>\xCC\x81", c.decode(c.encode("e<|x|>\xCC\x81", options), true));
  }
  TokenizerCase& other = bytesWith("llama-bpe");
  EXPECT_EQ(nfd, other.decode(other.encode(nfd, options), true));
}

}  // namespace
}  // namespace oriel_internal::test::test_normalise

namespace oriel_internal::test::test_unicode {

// Character classes, UTF-8 and the byte-level alphabet.

namespace {

TEST(Unicode, white_space_is_the_property_exactly) {
  std::set<uint32_t> expected = {0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  for (uint32_t c = 0x09; c <= 0x0D; ++c) {
    expected.insert(c);
  }
  for (uint32_t c = 0x2000; c <= 0x200A; ++c) {
    expected.insert(c);
  }
  std::set<uint32_t> found;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (charClass(c) == CharClass::kSpace) {
      found.insert(c);
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(Unicode, classes_have_as_many_members_as_unicode_15_says) {
  std::array<int, 16> count = {};
  for (uint32_t c = 0; c < 0x110000; ++c) {
    ++count[static_cast<size_t>(charClass(c))];
  }
  // The totals of DerivedGeneralCategory.txt; white space replaces Zs, Zl, Zp and six controls.
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kUpper)], 1831);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kLower)], 2233);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kTitle)], 31);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kModifierLetter)], 397);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kOtherLetter)], 131612);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kMark)], 1985 + 452 + 13);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kDigit)], 680);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kNumber)], 236 + 915);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kSpace)], 25);
}

TEST(Unicode, known_characters_have_their_classes) {
  EXPECT_EQ(charClass('A'), CharClass::kUpper);
  EXPECT_EQ(charClass('z'), CharClass::kLower);
  EXPECT_EQ(charClass('0'), CharClass::kDigit);
  EXPECT_EQ(charClass(0x0663), CharClass::kDigit);  // Arabic three
  EXPECT_EQ(charClass('_'), CharClass::kPunctuation);
  EXPECT_EQ(charClass('+'), CharClass::kSymbol);
  EXPECT_EQ(charClass(0x00BD), CharClass::kNumber);          // one half
  EXPECT_EQ(charClass(0x01C5), CharClass::kTitle);           // Dz with caron
  EXPECT_EQ(charClass(0x02B0), CharClass::kModifierLetter);  // small h
  EXPECT_EQ(charClass(0x0301), CharClass::kMark);            // combining acute
  EXPECT_EQ(charClass(0x2167), CharClass::kNumber);          // Roman eight
  EXPECT_EQ(charClass(0x200B), CharClass::kOther);           // zero width space
  EXPECT_EQ(charClass(0x4E00), CharClass::kOtherLetter);
  EXPECT_EQ(charClass(0x9FFF), CharClass::kOtherLetter);
  EXPECT_EQ(charClass(0xAC00), CharClass::kOtherLetter);
  EXPECT_EQ(charClass(0xE000), CharClass::kOther);
  EXPECT_EQ(charClass(0x1F600), CharClass::kSymbol);
  EXPECT_EQ(charClass(0xE0100), CharClass::kMark);
  EXPECT_EQ(charClass(0x10FFFF), CharClass::kOther);
  EXPECT_EQ(charClass(0x110000), CharClass::kOther);
  EXPECT_EQ(charClass(UINT32_MAX), CharClass::kOther);
}

TEST(Utf8, every_code_point_survives_and_every_prefix_is_incomplete) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    char text[4];
    size_t n = 0;
    if (c < 0x80) {
      text[n++] = static_cast<char>(c);
    } else if (c < 0x800) {
      text[n++] = static_cast<char>(0xC0 | c >> 6);
    } else if (c < 0x10000) {
      text[n++] = static_cast<char>(0xE0 | c >> 12);
      text[n++] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
    } else {
      text[n++] = static_cast<char>(0xF0 | c >> 18);
      text[n++] = static_cast<char>(0x80 | (c >> 12 & 0x3F));
      text[n++] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
    }
    if (c >= 0x80) {
      text[n++] = static_cast<char>(0x80 | (c & 0x3F));
    }
    const Utf8Char decoded = decodeUtf8(text, n);
    if (c >= 0xD800 && c <= 0xDFFF) {
      ASSERT_FALSE(decoded.valid || decoded.incomplete);
      ASSERT_EQ(decoded.bytes, 1u);
      continue;
    }
    ASSERT_TRUE(decoded.valid);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.bytes, n);
    for (size_t cut = 1; cut < n; ++cut) {
      const Utf8Char part = decodeUtf8(text, cut);
      ASSERT_TRUE(part.incomplete && !part.valid);
      ASSERT_EQ(part.bytes, cut);
    }
  }
}

TEST(ByteLevel, every_byte_has_exactly_one_character) {
  std::set<int> bytes;
  int n_characters = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (const int byte = byteOfCharacter(c); byte >= 0) {
      bytes.insert(byte);
      ++n_characters;
    }
  }
  EXPECT_EQ(bytes.size(), 256u);
  EXPECT_EQ(n_characters, 256);
  EXPECT_EQ(byteOfCharacter(0x120), ' ');
  EXPECT_EQ(byteOfCharacter(0x10A), '\n');
}

}  // namespace
}  // namespace oriel_internal::test::test_unicode
