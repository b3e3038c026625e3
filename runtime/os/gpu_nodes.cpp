#include "os/os.h"

#include <cstdlib>
#include <initializer_list>

#if defined(__linux__) && !defined(__ANDROID__)
#include <unistd.h>
#endif

namespace oriel_internal {

bool mayHaveGpu() {
#if defined(__linux__) && !defined(__ANDROID__)
  // The variables that the Vulkan loader reads.
  for (const char* name :
       {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT"}) {
    if (std::getenv(name) != nullptr) {
      return true;
    }
  }
  // Device nodes of the kernel's own drivers, and of vendor drivers: NVIDIA, Windows (as a guest), Mali, Adreno,
  // PowerVR, Vivante, Tegra.
  for (const char* node : {"/dev/dri", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/mali0",
                           "/dev/mali", "/dev/kgsl-3d0", "/dev/pvrsrvkm", "/dev/galcore",
                           "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/nvmap"}) {
    if (::access(node, F_OK) == 0) {
      return true;
    }
  }
  return false;
#else
  return true;
#endif
}

}  // namespace oriel_internal
