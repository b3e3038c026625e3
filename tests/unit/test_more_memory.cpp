// More memory never raises the expected loss: published shapes, from the least memory to more than enough.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "support/describe.h"
#include "support/target.h"

namespace oriel_internal::test::test_more_memory {
namespace {

/// In either spacing.
uint32_t sizeCount() { return allCases() ? 100 : 35; }
constexpr uint64_t kPlenty = uint64_t{1} << 42;

FullPlan planOf(const std::string& name, const Options& options, uint64_t memory_bytes) {
  Options now = options;
  now.memory_bytes = memory_bytes;
  return planOfShape(name, now);
}

/// The most bytes: the longest window in the most precise formats, all experts held.
uint64_t mostBytes(const std::string& name, Options options, const std::string& offload) {
  options.set("kv", "f16").set("offload", offload == "auto" ? "rows" : offload);
  return planOf(name, options, kPlenty).total_bytes;
}

/// Sizes lie dense at the least, where a few kilobytes decide, and end beyond what all takes.
std::vector<uint64_t> sizesOf(const std::string& name, const Options& options,
                              const std::string& offload) {
  const uint64_t least = planOf(name, options, 1).minimum_bytes;
  const double range = 1.05 * static_cast<double>(mostBytes(name, options, offload) - least);
  constexpr double kFirst = 65536;
  std::vector<uint64_t> sizes = {least};
  const uint32_t count = sizeCount();
  for (uint32_t i = 0; i < count; ++i) {
    const double step = std::pow(range / kFirst, i / (count - 1.0));
    sizes.push_back(least + static_cast<uint64_t>(kFirst * step));
    // And evenly, which puts as many sizes where slots are added.
    sizes.push_back(least + static_cast<uint64_t>(range * (i + 1) / count));
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

template <typename Check>
void sweep(const std::string& name, const Options& options, const Check& check,
           const std::string& offload = "auto") {
  FullPlan last;
  last.loss_nats = 1e300;
  for (const uint64_t memory : sizesOf(name, options, offload)) {
    const FullPlan plan = planOf(name, options, memory);
    ASSERT_EQ(1u, plan.fits) << name << " in " << memory;
    ASSERT_LE(plan.total_bytes, memory) << name;
    check(last, plan);
    last = plan;
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

void expectNeverWorse(const std::string& name, Options options,
                      const std::string& offload = "auto") {
  SCOPED_TRACE(name + ", window " + std::to_string(options.window_tokens) + ", offload " + offload);
  options.set("offload", offload);
  const auto check = [](const FullPlan& last, const FullPlan& plan) {
    ASSERT_LE(plan.loss_nats, last.loss_nats)
        << plan.memory_bytes << " bytes: " << plan["expert_slots"] << " slots, window "
        << plan.window_tokens << "; " << last.memory_bytes << " bytes: " << last["expert_slots"]
        << " slots, window " << last.window_tokens;
  };
  sweep(name, options, check, offload);
}

std::vector<std::string> shapesWithExperts() {
  std::vector<std::string> names;
  for (const Json& shape : shapes()) {
    if (shape.at("n_experts") != 0 && !shape.at("parameters").is_null()) {
      names.push_back(shape.at("name"));
    }
  }
  EXPECT_GE(names.size(), 7u);
  return names;
}

TEST(MoreMemory, is_never_worse_for_a_mixture_of_experts) {
  for (const std::string& shape : shapesWithExperts()) {
    expectNeverWorse(shape, Options());
  }
}

TEST(MoreMemory, is_never_worse_for_experts_beside_a_window_that_was_asked_for) {
  for (const std::string& shape : shapesWithExperts()) {
    Options options;
    options.window_tokens = 2000;
    expectNeverWorse(shape, options);
  }
}

TEST(MoreMemory, is_never_worse_for_experts_that_all_stay_on_file) {
  Options options;
  expectNeverWorse("olmoe-1b-7b", options, "all");
  options.window_tokens = 600;
  expectNeverWorse("granite-4.0-h-tiny", options, "all");
}

TEST(MoreMemory, is_never_worse_for_dense_and_hybrid_models) {
  Options options;
  for (const char* name : {"smollm2-135m", "gemma-3-1b", "gemma-4-e2b", "qwen3.5-0.8b"}) {
    expectNeverWorse(name, options);
  }
  options.window_tokens = 3000;
  for (const char* name : {"llama-3.2-1b", "gemma-3-1b", "falcon-h1-0.5b", "lfm2-350m"}) {
    expectNeverWorse(name, options);
  }
}

/// A calibration in which shorter uniform windows lose more, and long windows in few layers lose least.
struct ByLayer {
  explicit ByLayer(uint32_t n_layers) : shares(2 * n_layers) {
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      shares[n_layers + layer] = layer % 4 == 0 ? 0 : 64;
    }
    for (uint32_t i = 0; i < 4; ++i) {
      profiles[i] = {0.05 * i, shares.data(), n_layers, 2048u >> i};
    }
    profiles[4] = {-0.02, shares.data() + n_layers, n_layers, 1024};
    calibration.struct_size = sizeof(calibration);
    calibration.forget_scale = 9.9;
    calibration.forget_power = 0.72;
    calibration.profiles = profiles;
    calibration.profile_count = 5;
  }

  std::vector<uint8_t> shares;
  oriel_window_profile profiles[5] = {};
  oriel_calibration calibration = {};
};

bool sharesWindow(const FullPlan& plan) {
  const Json& shares = plan["window_shares"];
  return std::any_of(shares.begin(), shares.end(), [](const Json& share) { return share != 0; });
}

/// How often more memory loses more.
uint32_t risesOf(const std::string& name, uint32_t n_layers, uint32_t window) {
  const ByLayer measured(n_layers);
  SCOPED_TRACE(name + ", window " + std::to_string(window));
  Options options;
  options.window_tokens = window;
  options.calibration = &measured.calibration;
  uint32_t rises = 0;
  uint32_t by_layer = 0;
  sweep(name, options, [&](const FullPlan& last, const FullPlan& plan) {
    by_layer += sharesWindow(plan) ? 1 : 0;
    ASSERT_FALSE(rises != 0 && sharesWindow(plan)) << plan.memory_bytes;
    if (plan.loss_nats > last.loss_nats) {
      ++rises;
      ASSERT_TRUE(sharesWindow(last) && !sharesWindow(plan)) << plan.memory_bytes;
    }
  });
  EXPECT_EQ(window == 0, by_layer > 10) << by_layer;
  return rises;
}

// The one exception: where the longest window fits in all layers and formats, all layers see it (docs/decisions/013-budget.md).
TEST(MoreMemory, is_worse_at_most_once_where_windows_by_layer_end) {
  EXPECT_EQ(1u, risesOf("olmoe-1b-7b", 16, 0));
  EXPECT_EQ(1u, risesOf("tinyllama-1.1b", 22, 0));
  EXPECT_GE(1u, risesOf("llama-3.2-1b", 16, 0));  // its context is longer than the profile may grow
  EXPECT_EQ(0u, risesOf("olmoe-1b-7b", 16, 1500));
  EXPECT_EQ(0u, risesOf("tinyllama-1.1b", 22, 1500));
}

}  // namespace
}  // namespace oriel_internal::test::test_more_memory
