// The kernels' SPIR-V, packed: shaders/kernels_packed.cpp, which scripts/pack_kernels.sh makes from the shaders.
//
//   block   modules, packed together as .xz
//   module  one compiled shader, for all its weight types or cache formats
//   kernel  a module cut down to one form, for the driver
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
  uint32_t begin;  ///< byte offset of its words in the block
  uint32_t bytes;
  bool renumbered;  ///< restoreIds() must convert its words to SPIR-V
};

/// Specialisation constants kFirstFormConstant and on of a module: shaders/lib/form.glsl.
constexpr uint32_t kFirstFormConstant = 8;
constexpr uint32_t kFormConstants = 3;

/// Names of kernels, one after the other, each with its end.
extern const char kShaderNames[];
constexpr uint32_t kShaderNameBytes = 32;  ///< at most, with the end

struct ShaderCode {
  uint16_t name_at;  ///< in kShaderNames
  uint8_t module;    ///< in kShaderModules
  uint8_t form[kFormConstants];

  const char* name() const { return kShaderNames + name_at; }
};

extern const ShaderBlock kShaderBlocks[];
extern const uint32_t kShaderBlockCount;
extern const ShaderModule kShaderModules[];
extern const ShaderCode kShaders[];
extern const uint32_t kShaderCount;
/// Hash of all shaders, including their names.
extern const uint64_t kShadersHash;

/// Reverses the last step of cmake/renumber_spirv.py: from the first function on, ids are stored as distances from the
/// latest result. False if the words are not a sequence of instructions.
bool restoreIds(uint32_t* words, size_t count);

/// Writes the part of a module that one form needs: form constants become plain constants, branches on them are
/// decided, and unused functions and variables are removed. The driver compiles as little as with a module per
/// form, and the result cannot depend on the driver's constant folding.
/// `out` holds `count` words, `work` formWorkBytes(). Returns the number of words; 0 if the module is invalid.
size_t cutToForm(const uint32_t* words, size_t count, const uint8_t form[kFormConstants],
                 uint32_t* out, void* work);
/// 0: no module.
size_t formWorkBytes(const uint32_t* words, size_t count);

}  // namespace oriel_internal
