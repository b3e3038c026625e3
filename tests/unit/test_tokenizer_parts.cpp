// Text in parts: the ids of the whole, in time and memory independent of the vocabulary.
#include <random>

#include <gtest/gtest.h>

#include "support/target.h"
#include "support/timing.h"
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
  const int rounds = allCases() ? 400 : 60;
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
  const size_t bytes = allCases() ? 100'000 : 20'000;
  Ids ids;
  EXPECT_LT(processorSeconds([&] { ids = c.encode(std::string(bytes, 'a')); }),
            1e-4 * static_cast<double>(bytes));
  EXPECT_EQ(ids, Ids(bytes, a));
}

}  // namespace
}  // namespace oriel_internal::test::test_tokenizer_parts

namespace oriel_internal::test::test_tokenizer_stream {

// Text shown while it is generated: whole characters only.

namespace {

class Stream {
 public:
  explicit Stream(bool drop_first_space = false) { decoder_->reset(drop_first_space); }
  std::string push(const std::string& piece) {
    const char* text = nullptr;
    size_t bytes = 0;
    decoder_->push({piece.data(), piece.size()}, &text, &bytes);
    return {text, bytes};
  }
  std::string finish() {
    const char* text = nullptr;
    size_t bytes = 0;
    decoder_->finish(&text, &bytes);
    return {text, bytes};
  }

 private:
  std::unique_ptr<StreamDecoder> decoder_ = std::make_unique<StreamDecoder>();
};

bool startsOrEndsInsideCharacter(const std::string& text) {
  if (text.empty()) {
    return false;
  }
  size_t last = text.size() - 1;
  while (last > 0 && (text[last] & 0xC0) == 0x80) {
    --last;
  }
  const uint8_t lead = static_cast<uint8_t>(text[last]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return (text[0] & 0xC0) == 0x80 || text.size() - last != length;
}

TEST(StreamDecoder, any_split_of_a_text_gives_the_text_in_whole_characters) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\xE4\xBD\xA0";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      Stream stream;
      std::string all;
      for (const std::string& piece :
           {text.substr(0, first), text.substr(first, second - first), text.substr(second)}) {
        const std::string shown = stream.push(piece);
        EXPECT_FALSE(startsOrEndsInsideCharacter(shown));
        all += shown;
      }
      EXPECT_EQ(stream.finish(), "");
      EXPECT_EQ(all, text);
    }
  }
}

TEST(StreamDecoder, a_complete_character_is_shown_at_once) {
  Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80!"), "\xF0\x9F\x98\x80!");
}

TEST(StreamDecoder, each_broken_sequence_becomes_one_replacement_character) {
  // The table of section 3.9 of the Unicode standard, and cut-off endings.
  const std::string u = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", u + u + u + u + u + u + u + u + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", u + u + u + u + u + u + u + u + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", u + u + u + u + u + "A" + u + u + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", u + u + u + u + "A"},
      {"x\xF0\x9F\x98", "x" + u},
      {"\xE2", u},
      {"\xC3\xC3\xA9", u + "\xC3\xA9"},
  };
  for (const auto& [broken, expected] : cases) {
    for (size_t split = 0; split <= broken.size(); ++split) {
      Stream stream;
      std::string all = stream.push(broken.substr(0, split));
      all += stream.push(broken.substr(split));
      all += stream.finish();
      EXPECT_EQ(all, expected) << split;
    }
    Stream bytewise;
    std::string all;
    for (const char byte : broken) {
      all += bytewise.push(std::string(1, byte));
    }
    EXPECT_EQ(all + bytewise.finish(), expected);
  }
}

TEST(StreamDecoder, the_longest_piece_of_broken_bytes_fits) {
  Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.push(std::string(kMaxTokenBytes, '\xFF')).size(), 3u * (kMaxTokenBytes + 1));
}

TEST(StreamDecoder, drops_one_space_before_the_first_text_only) {
  Stream stream(true);
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.push("  a"), " a");
  EXPECT_EQ(stream.push(" b"), " b");
  Stream other(true);
  EXPECT_EQ(other.push("a"), "a");
  EXPECT_EQ(other.push(" b"), " b");
}

TEST(StreamDecoder, token_by_token_equals_decode) {
  TokenizerCase c(readBytes(std::string(ORIEL_TEST_DATA) + "/tokenizer/vocab-bpe2048.gguf"));
  ASSERT_NE(c.tokenizer, nullptr);
  const std::string text =
      "na\xC3\xAFve caf\xC3\xA9 \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 done.";
  const std::vector<int32_t> ids = c.encode(text);
  Stream stream;
  std::string all;
  for (const int32_t id : ids) {
    const Tokenizer::Piece piece = c.tokenizer->piece(id, false);
    all += stream.push({piece.data, piece.bytes});
  }
  EXPECT_EQ(all + stream.finish(), c.decode(ids));
  EXPECT_EQ(all, text);
}

}  // namespace
}  // namespace oriel_internal::test::test_tokenizer_stream
