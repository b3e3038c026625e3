#include "fuzz/gguf_parts.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "gguf/gguf.h"

namespace oriel_internal::fuzz {
namespace {

using test::ByteWriter;
using test::ValueType;

constexpr uint64_t kMostAlignment = 65536;

/// Reads until something is not there; then nothing more.
class Reader {
 public:
  Reader(const uint8_t* bytes, size_t size) : bytes_(bytes), size_(size) {}

  bool ok() const { return ok_; }
  size_t at() const { return at_; }
  size_t left() const { return size_ - at_; }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    if (skip(bytes)) {
      std::memcpy(&value, bytes_ + at_ - bytes, bytes);
    }
    return value;
  }
  std::string text() {
    const uint64_t bytes = number(8);
    return skip(bytes) ? fuzz::text(bytes_ + at_ - bytes, static_cast<size_t>(bytes)) : "";
  }
  bool skip(uint64_t bytes) {
    ok_ = ok_ && bytes <= left();
    at_ += ok_ ? static_cast<size_t>(bytes) : 0;
    return ok_;
  }
  void skipValue(uint32_t type) {
    if (type == kTextType) {
      text();
    } else if (type == kListType) {
      const uint64_t element = number(4);
      const uint64_t count = number(8);
      for (uint64_t i = 0; element == kTextType && i < count && ok_; ++i) {
        text();
      }
      const bool fixed = element < std::size(kValueBytes) && kValueBytes[element] != 0;
      ok_ = ok_ && (element == kTextType || (fixed && count <= left()));
      skip(fixed && ok_ ? count * kValueBytes[element] : 0);
    } else {
      ok_ = ok_ && type < std::size(kValueBytes);
      skip(ok_ ? kValueBytes[type] : 0);
    }
  }

