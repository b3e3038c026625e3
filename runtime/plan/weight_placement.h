// Finds layers whose keys lose too much in low-bit formats, from the weights alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "base/checked.h"
#include "kv/cache_layout.h"
#include "model/keys.h"
#include "plan/memory_layout.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Marks layers with extreme key biases or wide key norms in `formats`. A bias is the same in every key, so it carries
/// no information between keys, but it sets the scale for rounding all of a head's values. A norm's weights determine
/// the lengths of keys and queries, and so the effect of rounding on a score.
Status guardKeys(const GgufFile& file, const TensorIndex& tensors, const ModelDesc& model,
                 const Log& log, CacheFormats* formats);

// The layout of weights on the device. shaders/shared/layout.h describes the packing, plan/repack.h does it.

/// Shape of a matrix slice on the device. For quantised types `cols` is a multiple of the block.
struct WeightGeometry {
  uint32_t units = 0;  ///< of kUnit columns each
  uint32_t quads = 0;  ///< per row; each has four words of quants
  uint32_t side = 0;   ///< words per row for scales and similar values

  uint64_t rowBytes() const { return 16ull * quads + 4ull * side; }
  uint64_t groupBytes() const { return kGroupRows * rowBytes(); }
  uint32_t groupWords() const { return static_cast<uint32_t>(groupBytes() / 4); }
  /// Offset of a group's side words.
  uint32_t sideWord() const { return kGroupRows * 4 * quads; }
  uint64_t sliceBytes(uint64_t rows) const { return ceilDiv(rows, kGroupRows) * groupBytes(); }
  /// Fills in the fields of a product's push constants that say where a row's values are.
  template <typename Push>
  void describe(Push* push) const {
    push->units = units;
    push->group_words = groupWords();
    push->side_word = sideWord();
  }
};
WeightGeometry weightGeometry(WeightType type, uint32_t cols);

/// Columns in kernels: padded with zeros to a whole unit.
constexpr uint32_t paddedCols(uint32_t cols) { return (cols + kUnit - 1) / kUnit * kUnit; }

/// Bytes of a vector of weights (a norm, a bias) in plain float32.
constexpr uint64_t vectorBytes(uint32_t cols) { return 4ull * paddedCols(cols); }

/// The type of a matrix after its columns became rows: types of single values stay, all others become kF16.
constexpr WeightType transposedType(WeightType type) {
  return type == WeightType::kF32 || type == WeightType::kBf16 ? type : WeightType::kF16;
}

/// The device type of a matrix with this file type. Vectors are always float32.
bool weightTypeOf(uint32_t file_type, WeightType* type);
uint32_t fileTypeOf(WeightType type);

/// Largest number of rows in a slice: whole groups within kMaxBindingBytes; 0 if one group is too large.
uint32_t maxSliceRows(const WeightGeometry& geometry);

/// Bytes of one row in the file.
uint64_t fileRowBytes(uint32_t file_type, uint32_t cols);

// Assigns places on the device to a model's weights, and file rows to these places.

/// Rows of a stacked matrix that come from one tensor of the file.
struct MatrixPart {
  TensorRole role;
  uint32_t layer;
  /// Takes `block` rows from `first` on, of every `stride` rows of the tensor; block 0: all rows.
  uint32_t block = 0;
  uint32_t first = 0;
  uint32_t stride = 0;

  uint32_t rows(const GgufTensor& tensor) const {
    const uint32_t all = static_cast<uint32_t>(tensor.dims[1]);
    return block == 0 ? all : all / stride * block;
  }
};

/// A vector of weights, or a small matrix row by row.
struct VectorPart {
  TensorRole role;
  uint32_t cols;
};

/// Rows of a stacked matrix with one type, small enough for one binding.
struct MatrixSlice {
  BufferRef place;
  WeightType type = WeightType::kF32;
  WeightGeometry geometry;
  uint32_t first_row = 0;  ///< first row in the stack
  uint32_t rows = 0;
};

/// The matrices of a layer's heads in one tensor, `row_step` rows apart.
struct HeadMatrices {
  MatrixPart part;
  uint32_t first_row = 0;
  uint32_t row_step = 0;
  uint32_t rows = 0;  ///< rows per head, in the file
  uint32_t cols = 0;  ///< in the file
  uint32_t heads = 0;
  bool transposed = false;  ///< products use the transposed matrices
};

/// Matrices of a stack that fit one binding. Each has whole groups of rows.
struct StackSlice {
  BufferRef place;
  WeightType type = WeightType::kF32;
  WeightGeometry geometry;
  uint32_t first = 0;  ///< index of the first matrix in the stack
  uint32_t count = 0;
};

