#include "vision/picture_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "exec/load_weights.h"
#include "plan/repack.h"
#include "plan/weight_placement.h"
#include "vision/patches.h"
#include "vision/picture_plan.h"

namespace oriel_internal {
namespace {

/// The planned rows if the caller gives no number.
constexpr uint32_t kDefaultQwenRows = 1024;
/// LFM2-VL: rows of an uncut picture, and the side of a tile in pixels.
constexpr uint32_t kLfmRows = 256;
constexpr uint32_t kLfmTile = 512;
/// Memory to resize a picture with: enough for kMaxPictureSide pixels a side.
constexpr uint64_t kStretchBytes = 4 << 20;

/// Hands out one block, which is in use for the length of a call.
class OneBlock {
 public:
  OneBlock(void* block, uint64_t bytes) : block_(block), bytes_(bytes) {}
  oriel_allocator allocator() { return {&OneBlock::allocate, &OneBlock::release, this}; }

 private:
  static void* allocate(size_t bytes, void* user) {
    const OneBlock& self = *static_cast<OneBlock*>(user);
    return bytes <= self.bytes_ ? self.block_ : nullptr;
  }
  static void release(void*, size_t, void*) {}
  void* block_;
  uint64_t bytes_;
};

}  // namespace

struct PictureEncoder::Parts {
  PicturePlan of;
  PatchPositions positions;
  uint8_t* room = nullptr;        ///< [of.read_bytes]: weights in the file's form
  uint8_t* pixel_room = nullptr;  ///< [pixel_bytes]: of PatchReader
  uint64_t pixel_bytes = 0;
  float* rotations = nullptr;  ///< [sides][headDim() / 2]: (cos, sin) by position on an axis
  uint32_t sides = 0;
  bool has_ones = false;
};

uint32_t defaultImageRows(const VisionDesc& desc) {
  const bool lfm2 = desc.projector == Projector::kLfm2;
  const uint32_t side = (lfm2 ? kLfmTile : desc.image_side) / desc.cell();
  switch (desc.projector) {
    case Projector::kGemma4:
      return kDefaultImageRows;
    case Projector::kQwen3:
      return kDefaultQwenRows;
    case Projector::kLfm2:
      return std::max(kLfmRows, side * side);
    case Projector::kIdefics3:
      return side * side;
  }
  return kDefaultImageRows;
}

Status PictureEncoder::create(const GgufFile& file, const VisionDesc& desc, uint32_t image_rows,
                              const Log& log, Arena* arena) {
  file_ = &file;
  desc_ = &desc;
  const bool chosen = desc.projector == Projector::kGemma4 || desc.projector == Projector::kQwen3;
  image_rows_ = image_rows != 0 && chosen ? image_rows : defaultImageRows(desc);
  const uint64_t patches = uint64_t{image_rows_} * desc.merge * desc.merge;
  if (patches > kMostPatches) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "pictures of %u image tokens have more than %u patches: give fewer",
                    image_rows_, kMostPatches);
  }
  Parts own;
  Parts* const memory = arena->take<Parts>(1);
  parts_ = memory != nullptr ? new (memory) Parts : nullptr;
  Parts& parts = parts_ != nullptr ? *parts_ : own;
  ORIEL_TRY(parts.positions.open(file, desc, log));
  parts.positions.create(arena);
  ORIEL_TRY(buildPicturePlan(file, desc, static_cast<uint32_t>(patches), log, arena, &parts.of));
  parts.room = arena->take<uint8_t>(parts.of.read_bytes);
  parts.pixel_bytes =
      kStretchBytes + patchPixelBytes(desc, static_cast<uint32_t>(patches)) + Arena::kAlignment;
  parts.pixel_room = arena->take<uint8_t>(parts.pixel_bytes);
  parts.sides = static_cast<uint32_t>(patches) / desc.merge;
  parts.rotations =
      arena->take<float>(turns(desc) ? uint64_t{parts.sides} * desc.headDim() / 2 : 0);
  for (uint32_t i = 0; i < parts.sides && turns(desc) && parts.rotations != nullptr; ++i) {
    axisRotation(desc, i, parts.rotations + uint64_t{i} * (desc.headDim() / 2));
  }
  plan_ = parts.of.plan;
  memory_ = takeExecutorMemory(plan_, arena);
  return kOk;
}

