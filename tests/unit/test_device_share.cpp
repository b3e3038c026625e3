// Turns on a device, and common steps: without a device.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "exec/device_share.h"
#include "exec/expert_cache.h"
#include "plan/weight_placement.h"

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

namespace oriel_internal::test_expert_cache {

// Experts in slots: every wanted expert is computed in exactly one round, from its own weights; the choice to keep
// depends only on use.

namespace {

constexpr uint32_t kLayers = 2;
constexpr uint32_t kExperts = 7;
constexpr uint32_t kUsed = 2;
constexpr uint32_t kChunk = 5;
constexpr uint32_t kRows = 20;  // not whole groups
constexpr uint32_t kCols = 32;

/// A plan with only experts on file; expert e of part p of layer l has the value 100 l + 10 p + e everywhere.
class ExpertSlots : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    plan_.on_file.expert_slots = GetParam();
    plan_.chunk_tokens = kChunk;
    plan_.n_expert_layers = kLayers;
    plan_.expert_layers = layers_;
    plan_.slots.size_bytes = 4 * kExperts;
    uint64_t at = 0;
    for (uint32_t l = 0; l < kLayers; ++l) {
      layers_[l].count = kExperts;
      layers_[l].used = kUsed;
      for (uint32_t p = 0; p < 3; ++p) {
        ExpertsOnFile::Part& part = layers_[l].parts[p];
        part.tensor_offset = file_.size() * sizeof(float);
        part.tensor_type = fileTypeOf(WeightType::kF32);
        part.type = WeightType::kF32;
        part.rows = kRows;
        part.cols = kCols;
        const auto bytes = static_cast<uint32_t>(part.slotBytes() * GetParam());
        part.slots = {ArenaKind::kWeights, 0, at, bytes};
        at += bytes;
        for (uint32_t e = 0; e < kExperts; ++e) {
          file_.insert(file_.end(), size_t{kRows} * kCols, value(l, p, e));
        }
      }
    }
    weight_bytes_ = alignUp(at, kArenaGranularity);
    plan_.weight_segments = 1;
    plan_.weight_segment_bytes = &weight_bytes_;
    plan_.cache_bytes = plan_.activation_bytes = kArenaGranularity;
    plan_.io_bytes = 2 * alignUp(weightGeometry(WeightType::kF32, kCols).groupBytes(), 4096);
    plan_.upload = {ArenaKind::kIo, 0, 0, static_cast<uint32_t>(plan_.io_bytes)};
    source_.memory = reinterpret_cast<const uint8_t*>(file_.data());
    options_.allocator = &defaultAllocator();
    object_.resize(kExecutorObjectBytes / sizeof(uint64_t));
    ASSERT_TRUE(createReferenceExecutor(plan_, options_, {object_.data(), nullptr}, &memory_).ok());
    cache_ = std::make_unique<ExpertCache>(plan_, source_, Log());
    Arena measuring;
    cache_->init(&measuring);
    block_.resize(measuring.used() / 8 + 2);
    Arena arena(block_.data(), measuring.used());
    cache_->init(&arena);
    ASSERT_FALSE(arena.exhausted());
    ASSERT_EQ(measuring.used(), arena.used());
  }

  void TearDown() override { destroyExecutor(memory_); }

  static float value(uint32_t layer, uint32_t part, uint32_t expert) {
    return static_cast<float>(100 * layer + 10 * part + expert);
  }

  /// Runs a layer's rounds for a step; returns the round of each expert.
  void step(uint32_t layer, const std::set<uint32_t>& wanted) {
    std::vector<uint32_t> routes(kRouteParts * kChunk * kUsed + kExperts + 1);
    uint32_t* const begin = &routes[kRouteParts * kChunk * kUsed];
    for (uint32_t e = 0; e < kExperts; ++e) {
      begin[e + 1] = begin[e] + (wanted.count(e) != 0 ? 1 : 0);
    }
    std::vector<uint32_t> computed(kExperts);
    const auto rounds = static_cast<uint32_t>(ceilDiv(kExperts, GetParam()));
    for (uint32_t round = 0; round < rounds; ++round) {
      std::vector<uint32_t> slots(kExperts, 99);
      ASSERT_TRUE(cache_->fetch({layer, round}, 1, routes.data(), slots.data(), memory_).ok());
      std::set<uint32_t> taken;
      for (uint32_t e = 0; e < kExperts; ++e) {
        if (slots[e] == kNoSlot) {
          continue;
        }
        ASSERT_LT(slots[e], GetParam());
        EXPECT_TRUE(taken.insert(slots[e]).second) << "two experts in a slot";
        EXPECT_EQ(1u, wanted.count(e));
        ++computed[e];
        for (uint32_t p = 0; p < 3; ++p) {
          expectInSlot(layer, p, e, slots[e]);
        }
      }
    }
    for (uint32_t e = 0; e < kExperts; ++e) {
      EXPECT_EQ(wanted.count(e), computed[e]) << "expert " << e;
    }
  }

