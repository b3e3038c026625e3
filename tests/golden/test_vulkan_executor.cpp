// Promises of the Vulkan executor besides correct results: its calls, and its handling of failures. Needs a Vulkan
// target.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifdef ORIEL_VULKAN
#include "support/kernel_rig.h"
#include "support/tiers.h"
#include "support/timing.h"

namespace oriel_internal::test::test_vulkan_executor {
namespace {

/// A time limit that ends soon, and is still more than a copy needs while kernels are compiled.
constexpr uint32_t kHastyMs = 1000;

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_step_submits_once_and_creates_allocates_and_records_nothing) {
  VulkanTap tap;
  Copier copier;
  copier.rig.options.driver_tap = &VulkanTap::kDriver;
  ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
  const StepRun runs[] = {StepRun::kDecode, StepRun::kChunk, StepRun::kChunkHead, StepRun::kHead};
  for (const StepRun what : runs) {
    tap.calls.clear();
    ASSERT_TRUE(copier.copies(what));
    EXPECT_EQ(tap.calls["vkQueueSubmit"], 1);
    for (const auto& [name, count] : tap.calls) {
      EXPECT_TRUE(count == 0 || name == "vkQueueSubmit" || name == "vkResetFences" ||
                  name == "vkWaitForFences")
          << name;
    }
  }
  tap.calls.clear();
  ASSERT_TRUE(copier.rig.executor->forget().ok());
  EXPECT_EQ(tap.calls["vkBeginCommandBuffer"], 1);  // which arenas are there is not always the same
  EXPECT_EQ(tap.calls["vkQueueSubmit"], 1);
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, only_ops_that_touch_the_same_words_wait_for_each_other) {
  // Two products of 16 rows each: independent, into the same columns, or chained.
  const auto barriers = [](uint32_t second_column, bool chained) {
    VulkanTap tap;
    KernelRig rig;
    rig.options.driver_tap = &VulkanTap::kDriver;
    const PackedMatrix matrix = floatMatrix(16, 32, std::vector<float>(16 * 32, 1.0f));
    const BufferRef weights = rig.input(matrix.words);
    const BufferRef in = rig.input(std::vector<float>(32, 1.0f));
    const BufferRef out = rig.output(64);
    MatmulPush push = {};
    push.rows = 16;
    push.units = 1;
    push.group_words = matrix.geometry.groupWords();
    push.side_word = matrix.geometry.sideWord();
    push.in_stride = 32;
    push.out_stride = 64;
    rig.add(StepList::kHead, OpKind::kMatmul, push, {weights, out, in});
    push.out_first = second_column;
    rig.add(StepList::kHead, OpKind::kMatmul, push, {weights, out, chained ? out : in});
    EXPECT_TRUE(rig.load().ok()) << rig.log.errors();
    return tap.calls["vkCmdPipelineBarrier"];
  };
  const int apart = barriers(16, false);
  EXPECT_EQ(barriers(15, false), apart + 1);
  EXPECT_EQ(barriers(0, false), apart + 1);
  EXPECT_EQ(barriers(32, true), apart + 1);
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, every_object_created_is_destroyed) {
  VulkanTap tap;
  {
    Copier copier;
    copier.rig.options.driver_tap = &VulkanTap::kDriver;
    ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
  }
  for (const char* object :
       {"Instance", "Device", "Buffer", "DescriptorSetLayout", "DescriptorPool", "PipelineLayout",
        "PipelineCache", "ShaderModule", "CommandPool", "Fence"}) {
    EXPECT_EQ(tap.calls[std::string("vkCreate") + object],
              tap.calls[std::string("vkDestroy") + object])
        << object;
  }
  EXPECT_EQ(tap.calls["vkAllocateMemory"], tap.calls["vkFreeMemory"]);
  EXPECT_EQ(tap.calls["vkCreateComputePipelines"], tap.calls["vkDestroyPipeline"]);
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, an_executor_can_use_the_device_of_another_one) {
  VulkanTap tap;
  Copier copier;
  copier.rig.options.driver_tap = &VulkanTap::kDriver;
  ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
  {
    Copier beside;
    beside.rig.options.beside = copier.rig.executor;
    ASSERT_TRUE(beside.rig.load().ok()) << beside.rig.log.errors();
    EXPECT_EQ(1, tap.calls["vkCreateInstance"]);
    EXPECT_EQ(1, tap.calls["vkCreateDevice"]);
    EXPECT_STREQ(copier.rig.executor->deviceName(), beside.rig.executor->deviceName());
    EXPECT_TRUE(beside.copies());
    EXPECT_TRUE(copier.copies());
    EXPECT_TRUE(beside.copies());
  }
  EXPECT_EQ(0, tap.calls["vkDestroyDevice"]);
  EXPECT_TRUE(copier.copies());
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, ops_that_are_timed_give_the_results_of_a_step) {
  VulkanTap tap;
  {
    Copier copier;
    copier.rig.options.driver_tap = &VulkanTap::kDriver;
    ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
    for (const StepList list : {StepList::kDecode, StepList::kChunk, StepList::kHead}) {
      copier.rig.clearOutputs();
      copier.rig.header().n_tokens = 1;
      copier.rig.header().n_outputs = 1;
      OpTime time = {};
      ASSERT_TRUE(copier.rig.executor->timeOps(list, &time).ok()) << copier.rig.log.errors();
      EXPECT_GT(time.ms, 0);
      EXPECT_GT(time.expected_ms, 0);
      EXPECT_EQ(1u, time.dispatches);
      EXPECT_EQ(5.0f, copier.rig.floats(copier.out)[Copier::kCols - 1]);
    }
    EXPECT_TRUE(copier.copies());  // an ordinary step
  }
  EXPECT_EQ(3, tap.calls["vkCreateQueryPool"]);
  EXPECT_EQ(3, tap.calls["vkDestroyQueryPool"]);
}

// giveBack() stops the threads that compile. The remaining kernels are compiled at the end of the upload.
RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, arenas_may_come_and_go_while_kernels_compile) {
  constexpr ArenaSet kSome = arenaBit(ArenaKind::kCache) | arenaBit(ArenaKind::kActivations);
  for (uint32_t i = 0; i < 4; ++i) {
    Copier copier;
    ASSERT_TRUE(copier.rig.create().ok()) << copier.rig.log.errors();
    ASSERT_TRUE(copier.rig.executor->giveBack(kSome).ok());
    ASSERT_TRUE(copier.rig.executor->takeAgain(kSome).ok());
    ASSERT_TRUE(copier.rig.upload().ok());
    EXPECT_TRUE(copier.copies());
  }
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, running_out_of_device_memory_is_a_status_of_its_own) {
  VulkanTap tap;
  tap.fail = [](const std::string& call, int nth) {
    return call == "vkAllocateMemory" && nth == 2 ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS;
  };
  Copier copier;
  copier.rig.options.driver_tap = &VulkanTap::kDriver;
  EXPECT_EQ(copier.rig.load().code(), ORIEL_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(copier.rig.log.says("memory")) << copier.rig.log.errors();
}

RUNS_ON(kOneGpu);
TEST_F(VulkanExecutor, a_lost_device_fails_every_later_call_and_can_still_be_destroyed) {
  VulkanTap tap;
  Copier copier;
  copier.rig.options.driver_tap = &VulkanTap::kDriver;
  ASSERT_TRUE(copier.rig.load().ok());
  tap.calls.clear();
  tap.fail = [](const std::string& call, int) {
    return call == "vkWaitForFences" ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
  };
  EXPECT_EQ(copier.rig.executor->run(StepRun::kDecode).code(), ORIEL_ERROR_DEVICE);
  tap.fail = nullptr;
  tap.calls.clear();
  EXPECT_EQ(copier.rig.executor->run(StepRun::kDecode).code(), ORIEL_ERROR_DEVICE);
  EXPECT_EQ(copier.rig.executor->forget().code(), ORIEL_ERROR_DEVICE);
  void* piece = nullptr;
  EXPECT_EQ(copier.rig.executor->beginWrite(4, &piece).code(), ORIEL_ERROR_DEVICE);
  EXPECT_TRUE(tap.calls.empty());
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_device_that_does_not_answer_in_time_is_a_timeout_and_stays_one) {
  VulkanTap tap;
  Copier copier;
  copier.rig.options.driver_tap = &VulkanTap::kDriver;
  copier.rig.options.timeout_ms = kHastyMs;
  ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
  tap.fail = [](const std::string& call, int) {
    return call == "vkWaitForFences" ? VK_TIMEOUT : VK_SUCCESS;
  };
  const double begin_ms = nowMs();
  EXPECT_EQ(copier.rig.executor->run(StepRun::kDecode).code(), ORIEL_ERROR_TIMEOUT);
  EXPECT_GE(nowMs() - begin_ms, kHastyMs - 1);
  EXPECT_LT(nowMs() - begin_ms, 10 * kHastyMs);
  EXPECT_EQ(copier.rig.executor->run(StepRun::kDecode).code(), ORIEL_ERROR_TIMEOUT);
  tap.fail = nullptr;  // it comes back before it is destroyed
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_device_that_never_answers_is_left_alone_when_destroyed) {
  VulkanTap tap;
  {
    Copier copier;
    copier.rig.options.driver_tap = &VulkanTap::kDriver;
    copier.rig.options.timeout_ms = kHastyMs;
    ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
    tap.fail = [](const std::string& call, int) {
      return call == "vkWaitForFences" ? VK_TIMEOUT : VK_SUCCESS;
    };
    EXPECT_EQ(copier.rig.executor->run(StepRun::kDecode).code(), ORIEL_ERROR_TIMEOUT);
  }
  EXPECT_EQ(tap.calls["vkFreeMemory"], 0);
  EXPECT_EQ(tap.calls["vkDestroyDevice"], 0);
}

#ifndef _WIN32
// The result of a wait that was suspended past its deadline: the device was not asked meanwhile.
RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, time_in_which_the_process_was_stopped_is_not_the_devices) {
  VulkanTap tap;
  Copier copier;
  copier.rig.options.driver_tap = &VulkanTap::kDriver;
  copier.rig.options.timeout_ms = 1000;
  ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
  int stopped = 0;
  tap.fail = [&stopped](const std::string& call, int) {
    if (call != "vkWaitForFences" || stopped == 3) {
      return VK_SUCCESS;
    }
    ++stopped;
    stopThisProcess(500);
    return VK_TIMEOUT;
  };
  EXPECT_TRUE(copier.copies()) << copier.rig.log.errors();
  EXPECT_EQ(3, stopped);
}
#endif

