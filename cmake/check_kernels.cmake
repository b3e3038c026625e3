# cmake -DKERNELS=FILE -P check_kernels.cmake: fails if FILE (kernels_packed.cpp) was made from other shaders than these.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/shader_sources.cmake)
file(STRINGS ${KERNELS} found LIMIT_COUNT 1 REGEX "^// Shaders: ${ORIEL_SHADER_HASH}$")
if(NOT found)
  message(FATAL_ERROR "shaders/kernels_packed.cpp was made from other shaders than those in shaders/: "
                      "run scripts/pack_kernels.sh, or configure with -DORIEL_COMPILE_SHADERS=ON")
endif()
