#include "gguf/gguf.h"

#include <cinttypes>
#include <cstring>

#include "base/checked.h"
#include "base/hash.h"
#include "os/os.h"

namespace oriel_internal {
namespace {

/// Smallest sizes of a metadata entry (length, one letter, type, one byte) and of a tensor entry (length, n_dims, one
/// dim, type, offset). Counts from the file are checked against these.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorInfoBytes = 8 + 4 + 8 + 4 + 8;

/// Reads a tensor entry up to its data offset. Checks only bounds and n_dims.
bool readTensorInfo(Cursor* cursor, GgufTensor* tensor, uint64_t* offset) {
  *tensor = GgufTensor{};
  if (!cursor->readString(&tensor->name) || !cursor->read(&tensor->n_dims)) {
    return false;
  }
  for (uint32_t i = 0; i < kMaxTensorDims; ++i) {
    tensor->dims[i] = 1;
    if (i < tensor->n_dims && !cursor->read(&tensor->dims[i])) {
      return false;
    }
  }
  // With too many dims the rest is not at the expected place; the caller refuses.
  return tensor->n_dims > kMaxTensorDims || (cursor->read(&tensor->type) && cursor->read(offset));
}

enum class TensorSize { kOk, kZeroDim, kUnknownType, kPartialBlock, kOverflow };

/// Sets tensor->bytes from its dims and type.
TensorSize sizeTensor(GgufTensor* tensor) {
  uint32_t block_values = 0;
  uint32_t block_bytes = 0;
  if (!tensorTypeSize(tensor->type, &block_values, &block_bytes)) {
    return TensorSize::kUnknownType;
  }
  if (tensor->dims[0] % block_values != 0) {
    return TensorSize::kPartialBlock;
  }
  uint64_t bytes = 0;
  bool fits = checkedMul(tensor->dims[0] / block_values, block_bytes, &bytes);
  for (uint32_t i = 0; i < kMaxTensorDims; ++i) {
    if (tensor->dims[i] == 0) {
      return TensorSize::kZeroDim;
    }
    fits = fits && (i == 0 || checkedMul(bytes, tensor->dims[i], &bytes));
  }
  tensor->bytes = bytes;
  return fits ? TensorSize::kOk : TensorSize::kOverflow;
}

/// Depends on the file's address, which an attacker cannot know, so collisions cannot be prepared.
uint64_t nameHash(const GgufString& name, const uint8_t* file) {
  return hashBytes(name.data, name.bytes, hashBytes(&file, sizeof(file)));
}

bool sameString(const GgufString& a, const GgufString& b) {
  return a.bytes == b.bytes && std::memcmp(a.data, b.data, static_cast<size_t>(a.bytes)) == 0;
}

}  // namespace

bool GgufString::equals(const char* text) const {
  const size_t length = std::strlen(text);
  return bytes == length && std::memcmp(data, text, length) == 0;
}

PrintableText::PrintableText(const GgufString& string) {
  const size_t length = string.bytes < kBytes ? static_cast<size_t>(string.bytes) : kBytes;
  for (size_t i = 0; i < length; ++i) {
    const char c = string.data[i];
    text[i] = c >= ' ' && c <= '~' ? c : '?';
  }
  text[length] = '\0';
}

// --- Opening -------------------------------------------------------------------------------------

Status GgufFile::open(const uint8_t* data, uint64_t bytes, const Log& log) {
  *this = GgufFile{};
  data_ = data;
  bytes_ = bytes;
  file_bytes_ = bytes;
  ORIEL_TRY(openHeader(log));
  if (partCount() < 2) {
    return kOk;
  }
  const uint64_t number = partNumber();
  const uint64_t count = partCount();
  *this = GgufFile{};
  return log.fail(ORIEL_ERROR_UNSUPPORTED,
                  "the file is part %" PRIu64 " of %" PRIu64
                  " of a split model: load it by the name of its file, with all parts beside it",
                  number + 1, count);
}

Status GgufFile::open(const InputFile& input, const uint8_t* data, uint64_t bytes, const Log& log,
                      uint64_t* wanted) {
  *this = GgufFile{};
  input_ = &input;
  data_ = data;
  bytes_ = bytes;
  file_bytes_ = input.bytes();
  const Status status = openHeader(log);
  *wanted = wanted_;
  return status;
}

Status GgufFile::openHeader(const Log& log) {
  uint64_t at = 0;
  Status status = readHeader(&at, log);
  if (status.ok()) {
    status = readMetadata(&at, log);
  }
  if (status.ok()) {
    status = readTensors(&at, log);
  }
  if (status.ok()) {
    status = checkTensorNames(log);
  }
  if (!status.ok()) {
    const uint64_t wanted = wanted_;
    *this = GgufFile{};  // accessors now see an empty file
    wanted_ = wanted;
  }
  return status;
}

void GgufFile::forgetHeader() {
  const InputFile* const input = input_;
  *this = GgufFile{};
  input_ = input;
}

void GgufFile::openData(const InputFile& input) {
  *this = GgufFile{};
  input_ = &input;
}

/// The error for anything that runs past the end. `what` names the part.
Status GgufFile::endsEarly(const Log& log, uint64_t needed, const char* what) {
  if (needed <= file_bytes_ && needed > bytes_) {
    wanted_ = needed;
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  return log.fail(ORIEL_ERROR_FORMAT,
                  "GGUF file is truncated or damaged, it ends at byte %" PRIu64
                  " but %s needs %" PRIu64 " bytes: download it again",
                  file_bytes_, what, needed);
}

Status GgufFile::readHeader(uint64_t* at, const Log& log) {
  Cursor cursor(data_, bytes_, *at);
  uint8_t magic[4] = {};
  if (!cursor.read(&magic) || std::memcmp(magic, "GGUF", 4) != 0) {
    if (bytes_ >= 7 && std::memcmp(data_, "version", 7) == 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "not a GGUF file but a Git LFS pointer to one: fetch it with `git lfs pull`");
    }
    return log.fail(
        ORIEL_ERROR_FORMAT,
        "not a GGUF file: it begins with bytes %02x %02x %02x %02x instead of \"GGUF\"; "
        "check the path, or download or convert it again",
        magic[0], magic[1], magic[2], magic[3]);
  }
  uint32_t version = 0;
  if (!cursor.read(&version)) {
    return endsEarly(log, cursor.needed(), "the header");
  }
  if (version != 2 && version != 3) {  // same layout: version 3 only added big-endian files
    if (version != 0 && (version & 0xffffu) == 0) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "big-endian GGUF files are not supported: use the little-endian file");
    }
    return log.fail(ORIEL_ERROR_UNSUPPORTED, "GGUF version %" PRIu32 " is not supported: %s",
                    version,
                    version < 2 ? "convert the model again, this build reads versions 2 and 3"
                                : "it is newer than this build, which reads versions 2 and 3");
  }
  if (!cursor.read(&n_tensors_) || !cursor.read(&n_keys_)) {
    return endsEarly(log, cursor.needed(), "the header");
  }
  const uint64_t rest = file_bytes_ - cursor.at();
  if (n_keys_ > rest / kMinKeyBytes ||
      n_tensors_ > (rest - n_keys_ * kMinKeyBytes) / kMinTensorInfoBytes) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "GGUF file is truncated or damaged, its header claims %" PRIu64
                    " keys and %" PRIu64 " tensors but only %" PRIu64
                    " bytes follow: download it again",
                    n_keys_, n_tensors_, rest);
  }
  if (n_keys_ > kMaxMetadataKeys || n_tensors_ > kMaxTensors) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "GGUF file has %" PRIu64 " keys and %" PRIu64
                    " tensors: this build reads up to %" PRIu64 " and %" PRIu64,
                    n_keys_, n_tensors_, kMaxMetadataKeys, kMaxTensors);
  }
  *at = cursor.at();
  return kOk;
}

