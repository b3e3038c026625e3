// Whether this machine may have a GPU, asked without loading a driver.
#pragma once

namespace oriel_internal {

/// False only where Vulkan could be nothing but software: Linux without a device node of any GPU, and nobody has named
/// drivers to use in the environment. Loading Vulkan's drivers takes tens of megabytes, some of which cannot be given
/// back.
bool mayHaveGpu();

}  // namespace oriel_internal
