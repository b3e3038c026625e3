// The Vulkan executor during a step: it stops to fetch experts, and when memories are filled. Needs a Vulkan target.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#ifdef ORIEL_VULKAN
#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_vulkan_experts {
namespace {

constexpr uint32_t kExperts = 6;
constexpr uint32_t kUsed = 2;
constexpr uint32_t kSlots = 3;
constexpr uint32_t kRows = 20;
constexpr uint32_t kCols = 40;
constexpr uint32_t kStride = 256;  // whole blocks of every type
constexpr uint32_t kChunk = 5;

/// Counts its calls, and leaves the rest to `call`.
class TestFetch final : public ExpertFetch {
 public:
  using Call = std::function<Status(const FetchExpertsPush&, uint32_t n_tokens, const uint32_t*,
                                    uint32_t*, Executor*)>;
  Status fetch(const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* routes,
               uint32_t* slots, Executor* executor) override {
    ++calls;
    return call(push, n_tokens, routes, slots, executor);
  }

  Call call;
  int calls = 0;
};

/// Experts of one layer, kSlots at a time: routes, then rounds of a fetch and a product.
struct FetchingLayer {
  static constexpr uint32_t kRoutes = kChunk * kUsed;

  explicit FetchingLayer(WeightType type = WeightType::kQ8_0) : rig(kChunk) {
    Random random(7);
    for (uint32_t e = 0; e < kExperts; ++e) {
      experts.push_back(randomMatrix(type, kRows, kCols, &random));
    }
    matrix_words = experts[0].words.size();
    scores = random.normals(kChunk * kExperts);
    inputs = random.normals(kChunk * kStride);
    for (uint32_t t = 0; t < kChunk; ++t) {
      std::fill_n(&inputs[t * kStride + kCols], kStride - kCols, 0.0f);
    }
    const BufferRef scores_in = rig.input(scores);
    in = rig.input(inputs);
    place = rig.input(std::vector<uint32_t>(kSlots * matrix_words));
    routes = rig.output(kRouteParts * kRoutes + kExperts + 1);
    slots = rig.output(kExperts);
    out = rig.output(kRoutes * kRows);

    const RoutePush route = {kExperts, kUsed, kExperts, kRoutes, 0, 1, 0, 1};
    product.rows = kRows;
    product.units = experts[0].geometry.units;
    product.group_words = experts[0].geometry.groupWords();
    product.side_word = experts[0].geometry.sideWord();
    product.in_stride = kStride;
    product.out_stride = kRows;
    product.n_experts = kExperts;
    product.n_used = kUsed;
    product.routes = kRoutes;
    product.of_tokens = product.has_slots = 1;
    product.count = kSlots;
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kRoute, route, {scores_in, routes});
      rig.add(list, OpKind::kSortRoutes, SortRoutesPush{kExperts, kUsed, kRoutes},
              {routes, routes});
      for (uint32_t round = 0; round < (list == StepList::kChunk ? kExperts / kSlots : 1);
           ++round) {
        rig.add(list, OpKind::kFetchExperts, FetchExpertsPush{0, round}, {routes, slots});
        rig.add(list, OpKind::kExpertMatmul, product, {place, out, in, routes, slots}).weights =
            type;
      }
    }
    fetch.call = [this](const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* chosen,
                        uint32_t* where, Executor* executor) {
      return bring(push, n_tokens, chosen, where, executor);
    };
    rig.options.experts = &fetch;
  }

  // The chosen experts of this round, in order of their numbers.
  Status bring(const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* chosen,
               uint32_t* where, Executor* executor) {
    bool wanted[kExperts] = {};
    for (uint32_t r = 0; r < n_tokens * kUsed; ++r) {
      EXPECT_LT(chosen[r], kExperts);
      wanted[std::min(chosen[r], kExperts - 1)] = true;
    }
    std::fill_n(where, kExperts, kNoSlot);
    uint32_t nth = 0;
    for (uint32_t e = 0; e < kExperts; ++e) {
      if (!wanted[e] || nth++ / kSlots != push.round) {
        continue;
      }
      const uint32_t slot = kSlots - 1 - (nth - 1) % kSlots;
      const uint64_t bytes = matrix_words * 4;
      void* piece = nullptr;
      ORIEL_TRY(executor->beginWrite(bytes, &piece));
      std::memcpy(piece, experts[e].words.data(), bytes);
      ORIEL_TRY(executor->endWrite(place, slot * bytes, bytes));
      where[e] = slot;
    }
    return kOk;
  }

  Status run(StepRun what, uint32_t n_tokens, const StopCheck& stop = StopCheck()) {
    rig.clearOutputs();
    rig.header().n_tokens = n_tokens;
    fetch.calls = 0;
    return rig.executor->run(what, stop);
  }

  void expectProducts(uint32_t n_tokens) const {
    for (uint32_t t = 0; t < n_tokens; ++t) {
      const float* const score = &scores[t * kExperts];
      uint32_t order[kExperts];
      std::iota(order, order + kExperts, 0u);
      std::sort(order, order + kExperts,
                [&](uint32_t a, uint32_t b) { return score[a] > score[b]; });
      for (uint32_t k = 0; k < kUsed; ++k) {
        const uint32_t at = rig.words(routes)[2 * kRoutes + t * kUsed + k];
        ASSERT_LT(at, n_tokens * kUsed);
        for (uint32_t r = 0; r < kRows; ++r) {
          double sum = 0;
          double size = 0;
          for (uint32_t c = 0; c < kCols; ++c) {
            const double one = experts[order[k]].at(r, c) * inputs[t * kStride + c];
            sum += one;
            size += std::fabs(one);
          }
          ASSERT_NEAR(rig.floats(out)[at * kRows + r], sum, 1e-6 + 1e-5 * size)
              << "token " << t << " choice " << k << " row " << r;
        }
      }
    }
  }

  KernelRig rig;
  TestFetch fetch;
  std::vector<PackedMatrix> experts;
  size_t matrix_words = 0;
  std::vector<float> scores;
  std::vector<float> inputs;
  ExpertMatmulPush product = {};
  BufferRef in, place, routes, slots, out;
};