Status GgufFile::readMetadata(uint64_t* at, const Log& log) {
  Cursor cursor(data_, bytes_, *at);
  const uint64_t n_keys = n_keys_;
  uint64_t hashes[kMaxMetadataKeys];
  for (n_keys_ = 0; n_keys_ < n_keys; ++n_keys_) {  // findValue sees only the keys before this one
    const uint64_t begin = cursor.at();
    GgufString key;
    uint32_t type = 0;
    if (!cursor.readString(&key) || !cursor.read(&type)) {
      return endsEarly(log, cursor.needed(), "the metadata");
    }
    const PrintableText name(key);
    if (key.bytes == 0 || key.bytes > kMaxNameBytes) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "key %" PRIu64 " of the GGUF file has a name of %" PRIu64
                      " bytes: the file is damaged, download it again",
                      n_keys_, uint64_t{key.bytes});
    }
    hashes[n_keys_] = nameHash(key, data_);
    for (uint64_t i = 0; i < n_keys_; ++i) {
      Cursor other(data_, bytes_, key_offsets_[i]);
      GgufString known;
      if (hashes[i] == hashes[n_keys_] && other.readString(&known) && sameString(known, key)) {
        return log.fail(ORIEL_ERROR_FORMAT,
                        "key %s is in the GGUF file twice: convert the model again", name.text);
      }
    }
    key_offsets_[n_keys_] = begin;

    bool there = true;
    GgufString text;
    if (type == kString) {
      there = cursor.readString(&text);
    } else if (type == kArray) {
      uint64_t count = 0;
      there = cursor.read(&type) && cursor.read(&count);
      if (there && type == kString) {
        for (uint64_t i = 0; i < count && there; ++i) {
          there = cursor.readString(&text);
        }
      } else if (there && fixedValueBytes(type) != 0) {
        there = cursor.skip(count, fixedValueBytes(type));
      } else if (there) {
        return log.fail(ORIEL_ERROR_FORMAT,
                        "key %s is an array of type %" PRIu32
                        ", which GGUF arrays of this build "
                        "cannot hold: the file is damaged, download it again",
                        name.text, type);
      }
    } else if (fixedValueBytes(type) != 0) {
      there = cursor.skip(fixedValueBytes(type));
    } else {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "key %s has the unknown value type %" PRIu32
                      ": the file is damaged, download it again",
                      name.text, type);
    }
    if (!there) {
      return endsEarly(log, cursor.needed(), name.text);
    }
  }
  *at = cursor.at();
  return kOk;
}

