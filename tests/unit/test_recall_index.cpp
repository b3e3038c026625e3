// Finding turns by their words.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kv/recall_index.h"
#include "text/words.h"

namespace oriel_internal::test_recall_index {
namespace {

std::vector<uint32_t> words(const std::string& text, size_t piece = SIZE_MAX) {
  std::vector<uint32_t> found;
  WordReader reader;
  for (size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) {
    reader.push(text.data() + at, std::min(piece, text.size() - at),
                [&](uint32_t word) { found.push_back(word); });
  }
  if (const uint32_t last = reader.finish(); last != WordReader::kNone) {
    found.push_back(last);
  }
  return found;
}

/// A conversation whose words are its tokens.
class Said {
 public:
  explicit Said(uint64_t capacity) : block_(1u << 20) {
    Arena arena(block_.data(), block_.size());
    index.init(capacity, &arena);
  }
  TokenSpan turn(const std::string& text) {
    const TokenSpan span = {at_, at_ + words(text).size()};
    index.markTurn(at_);
    for (const uint32_t word : words(text)) {
      index.addWord(at_++, word);
    }
    return span;
  }
  RecallSpans find(const std::string& text, uint64_t begin, uint64_t end, uint32_t room) {
    RecallQuery query;
    for (const uint32_t word : words(text)) {
      query.add(word);
    }
    index.weigh(query, begin, end, room);
    return index.best(room);
  }
  uint64_t end() const { return at_; }

  RecallIndex index;

 private:
  struct alignas(Arena::kAlignment) Aligned {
    uint8_t bytes[Arena::kAlignment];
  };
  class Block {
   public:
    explicit Block(size_t bytes) : pieces_(bytes / sizeof(Aligned)) {}
    void* data() { return pieces_.data(); }
    size_t size() const { return pieces_.size() * sizeof(Aligned); }

   private:
    std::vector<Aligned> pieces_;
  };
  Block block_;
  uint64_t at_ = 0;
};

}  // namespace

TEST(Words, are_the_same_in_any_case_and_with_most_endings) {
  EXPECT_EQ(words("dog"), words("DOGS"));
  EXPECT_EQ(words("teacher"), words("Teaching"));
  EXPECT_EQ(words("\xC3\x84pfel"), words("\xC3\xA4pfel"));  // A and a with dots
  EXPECT_EQ(words("\xD0\x9C\xD0\xB8\xD1\x80"), words("\xD0\xBC\xD0\xB8\xD1\x80"));  // Mir, mir
  EXPECT_NE(words("cat"), words("car"));
  EXPECT_EQ(3u, words("B1-810 x 7").size()) << "a letter alone is no word, a digit is";
  EXPECT_TRUE(words(" .,!? ").empty());
}

TEST(Words, of_scripts_without_case_are_pairs_of_letters) {
  const std::string text = "\xE6\x88\x91\xE7\x9A\x84\xE7\x8B\x97";  // three Han characters
  EXPECT_EQ(2u, words(text).size());
  EXPECT_EQ(words(text).back(), words(text.substr(3)).back());
}

TEST(Words, do_not_depend_on_how_the_text_comes) {
  const std::string text =
      "Na\xC3\xAFve caf\xC3\xA9s, 2024: \xE6\x88\x91\xE7\x9A\x84 ok\xFF\xC3 end";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EXPECT_EQ(words(text), words(text, piece)) << piece;
  }
}

TEST(RecallIndex, finds_the_turn_with_the_rarest_words_in_common) {
  Said said(4096);
  std::vector<TokenSpan> turns;
  for (int i = 0; i < 40; ++i) {
    turns.push_back(said.turn("what is the name of the day number " + std::to_string(i)));
  }
  const TokenSpan pet = said.turn("the name of my parrot is Polly");
  said.turn("what is the day today");
  const RecallSpans found = said.find("What is my parrot called?", 0, said.end(), 16);
  ASSERT_NE(0u, found.count);
  EXPECT_TRUE(found.spans[0] == pet);
  const RecallSpans day = said.find("day number 17", 0, said.end(), 9);
  ASSERT_EQ(1u, day.count);
  EXPECT_TRUE(day.spans[0] == turns[17]);
  EXPECT_EQ(0u, said.find("xylophones", 0, said.end(), 16).count);
  EXPECT_EQ(0u, said.find("parrot", 0, pet.begin, 16).count) << "behind what may come back";
}

TEST(RecallIndex, attention_counts_beside_words) {
  Said said(4096);
  for (int i = 0; i < 30; ++i) {
    said.turn("nothing new was said on day " + std::to_string(i));
  }
  ASSERT_EQ(0u, said.find("elephant", 0, said.end(), 16).count);
  RecallQuery query;
  said.index.weigh(query, 0, said.end(), 16);
  ASSERT_EQ(30u, said.index.passageCount());
  for (uint32_t i = 0; i < 30; ++i) {
    said.index.setAttention(i, i == 11 ? 0.5f : 0.01f);
  }
  const RecallSpans found = said.index.best(16);
  ASSERT_EQ(1u, found.count);
  EXPECT_TRUE(found.spans[0] == said.index.passage(11));
}

TEST(RecallIndex, cuts_what_is_too_long_and_takes_what_there_is_room_for) {
  Said said(4096);
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += i == 150 ? "pelican " : "word" + std::to_string(i) + " ";
  }
  said.turn(text);
  const RecallSpans found = said.find("pelican", 0, said.end(), 100);
  ASSERT_EQ(1u, found.count);
  EXPECT_LE(found.spans[0].size(), RecallIndex::kPieceTokens);
  EXPECT_LE(found.spans[0].begin, 150u);
  EXPECT_GT(found.spans[0].end, 150u);
  EXPECT_EQ(0u, said.find("pelican", 0, said.end(), 0).count);
  for (uint32_t room = 1; room < 80; ++room) {
    EXPECT_LE(said.find("pelican word7 word99", 0, said.end(), room).tokens(), room);
  }
}

TEST(RecallIndex, keeps_the_latest_words_and_forgets_what_was_taken_back) {
  Said said(20);
  for (int i = 0; i < 10; ++i) {
    said.turn("filler talk number " + std::to_string(i));
  }
  EXPECT_EQ(20u, said.index.wordCount());
  EXPECT_EQ(0u, said.find("0", 0, said.end(), 8).count);
  EXPECT_EQ(1u, said.find("number 8", 0, said.end(), 4).count);
  said.index.truncate(said.end() - 8, said.end() - 8);
  EXPECT_EQ(12u, said.index.wordCount());
  EXPECT_EQ(0u, said.find("8", 0, said.end() - 8, 8).count);
  said.index.clear();
  EXPECT_EQ(0u, said.find("number 7", 0, said.end(), 8).count);
}

}  // namespace oriel_internal::test_recall_index