RUNS_ON(kEachGpu | kValidated);
TEST_F(VulkanExecutor, experts_are_fetched_between_routing_and_products_in_every_round) {
  for (const WeightType type : {WeightType::kF32, WeightType::kQ8_0, WeightType::kQ6_K}) {
    FetchingLayer layer(type);
    ASSERT_TRUE(layer.rig.load().ok()) << layer.rig.log.errors();
    EXPECT_EQ(layer.fetch.calls, 0) << "a step of no tokens needs no experts";
    for (int again = 0; again < 3; ++again) {
      ASSERT_TRUE(layer.run(StepRun::kChunk, kChunk).ok()) << layer.rig.log.errors();
      EXPECT_EQ(layer.fetch.calls, 2);
      layer.expectProducts(kChunk);
      ASSERT_TRUE(layer.run(StepRun::kDecode, 1).ok()) << layer.rig.log.errors();
      EXPECT_EQ(layer.fetch.calls, 1);
      layer.expectProducts(1);
    }
  }
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_step_submits_once_for_each_fetch_and_once_more) {
  VulkanTap tap;
  FetchingLayer layer;
  layer.rig.options.driver_tap = &VulkanTap::kDriver;
  ASSERT_TRUE(layer.rig.load().ok()) << layer.rig.log.errors();
  const auto submitsWith = [&](uint32_t rounds) {
    layer.fetch.call = [=](const FetchExpertsPush& push, uint32_t, const uint32_t*, uint32_t* slots,
                           Executor*) {
      std::fill_n(slots, kExperts, kNoSlot);
      slots[0] = push.round < rounds ? 0 : kNoSlot;
      return Status();
    };
    tap.calls.clear();
    EXPECT_TRUE(layer.run(StepRun::kChunk, kChunk).ok());
    EXPECT_EQ(layer.fetch.calls, 2);
    EXPECT_EQ(tap.calls["vkBeginCommandBuffer"], 0);
    return tap.calls["vkQueueSubmit"];
  };
  EXPECT_EQ(submitsWith(2), 3);
  EXPECT_EQ(submitsWith(1), 3) << "what follows the last round is done, too";
  EXPECT_EQ(submitsWith(0), 2) << "the first round is for no expert";
  EXPECT_EQ(layer.rig.floats(layer.out)[0], KernelRig::kUntouched) << "no expert had a slot";
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_fetch_that_fails_ends_the_run_with_its_status_and_the_next_run_works) {
  FetchingLayer layer;
  ASSERT_TRUE(layer.rig.load().ok()) << layer.rig.log.errors();
  const TestFetch::Call works = layer.fetch.call;
  for (const uint32_t failing : {0u, 1u}) {
    layer.fetch.call = [&](const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* routes,
                           uint32_t* slots, Executor* executor) {
      const Status status = works(push, n_tokens, routes, slots, executor);
      return push.round == failing ? Status(ORIEL_ERROR_IO) : status;
    };
    EXPECT_EQ(layer.run(StepRun::kChunk, kChunk).code(), ORIEL_ERROR_IO);
    EXPECT_EQ(layer.fetch.calls, static_cast<int>(failing) + 1);
    layer.fetch.call = works;
    ASSERT_TRUE(layer.run(StepRun::kChunk, kChunk).ok()) << layer.rig.log.errors();
    layer.expectProducts(kChunk);
  }
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_run_that_is_to_stop_fetches_no_more) {
  FetchingLayer layer;
  ASSERT_TRUE(layer.rig.load().ok()) << layer.rig.log.errors();
  const StopCheck stop = {[](void* fetch) { return static_cast<TestFetch*>(fetch)->calls == 1; },
                          &layer.fetch};
  EXPECT_EQ(layer.run(StepRun::kChunk, kChunk, stop).code(), ORIEL_ERROR_CANCELLED);
  EXPECT_EQ(layer.fetch.calls, 1);
  ASSERT_TRUE(layer.run(StepRun::kChunk, kChunk).ok()) << layer.rig.log.errors();
  layer.expectProducts(kChunk);
}

