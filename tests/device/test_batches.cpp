// Sessions that decode together in one step give exactly the same bits as alone: for every kind of layer, every weight
// type, any windows and any positions.
#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/kernels.h"
#include "cpu/simd.h"
#include "support/api.h"
#include "support/batch_rig.h"
#include "support/files.h"
#include "support/golden.h"
#include "support/kernel_rig.h"
#include "support/product.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_batches {
namespace {

FILE_RUNS_ON(kCpu);

/// Tokens that each session reads before, in chunks: none, within the sinks, before and after eviction.
struct Reading {
  std::vector<uint32_t> tokens;
  uint32_t steps = 3;
};
const Reading kShort = {{0, 3, 40, 21, 60}, 3};

void readAll(const Reading& reading, uint32_t chunk, BatchRig* rig) {
  for (uint32_t s = 0; s < rig->sessionCount(); ++s) {
    for (uint32_t left = reading.tokens[s]; left != 0;) {
      const uint32_t count = std::min(left, chunk);
      rig->read(s, count);
      left -= count;
    }
  }
}

// Each step has another subset, in another order.
std::vector<uint32_t> membersOf(uint32_t step, uint32_t count) {
  std::vector<uint32_t> members;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t session = (i * 3 + step) % count;
    if (step % 3 == 0 || (session + step) % 3 != 0) {
      members.push_back(session);
    }
  }
  return members;
}

// Decodes each session alone, then all again in batches.
void expectSame(const Reading& reading, uint32_t chunk, BatchRig* rig) {
  const uint32_t count = rig->sessionCount();
  std::vector<std::vector<Decoded>> alone(count);
  rig->restart();
  readAll(reading, chunk, rig);
  for (uint32_t s = 0; s < count; ++s) {
    for (uint32_t step = 0; step < reading.steps; ++step) {
      alone[s].push_back(rig->decode(s));
      for (const float logit : alone[s].back().logits) {
        ASSERT_TRUE(std::isfinite(logit));
      }
    }
  }
  ASSERT_FALSE(alone[0].back().same(alone[1].back()));
  rig->restart();
  readAll(reading, chunk, rig);
  for (uint32_t step = 0; step < reading.steps; ++step) {
    const std::vector<uint32_t> members = membersOf(step, count);
    const std::vector<Decoded> together = rig->decodeTogether(members);
    for (size_t i = 0; i < members.size(); ++i) {
      const uint32_t s = members[i];
      const Decoded& want = alone[s][rig->positionOf(s) - 1 - reading.tokens[s]];
      EXPECT_TRUE(want.same(together[i])) << "session " << s << " step " << step << ", logits are "
                                          << relativeL2(together[i].logits, want.logits) << " away";
    }
  }
}

void expectSame(const std::string& path, const BatchSetting& setting,
                const Reading& reading = kShort) {
  BatchRig rig(setting);
  ASSERT_TRUE(rig.load(path).ok()) << rig.log.errors();
  expectSame(reading, setting.chunk, &rig);
}

// On Vulkan divided as its device is and as a GPU, without optional features; on the CPU both executors.
std::vector<BatchSetting> everyWay(const BatchSetting& setting) {
  BatchSetting other = setting;
  if (onVulkan()) {
    other.divide_as_gpu = true;
    other.disabled = "all";
  } else {
    other.on_reference = true;
  }
  return {setting, other};
}

// ---- Kinds of layers -----------------------------------------------------------------------------

class BatchFamilies : public testing::TestWithParam<FamilyParam> {};

TEST_P(BatchFamilies, decode_together_what_they_decode_alone) {
  const TemporaryModel file(GetParam()->model);
  for (const BatchSetting& setting : everyWay({})) {
    expectSame(file.path(), setting);
  }
}

RandomFamily gemma3OfWindows() {
  RandomLlama gemma3;
  gemma3.architecture = "gemma3";
  gemma3.n_layers = 7;
  gemma3.local_window = 8;
  return {"gemma3", gemma3};
}

