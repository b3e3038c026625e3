#include "vulkan/pipelines.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/xz.h"
#include "vulkan/shader_table.h"

namespace oriel_internal {
namespace {

const ShaderModule& moduleOf(uint32_t shader) { return kShaderModules[kShaders[shader].module]; }

}  // namespace

Status Pipelines::add(const Kernel& kernel, const Log& log, uint32_t* index) {
  for (uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].shader == kernel.shader &&
        std::memcmp(entries_[i].constants, kernel.constants, sizeof(kernel.constants)) == 0) {
      *index = i;
      return kOk;
    }
  }
  if (count_ == kMaxPipelines) {
    return log.fail(ORIEL_ERROR_INTERNAL, "a plan with more than %u pipelines: please report it",
                    kMaxPipelines);
  }
  Entry* entry = &entries_[count_];
  entry->shader = kernel.shader;
  std::memcpy(entry->constants, kernel.constants, sizeof(kernel.constants));
  entry->subgroup_size = kernel.subgroup_size;
  entry->full_subgroups = kernel.full_subgroups;
  entry->divisible = kernel.divisible;
  *index = count_++;
  return kOk;
}

Status Pipelines::start(const VulkanDevice& device, VkPipelineLayout layout, VkPipelineCache cache,
                        DriverPlace place, Workspace* workspace, const Log& log) {
  device_ = &device;
  layout_ = layout;
  cache_ = cache;
  place_ = place;
  for (uint32_t i = 0; i < count_; ++i) {
    entries_[i].result = entries_[i].pipeline == VK_NULL_HANDLE ? VK_NOT_READY : VK_SUCCESS;
  }
  next_.store(0, std::memory_order_relaxed);
  begin_ms_ = nowMs();
  ORIEL_TRY(makeModules(workspace, log));
  const uint32_t threads = std::min({allowedProcessors() - 1, kMaxThreads, count_});
  for (uint32_t i = 0; i < threads; ++i) {
    // If the system refuses a thread, the others continue.
    (void)threads_[i].start(compileAll, this, kStackBytes);
  }
  return kOk;
}

// Makes modules for all pipelines still to be compiled. Goes block by block, so that each is unpacked once.
Status Pipelines::makeModules(Workspace* workspace, const Log& log) {
  const auto wants = [this](uint32_t block) {
    return std::any_of(entries_, entries_ + count_, [block](const Entry& entry) {
      return entry.pipeline == VK_NULL_HANDLE && moduleOf(entry.shader).block == block;
    });
  };
  for (uint32_t b = 0; b < kShaderBlockCount; ++b) {
    if (!wants(b)) {
      continue;
    }
    const ShaderBlock& block = kShaderBlocks[b];
    const BorrowedBytes work(workspace, sizeof(XzWork));
    const BorrowedBytes words(workspace, block.bytes);
    if (work.data() == nullptr || words.data() == nullptr) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "no %u bytes to unpack kernels: close other programs", block.bytes);
    }
    if (!unpackXz(block.xz, block.xz_bytes, words.as<uint8_t>(), block.bytes, work.as<XzWork>())) {
      return log.fail(ORIEL_ERROR_INTERNAL,
                      "kernels in this library are damaged: install it again");
    }
    ORIEL_TRY(makeModules(b, words.as<uint8_t>(), workspace, log));
  }
  return kOk;
}

