// Predicts the speed of a plan: measured device rates (DeviceSpeed) times the work of a step. Pure.
//
// A roofline would take the slower of bytes / bandwidth and operations / compute. Rates measured with the library's own
// kernels already include the slower of the two, for each weight type and each pair of cache formats. Therefore the
// times simply add up; StepCost reports the parts.
#pragma once

#include <cstdint>

#include "kv/memory.h"
#include "model/keys.h"
#include "plan/plan.h"

namespace oriel_internal {

constexpr uint32_t kMaxSpeedWeights = 32;
constexpr uint32_t kMaxSpeedCaches = 4;

// Files store the bytes of these structs, so they have no padding.

/// Matrices of one type; nanoseconds per weight.
struct WeightSpeed {
  uint32_t tensor_type;  ///< GGUF's number
  uint32_t reserved;
  double decode_ns;       ///< layer matrices, one token
  double chunk_ns;        ///< a chunk of tokens, fixed part, plus ...
  double chunk_token_ns;  ///< ... this for each token of the chunk
  double head_ns;         ///< output matrix, one token
};

/// Caches in one pair of formats, in nanoseconds.
struct CacheSpeed {
  KvFormat k_format;
  KvFormat v_format;
  uint8_t reserved[6];
  double decode_ns;  ///< one query head against one cached token's key and value, per head_dim
  double chunk_ns;   ///< the same in a chunk, for each of its tokens
  /// Extra time over f16 for rotating and storing a token, per layer, query head and head_dim; the second in a chunk.
  double append_ns;
  double chunk_append_ns;
};

/// Measured on one device with the kernels for one model's layers.
struct DeviceSpeed {
  char device[256];
  char driver[256];
  double submit_ns;         ///< fixed cost of a step
  double dispatch_ns;       ///< fixed cost of a kernel in a step
  double read_bytes_per_s;  ///< peak rate of reading weights
  uint64_t shape;           ///< hash of the measured layers, kernels and optional features
  uint32_t weight_count;
  uint32_t cache_count;
  WeightSpeed weights[kMaxSpeedWeights];
  CacheSpeed caches[kMaxSpeedCaches];
  uint32_t kernels_changed;  ///< 1: the measurement found faster kernels
  uint32_t reserved;
  double file_bytes_per_s;  ///< reading experts from the model's file into their slots; 0: not
                            ///< measured
};

/// Predicted time of a step of `tokens` tokens, in seconds.
struct StepCost {
  uint32_t tokens = 0;    ///< 0: not known
  uint32_t n_views = 0;   ///< of seen
  double overhead_s = 0;  ///< submission and kernels; for one token also storing its key and value
  double weights_s = 0;   ///< layer matrices (in a chunk also storing keys and values), ...
  double weights_once_s = 0;  ///< ... the part that does not depend on the number of tokens
  /// Logits of one token, only in steps that need them. After a chunk also this token's pass through the layers that the
  /// chunk skips.
  double head_s = 0;
  double file_s = 0;  ///< part of weights_s (and weights_once_s): reading from the file
  struct Seen {
    uint32_t window_tokens = 0;  ///< most tokens these layers see; 0: as many as the session
    double s_per_token = 0;      ///< for each visible token
  };
  Seen seen[kMaxViews];  ///< by view
};
/// Limits the tokens seen by layers with a window of their own.
void limitSeen(const ModelDesc& model, uint32_t sinks, uint32_t window, StepCost* cost);

/// Most matrix types in one model. With more, nothing is predicted.
constexpr uint32_t kMaxWorkTypes = 8;

/// The work of a step, independent of window and formats.
struct WorkShape {
  struct Matrices {
    uint32_t tensor_type = 0;     ///< GGUF's number
    uint64_t body_weights = 0;    ///< multiplied for every token
    uint64_t head_weights = 0;    ///< multiplied only for logits
    uint64_t expert_weights = 0;  ///< all experts; each token uses a share
    uint64_t tail_weights = 0;    ///< the part of body_weights in tail_layers
  };
  Matrices matrices[kMaxWorkTypes];
  uint32_t n_matrices = 0;
  bool known = false;  ///< false: too many types, or unknown weights
  uint32_t n_ops[kStepLists] = {};
  const ModelDesc* model = nullptr;  ///< must outlive this
  /// Last layers that a chunk runs only for tokens with requested logits.
  uint32_t tail_layers = 0;
  uint32_t expert_count = 0;       ///< of a layer
  uint32_t expert_used = 0;        ///< by a token
  uint32_t expert_slots = 0;       ///< OnFile::expert_slots
  uint64_t expert_file_bytes = 0;  ///< one expert of every layer, if experts stay in the file
  uint64_t row_file_bytes = 0;     ///< one token's table row, if rows stay in the file

  void add(uint32_t tensor_type, uint64_t body, uint64_t head, uint64_t experts = 0);
  /// Counts weights that were already added as part of the tail.
  void addTail(uint32_t tensor_type, uint64_t weights);
  /// True if matrices of types below 6 bits a weight are more than half of the layers' bytes.
  bool isLowBit() const;
  /// The expected share of a layer's experts that a step of `tokens` tokens uses (expert_choice.h).
  double expertShare(uint32_t tokens) const;
  /// The expected share of a token's choices that are in a slot. 1: all experts are in memory.
  double expertHitRate() const;
  /// Bytes that a step reads from the file.
  double fileBytes(uint32_t tokens) const;
};

/// Sums up the matrices of the file. `model` must outlive the result.
WorkShape workOf(const TensorIndex& tensors, const ModelDesc& model, const PlanTotals& totals);

/// Cost of a step of one token (chunk 0) or of a chunk, with these formats. False if the device's rates lack a weight
/// type.
bool stepCost(const DeviceSpeed& speed, const WorkShape& work, const CacheFormats& formats,
              uint32_t chunk, StepCost* cost);

/// Seconds of one step whose tokens each see `depth` tokens.
double stepSeconds(const StepCost& cost, double depth);

/// False for rates that a measurement cannot give: not finite, negative, or counts out of range.
bool validSpeed(const DeviceSpeed& speed);

}  // namespace oriel_internal
