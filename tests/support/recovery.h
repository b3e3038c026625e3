// Sessions that lose their device, with unaffected twins, for tests of oriel_session_recover.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "oriel/advanced.h"
#include "support/files.h"
#include "support/reply.h"
#include "support/watched_session.h"

namespace oriel_internal::test {

inline oriel_recovered recoveredOf(oriel_session* session, oriel_status expected = ORIEL_OK,
                                   const char* device = nullptr, uint32_t flags = 0) {
  oriel_recovered result = ORIEL_INIT(oriel_recovered);
  EXPECT_EQ(expected, oriel_session_recover(session, device, flags, nullptr, nullptr, &result))
      << oriel_session_last_error(session);
  return result;
}

inline std::vector<float> logitsOf(const SessionPtr& session) {
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_OK, oriel_session_logits(session.get(), &logits, &count));
  return {logits, logits + count};
}

inline oriel_status append(const SessionPtr& session, const std::vector<int32_t>& ids) {
  return oriel_session_append(session.get(), ids.data(), ids.size(), nullptr, nullptr);
}

inline oriel_status say(const SessionPtr& session, const std::string& text) {
  return oriel_chat_add(session.get(), "user", text.data(), text.size());
}

struct Said {
  oriel_status status = ORIEL_OK;
  std::vector<int32_t> ids;
  std::string text;
};

using Speak = decltype(&oriel_session_generate);

inline int keepSaid(const oriel_token_event* event, void* user) {
  Said& self = *static_cast<Said*>(user);
  self.ids.push_back(event->id);
  self.text.append(event->text, event->text_bytes);
  return 0;
}

inline Said speak(const SessionPtr& session, Speak how, const ReplyOptions& options) {
  Said said;
  oriel_generation result = ORIEL_INIT(oriel_generation);
  said.status = how(session.get(), &options, keepSaid, &said, &result);
  said.ids.resize(std::min<size_t>(said.ids.size(), result.tokens));
  return said;
}

inline Said speak(const SessionPtr& session, Speak how, uint32_t tokens, uint64_t seed = 0) {
  ReplyOptions options = seed == 0 ? greedyOptions(tokens) : wildOptions(tokens, seed);
  options.set("ignore_stop", how == oriel_session_generate);
  return speak(session, how, options);
}

inline std::vector<int32_t> generateIds(const SessionPtr& session, uint32_t tokens,
                                        uint64_t seed = 0) {
  return speak(session, oriel_session_generate, tokens, seed).ids;
}

inline uint64_t positionOf(const SessionPtr& session) {
  oriel_stats stats = ORIEL_STATS_INIT;
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(session.get(), &stats));
  return stats.position;
}

inline std::vector<uint64_t> checkpointsOf(const SessionPtr& session) {
  return describe(session)["checkpoints"];
}

inline std::vector<uint64_t> turnsOf(const SessionPtr& session) {
  return describe(session)["turns"];
}

inline std::string transcriptOf(const SessionPtr& session) {
  std::vector<char> json(1 << 16);
  size_t needed = 0;
  EXPECT_EQ(ORIEL_OK, oriel_transcript_export(session.get(), json.data(), json.size(), &needed));
  return json.data();
}

/// A recovered model before its first use stays within its plan.
inline void expectWithinPlan(const ModelPtr& model) {
  oriel_plan plan = ORIEL_PLAN_INIT;
  ASSERT_EQ(ORIEL_OK, oriel_model_get_plan(model.get(), &plan));
  Json resident = describe(model)["resident"];
  EXPECT_LE(resident["total_bytes"], plan.total_bytes);
  EXPECT_EQ(plan.weights_bytes, resident["weights_bytes"]);
  EXPECT_EQ(plan.kv_bytes, resident["kv_bytes"]);
}

/// The same model twice; one loses its device.
class Twins {
 public:
  Twins(const std::string& path, const Options& options,
        const SessionOptions* session_options = nullptr)
      : losing(path, options) {
    model = loadModel(path, options);
    if (model != nullptr && losing.model != nullptr) {
      mine = newSession(losing.model, session_options);
      other = newSession(model, session_options);
    }
  }
  bool ok() const { return mine != nullptr && other != nullptr; }

