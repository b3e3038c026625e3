// Detects a possible GPU without loading a driver.
#pragma once

namespace oriel_internal {

/// False only if Vulkan could offer nothing but software: Linux without any GPU device node, and no drivers named in the
/// environment. Loading Vulkan's drivers takes tens of megabytes, partly for good.
bool mayHaveGpu();

}  // namespace oriel_internal
