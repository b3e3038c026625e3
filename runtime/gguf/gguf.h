// GGUF files: the reader of headers, and a model file on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/checked.h"
#include "base/log.h"
#include "base/steps.h"
#include "os/os.h"

namespace oriel_internal {

// A bounds-checked reader of GGUF files, versions 2 and 3: the header in memory, tensor data in memory or on disk.
//
// Goals: every count, offset and size is checked against the remaining bytes before use; nothing is copied or
// allocated; after open() every accessor is safe on any file. Non-goals: writing, big-endian files, version 1 and parts
// of split models (refused by name).

class InputFile;  // os/os.h

/// Longest tensor name, as the format defines.
constexpr uint64_t kMaxTensorNameBytes = 64;
/// `general.alignment` is a power of two in this range; 32 if the file does not set it.
constexpr uint64_t kMinDataAlignment = 8;
constexpr uint64_t kMaxDataAlignment = 65536;

/// Tensor element types by their number in the file. tensorTypeName() also names other types, for error lines.
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
  kIq2Xxs = 16,
  kIq2Xs = 17,
  kIq3Xxs = 18,
  kIq4Nl = 20,
  kIq3S = 21,
  kIq2S = 22,
  kIq4Xs = 23,
  kBf16 = 30,
  kTq1_0 = 34,
  kTq2_0 = 35,
  kMxfp4 = 39,
  kNvfp4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

/// "Q4_K"; "unassigned" for undefined numbers. NUL-terminated constant.
const char* tensorTypeName(uint32_t type);
/// Values per block and bytes per block. False if the size is unknown here (retired type, or newer than this build).
bool tensorTypeSize(uint32_t type, uint32_t* block_values, uint32_t* block_bytes);

/// Bytes of the header; not NUL-terminated.
struct GgufString {
  const char* data = nullptr;
  size_t bytes = 0;
  bool equals(const char* text) const;  ///< `text` is NUL-terminated
};

/// A string from a file, made printable: truncated after `kBytes`, with '?' for anything but printable ASCII.
/// NUL-terminated.
struct PrintableText {
  static constexpr size_t kBytes = 95;
  explicit PrintableText(const GgufString& string);
  char text[kBytes + 1];
};

struct GgufTensor {
  GgufString name;
  uint32_t type = 0;  ///< GGUF's number, see TensorType
  uint32_t n_dims = 0;
  uint64_t dims[kMaxTensorDims] = {};  ///< dims[0] is the row length (columns); unused ones are 1
  uint64_t offset = 0;                 ///< of the data, from the start of the file
  uint64_t bytes = 0;                  ///< offset + bytes lies within the file; 0: no such tensor
  uint32_t file = 0;  ///< file of the model: 0, kDraftFile for the draft model, or an adapter's
};
constexpr uint32_t kDraftFile = 1;
constexpr uint32_t kAdapterFile = 2;  ///< of the first adapter; the others follow

/// Array of strings, floats, integers or booleans inside the file.
struct GgufArray {
  uint32_t element_type = 0;
  uint64_t count = 0;
  const uint8_t* data = nullptr;
  const uint8_t* end = nullptr;  ///< end of the bytes in memory, where readers stop
};

class GgufFile {
 public:
  /// Validates the file up to the last byte of the last tensor. `data` (any alignment) is the whole file; it must
  /// outlive this object and must not be written to. On failure logs one line with the fault and the remedy (e.g. a
  /// truncated download: download it again) and returns ORIEL_ERROR_FORMAT or ORIEL_ERROR_UNSUPPORTED.
  Status open(const uint8_t* data, uint64_t bytes, const Log& log);
  /// The same for a file with only its first `bytes` in memory. `input` must outlive this object, too. If the header is
  /// longer, it logs nothing, sets *wanted to its minimum size (else 0) and returns ORIEL_ERROR_BUFFER_TOO_SMALL. Only
  /// tensor data is read from `input`, so all accessors stay stable if the file changes.
  Status open(const InputFile& input, const uint8_t* data, uint64_t bytes, const Log& log,
              uint64_t* wanted);
  /// For a split model: the number of its files, else 1, and the index of this file, from 0.
  uint64_t partCount() const;
  uint64_t partNumber() const;
  /// The offset of the list of tensors.
  uint64_t tensorListBegin() const { return tensors_begin_; }
  /// Afterwards only read() may be called, and `data` may be freed.
  void forgetHeader();
  /// Call after the open file has moved to `input`.
  void moved(const InputFile& input) { input_ = &input; }
  /// For a file that was checked before and is still open: only read() may be called.
  void openData(const InputFile& input);

