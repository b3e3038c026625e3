# Writes OUTPUT, one C++ file that needs nothing else: the kernels NAMES, compiled to SPIRV, packed as .xz in blocks, and
# a table of them. FOLDER is for what lies between. With PYTHON they take a fifth of the bytes (renumber_spirv.py).
# See platform/vulkan/shader_table.h.
cmake_minimum_required(VERSION 3.22)

set(block_bytes 524288)  # unpacked, at most

set(renumbered "")
set(unpacked ${FOLDER}/spirv)
if(PYTHON)
  set(files "")
  foreach(name spirv IN ZIP_LISTS NAMES SPIRV)
    list(APPEND files ${name}=${spirv})
  endforeach()
  execute_process(COMMAND ${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/renumber_spirv.py ${FOLDER}/renumbered ${files}
                  RESULT_VARIABLE failed OUTPUT_VARIABLE renumbered)
  if(failed)
    message(WARNING "renumber_spirv.py failed: kernels take five times the bytes in the library")
    set(renumbered "")
  else()
    string(REGEX REPLACE "[\r\n]+" ";" renumbered "${renumbered}")
    set(SPIRV ${NAMES})
    list(TRANSFORM SPIRV PREPEND ${FOLDER}/renumbered/)
  endif()
endif()

set(arrays "")
set(blocks "")
set(table "")
set(n_blocks 0)
# The files of `parts` become a block.
macro(finish_block)
  set(block ${FOLDER}/block_${n_blocks})
  execute_process(COMMAND ${CMAKE_COMMAND} -E cat ${parts} OUTPUT_FILE ${block} COMMAND_ERROR_IS_FATAL ANY)
  file(ARCHIVE_CREATE OUTPUT ${block}.xz PATHS ${block} FORMAT raw COMPRESSION XZ COMPRESSION_LEVEL 9)
  file(READ ${block}.xz hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," listing "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n"
         listing "${listing}")
  string(APPEND arrays "const uint8_t kBlock${n_blocks}[] = {\n${listing}};\n")
  string(APPEND blocks "    {kBlock${n_blocks}, sizeof(kBlock${n_blocks}), ${filled}},\n")
  math(EXPR n_blocks "${n_blocks} + 1")
  set(parts "")
  set(filled 0)
endmacro()

set(parts "")
set(filled 0)
foreach(name spirv IN ZIP_LISTS NAMES SPIRV)
  file(SIZE ${spirv} bytes)
  math(EXPR all "${filled} + ${bytes}")
  if(all GREATER block_bytes AND parts)
    finish_block()
  endif()
  list(FIND renumbered ${name} found)
  set(is_renumbered false)
  if(found GREATER_EQUAL 0)
    set(is_renumbered true)
  endif()
  string(APPEND table "    {\"${name}\", ${n_blocks}, ${filled}, ${bytes}, ${is_renumbered}},\n")
  list(APPEND parts ${spirv})
  math(EXPR filled "${filled} + ${bytes}")
endforeach()
finish_block()

list(FIND NAMES matmul_f16_matrix found)
set(has_matrix_kernels true)
if(found LESS 0)
  set(has_matrix_kernels false)
endif()
string(SHA256 hash "${table}${blocks}${arrays}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT}
"// Oriel's kernels for Vulkan, compiled and packed by cmake/pack_shaders.cmake from shaders/variants.cmake.
#include \"vulkan/shader_table.h\"

namespace oriel_internal {
namespace {

${arrays}
}  // namespace

const ShaderBlock kShaderBlocks[] = {
${blocks}};
const ShaderCode kShaders[] = {
${table}};
const uint32_t kShaderBlockCount = sizeof(kShaderBlocks) / sizeof(kShaderBlocks[0]);
const uint32_t kShaderCount = sizeof(kShaders) / sizeof(kShaders[0]);
const uint64_t kShadersHash = 0x${hash};
const bool kHasMatrixKernels = ${has_matrix_kernels};

}  // namespace oriel_internal
")
