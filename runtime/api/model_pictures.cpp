#include "api/model_parts.h"

#include <algorithm>
#include <cstdio>
#include <new>

#include "api/api.h"
#include "base/hash.h"

namespace oriel_internal {
namespace {

/// A session holds at least this many rows: four pictures of Gemma 4's default size. It holds more if two pictures of
/// the largest size, or one picture with all its tiles, need more.
constexpr uint32_t kRowsHeld = 4 * kDefaultImageRows;

PictureWords wordsOf(Projector projector) {
  switch (projector) {
    case Projector::kGemma4:
      return PictureWords::kGemma4;
    case Projector::kQwen3:
      return PictureWords::kQwen3;
    case Projector::kLfm2:
      return PictureWords::kLfm2;
    case Projector::kIdefics3:
      return PictureWords::kIdefics3;
  }
  return PictureWords::kNone;
}

/// The text models of a projector.
struct TextModels {
  Projector projector;
  const char* architecture;
};
constexpr TextModels kTextModels[] = {
    {Projector::kGemma4, "gemma4"},    {Projector::kQwen3, "qwen35"},
    {Projector::kQwen3, "qwen35moe"},  {Projector::kQwen3, "qwen3vl"},
    {Projector::kQwen3, "qwen3vlmoe"}, {Projector::kLfm2, "lfm2"},
    {Projector::kLfm2, "lfm2moe"},     {Projector::kIdefics3, "llama"},
};

Status checkPair(const VisionDesc& vision, const ModelDesc& text, const Log& log) {
  const bool known =
      std::any_of(std::begin(kTextModels), std::end(kTextModels), [&](const TextModels& one) {
        return one.projector == vision.projector &&
               std::strcmp(one.architecture, text.architecture) == 0;
      });
  if (!known) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the vision encoder is not for a model of architecture %s: give the mmproj "
                    "file of this model",
                    text.architecture);
  }
  return kOk;
}

// Rows of two of the largest pictures, or of all tiles of one.
uint32_t mostRows(const VisionDesc& vision, uint32_t image_rows) {
  constexpr uint32_t kLfmTiles = 10 + 1;  // and the overview
  const uint32_t lines = vision.image_side != 0
                             ? (vision.longest_side + vision.image_side - 1) / vision.image_side
                             : 0;
  switch (vision.projector) {
    case Projector::kLfm2:
      return kLfmTiles * image_rows;
    case Projector::kIdefics3:
      return (lines * lines + 1) * image_rows;
    case Projector::kGemma4:
    case Projector::kQwen3:
      break;
  }
  return 2 * image_rows;
}

// The dimension of each rotary pair.
void readDimensions(const GgufFile& file, const ModelDesc& text, PictureInput* input) {
  char key[64];
  std::snprintf(key, sizeof(key), "%s.rope.dimension_sections", text.architecture);
  GgufArray list;
  if (!file.getArray(key, &list)) {
    return;
  }
  int64_t pairs[3] = {};
  GgufArrayReader reader(list);
  for (int64_t& one : pairs) {
    (void)reader.nextInt(&one);
  }
  input->in_dimensions = true;
  for (uint32_t i = 0; i < text.ropes[kMainRope].dims / 2; ++i) {
    const uint32_t dimension = i % 3;
    input->dimension[i] = static_cast<uint8_t>(i < 3 * pairs[dimension] ? dimension : 0);
  }
}

}  // namespace

Status describeInput(const VisionDesc& vision, uint32_t image_rows, const GgufFile& file,
                     const Log& log, ModelDesc* text, PictureInput* input) {
  if (image_rows == 0) {
    return kOk;
  }
  ORIEL_TRY(checkPair(vision, *text, log));
  *input = PictureInput();
  input->words = wordsOf(vision.projector);
  input->parts = 1 + vision.n_deepstack;
  input->rows_held = std::max(kRowsHeld, mostRows(vision, image_rows));
  readDimensions(file, *text, input);
  // Files have no key for this. The publisher's models with per-layer inputs are the ones without it.
  if (vision.projector == Projector::kGemma4 && text->layer_input == 0) {
    input->rows_together = image_rows;
  }
  if (input->rows_together > kMaxChunk) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "this model reads all rows of a picture in one batch of at most %u tokens, and "
                    "\"image_tokens\" is %u: use 280 or less",
                    kMaxChunk, image_rows);
  }
  text->pictures = input;
  return kOk;
}

