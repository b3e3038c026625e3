#include "model/tensor_index.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/half.h"

namespace oriel_internal {

static_assert(kMaxTensors < UINT16_MAX, "slots are 16 bits");

Status TensorIndex::create(uint64_t n_tensors, uint32_t n_layers, const oriel_allocator& allocator,
                           const Log& log) {
  release();
  const size_t tensors_bytes = static_cast<size_t>(n_tensors) * sizeof(GgufTensor);
  const size_t slots = size_t{n_layers} * kTensorRoles;
  const size_t bytes = tensors_bytes + slots * sizeof(uint16_t);
  void* block = allocator.allocate(bytes, allocator.user);
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no %zu bytes of working memory for the list of tensors: free memory", bytes);
  }
  allocator_ = allocator;
  block_ = block;
  block_bytes_ = bytes;
  tensors_ = static_cast<GgufTensor*>(block);
  slots_ = reinterpret_cast<uint16_t*>(static_cast<uint8_t*>(block) + tensors_bytes);
  std::fill_n(slots_, slots, uint16_t{0});
  n_layers_ = n_layers;
  count_ = 0;
  capacity_ = static_cast<uint32_t>(n_tensors);
  return kOk;
}

void TensorIndex::release() {
  if (block_ != nullptr) {
    allocator_.release(block_, block_bytes_, allocator_.user);
  }
  block_ = nullptr;
  n_layers_ = count_ = capacity_ = 0;
}

void TensorIndex::add(TensorRole role, uint32_t layer, const GgufTensor& tensor) {
  if (layer < n_layers_ && count_ < capacity_) {
    new (tensors_ + count_) GgufTensor(tensor);
    slots_[layer * kTensorRoles + static_cast<uint32_t>(role)] = static_cast<uint16_t>(++count_);
  }
}

Status TensorIndex::addDraft(const TensorIndex& draft, const Log& log) {
  const size_t own_slots = size_t{n_layers_} * kTensorRoles;
  ORIEL_TRY(extend(draft.count_, draft.n_layers_, log));
  for (uint32_t i = 0; i < draft.count_; ++i) {
    GgufTensor tensor = draft.tensors_[i];
    tensor.file = kDraftFile;
    tensors_[count_ + i] = tensor;
  }
  for (size_t i = 0; i < size_t{draft.n_layers_} * kTensorRoles; ++i) {
    const uint16_t slot = draft.slots_[i];
    slots_[own_slots + i] = slot != 0 ? static_cast<uint16_t>(slot + count_) : slot;
  }
  count_ += draft.count_;
  return kOk;
}

Status TensorIndex::extend(uint64_t n_tensors, uint32_t n_layers, const Log& log) {
  if (count_ + n_tensors >= UINT16_MAX) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model and its adapters have more than %u tensors: load fewer adapters",
                    UINT16_MAX - 1);
  }
  TensorIndex both;
  ORIEL_TRY(both.create(count_ + n_tensors, n_layers_ + n_layers, allocator_, log));
  std::copy_n(tensors_, count_, both.tensors_);
  std::copy_n(slots_, size_t{n_layers_} * kTensorRoles, both.slots_);
  both.count_ = count_;
  std::swap(block_, both.block_);
  std::swap(block_bytes_, both.block_bytes_);
  std::swap(allocator_, both.allocator_);
  tensors_ = both.tensors_;
  slots_ = both.slots_;
  n_layers_ = both.n_layers_;
  count_ = both.count_;
  capacity_ = both.capacity_;
  return kOk;
}

bool TensorIndex::findName(const GgufString& name, uint32_t n_layers, TensorRole* role,
                           uint32_t* layer) const {
  for (size_t i = 0; i < size_t{n_layers} * kTensorRoles; ++i) {
    if (slots_[i] == 0) {
      continue;
    }
    const GgufString& known = tensors_[slots_[i] - 1].name;
    if (known.bytes == name.bytes && std::memcmp(known.data, name.data, name.bytes) == 0) {
      *layer = static_cast<uint32_t>(i / kTensorRoles);
      *role = static_cast<TensorRole>(i % kTensorRoles);
      return true;
    }
  }
  return false;
}

void TensorIndex::repeat(uint32_t n_layers) {
  for (size_t i = size_t{n_layers} * kTensorRoles; i < size_t{n_layers_} * kTensorRoles; ++i) {
    slots_[i] = slots_[i - size_t{n_layers} * kTensorRoles];
  }
}

void TensorIndex::tieOutput() {
  if (n_layers_ != 0) {
    slots_[static_cast<uint32_t>(TensorRole::kOutput)] =
        slots_[static_cast<uint32_t>(TensorRole::kTokenEmbedding)];
  }
}

Status readValues(const GgufFile& file, const GgufTensor& tensor, uint64_t first, uint32_t count,
                  const Log& log, double* values) {
  const TensorType type = static_cast<TensorType>(tensor.type);
  const uint32_t value_bytes = type == TensorType::kF32 ? 4 : 2;
  if (count > kMostTensorValues || (first + count) * value_bytes > tensor.bytes) {
    return log.fail(ORIEL_ERROR_INTERNAL, "tensor %s has no %u values: please report it",
                    PrintableText(tensor.name).text, count);
  }
  uint8_t room[4 * kMostTensorValues];
  const uint8_t* data = nullptr;
  ORIEL_TRY(file.read(tensor.offset + first * value_bytes, uint64_t{count} * value_bytes, room, log,
                      &data));
  for (uint32_t i = 0; i < count; ++i) {
    if (type == TensorType::kF32) {
      float value;
      std::memcpy(&value, data + 4ull * i, sizeof(value));
      values[i] = static_cast<double>(value);
    } else {
      uint16_t bits;
      std::memcpy(&bits, data + 2ull * i, sizeof(bits));
      values[i] =
          static_cast<double>(type == TensorType::kF16 ? halfToFloat(bits) : bfloat16ToFloat(bits));
    }
  }
  return kOk;
}

}  // namespace oriel_internal
