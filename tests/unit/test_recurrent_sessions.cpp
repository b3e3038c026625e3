// What a session promises, of a model that keeps a state instead of tokens: whatever was cancelled, failed, begun
// ahead or taken back, the state after the last committed token is the one that counts. A made-up model
// (support/recurrent_executor.h) beside its definition, token by token.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "exec/session.h"
#include "support/recurrent_executor.h"
#include "support/tokenizer_case.h"
#include "support/vocabulary.h"

namespace oriel::test {
namespace {

using Ids = std::vector<int32_t>;

constexpr uint32_t kSinks = 4;

Ids someTokens(size_t count, uint32_t seed = 5) {
  Ids ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>(mixed(seed, static_cast<uint32_t>(i)) % kRecurrentVocabulary);
  }
  return ids;
}

/// The definition: every token from the first on, one by one, and the sinks and last tokens added up anew for each.
class PlainModel {
 public:
  PlainModel(uint32_t window, const Ids& ids) : window_(window) { add(ids); }

  void add(const Ids& ids) {
    for (const int32_t id : ids) {
      state_ = stateAfter(state_, static_cast<uint32_t>(id));
      ids_.push_back(id);
    }
  }
  std::vector<float> logits() const {
    uint32_t seen = 0;
    for (size_t t = 0; t < ids_.size(); ++t) {
      seen += t < kSinks || t + window_ >= ids_.size() ? keyOf(static_cast<uint32_t>(ids_[t])) : 0;
    }
    return recurrentLogits(state_, seen);
  }
  Ids greedy(size_t count) {
    Ids out;
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float> values = logits();
      const auto best = std::max_element(values.begin(), values.end());
      out.push_back(static_cast<int32_t>(best - values.begin()));
      add({out.back()});
    }
    return out;
  }
  const Ids& ids() const { return ids_; }

 private:
  uint32_t window_;
  Ids ids_;
  RecurrentState state_ = {};
};

struct Shape {
  uint32_t chunk = 7;
  bool ahead = false;
  uint32_t window = 40;
  bool sharing = false;
};

/// A session on a RecurrentExecutor, and the tokens that it should have committed.
class RecurrentSession {
 public:
  explicit RecurrentSession(const Shape& shape)
      : window_(shape.window), model_(recurrentModel(shape.sharing)), plan_(planOf(model_, shape)) {
    executor = std::make_unique<RecurrentExecutor>(model_, plan_);
    executor->ahead = shape.ahead;
    SessionContext context;
    context.model = &model_;
    context.plan = &plan_;
    context.tokenizer = tokenizer().tokenizer;
    context.executor = executor.get();
    context.allocator = &defaultAllocator();
    context.log = log.log();
    context.model_hash = 12345;
    Arena measure;
    (void)Session::create(context, 0, true, &measure);
    block_.resize(static_cast<size_t>(measure.used() / sizeof(Piece) + 1));
    Arena arena(block_.data(), measure.used());
    session_ = Session::create(context, 0, true, &arena);
    EXPECT_NE(nullptr, session_);
    EXPECT_TRUE(session_->reset().ok());
  }

  Session& operator*() { return *session_; }
  Session* operator->() { return session_; }
  const Plan& plan() const { return plan_; }

  void append(const Ids& ids) {
    ASSERT_EQ(ORIEL_OK, tryAppend(ids)) << log.errors();
    committed.insert(committed.end(), ids.begin(), ids.end());
  }
  oriel_status tryAppend(const Ids& ids) { return session_->append(ids.data(), ids.size()).code(); }

  struct Reply {
    uint32_t most = 20;
    uint32_t stop_at = 0;    ///< the callback says stop at this token, counted from 1
    uint32_t cancel_at = 0;  ///< or cancels
    int32_t stop_id = -1;
    oriel_status expected = ORIEL_OK;
  };
  /// What the callback was given.
  Ids generate(const Reply& reply) {
    struct Given {
      const Reply* reply;
      Session* session;
      Ids ids;
    } given = {&reply, session_, {}};
    const auto note = [](const oriel_token_event* event, void* user) {
      Given* const self = static_cast<Given*>(user);
      self->ids.push_back(event->id);
      if (self->ids.size() == self->reply->cancel_at) {
        self->session->cancel();
      }
      return self->ids.size() == self->reply->stop_at ? 1 : 0;
    };
    SamplerOptions greedy;
    greedy.greedy = true;
    oriel_generation result = {};
    const Status status = session_->generate(greedy, reply.most, reply.stop_id < 0, note, &given,
                                             &result, reply.stop_id);
    EXPECT_EQ(reply.expected, status.code()) << log.errors();
    // The token whose step failed was given, but is not committed.
    const size_t kept =
        given.ids.size() - (status.ok() || status.code() == ORIEL_ERROR_CANCELLED ? 0 : 1);
    committed.insert(committed.end(), given.ids.begin(),
                     given.ids.begin() + static_cast<std::ptrdiff_t>(kept));
    return given.ids;
  }
  Ids goOn(uint32_t count = 20) {
    Reply reply;
    reply.most = count;
    return generate(reply);
  }

