// The CPU executor: a team of threads and vector instructions.
#pragma once

#include "exec/executor.h"

namespace oriel_internal {

/// False if this processor lacks the instructions of all compiled targets (the reference
/// executor runs everywhere).
bool cpuExecutorUsable();
/// Name of the CPU executor for oriel_device_describe and driverName().
const char* cpuExecutorDriver();

/// Destroy with destroyExecutor, which ends its threads.
Status createCpuExecutor(const Plan& plan, const ExecutorOptions& options,
                         const ExecutorMemory& memory, Executor** executor);

}  // namespace oriel_internal
