// Lossless repacking of a file's blocks to the device's groups of rows (shaders/shared/layout.h).
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace oriel_internal {

/// Repacks `rows` rows of the type's file format to rows first_row, first_row + 1, ... of the
/// groups that begin at `groups`. Touches nothing else, so that parts of several tensors can share
/// a group.
void repackRows(WeightType type, const uint8_t* source, uint32_t rows, uint32_t cols,
                uint32_t first_row, uint32_t* groups);

/// Zeros in rows first_row .. first_row + rows - 1: what fills a slice's last group up.
void clearRows(WeightType type, uint32_t rows, uint32_t cols, uint32_t first_row, uint32_t* groups);

/// A vector of any float type as float32, padded with zeros to paddedCols(cols).
void repackVector(uint32_t file_type, const uint8_t* source, uint32_t cols, float* values);

}  // namespace oriel_internal
