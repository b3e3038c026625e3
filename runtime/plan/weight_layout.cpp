#include "plan/weight_layout.h"

namespace oriel_internal {
namespace {

struct WeightFormat {
  const char* name;
  TensorType file_type;
  uint32_t quads_per_256;  ///< values
  uint32_t side_span;      ///< number of values that share side words
  uint32_t side_words;     ///< per span
};

/// In the order of WeightType.
constexpr WeightFormat kFormats[] = {
    {"f32", TensorType::kF32, 64, 32, 0},         {"f16", TensorType::kF16, 32, 32, 0},
    {"bf16", TensorType::kBf16, 32, 32, 0},       {"q8_0", TensorType::kQ8_0, 16, 64, 1},
    {"q4_0", TensorType::kQ4_0, 8, 64, 1},        {"q4_1", TensorType::kQ4_1, 8, 32, 1},
    {"q5_0", TensorType::kQ5_0, 8, 64, 3},        {"q5_1", TensorType::kQ5_1, 8, 32, 2},
    {"iq4_nl", TensorType::kIq4Nl, 8, 64, 1},     {"q2_k", TensorType::kQ2_K, 4, 256, 5},
    {"q3_k", TensorType::kQ3_K, 4, 256, 13},      {"q4_k", TensorType::kQ4_K, 8, 256, 5},
    {"q5_k", TensorType::kQ5_K, 8, 256, 13},      {"q6_k", TensorType::kQ6_K, 8, 256, 21},
    {"iq4_xs", TensorType::kIq4Xs, 8, 256, 3},    {"iq2_xxs", TensorType::kIq2Xxs, 0, 256, 17},
    {"iq2_xs", TensorType::kIq2Xs, 0, 256, 19},   {"iq2_s", TensorType::kIq2S, 0, 256, 21},
    {"iq3_xxs", TensorType::kIq3Xxs, 0, 256, 25}, {"iq3_s", TensorType::kIq3S, 0, 256, 28},
    {"mxfp4", TensorType::kMxfp4, 8, 128, 1},     {"tq2_0", TensorType::kTq2_0, 4, 128, 1},
    {"tq1_0", TensorType::kTq1_0, 4, 128, 1},     {"nvfp4", TensorType::kNvfp4, 8, 64, 1},
    {"q1_0", TensorType::kQ1_0, 0, 256, 9},       {"q2_0", TensorType::kQ2_0, 4, 128, 1},
};
static_assert(sizeof(kFormats) / sizeof(kFormats[0]) == kWeightTypes, "one line per type");

const WeightFormat& formatOf(WeightType type) { return kFormats[static_cast<uint32_t>(type)]; }

}  // namespace

const char* weightTypeName(WeightType type) { return formatOf(type).name; }

const char* weightKernelName(WeightType type) {
  const bool ternary = type == WeightType::kTq1_0 || type == WeightType::kTq2_0;
  return weightTypeName(ternary ? WeightType::kQ2_0 : type);
}

bool weightTypeOf(uint32_t file_type, WeightType* type) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    if (static_cast<uint32_t>(kFormats[i].file_type) == file_type) {
      *type = static_cast<WeightType>(i);
      return true;
    }
  }
  return false;
}

uint32_t fileTypeOf(WeightType type) { return static_cast<uint32_t>(formatOf(type).file_type); }

WeightGeometry weightGeometry(WeightType type, uint32_t cols) {
  const WeightFormat& format = formatOf(type);
  const uint32_t padded = paddedCols(cols);
  WeightGeometry geometry;
  geometry.units = padded / kUnit;
  geometry.quads = padded / kUnit * format.quads_per_256 / (256 / kUnit);
  geometry.side = static_cast<uint32_t>(ceilDiv(padded, format.side_span)) * format.side_words;
  return geometry;
}

uint32_t maxSliceRows(const WeightGeometry& geometry) {
  return static_cast<uint32_t>(kMaxBindingBytes / geometry.groupBytes() * kGroupRows);
}

uint64_t fileRowBytes(uint32_t file_type, uint32_t cols) {
  uint32_t block_values = 1;
  uint32_t block_bytes = 0;
  if (!tensorTypeSize(file_type, &block_values, &block_bytes)) {
    return 0;
  }
  return static_cast<uint64_t>(cols) / block_values * block_bytes;
}

}  // namespace oriel_internal
