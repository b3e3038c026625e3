# Linux on 32-bit Arm with floating point (ARMv7). Compiler: GCC for arm-linux-gnueabihf (package
# g++-arm-linux-gnueabihf on Debian and Ubuntu). Runs under qemu-user: scripts/cross.sh linux-armhf.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(oriel_triple arm-linux-gnueabihf)
include(${CMAKE_CURRENT_LIST_DIR}/gnu.cmake)
# How vectors' iterators are passed changed in GCC 7, which it remarks on at every use.
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
