#include "vision/patches.h"

#include <algorithm>
#include <cmath>

#include "plan/repack.h"
#include "plan/weight_placement.h"

namespace oriel_internal {

Status PatchPositions::open(const GgufFile& file, const VisionDesc& desc, const Log& log) {
  GgufTensor tensor;
  constexpr char kName[] = "v.position_embd.weight";
  WeightType type = WeightType::kQ8_0;
  if (!file.findTensor(kName, &tensor) || !weightTypeOf(tensor.type, &type) ||
      type > WeightType::kBf16) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the tensor %s is of type %s, and this build reads F32, F16 and BF16: "
                    "download another mmproj file",
                    kName, tensorTypeName(tensor.type));
  }
  file_ = &file;
  desc_ = &desc;
  offset_ = tensor.offset;
  type_ = tensor.type;
  row_bytes_ = fileRowBytes(type_, desc.n_embd);
  return kOk;
}

void PatchPositions::create(Arena* arena) {
  room_ = arena->take<uint8_t>(row_bytes_);
  values_ = arena->take<float>(paddedCols(desc_->n_embd));
  weights_ = arena->take<float>(2ull * desc_->grid);
}

Status PatchPositions::addRow(uint64_t row, float weight, const Log& log, float* out) const {
  const uint8_t* data = nullptr;
  ORIEL_TRY(file_->read(offset_ + row * row_bytes_, row_bytes_, room_, log, &data));
  repackVector(type_, data, desc_->n_embd, values_);
  for (uint32_t c = 0; c < desc_->n_embd; ++c) {
    out[c] += weight * values_[c];
  }
  return kOk;
}

// kQwen3: bilinear with aligned corners. kLfm2: an antialiased triangle with centres at halves, as torch's.
void PatchPositions::findTaps(uint32_t patches, uint32_t index, Taps* taps) const {
  const uint32_t side = desc_->grid;
  if (desc_->projector == Projector::kQwen3) {
    const float at = patches == 1 ? 0.0f
                                  : static_cast<float>(index) * static_cast<float>(side - 1) /
                                        static_cast<float>(patches - 1);
    taps->first = std::min(static_cast<uint32_t>(at), side - 1);
    taps->count = std::min(2u, side - taps->first);
    taps->weights[0] = 1;
    if (taps->count == 2) {
      taps->weights[1] = at - static_cast<float>(taps->first);
      taps->weights[0] = 1 - taps->weights[1];
    }
    return;
  }
  if (desc_->projector == Projector::kIdefics3) {
    taps->first = index;
    taps->count = 1;
    taps->weights[0] = 1;
    return;
  }
  const double scale = static_cast<double>(side) / patches;
  const double support = std::max(1.0, scale);
  const double centre = (index + 0.5) * scale;
  const double first = std::max(0.0, std::floor(centre - support + 0.5));
  const double end = std::min<double>(side, std::floor(centre + support + 0.5));
  taps->first = static_cast<uint32_t>(first);
  taps->count = static_cast<uint32_t>(end - first);
  double sum = 0;
  for (uint32_t i = 0; i < taps->count; ++i) {
    const double weight = std::max(0.0, 1 - std::fabs(first + i + 0.5 - centre) / support);
    taps->weights[i] = static_cast<float>(weight);
    sum += weight;
  }
  for (uint32_t i = 0; i < taps->count; ++i) {
    taps->weights[i] /= static_cast<float>(sum);
  }
}

Status PatchPositions::add(PictureSize grid, PatchPlace place, const Log& log, float* out) const {
  if (desc_->projector == Projector::kGemma4) {  // the table of columns, then the table of rows
    ORIEL_TRY(addRow(place.x, 1, log, out));
    return addRow(uint64_t{desc_->grid} + place.y, 1, log, out);
  }
  Taps across = {0, 0, weights_};
  Taps down = {0, 0, weights_ + desc_->grid};
  findTaps(grid.width, place.x, &across);
  findTaps(grid.height, place.y, &down);
  for (uint32_t y = 0; y < down.count; ++y) {
    for (uint32_t x = 0; x < across.count; ++x) {
      const float weight = down.weights[y] * across.weights[x];
      if (weight != 0) {
        ORIEL_TRY(
            addRow(uint64_t{down.first + y} * desc_->grid + across.first + x, weight, log, out));
      }
    }
  }
  return kOk;
}

void axisRotation(const VisionDesc& desc, uint32_t position, float* pairs) {
  const double base = desc.projector == Projector::kGemma4 ? 100 : 10000;
  const uint32_t count = desc.headDim() / 4;
  for (uint32_t i = 0; i < count; ++i) {
    const double angle = position * std::pow(base, -static_cast<double>(i) / count);
    pairs[2 * i] = static_cast<float>(std::cos(angle));
    pairs[2 * i + 1] = static_cast<float>(std::sin(angle));
  }
}

PatchPlace patchPlace(uint32_t merge, uint32_t columns, uint32_t index) {
  const uint32_t block = index / (merge * merge);
  const uint32_t within = index % (merge * merge);
  const uint32_t blocks = columns / merge;
  return {block % blocks * merge + within % merge, block / blocks * merge + within / merge};
}

uint64_t patchPixelBytes(const VisionDesc& desc, uint32_t patches) {
  return uint64_t{patches} * desc.patchValues();
}

void PatchReader::create(const VisionDesc& desc, const Picture& picture,
                         const PictureLayout& layout, uint32_t tile, Arena* arena) {
  const Stretches stretches = layout.stretchesOf(tile);
  rows_.create(picture, stretches, arena);
  desc_ = &desc;
  columns_ = stretches.area.width / desc.patch;
  rows_of_patches_ = stretches.area.height / desc.patch;
  pixels_ = arena->take<uint8_t>(patchPixelBytes(desc, columns_ * desc.merge));
  index_ = 0;
}

void PatchReader::next(float* patch) {
  const uint32_t side = desc_->patch;
  const size_t row_bytes = size_t{columns_} * side * 3;
  const PatchPlace place = patchPlace(desc_->merge, columns_, index_);
  const uint32_t of_blocks = columns_ * desc_->merge;
  if (index_ % of_blocks == 0) {
    const uint32_t first = index_ / columns_ * side;
    for (uint32_t y = 0; y < desc_->cell(); ++y) {
      std::copy_n(rows_.row(first + y), row_bytes, pixels_ + y * row_bytes);
    }
  }
  ++index_;
  const uint8_t* from =
      pixels_ + place.y % desc_->merge * side * row_bytes + size_t{place.x} * side * 3;
  for (uint32_t y = 0; y < side; ++y, from += row_bytes) {
    for (uint32_t x = 0; x < side; ++x) {
      for (uint32_t colour = 0; colour < 3; ++colour) {
        patch[(colour * side + y) * side + x] =
            static_cast<float>(from[3 * x + colour]) * desc_->scale[colour] + desc_->offset[colour];
      }
    }
  }
}

}  // namespace oriel_internal
