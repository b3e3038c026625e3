// How threads share the work of recurrent states. Each function is called by every thread of the team.
#pragma once

#include "cpu/pool.h"
#include "cpu/state.h"

namespace oriel {

class StateOps {
 public:
  StateOps(Pool* pool, const StateKernels& kernels) : pool_(*pool), kernels_(kernels) {}

  void inputs(const StateInputsTask& task, uint32_t thread);
  void scan(const StateScanTask& task, uint32_t thread);

 private:
  Pool& pool_;
  const StateKernels& kernels_;
};

}  // namespace oriel
