// Where the weights of a model go, and what of the file goes there.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "plan/memory_layout.h"
#include "plan/weight_layout.h"

namespace oriel_internal {

/// Rows of a stacked matrix that come from one tensor of the file.
struct MatrixPart {
  TensorRole role;
  uint32_t layer;
  /// Of every `stride` rows of the tensor those from `first` on, `block` of them; 0: all rows.
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

/// Rows of a stacked matrix, of one type, that a kernel can bind.
struct MatrixSlice {
  BufferRef place;
  WeightType type = WeightType::kF32;
  WeightGeometry geometry;
  uint32_t first_row = 0;  ///< of the stack
  uint32_t rows = 0;
};

/// Matrices of the heads of a layer in one tensor, each so many rows behind the one before.
struct HeadMatrices {
  MatrixPart part;
  uint32_t first_row = 0;
  uint32_t row_step = 0;
  uint32_t rows = 0;  ///< of a head, in the file
  uint32_t cols = 0;  ///< in the file
  uint32_t heads = 0;
  bool transposed = false;  ///< products are with the transposed matrices
};

/// Some matrices of a stack, as many as a kernel can bind: each has whole groups of rows.
struct StackSlice {
  BufferRef place;
  WeightType type = WeightType::kF32;
  WeightGeometry geometry;
  uint32_t first = 0;  ///< matrix of the stack
  uint32_t count = 0;
};

/// Places weights one after the other and notes their uploads in a plan; in one without lists it
/// only counts them.
class WeightPlacement {
 public:
  WeightPlacement(const TensorIndex& tensors, const Log& log, Plan* plan)
      : tensors_(tensors), log_(log), plan_(plan), segments_(plan->weight_segment_bytes) {}

  /// Weights as one float32 row of `cols` values: a vector, or a small matrix row by row. One that is not there makes
  /// finish() fail.
  BufferRef vector(TensorRole role, uint32_t layer, uint32_t cols);
  /// So many ones.
  BufferRef ones(uint32_t cols);
  /// Several such rows, one behind the other.
  BufferRef vectors(std::initializer_list<VectorPart> parts, uint32_t layer);

  /// Stacks the parts by rows, cuts the stack into slices, calls use(const MatrixSlice&) for each.
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

  /// `count` matrices of `rows` rows that lie one behind the other in a tensor; calls use(const StackSlice&) for its
  /// slices.
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
  /// The same of heads' matrices.
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
  /// Room for `count` such matrices, which are put there later.
  Status slots(const MatrixPart& part, uint32_t rows, uint32_t cols, uint32_t count,
               StackSlice* slice);

  /// Weights of the type will be read: places the codebooks if they are needed and not there yet.
  void willRead(WeightType type);

  /// Of weights that are read again and again: all that is placed from beginRepeated() on. After each repeat() the same
  /// are asked for in the same order, and are where they were. What follows endRepeated() is new.
  void beginRepeated();
  void repeat();
  void endRepeated() { repeats_ = false; }

  /// After the last of them.
  Status finish();

  uint64_t bytes() const { return segments_.bytes(); }
  /// Of all that is repacked at a time: a vector, or a group of rows.
  uint64_t largestGroupBytes() const { return largest_group_bytes_; }
  uint64_t adapterBytes() const { return adapter_bytes_; }

 private:
  struct Stack {
    const MatrixPart* part;  // that the next row comes from
    const MatrixPart* end;
    uint32_t cols;
    uint32_t source_row;  // of the part
    uint32_t slice_rows;  // at most
    uint64_t run_rows;    // left of the parts that have the type of `slice`
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
  WeightSegments repeated_;  ///< where they were at beginRepeated()
  bool repeats_ = false;
  uint64_t largest_group_bytes_ = 0;
  uint64_t adapter_bytes_ = 0;
  Status vectors_;  ///< the first failure among them
};

}  // namespace oriel_internal