RUNS_ON(kEachGpu | kValidated);
TEST_F(VulkanExecutor, a_plan_with_experts_on_file_needs_somebody_who_fetches_them) {
  FetchingLayer layer;
  layer.rig.options.experts = nullptr;
  EXPECT_EQ(layer.rig.create().code(), ORIEL_ERROR_INTERNAL);
  FetchingLayer other;
  ASSERT_TRUE(other.rig.load().ok()) << other.rig.log.errors();
  EXPECT_FALSE(other.rig.executor->runsAhead());
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_step_may_fetch_more_often_than_it_has_other_pieces) {
  constexpr int kFetches = 300;
  KernelRig rig;
  TestFetch fetch;
  const BufferRef one = rig.input(std::vector<float>(kUnit, 1.0f));
  const BufferRef routes = rig.output(kUnit);
  const BufferRef slots = rig.output(kUnit);
  const BufferRef sum = rig.output(kUnit);
  rig.options.experts = &fetch;
  for (int i = 0; i < kFetches; ++i) {
    rig.add(StepList::kDecode, OpKind::kFetchExperts, FetchExpertsPush{0, 0}, {routes, slots});
    rig.add(StepList::kDecode, OpKind::kAddBias, AddBiasPush{1, kUnit, 0}, {one, sum});
  }
  // Each time the sum must equal the terms so far.
  int wrong = 0;
  fetch.call = [&](const FetchExpertsPush&, uint32_t, const uint32_t*, uint32_t*, Executor*) {
    wrong += rig.floats(sum)[0] != static_cast<float>(fetch.calls - 1) ? 1 : 0;
    return Status();
  };
  ASSERT_TRUE(rig.load().ok()) << rig.log.errors();
  std::memset(const_cast<float*>(rig.floats(sum)), 0, sizeof(float));
  rig.header().n_tokens = 1;
  ASSERT_TRUE(rig.executor->run(StepRun::kDecode).ok()) << rig.log.errors();
  EXPECT_EQ(fetch.calls, kFetches);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(rig.floats(sum)[0], static_cast<float>(kFetches));
}

