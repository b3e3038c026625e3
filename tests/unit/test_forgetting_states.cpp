// Sessions with SessionOptions.forget_evicted: a reply depends only on what attention sees when it begins. Compares the
// synthetic recurrent model with that definition.
#include <algorithm>

#include "support/recurrent_session.h"

namespace oriel_internal::test::test_forgetting_states {
namespace {

constexpr uint32_t kWindow = 60;

/// The definition for a conversation of `ids`, with turns and replies at these tokens. Turns are shorter than half the
/// window.
struct Conversation {
  Ids ids;
  std::vector<uint64_t> turns;
  std::vector<uint64_t> replies;

  uint64_t firstSeen(uint64_t t) const {
    const uint64_t oldest = t + 1 > kWindow ? t + 1 - kWindow : 0;
    if (oldest <= kSinks) {
      return kSinks;
    }
    for (const uint64_t turn : turns) {
      if (turn >= oldest && turn <= t) {
        return turn;
      }
    }
    return oldest;
  }
  /// The first token after the sinks that the state after `count` tokens includes.
  uint64_t base(uint64_t count) const {
    uint64_t first = kSinks;
    for (const uint64_t reply : replies) {
      first = reply < count ? std::max(first, firstSeen(reply)) : first;
    }
    return first;
  }
  std::vector<float> logits(uint64_t count) const {
    RecurrentState state = {};
    uint32_t seen = 0;
    const uint64_t known = base(count);
    const uint64_t first = std::max(known, firstSeen(count - 1));
    for (uint64_t t = 0; t < count; ++t) {
      const uint32_t id = static_cast<uint32_t>(ids[t]);
      state = t < kSinks || t >= known ? stateAfter(state, id) : state;
      seen += t < kSinks || t >= first ? keyOf(id) : 0;
    }
    return recurrentLogits(state, seen);
  }
  int32_t best(uint64_t count) const {
    const std::vector<float> values = logits(count);
    return static_cast<int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
  }
};

/// A conversing session with its expected state.
class Talk {
 public:
  explicit Talk(const Shape& shape) : session(shape) {}

  void say(uint32_t turn) {
    const uint64_t begin = session->facts().at.position;
    ASSERT_EQ(ORIEL_OK, session.say(letters(6 + turn % 5, turn)));
    is.turns.push_back(begin == 0 ? 0 : begin + 2);
    is.ids = session.committed;
  }
  oriel_status answer() {
    const uint64_t begin = session->facts().at.position;
    const oriel_status status = session.answer(9);
    if (status == ORIEL_OK) {
      is.replies.push_back(begin);
      is.ids = session.committed;
    }
    return status;
  }
  /// Every token of the latest reply is the best one by the definition.
  void check() {
    for (uint64_t t = is.replies.back() + 3; t < is.ids.size(); ++t) {
      ASSERT_EQ(is.best(t), is.ids[t]) << t << " of " << is.ids.size();
    }
    ASSERT_EQ(is.logits(is.ids.size()), session.logits());
  }