/// Calls a device function and counts driver calls and log lines after its failure.
struct Loss {
  explicit Loss(VkResult result, const char* in = "vkWaitForFences") {
    copier.rig.options.driver_tap = &VulkanTap::kDriver;
    copier.rig.options.timeout_ms = kHastyMs;
    EXPECT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
    copier.rig.log.clear();
    tap.calls.clear();
    tap.fail = [result, in](const std::string& call, int) {
      return call == in ? result : VK_SUCCESS;
    };
  }
  ~Loss() { tap.fail = nullptr; }
  size_t lines() const {
    const auto& all = copier.rig.log.lines;
    return static_cast<size_t>(std::count_if(
        all.begin(), all.end(),
        [](const CapturedLog::Line& line) { return line.level <= ORIEL_LOG_WARNING; }));
  }
  Executor& executor() { return *copier.rig.executor; }

  VulkanTap tap;
  Copier copier;
};

RUNS_ON(kNightlyGpu);
TEST_F(VulkanExecutor, a_lost_device_is_one_line_and_one_wait_wherever_it_was_lost) {
  for (const VkResult result : {VK_TIMEOUT, VK_ERROR_DEVICE_LOST}) {
    for (const int way : {0, 1, 2, 3, 4}) {
      if (!allCases() && (way % 2 == 0) != (result == VK_TIMEOUT)) {
        continue;
      }
      SCOPED_TRACE(std::to_string(result) + ", way " + std::to_string(way));
      size_t lines = 0;
      {
        Loss loss(result);
        Executor& executor = loss.executor();
        bool more = true;
        const float* logits = nullptr;
        const void* piece = nullptr;
        BufferRef cache;
        cache.arena = ArenaKind::kCache;
        cache.size_bytes = 256;
        const auto tryAll = [&](int which) {
          return which == 0   ? executor.run(StepRun::kDecode)
                 : which == 1 ? executor.runAhead(&(more = true))
                 : which == 2 ? executor.forget()
                 : which == 3 ? executor.read(cache, 0, 256, &piece)
                              : executor.logits(0, &logits);
        };
        const oriel_status first = tryAll(way).code();
        EXPECT_EQ(result == VK_TIMEOUT ? ORIEL_ERROR_TIMEOUT : ORIEL_ERROR_DEVICE, first);
        EXPECT_EQ(1u, loss.lines()) << loss.copier.rig.log.errors();
        loss.tap.calls.clear();
        for (int again = 0; again < 5; ++again) {
          EXPECT_EQ(first, tryAll(again).code());
        }
        EXPECT_EQ(first, executor.dropAhead().code());
        EXPECT_TRUE(loss.tap.calls.empty()) << "nothing more is asked of the driver";
        const double destroy_ms = nowMs();
        destroyExecutor(loss.copier.rig.executor);
        loss.copier.rig.executor = nullptr;
        EXPECT_LT(nowMs() - destroy_ms, kHastyMs) << "the one wait is over";
        lines = loss.lines();
      }
      EXPECT_EQ(1u, lines) << "nor is it said again when it is freed";
    }
  }
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_device_number_that_does_not_exist_is_refused_with_a_reason) {
  Copier copier;
  copier.rig.options.device_number = 99;
  EXPECT_EQ(copier.rig.load().code(), ORIEL_ERROR_NO_DEVICE);
  EXPECT_TRUE(copier.rig.log.says("98 (counted from 0)")) << copier.rig.log.errors();
}

