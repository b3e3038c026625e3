// Known devices, test verdicts, and markers of driver crashes: with synthetic devices. No real device is used.
#include <gtest/gtest.h>

#ifdef ORIEL_VULKAN

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "support/captured_log.h"
#include "support/files.h"
#include "vulkan/device.h"
#include "vulkan/device_caps.h"
#include "vulkan/kernels.h"
#include "vulkan/shader_table.h"

namespace oriel_internal::test::test_drivers {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMatrix = featureBit(VulkanFeature::kCooperativeMatrix);
constexpr uint32_t kHalf = featureBit(VulkanFeature::kFloat16);
constexpr uint32_t kDot = featureBit(VulkanFeature::kIntegerDot);
constexpr uint32_t kSubgroups = featureBit(VulkanFeature::kSubgroup);
constexpr uint32_t kTexels = featureBit(VulkanFeature::kTexels);

DeviceCaps madeUp(uint32_t vendor, uint32_t driver, const char* name,
                  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) {
  DeviceCaps caps = {};
  caps.vendor_id = vendor;
  caps.driver_id = driver;
  caps.type = type;
  caps.driver_version = 1000;
  std::snprintf(caps.name, sizeof(caps.name), "%s", name);
  return caps;
}

KnownFaults faultsOf(const DeviceCaps& caps, uint32_t enabled = 0) {
  return findFaults(kKnownDevices, kKnownDeviceCount, caps, enabled);
}

TEST(KnownDevices, faults_that_others_have_met_are_left_off) {
  constexpr VkPhysicalDeviceType kDiscrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  const KnownFaults adreno = faultsOf(madeUp(0x5143, 8, "Adreno (TM) 740"));
  EXPECT_EQ(kMatrix, adreno.features_off);
  EXPECT_GT(adreno.most_work, 0);
  EXPECT_EQ(kMatrix | kDot, faultsOf(madeUp(0x5143, 8, "Adreno X2-90")).features_off);
  EXPECT_EQ(kMatrix | kSubgroups, faultsOf(madeUp(0x5143, 8, "Adreno (TM) 830")).features_off);
  EXPECT_EQ(kMatrix, faultsOf(madeUp(0x1002, 1, "AMD Radeon 860M")).features_off);
  EXPECT_EQ(kMatrix, faultsOf(madeUp(0x1002, 2, "AMD Radeon RX 6800", kDiscrete)).features_off);
  EXPECT_EQ(kSubgroups,
            faultsOf(madeUp(0x1002, 14, "AMD Radeon Pro 5500M", kDiscrete)).features_off);
  EXPECT_EQ(kHalf, faultsOf(madeUp(0x8086, 6, "Intel(R) Iris(R) Xe")).features_off);
  EXPECT_EQ(kMatrix | kDot, faultsOf(madeUp(0x1010, 7, "PowerVR DXT-48")).features_off);
  EXPECT_EQ(kMatrix, faultsOf(madeUp(0x144D, 21, "Samsung Xclipse 940")).features_off);
}

TEST(KnownDevices, others_of_the_same_vendor_or_driver_have_everything) {
  constexpr VkPhysicalDeviceType kDiscrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  for (const DeviceCaps& caps :
       {madeUp(0x5143, 18, "Turnip Adreno (TM) 740"),            // Mesa's driver
        madeUp(0x1002, 3, "AMD Radeon Graphics (RADV RENOIR)"),  // Mesa's driver
        madeUp(0x1002, 1, "AMD Radeon RX 7900 XTX", kDiscrete),  // has matrix units
        madeUp(0x8086, 5, "Intel(R) Arc(TM) A770", kDiscrete),   // Windows
        madeUp(0x10DE, 4, "NVIDIA GeForce RTX 4080", kDiscrete),
        madeUp(0x10005, 13, "llvmpipe", VK_PHYSICAL_DEVICE_TYPE_CPU),
        madeUp(0x1AE0, 10, "SwiftShader Device", VK_PHYSICAL_DEVICE_TYPE_CPU)}) {
    const KnownFaults faults = faultsOf(caps);
    EXPECT_EQ(0u, faults.features_off) << caps.name << ": " << faults.text;
    EXPECT_EQ(0, faults.most_work) << caps.name;
    EXPECT_FALSE(faults.refused) << caps.name;
    EXPECT_STREQ("", faults.text) << caps.name;
  }
}

TEST(KnownDevices, every_row_says_what_why_and_who_says_so_and_can_be_overridden) {
  constexpr uint32_t kAll = (1u << (kVulkanFeatures + 2)) - 1;
  for (uint32_t i = 0; i < kKnownDeviceCount; ++i) {
    const KnownDevice& row = kKnownDevices[i];
    SCOPED_TRACE(i);
    EXPECT_TRUE(row.features_off != 0 || row.most_work != 0 || row.refused);
    EXPECT_GT(std::string(row.reason).size(), 10u);
    EXPECT_GT(std::string(row.source).size(), 5u);
    EXPECT_LE(row.first_driver, row.last_driver);
    DeviceCaps caps = madeUp(row.vendor_id, row.driver_id, row.name_part);
    if (row.type != VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM) {
      caps.type = row.type;
    }
    caps.driver_version = row.first_driver;
    const KnownFaults faults = findFaults(&row, 1, caps, 0);
    EXPECT_EQ(row.features_off, faults.features_off);
    EXPECT_NE(std::string::npos, std::string(faults.text).find(row.reason)) << faults.text;
    EXPECT_NE(std::string::npos, std::string(faults.text).find(row.source)) << faults.text;
    const KnownFaults overridden = findFaults(&row, 1, caps, kAll);
    EXPECT_EQ(0u, overridden.features_off);
    EXPECT_EQ(0, overridden.most_work);
    EXPECT_STREQ("", overridden.text);
  }
}

TEST(KnownDevices, devices_that_are_not_used_at_all) {
  EXPECT_TRUE(faultsOf(madeUp(0x14E4, 19, "V3D 4.2.14.0")).refused);
  EXPECT_TRUE(faultsOf(madeUp(0x10DE, 23, "Microsoft Direct3D12 (NVIDIA GeForce RTX 4080)",
                              VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU))
                  .refused);
}

TEST(KnownDevices, kernels_that_others_have_seen_fail) {
  EXPECT_EQ(kMatrix | kSubgroups, faultsOf(madeUp(0x5143, 8, "Adreno (TM) 750")).features_off);
  EXPECT_EQ(0u, faultsOf(madeUp(0x5143, 18, "Turnip Adreno (TM) 750")).features_off);
  EXPECT_EQ(kHalf | kDot,
            faultsOf(madeUp(0x8086, 6, "Intel(R) Xe Graphics (TGL GT2)")).features_off);
}

TEST(ChoiceOfDevice, of_two_drivers_of_one_card_the_better_one_is_taken) {
  constexpr VkPhysicalDeviceType kDiscrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  const DeviceCaps radv = madeUp(0x1002, 3, "AMD Radeon RX 7900 XTX (RADV NAVI31)", kDiscrete);
  const DeviceCaps amdvlk = madeUp(0x1002, 2, "AMD Radeon RX 7900 XTX", kDiscrete);
  EXPECT_TRUE(isPreferred(radv, amdvlk));
  EXPECT_FALSE(isPreferred(amdvlk, radv));
  const DeviceCaps nvidia = madeUp(0x10DE, 4, "NVIDIA GeForce RTX 4080", kDiscrete);
  const DeviceCaps nvk = madeUp(0x10DE, 24, "NVIDIA GeForce RTX 4080 (NVK AD103)", kDiscrete);
  EXPECT_TRUE(isPreferred(nvidia, nvk));
  EXPECT_TRUE(isPreferred(madeUp(0x5143, 18, "Turnip Adreno (TM) 750"),
                          madeUp(0x5143, 8, "Adreno (TM) 750")));
  // Prefers the better kind of card, and the first card of the same kind.
  DeviceCaps second = nvk;
  second.device_uuid[0] = 1;
  EXPECT_FALSE(isPreferred(second, nvidia));
  EXPECT_FALSE(isPreferred(nvidia, second));
  EXPECT_TRUE(isPreferred(second, madeUp(0x8086, 6, "Intel(R) Graphics (ADL GT2)")));
}

TEST(DeviceShapes, follow_the_vendor_and_the_name) {
  const auto shapes = [](uint32_t vendor, const char* name) -> const DeviceShapes& {
    return shapesOf(madeUp(vendor, 0, name));
  };
  EXPECT_EQ(4u, shapes(0x10DE, "NVIDIA GeForce RTX 4080").queries(128));
  EXPECT_EQ(2u, shapes(0x10DE, "NVIDIA GeForce RTX 4080").queries(256));
  EXPECT_EQ(2u, shapes(0x1002, "AMD Radeon RX Vega (RADV VEGA10)").queries(64));
  EXPECT_EQ(1u, shapes(0x5143, "Turnip Adreno (TM) 750").queries(576));
  EXPECT_LT(shapes(0x5143, "Turnip Adreno (TM) 630").chunk.tokens,
            shapes(0x5143, "Turnip Adreno (TM) 750").chunk.tokens);
  EXPECT_EQ(1u, shapes(0x13B5, "Mali-G715").queries(64));
  EXPECT_EQ(1u, shapes(0x7777, "a device that nobody knows").queries(64));
  DeviceCaps software = madeUp(0x10005, 13, "llvmpipe", VK_PHYSICAL_DEVICE_TYPE_CPU);
  EXPECT_EQ(8u, shapesOf(software).decode.lanes);
  software.divide_as_gpu = true;
  EXPECT_EQ(4u, shapesOf(software).queries(64));
}

/// The kernel for chunks of Q4_0 that such a device uses without a measurement.
std::string chunkKernel(DeviceCaps caps, uint32_t features, WeightType type = WeightType::kQ4_0,
                        uint32_t most_lanes = 1024) {
  caps.features = features;
  caps.fast_integer_dot = (features & kDot) != 0;
  caps.most_lanes = most_lanes;
  caps.matrix = {16, 16, 16, true};
  const Verdict verdict;
  MatmulChoices choices;
  choices.create(caps, verdict, nullptr, Log());
  const uint32_t index = choices.choice(MatmulUse::kChunk, type);
  EXPECT_EQ(index, choices.standard(MatmulUse::kChunk, type));
  return choices.candidate(MatmulUse::kChunk, type, index)->name;
}

TEST(DeviceShapes, chunks_use_the_best_kernel_that_the_device_has) {
  constexpr uint32_t kEverything = kMatrix | kHalf | kDot;
  const DeviceCaps nvidia = madeUp(0x10DE, 4, "NVIDIA GeForce RTX 4080");
  EXPECT_EQ("matrix units, 128 rows, 128 tokens", chunkKernel(nvidia, kEverything));
  EXPECT_EQ("dot, 64 lanes, 2 rows each, 4 tokens", chunkKernel(nvidia, kHalf | kDot));
  EXPECT_EQ("float", chunkKernel(nvidia, kHalf));
  EXPECT_EQ("matrix units, 128 rows, 128 tokens",
            chunkKernel(nvidia, kEverything, WeightType::kF16));
  EXPECT_EQ("float", chunkKernel(nvidia, kEverything, WeightType::kF32));
  EXPECT_EQ("matrix units, 64 rows, 64 tokens",
            chunkKernel(madeUp(0x8086, 5, "Intel(R) Arc(TM) A770"), kEverything));
  EXPECT_EQ("half, 64 lanes, 2 rows each, 8 tokens",
            chunkKernel(madeUp(0x13B5, 9, "Mali-G715"), kHalf));
  EXPECT_EQ("float", chunkKernel(madeUp(0x106B, 14, "Apple M2"), kHalf));
  // Software computes halves and matrices slowly.
  EXPECT_EQ("float",
            chunkKernel(madeUp(0x10005, 13, "llvmpipe", VK_PHYSICAL_DEVICE_TYPE_CPU), kEverything));
}

TEST(DeviceShapes, large_tiles_of_matrix_units_need_their_lanes) {
  DeviceCaps caps = madeUp(0x10DE, 4, "NVIDIA GeForce RTX 4080");
  EXPECT_EQ("matrix units, 128 rows, 128 tokens", chunkKernel(caps, kMatrix | kHalf));
  EXPECT_EQ("matrix units, 64 rows, 64 tokens",
            chunkKernel(caps, kMatrix | kHalf, WeightType::kQ4_0, 128));
}

/// The kernel of a prompt's attention on such a device, after a change of the op.
template <typename Change>
std::string attentionKernel(DeviceCaps caps, uint32_t rows, bool apart, const Change& change) {
  caps.features = kMatrix | kHalf;
  caps.matrix = {16, 16, 16, true};
  caps.subgroup_size = 32;
  const Verdict verdict;
  MatmulChoices choices;
  choices.create(caps, verdict, nullptr, Log());
  Op op = {};
  op.kind = OpKind::kAttention;
  op.n_bindings = 5;
  op.push.attention.n_heads = 8;
  op.push.attention.n_kv_heads = 2;
  op.push.attention.head_dim = 128;
  op.push.attention.splits = 1;
  change(&op);
  Kernel kernel;
  EXPECT_TRUE(chooseKernel(op, nullptr, {rows, apart}, caps, choices, Log(), &kernel).ok());
  const std::string name = kShaders[kernel.shader].name();
  if (name == "attention_f16_matrix") {
    EXPECT_EQ(128u, kernel.constants[0]) << "lanes of four subgroups";
    EXPECT_EQ(32u, kernel.subgroup_size);
    EXPECT_EQ((rows * 4 + 63) / 64, kernel.grid[1]) << "four heads a group, 64 queries a workgroup";
  }
  return name;
}

TEST(AttentionKernel, uses_matrix_units_for_plain_scores_of_prompts) {
  const DeviceCaps nvidia = madeUp(0x10DE, 4, "NVIDIA GeForce RTX 4080");
  const auto as_it_is = [](Op*) {};
  EXPECT_EQ("attention_f16_matrix", attentionKernel(nvidia, 100, false, as_it_is));
  EXPECT_EQ("attention_f16_matrix",
            attentionKernel(madeUp(0x1002, 3, "AMD Radeon RX 7900"), 2, false, as_it_is));
  EXPECT_EQ("attention_f16", attentionKernel(nvidia, 1, false, as_it_is)) << "a decoded token";
  EXPECT_EQ("attention_f16", attentionKernel(nvidia, 8, true, as_it_is)) << "several sessions";
  EXPECT_EQ("attention_f16",
            attentionKernel(madeUp(0x8086, 5, "Intel(R) Arc(TM) A770"), 100, false, as_it_is))
      << "a compiler that was not checked";
  const auto plain = [&](const auto& change) {
    return attentionKernel(nvidia, 100, false, change);
  };
  EXPECT_EQ("attention_f16", plain([](Op* op) { op->push.attention.soft_cap = 50; }));
  EXPECT_EQ("attention_f16", plain([](Op* op) { op->push.attention.alibi_heads = 8; }));
  EXPECT_EQ("attention_f16", plain([](Op* op) { op->push.attention.head_dim = 256; }));
  EXPECT_EQ("attention_f16", plain([](Op* op) { op->push.attention.head_dim = 72; }));
  EXPECT_EQ("attention_f16", plain([](Op* op) { op->n_bindings = 6; })) << "one more score a head";
}

// exp() is exp2() of a multiple: the difference of any two scores that a kernel begins with stays finite.
TEST(AttentionKernel, its_lowest_score_does_not_overflow_in_exp) {
  std::ifstream file(ORIEL_SOURCE_DIR "/shaders/attention.comp");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string declaration = "const float kLowest = ";
  const size_t at = text.find(declaration);
  ASSERT_NE(std::string::npos, at);
  const float lowest = std::stof(text.substr(at + declaration.size()));
  EXPECT_LT(lowest, -1e20f);
  EXPECT_TRUE(std::isfinite((lowest - 1e30f) * 1.4426950f));
  EXPECT_TRUE(std::isfinite(lowest * 2.0f * 1.4426950f));
}

TEST(KnownDevices, rows_match_by_all_that_they_name) {
  const KnownDevice row = {7,
                           9,
                           VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                           "Nine",
                           100,
                           200,
                           kDot,
                           5.0,
                           true,
                           "it smokes",
                           "a fire brigade"};
  DeviceCaps caps = madeUp(7, 9, "The Nine 5", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
  caps.driver_version = 150;
  EXPECT_TRUE(matches(row, caps));
  for (const uint32_t version : {100u, 200u}) {
    caps.driver_version = version;
    EXPECT_TRUE(matches(row, caps)) << version;
  }
  for (const uint32_t version : {99u, 201u}) {
    caps.driver_version = version;
    EXPECT_FALSE(matches(row, caps)) << version;
  }
  caps.driver_version = 150;
  const auto but = [&](const auto& change) {
    DeviceCaps other = caps;
    change(&other);
    return matches(row, other);
  };
  EXPECT_FALSE(but([](DeviceCaps* c) { c->vendor_id = 8; }));
  EXPECT_FALSE(but([](DeviceCaps* c) { c->driver_id = 8; }));
  EXPECT_FALSE(but([](DeviceCaps* c) { c->type = VK_PHYSICAL_DEVICE_TYPE_CPU; }));
  EXPECT_FALSE(but([](DeviceCaps* c) { c->name[4] = 'F'; }));

  const KnownFaults all = findFaults(&row, 1, caps, 0);
  EXPECT_TRUE(all.refused);
  EXPECT_EQ(5.0, all.most_work);
  EXPECT_STREQ("integer_dot, long_submissions, the whole device off: it smokes (a fire brigade)",
               all.text);
  // Each can be overridden by name.
  const KnownFaults used = findFaults(&row, 1, caps, 1u << kDeviceItself);
  EXPECT_FALSE(used.refused);
  EXPECT_EQ(kDot, used.features_off);
  EXPECT_EQ(0, findFaults(&row, 1, caps, 1u << kLongSubmissions).most_work);
  EXPECT_EQ(0u, findFaults(&row, 1, caps, kDot).features_off);
}

TEST(FeatureNames, overrides_know_more_names_and_none_else) {
  CapturedLog log;
  uint32_t bits = 0;
  ASSERT_TRUE(readOverrideNames("device,float16 long_submissions", log.log(), &bits).ok());
  EXPECT_EQ(kHalf | 1u << kDeviceItself | 1u << kLongSubmissions, bits);
  ASSERT_TRUE(readOverrideNames("all", log.log(), &bits).ok());
  EXPECT_EQ((1u << kVulkanFeatures) - 1, bits);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, readOverrideNames("warp", log.log(), &bits).code());
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, readFeatureNames("device", log.log(), &bits).code());
}

