# GNU cross compilers. ORIEL_TARGET names the target; the presets give it. -DCMAKE_FIND_ROOT_PATH=FOLDERS says where to look
# for headers and libraries (each like a /usr). scripts/cross.sh TARGET runs the tests in an emulator:
#
#   linux-aarch64   64-bit Arm: packages g++-aarch64-linux-gnu on Debian and Ubuntu, gcc-c++-aarch64-linux-gnu on Fedora,
#                   aarch64-linux-gnu-gcc on Arch; qemu-user
#   linux-armhf     32-bit Arm with floating point (ARMv7): package g++-arm-linux-gnueabihf on Debian and Ubuntu; qemu-user
#   linux-riscv64   64-bit RISC-V: package g++-riscv64-linux-gnu on Debian and Ubuntu; qemu-user
#   windows-x64     x86-64: mingw-w64's GCC with POSIX threads, package g++-mingw-w64-x86-64-posix on Debian and Ubuntu (on
#                   others set oriel_suffix to "" where the plain name has them). Everything is linked statically, so that
#                   a program is one file; wine
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ORIEL_TARGET)
set(CMAKE_SYSTEM_NAME Linux)
if(ORIEL_TARGET STREQUAL "linux-aarch64")
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
  set(oriel_triple aarch64-linux-gnu)
elseif(ORIEL_TARGET STREQUAL "linux-armhf")
  set(CMAKE_SYSTEM_PROCESSOR armv7l)
  set(oriel_triple arm-linux-gnueabihf)
  # How vectors' iterators are passed changed in GCC 7, which it remarks on at every use.
  set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
elseif(ORIEL_TARGET STREQUAL "linux-riscv64")
  set(CMAKE_SYSTEM_PROCESSOR riscv64)
  set(oriel_triple riscv64-linux-gnu)
elseif(ORIEL_TARGET STREQUAL "windows-x64")
  set(CMAKE_SYSTEM_NAME Windows)
  set(CMAKE_SYSTEM_PROCESSOR AMD64)
  set(oriel_triple x86_64-w64-mingw32)
  if(NOT DEFINED oriel_suffix)
    set(oriel_suffix -posix)
  endif()
  set(CMAKE_RC_COMPILER ${oriel_triple}-windres)
  set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
  set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
else()
  message(FATAL_ERROR "no target: give -DORIEL_TARGET=linux-aarch64, linux-armhf, linux-riscv64 or windows-x64")
endif()
set(CMAKE_C_COMPILER ${oriel_triple}-gcc${oriel_suffix})
set(CMAKE_CXX_COMPILER ${oriel_triple}-g++${oriel_suffix})
# Programs are the building machine's, headers and libraries never: those belong to another system.
if(NOT CMAKE_FIND_ROOT_PATH)
  set(CMAKE_FIND_ROOT_PATH /usr/${oriel_triple})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
