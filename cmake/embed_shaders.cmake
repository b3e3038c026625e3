# Writes OUTPUT: every SPIR-V file of SPIRV as a word array, and a table of them by NAMES.
set(arrays "")
set(table "")
foreach(name spirv IN ZIP_LISTS NAMES SPIRV)
  file(READ ${spirv} hex HEX)
  # SPIR-V is a stream of little-endian words.
  string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
  string(APPEND arrays "const uint32_t k_${name}[] = {${words}};\n")
  string(APPEND table "    {\"${name}\", k_${name}, sizeof(k_${name})},\n")
endforeach()
list(FIND NAMES matmul_f16_matrix found)
set(has_matrix_kernels true)
if(found LESS 0)
  set(has_matrix_kernels false)
endif()
string(SHA256 hash "${table}${arrays}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT}
"// Generated from shaders/variants.cmake.
#include \"vulkan/shader_table.h\"

namespace oriel {
namespace {

${arrays}
}  // namespace

const ShaderCode kShaders[] = {
${table}};
const uint32_t kShaderCount = sizeof(kShaders) / sizeof(kShaders[0]);
const uint64_t kShadersHash = 0x${hash};
const bool kHasMatrixKernels = ${has_matrix_kernels};

}  // namespace oriel
")
