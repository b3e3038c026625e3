#include "plan/weight_placement.h"

#include <algorithm>

#include "plan/codebooks.h"

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

void WeightPlacement::upload(const Upload& item, uint64_t group_bytes) {
  if (repeats_) {
    return;
  }
  if (plan_->uploads != nullptr) {
    plan_->uploads[plan_->n_uploads] = item;
  }
  ++plan_->n_uploads;
  const bool begins = item.slice_row == 0;  // one slice may need several uploads
  adapter_bytes_ += item.file >= kAdapterFile && begins ? item.slice.size_bytes : 0;
  largest_group_bytes_ = std::max(largest_group_bytes_, group_bytes);
}

// readModelDesc has checked every tensor.
Status WeightPlacement::find(TensorRole role, uint32_t layer, uint64_t values,
                             GgufTensor* tensor) const {
  *tensor = tensors_.find(role, layer);
  if (tensor->bytes == 0 || values == 0) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "layer %u has no tensor of role %u: please report it",
                     layer, static_cast<uint32_t>(role));
  }
  return kOk;
}

void WeightPlacement::uploadVector(TensorRole role, uint32_t layer, uint32_t cols,
                                   const BufferRef& place) {
  GgufTensor tensor;
  if (vectors_.ok()) {
    vectors_ = find(role, layer, cols, &tensor);
  }
  Upload item;
  item.tensor_offset = tensor.offset;
  item.tensor_type = tensor.type;
  item.file = tensor.file;
  item.rows = 1;
  item.cols = cols;
  item.is_vector = true;
  item.slice = place;
  upload(item, place.size_bytes);
}

BufferRef WeightPlacement::vector(TensorRole role, uint32_t layer, uint32_t cols) {
  const BufferRef place = segments_.take(vectorBytes(cols));
  uploadVector(role, layer, cols, place);
  return place;
}

BufferRef WeightPlacement::ones(uint32_t cols) {
  Upload item;
  item.cols = cols;
  item.is_vector = true;
  item.slice = segments_.take(vectorBytes(cols));
  upload(item, item.slice.size_bytes);
  return item.slice;
}

BufferRef WeightPlacement::vectors(std::initializer_list<VectorPart> parts, uint32_t layer) {
  uint32_t cols = 0;
  for (const VectorPart& part : parts) {
    cols += part.cols;
  }
  const BufferRef all = segments_.take(vectorBytes(cols));
  BufferRef one = all;
  for (const VectorPart& part : parts) {
    one = one.resized(uint64_t{part.cols} * 4);
    uploadVector(part.role, layer, part.cols, one);
    one.offset_bytes += one.size_bytes;
  }
  return all;
}

// A run: consecutive parts of one type.
Status WeightPlacement::beginRun(Stack* stack) {
  MatrixSlice& slice = stack->slice;
  GgufTensor tensor;
  ORIEL_TRY(find(stack->part->role, stack->part->layer, stack->cols, &tensor));
  const uint32_t file_type = tensor.type;
  if (!weightTypeOf(file_type, &slice.type)) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED, "tensor type %s has no kernel: convert the model",
                     tensorTypeName(file_type));
  }
  willRead(slice.type);
  slice.geometry = weightGeometry(slice.type, stack->cols);
  stack->slice_rows = maxSliceRows(slice.geometry);
  if (stack->slice_rows == 0) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED, "rows of %u values are too long for a kernel",
                     stack->cols);
  }
  for (const MatrixPart* part = stack->part; part != stack->end; ++part) {
    ORIEL_TRY(find(part->role, part->layer, stack->cols, &tensor));
    if (tensor.type != file_type) {
      break;
    }
    stack->run_rows += part->rows(tensor);
  }
  return kOk;
}

Status WeightPlacement::placeSlice(Stack* stack) {
  MatrixSlice& slice = stack->slice;
  slice.first_row += slice.rows;
  slice.rows = static_cast<uint32_t>(std::min<uint64_t>(stack->slice_rows, stack->run_rows));
  slice.place = segments_.take(slice.geometry.sliceBytes(slice.rows));
  stack->run_rows -= slice.rows;
  for (uint32_t filled = 0; filled < slice.rows;) {
    const MatrixPart& part = *stack->part;
    GgufTensor tensor;
    ORIEL_TRY(find(part.role, part.layer, stack->cols, &tensor));
    const uint32_t part_rows = part.rows(tensor);
    Upload item;
    item.tensor_offset = tensor.offset;
    item.tensor_type = tensor.type;
    item.file = tensor.file;
    item.source_row = stack->source_row;
    uint32_t left = part_rows - stack->source_row;
    if (part.block != 0) {
      const uint32_t in_block = stack->source_row % part.block;
      item.source_row = stack->source_row / part.block * part.stride + part.first + in_block;
      left = part.block - in_block;
    }
    item.rows = std::min(slice.rows - filled, left);
    item.cols = stack->cols;
    item.type = slice.type;
    item.may_stay = part.role == TensorRole::kLayerInputEmbedding;
    item.slice = slice.place;
    item.slice_row = filled;
    upload(item, slice.geometry.groupBytes());
    filled += item.rows;
    stack->source_row += item.rows;
    if (stack->source_row == part_rows) {
      stack->source_row = 0;
      ++stack->part;
    }
  }
  return kOk;
}

