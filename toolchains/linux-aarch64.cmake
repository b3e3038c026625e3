# Linux on 64-bit Arm. Compiler: GCC for aarch64-linux-gnu (packages g++-aarch64-linux-gnu on Debian and
# Ubuntu, gcc-c++-aarch64-linux-gnu on Fedora, aarch64-linux-gnu-gcc on Arch). Runs under qemu-user:
# scripts/cross.sh linux-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(oriel_triple aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/gnu.cmake)