std::vector<FamilyParam> someFamilies() {
  static const RandomFamily gemma3 = gemma3OfWindows();
  std::vector<FamilyParam> some = familyParams(
      {"gemma4", "lfm2", "lfm2moe", "qwen35", "qwen35 of a list of layers", "qwen3moe",
       "qwen3moe of all experts", "granitehybrid", "falcon-h1", "mamba2", "deepseek2", "minicpm3"});
  some.push_back(&gemma3);
  return some;
}
INSTANTIATE_TEST_SUITE_P(Device, BatchFamilies, testing::ValuesIn(someFamilies()), familyName);

// ---- Types of weights ----------------------------------------------------------------------------

class BatchModels : public testing::TestWithParam<const char*> {};

RUNS_ON(kNightly);
RUNS_ON(kCpu, "llama_q4_0", "llama_f16", "qwen3moe_q4_0");
TEST_P(BatchModels, decode_together_what_they_decode_alone) {
  ORIEL_NEED_DATA(path, std::string("models/") + GetParam() + ".gguf");
  for (const BatchSetting& setting : everyWay({})) {
    expectSame(path, setting);
  }
}

INSTANTIATE_TEST_SUITE_P(Device, BatchModels,
                         testing::Values("llama-f32", "llama-f16", "llama-bf16", "llama-q4_0",
                                         "llama-q4_1", "llama-q5_0", "llama-q5_1", "llama-q8_0",
                                         "llama-iq4_nl", "llama-q2_k", "llama-q3_k", "llama-q4_k",
                                         "llama-q4_k_m", "llama-q5_k", "llama-q6_k",
                                         "qwen3moe-q4_0", "lfm2moe-q8_0", "qwen35-q8_0"),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// ---- Ways to attend and to multiply --------------------------------------------------------------

TEST(Batches, windows_that_are_split_give_the_bits_of_one_token_in_every_cache_format) {
  RandomLlama model;
  model.head_dim = 32;
  model.n_heads = 6;
  model.n_layers = 1;
  const TemporaryModel file(model);
  BatchSetting setting;
  setting.windows = {620, 30, 300, 620, 9};
  setting.chunk = 64;
  const Reading reading = {{0, 40, 256, 640, 20}, 2};
  for (const KvFormat k : {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4}) {
    if (onVulkan() && k == KvFormat::kInt4) {  // pipelines take long to compile
      continue;
    }
    setting.k = k;
    setting.v = k == KvFormat::kInt8 ? KvFormat::kInt4 : k;
    setting.share_sinks = k == KvFormat::kInt8;
    for (const BatchSetting& way : everyWay(setting)) {
      if (way.on_reference && k != KvFormat::kInt8 && !allCases()) {
        continue;
      }
      SCOPED_TRACE(kvFormatName(k));
      expectSame(file.path(), way, reading);
    }
  }
}

TEST(Batches, heads_that_share_no_whole_tile_give_the_bits_of_one_token) {
  RandomLlama model;
  model.n_layers = 1;
  model.n_heads = 9;  // of one key head: a GPU uses tiles of four, four and one
  model.n_kv_heads = 1;
  const TemporaryModel file(model);
  expectSame(file.path(), everyWay({}).back());
}

TEST(Batches, have_the_bits_of_one_token_with_activations_of_8_bits) {
  for (const char* name : {"llama-q4_0", "llama-q4_k_m", "llama-iq4_nl", "lfm2moe-q4_0"}) {
    SCOPED_TRACE(name);
    ORIEL_NEED_DATA(path, std::string("models/") + name + ".gguf");
    BatchSetting setting;
    setting.activation_bits = 8;
    expectSame(path, setting);
  }
}

RUNS_ON(kEachDevice);
TEST(Batches, heads_of_no_whole_vectors_give_the_bits_of_one_token) {
  if (onVulkan()) {
    GTEST_SKIP() << "vectors of a CPU";
  }
  RandomLlama model;
  model.head_dim = 20;
  const TemporaryModel file(model);
  expectSame(file.path(), {});
}

TEST(Batches, kernels_that_were_measured_as_faster_give_the_bits_of_one_token) {
  for (const char* name : {"llama-q4_0", "llama-q4_k_m", "llama-q6_k", "llama-q5_1"}) {
    SCOPED_TRACE(name);
    ORIEL_NEED_DATA(path, std::string("models/") + name + ".gguf");
    for (BatchSetting setting : everyWay({})) {
      setting.disabled = nullptr;  // integer dot products are a feature
      BatchRig rig(setting);
      ASSERT_TRUE(rig.load(path).ok()) << rig.log.errors();
      const auto takeAll = [&](uint32_t index) {
        bool any = false;
        for (uint32_t t = 0; t < kWeightTypes; ++t) {
          const WeightType type = static_cast<WeightType>(t);
          if (candidateName(rig.executor, MatmulUse::kVector, type, index) != nullptr) {
            any = true;
            EXPECT_TRUE(rig.executor->matmulTuning()->take(MatmulUse::kVector, type, index).ok());
          }
        }
        return any;
      };
      for (uint32_t index = 1; takeAll(index); ++index) {
        expectSame(kShort, setting.chunk, &rig);
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_batches

// Specific to the CPU executor: threads, instruction sets, no time limit.

#ifdef ORIEL_CPU_SIMD

namespace oriel_internal::test::test_cpu_executor {
namespace {

const char* const kModel = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";

class CpuExecutor : public testing::Test {
 protected:
  void SetUp() override {
    if (onVulkan()) {
      GTEST_SKIP() << "of the CPU";
    }
  }
};

TEST_F(CpuExecutor, logits_do_not_depend_on_the_number_of_threads) {
  for (const uint32_t window : {50u, 256u, 2048u}) {  // unsplit, and split in more and more pieces
    for (const oriel_kv_format format : {ORIEL_KV_F16, ORIEL_KV_INT8, ORIEL_KV_INT4}) {
      if (window == 2048 && format != ORIEL_KV_INT8 && !allCases()) {
        continue;
      }
      std::vector<std::vector<float>> first;
      std::vector<float> first_deep;
      for (const uint32_t threads : {1u, 2u}) {
        Options options = makeOptions();
        options.threads = threads;
        options.window_tokens = window;
        setFormats(&options, format);
        const Loaded loaded = load(kModel, options);
        ASSERT_TRUE(loaded.session);
        const auto rows = evaluate(loaded, someIds(150, 2048));
        const std::vector<int32_t> more = someIds(window, 2048);
        ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), more.data(), more.size(),
                                                 nullptr, nullptr));
        ASSERT_EQ(3u, greedy(loaded, 3).size());
        const std::vector<float> deep = logitsOf(loaded);
        if (first.empty()) {
          first = rows;
          first_deep = deep;
        }
        EXPECT_EQ(first, rows) << threads << " threads, window " << window;
        EXPECT_EQ(first_deep, deep) << threads << " threads, window " << window << ", full";
      }
    }
  }
}

TEST_F(CpuExecutor, more_threads_than_processors_are_not_an_error) {
  Options options = makeOptions();
  options.threads = UINT32_MAX;
  options.window_tokens = 64;
  const Loaded loaded = load(kModel, options);
  ASSERT_TRUE(loaded.session);
  const std::vector<int32_t> ids = someIds(20, 2048);
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr));
  EXPECT_EQ(8u, greedy(loaded, 8).size());
}

/// Products that take some milliseconds on any machine.
struct SlowRig {
  SlowRig() : rig(kChunk) {
    Random random(1);
    const uint32_t cols = 2048, rows = 512;
    const PackedMatrix matrix = randomMatrix(WeightType::kF32, rows, cols, &random);
    const BufferRef weights = rig.input(matrix.words);
    const BufferRef in = rig.input(random.normals(kChunk * cols));
    const BufferRef out = rig.output(kChunk * rows);
    const MatmulPush push = matrix.product();
    for (int i = 0; i < 20; ++i) {
      rig.add(StepList::kChunk, OpKind::kMatmul, push, {weights, out, in});
    }
    rig.on_reference = false;
    rig.options.cpu_threads = 3;
  }
  static constexpr uint32_t kChunk = 64;
  KernelRig rig;
};

// The time limit is for devices that may hang, not for slow processors.
TEST_F(CpuExecutor, a_step_is_never_late) {
  SlowRig slow;
  slow.rig.options.timeout_ms = 1;
  ASSERT_TRUE(slow.rig.load().ok()) << slow.rig.log.errors();
  slow.rig.header().n_tokens = SlowRig::kChunk;
  EXPECT_TRUE(slow.rig.executor->run(StepRun::kChunk).ok()) << slow.rig.log.errors();
  EXPECT_TRUE(slow.rig.executor->run(StepRun::kHead).ok()) << slow.rig.log.errors();
}

// For chunks of any length and every instruction set: products with 16- or 8-bit activations are correct, and a token
// has exactly the results that it has alone.
TEST_F(CpuExecutor, chunks_are_multiplied_as_their_tokens_alone_with_activations_of_16_and_8_bits) {
  constexpr uint32_t kChunk = 70;
  for (uint32_t t = 0; t < kWeightTypes; ++t) {
    const WeightType type = static_cast<WeightType>(t);
    for (const uint32_t bits : {16u, 8u}) {
      for (uint32_t level = 0; level < static_cast<uint32_t>(SimdTarget::kAvx512) + 1; ++level) {
        if (!allCases() && (t + bits / 8 + level) % 3 != 0) {
          continue;  // an ordinary run tries every third instruction set with a type
        }
        Random random(t + 1);
        KernelRig rig(kChunk);
        rig.on_reference = false;
        rig.options.cpu_simd_level = level;
        rig.options.activation_bits = bits;
        rig.options.cpu_threads = 2;
        const Product product(&rig, type, 83, 320, &random, true, 5, kChunk);
        ASSERT_TRUE(rig.load().ok()) << rig.log.errors();
        const Rounds rounds = readsFloats(type) ? Rounds::kNothing
                              : bits == 8       ? Rounds::kInputsTo8Bits
                                                : Rounds::kInputsTo16Bits;
        rig.clearOutputs();
        rig.header().n_tokens = 1;
        ASSERT_TRUE(rig.executor->run(StepRun::kDecode).ok()) << rig.log.errors();
        product.check(rig.floats(product.out), rounds);
        // Computed rows, from the shortest run that contains them.
        std::vector<float> known(rig.floats(product.out),
                                 rig.floats(product.out) + product.out_stride);
        for (const uint32_t n : {2u, 5u, 13u, 64u, kChunk}) {
          rig.clearOutputs();
          rig.header().n_tokens = n;
          ASSERT_TRUE(rig.executor->run(StepRun::kChunk).ok()) << rig.log.errors();
          if (n == 5) {
            product.check(rig.floats(product.out), rounds, n);
          }
          const std::vector<float> rows(rig.floats(product.out),
                                        rig.floats(product.out) + size_t{n} * product.out_stride);
          if (!readsFloats(type)) {
            ASSERT_TRUE(std::equal(known.begin(), known.end(), rows.begin()))
                << weightTypeName(type) << " level " << level << " of " << n;
          }
          known = rows;
        }
      }
    }
  }
}

TEST_F(CpuExecutor, a_model_reads_text_with_activations_of_8_bits_and_says_so) {
  std::vector<float> logits[2];
  for (const uint32_t bits : {16u, 8u}) {
    Options options = makeOptions();
    options.window_tokens = 128;
    options.set("activation_bits", bits);
    const Loaded loaded = load(kModel, options);
    ASSERT_TRUE(loaded.session);
    EXPECT_EQ(bits, planOf(loaded).count("activation_bits"));
    const std::vector<int32_t> ids = someIds(40, 2048);
    const std::vector<std::vector<float>> rows = evaluate(loaded, ids);
    logits[bits == 8 ? 1 : 0] = rows.back();
  }
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_LT(relativeL2(logits[0], logits[1]), 0.1);
  Options options = makeOptions();
  options.set("activation_bits", 4);
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kModel, &options, &model));
}

