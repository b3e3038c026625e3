#include "api/model_parts.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "api/api.h"
#include "api/session.h"
#include "base/half.h"
#include "base/hash.h"

namespace oriel_internal {
namespace {

// The position of ":SCALE", or `end` if the name has no scale. A path may contain colons.
const char* endOfAdapterName(const char* text, const char* end, float* scale) {
  const char* colon = end;
  while (colon != text && *colon != ':') {
    --colon;
  }
  double value = 0;
  const char* after = colon + 1;
  if (colon == text || *colon != ':' || !readDecimal(colon + 1, &after, &value) || after != end ||
      !std::isfinite(static_cast<float>(value))) {
    return end;
  }
  *scale = static_cast<float>(value);
  return colon;
}

// The name without its folder and ".gguf".
void nameAdapter(const char* path, char (&name)[sizeof(Adapter::name)]) {
  const char* begin = path;
  for (const char* at = path; *at != '\0'; ++at) {
    begin = *at == '/' || *at == '\\' ? at + 1 : begin;
  }
  size_t bytes = std::strlen(begin);
  constexpr char kEnd[] = ".gguf";
  if (bytes > std::strlen(kEnd) && std::strcmp(begin + bytes - std::strlen(kEnd), kEnd) == 0) {
    bytes -= std::strlen(kEnd);
  }
  copyText(begin, bytes, name);
}

}  // namespace

AdapterFiles::~AdapterFiles() {
  for (uint32_t i = 0; i < opened_; ++i) {
    files_[i].~File();
  }
  if (block_ != nullptr) {
    release(allocator_, block_, block_bytes_);
  }
}

Status AdapterFiles::takeRoom(uint32_t count, size_t path_bytes, const Log& log) {
  Arena measure;
  const auto take = [&](Arena* arena) {
    adapters_ = arena->take<Adapters>(1);
    files_ = reinterpret_cast<File*>(arena->take<uint8_t>(count * sizeof(File)));
    paths_ = arena->take<char>(path_bytes);
  };
  take(&measure);
  block_bytes_ = measure.used();
  block_ = allocateZeroed(allocator_, block_bytes_);
  if (block_ == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %" PRIu64 " bytes: close other programs", block_bytes_);
  }
  Arena arena(block_, block_bytes_);
  take(&arena);
  new (adapters_) Adapters();
  return kOk;
}

Status AdapterFiles::open(const LoadOptions& options, const GgufFile& base, const Log& log,
                          const StopCheck& stop, ModelDesc* desc, TensorIndex* tensors) {
  const uint32_t count = options.lora_count + options.control_vector_count;
  if (count == 0) {
    return kOk;
  }
  if (count > kMaxAdapters) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "%u adapters are asked for, this build runs up to %u: load fewer", count,
                    kMaxAdapters);
  }
  if (options.control_layer_count == 1) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "\"control_layers\" has one number: give the first and the last layer");
  }
  allocator_ = allocatorOf(options);
  size_t path_bytes = 0;
  const auto each = [&](const auto& visit) -> Status {
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_control = i >= options.lora_count;
      ORIEL_TRY(
          visit(is_control ? options.control_vectors[i - options.lora_count] : options.lora[i],
                is_control));
    }
    return kOk;
  };
  (void)each([&](const char* path, bool) -> Status {
    path_bytes += std::strlen(path) + 1;
    return kOk;
  });
  ORIEL_TRY(takeRoom(count, path_bytes, log));
  adapters_->first_layer = tensors->layerCount();
  adapters_->n_layers = desc->n_layers;
  adapters_->file_layers = desc->n_layers / desc->loops;
  ORIEL_TRY(each([&](const char* path, bool is_control) {
    return openOne(path, is_control, options, base, log, stop, desc, tensors);
  }));
  desc->adapters = adapters_;
  return kOk;
}

