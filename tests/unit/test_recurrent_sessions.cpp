// Promises of a session with a state instead of tokens: after cancels, failures, early steps and rewinds, the state
// after the last committed token counts. Compares a synthetic model (support/recurrent_session.h) with its definition,
// token by token. Going back: tests/unit/test_checkpoints.cpp.
#include "support/recurrent_session.h"

namespace oriel_internal::test::test_recurrent_sessions {
namespace {

TEST(RecurrentSession, greedy_replies_are_those_of_the_definition_whatever_the_chunk) {
  forEachShape([](const Shape& shape) {
    for (const size_t prompt : {1u, 6u, 7u, 8u, 64u, 65u, 150u}) {
      SCOPED_TRACE(prompt);
      RecurrentSession session(shape);
      const Ids ids = someTokens(prompt);
      session.append(ids);
      PlainModel plain(shape.window, ids);
      ASSERT_EQ(plain.logits(), session.logits());
      ASSERT_EQ(plain.greedy(60), session.goOn(60));
      ASSERT_EQ(plain.logits(), session.logits());
      EXPECT_EQ(shape.ahead && shape.chunk > 1 ? 59u : 0u, session.executor->begun);
      session.expectAsDefined("after the reply");
    }
  });
}

TEST(RecurrentSession, tokens_that_are_too_long_to_go_on_behind_change_nothing) {
  for (const uint32_t every : {1u, 2u, 3u, 5u}) {
    SCOPED_TRACE(every);
    RecurrentSession session({7, true});
    session.executor->stays_every = every;
    session.append(someTokens(30));
    PlainModel plain(40, someTokens(30));
    ASSERT_EQ(plain.greedy(60), session.goOn(60));
    session.expectAsDefined("after the reply");
  }
}

TEST(RecurrentSession, all_logits_of_a_text_are_those_of_the_definition) {
  forEachShape([](const Shape& shape) {
    RecurrentSession session(shape);
    const Ids ids = someTokens(130);
    std::vector<std::vector<float>> all;
    const auto keep = [](size_t, const float* logits, size_t count, void* user) {
      static_cast<std::vector<std::vector<float>>*>(user)->emplace_back(logits, logits + count);
      return 0;
    };
    ASSERT_TRUE(session->append(sourceOf(ids, keep, &all)).ok());
    session.committed = ids;
    ASSERT_EQ(ids.size(), all.size());
    PlainModel plain(shape.window, {});
    for (size_t t = 0; t < ids.size(); ++t) {
      plain.add({ids[t]});
      ASSERT_EQ(plain.logits(), all[t]) << t;
    }
    session.expectAsDefined("after it was evaluated");
  });
}

// ---- Uncommitted tokens --------------------------------------------------------------------------

TEST(RecurrentSession, a_chunk_that_was_cancelled_is_as_if_it_had_not_begun) {
  forEachShape([](const Shape& shape) {
    const Ids more = someTokens(30, 8);
    for (const uint32_t nth : {1u, 2u, 5u, 7u, 8u, 14u, 15u, 29u, 30u}) {
      SCOPED_TRACE(nth);
      RecurrentSession session(shape);
      session.append(someTokens(20));
      const std::vector<float> before = session.logits();
      uint32_t asked = 0;
      session.executor->before_token = [&] {
        if (++asked == nth) {
          session->call().cancel();
        }
      };
      ASSERT_EQ(ORIEL_ERROR_CANCELLED, session.tryAppend(more));
      session.executor->before_token = nullptr;
      const uint32_t whole = (nth - 1) / shape.chunk * shape.chunk;
      session.committed.insert(session.committed.end(), more.begin(), more.begin() + whole);
      ASSERT_EQ(20u + whole, session->facts().at.position);
      if (whole == 0) {
        ASSERT_EQ(before, session.logits());
        PlainModel plain(shape.window, session.committed);
        ASSERT_EQ(plain.greedy(9), session.goOn(9)) << "a reply to what was there before";
      }
      session.expectAsDefined("after the cancelled text");
    }
  });
}

TEST(RecurrentSession, a_step_that_fails_leaves_the_state_of_the_last_committed_token) {
  forEachShape([](const Shape& shape) {
    const Ids more = someTokens(30, 8);
    for (uint32_t nth = 1; (nth - 1) * shape.chunk < 30; ++nth) {
      SCOPED_TRACE("chunk number " + std::to_string(nth));
      RecurrentSession session(shape);
      session.append(someTokens(20));
      session.executor->fails_in = nth;
      ASSERT_EQ(ORIEL_ERROR_INTERNAL, session.tryAppend(more));
      const uint32_t whole = (nth - 1) * shape.chunk;
      session.committed.insert(session.committed.end(), more.begin(), more.begin() + whole);
      session.expectAsDefined("after the text that failed");
    }
    for (uint32_t nth = 1; nth <= 12; ++nth) {
      SCOPED_TRACE("token number " + std::to_string(nth));
      RecurrentSession session(shape);
      session.append(someTokens(20));
      PlainModel plain(shape.window, someTokens(20));
      session.executor->fails_in = nth;
      RecurrentSession::Reply reply;
      reply.expected = ORIEL_ERROR_INTERNAL;
      ASSERT_EQ(plain.greedy(nth), session.generate(reply));
      ASSERT_EQ(20u + nth - 1, session->facts().at.position);
      session.expectAsDefined("after the reply that failed");
    }
  });
}

TEST(RecurrentSession, what_was_begun_ahead_and_dropped_counts_for_nothing) {
  forEachShape([](const Shape& shape) {
    const Ids greedy = PlainModel(shape.window, someTokens(20)).greedy(20);
    for (uint32_t nth = 1; nth <= 12; ++nth) {
      SCOPED_TRACE(nth);
      const Ids first(greedy.begin(), greedy.begin() + nth);
      RecurrentSession::Reply stopped, cancelled, ended;
      stopped.stop_at = nth;
      cancelled.cancel_at = nth;
      cancelled.expected = ORIEL_ERROR_CANCELLED;
      ended.stop_id = greedy[nth];
      for (const RecurrentSession::Reply& reply : {stopped, cancelled, ended}) {
        RecurrentSession session(shape);
        session.append(someTokens(20));
        const Ids ids = session.generate(reply);
        if (reply.stop_id < 0) {
          ASSERT_EQ(first, ids);
        }
        const bool ran_ahead = shape.ahead && shape.chunk > 1 && !ids.empty();
        EXPECT_EQ(ran_ahead && reply.stop_at == 0 ? 1u : 0u, session.executor->dropped);
        session.expectAsDefined("after the reply");
      }
    }
  });
}

TEST(RecurrentSession, an_evaluation_that_ends_early_leaves_whole_chunks) {
  forEachShape([](const Shape& shape) {
    const Ids more = someTokens(30, 8);
    for (const uint32_t nth : {1u, 2u, 7u, 8u, 10u, 30u}) {
      for (const bool cancels : {false, true}) {
        SCOPED_TRACE(std::to_string(nth) + (cancels ? " cancelled" : " stopped"));
        RecurrentSession session(shape);
        session.append(someTokens(20));
        struct Watch {
          Session* session;
          uint32_t nth;
          bool cancels;
          uint32_t shown;
        } watch = {&*session, nth, cancels, 0};
        const auto note = [](size_t, const float*, size_t, void* user) {
          Watch* const self = static_cast<Watch*>(user);
          const bool now = ++self->shown == self->nth;
          if (now && self->cancels) {
            self->session->call().cancel();
          }
          return now && !self->cancels ? 1 : 0;
        };
        const auto evaluate = [&] {
          const CallScope call(&*session);
          return session->append(sourceOf(more, note, &watch)).code();
        };
        const oriel_status status = evaluate();
        const uint32_t begun = std::min((nth + shape.chunk - 1) / shape.chunk * shape.chunk, 30u);
        const bool whole = nth == begun;  // the cancel is seen when the chunk is over
        if (cancels && nth != 30) {
          ASSERT_EQ(ORIEL_ERROR_CANCELLED, status);
        } else {
          ASSERT_EQ(ORIEL_OK, status);
        }
        const uint32_t kept = !cancels || whole ? begun : (nth - 1) / shape.chunk * shape.chunk;
        session.committed.insert(session.committed.end(), more.begin(), more.begin() + kept);
        ASSERT_EQ(session.committed.size(), session->facts().at.position);
        if (cancels && nth == 30) {
          session.append({1});  // the cancel came too late, and has no effect
        }
        session.expectAsDefined("from there on");
      }
    }
  });
}

// ---- Going back ----------------------------------------------------------------------------------

TEST(RecurrentSession, nothing_leads_back_past_a_step_that_was_begun) {
  forEachShape([](const Shape& shape) {
    if (shape.chunk == 1) {
      return;
    }
    const auto expectNoWayBack = [&](RecurrentSession* session, uint32_t begin) {
      ASSERT_EQ(ORIEL_ERROR_CONTEXT, session->rewind(begin));
      session->expectAsDefined("still");
      ASSERT_EQ(ORIEL_OK, session->rewind(0));
      session->committed.clear();
      session->expectAsDefined("from the beginning");
    };
    RecurrentSession failed(shape);
    failed.append(someTokens(120));
    failed.append(someTokens(5));
    failed.executor->fails_in = 1;
    ASSERT_EQ(ORIEL_ERROR_INTERNAL, failed.tryAppend(someTokens(3)));
    expectNoWayBack(&failed, 120);

    RecurrentSession cancelled(shape);
    cancelled.append(someTokens(120));
    cancelled.append(someTokens(5));
    cancelled.executor->before_token = [&] { cancelled->call().cancel(); };
    ASSERT_EQ(ORIEL_ERROR_CANCELLED, cancelled.tryAppend(someTokens(3)));
    cancelled.executor->before_token = nullptr;
    expectNoWayBack(&cancelled, 120);

    // A reply that ended when another token was wanted: a device may have started it.
    RecurrentSession ended(shape);
    ended.append(someTokens(120));
    RecurrentSession::Reply reply;
    reply.cancel_at = 6;
    reply.expected = ORIEL_ERROR_CANCELLED;
    ended.generate(reply);
    expectNoWayBack(&ended, 125);
  });
}

TEST(RecurrentSession, the_last_token_of_a_reply_can_be_taken_back) {
  forEachShape([](const Shape& shape) {
    RecurrentSession session(shape);
    session.append(someTokens(20));
    session.goOn(10);
    ASSERT_EQ(ORIEL_OK, session.rewind(29));
    session.committed.resize(29);
    session.expectAsDefined("without it");
  });
}

// ---- Snapshots -----------------------------------------------------------------------------------

TEST(RecurrentSession, snapshots_are_equal_whichever_slot_the_state_lay_in) {
  const Ids ids = someTokens(14);
  for (const bool ahead : {false, true}) {
    RecurrentSession even({7, ahead});
    even.append(ids);
    RecurrentSession odd({7, ahead});
    odd.append({ids.begin(), ids.begin() + 7});
    odd.append({ids.begin() + 7, ids.begin() + 11});
    odd.append({ids.begin() + 11, ids.end()});
    ASSERT_NE(even.executor->stateView().slot, odd.executor->stateView().slot);
    EXPECT_EQ(even.save(), odd.save());

    RecurrentSession all({7, ahead});
    const auto ignore = [](size_t, const float*, size_t, void*) { return 0; };
    ASSERT_TRUE(all->append(sourceOf(ids, ignore)).ok());
    EXPECT_EQ(even.save(), all.save()) << "and whichever row the logits";
  }
}

TEST(RecurrentSession, a_snapshot_goes_on_as_the_session_did_to_the_bit) {
  forEachShape([](const Shape& shape) {
    for (const uint32_t count : {1u, 7u, 14u, 64u, 65u, 150u}) {
      SCOPED_TRACE(count);
      RecurrentSession session(shape);
      session.append(someTokens(count));
      session.goOn(11);
      const std::vector<uint8_t> snapshot = session.save();
      const Ids committed = session.committed;
      const std::vector<float> logits = session.logits();
      const Ids next = session.goOn();
      const std::vector<uint8_t> later = session.save();
      for (const uint32_t others : {0u, 5u, 33u}) {
        RecurrentSession other(shape);
        if (others != 0) {
          other.append(someTokens(others, 3));
        }
        ASSERT_EQ(ORIEL_OK, other.restore(snapshot));
        other.committed = committed;
        ASSERT_EQ(snapshot, other.save());
        ASSERT_EQ(logits, other.logits());
        ASSERT_EQ(next, other.goOn());
        ASSERT_EQ(later, other.save());
        other.expectAsDefined("after it was restored");
        ASSERT_EQ(ORIEL_OK, other.restore(snapshot)) << "again";
        other.committed = committed;
        other.expectAsDefined("after it was restored again");
        ASSERT_EQ(ORIEL_OK, other.restore(snapshot));
        const bool held = committed.size() <= kSinks + other.plan().cache.ring;
        ASSERT_EQ(held ? ORIEL_OK : ORIEL_ERROR_CONTEXT, other.rewind(committed.size() - 1))
            << "no checkpoint is restored: all is read again, or nothing";
        ASSERT_EQ(ORIEL_OK, other.rewind(0));
        other.committed.clear();
        other.expectAsDefined("from the beginning");
      }
    }
  });
}

TEST(RecurrentSession, a_snapshot_of_nothing_is_a_beginning) {
  RecurrentSession empty({7, true});
  const std::vector<uint8_t> snapshot = empty.save();
  RecurrentSession session({7, true});
  session.append(someTokens(33));
  ASSERT_EQ(ORIEL_OK, session.restore(snapshot));
  session.committed.clear();
  session.expectAsDefined("from the beginning");
}

TEST(RecurrentSession, a_damaged_snapshot_changes_nothing) {
  RecurrentSession session({7, true});
  session.append(someTokens(33));
  std::vector<uint8_t> snapshot = session.save();
  session.append(someTokens(4, 2));
  snapshot[snapshot.size() / 2] ^= 1;
  EXPECT_EQ(ORIEL_ERROR_FORMAT, session.restore(snapshot));
  session.expectAsDefined("still");
}

TEST(RecurrentSession, a_reset_forgets_the_state) {
  forEachShape([](const Shape& shape) {
    RecurrentSession session(shape);
    session.append(someTokens(33));
    session.goOn(9);
    const std::vector<uint8_t> before = session.executor->cache();
    ASSERT_TRUE(std::any_of(before.begin(), before.end(), [](uint8_t byte) { return byte != 0; }));
    ASSERT_TRUE(session->reset(Session::Begin::kAgain).ok());
    const std::vector<uint8_t>& after = session.executor->cache();
    EXPECT_TRUE(std::all_of(after.begin(), after.end(), [](uint8_t byte) { return byte == 0; }));
    session.committed.clear();
    session.expectAsDefined("from the beginning");
  });
}

// ---- Shared memories -----------------------------------------------------------------------------

TEST(RecurrentSession, a_memory_that_two_layers_use_is_counted_placed_and_saved_once) {
  const Shape shape = {7, true, 40, false};
  const Shape sharing = {7, true, 40, true};
  const ModelDesc alone = recurrentModel(false);
  const ModelDesc shared = recurrentModel(true);
  test::CapturedLog log;
  ASSERT_TRUE(checkMemories(shared, log.log()).ok()) << log.errors();
  const Plan plan = RecurrentSession::planOf(alone, shape);
  const auto places = [&](const ModelDesc& model) {
    std::vector<uint64_t> found;
    forEachPlacedMemory(model, plan.cache, plan.formats,
                        [&](const Memory& memory, const BufferRef(&sides)[2]) {
                          found.push_back(memory.layer);
                          for (uint32_t side = 0; side < memory.sides(); ++side) {
                            found.push_back(sides[side].offset_bytes);
                            found.push_back(sides[side].size_bytes);
                          }
                        });
    return found;
  };
  EXPECT_EQ(places(alone), places(shared));
  EXPECT_EQ(plan.cache_bytes, RecurrentSession::planOf(shared, sharing).cache_bytes);
  EXPECT_EQ(memoryBytesAt(alone, plan.formats, 33), memoryBytesAt(shared, plan.formats, 33));

  RecurrentSession a(shape);
  RecurrentSession b(sharing);
  for (RecurrentSession* session : {&a, &b}) {
    session->append(someTokens(33));
  }
  EXPECT_EQ(a.save().size(), b.save().size());
  EXPECT_EQ(a.goOn(), b.goOn());
  b.expectAsDefined("with layers that share");
  EXPECT_EQ(ORIEL_ERROR_FORMAT, b.restore(a.save())) << "it is another model all the same";
}

}  // namespace
}  // namespace oriel_internal::test::test_recurrent_sessions
