# The target source-bundle: sources and compiled kernels for projects that build without CMake, as a folder and an archive
# in the build folder. docs/linking.md says how it is compiled.
#
# As a script, cmake -P source_bundle.cmake SETTINGS [FOLDER], this file writes the bundle:
#
#   oriel.h               oriel.h and advanced.h in one
#   src/                  the unchanged sources in their folders, each after a condition that says when it is compiled
#   third_party/          headers of Highway and Vulkan
#   Makefile, LICENSE, THIRD_PARTY_NOTICES.txt, README.md
if(NOT CMAKE_SCRIPT_MODE_FILE)
  get_target_property(bundled oriel SOURCES)
  list(FILTER bundled INCLUDE REGEX "\\.cpp$")
  list(FILTER bundled EXCLUDE REGEX "/batches/")
  set(bundle_name oriel-bundle-${PROJECT_VERSION})
  set(bundle_settings ${CMAKE_CURRENT_BINARY_DIR}/source_bundle.txt.cmake)
  file(CONFIGURE OUTPUT ${bundle_settings} @ONLY CONTENT [[
set(SOURCES "@bundled@")
set(FROM "@CMAKE_CURRENT_SOURCE_DIR@")
set(ROOT "@PROJECT_SOURCE_DIR@")
set(HIGHWAY "@ORIEL_HIGHWAY_HEADERS@")
set(VULKAN "@ORIEL_VULKAN_HEADERS@")
set(HIGHWAY_LICENCE "@ORIEL_LICENCE_highway@")
set(VERSION "@PROJECT_VERSION@")
set(BUNDLE "@PROJECT_BINARY_DIR@/oriel-bundle")
]])
  add_custom_target(source-bundle
    COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/cmake/source_bundle.cmake ${bundle_settings}
    COMMAND ${CMAKE_COMMAND} -E tar czf ${PROJECT_BINARY_DIR}/${bundle_name}.tar.gz oriel-bundle
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR} COMMENT "${bundle_name}.tar.gz" VERBATIM)
  if(TARGET oriel_kernels)
    add_dependencies(source-bundle oriel_kernels)
  endif()
  return()
endif()

include(${CMAKE_ARGV3})
include(${ROOT}/cmake/notices.cmake)
if(CMAKE_ARGV4)
  set(BUNDLE ${CMAKE_ARGV4})
endif()
file(REMOVE_RECURSE ${BUNDLE})

file(WRITE ${BUNDLE}/src/bundle.h "// What is compiled. Give -DORIEL_VULKAN=0 or -DORIEL_CPU_SIMD=0 to do without.
#pragma once

#ifndef ORIEL_VULKAN
#define ORIEL_VULKAN 1
#endif
#ifndef ORIEL_CPU_SIMD
#if defined(__x86_64__) || defined(_M_X64) || defined(__aarch64__) || defined(_M_ARM64)
#define ORIEL_CPU_SIMD 1
#else
#define ORIEL_CPU_SIMD 0
#endif
#endif
")

# write_source(FILE AS): with the condition of its folder, which is also part of its name: what `g++ -c` makes of two files
# of one name is one file. Kernels for the CPU include themselves, so those have their own.
function(write_source file as)
  file(READ ${file} text)
  set(condition "")
  if(as MATCHES "^cpu/")
    set(condition "ORIEL_CPU_SIMD")
  elseif(as MATCHES "^vulkan/")
    set(condition "ORIEL_VULKAN")
  elseif(as MATCHES "^os/win32")
    set(condition "defined(_WIN32)")
  elseif(as MATCHES "^os/wasm")
    set(condition "defined(__EMSCRIPTEN__)")
  elseif(as MATCHES "^os/(posix|control_groups)")
    set(condition "!defined(_WIN32)")
  endif()
  string(PREPEND text "#include \"bundle.h\"\n")
  if(condition)
    string(REPLACE "#include \"bundle.h\"\n" "#include \"bundle.h\"\n#if ${condition}\n" text "${text}")
    string(APPEND text "#endif\n")
  endif()
  if(NOT as MATCHES "^cpu/")
    string(REGEX REPLACE "^([a-z]+)/" "\\1/\\1_" as ${as})
  endif()
  file(WRITE ${BUNDLE}/src/${as} "${text}")
endfunction()

foreach(source IN LISTS SOURCES)
  cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${FROM} NORMALIZE)
  foreach(folder ${FROM} ${ROOT}/platform)
    cmake_path(IS_PREFIX folder ${source} NORMALIZE within)
    if(within)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${folder} OUTPUT_VARIABLE as)
      break()
    endif()
    cmake_path(GET source FILENAME as)  # generated
    string(PREPEND as "vulkan/")
  endforeach()
  write_source(${source} ${as})
