// Drafts from a text, and when they are expected to pay.
#include <vector>

#include <gtest/gtest.h>

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

namespace oriel_internal::test_model_drafts {

// When drafts of a model are expected to pay.

namespace {

constexpr uint32_t kMost = 7;
constexpr double kStepMs = 10;

/// Consecutive tokens with drafts of `guess_ms` each. All steps take equally long, so only the drafting cost and its
/// accuracy matter.
class GuessRig {
 public:
  explicit GuessRig(double guess_ms) : guess_ms_(guess_ms) {
    for (int i = 0; i < 400; ++i) {
      cost_.took(1, kStepMs);
      for (const uint32_t rows : {2u, 4u, 8u, 16u}) {
        cost_.took(rows, kStepMs);
      }
    }
    cost_.took(1, kStepMs);
  }

  /// A token with drafts after it, all right or all wrong. Returns the numbers made and verified.
  struct Made {
    uint32_t guesses = 0;
    uint32_t verified = 0;
  };
  Made token(bool right, uint32_t sureness = 3) {
    drafter_.chosen(right ? next_ : next_ + 1000);
    next_ = 1;
    Made made;
    made.guesses = drafter_.wanted(cost_, kMost, DraftUse::kAsItPays);
    if (made.guesses != 0) {
      std::vector<ModelGuess> guesses(made.guesses);
      for (uint32_t i = 0; i < made.guesses; ++i) {
        guesses[i] = {static_cast<int32_t>(1 + i), sureness};
      }
      made.verified = drafter_.made(guesses.data(), made.guesses, made.guesses * guess_ms_, &cost_,
                                    DraftUse::kAsItPays);
    }
    return made;
  }

  ModelDrafter& drafter() { return drafter_; }
  DraftCost& cost() { return cost_; }

 private:
  ModelDrafter drafter_;
  DraftCost cost_;
  const double guess_ms_;
  int32_t next_ = 1;
};

TEST(ModelDrafts, right_guesses_go_on_and_wrong_ones_end) {
  GuessRig right(0.3);
  (void)right.token(true);
  GuessRig::Made made;
  for (int i = 0; i < 40; ++i) {
    made = right.token(true);
    EXPECT_NE(0u, made.guesses) << i;
  }
  EXPECT_EQ(kMost, made.guesses);
  EXPECT_EQ(kMost, made.verified);

  GuessRig wrong(0.3);
  uint32_t guesses = 0, tokens = 0, last = 0;
  for (; tokens < 200; ++tokens) {
    made = wrong.token(false);
    guesses += made.guesses;
    if (tokens >= 100) {
      last += made.guesses;
      EXPECT_EQ(0u, made.verified);
      EXPECT_LE(made.guesses, 1u);
    }
  }
  EXPECT_LT(guesses, 60u);
  EXPECT_LE(last, 8u) << "one now and then";
  EXPECT_GE(last, 4u);
  // And restarts when they become right.
  tokens = 0;
  do {
    made = wrong.token(true);
  } while (made.verified == 0 && ++tokens < 1000);
  EXPECT_LT(tokens, 1000u);
}

TEST(ModelDrafts, guesses_that_take_as_long_as_steps_do_not_pay) {
  GuessRig slow(kStepMs);
  uint32_t guesses = 0;
  for (int i = 0; i < 200; ++i) {
    guesses += slow.token(true).guesses;
  }
  EXPECT_LT(guesses, 40u);
}

TEST(ModelDrafts, unsure_guesses_are_left_out) {
  GuessRig rig(0.3);
  for (uint32_t rows : {2u, 4u, 8u, 16u}) {
    for (int i = 0; i < 100; ++i) {
      rig.cost().took(rows, 2 * kStepMs);
      rig.cost().took(1, kStepMs);
    }
  }
  // Sure ones are right and others wrong, which it learns.
  ModelDrafter& drafter = rig.drafter();
  const auto learn = [&](uint32_t sureness, bool right) {
    const ModelGuess guess = {5, sureness};
    (void)drafter.made(&guess, 1, 0.3, &rig.cost(), DraftUse::kAsItPays);
    drafter.chosen(right ? 5 : 6);
  };
  for (int i = 0; i < 30; ++i) {
    learn(4, true);
    learn(1, false);
  }
  const ModelGuess guesses[] = {{1, 4}, {2, 4}, {3, 4}, {4, 1}, {5, 4}, {6, 4}, {7, 4}};
  EXPECT_EQ(3u, drafter.made(guesses, 7, 2, &rig.cost(), DraftUse::kAsItPays));
  EXPECT_EQ(7u, drafter.made(guesses, 7, 2, &rig.cost(), DraftUse::kAlways));
}

TEST(ModelDrafts, sureness_grows_with_the_share) {
  uint32_t before = 0;
  for (double share = 0; share <= 1; share += 0.01) {
    const uint32_t sureness = ModelDrafter::surenessOf(share);
    EXPECT_LT(sureness, ModelDrafter::kClasses);
    EXPECT_GE(sureness, before);
    before = sureness;
  }
  EXPECT_EQ(ModelDrafter::kClasses - 1, before);
}

TEST(ModelDrafts, nothing_is_known_of_steps_at_first) {
  ModelDrafter drafter;
  DraftCost cost;
  EXPECT_EQ(0u, drafter.wanted(cost, kMost, DraftUse::kAsItPays));
  EXPECT_EQ(kMost, drafter.wanted(cost, kMost, DraftUse::kAlways));
  EXPECT_FALSE(drafter.pays(cost, 0, DraftUse::kAlways)) << "there is no room for one";
  EXPECT_TRUE(drafter.pays(cost, 1, DraftUse::kAlways));
}

}  // namespace
}  // namespace oriel_internal::test_model_drafts
