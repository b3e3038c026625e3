// Chooses an op's shader variant, its specialisation and its number of workgroups. Only this file in
// C++ knows how the shaders divide their work.
#pragma once

#include "vulkan/matmul_choices.h"

namespace oriel_internal {

constexpr uint32_t kMaxSpecConstants = 8;

/// The form that kMatmulStaged gives a product's input.
enum class Staging : uint8_t { kNone, kIntegers, kHalves, kMatrixHalves };

struct Kernel {
  uint32_t shader = 0;                         ///< index into kShaders
  uint32_t constants[kMaxSpecConstants] = {};  ///< by constant_id; ids a shader lacks are ignored
  uint32_t grid[3] = {1, 1, 1};
  bool divisible = false;            ///< the grid may be dispatched in parts (vkCmdDispatchBase)
  Staging staging = Staging::kNone;  ///< the kernel that must stage the input first
  uint32_t subgroup_size = 0;        ///< required subgroup size; 0: any
  bool full_subgroups = false;       ///< every subgroup must be full
};

/// "subgroup" or "shared": the suffix of kernels that have both versions.
const char* subgroupPath(const DeviceCaps& caps);

/// Most tokens, or outputs, of an op in its list. `apart`: each token belongs to a different
/// session, and its result is bitwise equal to a step with this token alone.
struct KernelRows {
  uint32_t most = 1;
  bool apart = false;
};
inline KernelRows kernelRows(const Plan& plan, StepList list) {
  return {plan.rows(list), isBatch(list)};
}

/// Finds the kernel that computes the same as `shader` without subgroup arithmetic. False if `shader` has no
/// stand-in.
bool findStandIn(uint32_t shader, uint32_t* stand_in);

/// `maker`: the op whose work the product `op` also does (fused_ops.h), or null.
Status chooseKernel(const Op& op, const Op* maker, const KernelRows& rows, const DeviceCaps& caps,
                    const MatmulChoices& choices, const Log& log, Kernel* kernel);

/// Chooses the kernel that stages the input of `op`. It uses the same push constants and bindings.
Status chooseStaging(const Op& op, uint32_t rows, Staging staging, const DeviceCaps& caps,
                     const Log& log, Kernel* kernel);

}  // namespace oriel_internal