Status Pipelines::makeModules(uint32_t block, uint8_t* unpacked, Workspace* workspace,
                              const Log& log) {
  uint64_t restored = 0;  // modules, by bit
  for (uint32_t i = 0; i < count_; ++i) {
    Entry* const entry = &entries_[i];
    const ShaderCode& code = kShaders[entry->shader];
    const ShaderModule& whole = kShaderModules[code.module];
    if (entry->pipeline != VK_NULL_HANDLE || whole.block != block ||
        entry->module != VK_NULL_HANDLE) {
      continue;
    }
    const size_t count = whole.bytes / sizeof(uint32_t);
    uint32_t* const first = reinterpret_cast<uint32_t*>(unpacked + whole.begin);
    const bool is_new = (restored >> code.module & 1) == 0;
    restored |= uint64_t{1} << code.module;
    const BorrowedBytes words(workspace, whole.bytes);
    const BorrowedBytes work(workspace, formWorkBytes(first, count));
    if (words.data() == nullptr || work.data() == nullptr) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "no %u bytes to unpack kernels: close other programs", whole.bytes);
    }
    const bool good = !is_new || !whole.renumbered || restoreIds(first, count);
    const size_t left =
        good ? cutToForm(first, count, code.form, words.as<uint32_t>(), work.data()) : 0;
    if (left == 0) {
      return log.fail(ORIEL_ERROR_INTERNAL, "kernel %s is damaged: install the library again",
                      code.name());
    }
    VkShaderModuleCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = left * sizeof(uint32_t);
    info.pCode = words.as<uint32_t>();
    VkShaderModule module = VK_NULL_HANDLE;
    ORIEL_TRY(checkVk(device_->api.vkCreateShaderModule(device_->device, &info, nullptr, &module),
                      "make a shader module", log));
    for (uint32_t same = i; same < count_; ++same) {
      if (entries_[same].shader == entry->shader) {
        entries_[same].module = module;
      }
    }
  }
  return kOk;
}

void Pipelines::releaseModules(const VulkanDevice& device) {
  for (uint32_t i = 0; i < count_; ++i) {
    const VkShaderModule module = entries_[i].module;
    if (module == VK_NULL_HANDLE) {
      continue;
    }
    device.api.vkDestroyShaderModule(device.device, module, nullptr);
    for (uint32_t same = i; same < count_; ++same) {
      if (entries_[same].module == module) {
        entries_[same].module = VK_NULL_HANDLE;
      }
    }
  }
}

void Pipelines::compileAll(void* pipelines) {
  (void)static_cast<Pipelines*>(pipelines)->compileHere(StopCheck());
}

VkResult Pipelines::compile(Entry* entry) const {
  const VulkanApi& api = device_->api;
  VkSpecializationMapEntry map[kMaxSpecConstants];
  for (uint32_t i = 0; i < kMaxSpecConstants; ++i) {
    map[i] = {i, static_cast<uint32_t>(i * sizeof(uint32_t)), sizeof(uint32_t)};
  }
  const VkSpecializationInfo constants = {kMaxSpecConstants, map, sizeof(entry->constants),
                                          entry->constants};
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.flags = entry->divisible ? VkPipelineCreateFlags{VK_PIPELINE_CREATE_DISPATCH_BASE} : 0;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = entry->module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT subgroups = {};
  subgroups.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT;
  subgroups.requiredSubgroupSize = entry->subgroup_size;
  if (entry->full_subgroups) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  }
  if (entry->subgroup_size != 0) {
    info.stage.pNext = &subgroups;
  }
  info.layout = layout_;
  VkPipelineCreationFeedbackEXT whole = {};
  VkPipelineCreationFeedbackEXT stage = {};
  VkPipelineCreationFeedbackCreateInfoEXT feedback = {};
  feedback.sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO_EXT;
  feedback.pPipelineCreationFeedback = &whole;
  feedback.pipelineStageCreationFeedbackCount = 1;
  feedback.pPipelineStageCreationFeedbacks = &stage;
  if (device_->caps.creation_feedback) {
    info.pNext = &feedback;
  }
  const uint32_t features = featuresOfKernel(kShaders[entry->shader].name());
  device_->watch.enter(place_, features);
  const VkResult result =
      api.vkCreateComputePipelines(device_->device, cache_, 1, &info, nullptr, &entry->pipeline);
  device_->watch.leave(place_, features);
  if (result < 0) {
    entry->pipeline = VK_NULL_HANDLE;
  }
  constexpr VkPipelineCreationFeedbackFlagsEXT kHit =
      VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT_EXT;
  entry->told = (whole.flags & VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT_EXT) != 0;
  entry->from_cache = ((whole.flags | stage.flags) & kHit) != 0;
  return result;
}

// Goes pipeline by pipeline, like the threads.
Status Pipelines::compileHere(const StopCheck& stop) {
  for (uint32_t i = next_.fetch_add(1, std::memory_order_relaxed); i < count_;
       i = next_.fetch_add(1, std::memory_order_relaxed)) {
    ORIEL_TRY(stop.check());
    if (entries_[i].result == VK_NOT_READY) {
      entries_[i].result = compile(&entries_[i]);
    }
  }
  return kOk;
}

