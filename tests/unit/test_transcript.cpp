// What a transcript keeps in a room of a fixed size, and what of it comes back.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/workspace.h"
#include "exec/transcript.h"

namespace oriel_internal::test::test_transcript {
namespace {

class Kept {
 public:
  explicit Kept(uint64_t capacity) : block_(capacity / 16 + 1) {
    Arena arena(block_.data(), block_.size() * 16);
    transcript_.init(capacity, &arena);
  }
  Transcript* operator->() { return &transcript_; }
  Transcript& operator*() { return transcript_; }

  void add(const std::string& role, const std::string& text, uint64_t begin, uint64_t end) {
    transcript_.add({role.data(), role.size()}, {text.data(), text.size()}, begin, end);
  }
  std::string written(uint64_t position = UINT64_MAX) const {
    std::string text;
    transcript_.write(position, {[](const char* part, size_t bytes, void* user) {
                                   static_cast<std::string*>(user)->append(part, bytes);
                                 },
                                 &text});
    return text;
  }
  /// What lies behind what is kept is never anything but zeros.
  bool restIsBlank() const {
    const uint8_t* const room = transcript_.data();
    for (uint64_t i = transcript_.bytes(); i < transcript_.capacity(); ++i) {
      if (room[i] != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  struct alignas(16) Piece {
    uint8_t bytes[16];
  };
  std::vector<Piece> block_;
  Transcript transcript_;
};

std::string user(const std::string& text) { return R"({"role":"user","content":")" + text + "\"}"; }
std::string assistant(const std::string& text) {
  return R"({"role":"assistant","content":")" + text + "\"}";
}

TEST(Transcript, keeps_messages_and_where_they_end) {
  Kept kept(1000);
  EXPECT_EQ("[]", kept.written());
  kept.add("user", "a\"b", 0, 5);
  kept->open(5, 7);
  EXPECT_EQ("[" + user("a\\\"b") + "," + assistant("") + "]", kept.written());
  EXPECT_EQ("[" + user("a\\\"b") + "]", kept.written(9)) << "one that goes on ends nowhere";
  kept->extend("one\n", 4);
  kept->extend("two", 3);
  kept->close(12);
  EXPECT_EQ("[" + user("a\\\"b") + "," + assistant("one\\ntwo") + "]", kept.written());
  EXPECT_EQ("[" + user("a\\\"b") + "]", kept.written(11));
  EXPECT_EQ("[]", kept.written(4));
  kept->extend("late", 4);
  EXPECT_EQ(2u, kept->messages());
  EXPECT_TRUE(kept.restIsBlank());
  kept->forget();
  EXPECT_EQ("[]", kept.written());
  EXPECT_TRUE(kept.restIsBlank());
}

TEST(Transcript, without_room_does_nothing) {
  Kept kept(0);
  kept.add("user", "a", 0, 5);
  kept->open(5, 7);
  kept->extend("x", 1);
  kept->close(9);
  Transcript::Entry cut;
  EXPECT_FALSE(kept->truncate(8, &cut));
  EXPECT_FALSE(kept->keeps());
  EXPECT_EQ(0u, kept->messages() + kept->dropped());
  kept->forget();
}

// A reply that grows pushes the oldest out, in any room, and is dropped where it alone is too large.
TEST(Transcript, makes_room_for_a_reply_as_it_grows) {
  for (uint64_t capacity = 1; capacity < 600; ++capacity) {
    Kept kept(capacity);
    kept.add("system", "S", 0, 2);
    kept.add("user", "first", 2, 4);
    kept.add("user", "second", 4, 6);
    const bool has_system = kept.written().find("system") != std::string::npos;
    kept->open(6, 7);
    for (int i = 0; i < 40; ++i) {
      kept->extend("word ", 5);
      ASSERT_LE(kept->bytes(), capacity);
    }
    kept->close(50);
    ASSERT_LE(kept->bytes(), capacity);
    EXPECT_EQ(4u, kept->messages() + kept->dropped()) << capacity;
    EXPECT_TRUE(kept.restIsBlank());
    EXPECT_EQ(has_system, kept.written().find("system") != std::string::npos) << capacity;
    EXPECT_TRUE(Transcript::valid(kept->data(), kept->bytes(), kept->messages(), 50)) << capacity;
    if (capacity > 450) {
      EXPECT_NE(std::string::npos, kept.written().find("word word")) << capacity;
    }
  }
}

TEST(Transcript, forgets_what_ends_behind_a_place) {
  const auto conversation = [](Kept* kept) {
    kept->add("user", "a", 0, 5);
    (*kept)->open(5, 8);
    (*kept)->extend("b", 1);
    (*kept)->close(12);
    kept->add("user", "c", 12, 20);
  };
  for (uint64_t position = 0; position < 25; ++position) {
    Kept kept(1000);
    conversation(&kept);
    Transcript::Entry cut;
    const bool in_reply = kept->truncate(position, &cut);
    EXPECT_EQ(position >= 20   ? 3u
              : position >= 12 ? 2u
              : position >= 5  ? 1u
                               : 0u,
              kept->messages())
        << position;
    EXPECT_EQ(position > 8 && position < 12, in_reply) << position;
    EXPECT_TRUE(!in_reply || (cut.begin == 5 && cut.text == 8 && cut.end == 12));
    EXPECT_TRUE(kept.restIsBlank());
    kept.add("user", "d", position, position + 1);
    EXPECT_NE(std::string::npos, kept.written().find(user("d")));
  }
}

TEST(Transcript, comes_back_whole_and_in_a_smaller_room_the_latest) {
  Kept kept(2000);
  kept.add("system", "be", 0, 3);
  for (uint64_t i = 0; i < 10; ++i) {
    kept.add("user", "number " + std::to_string(i), 3 + i, 4 + i);
  }
  ASSERT_TRUE(Transcript::valid(kept->data(), kept->bytes(), 11, 13));
  EXPECT_FALSE(Transcript::valid(kept->data(), kept->bytes(), 10, 13));
  EXPECT_FALSE(Transcript::valid(kept->data(), kept->bytes(), 11, 12)) << "behind the end";
  Kept again(2000);
  again.add("user", "gone", 0, 1);
  again->load(kept->data(), kept->bytes(), 4);
  EXPECT_EQ(kept.written(), again.written());
  EXPECT_EQ(4u, again->dropped());
  Kept smaller(400);
  smaller->load(kept->data(), kept->bytes(), 4);
  EXPECT_EQ(11u + 4u, smaller->messages() + smaller->dropped());
  EXPECT_NE(std::string::npos, smaller.written().find("system"));
  EXPECT_NE(std::string::npos, smaller.written().find("number 9"));
  EXPECT_EQ(std::string::npos, smaller.written().find("number 1"));
  Kept none(0);
  none->load(kept->data(), kept->bytes(), 0);
  EXPECT_EQ(0u, none->messages());
}

// Bytes from a file: whatever they are, nothing outside them is read.
TEST(Transcript, of_damaged_bytes_is_not_valid_or_harmless) {
  Kept kept(500);
  kept.add("user", "a\xC3\xA4", 0, 5);
  kept.add("user", "b", 5, 9);
  const std::vector<uint8_t> whole(kept->data(), kept->data() + kept->bytes());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = whole;
      bytes[i] = static_cast<uint8_t>(value);
      bytes.shrink_to_fit();
      if (Transcript::valid(bytes.data(), bytes.size(), 2, 9)) {
        Kept into(500);
        into->load(bytes.data(), bytes.size(), 0);
        EXPECT_EQ(2u, into->messages());
      }
    }
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(Transcript::valid(part.data(), part.size(), 2, 9)) << i;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_transcript
