// The pictures that an app hands over, and how they enter the text model.
#pragma once

#include "exec/picture_source.h"
#include "model/model_desc.h"
#include "oriel/advanced.h"
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

}  // namespace oriel_internal
