// Kernel compilation in the Vulkan executor. Needs a Vulkan target.
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#if !defined(_WIN32)
#include <sys/wait.h>
#endif

#ifdef ORIEL_VULKAN
#include "support/kernel_rig.h"

namespace oriel_internal::test::test_vulkan_pipelines {
namespace {

/// A rig whose one kernel sums over subgroups, where the device has them.
struct Norm {
  static constexpr uint32_t kCols = 64;

  Norm() : rig(1) {
    const BufferRef in = rig.input(std::vector<float>(kCols, 2.0f));
    const BufferRef weight = rig.input(std::vector<float>(kCols, 3.0f));
    out = rig.output(kCols);
    const RmsNormPush push = {kCols, kCols, kCols, 0, 1e-5f, 1, 0, 0, 0, 1, 0};
    rig.add(StepList::kDecode, OpKind::kRmsNorm, push, {in, out, weight});
  }
  bool norms() {
    rig.clearOutputs();
    rig.header().n_tokens = 1;
    return rig.executor->run(StepRun::kDecode).ok() &&
           std::fabs(rig.floats(out)[kCols - 1] - 3.0f) < 1e-4f;
  }
  bool sumsOverSubgroups() { return std::string(rig.executor->pathName()) == "subgroup"; }

  KernelRig rig;
  BufferRef out;
};

bool warns(const CapturedLog& log, const char* part) {
  return std::any_of(log.lines.begin(), log.lines.end(), [part](const CapturedLog::Line& line) {
    return line.level == ORIEL_LOG_WARNING && line.text.find(part) != std::string::npos;
  });
}

class VulkanPipelines : public VulkanExecutor {};

TEST_F(VulkanPipelines, a_kernel_with_subgroups_that_does_not_compile_is_replaced) {
  VulkanTap tap;
  tap.fail = [](const std::string& call, int nth) {
    return call == "vkCreateComputePipelines" && nth == 1 ? VK_ERROR_UNKNOWN : VK_SUCCESS;
  };
  Norm norm;
  norm.rig.options.driver_tap = &VulkanTap::kDriver;
  const Status status = norm.rig.load();
  if (status.ok() || norm.sumsOverSubgroups()) {
    ASSERT_TRUE(status.ok()) << norm.rig.log.errors();
    EXPECT_TRUE(warns(norm.rig.log, "rms_norm_shared stands in for it"));
    EXPECT_TRUE(norm.norms());
  } else {  // no alternative without subgroups
    EXPECT_EQ(ORIEL_ERROR_DEVICE, status.code());
  }
}

TEST_F(VulkanPipelines, a_kernel_without_another_one_in_its_place_fails_the_load) {
  VulkanTap tap;
  tap.fail = [](const std::string& call, int) {
    return call == "vkCreateComputePipelines" ? VK_ERROR_UNKNOWN : VK_SUCCESS;
  };
  Copier copier;
  copier.rig.options.driver_tap = &VulkanTap::kDriver;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, copier.rig.load().code());
  Norm norm;
  norm.rig.options.driver_tap = &VulkanTap::kDriver;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, norm.rig.load().code());
}

TEST_F(VulkanPipelines, subgroups_are_full_where_the_device_can_see_to_it) {
  static bool enabled;
  static bool required;
  static PFN_vkCreateDevice real_device;
  static PFN_vkCreateComputePipelines real_pipelines;
  enabled = required = false;
  static constexpr VulkanDriverTap driver_tap = {[](VulkanApi* api) {
    if (api->vkCreateComputePipelines == nullptr) {
      return;
    }
    real_device = api->vkCreateDevice;
    real_pipelines = api->vkCreateComputePipelines;
    api->vkCreateDevice = [](VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                             const VkAllocationCallbacks* allocator, VkDevice* device) {
      for (auto* next = static_cast<const VkBaseInStructure*>(info->pNext); next != nullptr;
           next = next->pNext) {
        enabled =
            enabled ||
            (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT &&
             reinterpret_cast<const VkPhysicalDeviceSubgroupSizeControlFeaturesEXT*>(next)
                     ->computeFullSubgroups != VK_FALSE);
      }
      return real_device(physical, info, allocator, device);
    };
    api->vkCreateComputePipelines = [](VkDevice device, VkPipelineCache cache, uint32_t count,
                                       const VkComputePipelineCreateInfo* infos,
                                       const VkAllocationCallbacks* allocator,
                                       VkPipeline* pipelines) {
      required = required || (infos->stage.flags &
                              VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT) != 0;
      return real_pipelines(device, cache, count, infos, allocator, pipelines);
    };
  }};
  Norm norm;
  norm.rig.options.driver_tap = &driver_tap;
  ASSERT_TRUE(norm.rig.load().ok()) << norm.rig.log.errors();
  EXPECT_EQ(enabled && norm.sumsOverSubgroups(), required);
  EXPECT_TRUE(norm.norms());
}

}  // namespace
}  // namespace oriel_internal::test::test_vulkan_pipelines
#endif

