// Messages in a buffer of fixed size.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/scratch.h"
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

  void add(const std::string& json, uint64_t begin, uint64_t end) {
    Scratch scratch(defaultAllocator(), size_t{1} << 20);
    const JsonValue* message = nullptr;
    ASSERT_TRUE(parseJson(json.data(), json.size(), "it", {}, &scratch, &message).ok());
    transcript_.add(*message, begin, end);
  }
  std::string written(uint64_t position = UINT64_MAX, uint64_t from = 0) const {
    std::string text;
    transcript_.write(from, position,
                      {[](const char* part, size_t bytes, void* user) {
                         static_cast<std::string*>(user)->append(part, bytes);
                       },
                       &text});
    return text;
  }
  struct Record {
    uint64_t at;
    Transcript::Entry entry;
    std::string json;
  };
  std::vector<Record> records() const {
    std::vector<Record> all;
    Record one;
    const char* json = nullptr;
    uint64_t at = 0;
    while (transcript_.next(&at, &one.entry, &json)) {
      one.json.assign(json, one.entry.bytes);
      one.at = at - one.entry.bytes - sizeof(Transcript::Entry);
      all.push_back(one);
    }
    return all;
  }
  /// The buffer after the last message is zero.
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

std::string message(const std::string& role, const std::string& text) {
  return R"({"role":")" + role + R"(","content":")" + text + "\"}";
}
std::string user(const std::string& text) { return message("user", text); }
std::string assistant(const std::string& text) { return message("assistant", text); }

TEST(Transcript, keeps_messages_and_where_they_end) {
  Kept kept(1000);
  EXPECT_EQ("[]", kept.written());
  kept.add(user("a\\\"b"), 0, 5);
  kept->open(5, 7);
  EXPECT_EQ("[" + user("a\\\"b") + "," + assistant("") + "]", kept.written());
  EXPECT_EQ("[" + user("a\\\"b") + "]", kept.written(9)) << "one that goes on ends nowhere";
  EXPECT_EQ(0u, kept->lastReplyEnd());
  kept->extend("one\n", 4);
  kept->extend("two", 3);
  kept->close(12, -1);
  EXPECT_EQ(12u, kept->lastReplyEnd());
  EXPECT_EQ("[" + user("a\\\"b") + "," + assistant("one\\ntwo") + "]", kept.written());
  EXPECT_EQ("[" + assistant("one\\ntwo") + "]", kept.written(12, kept.records()[1].at));
  EXPECT_EQ("[" + user("a\\\"b") + "]", kept.written(11));
  EXPECT_EQ("[]", kept.written(4));
  kept->extend("late", 4);
  EXPECT_EQ(2u, kept->messages());
  EXPECT_TRUE(kept.restIsBlank());
  kept->forget();
  EXPECT_EQ("[]", kept.written());
  EXPECT_TRUE(kept.restIsBlank());
}

TEST(Transcript, knows_the_role_of_each_message_and_the_last_within_a_position) {
  Kept kept(2000);
  EXPECT_EQ(Role::kNone, kept->last(UINT64_MAX).role());
  const std::string call =
      R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{}}}]})";
  kept.add(message("developer", "s"), 0, 2);
  kept.add(user("u"), 2, 4);
  kept.add(call, 4, 6);
  kept.add(message("tool", "t"), 6, 8);
  kept->open(8, 9);
  kept->close(12, -1);
  EXPECT_EQ(1u, kept->messages() - 4);
  const Role roles[] = {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool,
                        Role::kAssistant};
  const std::vector<Kept::Record> all = kept.records();
  ASSERT_EQ(5u, all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(roles[i], all[i].entry.role()) << i;
    EXPECT_EQ(i == 0, all[i].entry.is(Transcript::kSystem)) << i;
    EXPECT_EQ(i == 4, all[i].entry.is(Transcript::kReply)) << i;
    EXPECT_EQ(roles[i], kept->last(all[i].entry.end).role()) << i;
  }
  EXPECT_EQ(call, all[2].json) << "JSON stays as it was";
  EXPECT_EQ(8u, kept->last(11).end);
  EXPECT_EQ(Role::kNone, kept->last(1).role());
}

// A template writes what closes it with the next message, as of any reply.
TEST(Transcript, has_a_closed_reply_in_the_place_of_tokens_without_text) {
  Kept kept(1000);
  kept->addClosedReply(9);
  const Transcript::Entry reply = kept->last(9);
  EXPECT_EQ(Role::kAssistant, reply.role());
  EXPECT_TRUE(reply.is(Transcript::kClosed) && reply.is(Transcript::kCut));
  EXPECT_EQ(9u, reply.end);
  EXPECT_EQ("[]", kept.written()) << "it is not exported";
  EXPECT_EQ(0u, kept->dropped());
  EXPECT_TRUE(Transcript::valid(kept->data(), kept->bytes(), 1, 9));
}

TEST(Transcript, without_room_does_nothing) {
  Kept kept(0);
  kept.add(user("a"), 0, 5);
  kept->open(5, 7);
  kept->extend("x", 1);
  kept->close(9, -1);
  kept->addClosedReply(9);
  Transcript::Entry cut;
  EXPECT_FALSE(kept->truncate(8, &cut));
  EXPECT_FALSE(kept->keeps());
  EXPECT_EQ(0u, kept->messages() + kept->dropped());
  kept->forget();
}

