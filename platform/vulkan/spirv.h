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

}  // namespace oriel_internal
