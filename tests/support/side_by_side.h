// Several sessions of a model with different replies: alone, on threads, or by one call.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "oriel/advanced.h"
#include "support/reply.h"

namespace oriel_internal::test {

/// The result of a reply, and the session's state after it.
struct Outcome {
  oriel_status status = ORIEL_ERROR_INTERNAL;
  std::string text;
  std::vector<int32_t> ids;
  oriel_generation result = {};
  std::vector<float> logits;
  std::vector<uint8_t> snapshot;
};

inline int addToOutcome(const oriel_token_event* event, void* user) {
  Outcome& outcome = *static_cast<Outcome*>(user);
  outcome.text.append(event->text, event->text_bytes);
  outcome.ids.push_back(event->id);
  return 0;
}

inline void expectEqual(const Outcome& alone, const Outcome& other, size_t i) {
  EXPECT_EQ(alone.status, other.status) << "session " << i;
  EXPECT_EQ(alone.text, other.text) << "session " << i;
  EXPECT_EQ(alone.ids, other.ids) << "session " << i;
  EXPECT_EQ(alone.result.tokens, other.result.tokens) << "session " << i;
  EXPECT_EQ(alone.result.stop_reason, other.result.stop_reason) << "session " << i;
  EXPECT_TRUE(alone.logits == other.logits) << "session " << i;
  EXPECT_TRUE(alone.snapshot == other.snapshot) << "session " << i;
}

/// One session's part.
struct Part {
  std::string message;          ///< a user's message to answer; "": none
  std::vector<int32_t> prompt;  ///< otherwise, text to continue
  ReplyOptions options = {};
  uint32_t window = 0;
};

class Sessions {
 public:
  Sessions(const std::string& path, const Options& options, std::vector<Part> parts)
      : parts_(std::move(parts)) {
    oriel_model* model = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << path;
    model_.reset(model);
    for (size_t i = 0; i < parts_.size() && model != nullptr; ++i) {
      SessionOptions of;
      of.set("session_window", parts_[i].window);
      oriel_session* session = nullptr;
      EXPECT_EQ(ORIEL_OK, oriel_session_create(model, &of, &session));
      sessions_.emplace_back(session);
    }
  }

  size_t count() const { return parts_.size(); }
  oriel_model* model() const { return model_.get(); }
  oriel_session* operator[](size_t i) const { return sessions_[i].get(); }
  const Part& part(size_t i) const { return parts_[i]; }

  /// Runs up to its reply.
  void begin(size_t i) const {
    const Part& part = parts_[i];
    oriel_session* const session = sessions_[i].get();
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(session));
    EXPECT_EQ(ORIEL_OK,
              part.message.empty()
                  ? oriel_session_append(session, part.prompt.data(), part.prompt.size(), nullptr,
                                         nullptr)
                  : oriel_chat_add(session, "user", part.message.data(), part.message.size()));
  }
  void reply(size_t i, Outcome* outcome, oriel_token_fn on_token = addToOutcome) const {
    outcome->result.struct_size = sizeof(outcome->result);
    outcome->status = (parts_[i].message.empty() ? oriel_session_generate : oriel_chat_reply)(
        sessions_[i].get(), &parts_[i].options, on_token, outcome, &outcome->result);
  }
  void look(size_t i, Outcome* outcome) const {
    oriel_session* const session = sessions_[i].get();
    const float* logits = nullptr;
    size_t count = 0;
    EXPECT_EQ(ORIEL_OK, oriel_session_logits(session, &logits, &count));
    outcome->logits.assign(logits, logits + count);
    size_t needed = 0;
    (void)oriel_snapshot_save(session, nullptr, 0, &needed);
    outcome->snapshot.resize(needed);
    EXPECT_EQ(ORIEL_OK, oriel_snapshot_save(session, outcome->snapshot.data(), needed, &needed));
  }

  std::vector<Outcome> oneAfterTheOther() const {
    std::vector<Outcome> outcomes(count());
    for (size_t i = 0; i < count(); ++i) {
      begin(i);
      reply(i, &outcomes[i]);
      look(i, &outcomes[i]);
    }
    return outcomes;
  }
  std::vector<Outcome> onThreads() const {
    std::vector<Outcome> outcomes(count());
    each([&](size_t i) {
      begin(i);
      reply(i, &outcomes[i]);
      look(i, &outcomes[i]);
    });
    return outcomes;
  }
  std::vector<Outcome> byOneCall(oriel_token_fn on_token = addToOutcome) const {
    std::vector<Outcome> outcomes(count());
    std::vector<oriel_reply> replies(count());
    for (size_t i = 0; i < count(); ++i) {
      begin(i);
      outcomes[i].result.struct_size = sizeof(outcomes[i].result);
      oriel_reply& reply = replies[i];
      reply.struct_size = sizeof(reply);
      reply.session = sessions_[i].get();
      reply.options = &parts_[i].options;
      reply.on_token = on_token;
      reply.user = &outcomes[i];
      reply.result = &outcomes[i].result;
      reply.generate = parts_[i].message.empty() ? 1 : 0;
    }
    const oriel_status status = oriel_reply_many(replies.data(), replies.size());
    oriel_status first = ORIEL_OK;
    for (size_t i = 0; i < count(); ++i) {
      outcomes[i].status = replies[i].status;
      first = first != ORIEL_OK ? first : replies[i].status;
    }
    EXPECT_EQ(first, status);
    for (size_t i = 0; i < count(); ++i) {
      look(i, &outcomes[i]);
    }
    return outcomes;
  }

  /// On one thread per session.
  void each(const std::function<void(size_t)>& act) const {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count(); ++i) {
      threads.emplace_back(act, i);
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

 private:
  std::vector<Part> parts_;
  ModelPtr model_;
  std::vector<SessionPtr> sessions_;
};

}  // namespace oriel_internal::test
