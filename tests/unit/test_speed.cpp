// Predicted speed: its parts, the effect of a minimum speed on the choice, and stored rates.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "budget/budget.h"
#include "exec/executor.h"
#include "os/os.h"
#include "speed/measure_speed.h"
#include "speed/probe.h"
#include "support/captured_log.h"
#include "support/files.h"
#include "tools/known_shapes.h"

namespace oriel_internal::test_speed {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kQ4 = static_cast<uint32_t>(TensorType::kQ4_0);

/// Round numbers: 0.1 ms a step, 10 us a kernel, 1 ns a Q4_0 weight.
DeviceSpeed roundSpeed() {
  DeviceSpeed speed;
  std::memset(&speed, 0, sizeof(speed));
  std::strcpy(speed.device, "Slide Rule");
  std::strcpy(speed.driver, "1.0");
  speed.submit_ns = 1e5;
  speed.dispatch_ns = 1e4;
  speed.weight_count = 1;
  speed.weights[0] = {kQ4, 0, 1.0, 0.5, 0.25, 0.8};
  speed.read_bytes_per_s = 1e10;
  speed.shape = 77;
  const struct {
    KvFormat k, v;
    double ns;
  } pairs[] = {{KvFormat::kF16, KvFormat::kF16, 2},
               {KvFormat::kInt8, KvFormat::kInt8, 1.5},
               {KvFormat::kInt8, KvFormat::kInt4, 1.2},
               {KvFormat::kInt4, KvFormat::kInt4, 1}};
  for (const auto& pair : pairs) {
    speed.caches[speed.cache_count++] = {pair.k, pair.v, {}, pair.ns, pair.ns / 2, 10 - pair.ns, 5};
  }
  return speed;
}

/// Four layers that see the session's window, and perhaps more that see 100 tokens at most.
ModelDesc layersOfModel(uint32_t n_sliding) {
  ModelDesc model;
  model.n_layers = 4 + n_sliding;
  model.n_heads = 8;
  model.n_kv_heads = 2;
  model.head_dim = 64;
  makeLayersAlike(&model);
  LayerKind sliding = model.kinds[0];
  sliding.view = n_sliding != 0 ? addView({ViewKind::kSliding, 100}, &model) : uint8_t{0};
  for (uint32_t layer = 4; layer < model.n_layers; ++layer) {
    model.layers[layer].kind = addKind(sliding, &model);
  }
  return model;
}

const ModelDesc kModel = layersOfModel(0);
const ModelDesc kSlidingModel = layersOfModel(12);

WorkShape workOfModel() {
  WorkShape work;
  work.model = &kModel;
  work.known = true;
  work.n_ops[0] = 50;
  work.n_ops[1] = 40;
  work.n_ops[2] = 2;
  work.add(kQ4, 1000000, 100000);
  return work;
}

CacheFormats formatsOf(KvFormat k, KvFormat v) {
  CacheFormats formats;
  formats.k = k;
  formats.v = v;
  return formats;
}

TEST(Speed, a_step_is_the_sum_of_overhead_weights_and_cache) {
  StepCost cost;
  const CacheFormats f16;
  ASSERT_TRUE(stepCost(roundSpeed(), workOfModel(), f16, 0, &cost));
  const double values = 4 * 8 * 64;  // layers, heads, head_dim
  EXPECT_NEAR(1e-9 * (1e5 + 50 * 1e4 + values * 8), cost.overhead_s, 1e-15);
  EXPECT_NEAR(1e-3, cost.weights_s, 1e-15);
  EXPECT_NEAR(1e-9 * (100000 * 0.8 + 2 * 1e4), cost.head_s, 1e-15);
  EXPECT_NEAR(1e-9 * values * 2, cost.seen[0].s_per_token, 1e-18);
  EXPECT_NEAR(cost.overhead_s + cost.weights_s + 1000 * cost.seen[0].s_per_token,
              stepSeconds(cost, 1000), 1e-15);

  ASSERT_TRUE(stepCost(roundSpeed(), workOfModel(), f16, 16, &cost));
  EXPECT_EQ(16u, cost.tokens);
  EXPECT_NEAR(1e-9 * (1000000 * (0.5 + 16 * 0.25) + values * 16 * 5), cost.weights_s, 1e-12);
  EXPECT_NEAR(1e-9 * (1e5 + 40 * 1e4), cost.overhead_s, 1e-15);
  EXPECT_NEAR(1e-9 * 1000000 * 0.5, cost.weights_once_s, 1e-12);
  EXPECT_NEAR(1e-9 * values * 16 * 1, cost.seen[0].s_per_token, 1e-15);
}

// Of 8 experts of 1,000,000 weights together a token uses 2, and two tokens 43.58 % of all on average.
TEST(Speed, experts_count_by_the_share_that_is_used) {
  WorkShape work = workOfModel();
  StepCost plain;
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 2, &plain));
  work.add(kQ4, 0, 0, 1000000);
  work.expert_count = 8;
  work.expert_used = 2;
  EXPECT_EQ(1, work.expertHitRate());
  EXPECT_NEAR(0.25, work.expertShare(1), 1e-12);
  const double share = work.expertShare(2);
  EXPECT_NEAR(0.4358, share, 1e-4);
  StepCost cost;
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 0, &cost));
  EXPECT_NEAR(1e-9 * (1000000 + 250000), cost.weights_s, 1e-15);
  EXPECT_EQ(0, cost.file_s);
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 2, &cost));
  EXPECT_NEAR(1e-9 * 1000000 * 0.5 * share, cost.weights_once_s - plain.weights_once_s, 1e-12);
  EXPECT_NEAR(1e-9 * (1000000 * 0.5 * share + 2 * 0.25 * 250000), cost.weights_s - plain.weights_s,
              1e-12);
}