Status AdapterFiles::openOne(const char* given, bool is_control, const LoadOptions& options,
                             const GgufFile& base, const Log& log, const StopCheck& stop,
                             ModelDesc* desc, TensorIndex* tensors) {
  const uint32_t number = adapters_->count;
  Adapter& adapter = adapters_->list[number];
  const size_t bytes = static_cast<size_t>(
      endOfAdapterName(given, given + std::strlen(given), &adapter.scale) - given);
  std::memcpy(paths_, given, bytes);
  paths_[bytes] = '\0';
  File* const file = new (files_ + number) File();
  ++opened_;
  file->path = paths_;
  paths_ += bytes + 1;
  nameAdapter(file->path, adapter.name);
  if (adapters_->find(adapter.name, std::strlen(adapter.name)) != number) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "two adapters are named \"%s\": rename one file",
                    adapter.name);
  }
  ORIEL_TRY(file->file.open(file->path, allocator_, log, stop));
  NamingLog named(log, file->path);
  const GgufFile& gguf = file->file.gguf();
  ORIEL_TRY(tensors->extend(gguf.tensorCount(), 2 * desc->n_layers, named.log()));
  const bool ranged = options.control_layer_count == 2;
  const uint32_t range[2] = {ranged ? options.control_layers[0] : 0,
                             ranged ? options.control_layers[1] : UINT32_MAX};
  ORIEL_TRY(readAdapter(gguf, base, *desc, is_control, range, kAdapterFile + number, named.log(),
                        adapters_, tensors));
  adapter.hash = file->header_hash = hashBytes(gguf.data(), gguf.headerBytes());
  file->file.dropHeader();
  return kOk;
}

Status AdapterFiles::openAgain(const Kept& kept, const oriel_allocator& allocator, const Log& log) {
  if (kept.adapters == nullptr) {
    return kOk;
  }
  allocator_ = allocator;
  ORIEL_TRY(takeRoom(kept.adapters->count, 0, log));
  *adapters_ = *kept.adapters;
  for (uint32_t i = 0; i < adapters_->count; ++i) {
    const ModelSource& source = kept.sources[i];
    File* const file = new (files_ + i) File();
    ++opened_;
    adapters_->list[i].hash = source.headerHash();
    if (source.keepsFile()) {
      ORIEL_TRY(source.file().expectUnchanged(log));
      file->data.openData(source.file());
      file->given = true;
      continue;
    }
    if (const Status status = file->file.open(source.path(), allocator, log); !status.ok()) {
      return status.code() == ORIEL_ERROR_OUT_OF_MEMORY ? status : Status(ORIEL_ERROR_IO);
    }
    const GgufFile& gguf = file->file.gguf();
    if (hashBytes(gguf.data(), gguf.headerBytes()) != source.headerHash()) {
      return refuseOther(source, log);
    }
    file->file.dropHeader();
  }
  return kOk;
}

Status AdapterFiles::refuseOther(const ModelSource& source, const Log& log) {
  return log.fail(ORIEL_ERROR_IO,
                  "%.600s is not the loaded adapter: restore that file, or load this adapter",
                  source.path());
}

Status AdapterFiles::expectSame(const Kept& kept, const Log& log) const {
  for (uint32_t i = 0; i < opened_; ++i) {
    if (adapters_->list[i].hash != kept.adapters->list[i].hash) {
      return refuseOther(kept.sources[i], log);
    }
  }
  return kOk;
}

void AdapterFiles::addTo(WeightFiles* files) const {
  for (uint32_t i = 0; i < opened_; ++i) {
    files->of[kAdapterFile + i] = files_[i].given ? &files_[i].data : &files_[i].file.gguf();
  }
}

uint64_t AdapterFiles::stateHash(uint64_t hash) const {
  for (uint32_t i = 0; i < opened_; ++i) {
    const uint64_t state[] = {files_[i].header_hash, files_[i].file.input().stateHash()};
    hash = hashBytes(state, sizeof(state), hash);
  }
  return hash;
}

