// oriel_self_test on the device under test; it must detect a kernel with wrong results.
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "selftest/self_test.h"
#include "support/api.h"
#include "support/files.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_self_test {
namespace {

namespace fs = std::filesystem;

struct Findings {
  std::map<std::string, oriel_check> checks;
  std::vector<oriel_candidate> candidates;
};
void onCheck(const oriel_check* check, void* user) {
  EXPECT_TRUE(static_cast<Findings*>(user)->checks.emplace(check->name, *check).second)
      << check->name << " twice";
}
void onCandidate(const oriel_candidate* candidate, void* user) {
  static_cast<Findings*>(user)->candidates.push_back(*candidate);
}

struct Steps {
  uint64_t stop_at = UINT64_MAX;
  uint64_t done = 0;
  uint64_t total = 0;
};

int onProgress(uint64_t done, uint64_t total, void* user) {
  auto* steps = static_cast<Steps*>(user);
  EXPECT_EQ(done, steps->done + 1);
  EXPECT_TRUE(steps->total == 0 || steps->total == total);
  steps->done = done;
  steps->total = total;
  return done >= steps->stop_at ? 1 : 0;
}

RUNS_ON(kCpu);
TEST(SelfTest, passes_every_check_on_this_device_counts_them_and_tells_how_far_it_is) {
  CapturedLog log;
  Options options = makeOptions(&log);
  Steps steps;
  // A software driver without a cache compiles all kernels, some within one step.
  options.set("device_timeout_ms", std::max(deviceTimeoutMs(), 240000u));
  options.progress = onProgress;
  options.progress_user = &steps;
  Findings findings;
  oriel_self_test_result result = ORIEL_INIT(oriel_self_test_result);
  ASSERT_EQ(ORIEL_OK, oriel_self_test(&options, onCheck, nullptr, &findings, &result))
      << log.errors();
  EXPECT_GT(steps.total, 1u);
  EXPECT_EQ(steps.done, steps.total);
  EXPECT_EQ(result.failed, 0u);
  EXPECT_GT(result.passed, 100u);
  EXPECT_EQ(result.passed + result.skipped, findings.checks.size());
  EXPECT_NE(std::string(result.device), "");
  // This lists the feature only where the device uses it.
  const bool units =
      std::string(result.feature_names).find("cooperative_matrix") != std::string::npos;
  for (const auto& [name, check] : findings.checks) {
    EXPECT_NE(check.result, ORIEL_CHECK_FAILED) << name << ": " << check.error;
    if (name.compare(0, 10, "attention_") == 0 && !units) {
      EXPECT_EQ(check.limit, 3e-4) << name;
    }
    EXPECT_EQ(check.result == ORIEL_CHECK_SKIPPED, check.reason[0] != '\0') << name;
  }
  const bool vulkan = onVulkan();
  for (const char* name :
       {"embed_q4_k", vulkan ? "matmul_q6_k of a chunk (float)" : "matmul_q6_k of a chunk",
        "attention_int8_int4", "rope_append_int4 (keys)", "gated_activation (gelu)",
        "state_inputs_delta", "state_scan_delta_int8 of a chunk", "state_scan_mamba2_f32 (state)",
        "gated_norm (in place)", "tail of a chunk", "sort_routes", "expert_matmul_q8_0",
        "expert_matmul_iq3_s of a chunk"}) {
    EXPECT_EQ(findings.checks.count(name), 1u) << name;
  }
  if (vulkan) {
    EXPECT_EQ(findings.checks.count("rms_norm_shared"), 1u);
    // may be skipped, but must be listed
    EXPECT_EQ(findings.checks.count("rms_norm_subgroup"), 1u);
    EXPECT_NE(std::string(result.feature_names).find("integer_dot"), std::string::npos);
  }
}

/// The reference executor with one word of every output changed.
class WrongExecutor final : public ForwardingExecutor {
 public:
  WrongExecutor(Executor* real, double factor)
      : ForwardingExecutor(real), real_(real), factor_(factor) {}
  ~WrongExecutor() override { destroyExecutor(real_); }
  Status read(const BufferRef& from, uint64_t offset, uint64_t bytes, const void** piece) override {
    const Status status = ForwardingExecutor::read(from, offset, bytes, piece);
    float* const values = static_cast<float*>(const_cast<void*>(*piece));
    values[kWrong] = static_cast<float>(static_cast<double>(values[kWrong]) * factor_);
    return status;
  }
  const char* deviceName() const override { return "wrong"; }
  const char* driverName() const override { return "wrong"; }

