// Pictures of a model: the file of its vision encoder, and the pictures that an app hands over.
#pragma once

#include "exec/picture_source.h"
#include "gguf/model_file.h"
#include "model/model_desc.h"
#include "oriel/advanced.h"
#include "vision/picture_layout.h"

namespace oriel_internal {

struct LoadOptions;

/// The options' "mmproj" file, opened and checked.
struct VisionFile {
  ModelFile source;
  VisionDesc desc;
  PictureInput input;

  /// Sets desc->pictures. Does nothing without the option.
  Status open(const LoadOptions& options, const GgufFile& text_file, const Log& log,
              const StopCheck& stop, ModelDesc* text);
};

/// ORIEL_ERROR_ARGUMENT for a struct that is not valid.
Status readPicture(const oriel_picture& given, const Log& log, Picture* picture);

/// The rows of a picture with this layout; `first` stays 0.
void describeRows(const PictureLayout& layout, HeldPicture* picture);
/// Of the picture's pixels and of everything that determines its rows for one encoder; never 0.
uint64_t hashOfPicture(const Picture& picture, uint32_t image_rows);

}  // namespace oriel_internal