  void expectInSlot(uint32_t layer, uint32_t p, uint32_t expert, uint32_t slot) {
    const ExpertsOnFile::Part& part = layers_[layer].parts[p];
    const void* piece = nullptr;
    ASSERT_TRUE(memory_->read(part.slots, slot * part.slotBytes(), part.slotBytes(), &piece).ok());
    const float* const values = static_cast<const float*>(piece);
    const uint64_t count = part.slotBytes() / sizeof(float);
    const auto of_expert = std::count(values, values + count, value(layer, p, expert));
    // Rows that fill the last group up are zeros.
    const bool zeros_are_its_own = value(layer, p, expert) == 0;
    EXPECT_EQ(zeros_are_its_own ? count : uint64_t{kRows} * kCols, static_cast<uint64_t>(of_expert))
        << "layer " << layer << " part " << p << " expert " << expert;
  }

  Plan plan_;
  ExpertsOnFile layers_[kLayers];
  std::vector<float> file_;
  uint64_t weight_bytes_ = 0;
  WeightSource source_;
  ExecutorOptions options_;
  std::vector<uint64_t> object_;
  Executor* memory_ = nullptr;  ///< the reference executor's memory has no special layout
  std::unique_ptr<ExpertCache> cache_;
  std::vector<uint64_t> block_;
};

TEST_P(ExpertSlots, compute_what_is_wanted_once_from_its_own_weights) {
  uint32_t state = 1;
  for (int i = 0; i < 300; ++i) {
    state = state * 1664525u + 1013904223u;
    const uint32_t most = i % 3 == 0 ? kUsed : kExperts;
    std::set<uint32_t> wanted;
    for (uint32_t n = 0; n <= (state >> 20) % most; ++n) {
      state = state * 1664525u + 1013904223u;
      wanted.insert((state >> 16) % kExperts);
    }
    step(i % 2, wanted);
  }
}

// The expert with the lowest count makes room; on a tie, the expert whose last use is oldest. Every step lowers all counts
// by 1 %.
TEST_P(ExpertSlots, keep_what_is_used_often_and_lately) {
  float counts[kExperts] = {};
  std::map<uint32_t, uint64_t> there;  // with the time of the last use
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t now = 0;
  uint32_t state = 7;
  for (int i = 0; i < 300; ++i) {
    std::set<uint32_t> wanted;
    while (wanted.size() < kUsed) {
      state = state * 1664525u + 1013904223u;
      wanted.insert((state >> 16) % kExperts);
    }
    for (uint32_t e = 0; e < kExperts; ++e) {
      counts[e] = 0.99f * counts[e] + static_cast<float>(wanted.count(e));
    }
    std::set<uint32_t> missing;
    for (const uint32_t e : wanted) {  // cached experts are used first
      if (there.count(e) != 0) {
        there[e] = ++now;
        ++hits;
      } else {
        missing.insert(e);
      }
    }
    for (const uint32_t e : missing) {
      if (there.size() == GetParam()) {
        const auto least = std::min_element(there.begin(), there.end(), [&](auto& x, auto& y) {
          const bool used_x = wanted.count(x.first) != 0;
          const bool used_y = wanted.count(y.first) != 0;
          return std::make_tuple(used_x, counts[x.first], x.second) <
                 std::make_tuple(used_y, counts[y.first], y.second);
        });
        there.erase(least);
      }
      there[e] = ++now;
      ++misses;
    }
    step(0, wanted);
    ASSERT_EQ(hits, cache_->hits()) << "step " << i;
    ASSERT_EQ(misses, cache_->misses()) << "step " << i;
  }
  EXPECT_GT(misses, 0u);
}

// Experts that all steps use stay, however many others pass through.
TEST_P(ExpertSlots, keep_the_hot_expert) {
  if (GetParam() <= kUsed) {
    GTEST_SKIP() << "a step takes all slots";
  }
  for (uint32_t i = 0; i < 40; ++i) {
    step(0, {0, 1});
  }
  const uint64_t read = cache_->misses();
  for (uint32_t i = 0; i < 20; ++i) {
    step(0, {2 + i % 5});
  }
  const uint64_t passed = cache_->misses();
  step(0, {0, 1});
  EXPECT_EQ(2u, read);
  // In 3 slots one expert at a time passes through.
  EXPECT_EQ(passed, cache_->misses());
}

INSTANTIATE_TEST_SUITE_P(Slots, ExpertSlots, testing::Values(2u, 3u, 4u, 6u, 7u));

}  // namespace
}  // namespace oriel_internal::test_expert_cache