Status readPicture(const oriel_picture& given, const Log& log, Picture* picture) {
  constexpr PixelOrder kOrders[] = {PixelOrder::kRgb8, PixelOrder::kRgba8, PixelOrder::kBgra8};
  const int order = rawEnum(given.order);
  if (order < 0 || order >= static_cast<int>(std::size(kOrders))) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a picture's order of bytes is %d: use one of oriel_pixel_order", order);
  }
  *picture = {static_cast<const uint8_t*>(given.pixels), given.width, given.height, given.stride,
              kOrders[order]};
  if (picture->stride == 0) {
    picture->stride = size_t{given.width} * bytesOfPixel(picture->order);
  }
  return checkPicture(*picture, log);
}

void describeRows(const PictureLayout& layout, HeldPicture* picture) {
  picture->tile_columns = static_cast<uint16_t>(layout.tile_columns);
  picture->tile_rows = static_cast<uint16_t>(layout.tile_rows);
  const uint32_t last = layout.tileCount() - 1;
  for (const uint32_t tile : {0u, last}) {
    const PictureSize grid = layout.gridOf(tile);
    const uint32_t which = tile == last ? 1 : 0;
    picture->columns[which] = static_cast<uint16_t>(grid.width);
    picture->lines[which] = static_cast<uint16_t>(grid.height);
  }
  picture->rows = layout.rowCount();
}

uint64_t hashOfPicture(const Picture& picture, uint32_t image_rows) {
  const uint32_t numbers[] = {picture.width, picture.height, image_rows};
  uint64_t hash = hashBytes(numbers, sizeof(numbers));
  constexpr uint32_t kPiece = 256;
  uint8_t rgb[3 * kPiece];
  const uint32_t bytes = bytesOfPixel(picture.order);
  const bool swapped = picture.order == PixelOrder::kBgra8;
  for (uint32_t y = 0; y < picture.height; ++y) {
    const uint8_t* pixel = picture.pixels + y * picture.stride;
    for (uint32_t x = 0; x < picture.width;) {
      const uint32_t n = std::min(picture.width - x, kPiece);
      for (uint32_t i = 0; i < n; ++i, pixel += bytes) {
        rgb[3 * i] = pixel[swapped ? 2 : 0];
        rgb[3 * i + 1] = pixel[1];
        rgb[3 * i + 2] = pixel[swapped ? 0 : 2];
      }
      hash = hashBytes(rgb, 3 * n, hash);
      x += n;
    }
  }
  return hash != 0 ? hash : 1;
}

namespace {

/// A count of the text model under "<architecture>.<suffix>"; 0 if it is missing.
uint32_t countOf(const GgufFile& model, const char* suffix) {
  GgufString architecture;
  char key[128];
  uint64_t value = 0;
  if (!model.getString("general.architecture", &architecture)) {
    return 0;
  }
  std::snprintf(key, sizeof(key), "%s.%s", PrintableText(architecture).text, suffix);
  return model.getUint(key, &value) && value <= UINT32_MAX ? static_cast<uint32_t>(value) : 0;
}

}  // namespace

