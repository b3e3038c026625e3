// How weights lie on the device. shaders/shared/layout.h has the packing, plan/repack.h does it.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Shape of a matrix slice on the device. `cols` of a quantised type is a multiple of its block.
struct WeightGeometry {
  uint32_t units = 0;  ///< of kUnit columns
  uint32_t quads = 0;  ///< four words of quants each, per row
  uint32_t side = 0;   ///< words of scales and the like, per row

  uint64_t rowBytes() const { return 16ull * quads + 4ull * side; }
  uint64_t groupBytes() const { return kGroupRows * rowBytes(); }
  uint32_t groupWords() const { return static_cast<uint32_t>(groupBytes() / 4); }
  /// Where the side words of a group begin.
  uint32_t sideWord() const { return kGroupRows * 4 * quads; }
  uint64_t sliceBytes(uint64_t rows) const { return ceilDiv(rows, kGroupRows) * groupBytes(); }
};
WeightGeometry weightGeometry(WeightType type, uint32_t cols);

/// Columns as the kernels see them: padded with zeros to a whole unit.
constexpr uint32_t paddedCols(uint32_t cols) { return (cols + kUnit - 1) / kUnit * kUnit; }

/// Bytes of a vector of weights (a norm, a bias): plain float32.
constexpr uint64_t vectorBytes(uint32_t cols) { return 4ull * paddedCols(cols); }

/// What a matrix becomes whose columns are made rows: types of single values stay, all others become kF16.
constexpr WeightType transposedType(WeightType type) {
  return type == WeightType::kF32 || type == WeightType::kBf16 ? type : WeightType::kF16;
}

/// The device type of a file tensor that is a matrix. Vectors are always float32.
bool weightTypeOf(uint32_t file_type, WeightType* type);
uint32_t fileTypeOf(WeightType type);

/// Most rows of a slice: whole groups within kMaxBindingBytes; 0 if not even one fits.
uint32_t maxSliceRows(const WeightGeometry& geometry);

/// Bytes of one row in the file.
uint64_t fileRowBytes(uint32_t file_type, uint32_t cols);

}  // namespace oriel_internal
