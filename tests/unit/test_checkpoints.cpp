// Going back in a session with a state: from every history to every position, the session continues as if
// it had never gone further. Compares the synthetic model of support/recurrent_session.h with its definition.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "base/checked.h"
#include "budget/budget.h"
#include "support/captured_log.h"
#include "support/recurrent_session.h"
#include "support/target.h"

namespace oriel_internal::test::test_checkpoints {
namespace {

constexpr uint32_t kNever = 1000;  // a window without eviction here

template <typename Check>
void forEachPlan(const Check& check) {
  for (const uint32_t checkpoints : {0u, 1u, 2u, 5u}) {
    for (const uint32_t chunk : {1u, 7u, 16u}) {
      for (const uint32_t window : {40u, kNever}) {
        for (const bool ahead : {false, true}) {
          SCOPED_TRACE(std::to_string(checkpoints) + " checkpoints, chunk " +
                       std::to_string(chunk) + ", window " + std::to_string(window) +
                       (ahead ? ", ahead" : ""));
          Shape shape;
          shape.chunk = chunk;
          shape.ahead = ahead;
          shape.window = window;
          shape.checkpoints = checkpoints;
          shape.whole_turns = false;  // the definition works token by token
          check(shape);
          if (testing::Test::HasFatalFailure()) {
            return;
          }
        }
      }
    }
  }
}

/// The same numbers for the same seed.
class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  uint32_t any() { return static_cast<uint32_t>(random_()); }
  uint32_t upTo(uint32_t most) { return 1 + any() % most; }