void PictureEncoder::use(Executor* executor) {
  executor_ = executor;
  parts_->has_ones = false;
}

void PictureEncoder::readFrom(const GgufFile& file) {
  file_ = &file;
  parts_->positions.readFrom(file);
}

uint64_t PictureEncoder::deviceBytes() const {
  return plan_.weights_bytes + plan_.cache_bytes + plan_.activation_bytes + plan_.io_bytes;
}

Status PictureEncoder::layOut(const Picture& picture, const Log& log, PictureLayout* layout) const {
  ORIEL_TRY(checkPicture(picture, log));
  ORIEL_TRY(layOutPicture(*desc_, {picture.width, picture.height}, image_rows_, log, layout));
  for (uint32_t tile = 0; tile < layout->tileCount(); ++tile) {
    if (layout->rowsOf(tile) > image_rows_) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "a picture of %u x %u pixels takes %u image tokens, and memory is planned "
                      "for %u: cut it, or give more image tokens",
                      picture.width, picture.height, layout->rowsOf(tile), image_rows_);
    }
  }
  return kOk;
}

/// One call of encode().
class PictureEncoder::Run {
 public:
  Run(PictureEncoder* encoder, const Log& log, const StopCheck& stop)
      : encoder_(*encoder),
        desc_(*encoder->desc_),
        parts_(*encoder->parts_),
        of_(parts_.of),
        plan_(encoder->plan_),
        device_(*encoder->executor_),
        log_(log),
        stop_(stop),
        strip_(plan_.chunk_tokens),
        cell_(desc_.merge * desc_.merge) {}

  /// Writes the tile's rows.
  Status tile(const Picture& picture, const PictureLayout& layout, uint32_t tile, float* rows) {
    rows_ = rows;
    const PictureArea area = layout.stretchesOf(tile).area;
    grid_ = {area.width / desc_.patch, area.height / desc_.patch};
    patches_ = grid_.width * grid_.height;
    if (patches_ > of_.most_patches || patches_ % cell_ != 0) {
      return log_.fail(ORIEL_ERROR_INTERNAL,
                       "a picture of %u patches where %u were planned: please report it", patches_,
                       of_.most_patches);
    }
    ORIEL_TRY(readPatches(picture, layout, tile));
    for (uint32_t block = 0, deep = 0; block < desc_.n_blocks; ++block) {
      ORIEL_TRY(load(WeightSet::kBlock, block));
      ORIEL_TRY(eachStrip(&Run::keysOf));
      ORIEL_TRY(eachStrip(&Run::restOf));
      if (deep < desc_.n_deepstack && desc_.deepstack[deep] == block) {
        ORIEL_TRY(load(WeightSet::kDeepstack, deep));
        part_ = ++deep;
        ORIEL_TRY(eachStrip(&Run::deepRowsOf));
      }
    }
    ORIEL_TRY(load(WeightSet::kProjector, 0));
    part_ = 0;
    return eachStrip(&Run::rowsOf);
  }

 private:
  /// Patches first .. first + count - 1: whole cells.
  struct Strip {
    uint32_t first;
    uint32_t count;
  };
  Status eachStrip(Status (Run::*work)(const Strip& strip)) {
    for (uint32_t first = 0; first < patches_; first += strip_) {
      ORIEL_TRY(stop_.check());
      ORIEL_TRY((this->*work)({first, std::min(strip_, patches_ - first)}));
    }
    return kOk;
  }

