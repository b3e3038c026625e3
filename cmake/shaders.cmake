# Compiles GLSL to SPIR-V 1.3, validates it and packs it. See shaders/variants.cmake for the table.
set(ORIEL_PACKED_KERNELS "" CACHE FILEPATH
    "kernels_packed.cpp of another build of this version: no shader compiler is needed then")
if(ORIEL_PACKED_KERNELS)
  macro(oriel_embed_shaders target)
    target_sources(${target} PRIVATE ${ORIEL_PACKED_KERNELS})
  endmacro()
  return()
endif()

find_program(ORIEL_GLSLANG glslangValidator REQUIRED DOC "GLSL compiler (package glslang-tools)")
find_program(ORIEL_SPIRV_VAL spirv-val REQUIRED DOC "SPIR-V validator (package spirv-tools)")

# Kernels for matrix units are left out where the tools are older than GL_KHR_cooperative_matrix.
function(oriel_find_cooperative_matrix)
  set(probe ${CMAKE_CURRENT_BINARY_DIR}/cooperative_matrix)
  file(WRITE ${probe}.comp "#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
layout(binding = 0) buffer Data { float data[]; };
void main() {
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sums;
  coopMatLoad(sums, data, 0u, 16u, gl_CooperativeMatrixLayoutRowMajor);
}
")
  set(found OFF)
  execute_process(COMMAND ${ORIEL_GLSLANG} --quiet --target-env vulkan1.1 -V -S comp -o ${probe}.spv ${probe}.comp
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    execute_process(COMMAND ${ORIEL_SPIRV_VAL} --target-env vulkan1.1 ${probe}.spv
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(NOT failed)
    set(found ON)
  endif()
  message(STATUS "Kernels for matrix units (GL_KHR_cooperative_matrix): ${found}")
  set(ORIEL_COOPERATIVE_MATRIX ${found} PARENT_SCOPE)
endfunction()
oriel_find_cooperative_matrix()

set(ORIEL_SHADER_NAMES "")
set(ORIEL_SHADER_SPIRV "")

# oriel_shader(NAME SOURCE [DEFINE...]): one kernel variant.
function(oriel_shader name source)
  set(shader_dir ${PROJECT_SOURCE_DIR}/shaders)
  set(spirv ${CMAKE_CURRENT_BINARY_DIR}/spirv/${name}.spv)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE defines)
  add_custom_command(
    OUTPUT ${spirv}
    COMMAND ${ORIEL_GLSLANG} --quiet --target-env vulkan1.1 -V -g0 -S comp -I${shader_dir} ${defines}
            -o ${spirv} ${shader_dir}/${source}
    COMMAND ${ORIEL_SPIRV_VAL} --target-env vulkan1.1 ${spirv}
    DEPENDS ${shader_dir}/${source} ${ORIEL_SHADER_HEADERS}
    COMMENT "shader ${name}" VERBATIM)
  set(ORIEL_SHADER_NAMES ${ORIEL_SHADER_NAMES} ${name} PARENT_SCOPE)
  set(ORIEL_SHADER_SPIRV ${ORIEL_SHADER_SPIRV} ${spirv} PARENT_SCOPE)
endfunction()

# oriel_embed_shaders(TARGET): compiles the whole table into TARGET as one C++ file, kernels_packed.cpp.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "Python was not found: the kernels for Vulkan take some 0.4 MB more in the library")
endif()
macro(oriel_embed_shaders target)
  file(GLOB ORIEL_SHADER_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/lib/*.glsl
       ${PROJECT_SOURCE_DIR}/shaders/shared/*.h)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/spirv ${CMAKE_CURRENT_BINARY_DIR}/packed)
  include(${PROJECT_SOURCE_DIR}/shaders/variants.cmake)
  set(packed ${CMAKE_CURRENT_BINARY_DIR}/kernels_packed.cpp)
  add_custom_command(
    OUTPUT ${packed}
    COMMAND ${CMAKE_COMMAND} "-DNAMES=${ORIEL_SHADER_NAMES}" "-DSPIRV=${ORIEL_SHADER_SPIRV}" -DOUTPUT=${packed}
            -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/packed "-DPYTHON=${Python3_EXECUTABLE}"
            -P ${PROJECT_SOURCE_DIR}/cmake/pack_shaders.cmake
    DEPENDS ${ORIEL_SHADER_SPIRV} ${PROJECT_SOURCE_DIR}/cmake/pack_shaders.cmake
            ${PROJECT_SOURCE_DIR}/cmake/renumber_spirv.py ${PROJECT_SOURCE_DIR}/shaders/variants.cmake
    COMMENT "packing shaders" VERBATIM)
  target_sources(${target} PRIVATE ${packed})
endmacro()