uint32_t shaderNamed(const std::string& name) {
  for (uint32_t i = 0; i < kShaderCount; ++i) {
    if (name == kShaders[i].name()) {
      return i;
    }
  }
  ADD_FAILURE() << "no kernel " << name;
  return 0;
}

TEST(Verdict, kernels_need_what_their_names_end_with) {
  ASSERT_LE(kShaderCount, Verdict::kMaxKernels);
  EXPECT_EQ(kHalf, featuresOfKernel("matmul_q8_0_half"));
  EXPECT_EQ(kDot, featuresOfKernel("matmul_q4_k_dot"));
  EXPECT_EQ(kMatrix | kHalf, featuresOfKernel("matmul_q8_0_matrix"));
  EXPECT_EQ(kSubgroups, featuresOfKernel("rms_norm_subgroup"));
  EXPECT_EQ(kTexels, featuresOfKernel("attention_f16_texel"));
  EXPECT_EQ(0u, featuresOfKernel("rms_norm_shared"));
  EXPECT_EQ(0u, featuresOfKernel("stage_half_x"));
  EXPECT_EQ(kMatrix, riskiest(kMatrix | kHalf | kDot));
  EXPECT_EQ(kHalf, riskiest(kHalf | kDot | kSubgroups));
  EXPECT_EQ(kDot, riskiest(kDot | kSubgroups | kTexels));
  EXPECT_EQ(kSubgroups, riskiest(kSubgroups | kTexels));
  EXPECT_EQ(kTexels, riskiest(kTexels));
  EXPECT_EQ(0u, riskiest(0));
}

