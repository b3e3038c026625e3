// The pictures that an app hands over, and how they enter the text model.
#pragma once

#include "exec/picture_source.h"
#include "model/model_desc.h"
#include "oriel/advanced.h"
#include "vision/picture_layout.h"

namespace oriel_internal {

/// How the pictures of this encoder enter the text model in `file`. Sets text->pictures, unless `image_rows` is 0: there
/// is no encoder.
Status describeInput(const VisionDesc& vision, uint32_t image_rows, const GgufFile& file,
                     const Log& log, ModelDesc* text, PictureInput* input);

/// ORIEL_ERROR_ARGUMENT for a struct that is not valid.
Status readPicture(const oriel_picture& given, const Log& log, Picture* picture);

/// The rows of a picture with this layout; `first` stays 0.
void describeRows(const PictureLayout& layout, HeldPicture* picture);
/// Of the picture's pixels and of everything that determines its rows for one encoder; never 0.
uint64_t hashOfPicture(const Picture& picture, uint32_t image_rows);

}  // namespace oriel_internal
