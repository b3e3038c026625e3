# Linux on 64-bit RISC-V. Compiler: GCC for riscv64-linux-gnu (package g++-riscv64-linux-gnu on Debian and
# Ubuntu). Runs under qemu-user: scripts/cross.sh linux-riscv64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(oriel_triple riscv64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/gnu.cmake)