// The published figures: the hottest 27 of 256 experts take half of the choices. A token's missing experts take four
// slots more.
TEST(Speed, slots_hold_the_hottest_experts) {
  WorkShape work = workOfModel();
  work.expert_count = 256;
  work.expert_used = 8;
  work.expert_slots = 27 + 4;
  EXPECT_NEAR(0.52, work.expertHitRate(), 0.01);
  double last = 0;
  for (uint32_t slots = 8; slots <= 256; ++slots) {
    work.expert_slots = slots;
    const double rate = work.expertHitRate();
    EXPECT_GT(rate, last) << slots << " slots";
    EXPECT_GE(rate, slots / 256.0) << slots << " slots";
    last = rate;
  }
  EXPECT_EQ(1, last);
}

TEST(Speed, experts_on_file_take_what_reading_them_takes) {
  WorkShape work = workOfModel();
  work.add(kQ4, 0, 0, 1000000);
  work.expert_count = 8;
  work.expert_used = 2;
  StepCost held;
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 0, &held));
  work.expert_slots = 2;
  work.expert_file_bytes = 4000;  // one per layer
  work.row_file_bytes = 100;
  const double missed = 1 - work.expertHitRate();
  EXPECT_NEAR(0.7205, missed, 1e-4);
  StepCost cost;
  EXPECT_FALSE(stepCost(roundSpeed(), work, CacheFormats(), 0, &cost)) << "no rate of the file";
  DeviceSpeed speed = roundSpeed();
  speed.file_bytes_per_s = 1e6;
  ASSERT_TRUE(stepCost(speed, work, CacheFormats(), 0, &cost));
  EXPECT_NEAR((2 * missed * 4000 + 100) / 1e6, cost.file_s, 1e-12);
  EXPECT_NEAR(held.weights_s + cost.file_s, cost.weights_s, 1e-12);
  ASSERT_TRUE(stepCost(speed, work, CacheFormats(), 2, &cost));
  EXPECT_NEAR((8 * work.expertShare(2) * missed * 4000 + 2 * 100) / 1e6, cost.file_s, 1e-12);
  work.expert_slots = 8;
  ASSERT_TRUE(stepCost(speed, work, CacheFormats(), 0, &cost));
  EXPECT_NEAR(100 / 1e6, cost.file_s, 1e-12);
}