// Pipelines stored on disk by the Vulkan executor: used if valid, replaced if not. Needs a Vulkan target.

#ifdef ORIEL_VULKAN
#include "support/kernel_rig.h"
#include "support/tiers.h"
#include "vulkan/verdict.h"

namespace oriel_internal::test::test_pipeline_file {
namespace {

namespace fs = std::filesystem;

class PipelineFile : public VulkanExecutor {
 protected:
  void SetUp() override {
    VulkanExecutor::SetUp();
    folder_ = fs::temp_directory_path() / ("oriel-pipelines-" + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Loads with the folder; the bytes of pipelines handed to the driver.
  size_t loadAndRun() {
    static size_t handed;
    static PFN_vkCreatePipelineCache real;
    handed = 0;
    Copier copier;
    const std::string folder = folder_.string();
    copier.rig.options.cache_dir = folder.c_str();
    copier.rig.options.trust_dir = watched_ ? folder.c_str() : nullptr;
    static constexpr VulkanDriverTap driver_tap = {[](VulkanApi* api) {
      if (api->vkCreatePipelineCache != nullptr) {
        real = api->vkCreatePipelineCache;
        api->vkCreatePipelineCache = [](VkDevice device, const VkPipelineCacheCreateInfo* info,
                                        const VkAllocationCallbacks* allocator,
                                        VkPipelineCache* cache) {
          handed += info->initialDataSize;
          return real(device, info, allocator, cache);
        };
      }
    }};
    copier.rig.options.driver_tap = &driver_tap;
    EXPECT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
    stats_ = copier.rig.executor->pipelineStats();
    EXPECT_TRUE(copier.copies());
    return handed;
  }
  std::vector<char> read() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::vector<char>& bytes) const {
    std::ofstream(path(), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  fs::path path() const { return fs::directory_iterator(folder_)->path(); }

  fs::path folder_;
  bool watched_ = false;  ///< a marker exists during the driver's work
  PipelineStats stats_;   ///< of the latest load
};

RUNS_ON(kEachGpu);
TEST_F(PipelineFile, is_written_by_the_first_load_and_used_by_the_second) {
  EXPECT_EQ(loadAndRun(), 0u);
  ASSERT_TRUE(fs::exists(folder_));
  EXPECT_GT(loadAndRun(), 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

RUNS_ON(kOneGpu);
TEST_F(PipelineFile, is_not_handed_to_the_driver_when_any_byte_is_damaged_or_missing) {
  loadAndRun();
  const std::vector<char> good = read();
  ASSERT_GT(good.size(), 100u);
  const size_t step = good.size() / 40 + 1;
  for (size_t at = 0; at < good.size(); at += at < 126 ? 7 : step) {
    SCOPED_TRACE(at);
    std::vector<char> damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write(damaged);
    ASSERT_EQ(loadAndRun(), 0u);
    write({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at)});
    ASSERT_EQ(loadAndRun(), 0u);
  }
  // And a damaged file is replaced by a good one.
  EXPECT_GT(loadAndRun(), 0u);
}

RUNS_ON(kEachGpu);
TEST_F(PipelineFile, that_cannot_be_written_fails_nothing) {
  std::ofstream(folder_) << "a file where the folder should be";
  EXPECT_EQ(loadAndRun(), 0u);
}

RUNS_ON(kEachGpu);
TEST_F(PipelineFile, spares_a_second_start_all_compiling) {
  loadAndRun();
  const PipelineStats first = stats_;
  EXPECT_GT(first.total, 0u);
  if (!first.known) {
    GTEST_SKIP() << "the driver does not say where a pipeline came from";
  }
  EXPECT_EQ(first.from_cache, 0u);
  // A kernel is at least a few hundred instructions.
  constexpr size_t kHeaders = 88 + 32, kLeastKernel = 256;
  if (read().size() < kHeaders + first.total * kLeastKernel) {
    GTEST_SKIP() << "the driver puts no kernels into a pipeline cache";
  }
  loadAndRun();
  EXPECT_EQ(stats_.from_cache, stats_.total);
}

RUNS_ON(kEachGpu);
TEST_F(PipelineFile, hits_that_a_driver_reports_are_counted_and_all_pipelines_ask) {
  // Software drivers store nothing: this one reports all its input as found.
  static size_t handed;
  static std::atomic<int> asked;
  static PFN_vkCreatePipelineCache real_cache;
  static PFN_vkCreateComputePipelines real_compile;
  const std::string folder = folder_.string();
  const auto load = [&] {
    handed = 0;
    asked = 0;
    Copier copier;
    copier.rig.options.cache_dir = folder.c_str();
    static constexpr VulkanDriverTap driver_tap = {[](VulkanApi* api) {
      if (api->vkCreatePipelineCache == nullptr) {
        return;
      }
      real_cache = api->vkCreatePipelineCache;
      real_compile = api->vkCreateComputePipelines;
      api->vkCreatePipelineCache = [](VkDevice device, const VkPipelineCacheCreateInfo* info,
                                      const VkAllocationCallbacks* allocator,
                                      VkPipelineCache* cache) {
        handed = info->initialDataSize;
        return real_cache(device, info, allocator, cache);
      };
      api->vkCreateComputePipelines = [](VkDevice device, VkPipelineCache cache, uint32_t count,
                                         const VkComputePipelineCreateInfo* info,
                                         const VkAllocationCallbacks* allocator,
                                         VkPipeline* pipelines) {
        const VkResult result = real_compile(device, cache, count, info, allocator, pipelines);
        if (info->pNext != nullptr) {
          ++asked;
          static_cast<const VkPipelineCreationFeedbackCreateInfoEXT*>(info->pNext)
              ->pPipelineCreationFeedback->flags =
              VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT_EXT |
              (handed != 0 ? VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT_EXT
                           : 0);
        }
        return result;
      };
    }};
    copier.rig.options.driver_tap = &driver_tap;
    EXPECT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
    return copier.rig.executor->pipelineStats();
  };
  const PipelineStats first = load();
  if (asked == 0) {
    GTEST_SKIP() << "the device lacks VK_EXT_pipeline_creation_feedback";
  }
  EXPECT_EQ(static_cast<int>(first.total), asked);
  EXPECT_TRUE(first.known);
  EXPECT_EQ(0u, first.from_cache);
  const PipelineStats second = load();
  EXPECT_EQ(first.total, second.total);
  EXPECT_EQ(second.total, second.from_cache);
}

#if !defined(_WIN32)
RUNS_ON(kEachGpu);
TEST_F(PipelineFile, that_a_driver_did_not_survive_is_not_handed_to_it_again) {
  watched_ = true;
  loadAndRun();
  ASSERT_GT(loadAndRun(), 0u);
  const std::vector<char> good = read();
  uint32_t driver_version = 0;
  std::memcpy(&driver_version, good.data() + 32, sizeof(driver_version));
  const std::string mark = fs::path(path()).replace_extension(".contact").string();
  // A process that ends while the driver takes the file.
  const pid_t child = fork();
  if (child == 0) {
    static DriverWatch watch;
    (void)watch.begin(mark.c_str(), driver_version);
    watch.enter(DriverPlace::kKeptKernels, 0);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  ASSERT_TRUE(fs::exists(mark));
  EXPECT_EQ(loadAndRun(), 0u);
  EXPECT_FALSE(fs::exists(mark)) << "its successor is trusted again";
  EXPECT_GT(loadAndRun(), 0u);
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_pipeline_file

#endif
