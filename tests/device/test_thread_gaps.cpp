// Other threads' calls between two steps of a call, with these gaps widened (base/test_gap.h).
#define ORIEL_TEST_GAPS 1  // as in the library linked to the tests
#include "base/test_gap.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "api/api.h"
#include "oriel/advanced.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/target.h"
#include "support/tiers.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace oriel_internal::test::test_thread_gaps {
namespace {

/// During its lifetime `widen` is called at each gap.
class Widened {
 public:
  explicit Widened(void (*widen)()) { test_gap.store(widen); }
  ~Widened() { test_gap.store(nullptr); }
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;
};

// Lets other threads run: not at all, or one to four times, by a per-thread generator.
void letOthersRun() {
  thread_local uint32_t random =
      static_cast<uint32_t>(std::hash<std::thread::id>()(std::this_thread::get_id()) % 65521 + 1);
  random = random * 1664525u + 1013904223u;
  const uint32_t choice = random >> 24;
  for (uint32_t i = 0; choice >= 192 && i <= choice % 4; ++i) {
    std::this_thread::yield();
  }
}

uint64_t positionOf(const oriel_session* session) {
  oriel_stats stats = ORIEL_STATS_INIT;
  while (oriel_session_get_stats(session, &stats) == ORIEL_ERROR_STATE) {
    std::this_thread::yield();  // another thread's call
  }
  return stats.position;
}

// Calls on the session from a thread that should not make them: most are refused.
struct Intruders {
  explicit Intruders(oriel_session* session) {
    for (std::thread& thread : threads) {
      thread = std::thread([this, session] {
        while (!stop.load()) {
          if (rest.load()) {  // otherwise other threads may starve on a busy machine
            std::this_thread::yield();
            continue;
          }
          const float* logits = nullptr;
          size_t count = 0;
          const oriel_status status = oriel_session_logits(session, &logits, &count);
          wrong = wrong || (status != ORIEL_OK && status != ORIEL_ERROR_STATE);
          oriel_stats stats = ORIEL_STATS_INIT;
          (void)oriel_session_get_stats(session, &stats);
        }
      });
    }
  }
  ~Intruders() {
    stop = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  Intruders(const Intruders&) = delete;
  Intruders& operator=(const Intruders&) = delete;

  std::atomic<bool> stop{false};
  std::atomic<bool> rest{false};
  std::atomic<bool> wrong{false};
  std::array<std::thread, 3> threads;
};

RUNS_ON(kCpu);
TEST(ThreadGaps, no_conversation_is_lost_in_many_rounds_of_trim_and_resume) {
  const uint32_t rounds = allCases() ? 1000 : 250;
  Options options = cpuOptions(nullptr);
  options.threads = 1;
  options.set("transcript", 1 << 14);
  const ModelPtr model_owner = loadModel(kRandom, options);
  oriel_model* const model = model_owner.get();
  SessionOptions chats;
  chats.chat_template = "mistral-v1";
  oriel_session* session = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(model, &chats, &session));
  const SessionPtr owner(session);
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session, "user", "One", 3));
  const auto round = [&] {
    const oriel_status trimmed = oriel_trim(model, ORIEL_TRIM_ALL, nullptr);
    const oriel_status resumed = oriel_resume(model, nullptr, nullptr);
    return trimmed == ORIEL_OK && resumed == ORIEL_OK;
  };
  ASSERT_TRUE(round());
  const uint64_t tokens = positionOf(session);
  ASSERT_LT(0u, tokens);
  const Widened widened(letOthersRun);
  Intruders intruders(session);
  for (uint32_t i = 0; i < rounds; ++i) {
    ASSERT_TRUE(round()) << "round " << i;
    intruders.rest = true;
    ASSERT_EQ(tokens, positionOf(session)) << "round " << i;
    intruders.rest = false;
  }
  EXPECT_FALSE(intruders.wrong.load());
}

#if defined(__linux__) && defined(ORIEL_CPU_SIMD)
/// A worker that is held between two sections of a run until the run ends. Then the pages of the step block must not be
/// read.
struct LateWorker {
  Executor* executor = nullptr;
  size_t block_bytes = 0;
  std::thread::id caller;
  std::atomic<bool> held{false};
  std::atomic<bool> released{false};
  uint32_t rounds = 0;

  static LateWorker* late;
  static void widen() {
    LateWorker& self = *late;
    if (std::this_thread::get_id() == self.caller) {
      // Gives the worker time to arrive.
      for (uint32_t i = 0; i < 20 && !self.held.load(); ++i) {
        std::this_thread::yield();
      }
      return;
    }
    self.held = true;
    while (!self.released.load()) {
      std::this_thread::yield();
    }
  }
  static int onToken(const oriel_token_event*, void*) {
    LateWorker& self = *late;
    if (!self.held.load()) {
      return 0;
    }
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t block = reinterpret_cast<uintptr_t>(self.executor->step());
    const uintptr_t begin = block / page * page;
    void* const pages = reinterpret_cast<void*>(begin);
    const size_t bytes = block + self.block_bytes - begin;
    EXPECT_EQ(0, mprotect(pages, bytes, PROT_NONE));
    self.released = true;
    (void)self.executor->giveBack(0);  // waits until the worker has finished
    EXPECT_EQ(0, mprotect(pages, bytes, PROT_READ | PROT_WRITE));
    self.held = false;
    self.released = false;
    return ++self.rounds == 20 ? 1 : 0;
  }
};
LateWorker* LateWorker::late = nullptr;

RUNS_ON(kCpu);
TEST(ThreadGaps, a_late_worker_does_not_read_the_block_that_is_being_filled) {
  const TemporaryModel file(randomFamily("mamba2"));
  Options options = cpuOptions(nullptr);
  options.threads = 2;
  LateWorker late;  // before the model: its worker may be held until the end
  const Loaded loaded = load(file.path(), options);
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(4, 250)));
  late.executor = loaded.model->executor;
  late.block_bytes = static_cast<size_t>(loaded.model->plan.step.size_bytes);
  late.caller = std::this_thread::get_id();
  LateWorker::late = &late;
  const Widened widened(LateWorker::widen);
  ReplyOptions forever = greedyOptions(UINT32_MAX);
  forever.set("ignore_stop", true);
  EXPECT_EQ(ORIEL_OK, oriel_session_generate(loaded.session.get(), &forever, LateWorker::onToken,
                                             nullptr, nullptr));
  late.released = true;
  EXPECT_EQ(20u, late.rounds);
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_thread_gaps