Status AdapterFiles::expectUnchanged(const Log& log) const {
  for (uint32_t i = 0; i < opened_; ++i) {
    ORIEL_TRY(files_[i].file.expectUnchanged(log));
  }
  return kOk;
}

void AdapterFiles::keep(Arena* arena, Kept* kept) const {
  if (!any()) {
    return;
  }
  Adapters* const adapters = arena->take<Adapters>(1);
  uint8_t* const sources = arena->take<uint8_t>(opened_ * sizeof(ModelSource));
  const bool builds = adapters != nullptr && sources != nullptr;
  if (builds) {
    kept->adapters = new (adapters) Adapters(*adapters_);
    kept->sources = reinterpret_cast<ModelSource*>(sources);
  }
  for (uint32_t i = 0; i < opened_; ++i) {
    ModelSource measured;
    ModelSource* const source = builds ? new (kept->sources + i) ModelSource() : &measured;
    source->init(files_[i].path, files_[i].header_hash, arena);
  }
}

AdapterFiles::Kept::~Kept() {
  for (uint32_t i = 0; adapters != nullptr && i < adapters->count; ++i) {
    sources[i].~ModelSource();
  }
}

void AdapterFiles::handOver(const Kept& kept) {
  for (uint32_t i = 0; i < opened_; ++i) {
    if (kept.sources[i].keepsFile()) {
      kept.sources[i].handOver(&files_[i].file);
    }
  }
}

Status readAdapterChoice(const ModelDesc& desc, const char* text, const Log& log,
                         float (&scales)[kMaxAdapters]) {
  if (desc.adapters == nullptr) {
    return text == nullptr || text[0] == '\0' || std::strcmp(text, "none") == 0
               ? kOk
               : log.fail(ORIEL_ERROR_ARGUMENT,
                          "the model has no adapter \"%.64s\": load it with \"lora\"", text);
  }
  const Adapters& all = *desc.adapters;
  const bool as_loaded = text == nullptr || text[0] == '\0';
  for (uint32_t i = 0; i < kMaxAdapters; ++i) {
    scales[i] = as_loaded ? all.list[i].scale : 0;
  }
  if (as_loaded || std::strcmp(text, "none") == 0) {
    return kOk;
  }
  for (const char* at = text;; ++at) {
    const char* const end = at + std::strcspn(at, ",");
    float scale = 0;
    const char* const name_end = endOfAdapterName(at, end, &scale);
    const auto bytes = static_cast<size_t>(name_end - at);
    uint32_t found = all.find(at, bytes);
    if (found == all.count && bytes != 0 && bytes <= 2) {  // its number
      uint32_t number = 0;
      for (size_t i = 0; i < bytes; ++i) {
        number = at[i] >= '0' && at[i] <= '9' ? number * 10 + static_cast<uint32_t>(at[i] - '0')
                                              : all.count;
      }
      found = std::min(found, number);
    }
    if (found == all.count) {
      char names[512] = "";
      for (uint32_t i = 0; i < all.count; ++i) {
        const size_t used = std::strlen(names);
        (void)std::snprintf(names + used, sizeof(names) - used, "%s\"%s\"", i != 0 ? ", " : "",
                            all.list[i].name);
      }
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "the model has no adapter \"%.*s\": choose among %s, or \"none\"",
                      static_cast<int>(std::min<size_t>(bytes, 64)), at, names);
    }
    scales[found] = name_end != end ? scale : all.list[found].scale;
    if (*end == '\0') {
      return kOk;
    }
    at = end;
  }
}

}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_session_use_adapters(oriel_session* handle, const char* adapters) {
  if (handle == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    float scales[kMaxAdapters] = {};
    ORIEL_TRY(readAdapterChoice(handle->model->desc, adapters, handle->log, scales));
    return handle->model->desc.adapters != nullptr ? handle->session->useAdapters(scales) : kOk;
  });
}
