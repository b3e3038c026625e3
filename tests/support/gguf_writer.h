// 64-byte aligned blocks, as required of an app's allocator. Not aligned_alloc, which Windows lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

namespace oriel_internal::test {

/// nullptr: out of memory.
inline void* alignedBlock(size_t bytes) {
  return ::operator new (bytes, std::align_val_t{64}, std::nothrow);
}
inline void freeAligned(void* block) { ::operator delete (block, std::align_val_t{64}); }

// Writes GGUF v3 files into memory, valid or deliberately broken. Tests only.

/// Value types of the metadata section, by their number in the file.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

/// Appends little-endian bytes.
class ByteWriter {
 public:
  template <typename T>
  void put(T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
  void putString(const std::string& text) {
    put<uint64_t>(text.size());
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  /// Numbers in memory format.
  template <typename T>
  void putAll(const std::vector<T>& values) {
    const size_t at = bytes.size();
    bytes.resize(at + values.size() * sizeof(T));
    if (!values.empty()) {
      std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
    }
  }
  void append(const std::vector<uint8_t>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  void padTo(uint64_t alignment) {
    while (bytes.size() % alignment != 0) {
      bytes.push_back(0);
    }
  }
  std::vector<uint8_t> bytes;
};

/// Keys and tensors keep their order of insertion. Setting one again replaces it in place (addRaw and addTensor with
/// `twice` write it a second time).
class GgufWriter {
 public:
  struct Key {
    std::string name;
    uint32_t type;
    std::vector<uint8_t> value;  ///< everything after the type number
  };
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> dims;
    std::vector<uint8_t> data;
  };
  /// As they will be written.
  std::vector<Key>& keys() { return keys_; }
  std::vector<Tensor>& tensors() { return tensors_; }

  // Header fields, for tests of broken files to overwrite.
  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  ///< of the tensor data; written as a key unless 32
  bool pad_last = true;     ///< pads the last tensor, too, like the usual writers

  template <typename T>
  void addNumber(const std::string& key, ValueType type, T value) {
    ByteWriter out;
    out.put(value);
    addRaw(key, static_cast<uint32_t>(type), out.bytes);
  }
  void addUint32(const std::string& key, uint32_t value) {
    addNumber(key, ValueType::kUint32, value);
  }
  void addUint64(const std::string& key, uint64_t value) {
    addNumber(key, ValueType::kUint64, value);
  }
  void addInt32(const std::string& key, int32_t value) { addNumber(key, ValueType::kInt32, value); }
  void addFloat32(const std::string& key, float value) {
    addNumber(key, ValueType::kFloat32, value);
  }
  void addFloat64(const std::string& key, double value) {
    addNumber(key, ValueType::kFloat64, value);
  }
  void addBool(const std::string& key, bool value) {
    addNumber<uint8_t>(key, ValueType::kBool, value ? 1 : 0);
  }
  void addString(const std::string& key, const std::string& value) {
    ByteWriter out;
    out.putString(value);
    addRaw(key, static_cast<uint32_t>(ValueType::kString), out.bytes);
  }
  void addStrings(const std::string& key, const std::vector<std::string>& values) {
    ByteWriter out = arrayHead(ValueType::kString, values.size());
    for (const std::string& value : values) {
      out.putString(value);
    }
    addRaw(key, static_cast<uint32_t>(ValueType::kArray), out.bytes);
  }
  template <typename T>
  void addArray(const std::string& key, ValueType type, const std::vector<T>& values) {
    ByteWriter out = arrayHead(type, values.size());
    out.putAll(values);
    addRaw(key, static_cast<uint32_t>(ValueType::kArray), out.bytes);
  }
  void addInt32s(const std::string& key, const std::vector<int32_t>& values) {
    addArray(key, ValueType::kInt32, values);
  }
  void addBools(const std::string& key, const std::vector<uint8_t>& values) {
    addArray(key, ValueType::kBool, values);
  }
  void addFloat32s(const std::string& key, const std::vector<float>& values) {
    addArray(key, ValueType::kFloat32, values);
  }
  /// `value` is everything after the type number; it may be invalid.
  void addRaw(const std::string& key, uint32_t type, const std::vector<uint8_t>& value,
              bool twice = false) {
    Key* known = twice ? nullptr : findNamed(&keys_, key);
    if (known != nullptr) {
      *known = {key, type, value};
      return;
    }
    keys_.push_back({key, type, value});
  }
  void removeKey(const std::string& key) { removeNamed(&keys_, key); }

  /// dims[0] is the row length. `data` is written unchanged, whatever the dims.
  void addTensor(const std::string& name, uint32_t type, const std::vector<uint64_t>& dims,
                 const std::vector<uint8_t>& data, bool twice = false) {
    Tensor* known = twice ? nullptr : findNamed(&tensors_, name);
    if (known != nullptr) {
      *known = {name, type, dims, data};
      return;
    }
    tensors_.push_back({name, type, dims, data});
  }
  void addTensorF32(const std::string& name, const std::vector<uint64_t>& dims,
                    const std::vector<float>& values) {
    ByteWriter out;
    out.putAll(values);
    addTensor(name, 0, dims, out.bytes);
  }
  void removeTensor(const std::string& name) { removeNamed(&tensors_, name); }
  /// Writes `offset` instead of the tensor's real offset.
  void setTensorOffset(const std::string& name, uint64_t offset) { offsets_[name] = offset; }
  /// Writes these counts instead of the real ones.
  void setCounts(uint64_t n_tensors, uint64_t n_keys) {
    counts_overridden_ = true;
    n_tensors_ = n_tensors;
    n_keys_ = n_keys;
  }

  std::vector<uint8_t> build() const {
    std::vector<Key> keys = keys_;
    if (alignment != 32) {
      ByteWriter value;
      value.put(static_cast<uint32_t>(alignment));
      keys.push_back({"general.alignment", static_cast<uint32_t>(ValueType::kUint32), value.bytes});
    }
    ByteWriter out;
    out.bytes.assign(magic.begin(), magic.end());
    out.put(version);
    out.put<uint64_t>(counts_overridden_ ? n_tensors_ : tensors_.size());
    out.put<uint64_t>(counts_overridden_ ? n_keys_ : keys.size());
    for (const Key& key : keys) {
      out.putString(key.name);
      out.put(key.type);
      out.append(key.value);
    }
    uint64_t data_bytes = 0;
    for (const Tensor& tensor : tensors_) {
      data_bytes = aligned(data_bytes);
      out.putString(tensor.name);
      out.put(static_cast<uint32_t>(tensor.dims.size()));
      for (const uint64_t dim : tensor.dims) {
        out.put(dim);
      }
      out.put(tensor.type);
      const auto offset = offsets_.find(tensor.name);
      out.put<uint64_t>(offset != offsets_.end() ? offset->second : data_bytes);
      data_bytes += tensor.data.size();
    }
    if (!tensors_.empty()) {
      out.bytes.reserve(static_cast<size_t>(aligned(out.bytes.size()) + aligned(data_bytes)));
      out.padTo(alignment);
      for (const Tensor& tensor : tensors_) {
        out.padTo(alignment);
        out.append(tensor.data);
      }
      if (pad_last) {
        out.padTo(alignment);
      }
    }
    return std::move(out.bytes);
  }

 private:
  uint64_t aligned(uint64_t bytes) const { return (bytes + alignment - 1) / alignment * alignment; }
  static ByteWriter arrayHead(ValueType type, uint64_t count) {
    ByteWriter out;
    out.put(static_cast<uint32_t>(type));
    out.put(count);
    return out;
  }
  template <typename T>
  static T* findNamed(std::vector<T>* items, const std::string& name) {
    for (T& item : *items) {
      if (item.name == name) {
        return &item;
      }
    }
    return nullptr;
  }
  template <typename T>
  static void removeNamed(std::vector<T>* items, const std::string& name) {
    for (auto item = items->begin(); item != items->end();) {
      item = item->name == name ? items->erase(item) : item + 1;
    }
  }

  std::vector<Key> keys_;
  std::vector<Tensor> tensors_;
  std::map<std::string, uint64_t> offsets_;
  bool counts_overridden_ = false;
  uint64_t n_tensors_ = 0;
  uint64_t n_keys_ = 0;
};

}  // namespace oriel_internal::test