endforeach()
# The sources for all systems, not only for the host.
file(GLOB systems ${FROM}/os/*.cpp)
foreach(source IN LISTS systems)
  cmake_path(GET source FILENAME as)
  write_source(${source} os/${as})
endforeach()

file(GLOB_RECURSE headers RELATIVE ${FROM} ${FROM}/*.h)
list(FILTER headers EXCLUDE REGEX "^(include|speed|tools)/")
foreach(header IN LISTS headers)
  file(READ ${FROM}/${header} text)
  file(WRITE ${BUNDLE}/src/${header} "${text}")
endforeach()
file(GLOB_RECURSE headers RELATIVE ${ROOT}/platform ${ROOT}/platform/*.h)
foreach(header IN LISTS headers)
  file(COPY_FILE ${ROOT}/platform/${header} ${BUNDLE}/src/${header})
endforeach()
file(COPY ${ROOT}/shaders/shared DESTINATION ${BUNDLE}/src/shaders FILES_MATCHING PATTERN "*.h")
file(COPY ${FROM}/include/oriel DESTINATION ${BUNDLE}/src FILES_MATCHING PATTERN "*.h")
file(READ ${FROM}/include/oriel/oriel.h text)
file(READ ${FROM}/include/oriel/advanced.h advanced)
string(REPLACE "#include <oriel/oriel.h>\n" "" advanced "${advanced}")
file(WRITE ${BUNDLE}/oriel.h "${text}\n${advanced}")

set(parts unicode)
if(HIGHWAY)
  list(APPEND parts highway)
  set(ORIEL_LICENCE_highway ${HIGHWAY_LICENCE})
  file(GLOB found ${HIGHWAY}/hwy/*.h)
  file(COPY ${found} DESTINATION ${BUNDLE}/third_party/hwy)
  file(COPY ${HIGHWAY}/hwy/ops DESTINATION ${BUNDLE}/third_party/hwy FILES_MATCHING PATTERN "*.h")
endif()
if(VULKAN)
  list(APPEND parts vulkan)
  file(COPY ${VULKAN}/vulkan/vulkan_core.h ${VULKAN}/vulkan/vk_platform.h DESTINATION ${BUNDLE}/third_party/vulkan)
  if(EXISTS ${VULKAN}/vk_video)
    file(COPY ${VULKAN}/vk_video DESTINATION ${BUNDLE}/third_party FILES_MATCHING PATTERN "*.h")
  endif()
endif()
file(COPY ${ROOT}/LICENSE DESTINATION ${BUNDLE})
oriel_notices(${BUNDLE}/THIRD_PARTY_NOTICES.txt ${parts})
file(WRITE ${BUNDLE}/Makefile "# make -j8 [CXX=clang++] [CXXFLAGS='-O2 -DORIEL_VULKAN=0']   gives liboriel.a
CXXFLAGS ?= -O2
objects := $(patsubst %.cpp,%.o,$(wildcard src/*/*.cpp))
liboriel.a: $(objects)
	rm -f $@
	$(AR) rcs $@ $(objects)
%.o: %.cpp
	$(CXX) -std=c++17 $(CXXFLAGS) -ffp-contract=off -fno-exceptions -fno-rtti -fPIC -Isrc -isystem third_party -c $< -o $@
clean:
	rm -f liboriel.a $(objects)
.PHONY: clean
")
file(WRITE ${BUNDLE}/README.md "# Oriel ${VERSION}, in sources

For projects without CMake. The kernels for Vulkan devices are compiled and inside: it takes a C++17 compiler and nothing
else. Use `oriel.h`; compile every file of `src/*/`, with `src` and `third_party` as folders of headers, or `make`.

    g++ -std=c++17 -O2 -ffp-contract=off -Isrc -isystem third_party -c src/*/*.cpp
    ar rcs liboriel.a *.o
    gcc app.c -I. -L. -loriel -lstdc++ -lm -ldl -pthread

- `-DORIEL_VULKAN=0`: without Vulkan. `-DORIEL_CPU_SIMD=0`: plain code on the CPU.
- `-ffp-contract=off`: what is in the cache is then the same on every processor.
- Licence: Apache-2.0 (LICENSE). So are third_party/hwy (Google's Highway) and third_party/vulkan, third_party/vk_video
  (Khronos's Vulkan headers), whose files say whose they are. THIRD_PARTY_NOTICES.txt has their licences, and that of the
  Unicode data.
- The library is many files, for their names would meet in one.
")