// A quarter of the weights, in one layer of four.
TEST(Speed, a_chunk_leaves_out_the_layers_of_the_tail_but_for_one_token) {
  WorkShape work = workOfModel();
  StepCost whole;
  StepCost cost;
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 16, &whole));
  work.addTail(kQ4, 250000);
  work.tail_layers = 1;
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 16, &cost));
  EXPECT_NEAR(0.75 * whole.weights_once_s, cost.weights_once_s, 1e-12);
  EXPECT_NEAR(0.75 * whole.weights_s, cost.weights_s, 1e-12);
  EXPECT_NEAR(0.75 * whole.seen[0].s_per_token, cost.seen[0].s_per_token, 1e-15);
  EXPECT_NEAR(whole.head_s + 1e-9 * 250000, cost.head_s, 1e-12);
  EXPECT_NEAR(1e-9 * (1e5 + 30 * 1e4), cost.overhead_s, 1e-15);
  StepCost decode;
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 0, &decode));
  EXPECT_NEAR(1e-3, decode.weights_s, 1e-15) << "a token passes all layers";
}

TEST(Speed, more_work_is_never_predicted_to_take_less_time) {
  const WorkShape work = workOfModel();
  for (const uint32_t chunk : {0u, 16u}) {
    StepCost cost;
    ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), chunk, &cost));
    double last = 0;
    for (double depth = 1; depth < 1e6; depth *= 2) {
      EXPECT_GT(stepSeconds(cost, depth), last);
      last = stepSeconds(cost, depth);
    }
  }
  double last = 0;
  for (uint32_t chunk = 1; chunk <= 64; ++chunk) {
    StepCost cost;
    ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), chunk, &cost));
    EXPECT_GT(stepSeconds(cost, 100), last);
    last = stepSeconds(cost, 100);
  }
}

TEST(Speed, a_pair_that_was_not_measured_is_half_of_each_side) {
  StepCost mixed, f16, int4;
  const WorkShape work = workOfModel();
  ASSERT_TRUE(stepCost(roundSpeed(), work, formatsOf(KvFormat::kF16, KvFormat::kInt4), 0, &mixed));
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 0, &f16));
  ASSERT_TRUE(stepCost(roundSpeed(), work, formatsOf(KvFormat::kInt4, KvFormat::kInt4), 0, &int4));
  EXPECT_NEAR((f16.seen[0].s_per_token + int4.seen[0].s_per_token) / 2, mixed.seen[0].s_per_token,
              1e-15);
}

TEST(Speed, layers_with_a_window_of_their_own_stop_costing_when_it_is_full) {
  WorkShape work = workOfModel();
  work.model = &kSlidingModel;
  StepCost cost;
  ASSERT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 0, &cost));
  EXPECT_EQ(100u, cost.seen[1].window_tokens);
  EXPECT_NEAR(3 * cost.seen[0].s_per_token, cost.seen[1].s_per_token, 1e-15);
  EXPECT_NEAR(4 * 50 * cost.seen[0].s_per_token, stepSeconds(cost, 50) - stepSeconds(cost, 0),
              1e-12);
  EXPECT_NEAR(100 * cost.seen[0].s_per_token, stepSeconds(cost, 300) - stepSeconds(cost, 200),
              1e-12);
}

TEST(Speed, nothing_is_predicted_from_rates_that_are_not_there) {
  StepCost cost;
  WorkShape work = workOfModel();
  work.add(static_cast<uint32_t>(TensorType::kF16), 0, 0);
  EXPECT_TRUE(stepCost(roundSpeed(), work, CacheFormats(), 0, &cost)) << "only looked up";
  work.add(static_cast<uint32_t>(TensorType::kF16), 1, 0);
  EXPECT_FALSE(stepCost(roundSpeed(), work, CacheFormats(), 0, &cost));
  work = workOfModel();
  work.known = false;
  EXPECT_FALSE(stepCost(roundSpeed(), work, CacheFormats(), 0, &cost));
  for (uint32_t type = 0; type <= kMaxWorkTypes; ++type) {
    work.known = true;
    work.add(100 + type, 1, 1);
  }
  EXPECT_FALSE(work.known) << "more types than there is room for";
}

