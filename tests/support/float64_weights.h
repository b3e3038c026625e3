// Keys and dequantised tensors of a model file, for float64 references. Shares only the GGUF reader with the library;
// unreadable data is an exception. Tests only.
#pragma once

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "gguf/gguf.h"
#include "support/files.h"

namespace oriel_internal::test {

inline std::vector<double> part(const std::vector<double>& x, size_t first, size_t count) {
  const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
  return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

/// `rows` rows of a matrix times a vector of `cols` values. Four independent sums at a time.
inline std::vector<double> rowsTimes(const double* matrix, size_t rows, const double* x,
                                     size_t cols) {
  std::vector<double> y(rows);
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const double* const a = matrix + r * cols;
    const double* const b = a + cols;
    const double* const c = b + cols;
    const double* const d = c + cols;
    double sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
    for (size_t i = 0; i < cols; ++i) {
      sum_a += a[i] * x[i];
      sum_b += b[i] * x[i];
      sum_c += c[i] * x[i];
      sum_d += d[i] * x[i];
    }
    y[r] = sum_a;
    y[r + 1] = sum_b;
    y[r + 2] = sum_c;
    y[r + 3] = sum_d;
  }
  for (; r < rows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < cols; ++i) {
      sum += matrix[r * cols + i] * x[i];
    }
    y[r] = sum;
  }
  return y;
}

class Float64Weights {
 public:
  explicit Float64Weights(const std::string& path) : bytes_(readBytes(path)) {
    if (!file_.open(bytes_.data(), bytes_.size(), Log()).ok()) {
      throw std::runtime_error("cannot read " + path);
    }
    architecture_ = text("general.architecture", "");
    if (architecture_.empty()) {
      throw std::runtime_error("no architecture in " + path);
    }
  }

  const std::string& architecture() const { return architecture_; }

  // Keys are named without the architecture prefix.
  size_t number(const std::string& suffix) const {
    uint64_t value = 0;
    if (!file_.getUint(key(suffix).c_str(), &value)) {
      throw std::runtime_error(key(suffix));
    }
    return value;
  }
  size_t number(const std::string& suffix, size_t otherwise) const {
    uint64_t value = 0;
    return file_.getUint(key(suffix).c_str(), &value) ? value : otherwise;
  }
  double real(const std::string& suffix, double otherwise) const {
    double value = 0;
    return file_.getFloat(key(suffix).c_str(), &value) ? value : otherwise;
  }
  bool flag(const std::string& suffix, bool otherwise) const {
    bool value = false;
    return file_.getBool(key(suffix).c_str(), &value) ? value : otherwise;
  }
  std::string scalingType() const { return text(key("rope.scaling.type"), "linear"); }
  /// One number per layer, from an array or a single number.
  std::vector<size_t> numbers(const std::string& suffix, size_t n_layers) const {
    GgufArray array;
    if (!file_.getArray(key(suffix).c_str(), &array)) {
      return std::vector<size_t>(n_layers, number(suffix));
    }
    std::vector<size_t> values;
    GgufArrayReader reader(array);
    for (int64_t value = 0; reader.nextInt(&value);) {
      values.push_back(static_cast<size_t>(value));
    }
    if (values.size() != n_layers) {
      throw std::runtime_error(key(suffix) + " has another length");
    }
    return values;
  }

  std::vector<bool> flags(const std::string& suffix) const {
    GgufArray array;
    (void)file_.getArray(key(suffix).c_str(), &array);
    std::vector<bool> values;
    GgufArrayReader reader(array);
    for (bool value = false; reader.nextBool(&value);) {
      values.push_back(value);
    }
    return values;
  }

