#include "model/model_desc.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "model/architecture.h"
#include "model/keys.h"
#include "model/rope_scaling.h"
#include "model/unsupported.h"

namespace oriel {
namespace {

/// "blk.3.attn_q.weight"
struct TensorName {
  TensorName(const TensorRule& rule, uint32_t layer) {
    if (rule.in_layers) {
      std::snprintf(text, sizeof(text), "blk.%" PRIu32 ".%s", layer, rule.name);
    } else {
      std::snprintf(text, sizeof(text), "%s", rule.name);
    }
  }
  char text[kMaxTensorNameBytes + 1];
};

// --- Numbers -------------------------------------------------------------------------------------

/// Fills in what optional keys left open and checks how the numbers fit together.
Status completeHeads(const GgufFile& file, const ArchitectureTable& table, const Log& log,
                     ModelDesc* desc) {
  if (desc->n_kv_heads == 0) {
    desc->n_kv_heads = desc->n_heads;
  }
  if (desc->n_heads % desc->n_kv_heads != 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu32 ", which %s (%" PRIu32
                    ") is not a multiple of: convert the model again",
                    KeyName(table, "attention.head_count_kv").text, desc->n_kv_heads,
                    KeyName(table, "attention.head_count").text, desc->n_heads);
  }
  if (desc->head_dim == 0) {
    if (desc->n_embd % desc->n_heads != 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "the model's width %" PRIu32 " does not divide into %" PRIu32
                      " heads and %s is missing: convert the model again",
                      desc->n_embd, desc->n_heads, KeyName(table, "attention.key_length").text);
    }
    desc->head_dim = desc->n_embd / desc->n_heads;
  }
  if (desc->head_dim < kMinHeadDim || desc->head_dim > kMaxHeadDim || desc->head_dim % 2 != 0) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model's heads have %" PRIu32
                    " values, this build runs even sizes from %" PRIu32 " to %" PRIu32
                    ": use another model",
                    desc->head_dim, kMinHeadDim, kMaxHeadDim);
  }
  const KeyName value_length(table, "attention.value_length");
  if (file.has(value_length.text)) {
    uint64_t value_dim = 0;
    ORIEL_TRY(readCount(file, value_length.text, log, &value_dim));
    if (value_dim != desc->head_dim) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "%s is %" PRIu64 " but keys have %" PRIu32
                      " values, this build runs equal sizes only: use another model",
                      value_length.text, value_dim, desc->head_dim);
    }
  }
  if (desc->rope_dims == 0) {
    desc->rope_dims = desc->head_dim;
  }
  if (desc->rope_dims > desc->head_dim || desc->rope_dims % 2 != 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu32 ", not an even number up to the head size %" PRIu32
                    ": convert the model again",
                    KeyName(table, "rope.dimension_count").text, desc->rope_dims, desc->head_dim);
  }
  return kOk;
}

// Which layers see a short window: a period, a flag for each layer, or what the architecture does.
Status readLocalPattern(const GgufFile& file, const ArchitectureTable& table, const Log& log,
                        ModelDesc* desc) {
  const KeyName key(table, "attention.sliding_window_pattern");
  GgufArray flags;
  if (file.getArray(key.text, &flags)) {
    if (flags.count != desc->n_layers) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s has %" PRIu64 " entries for %" PRIu32 " layers: convert the model again",
                      key.text, flags.count, desc->n_layers);
    }
    GgufArrayReader reader(flags);
    bool local = false;
    for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
      if (!reader.nextBool(&local)) {
        return log.fail(ORIEL_ERROR_FORMAT,
                        "%s is neither a number nor a list of booleans: convert the model again",
                        key.text);
      }
      desc->local_layers[layer / 64] |= uint64_t{local ? 1u : 0u} << (layer % 64);
    }
    return kOk;
  }
  uint64_t period = table.quirks.local_period;
  if (file.has(key.text)) {
    ORIEL_TRY(readCount(file, key.text, log, &period));
  }
  if (period == 0 || period > kMaxLayers) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu64 ", not a period of 1 to %" PRIu32
                    " layers: convert the model again",
                    key.text, period, kMaxLayers);
  }
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    const bool local = layer % period != period - 1;
    desc->local_layers[layer / 64] |= uint64_t{local ? 1u : 0u} << (layer % 64);
  }
  return kOk;
}

