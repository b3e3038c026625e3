// A bounded reader of GGUF v3 files over mapped bytes.
//
// Goals: every count, offset and size is compared with the bytes that remain before anything is sized
// or read from it; nothing is copied or allocated; after open() every accessor is safe on any file.
// Not goals: writing, big-endian files, versions 1 and 2 (refused by name).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/limits.h"
#include "base/log.h"

namespace oriel {

/// Longest tensor name, as the format defines.
constexpr uint64_t kMaxTensorNameBytes = 64;
/// `general.alignment` is a power of two in this range; 32 when the file does not say.
constexpr uint64_t kMinDataAlignment = 8;
constexpr uint64_t kMaxDataAlignment = 65536;

/// Tensor element types by their number in the file. Others exist; tensorTypeName() knows their names so
/// that an error can say what was found.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIq4Nl = 20,
  kIq4Xs = 23,
  kBf16 = 30,
};

/// "Q4_K"; "unassigned" for numbers nobody has given a meaning. NUL-terminated constant.
const char* tensorTypeName(uint32_t type);
/// Values per block and bytes per block. False for a type whose size is not known here (retired or
/// newer than this build).
bool tensorTypeSize(uint32_t type, uint32_t* block_values, uint32_t* block_bytes);

/// Bytes in the mapped file; not NUL-terminated.
struct GgufString {
  const char* data = nullptr;
  size_t bytes = 0;  ///< it lies in the mapping
  bool equals(const char* text) const;  ///< `text` ends in NUL
};

/// A string from a file made fit for a message: cut after `kBytes`, anything but printable ASCII
/// replaced by '?', NUL-terminated.
struct PrintableText {
  static constexpr size_t kBytes = 95;
  explicit PrintableText(const GgufString& string);
  char text[kBytes + 1];
};

struct GgufTensor {
  GgufString name;
  uint32_t type = 0;                   ///< as in the file, see TensorType
  uint32_t n_dims = 0;
  uint64_t dims[kMaxTensorDims] = {};  ///< dims[0] is the row length (columns); unused ones are 1
  const uint8_t* data = nullptr;       ///< in the mapping; `bytes` of them are really there
  uint64_t bytes = 0;
};

/// Array of strings, floats, integers or booleans inside the file.
struct GgufArray {
  uint32_t element_type = 0;
  uint64_t count = 0;
  const uint8_t* data = nullptr;
  const uint8_t* end = nullptr;  ///< of the file: a reader stops there whatever the bytes say
};

class GgufFile {
 public:
  /// Validates everything up to the last tensor's last byte. `data` (any alignment) must outlive this
  /// object. On failure logs one line that names what is wrong and what to do (e.g. a truncated
  /// download: download it again) and returns ORIEL_ERROR_FORMAT or ORIEL_ERROR_UNSUPPORTED.
  Status open(const uint8_t* data, uint64_t bytes, const Log& log);

  // Lookups: false when the key is missing or has another type. Integers of any width and signedness
  // that hold a value in range are accepted.
  bool getUint(const char* key, uint64_t* value) const;
  bool getFloat(const char* key, double* value) const;  ///< f32 or f64
  bool getBool(const char* key, bool* value) const;
  bool getString(const char* key, GgufString* value) const;
  bool getArray(const char* key, GgufArray* value) const;
  bool has(const char* key) const;

  uint64_t tensorCount() const { return n_tensors_; }
  /// Walks tensors in file order; `cursor` starts at 0. False at the end. Names are unique.
  bool nextTensor(uint64_t* cursor, GgufTensor* tensor) const;
  bool findTensor(const char* name, GgufTensor* tensor) const;

  const uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  /// Everything before the tensor data.
  uint64_t headerBytes() const { return data_begin_; }

 private:
  Status readHeader(uint64_t* at, const Log& log);
  Status readMetadata(uint64_t* at, const Log& log);
  Status readTensors(uint64_t* at, const Log& log);
  Status checkTensorNames(const Log& log) const;
  bool findValue(const char* key, uint32_t* type, uint64_t* offset) const;

  const uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t n_keys_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t tensors_begin_ = 0;  ///< offset of the first tensor info
  uint64_t tensors_end_ = 0;    ///< offset after the last tensor info
  uint64_t data_begin_ = 0;     ///< offset of the tensor data section
  uint64_t key_offsets_[kMaxMetadataKeys] = {};
};

/// Walks the elements of an array in order; each next* is false at the end or on a type mismatch.
class GgufArrayReader {
 public:
  explicit GgufArrayReader(const GgufArray& array) : array_(array), at_(array.data) {}
  bool nextString(GgufString* value);
  bool nextFloat(float* value);
  bool nextInt(int64_t* value);
  bool nextBool(bool* value);

 private:
  GgufArray array_;
  const uint8_t* at_;
  uint64_t index_ = 0;
};

}  // namespace oriel
