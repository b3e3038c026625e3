// Pre-tokenizers against the regular expressions of published models.
#include "text/pretokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/encoding.h"
#include "support/files.h"
#include "support/processor_time.h"

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
    for (const PreTokenizer pre : kAll) {
      EXPECT_LT(secondsToCut(pre, text), most.at(pre));
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_pretokenizer