TEST(Speed, rates_that_no_measurement_can_give_are_not_valid) {
  EXPECT_TRUE(validSpeed(roundSpeed()));
  for (const double value :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    for (double DeviceSpeed::*const field :
         {&DeviceSpeed::submit_ns, &DeviceSpeed::dispatch_ns, &DeviceSpeed::read_bytes_per_s}) {
      DeviceSpeed speed = roundSpeed();
      speed.*field = value;
      EXPECT_FALSE(validSpeed(speed));
    }
    DeviceSpeed speed = roundSpeed();
    speed.weights[0].chunk_ns = value;
    EXPECT_FALSE(validSpeed(speed));
    speed = roundSpeed();
    speed.caches[3].append_ns = value;
    EXPECT_FALSE(validSpeed(speed));
  }
  DeviceSpeed speed = roundSpeed();
  speed.weight_count = kMaxSpeedWeights + 1;
  EXPECT_FALSE(validSpeed(speed));
}

// ---- A minimum speed ----

struct Planned {
  oriel_status status = ORIEL_OK;
  Budget budget;
  std::string error;
};

const ModelShape& smallModel() { return *findShape("smollm2-135m"); }

Planned planWith(const DeviceSpeed& speed, double min_tokens_per_s, uint64_t memory_bytes,
                 uint32_t window = 0, bool f16 = false) {
  const ModelDesc model = modelDescOf(smallModel());
  const WorkShape work = workOf(smallModel(), model, WeightType::kQ4_0);
  BudgetRequest request;
  request.memory_bytes = memory_bytes;
  request.window = window;
  request.fixed_k = request.fixed_v = f16;
  request.speed = &speed;
  request.work = &work;
  request.min_tokens_per_s = min_tokens_per_s;
  test::CapturedLog log;
  Planned planned;
  planned.status = chooseBudget(model, measureShape(smallModel(), WeightType::kQ4_0, OnFile()),
                                request, log.log(), &planned.budget)
                       .code();
  planned.error = log.errors();
  return planned;
}

double predictedSpeed(const Budget& budget) {
  return 1 / (stepSeconds(budget.decode, budget.cache.sinks + budget.cache.window) +
              budget.decode.head_s);
}

TEST(Speed, a_least_speed_is_kept_by_a_shorter_window_which_is_the_longest_that_keeps_it) {
  const DeviceSpeed speed = roundSpeed();
  const Planned free_choice = planWith(speed, 0, 1ull << 30, 0, true);
  ASSERT_EQ(ORIEL_OK, free_choice.status);
  const double slow = predictedSpeed(free_choice.budget);
  double last_window = 1e9;
  for (const double factor : {0.9, 1.01, 1.05, 1.2, 1.3}) {
    const Planned planned = planWith(speed, slow * factor, 1ull << 30, 0, true);
    ASSERT_EQ(ORIEL_OK, planned.status) << factor << planned.error;
    EXPECT_GE(predictedSpeed(planned.budget), slow * factor);
    EXPECT_LE(planned.budget.cache.window, last_window);
    last_window = planned.budget.cache.window;
    const BudgetChoice& chosen = planned.budget.choices[planned.budget.chosen];
    EXPECT_EQ(chosen.decode_tokens_per_s, predictedSpeed(planned.budget));
    if (factor > 1) {
      EXPECT_LT(planned.budget.cache.window, free_choice.budget.cache.window);
      const StepCost& cost = planned.budget.decode;
      const double longer = planned.budget.cache.sinks + planned.budget.cache.window + 1.0;
      EXPECT_LT(1 / (stepSeconds(cost, longer) + cost.head_s), slow * factor);
    }
  }
}