Status readWindows(const GgufFile& file, const ArchitectureTable& table, const Log& log,
                   ModelDesc* desc) {
  const KeyName key(table, "attention.sliding_window");
  if (!file.has(key.text)) {
    return table.quirks.local_period == 0
               ? kOk
               : log.fail(ORIEL_ERROR_FORMAT,
                          "%s is missing from the GGUF file: convert the model again", key.text);
  }
  uint64_t window = 0;
  ORIEL_TRY(readCount(file, key.text, log, &window));
  if (table.quirks.local_period == 0) {
    desc->window_train = static_cast<uint32_t>(std::min<uint64_t>(window, kMaxWindow));
    return kOk;
  }
  if (window == 0 || window > kMaxWindow) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu64 ", not a window of 1 to %" PRIu32
                    " tokens: convert the model again",
                    key.text, window, kMaxWindow);
  }
  desc->local_window = static_cast<uint32_t>(window);
  ORIEL_TRY(readLocalPattern(file, table, log, desc));
  desc->local_window = desc->localLayers() != 0 ? desc->local_window : 0;
  return kOk;
}

/// Constants of the arithmetic that are no shapes.
Status readScales(const GgufFile& file, const ArchitectureTable& table, const Log& log,
                  ModelDesc* desc) {
  const Quirks& quirks = table.quirks;
  desc->gelu = quirks.gelu;
  desc->no_rope_period = quirks.no_rope_period;
  const float width = static_cast<float>(desc->n_embd);
  desc->embedding_scale = quirks.scaled_embedding ? std::sqrt(width) : 1.0f;
  const bool by_width = quirks.width_scaled_layers == desc->n_layers;
  double scale = 1.0 / std::sqrt(by_width ? static_cast<double>(desc->n_embd) / desc->n_heads
                                          : static_cast<double>(desc->head_dim));
  ORIEL_TRY(readReal(file, table, "attention.scale", Need::kOptional, log, &scale));
  desc->attention_scale = static_cast<float>(scale);
  return kOk;
}

// --- Tensors -------------------------------------------------------------------------------------

uint64_t extentOf(const ModelDesc& desc, Extent extent) {
  switch (extent) {
    case Extent::kOne:
      return 1;
    case Extent::kEmbedding:
      return desc.n_embd;
    case Extent::kQueries:
      return static_cast<uint64_t>(desc.n_heads) * desc.head_dim;
    case Extent::kKeyValues:
      return static_cast<uint64_t>(desc.n_kv_heads) * desc.head_dim;
    case Extent::kHead:
      return desc.head_dim;
    case Extent::kQkv:
      return (desc.n_heads + 2ull * desc.n_kv_heads) * desc.head_dim;
    case Extent::kFeedForward:
      return desc.n_ff;
    case Extent::kGateUp:
      return 2ull * desc.n_ff;
    case Extent::kRopePairs:
      return desc.rope_dims / 2;
    case Extent::kVocabulary:
      return desc.n_vocab;
  }
  return 0;
}

/// Splits "blk.12.attn_q.weight" into 12 and the rest. Other names, also ones with a number that is
/// not written the usual way, are left alone.
bool splitLayer(const GgufString& name, uint32_t* layer, GgufString* rest) {
  if (name.bytes < 7 || std::memcmp(name.data, "blk.", 4) != 0) {
    return false;
  }
  uint64_t at = 4;
  uint64_t number = 0;
  while (at < name.bytes && name.data[at] >= '0' && name.data[at] <= '9' && number < 100000) {
    number = number * 10 + static_cast<uint64_t>(name.data[at] - '0');
    ++at;
  }
  if (at == 4 || at == name.bytes || name.data[at] != '.' || (name.data[4] == '0' && at > 5)) {
    return false;
  }
  *layer = static_cast<uint32_t>(number);
  *rest = {name.data + at + 1, static_cast<size_t>(name.bytes - at - 1)};
  return true;
}

