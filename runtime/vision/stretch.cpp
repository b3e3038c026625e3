#include "vision/vision_desc.h"

#include <algorithm>
#include <cmath>

namespace oriel_internal {
namespace {

constexpr int kFractionBits = 22;
constexpr double kPi = 3.14159265358979323846;

double sinc(double x) { return x == 0 ? 1 : std::sin(kPi * x) / (kPi * x); }

struct Kernel {
  double reach;  ///< the kernel is 0 beyond this distance
  double (*at)(double distance);
};

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::fabs(x);
  if (x < 1) {
    return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  }
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

double lanczos(double x) { return std::fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

constexpr Kernel kKernels[] = {{1, triangle}, {2, cubic}, {3, lanczos}};

const Kernel& kernelOf(Filter filter) { return kKernels[static_cast<size_t>(filter)]; }

/// Most input pixels that an output pixel reads.
uint32_t mostTaps(Filter filter, uint32_t from, uint32_t to) {
  const double ratio = std::max(1.0, static_cast<double>(from) / to);
  const double most = std::ceil(kernelOf(filter).reach * ratio) * 2 + 1;
  return std::min(from, static_cast<uint32_t>(most));
}

uint8_t toByte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

}  // namespace

Status checkPicture(const Picture& picture, const Log& log) {
  if (picture.pixels == nullptr || picture.width == 0 || picture.height == 0 ||
      picture.width > kMaxPictureSide || picture.height > kMaxPictureSide) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the picture is %u x %u pixels: give one of 1 to %u pixels a side",
                    picture.width, picture.height, kMaxPictureSide);
  }
  const size_t row_bytes = static_cast<size_t>(picture.width) * bytesOfPixel(picture.order);
  if (picture.stride < row_bytes) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the picture's rows are %zu bytes apart and have %zu: give a larger stride",
                    picture.stride, row_bytes);
  }
  return kOk;
}

StretchedRows::Taps StretchedRows::tapsOf(Filter filter, uint32_t from, uint32_t to, uint32_t index,
                                          int32_t* weights) {
  const Kernel& kernel = kernelOf(filter);
  const double ratio = static_cast<double>(from) / to;
  const double widened = std::max(1.0, ratio);
  const double reach = kernel.reach * widened;
  const double centre = (index + 0.5) * ratio;
  const double begin = std::max(0.0, std::floor(centre - reach + 0.5));
  const double end = std::min<double>(from, std::floor(centre + reach + 0.5));
  Taps taps;
  taps.first = static_cast<uint32_t>(begin);
  taps.count = static_cast<uint32_t>(end) - taps.first;
  if (weights == nullptr) {
    return taps;
  }
  const auto weightOf = [&](uint32_t i) { return kernel.at((i + begin - centre + 0.5) / widened); };
  double sum = 0;
  for (uint32_t i = 0; i < taps.count; ++i) {
    sum += weightOf(i);
  }
  for (uint32_t i = 0; i < taps.count; ++i) {
    const double weight = weightOf(i) / sum * (1 << kFractionBits);
    weights[i] = static_cast<int32_t>(weight + (weight < 0 ? -0.5 : 0.5));
  }
  return taps;
}