TEST(Speed, a_faster_format_keeps_a_longer_window) {
  const DeviceSpeed speed = roundSpeed();
  const double floor = predictedSpeed(planWith(speed, 0, 1ull << 30, 0, true).budget) * 1.2;
  const Planned f16 = planWith(speed, floor, 1ull << 30, 0, true);
  const Planned open = planWith(speed, floor, 1ull << 30);
  EXPECT_NE(KvFormat::kF16, open.budget.formats.k);
  EXPECT_GT(open.budget.cache.window, f16.budget.cache.window);
  EXPECT_LT(open.budget.loss, f16.budget.loss);
}

TEST(Speed, a_speed_out_of_reach_is_refused_with_the_best_there_is) {
  const DeviceSpeed speed = roundSpeed();
  const Planned planned = planWith(speed, 1e6, 1ull << 30);
  EXPECT_EQ(ORIEL_ERROR_SPEED, planned.status);
  EXPECT_NE(std::string::npos, planned.error.find("Slide Rule")) << planned.error;
  const size_t at = planned.error.find("the best is ");
  ASSERT_NE(std::string::npos, at) << planned.error;
  const double best = std::stod(planned.error.substr(at + 12));
  EXPECT_EQ(ORIEL_OK, planWith(speed, best - 0.1, 1ull << 30).status);
  EXPECT_EQ(ORIEL_ERROR_SPEED, planWith(speed, best + 0.1, 1ull << 30).status);
}

TEST(Speed, a_window_that_was_asked_for_is_not_shortened) {
  const DeviceSpeed speed = roundSpeed();
  const double slow = predictedSpeed(planWith(speed, 0, 1ull << 30, 1000).budget);
  EXPECT_EQ(1000u, planWith(speed, slow * 0.99, 1ull << 30, 1000).budget.cache.window);
  const Planned faster = planWith(speed, slow * 1.01, 1ull << 30, 1000);
  if (faster.status == ORIEL_OK) {
    EXPECT_EQ(1000u, faster.budget.cache.window) << "in a faster format";
  } else {
    EXPECT_EQ(ORIEL_ERROR_SPEED, faster.status);
  }
}

TEST(Speed, with_a_least_speed_more_memory_never_costs) {
  const DeviceSpeed speed = roundSpeed();
  const double floor = predictedSpeed(planWith(speed, 0, 1ull << 30).budget) * 1.1;
  double last = 1e300;
  const uint64_t minimum = planWith(speed, floor, 1).budget.minimum_bytes;
  for (uint64_t memory = minimum; memory < 8 * minimum; memory += memory / 30) {
    const Planned planned = planWith(speed, floor, memory);
    ASSERT_EQ(ORIEL_OK, planned.status);
    ASSERT_TRUE(planned.budget.fits);
    ASSERT_LE(planned.budget.bytes.total(), memory);
    ASSERT_LE(planned.budget.loss, last);
    ASSERT_GE(predictedSpeed(planned.budget), floor);
    last = planned.budget.loss;
  }
}

// ---- Rates on disk ----

class SpeedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("oriel-test-speed-file-" + std::to_string(getpid())))
                  .string();
    fs::remove_all(folder_);
    writeSpeedFile(folder_.c_str(), roundSpeed(), Log());
    for (const auto& entry : fs::directory_iterator(folder_)) {
      path_ = entry.path().string();
    }
    ASSERT_FALSE(path_.empty());
  }
  void TearDown() override { fs::remove_all(folder_); }

  bool read(DeviceSpeed* speed) const {
    const DeviceSpeed wanted = roundSpeed();
    std::memset(static_cast<void*>(speed), 0, sizeof(*speed));
    std::memcpy(speed->device, wanted.device, sizeof(wanted.device));
    std::memcpy(speed->driver, wanted.driver, sizeof(wanted.driver));
    speed->shape = wanted.shape;
    return readSpeedFile(folder_.c_str(), speed);
  }
  void write(const std::vector<uint8_t>& bytes) const {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SpeedFileTest, what_was_written_is_read) {
  DeviceSpeed speed;
  ASSERT_TRUE(read(&speed));
  const DeviceSpeed wanted = roundSpeed();
  EXPECT_EQ(0, std::memcmp(&wanted, &speed, sizeof(speed)));
}

