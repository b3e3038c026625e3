// Kernels of a plan on a device: candidates for products, groups of attention, fused ops, and the choice per op.
#pragma once

#include "exec/executor.h"
#include "plan/plan.h"
#include "shaders/shared/made_row.h"
#include "vulkan/device.h"
#include "vulkan/device_caps.h"

namespace oriel_internal {

// Kernel candidates for matmul on a device, for a single vector and for a chunk, and the choice per weight type.
// The fastest measured candidate is read from a small file next to the compiled pipelines; without one, the standard
// candidate applies. A damaged file, or a file of another build, device or driver, is ignored.

struct MatmulCandidate {
  const char* name;
  MatmulKernel kernel;
  // Constants of the kernel; 0 lanes: the kernel table's division.
  uint32_t lanes;
  uint32_t team_lanes;
  uint32_t rows;    ///< per lane; with matrix units per workgroup
  uint32_t tokens;  ///< per workgroup, at most
};

class MatmulChoices {
 public:
  /// Reads the choices of this device from `dir` (null: none). `verdict` excludes candidates that gave wrong results; it
  /// must outlive this object.
  void create(const DeviceCaps& caps, const Verdict& verdict, const char* dir, const Log& log);

  /// Null if the device has no such candidate for the type.
  const MatmulCandidate* candidate(MatmulUse use, WeightType type, uint32_t index) const;
  uint32_t standard(MatmulUse use, WeightType type) const;
  uint32_t choice(MatmulUse use, WeightType type) const { return chosen_[at(use, type)]; }
  bool measured(MatmulUse use, WeightType type) const { return measured_[at(use, type)] != 0; }
  void take(MatmulUse use, WeightType type, uint32_t index) { chosen_[at(use, type)] = index; }
  /// Takes the candidate and writes the file. False without a folder, or if writing fails.
  bool keep(MatmulUse use, WeightType type, uint32_t index, const Log& log);

  /// The candidate for `op` (kMatmul) on at most `rows` vectors. Falls back to the float kernel of the kernel table if
  /// the op names a missing candidate, or if the candidate needs kMatmulStaged and the op lacks it.
  const MatmulCandidate& candidateFor(const Op& op, uint32_t rows) const;
  /// Index of a result of candidateFor() in its table, for Verdict.
  uint32_t positionOf(MatmulUse use, const MatmulCandidate& candidate) const;
  static uint32_t at(MatmulUse use, WeightType type) {
    return static_cast<uint32_t>(use) * kWeightTypes + static_cast<uint32_t>(type);
  }

 private:
  static constexpr uint32_t kChoices = kMatmulUses * kWeightTypes;
  bool runs(MatmulUse use, uint32_t position, WeightType type) const;

  DeviceCaps caps_ = {};
  const Verdict* verdict_ = nullptr;
  char path_[1024] = "";  // empty: no file
  uint32_t chosen_[kChoices] = {};
  uint32_t measured_[kChoices] = {};
  uint32_t types_[kMatmulKernels] = {};  // types with the kernel, as bits
};

// Chooses an op's shader variant, its specialisation and its number of workgroups. Only this file in
// C++ knows how the shaders divide their work.

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

/// `maker`: the op whose work the product `op` also does, or null.
Status chooseKernel(const Op& op, const Op* maker, const KernelRows& rows, const DeviceCaps& caps,
                    const MatmulChoices& choices, const Log& log, Kernel* kernel);

/// Chooses the kernel that stages the input of `op`. It uses the same push constants and bindings.
Status chooseStaging(const Op& op, uint32_t rows, Staging staging, const DeviceCaps& caps,
                     const Log& log, Kernel* kernel);

// Workgroups of the split attention of a decoding token or batch. The number changes from token to token, while the
// commands are recorded once, so these dispatches read their sizes from the step block.

class AttentionGroups {
 public:
  /// Records the grid of the first split decoding op of each view, and ignores other ops.
  /// `rows`: most tokens of the list.
  void add(StepList list, const Op& op, uint32_t rows, const Kernel& kernel);

  /// True if the step block holds the op's grid, at *offset_bytes from its start.
  bool covers(StepList list, const Op& op, uint32_t rows, const Kernel& kernel,
              uint32_t* offset_bytes) const;

  /// Fills in StepHeader::attention_groups from the first `n_tokens` of the step block. The token that sees most decides
  /// the number of splits.
  void write(void* step, uint32_t n_tokens) const;

 private:
  struct Grid {
    uint32_t across[2];  ///< for a token
    uint32_t splits;     ///< 0: no such op
    uint32_t split_slots;

    bool operator==(const Grid& other) const {
      return across[0] == other.across[0] && across[1] == other.across[1] &&
             splits == other.splits && split_slots == other.split_slots;
    }
  };
  static bool isCovered(StepList list, const Op& op);
  static Grid gridOf(const Op& op, uint32_t rows, const Kernel& kernel);
  static constexpr uint32_t kViews = 2;  ///< limit of the step block: the first views
  static constexpr uint32_t kGroupWords = sizeof(StepHeader::attention_groups) / 4 / kViews;
  Grid grids_[kViews] = {};
};

// Ops whose work the products after them do: shaders/lib/made_row.glsl.

/// True if kernels for one vector may make their input themselves.
bool makesInputs(const DeviceCaps& caps);

/// True if op `index` is not dispatched, because all products that read its row make the row themselves: a norm, an
/// activation or the merge of split attention, if expectedUs() says that it pays. Independent of kernel choices.
bool isMadeByReaders(const Plan& plan, StepList list, uint32_t index, const DeviceCaps& caps);

/// True if it pays that a product copies and stages its input itself, instead of an op before it.
bool stagesItself(const Op& product, const DeviceCaps& caps);

/// How a product makes its input: kMakeCopied or another kMake constant. `maker`: null for a copy.
uint32_t makeOf(const Op* maker);

/// `product` with the inputs of the op that makes its row.
Op withMaker(const Op& product, const Op& maker);

// The expected time of ops on a device, from its launches, its bytes and the chains of loads that wait for each other.
// Estimates, with constants by class of device. They decide which ops run together.
// `oriel bench --ops` prints them next to the measured times.

struct CostClass {
  double launch_us;            ///< a dispatch with the barrier before it
  double load_us;              ///< from a load of a cached value to its use
  double bytes_per_us;         ///< of memory
  double cached_bytes_per_us;  ///< of values that all workgroups read
  double products_per_us
      [4];       ///< of many tokens, by Staging; matrix units: if subgroups had large tiles
  double lanes;  ///< that fill the device
};
const CostClass& costsOf(const DeviceCaps& caps);

/// Time of an op that products can do the work of, in a dispatch of its own.
double separateUs(const Op& maker, const CostClass& costs);
/// Time that a product takes more if it makes its input itself. `maker`: null: copies it.
double makingUs(const Op& product, const Op* maker, const CostClass& costs);
/// Time of staging a product's input in a dispatch of its own.
double stagingUs(const CostClass& costs);

/// Time of one dispatch of `op` on `rows` tokens. `maker`: the op whose work the product `op` also does, or null.
/// `seen`: visible tokens.
double expectedUs(const Op& op, const Op* maker, const Kernel& kernel, uint32_t rows, double seen,
                  const CostClass& costs);

}  // namespace oriel_internal