// A driver's compiler recurses deeply, and the caller's stack may be small, so the caller compiles only if the system
// refuses a thread. Otherwise it polls `stop`, which must run on the caller's thread.
Status Pipelines::compileRest(const StopCheck& stop) {
  if (next_.load(std::memory_order_relaxed) >= count_) {
    return kOk;
  }
  struct Rest {
    Pipelines* pipelines;
    std::atomic<bool> ended{false};
  } rest{this};
  Thread thread;
  const auto body = [](void* user) {
    Rest* const self = static_cast<Rest*>(user);
    compileAll(self->pipelines);
    self->ended.store(true, std::memory_order_release);
  };
  if (!thread.start(body, &rest, kStackBytes)) {
    return compileHere(stop);
  }
  while (!rest.ended.load(std::memory_order_acquire)) {
    if (const Status asked = stop.check(); !asked.ok()) {
      next_.store(kMaxPipelines, std::memory_order_relaxed);  // the thread ends after its kernel
      return asked;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return kOk;
}

// Out-of-memory and a lost device do not mean that a kernel is bad.
bool Pipelines::standIn(Entry* entry, const Log& log) {
  uint32_t shader = 0;
  if (entry->result >= 0 || entry->result == VK_ERROR_OUT_OF_HOST_MEMORY ||
      entry->result == VK_ERROR_OUT_OF_DEVICE_MEMORY || entry->result == VK_ERROR_DEVICE_LOST ||
      !findStandIn(entry->shader, &shader)) {
    return false;
  }
  log.write(ORIEL_LOG_WARNING, "kernel %s failed to compile: %s stands in for it",
            kShaders[entry->shader].name(), kShaders[shader].name());
  entry->shader = shader;
  entry->full_subgroups = false;
  entry->module = VK_NULL_HANDLE;
  entry->result = VK_NOT_READY;
  return true;
}

Status Pipelines::finish(Workspace* workspace, const Log& log, const StopCheck& stop) {
  ORIEL_TRY(compileRest(stop));
  join();
  ORIEL_TRY(stop.check());
  const auto waits = [](const Entry& entry) { return entry.result == VK_NOT_READY; };
  if (std::any_of(entries_, entries_ + count_, waits)) {
    next_.store(0, std::memory_order_relaxed);  // an earlier join() stopped the threads
    ORIEL_TRY(compileRest(stop));
  }
  releaseModules(*device_);
  bool again = false;
  for (uint32_t i = 0; i < count_; ++i) {
    again = standIn(&entries_[i], log) || again;
  }
  if (again) {
    ORIEL_TRY(makeModules(workspace, log));
    next_.store(0, std::memory_order_relaxed);
    ORIEL_TRY(compileRest(stop));
    releaseModules(*device_);
  }
  took_ms_ = nowMs() - begin_ms_;
  for (uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].result < 0) {
      log.write(ORIEL_LOG_WARNING, "kernel %s failed to compile",
                kShaders[entries_[i].shader].name());
    }
    ORIEL_TRY(checkVk(entries_[i].result, "compile a kernel", log));
  }
  return kOk;
}

void Pipelines::join() {
  next_.store(kMaxPipelines, std::memory_order_relaxed);
  for (Thread& thread : threads_) {
    thread.join();
  }
}

uint32_t Pipelines::features() const {
  uint32_t features = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    features |= featuresOfKernel(kShaders[entries_[i].shader].name());
  }
  return features;
}

PipelineStats Pipelines::stats() const {
  PipelineStats stats;
  stats.total = count_;
  stats.known = count_ != 0;
  for (uint32_t i = 0; i < count_; ++i) {
    stats.known = stats.known && entries_[i].told;
    stats.from_cache += entries_[i].from_cache ? 1 : 0;
  }
  stats.ms = took_ms_;
  return stats;
}

void Pipelines::release(const VulkanDevice& device) {
  releaseModules(device);  // of a cancelled load
  for (uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].pipeline != VK_NULL_HANDLE) {
      device.api.vkDestroyPipeline(device.device, entries_[i].pipeline, nullptr);
      entries_[i].pipeline = VK_NULL_HANDLE;
    }
  }
  count_ = 0;
}

}  // namespace oriel_internal
