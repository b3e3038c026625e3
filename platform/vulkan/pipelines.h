// The pipelines of a plan, and their cache files.
#pragma once

#include <atomic>

#include "base/arena.h"
#include "os/os.h"
#include "vulkan/device.h"
#include "vulkan/kernels.h"

namespace oriel_internal {

// The header of Oriel's cache files for a device. All files are in one folder and share this header.

/// DIR/oriel-VENDOR-DEVICE-UUID.KIND: one file per kind and device; a new driver or build replaces
/// it. False: the path is too long.
bool makeCachePath(const DeviceCaps& caps, const char* dir, const char* kind, char* path,
                   size_t capacity);

/// The device, the driver and the kernels that wrote a file. It is compared bytewise with the present ones; a file
/// with a different header is ignored.
struct CacheHeader {
  char magic[8];
  uint32_t version;
  uint32_t detail;        ///< by kind: a further value that must match
  uint64_t shaders_hash;  ///< of all SPIR-V in this build
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  uint32_t divided_as_gpu;  ///< tests only
  uint8_t device_uuid[VK_UUID_SIZE];
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
};
static_assert(sizeof(CacheHeader) == 72, "no padding: compared and hashed as bytes");

CacheHeader cacheHeader(const DeviceCaps& caps, const char (&magic)[8], uint32_t version,
                        uint32_t detail);

// Compiled pipelines on disk. Drivers trust the data that they get, so a file is checked first: magic,
// version, hash, shaders, device and driver. An invalid file is ignored and replaced, and so is a file
// that crashed the driver (verdict.h). Errors here never fail a load; in the worst case
// pipelines are compiled again.

class PipelineCache {
 public:
  /// Creates the cache. Reads a valid file in `dir` (null: no file) into
  /// `workspace`.
  Status create(const VulkanDevice& device, const char* dir, Workspace* workspace, const Log& log);
  /// Writes the file if pipelines were added, and if it fits into `scratch` (any host memory).
  void save(const VulkanDevice& device, void* scratch, uint64_t scratch_bytes, const Log& log);
  void release(const VulkanDevice& device);

  VkPipelineCache handle() const { return cache_; }
  /// The place of a crash during compilation with this cache.
  DriverPlace place() const {
    return loaded_bytes_ != 0 ? DriverPlace::kKeptKernels : DriverPlace::kCompile;
  }

 private:
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  char path_[1024] = "";       // empty: no file
  uint64_t loaded_bytes_ = 0;  // payload bytes of a valid file
};

/// Removes a device's cache, because its driver crashed.
void dropKeptKernels(const DeviceCaps& caps, const char* dir, const Log& log);

// The pipelines of a plan. Each is compiled once, in parallel with the caller's other work.

class Pipelines {
 public:
  /// Returns the index of the pipeline for `kernel`; a new one is compiled later.
  Status add(const Kernel& kernel, const Log& log, uint32_t* index);
  /// Unpacks kernels with memory from `workspace`, passes them to the driver and compiles on a few threads of its own
  /// (none on a single processor). Until finish(), call only join(), and release() after it.
  /// `place`: recorded by the driver's watch during compilation.
  Status start(const VulkanDevice& device, VkPipelineLayout layout, VkPipelineCache cache,
               DriverPlace place, Workspace* workspace, const Log& log);
  /// Compiles the rest on one more thread, and waits. If a kernel with subgroup arithmetic does not compile, its version
  /// without takes its place, with memory from `workspace`. Logs the name of any other kernel that fails.
  Status finish(Workspace* workspace, const Log& log, const StopCheck& stop);
  /// Lets the threads finish their present pipelines. finish() compiles the rest.
  void join();
  void release(const VulkanDevice& device);

  uint32_t count() const { return count_; }
  /// Index of its shader.
  uint32_t shader(uint32_t index) const { return entries_[index].shader; }
  /// Optional features that the pipelines need.
  uint32_t features() const;
  VkPipeline at(uint32_t index) const { return entries_[index].pipeline; }
  /// Call after finish().
  PipelineStats stats() const;

 private:
  struct Entry {
    uint32_t shader;
    uint32_t constants[kMaxSpecConstants];
    uint32_t subgroup_size;
    bool full_subgroups;
    bool divisible;
    bool told;              ///< the driver reported the origin of the pipeline
    bool from_cache;        ///< the reported origin
    VkResult result;        ///< VK_NOT_READY: still to be compiled
    VkShaderModule module;  ///< until finish(); shared by entries with one shader
    VkPipeline pipeline;
  };
  /// A plan has at most 5 weight types in 3 lists and a few other ops. The self-test multiplies 3 types in
  /// up to 14 ways, and all as experts, too.
  static constexpr uint32_t kMaxPipelines = 80;
  /// More threads gain little: a plan has about ten pipelines, and weights are repacked at the same time.
  static constexpr uint32_t kMaxThreads = 3;
  /// Drivers' compilers recurse deeply.
  static constexpr uint32_t kStackBytes = 8u << 20;

  Status makeModules(Workspace* workspace, const Log& log);
  Status makeModules(uint32_t block, uint8_t* unpacked, Workspace* workspace, const Log& log);
  void releaseModules(const VulkanDevice& device);
  static void compileAll(void* pipelines);
  Status compileHere(const StopCheck& stop);
  Status compileRest(const StopCheck& stop);
  VkResult compile(Entry* entry) const;
  /// Replaces a kernel that failed to compile with its stand-in; false if it has none.
  static bool standIn(Entry* entry, const Log& log);

  Entry entries_[kMaxPipelines] = {};
  uint32_t count_ = 0;
  const VulkanDevice* device_ = nullptr;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  DriverPlace place_ = DriverPlace::kCompile;
  std::atomic<uint32_t> next_{0};
  double begin_ms_ = 0;
  double took_ms_ = 0;
  Thread threads_[kMaxThreads];
};

}  // namespace oriel_internal
