# macOS on Arm and on x86-64, each on its own machine. Compiler: Apple Clang of Xcode or its command line
# tools. Vulkan: headers, the loader and MoltenVK from the Vulkan SDK for macOS, or packages vulkan-headers,
# vulkan-loader and molten-vk of Homebrew.
#
# Never used: this needs a Mac. The code has been compiled for 64-bit Arm by another clang (docs/devices.md).
set(CMAKE_OSX_DEPLOYMENT_TARGET 11.0)