class VerdictFile : public ScratchFolder {
 protected:
  VerdictFile() { caps_ = madeUp(0x1234, 9, "Made Up"); }
  std::string dir() const { return folder_.string(); }
  Verdict read() {
    Verdict verdict;
    verdict.read(caps_, dir().c_str());
    return verdict;
  }
  void keep(Verdict verdict) { verdict.keep(caps_, dir().c_str()); }
  fs::path file() const { return fs::directory_iterator(folder_)->path(); }

  DeviceCaps caps_;
};

TEST_F(VerdictFile, is_kept_for_its_device_driver_and_kernels_alone) {
  Verdict found = read();
  const uint32_t norm = shaderNamed("rms_norm_subgroup");
  found.note(norm, KernelState::kWrong);
  found.note(norm + 1, KernelState::kRight);
  found.turnOff(kSubgroups);
  found.putAside(3, 2);
  keep(found);
  const Verdict again = read();
  EXPECT_EQ(KernelState::kWrong, again.state(norm));
  EXPECT_EQ(KernelState::kRight, again.state(norm + 1));
  EXPECT_EQ(KernelState::kUntried, again.state(norm + 2));
  EXPECT_EQ(kSubgroups, again.wrongFeatures());
  EXPECT_TRUE(again.isAside(3, 2));
  EXPECT_FALSE(again.isAside(3, 1));
  char text[256];
  again.describe(text, sizeof(text));
  EXPECT_EQ(
      "subgroup off: rms_norm_subgroup came out wrong, ways to multiply put aside: they came out "
      "wrong",
      std::string(text));

  caps_.driver_version ^= 1;
  EXPECT_EQ(0u, read().wrongFeatures()) << "another driver";
  caps_.driver_version ^= 1;
  caps_.pipeline_cache_uuid[3] = 1;
  EXPECT_EQ(0u, read().wrongFeatures()) << "another driver by its cache's word";
}

