// Products of a mixture's experts with the tokens that chose them.
//
// Inputs are staged in slots of the upload ring, grouped by expert, so that each expert is a dense product with the
// vectors of its tokens. If the ring is too small, its slots are filled several times. The number of fills depends only
// on the numbers of tokens and experts, because threads that miss sections must count the fills, too (pool.h).
#pragma once

#include "cpu/matmul.h"
#include "cpu/op_groups.h"
#include "cpu/pool.h"
#include "cpu/small_ops.h"

namespace oriel_internal {

/// An op kExpertMatmul and the addresses of its bindings.
struct ExpertStack {
  ExpertMatmulPush push = {};
  WeightType type = WeightType::kF32;
  const uint32_t* weights = nullptr;
  float* out = nullptr;
  const uint32_t* slots = nullptr;  ///< null: expert e is in slot e
};

/// Stacks that run together: same inputs, and either all or none read floats.
struct ExpertGroup {
  static constexpr uint32_t kMostStacks = 24;
  ExpertStack stacks[kMostStacks];
  uint32_t n_stacks = 0;
  Routes routes = {nullptr, 0};
  uint32_t n_tokens = 0;
  bool apart = false;  ///< MatmulTask
  float* in = nullptr;
  /// If not null, inputs are computed first from these rows, by place.
  const GatedActivationPush* activation = nullptr;
  const float* gate_up = nullptr;
};

class ExpertProducts {
 public:
  ExpertProducts(Pool* pool, const MatmulKernels& matmul, const SmallKernels& small)
      : pool_(*pool), matmul_(matmul), small_(small) {}

  /// Memory that is unused by others during run().
  void setRing(uint8_t* ring, uint64_t bytes) {
    ring_ = ring;
    ring_bytes_ = bytes;
  }
  /// Bytes of the smallest ring for ops of a width and type.
  static uint64_t leastRing(WeightType type, uint32_t units);

  /// Called by every thread of the team. Leaves the last section open.
  void run(const ExpertGroup& group, uint32_t thread);

 private:
  struct Staging;
  struct Batch;
  struct Job;
  struct Pieces;

  static Staging stagingOf(const ExpertGroup& group, uint64_t ring_bytes);
  static uint32_t heldIn(const ExpertStack& stack, uint32_t expert);
  static bool held(const ExpertGroup& group, uint32_t expert);
  static Batch batchAt(const ExpertGroup& group, const Staging& staging, uint32_t number);
  void stage(const ExpertGroup& group, const Staging& staging, const Batch& batch, uint32_t thread);
  void stageSlot(const ExpertGroup& group, const Staging& staging, uint32_t slot, uint32_t place,
                 uint32_t count, bool single);
  const float* inputRow(const ExpertGroup& group, uint32_t place);
  void products(const ExpertGroup& group, const Staging& staging, const Batch& batch,
                const void* same, uint32_t thread);
  MatmulTask taskOf(const ExpertGroup& group, const Staging& staging, const ExpertStack& stack,
                    const Job& job, const void* same) const;

  Pool& pool_;
  const MatmulKernels& matmul_;
  const SmallKernels& small_;
  uint8_t* ring_ = nullptr;
  uint64_t ring_bytes_ = 0;
};

}  // namespace oriel_internal
