#include "vulkan/pipelines.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/hash.h"
#include "base/xz.h"
#include "vulkan/shader_table.h"

namespace oriel_internal {

bool makeCachePath(const DeviceCaps& caps, const char* dir, const char* kind, char* path,
                   size_t capacity) {
  char uuid[2 * VK_UUID_SIZE + 1];
  for (uint32_t i = 0; i < VK_UUID_SIZE; ++i) {
    std::snprintf(uuid + 2 * i, 3, "%02x", caps.device_uuid[i]);
  }
  const int length = std::snprintf(path, capacity, "%s/oriel-%04x-%04x-%s.%s", dir, caps.vendor_id,
                                   caps.device_id, uuid, kind);
  return length > 0 && static_cast<size_t>(length) < capacity;
}

CacheHeader cacheHeader(const DeviceCaps& caps, const char (&magic)[8], uint32_t version,
                        uint32_t detail) {
  CacheHeader header = {};
  std::memcpy(header.magic, magic, sizeof(magic));
  header.version = version;
  header.detail = detail;
  header.shaders_hash = kShadersHash;
  header.vendor_id = caps.vendor_id;
  header.device_id = caps.device_id;
  header.driver_version = caps.driver_version;
  header.divided_as_gpu = caps.divide_as_gpu ? 1 : 0;
  std::memcpy(header.device_uuid, caps.device_uuid, VK_UUID_SIZE);
  std::memcpy(header.pipeline_cache_uuid, caps.pipeline_cache_uuid, VK_UUID_SIZE);
  return header;
}

namespace {

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'P', 'C', '\n'};
constexpr uint32_t kVersion = 2;
constexpr const char* kKind = "pipelines";
/// Far above the size of any driver's pipelines of one model.
constexpr uint64_t kMostFileBytes = 256 << 20;

/// The header of the file, followed by the driver's bytes.
struct FileHeader {
  CacheHeader header;  ///< its detail: the size of this header
  uint64_t payload_bytes;
  uint64_t payload_hash;
};
static_assert(sizeof(FileHeader) == sizeof(CacheHeader) + 16, "no padding: compared as bytes");

/// The start of the driver's bytes (VkPipelineCacheHeaderVersionOne).
struct DriverHeader {
  uint32_t header_bytes;
  uint32_t version;
  uint32_t vendor_id;
  uint32_t device_id;
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
};

// Fills in the header except the payload's size and hash.
FileHeader expectedHeader(const DeviceCaps& caps) {
  FileHeader header = {};
  header.header = cacheHeader(caps, kMagic, kVersion, sizeof(FileHeader));
  return header;
}

// True if a file of that size has a valid header. Does not check the hash of the payload.
bool isKept(const DeviceCaps& caps, const FileHeader& header, uint64_t file_bytes) {
  FileHeader expected = expectedHeader(caps);
  expected.payload_bytes = file_bytes - sizeof(FileHeader);
  expected.payload_hash = header.payload_hash;
  return file_bytes >= sizeof(FileHeader) + sizeof(DriverHeader) &&
         std::memcmp(&header, &expected, sizeof(header)) == 0;
}

// Checks the size before memory is allocated for it.
bool beginsRight(const InputFile& file, const DeviceCaps& caps) {
  FileHeader header;
  return file.bytes() >= sizeof(header) && file.read(0, &header, sizeof(header), Log()).ok() &&
         isKept(caps, header, file.bytes());
}

// The driver's bytes in a valid file; false for an invalid file.
bool checkFile(const DeviceCaps& caps, const uint8_t* file, uint64_t file_bytes,
               const uint8_t** payload, uint64_t* payload_bytes) {
  if (file_bytes < sizeof(FileHeader) + sizeof(DriverHeader)) {
    return false;
  }
  FileHeader header;
  std::memcpy(&header, file, sizeof(header));
  *payload = file + sizeof(FileHeader);
  *payload_bytes = file_bytes - sizeof(FileHeader);
  if (!isKept(caps, header, file_bytes) ||
      header.payload_hash != hashBytes(*payload, *payload_bytes)) {
    return false;
  }
  DriverHeader driver;
  std::memcpy(&driver, *payload, sizeof(driver));
  return driver.header_bytes >= sizeof(DriverHeader) && driver.header_bytes <= *payload_bytes &&
         driver.version == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         driver.vendor_id == caps.vendor_id && driver.device_id == caps.device_id &&
         std::memcmp(driver.pipeline_cache_uuid, caps.pipeline_cache_uuid, VK_UUID_SIZE) == 0;
}

}  // namespace

