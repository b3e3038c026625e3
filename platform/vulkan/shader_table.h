// The SPIR-V 1.3 numbers that Oriel reads kernels with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

constexpr size_t kSpirvHeaderWords = 5;

/// Instructions, and operations on constants.
enum SpirvCode : uint32_t {
  kOpName = 5,
  kOpEntryPoint = 15,
  kOpTypeVoid = 19,
  kOpTypeBool = 20,
  kOpConstantTrue = 41,
  kOpConstantFalse = 42,
  kOpConstant = 43,
  kOpSpecConstant = 50,
  kOpSpecConstantOp = 52,
  kOpFunction = 54,
  kOpFunctionEnd = 56,
  kOpFunctionCall = 57,
  kOpVariable = 59,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpIAdd = 128,
  kOpISub = 130,
  kOpIMul = 132,
  kOpUDiv = 134,
  kOpLogicalOr = 166,
  kOpLogicalAnd = 167,
  kOpLogicalNot = 168,
  kOpSelect = 169,
  kOpIEqual = 170,
  kOpINotEqual = 171,
  kOpPhi = 245,
  kOpLoopMerge = 246,
  kOpSelectionMerge = 247,
  kOpLabel = 248,
  kOpBranch = 249,
  kOpBranchConditional = 250,
  kOpSwitch = 251,
};

// The kernels' SPIR-V, packed: shaders/kernels_packed.cpp, which scripts/pack_kernels.sh makes from the shaders.
//
//   block   modules, packed together as .xz
//   module  one compiled shader, for all its weight types or cache formats
//   kernel  a module cut down to one form, for the driver

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
