# ORIEL_SHADER_SOURCES: every file that affects the content of kernels_packed.cpp. ORIEL_SHADER_HASH: a hash of their
# contents and names, independent of the line endings of the checkout.
#
# cmake -DKERNELS=FILE -P shader_sources.cmake: fails if FILE (kernels_packed.cpp) was made from other shaders than these.
cmake_minimum_required(VERSION 3.22)
get_filename_component(oriel_shader_root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
file(GLOB ORIEL_SHADER_SOURCES ${oriel_shader_root}/shaders/*.comp ${oriel_shader_root}/shaders/lib/*.glsl
     ${oriel_shader_root}/shaders/shared/*.h)
list(APPEND ORIEL_SHADER_SOURCES ${oriel_shader_root}/shaders/variants.cmake ${CMAKE_CURRENT_LIST_DIR}/renumber_spirv.py
     ${CMAKE_CURRENT_LIST_DIR}/pack_shaders.cmake)
set(ORIEL_SHADER_HASH "")
foreach(source IN LISTS ORIEL_SHADER_SOURCES)
  file(READ ${source} text)
  string(REPLACE "\r\n" "\n" text "${text}")
  file(RELATIVE_PATH name ${oriel_shader_root} ${source})
  string(SHA256 ORIEL_SHADER_HASH "${ORIEL_SHADER_HASH}\n${name}\n${text}")
endforeach()

if(CMAKE_SCRIPT_MODE_FILE MATCHES "/shader_sources[.]cmake$")
  file(STRINGS ${KERNELS} found LIMIT_COUNT 1 REGEX "^// Shaders: ${ORIEL_SHADER_HASH}$")
  if(NOT found)
    message(FATAL_ERROR "shaders/kernels_packed.cpp was made from other shaders than those in shaders/: "
                        "run scripts/pack_kernels.sh, or configure with -DORIEL_COMPILE_SHADERS=ON")
  endif()
endif()
