// The thread team: every piece once, synchronised, and never waiting for an absent thread.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/pool.h"
#include "exec/guard.h"
#include "exec/running_call.h"
#include "os/os.h"
#include "plan/op.h"

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

namespace oriel_internal::test::test_pace {

// How much work goes into a submission.

namespace {

/// A device that does `rate` of work in a millisecond, given `total` over and over in submissions of no
/// less than `piece`; the longest of the last round, in milliseconds.
double longest(double rate, double total, double piece, Pace* pace, int* submissions) {
  double most = 0;
  for (int round = 0; round < 20; ++round) {
    most = 0;
    *submissions = 0;
    for (double left = total; left > 0; ++*submissions) {
      double work = 0;
      while (left > 0 && (work == 0 || work + piece <= pace->work())) {
        work += piece;
        left -= piece;
      }
      pace->took(work, work / rate);
      most = std::max(most, work / rate);
    }
  }
  return most;
}

TEST(Pace, settles_between_half_and_all_of_the_time_a_submission_may_take) {
  for (const double rate : {1e5, 1e6, 7e6, 1e8}) {
    SCOPED_TRACE(rate);
    Pace pace;
    int submissions = 0;
    const double ms = longest(rate, 1000 * rate, 2 * rate, &pace, &submissions);
    EXPECT_LE(ms, kSubmissionMs);
    EXPECT_GE(ms, kSubmissionMs / 2 - 2);
  }
}

TEST(Pace, gives_a_fast_device_everything_at_once) {
  Pace pace;
  int submissions = 0;
  longest(1e9, 7e9, 7e7, &pace, &submissions);
  EXPECT_EQ(1, submissions);
}

TEST(Pace, recovers_from_one_that_was_late_and_from_pieces_that_are_too_long_by_themselves) {
  Pace pace;
  int submissions = 0;
  longest(7e6, 7e9, 1e7, &pace, &submissions);
  const double settled = pace.work();
  pace.took(settled, 4000);
  EXPECT_GE(pace.work(), settled / 2);
  for (int i = 0; i < 100; ++i) {
    pace.took(7e8, 100);  // a piece
  }
  EXPECT_LE(longest(7e6, 7e9, 1e7, &pace, &submissions), kSubmissionMs);
  EXPECT_GE(pace.work(), settled / 2);
}

TEST(OpWork, of_a_product_is_its_multiplications_and_of_attention_what_is_seen) {
  Op op;
  op.kind = OpKind::kMatmul;
  op.push.matmul.rows = 1536;
  op.push.matmul.units = 18;  // 576 columns
  EXPECT_NEAR(opWork(op, 64).most(), 1536.0 * 576 * 64, 1e5);
  EXPECT_NEAR(opWork(op, 1).most(), 1536.0 * 576, 1e5);

  Op attention;
  attention.kind = OpKind::kAttention;
  attention.push.attention = {};
  attention.push.attention.n_heads = 9;
  attention.push.attention.head_dim = 64;
  attention.push.attention.sinks = 4;
  attention.push.attention.ring = 96;
  attention.push.attention.view = 2;
  // A key and a value of each token.
  const OpWork work = opWork(attention, 8);
  EXPECT_NEAR(work.at(50), 8.0 * 9 * 64 * 2 * 50, 1e5);
  EXPECT_NEAR(work.most(), 8.0 * 9 * 64 * 2 * 100, 1e5);
  EXPECT_EQ(2u, work.view);

  // Once, however many rows there are.
  Op top;
  top.kind = OpKind::kTopBlocks;
  top.push.top = {50000, 1000, 0};
  EXPECT_EQ(opWork(top, 1).most(), opWork(top, 64).most());
}

}  // namespace
}  // namespace oriel_internal::test::test_pace

namespace oriel_internal::test::test_running_call {

// Limits on heat: a session rests after its work, and a cancel ends the rest.

namespace {

TEST(RunningCall, without_limits_it_never_waits) {
  const SessionContext context;
  RunningCall call(context);
  call.begin();
  call.worked(1e6);
  call.wrote();
  EXPECT_FALSE(call.isHot());
}

TEST(RunningCall, rests_as_long_as_the_duty_cycle_asks_for) {
  SessionContext context;
  context.duty = 0.25;
  RunningCall call(context);
  call.begin();
  const double begin = nowMs();
  call.worked(10);
  EXPECT_TRUE(call.isHot());
  call.coolDown();
  EXPECT_GE(nowMs() - begin, 30);
  EXPECT_FALSE(call.isHot());
}

TEST(RunningCall, tokens_come_no_faster_than_the_limit) {
  SessionContext context;
  context.max_tokens_per_s = 100;
  RunningCall call(context);
  call.begin();
  const double begin = nowMs();
  for (int i = 0; i < 6; ++i) {
    call.wrote();
    call.coolDown();
  }
  EXPECT_GE(nowMs() - begin, 60);
}

TEST(RunningCall, a_cancel_ends_the_rest) {
  SessionContext context;
  context.duty = 0.01;
  RunningCall call(context);
  call.begin();
  call.worked(1e9);  // rests for years
  EXPECT_TRUE(call.isHot());
  call.cancel();
  call.coolDown();
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, call.check().code());
}

}  // namespace
}  // namespace oriel_internal::test::test_running_call

