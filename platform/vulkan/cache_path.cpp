#include "vulkan/cache_path.h"

#include <cstdio>

namespace oriel {

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

}  // namespace oriel
