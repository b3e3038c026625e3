// Rates measured on the device under test, and plans made with them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/api.h"
#include "support/files.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_speed {
namespace {

namespace fs = std::filesystem;

const char* const kModel = ORIEL_TEST_DATA "/models/llama-q4_0.gguf";

class SpeedOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        (fs::temp_directory_path() / ("oriel-test-speed-" + std::to_string(getpid()))).string();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  oriel_speed measure(const char* path) {
    Options options = makeOptions(&log_);
    options.cache_folder = folder_.c_str();
    oriel_speed speed;
    std::memset(static_cast<void*>(&speed), 0, sizeof(speed));
    speed.struct_size = sizeof(speed);
    EXPECT_EQ(ORIEL_OK, oriel_speed_measure(path, nullptr, 0, &options, &speed)) << log_.errors();
    return speed;
  }
  std::string file() const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".speed") {
        return entry.path().string();
      }
    }
    return "";
  }

  CapturedLog log_;
  std::string folder_;
};

Options withSpeed(const oriel_speed* speed, double least = 0) {
  Options options = makeOptions();
  options.memory_bytes = 32u << 20;
  options.speed = speed;
  options.set("min_speed", least);
  return options;
}

void expectPlan(oriel_status expected, const oriel_speed* speed, double least) {
  const Options options = withSpeed(speed, least);
  oriel_plan plan = ORIEL_PLAN_INIT;
  EXPECT_EQ(expected, oriel_plan_file(kModel, &options, &plan));
  size_t needed = 0;
  EXPECT_EQ(expected == ORIEL_OK ? ORIEL_ERROR_BUFFER_TOO_SMALL : expected,
            oriel_plan_describe(kModel, &options, nullptr, 0, &needed));
}

oriel_prediction predictionAt(const FullPlan& plan, uint64_t depth) {
  oriel_prediction prediction = ORIEL_INIT(oriel_prediction);
  const std::string text = plan.all.dump();
  EXPECT_EQ(ORIEL_OK, oriel_plan_predict(text.data(), text.size(), depth, 0, &prediction));
  return prediction;
}

// A single test, since measuring is slow on some devices.
RUNS_ON(kCpu);
TEST_F(SpeedOnDevice, is_measured_once_kept_and_measured_again_where_the_file_is_damaged) {
  oriel_speed first = measure(kModel);
  first.kernels_changed = 0;  // specific to that call; only rates are compared
  EXPECT_STRNE("", first.device);
  ASSERT_EQ(1u, first.weight_count);
  EXPECT_EQ(2u, first.weights[0].tensor_type) << "Q4_0";
  EXPECT_GT(first.read_bytes_per_s, 0);
  EXPECT_NE(0u, first.shape);
  ASSERT_EQ(4u, first.cache_count);
  for (const oriel_cache_speed& cache : first.caches) {
    // Rates are differences of times: on a busy machine they may be 0 for such a small model.
    EXPECT_TRUE(std::isfinite(cache.decode_ns) && cache.decode_ns >= 0) << cache.decode_ns;
    EXPECT_TRUE(std::isfinite(cache.chunk_ns) && cache.chunk_ns >= 0) << cache.chunk_ns;
  }
  ASSERT_NE("", file());
  const oriel_speed kept = measure(kModel);
  EXPECT_EQ(0, std::memcmp(&first, &kept, sizeof(first))) << "read, not measured";

  // Measuring again asks whether to continue.
  Options options = makeOptions(&log_);
  options.cache_folder = folder_.c_str();
  options.progress = [](uint64_t, uint64_t, void*) { return 1; };
  oriel_speed stopped = ORIEL_INIT(oriel_speed);
  EXPECT_EQ(ORIEL_OK, oriel_speed_measure(kModel, nullptr, 0, &options, &stopped));
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_speed_measure(kModel, nullptr, 1, &options, &stopped));
  // Other active features also invalidate them.
  if (onVulkan() && disabledFeatures() == nullptr) {
    options.set("disable_features", "all");
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_speed_measure(kModel, nullptr, 0, &options, &stopped));
  }

  // Plans predict with it.
  const FullPlan plan = planOf(kModel, withSpeed(&first));
  const oriel_prediction shallow = predictionAt(plan, 16);
  const oriel_prediction deep = predictionAt(plan, plan.sink_tokens + plan.window_tokens);
  EXPECT_GE(shallow.decode_tokens_per_s, deep.decode_tokens_per_s);
  EXPECT_GT(deep.decode_tokens_per_s, 0);
  EXPECT_GT(deep.prefill_tokens_per_s, 0);
  EXPECT_EQ(deep.decode_tokens_per_s, predictionAt(plan, UINT64_MAX).decode_tokens_per_s);
  expectPlan(ORIEL_OK, &first, deep.decode_tokens_per_s * 0.9);
  expectPlan(ORIEL_ERROR_SPEED, &first, 1e9);
  expectPlan(ORIEL_ERROR_ARGUMENT, nullptr, 1);
  oriel_prediction none = ORIEL_INIT(oriel_prediction);
  const std::string blind = describePlan(kModel, withSpeed(nullptr)).dump();
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_plan_predict(blind.data(), blind.size(), 16, 0, &none));
  oriel_speed broken = first;
  broken.submit_ns = -1;
  expectPlan(ORIEL_ERROR_ARGUMENT, &broken, 0);

  std::vector<uint8_t> bytes = readBytes(file());
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file(), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const oriel_speed again = measure(kModel);
  EXPECT_EQ(0u, again.kernels_changed) << "they were chosen before";
  EXPECT_EQ(1u, again.weight_count);
  EXPECT_NE(0, std::memcmp(&first, &again, sizeof(first)))
      << "times repeat to the bit only when read";
}

TEST_F(SpeedOnDevice, measuring_tells_how_far_it_is_and_ends_when_told_to_keeping_nothing) {
  uint64_t last = 0;
  Options options = makeOptions(&log_);
  options.cache_folder = folder_.c_str();
  options.progress = [](uint64_t done, uint64_t total, void* user) {
    EXPECT_LT(*static_cast<uint64_t*>(user), done);
    EXPECT_LE(done, total);
    *static_cast<uint64_t*>(user) = done;
    return done == 2 ? 1 : 0;
  };
  options.progress_user = &last;
  oriel_speed speed = ORIEL_INIT(oriel_speed);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_speed_measure(kModel, nullptr, 0, &options, &speed));
  EXPECT_EQ(2u, last);
  EXPECT_EQ("", file());
}

}  // namespace
}  // namespace oriel_internal::test::test_speed
