// The guard of a model: allowed, waiting and refused calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "exec/guard.h"

namespace oriel_internal::test::test_guard {
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
