// Any bytes with good vocabularies: text to ids and back, whole, in parts and token by token. An input: a byte for the
// vocabulary, one for options, two for the split, and the text.
#include <algorithm>
#include <cctype>
#include <map>

#include "fuzz/fuzz.h"
#include "fuzz/text_rules.h"
#include "support/tokenizer_case.h"
#include "text/normalise.h"
#include "text/unicode.h"

namespace oriel_internal::fuzz::fuzz_text {
namespace {

using test::TokenizerCase;
using test::Vocabulary;

constexpr char kLowLine[] = "\xE2\x96\x81";  // a space, in vocabularies of characters

constexpr const char* kPres[] = {
    "gpt-2",          "smollm",      "qwen2",   "qwen35",   "llama-bpe",    "tekken", "gpt-4o",
    "seed-coder",     "minicpm5",    "kimi-k2", "youtu",    "deepseek-llm", "falcon", "bloom",
    "deepseek-coder", "deepseek-v3", "viking",  "superbpe", "mpt",          "dbrx"};
constexpr size_t kNumberOfPres = sizeof(kPres) / sizeof(kPres[0]);
// Numbered after the vocabularies of byte-level BPE.
enum : size_t {
  kSpm = kNumberOfPres,
  kCharacters,
  kControl,
  kSpmControl,
  kProbe,
  kBpe2048,
  kGemma,
  kCount
};

/// A byte as byte-level BPE writes it.
std::string byteText(uint32_t byte) {
  const bool printable =
      (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  uint32_t code = byte;
  if (!printable) {
    code = 256;
    for (uint32_t other = 0; other < byte; ++other) {
      code += (other >= '!' && other <= '~') || (other >= 0xA1 && other <= 0xAC) || other >= 0xAE
                  ? 0
                  : 1;
    }
  }
  return code < 0x80 ? std::string(1, static_cast<char>(code))
                     : std::string{static_cast<char>(0xC0 | code >> 6),
                                   static_cast<char>(0x80 | (code & 0x3F))};
}

std::string byteTexts(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += byteText(static_cast<uint8_t>(byte));
  }
  return text;
}

Vocabulary bytePairs(const std::string& pre) {
  Vocabulary v;
  v.pre = pre;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    v.add(byteText(byte));
  }
  const std::pair<const char*, const char*> merges[] = {
      {"a", "b"},       {" ", "a"},  {" ", " "},           {"  ", "  "},     {"e", "r"},
      {"h", "er"},      {" a", "b"}, {"1", "2"},           {"12", "3"},      {"\n", "\n"},
      {"\xc3", "\xa4"}, {"'", "s"},  {"\xe2\x82", "\xac"}, {"\xe2", "\x82"}, {"a", "a"},
      {"aa", "aa"},     {"aa", "a"}, {".", "."},           {"\xe4", "\xbd"}, {"\xe4\xbd", "\xa0"},
      {"A", "B"},       {"b", " "}};
  for (const auto& [left, right] : merges) {
    v.addMerge(byteTexts(left), byteTexts(right));
  }
  return v;
}

Vocabulary characters(bool by_rank) {
  Vocabulary v;
  v.startSpm(true);
  if (by_rank) {
    v.model = "gemma4";
    v.add("\n");
  }
  v.add(kLowLine);
  for (const char* c : {"a", "b", "e", "h", "r", "1", "2", "\xc3\xa4", ".", "'", "s"}) {
    v.add(c, test::kNormalType, -100);
  }
  float score = -1;
  const std::pair<std::string, std::string> merges[] = {
      {"a", "b"},        {kLowLine, "a"}, {kLowLine, kLowLine}, {"e", "r"}, {"h", "er"},
      {"\xc3\xa4", "a"}, {"a", "a"},      {"aa", "aa"},         {"1", "2"}};
  for (const auto& [left, right] : merges) {
    if (by_rank) {
      v.addMerge(left, right);
    } else {
      v.add(left + right, test::kNormalType, score--);
    }
  }
  return v;
}

void addControl(Vocabulary* v) {
  for (const char* name :
       {"<|im_start|>", "<|im_end|>", "<|im", "<think>", "</s>", "<|endoftext|>"}) {
    v->add(name, test::kControlType);
  }
  for (const char* name : {"<b>", "    ", "<|user", "\n\n\n", "ab", "\xc3"}) {
    v->add(name, test::kUserType);
  }
}

std::vector<uint8_t> vocabularyFile(size_t which) {
  if (which == kProbe || which == kBpe2048 || which == kGemma) {
    const char* const name = which == kProbe     ? "vocab-probe"
                             : which == kBpe2048 ? "vocab-bpe2048"
                                                 : "vocab-gemma4-probe";
    const std::string bytes =
        readFiles(std::string(ORIEL_TEST_DATA "/tokenizer/") + name + ".gguf").at(0);
    return {bytes.begin(), bytes.end()};
  }
  Vocabulary v = which < kNumberOfPres ? bytePairs(kPres[which])
                 : which == kControl   ? bytePairs("qwen2")
                                       : characters(which == kCharacters);
  if (which == kControl || which == kSpmControl) {
    addControl(&v);
  }
  test::GgufWriter file = v.writer();
  if (which % 2 == 1) {
    file.addUint32("tokenizer.ggml.bos_token_id", 1);
    file.addUint32("tokenizer.ggml.eos_token_id", 2);
    file.addBool("tokenizer.ggml.add_bos_token", true);
    file.addBool("tokenizer.ggml.add_eos_token", true);
  }
  return file.build();
}

// Built once: a tokenizer does not change.
TokenizerCase& vocabulary(size_t which) {
  static std::map<size_t, std::unique_ptr<TokenizerCase>> all;
  std::unique_ptr<TokenizerCase>& one = all[which];
  if (one == nullptr) {
    one = std::make_unique<TokenizerCase>(vocabularyFile(which));
  }
  one->log.clear();
  return *one;
}

// True if every text is restored exactly. SPM puts a space after a control token.
bool comesBack(size_t which, const TextCase& given) {
  const bool normalises =
      which == kControl || (which < kNumberOfPres && std::string(kPres[which]).find("qwen") == 0);
  if (normalises && firstChangedByNfc(given.text.data(), given.text.size()) < given.text.size()) {
    return false;
  }
  if (which == kSpm && given.options.special) {
    return false;
  }
  if (which == kSpm || which == kCharacters) {
    return given.text.find(kLowLine) == std::string::npos && !given.options.continues;
  }
  return which <= kControl;
}

std::vector<uint32_t> wordsOf(const std::string& text, size_t piece) {
  std::vector<uint32_t> words;
  const auto keep = [&words](uint32_t word) { words.push_back(word); };
  WordReader reader;
  for (size_t at = 0; at < text.size(); at += piece) {
    reader.push(text.data() + at, std::min(piece, text.size() - at), keep);
  }
  const uint32_t last = reader.finish();
  if (last != WordReader::kNone) {
    words.push_back(last);
  }
  return words;
}

// Words by the rules of words.h, for ASCII letters.
std::vector<std::string> asciiStems(const std::string& text) {
  std::vector<std::string> stems;
  std::string word;
  for (const char c : text + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word.size() > 1 || (word.size() == 1 && std::isdigit(word[0]) != 0)) {
      const bool plural = word.size() > 3 && word.size() <= WordReader::kStem && word.back() == 's';
      stems.push_back(word.substr(0, std::min<size_t>(word.size() - plural, WordReader::kStem)));
    }
    word.clear();
  }
  return stems;
}

