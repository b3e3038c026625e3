// Drafts from a text, and when they are expected to pay.
#include <gtest/gtest.h>

#include <vector>

#include "exec/drafts.h"

namespace oriel_internal::test_drafts {
namespace {

class DraftRig {
 public:
  explicit DraftRig(uint32_t most, uint32_t window = 100, uint32_t sinks = 4) {
    cache_.sinks = sinks;
    cache_.window = window;
    cache_.ring = window + 7;
    Arena measure;
    build(most, &measure);
    memory_.resize(measure.used() / sizeof(Line) + 1);
    Arena arena(memory_.data(), measure.used());
    build(most, &arena);
    ids_.forget();
    drafter_.forget();
    drafter_.begin(DraftUse::kAlways);
  }

  Drafter& drafter() { return drafter_; }
  uint64_t position() const { return position_; }

  /// Reads tokens.
  void read(const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      ids_.set(position_++, id);
    }
  }
  /// A chosen token; returns the draft after it.
  std::vector<int32_t> choose(int32_t id, uint32_t room = Drafter::kMost) {
    int32_t guesses[Drafter::kMost] = {};
    const DraftText text = this->text(id);
    drafter_.chosen(text);
    const uint32_t count = drafter_.guess(text, room, guesses);
    ids_.set(position_++, id);
    return {guesses, guesses + count};
  }
  void goBack(uint64_t position) { position_ = position; }

 private:
  struct alignas(Arena::kAlignment) Line {
    uint8_t bytes[Arena::kAlignment];
  };
  void build(uint32_t most, Arena* arena) {
    ids_.init(cache_, nullptr, arena);
    drafter_.init(most, arena);
  }
  DraftText text(int32_t id) const {
    return DraftText(ids_, heldTokens(cache_, position_, position_), id);
  }