TEST_F(CpuExecutor, kernels_that_gain_from_8_bits_are_those_that_were_measured) {
  for (uint32_t target = 0; target < kSimdTargets; ++target) {
    EXPECT_EQ(static_cast<SimdTarget>(target) == SimdTarget::kAvx512,
              gainsFrom8Bits(static_cast<SimdTarget>(target)));
  }
}

/// The bits that models of low-bit weights get here.
uint32_t bitsOfLowBitWeights(const Loaded& loaded) {
  const std::string driver = describe(loaded.model.get())["driver"];
  return driver.find("VNNI") != std::string::npos ? 8 : 16;
}

TEST_F(CpuExecutor, chooses_the_width_of_activations_by_the_weights_and_the_processor) {
  const std::pair<const char*, bool> models[] = {
      {"llama-q4_0", true},   {"llama-q4_k_m", true}, {"llama-iq4_nl", true}, {"llama-q2_k", true},
      {"lfm2moe-q4_0", true}, {"llama-q8_0", false},  {"lfm2-q8_0", false},   {"llama-f32", false}};
  for (const auto& [name, low] : models) {
    SCOPED_TRACE(name);
    ORIEL_NEED_DATA(path, std::string("models/") + name + ".gguf");
    Options options = makeOptions();
    for (const char* asked : {"auto", "8", "16"}) {
      options.set("activation_bits", asked);
      const Loaded loaded = load(path, options);
      ASSERT_TRUE(loaded.session);
      const uint32_t want = *asked != 'a' ? static_cast<uint32_t>(std::stoul(asked))
                            : low         ? bitsOfLowBitWeights(loaded)
                                          : 16;
      EXPECT_EQ(want, planOf(loaded).count("activation_bits")) << asked;
      EXPECT_EQ(want, describePlan(path, options)["activation_bits"]) << asked;
    }
  }
  const Json q4 = describeShape("llama-3.2-1b:q4_0", Options());
  EXPECT_EQ(cpuGainsFrom8Bits() ? 8 : 16, q4["activation_bits"]);
  EXPECT_EQ(16, describeShape("llama-3.2-1b:q8_0", Options())["activation_bits"]);
}