// Words to be found again by.
void checkWords(const std::string& text, size_t piece) {
  const std::vector<uint32_t> words = wordsOf(text, text.size() + 1);
  EXPECT_EQ(words, wordsOf(text, piece)) << "in pieces of " << piece << ": " << text;
  EXPECT_EQ(0, std::count(words.begin(), words.end(), WordReader::kNone));
  EXPECT_TRUE(words.empty() || hasWord(text.data(), text.size())) << text;
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
  if (!ascii) {
    return;
  }
  const std::vector<std::string> stems = asciiStems(text);
  ASSERT_EQ(stems.size(), words.size()) << text;
  std::map<std::string, uint32_t> numbers;
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(words[i], numbers.emplace(stems[i], words[i]).first->second) << stems[i];
  }
}

}  // namespace

ORIEL_FUZZ(text) {
  Input input(data, size);
  const size_t which = input.byte() % kCount;
  const uint8_t flags = input.byte();
  TextCase given;
  given.cut = input.number(2);
  given.capacity = 1 + flags / 16;
  given.options.special = (flags & 1) != 0;
  given.options.bos = (flags & 2) != 0;
  given.options.eos = (flags & 4) != 0;
  given.options.continues = (flags & 8) != 0;
  given.text = input.takeRest();
  TokenizerCase& tokenizer = vocabulary(which);
  ASSERT_TRUE(tokenizer.tokenizer != nullptr) << tokenizer.log.errors();
  pastFirstCheck();  // not found
  const std::string back = checkText(&tokenizer, given);
  if (comesBack(which, given)) {
    EXPECT_EQ(given.text, back) << which;
  }
  checkWords(given.text, 1 + given.cut % 9);
}

ORIEL_FUZZ_SEEDS(text) {
  const std::string texts[] = {
      "",
      "Where is the red ball?  It's 1234567, y'all'LL ABCdef \n\n\n x\t\r\n 12 ab aab",
      "\xc3\xa4\xe2\x82\xac\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80\xe0\xb8\x81\xd8\xb9 \xcc\x81 "
      "\xe3\x81\x82\xe3\x82\xab\xed\x95\x9c",
      "<|im_start|>user\nhi<|im_end|><|im<think> <b>    </s>",
      std::string("\xff\xc3\x28\xf0\x9f\x98 \0 \xed\xa0\x80 \xe2\x96\x81", 17),
      "i don't  WON'T we\xe2\x80\x99re 1,000.50 $5 #tag //x /* */ _a_b CamelCase HTTPServer "
      "\xc2\xa0\xe3\x80\x80",
      "Cats cat CATALOGUE 7 77s \xc3\x84pfel \xc3\xa4PFEL \xce\x94\xce\xb4 "
      "\xd0\x9c\xd0\xb8\xd1\x80 \xd0\x81\xd0\xb6 "
      "\xd4\xb1\xd5\xa1 \xc4\xb9\xc5\xbe \xe1\xba\xa0\xe1\xba\xa1 \xe4\xbd\xa0\xcc\x81\xe5\xa5\xbd "
      "\xcc\x81x"};
  uint8_t flags = 0;
  for (size_t which = 0; which < kCount; ++which) {
    for (const std::string& text : texts) {
      std::string seed = {static_cast<char>(which), static_cast<char>(flags),
                          static_cast<char>(flags % 7), 0};
      seeds->push_back(seed + text);
      flags = static_cast<uint8_t>(flags * 5 + 1);
    }
  }
}

}  // namespace oriel_internal::fuzz::fuzz_text