  /// Adds `scale` times an adapter's products to the matrices, as merged weights have them. Not for token_embd, whose
  /// adapter changes the lookup only.
  void adapt(const std::string& path, double scale) {
    Float64Weights adapter(path);
    double alpha = 0;
    (void)adapter.file_.getFloat("adapter.lora.alpha", &alpha);
    GgufTensor half;
    for (uint64_t cursor = 0; adapter.file_.nextTensor(&cursor, &half);) {
      const std::string name(half.name.data, half.name.bytes);
      const size_t end = name.rfind(".lora_b");
      if (end == std::string::npos) {
        continue;
      }
      const std::string matrix = name.substr(0, end);
      if (matrix == "token_embd.weight") {
        throw std::runtime_error(matrix);
      }
      const size_t rank = half.dims[0];
      const size_t rows = half.dims[1];
      const std::vector<double>& a = adapter[matrix + ".lora_a"];
      const std::vector<double>& b = adapter[name];
      (void)(*this)[matrix];
      std::vector<double>& w = values_[matrix];
      const size_t cols = w.size() / (b.size() / rank);
      const double factor = alpha != 0 ? scale * alpha / static_cast<double>(rank) : scale;
      for (size_t row = 0; row < w.size() / cols; ++row) {  // of all experts
        for (size_t i = 0; i < rank; ++i) {
          const double by = factor * b[row * rank + i];
          const double* const of = a.data() + (row / rows * rank + i) * cols;
          for (size_t c = 0; c < cols; ++c) {
            w[row * cols + c] += by * of[c];
          }
        }
      }
    }
  }

  bool has(const std::string& name) const {
    const auto known = has_.find(name);
    if (known != has_.end()) {
      return known->second;
    }
    GgufTensor tensor;
    return has_[name] = file_.findTensor(name.c_str(), &tensor);
  }

  const std::vector<double>& operator[](const std::string& name) {
    const auto found = values_.find(name);
    return found != values_.end() ? found->second : values_[name] = dequantised(name);
  }
  /// The matrix times a vector; rows have the vector's length.
  std::vector<double> product(const std::string& name, const std::vector<double>& x) {
    const std::vector<double>& w = (*this)[name];
    return rowsTimes(w.data(), w.size() / x.size(), x.data(), x.size());
  }

 private:
  std::string key(const std::string& suffix) const { return architecture_ + "." + suffix; }
  std::string text(const std::string& name, const std::string& otherwise) const {
    GgufString value;
    return file_.getString(name.c_str(), &value) ? std::string(value.data, value.bytes) : otherwise;
  }

  static double halfValue(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const int mantissa = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                         : sign * std::ldexp(1024 + mantissa, exponent - 25);
  }

  std::vector<double> dequantised(const std::string& name) const {
    GgufTensor tensor;
    if (!file_.findTensor(name.c_str(), &tensor)) {
      throw std::runtime_error(name);
    }
    size_t count = 1;
    for (uint32_t d = 0; d < tensor.n_dims; ++d) {
      count *= tensor.dims[d];
    }
    std::vector<double> values(count);
    const auto u16 = [&](size_t offset) {
      uint16_t value;
      std::memcpy(&value, bytes_.data() + tensor.offset + offset, 2);
      return value;
    };
    for (size_t i = 0; i < count; ++i) {
      switch (tensor.type) {
        case 0: {
          float value;
          std::memcpy(&value, bytes_.data() + tensor.offset + 4 * i, 4);
          values[i] = value;
          break;
        }
        case 1:
          values[i] = halfValue(u16(2 * i));
          break;
        case 30: {
          const uint32_t bits = static_cast<uint32_t>(u16(2 * i)) << 16;
          float value;
          std::memcpy(&value, &bits, 4);
          values[i] = value;
          break;
        }
        case 8:
          values[i] = halfValue(u16(i / 32 * 34)) *
                      static_cast<int8_t>(bytes_[tensor.offset + i / 32 * 34 + 2 + i % 32]);
          break;
        case 2: {
          const uint8_t byte = bytes_[tensor.offset + i / 32 * 18 + 2 + i % 16];
          const int nibble = i % 32 < 16 ? byte & 15 : byte >> 4;
          values[i] = halfValue(u16(i / 32 * 18)) * (nibble - 8);
          break;
        }
        default:
          throw std::runtime_error("tensor type");
      }
    }
    return values;
  }

  std::vector<uint8_t> bytes_;
  GgufFile file_;
  std::string architecture_;
  std::unordered_map<std::string, std::vector<double>> values_;
  mutable std::unordered_map<std::string, bool> has_;  ///< cached answers: a file is searched once
};

}  // namespace oriel_internal::test
