// Several sessions of one model: independent of each other; with a shared prefix; forks and marks.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include <gtest/gtest.h>

#include "oriel/advanced.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_several_sessions {
namespace {

using Model = ModelPtr;
using Owned = SessionPtr;

// On Vulkan, where kernels compile slowly, only a few with different memories.
std::vector<FamilyParam> families() {
  return onVulkan() ? familyParams({"gemma2", "lfm2", "qwen35", "deepseek2", "qwen3moe"})
                    : familiesOfEachKind();
}

Model loadModel(const std::string& path, const Options& options) {
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << path;
  return Model(model);
}

Owned openSession(const Model& model, uint32_t window = 0) {
  SessionOptions options;
  options.set("session_window", window);
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_session_create(model.get(), &options, &session));
  return Owned(session);
}

void appendTo(const Owned& session, const std::vector<int32_t>& ids) {
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(session.get(), ids.data(), ids.size(), nullptr, nullptr));
}

std::vector<float> rowOf(const Owned& session) {
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_OK, oriel_session_logits(session.get(), &logits, &count));
  return {logits, logits + count};
}

std::vector<int32_t> greedyOf(const Owned& session, uint32_t tokens) {
  ReplyOptions options = greedyOptions(tokens);
  options.set("ignore_stop", true);
  std::vector<int32_t> ids;
  EXPECT_EQ(ORIEL_OK, oriel_session_generate(session.get(), &options, keepId, &ids, nullptr));
  ids.resize(tokens);
  return ids;
}

std::vector<uint8_t> snapshotOf(const Owned& session) { return savedBytes(session.get()); }

class SeveralSessions : public testing::TestWithParam<FamilyParam> {
 protected:
  /// `count` of the model's ids, different for every seed.
  static std::vector<int32_t> someIds(uint32_t count, uint32_t seed) {
    std::vector<int32_t> ids =
        test::someIds(count + seed, static_cast<int32_t>(GetParam()->model.n_vocab));
    ids.erase(ids.begin(), ids.begin() + seed);
    return ids;
  }
  TemporaryModel file_{GetParam()->model};
};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen35");
TEST_P(SeveralSessions, each_is_to_the_bit_what_it_is_alone) {
  constexpr uint32_t kSessions = 3;
  Options options = sessionOptions(nullptr, 48, 8);
  options.sessions = kSessions;
  const Model model = loadModel(file_.path(), options);
  ASSERT_TRUE(model);
  Owned sessions[kSessions];
  std::vector<int32_t> said[kSessions];
  for (uint32_t s = 0; s < kSessions; ++s) {
    sessions[s] = openSession(model);
    appendTo(sessions[s], someIds(10 + 7 * s, s));
  }
  for (uint32_t round = 0; round < 4; ++round) {  // past the window
    for (uint32_t s = 0; s < kSessions; ++s) {
      const std::vector<int32_t> more = greedyOf(sessions[s], 9 + s);
      said[s].insert(said[s].end(), more.begin(), more.end());
    }
  }
  std::vector<float> last[kSessions];
  for (uint32_t s = 0; s < kSessions; ++s) {
    last[s] = rowOf(sessions[s]);
  }
  for (uint32_t s = 0; s < kSessions; ++s) {
    sessions[s].reset();
  }
  // Alone in the same model, and in a model of its own.
  Options one = sessionOptions(nullptr, 48, 8);
  for (uint32_t s = 0; s < kSessions; ++s) {
    const Model other = loadModel(file_.path(), one);
    for (const Model* of : {&model, &other}) {
      const Owned alone = openSession(*of);
      appendTo(alone, someIds(10 + 7 * s, s));
      std::vector<int32_t> ids;
      for (uint32_t round = 0; round < 4; ++round) {
        const std::vector<int32_t> more = greedyOf(alone, 9 + s);
        ids.insert(ids.end(), more.begin(), more.end());
      }
      EXPECT_EQ(said[s], ids) << "session " << s;
      EXPECT_EQ(last[s], rowOf(alone)) << "session " << s;
    }
  }
}

