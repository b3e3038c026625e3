// Bounds-checked reading of numbers and strings from a GGUF file. Used by the reader only.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/checked.h"
#include "gguf/gguf.h"

namespace oriel_internal {

#if defined(__BYTE_ORDER__)
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "numbers are read from the file as they lie there: little-endian hosts only");
#endif

/// Metadata value types by their number in the file.
enum ValueType : uint32_t {
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

/// Size of a fixed-size value; 0 for strings, arrays and unknown types.
inline uint64_t fixedValueBytes(uint32_t type) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof(kBytes) ? kBytes[type] : 0;
}

template <typename T>
T loadAt(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// False if the type is not an integer. Unsigned 64-bit values above INT64_MAX set *huge.
inline bool loadInt(uint32_t type, const uint8_t* at, int64_t* value, bool* huge) {
  *huge = false;
  switch (type) {
    case kUint8:
      *value = *at;
      return true;
    case kInt8:
      *value = int64_t{loadAt<int8_t>(at)};
      return true;
    case kUint16:
      *value = loadAt<uint16_t>(at);
      return true;
    case kInt16:
      *value = loadAt<int16_t>(at);
      return true;
    case kUint32:
      *value = loadAt<uint32_t>(at);
      return true;
    case kInt32:
      *value = loadAt<int32_t>(at);
      return true;
    case kUint64:
    case kInt64:
      *value = loadAt<int64_t>(at);
      *huge = type == kUint64 && *value < 0;
      return true;
    default:
      return false;
  }
}

inline bool loadFloat(uint32_t type, const uint8_t* at, double* value) {
  if (type == kFloat32) {
    *value = static_cast<double>(loadAt<float>(at));
    return true;
  }
  if (type == kFloat64) {
    *value = loadAt<double>(at);
    return true;
  }
  return false;
}

/// A position in the file that never passes its end. A failed read leaves the position unchanged and records the needed
/// end in needed().
class Cursor {
 public:
  Cursor(const uint8_t* data, uint64_t bytes, uint64_t at) : data_(data), bytes_(bytes), at_(at) {}

  uint64_t at() const { return at_; }
  uint64_t remaining() const { return bytes_ - at_; }
  uint64_t needed() const { return needed_; }
  const uint8_t* here() const { return data_ + at_; }

  bool skip(uint64_t count) {
    if (count > remaining()) {
      needed_ = count > UINT64_MAX - at_ ? UINT64_MAX : at_ + count;
      return false;
    }
    at_ += count;
    return true;
  }
  bool skip(uint64_t count, uint64_t each_bytes) {
    uint64_t bytes = 0;
    return skip(checkedMul(count, each_bytes, &bytes) ? bytes : UINT64_MAX);
  }
  template <typename T>
  bool read(T* value) {
    const uint8_t* from = here();
    if (!skip(sizeof(T))) {
      return false;
    }
    std::memcpy(value, from, sizeof(T));
    return true;
  }
  bool readString(GgufString* string) {
    const uint64_t begin = at_;
    uint64_t bytes = 0;
    if (!read(&bytes)) {
      return false;
    }
    const uint8_t* text = here();
    if (!skip(bytes)) {
      at_ = begin;
      return false;
    }
    *string = {reinterpret_cast<const char*>(text), static_cast<size_t>(bytes)};
    return true;
  }

 private:
  const uint8_t* data_;
  uint64_t bytes_;
  uint64_t at_;
  uint64_t needed_ = 0;
};

}  // namespace oriel_internal
