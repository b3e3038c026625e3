// The layout of weights on the device. shaders/shared/layout.h describes the packing, plan/repack.h does it.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "plan/plan.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
