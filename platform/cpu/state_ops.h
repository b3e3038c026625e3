// Division of recurrent state work among threads. Every thread of the team calls each function.
#pragma once

#include "cpu/pool.h"
#include "cpu/state.h"

namespace oriel_internal {

class StateOps {
 public:
  StateOps(Pool* pool, const StateKernels& kernels) : pool_(*pool), kernels_(kernels) {}

  void inputs(const StateInputsTask& task, uint32_t thread);
  void scan(const StateScanTask& task, uint32_t thread);

  /// The same for `n` tokens with states of their own: taskOf(t) is the task of token t. A thread takes a piece through
  /// all tokens in order, because a token may read the state that the token before it writes.
  template <typename TaskOf>
  void inputsApart(const StateInputsPush& push, uint32_t n, const TaskOf& taskOf, uint32_t thread) {
    for (uint32_t at = pool_.claim(thread); at < stateInputParts(push); at = pool_.claim(thread)) {
      for (uint32_t t = 0; t < n; ++t) {
        kernels_.inputs(taskOf(t), at, at + 1, 0, 1);
      }
    }
  }
  template <typename TaskOf>
  void scanApart(const StateScanPush& push, uint32_t n, const TaskOf& taskOf, uint32_t thread) {
    const ScanPieces pieces = scanPieces(push, 1);
    for (uint32_t at = pool_.claim(thread); at < pieces.count; at = pool_.claim(thread)) {
      for (uint32_t t = 0; t < n; ++t) {
        scanPiece(taskOf(t), pieces, at);
      }
    }
  }

 private:
  /// Division of a step: each piece has some rows of a head.
  struct ScanPieces {
    uint32_t of_a_head;
    uint32_t rows;
    uint32_t count;
  };
  static ScanPieces scanPieces(const StateScanPush& push, uint32_t n_tokens);
  void scanPiece(const StateScanTask& task, const ScanPieces& pieces, uint32_t index) const;

  Pool& pool_;
  const StateKernels& kernels_;
};

}  // namespace oriel_internal