void StretchedRows::create(const Picture& picture, const Stretches& stretches, Arena* arena) {
  picture_ = picture;
  filter_ = stretches.filter;
  n_stages_ = stretches.count;
  area_ = stretches.area;
  PictureArea area = stretches.area;
  for (uint32_t i = n_stages_; i-- > 0;) {
    Stage& stage = stages_[i];
    stage = Stage();
    stage.from = i == 0 ? PictureSize{picture.width, picture.height} : stretches.sizes[i - 1];
    stage.to = stretches.sizes[i];
    stage.area = area;
    const Taps left = tapsOf(filter_, stage.from.width, stage.to.width, area.x, nullptr);
    const Taps right =
        tapsOf(filter_, stage.from.width, stage.to.width, area.x + area.width - 1, nullptr);
    stage.from_x = left.first;
    stage.columns_each = mostTaps(filter_, stage.from.width, stage.to.width);
    stage.rows_kept = mostTaps(filter_, stage.from.height, stage.to.height);
    stage.columns = arena->take<Taps>(area.width);
    stage.column_weights = arena->take<int32_t>(uint64_t{area.width} * stage.columns_each);
    stage.row_weights = arena->take<int32_t>(stage.rows_kept);
    stage.rows = arena->take<uint8_t>(uint64_t{stage.rows_kept} * area.width * 3);
    stage.sums = arena->take<int32_t>(uint64_t{area.width} * 3);
    stage.out = arena->take<uint8_t>(uint64_t{area.width} * 3);
    if (!arena->measuring() && !arena->exhausted()) {
      for (uint32_t x = 0; x < area.width; ++x) {
        stage.columns[x] = tapsOf(filter_, stage.from.width, stage.to.width, area.x + x,
                                  stage.column_weights + size_t{x} * stage.columns_each);
      }
    }
    // The part of the input that the rows below need. Their heights follow from the requested area.
    area = {left.first, 0, right.first + right.count - left.first, stage.from.height};
  }
  picture_x_ = area.x;
  picture_columns_ = area.width;
  picture_row_ = arena->take<uint8_t>(uint64_t{picture_columns_} * 3);
}

const uint8_t* StretchedRows::row(uint32_t y) {
  return n_stages_ == 0 ? pictureRow(area_.y + y) : stageRow(n_stages_ - 1, area_.y + y);
}

const uint8_t* StretchedRows::pictureRow(uint32_t y) {
  const uint32_t bytes = bytesOfPixel(picture_.order);
  const bool reversed = picture_.order == PixelOrder::kBgra8;
  const uint8_t* from = picture_.pixels + picture_.stride * y + size_t{picture_x_} * bytes;
  uint8_t* to = picture_row_;
  for (uint32_t x = 0; x < picture_columns_; ++x, from += bytes, to += 3) {
    to[0] = from[reversed ? 2 : 0];
    to[1] = from[1];
    to[2] = from[reversed ? 0 : 2];
  }
  return picture_row_;
}

void StretchedRows::stretchColumns(const Stage& stage, const uint8_t* from, uint8_t* to) const {
  for (uint32_t x = 0; x < stage.area.width; ++x) {
    const Taps taps = stage.columns[x];
    const int32_t* const weights = stage.column_weights + size_t{x} * stage.columns_each;
    const uint8_t* at = from + size_t{taps.first - stage.from_x} * 3;
    int32_t sums[3] = {1 << (kFractionBits - 1), 1 << (kFractionBits - 1),
                       1 << (kFractionBits - 1)};
    for (uint32_t i = 0; i < taps.count; ++i, at += 3) {
      sums[0] += at[0] * weights[i];
      sums[1] += at[1] * weights[i];
      sums[2] += at[2] * weights[i];
    }
    to[size_t{x} * 3] = toByte(sums[0]);
    to[size_t{x} * 3 + 1] = toByte(sums[1]);
    to[size_t{x} * 3 + 2] = toByte(sums[2]);
  }
}

const uint8_t* StretchedRows::stageRow(uint32_t index, uint32_t y) {
  Stage& stage = stages_[index];
  const size_t row_bytes = size_t{stage.area.width} * 3;
  const Taps taps = tapsOf(filter_, stage.from.height, stage.to.height, y, stage.row_weights);
  for (stage.next = std::max(stage.next, taps.first); stage.next < taps.first + taps.count;
       ++stage.next) {
    const uint8_t* const below =
        index == 0 ? pictureRow(stage.next) : stageRow(index - 1, stage.next);
    stretchColumns(stage, below, stage.rows + row_bytes * (stage.next % stage.rows_kept));
  }
  std::fill(stage.sums, stage.sums + row_bytes, 1 << (kFractionBits - 1));
  for (uint32_t tap = 0; tap < taps.count; ++tap) {
    const uint8_t* const from = stage.rows + row_bytes * ((taps.first + tap) % stage.rows_kept);
    const int32_t weight = stage.row_weights[tap];
    for (size_t i = 0; i < row_bytes; ++i) {
      stage.sums[i] += from[i] * weight;
    }
  }
  std::transform(stage.sums, stage.sums + row_bytes, stage.out, toByte);
  return stage.out;
}

}  // namespace oriel_internal
