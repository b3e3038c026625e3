// The CPU executor, and the ops that its threads may run without synchronisation.
#pragma once

#include "exec/executor.h"
#include "plan/plan.h"

namespace oriel_internal {

// Ops of a list that can run without synchronisation between them, decided from the ops alone.

/// True if op `n` computes the one-row input of the next product and has no other effect. Every thread can then
/// compute its own copy. `rows`: rows of the list.
bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t rows);

/// Index of the first op after a run of products, starting at `first`, that read the same vectors, or later columns of
/// the same rows. Each of them writes no piece that the previous one reads or writes.
uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first);

/// Index of the first op after a run of expert products, starting at `first`, with the same input vectors and routes;
/// at most `most` of them.
uint32_t endOfExperts(const Op* ops, uint32_t n_ops, uint32_t first, uint32_t most);

/// True if op `n` computes the input of the following expert products with quantised weights, and other ops do not read
/// it. The result can then be computed directly in its staged form.
bool feedsExperts(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t most);

// The experts of each token, and the order of each expert's tokens.

/// The parts of a buffer with room for `capacity` routes (shaders/shared/layout.h).
struct Routes {
  Routes(uint32_t* words, uint32_t capacity)
      : expert(words),
        weight(reinterpret_cast<float*>(words + capacity)),
        place(words + 2ull * capacity),
        route_at(words + 3ull * capacity),
        begin(words + 4ull * capacity) {}

  uint32_t* expert;    ///< by route
  float* weight;       ///< by route
  uint32_t* place;     ///< by route
  uint32_t* route_at;  ///< by place
  uint32_t* begin;     ///< by expert, followed by the end of the last
};
static_assert(kRouteParts == 4, "as many before the beginnings");

/// Computes the routes of token `t` from its values `in`; `bias` may be null.
void routeToken(const RoutePush& push, const float* in, const float* bias, uint32_t t,
                const Routes& routes);

/// Sorts the routes of `n_tokens` tokens by expert, then by number.
void sortRoutes(const SortRoutesPush& push, uint32_t n_tokens, const Routes& routes);

// The CPU executor: a team of threads and vector instructions.

/// False if this processor lacks the instructions of all compiled targets (the reference
/// executor runs everywhere).
bool cpuExecutorUsable();
/// True if activations of 8 bits were measured to be faster than 16 with the kernels of this processor.
bool cpuGainsFrom8Bits();
/// Name of the CPU executor for oriel_device_describe and driverName().
const char* cpuExecutorDriver();

/// Destroy with destroyExecutor, which ends its threads.
Status createCpuExecutor(const Plan& plan, const ExecutorOptions& options,
                         const ExecutorMemory& memory, Executor** executor);

}  // namespace oriel_internal