Status PipelineCache::create(const VulkanDevice& device, const char* dir, Workspace* workspace,
                             const Log& log) {
  VkPipelineCacheCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  InputFile file;
  if (dir != nullptr && !makeCachePath(device.caps, dir, kKind, path_, sizeof(path_))) {
    log.write(ORIEL_LOG_DEBUG, "the path of the cache folder is too long; pipelines are not kept");
    path_[0] = '\0';
  }
  const bool there = path_[0] != '\0' && file.openIfThere(path_, Log()).ok() && file.isOpen();
  const bool fits = there && file.bytes() <= kMostFileBytes;
  const bool begins = fits && beginsRight(file, device.caps);
  const BorrowedBytes kept(workspace, begins ? file.bytes() : 0);
  loaded_bytes_ = 0;
  if (there) {
    const uint8_t* payload = nullptr;
    uint64_t payload_bytes = 0;
    if (!fits || (begins && kept.data() == nullptr)) {
      log.write(ORIEL_LOG_DEBUG, "%s has %" PRIu64 " bytes, for which there is no memory; not used",
                path_, file.bytes());
    } else if (begins && file.readAll(kept.data(), Log()).ok() &&
               checkFile(device.caps, kept.as<uint8_t>(), file.bytes(), &payload, &payload_bytes)) {
      info.pInitialData = payload;
      info.initialDataSize = static_cast<size_t>(payload_bytes);
      loaded_bytes_ = payload_bytes;
    } else {
      log.write(ORIEL_LOG_DEBUG, "%s is damaged or from another build or driver; not used", path_);
    }
  }
  device.watch.enter(place(), 0);
  VkResult result = device.api.vkCreatePipelineCache(device.device, &info, nullptr, &cache_);
  device.watch.leave(place(), 0);
  if (result < 0 && info.initialDataSize != 0) {
    info.initialDataSize = 0;
    info.pInitialData = nullptr;
    loaded_bytes_ = 0;
    result = device.api.vkCreatePipelineCache(device.device, &info, nullptr, &cache_);
  }
  return checkMade(result, &cache_, "create a pipeline cache", log);
}

void PipelineCache::save(const VulkanDevice& device, void* scratch, uint64_t scratch_bytes,
                         const Log& log) {
  if (path_[0] == '\0') {
    return;
  }
  size_t bytes = 0;
  if (device.api.vkGetPipelineCacheData(device.device, cache_, &bytes, nullptr) != VK_SUCCESS ||
      bytes < sizeof(DriverHeader) || bytes == loaded_bytes_) {
    return;
  }
  if (bytes + sizeof(FileHeader) > scratch_bytes) {
    log.write(ORIEL_LOG_DEBUG, "compiled pipelines (%zu bytes) are too large to keep", bytes);
    return;
  }
  uint8_t* payload = static_cast<uint8_t*>(scratch) + sizeof(FileHeader);
  if (device.api.vkGetPipelineCacheData(device.device, cache_, &bytes, payload) != VK_SUCCESS) {
    return;
  }
  FileHeader header = expectedHeader(device.caps);
  header.payload_bytes = bytes;
  header.payload_hash = hashBytes(payload, bytes);
  std::memcpy(scratch, &header, sizeof(header));
  if (!writeFileAtomically(path_, scratch, bytes + sizeof(header), FileUse::kCache, Log()).ok()) {
    log.write(ORIEL_LOG_DEBUG, "cannot write %s; pipelines are not kept", path_);
  }
}

void PipelineCache::release(const VulkanDevice& device) {
  if (cache_ != VK_NULL_HANDLE) {
    device.api.vkDestroyPipelineCache(device.device, cache_, nullptr);
    cache_ = VK_NULL_HANDLE;
  }
}

void dropKeptKernels(const DeviceCaps& caps, const char* dir, const Log& log) {
  char path[1024];
  if (makeCachePath(caps, dir, kKind, path, sizeof(path))) {
    log.write(ORIEL_LOG_WARNING,
              "the driver of %s ended a process that gave it kernels kept in %.600s: they are "
              "compiled anew",
              caps.name, path);
    removeFile(path);
  }
}

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
