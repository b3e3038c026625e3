// Turns a picture into rows for the text model.
//
// The encoder is a plan of its own (plan/plan.h), made of the same ops as a text encoder, and an executor carries it out.
// Only one block's weights are in memory at a time: encode() reads them from the mmproj file, block by block.
#pragma once

#include "base/steps.h"
#include "exec/executor.h"
#include "vision/patches.h"

namespace oriel_internal {

/// A picture in the form that the text model takes.
struct PictureRows {
  const float* rows = nullptr;  ///< [count][width]
  uint32_t count = 0;
  uint32_t width = 0;  ///< n_text * (1 + n_deepstack), the main part first
};

/// Most patches of a tile.
constexpr uint32_t kMostPatches = 1u << 16;

/// Most rows of a picture for which memory is planned if the caller gives no number.
uint32_t defaultImageRows(const VisionDesc& desc);

/// Life: create() -> an executor for plan() -> use() -> encode(), encode(), ... Not thread-safe. The plan is part of this
/// object, so it must not move.
class PictureEncoder {
 public:
  /// Plans for pictures of up to `image_rows` rows (0: defaultImageRows()), or for tiles of that size where a picture is
  /// cut into tiles. Takes its host memory from `arena`; with a measuring arena only the sizes are known afterwards.
  /// `file` must stay open, but may forget its header. `file` and `desc` must outlive the encoder.
  Status create(const GgufFile& file, const VisionDesc& desc, uint32_t image_rows, const Log& log,
                Arena* arena);

  /// The plan for the executor, which the caller creates with `memory()` and destroys.
  const Plan& plan() const { return plan_; }
  const ExecutorMemory& memory() const { return memory_; }
  void use(Executor* executor);
  /// Reads from the same file, opened elsewhere, from now on.
  void readFrom(const GgufFile& file);

  /// Bytes that the executor takes for plan(): weights of one block, vectors, keys and values, and its transfers.
  uint64_t deviceBytes() const;
  const VisionDesc& desc() const { return *desc_; }
  uint32_t imageRows() const { return image_rows_; }
  /// Floats in a row.
  uint32_t width() const { return desc_->n_text * (1 + desc_->n_deepstack); }

  /// The size of the picture for the encoder, and its tiles. The result has at most imageRows() rows, or tiles of at most
  /// imageRows() rows.
  Status layOut(const Picture& picture, const Log& log, PictureLayout* layout) const;

  /// Writes layout.rowCount() rows of width() floats, and erases the picture from the encoder's memory. ORIEL_ERROR_CANCELLED if `stop` asked for it;
  /// ORIEL_ERROR_FORMAT if the result is not finite.
  Status encode(const Picture& picture, const PictureLayout& layout, const Log& log,
                const StopCheck& stop, float* rows);

 private:
  struct Parts;
  class Run;

  const GgufFile* file_ = nullptr;
  const VisionDesc* desc_ = nullptr;
  uint32_t image_rows_ = 0;
  Plan plan_;
  ExecutorMemory memory_;
  Executor* executor_ = nullptr;
  Parts* parts_ = nullptr;
};

}  // namespace oriel_internal
