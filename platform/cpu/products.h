// Matrix products of a step, divided among the threads of a team: dense layers and experts.
#pragma once

#include "cpu/cpu_executor.h"
#include "cpu/kernels.h"
#include "cpu/ops.h"
#include "cpu/pool.h"
#include "exec/host_executor.h"

namespace oriel_internal {

// Products of kMatmul ops with the vectors of a step's tokens.
//
// Activations are staged in the upload ring, which is otherwise unused while ops run. For one token, each thread stages
// its own row if there is room. Otherwise all threads share tiles, and the ring limits the number of tiles at a time.

/// Ops that read the same vectors or later columns of the same rows, and do not write each other's inputs or outputs.
struct ProductGroup {
  const Op* ops = nullptr;
  uint32_t n_ops = 0;
  const float* in = nullptr;  ///< vector of one token for this thread, as the first op reads it
  uint32_t n_tokens = 0;
  bool apart = false;  ///< MatmulTask
};

class Products {
 public:
  /// `memory`: resolves the ops' bindings.
  Products(const HostExecutor& memory, Pool* pool, const MatmulKernels& matmul)
      : memory_(memory), pool_(*pool), matmul_(matmul) {}

  /// Memory that is unused by others during run(); `units`: of the widest op; `private_cols`: of the widest
  /// privateInput(). The pool has been started.
  void setRing(uint8_t* ring, uint64_t bytes, uint32_t units, uint32_t private_cols);
  /// Bytes of the smallest ring for ops of a width.
  static uint64_t leastRing(uint32_t units);

  /// True if the ring holds a row per thread, as floats and staged: each thread can compute one token's vector itself.
  bool privateRows() const { return private_rows_; }
  /// Location of this vector. Values after `cols` are zero, because products read whole units.
  float* privateInput(uint32_t thread, uint32_t cols) const;

  /// Called by every thread of the team. Leaves the last section open.
  void run(const ProductGroup& group, uint32_t thread);

 private:
  MatmulTask taskOf(const Op& op, uint32_t n_tokens) const;
  void runOne(const ProductGroup& group, const Op* quantised, uint32_t thread);
  void runRows(const ProductGroup& group, uint32_t units, uint32_t thread);
  void runTiles(const ProductGroup& group, uint32_t units, uint32_t thread);
  void shareRows(const ProductGroup& group, uint32_t n_tokens, const uint8_t* staged,
                 uint32_t thread, uint32_t first_token = 0);
  uint32_t pieceOf(uint32_t left) const;

  const HostExecutor& memory_;
  Pool& pool_;
  const MatmulKernels& matmul_;
  uint8_t* ring_ = nullptr;
  uint64_t row_bytes_ = 0;      // of a staged row of integers
  uint64_t private_bytes_ = 0;  // of a thread's own row, staged and as floats
  uint32_t most_tiles_ = 0;     // rows of tiles of the widest matmul that fit the ring
  bool private_rows_ = false;   // the ring holds one per thread
};

// Products of each head with its own matrix. Bytes moved: the weights once for every kTileTokens tokens, from a
// cache that holds one head's matrix; two operations per weight and token.

/// An op kHeadMatmul and the addresses of its bindings.
struct HeadTask {
  HeadMatmulPush push = {};
  WeightType type = WeightType::kF32;
  const uint32_t* weights = nullptr;
  const float* in = nullptr;
  float* out = nullptr;
  uint32_t n_tokens = 0;
  bool apart = false;  ///< MatmulTask
};

/// Memory that is unused by others during the call.
struct HeadRing {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
};

/// Called by every thread of the team. Leaves the section open.
void runHeads(const HeadTask& task, const MatmulKernels& matmul, const HeadRing& ring, Pool* pool,
              uint32_t thread);

// Products of a mixture's experts with the tokens that chose them.
//
// Inputs are staged in slots of the upload ring, grouped by expert, so that each expert is a dense product with the
// vectors of its tokens. If the ring is too small, its slots are filled several times. The number of fills depends only
// on the numbers of tokens and experts, because threads that miss sections must count the fills, too (pool.h).

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
