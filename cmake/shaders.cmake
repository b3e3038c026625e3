# Compiles GLSL to SPIR-V 1.3, validates it and embeds it. See shaders/variants.cmake for the table.
find_program(ORIEL_GLSLANG glslangValidator REQUIRED DOC "GLSL compiler (package glslang-tools)")
find_program(ORIEL_SPIRV_VAL spirv-val REQUIRED DOC "SPIR-V validator (package spirv-tools)")

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

# oriel_embed_shaders(TARGET): compiles the whole table into TARGET as one C++ file.
macro(oriel_embed_shaders target)
  file(GLOB ORIEL_SHADER_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/lib/*.glsl
       ${PROJECT_SOURCE_DIR}/shaders/shared/*.h)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/spirv)
  include(${PROJECT_SOURCE_DIR}/shaders/variants.cmake)
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_shaders.cpp)
  add_custom_command(
    OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} "-DNAMES=${ORIEL_SHADER_NAMES}" "-DSPIRV=${ORIEL_SHADER_SPIRV}"
            -DOUTPUT=${embedded} -P ${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake
    DEPENDS ${ORIEL_SHADER_SPIRV} ${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake
            ${PROJECT_SOURCE_DIR}/shaders/variants.cmake
    COMMENT "embedding shaders" VERBATIM)
  target_sources(${target} PRIVATE ${embedded})
endmacro()
