// Properties of the budgeter: it never exceeds the budget, wastes nothing, and says how much memory would be enough.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/checked.h"
#include "budget/budget.h"
#include "support/captured_log.h"
#include "support/target.h"

namespace oriel_internal::test_budget {
namespace {

struct Shape {
  const char* name;
  ModelDesc model;
  PlanTotals totals;
};

Shape shapeOf(const char* name, uint32_t layers, uint32_t heads, uint32_t kv_heads,
              uint32_t head_dim, uint32_t n_ff, uint32_t n_vocab, uint32_t context,
              uint64_t weights) {
  Shape shape;
  shape.name = name;
  shape.model.n_layers = layers;
  shape.model.n_heads = heads;
  shape.model.n_kv_heads = kv_heads;
  shape.model.head_dim = head_dim;
  shape.model.ropes[kMainRope].dims = shape.model.ropes[kSlidingRope].dims = head_dim;
  shape.model.n_embd = heads * head_dim;
  shape.model.n_ff = n_ff;
  shape.model.n_vocab = n_vocab;
  shape.model.context_train = context;
  makeLayersAlike(&shape.model);
  shape.totals.weights_bytes = weights;
  shape.totals.upload_half_bytes = 65536;
  return shape;
}

Shape mixture() {
  Shape shape = shapeOf("mixture", 6, 8, 2, 32, 192, 512, 131072, 60u << 20);
  shape.model.kinds[0].experts = {32, 4, 96, false, true};
  return shape;
}

// The longest chunk that is chosen.
uint32_t mostChunk(const Shape& shape) {
  return shape.model.kinds[0].experts.count != 0 ? 256 : 64;
}

std::vector<Shape> shapes() {
  return {
      shapeOf("small", 2, 4, 1, 32, 192, 512, 512, 1 << 20),
      shapeOf("odd", 3, 5, 5, 10, 77, 301, 1000, 400000),
      shapeOf("smollm 135M", 30, 9, 3, 64, 1536, 49152, 2048, 145u << 20),
      shapeOf("llama 1B", 16, 32, 8, 64, 8192, 128256, 65536, 700u << 20),
      shapeOf("wide heads", 4, 4, 4, 256, 2048, 1000, 8192, 30u << 20),
      shapeOf("context unknown", 2, 4, 2, 16, 64, 256, 0, 100000),
      mixture(),
  };
}

constexpr uint64_t kHostBytes = 123456;

Budget choose(const Shape& shape, BudgetRequest request) {
  request.host_bytes = kHostBytes;
  Budget budget;
  test::CapturedLog log;
  EXPECT_TRUE(chooseBudget(shape.model, shape.totals, request, log.log(), &budget).ok())
      << log.errors();
  return budget;
}

/// As with 64-bit addresses.
BudgetRequest requestOf(uint64_t memory_bytes) {
  BudgetRequest request;
  request.max_block_bytes = UINT64_MAX;
  request.memory_bytes = memory_bytes;
  return request;
}

/// A request with only the window open.
BudgetRequest sameFormatsAndChunk(const Budget& budget, BudgetRequest request) {
  request.fixed_k = true;
  request.fixed_v = true;
  request.formats = budget.formats;
  request.chunk = budget.chunk;
  return request;
}

/// Bytes of the same choice with another window.
uint64_t bytesWithWindow(const Shape& shape, const Budget& budget, BudgetRequest request,
                         uint32_t window) {
  request = sameFormatsAndChunk(budget, request);
  request.window = window;
  return choose(shape, request).minimum_bytes;
}

uint32_t mostTokens(const Shape& shape) {
  return shape.model.context_train != 0 ? shape.model.context_train : 4096;
}

/// From just below the minimum to 64 times as much, in steps of some 2 %; in an ordinary run of 5 %.
template <typename Check>
void sweep(const Shape& shape, const BudgetRequest& request, const Check& check) {
  SCOPED_TRACE(shape.name);
  const uint64_t minimum = choose(shape, request).minimum_bytes;
  for (uint64_t memory = minimum; memory <= 64 * minimum;
       memory += std::max<uint64_t>(1, memory / (test::allCases() ? 50 : 20))) {
    BudgetRequest now = request;
    now.memory_bytes = memory;
    const Budget budget = choose(shape, now);
    ASSERT_EQ(minimum, budget.minimum_bytes);
    ASSERT_TRUE(budget.fits);
    check(now, budget);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

TEST(Budget, is_never_overspent_and_its_bytes_are_those_of_the_choice) {
  for (const Shape& shape : shapes()) {
    sweep(shape, requestOf(0), [&](const BudgetRequest& request, const Budget& budget) {
      ASSERT_LE(budget.bytes.total(), request.memory_bytes);
      const BudgetBytes bytes = budgetBytes(shape.model, shape.totals, kHostBytes, budget.cache,
                                            budget.formats, budget.chunk);
      ASSERT_EQ(bytes.total(), budget.bytes.total());
      ASSERT_EQ(shape.totals.weights_bytes, budget.bytes.weights);
      // An id of 4 bytes for each slot, in an arena of pieces of 16.
      const uint64_t ids = (4ull * (budget.cache.sinks + budget.cache.ring) + 15) / 16 * 16;
      ASSERT_EQ(kHostBytes + ids, budget.bytes.host);
      ASSERT_EQ(budget.cache.window + budget.chunk - 1, budget.cache.ring);
      ASSERT_LE(budget.cache.sinks + budget.cache.window, mostTokens(shape));
    });
  }
}

// The rest is too small for another token, and too small for a larger chunk.
TEST(Budget, the_window_is_the_largest_that_fits) {
  for (const Shape& shape : shapes()) {
    for (const uint32_t chunk : {0u, 16u}) {
      BudgetRequest request = requestOf(0);
      request.chunk = chunk;
      sweep(shape, request, [&](const BudgetRequest& now, const Budget& budget) {
        const uint32_t window = budget.cache.window;
        if (budget.cache.sinks + window >= mostTokens(shape) ||
            bytesWithWindow(shape, budget, now, window + 1) > now.memory_bytes) {
          return;
        }
        ASSERT_EQ(0u, chunk) << now.memory_bytes;
        ASSERT_LT(budget.chunk, mostChunk(shape)) << now.memory_bytes;
        Budget larger = budget;
        larger.chunk += 8;
        ASSERT_GT(bytesWithWindow(shape, larger, now, window), now.memory_bytes);
      });
    }
  }
}

TEST(Budget, a_device_that_takes_longer_chunks_gets_them_if_they_do_not_shorten_the_window_much) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.name);
    BudgetRequest request = requestOf(0);
    request.most_chunk = kMaxChunk;
    const uint64_t minimum = choose(shape, request).minimum_bytes;
    for (const uint32_t percent : {100, 110, 130, 200, 400, 6400}) {
      request.memory_bytes = minimum / 100 * percent + minimum % 100;
      const Budget budget = choose(shape, request);
      EXPECT_LE(budget.bytes.total(), request.memory_bytes);
      EXPECT_GE(budget.chunk, choose(shape, requestOf(request.memory_bytes)).chunk);
      EXPECT_TRUE(percent != 100 || budget.chunk == 8) << budget.chunk;
      EXPECT_TRUE(percent != 6400 || budget.chunk == kMaxChunk) << budget.chunk;
    }
  }
}

TEST(Budget, the_minimum_is_tight) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.name);
    const uint64_t minimum = choose(shape, requestOf(0)).minimum_bytes;
    const Budget enough = choose(shape, requestOf(minimum));
    EXPECT_TRUE(enough.fits);
    EXPECT_EQ(minimum, enough.bytes.total());
    for (const uint64_t memory : {minimum - 1, minimum / 2, uint64_t{0}}) {
      const Budget refused = choose(shape, requestOf(memory));
      EXPECT_FALSE(refused.fits);
      EXPECT_EQ(minimum, refused.minimum_bytes);
      EXPECT_EQ(minimum, refused.bytes.total()) << "the smallest choice is described";
    }
  }
}

