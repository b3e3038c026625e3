# How everything is compiled and linked: optimisation, warnings, packed relocations.

# Without a build type CMake asks for no optimisation, and a model runs 20 times slower. So Release is the default
# of a build of Oriel itself; in another project's, which decides that for itself, the library alone gets -O2
# (runtime/CMakeLists.txt). Flags that say how to optimise are left alone.
set(ORIEL_OPTIMISE OFF)
get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT multi_config AND NOT CMAKE_BUILD_TYPE AND NOT " ${CMAKE_CXX_FLAGS}" MATCHES " -O")
  if(PROJECT_IS_TOP_LEVEL)
    message(STATUS "No build type was given: Release")
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  else()
    message(STATUS "No build type was given: Oriel is compiled with -O2")
    set(ORIEL_OPTIMISE ON)
  endif()
endif()

# Sets the compiler options of every target of the project.
function(oriel_warnings target)
  if(MSVC)  # clang-cl takes these, too
    # 4100: unused arguments; 4127: conditions that are constant in some builds; 4244, 4267: as -Wno-sign-conversion, no
    # narrower setting; 4324: padding for alignas; 4146: minus of an unsigned value; 4200: arrays at the end of a
    # struct.
    target_compile_options(${target} PRIVATE /W4 /wd4100 /wd4127 /wd4146 /wd4200 /wd4244 /wd4267 /wd4324 /utf-8
                                             $<$<BOOL:${ORIEL_WARNINGS_AS_ERRORS}>:/WX>)
    target_compile_definitions(${target} PRIVATE NOMINMAX _CRT_SECURE_NO_WARNINGS)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                           $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
  if(ORIEL_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # GCC's sanitizers insert code that GCC then warns about as uses of uninitialised values.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(MINGW)
    # C99's printf (%zu, %llu) instead of Windows' old printf, also if C headers come first.
    target_compile_definitions(${target} PRIVATE __USE_MINGW_ANSI_STDIO=1)
  endif()
endfunction()

# Packs relocations as bits instead of 24 bytes each, if the linker and the C library of the build support it. This
# makes the library 65 KB smaller. Programs linked this way need glibc 2.36 or newer; -DORIEL_PACK_RELOCATIONS=OFF is
# for older systems.
option(ORIEL_PACK_RELOCATIONS "Packed relocations in shared libraries and programs (Release; needs glibc 2.36)" ON)
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
check_cxx_source_compiles("#include <features.h>
  #if !__GLIBC_PREREQ(2, 36)
  #error older
  #endif
  int main() { return 0; }" ORIEL_PACKS_RELOCATIONS FAIL_REGEX "ignored|unknown|unrecognized")
unset(CMAKE_REQUIRED_LINK_OPTIONS)

function(oriel_pack_relocations target)
  if(ORIEL_PACK_RELOCATIONS AND ORIEL_PACKS_RELOCATIONS)
    target_link_options(${target} PRIVATE $<$<CONFIG:Release>:-Wl,-z,pack-relative-relocs>)
  endif()
endfunction()