/// A file of a split model has only a part of the tensors. Only the first file has the metadata.
uint64_t GgufFile::partCount() const {
  uint64_t count = 0;
  return getUint("split.count", &count) && count > 1 ? count : 1;
}

uint64_t GgufFile::partNumber() const {
  uint64_t number = 0;
  (void)getUint("split.no", &number);
  return number;
}

Status GgufFile::readTensors(uint64_t* at, const Log& log) {
  uint64_t alignment = 32;
  if (has("general.alignment") &&
      (!getUint("general.alignment", &alignment) || alignment < kMinDataAlignment ||
       alignment > kMaxDataAlignment || (alignment & (alignment - 1)) != 0)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "general.alignment is not a power of two from %" PRIu64 " to %" PRIu64
                    ": the file is damaged, download or convert it again",
                    kMinDataAlignment, kMaxDataAlignment);
  }

  tensors_begin_ = *at;
  Cursor cursor(data_, bytes_, *at);
  GgufTensor tensor;
  uint64_t offset = 0;
  for (uint64_t i = 0; i < n_tensors_; ++i) {
    if (!readTensorInfo(&cursor, &tensor, &offset)) {
      return endsEarly(log, cursor.needed(), "the list of tensors");
    }
    const PrintableText name(tensor.name);
    if (tensor.name.bytes == 0 || tensor.name.bytes > kMaxTensorNameBytes) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "tensor %" PRIu64 " (%s) has a name of %" PRIu64
                      " bytes instead of 1 to %" PRIu64 ": the file is damaged, download it again",
                      i, name.text, uint64_t{tensor.name.bytes}, kMaxTensorNameBytes);
    }
    if (tensor.n_dims == 0 || tensor.n_dims > kMaxTensorDims) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "tensor %s has %" PRIu32 " dimensions instead of 1 to %" PRIu32
                      ": the file is damaged, download it again",
                      name.text, tensor.n_dims, kMaxTensorDims);
    }
    switch (sizeTensor(&tensor)) {
      case TensorSize::kOk:
        break;
      case TensorSize::kUnknownType:
        return log.fail(ORIEL_ERROR_UNSUPPORTED,
                        "tensor %s has type %" PRIu32
                        " (%s), which this build cannot read: use a "
                        "file in another quantisation, or a newer build",
                        name.text, tensor.type, tensorTypeName(tensor.type));
      case TensorSize::kPartialBlock:
        return log.fail(ORIEL_ERROR_FORMAT,
                        "tensor %s has rows of %" PRIu64
                        " values, not whole blocks of %s: the file "
                        "is damaged, download or convert it again",
                        name.text, tensor.dims[0], tensorTypeName(tensor.type));
      case TensorSize::kZeroDim:
      case TensorSize::kOverflow:
        return log.fail(ORIEL_ERROR_FORMAT,
                        "tensor %s has impossible dimensions (%" PRIu64 " x %" PRIu64 " x %" PRIu64
                        " x %" PRIu64 "): the file is damaged, download it again",
                        name.text, tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3]);
    }
    if (offset % alignment != 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "tensor %s lies at offset %" PRIu64 ", not a multiple of %" PRIu64
                      ": the file is damaged, download or convert it again",
                      name.text, offset, alignment);
    }
  }
  tensors_end_ = cursor.at();
  data_begin_ = alignUp(tensors_end_, alignment);
  *at = tensors_end_;

  // The start of the data is now known.
  cursor = Cursor(data_, bytes_, tensors_begin_);
  for (uint64_t i = 0; i < n_tensors_; ++i) {
    uint64_t end = 0;
    if (!readTensorInfo(&cursor, &tensor, &offset) || sizeTensor(&tensor) != TensorSize::kOk ||
        !checkedAdd(offset, tensor.bytes, &end) || !checkedAdd(end, data_begin_, &end)) {
      end = UINT64_MAX;
    }
    if (end > file_bytes_) {
      return endsEarly(log, end, PrintableText(tensor.name).text);
    }
  }
  return kOk;
}

