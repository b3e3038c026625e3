#include "vision/patches.h"

#include <algorithm>
#include <cmath>

#include "plan/repack.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

// Published limits of a picture's area after resizing, for files without limits.
constexpr double kQwenLeastPixels = 65536;
constexpr double kQwenMostPixels = 16777216;
constexpr double kLongestShape = 200;  // long side / short side
// LFM2-VL: rows of a tile, and the possible grids of tiles.
constexpr double kLfmLeastRows = 64;
constexpr double kLfmMostRows = 256;
constexpr uint32_t kLfmTileSide = 512;
constexpr double kLfmTolerance = 2;  // pictures of up to this many tiles in area are not cut
constexpr uint32_t kLfmMostTiles = 10;

/// Ties go to the even number, as in Python.
double roundToEven(double x) {
  const double below = std::floor(x);
  const double rest = x - below;
  const bool up = rest > 0.5 || (rest == 0.5 && std::fmod(below, 2) != 0);
  return up ? below + 1 : below;
}

uint32_t multiple(double count, uint32_t cell) { return static_cast<uint32_t>(count) * cell; }
uint32_t roundUp(uint32_t side, uint32_t cell) { return (side + cell - 1) / cell * cell; }
double areaOf(PictureSize size) { return static_cast<double>(size.width) * size.height; }

Status tooNarrow(PictureSize size, const Log& log) {
  return log.fail(
      ORIEL_ERROR_ARGUMENT,
      "the picture has %u x %u pixels, too narrow for this model: cut it or add a margin",
      size.width, size.height);
}

/// Uses the whole budget of cells: shrinks a larger picture, enlarges a smaller one.
Status fillBudget(PictureSize size, uint32_t cell, uint32_t rows, const Log& log,
                  PictureSize* whole) {
  const double scale = std::sqrt(static_cast<double>(rows) * cell * cell / areaOf(size));
  const auto cellsOf = [&](uint32_t side) { return std::floor(scale * side / cell); };
  uint32_t width = multiple(cellsOf(size.width), cell);
  uint32_t height = multiple(cellsOf(size.height), cell);
  if (width == 0 && height == 0) {
    return tooNarrow(size, log);
  }
  const uint32_t most = rows * cell;
  if (height == 0) {
    height = cell;
    width = std::min(size.width / size.height * cell, most);
  } else if (width == 0) {
    width = cell;
    height = std::min(size.height / size.width * cell, most);
  }
  *whole = {width, height};
  return kOk;
}

/// The nearest multiples of a cell whose area lies within two bounds.
PictureSize fitArea(PictureSize size, uint32_t cell, double least, double most) {
  const auto sided = [&](double (*round)(double), double divisor) {
    const auto side = [&](uint32_t pixels) {
      return std::max(cell, multiple(round(pixels / divisor / cell), cell));
    };
    return PictureSize{side(size.width), side(size.height)};
  };
  const PictureSize near = sided(roundToEven, 1);
  if (areaOf(near) > most) {
    return sided([](double x) { return std::floor(x); }, std::sqrt(areaOf(size) / most));
  }
  if (areaOf(near) < least) {
    return sided([](double x) { return std::ceil(x); }, 1 / std::sqrt(least / areaOf(size)));
  }
  return near;
}

/// The grid whose shape is nearest to the picture's; on a tie the larger grid, if its area is less than
/// twice the picture's.
void chooseGrid(PictureSize size, PictureLayout* layout) {
  const double shape = static_cast<double>(size.width) / size.height;
  double least = HUGE_VAL;
  for (uint32_t area = 2; area <= kLfmMostTiles; ++area) {
    for (uint32_t columns = 1; columns <= area; ++columns) {
      if (area % columns != 0) {
        continue;
      }
      const uint32_t rows = area / columns;
      const double distance = std::fabs(shape - static_cast<double>(columns) / rows);
      const double half = 0.5 * kLfmTileSide * kLfmTileSide * area;
      if (distance < least || (distance == least && areaOf(size) > half)) {
        least = distance;
        layout->tile_columns = columns;
        layout->tile_rows = rows;
      }
    }
  }
}

void layOutLfm2(const VisionDesc& desc, PictureSize size, PictureLayout* layout) {
  const double cell_area = static_cast<double>(desc.cell()) * desc.cell();
  const double most = kLfmMostRows * cell_area;
  layout->whole = fitArea(size, desc.cell(), kLfmLeastRows * cell_area, most);
  const auto near = [&](uint32_t side) {
    return std::max<double>(desc.patch,
                            roundToEven(static_cast<double>(side) / desc.cell()) * desc.cell());
  };
  if (near(size.width) * near(size.height) > kLfmTolerance * most) {
    chooseGrid(size, layout);
    layout->n_sizes = 1;
    layout->sizes[0] = {layout->tile_columns * kLfmTileSide, layout->tile_rows * kLfmTileSide};
  }
}

