// The kernels' SPIR-V, packed: shaders/kernels_packed.cpp, which scripts/pack_kernels.sh makes from the shaders.
//
//   block   modules, packed together as .xz
//   module  one compiled shader, for every type of weights or format of the cache that it knows
//   kernel  a module cut down to one form: what the driver gets
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Modules that are packed together.
struct ShaderBlock {
  const uint8_t* xz;  ///< see base/xz.h
  uint32_t xz_bytes;
  uint32_t bytes;  ///< unpacked
};

struct ShaderModule {
  uint32_t block;  ///< in kShaderBlocks
  uint32_t begin;  ///< where in the block its words begin, in bytes
  uint32_t bytes;
  bool renumbered;  ///< restoreIds() makes SPIR-V of its words
};

/// Specialisation constants kFirstFormConstant and on of a module: shaders/lib/form.glsl.
constexpr uint32_t kFirstFormConstant = 8;
constexpr uint32_t kFormConstants = 3;

struct ShaderCode {
  char name[28];
  uint8_t module;  ///< in kShaderModules
  uint8_t form[kFormConstants];
};

extern const ShaderBlock kShaderBlocks[];
extern const uint32_t kShaderBlockCount;
extern const ShaderModule kShaderModules[];
extern const ShaderCode kShaders[];
extern const uint32_t kShaderCount;
/// Of all of them, names included.
extern const uint64_t kShadersHash;

/// Undoes what cmake/renumber_spirv.py did last: from the first function on, ids are distances from the latest result.
/// False: these are no instructions one behind the other.
bool restoreIds(uint32_t* words, size_t count);

/// Writes the part of a module that one form needs: its form constants become plain constants, branches on them are
/// decided, and functions and variables that nothing uses any more are left out. So a driver compiles as little as if
/// each form had a module of its own, and what it makes of it cannot depend on how well it folds constants.
/// `out` has room for `count` words, `work` for formWorkBytes(). Gives back how many words it has; 0: no such module.
size_t cutToForm(const uint32_t* words, size_t count, const uint8_t form[kFormConstants],
                 uint32_t* out, void* work);
/// 0: no module.
size_t formWorkBytes(const uint32_t* words, size_t count);

}  // namespace oriel_internal
