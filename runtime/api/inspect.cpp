// Describes a file, including files that this build cannot run.
#include <algorithm>
#include <cstdio>
#include <iterator>

#include "api/describe.h"
#include "text/pretokenizer.h"

namespace oriel_internal {
namespace {

// Keeps the error lines instead of logging them.
class Reasons {
 public:
  Reasons(FileInfo* info, const char* path) : info_(info), path_(path) {}
  Log log() { return {&Reasons::keep, this}; }

 private:
  static void keep(oriel_log_level level, const char* message, void* user) {
    const Reasons& self = *static_cast<Reasons*>(user);
    FileInfo* const info = self.info_;
    // Lines of a load begin with the file's name.
    const size_t name = std::strlen(self.path_);
    if (std::strncmp(message, self.path_, name) == 0 &&
        std::strncmp(message + name, ": ", 2) == 0) {
      message += name + 2;
    }
    constexpr uint32_t kRoom = sizeof(info->missing) / sizeof(info->missing[0]);
    if (level == ORIEL_LOG_ERROR && info->missing_count < kRoom) {
      copyText(message, std::strlen(message), info->missing[info->missing_count++]);
    }
  }

  FileInfo* const info_;
  const char* const path_;
};

template <size_t N>
void readText(const GgufFile& file, const char* key, char (&out)[N]) {
  GgufString text;
  if (file.getString(key, &text)) {
    copyText(text.data, text.bytes, out);
  }
}

// "<architecture>.<suffix>"; 0 if it is missing, a list or implausibly large.
uint32_t readNumber(const GgufFile& file, const FileInfo& info, const char* suffix) {
  char key[sizeof(info.architecture) + 64];
  std::snprintf(key, sizeof(key), "%s.%s", info.architecture, suffix);
  uint64_t value = 0;
  return file.getUint(key, &value) && value <= UINT32_MAX ? static_cast<uint32_t>(value) : 0;
}

void readShape(const GgufFile& file, FileInfo* info) {
  info->n_layers = readNumber(file, *info, "block_count");
  info->n_heads = readNumber(file, *info, "attention.head_count");
  info->n_kv_heads = readNumber(file, *info, "attention.head_count_kv");
  info->n_embd = readNumber(file, *info, "embedding_length");
  info->n_ff = readNumber(file, *info, "feed_forward_length");
  info->head_dim = readNumber(file, *info, "attention.key_length");
  info->context_train = readNumber(file, *info, "context_length");
  info->n_experts = readNumber(file, *info, "expert_count");
  if (info->n_kv_heads == 0) {
    info->n_kv_heads = info->n_heads;
  }
  if (info->head_dim == 0 && info->n_heads != 0) {
    info->head_dim = info->n_embd / info->n_heads;
  }
  GgufArray tokens;
  GgufTensor embedding;
  if (file.getArray("tokenizer.ggml.tokens", &tokens)) {
    info->n_vocab = static_cast<uint32_t>(std::min<uint64_t>(tokens.count, UINT32_MAX));
  } else if (file.findTensor("token_embd.weight", &embedding)) {
    info->n_vocab = static_cast<uint32_t>(std::min<uint64_t>(embedding.dims[1], UINT32_MAX));
  }
}

void countTensors(const GgufFile& file, FileInfo* info) {
  constexpr uint32_t kRoom = sizeof(info->tensor_types) / sizeof(info->tensor_types[0]);
  uint64_t cursor = 0;
  GgufTensor tensor;
  while (file.nextTensor(&cursor, &tensor)) {
    uint64_t values = 1;
    for (uint32_t d = 0; d < tensor.n_dims; ++d) {
      values *= tensor.dims[d];
    }
    info->parameters += values;
    ++info->tensor_count;
    const char* const name = tensorTypeName(tensor.type);
    uint32_t i = 0;
    while (i < info->tensor_type_count && std::strcmp(info->tensor_types[i].name, name) != 0) {
      ++i;
    }
    if (i == kRoom) {
      continue;
    }
    TensorTypeInfo& type = info->tensor_types[i];
    if (i == info->tensor_type_count) {
      ++info->tensor_type_count;
      copyText(name, std::strlen(name), type.name);
    }
    ++type.tensors;
    type.parameters += values;
    type.bytes += tensor.bytes;
  }
}

Status readTokenizer(const GgufFile& file, const oriel_allocator& allocator, const Log& reasons,
                     const Log& log, FileInfo* info) {
  info->bos_id = info->eos_id = -1;
  std::fill(std::begin(info->fill_ids), std::end(info->fill_ids), -1);
  Arena measure;
  Tokenizer* tokenizer = nullptr;
  if (!Tokenizer::build(file, reasons, &measure, &tokenizer).ok()) {
    char model[48] = "";
    char pre[48] = "";
    readText(file, "tokenizer.ggml.model", model);
    readText(file, "tokenizer.ggml.pre", pre);
    std::snprintf(info->tokenizer, sizeof(info->tokenizer),
                  pre[0] != '\0' ? "%.30s (%.30s)" : "%.30s", model, pre);
    return kOk;
  }
  void* const block = allocateZeroed(allocator, measure.used());
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes: close other programs",
                    static_cast<unsigned long long>(measure.used()));
  }
  Arena arena(block, measure.used());
  const Status built = Tokenizer::build(file, reasons, &arena, &tokenizer);
  if (built.ok()) {
    info->bos_id = tokenizer->bosId();
    info->eos_id = tokenizer->eosId();
    describeFill(file, *tokenizer, info->fill_ids);
    info->add_bos = tokenizer->addBos() ? 1 : 0;
    describeTokenizer(*tokenizer, info->tokenizer);
  }
  release(allocator, block, measure.used());
  return kOk;
}