TEST(Transcript, keeps_a_message_of_more_than_half_the_room_cut) {
  Kept kept(2000);
  kept.add(user("before"), 0, 2);
  const std::string large = std::string(63, 'x') + "\xC3\xA4" + std::string(2000, 'y');
  kept.add(R"({"role":"tool","name":"f","tool_call_id":"c1","content":")" + large + "\"}", 2, 900);
  EXPECT_EQ("[" + user("before") + "]", kept.written()) << "it is not exported";
  EXPECT_EQ(1u, kept->dropped());
  const Kept::Record cut = kept.records()[1];
  EXPECT_TRUE(cut.entry.is(Transcript::kCut));
  EXPECT_EQ(Role::kTool, cut.entry.role());
  EXPECT_EQ(R"({"role":"tool","content":")" + std::string(63, 'x') +
                R"(","name":"f","tool_call_id":"c1"})",
            cut.json)
      << "in whole characters";
  EXPECT_EQ(900u, kept->last(1000).end);
  kept.add(user("after"), 900, 902);
  EXPECT_EQ("[" + user("before") + "," + user("after") + "]", kept.written());
}

TEST(Transcript, keeps_a_system_message_of_more_than_a_quarter_of_the_room_cut) {
  for (const size_t bytes : {400, 600}) {
    Kept kept(2000);
    kept.add(message("system", std::string(bytes, 's')), 0, 2);
    EXPECT_EQ(bytes == 600, kept.records()[0].entry.is(Transcript::kCut));
    EXPECT_EQ(bytes == 600 ? 1u : 0u, kept->dropped());
    for (uint64_t i = 2; i < 60; ++i) {
      kept.add(user("number " + std::to_string(i)), i, i + 1);
    }
    EXPECT_TRUE(kept.records()[0].entry.is(Transcript::kSystem)) << "it stays";
  }
}

// A growing reply evicts the oldest messages, and is cut where it alone is too large.
TEST(Transcript, makes_room_for_a_reply_as_it_grows) {
  for (uint64_t capacity = 1; capacity < 600; ++capacity) {
    Kept kept(capacity);
    kept.add(message("system", "S"), 0, 2);
    kept.add(user("first"), 2, 4);
    kept.add(user("second"), 4, 6);
    const bool has_system = kept.written().find("system") != std::string::npos;
    kept->open(6, 7);
    const bool opened = kept->isOpen();
    for (int i = 0; i < 40; ++i) {
      kept->extend("word ", 5);
      ASSERT_LE(kept->bytes(), capacity);
    }
    kept->close(50, -1);
    ASSERT_LE(kept->bytes(), capacity);
    EXPECT_TRUE(kept.restIsBlank());
    EXPECT_EQ(has_system, kept.written().find("system") != std::string::npos) << capacity;
    EXPECT_TRUE(Transcript::valid(kept->data(), kept->bytes(), kept->messages(), 50)) << capacity;
    EXPECT_EQ(opened, kept->lastReplyEnd() == 50) << capacity;
    if (capacity > 450) {
      EXPECT_NE(std::string::npos, kept.written().find("word word")) << capacity;
    }
  }
}

TEST(Transcript, forgets_what_ends_behind_a_place) {
  const auto conversation = [](Kept* kept) {
    kept->add(user("a"), 0, 5);
    (*kept)->open(5, 8);
    (*kept)->extend("b", 1);
    (*kept)->close(12, -1);
    kept->add(user("c"), 12, 20);
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
    EXPECT_EQ(position >= 8 && position < 12, in_reply) << position;
    EXPECT_TRUE(!in_reply || (cut.begin == 5 && cut.text == 8 && cut.end == 12));
    EXPECT_TRUE(kept.restIsBlank());
    kept.add(user("d"), position, position + 1);
    EXPECT_NE(std::string::npos, kept.written().find(user("d")));
  }
}

TEST(Transcript, comes_back_whole_and_in_a_smaller_room_the_latest) {
  Kept kept(2000);
  kept.add(message("system", "be"), 0, 3);
  for (uint64_t i = 0; i < 10; ++i) {
    kept.add(user("number " + std::to_string(i)), 3 + i, 4 + i);
  }
  ASSERT_TRUE(Transcript::valid(kept->data(), kept->bytes(), 11, 13));
  EXPECT_FALSE(Transcript::valid(kept->data(), kept->bytes(), 10, 13));
  EXPECT_FALSE(Transcript::valid(kept->data(), kept->bytes(), 11, 12)) << "behind the end";
  Kept again(2000);
  again.add(user("gone"), 0, 1);
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

TEST(Transcript, reads_messages_again_without_those_that_are_cut) {
  Kept kept(2000);
  kept.add(user("a"), 0, 5);
  kept.add(user(std::string(3000, 'x')), 5, 900);
  kept->open(900, 901);
  kept->close(905, -1);
  kept->setUnread(0, 0);
  EXPECT_TRUE(kept->hasUnread());
  EXPECT_EQ("[" + user("a") + "," + assistant("") + "]", kept.written());
  for (const Kept::Record& one : kept.records()) {
    EXPECT_TRUE(one.entry.is(Transcript::kUnread) && !one.entry.is(Transcript::kReply));
    kept->setRead(one.at, 1, 2);
  }
  EXPECT_FALSE(kept->hasUnread());
  EXPECT_EQ(Role::kAssistant, kept->last(2).role());
}

// Bytes from a file: nothing outside them is read.
TEST(Transcript, of_damaged_bytes_is_not_valid_or_harmless) {
  Kept kept(500);
  kept.add(user("a\xC3\xA4"), 0, 5);
  kept.add(user("b"), 5, 9);
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