TEST(Budget, more_memory_never_shortens_the_window_of_the_same_formats_and_chunk) {
  for (const Shape& shape : shapes()) {
    for (const uint32_t chunk : {1u, 8u, 64u}) {
      BudgetRequest request = requestOf(0);
      request.chunk = chunk;
      request.fixed_k = true;
      request.fixed_v = true;
      uint32_t last = 0;
      sweep(shape, request, [&](const BudgetRequest&, const Budget& budget) {
        ASSERT_GE(budget.cache.window, last);
        last = budget.cache.window;
      });
      EXPECT_EQ(mostTokens(shape) - kDefaultSinks, last) << "64 times the minimum is plenty";
    }
  }
}

TEST(Budget, a_window_ends_where_one_layer_fills_a_binding) {
  Shape shape = shapes()[3];
  shape.model.context_train = 1u << 20;
  const uint32_t token_bytes = shape.model.n_kv_heads * shape.model.head_dim * 2;
  BudgetRequest request = requestOf(uint64_t{1} << 40);
  request.chunk = 8;
  request.fixed_k = true;
  request.fixed_v = true;
  const Budget budget = choose(shape, request);
  EXPECT_EQ(kMaxBindingBytes / token_bytes, budget.cache.sinks + budget.cache.ring);
}

// As on systems with 32-bit addresses.
TEST(Budget, no_arena_exceeds_the_largest_block) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.name);
    for (const uint64_t memory : {uint64_t{1} << 26, uint64_t{1} << 30, uint64_t{1} << 40}) {
      BudgetRequest request = requestOf(memory);
      const Budget unlimited = choose(shape, request);
      BudgetRequest least = request;
      least.window = 64;  // the shortest that is chosen
      request.max_block_bytes = std::max(unlimited.bytes.largestBlock() * 3 / 4,
                                         choose(shape, least).bytes.largestBlock());
      const Budget budget = choose(shape, request);
      EXPECT_LE(budget.bytes.largestBlock(), request.max_block_bytes);
      EXPECT_EQ(unlimited.fits, budget.fits);
    }
  }
}