Status GgufFile::checkTensorNames(const Log& log) const {
  // One bit per hash value. Only a name whose bit is set is compared with all earlier names, so honest files take
  // linear time and the largest one a tenth of a second.
  constexpr uint32_t kHashBits = 17;
  uint64_t taken[(1u << kHashBits) / 64] = {};
  uint64_t cursor = 0;
  GgufTensor tensor;
  for (uint64_t before = cursor; nextTensor(&cursor, &tensor); before = cursor) {
    const uint64_t hash = nameHash(tensor.name, data_) >> (64 - kHashBits);
    const uint64_t bit = 1ull << (hash % 64);
    if ((taken[hash / 64] & bit) != 0) {
      GgufTensor other;
      uint64_t walk = 0;
      while (walk != before && nextTensor(&walk, &other)) {
        if (sameString(other.name, tensor.name)) {
          return log.fail(ORIEL_ERROR_FORMAT,
                          "tensor %s is in the GGUF file twice: convert the model again",
                          PrintableText(tensor.name).text);
        }
      }
    }
    taken[hash / 64] |= bit;
  }
  return kOk;
}

// --- Metadata ------------------------------------------------------------------------------------

bool GgufFile::findValue(const char* key, uint32_t* type, uint64_t* offset) const {
  for (uint64_t i = 0; i < n_keys_; ++i) {
    Cursor cursor(data_, bytes_, key_offsets_[i]);
    GgufString name;
    if (cursor.readString(&name) && name.equals(key) && cursor.read(type) &&
        fixedValueBytes(*type) <= cursor.remaining()) {
      *offset = cursor.at();
      return true;
    }
  }
  return false;
}

