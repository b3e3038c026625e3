// Products that make their input themselves give the same bits as with the ops before them in dispatches of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/batch_rig.h"
#include "support/files.h"
#include "support/random_families.h"
#ifdef ORIEL_VULKAN
#include "vulkan/fused_ops.h"
#endif

namespace oriel_internal::test::test_fused_ops {
namespace {

#ifdef ORIEL_VULKAN
// Ops of a token that a GPU does not dispatch, by kind.
std::map<OpKind, uint32_t> leftOut(const Plan& plan) {
  DeviceCaps caps = {};
  caps.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  caps.features = featureBit(VulkanFeature::kFusedOps);
  std::map<OpKind, uint32_t> kinds;
  const uint32_t l = static_cast<uint32_t>(StepList::kDecode);
  for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
    kinds[plan.ops[l][i].kind] += isMadeByReaders(plan, StepList::kDecode, i, caps) ? 1 : 0;
  }
  return kinds;
}

// Each session alone, then all in a batch.
std::vector<Decoded> decodeAll(const std::string& path, const BatchSetting& setting,
                               const std::vector<uint32_t>& read,
                               std::map<OpKind, uint32_t>* left_out) {
  BatchRig rig(setting);
  std::vector<Decoded> all;
  EXPECT_TRUE(rig.load(path).ok()) << rig.log.errors();
  if (testing::Test::HasFailure()) {
    return all;
  }
  *left_out = leftOut(rig.plan);
  std::vector<uint32_t> sessions;
  for (uint32_t s = 0; s < rig.sessionCount(); ++s) {
    for (uint32_t left = read[s]; left != 0;) {
      const uint32_t count = std::min(left, setting.chunk);
      rig.read(s, count);
      left -= count;
    }
    all.push_back(rig.decode(s));
    sessions.push_back(s);
  }
  for (const Decoded& decoded : rig.decodeTogether(sessions)) {
    all.push_back(decoded);
  }
  return all;
}

std::map<OpKind, uint32_t> expectSame(const std::string& path, BatchSetting setting,
                                      const std::vector<uint32_t>& read) {
  std::map<OpKind, uint32_t> left_out;
  setting.divide_as_gpu = true;
  for (const char* without : {"subgroup", "subgroup,integer_dot"}) {
    SCOPED_TRACE(without);
    const std::string apart = std::string(without) + ",fused_ops";
    setting.disabled = apart.c_str();
    const std::vector<Decoded> want = decodeAll(path, setting, read, &left_out);
    setting.disabled = without;
    const std::vector<Decoded> got = decodeAll(path, setting, read, &left_out);
    EXPECT_EQ(want.size(), got.size());
    for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
      EXPECT_TRUE(got[i].same(want[i])) << i;
    }
  }
  return left_out;
}

class FusedOps : public testing::TestWithParam<const char*> {};

TEST_P(FusedOps, give_the_bits_of_ops_apart) {
  ORIEL_NEED_DATA(path, std::string("models/") + GetParam() + ".gguf");
  if (!onVulkan()) {
    GTEST_SKIP() << "the CPU executor groups ops in its own way";
  }
  EXPECT_NE(0u, expectSame(path, {}, {0, 3, 40, 21, 60})[OpKind::kRmsNorm]);
}

INSTANTIATE_TEST_SUITE_P(Device, FusedOps,
                         testing::Values("llama-f16", "llama-q4_0", "llama-q8_0", "llama-q4_k_m",
                                         "llama-q6_k", "llama-iq4_nl", "qwen3moe-q4_0",
                                         "qwen35-q8_0"),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(FusedOpsOfSpans, merge_split_windows_and_give_the_bits_of_ops_apart) {
  if (!onVulkan()) {
    GTEST_SKIP() << "the CPU executor groups ops in its own way";
  }
  RandomLlama model;
  model.head_dim = 32;
  model.n_heads = 6;
  model.n_layers = 1;
  model.n_ff = 2112;  // more than a span
  const TemporaryModel file(model);
  BatchSetting setting;
  setting.windows = {620, 30, 300};
  setting.chunk = 64;
  std::map<OpKind, uint32_t> left_out = expectSame(file.path(), setting, {640, 20, 256});
  EXPECT_EQ(2 * model.n_layers, left_out[OpKind::kRmsNorm]);
  EXPECT_EQ(model.n_layers, left_out[OpKind::kAttentionMerge]);
  EXPECT_EQ(model.n_layers, left_out[OpKind::kGatedActivation]);
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_fused_ops