TEST(Budget, a_window_ends_where_the_cache_fills_the_largest_block) {
  const Shape shape = shapes()[3];
  BudgetRequest request = requestOf(uint64_t{1} << 40);
  request.chunk = 8;
  request.fixed_k = true;
  request.fixed_v = true;
  ASSERT_GT(choose(shape, request).bytes.cache, uint64_t{1} << 31);
  request.max_block_bytes = (uint64_t{1} << 31) - (1u << 20);
  const Budget budget = choose(shape, request);
  EXPECT_TRUE(budget.fits);
  EXPECT_LE(budget.bytes.cache, request.max_block_bytes);
  EXPECT_GT(budget.bytes.cache + (1u << 20), request.max_block_bytes) << "wastes nothing";

  request.window = budget.cache.window + 100;
  Budget refused;
  test::CapturedLog log;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            chooseBudget(shape.model, shape.totals, request, log.log(), &refused).code());
  EXPECT_NE(std::string::npos, log.errors().find("more than 2146435072 in all: ask for less"));
}

// Formats and window trade off against each other; only the expected loss must not grow.
TEST(Budget, more_memory_never_makes_the_expected_loss_larger) {
  for (const Shape& shape : shapes()) {
    for (const uint32_t chunk : {0u, 16u}) {
      BudgetRequest request = requestOf(0);
      request.chunk = chunk;
      double last = 1e300;
      sweep(shape, request, [&](const BudgetRequest& now, const Budget& budget) {
        ASSERT_LE(budget.loss, last) << now.memory_bytes;
        last = budget.loss;
      });
    }
  }
}