 private:
  std::mt19937 random_;
};

/// A random event in a session.
void happen(RecurrentSession* session, Dice* dice) {
  const auto upTo = [dice](uint32_t most) { return dice->upTo(most); };
  RecurrentExecutor& executor = *session->executor;
  switch (dice->any() % 8) {
    case 0:
      session->append(someTokens(upTo(30), dice->any()));
      break;
    case 1: {  // a reply, which may be stopped or cancelled
      RecurrentSession::Reply reply;
      reply.most = upTo(20);
      const uint32_t kind = dice->any() % 3;
      reply.stop_at = kind == 1 ? upTo(10) : 0;
      if (kind == 2 && reply.most > 4) {
        reply.cancel_at = upTo(3);
        reply.expected = ORIEL_ERROR_CANCELLED;
      }
      if (session->committed.empty()) {
        session->append(someTokens(2));
      } else {
        session->append(someTokens(1));
      }
      session->generate(reply);
      break;
    }
    case 2:
    case 3:
      if (session->say(letters(upTo(25), dice->any())) == ORIEL_OK) {
        EXPECT_EQ(ORIEL_OK, session->answer(upTo(12)));
      }
      break;
    case 4:
      EXPECT_EQ(ORIEL_OK, session->say(letters(upTo(12), dice->any()), "assistant"));
      break;
    case 5: {  // a message whose nth step fails
      executor.fails_in = upTo(4);
      const oriel_status status = session->say(letters(upTo(25), dice->any()));
      EXPECT_EQ(executor.fails_in == 0 ? ORIEL_ERROR_INTERNAL : ORIEL_OK, status);
      executor.fails_in = 0;
      break;
    }
    case 6: {  // or is cancelled at its nth token
      uint32_t left = upTo(30);
      executor.before_token = [session, &left] {
        if (--left == 0) {
          (*session)->call().cancel();
        }
      };
      (void)session->say(letters(upTo(25), dice->any()));
      executor.before_token = nullptr;
      session->executor->before_token = nullptr;
      break;
    }
    case 7: {
      const uint64_t position = (*session)->facts().at.position;
      const uint32_t most = static_cast<uint32_t>(std::min<uint64_t>(position, 20));
      if (most != 0 && session->rewind(position - upTo(most)) == ORIEL_OK) {
        session->noteCommitted();
      }
      break;
    }
  }
  // A cancel without a running call must not stop the next call.
  if (session->tryAppend({7}) == ORIEL_OK) {
    session->committed.push_back(7);
  }
}

/// True if going back to `position` is always possible: everything is still held.
bool nothingGone(const RecurrentSession& session, uint64_t furthest) {
  return furthest <= kSinks + session.shape().window;
}

TEST(Checkpoints, from_any_history_to_any_position_equals_a_session_that_was_never_further) {
  const uint32_t step = allCases() ? 17 : 41;
  forEachPlan([step](const Shape& shape) {
    for (uint32_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(seed);
      uint64_t target = seed * 7;
      for (bool further = true; further; target += step) {
        RecurrentSession session(shape);
        Dice dice(seed);
        for (int i = 0; i < 7; ++i) {
          happen(&session, &dice);
          ASSERT_EQ(session.committed.size(), session->facts().at.position);
        }
        further = target < session.committed.size();
        if (!further) {
          break;
        }
        SCOPED_TRACE("from " + std::to_string(session.committed.size()) + " to " +
                     std::to_string(target));
        session.log.clear();
        const oriel_status status = session.rewind(target);
        if (status == ORIEL_OK) {
          session.committed.resize(target);
        } else {
          ASSERT_EQ(ORIEL_ERROR_CONTEXT, status);
          ASSERT_FALSE(nothingGone(session, session.committed.size() + 20));
          EXPECT_EQ(std::string::npos, session.log.errors().find('\n'));
        }
        session.expectAsDefined("from there on");
        // And from there back once more.
        if (target > 0 && session.rewind(target - 1) == ORIEL_OK) {
          session.committed.resize(target - 1);
          session.expectAsDefined("and from before that");
        }
      }
    }
  });
}

TEST(Checkpoints, before_the_window_is_full_every_position_can_be_gone_back_to) {
  forEachPlan([](const Shape& shape) {
    const uint32_t count = std::min(shape.window, 60u);
    for (uint32_t target = 0; target <= count; target += 3) {
      RecurrentSession session(shape);
      session.append(someTokens(count));
      ASSERT_EQ(ORIEL_OK, session.rewind(target)) << target;
      session.committed.resize(target);
      session.expectAsDefined("from there on");
    }
  });
}

// The definition from the slots alone: a held state, everything that the tokens after it see, and the ids up to the
// position.
TEST(Checkpoints, without_any_only_the_latest_step_and_the_beginning_lead_back) {
  for (const uint32_t chunk : {1u, 7u, 64u}) {
    constexpr uint32_t kCount = 150;
    const uint32_t begin = (kCount - 1) / chunk * chunk;
    for (uint32_t target = 0; target <= kCount; ++target) {
      SCOPED_TRACE(std::to_string(chunk) + ", back to " + std::to_string(target));
      RecurrentSession session({chunk, false});
      session.append(someTokens(kCount));
      const std::vector<float> before = session.logits();
      const bool can = target <= kSinks || target >= begin;
      ASSERT_EQ(can ? ORIEL_OK : ORIEL_ERROR_CONTEXT, session.rewind(target));
      if (can) {
        session.committed.resize(target);
        EXPECT_EQ("", session.log.errors());
      } else {
        EXPECT_EQ(before, session.logits()) << "it stays what it was";
        EXPECT_EQ("cannot go back from token 150 to " + std::to_string(target) +
                      ", the states before it are gone: go back to token " + std::to_string(begin) +
                      " at most, or reset",
                  session.log.errors());
      }
      session.expectAsDefined("from there on");
    }
  }
}

TEST(Checkpoints, a_reset_is_the_only_way_where_no_state_is_left) {
  RecurrentSession session({7, false});
  session.append(someTokens(150));
  ASSERT_EQ(ORIEL_OK, session.rewind(147));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, session.rewind(140)) << "once";
  EXPECT_EQ("cannot go back from token 147 to 140, the states before it are gone: reset",
            session.log.errors());
  EXPECT_EQ(ORIEL_OK, session.rewind(147));
  EXPECT_EQ(ORIEL_OK, session.rewind(0));
}

// ---- Rereading -----------------------------------------------------------------------------------

