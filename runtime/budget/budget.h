// Chooses window and chunk inside a number of bytes. Pure: no allocation, no device, no file.
#pragma once

#include "base/log.h"
#include "plan/plan.h"

namespace oriel {

/// What may not be changed and what was asked for. Zero means "choose".
struct BudgetRequest {
  uint64_t memory_bytes = 0;
  uint32_t window = 0;
  uint32_t sinks = kDefaultSinks;
  uint32_t pinned = 0;  ///< tokens of a pinned prefix; sinks grow to cover them
  uint32_t chunk = 0;
  /// Host bytes of everything (they depend on neither window nor chunk).
  uint64_t host_bytes = 0;
};

/// Exact bytes of one choice.
struct BudgetBytes {
  uint64_t weights = 0;
  uint64_t cache = 0;
  uint64_t activations = 0;
  uint64_t io = 0;
  uint64_t host = 0;
  uint64_t total() const { return weights + cache + activations + io + host; }
};

struct Budget {
  bool fits = false;
  CacheShape cache;    ///< the choice, or the smallest when nothing fits
  uint32_t chunk = 0;
  BudgetBytes bytes;
  uint64_t minimum_bytes = 0;  ///< least memory_bytes that this request can be met in
};

/// Bytes of a choice. The plan takes exactly these.
BudgetBytes budgetBytes(const ModelDesc& model, const PlanTotals& totals, uint64_t host_bytes,
                        const CacheShape& cache, uint32_t chunk);

/// The largest window that fits, up to the trained context; with it the largest chunk whose ring slack
/// does not cost the window much. ORIEL_ERROR_ARGUMENT for values out of range, ORIEL_ERROR_CONTEXT when
/// the pinned text leaves no room in the window; a budget that is too small is not an error here
/// (Budget::fits).
Status chooseBudget(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                    const Log& log, Budget* budget);

}  // namespace oriel
