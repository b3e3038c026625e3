// Turns on a device, and common steps: without a device.
#include "exec/device_share.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace oriel_internal::test::test_device_share {
namespace {

std::atomic<uint32_t> steps;
std::atomic<uint32_t> served;
std::atomic<uint32_t> widest;
std::atomic<int> step_ms;

// Counts; every request with an odd id fails.
void runSteps(DecodeRequest* const* requests, uint32_t count) {
  ++steps;
  served += count;
  widest = std::max(widest.load(), count);
  std::this_thread::sleep_for(std::chrono::milliseconds(step_ms.load()));
  for (uint32_t i = 0; i < count; ++i) {
    requests[i]->status = requests[i]->id % 2 == 0 ? Status() : Status(ORIEL_ERROR_IO);
  }
}

class Share : public testing::Test {
 protected:
  Share() {
    steps = served = widest = 0;
    step_ms = 0;
  }
  void init(uint32_t sessions, uint32_t batch_rows) { share_.init(sessions, batch_rows, runSteps); }
  static DecodeRequest requestOf(uint32_t session, int32_t id, bool more = false) {
    DecodeRequest request;
    request.index = session;
    request.id = id;
    request.more = more;
    return request;
  }

  DeviceShare share_;
};

TEST_F(Share, is_free_where_there_is_one_session) {
  init(1, 1);
  EXPECT_FALSE(share_.several());
  const DeviceTurn one(&share_, 0);
  const DeviceTurn other(&share_, 0);
  EXPECT_TRUE(one.status().ok());
  EXPECT_TRUE(other.status().ok());
  const DeviceTurn none(nullptr, 0);
  EXPECT_TRUE(none.status().ok());
  EXPECT_EQ(0u, share_.turns());
}

// A thread never waits for itself.
TEST_F(Share, a_turn_within_a_turn_is_the_same_sessions_or_refused) {
  init(2, 2);
  const DeviceTurn turn(&share_, 0);
  ASSERT_TRUE(turn.status().ok());
  {
    const DeviceTurn again(&share_, 0);
    EXPECT_TRUE(again.status().ok());
    const DeviceTurn other(&share_, 1);
    EXPECT_EQ(ORIEL_ERROR_STATE, other.status().code());
  }
  EXPECT_EQ(1u, share_.turns());
}

TEST_F(Share, nobody_is_inside_at_the_same_time) {
  init(4, 4);
  std::atomic<int> inside{0};
  int unguarded = 0;
  std::vector<std::thread> threads;
  for (uint32_t s = 0; s < 4; ++s) {
    threads.emplace_back([&, s] {
      for (int i = 0; i < 500; ++i) {
        const DeviceTurn turn(&share_, s,
                              i % 3 == 0 ? DeviceShare::Claim::kBrief : DeviceShare::Claim::kStep);
        EXPECT_EQ(0, inside.fetch_add(1));
        ++unguarded;
        EXPECT_EQ(1, inside.fetch_sub(1));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(2000, unguarded);
  EXPECT_EQ(2000u, share_.turns());
}

TEST_F(Share, requests_of_one_thread_are_one_step_each_with_its_own_end) {
  init(4, 4);
  DecodeRequest requests[] = {requestOf(0, 2), requestOf(1, 3), requestOf(3, 4)};
  share_.decode(requests, 3);
  EXPECT_EQ(1u, steps);
  EXPECT_EQ(3u, widest);
  EXPECT_TRUE(requests[0].status.ok());
  EXPECT_EQ(ORIEL_ERROR_IO, requests[1].status.code());
  EXPECT_TRUE(requests[2].status.ok());
}

TEST_F(Share, a_step_takes_no_more_than_it_has_room_for) {
  init(5, 2);
  std::vector<DecodeRequest> requests;
  for (uint32_t s = 0; s < 5; ++s) {
    requests.push_back(requestOf(s, 2));
  }
  share_.decode(requests.data(), 5);
  EXPECT_EQ(3u, steps);
  EXPECT_EQ(2u, widest);
}

// While one thread has the device requests gather; the next one runs them all.
TEST_F(Share, who_waits_together_goes_together) {
  init(4, 4);
  std::vector<std::thread> threads;
  {
    const DeviceTurn turn(&share_, 3);
    for (uint32_t s = 0; s < 3; ++s) {
      threads.emplace_back([&, s] {
        DecodeRequest request = requestOf(s, 2);
        share_.decode(&request, 1);
        EXPECT_TRUE(request.status.ok());
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(1u, steps);
  EXPECT_EQ(3u, widest);
}

// With steps of 1.6 s, decode() waits 200 ms for a session that is choosing a token, and never for a session that left.
TEST_F(Share, between_two_batches_of_a_long_prompt_every_other_session_gets_a_token) {
  constexpr uint32_t kOthers = 7;
  init(1 + kOthers, 1 + kOthers);
  std::atomic<bool> reading{true};
  std::vector<std::thread> threads;
  for (uint32_t s = 1; s <= kOthers; ++s) {
    threads.emplace_back([&, s] {
      while (reading) {
        DecodeRequest request = requestOf(s, 2);
        share_.decode(&request, 1);
      }
    });
  }
  for (uint32_t batch = 0; batch < 100; ++batch) {
    const DeviceTurn turn(&share_, 0);
    EXPECT_GE(served, kOthers * batch);
    while (share_.waiting() < kOthers) {
      std::this_thread::yield();
    }
  }
  reading = false;
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(Share, waits_a_little_for_who_is_choosing) {
  using Clock = std::chrono::steady_clock;
  init(2, 2);
  step_ms = 1600;
  DecodeRequest both[] = {requestOf(0, 2, true), requestOf(1, 2, true)};
  share_.decode(both, 2);
  step_ms = 0;
  const auto soloMs = [&] {
    const Clock::time_point begin = Clock::now();
    DecodeRequest solo = requestOf(0, 2, true);
    share_.decode(&solo, 1);
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  EXPECT_GE(soloMs(), 195);
  EXPECT_LT(soloMs(), 195) << "who did not come is not waited for again";
  step_ms = 1600;
  share_.decode(both, 2);
  step_ms = 0;
  share_.leave(1);
  EXPECT_LT(soloMs(), 195) << "who left is not waited for";
}

}  // namespace
}  // namespace oriel_internal::test::test_device_share