TEST_F(CpuExecutor, encoders_have_activations_of_16_bits_by_default) {
  ModelDesc desc;
  WorkShape work;
  work.model = &desc;
  work.add(static_cast<uint32_t>(TensorType::kQ4_0), 1u << 20, 0);
  LoadOptions options = {};
  EXPECT_EQ(cpuGainsFrom8Bits() ? 8u : 16u, activationBits(options, work));
  desc.encoder = true;
  EXPECT_EQ(16u, activationBits(options, work));
  options.activation_bits = 8;
  EXPECT_EQ(8u, activationBits(options, work));
}

// The same products with 8 bits as asked and as chosen; a prompt in batches and token by token leads to the same text.
TEST_F(CpuExecutor, reads_and_writes_with_the_chosen_width) {
  const std::string path = ORIEL_TEST_Q4_0;
  if (path.empty()) {
    GTEST_SKIP() << "CMake found no python3, which makes the model in Q4_0";
  }
  const std::string prompt =
      "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n";
  const auto run = [&](const char* bits, uint32_t batch, std::vector<int32_t>* text) {
    Options options = makeOptions();
    options.window_tokens = 128;
    options.set("kv", "f16");
    options.set("prefill_batch", batch);
    options.set("activation_bits", bits);
    const Loaded loaded = load(path, options);
    const std::vector<int32_t> ids = tokens(loaded, prompt, ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS);
    EXPECT_EQ(ORIEL_OK,
              oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr));
    const std::vector<float> logits = logitsOf(loaded);
    *text = greedy(loaded, 24);
    return std::pair(logits, planOf(loaded).count("activation_bits"));
  };
  std::vector<int32_t> chosen_text;
  const auto [chosen, bits] = run("auto", 16, &chosen_text);
  std::vector<int32_t> text;
  EXPECT_EQ(chosen, run(std::to_string(bits).c_str(), 16, &text).first);
  EXPECT_EQ(chosen_text, text);
  EXPECT_NE(chosen, run(bits == 8 ? "16" : "8", 16, &text).first);
  (void)run("auto", 1, &text);
  EXPECT_EQ(chosen_text, text) << "token by token";
  (void)run("8", 16, &chosen_text);
  (void)run("8", 1, &text);
  EXPECT_EQ(chosen_text, text) << "token by token";
}