 private:
  const uint8_t* bytes_;
  size_t size_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

GgufParts::Key* GgufParts::find(const std::string& name) {
  const auto known =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return known != keys.end() ? &*known : nullptr;
}

std::string GgufParts::textOf(const std::string& name) const {
  const Key* const key = find(name);
  return key != nullptr && key->type == kTextType && key->value.size() >= 8
             ? std::string(key->value.begin() + 8, key->value.end())
             : "";
}

uint64_t GgufParts::alignment() const {
  const Key* const key = find("general.alignment");
  uint64_t value = 0;
  if (key != nullptr && key->type != kTextType && key->type != kListType) {
    std::memcpy(&value, key->value.data(), std::min<size_t>(8, key->value.size()));
  }
  return value != 0 && value <= kMostAlignment && (value & (value - 1)) == 0 ? value : 32;
}

uint64_t tensorBytes(const GgufParts::Tensor& tensor) {
  uint32_t values = 0;
  uint32_t bytes = 0;
  if (!tensorTypeSize(tensor.type, &values, &bytes) || tensor.dims.empty()) {
    return 0;
  }
  uint64_t total = tensor.dims[0] / values;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    const uint64_t times = i == 0 ? bytes : tensor.dims[i];
    if (times != 0 && total > UINT64_MAX / 2 / times) {
      return UINT64_MAX;
    }
    total *= times;
  }
  return total;
}

uint64_t GgufParts::layOut() {
  const uint64_t step = alignment();
  uint64_t end = 0;
  for (Tensor& tensor : tensors) {
    tensor.offset = end;
    const uint64_t bytes = tensorBytes(tensor);
    end = bytes > UINT64_MAX / 2 - end ? UINT64_MAX / 2 : end + bytes;
    end = (end + step - 1) / step * step;
  }
  return end;
}

GgufParts takeGgufApart(const uint8_t* bytes, size_t size) {
  GgufParts parts;
  Reader reader(bytes, size);
  reader.skip(4);
  parts.version = static_cast<uint32_t>(reader.number(4));
  const uint64_t n_tensors = reader.number(8);
  const uint64_t n_keys = reader.number(8);
  for (uint64_t i = 0; i < n_keys && reader.ok(); ++i) {
    GgufParts::Key key;
    key.name = reader.text();
    key.type = static_cast<uint32_t>(reader.number(4));
    const size_t begin = reader.at();
    reader.skipValue(key.type);
    if (reader.ok()) {
      key.value.assign(bytes + begin, bytes + reader.at());
      parts.keys.push_back(std::move(key));
    }
  }
  for (uint64_t i = 0; i < n_tensors && reader.ok(); ++i) {
    GgufParts::Tensor tensor;
    tensor.name = reader.text();
    const uint64_t n_dims = reader.number(4);
    for (uint64_t d = 0; d < n_dims && reader.ok(); ++d) {
      tensor.dims.push_back(reader.number(8));
    }
    tensor.type = static_cast<uint32_t>(reader.number(4));
    tensor.offset = reader.number(8);
    if (reader.ok()) {
      parts.tensors.push_back(std::move(tensor));
    }
  }
  parts.whole = reader.ok();
  const uint64_t step = parts.alignment();
  if (reader.ok() && reader.skip((step - reader.at() % step) % step)) {
    parts.data.assign(bytes + reader.at(), bytes + size);
  }
  return parts;
}

std::vector<uint8_t> putTogether(const GgufParts& parts) {
  ByteWriter out;
  out.bytes = {'G', 'G', 'U', 'F'};
  out.put(parts.version);
  out.put<uint64_t>(parts.tensors.size());
  out.put<uint64_t>(parts.keys.size());
  for (const GgufParts::Key& key : parts.keys) {
    out.putString(key.name);
    out.put(key.type);
    out.append(key.value);
  }
  for (const GgufParts::Tensor& tensor : parts.tensors) {
    out.putString(tensor.name);
    out.put(static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) {
      out.put(dim);
    }
    out.put(tensor.type);
    out.put(tensor.offset);
  }
  out.padTo(parts.alignment());
  out.append(parts.data);
  return out.bytes;
}

ArrayParts takeArrayApart(const GgufParts::Key& key) {
  ArrayParts array;
  Reader reader(key.value.data(), key.value.size());
  array.element_type = static_cast<uint32_t>(reader.number(4));
  array.said_count = reader.number(8);
  while (reader.ok() && reader.left() != 0 && array.element_type != kListType) {
    const size_t begin = reader.at();
    reader.skipValue(array.element_type);
    if (reader.ok()) {
      array.elements.push_back(text(key.value.data() + begin, reader.at() - begin));
    }
  }
  return array;
}

std::vector<uint8_t> arrayValue(const ArrayParts& array) {
  ByteWriter out;
  out.put(array.element_type);
  out.put(array.said_count);
  for (const std::string& element : array.elements) {
    out.bytes.insert(out.bytes.end(), element.begin(), element.end());
  }
  return out.bytes;
}

namespace {

void setKey(const std::string& name, uint32_t type, const std::vector<uint8_t>& value,
            GgufParts* parts) {
  GgufParts::Key* const key = parts->find(name);
  if (key != nullptr) {
    *key = {name, type, value};
  } else {
    parts->keys.push_back({name, type, value});
  }
}

}  // namespace

void setNumber(const std::string& name, uint32_t type, double value, GgufParts* parts) {
  ByteWriter out;
  if (type == static_cast<uint32_t>(ValueType::kFloat32)) {
    out.put(static_cast<float>(value));
  } else if (type == static_cast<uint32_t>(ValueType::kFloat64)) {
    out.put(value);
  } else {
    out.put(static_cast<int64_t>(value));
  }
  out.bytes.resize(kValueBytes[type]);
  setKey(name, type, out.bytes, parts);
}

void setText(const std::string& name, const std::string& text, GgufParts* parts) {
  ByteWriter out;
  out.putString(text);
  setKey(name, kTextType, out.bytes, parts);
}

void setList(const std::string& name, const std::vector<int32_t>& values, GgufParts* parts) {
  ByteWriter out;
  out.put(static_cast<uint32_t>(ValueType::kInt32));
  out.put<uint64_t>(values.size());
  for (const int32_t value : values) {
    out.put(value);
  }
  setKey(name, kListType, out.bytes, parts);
}

}  // namespace oriel_internal::fuzz