/// Places weights one after the other and appends their uploads to a plan. If the plan has no lists, only counts them.
class WeightPlacement {
 public:
  WeightPlacement(const TensorIndex& tensors, const Log& log, Plan* plan)
      : tensors_(tensors), log_(log), plan_(plan), segments_(plan->weight_segment_bytes) {}

  /// Weights as one float32 row of `cols` values: a vector, or a small matrix row by row. If the tensor is missing,
  /// finish() fails.
  BufferRef vector(TensorRole role, uint32_t layer, uint32_t cols);
  /// A vector of `cols` ones.
  BufferRef ones(uint32_t cols);
  /// Several such rows in sequence.
  BufferRef vectors(std::initializer_list<VectorPart> parts, uint32_t layer);

  /// Stacks the parts by rows, cuts the stack into slices, and calls use(const MatrixSlice&) for each.
  template <typename Parts, typename Use>
  Status matrix(const Parts& parts, uint32_t cols, const Use& use) {
    Stack stack = {parts.begin(), parts.end(), cols, 0, 0, 0, {}};
    while (stack.part != stack.end) {
      ORIEL_TRY(beginRun(&stack));
      while (stack.run_rows != 0) {
        ORIEL_TRY(placeSlice(&stack));
        use(stack.slice);
      }
    }
    return kOk;
  }

  /// Places `count` consecutive matrices of `rows` rows from a tensor. Calls use(const StackSlice&) for each slice.
  template <typename Use>
  Status stack(const MatrixPart& part, uint32_t rows, uint32_t cols, uint32_t count,
               const Use& use) {
    StackSlice slice;
    ORIEL_TRY(beginStack(part, rows, cols, &slice));
    const uint32_t most = slice.count;
    for (uint32_t first = 0; first < count; first += slice.count) {
      slice.first = first;
      slice.count = std::min(most, count - first);
      ORIEL_TRY(placeStack(part, rows, cols, &slice));
      use(slice);
    }
    return kOk;
  }
  /// The same for the matrices of heads.
  template <typename Use>
  Status heads(const HeadMatrices& matrices, const Use& use) {
    StackSlice slice;
    ORIEL_TRY(beginHeads(matrices, &slice));
    const uint32_t most = slice.count;
    for (uint32_t first = 0; first < matrices.heads; first += slice.count) {
      slice.first = first;
      slice.count = std::min(most, matrices.heads - first);
      ORIEL_TRY(placeHeads(matrices, &slice));
      use(slice);
    }
    return kOk;
  }
  /// Reserves room for `count` such matrices, which are uploaded later.
  Status slots(const MatrixPart& part, uint32_t rows, uint32_t cols, uint32_t count,
               StackSlice* slice);

  /// Announces weights of this type. Places the codebooks if the type needs them and they are not placed yet.
  void willRead(WeightType type);

  /// Weights that are read repeatedly: all weights placed from beginRepeated() on. After each repeat() the caller asks
  /// for the same weights in the same order and gets the same places. Weights after endRepeated() are new.
  void beginRepeated();
  void repeat();
  void endRepeated() { repeats_ = false; }

  /// Call after the last weights.
  Status finish();

  uint64_t bytes() const { return segments_.bytes(); }
  /// The largest unit of repacking: a vector, or a group of rows.
  uint64_t largestGroupBytes() const { return largest_group_bytes_; }
  uint64_t adapterBytes() const { return adapter_bytes_; }

 private:
  struct Stack {
    const MatrixPart* part;  // source of the next row
    const MatrixPart* end;
    uint32_t cols;
    uint32_t source_row;  // next row of the part
    uint32_t slice_rows;  // limit
    uint64_t run_rows;    // rows left in the parts with the type of `slice`
    MatrixSlice slice;    // the latest
  };
  Status find(TensorRole role, uint32_t layer, uint64_t values, GgufTensor* tensor) const;
  void uploadVector(TensorRole role, uint32_t layer, uint32_t cols, const BufferRef& place);
  Status beginRun(Stack* stack);
  Status placeSlice(Stack* stack);
  Status beginStack(const MatrixPart& part, uint32_t rows, uint32_t cols, StackSlice* slice);
  Status placeStack(const MatrixPart& part, uint32_t rows, uint32_t cols, StackSlice* slice);
  Status beginHeads(const HeadMatrices& matrices, StackSlice* slice);
  Status placeHeads(const HeadMatrices& matrices, StackSlice* slice);
  void upload(const Upload& item, uint64_t group_bytes);

  const TensorIndex& tensors_;
  const Log& log_;
  Plan* plan_;
  WeightSegments segments_;
  WeightSegments repeated_;  ///< the segments at beginRepeated()
  bool repeats_ = false;
  uint64_t largest_group_bytes_ = 0;
  uint64_t adapter_bytes_ = 0;
  Status vectors_;  ///< the first failure among them
};

}  // namespace oriel_internal
