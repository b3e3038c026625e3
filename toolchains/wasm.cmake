# WebAssembly for browsers and Node. Compiler: Emscripten (package emscripten on Debian and Ubuntu), found by its
# program emcc, -DEMSCRIPTEN_ROOT=FOLDER or the variable EMSCRIPTEN_ROOT of the environment. Built and run by
# scripts/web.sh.
#
# Vectors are WebAssembly's 128 bits (2021: every current browser). ORIEL_WASM_THREADS needs shared memory, which
# browsers give to pages that are cross-origin isolated: docs/web.md.
foreach(folder "${EMSCRIPTEN_ROOT}" "$ENV{EMSCRIPTEN_ROOT}" /usr/share/emscripten)
  if(folder AND EXISTS ${folder}/cmake/Modules/Platform/Emscripten.cmake)
    set(EMSCRIPTEN_ROOT ${folder})
    break()
  endif()
endforeach()
if(NOT EMSCRIPTEN_ROOT)
  message(FATAL_ERROR "no Emscripten: install the package emscripten or give -DEMSCRIPTEN_ROOT=FOLDER")
endif()
option(ORIEL_WASM_THREADS "Threads, in memory that they share" OFF)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EMSCRIPTEN_ROOT ORIEL_WASM_THREADS)
set(EMSCRIPTEN_SYSTEM_PROCESSOR wasm32)
include(${EMSCRIPTEN_ROOT}/cmake/Modules/Platform/Emscripten.cmake)
set(oriel_wasm_flags "-msimd128 -mbulk-memory")
if(ORIEL_WASM_THREADS)
  string(APPEND oriel_wasm_flags " -pthread")
endif()
set(CMAKE_C_FLAGS_INIT "${oriel_wasm_flags}")
set(CMAKE_CXX_FLAGS_INIT "${oriel_wasm_flags}")
set(ORIEL_VULKAN OFF CACHE BOOL "there is none")
set(ORIEL_BUILD_CLI OFF CACHE BOOL "web/ is linked instead")
set(ORIEL_INSTALL OFF CACHE BOOL "the npm package is what is given away")
