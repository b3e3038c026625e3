// When drafts of a model are expected to pay.
#include <gtest/gtest.h>

#include <vector>

#include "exec/model_drafts.h"

namespace oriel_internal::test_model_drafts {
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