  RecurrentSession session;
  Conversation is;
};

template <typename Check>
void forEachForgetting(const Check& check) {
  for (const uint32_t chunk : {1u, 7u, 16u}) {
    for (const uint32_t checkpoints : {0u, 1u, 5u}) {
      for (const bool ahead : {false, true}) {
        SCOPED_TRACE("chunk " + std::to_string(chunk) + ", " + std::to_string(checkpoints) +
                     " checkpoints" + (ahead ? ", ahead" : ""));
        Shape shape = {chunk, ahead, kWindow};
        shape.checkpoints = checkpoints;
        shape.forgets = true;
        check(shape);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TEST(ForgettingStates, a_reply_follows_from_what_attention_sees_and_from_nothing_else) {
  forEachForgetting([](const Shape& shape) {
    Talk talk(shape);
    for (uint32_t turn = 0; turn < 14; ++turn) {
      SCOPED_TRACE(turn);
      talk.say(turn);
      ASSERT_EQ(ORIEL_OK, talk.answer());
      talk.check();
    }
    EXPECT_GT(talk.is.base(talk.is.ids.size()), 150u) << "else nothing is put to the test";
    EXPECT_GT(talk.session->facts().call.counts.read_again, 150u);
  });
}

TEST(ForgettingStates, without_the_option_a_trace_of_everything_stays) {
  Shape shape = {7, true, kWindow};
  Talk talk(shape);
  for (uint32_t turn = 0; turn < 14; ++turn) {
    talk.say(turn);
    ASSERT_EQ(ORIEL_OK, talk.answer());
  }
  EXPECT_EQ(0u, talk.session->facts().call.counts.read_again);
  EXPECT_NE(talk.is.logits(talk.is.ids.size()), talk.session.logits());
}

TEST(ForgettingStates, what_was_stopped_while_it_was_read_again_is_read_before_anything_else) {
  forEachForgetting([](const Shape& shape) {
    for (uint32_t nth = 1; nth < 60; nth += 5) {
      for (const bool cancels : {false, true}) {
        SCOPED_TRACE(std::to_string(nth) + (cancels ? " cancelled" : " failed"));
        Talk talk(shape);
        for (uint32_t turn = 0; turn < 7; ++turn) {
          talk.say(turn);
          ASSERT_EQ(ORIEL_OK, talk.answer());
        }
        talk.say(7);
        const uint64_t position = talk.session->facts().at.position;
        uint32_t left = nth;
        if (cancels) {
          talk.session.executor->before_token = [&] {
            if (--left == 0) {
              talk.session->call().cancel();
            }
          };
        } else {
          talk.session.executor->fails_in = (nth + shape.chunk - 1) / shape.chunk;
        }
        const oriel_status status = talk.session.answer(9);
        talk.session.executor->before_token = nullptr;
        talk.session.executor->fails_in = 0;
        if (status == ORIEL_OK || talk.session->facts().at.position != position) {
          break;  // it came too late for the reading
        }
        ASSERT_EQ(cancels ? ORIEL_ERROR_CANCELLED : ORIEL_ERROR_INTERNAL, status);
        const std::vector<uint8_t> snapshot = talk.session.save();
        ASSERT_EQ(ORIEL_OK, talk.answer());
        talk.check();
        talk.say(8);
        ASSERT_EQ(ORIEL_OK, talk.answer());
        talk.check();

        Talk restored(shape);
        ASSERT_EQ(ORIEL_OK, restored.session.restore(snapshot));
        restored.session.committed.assign(
            talk.is.ids.begin(), talk.is.ids.begin() + static_cast<std::ptrdiff_t>(position));
        restored.is = talk.is;
        restored.is.replies.resize(7);
        ASSERT_EQ(ORIEL_OK, restored.answer());
        restored.check();
      }
    }
  });
}

TEST(ForgettingStates, going_back_leads_to_what_was_not_forgotten) {
  forEachForgetting([](const Shape& shape) {
    uint64_t base = 0;
    for (uint64_t back = 0; back < 70; ++back) {
      Talk talk(shape);
      for (uint32_t turn = 0; turn < 9; ++turn) {
        talk.say(turn);
        ASSERT_EQ(ORIEL_OK, talk.answer());
      }
      base = talk.is.base(talk.is.ids.size());
      const uint64_t target = talk.is.ids.size() - back;
      SCOPED_TRACE("back to " + std::to_string(target) + ", forgotten up to " +
                   std::to_string(base));
      // Or the reply has evicted tokens of its state.
      const bool held = base + talk.session.plan().cache.ring >= talk.is.ids.size();
      const oriel_status status = talk.session.rewind(target);
      if (held || target < base) {
        ASSERT_EQ(target >= base ? ORIEL_OK : ORIEL_ERROR_CONTEXT, status);
      }
      if (status != ORIEL_OK) {
        EXPECT_EQ(held, talk.session.log.says("go back to token " + std::to_string(base)))
            << talk.session.log.errors();
        continue;
      }
      if (target == talk.is.ids.size()) {
        continue;
      }
      // Token by token: only the state determines the logits.
      talk.session.committed.resize(target);
      const Ids more = someTokens(3, 99);
      talk.session.append(more);
      Conversation is = talk.is;
      is.ids = talk.session.committed;
      const uint64_t known = base;
      RecurrentState state = {};
      uint32_t seen = 0;
      for (uint64_t t = 0; t < is.ids.size(); ++t) {
        const uint32_t id = static_cast<uint32_t>(is.ids[t]);
        state = t < kSinks || t >= known ? stateAfter(state, id) : state;
        seen += t < kSinks || t >= std::max(known, is.firstSeen(is.ids.size() - 1)) ? keyOf(id) : 0;
      }
      ASSERT_EQ(recurrentLogits(state, seen), talk.session.logits());
    }
    EXPECT_GT(base, 70u);
  });
}

TEST(ForgettingStates, a_snapshot_goes_on_to_the_bit) {
  forEachForgetting([](const Shape& shape) {
    Talk talk(shape);
    for (uint32_t turn = 0; turn < 9; ++turn) {
      talk.say(turn);
      ASSERT_EQ(ORIEL_OK, talk.answer());
    }
    Talk restored(shape);
    ASSERT_EQ(ORIEL_OK, restored.session.restore(talk.session.save()));
    ASSERT_EQ(talk.session.save(), restored.session.save());
    restored.session.committed = talk.session.committed;
    restored.is = talk.is;
    for (Talk* one : {&talk, &restored}) {
      for (uint32_t turn = 9; turn < 12; ++turn) {
        one->say(turn);
        ASSERT_EQ(ORIEL_OK, one->answer());
        one->check();
      }
    }
    EXPECT_EQ(talk.session.save(), restored.session.save());
  });
}

}  // namespace
}  // namespace oriel_internal::test::test_forgetting_states