TEST(Checkpoints, the_start_of_a_turn_is_gone_back_to_without_its_text) {
  for (const uint32_t checkpoints : {1u, 2u, 5u}) {
    SCOPED_TRACE(checkpoints);
    Shape shape = {16, true, kNever};
    shape.checkpoints = checkpoints;
    RecurrentSession session(shape);
    ASSERT_EQ(ORIEL_OK, session.say(letters(90, 1)));
    ASSERT_EQ(ORIEL_OK, session.answer(30));
    const uint64_t end = session->facts().at.position;
    ASSERT_EQ(ORIEL_OK, session.say(letters(70, 2)));
    const uint64_t reply = session->facts().at.position;
    ASSERT_EQ(ORIEL_OK, session.answer(40));
    if (checkpoints >= 2) {
      ASSERT_EQ(ORIEL_OK, session.rewind(reply));
      session.noteCommitted();
      EXPECT_EQ(0u, session->facts().call.counts.read_again) << "a reply is made again at once";
      ASSERT_EQ(ORIEL_OK, session.answer(40));
    }
    const uint64_t turn = session->facts().at.turns.at(session->facts().at.turns.count() - 1);
    EXPECT_EQ(end + 2, turn) << "behind what closes the reply";
    ASSERT_EQ(ORIEL_OK, session.rewind(turn));
    EXPECT_EQ(2u, session->facts().call.counts.read_again) << "which is what is read again";
    session.noteCommitted();
    ASSERT_EQ(ORIEL_OK, session.rewind(end));
    session.noteCommitted();
    EXPECT_EQ(2u, session->facts().call.counts.read_again) << "before it, nothing is";

    // Edited, the turn goes on as in a conversation that never had another.
    ASSERT_EQ(ORIEL_OK, session.say(letters(33, 3)));
    ASSERT_EQ(ORIEL_OK, session.answer(20));
    PlainModel plain(kNever, session.committed);
    EXPECT_EQ(plain.logits(), session.logits());
  }
}

TEST(Checkpoints, a_little_way_back_in_a_long_text_reads_little_again) {
  Shape shape = {16, false, 3000};
  for (const uint32_t checkpoints : {2u, 5u}) {
    shape.checkpoints = checkpoints;
    for (uint32_t back = 1; back < 300; back += 57) {
      RecurrentSession session(shape);
      session.append(someTokens(2000));
      ASSERT_EQ(ORIEL_OK, session.rewind(2000 - back));
      EXPECT_LE(session->facts().call.counts.read_again, 2 * kCheckpointTokens);
    }
  }
}

TEST(Checkpoints, those_that_lead_nowhere_any_more_are_not_kept) {
  Shape shape = {16, false, 40};
  shape.checkpoints = 5;
  RecurrentSession session(shape);
  for (uint32_t turn = 0; turn < 12; ++turn) {
    ASSERT_EQ(ORIEL_OK, session.say(letters(10, turn)));
    ASSERT_EQ(ORIEL_OK, session.answer(5));
    const StateSlots& states = *session->facts().memory.states;
    for (uint32_t i = 0; i < states.count(); ++i) {
      RecurrentSession other(shape);
      const uint64_t at = states.at(i);
      const bool reached = at + 1 <= shape.window || session->facts().at.position - at <= 16 + 16;
      EXPECT_TRUE(reached) << at << " of " << session->facts().at.position;
    }
  }
}

// ---- Messages that fail --------------------------------------------------------------------------

TEST(Checkpoints, a_message_of_many_batches_that_fails_is_taken_back_whole) {
  for (const uint32_t chunk : {1u, 7u, 16u}) {
    for (const uint32_t checkpoints : {1u, 2u, 5u}) {
      for (const bool cancels : {false, true}) {
        const uint32_t tokens = 50;
        for (uint32_t nth = 1; nth <= (cancels ? tokens : (tokens + chunk - 1) / chunk); ++nth) {
          SCOPED_TRACE(std::to_string(chunk) + ", " + std::to_string(checkpoints) +
                       (cancels ? ", cancelled at " : ", failed at ") + std::to_string(nth));
          Shape shape = {chunk, true, kNever};
          shape.checkpoints = checkpoints;
          RecurrentSession session(shape);
          ASSERT_EQ(ORIEL_OK, session.say(letters(30, 1)));
          ASSERT_EQ(ORIEL_OK, session.answer(10));
          const Ids before = session.committed;
          uint32_t left = cancels ? nth : 0;
          session.executor->fails_in = cancels ? 0 : nth;
          session.executor->before_token = [&] {
            if (left != 0 && --left == 0) {
              session->call().cancel();
            }
          };
          ASSERT_EQ(cancels ? ORIEL_ERROR_CANCELLED : ORIEL_ERROR_INTERNAL,
                    session.say(letters(tokens - 4, 2)));
          session.executor->before_token = nullptr;
          ASSERT_EQ(before, session.committed);
          EXPECT_EQ(0u, session->facts().call.counts.read_again);
          ASSERT_EQ(ORIEL_OK, session.say(letters(9, 3)));
          ASSERT_EQ(ORIEL_OK, session.answer(10));
          PlainModel plain(kNever, session.committed);
          ASSERT_EQ(plain.logits(), session.logits());
          EXPECT_EQ(before.size() + 2, session->facts().at.turns.at(1));
        }
      }
    }
  }
}