// The library's handling of the device "auto", with the CPU in reserve.
RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_device_that_cannot_be_set_up_is_a_warning_where_it_is_optional) {
  const struct {
    const char* call;
    VkResult result;
    oriel_status status;  ///< if it is not optional
  } failures[] = {
      {"vkCreateInstance", VK_ERROR_INITIALIZATION_FAILED, ORIEL_ERROR_NO_DEVICE},
      {"vkCreateInstance", VK_ERROR_OUT_OF_HOST_MEMORY, ORIEL_ERROR_NO_DEVICE},
      {"vkEnumeratePhysicalDevices", VK_ERROR_OUT_OF_HOST_MEMORY, ORIEL_ERROR_OUT_OF_MEMORY},
      {"vkCreateDevice", VK_ERROR_DEVICE_LOST, ORIEL_ERROR_DEVICE},
      {"vkAllocateMemory", VK_ERROR_OUT_OF_DEVICE_MEMORY, ORIEL_ERROR_OUT_OF_MEMORY}};
  for (const auto& failure : failures) {
    for (const bool optional : {false, true}) {
      VulkanTap tap;
      tap.fail = [&](const std::string& call, int) {
        return call == failure.call ? failure.result : VK_SUCCESS;
      };
      Copier copier;
      copier.rig.options.driver_tap = &VulkanTap::kDriver;
      copier.rig.options.device_is_optional = optional;
      const Status status = copier.rig.load();
      const std::vector<CapturedLog::Line>& said = copier.rig.log.lines;
      const auto warned = [](const CapturedLog::Line& line) {
        return line.level == ORIEL_LOG_WARNING && line.text.find("cannot ") != std::string::npos;
      };
      EXPECT_EQ(optional, std::any_of(said.begin(), said.end(), warned)) << failure.call;
      EXPECT_EQ(optional, copier.rig.log.errors().empty()) << copier.rig.log.errors();
      EXPECT_EQ(optional ? ORIEL_ERROR_NO_DEVICE : failure.status, status.code()) << failure.call;
    }
  }
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, devices_are_listed_as_they_are_numbered) {
  CapturedLog log;
  size_t needed = 0;
  ExecutorOptions options;
  options.log = log.log();
  EXPECT_EQ(listVulkanDevices(options, nullptr, 0, &needed).code(), ORIEL_ERROR_BUFFER_TOO_SMALL);
  ASSERT_GT(needed, 0u);
  std::vector<DeviceInfo> devices(needed);
  ASSERT_TRUE(listVulkanDevices(options, devices.data(), needed, &needed).ok());
  for (size_t i = 0; i < needed; ++i) {
    std::printf("device %zu: %s | %s | %s | %s | usable %u %s | %llu bytes\n", i + 1,
                devices[i].name, devices[i].driver, devices[i].kind, devices[i].features,
                devices[i].usable, devices[i].reason,
                static_cast<unsigned long long>(devices[i].memory_bytes));
    // Lavapipe's vector width can be set: a subgroup has as many 32-bit lanes.
    if (const char* bits = std::getenv("LP_NATIVE_VECTOR_WIDTH")) {
      const std::string lanes = "(" + std::to_string(std::stoi(bits) / 32) + " lanes)";
      EXPECT_NE(std::string(devices[i].features).find(lanes), std::string::npos) << lanes;
    }
    if (devices[i].usable != 0) {
      Copier copier;
      copier.rig.options.device_number = static_cast<uint32_t>(i + 1);
      ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
      EXPECT_STREQ(copier.rig.executor->deviceName(), devices[i].name);
      EXPECT_TRUE(copier.copies());
    }
  }
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, an_arena_that_the_device_rounds_up_is_counted_and_far_more_is_refused) {
  static uint64_t more;
  static constexpr VulkanDriverTap driver_tap = {[](VulkanApi* api) {
    static PFN_vkGetBufferMemoryRequirements real;
    if (api->vkGetBufferMemoryRequirements != nullptr) {
      real = api->vkGetBufferMemoryRequirements;
      api->vkGetBufferMemoryRequirements = [](VkDevice device, VkBuffer buffer,
                                              VkMemoryRequirements* requirements) {
        real(device, buffer, requirements);
        requirements->size += more;
      };
    }
  }};
  more = 65536;
  {
    Copier copier;
    copier.rig.options.driver_tap = &driver_tap;
    ASSERT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
    EXPECT_EQ(copier.rig.plan.cache_bytes + more,
              copier.rig.executor->allocatedBytes(ArenaKind::kCache));
    EXPECT_TRUE(copier.copies());
  }
  more = 65537;
  Copier copier;
  copier.rig.options.driver_tap = &driver_tap;
  EXPECT_EQ(copier.rig.load().code(), ORIEL_ERROR_UNSUPPORTED);
  EXPECT_TRUE(copier.rig.log.says("planned")) << copier.rig.log.errors();
}

