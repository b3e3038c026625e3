// Numbers and tensors of a model file by name.
#pragma once

#include <cstdint>
#include <cstdio>

#include "base/arena.h"
#include "base/checked.h"
#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"
#include "model/model_desc.h"

namespace oriel_internal {

// Numbers in a model's metadata, "<architecture>.<suffix>".

/// "llama.block_count". Longer than the longest architecture and suffix in the tables.
struct KeyName {
  KeyName() : text{} {}
  KeyName(const Architecture& architecture, const char* suffix) {
    std::snprintf(text, sizeof(text), "%s.%s", architecture.name, suffix);
  }
  char text[96];
};

/// The error for a missing required key.
Status missingKey(const char* key, const Log& log);

/// Fails for a count outside `minimum` to `maximum`, the limits of this build.
Status checkRange(const char* key, uint64_t value, uint32_t minimum, uint32_t maximum,
                  const Log& log);

/// Fails if a list does not have one entry per layer.
Status checkPerLayer(const char* key, const GgufArray& list, uint32_t n_layers, const Log& log);

/// Reads a whole number, or an array that repeats one number for every layer.
Status readCount(const GgufFile& file, const char* key, const Log& log, uint64_t* value);

/// A whole number per layer: a scalar for all layers, or an array.
class LayerCounts {
 public:
  /// `minimum` to `maximum`: limits of this build.
  Status open(const GgufFile& file, const Architecture& architecture, const char* suffix,
              uint32_t n_layers, uint32_t minimum, uint32_t maximum, const Log& log);
  bool present() const { return present_; }
  /// Reads the next layer's value. Call at most n_layers times, and only if present().
  Status next(const Log& log, uint32_t* value);

 private:
  KeyName key_;
  bool present_ = false;
  bool is_array_ = false;
  uint64_t value_ = 0;
  GgufArrayReader reader_{GgufArray()};
  uint32_t minimum_ = 0;
  uint32_t maximum_ = 0;
};

/// Reads all model-wide counts.
Status readCounts(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc);

enum class Need : uint8_t { kOptional, kRequired };

/// Reads a model-wide count. Leaves `*count` unchanged if an optional key is missing.
Status readModelCount(const GgufFile& file, const Architecture& architecture, const char* suffix,
                      Need need, uint32_t minimum, uint32_t maximum, const Log& log,
                      uint32_t* count);

/// Reads a positive, finite number. Leaves `*value` unchanged if an optional key is missing.
Status readReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                Need need, const Log& log, double* value);

/// Like readReal, but 0 means "not scaled", as some converters write.
Status readScale(const GgufFile& file, const Architecture& architecture, const char* suffix,
                 Need need, const Log& log, double* value);

/// Reads a positive whole number. Leaves `*value` unchanged if the key is missing.
Status readCountAsReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                       const Log& log, double* value);

// Scaled RoPE of a file, reduced to tables of divisors.

/// Fills in bases, scaling and factors of rotations, but not the layers without RoPE. Needs the counts and
/// checked tensors. ORIEL_ERROR_FORMAT if numbers or factors are missing, not positive or not finite;
/// ORIEL_ERROR_UNSUPPORTED for unknown kinds of scaling.
Status readRope(const GgufFile& file, const Architecture& architecture, const TensorIndex& tensors,
                const Log& log, ModelDesc* desc);

// Index of a model's tensors. Each name of the file is looked up once, when the model is described.

inline constexpr GgufTensor kNoTensor = {};

/// Owns allocated memory until destruction; must not outlive the allocator.
class TensorIndex {
 public:
  TensorIndex() = default;
  TensorIndex(const TensorIndex&) = delete;
  TensorIndex& operator=(const TensorIndex&) = delete;
  ~TensorIndex() { release(); }

  /// Allocates room for `n_tensors` tensors and `n_layers` layers. ORIEL_ERROR_OUT_OF_MEMORY.
  Status create(uint64_t n_tensors, uint32_t n_layers, const oriel_allocator& allocator,
                const Log& log);
  void release();
  /// Adds a tensor. There must be room, and the role must be free in the layer (0 for roles outside the layers).
  void add(TensorRole role, uint32_t layer, const GgufTensor& tensor);
  /// Makes every later layer share the tensors of the first `n_layers` layers, in rotation.
  void repeat(uint32_t n_layers);
  /// Uses the embedding as the output matrix, if the model has no separate one.
  void tieOutput();
  /// Adds the tensors of a draft model as layers after the model's own. ORIEL_ERROR_OUT_OF_MEMORY.
  Status addDraft(const TensorIndex& draft, const Log& log);
  /// Allocates room for more tensors and empty layers. ORIEL_ERROR_OUT_OF_MEMORY.
  Status extend(uint64_t n_tensors, uint32_t n_layers, const Log& log);
  /// Finds a tensor by name: its first role, and its layer, which is below `n_layers`. False if the name is unknown.
  bool findName(const GgufString& name, uint32_t n_layers, TensorRole* role, uint32_t* layer) const;

  bool has(TensorRole role, uint32_t layer = 0) const { return slot(role, layer) != 0; }
  /// An empty tensor (0 bytes) if the role is not filled.
  const GgufTensor& find(TensorRole role, uint32_t layer = 0) const {
    const uint16_t index = slot(role, layer);
    return index != 0 ? tensors_[index - 1] : kNoTensor;
  }
  /// Tensors in the order in which they were added.
  uint32_t count() const { return count_; }
  uint32_t layerCount() const { return n_layers_; }

 private:
  uint16_t slot(TensorRole role, uint32_t layer) const {
    return layer < n_layers_ && role != kNoRole
               ? slots_[layer * kTensorRoles + static_cast<uint32_t>(role)]
               : uint16_t{0};
  }

  oriel_allocator allocator_ = {};
  void* block_ = nullptr;
  size_t block_bytes_ = 0;
  GgufTensor* tensors_ = nullptr;
  uint16_t* slots_ = nullptr;  ///< [n_layers][kTensorRoles]: 1 + index; 0: none
  uint32_t n_layers_ = 0;
  uint32_t count_ = 0;
  uint32_t capacity_ = 0;
};

// Reads single values of a small float tensor: biases, norms, factors.

/// Upper limit of one call.
constexpr uint32_t kMostTensorValues = kMaxHeadDim;

/// Reads `count` <= kMostTensorValues values from index `first` on. The tensor must be F32, F16 or BF16 and have
/// these values. ORIEL_ERROR_IO as GgufFile::read.
Status readValues(const GgufFile& file, const GgufTensor& tensor, uint64_t first, uint32_t count,
                  const Log& log, double* values);

}  // namespace oriel_internal