RUNS_ON(kCpu);
TEST_P(SeveralSessions, a_prefix_is_seen_as_if_each_had_it) {
  constexpr uint32_t kSessions = 3, kPrefix = 21;
  const std::vector<int32_t> prefix = someIds(kPrefix, 9);
  Options options = sessionOptions(nullptr, 40, 8);
  options.sessions = kSessions;
  options.set("prefix_tokens", kPrefix + 3);  // more room than it needs
  const Model model = loadModel(file_.path(), options);
  ASSERT_TRUE(model);
  Owned sessions[kSessions];
  sessions[0] = openSession(model);
  appendTo(sessions[0], prefix);
  oriel_session* second = nullptr;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_create(model.get(), nullptr, &second))
      << "before the prefix is made";
  ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), sessions[0].get()));
  for (uint32_t s = 1; s < kSessions; ++s) {
    sessions[s] = openSession(model);
  }
  Options one = sessionOptions(nullptr, 40, 8);
  one.set("sinks", kPrefix);
  const Loaded alone = load(file_.path(), one);
  for (uint32_t again = 0; again < 2; ++again) {
    for (uint32_t s = 0; s < kSessions; ++s) {
      appendTo(sessions[s], someIds(5 + 4 * s, s + again));
    }
    for (uint32_t s = 0; s < kSessions; ++s) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(alone.session.get()));
      ASSERT_EQ(ORIEL_OK, append(alone, prefix));
      ASSERT_EQ(ORIEL_OK, append(alone, someIds(5 + 4 * s, s + again)));
      EXPECT_EQ(greedy(alone, 60), greedyOf(sessions[s], 60)) << s;
      EXPECT_EQ(logitsOf(alone), rowOf(sessions[s])) << s;
      ASSERT_EQ(ORIEL_OK, goBackTo(alone.session.get(), statsOf(alone).position - 1));
    }
    for (uint32_t s = 0; s < kSessions; ++s) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(sessions[s].get()));
      oriel_stats stats = ORIEL_STATS_INIT;
      ASSERT_EQ(ORIEL_OK, oriel_session_get_stats(sessions[s].get(), &stats));
      EXPECT_EQ(kPrefix, stats.position);
      EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(sessions[s].get(), kPrefix - 1));
    }
  }
}

RUNS_ON(kCpu);
TEST_P(SeveralSessions, a_fork_and_its_source_go_on_to_the_bit) {
  for (const bool shares : {false, true}) {
    Options options = sessionOptions(nullptr, 48, 8);
    options.sessions = 2;
    options.set("prefix_tokens", shares ? 12 : 0);
    const Model model = loadModel(file_.path(), options);
    ASSERT_TRUE(model);
    for (const uint32_t tokens : {6u, 30u, 120u}) {
      SCOPED_TRACE(tokens);
      Owned source = openSession(model);
      if (shares) {
        appendTo(source, someIds(11, 5));
        ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), source.get()));
      }
      appendTo(source, someIds(tokens, 1));
      oriel_session* made = nullptr;
      ASSERT_EQ(ORIEL_OK, oriel_session_fork(source.get(), &made));
      Owned fork(made);
      oriel_session* third = nullptr;
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_fork(source.get(), &third));
      EXPECT_EQ(snapshotOf(source), snapshotOf(fork));
      EXPECT_EQ(rowOf(source), rowOf(fork));
      const std::vector<int32_t> said = greedyOf(source, 20);
      appendTo(source, someIds(9, 2));  // the fork is unaffected
      EXPECT_EQ(said, greedyOf(fork, 20));
      appendTo(fork, someIds(9, 2));
      EXPECT_EQ(rowOf(source), rowOf(fork));
      if (shares) {
        source.reset();
        fork.reset();
        ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), nullptr));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Device, SeveralSessions, testing::ValuesIn(families()), familyName);

}  // namespace
}  // namespace oriel_internal::test::test_several_sessions

namespace oriel_internal::test::test_stress_sessions {

// Random schedules of all session calls on several threads: every status must be in the call's contract. Meant for
// sanitizers, which detect data races.

namespace {

constexpr uint32_t kThreads = 4;
constexpr uint32_t kSlots = 3;     // of a thread
constexpr uint32_t kSessions = 8;  // of the model: fewer than the threads want

/// ORIEL_STRESS_OPERATIONS: total number of calls by all threads.
uint32_t operations() {
  const char* const wanted = std::getenv("ORIEL_STRESS_OPERATIONS");
  return wanted != nullptr ? static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10)) : 2000;
}

/// A session used by one thread; others may cancel it during its lifetime.
struct Slot {
  std::shared_mutex there;
  oriel_session* session = nullptr;
  uint32_t tokens = 0;
};