RUNS_ON(kOneGpu | kValidated);
TEST_F(VulkanExecutor, products_of_other_experts_of_a_stack_do_not_wait_for_each_other) {
  const auto barriers = [](uint32_t second_first, bool slots) {
    VulkanTap tap;
    FetchingLayer layer;
    layer.rig.options.driver_tap = &VulkanTap::kDriver;
    ExpertMatmulPush push = layer.product;
    push.has_slots = slots ? 1 : 0;
    for (const uint32_t first : {0u, second_first}) {
      push.first = first;
      layer.rig.add(StepList::kTail, OpKind::kExpertMatmul, push,
                    {layer.place, layer.out, layer.in, layer.routes, layer.slots});
    }
    EXPECT_TRUE(layer.rig.load().ok()) << layer.rig.log.errors();
    return tap.calls["vkCmdPipelineBarrier"];
  };
  const int apart = barriers(kSlots, false);
  EXPECT_EQ(barriers(kSlots - 1, false), apart + 1);
  EXPECT_EQ(barriers(kSlots, true), apart + 1);
}

// ---- Steps that end early, and go on with one token ----------------------------------------------

/// kChunk copies token by token from a to b, then from b to c; kTail takes a token of b on.
struct FillAndTail {
  static constexpr uint32_t kTokens = 4;

  FillAndTail() : rig(kTokens) {
    std::vector<float> values(kTokens * kUnit);
    std::iota(values.begin(), values.end(), 1.0f);
    std::vector<float> identity(kUnit * kUnit, 0.0f);
    for (uint32_t i = 0; i < kUnit; ++i) {
      identity[i * kUnit + i] = 1.0f;
    }
    const PackedMatrix matrix = floatMatrix(kUnit, kUnit, identity);
    const BufferRef weights = rig.input(matrix.words);
    const BufferRef a = rig.input(values);
    b = rig.output(kTokens * kUnit);
    c = rig.output(kTokens * kUnit);
    rig.add(StepList::kChunk, OpKind::kMatmul, matrix.product(), {weights, b, a});
    rig.add(StepList::kChunk, OpKind::kMatmul, matrix.product(), {weights, c, b});
    rig.add(StepList::kTail, OpKind::kTail, TailPush{kUnit, kUnit}, {b, b});
    rig.add(StepList::kTail, OpKind::kMatmul, matrix.product(), {weights, c, b});
    rig.plan.fill_ops = 1;
  }

  KernelRig rig;
  BufferRef b, c;
};

RUNS_ON(kEachGpu | kValidated);
TEST_F(VulkanExecutor, filling_runs_the_first_ops_of_a_chunk_and_a_tail_goes_on_with_one_token) {
  VulkanTap tap;
  FillAndTail step;
  step.rig.options.driver_tap = &VulkanTap::kDriver;
  ASSERT_TRUE(step.rig.load().ok()) << step.rig.log.errors();
  tap.calls.clear();
  step.rig.header().n_tokens = FillAndTail::kTokens;
  ASSERT_TRUE(step.rig.executor->run(StepRun::kFill).ok());
  EXPECT_EQ(tap.calls["vkQueueSubmit"], 1);
  EXPECT_EQ(step.rig.floats(step.b)[3 * kUnit], 3 * kUnit + 1.0f);
  EXPECT_EQ(step.rig.floats(step.c)[0], KernelRig::kUntouched);

  step.rig.header().n_tokens = 1;
  step.rig.header().tail = 2;
  ASSERT_TRUE(step.rig.executor->run(StepRun::kTail).ok());
  EXPECT_EQ(tap.calls["vkQueueSubmit"], 2);
  for (uint32_t i = 0; i < kUnit; ++i) {
    EXPECT_EQ(step.rig.floats(step.c)[i], static_cast<float>(2 * kUnit + i + 1));
  }
  EXPECT_EQ(step.rig.floats(step.c)[kUnit], KernelRig::kUntouched);

  step.rig.clearOutputs();
  step.rig.header().n_tokens = FillAndTail::kTokens;
  tap.calls.clear();
  ASSERT_TRUE(step.rig.executor->run(StepRun::kChunk).ok());
  EXPECT_EQ(tap.calls["vkQueueSubmit"], 1);
  EXPECT_EQ(step.rig.floats(step.c)[3 * kUnit], 3 * kUnit + 1.0f);
}

}  // namespace
}  // namespace oriel_internal::test::test_vulkan_experts
#endif
