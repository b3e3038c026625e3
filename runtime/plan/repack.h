// Lossless repacking of a file's blocks to the device's groups of rows (shaders/shared/layout.h).
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace oriel_internal {

/// Repacks `rows` rows from the type's file format to rows first_row, first_row + 1, ... of the groups at `groups`.
/// Writes only these rows, so that several tensors can share a group.
void repackRows(WeightType type, const uint8_t* source, uint32_t rows, uint32_t cols,
                uint32_t first_row, uint32_t* groups);

/// Writes zeros to rows first_row .. first_row + rows - 1, to fill up a slice's last group.
void clearRows(WeightType type, uint32_t rows, uint32_t cols, uint32_t first_row, uint32_t* groups);

/// Converts a vector of any float type to float32, padded with zeros to paddedCols(cols).
void repackVector(uint32_t file_type, const uint8_t* source, uint32_t cols, float* values);

}  // namespace oriel_internal