void layOutIdefics3(const VisionDesc& desc, PictureSize size, PictureLayout* layout) {
  const bool wide = size.width >= size.height;
  const uint32_t long_side = desc.longest_side;
  const double shape = static_cast<double>(size.width) / size.height;
  auto short_side = static_cast<uint32_t>(wide ? long_side / shape : long_side * shape);
  short_side = std::max(1u, short_side + short_side % 2);
  const PictureSize first =
      wide ? PictureSize{long_side, short_side} : PictureSize{short_side, long_side};
  const uint32_t tile = desc.image_side;
  const PictureSize second = {roundUp(first.width, tile), roundUp(first.height, tile)};
  layout->n_sizes = 2;
  layout->sizes[0] = first;
  layout->sizes[1] = second;
  layout->whole = {tile, tile};
  layout->whole_of_sizes = true;
  if (second.width > tile || second.height > tile) {
    layout->tile_columns = second.width / tile;
    layout->tile_rows = second.height / tile;
  }
}

}  // namespace

Stretches PictureLayout::stretchesOf(uint32_t tile) const {
  Stretches all;
  all.filter = filter;
  if (!isWhole(tile) || whole_of_sizes) {
    all.count = n_sizes;
    std::copy(sizes, sizes + n_sizes, all.sizes);
  }
  if (isWhole(tile)) {
    all.sizes[all.count++] = whole;
    all.area = {0, 0, whole.width, whole.height};
    return all;
  }
  const PictureSize& last = sizes[n_sizes - 1];
  const PictureSize size = {last.width / tile_columns, last.height / tile_rows};
  all.area = {tile % tile_columns * size.width, tile / tile_columns * size.height, size.width,
              size.height};
  return all;
}

PictureSize PictureLayout::gridOf(uint32_t tile) const {
  const PictureArea area = stretchesOf(tile).area;
  return {area.width / cell, area.height / cell};
}

uint32_t PictureLayout::rowsOf(uint32_t tile) const {
  const PictureSize grid = gridOf(tile);
  return grid.width * grid.height;
}

uint32_t PictureLayout::rowCount() const {
  uint32_t rows = 0;
  for (uint32_t tile = 0; tile < tileCount(); ++tile) {
    rows += rowsOf(tile);
  }
  return rows;
}

Status layOutPicture(const VisionDesc& desc, PictureSize size, uint32_t image_rows, const Log& log,
                     PictureLayout* layout) {
  *layout = PictureLayout();
  layout->cell = desc.cell();
  switch (desc.projector) {
    case Projector::kGemma4:
      layout->filter = Filter::kBicubic;
      ORIEL_TRY(fillBudget(size, desc.cell(), image_rows != 0 ? image_rows : kDefaultImageRows, log,
                           &layout->whole));
      if (std::max(layout->whole.width, layout->whole.height) > desc.grid * desc.patch) {
        return log.fail(
            ORIEL_ERROR_ARGUMENT,
            "the picture would have %u x %u patches, and the encoder knows %u positions "
            "a side: give fewer image tokens",
            layout->whole.width / desc.patch, layout->whole.height / desc.patch, desc.grid);
      }
      return kOk;
    case Projector::kQwen3: {
      const double sides[] = {static_cast<double>(size.width), static_cast<double>(size.height)};
      if (std::max(sides[0], sides[1]) / std::min(sides[0], sides[1]) > kLongestShape) {
        return tooNarrow(size, log);
      }
      layout->filter = Filter::kBicubic;
      const double most = image_rows != 0
                              ? std::min(kQwenMostPixels, static_cast<double>(image_rows) *
                                                              desc.cell() * desc.cell())
                              : kQwenMostPixels;
      layout->whole = fitArea(size, desc.cell(), std::min(kQwenLeastPixels, most), most);
      return kOk;
    }
    case Projector::kLfm2:
      layout->filter = Filter::kBilinear;
      layOutLfm2(desc, size, layout);
      return kOk;
    case Projector::kIdefics3:
      layout->filter = Filter::kLanczos;
      layOutIdefics3(desc, size, layout);
      return kOk;
  }
  return kOk;
}

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

// ---- Resizing (vision_desc.h) -------------------------------------------------------------------

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