// Finds the remaining errors that a load would report. Overwrites the options, because another set would take stack.
Status tryToPlan(const char* path, const Log& reasons, const Log& log, LoadOptions* options,
                 FileInfo* info) {
  const oriel_allocator* const allocator = options->allocator;
  *options = {};
  options->log = reasons.callback;
  options->log_user = reasons.user;
  options->allocator = allocator;
  options->calibration_file = "";  // a calibration does not decide whether the model runs
  PreparedModel prepared;
  const Status status = prepareModel(path, *options, &prepared);
  if (status.passing()) {
    return log.fail(status.code(), "%s", info->missing[0]);
  }
  info->runs = status.ok() ? 1 : 0;
  return kOk;
}

// Not inlined: tryToPlan() needs the stack that this frees.
[[gnu::noinline]] Status readFileInfo(const char* path, const oriel_allocator& allocator,
                                      const Log& log, Reasons* reasons, FileInfo* info) {
  ModelFile source;
  ORIEL_TRY(source.open(path, allocator, log));
  const GgufFile& file = source.gguf();
  info->file_bytes = source.bytes();
  readText(file, "general.architecture", info->architecture);
  readText(file, "general.name", info->name);
  readText(file, "general.size_label", info->size_label);
  readText(file, "general.license", info->license);
  readShape(file, info);
  countTensors(file, info);
  const ChatTemplate chat = recogniseChat(file);
  copyText(chat.name(), std::strlen(chat.name()), info->chat_template);
  ModelDesc desc;
  TensorIndex tensors;
  const Status described = readModelDesc(file, allocator, reasons->log(), &desc, &tensors);
  if (described.passing()) {
    return log.fail(described.code(), "%s", info->missing[0]);
  }
  if (described.ok()) {
    describeContext(desc, info);
    info->predicts = desc.extra_layers != 0 && readPrediction(file, Log{}, &desc, &tensors).ok();
  }
  ORIEL_TRY(readTokenizer(file, allocator, reasons->log(), log, info));
  ORIEL_TRY(source.expectUnchanged(log));
  info->runs = described.ok() && info->missing_count == 0 ? 1 : 0;
  return kOk;
}

Status inspectFile(const char* path, LoadOptions* options, FileInfo* info) {
  const Log log = logOf(*options);
  ORIEL_TRY(checkAllocator(*options, log));
  Reasons reasons(info, path);
  ORIEL_TRY(readFileInfo(path, allocatorOf(*options), log, &reasons, info));
  return info->runs != 0 ? tryToPlan(path, reasons.log(), log, options, info) : Status(kOk);
}

void writeTensorTypes(const FileInfo& info, JsonWriter* out) {
  out->object("tensor_types");
  for (uint32_t i = 0; i < info.tensor_type_count; ++i) {
    out->whole(info.tensor_types[i].name, info.tensor_types[i].tensors);
  }
  out->end();
  out->object("tensor_sizes");
  for (uint32_t i = 0; i < info.tensor_type_count; ++i) {
    const TensorTypeInfo& type = info.tensor_types[i];
    out->object(type.name);
    out->whole("tensors", type.tensors);
    out->whole("parameters", type.parameters);
    out->whole("bytes", type.bytes);
    out->end();
  }
  out->end();
}

void writeFile(const FileInfo& info, JsonWriter* out) {
  out->object();
  writeFileInfo(info, out);
  out->text("size_label", info.size_label);
  out->text("license", info.license);
  out->whole("n_experts", info.n_experts);
  out->whole("tensor_count", info.tensor_count);
  out->flag("prediction_block", info.predicts != 0);
  writeTensorTypes(info, out);
  out->flag("runs", info.runs != 0);
  out->list("missing");
  for (uint32_t i = 0; i < info.missing_count; ++i) {
    out->text(nullptr, info.missing[i]);
  }
  out->end();
  out->end();
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_file_describe(const char* path, const oriel_options* given, char* json,
                                 size_t capacity, size_t* needed) {
  if (path == nullptr || !validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  CallOptions options;
  FileInfo info = {};
  Status status = takeModelOptions(given, &options);
  status = status.ok() ? inspectFile(path, &options, &info) : status;
  if (!status.ok()) {
    return status.code();
  }
  JsonWriter out(json, capacity);
  writeFile(info, &out);
  return out.finish(needed);
}