class Schedule {
 public:
  Schedule(oriel_model* model, const SessionOptions& options,
           std::array<Slot, kThreads * kSlots>* slots, uint32_t thread)
      : model_(model),
        slots_(*slots),
        own_(thread * kSlots),
        options_(options),
        random_(4711 + thread) {}

  void run(uint32_t count) {
    for (uint32_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
      act();
    }
    for (uint32_t i = 0; i < kSlots; ++i) {
      destroy(slots_[own_ + i]);
    }
  }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  void expect(const char* what, oriel_status status, std::initializer_list<oriel_status> allowed) {
    // Another thread may have given the model's memory back: calls that need the device are then refused.
    if (status == ORIEL_OK || status == ORIEL_ERROR_STATE) {
      return;
    }
    for (const oriel_status one : allowed) {
      if (status == one) {
        return;
      }
    }
    ADD_FAILURE() << what << " returned " << oriel_status_text(status);
  }

  void act() {
    Slot& slot = slots_[own_ + below(kSlots)];
    const uint32_t what = below(100);
    if (what < 6) {  // for any thread's session
      Slot& other = slots_[below(kThreads * kSlots)];
      const std::shared_lock<std::shared_mutex> lock(other.there, std::try_to_lock);
      if (lock.owns_lock()) {
        oriel_session_cancel(other.session);
      }
    } else if (slot.session == nullptr) {
      create(slot);
    } else if (what < 10) {
      destroy(slot);
    } else if (what < 14) {
      fork(slot);
    } else if (what < 34) {
      append(slot.session);
    } else if (what < 60) {
      reply(slot.session);
    } else if (what < 70) {
      replyToAll();
    } else if (what < 78) {
      goBack(slot.session);
    } else if (what < 90) {
      saveOrRestore(slot.session);
    } else if (what < 95) {
      look(slot.session);
    } else if (what < 97) {
      expect("reset", oriel_session_reset(slot.session), {ORIEL_ERROR_STATE});
    } else {
      trim();
    }
  }

