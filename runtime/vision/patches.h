// Pixels to the input of an encoder: size and tiles of a picture, and its patches.
#pragma once

#include "vision/vision_desc.h"

namespace oriel_internal {

// Chooses the pixels that an encoder reads: the new size of a picture, and its tiles.
//
// The rules come from the publishers (docs/pictures.md). They determine the number of rows that a picture takes in the
// text model.

/// Default for the most rows of a Gemma 4 picture.
constexpr uint32_t kDefaultImageRows = 280;

struct PictureLayout {
  Filter filter = Filter::kBilinear;
  uint32_t n_sizes = 0;  ///< resizings of the picture before it is cut into tiles
  PictureSize sizes[2];
  uint32_t tile_columns = 0;  ///< 0: not cut
  uint32_t tile_rows = 0;
  uint32_t cell = 0;
  PictureSize whole;  ///< the uncut picture, or the overview in addition to the tiles
  bool whole_of_sizes =
      false;  ///< `whole` is resized from the last of `sizes`, not from the picture

  /// Tiles row by row, and the whole picture last.
  uint32_t tileCount() const { return tile_columns * tile_rows + 1; }
  bool isWhole(uint32_t tile) const { return tile == tile_columns * tile_rows; }
  Stretches stretchesOf(uint32_t tile) const;
  /// The grid of a tile's rows of the text model: its columns and rows.
  PictureSize gridOf(uint32_t tile) const;
  uint32_t rowsOf(uint32_t tile) const;
  uint32_t rowCount() const;
};

/// `image_rows`: the most rows for a picture of kGemma4 (0: kDefaultImageRows) or kQwen3 (0: the publisher's limit).
/// Other projectors have their own limits. ORIEL_ERROR_ARGUMENT for a picture that is too narrow, or needs more positions
/// than the encoder has.
Status layOutPicture(const VisionDesc& desc, PictureSize size, uint32_t image_rows, const Log& log,
                     PictureLayout* layout);

// Converts a tile to the input of the encoder's first matrix: one vector of colours for each patch.

/// A place in a tile's grid of patches.
struct PatchPlace {
  uint32_t x = 0;
  uint32_t y = 0;
};
/// Patches come in blocks of merge x merge, so that the patches of a row of the text model are neighbours. Blocks come row
/// by row, and a block's patches, too. `columns`: patches in a row of the grid.
PatchPlace patchPlace(uint32_t merge, uint32_t columns, uint32_t index);

class PatchReader {
 public:
  /// As StretchedRows::create.
  void create(const VisionDesc& desc, const Picture& picture, const PictureLayout& layout,
              uint32_t tile, Arena* arena);
  uint32_t patchCount() const { return columns_ * rows_of_patches_; }

  /// The next patch, as [colour][y][x]. Call it at most patchCount() times.
  void next(float* patch);

 private:
  StretchedRows rows_;
  const VisionDesc* desc_ = nullptr;
  uint8_t* pixels_ = nullptr;  ///< rows of pixels for a row of blocks
  uint32_t columns_ = 0;
  uint32_t rows_of_patches_ = 0;
  uint32_t index_ = 0;  ///< of the next patch
};

/// Bytes that PatchReader takes for the pixels of a tile with `patches` patches, at most.
uint64_t patchPixelBytes(const VisionDesc& desc, uint32_t patches);

// Vectors that say where a patch is. The encoder adds them to the patches' vectors, and turns queries and keys by angles.

/// Reads the table of positions from the file, stretched to the grid of a tile.
class PatchPositions {
 public:
  /// While the file has its header. ORIEL_ERROR_UNSUPPORTED for a table that is not of floats.
  Status open(const GgufFile& file, const VisionDesc& desc, const Log& log);
  /// Reads from the same file, opened elsewhere.
  void readFrom(const GgufFile& file) { file_ = &file; }
  /// Takes memory for any grid.
  void create(Arena* arena);

  /// Adds the vector of the patch at `place` to out[n_embd]. `grid`: patches of the tile.
  Status add(PictureSize grid, PatchPlace place, const Log& log, float* out) const;

 private:
  /// The entries of an axis of the table, and their weights.
  struct Taps {
    uint32_t first = 0;
    uint32_t count = 0;
    float* weights = nullptr;
  };
  void findTaps(uint32_t patches, uint32_t index, Taps* taps) const;
  Status addRow(uint64_t row, float weight, const Log& log, float* out) const;

  const GgufFile* file_ = nullptr;
  const VisionDesc* desc_ = nullptr;
  uint64_t offset_ = 0;
  uint32_t type_ = 0;
  uint64_t row_bytes_ = 0;
  uint8_t* room_ = nullptr;   ///< a row, as in the file
  float* values_ = nullptr;   ///< [n_embd]
  float* weights_ = nullptr;  ///< [2][grid]
};

/// True if queries and keys are turned: kGemma4 and kQwen3.
inline bool turns(const VisionDesc& desc) {
  return desc.projector == Projector::kGemma4 || desc.projector == Projector::kQwen3;
}
/// (cos, sin) of the angles at `position`: headDim() / 4 pairs for an axis.
void axisRotation(const VisionDesc& desc, uint32_t position, float* pairs);

}  // namespace oriel_internal
