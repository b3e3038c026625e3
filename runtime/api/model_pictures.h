// The pictures that an app hands over, and how they enter the text model.
#pragma once

#include "base/choices.h"
#include "exec/picture_store.h"
#include "gguf/model_file.h"
#include "model/model_desc.h"
#include "oriel/advanced.h"
#include "vision/picture_encoder.h"
#include "vision/picture_layout.h"

namespace oriel_internal {

/// Describes how this encoder's pictures enter the text model in `file`, and sets text->pictures. Does nothing if
/// `image_rows` is 0 (no encoder).
Status describeInput(const VisionDesc& vision, uint32_t image_rows, const GgufFile& file,
                     const Log& log, ModelDesc* text, PictureInput* input);

/// ORIEL_ERROR_ARGUMENT for a struct that is not valid.
Status readPicture(const oriel_picture& given, const Log& log, Picture* picture);

/// The rows of a picture with this layout; `first` stays 0.
void describeRows(const PictureLayout& layout, HeldPicture* picture);
/// Hashes the picture's pixels and all settings that determine its rows for one encoder. Never 0.
uint64_t hashOfPicture(const Picture& picture, uint32_t image_rows);

// The picture encoder of a model: its mmproj file, its plan and its executor.

/// An mmproj file that was opened and checked. Borrows memory until it is destroyed: calls that plan have little stack.
struct PictureFile {
  PictureFile() = default;
  ~PictureFile();
  PictureFile(const PictureFile&) = delete;
  PictureFile& operator=(const PictureFile&) = delete;

  ModelFile* source = nullptr;  ///< null without a file
  oriel_allocator allocator = {};
  VisionDesc desc;
  uint64_t host_bytes = 0;    ///< of ModelPictures and all it owns
  uint64_t device_bytes = 0;  ///< PictureEncoder::deviceBytes()
  uint32_t image_rows = 0;    ///< of the plan

  /// Checks that the file belongs to the text model `model`. ORIEL_ERROR_ARGUMENT for "image_tokens" without a file.
  Status open(const LoadOptions& options, const GgufFile& model, const Log& log,
              const StopCheck& stop);
  bool any() const { return source != nullptr; }
};

/// The part of a loaded model.
struct ModelPictures {
  VisionDesc desc;
  InputFile input;  ///< open after handOver()
  GgufFile data;
  PictureEncoder encoder;
  Executor* executor = nullptr;
  char* path = nullptr;

  /// Moves the open file here. Afterwards the encoder can be used.
  void handOver(PictureFile* file);
};

/// Bytes of the encoder's arenas; 0 without pictures.
inline uint64_t executorBytes(const ModelPictures* pictures) {
  uint64_t bytes = 0;
  for (uint32_t kind = 0;
       pictures != nullptr && pictures->executor != nullptr && kind < kArenaKinds; ++kind) {
    bytes += pictures->executor->allocatedBytes(static_cast<ArenaKind>(kind));
  }
  return bytes;
}

/// Takes it from `arena`, which may be a measuring arena, and sets the bytes in `file`. Null when measuring, or without
/// a file. `file` must outlive the call only.
Status takePictures(const LoadOptions& options, PictureFile* file, const Log& log, Arena* arena,
                    ModelPictures** pictures);
/// Gives the encoder's arenas back for a while, and takes them again. No picture is encoded in between. Accept null.
Status trimPictures(ModelPictures* pictures);
Status resumePictures(ModelPictures* pictures);
/// Destroys the executor. Accepts null.
void leavePictures(ModelPictures* pictures);
/// Destroys the executor and closes the file; the arena keeps the memory. Accepts null.
void dropPictures(ModelPictures* pictures);

}  // namespace oriel_internal