Status PictureFile::open(const LoadOptions& options, const GgufFile& model, const Log& log,
                         const StopCheck& stop) {
  if (options.mmproj == nullptr) {
    return options.image_tokens == 0
               ? Status(kOk)
               : log.fail(ORIEL_ERROR_ARGUMENT,
                          "\"image_tokens\" needs the model's encoder of pictures: give its file "
                          "as \"mmproj\"");
  }
  allocator = allocatorOf(options);
  void* const block = allocateZeroed(allocator, sizeof(ModelFile));
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "the system refused %zu bytes: close other programs",
                    sizeof(ModelFile));
  }
  source = new (block) ModelFile();
  ORIEL_TRY(source->open(options.mmproj, allocator, log, stop));
  NamingLog named(log, options.mmproj);
  ORIEL_TRY(readVisionDesc(source->gguf(), named.log(), &desc));
  ORIEL_TRY(checkTextModel(desc, countOf(model, "embedding_length"),
                           countOf(model, "n_deepstack_layers"), named.log()));
  Arena measure;
  PictureEncoder encoder;
  ORIEL_TRY(encoder.create(source->gguf(), desc, options.image_tokens, named.log(), &measure));
  device_bytes = encoder.deviceBytes();
  image_rows = encoder.imageRows();
  return kOk;
}

PictureFile::~PictureFile() {
  if (source != nullptr) {
    source->~ModelFile();
    release(allocator, source, sizeof(ModelFile));
  }
}

void ModelPictures::handOver(PictureFile* file) {
  file->source->handOver(path, &input);
  data.openData(input);
}

Status takePictures(const LoadOptions& options, PictureFile* file, const Log& log, Arena* arena,
                    ModelPictures** pictures) {
  *pictures = nullptr;
  if (!file->any()) {
    return kOk;
  }
  const uint64_t before = arena->used();
  static_assert(alignof(ModelPictures) <= Arena::kAlignment, "raise kAlignment");
  void* const room = arena->take<uint8_t>(sizeof(ModelPictures));
  char* const path = copyPath(options.mmproj, arena);
  if (room == nullptr || path == nullptr) {
    PictureEncoder measured;
    ORIEL_TRY(measured.create(file->source->gguf(), file->desc, options.image_tokens, log, arena));
    file->host_bytes = arena->used() - before;
    return kOk;
  }
  ModelPictures* const made = new (room) ModelPictures();
  *pictures = made;
  made->path = path;
  made->desc = file->desc;
  ORIEL_TRY(
      made->encoder.create(file->source->gguf(), made->desc, options.image_tokens, log, arena));
  made->encoder.readFrom(made->data);
  return kOk;
}

Status loadPictures(const LoadOptions& options, ExecutorUse use, const oriel_allocator& allocator,
                    const Executor* beside, const Log& log, const StopCheck* stop,
                    ModelPictures* pictures) {
  if (pictures == nullptr) {
    return kOk;
  }
  PictureEncoder& encoder = pictures->encoder;
  SharedParts shared;
  shared.beside = beside;
  ORIEL_TRY(createExecutor(options, use, encoder.plan(), encoder.memory(), allocator, shared, log,
                           stop, &pictures->executor));
  ORIEL_TRY(pictures->executor->finishLoad());
  pictures->executor->stopBy(nullptr);
  encoder.use(pictures->executor);
  return kOk;
}

// The weights are read again for every picture, so all arenas can go.
Status trimPictures(ModelPictures* pictures) {
  return pictures != nullptr && pictures->executor != nullptr
             ? pictures->executor->giveBack(kAllArenas)
             : Status(kOk);
}

Status resumePictures(ModelPictures* pictures) {
  if (pictures == nullptr || pictures->executor == nullptr) {
    return kOk;
  }
  ORIEL_TRY(pictures->executor->takeAgain(kAllArenas));
  ORIEL_TRY(pictures->executor->finishLoad());
  pictures->encoder.use(pictures->executor);
  return kOk;
}

void leavePictures(ModelPictures* pictures) {
  if (pictures != nullptr) {
    destroyExecutor(pictures->executor);
    pictures->executor = nullptr;
  }
}

void dropPictures(ModelPictures* pictures) {
  if (pictures != nullptr) {
    leavePictures(pictures);
    pictures->~ModelPictures();
  }
}

}  // namespace oriel_internal