// ---- Reading again that ends early ---------------------------------------------------------------

TEST(Checkpoints, going_back_that_is_cancelled_or_fails_stands_where_it_got_to) {
  for (const uint32_t chunk : {1u, 7u, 16u}) {
    for (const bool cancels : {false, true}) {
      for (uint32_t nth = 1; nth <= 30; nth += 3) {
        SCOPED_TRACE(std::to_string(chunk) + (cancels ? ", cancelled at " : ", failed at ") +
                     std::to_string(nth));
        RecurrentSession session({chunk, true, kNever});
        session.append(someTokens(60));
        uint32_t left = cancels ? nth : 0;
        session.executor->fails_in = cancels ? 0 : (nth + chunk - 1) / chunk;
        session.executor->before_token = [&] {
          if (left != 0 && --left == 0) {
            session->call().cancel();
          }
        };
        ASSERT_EQ(cancels ? ORIEL_ERROR_CANCELLED : ORIEL_ERROR_INTERNAL, session.rewind(35));
        session.executor->before_token = nullptr;
        EXPECT_EQ((nth - 1) / chunk * chunk, session->facts().at.position);
        session.noteCommitted();
        session.expectAsDefined("from there on");
      }
    }
  }
  RecurrentSession session({7, true, kNever});
  session.append(someTokens(60));
  {
    const CallScope call(&*session);
    session->call().cancel();
    RebuildSource source;
    source.position = 35;
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, session->rebuild(source, nullptr).code());
  }
  EXPECT_EQ(60u, session->facts().at.position) << "nothing had begun";
  EXPECT_EQ(ORIEL_OK, session.rewind(35));
}

// ---- Snapshots -----------------------------------------------------------------------------------

TEST(Checkpoints, a_snapshot_has_none_and_is_the_same_with_and_without) {
  const auto talk = [](RecurrentSession* session) {
    ASSERT_EQ(ORIEL_OK, session->say(letters(30, 1)));
    ASSERT_EQ(ORIEL_OK, session->answer(10));
    ASSERT_EQ(ORIEL_OK, session->say(letters(20, 2)));
    ASSERT_EQ(ORIEL_OK, session->answer(10));
  };
  for (const uint32_t window : {40u, kNever}) {
    RecurrentSession none({7, true, window});
    talk(&none);
    for (const uint32_t checkpoints : {1u, 2u, 5u}) {
      Shape shape = {7, true, window};
      shape.checkpoints = checkpoints;
      RecurrentSession session(shape);
      talk(&session);
      ASSERT_EQ(none.save(), session.save());
      RecurrentSession other(shape);
      ASSERT_EQ(ORIEL_OK, other.restore(none.save())) << "nor does it matter how many there are";
      EXPECT_EQ(0u, other->facts().memory.states->count());
      other.committed = session.committed;
      ASSERT_EQ(ORIEL_OK, other.say(letters(9, 3)));
      ASSERT_EQ(ORIEL_OK, session.say(letters(9, 3)));
      ASSERT_EQ(session.save(), other.save());
    }
  }
}

// Except for the furthest position, and the repeat penalty's memory of it.
TEST(Checkpoints, what_was_read_again_is_saved_as_if_it_had_never_been_further) {
  for (const uint32_t checkpoints : {0u, 2u}) {
    Shape shape = {7, true, kNever};
    shape.checkpoints = checkpoints;
    for (const uint32_t target : {1u, 7u, 13u, 14u, 30u}) {
      RecurrentSession session(shape);
      session.append(someTokens(60));
      ASSERT_EQ(ORIEL_OK, session.rewind(target));
      RecurrentSession fresh(shape);
      const Ids ids = someTokens(60);
      fresh.append({ids.begin(), ids.begin() + target});
      const auto memories = [&](RecurrentSession* from) {
        const std::vector<uint8_t> bytes = from->save();
        const size_t logits = bytes.size() == session.save().size() ? 0 : 4 * kRecurrentVocabulary;
        SnapshotHeader header;
        std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof(header));
        const size_t described = sizeof(header) + header.n_memories * sizeof(SnapshotMemory) + 8;
        const size_t begin = described + 4 * target + logits;
        return std::vector<uint8_t>(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                    bytes.end() - sizeof(uint64_t));
      };
      EXPECT_EQ(memories(&fresh), memories(&session));
    }
  }
}

