// Draft models: which properties must match the target, and which KV caches of the target the draft reads.
#pragma once

#include "base/log.h"
#include "model/architecture.h"
#include "model/keys.h"

namespace oriel_internal {

/// Makes `draft`, from readDraftDesc(), the draft model of `target`. Draft layers that slide read the KV cache of the
/// target's last sliding layer; the others read the target's last full layer. ORIEL_ERROR_FORMAT if the two do not match.
/// Adds the draft's tensors to `tensors` of the target.
Status joinDraft(const ModelDesc& draft, const TensorIndex& draft_tensors, const Log& log,
                 ModelDesc* target, TensorIndex* tensors);

// Encoders: models that read a whole text and return a vector or scores.

/// Call after readLayers(). Sets the text view of the layers and reads the sizes of the heads after them.
Status readEncoder(const GgufFile& file, const Architecture& architecture, const Log& log,
                   ModelDesc* desc);

// Adapters of a model: low-rank matrix changes (LoRA) and vectors added to the output of layers (control vectors).
//
// y = W x + gate * B (A x); a layer's output += gate * direction. A gate is the adapter's scale, which a session chooses,
// times a constant of the tensor. The step block holds the gates of each token, so that every token can have its own.

constexpr uint32_t kMaxAdapters = 16;
constexpr uint32_t kMaxAdapterGates = 64;
constexpr uint32_t kMaxInvocation = 64;
/// The columns of a pair's thin vector are padded to a multiple of this, because each gets a buffer binding.
constexpr uint32_t kThinColumns = kBufferAlignment / sizeof(float);

struct Adapter {
  char name[64] = "";  ///< file name without folder and ".gguf"
  float scale = 1;     ///< default scale of a session
  float alpha = 0;
  bool is_control = false;
  float stream_factor = 1;  ///< control vector: scale of the residual stream
  /// Activated LoRA: active from the last occurrence of these tokens on. 0: active on every token.
  uint32_t n_invocation = 0;
  int32_t invocation[kMaxInvocation] = {};
  uint64_t hash = 0;  ///< hash of the file
};

/// Factor of an adapter's products: the adapter's scale times `factor`.
struct AdapterGate {
  uint32_t adapter = 0;
  float factor = 1;
};

struct Adapters {
  /// In the TensorIndex the matrices A of adapter i start at layer first_layer + 2 i n_layers, with the roles and layer
  /// order of the model. B follows n_layers later. A control vector takes the place of A, with the role kDirection.
  uint32_t layerOf(uint32_t adapter, uint32_t half, uint32_t layer) const {
    return first_layer + (2 * adapter + half) * n_layers + layer % file_layers;
  }
  /// Index of this gate, which must exist.
  uint32_t gateOf(uint32_t adapter, float factor) const;
  /// Constant of a pair of this rank: alpha / rank, or 1 without alpha.
  float factorOf(uint32_t adapter, uint64_t rank) const {
    return list[adapter].alpha != 0 ? list[adapter].alpha / static_cast<float>(rank) : 1.0f;
  }
  /// Index of the adapter with this name, or `count` if the model has none.
  uint32_t find(const char* name, size_t bytes) const;
  /// Words of a token's gates in the step block, an even number.
  uint32_t gateWords() const { return (n_gates + 1) / 2 * 2; }

  uint32_t count = 0;
  uint32_t first_layer = 0;
  uint32_t n_layers = 1;
  uint32_t file_layers = 1;  ///< of the model's file: all passes share adapters
  uint32_t most_rank = 0;
  uint32_t most_expert_rank = 0;
  uint32_t n_gates = 0;
  AdapterGate gates[kMaxAdapterGates];
  Adapter list[kMaxAdapters];
};

/// Checks an adapter's file against the model, and adds its tensors to `tensors` with `file` as GgufTensor::file. Needs
/// the header of the model's file. ORIEL_ERROR_FORMAT or _UNSUPPORTED, with a line that names the tensor and both shapes.
Status readAdapter(const GgufFile& adapter, const GgufFile& base, const ModelDesc& desc,
                   bool is_control, const uint32_t (&range)[2], uint32_t file, const Log& log,
                   Adapters* adapters, TensorIndex* tensors);

}  // namespace oriel_internal
