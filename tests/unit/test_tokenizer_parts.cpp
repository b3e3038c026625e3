// Text in parts: the ids of the whole, in time and memory independent of the vocabulary.
#include <gtest/gtest.h>

#include <random>

#include "support/processor_time.h"
#include "support/target.h"
#include "support/tokenizer_case.h"

namespace oriel_internal::test::test_tokenizer_parts {
namespace {

using Ids = std::vector<int32_t>;

constexpr oriel_allocator kRefusing = {[](size_t, void*) -> void* { return nullptr; },
                                       [](void*, size_t, void*) {}, nullptr};

struct Collected final : TokenSink {
  Status take(const int32_t* some, size_t count, bool last) override {
    EXPECT_FALSE(ended);
    EXPECT_TRUE(last || count == capacity);
    ids.insert(ids.end(), some, some + count);
    ended = last;
    return kOk;
  }
  bool stops() override { return stop; }
  Ids ids;
  size_t capacity = 0;
  bool ended = false;
  bool stop = false;
};

std::string randomText(std::mt19937* random, size_t bytes, const std::string& alphabet) {
  std::string text;
  while (text.size() < bytes) {
    text += alphabet[(*random)() % alphabet.size()];
  }
  return text;
}

Vocabulary randomVocabulary(std::mt19937* random, const std::string& alphabet) {
  static const char* const kPres[] = {
      "gpt-2",          "smollm",      "qwen2",      "qwen35",  "llama-bpe", "tekken",
      "gpt-4o",         "minicpm5",    "seed-coder", "kimi-k2", "youtu",     "deepseek-llm",
      "deepseek-coder", "deepseek-v3", "falcon",     "bloom",   "viking",    "superbpe"};
  Vocabulary v;
  if ((*random)() % 3 != 0) {
    v.startSpm((*random)() % 2 == 0);
    v.add("\xE2\x96\x81");
    if ((*random)() % 2 == 0) {
      v.model = "gemma4";
      v.add("\n");
      v.addMerge("\n", "\n");
    }
  } else {
    v.pre = kPres[(*random)() % std::size(kPres)];
    v.add("\xC4\xA0");
    v.add("\xC4\x8A");
  }
  for (const char c : std::string("abcdeABLls'12<|>")) {
    v.add(std::string(1, c));
  }
  for (size_t i = (*random)() % 5; i > 0; --i) {
    v.model == "llama" ? v.add("ab", kNormalType, static_cast<float>(i)) : v.addMerge("a", "b");
    if (v.model == "gemma4" && i % 2 == 0) {
      v.addMerge("b", "\xE2\x96\x81");  // words then end at line feeds only
    }
  }
  const int32_t types[] = {kUserType,    kUserType,    kControlType,
                           kControlType, kUnknownType, kNormalType};
  for (size_t i = (*random)() % 30; i > 0; --i) {
    const std::string text = randomText(random, 1 + (*random)() % 7, alphabet);
    v.add(text, types[(*random)() % 6]);
    if ((*random)() % 4 == 0) {
      v.add(text, types[(*random)() % 6]);  // the same again, as something else
    }
  }
  return v;
}

TEST(TokenizerParts, however_a_text_is_cut_its_ids_are_those_of_the_whole) {
  std::mt19937 random(11);
  const std::string alphabets[] = {"a",
                                   "ab",
                                   "ab \n",
                                   "abcd <|>'1\n",
                                   "aB\xC3\xA9 's",
                                   "123 a",
                                   "1",
                                   "a. \xE3\x80\x80\xE3\x80\x80"};
  const int rounds = allCases() ? 400 : 100;
  for (int round = 0; round < rounds; ++round) {
    const std::string& alphabet = alphabets[random() % std::size(alphabets)];
    TokenizerCase c(randomVocabulary(&random, alphabet).writer().build());
    ASSERT_NE(c.tokenizer, nullptr) << c.log.errors();
    for (int i = 0; i < 6; ++i) {
      std::string text = randomText(&random, random() % 9000, alphabet);
      if (random() % 2 == 0) {
        text.insert(random() % (text.size() + 1), 4000,
                    alphabet[0]);  // longer than the initial joining copy
      }
      EncodeOptions options;
      options.special = random() % 2 == 0;
      options.bos = random() % 2 == 0;
      const size_t literal_begin = random() % (text.size() + 1);
      const TextRange literal = {literal_begin,
                                 literal_begin + random() % (text.size() - literal_begin + 1)};
      options.literal = &literal;
      options.n_literal = 1;
      const Ids expected = c.encode(text, options);

      TextParts parts;
      size_t from = 0;
      for (size_t n = random() % TextParts::kMost; n > 0 && from < text.size(); --n) {
        const size_t left = text.size() - from;
        const size_t bytes = random() % (random() % 2 == 0 ? left : std::min<size_t>(left, 20)) + 1;
        // Not merged with the part before it, as texts that lie apart.
        parts.parts[parts.count++] = {text.data() + from, bytes};
        from += bytes;
      }
      if (from < text.size()) {
        parts.parts[parts.count++] = {text.data() + from, text.size() - from};
      }
      Workspace none(nullptr, 0, &defaultAllocator());
      Collected sink;
      size_t needed = 0;
      ASSERT_TRUE(
          c.tokenizer->encodeBytes(parts, options, &none, c.log.log(), &sink, &needed).ok());
      EXPECT_TRUE(sink.ids.empty());
      // The announced memory is enough.
      std::vector<uint64_t> memory(needed / 8 + 1);
      Workspace workspace(memory.data(), needed, &kRefusing);
      Ids room(1 + random() % 40);
      sink.capacity = room.size();
      ASSERT_TRUE(c.tokenizer
                      ->encodeParts(parts, options, &workspace, c.log.log(), room.data(),
                                    room.size(), &sink)
                      .ok())
          << c.log.errors();
      EXPECT_TRUE(sink.ended);
      ASSERT_EQ(sink.ids, expected)
          << "round " << round << ", " << text.size() << " bytes in " << parts.count;
    }
  }
}

TEST(TokenizerParts, working_memory_is_that_of_a_word_however_long_the_text) {
  TokenizerCase c(readBytes(std::string(ORIEL_TEST_DATA) + "/tokenizer/vocab-bpe2048.gguf"));
  std::string text;
  while (text.size() < 1'000'000) {
    text += "A hedgehog, " + std::to_string(text.size()) + "!\n";
  }
  for (const size_t long_word : {size_t{0}, size_t{3000}}) {
    const std::string whole = std::string(long_word, 'x') + text + std::string(long_word, 'y');
    TextParts parts;
    parts.parts[parts.count++] = {whole.data(), 10};
    parts.parts[parts.count++] = {whole.data() + 10, whole.size() - 20};
    parts.parts[parts.count++] = {whole.data() + whole.size() - 10, 10};
    Workspace none(nullptr, 0, &defaultAllocator());
    Collected sink;
    size_t needed = 0;
    ASSERT_TRUE(c.tokenizer->encodeBytes(parts, {}, &none, c.log.log(), &sink, &needed).ok());
    EXPECT_LE(needed, Tokenizer::workBytes(long_word + 64) + 4 * (long_word + 2048));
  }
}

TEST(TokenizerParts, a_sink_that_says_stop_is_asked_within_64_kib) {
  TokenizerCase c(readBytes(std::string(ORIEL_TEST_DATA) + "/tokenizer/vocab-bpe2048.gguf"));
  std::string text;
  while (text.size() < 200'000) {
    text += "word ";
  }
  TextParts parts;
  parts.add(text.data(), text.size());
  Workspace none(nullptr, 0, &defaultAllocator());
  Collected sink;
  sink.stop = true;
  Ids room(100'000);
  sink.capacity = room.size();
  size_t needed = 0;
  EXPECT_EQ(c.tokenizer->encodeBytes(parts, {}, &none, c.log.log(), &sink, &needed).code(),
            ORIEL_ERROR_CANCELLED);
  EXPECT_EQ(c.tokenizer->encodeParts(parts, {}, &none, c.log.log(), room.data(), room.size(), &sink)
                .code(),
            ORIEL_ERROR_CANCELLED);
  EXPECT_TRUE(sink.ids.empty());
}

// Tokens of every length with a common prefix; the text has only the shortest. Searching for each token at each
// byte took half a millisecond per byte.
TEST(TokenizerParts, user_defined_tokens_of_every_length_take_microseconds_a_byte) {
  Vocabulary v;
  v.add("a");
  v.add("c");
  const int32_t two = v.add("aa", kUserType);
  for (size_t n = 3; n <= kMaxTokenBytes; ++n) {
    v.add(std::string(n - 1, 'a') + "c", kUserType);
  }
  TokenizerCase c(v.writer().build());
  ASSERT_NE(c.tokenizer, nullptr) << c.log.errors();
  Ids ids;
  EXPECT_LT(processorSeconds([&] { ids = c.encode(std::string(100'000, 'a')); }), 10.0);
  EXPECT_EQ(ids, Ids(50'000, two));
}

TEST(TokenizerParts, nested_control_tokens_that_nobody_may_type_take_microseconds_a_byte) {
  Vocabulary v;
  const int32_t a = v.add("a");
  for (size_t n = 2; n <= kMaxTokenBytes; ++n) {
    v.add(std::string(n, 'a'), kControlType);
  }
  TokenizerCase c(v.writer().build());
  Ids ids;
  EXPECT_LT(processorSeconds([&] { ids = c.encode(std::string(100'000, 'a')); }), 10.0);
  EXPECT_EQ(ids, Ids(100'000, a));
}

}  // namespace
}  // namespace oriel_internal::test::test_tokenizer_parts