const TensorRule* findRule(const ArchitectureTable& table, const GgufString& name, bool in_layers) {
  for (uint32_t i = 0; i < table.n_tensors; ++i) {
    if (table.tensors[i].in_layers == in_layers && name.equals(table.tensors[i].name)) {
      return &table.tensors[i];
    }
  }
  return nullptr;
}

bool isIgnored(const ArchitectureTable& table, const GgufString& name) {
  for (const char* const* ignored = table.ignored; *ignored != nullptr; ++ignored) {
    if (name.equals(*ignored)) {
      return true;
    }
  }
  return false;
}

bool isRunnable(uint32_t type, bool matrix) {
  switch (static_cast<TensorType>(type)) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBf16:
      return true;
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
    case TensorType::kQ5_0:
    case TensorType::kQ5_1:
    case TensorType::kQ8_0:
    case TensorType::kQ2_K:
    case TensorType::kQ3_K:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
    case TensorType::kQ6_K:
    case TensorType::kIq4Nl:
    case TensorType::kIq4Xs:
      return matrix;
  }
  return false;
}

Status checkTensor(const GgufTensor& tensor, const TensorRule& rule, const ModelDesc& desc,
                   const Log& log) {
  const uint64_t rows = extentOf(desc, rule.rows);
  const uint64_t cols = extentOf(desc, rule.cols);
  if (tensor.dims[0] != cols || tensor.dims[1] != rows || tensor.dims[2] != 1 ||
      tensor.dims[3] != 1) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "tensor %s has %" PRIu64 " rows of %" PRIu64 " values (%" PRIu64
                    " of them) where the file's own numbers ask for %" PRIu64 " rows of %" PRIu64
                    ": convert the model again",
                    PrintableText(tensor.name).text, tensor.dims[1], tensor.dims[0],
                    tensor.dims[2] * tensor.dims[3], rows, cols);
  }
  const bool matrix = rule.rows != Extent::kOne;
  if (!isRunnable(tensor.type, matrix)) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "tensor %s has type %s, this build runs %s: use a file in one of these",
                    PrintableText(tensor.name).text, tensorTypeName(tensor.type),
                    matrix ? "F32, F16, BF16, Q8_0, Q4_0 to Q5_1, Q2_K to Q6_K, IQ4_NL and IQ4_XS"
                           : "F32, F16 and BF16 there");
  }
  return kOk;
}

Status checkTensors(const GgufFile& file, const ArchitectureTable& table, const Log& log,
                    ModelDesc* desc) {
  // Names are unique in a validated file and layers are checked here, so a rule is fulfilled in every
  // layer when it was met as often as there are layers.
  uint32_t met[kMaxTensorRules] = {};
  uint64_t cursor = 0;
  GgufTensor tensor;
  while (file.nextTensor(&cursor, &tensor)) {
    uint32_t layer = 0;
    GgufString name = tensor.name;
    const bool in_layer = splitLayer(tensor.name, &layer, &name);
    if (isIgnored(table, name)) {
      continue;
    }
    const TensorRule* rule = findRule(table, name, in_layer);
    if (rule == nullptr) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "tensor %s %s, which this build cannot run: use another model",
                      PrintableText(tensor.name).text, unknownTensorPurpose(tensor.name));
    }
    if (in_layer && layer >= desc->n_layers) {
      return log.fail(
          ORIEL_ERROR_FORMAT, "tensor %s is there, but %s is %" PRIu32 ": convert the model again",
          PrintableText(tensor.name).text, KeyName(table, "block_count").text, desc->n_layers);
    }
    ORIEL_TRY(checkTensor(tensor, *rule, *desc, log));
    ++met[rule - table.tensors];
  }

  for (uint32_t i = 0; i < table.n_tensors; ++i) {
    const TensorRule& rule = table.tensors[i];
    if (rule.role == TensorRole::kOutput) {
      desc->tied_output = met[i] == 0;
    }
    const uint32_t expected = rule.in_layers ? desc->n_layers : 1;
    for (uint32_t layer = 0; rule.required && met[i] < expected && layer < expected; ++layer) {
      const TensorName name(rule, layer);
      if (!file.findTensor(name.text, &tensor)) {
        return log.fail(ORIEL_ERROR_FORMAT,
                        "tensor %s is missing from the GGUF file: convert the model again",
                        name.text);
      }
    }
  }
  return kOk;
}