TEST(Budget, formats_grow_finer_with_memory_from_4_bits_to_16) {
  for (const Shape& shape : shapes()) {
    if (shape.model.context_train < 1000) {
      continue;  // the longest window always comes first
    }
    uint32_t last = 0;
    bool taken[kFormatPairCount] = {};
    sweep(shape, requestOf(0), [&](const BudgetRequest& request, const Budget& budget) {
      for (uint32_t i = 0; i < kFormatPairCount; ++i) {
        if (budget.formats.k == kFormatPairs[i].k && budget.formats.v == kFormatPairs[i].v) {
          ASSERT_GE(i, last) << request.memory_bytes;
          last = i;
          taken[i] = true;
        }
      }
    });
    EXPECT_TRUE(taken[0]) << shape.name;
    EXPECT_TRUE(taken[1] || taken[2]) << shape.name;
    EXPECT_TRUE(taken[kFormatPairCount - 1]) << shape.name;
  }
}

TEST(Budget, a_chunk_is_no_longer_than_an_eighth_of_the_window_it_is_chosen_with) {
  for (const Shape& shape : shapes()) {
    uint32_t longest = 0;
    sweep(shape, requestOf(0), [&](const BudgetRequest&, const Budget& budget) {
      const bool whole_context = budget.cache.window + budget.cache.sinks == mostTokens(shape);
      ASSERT_TRUE(budget.chunk == 8 || whole_context || 8 * budget.chunk <= budget.cache.window)
          << budget.chunk << " tokens at a time, window " << budget.cache.window;
      longest = std::max(longest, budget.chunk);
    });
    EXPECT_EQ(mostChunk(shape), longest) << shape.name;
  }
}

TEST(Budget, of_choices_that_lose_as_little_the_finer_formats_are_taken) {
  for (const Shape& shape : shapes()) {
    BudgetRequest request = requestOf(uint64_t{1} << 40);  // the whole context fits with all
    request.loss.keys_int8 = request.loss.keys_int4 = 0;
    request.loss.values_int8 = request.loss.values_int4 = 0;
    const Budget budget = choose(shape, request);
    EXPECT_EQ(budget.choices[0].loss, budget.choices[kFormatPairCount - 1].loss) << shape.name;
    EXPECT_EQ(KvFormat::kF16, budget.formats.k) << shape.name;
    EXPECT_EQ(KvFormat::kF16, budget.formats.v) << shape.name;
  }
}

TEST(Budget, formats_beyond_the_limit_of_rounding_are_not_chosen_unless_asked_for) {
  for (const Shape& shape : shapes()) {
    BudgetRequest request = requestOf(0);
    request.loss.keys_int4 = 0.2;  // beyond the limit of 0.1
    sweep(shape, request, [&](const BudgetRequest& now, const Budget& budget) {
      ASSERT_NE(KvFormat::kInt4, budget.formats.k) << now.memory_bytes;
      ASSERT_EQ(Refusal::kQuality, budget.choices[0].refused);
      ASSERT_EQ(Refusal::kNot, budget.choices[1].refused);
    });
    request.memory_bytes = uint64_t{1} << 40;
    request.fixed_k = true;
    request.formats.k = KvFormat::kInt4;
    EXPECT_EQ(KvFormat::kInt4, choose(shape, request).formats.k);
    request = requestOf(uint64_t{1} << 40);
    request.loss.keys_int8 = request.loss.keys_int4 = request.loss.values_int4 = 5;
    EXPECT_EQ(KvFormat::kF16, choose(shape, request).formats.k);
  }
}

TEST(Budget, a_window_that_only_failed_formats_can_hold_is_refused_for_that) {
  const Shape shape = shapes()[0];
  BudgetRequest request = requestOf(uint64_t{1} << 40);
  request.window = kMaxWindow;  // whose layers a kernel can bind in int4 alone
  EXPECT_EQ(KvFormat::kInt4, choose(shape, request).formats.k);
  request.loss.keys_int4 = 0.2;
  Budget budget;
  test::CapturedLog log;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            chooseBudget(shape.model, shape.totals, request, log.log(), &budget).code());
  EXPECT_NE(std::string::npos, log.errors().find("failed the calibration")) << log.errors();
  EXPECT_EQ(std::string::npos, log.errors().find("speed")) << log.errors();
}

