#include "vulkan/pipeline_cache.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/hash.h"
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

}  // namespace oriel_internal
