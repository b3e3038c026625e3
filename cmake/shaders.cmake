# The kernels for Vulkan: shaders/kernels_packed.cpp, which scripts/pack_kernels.sh makes, or compiled in this build.
# shaders/variants.cmake has the table of kernels.
option(ORIEL_COMPILE_SHADERS "Compile the shaders in this build, for work on them" OFF)

set(ORIEL_TRACKED_KERNELS ${PROJECT_SOURCE_DIR}/shaders/kernels_packed.cpp)
set(ORIEL_CHECK_KERNELS ${CMAKE_COMMAND} -DKERNELS=${ORIEL_TRACKED_KERNELS}
                        -P ${PROJECT_SOURCE_DIR}/cmake/shader_sources.cmake)

if(NOT ORIEL_COMPILE_SHADERS)
  include(${PROJECT_SOURCE_DIR}/cmake/shader_sources.cmake)
  # An edit of a shader configures again, and so prints the warning.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ORIEL_SHADER_SOURCES} ${ORIEL_TRACKED_KERNELS})
  execute_process(COMMAND ${ORIEL_CHECK_KERNELS} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(WARNING "${said}")
  endif()
  macro(oriel_embed_shaders target)
    target_sources(${target} PRIVATE ${ORIEL_TRACKED_KERNELS})
  endmacro()
  return()
endif()

# scripts/pack_kernels.sh leaves its compiler in build/kernels/bin.
find_program(ORIEL_GLSLANG glslangValidator HINTS ${PROJECT_SOURCE_DIR}/build/kernels/bin REQUIRED
             DOC "GLSL compiler (package glslang-tools)")
find_program(ORIEL_SPIRV_VAL spirv-val HINTS ${PROJECT_SOURCE_DIR}/build/kernels/bin REQUIRED
             DOC "SPIR-V validator (package spirv-tools)")
find_package(Python3 COMPONENTS Interpreter REQUIRED)

set(ORIEL_SHADER_NAMES "")
set(ORIEL_SHADER_SPIRV "")

function(oriel_shader name source)
  set(shader_dir ${PROJECT_SOURCE_DIR}/shaders)
  set(spirv ${CMAKE_CURRENT_BINARY_DIR}/spirv/${name}.spv)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE defines)
  add_custom_command(
    OUTPUT ${spirv}
    COMMAND ${ORIEL_GLSLANG} --quiet ${ORIEL_SHADER_FLAGS} -I${shader_dir} ${defines} -o ${spirv} ${shader_dir}/${source}
    COMMAND ${ORIEL_SPIRV_VAL} --target-env vulkan1.1 ${spirv}
    DEPENDS ${shader_dir}/${source} ${ORIEL_SHADER_HEADERS}
    COMMENT "shader ${name}" VERBATIM)
  set(ORIEL_SHADER_NAMES ${ORIEL_SHADER_NAMES} ${name} PARENT_SCOPE)
  set(ORIEL_SHADER_SPIRV ${ORIEL_SHADER_SPIRV} ${spirv} PARENT_SCOPE)
endfunction()

function(oriel_kernel)
  list(JOIN ARGN " " kernel)
  set_property(GLOBAL APPEND PROPERTY ORIEL_KERNELS ${kernel})
endfunction()

# oriel_embed_shaders(TARGET): compiles the whole table into TARGET as one C++ file, kernels_packed.cpp.
macro(oriel_embed_shaders target)
  file(GLOB ORIEL_SHADER_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/lib/*.glsl
       ${PROJECT_SOURCE_DIR}/shaders/shared/*.h)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/spirv ${CMAKE_CURRENT_BINARY_DIR}/packed)
  include(${PROJECT_SOURCE_DIR}/shaders/variants.cmake)
  get_property(ORIEL_KERNELS GLOBAL PROPERTY ORIEL_KERNELS)
  set(packed ${CMAKE_CURRENT_BINARY_DIR}/kernels_packed.cpp)
  add_custom_command(
    OUTPUT ${packed}
    COMMAND ${CMAKE_COMMAND} "-DKERNELS=${ORIEL_KERNELS}" "-DNAMES=${ORIEL_SHADER_NAMES}" "-DSPIRV=${ORIEL_SHADER_SPIRV}" -DOUTPUT=${packed}
            -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/packed "-DPYTHON=${Python3_EXECUTABLE}"
            -P ${PROJECT_SOURCE_DIR}/cmake/pack_shaders.cmake
    DEPENDS ${ORIEL_SHADER_SPIRV} ${PROJECT_SOURCE_DIR}/cmake/pack_shaders.cmake
            ${PROJECT_SOURCE_DIR}/cmake/renumber_spirv.py ${PROJECT_SOURCE_DIR}/shaders/variants.cmake
    COMMENT "packing shaders" VERBATIM)
  target_sources(${target} PRIVATE ${packed})
  add_custom_target(oriel_kernels DEPENDS ${packed})
  add_dependencies(${target} oriel_kernels)  # so that only one target writes the file
endmacro()
