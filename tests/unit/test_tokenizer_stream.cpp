// Text shown while it is generated: whole characters only.
#include <gtest/gtest.h>

#include "support/tokenizer_case.h"

namespace oriel_internal::test::test_tokenizer_stream {
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
