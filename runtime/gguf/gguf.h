// A bounds-checked reader of GGUF files, versions 2 and 3: the header in memory, tensor data in memory or on disk.
//
// Goals: every count, offset and size is checked against the remaining bytes before use; nothing is copied or
// allocated; after open() every accessor is safe on any file. Non-goals: writing, big-endian files, version 1 and parts
// of split models (refused by name).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/limits.h"
#include "base/log.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