TEST_F(CpuExecutor, a_snapshot_continues_with_another_width) {
  const auto loadWith = [](uint32_t bits) {
    Options options = makeOptions();
    options.window_tokens = 128;
    options.set("activation_bits", bits);
    return load(kModel, options);
  };
  const Loaded coarse = loadWith(8);
  const std::vector<int32_t> ids = someIds(20, 2048);
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(coarse.session.get(), ids.data(), ids.size(), nullptr, nullptr));
  const std::vector<uint8_t> saved = savedBytes(coarse.session.get());
  const Loaded fine = loadWith(16);
  ASSERT_EQ(ORIEL_OK, oriel_snapshot_restore(fine.session.get(), saved.data(), saved.size(),
                                             ORIEL_RESTORE_EXACT, nullptr));
  EXPECT_EQ(logitsOf(coarse), logitsOf(fine));
  EXPECT_EQ(saved, savedBytes(fine.session.get()));
  EXPECT_NE(evaluate(coarse, {7}), evaluate(fine, {7}));
}

TEST_F(CpuExecutor, a_token_alone_in_the_last_part_of_a_chunk_is_as_good_as_the_others) {
  constexpr uint32_t kTokens = 9;
  constexpr uint32_t kCols = 2048;  // the upload ring holds eight tokens of it
  constexpr uint32_t kRows = 40;
  Random random(1);
  KernelRig rig(kTokens);
  const PackedMatrix matrix = randomMatrix(WeightType::kQ4_0, kRows, kCols, &random);
  const std::vector<float> token = random.normals(kCols);
  std::vector<float> tokens;
  for (uint32_t t = 0; t < kTokens; ++t) {
    tokens.insert(tokens.end(), token.begin(), token.end());
  }
  const BufferRef out = rig.output(kTokens * kRows);
  const MatmulPush push = matrix.product();
  const BufferRef weights = rig.input(matrix.words);
  rig.add(StepList::kChunk, OpKind::kMatmul, push, {weights, out, rig.input(tokens)}).weights =
      WeightType::kQ4_0;
  rig.on_reference = false;
  ASSERT_TRUE(rig.load().ok()) << rig.log.errors();
  rig.header().n_tokens = kTokens;
  ASSERT_TRUE(rig.executor->run(StepRun::kChunk).ok()) << rig.log.errors();
  const float* rows = rig.floats(out);
  for (uint32_t t = 1; t < kTokens; ++t) {
    EXPECT_EQ(0, std::memcmp(rows, rows + t * kRows, kRows * sizeof(float))) << "token " << t;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_cpu_executor

#endif