  Status keysOf(const Strip& strip) {
    ORIEL_TRY(bring(strip));
    return run(kKeysRun, strip);
  }
  Status restOf(const Strip& strip) {
    ORIEL_TRY(bring(strip));
    ORIEL_TRY(run(kRestRun, strip));
    return takeBack(strip);
  }
  Status deepRowsOf(const Strip& strip) {
    ORIEL_TRY(bring(strip));
    ORIEL_TRY(runCells(kCellsRun, std::max(strip.count / cell_, 2u)));
    return keepRows(strip);
  }
  Status rowsOf(const Strip& strip) {
    ORIEL_TRY(bring(strip));
    if (desc_.projector == Projector::kGemma4) {
      ORIEL_TRY(findMeans(strip.count));
    }
    ORIEL_TRY(runCells(kProjectorRun, strip.count / cell_));
    return keepRows(strip);
  }

  BufferRef ofX(const Strip& strip) const {
    const uint64_t vector = 4ull * desc_.n_embd;
    return of_.x.part(strip.first * vector, strip.count * vector);
  }
  Status bring(const Strip& strip) {
    const BufferRef from = ofX(strip);
    const CopyPiece piece = {from, of_.strip.resized(from.size_bytes)};
    return device_.copy(&piece, 1);
  }
  Status takeBack(const Strip& strip) {
    const BufferRef to = ofX(strip);
    const CopyPiece piece = {of_.strip.resized(to.size_bytes), to};
    return device_.copy(&piece, 1);
  }

  // --- Steps --------------------------------------------------------------------------------------

  StepBlock begin(uint32_t n_tokens, uint32_t n_outputs) {
    const StepBlock block(device_.step());
    block.header() = {};
    block.header().n_tokens = n_tokens;
    block.header().n_outputs = n_outputs;
    block.header().token_words = tokenWords(1);
    block.header().tail = kPoolMean;
    return block;
  }

  // Every patch sees all patches of the tile.
  Status run(StepRun what, const Strip& strip) {
    const StepBlock block = begin(strip.count, 0);
    const uint32_t half = of_.rotation_words / 2;
    for (uint32_t i = 0; i < strip.count; ++i) {
      block.token(i) = {};
      View& view = block.view(i, 0);
      view = {};
      view.slot = strip.first + i;
      view.count = patches_;
      view.ring = view.all_ring = plan_.cache.ring;
      if (half != 0) {
        const PatchPlace place = patchPlace(desc_.merge, grid_.width, strip.first + i);
        const bool columns_first = desc_.projector == Projector::kGemma4;
        float* const pairs = block.floats(stepRotationWord(strip_, 1, of_.rotation_words, i));
        const float* const across = parts_.rotations + uint64_t{place.x} * half;
        const float* const down = parts_.rotations + uint64_t{place.y} * half;
        std::copy_n(columns_first ? across : down, half, pairs);
        std::copy_n(columns_first ? down : across, half, pairs + half);
      }
    }
    return device_.run(what, stop_);
  }

  Status runCells(StepRun what, uint32_t cells) {
    const bool as_outputs = what == kCellsRun;
    const StepBlock block = begin(cells, as_outputs ? cells : 0);
    for (uint32_t i = 0; i < cells; ++i) {
      block.token(i) = {};
      block.token(i).output = i;
      block.view(i, 0) = {};
    }
    return device_.run(what, stop_);
  }

  // A cell is a text, as kPool takes them.
  Status findMeans(uint32_t count) {
    const uint32_t cells = count / cell_;
    const StepBlock block = begin(count, std::max(cells, 2u));
    for (uint32_t i = 0; i < count; ++i) {
      block.token(i) = {};
      block.view(i, 0) = {};
      block.view(i, 0).slot = i % cell_;
    }
    for (uint32_t i = 0; i < std::max(cells, 2u); ++i) {
      block.token(i).output = std::min(i + 1, cells) * cell_ - 1;
    }
    return device_.run(kCellsRun, stop_);
  }

  // --- In and out ---------------------------------------------------------------------------------