bool GgufFile::has(const char* key) const {
  uint32_t type = 0;
  uint64_t offset = 0;
  return findValue(key, &type, &offset);
}

bool GgufFile::getUint(const char* key, uint64_t* value) const {
  uint32_t type = 0;
  uint64_t offset = 0;
  int64_t number = 0;
  bool huge = false;
  if (!findValue(key, &type, &offset) || !loadInt(type, data_ + offset, &number, &huge) ||
      (number < 0 && !huge)) {
    return false;
  }
  *value = static_cast<uint64_t>(number);
  return true;
}

bool GgufFile::getFloat(const char* key, double* value) const {
  uint32_t type = 0;
  uint64_t offset = 0;
  return findValue(key, &type, &offset) && loadFloat(type, data_ + offset, value);
}

bool GgufFile::getBool(const char* key, bool* value) const {
  uint32_t type = 0;
  uint64_t offset = 0;
  if (!findValue(key, &type, &offset) || type != kBool) {
    return false;
  }
  *value = data_[offset] != 0;
  return true;
}

bool GgufFile::getString(const char* key, GgufString* value) const {
  uint32_t type = 0;
  uint64_t offset = 0;
  if (!findValue(key, &type, &offset) || type != kString) {
    return false;
  }
  return Cursor(data_, bytes_, offset).readString(value);
}

bool GgufFile::getArray(const char* key, GgufArray* value) const {
  uint32_t type = 0;
  uint64_t offset = 0;
  if (!findValue(key, &type, &offset) || type != kArray) {
    return false;
  }
  Cursor cursor(data_, bytes_, offset);
  if (!cursor.read(&value->element_type) || !cursor.read(&value->count)) {
    return false;
  }
  value->data = cursor.here();
  value->end = data_ + bytes_;
  return true;
}

// --- Tensors -------------------------------------------------------------------------------------

bool GgufFile::nextTensor(uint64_t* cursor, GgufTensor* tensor) const {
  const uint64_t at = *cursor == 0 ? tensors_begin_ : *cursor;
  if (at < tensors_begin_ || at >= tensors_end_) {
    return false;
  }
  Cursor reader(data_, tensors_end_, at);
  uint64_t offset = 0;
  uint64_t end = 0;
  if (!readTensorInfo(&reader, tensor, &offset) || tensor->n_dims > kMaxTensorDims ||
      sizeTensor(tensor) != TensorSize::kOk || !checkedAdd(offset, tensor->bytes, &end) ||
      !checkedAdd(end, data_begin_, &end) || end > file_bytes_) {
    return false;  // the file changed after the check
  }
  tensor->offset = data_begin_ + offset;
  *cursor = reader.at();
  return true;
}

bool GgufFile::findTensor(const char* name, GgufTensor* tensor) const {
  uint64_t cursor = 0;
  while (nextTensor(&cursor, tensor)) {
    if (tensor->name.equals(name)) {
      return true;
    }
  }
  *tensor = GgufTensor{};
  return false;
}

Status GgufFile::read(uint64_t offset, uint64_t bytes, void* room, const Log& log,
                      const uint8_t** data) const {
  if (input_ != nullptr) {
    *data = static_cast<const uint8_t*>(room);
    return input_->read(offset, room, bytes, log);
  }
  *data = data_ + offset;
  return kOk;
}

void GgufFile::readAhead(uint64_t offset, uint64_t bytes) const {
  if (input_ != nullptr) {
    input_->readAhead(offset, bytes);
  }
}

// --- Arrays --------------------------------------------------------------------------------------

