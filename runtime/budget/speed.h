// How fast a plan will run: measured rates of a device (DeviceSpeed) times the work of a step. Pure.
//
// A roofline would take the slower of bytes / bandwidth and operations / compute. Rates measured with the
// library's own kernels already are the slower of the two, for each type of weights and each pair of cache
// formats, so that times just add up; what they add up from is reported (StepCost).
#pragma once

#include <cstdint>

#include "kv/memory.h"
#include "model/tensor_index.h"
#include "plan/plan.h"

namespace oriel_internal {

constexpr uint32_t kMaxSpeedWeights = 32;
constexpr uint32_t kMaxSpeedCaches = 4;

// Rates are kept in files as they lie in memory: no struct of them has padding.

/// Of matrices in one type. Nanoseconds for one weight.
struct WeightSpeed {
  uint32_t tensor_type;  ///< as GGUF numbers it
  uint32_t reserved;
  double decode_ns;       ///< of a layer, times one token
  double chunk_ns;        ///< of a chunk of tokens, and ...
  double chunk_token_ns;  ///< ... for each token of the chunk
  double head_ns;         ///< of the output matrix, times one token
};

/// Of caches in one pair of formats, in nanoseconds.
struct CacheSpeed {
  KvFormat k_format;
  KvFormat v_format;
  uint8_t reserved[6];
  double
      decode_ns;    ///< a query's head against one cached token, its key and its value, by head_dim
  double chunk_ns;  ///< the same in a chunk, for each of its tokens
  /// What rotating and storing a token takes more than in f16, by layers, query heads and head_dim; the latter in
  /// a chunk.
  double append_ns;
  double chunk_append_ns;
};

/// What was measured on one device with the kernels of one model's layers.
struct DeviceSpeed {
  char device[256];
  char driver[256];
  double submit_ns;         ///< one step, however little it does
  double dispatch_ns;       ///< one kernel of a step, however little it does
  double read_bytes_per_s;  ///< of weights, at best
  uint64_t
      shape;  ///< which layers they were measured with, which kernels and optional features: a hash
  uint32_t weight_count;
  uint32_t cache_count;
  WeightSpeed weights[kMaxSpeedWeights];
  CacheSpeed caches[kMaxSpeedCaches];
  uint32_t kernels_changed;  ///< 1: measuring found faster kernels than were used before
  uint32_t reserved;
  double
      file_bytes_per_s;  ///< experts read from the model's file and put into place; 0: not measured
};

/// What a step of `tokens` tokens is predicted to take, in seconds.
struct StepCost {
  uint32_t tokens = 0;    ///< 0: not known
  uint32_t n_views = 0;   ///< of seen
  double overhead_s = 0;  ///< submission, kernels; of one token also storing its key and value
  double weights_s =
      0;  ///< matrices of the layers (of a chunk also storing its keys and values), ...
  double weights_once_s = 0;  ///< ... of which however few tokens a chunk has
  /// Logits of one token: only steps that want them. Behind a chunk also that token's way through the layers that the
  /// chunk leaves out.
  double head_s = 0;
  double file_s = 0;  ///< of weights_s (and weights_once_s): reading what stays in the file
  struct Seen {
    uint32_t window_tokens = 0;  ///< that these layers see at most; 0: as many as the session
    double s_per_token = 0;      ///< for each token that they see
  };
  Seen seen[kMaxViews];  ///< by view
};
/// What layers see that do not see all of the session's window.
void limitSeen(const ModelDesc& model, uint32_t sinks, uint32_t window, StepCost* cost);

/// Types of matrices that one model can mix; more are rare, and then nothing is predicted.
constexpr uint32_t kMaxWorkTypes = 8;

/// What a step has to do, independent of window and formats.
struct WorkShape {
  struct Matrices {
    uint32_t tensor_type = 0;     ///< as the file numbers it
    uint64_t body_weights = 0;    ///< multiplied with every token
    uint64_t head_weights = 0;    ///< multiplied only where logits are wanted
    uint64_t expert_weights = 0;  ///< of all experts, of which a token uses its share
    uint64_t tail_weights = 0;    ///< of body_weights, those of tail_layers
  };
  Matrices matrices[kMaxWorkTypes];
  uint32_t n_matrices = 0;
  bool known = false;  ///< false: too many types, or weights that are not described
  uint32_t n_ops[kStepLists] = {};
  const ModelDesc* model = nullptr;  ///< must outlive this
  /// Layers at the end that tokens of a chunk do not pass, but those whose logits are wanted.
  uint32_t tail_layers = 0;
  uint32_t expert_count = 0;       ///< of a layer
  uint32_t expert_used = 0;        ///< by a token
  uint32_t expert_slots = 0;       ///< OnFile::expert_slots
  uint64_t expert_file_bytes = 0;  ///< of one expert of every layer, where they stay in the file
  uint64_t row_file_bytes = 0;     ///< of a token's row of a table that does

  void add(uint32_t tensor_type, uint64_t body, uint64_t head, uint64_t experts = 0);
  /// Of weights that were added, those in layers of the tail.
  void addTail(uint32_t tensor_type, uint64_t weights);
  /// Experts of a layer that a step of so many tokens is expected to use, of all of them (expert_choice.h).
  double expertShare(uint32_t tokens) const;
  /// A token's choices that are expected in a slot, of all its choices. 1: all are held.
  double expertHitRate() const;
  /// What a step reads from the file.
  double fileBytes(uint32_t tokens) const;
};

/// Matrices by the tensors of the file. `model` must outlive the result.
WorkShape workOf(const TensorIndex& tensors, const ModelDesc& model, const PlanTotals& totals);

/// Cost of a step of one token (chunk 0) or of a chunk of so many, with these formats. False when the
/// device's rates do not cover a type of weights.
bool stepCost(const DeviceSpeed& speed, const WorkShape& work, const CacheFormats& formats,
              uint32_t chunk, StepCost* cost);

/// Seconds of one step whose tokens see `depth` tokens each.
double stepSeconds(const StepCost& cost, double depth);

/// False for rates that no measurement can give: not finite, negative, counts out of range.
bool validSpeed(const DeviceSpeed& speed);

}  // namespace oriel_internal
