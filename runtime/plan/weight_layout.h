// How weights lie on the device, and the lossless repacking from a file's blocks to that.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace oriel {

/// Shape of a matrix slice on the device (shaders/shared/layout.h describes the packing). `cols` of a
/// quantised type is a multiple of kQuantBlock.
struct WeightGeometry {
  uint32_t words_per_row = 0;
  uint32_t blocks_per_row = 0;  ///< scales per row; 0 for types without

  uint64_t scalesWord(uint64_t rows) const { return rows * words_per_row; }
  uint64_t sliceBytes(uint64_t rows) const {
    return 4 * (scalesWord(rows) + (rows * blocks_per_row + 1) / 2);
  }
};
WeightGeometry weightGeometry(WeightType type, uint32_t cols);

/// Columns as the kernels see them: padded with zeros to a whole unit.
constexpr uint32_t paddedCols(uint32_t cols) { return (cols + kUnit - 1) / kUnit * kUnit; }

/// The device type of a file tensor. Vectors (norm weights) are always kF32.
bool weightTypeOf(uint32_t file_type, WeightType* type);

/// Most rows of a slice: whole groups of 16 rows within kMaxBindingBytes; 0 if not even 16 fit.
uint32_t maxSliceRows(const WeightGeometry& geometry);

/// Repacks `rows` rows, given as the file's bytes of exactly these rows, to `words` (rows *
/// words_per_row of them). `type` is weightTypeOf(file_type), or kF32 for a vector of any float type.
void repackQuants(uint32_t file_type, WeightType type, const uint8_t* source, uint32_t rows,
                  uint32_t cols, uint32_t* words);
/// The scales of these rows, in order.
void repackScales(uint32_t file_type, const uint8_t* source, uint32_t rows, uint32_t cols,
                  uint16_t* scales);
/// Bytes of one row in the file.
uint64_t fileRowBytes(uint32_t file_type, uint32_t cols);

}  // namespace oriel
