// The kernels' SPIR-V, packed: shaders/kernels_packed.cpp, which scripts/pack_kernels.sh makes from the shaders.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Kernels that are packed together.
struct ShaderBlock {
  const uint8_t* xz;  ///< see base/xz.h
  uint32_t xz_bytes;
  uint32_t bytes;  ///< unpacked
};

struct ShaderCode {
  char name[32];
  uint32_t block;  ///< in kShaderBlocks
  uint32_t begin;  ///< where in the block its words begin, in bytes
  uint32_t bytes;
  bool renumbered;  ///< restoreIds() makes SPIR-V of its words
};

extern const ShaderBlock kShaderBlocks[];
extern const uint32_t kShaderBlockCount;
extern const ShaderCode kShaders[];
extern const uint32_t kShaderCount;
/// Of all of them, names included.
extern const uint64_t kShadersHash;

/// Undoes what cmake/renumber_spirv.py did last: from the first function on, ids are distances from the latest result.
/// False: these are no instructions one behind the other.
bool restoreIds(uint32_t* words, size_t count);

}  // namespace oriel_internal
