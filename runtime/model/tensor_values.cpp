#include "model/tensor_values.h"

#include <cstring>

#include "base/half.h"

namespace oriel_internal {

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