  std::vector<float> logits() {
    const float* values = nullptr;
    const Status status = session_->logits(&values);
    EXPECT_TRUE(status.ok()) << log.errors();
    return status.ok() ? std::vector<float>(values, values + kRecurrentVocabulary)
                       : std::vector<float>();
  }
  std::vector<uint8_t> save() {
    std::vector<uint8_t> bytes(static_cast<size_t>(session_->snapshotBytes()));
    EXPECT_TRUE(session_->save(bytes.data()).ok()) << log.errors();
    return bytes;
  }
  oriel_status restore(const std::vector<uint8_t>& bytes) {
    return session_->restore(bytes.data(), bytes.size(), log.log()).code();
  }
  oriel_status rewind(uint64_t position) { return session_->rewind(position).code(); }

  /// Another few tokens and a reply behind what was committed are those of the definition.
  void expectAsDefined(const char* what) {
    SCOPED_TRACE(what);
    ASSERT_EQ(committed.size(), session_->position());
    PlainModel plain(window_, committed);
    const Ids more = someTokens(3, 99);
    append(more);
    plain.add(more);
    ASSERT_EQ(plain.logits(), logits());
    ASSERT_EQ(plain.greedy(15), goOn(15));
    ASSERT_EQ(plain.logits(), logits());
  }

  static Plan planOf(const ModelDesc& model, const Shape& shape) {
    const CacheShape cache = {model.n_kv_heads, model.head_dim, kSinks, shape.window,
                              shape.window + shape.chunk - 1};
    Plan plan;
    plan.cache = cache;
    plan.chunk_tokens = shape.chunk;
    plan.n_views = model.n_views;
    const ActivationLayout activations = layoutActivations(model, cache, shape.chunk);
    const IoLayout io = layoutIo(model, shape.chunk, 256);
    EXPECT_TRUE(cacheBytes(model, cache, plan.formats, &plan.cache_bytes));
    plan.activation_bytes = activations.bytes;
    plan.io_bytes = io.bytes;
    plan.device_step = activations.device_step;
    plan.logits = activations.logits;
    plan.output_rows = activations.output_rows;
    plan.step = io.step;
    plan.step_ahead = io.step_ahead;
    plan.top = io.top;
    plan.upload = io.upload;
    plan.step_decode_bytes = io.step_ahead.size_bytes;
    return plan;
  }

  CapturedLog log;
  std::unique_ptr<RecurrentExecutor> executor;
  Ids committed;

 private:
  struct alignas(64) Piece {
    uint8_t bytes[64];
  };

  /// One letter a token.
  static TokenizerCase& tokenizer() {
    static TokenizerCase* const made = [] {
      Vocabulary v;
      for (uint32_t id = 0; id < kRecurrentVocabulary; ++id) {
        v.add(std::string(1, static_cast<char>('A' + id)));
      }
      return new TokenizerCase(v.writer().build());
    }();
    EXPECT_TRUE(made->status.ok()) << made->log.errors();
    return *made;
  }

  const uint32_t window_;
  const ModelDesc model_;
  const Plan plan_;
  std::vector<Piece> block_;
  Session* session_ = nullptr;
};

const Shape kShapes[] = {{1, false}, {1, true}, {7, false}, {7, true}, {64, false}, {64, true}};

template <typename Check>
void forEachShape(const Check& check) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE("chunk " + std::to_string(shape.chunk) + (shape.ahead ? ", ahead" : ""));
    check(shape);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

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
    const auto keep = [](uint64_t, const float* logits, size_t count, void* user) {
      static_cast<std::vector<std::vector<float>>*>(user)->emplace_back(logits, logits + count);
      return 0;
    };
    ASSERT_TRUE(session->evaluate(ids.data(), ids.size(), keep, &all).ok());
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