/// From its key, or else from the embedding; the tokenizer must agree.
Status completeVocabulary(const GgufFile& file, const Log& log, ModelDesc* desc) {
  if (desc->n_vocab == 0) {
    GgufTensor embedding;
    if (!file.findTensor("token_embd.weight", &embedding)) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "tensor token_embd.weight is missing from the GGUF file: convert the model "
                      "again");
    }
    if (embedding.dims[1] > kMaxVocabulary) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "tensor token_embd.weight has %" PRIu64
                      " rows, this build runs up to %" PRIu32 " tokens: use another model",
                      embedding.dims[1], kMaxVocabulary);
    }
    desc->n_vocab = static_cast<uint32_t>(embedding.dims[1]);
  }
  GgufArray tokens;
  if (file.getArray("tokenizer.ggml.tokens", &tokens) && tokens.count != desc->n_vocab) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "tokenizer.ggml.tokens has %" PRIu64 " tokens but the model has %" PRIu32
                    ": convert the model again",
                    tokens.count, desc->n_vocab);
  }
  return kOk;
}

}  // namespace

Status readModelDesc(const GgufFile& file, const Log& log, ModelDesc* desc) {
  GgufString name;
  if (!file.getString("general.architecture", &name)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "general.architecture is missing from the GGUF file: convert the model again");
  }
  const ArchitectureTable* table = findArchitecture(name);
  if (table == nullptr) {
    const char* missing = missingFor(name);
    return log.fail(
        ORIEL_ERROR_UNSUPPORTED, "architecture \"%s\" %s%s%s: use a model of one of these: %s",
        PrintableText(name).text, missing != nullptr ? "needs " : "is not supported",
        missing != nullptr ? missing : "",
        missing != nullptr ? ", which this build does not have" : "", kSupportedArchitectures);
  }
  ModelDesc found;
  found.architecture = table->architecture;
  found.rope_pairing = table->rope_pairing;
  ORIEL_TRY(refuseVariants(file, *table, log));
  ORIEL_TRY(readCounts(file, *table, log, &found));
  ORIEL_TRY(completeHeads(file, *table, log, &found));
  double rms_eps = 0;
  ORIEL_TRY(
      readReal(file, *table, "attention.layer_norm_rms_epsilon", Need::kRequired, log, &rms_eps));
  found.rms_eps = static_cast<float>(rms_eps);
  ORIEL_TRY(readWindows(file, *table, log, &found));
  ORIEL_TRY(readScales(file, *table, log, &found));
  ORIEL_TRY(completeVocabulary(file, log, &found));
  ORIEL_TRY(checkTensors(file, *table, log, &found));
  ORIEL_TRY(readRope(file, *table, log, &found));
  *desc = found;
  return kOk;
}

GgufTensor findTensor(const GgufFile& file, const ModelDesc& desc, TensorRole role,
                      uint32_t layer) {
  if (role == TensorRole::kOutput && desc.tied_output) {
    role = TensorRole::kTokenEmbedding;
  }
  const ArchitectureTable& table = architectureTable(desc.architecture);
  GgufTensor tensor;
  for (uint32_t i = 0; i < table.n_tensors; ++i) {
    if (table.tensors[i].role == role &&
        file.findTensor(TensorName(table.tensors[i], layer).text, &tensor)) {
      break;
    }
  }
  return tensor;
}

bool hasTensor(const ModelDesc& desc, TensorRole role) {
  const ArchitectureTable& table = architectureTable(desc.architecture);
  for (uint32_t i = 0; i < table.n_tensors; ++i) {
    if (table.tensors[i].role == role) {
      return table.tensors[i].required;
    }
  }
  return false;
}

}  // namespace oriel
