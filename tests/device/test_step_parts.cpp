// How many dispatches an op's grid is divided into.
#ifdef ORIEL_VULKAN
#include <gtest/gtest.h>

#include "vulkan/step_commands.h"

namespace oriel::test {
namespace {

constexpr uint32_t kChunk = 64;
constexpr double kMuchWork = 1e15;  // a piece that holds everything

uint32_t partsOfAttention(VkPhysicalDeviceType type, uint32_t tokens, uint32_t splits) {
  DeviceCaps caps = {};
  caps.type = type;
  MatvecChoices choices;
  choices.create(caps, nullptr, Log());
  Op op;
  op.kind = OpKind::kAttention;
  op.push.attention.n_heads = 9;
  op.push.attention.n_kv_heads = 3;
  op.push.attention.head_dim = 64;
  op.push.attention.splits = splits;
  Kernel kernel;
  EXPECT_TRUE(chooseKernel(op, tokens, caps, choices, Log(), &kernel).ok());
  return partsOf(op, tokens, kernel, kMuchWork);
}

// Threads of a software device are given neighbouring groups: a chunk that is hardly filled would keep few busy.
TEST(StepParts, attention_over_a_chunk_on_a_software_device_is_dispatched_a_few_tokens_at_a_time) {
  const uint32_t parts = partsOfAttention(VK_PHYSICAL_DEVICE_TYPE_CPU, kChunk, 1);
  EXPECT_GE(parts, kChunk / 8);
  EXPECT_LE(parts, kChunk) << "no dispatch without a token";
  EXPECT_EQ(1u, partsOfAttention(VK_PHYSICAL_DEVICE_TYPE_CPU, 1, 1));
  EXPECT_EQ(1u, partsOfAttention(VK_PHYSICAL_DEVICE_TYPE_CPU, 1, 4));
  EXPECT_EQ(1u, partsOfAttention(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, kChunk, 1))
      << "a GPU gives each group to whoever is free";
}

}  // namespace
}  // namespace oriel::test
#endif