TEST(Budget, layers_that_stay_in_f16_are_counted_to_the_byte) {
  const Shape shape = shapes()[2];
  BudgetRequest request = requestOf(uint64_t{1} << 40);
  request.fixed_k = request.fixed_v = true;
  request.formats.k = request.formats.v = KvFormat::kInt4;
  request.window = 500;
  const uint64_t rounded = choose(shape, request).bytes.cache;
  request.formats.keepF16(3);
  const uint64_t one = choose(shape, request).bytes.cache;
  for (uint32_t layer = 0; layer < shape.model.n_layers; ++layer) {
    request.formats.keepF16(layer);
  }
  const uint64_t all = choose(shape, request).bytes.cache;
  request.formats = CacheFormats();
  EXPECT_EQ(choose(shape, request).bytes.cache, all);
  EXPECT_NEAR(static_cast<double>(all - rounded) / shape.model.n_layers,
              static_cast<double>(one - rounded), 4096.0);
}

TEST(Budget, a_larger_chunk_costs_at_most_an_eighth_of_the_window) {
  for (const Shape& shape : shapes()) {
    BudgetRequest request = requestOf(0);
    request.fixed_k = true;
    request.fixed_v = true;
    uint32_t largest_chunk = 0;
    uint32_t longest_window = 0;
    sweep(shape, request, [&](const BudgetRequest& now, const Budget& budget) {
      ASSERT_GE(budget.chunk, std::max(8u, largest_chunk));
      ASSERT_LE(budget.chunk, mostChunk(shape));
      BudgetRequest smallest_chunk = now;
      smallest_chunk.chunk = 8;
      const uint32_t best = choose(shape, smallest_chunk).cache.window;
      ASSERT_GE(8 * budget.cache.window, 7 * best);
      if (budget.chunk > 8) {
        const uint32_t most = mostTokens(shape) - budget.cache.sinks;
        ASSERT_GE(budget.cache.window, std::min(most, 8 * budget.chunk));
      }
      // And more memory never costs any of it.
      ASSERT_GE(budget.cache.window, longest_window) << now.memory_bytes;
      longest_window = budget.cache.window;
      largest_chunk = budget.chunk;
    });
    EXPECT_EQ(mostChunk(shape), largest_chunk) << shape.name;
  }
}

TEST(Budget, what_is_asked_for_is_what_is_chosen) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.name);
    for (const uint32_t window : {1u, 17u, 300u, 5000u}) {
      for (const uint32_t chunk : {1u, 5u, 512u}) {
        for (const uint32_t sinks : {0u, 3u, 100u}) {
          BudgetRequest request = requestOf(uint64_t{1} << 40);
          request.window = window;
          request.chunk = chunk;
          request.sinks = sinks;
          request.fixed_k = true;
          request.fixed_v = true;
          request.formats.k = KvFormat::kInt8;
          request.formats.v = KvFormat::kInt4;
          const Budget budget = choose(shape, request);
          EXPECT_EQ(window, budget.cache.window);
          EXPECT_EQ(chunk, budget.chunk);
          EXPECT_EQ(sinks, budget.cache.sinks);
          EXPECT_EQ(KvFormat::kInt8, budget.formats.k);
          EXPECT_EQ(KvFormat::kInt4, budget.formats.v);
          EXPECT_EQ(budget.minimum_bytes, budget.bytes.total());
        }
      }
    }
  }
}

TEST(Budget, one_side_may_be_fixed_and_the_other_chosen) {
  for (const Shape& shape : shapes()) {
    BudgetRequest request = requestOf(uint64_t{1} << 40);
    request.fixed_k = true;
    request.formats.k = KvFormat::kF16;
    const Budget budget = choose(shape, request);
    for (uint32_t i = 0; i < budget.n_choices; ++i) {
      EXPECT_EQ(KvFormat::kF16, budget.choices[i].formats.k);
    }
    EXPECT_GT(budget.n_choices, 1u);
  }
}