  /// On both.
  void both(const std::function<void(const SessionPtr&)>& act) const {
    act(mine);
    act(other);
  }
  void expectSame(uint32_t tokens = 12) const {
    EXPECT_EQ(positionOf(other), positionOf(mine));
    EXPECT_EQ(turnsOf(other), turnsOf(mine));
    EXPECT_EQ(checkpointsOf(other), checkpointsOf(mine));
    EXPECT_EQ(logitsOf(other), logitsOf(mine));
    EXPECT_EQ(generateIds(other, tokens), generateIds(mine, tokens));
    EXPECT_EQ(logitsOf(other), logitsOf(mine));
  }

  LosableModel losing;
  ModelPtr model;
  SessionPtr mine;
  SessionPtr other;
};

inline Options recoveryOptions(CapturedLog* log, uint32_t window = 200, uint32_t chunk = 16) {
  Options options = sessionOptions(log, window, chunk);
  options.set("transcript", 32768);
  return options;
}

/// Twins that were told a name and have answered; then one lost its device.
struct Parted {
  explicit Parted(const Options& with) : options(with) {
    options.log = log.log().callback;
    options.log_user = log.log().user;
    twins = std::make_unique<Twins>(kTrained, options);
    EXPECT_TRUE(twins->ok()) << log.errors();
    if (!twins->ok()) {
      return;
    }
    twins->both([](const SessionPtr& session) {
      EXPECT_EQ(ORIEL_OK, say(session, "My name is Ada."));
      EXPECT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
    });
    twins->losing.lose(Work::kRun, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins->mine, "What is my name?"));
  }
  Parted() : Parted(recoveryOptions(nullptr)) {}
  /// Repeats the lost question.
  void expectSameAnswer() const {
    twins->both(
        [](const SessionPtr& session) { ASSERT_EQ(ORIEL_OK, say(session, "What is my name?")); });
    EXPECT_EQ(speak(twins->other, oriel_chat_reply, 16).text,
              speak(twins->mine, oriel_chat_reply, 16).text);
  }

  CapturedLog log;
  Options options;
  std::unique_ptr<Twins> twins;
};

// Sessions with recall of evicted turns. Tests only.

constexpr uint32_t kRecallSinks = 4;
constexpr uint32_t kRecallWindow = 64;

struct RecallKv {
  oriel_kv_format k;
  oriel_kv_format v;
};

/// Irrelevant text longer than the window.
inline std::string filler() {
  std::string text;
  for (uint32_t i = 0; i < 12; ++i) {
    text += "There went another day with nothing new number " + std::to_string(i * 37) + ". ";
  }
  return text;
}

class Recall : public ScratchFolder {
 protected:
  Options options(RecallKv kv = {ORIEL_KV_F16, ORIEL_KV_F16}) {
    Options options = sessionOptions(&log_, kRecallWindow, 8);
    setFormats(&options, kv.k, kv.v);
    options.set("sinks", kRecallSinks);
    options.set("retrieval", 4u << 20).set("retrieval_tokens", 48).set("retrieval_folder", dir_);
    return options;
  }
  static oriel_status appendText(const Loaded& loaded, const std::string& text) {
    return oriel_session_append_text(loaded.session.get(), text.data(), text.size(), 0);
  }
  static oriel_status recall(const Loaded& loaded, const std::string& text) {
    return oriel_session_retrieve(loaded.session.get(), text.data(), text.size());
  }
  static std::vector<int32_t> recalled(const Loaded& loaded) {
    return describe(loaded.session)["recalled_ids"];
  }
  static std::vector<uint8_t> save(const Loaded& loaded) {
    return savedBytes(loaded.session.get());
  }
  /// A session with a fact far before its window.
  Loaded told(const std::string& model, const Options& options) {
    Loaded loaded = load(model, options);
    EXPECT_EQ(ORIEL_OK,
              appendText(loaded, "Once upon a time the secret word was smakufu, they said. "));
    EXPECT_EQ(ORIEL_OK, appendText(loaded, filler()));
    EXPECT_TRUE(recalled(loaded).empty());
    return loaded;
  }

  bool warned(const std::string& part) const {
    return std::any_of(log_.lines.begin(), log_.lines.end(), [&](const auto& line) {
      return line.level == ORIEL_LOG_WARNING && line.text.find(part) != std::string::npos;
    });
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path("")),
                                             std::filesystem::directory_iterator()));
  }

  CapturedLog log_;
  const std::string dir_ = path("");
};

}  // namespace oriel_internal::test
