// The rows of a text model that a picture becomes: oriel_picture_rows.
#include "api/api.h"
#include "base/workspace.h"
#include "oriel/tools.h"

namespace oriel_internal {
namespace {

/// The picture encoder of a model that is not loaded.
class PictureRowsCall {
 public:
  PictureRowsCall(const LoadOptions& options, const Log& log)
      : options_(options), log_(log), allocator_(allocatorOf(options)) {}
  ~PictureRowsCall() {
    dropPictures(pictures_);
    for (const Block& block : blocks_) {
      if (block.data != nullptr) {
        release(allocator_, block.data, block.bytes);
      }
    }
  }
  PictureRowsCall(const PictureRowsCall&) = delete;
  PictureRowsCall& operator=(const PictureRowsCall&) = delete;

  Status load(const char* path, const Picture& picture) {
    if (options_.mmproj == nullptr) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "there is no encoder of pictures: give its file as \"mmproj\"");
    }
    ModelFile model;
    ORIEL_TRY(model.open(path, allocator_, log_));
    ORIEL_TRY(file_.open(options_, model.gguf(), log_, {}));
    ORIEL_TRY(checkPicture(picture, log_));
    if (options_.image_tokens == 0 && file_.desc.projector == Projector::kQwen3) {
      // There is memory for one picture: any size that the publisher allows.
      PictureLayout layout;
      ORIEL_TRY(layOutPicture(file_.desc, {picture.width, picture.height}, 0, log_, &layout));
      options_.image_tokens = layout.rowCount();
    }
    Arena measure;
    ORIEL_TRY(takePictures(options_, &file_, log_, &measure, &pictures_));
    ORIEL_TRY(take(measure.used(), &blocks_[0]));
    Arena arena(blocks_[0].data, measure.used());
    ORIEL_TRY(takePictures(options_, &file_, log_, &arena, &pictures_));
    pictures_->handOver(&file_);
    return loadPictures(options_, ExecutorUse::kProbe, allocator_, nullptr, log_, nullptr,
                        pictures_);
  }

  Status encode(const Picture& picture, oriel_picture_rows_fn on_rows, void* user) {
    PictureEncoder& encoder = pictures_->encoder;
    PictureLayout layout;
    ORIEL_TRY(encoder.layOut(picture, log_, &layout));
    const uint32_t count = layout.rowCount();
    ORIEL_TRY(take(sizeof(float) * uint64_t{count} * encoder.width(), &blocks_[1]));
    float* const rows = static_cast<float*>(blocks_[1].data);
    ORIEL_TRY(encoder.encode(picture, layout, log_, StopCheck(), rows));
    on_rows(rows, count, encoder.width(), user);
    return kOk;
  }

 private:
  struct Block {
    void* data = nullptr;
    uint64_t bytes = 0;
  };
  Status take(uint64_t bytes, Block* block) {
    *block = {allocateZeroed(allocator_, bytes), bytes};
    return block->data != nullptr ? Status(kOk)
                                  : log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                              "the system refused %llu bytes: close other programs",
                                              static_cast<unsigned long long>(bytes));
  }

  LoadOptions options_;
  const Log log_;
  const oriel_allocator allocator_;
  PictureFile file_;
  ModelPictures* pictures_ = nullptr;
  Block blocks_[2];
};

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_picture_rows(const char* path, const uint8_t* rgb, uint32_t width,
                                uint32_t height, const oriel_options* given,
                                oriel_picture_rows_fn on_rows, void* user) {
  if (path == nullptr || rgb == nullptr || on_rows == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  CallOptions options;
  if (const Status status = takeModelOptions(given, &options); !status.ok()) {
    return status.code();
  }
  PictureRowsCall call(options, logOf(options));
  const Picture picture = {rgb, width, height, size_t{width} * 3, PixelOrder::kRgb8};
  Status status = call.load(path, picture);
  status = status.ok() ? call.encode(picture, on_rows, user) : status;
  return status.code();
}
