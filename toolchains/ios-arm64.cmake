# iOS on 64-bit Arm. Compiler: Apple Clang of Xcode, on macOS. Vulkan's headers and MoltenVK come from the
# Vulkan SDK for macOS (-DORIEL_VULKAN_HEADERS=FOLDER); the app embeds MoltenVK's dynamic framework, which the
# library opens when a model is loaded. Without it the CPU serves: -DORIEL_VULKAN=OFF.
#
# Written, never built: this needs Xcode.
set(CMAKE_SYSTEM_NAME iOS)
set(CMAKE_OSX_ARCHITECTURES arm64)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_DEPLOYMENT_TARGET 14.0)
set(ORIEL_BUILD_CLI OFF CACHE BOOL "an app links the library")
