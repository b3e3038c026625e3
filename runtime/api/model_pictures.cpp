#include "api/model_pictures.h"

#include <cstdio>
#include <new>

#include "api/api.h"
#include "base/path_copy.h"

namespace oriel_internal {
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