TEST_F(VerdictFile, counts_for_nothing_when_any_byte_is_damaged_or_missing) {
  Verdict found = read();
  found.turnOff(kDot);
  keep(found);
  std::ifstream in(file(), std::ios::binary);
  const std::vector<char> good{std::istreambuf_iterator<char>(in), {}};
  in.close();
  const auto write = [&](const std::vector<char>& bytes) {
    std::ofstream(file(), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  for (size_t at = 0; at < good.size(); at += at < 80 ? 1 : 7) {
    std::vector<char> damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write(damaged);
    ASSERT_EQ(0u, read().wrongFeatures()) << at;
    write({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at)});
    ASSERT_EQ(0u, read().wrongFeatures()) << at;
  }
  write(good);
  EXPECT_EQ(kDot, read().wrongFeatures());
}

TEST_F(VerdictFile, a_death_counts_for_three_starts_and_each_further_one_for_four_times_as_many) {
  const auto start = [this](const DriverContact& left, bool survives = true) {
    Verdict verdict;
    verdict.read(caps_, dir().c_str(), true);
    verdict.died(left);
    verdict.starting();
    const uint32_t off = verdict.diedFeatures() | (verdict.isDeadly() ? 1u << 31 : 0);
    if (survives) {
      verdict.survived();
    }
    keep(verdict);
    return off;
  };
  const DriverContact none;
  const DriverContact death = {DriverPlace::kCompile, kHalf};
  EXPECT_EQ(0u, start(none));
  EXPECT_EQ(kHalf, start(death));
  EXPECT_EQ(kHalf, start(none));
  EXPECT_EQ(kHalf, start(none));
  EXPECT_EQ(0u, start(none)) << "once more with everything";
  EXPECT_EQ(0u, start(none)) << "and it is forgotten";

  EXPECT_EQ(kHalf, start(death));
  EXPECT_EQ(kHalf, start(none));
  EXPECT_EQ(kHalf, start(none));
  for (const int without : {12, 48, 192}) {
    EXPECT_EQ(0u, start(none, false)) << "ends the process again";
    for (int i = 0; i < without; ++i) {
      ASSERT_EQ(kHalf, start(i == 0 ? death : none)) << i << " of " << without;
    }
  }
  caps_.driver_version += 1;
  EXPECT_EQ(0u, start(none)) << "another driver";
}

TEST_F(VerdictFile, a_driver_that_dies_of_nothing_optional_is_deadly) {
  Verdict verdict = read();
  EXPECT_FALSE(verdict.died({DriverPlace::kKeptKernels, kHalf}))
      << "their file is given up instead";
  EXPECT_TRUE(verdict.died({DriverPlace::kDevice, 0}));
  EXPECT_TRUE(verdict.isDeadly());
  char text[256];
  verdict.describe(text, sizeof(text));
  EXPECT_STREQ("the device off: the driver ended a process at making the device", text);
  keep(verdict);
  EXPECT_TRUE(read().isDeadly());
  uint32_t left = 0;
  EXPECT_EQ(1u, forgetVerdicts(dir().c_str(), &left));
  EXPECT_EQ(0u, left);
  EXPECT_FALSE(read().isDeadly());
}

// The device is off, and comes back: the process may have been killed by a user.
TEST_F(VerdictFile, a_device_that_is_off_counts_its_starts) {
  Verdict verdict = read();
  EXPECT_TRUE(verdict.died({DriverPlace::kCompile, 0}));
  keep(verdict);
  for (uint32_t i = 0; i < Verdict::kSuspectStarts; ++i) {
    verdict.read(caps_, dir().c_str(), true);
    EXPECT_TRUE(verdict.isDeadly()) << i;
    verdict.starting();
    keep(verdict);
    EXPECT_TRUE(read().isDeadly()) << "whoever does not begin goes on without it";
  }
  verdict.read(caps_, dir().c_str(), true);
  EXPECT_FALSE(verdict.isDeadly());
  verdict.survived();
  keep(verdict);
  EXPECT_FALSE(read().isDeadly());
}

TEST_F(VerdictFile, a_test_that_went_well_forgets_a_death) {
  Verdict verdict = read();
  EXPECT_TRUE(verdict.died({DriverPlace::kCompile, kHalf}));
  verdict.survivedTest();
  EXPECT_EQ(0u, verdict.diedFeatures());
  keep(verdict);
  EXPECT_EQ(0u, read().diedFeatures());
}

// One process was working before the other found it.
TEST_F(VerdictFile, a_death_that_another_process_has_found_stays) {
  Verdict before = read();
  Verdict finds = read();
  EXPECT_TRUE(finds.died({DriverPlace::kCompile, kHalf}));
  keep(finds);
  before.note(0, KernelState::kRight);
  before.survived();
  keep(before);
  EXPECT_EQ(kHalf, read().diedFeatures());
  EXPECT_EQ(KernelState::kRight, read().state(0));
}

TEST_F(VerdictFile, looking_at_vulkan_as_a_whole_is_no_start) {
  VulkanRecord record;
  EXPECT_FALSE(record.start(dir().c_str(), true, false));
  for (int i = 0; i < 9; ++i) {
    EXPECT_FALSE(record.start(dir().c_str(), false, false)) << i;
  }
  for (uint32_t i = 0; i < Verdict::kSuspectStarts; ++i) {
    EXPECT_FALSE(record.start(dir().c_str(), false, true)) << i;
  }
  EXPECT_TRUE(record.start(dir().c_str(), false, false));
}

TEST_F(VerdictFile, vulkan_as_a_whole_is_tried_again_after_more_starts_each_time) {
  const auto starts = [this](bool died) {
    VulkanRecord record;
    const bool goes = record.start(dir().c_str(), died, true);
    return goes;
  };
  EXPECT_TRUE(starts(false));
  for (const int without : {3, 12, 48, 192, 192}) {
    EXPECT_FALSE(starts(true));
    for (int i = 1; i < without; ++i) {
      ASSERT_FALSE(starts(false)) << i << " of " << without;
    }
    EXPECT_TRUE(starts(false)) << without;
  }
  VulkanRecord record;
  EXPECT_TRUE(record.start(dir().c_str(), false, true));
  record.survived();
  EXPECT_FALSE(starts(true));
  EXPECT_FALSE(starts(false));
  EXPECT_FALSE(starts(false));
  EXPECT_TRUE(starts(false)) << "all was forgotten";
}

#if !defined(_WIN32)
class DriverMark : public ScratchFolder {
 protected:
  std::string path() const { return (folder_ / "some" / "mark.contact").string(); }
  // A process that ends during the work.
  template <typename Work>
  void inAnotherProcess(const Work& work) {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(3);
    }
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
  }
  DriverContact found(uint32_t driver_version = 7) {
    DriverWatch watch;
    return watch.begin(path().c_str(), driver_version);
  }
};