RUNS_ON(kEachGpu);
TEST_F(VulkanExecutor, a_device_with_every_extension_is_asked_for_all_of_them_once) {
  static std::vector<std::string> asked;
  static PFN_vkEnumerateDeviceExtensionProperties real_list;
  static PFN_vkCreateDevice real_create;
  asked.clear();
  Copier copier;
  static constexpr VulkanDriverTap driver_tap = {[](VulkanApi* api) {
    if (api->vkEnumerateDeviceExtensionProperties == nullptr) {
      return;
    }
    real_list = api->vkEnumerateDeviceExtensionProperties;
    real_create = api->vkCreateDevice;
    api->vkEnumerateDeviceExtensionProperties = [](VkPhysicalDevice device, const char* layer,
                                                   uint32_t* count,
                                                   VkExtensionProperties* extensions) {
      const uint32_t room = *count;
      const VkResult result = real_list(device, layer, count, extensions);
      if (result >= 0 && extensions != nullptr && *count < room) {
        std::strcpy(extensions[(*count)++].extensionName, "VK_KHR_portability_subset");
      }
      return result;
    };
    // The real device has no such extension.
    api->vkCreateDevice = [](VkPhysicalDevice device, const VkDeviceCreateInfo* info,
                             const VkAllocationCallbacks* allocator, VkDevice* created) {
      std::vector<const char*> real;
      for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
        asked.emplace_back(info->ppEnabledExtensionNames[i]);
        if (asked.back() != "VK_KHR_portability_subset") {
          real.push_back(info->ppEnabledExtensionNames[i]);
        }
      }
      VkDeviceCreateInfo less = *info;
      less.enabledExtensionCount = static_cast<uint32_t>(real.size());
      less.ppEnabledExtensionNames = real.data();
      return real_create(device, &less, allocator, created);
    };
  }};
  copier.rig.options.driver_tap = &driver_tap;
  EXPECT_TRUE(copier.rig.load().ok()) << copier.rig.log.errors();
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(1, std::count(asked.begin(), asked.end(), "VK_KHR_portability_subset"));
  EXPECT_EQ(asked.end(), std::unique(asked.begin(), asked.end()));
}

