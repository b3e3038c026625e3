// Kernels cut to their forms: platform/vulkan/shader_table.cpp.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/xz.h"
#include "vulkan/shader_table.h"

namespace oriel_internal::test_shader_form {
namespace {

using Words = std::vector<uint32_t>;

Words instruction(uint32_t code, const Words& operands) {
  Words words = {static_cast<uint32_t>(operands.size() + 1) << 16 | code};
  words.insert(words.end(), operands.begin(), operands.end());
  return words;
}

Words module(uint32_t bound, const std::vector<Words>& instructions) {
  Words words = {0x07230203, 0x00010300, 0, bound, 0};
  for (const Words& one : instructions) {
    words.insert(words.end(), one.begin(), one.end());
  }
  return words;
}

Words cut(const Words& words, uint8_t first) {
  const uint8_t form[kFormConstants] = {first, 0, 0};
  std::vector<uint8_t> work(formWorkBytes(words.data(), words.size()));
  Words out(words.size());
  out.resize(cutToForm(words.data(), words.size(), form, out.data(), work.data()));
  return out;
}

uint32_t count(const Words& words, uint32_t code) {
  uint32_t found = 0;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    found += (words[at] & 0xFFFF) == code ? 1 : 0;
  }
  return found;
}

enum Id : uint32_t {
  kVoid = 1,
  kFunctionType,
  kBool,
  kUint,
  kType,
  kFour,
  kIsFour,
  kMain,
  kEntry,
  kThen,
  kElse,
  kMerge,
  kCalled,
  kCalledEntry,
  kPointer,
  kBuffer,
  kValue,
  kPhi,
  kBound
};

/// if (kType == 4) { buffer = 4; } else { called(); } phi
Words branching() {
  return module(kBound, {instruction(15,
                                     {
                                         5,
                                         kMain,
                                         'm',
                                     }),
                         instruction(71, {kType, 1, kFirstFormConstant}),
                         instruction(71, {kBuffer, 33, 0}),
                         instruction(19, {kVoid}),
                         instruction(33, {kFunctionType, kVoid}),
                         instruction(20, {kBool}),
                         instruction(21, {kUint, 32, 0}),
                         instruction(50, {kUint, kType, 0}),
                         instruction(43, {kUint, kFour, 4}),
                         instruction(52, {kBool, kIsFour, 170, kType, kFour}),
                         instruction(32, {kPointer, 12, kUint}),
                         instruction(59, {kPointer, kBuffer, 12}),
                         instruction(54, {kVoid, kMain, 0, kFunctionType}),
                         instruction(248, {kEntry}),
                         instruction(247, {kMerge, 0}),
                         instruction(250, {kIsFour, kThen, kElse}),
                         instruction(248, {kThen}),
                         instruction(62, {kBuffer, kFour}),
                         instruction(249, {kMerge}),
                         instruction(248, {kElse}),
                         instruction(57, {kVoid, kValue, kCalled}),
                         instruction(249, {kMerge}),
                         instruction(248, {kMerge}),
                         instruction(245, {kUint, kPhi, kFour, kThen, kType, kElse}),
                         instruction(253, {}),
                         instruction(56, {}),
                         instruction(54, {kVoid, kCalled, 0, kFunctionType}),
                         instruction(248, {kCalledEntry}),
                         instruction(253, {}),
                         instruction(56, {})});
}

TEST(ShaderForm, keeps_the_branch_that_the_form_takes) {
  const Words four = cut(branching(), 4);
  ASSERT_FALSE(four.empty());
  EXPECT_EQ(0u, count(four, 250));  // branches on a condition
  EXPECT_EQ(1u, count(four, 62));   // stores
  EXPECT_EQ(0u, count(four, 57));   // calls
  EXPECT_EQ(1u, count(four, 54));   // functions
  EXPECT_EQ(1u, count(four, 59));   // variables
  EXPECT_EQ(1u, count(four, 71));   // decorations: the constant's is gone
  EXPECT_EQ(0u, count(four, 50) + count(four, 52));
  EXPECT_EQ(1u, count(four, 41));  // true
  const Words phi = instruction(245, {kUint, kPhi, kFour, kThen});
  EXPECT_NE(four.end(), std::search(four.begin(), four.end(), phi.begin(), phi.end()));
}

TEST(ShaderForm, leaves_out_what_nothing_uses_any_more) {
  const Words other = cut(branching(), 3);
  ASSERT_FALSE(other.empty());
  EXPECT_EQ(0u, count(other, 62));
  EXPECT_EQ(1u, count(other, 57));
  EXPECT_EQ(2u, count(other, 54));
  EXPECT_EQ(0u, count(other, 59));
  EXPECT_EQ(0u, count(other, 71));
  EXPECT_EQ(1u, count(other, 42));  // false
}

TEST(ShaderForm, survives_damaged_modules) {
  const Words good = branching();
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    Words bad = good;
    bad[random() % bad.size()] =
        static_cast<uint32_t>(random() % 3 == 0 ? random() : random() % 300);
    bad.resize(1 + random() % bad.size());
    bad.shrink_to_fit();
    EXPECT_LE(cut(bad, 4).size(), bad.size());
  }
}

TEST(ShaderForm, every_kernel_is_cut) {
  std::vector<Words> blocks(kShaderBlockCount);
  XzWork work;
  for (uint32_t b = 0; b < kShaderBlockCount; ++b) {
    const ShaderBlock& block = kShaderBlocks[b];
    blocks[b].resize(block.bytes / sizeof(uint32_t));
    ASSERT_TRUE(unpackXz(block.xz, block.xz_bytes, reinterpret_cast<uint8_t*>(blocks[b].data()),
                         block.bytes, &work));
  }
  for (uint32_t i = 0; i < kShaderCount; ++i) {
    const ShaderCode& code = kShaders[i];
    const ShaderModule& whole = kShaderModules[code.module];
    ASSERT_LT(code.module, 64u) << "Pipelines keeps a bit of each";
    const auto first = blocks[whole.block].begin() + whole.begin / sizeof(uint32_t);
    Words words(first, first + whole.bytes / sizeof(uint32_t));
    ASSERT_TRUE(!whole.renumbered || restoreIds(words.data(), words.size())) << code.name();
    std::vector<uint8_t> own_work(formWorkBytes(words.data(), words.size()));
    Words out(words.size());
    out.resize(cutToForm(words.data(), words.size(), code.form, out.data(), own_work.data()));
    ASSERT_FALSE(out.empty()) << code.name();
    const bool has_forms = std::any_of(
        kShaders, kShaders + kShaderCount,
        [&](const ShaderCode& other) { return &other != &code && other.module == code.module; });
    EXPECT_TRUE(!has_forms || out.size() < words.size())
        << code.name() << " is as large as all its forms";
    for (size_t at = 5; at < out.size(); at += out[at] >> 16) {
      const bool names_constant = (out[at] & 0xFFFF) == 71 && out[at + 2] == 1;
      EXPECT_FALSE(names_constant && out[at + 3] >= kFirstFormConstant) << code.name();
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test_shader_form