  // Lookups: false if the key is missing or has another type. Accepts integers of any width and signedness in range.
  bool getUint(const char* key, uint64_t* value) const;
  bool getFloat(const char* key, double* value) const;  ///< f32 or f64
  bool getBool(const char* key, bool* value) const;
  bool getString(const char* key, GgufString* value) const;
  bool getArray(const char* key, GgufArray* value) const;
  bool has(const char* key) const;

  uint64_t tensorCount() const { return n_tensors_; }
  /// Iterates over tensors in file order; `cursor` starts at 0. False at the end. Names are unique.
  bool nextTensor(uint64_t* cursor, GgufTensor* tensor) const;
  bool findTensor(const char* name, GgufTensor* tensor) const;

  /// Tensor data: points *data at `bytes` bytes from file offset `offset`, which must be within the file. *data is
  /// `room`, or memory that already holds them. ORIEL_ERROR_IO if the file was truncated or cannot be read.
  Status read(uint64_t offset, uint64_t bytes, void* room, const Log& log,
              const uint8_t** data) const;

  /// Announces a later read of these bytes.
  void readAhead(uint64_t offset, uint64_t bytes) const;
  bool inMemory() const { return input_ == nullptr; }
  /// The header.
  const uint8_t* data() const { return data_; }
  /// Bytes of the file.
  uint64_t bytes() const { return file_bytes_; }
  /// Everything up to the last tensor's description.
  uint64_t headerBytes() const { return tensors_end_; }

 private:
  Status readHeader(uint64_t* at, const Log& log);
  Status readMetadata(uint64_t* at, const Log& log);
  Status readTensors(uint64_t* at, const Log& log);
  Status checkTensorNames(const Log& log) const;
  Status openHeader(const Log& log);
  Status endsEarly(const Log& log, uint64_t needed, const char* what);
  bool findValue(const char* key, uint32_t* type, uint64_t* offset) const;

  const InputFile* input_ = nullptr;  ///< null: the whole file is in memory
  const uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;  ///< in memory
  uint64_t file_bytes_ = 0;
  uint64_t wanted_ = 0;
  uint64_t n_keys_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t tensors_begin_ = 0;  ///< offset of the first tensor info
  uint64_t tensors_end_ = 0;    ///< offset after the last tensor info
  uint64_t data_begin_ = 0;     ///< offset of the tensor data section
  uint64_t key_offsets_[kMaxMetadataKeys] = {};
};

/// Iterates over the elements of an array; each next* is false at the end or on a type mismatch.
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

// Bounds-checked reading of numbers and strings from a GGUF file. Used by the reader only.

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

// A model file on disk with its header in memory.

/// The header is read once into its own memory and checked there. Tensor data is read on demand. A change
/// of the file meanwhile therefore causes at worst an error.
class ModelFile {
 public:
  ModelFile() = default;
  ~ModelFile() { dropHeader(); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  /// Call once. Like GgufFile::open. A split model is opened by any of its parts, whose name leads to the others; all
  /// parts are checked and then act as one file. Borrows at most twice the header's size from `allocator`. `path` and
  /// `allocator` must outlive this object.
  Status open(const char* path, const oriel_allocator& allocator, const Log& log,
              const StopCheck& stop = {});
  const GgufFile& gguf() const { return gguf_; }
  /// Frees the header: afterwards only read() may be called on gguf().
  void dropHeader();
  uint64_t bytes() const { return input_.bytes(); }
  const InputFile& input() const { return input_; }
  /// Like InputFile::read.
  Status read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
    return input_.read(offset, to, bytes, log);
  }
  /// Moves the open file to `to`; this object must not be used afterwards. `path` must outlive `to`.
  void handOver(const char* path, InputFile* to) { to->takeOver(&input_, path); }
  /// ORIEL_ERROR_IO if the file was written to since it was opened.
  Status expectUnchanged(const Log& log) const { return input_.expectUnchanged(log); }

 private:
  Status openOne(const char* path, const oriel_allocator& allocator, const Log& log,
                 const StopCheck& stop);
  Status join(const char* path, const oriel_allocator& allocator, uint64_t number, uint64_t count,
              const Log& log, const StopCheck& stop);
  Status readHeader(uint64_t bytes, const Log& log, const StopCheck& stop);

  InputFile input_;
  GgufFile gguf_;
  const oriel_allocator* allocator_ = nullptr;
  uint8_t* header_ = nullptr;
  uint64_t header_bytes_ = 0;
};

}  // namespace oriel_internal