// ---- What was not committed ----------------------------------------------------------------------

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
          session->cancel();
        }
      };
      ASSERT_EQ(ORIEL_ERROR_CANCELLED, session.tryAppend(more));
      session.executor->before_token = nullptr;
      const uint32_t whole = (nth - 1) / shape.chunk * shape.chunk;
      session.committed.insert(session.committed.end(), more.begin(), more.begin() + whole);
      ASSERT_EQ(20u + whole, session->position());
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
      ASSERT_EQ(20u + nth - 1, session->position());
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
            self->session->cancel();
          }
          return now && !self->cancels ? 1 : 0;
        };
        const oriel_status status =
            session->evaluate(more.data(), more.size(), note, &watch).code();
        const uint32_t begun = std::min((nth + shape.chunk - 1) / shape.chunk * shape.chunk, 30u);
        const bool whole = nth == begun;  // the cancel is seen when the chunk is over
        if (cancels && nth != 30) {
          ASSERT_EQ(ORIEL_ERROR_CANCELLED, status);
        } else {
          ASSERT_EQ(ORIEL_OK, status);
        }
        const uint32_t kept = !cancels || whole ? begun : (nth - 1) / shape.chunk * shape.chunk;
        session.committed.insert(session.committed.end(), more.begin(), more.begin() + kept);
        ASSERT_EQ(session.committed.size(), session->position());
        if (cancels && nth == 30) {
          ASSERT_EQ(ORIEL_ERROR_CANCELLED, session.tryAppend({1})) << "the cancel is still to come";
        }
        session.expectAsDefined("from there on");
      }
    }
  });
}

// ---- Going back ----------------------------------------------------------------------------------

TEST(RecurrentSession, rewinding_leads_to_where_the_latest_step_began_or_to_nothing) {
  forEachShape([](const Shape& shape) {
    for (const uint32_t count : {20u, 150u}) {
      const uint32_t begin = (count - 1) / shape.chunk * shape.chunk;
      for (uint32_t kept = 0; kept <= count; kept += count > 100 && kept < 130 ? 10 : 1) {
        SCOPED_TRACE(std::to_string(count) + " back to " + std::to_string(kept));
        RecurrentSession session(shape);
        session.append(someTokens(count));
        const std::vector<float> before = session.logits();
        const bool can = kept == 0 || kept == count || kept == begin;
        ASSERT_EQ(can ? ORIEL_OK : ORIEL_ERROR_CONTEXT, session.rewind(kept));
        if (can) {
          session.committed.resize(kept);
          EXPECT_EQ("", session.log.errors());
        } else {
          EXPECT_EQ(before, session.logits()) << "it stays what it was";
          EXPECT_EQ(std::string::npos, session.log.errors().find('\n'));
          EXPECT_TRUE(session.log.says("or reset") || session.log.says(": reset"))
              << session.log.errors();
        }
        session.expectAsDefined("from there on");
      }
    }
  });
}

TEST(RecurrentSession, an_error_says_where_going_back_leads) {
  RecurrentSession session({7, false});
  session.append(someTokens(20));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, session.rewind(13));
  EXPECT_EQ(
      "cannot go back from token 20 to 13, the state after it is gone: go back to token 14, or "
      "reset",
      session.log.errors());
  EXPECT_EQ(ORIEL_OK, session.rewind(14));
  session.log.clear();
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, session.rewind(7)) << "once";
  EXPECT_EQ("cannot go back from token 14 to 7, the state after it is gone: reset",
            session.log.errors());
  EXPECT_EQ(ORIEL_OK, session.rewind(14));
  EXPECT_EQ(ORIEL_OK, session.rewind(0));
}

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
    failed.append(someTokens(20));
    failed.append(someTokens(5));
    failed.executor->fails_in = 1;
    ASSERT_EQ(ORIEL_ERROR_INTERNAL, failed.tryAppend(someTokens(3)));
    expectNoWayBack(&failed, 20);

    RecurrentSession cancelled(shape);
    cancelled.append(someTokens(20));
    cancelled.append(someTokens(5));
    cancelled.executor->before_token = [&] { cancelled->cancel(); };
    ASSERT_EQ(ORIEL_ERROR_CANCELLED, cancelled.tryAppend(someTokens(3)));
    cancelled.executor->before_token = nullptr;
    expectNoWayBack(&cancelled, 20);

    // A reply that ended while another token was wanted: a device may have begun with it.
    RecurrentSession ended(shape);
    ended.append(someTokens(20));
    RecurrentSession::Reply reply;
    reply.cancel_at = 6;
    reply.expected = ORIEL_ERROR_CANCELLED;
    ended.generate(reply);
    expectNoWayBack(&ended, 25);
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
    ASSERT_TRUE(all->evaluate(ids.data(), ids.size(), ignore, nullptr).ok());
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
        ASSERT_EQ(ORIEL_ERROR_CONTEXT, other.rewind(committed.size() - 1));
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
    ASSERT_TRUE(session->reset().ok());
    const std::vector<uint8_t>& after = session.executor->cache();
    EXPECT_TRUE(std::all_of(after.begin(), after.end(), [](uint8_t byte) { return byte == 0; }));
    session.committed.clear();
    session.expectAsDefined("from the beginning");
  });
}

// ---- Memories that layers share ------------------------------------------------------------------

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
}  // namespace oriel::test
