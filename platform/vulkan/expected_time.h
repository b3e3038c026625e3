// The expected time of ops on a device, from its launches, its bytes and the chains of loads that wait for each other.
// Estimates, with constants by class of device. They decide which ops run together (fused_ops.h).
// `oriel bench --ops` prints them next to the measured times.
#pragma once

#include "plan/plan.h"
#include "vulkan/kernels.h"

namespace oriel_internal {

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
