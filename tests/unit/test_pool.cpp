// The thread team: every piece once, synchronised, and never waiting for an absent thread.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "cpu/pool.h"

#ifdef ORIEL_CPU_SIMD

namespace oriel_internal::test::test_pool {
namespace {

constexpr uint32_t kPieces = 37;
constexpr uint32_t kRounds = 200;

struct Job {
  Pool* pool = nullptr;
  std::vector<uint32_t> done;  // how often each piece was done in this round; not atomic on purpose
  std::atomic<uint32_t> wrong{0};
  std::chrono::microseconds pause{0};
};

// Each thread does pieces, waits, and checks all the others' results.
void rounds(void* user, uint32_t thread) {
  Job* job = static_cast<Job*>(user);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    for (uint32_t i = job->pool->claim(thread); i < kPieces; i = job->pool->claim(thread)) {
      ++job->done[i];
      if (job->pause.count() != 0 && i == round % kPieces) {
        std::this_thread::sleep_for(job->pause);
      }
    }
    job->pool->sync(thread);
    if (job->pool->present(thread)) {
      for (const uint32_t times : job->done) {
        job->wrong += times != round ? 1 : 0;
      }
    }
    job->pool->sync(thread);
  }
}

TEST(Pool, every_piece_is_done_once_and_seen_by_all_after_a_sync) {
  for (const uint32_t threads : {1u, 2u, 3u, 7u}) {
    Pool pool;
    pool.start(threads, false);
    ASSERT_EQ(threads, pool.size());
    Job job;
    job.pool = &pool;
    for (int run = 0; run < 3; ++run) {
      job.done.assign(kPieces, 0);
      pool.run(&rounds, &job);
      EXPECT_EQ(0u, job.wrong.load()) << threads << " threads";
      EXPECT_EQ(std::vector<uint32_t>(kPieces, kRounds), job.done);
    }
  }
}

TEST(Pool, who_waits_long_sleeps_and_is_woken) {
  Pool pool;
  pool.start(3, false);
  Job job;
  job.pool = &pool;
  // Longer than anyone spins, within a run and between runs.
  job.pause = std::chrono::milliseconds(2);
  for (int run = 0; run < 2; ++run) {
    job.done.assign(kPieces, 0);
    pool.run(&rounds, &job);
    EXPECT_EQ(0u, job.wrong.load());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(Pool, ends_with_or_without_having_worked) {
  { Pool pool; }
  for (int i = 0; i < 50; ++i) {
    Pool pool;
    pool.start(4, true);
    if (i % 2 == 0) {
      pool.run([](void*, uint32_t) {}, nullptr);
    }
  }
}

TEST(Pool, threads_are_numbered_and_no_more_than_there_is_room_for) {
  Pool pool;
  pool.start(1000, false);
  EXPECT_LE(pool.size(), Pool::kMaxThreads);
  std::vector<std::atomic<uint32_t>> seen(Pool::kMaxThreads);
  pool.run(
      [](void* user, uint32_t thread) {
        ++(*static_cast<std::vector<std::atomic<uint32_t>>*>(user))[thread];
      },
      &seen);
  EXPECT_EQ(1u, seen[0].load());
  for (uint32_t i = 1; i < seen.size(); ++i) {
    EXPECT_LE(seen[i].load(), i < pool.size() ? 1u : 0u);
  }
}

// A run of a given length that may end early, on numbers that only participants may touch.
struct Short {
  Pool* pool = nullptr;
  uint32_t n_rounds = 0;
  std::atomic<uint32_t> stop_after{UINT32_MAX};
  std::vector<uint64_t> sums;  // not atomic on purpose
};

void shortRun(void* user, uint32_t thread) {
  Short* run = static_cast<Short*>(user);
  Pool* pool = run->pool;
  const uint32_t n_rounds = run->n_rounds;
  const size_t n_pieces = run->sums.size();
  for (uint32_t round = 1; round <= n_rounds; ++round) {
    for (uint32_t i = pool->claim(thread); i < n_pieces; i = pool->claim(thread)) {
      run->sums[i] += round;
    }
    if (thread == 0 && round == n_rounds / 2) {
      run->stop_after.store(round);
    }
    pool->sync(thread);
    if (run->stop_after.load() <= round) {
      return;
    }
  }
}

TEST(Pool, more_threads_than_processors_do_every_piece_of_many_short_runs_once) {
  Pool pool;
  pool.start(13, false);
  Short run;
  run.pool = &pool;
  for (uint32_t n = 1; n <= 2000; ++n) {
    run.n_rounds = n % 11;
    run.stop_after = UINT32_MAX;
    run.sums.assign(n % 7, 0);
    pool.run(&shortRun, &run);
    const uint64_t rounds = run.n_rounds < 2 ? run.n_rounds : run.n_rounds / 2;
    ASSERT_EQ(std::vector<uint64_t>(n % 7, rounds * (rounds + 1) / 2), run.sums) << n;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_pool

#endif
