// Random schedules of all session calls on several threads: every status must be in the call's contract. Meant for
// sanitizers, which detect data races.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include "oriel/advanced.h"
#include "support/random_families.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_stress_sessions {
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