TEST_F(DriverMark, tells_what_was_under_way_when_its_process_ended) {
  EXPECT_EQ(DriverPlace::kNone, found().place);
  EXPECT_FALSE(fs::exists(path()));
  inAnotherProcess([this] {
    static DriverWatch watch;
    watch.begin(path().c_str(), 7);
    watch.enter(DriverPlace::kCompile, kHalf);
    watch.enter(DriverPlace::kCompile, kDot | kHalf);
    watch.leave(DriverPlace::kCompile, kHalf);
  });
  const DriverContact left = found();
  EXPECT_EQ(DriverPlace::kCompile, left.place);
  EXPECT_EQ(kHalf | kDot, left.features);
  EXPECT_EQ(DriverPlace::kNone, found().place) << "it is told once";
}

TEST_F(DriverMark, tells_the_last_of_several_places) {
  // Weights are uploaded while other threads compile: a crash in a submission is attributed correctly in any order.
  for (const bool compiles_later : {false, true}) {
    inAnotherProcess([this, compiles_later] {
      static DriverWatch watch;
      watch.begin(path().c_str(), 7);
      watch.enter(DriverPlace::kCompile, kHalf);
      watch.enter(DriverPlace::kFirstSteps, 0);
      if (compiles_later) {
        watch.enter(DriverPlace::kCompile, kDot);
        watch.leave(DriverPlace::kCompile, kHalf);
      }
    });
    const DriverContact left = found();
    EXPECT_EQ(DriverPlace::kFirstSteps, left.place) << compiles_later;
    EXPECT_EQ(compiles_later ? kDot : kHalf, left.features) << compiles_later;
  }
  inAnotherProcess([this] {
    static DriverWatch watch;
    watch.begin(path().c_str(), 7);
    watch.enter(DriverPlace::kCompile, kHalf);
    watch.enter(DriverPlace::kFirstSteps, 0);
    watch.leave(DriverPlace::kFirstSteps, 0);
  });
  EXPECT_EQ(DriverPlace::kCompile, found().place) << "and what goes on when it is done";
}