/// A rig whose chunk is a row of products that a submission can hold a few of, each worth several
/// pieces.
struct LongChunk {
  static constexpr uint32_t kTokens = 64, kCols = 1024, kRows = 512, kProducts = 16;

  LongChunk() : rig(kTokens) {
    Random random(7);
    const PackedMatrix matrix = randomMatrix(WeightType::kQ8_0, kRows, kCols, &random);
    const BufferRef weights = rig.input(matrix.words);
    const BufferRef in = rig.input(random.normals(kTokens * kCols));
    const MatmulPush push = matrix.product();
    for (uint32_t i = 0; i < kProducts; ++i) {
      outs.push_back(rig.output(kTokens * kRows));
      rig.add(StepList::kChunk, OpKind::kMatmul, push, {weights, outs.back(), in});
    }
  }
  KernelRig rig;
  std::vector<BufferRef> outs;
};

RUNS_ON(kOneGpu);
TEST_F(VulkanExecutor, a_long_step_is_several_submissions_and_all_of_it_is_done) {
  VulkanTap tap;
  LongChunk chunk;
  chunk.rig.options.driver_tap = &VulkanTap::kDriver;
  ASSERT_TRUE(chunk.rig.load().ok()) << chunk.rig.log.errors();
  EXPECT_GT(tap.calls["vkCmdDispatchBase"], 0) << "products of more work than a piece are divided";
  tap.calls.clear();
  chunk.rig.header().n_tokens = LongChunk::kTokens;
  ASSERT_TRUE(chunk.rig.executor->run(StepRun::kChunk).ok());
  EXPECT_GT(tap.calls["vkQueueSubmit"], 2);
  EXPECT_EQ(tap.calls["vkBeginCommandBuffer"], 0);
  EXPECT_EQ(tap.calls["vkAllocateCommandBuffers"], 0);
  const float* first = chunk.rig.floats(chunk.outs[0]);
  for (uint32_t i = 0; i < LongChunk::kTokens * LongChunk::kRows; ++i) {
    ASSERT_NE(first[i], KernelRig::kUntouched) << i;
  }
  for (const BufferRef& out : chunk.outs) {
    EXPECT_EQ(0, std::memcmp(first, chunk.rig.floats(out),
                             LongChunk::kTokens * LongChunk::kRows * sizeof(float)));
  }
}

RUNS_ON(kOneGpu);
TEST_F(VulkanExecutor, nothing_is_submitted_once_a_step_was_told_to_stop) {
  VulkanTap tap;
  LongChunk chunk;
  chunk.rig.options.driver_tap = &VulkanTap::kDriver;
  ASSERT_TRUE(chunk.rig.load().ok()) << chunk.rig.log.errors();
  chunk.rig.header().n_tokens = LongChunk::kTokens;
  int asked = 0;
  const auto stop = [](void* user) { return ++*static_cast<int*>(user) == 3; };
  tap.calls.clear();
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, chunk.rig.executor->run(StepRun::kChunk, {stop, &asked}).code());
  EXPECT_EQ(3, asked);
  EXPECT_EQ(2, tap.calls["vkQueueSubmit"]);
  // The interrupted work has ended, and the executor is usable.
  chunk.rig.clearOutputs();
  ASSERT_TRUE(chunk.rig.executor->run(StepRun::kChunk).ok());
  EXPECT_NE(chunk.rig.floats(chunk.outs.back())[0], KernelRig::kUntouched);
}

}  // namespace
}  // namespace oriel_internal::test::test_vulkan_executor

#endif
