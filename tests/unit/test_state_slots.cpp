// Slots of state versions (kv/state_slots.h): against a model of the memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kv/state_slots.h"

namespace oriel_internal::test::test_state_slots {
namespace {

constexpr uint64_t kRubbish = UINT64_MAX - 1;

/// A device's effect on slots: the content is the number of tokens in the state.
class Device {
 public:
  explicit Device(uint32_t checkpoints) : content_(kStateSlots + checkpoints, kRubbish) {
    slots.init(checkpoints);
  }

  /// The read slot has the state after `tokens`, and another is written: garbage at first.
  View begin(bool ahead, uint64_t tokens) {
    const View view = slots.view(ahead);
    EXPECT_LT(view.slot, content_.size());
    EXPECT_EQ(tokens != 0 ? 1u : 0u, view.count);
    if (view.count != 0) {
      EXPECT_EQ(tokens, content_.at(view.begin));
      EXPECT_NE(view.begin, view.slot);
    }
    content_.at(view.slot) = kRubbish;
    return view;
  }
  void end(const View& view, uint64_t tokens) { content_.at(view.slot) = tokens; }
  uint64_t latest() const { return content_.at(slots.current()); }

  StateSlots slots;

 private:
  std::vector<uint64_t> content_;
};

std::vector<uint64_t> kept(const StateSlots& slots) {
  std::vector<uint64_t> all;
  for (uint32_t i = 0; i < slots.count(); ++i) {
    all.push_back(slots.at(i));
  }
  return all;
}

TEST(StateSlots, two_besides_the_checkpoints_are_enough_whatever_happens) {
  const auto always = [](uint64_t) { return true; };
  for (const uint32_t checkpoints : {0u, 1u, 2u, 3u, 5u, kMaxCheckpoints}) {
    SCOPED_TRACE(checkpoints);
    std::mt19937 random(checkpoints);
    Device device(checkpoints);
    StateSlots& slots = device.slots;
    uint64_t position = 0;
    bool ahead = false;  // the step after `position` has begun
    View begun = {};
    for (int i = 0; i < 20000; ++i) {
      switch (random() % 6) {
        case 0:
          slots.keep(position, random() % 3 == 0, always);
          break;
        case 1: {  // back to some state
          ahead = false;
          std::vector<uint64_t> states;
          slots.forEachBefore(position, [&](uint64_t tokens) {
            EXPECT_LT(tokens, states.empty() ? position : states.back());
            states.push_back(tokens);
            return false;
          });
          if (!states.empty() && random() % 4 == 0) {
            position = states[random() % states.size()];
            slots.goBack(position);
            if (position != 0) {
              ASSERT_EQ(position, device.latest());
            }
          }
          break;
        }
        default: {
          const uint64_t tokens = 1 + random() % 9;
          if (!ahead) {
            slots.writing();
            begun = device.begin(false, position);
          }
          if (random() % 5 == 0) {
            ahead = false;  // it failed, or was cancelled
            break;
          }
          device.end(begun, position + tokens);
          const bool more = random() % 2 == 0;
          View behind = {};
          if (more) {
            behind = device.begin(true, position + tokens);
          }
          slots.commit(position, !more);
          position += tokens;
          ahead = more;
          if (more) {
            // An early step has one token; it is done when committed.
            begun = behind;
          }
          ASSERT_EQ(position, device.latest());
          break;
        }
      }
      ASSERT_LE(slots.count(), checkpoints);
      ASSERT_TRUE(position == 0 || device.latest() == position);
    }
  }
}

/// A session that reads `tokens` in batches of 64, with messages at `starts`.
std::vector<uint64_t> keptAfter(uint32_t checkpoints, uint64_t tokens,
                                const std::vector<uint64_t>& starts) {
  const auto always = [](uint64_t) { return true; };
  StateSlots slots;
  slots.init(checkpoints);
  for (uint64_t position = 0; position < tokens; position += 64) {
    if (std::find(starts.begin(), starts.end(), position) != starts.end()) {
      slots.keep(position, true, always);
    }
    slots.writing();
    slots.commit(position, true);
    if (slots.isDue(position + 64)) {
      slots.keep(position + 64, false, always);
    }
  }
  return kept(slots);
}

TEST(StateSlots, a_long_text_has_a_checkpoint_every_so_many_tokens) {
  EXPECT_EQ((std::vector<uint64_t>{256, 512, 768, 1024}), keptAfter(32, 1024 + 64, {}));
  EXPECT_EQ((std::vector<uint64_t>{}), keptAfter(0, 4096, {}));
  EXPECT_EQ((std::vector<uint64_t>{4096}), keptAfter(1, 4096, {})) << "the newest";
}

TEST(StateSlots, going_back_reads_again_in_proportion_to_how_far_it_goes) {
  for (const uint32_t checkpoints : {4u, 8u, 16u}) {
    for (uint64_t tokens = 1024; tokens <= 32768; tokens += 64) {
      const std::vector<uint64_t> all = keptAfter(checkpoints, tokens, {});
      ASSERT_EQ(std::min<uint64_t>(checkpoints, tokens / kCheckpointTokens), all.size());
      uint64_t before = 0;
      for (const uint64_t at : all) {
        ASSERT_GT(at, before);
        // The distance of two neighbours is at most the distance from the older one to the end, plus a batch.
        ASSERT_LE(at - before, std::max<uint64_t>(tokens - before, 2 * kCheckpointTokens));
        before = at;
      }
      ASSERT_LT(tokens - before, kCheckpointTokens + 64);
    }
  }
  // Sixteen of 32,768 tokens: dense at the end, sparse at the beginning.
  const std::vector<uint64_t> all = keptAfter(16, 32768, {});
  for (size_t i = 2; i < all.size(); ++i) {
    EXPECT_LE(all[i] - all[i - 1], 2 * (all[i - 1] - all[i - 2])) << i;
  }
  EXPECT_EQ(kCheckpointTokens, all[15] - all[14]);
}

TEST(StateSlots, the_latest_message_keeps_its_start_and_a_short_turn_goes_first) {
  EXPECT_EQ((std::vector<uint64_t>{640}), keptAfter(1, 4096, {640}));
  const std::vector<uint64_t> two = keptAfter(2, 4096, {640});
  ASSERT_EQ(2u, two.size());
  EXPECT_EQ(640u, two[0]);
  EXPECT_GT(two[1], 3700u);

  const auto always = [](uint64_t) { return true; };
  StateSlots slots;
  slots.init(3);
  uint64_t at = 0;
  for (const uint64_t position : {500u, 520u, 1000u, 1100u}) {
    slots.writing();
    slots.commit(at, true);
    at = position;
    slots.keep(at, false, always);
  }
  EXPECT_EQ((std::vector<uint64_t>{500, 1000, 1100}), kept(slots));
  slots.keep(at, false, [](uint64_t tokens) { return tokens >= 1000; });
  EXPECT_EQ((std::vector<uint64_t>{1000, 1100}), kept(slots)) << "what leads nowhere goes first";
}

}  // namespace
}  // namespace oriel_internal::test::test_state_slots