  void put(Slot& slot, oriel_session* session) {
    const std::unique_lock<std::shared_mutex> lock(slot.there);
    slot.session = session;
  }
  void create(Slot& slot) {
    oriel_session* session = nullptr;
    expect("create", oriel_session_create(model_, &options_, &session), {ORIEL_ERROR_STATE});
    put(slot, session);
  }
  void destroy(Slot& slot) {
    oriel_session* const session = slot.session;
    put(slot, nullptr);
    // Cancels of the previous owner are over; the session has no other user now.
    oriel_session_destroy(session);
  }
  void fork(Slot& slot) {
    for (uint32_t i = 0; i < kSlots; ++i) {
      Slot& other = slots_[own_ + i];
      if (other.session == nullptr) {
        oriel_session* session = nullptr;
        expect("fork", oriel_session_fork(slot.session, &session), {ORIEL_ERROR_STATE});
        put(other, session);
        return;
      }
    }
  }
  void append(oriel_session* session) {
    if (below(3) == 0) {
      const std::string text = "Say " + std::to_string(below(1000)) + " words.";
      expect("chat_add", oriel_chat_add(session, "user", text.data(), text.size()),
             {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE});
      return;
    }
    const std::vector<int32_t> ids = someIds(1 + below(20), 250);
    expect("append", oriel_session_append(session, ids.data(), ids.size(), nullptr, nullptr),
           {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE});
  }
  ReplyOptions options() {
    ReplyOptions options = greedyOptions(1 + below(8));
    options.greedy = below(2);
    options.seed = below(1000);
    if (below(4) == 0) {  // all logits are read
      options.greedy = 0;
      options.set("top_k", 0);
      options.set("top_logprobs", 0);
    }
    return options;
  }
  void reply(oriel_session* session) {
    const ReplyOptions how = options();
    expect("reply",
           (below(2) == 0 ? oriel_chat_reply : oriel_session_generate)(session, &how, nullptr,
                                                                       nullptr, nullptr),
           {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE});
  }
  void replyToAll() {
    const ReplyOptions how = options();
    std::vector<oriel_reply> replies;
    for (uint32_t i = 0; i < kSlots; ++i) {
      oriel_reply reply = ORIEL_INIT(oriel_reply);
      reply.session = slots_[own_ + i].session;
      reply.options = &how;
      reply.generate = below(2);
      if (reply.session != nullptr) {
        replies.push_back(reply);
      }
    }
    expect("reply_many", oriel_reply_many(replies.data(), replies.size()),
           {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE});
    for (const oriel_reply& reply : replies) {
      expect("one of many", reply.status, {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE});
    }
  }
  void goBack(oriel_session* session) {
    oriel_stats stats = ORIEL_STATS_INIT;
    expect("get_stats", oriel_session_get_stats(session, &stats), {});
    switch (below(4)) {
      case 0:
        expect("mark", oriel_session_mark(session, below(2) == 0 ? "one" : "two"),
               {ORIEL_ERROR_STATE, ORIEL_ERROR_UNSUPPORTED});
        return;
      case 1:
        expect("return", oriel_session_go_back(session, ORIEL_BACK_TO_MARK, 0, "one", 0),
               {ORIEL_ERROR_ARGUMENT, ORIEL_ERROR_CONTEXT, ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE,
                ORIEL_ERROR_UNSUPPORTED});
        return;
      default:
        const uint64_t back = below(6);
        expect("rewind", goBackTo(session, stats.position > back ? stats.position - back : 0),
               {ORIEL_ERROR_CONTEXT, ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE});
    }
  }
  void saveOrRestore(oriel_session* session) {
    if (snapshot_.empty() || below(2) == 0) {
      std::vector<uint8_t> room(8 << 20);
      size_t needed = 0;
      const oriel_status status = oriel_snapshot_save(session, room.data(), room.size(), &needed);
      expect("save", status, {ORIEL_ERROR_STATE});
      if (status == ORIEL_OK) {
        snapshot_.assign(room.begin(), room.begin() + static_cast<ptrdiff_t>(needed));
      }
      return;
    }
    expect("restore", restoreFrom(session, snapshot_), {ORIEL_ERROR_STATE});
  }
  void look(oriel_session* session) {
    const float* logits = nullptr;
    size_t count = 0;
    expect("logits", oriel_session_logits(session, &logits, &count), {ORIEL_ERROR_STATE});
    double sum = 0;
    for (size_t i = 0; logits != nullptr && i < count; ++i) {
      sum += double{logits[i]};
    }
    EXPECT_EQ(sum, sum);
    const std::vector<int32_t> ids = someIds(3, 250);
    expect("evaluate",
           oriel_session_append(
               session, ids.data(), ids.size(),
               [](size_t, const float*, size_t, void*) { return 0; }, nullptr),
           {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE});
  }
  // Rebuilding from transcripts may be cancelled, or the conversations may no longer fit.
  void trim() {
    if (below(2) == 0) {
      expect("pause", oriel_pause(model_), {});
    }
    const auto level = static_cast<oriel_trim_level>(ORIEL_TRIM_SCRATCH + below(4));
    const std::string folder = testing::TempDir();
    expect("trim", oriel_trim(model_, level, level == ORIEL_TRIM_CACHE ? folder.c_str() : nullptr),
           {});
    expect("resume", oriel_resume(model_, nullptr, nullptr),
           {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_CONTEXT});
  }

  oriel_model* const model_;
  std::array<Slot, kThreads * kSlots>& slots_;
  const uint32_t own_;
  const SessionOptions options_;
  std::mt19937 random_;
  std::vector<uint8_t> snapshot_;
};

// `format`: of turns; null: the model's.
void stress(const char* path, const char* format) {
  Options options = sessionOptions(nullptr, 48, 8);
  options.sessions = kSessions;
  options.threads = 2;
  options.set("transcript", 1 << 14);
  const ModelPtr model = loadModel(path, options);
  SessionOptions chat;
  chat.chat_template = format;
  std::array<Slot, kThreads * kSlots> slots;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(
        [&, i] { Schedule(model.get(), chat, &slots, i).run(operations() / kThreads); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

RUNS_ON(kCpu);
TEST(StressSessions, every_status_is_one_of_the_contract) { stress(kTrained, nullptr); }

RUNS_ON(kCpu);
TEST(StressSessions, of_layers_that_keep_states) {
  const TemporaryModel file(randomFamily("mamba2"));
  stress(file.path().c_str(), "mistral-v1");
}

}  // namespace
}  // namespace oriel_internal::test::test_stress_sessions