 private:
  static constexpr size_t kWrong = 5;  // within what the shortest output holds
  Executor* real_;
  double factor_;
};

uint32_t failuresWith(double factor, uint32_t* passed) {
  struct Context {
    double factor;
    std::vector<std::unique_ptr<char[]>> blocks;
  } context = {factor, {}};
  TestedDevice device;
  device.context = &context;
  device.make = [](const void* user, const Plan& plan, bool, const ExecutorMemory& memory,
                   Executor** executor) -> Status {
    auto* own = static_cast<Context*>(const_cast<void*>(user));
    ExecutorOptions options;
    options.allocator = &defaultAllocator();
    Executor* real = nullptr;
    ORIEL_TRY(createReferenceExecutor(plan, options, memory, &real));
    own->blocks.push_back(std::make_unique<char[]>(sizeof(WrongExecutor)));
    *executor = new (own->blocks.back().get()) WrongExecutor(real, own->factor);
    return kOk;
  };
  SelfTestSummary result = {};
  const CheckSink sink = {nullptr, nullptr, &result};
  TestProgress progress = {{}, kSelfTestParts};
  EXPECT_TRUE(runSelfTest(device, defaultAllocator(), Log(), sink, &progress).ok());
  *passed = result.passed;
  return result.failed;
}

RUNS_ON(kCpu);
TEST(SelfTest, fails_kernels_of_which_one_value_is_off_or_no_number) {
  uint32_t passed = 0;
  EXPECT_EQ(failuresWith(1.0, &passed), 0u);
  const uint32_t all = passed;
  // Except caches, where a word may be at a rounding boundary.
  EXPECT_GT(failuresWith(1.5, &passed), all * 3 / 4);
  EXPECT_GT(failuresWith(std::nan(""), &passed), all * 3 / 4);
}

/// The reference executor, with matmul candidates for matrix units and one value of every output off by 1e-3 of the
/// root mean square: more than attention in float may be off, and less than attention on matrix units may.
class NearlyRightExecutor final : public ForwardingExecutor, public MatmulTuning {
 public:
  NearlyRightExecutor(Executor* real, bool halves)
      : ForwardingExecutor(real), real_(real), halves_(halves) {}
  ~NearlyRightExecutor() override { destroyExecutor(real_); }
  Status read(const BufferRef& from, uint64_t offset, uint64_t bytes, const void** piece) override {
    const Status status = ForwardingExecutor::read(from, offset, bytes, piece);
    float* const values = static_cast<float*>(const_cast<void*>(*piece));
    double squares = 0;
    for (uint64_t i = 0; i < bytes / 4; ++i) {
      squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    values[0] += static_cast<float>(1e-3 * std::sqrt(squares / static_cast<double>(bytes / 4)));
    return status;
  }
  const char* deviceName() const override { return "nearly right"; }
  const char* driverName() const override { return "nearly right"; }
  bool multipliesHalves(StepList list, const Op* ops, uint32_t count) const override {
    return halves_ && list == StepList::kChunk && std::any_of(ops, ops + count, [](const Op& op) {
             return op.kind == OpKind::kAttention;
           });
  }

  MatmulTuning* matmulTuning() override { return this; }
  const char* candidateName(MatmulUse, WeightType, uint32_t index) const override {
    return index == 0 ? "matrix" : nullptr;
  }
  uint32_t choice(MatmulUse, WeightType) const override { return 0; }
  uint32_t standard(MatmulUse, WeightType) const override { return 0; }
  bool isMeasured(MatmulUse, WeightType) const override { return false; }
  Status take(MatmulUse, WeightType, uint32_t) override { return kOk; }
  bool keep(MatmulUse, WeightType, uint32_t) override { return false; }

 private:
  Executor* real_;
  bool halves_;
};

struct LimitedDevice {
  bool halves;
  std::vector<std::unique_ptr<char[]>> blocks;
  std::map<std::string, std::pair<CheckResult, double>> attention;  ///< result and limit
};

void testAttention(LimitedDevice* own) {
  TestedDevice device;
  device.context = own;
  device.make = [](const void* user, const Plan& plan, bool, const ExecutorMemory& memory,
                   Executor** executor) -> Status {
    auto* self = static_cast<LimitedDevice*>(const_cast<void*>(user));
    ExecutorOptions options;
    options.allocator = &defaultAllocator();
    Executor* real = nullptr;
    ORIEL_TRY(createReferenceExecutor(plan, options, memory, &real));
    self->blocks.push_back(std::make_unique<char[]>(sizeof(NearlyRightExecutor)));
    *executor = new (self->blocks.back().get()) NearlyRightExecutor(real, self->halves);
    return kOk;
  };
  SelfTestSummary result = {};
  const auto onReport = [](const CheckReport& report, void* user) {
    if (std::strncmp(report.name, "attention_", 10) == 0) {
      static_cast<LimitedDevice*>(user)->attention[report.name] = {report.result, report.limit};
    }
  };
  const CheckSink sink = {onReport, own, &result};
  TestProgress progress = {{}, kSelfTestParts};
  EXPECT_TRUE(runSelfTest(device, defaultAllocator(), Log(), sink, &progress).ok());
}

RUNS_ON(kCpu);
TEST(SelfTest, allows_attention_more_only_where_it_multiplies_in_f16) {
  LimitedDevice in_float = {false, {}, {}};
  testAttention(&in_float);
  LimitedDevice in_halves = {true, {}, {}};
  testAttention(&in_halves);
  ASSERT_GT(in_float.attention.size(), 8u);
  for (const auto& [name, found] : in_float.attention) {
    EXPECT_EQ(found.first, CheckResult::kFailed) << name;
    EXPECT_EQ(found.second, 3e-4) << name;
  }
  for (const auto& [name, found] : in_halves.attention) {
    const bool is_prompt = name.find("of a chunk") != std::string::npos;
    EXPECT_EQ(found.first, is_prompt ? CheckResult::kPassed : CheckResult::kFailed) << name;
    EXPECT_EQ(found.second, is_prompt ? 4e-3 : 3e-4) << name;
  }
}

RUNS_ON(kCpu);
TEST(SelfTest, ends_when_asked_to) {
  Options options = makeOptions();
  options.progress = onProgress;
  Steps some;
  some.stop_at = 1;
  options.progress_user = &some;
  Findings findings;
  oriel_self_test_result untouched = ORIEL_INIT(oriel_self_test_result);
  ASSERT_EQ(ORIEL_ERROR_CANCELLED,
            oriel_self_test(&options, onCheck, onCandidate, &findings, &untouched));
  EXPECT_EQ(some.done, 1u);
  EXPECT_GT(some.total, 1u);
  EXPECT_EQ(untouched.passed, 0u);
  EXPECT_LT(findings.checks.size(), 100u);
}

RUNS_ON(kNightlyGpu);
TEST(SelfTest, keeps_the_fastest_candidates_in_the_cache_folder) {
  const fs::path folder =
      fs::temp_directory_path() / ("oriel-self-test-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string path = folder.string();
  Options options = makeOptions();
  options.cache_folder = path.c_str();
  Findings findings;
  oriel_self_test_result result = ORIEL_INIT(oriel_self_test_result);
  ASSERT_EQ(ORIEL_OK, oriel_self_test(&options, onCheck, onCandidate, &findings, &result));
  std::map<std::string, std::pair<double, double>> fastest_and_chosen;
  for (const oriel_candidate& candidate : findings.candidates) {
    EXPECT_GT(candidate.microseconds, 0) << candidate.name;
    auto& op = fastest_and_chosen.try_emplace(candidate.op, 1e30, 0).first->second;
    op.first = std::min(op.first, candidate.microseconds);
    op.second = candidate.chosen != 0 ? candidate.microseconds : op.second;
  }
  for (const auto& [op, times] : fastest_and_chosen) {
    EXPECT_LE(times.second, times.first / 0.97) << op;
    EXPECT_GT(times.second, 0) << op;
  }
  EXPECT_EQ(result.candidates_kept, findings.candidates.empty() ? 0u : 1u);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace oriel_internal::test::test_self_test

namespace oriel_internal::test::test_speed {

// Rates measured on the device under test, and plans made with them.

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

RUNS_ON(kCpu);
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
