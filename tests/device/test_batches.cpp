// Sessions that decode together in one step give exactly the same bits as alone: for every kind of layer, every weight
// type, any windows and any positions.
#include <gtest/gtest.h>

#include "support/batch_rig.h"
#include "support/distances.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_batches {
namespace {

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

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen35", "gemma3");
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

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "llama_q4_k_m", "qwen3moe_q4_0");
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

RUNS_ON(kCpu);
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
      SCOPED_TRACE(kvFormatName(k));
      expectSame(file.path(), way, reading);
    }
  }
}

RUNS_ON(kCpu);
TEST(Batches, heads_that_share_no_whole_tile_give_the_bits_of_one_token) {
  RandomLlama model;
  model.n_layers = 1;
  model.n_heads = 9;  // of one key head: a GPU uses tiles of four, four and one
  model.n_kv_heads = 1;
  const TemporaryModel file(model);
  expectSame(file.path(), everyWay({}).back());
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

RUNS_ON(kCpu);
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
