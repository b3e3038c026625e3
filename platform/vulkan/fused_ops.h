// Ops whose work the products after them do: shaders/lib/made_row.glsl.
#pragma once

#include "plan/plan.h"
#include "shaders/shared/made_row.h"
#include "vulkan/device_caps.h"
#include "vulkan/kernels.h"

namespace oriel_internal {

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
// Estimates, with constants by class of device. They decide which ops run together (fused_ops.h).
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