  CacheShape cache_;
  TokenIds ids_;
  Drafter drafter_;
  std::vector<Line> memory_;
  uint64_t position_ = 0;
};

using Ids = std::vector<int32_t>;

TEST(Drafter, guesses_what_followed_the_last_three_tokens) {
  DraftRig rig(7);
  rig.read({1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 21, 2, 3});
  EXPECT_EQ((Ids{5, 6, 7, 8, 9, 20, 21}), rig.choose(4));
  EXPECT_EQ((Ids{6, 7}), rig.choose(5, 2));
  EXPECT_EQ(Ids(), rig.choose(30)) << "that has not been there";
  EXPECT_EQ(Ids(), rig.choose(31));
}

TEST(Drafter, two_tokens_that_agree_are_too_few) {
  DraftRig rig(7);
  rig.read({1, 2, 3, 4, 9, 3});
  EXPECT_EQ(Ids(), rig.choose(4));
}

TEST(Drafter, takes_the_latest_place_and_stays_with_the_one_that_was_right) {
  DraftRig rig(2);
  rig.read({1, 2, 3, 40, 41, 1, 2, 3, 50, 51, 60, 1, 2});
  EXPECT_EQ((Ids{50, 51}), rig.choose(3));
  EXPECT_EQ((Ids{51, 60}), rig.choose(50));
}

TEST(Drafter, text_that_repeats_itself_is_guessed_to_go_on) {
  DraftRig rig(9);
  rig.read({7, 8, 7, 8, 7});
  EXPECT_EQ((Ids{7, 8, 7, 8, 7, 8, 7, 8, 7}), rig.choose(8));
}

TEST(Drafter, what_left_the_window_is_not_followed) {
  DraftRig rig(4, 20, 0);
  rig.read({1, 2, 3, 4, 5});
  for (int32_t i = 0; i < 40; ++i) {
    rig.read({100 + i});
  }
  rig.read({1, 2});
  EXPECT_EQ(Ids(), rig.choose(3));
  // It stops at the end of the sinks, too.
  DraftRig sinks(6, 20, 4);
  sinks.read({1, 2, 3, 4, 5});
  for (int32_t i = 0; i < 40; ++i) {
    sinks.read({100 + i});
  }
  sinks.read({1, 2});
  EXPECT_EQ((Ids{4}), sinks.choose(3));
}

TEST(Drafter, goes_back_and_on_with_other_text) {
  DraftRig rig(3);
  rig.read({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Ids(), rig.choose(7));
  rig.goBack(3);
  rig.read({14, 15, 16, 1, 2});
  EXPECT_EQ((Ids{14, 15, 16}), rig.choose(3));
  rig.goBack(0);
  rig.drafter().restart();
  rig.read({9, 9, 2, 3, 4, 8, 2, 3});
  EXPECT_EQ((Ids{8, 2, 3}), rig.choose(4));
}

TEST(Drafter, tokens_at_any_depth) {
  DraftRig rig(3, 50, 0);
  rig.goBack((uint64_t{1} << 32) - 6);  // numbers of tokens pass 32 bits in the text
  rig.read({1, 2, 3, 4, 5, 6, 7, 8, 2, 3});
  EXPECT_EQ((Ids{5, 6, 7}), rig.choose(4));
}

TEST(Drafter, none_when_none_were_asked_for) {
  DraftRig rig(0);
  EXPECT_FALSE(rig.drafter().active());
  DraftRig some(3);
  some.drafter().begin(DraftUse::kNever);
  EXPECT_FALSE(some.drafter().active());
}

// Steps of `rows` rows that take `ms`.
void measure(DraftCost* cost, uint32_t rows, double ms, int times = 60) {
  for (int i = 0; i < times; ++i) {
    cost->took(1, 10);
    if (rows > 1) {
      cost->took(rows, ms);
    }
  }
}
void judge(DraftCost* cost, uint32_t length, bool right, int times) {
  for (int i = 0; i < times; ++i) {
    cost->judged(length, right);
  }
}

TEST(DraftCost, guesses_nothing_before_a_step_was_timed) {
  DraftCost cost;
  judge(&cost, 20, true, 100);
  EXPECT_EQ(0u, cost.best(20, 7));
  cost.took(1, 10);
  EXPECT_LT(0u, cost.best(20, 7));
}

TEST(DraftCost, guesses_as_many_as_pay) {
  DraftCost cost;
  judge(&cost, 20, true, 200);
  measure(&cost, 2, 18);
  measure(&cost, 4, 20);
  measure(&cost, 8, 28);
  EXPECT_EQ(7u, cost.best(20, 7));
  EXPECT_EQ(3u, cost.best(20, 4));
  judge(&cost, 20, false, 200);
  EXPECT_EQ(0u, cost.best(20, 7)) << "guesses that are never right";
}

TEST(DraftCost, guesses_nothing_where_steps_of_many_take_as_long_as_many_steps) {
  DraftCost cost;
  judge(&cost, 20, true, 200);
  measure(&cost, 2, 20);
  measure(&cost, 4, 40);
  measure(&cost, 8, 80);
  EXPECT_EQ(0u, cost.best(20, 7));
}

TEST(DraftCost, a_single_slow_step_changes_little) {
  DraftCost cost;
  judge(&cost, 20, true, 200);
  measure(&cost, 8, 25);
  cost.took(8, 4000);
  EXPECT_EQ(7u, cost.best(20, 7));
  cost.took(1, 1);
  EXPECT_EQ(7u, cost.best(20, 7));
}

// After a busy period of the machine.
TEST(DraftCost, tries_again_in_the_end) {
  DraftCost cost;
  judge(&cost, 20, true, 200);
  measure(&cost, 2, 100);
  measure(&cost, 4, 100);
  measure(&cost, 8, 100);
  int tokens = 0;
  while (cost.best(20, 7) == 0 && tokens < 10000) {
    cost.took(1, 10);
    ++tokens;
  }
  EXPECT_GT(tokens, 50);
  EXPECT_LT(tokens, 4000);
}

// Long matches are trusted where short ones were wrong.
TEST(DraftCost, knows_by_how_much_the_text_agreed) {
  DraftCost cost;
  measure(&cost, 8, 25);
  measure(&cost, 4, 18);
  judge(&cost, 3, false, 100);
  judge(&cost, 40, true, 100);
  EXPECT_EQ(0u, cost.best(3, 7));
  EXPECT_LT(2u, cost.best(40, 7));
}

}  // namespace
}  // namespace oriel_internal::test_drafts