TEST_F(DriverMark, says_nothing_where_nothing_was_under_way_or_of_another_driver) {
  inAnotherProcess([this] {
    static DriverWatch watch;
    watch.begin(path().c_str(), 7);
    watch.enter(DriverPlace::kCompile, kHalf);
    watch.leave(DriverPlace::kCompile, kHalf);
  });
  EXPECT_TRUE(fs::exists(path()));
  EXPECT_EQ(DriverPlace::kNone, found().place);
  inAnotherProcess([this] {
    static DriverWatch watch;
    watch.begin(path().c_str(), 7);
    watch.enter(DriverPlace::kDevice, 0);
  });
  EXPECT_EQ(DriverPlace::kNone, found(8).place);
}

TEST_F(DriverMark, of_a_process_that_lives_is_left_alone) {
  DriverWatch owner;
  owner.begin(path().c_str(), 7);
  owner.enter(DriverPlace::kDevice, 0);
  EXPECT_EQ(DriverPlace::kNone, found().place);
  EXPECT_TRUE(fs::exists(path()));
  owner.end();
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(DriverMark, that_cannot_be_removed_says_nothing) {
  DriverWatch owner;
  owner.begin(path().c_str(), 7);
  owner.enter(DriverPlace::kDevice, 0);
  const fs::path moved = folder_ / "moved";
  fs::rename(fs::path(path()).parent_path(), moved);  // not at the expected place
  owner.end();
  const std::string mark = (moved / fs::path(path()).filename()).string();
  ASSERT_TRUE(fs::exists(mark));
  DriverWatch later;
  EXPECT_EQ(DriverPlace::kNone, later.begin(mark.c_str(), 7).place);
}

TEST_F(DriverMark, of_any_bytes_is_survived) {
  fs::create_directories(fs::path(path()).parent_path());
  for (const size_t bytes : {0, 1, 23, 24, 63, 64, 5000}) {
    std::ofstream(path(), std::ios::binary) << std::string(bytes, 'x');
    EXPECT_EQ(DriverPlace::kNone, found().place) << bytes;
    EXPECT_FALSE(fs::exists(path()));
  }
  fs::create_directory(path());
  EXPECT_EQ(DriverPlace::kNone, found().place);
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_drivers

#endif
