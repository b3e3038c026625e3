#include "vision/picture_layout.h"

#include <algorithm>
#include <cmath>

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

}  // namespace oriel_internal