bool GgufArrayReader::nextString(GgufString* value) {
  if (index_ >= array_.count || array_.element_type != kString) {
    return false;
  }
  Cursor cursor(at_, static_cast<uint64_t>(array_.end - at_), 0);
  if (!cursor.readString(value)) {
    return false;
  }
  at_ = cursor.here();
  ++index_;
  return true;
}

bool GgufArrayReader::nextFloat(float* value) {
  double number = 0;
  const uint64_t bytes = fixedValueBytes(array_.element_type);
  if (index_ >= array_.count || bytes == 0 || bytes > static_cast<uint64_t>(array_.end - at_) ||
      !loadFloat(array_.element_type, at_, &number)) {
    return false;
  }
  *value = static_cast<float>(number);
  at_ += bytes;
  ++index_;
  return true;
}

bool GgufArrayReader::nextInt(int64_t* value) {
  bool huge = false;
  const uint64_t bytes = fixedValueBytes(array_.element_type);
  if (index_ >= array_.count || bytes == 0 || bytes > static_cast<uint64_t>(array_.end - at_) ||
      !loadInt(array_.element_type, at_, value, &huge) || huge) {
    return false;
  }
  at_ += bytes;
  ++index_;
  return true;
}

bool GgufArrayReader::nextBool(bool* value) {
  if (index_ >= array_.count || array_.element_type != kBool || at_ >= array_.end) {
    return false;
  }
  *value = *at_++ != 0;
  ++index_;
  return true;
}

// Names and block sizes of GGUF element types.

namespace {

struct TypeFacts {
  const char* name;
  uint16_t block_values;
  uint16_t block_bytes;  // 0: unknown
};

// Indexed by the number in the file. Types without a size were retired before GGUF v3, or are newer than this build.
constexpr TypeFacts kTypes[] = {
    {"F32", 1, 4},        {"F16", 1, 2},        {"Q4_0", 32, 18},     {"Q4_1", 32, 20},
    {"Q4_2", 0, 0},       {"Q4_3", 0, 0},       {"Q5_0", 32, 22},     {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},     {"Q8_1", 32, 36},     {"Q2_K", 256, 84},    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},   {"Q5_K", 256, 176},   {"Q6_K", 256, 210},   {"Q8_K", 256, 292},
    {"IQ2_XXS", 256, 66}, {"IQ2_XS", 256, 74},  {"IQ3_XXS", 256, 98}, {"IQ1_S", 256, 50},
    {"IQ4_NL", 32, 18},   {"IQ3_S", 256, 110},  {"IQ2_S", 256, 82},   {"IQ4_XS", 256, 136},
    {"I8", 1, 1},         {"I16", 1, 2},        {"I32", 1, 4},        {"I64", 1, 8},
    {"F64", 1, 8},        {"IQ1_M", 256, 56},   {"BF16", 1, 2},       {"Q4_0_4_4", 0, 0},
    {"Q4_0_4_8", 0, 0},   {"Q4_0_8_8", 0, 0},   {"TQ1_0", 256, 54},   {"TQ2_0", 256, 66},
    {"IQ4_NL_4_4", 0, 0}, {"IQ4_NL_4_8", 0, 0}, {"IQ4_NL_8_8", 0, 0}, {"MXFP4", 32, 17},
    {"NVFP4", 64, 36},    {"Q1_0", 128, 18},    {"Q2_0", 64, 18},
};
constexpr uint32_t kTypeCount = sizeof(kTypes) / sizeof(kTypes[0]);

}  // namespace

const char* tensorTypeName(uint32_t type) {
  return type < kTypeCount ? kTypes[type].name : "unassigned";
}

bool tensorTypeSize(uint32_t type, uint32_t* block_values, uint32_t* block_bytes) {
  if (type >= kTypeCount || kTypes[type].block_bytes == 0) {
    return false;
  }
  *block_values = kTypes[type].block_values;
  *block_bytes = kTypes[type].block_bytes;
  return true;
}

}  // namespace oriel_internal