TEST_F(SpeedFileTest, a_damaged_byte_makes_it_as_good_as_none) {
  const std::vector<uint8_t> good = test::readBytes(path_);
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<uint8_t> bad = good;
    bad[at] ^= 0x10;
    write(bad);
    DeviceSpeed speed;
    ASSERT_FALSE(read(&speed)) << at;
    EXPECT_EQ(0u, speed.weight_count);
  }
  write(std::vector<uint8_t>(good.size(), 0xff));  // no text in it ends
  DeviceSpeed nothing;
  EXPECT_FALSE(read(&nothing));
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{31}, good.size() - 1}) {
    write({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)});
    DeviceSpeed speed;
    EXPECT_FALSE(read(&speed)) << bytes;
  }
}

TEST_F(SpeedFileTest, another_driver_or_shape_has_rates_of_its_own) {
  DeviceSpeed speed = roundSpeed();
  speed.shape = 78;
  EXPECT_FALSE(readSpeedFile(folder_.c_str(), &speed));
  speed = roundSpeed();
  std::strcpy(speed.driver, "1.1");
  EXPECT_FALSE(readSpeedFile(folder_.c_str(), &speed));
  EXPECT_FALSE(readSpeedFile(nullptr, &speed));
  EXPECT_FALSE(readSpeedFile((folder_ + "/none").c_str(), &speed));
}

// ---- The models that are timed ----

TEST(Probe, is_a_model_like_any_other) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kQ4_0,
                                TensorType::kQ8_0, TensorType::kBf16, TensorType::kQ6_K}) {
    ProbeShape shape = {2, 256, 8, 2, 32, 512, 32, static_cast<uint32_t>(type)};
    const uint64_t bytes = probeFileBytes(shape);
    ASSERT_NE(0u, bytes);
    std::vector<uint64_t> block(bytes / 8 + 1);  // aligned
    uint8_t* const data = reinterpret_cast<uint8_t*>(block.data());
    writeProbeFile(shape, data);
    test::CapturedLog log;
    GgufFile file;
    ModelDesc desc;
    ASSERT_TRUE(file.open(data, bytes, log.log()).ok()) << log.errors();
    TensorIndex tensors;
    ASSERT_TRUE(readModelDesc(file, defaultAllocator(), log.log(), &desc, &tensors).ok())
        << log.errors();
    EXPECT_EQ(8u, desc.n_heads);
    EXPECT_EQ(32u, desc.head_dim);
    EXPECT_TRUE(desc.tied_output);
    const WorkShape work = workOf(tensors, desc, PlanTotals());
    ASSERT_EQ(1u, work.n_matrices);
    EXPECT_EQ(shape.bodyWeights(), work.matrices[0].body_weights);
    EXPECT_EQ(32u * 256, work.matrices[0].head_weights);
  }
  ProbeShape odd = {1, 100, 1, 1, 64, 64, 32, kQ4};
  EXPECT_EQ(0u, probeFileBytes(odd)) << "blocks of 32 do not divide rows of 100";
  odd.tensor_type = 12345;
  EXPECT_EQ(0u, probeFileBytes(odd));
}

Status makeReference(const void*, const Plan& plan, const ExecutorMemory& memory,
                     Executor** executor) {
  ExecutorOptions options;
  options.allocator = &defaultAllocator();
  return createReferenceExecutor(plan, options, memory, executor);
}

