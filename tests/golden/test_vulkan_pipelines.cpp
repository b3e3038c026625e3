// Kernel compilation in the Vulkan executor. Needs a Vulkan target.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#ifdef ORIEL_VULKAN
#include "support/vulkan_rig.h"

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