// `slice->count`: number of matrices that fit one binding.
Status WeightPlacement::beginStack(const MatrixPart& part, uint32_t rows, uint32_t cols,
                                   StackSlice* slice) {
  GgufTensor tensor;
  ORIEL_TRY(find(part.role, part.layer, uint64_t{rows} * cols, &tensor));
  if (!weightTypeOf(tensor.type, &slice->type)) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED, "tensor type %s has no kernel: convert the model",
                     tensorTypeName(tensor.type));
  }
  willRead(slice->type);
  slice->geometry = weightGeometry(slice->type, cols);
  const uint64_t most = kMaxBindingBytes / slice->geometry.sliceBytes(rows);
  if (most == 0) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED, "experts of %u times %u values are too large", rows,
                     cols);
  }
  slice->count = static_cast<uint32_t>(std::min<uint64_t>(most, kMaxExperts));
  return kOk;
}

Status WeightPlacement::placeStack(const MatrixPart& part, uint32_t rows, uint32_t cols,
                                   StackSlice* slice) {
  GgufTensor tensor;
  ORIEL_TRY(find(part.role, part.layer, uint64_t{rows} * cols, &tensor));
  const uint32_t padded = static_cast<uint32_t>(alignUp(rows, kGroupRows));
  slice->place = segments_.take(slice->geometry.sliceBytes(padded * slice->count));
  Upload item;
  item.tensor_offset = tensor.offset;
  item.tensor_type = tensor.type;
  item.file = tensor.file;
  item.cols = cols;
  item.type = slice->type;
  item.may_stay = true;
  item.slice = slice->place;
  const uint32_t at_once = rows == padded ? slice->count : 1;
  for (uint32_t i = 0; i < slice->count; i += at_once) {
    item.source_row = (slice->first + i) * rows;
    item.rows = at_once * rows;
    item.slice_row = i * padded;
    upload(item, slice->geometry.groupBytes());
  }
  return kOk;
}

Status WeightPlacement::beginHeads(const HeadMatrices& matrices, StackSlice* slice) {
  const bool turned = matrices.transposed;
  const uint32_t rows = turned ? matrices.cols : matrices.rows;
  const uint32_t cols = turned ? matrices.rows : matrices.cols;
  GgufTensor tensor;
  ORIEL_TRY(find(matrices.part.role, matrices.part.layer, uint64_t{rows} * cols, &tensor));
  if (!weightTypeOf(tensor.type, &slice->type)) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED, "tensor type %s has no kernel: convert the model",
                     tensorTypeName(tensor.type));
  }
  if (turned) {
    slice->type = transposedType(slice->type);
  }
  willRead(slice->type);
  slice->geometry = weightGeometry(slice->type, cols);
  const uint64_t most = kMaxBindingBytes / slice->geometry.sliceBytes(rows);
  if (most == 0) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED, "heads of %u times %u values are too large", rows,
                     cols);
  }
  slice->count = static_cast<uint32_t>(std::min<uint64_t>(most, matrices.heads));
  return kOk;
}

Status WeightPlacement::placeHeads(const HeadMatrices& matrices, StackSlice* slice) {
  GgufTensor tensor;
  ORIEL_TRY(find(matrices.part.role, matrices.part.layer, matrices.cols, &tensor));
  const uint64_t matrix_bytes =
      slice->geometry.sliceBytes(matrices.transposed ? matrices.cols : matrices.rows);
  slice->place = segments_.take(matrix_bytes * slice->count);
  Upload item;
  item.tensor_offset = tensor.offset;
  item.tensor_type = tensor.type;
  item.source_row = matrices.first_row + slice->first * matrices.row_step;
  item.rows = matrices.rows;
  item.cols = matrices.cols;
  item.type = slice->type;
  item.transposed = matrices.transposed;
  item.stack_step = matrices.row_step;
  item.slice = slice->place;
  upload(item, matrix_bytes);
  return kOk;
}

Status WeightPlacement::slots(const MatrixPart& part, uint32_t rows, uint32_t cols, uint32_t count,
                              StackSlice* slice) {
  ORIEL_TRY(beginStack(part, rows, cols, slice));
  if (slice->count < count) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                     "a layer's slots for %u experts are too large for a kernel: ask for %u", count,
                     slice->count);
  }
  slice->count = count;
  slice->place = segments_.take(slice->geometry.sliceBytes(rows) * count);
  largest_group_bytes_ = std::max(largest_group_bytes_, slice->geometry.groupBytes());
  return kOk;
}

void WeightPlacement::willRead(WeightType type) {
  uint32_t offset_bytes = 0, bytes = 0;
  if (plan_->codebooks.size_bytes == 0 && codebookOf(type, &offset_bytes, &bytes)) {
    plan_->codebooks = segments_.take(kCodebookBytes);
    largest_group_bytes_ = std::max<uint64_t>(largest_group_bytes_, kCodebookBytes);
  }
}

void WeightPlacement::beginRepeated() {
  // Codebooks are placed at first use, which must be outside the repeated weights.
  for (uint32_t role = 0; role < kTensorRoles; ++role) {
    for (uint32_t layer = 0; layer < tensors_.layerCount(); ++layer) {
      WeightType type;
      const GgufTensor& tensor = tensors_.find(static_cast<TensorRole>(role), layer);
      if (tensor.bytes != 0 && weightTypeOf(tensor.type, &type)) {
        willRead(type);
      }
    }
  }
  repeated_ = segments_;
}

void WeightPlacement::repeat() {
  segments_ = repeated_;
  repeats_ = true;
}

Status WeightPlacement::finish() {
  segments_.close();
  plan_->weight_segments = segments_.count();
  return vectors_;
}

}  // namespace oriel_internal