TEST(Probe, runs_all_ops_or_those_of_the_cache_alone) {
  const ProbeShape shape = {3, 64, 2, 1, 32, 64, 32, kQ4};
  CacheFormats formats;
  formats.k = KvFormat::kInt8;
  formats.v = KvFormat::kInt4;
  test::CapturedLog log;
  Probe all(defaultAllocator(), log.log());
  Probe cache(defaultAllocator(), log.log());
  ASSERT_TRUE(all.open(shape, formats, 32, 16, {makeReference, nullptr}).ok()) << log.errors();
  ASSERT_TRUE(cache.open(shape, formats, 32, 16, {makeReference, nullptr}, ProbeOps::kCache).ok())
      << log.errors();
  // Storing a token and reading stored ones, in each layer; reading may take a second op.
  for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
    EXPECT_EQ(0u, cache.ops(list) % 3);
    EXPECT_GE(cache.ops(list), 3u * 2);
    EXPECT_LE(cache.ops(list), 3u * 3);
    EXPECT_GT(all.ops(list), cache.ops(list));
  }
  EXPECT_GT(all.ops(StepList::kHead), 0u);
  EXPECT_EQ(0u, cache.ops(StepList::kHead));
  for (Probe* probe : {&all, &cache}) {
    for (const uint32_t tokens : {1u, 16u}) {
      double seconds = 0;
      EXPECT_TRUE(probe->time(tokens, 32, &seconds).ok()) << log.errors();
      EXPECT_GT(seconds, 0);
    }
  }
}

TEST(Probe, has_layers_that_share_their_bytes) {
  ProbeShape shape = {1, 256, 8, 2, 32, 512, 32, kQ4};
  const uint64_t one = probeFileBytes(shape);
  shape.n_layers = 9;
  // Eight more of nine entries: a name, dimensions, type and offset, under 80 bytes each.
  EXPECT_LT(probeFileBytes(shape), one + 8 * 9 * 80);
  EXPECT_GT(9 * shape.bodyWeights() * 18 / 32, one) << "apart they would be larger";
}

TEST(Probe, stands_for_the_model_with_its_own_widths) {
  const ProbeShape model = {30, 576, 9, 3, 64, 1536, 49152, 0};
  ProbeShape shape;
  ASSERT_TRUE(shapeOfType(model, kQ4, 96u << 20, 4u << 20, &shape));
  EXPECT_EQ(576u, shape.n_embd);
  EXPECT_EQ(9u, shape.n_heads);
  EXPECT_EQ(3u, shape.n_kv_heads);
  EXPECT_EQ(1536u, shape.n_ff);
  // 4 MiB of rows of 18 blocks of 18 bytes.
  EXPECT_EQ((4u << 20) / 324, shape.n_vocab);
  EXPECT_EQ(30u, layersWithin(shape, 96u << 20)) << "all that it has";
  // A layer has 3,538,944 weights in 1,990,656 bytes: four in 8 MiB, its norms and the header included.
  EXPECT_EQ(4u, layersWithin(shape, 8u << 20));
  EXPECT_EQ(1u, layersWithin(shape, 1));
}

TEST(Probe, is_widened_to_whole_blocks_and_narrowed_to_the_memory_there_is) {
  const uint32_t q4_k = static_cast<uint32_t>(TensorType::kQ4_K);
  ProbeShape shape;
  ASSERT_TRUE(shapeOfType({30, 576, 9, 3, 64, 1536, 49152, 0}, q4_k, 96u << 20, 4u << 20, &shape));
  EXPECT_EQ(768u, shape.n_embd);
  EXPECT_EQ(12u, shape.n_heads);
  EXPECT_EQ(3u, shape.n_kv_heads);
  EXPECT_NE(0u, probeFileBytes(shape));

  const ProbeShape large = {80, 8192, 64, 8, 128, 28672, 128256, 0};
  const uint32_t f16 = static_cast<uint32_t>(TensorType::kF16);
  ASSERT_TRUE(shapeOfType(large, f16, 96u << 20, 4u << 20, &shape));
  shape.n_layers = 1;
  EXPECT_LE(probeFileBytes(shape), 101u << 20);
  EXPECT_EQ(128u, shape.head_dim);
  EXPECT_EQ(large.n_heads / large.n_kv_heads, shape.n_heads / shape.n_kv_heads);
  EXPECT_FALSE(shapeOfType(large, 12345, 96u << 20, 4u << 20, &shape));
}