TEST(Checkpoints, reading_again_says_how_far_it_is_and_can_be_stopped) {
  Shape shape = {7, false, kNever};
  for (const size_t stop_at : {size_t{0}, size_t{2}}) {
    RecurrentSession session(shape);
    session.append(someTokens(60));
    session.progress.clear();  // only the append's progress
    session.stop_reading_at = stop_at;
    EXPECT_EQ(stop_at == 0 ? ORIEL_OK : ORIEL_ERROR_CANCELLED, session.rewind(30));
    std::vector<std::pair<uint64_t, uint64_t>> told = {
        {7, 30}, {14, 30}, {21, 30}, {28, 30}, {30, 30}};
    told.resize(stop_at == 0 ? told.size() : stop_at);
    EXPECT_EQ(told, session.progress);
    EXPECT_EQ(stop_at == 0 ? 30u : 14u, session->facts().at.position);
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_checkpoints

namespace oriel_internal::test_checkpoint_budget {

// The budgeter's number of state checkpoints: small compared with the window, and never reducing anything when memory
// grows.

namespace {

constexpr uint32_t kWords = 64 * 1024;  // of a layer's state

/// Twelve layers, every third attends; `attends` false: none does.
ModelDesc hybrid(bool attends = true, bool states = true) {
  ModelDesc model;
  model.n_layers = 12;
  model.n_heads = 8;
  model.n_kv_heads = 2;
  model.head_dim = model.ropes[kMainRope].dims = 64;
  model.n_embd = 512;
  model.n_ff = 1024;
  model.n_vocab = 1000;
  model.context_train = 262144;
  makeLayersAlike(&model);
  if (!states) {
    return model;
  }
  LayerKind state;
  state.mixer = Mixer::kState;
  state.rope = kNoRope;
  state.state_words = kWords;
  state.n_ff = model.n_ff;
  state.view = addView({ViewKind::kState, 0}, &model);
  if (!attends) {
    model.kinds[0] = state;
    return model;
  }
  const uint8_t kind = addKind(state, &model);
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    if (layer % 3 != 2) {
      model.layers[layer].kind = kind;
    }
  }
  return model;
}

Status tryChoose(const ModelDesc& model, BudgetRequest request, Budget* budget) {
  PlanTotals totals;
  totals.weights_bytes = 30u << 20;
  totals.upload_half_bytes = 65536;
  request.host_bytes = 123456;
  return chooseBudget(model, totals, request, Log(), budget);
}

Budget choose(const ModelDesc& model, const BudgetRequest& request) {
  Budget budget;
  EXPECT_TRUE(tryChoose(model, request, &budget).ok());
  return budget;
}

uint64_t stateOfAll(const ModelDesc& model) { return stateBytes(model, CacheFormats()); }

TEST(CheckpointBudget,
     checkpoints_take_a_quarter_of_the_windows_bytes_and_more_memory_shrinks_nothing) {
  const ModelDesc model = hybrid();
  ASSERT_EQ(8ull * 4 * kWords, stateOfAll(model));
  for (const bool fixed_formats : {true, false}) {
    for (const uint32_t chunk : {0u, 16u}) {
      BudgetRequest request;
      request.chunk = chunk;
      request.fixed_k = request.fixed_v = fixed_formats;
      const uint64_t least = choose(model, request).minimum_bytes;
      Budget before;
      uint32_t seen = 0;
      const uint64_t step = least / (test::allCases() ? 40 : 15);
      for (request.memory_bytes = least; request.memory_bytes < 40 * least;
           request.memory_bytes += step) {
        SCOPED_TRACE(request.memory_bytes);
        const Budget now = choose(model, request);
        const uint64_t window = memoryGrowth(model, now.formats).per_token * now.cache.window;
        ASSERT_TRUE(now.fits);
        ASSERT_LE(now.bytes.total(), request.memory_bytes);
        ASSERT_LE(4 * now.cache.checkpoints * stateOfAll(model), window);
        ASSERT_EQ(least, now.minimum_bytes);
        if (fixed_formats) {
          ASSERT_GE(now.cache.checkpoints, before.cache.checkpoints);
          ASSERT_GE(now.cache.window, before.cache.window);
          ASSERT_GE(now.chunk, before.chunk);
        }
        seen |= 1u << now.cache.checkpoints;
        before = now;
      }
      EXPECT_EQ(fixed_formats ? 0x1Fu : seen | 0x11u, seen) << "none, and up to four";
    }
  }
}

TEST(CheckpointBudget, beside_a_window_that_was_asked_for_they_take_what_is_left) {
  const ModelDesc model = hybrid();
  for (const uint32_t window : {70u, 5000u, 200000u}) {
    BudgetRequest request;
    request.memory_bytes = 1ull << 30;
    request.fixed_k = request.fixed_v = true;
    request.window = window;
    for (uint32_t count = 4; count != 0; --count) {
      const Budget most = choose(model, request);
      EXPECT_EQ(count, most.cache.checkpoints) << window;
      EXPECT_EQ(window, most.cache.window);
      EXPECT_EQ(64u, most.chunk) << "the largest, which comes first";
      request.memory_bytes = most.bytes.total() - 1;
    }
    EXPECT_EQ(0u, choose(model, request).cache.checkpoints) << "and must fit";
  }
}

TEST(CheckpointBudget, as_many_as_are_asked_for_and_no_others) {
  const ModelDesc model = hybrid();
  BudgetRequest request;
  request.memory_bytes = 1ull << 30;
  request.fixed_checkpoints = true;
  uint64_t least = 0;
  for (const uint32_t count : {0u, 1u, 7u, kMaxCheckpoints}) {
    request.checkpoints = count;
    const Budget budget = choose(model, request);
    EXPECT_EQ(count, budget.cache.checkpoints);
    EXPECT_EQ(count * stateOfAll(model),
              budget.minimum_bytes - (count == 0 ? budget.minimum_bytes : least));
    least = count == 0 ? budget.minimum_bytes : least;
  }
  request.checkpoints = kMaxCheckpoints + 1;
  Budget budget;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, tryChoose(model, request, &budget).code());
}

TEST(CheckpointBudget, where_no_layer_attends_nothing_competes_with_them) {
  const ModelDesc model = hybrid(false);
  BudgetRequest request;
  const uint64_t least = choose(model, request).minimum_bytes;
  uint32_t before = 0;
  for (request.memory_bytes = least; request.memory_bytes < 4 * least;
       request.memory_bytes += least / 50) {
    const Budget now = choose(model, request);
    ASSERT_LE(now.bytes.total(), request.memory_bytes);
    ASSERT_GE(now.cache.checkpoints, before);
    before = now.cache.checkpoints;
  }
  EXPECT_EQ(4u, before);
}

TEST(CheckpointBudget, models_without_states_have_none_whatever_is_asked_for) {
  const ModelDesc model = hybrid(true, false);
  BudgetRequest request;
  request.memory_bytes = 200u << 20;
  const Budget chosen = choose(model, request);
  for (const uint32_t count : {0u, 5u}) {
    request.fixed_checkpoints = true;
    request.checkpoints = count;
    const Budget asked = choose(model, request);
    EXPECT_EQ(0u, asked.cache.checkpoints);
    EXPECT_EQ(chosen.cache.window, asked.cache.window);
    EXPECT_EQ(chosen.bytes.total(), asked.bytes.total());
  }
}

TEST(CheckpointBudget, more_than_one_layers_piece_has_room_for_are_named_as_what_is_too_many) {
  ModelDesc model = hybrid();
  model.kinds[1].state_words = (1u << 20) + 1;  // 31 of them are just below the binding limit
  BudgetRequest request;
  request.memory_bytes = 8ull << 30;
  request.fixed_checkpoints = true;
  request.checkpoints = 29;
  Budget budget;
  EXPECT_TRUE(tryChoose(model, request, &budget).ok());
  EXPECT_EQ(29u, budget.cache.checkpoints);

  request.checkpoints = 30;
  PlanTotals totals;
  test::CapturedLog log;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, chooseBudget(model, totals, request, log.log(), &budget).code());
  EXPECT_EQ("30 checkpoints need more than 134217728 bytes in one layer: ask for at most 29",
            log.errors());
}

}  // namespace
}  // namespace oriel_internal::test_checkpoint_budget