  Status readPatches(const Picture& picture, const PictureLayout& layout, uint32_t tile) {
    Arena pixels(parts_.pixel_room, parts_.pixel_bytes);
    std::memset(parts_.pixel_room, 0, static_cast<size_t>(parts_.pixel_bytes));

    reader_.create(desc_, picture, layout, tile, &pixels);
    if (pixels.exhausted()) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "a picture of %u x %u pixels needs too much memory to be resized: make it "
                       "smaller",
                       picture.width, picture.height);
    }
    ORIEL_TRY(load(WeightSet::kPatches, 0));

    return eachStrip(&Run::vectorsOf);
  }

  Status vectorsOf(const Strip& strip) {
    ORIEL_TRY(send(of_.patches, strip.count, of_.patch_stride, [&](uint32_t, float* patch) {
      std::fill(patch + desc_.patchValues(), patch + of_.patch_stride, 0.0f);
      reader_.next(patch);
      return Status(kOk);
    }));
    ORIEL_TRY(send(of_.strip, strip.count, desc_.n_embd, [&](uint32_t i, float* vector) {
      std::fill_n(vector, desc_.n_embd, 0.0f);
      return parts_.positions.add(grid_, patchPlace(desc_.merge, grid_.width, strip.first + i),
                                  log_, vector);
    }));
    ORIEL_TRY(device_.finishWrites());
    ORIEL_TRY(run(kPatchesRun, strip));
    return takeBack(strip);
  }

  /// Writes `count` vectors of `stride` floats, as many at a time as the upload ring takes. make(i, floats).
  template <typename Make>
  Status send(const BufferRef& to, uint32_t count, uint32_t stride, const Make& make) {
    const uint64_t bytes = 4ull * stride;
    const auto most = static_cast<uint32_t>(of_.upload_half / bytes);
    for (uint32_t first = 0; first < count; first += most) {
      const uint32_t n = std::min(most, count - first);
      void* piece = nullptr;
      ORIEL_TRY(device_.beginWrite(n * bytes, &piece));
      for (uint32_t i = 0; i < n; ++i) {
        ORIEL_TRY(make(first + i, static_cast<float*>(piece) + uint64_t{i} * stride));
      }
      ORIEL_TRY(device_.endWrite(to, first * bytes, n * bytes));
    }
    return kOk;
  }

  /// Reads a strip's rows into part `part_` of the picture's rows.
  Status keepRows(const Strip& strip) {
    const uint32_t cells = strip.count / cell_;
    const uint64_t bytes = 4ull * of_.text_stride;
    const auto most = static_cast<uint32_t>(of_.upload_half / bytes);
    for (uint32_t from = 0; from < cells; from += most) {
      const uint32_t n = std::min(most, cells - from);
      const void* piece = nullptr;
      ORIEL_TRY(device_.read(of_.out, from * bytes, n * bytes, &piece));
      for (uint32_t i = 0; i < n; ++i) {
        const float* const row = static_cast<const float*>(piece) + uint64_t{i} * of_.text_stride;
        if (!std::all_of(row, row + desc_.n_text, [](float x) { return std::isfinite(x); })) {
          return log_.fail(ORIEL_ERROR_FORMAT,
                           "the picture encoder gave values that are no numbers: its file is "
                           "damaged, download it again");
        }
        std::copy_n(row, desc_.n_text,
                    rows_ + uint64_t{strip.first / cell_ + from + i} * encoder_.width() +
                        uint64_t{part_} * desc_.n_text);
      }
    }
    return kOk;
  }

  // --- Weights ------------------------------------------------------------------------------------

  Status load(WeightSet which, uint32_t instance) {
    ORIEL_TRY(stop_.check());
    if (!parts_.has_ones) {
      ORIEL_TRY(send(of_.ones, 1, of_.ones_count, [&](uint32_t, float* values) {
        std::fill_n(values, of_.ones_count, 1.0f);
        return Status(kOk);
      }));
      parts_.has_ones = true;
    }
    const PictureWeights& set = of_.set(which);
    const PicturePlace* const places = set.places + uint64_t{instance} * set.kMostTensors;
    for (uint32_t i = 0; i < set.n_vectors; ++i) {
      ORIEL_TRY(sendVector(set.vectors[i], places, instance));
    }
    // loadWeights() takes the uploads of a plan.
    Plan uploads;
    uploads.upload = plan_.upload;
    uploads.uploads = set.uploads;
    uploads.n_uploads = set.n_uploads;
    for (uint32_t i = 0; i < set.n_uploads; ++i) {
      set.uploads[i].tensor_offset = places[set.tensor_of[i]].offset;
    }
    OneBlock block(parts_.room, of_.read_bytes);
    const oriel_allocator allocator = block.allocator();
    ORIEL_TRY(loadWeights(*encoder_.file_, uploads, LoadProgress(), {allocator}, log_, &device_,
                          nullptr));
    ORIEL_TRY(device_.finishWrites());
    if (which == WeightSet::kPatches || which == WeightSet::kBlock) {
      readAhead(which == WeightSet::kBlock ? instance + 1 : 0);
    }
    return kOk;
  }

  // The system reads this block from the file while the weights before it are in use.
  void readAhead(uint32_t block) const {
    const bool is_block = block < desc_.n_blocks;
    const PictureWeights& set = of_.set(is_block ? WeightSet::kBlock : WeightSet::kProjector);
    const PicturePlace* const places =
        set.places + uint64_t{is_block ? block : 0} * set.kMostTensors;
    for (uint32_t i = 0; i < set.n_uploads; ++i) {
      const Upload& one = set.uploads[i];
      const uint64_t row_bytes = fileRowBytes(one.tensor_type, one.cols);
      encoder_.file_->readAhead(places[set.tensor_of[i]].offset + one.source_row * row_bytes,
                                one.rows * row_bytes);
    }
  }

  Status sendVector(const PictureVector& vector, const PicturePlace* places, uint32_t instance) {
    const uint32_t cols = vector.cols * vector.repeat;
    return send(vector.place, 1, paddedCols(cols), [&](uint32_t, float* values) {
      std::fill_n(values, paddedCols(cols), 0.0f);
      if (vector.from == PictureVector::From::kLimits) {
        const PictureLimits& limits =
            of_.limits[uint64_t{instance} * 2 * kLimitedMatrices + vector.tensor];
        values[0] = limits.least;
        values[1] = limits.most;
        return Status(kOk);
      }
      const PicturePlace& place = places[vector.tensor];
      if (!place.exists) {
        values[0] = vector.from == PictureVector::From::kScale ? 1.0f : 0.0f;
        return Status(kOk);
      }
      const uint64_t bytes = fileRowBytes(place.type, vector.cols);
      const uint8_t* data = nullptr;
      float* const read = reinterpret_cast<float*>(parts_.room);
      uint8_t* const raw = parts_.room + 4ull * paddedCols(vector.cols);
      ORIEL_TRY(
          encoder_.file_->read(place.offset + fileRowBytes(place.type, 1) * uint64_t{vector.first},
                               bytes, raw, log_, &data));
      repackVector(place.type, data, vector.cols, read);
      for (uint32_t i = 0; i < cols; ++i) {
        const uint32_t c = i % vector.cols;
        values[i] = vector.factor * read[vector.head_dim != 0 ? turnedRow(c, vector.head_dim) : c];
      }
      return Status(kOk);
    });
  }

  PictureEncoder& encoder_;
  const VisionDesc& desc_;
  Parts& parts_;
  PicturePlan& of_;
  const Plan& plan_;
  Executor& device_;
  const Log& log_;
  const StopCheck& stop_;
  const uint32_t strip_;
  const uint32_t cell_;
  float* rows_ = nullptr;
  PictureSize grid_;
  uint32_t patches_ = 0;
  uint32_t part_ = 0;  ///< of a row: 0 is the main part
  PatchReader reader_;
};

Status PictureEncoder::encode(const Picture& picture, const PictureLayout& layout, const Log& log,
                              const StopCheck& stop, float* rows) {
  Run run(this, log, stop);
  Status status = kOk;
  for (uint32_t tile = 0; tile < layout.tileCount() && status.ok(); ++tile) {
    status = run.tile(picture, layout, tile, rows);
    rows += uint64_t{layout.rowsOf(tile)} * width();
  }
  // A picture is part of a conversation, so the encoder erases it.
  wipe(parts_->pixel_room, parts_->pixel_bytes);
  const Status forgotten = executor_->forget();
  return status.ok() ? forgotten : status;
}

}  // namespace oriel_internal