TEST(SpeedTarget, is_another_for_other_layers_types_and_kernels) {
  const ModelDesc model = modelDescOf(smallModel());
  const SpeedTarget small = speedTargetOf(model, workOf(smallModel(), model, WeightType::kQ4_0));
  EXPECT_EQ(30u, small.shape.n_layers);
  ASSERT_EQ(1u, small.n_matrices);
  SpeedTarget other = small;
  EXPECT_EQ(small.hash(), other.hash());
  other.shape.head_dim *= 2;
  EXPECT_NE(small.hash(), other.hash());
  other = small;
  other.matrices[0].tensor_type = 8;
  EXPECT_NE(small.hash(), other.hash());
  other = small;
  other.kernels[0] = 1;
  EXPECT_NE(small.hash(), other.hash()) << "rates are of the kernel that was chosen";
  other = small;
  other.features = 1;
  EXPECT_NE(small.hash(), other.hash()) << "and of the features that were in use";
  other = small;
  other.activation_bits = 8;
  EXPECT_NE(small.hash(), other.hash()) << "and of the width of activations";
}

bool isLowBit(const std::vector<std::pair<TensorType, uint64_t>>& layers,
              TensorType head = TensorType::kQ8_0) {
  WorkShape work;
  for (const auto& [type, weights] : layers) {
    work.add(static_cast<uint32_t>(type), weights, 0);
  }
  work.add(static_cast<uint32_t>(head), 0, 1u << 30);
  return work.isLowBit();
}

// Bits a weight, scales included, from the definitions of the formats: 4.25 (IQ4_XS, MXFP4), 4.5 (Q4_0, Q4_K), 5.5
// (Q5_0, Q5_K), 6 (Q5_1), 6.5625 (Q6_K), 8.5 (Q8_0).
TEST(WorkShape, is_low_bit_if_most_bytes_of_the_layers_are_below_6_bits_a_weight) {
  for (const TensorType type :
       {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ4_K, TensorType::kQ5_0,
        TensorType::kQ5_K, TensorType::kIq4Xs, TensorType::kMxfp4, TensorType::kQ2_K}) {
    EXPECT_TRUE(isLowBit({{type, 1u << 20}, {TensorType::kF32, 1u << 10}}))
        << static_cast<int>(type);
  }
  for (const TensorType type : {TensorType::kQ5_1, TensorType::kQ6_K, TensorType::kQ8_0,
                                TensorType::kF16, TensorType::kBf16, TensorType::kF32}) {
    EXPECT_FALSE(isLowBit({{type, 1u << 20}}, TensorType::kQ4_0)) << static_cast<int>(type);
  }
  // Q4_K_M: about a fifth of the weights in Q6_K.
  EXPECT_TRUE(isLowBit({{TensorType::kQ4_K, 800u << 10}, {TensorType::kQ6_K, 200u << 10}}));
  // Of 4.5 and 8.5 bits, bytes are equal at 17 to 9 weights.
  EXPECT_TRUE(isLowBit({{TensorType::kQ4_0, 18u << 10}, {TensorType::kQ8_0, 9u << 10}}));
  EXPECT_FALSE(isLowBit({{TensorType::kQ4_0, 16u << 10}, {TensorType::kQ8_0, 9u << 10}}));
  EXPECT_FALSE(isLowBit({}));
  WorkShape experts;
  experts.add(static_cast<uint32_t>(TensorType::kQ8_0), 1u << 10, 0);
  experts.add(static_cast<uint32_t>(TensorType::kQ4_0), 0, 0, 1u << 20);
  EXPECT_TRUE(experts.isLowBit()) << "experts are matrices, too";
}

}  // namespace
}  // namespace oriel_internal::test_speed
