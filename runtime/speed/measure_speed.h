// Times the library's own kernels on one device with small made-up models, and turns the times into rates.
#pragma once

#include "exec/executor.h"
#include "oriel/oriel.h"

namespace oriel {

/// How an executor for a plan is made; the device is its business.
struct ExecutorMaker {
  Status (*make)(const void* context, const Plan& plan, const ExecutorMemory& memory,
                 Executor** executor) = nullptr;
  const void* context = nullptr;
};

/// Fills in the rates of `n_types` tensor types (as GGUF numbers them; types that no kernel takes are left
/// out), taking from `cache_dir` (may be null) what was measured before.
Status measureSpeed(const ExecutorMaker& maker, const uint32_t* types, uint32_t n_types,
                    const char* cache_dir, const oriel_allocator& allocator, const Log& log,
                    oriel_speed* speed);

}  // namespace oriel