namespace oriel_internal::test::test_guard {

// The guard of a model: allowed, waiting and refused calls.

namespace {

using Answer = Guard::Answer;
using Phase = Guard::Phase;
using Work = Guard::Work;

constexpr uint64_t kFirst = Guard::bit(0);
constexpr uint64_t kSecond = Guard::bit(1);

void waitFor(const std::atomic<bool>& flag) {
  while (!flag.load()) {
    std::this_thread::yield();
  }
}

Answer answerOf(Guard* guard, Work work, uint64_t sessions = 0) {
  return Guard::Call(guard, work, sessions).answer();
}

/// Threads with control at the same time; more than one is a fault.
struct Holders {
  std::atomic<uint32_t> now{0};
  std::atomic<uint32_t> most{0};
  void hold(uint32_t yields) {
    most = std::max(most.load(), ++now);
    for (uint32_t i = 0; i < yields; ++i) {
      std::this_thread::yield();
    }
    --now;
  }
};

TEST(Guard, a_thread_inside_a_call_may_read_and_is_refused_everything_else) {
  Guard guard;
  for (const Work work : {Work::kReads, Work::kHost, Work::kDevice, Work::kControls}) {
    const Guard::Call call(&guard, work, work != Work::kReads ? kFirst : 0);
    ASSERT_TRUE(call.entered());
    for (const Work inner : {Work::kHost, Work::kDevice, Work::kControls}) {
      EXPECT_EQ(Answer::kInside, answerOf(&guard, inner));
      EXPECT_EQ(Answer::kInside, answerOf(&guard, inner, kSecond));
      EXPECT_EQ(work != Work::kReads ? Answer::kOwn : Answer::kInside,
                answerOf(&guard, inner, kFirst));
    }
    EXPECT_EQ(Answer::kEntered, answerOf(&guard, Work::kReads));
    EXPECT_EQ(Answer::kEntered, answerOf(&guard, Work::kReads, kFirst | kSecond));
    EXPECT_EQ(Answer::kInside, guard.mayEnd());
  }
  EXPECT_EQ(Answer::kEntered, guard.mayEnd());
}

// Otherwise an app whose log repeats the wrong call would never return.
TEST(Guard, a_refusal_is_told_once) {
  Guard guard;
  const Guard::Call call(&guard, Work::kDevice, kFirst);
  const Guard::Call telling(&guard, Work::kRefuses);
  EXPECT_TRUE(telling.entered());
  EXPECT_FALSE(Guard::Call(&guard, Work::kRefuses).entered());
  std::thread([&] { EXPECT_TRUE(Guard::Call(&guard, Work::kRefuses).entered()); }).join();
}

TEST(Guard, a_session_has_one_call_and_a_call_has_all_its_sessions_or_none) {
  Guard guard;
  const Guard::Call call(&guard, Work::kDevice, kFirst);
  std::thread([&] {
    EXPECT_EQ(Answer::kBusy, answerOf(&guard, Work::kDevice, kFirst));
    EXPECT_EQ(Answer::kBusy, answerOf(&guard, Work::kReads, kFirst));
    EXPECT_EQ(Answer::kBusy, answerOf(&guard, Work::kControls, kFirst));
    EXPECT_EQ(Answer::kBusy, answerOf(&guard, Work::kDevice, kFirst | kSecond));
    EXPECT_EQ(Answer::kEntered, answerOf(&guard, Work::kDevice, kSecond));
  }).join();
  EXPECT_EQ(1u, guard.takenCount());
}

TEST(Guard, a_call_waits_for_threads_that_read_its_session_and_no_further_one_does) {
  Guard guard;
  std::atomic<bool> entered{false};
  std::thread other;
  {
    const Guard::Call look(&guard, Work::kReads, kFirst);
    other = std::thread([&] {
      const Guard::Call call(&guard, Work::kDevice, kFirst);
      entered = true;
      EXPECT_TRUE(call.entered());
    });
    while (!entered.load() && answerOf(&guard, Work::kReads, kFirst) != Answer::kBusy) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(entered.load());
  }
  other.join();
  EXPECT_TRUE(entered.load());
}

TEST(Guard, control_waits_for_a_call_and_lets_none_begin_while_others_read) {
  Guard guard;
  std::atomic<bool> inside{false};
  std::atomic<bool> ends{false};
  std::thread caller([&] {
    const Guard::Call call(&guard, Work::kDevice, kFirst);
    inside = true;
    waitFor(ends);
  });
  waitFor(inside);
  std::atomic<bool> closed{false};
  std::thread controller([&] {
    const Guard::Call control(&guard, Work::kControls);
    guard.close(Phase::kStopped);
    closed = true;
    EXPECT_FALSE(guard.hasDeviceCalls());
    guard.open();
  });
  while (guard.phase() == Phase::kOpen) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Answer::kStopped, answerOf(&guard, Work::kDevice, kSecond));
  EXPECT_EQ(Answer::kEntered, answerOf(&guard, Work::kReads, kSecond));
  EXPECT_EQ(Answer::kEntered, answerOf(&guard, Work::kHost, kSecond));
  EXPECT_FALSE(closed.load());
  ends = true;
  caller.join();
  controller.join();
  EXPECT_EQ(Phase::kOpen, guard.phase());
}

TEST(Guard, calls_that_may_go_on_are_waited_for_before_they_wake) {
  for (int i = 0; i < 200; ++i) {
    Guard guard;
    std::atomic<bool> entered{false};
    std::atomic<bool> over{false};
    std::thread thread([&] {
      const Guard::Call call(&guard, Work::kDevice, kFirst);
      entered = true;
      while (!guard.wantsRest()) {
        std::this_thread::yield();
      }
      guard.rest([](const void*) { return false; }, nullptr);
      over = true;
    });
    waitFor(entered);
    {
      const Guard::Call control(&guard, Work::kControls);
      guard.close(Phase::kPaused);
      EXPECT_FALSE(guard.wantsRest()) << "this thread controls";
      EXPECT_TRUE(guard.hasDeviceCalls());
      guard.open();
      guard.close(Phase::kStopped);
      EXPECT_TRUE(over.load());
      EXPECT_FALSE(guard.hasDeviceCalls());
      guard.open();
    }
    thread.join();
  }
}

TEST(Guard, a_pause_goes_on_when_memory_leaves) {
  Guard guard;
  const Guard::Call control(&guard, Work::kControls);
  guard.close(Phase::kPaused);
  guard.close(Phase::kStopped);
  EXPECT_EQ(Phase::kPaused, guard.phase());
  guard.open();
  EXPECT_EQ(Phase::kOpen, guard.phase());
}

TEST(Guard, a_resting_call_that_is_cancelled_goes_on_once_nobody_controls) {
  Guard guard;
  std::atomic<bool> cancelled{false};
  std::atomic<bool> over{false};
  std::thread thread([&] {
    const Guard::Call call(&guard, Work::kDevice, kFirst);
    while (!guard.wantsRest()) {
      std::this_thread::yield();
    }
    guard.rest([](const void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); },
               &cancelled);
    over = true;
  });
  {
    const Guard::Call control(&guard, Work::kControls);
    while (!guard.hasDeviceCalls()) {
      std::this_thread::yield();
    }
    guard.close(Phase::kPaused);
    cancelled = true;
    EXPECT_FALSE(over.load());
  }
  thread.join();
  EXPECT_EQ(Phase::kPaused, guard.phase());
}

