#include "vulkan/cache_file.h"

#include <cstdio>
#include <cstring>

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

}  // namespace oriel_internal