TEST(Budget, sinks_grow_to_cover_pinned_text) {
  const Shape shape = shapes()[2];
  BudgetRequest request = requestOf(uint64_t{1} << 40);
  request.pinned = 333;
  EXPECT_EQ(333u, choose(shape, request).cache.sinks);
  request.pinned = 2;
  EXPECT_EQ(kDefaultSinks, choose(shape, request).cache.sinks);
}

TEST(Budget, every_weighed_choice_is_reported_and_the_chosen_one_is_the_best_that_fits) {
  for (const Shape& shape : shapes()) {
    sweep(shape, requestOf(0), [&](const BudgetRequest& request, const Budget& budget) {
      ASSERT_LT(budget.chosen, budget.n_choices);
      const BudgetChoice& chosen = budget.choices[budget.chosen];
      ASSERT_EQ(budget.bytes.total(), chosen.bytes.total());
      ASSERT_EQ(budget.loss, chosen.loss);
      uint64_t least = UINT64_MAX;
      for (uint32_t i = 0; i < budget.n_choices; ++i) {
        const BudgetChoice& choice = budget.choices[i];
        least = std::min(least, choice.minimum_bytes);
        ASSERT_EQ(choice.fits, choice.minimum_bytes <= request.memory_bytes);
        ASSERT_TRUE(!choice.fits || choice.loss >= chosen.loss);
        ASSERT_TRUE(!choice.fits || choice.bytes.total() <= request.memory_bytes);
      }
      ASSERT_EQ(least, budget.minimum_bytes);
    });
  }
}

oriel_status statusOf(const Shape& shape, const BudgetRequest& request) {
  test::CapturedLog log;
  Budget budget;
  const Status status = chooseBudget(shape.model, shape.totals, request, log.log(), &budget);
  EXPECT_EQ(status.ok(), log.errors().empty());
  EXPECT_EQ(log.errors().find('\n'), std::string::npos);
  return status.code();
}

TEST(Budget, what_is_out_of_range_is_refused) {
  const Shape shape = shapes()[0];
  BudgetRequest request = requestOf(uint64_t{1} << 40);
  request.window = kMaxWindow + 1;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, statusOf(shape, request));
  request = requestOf(uint64_t{1} << 40);
  request.chunk = 513;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, statusOf(shape, request));
  request = requestOf(uint64_t{1} << 40);
  request.sinks = kMaxWindow + 1;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, statusOf(shape, request));
  // More in one layer than a kernel can bind.
  request = requestOf(uint64_t{1} << 40);
  request.window = kMaxWindow;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, statusOf(shapes()[4], request));
}

TEST(Budget, pinned_text_without_room_for_a_conversation_is_a_context_error) {
  const Shape shape = shapes()[0];
  BudgetRequest request = requestOf(uint64_t{1} << 40);
  request.pinned = 512;
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, statusOf(shape, request));
  request.pinned = 0xffffffffu;
  EXPECT_NE(ORIEL_OK, statusOf(shape, request));
}

TEST(Budget, survives_numbers_at_their_limits) {
  Shape shape = shapeOf("limits", kMaxLayers, kMaxHeads, kMaxHeads, kMaxHeadDim, kMaxFeedForward,
                        kMaxVocabulary, 1u << 31, uint64_t{1} << 45);
  shape.model.n_embd = kMaxEmbedding;
  const Budget budget = choose(shape, requestOf(uint64_t{1} << 62));
  EXPECT_TRUE(budget.fits);
  EXPECT_GT(budget.bytes.total(), shape.totals.weights_bytes);
  EXPECT_LE(budget.bytes.total(), uint64_t{1} << 62);
}

}  // namespace
}  // namespace oriel_internal::test_budget