TEST(Guard, one_call_controls_at_a_time) {
  Guard guard;
  Holders holders;
  std::array<std::thread, 3> threads;
  for (uint32_t t = 0; t < threads.size(); ++t) {
    threads[t] = std::thread([&guard, &holders, t] {
      for (uint32_t i = 0; i < 100; ++i) {
        if (i % 2 == 0) {
          const Guard::Call control(&guard, Work::kControls);
          ASSERT_TRUE(control.entered());
          EXPECT_EQ(Answer::kInside, answerOf(&guard, Work::kControls));
          guard.close(Phase::kStopped);
          holders.hold(3);
          guard.open();
          continue;
        }
        Guard::Call call(&guard, Work::kHost, Guard::bit(t));
        ASSERT_EQ(Answer::kEntered, call.become(Work::kControls));
        holders.hold(3);
        ASSERT_EQ(Answer::kEntered, call.become(Work::kHost));
        // Another thread may have stopped calls on the device.
        const Answer answer = call.become(Work::kDevice);
        EXPECT_TRUE(answer == Answer::kEntered || answer == Answer::kStopped);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(1u, holders.most.load());
}

TEST(Guard, sessions_are_free_taken_and_free_again) {
  Guard guard;
  auto* const handle = reinterpret_cast<oriel_session*>(&guard);
  {
    Guard::Call call(&guard, Work::kDevice);
    EXPECT_TRUE(call.takeFree(3));
    EXPECT_FALSE(call.takeFree(3));
    EXPECT_FALSE(call.take(3, 0)) << "it is busy";
    guard.setHandle(3, handle);
  }
  EXPECT_EQ(handle, guard.entry(3).handle);
  EXPECT_EQ(1u, guard.takenCount());
  EXPECT_EQ(Answer::kUsed, guard.mayEnd());
  Guard::Call control(&guard, Work::kControls);
  EXPECT_FALSE(control.takeFree(3));
  EXPECT_TRUE(control.take(3, 0));
  EXPECT_EQ(Answer::kOwn, answerOf(&guard, Work::kDevice, Guard::bit(3)));
  control.giveBack(3);
  EXPECT_EQ(nullptr, guard.entry(3).call);
  guard.setHandle(3, nullptr);
  EXPECT_EQ(0u, guard.takenCount());
}

}  // namespace
}  // namespace oriel_internal::test::test_guard
