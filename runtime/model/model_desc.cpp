#include "model/model_desc.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "model/adapters.h"
#include "model/architecture.h"
#include "model/keys.h"
#include "model/layers.h"

namespace oriel_internal {

bool isIn(const TensorRule& rule, const ModelDesc& desc, uint32_t layer) {
  const LayerKind& kind = desc.kind(layer);
  switch (rule.where) {
    case Where::kModel:
    case Where::kModelLayerInputs:
      return false;
    case Where::kEveryLayer:
      return true;
    case Where::kAttentionLayers:
      return kind.attends();
    case Where::kMemoryLayers:
      return kind.attends() && desc.ownsMemory(layer);
    case Where::kDenseLayers:
      return kind.experts.count == 0 && kind.n_ff != 0;
    case Where::kExpertLayers:
      return kind.experts.count != 0;
    case Where::kSharedLayers:
      return kind.experts.count != 0 && kind.n_ff != 0;
    case Where::kLayerInputs:
      return desc.layer_input != 0;
    case Where::kConvLayers:
      return kind.mixer == Mixer::kShortConv;
    case Where::kStateLayers:
      return kind.keepsState();
    case Where::kNormedStateLayers:
      return kind.keepsState() && kind.state.normed;
    case Where::kQueryLatentLayers:
      return kind.isLatent() && kind.query_latent_dim != 0;
    case Where::kQueryWholeLayers:
      return kind.isLatent() && kind.query_latent_dim == 0;
    case Where::kSplitLatentLayers:
      return kind.isLatent() && !kind.joined_latent;
    case Where::kJoinedLatentLayers:
      return kind.isLatent() && kind.joined_latent;
    case Where::kGatedLayers:
      return kind.gate != kNoGate;
    case Where::kPostNormLayers:
      return desc.post_norms;
    case Where::kWholeValueLayers:
      return kind.attends() && kind.value_experts.count == 0;
    case Where::kValueExpertLayers:
      return kind.value_experts.count != 0;
    case Where::kLaterLayers:
      return layer != 0;
    case Where::kSplitGateLayers:
      return !desc.fused_gates;
    case Where::kFusedGateLayers:
      return desc.fused_gates;
    case Where::kRank:
    case Where::kDenseHead:
      return false;
  }
  return false;
}

uint64_t extentOf(const ModelDesc& desc, const LayerKind& kind, Extent extent) {
  switch (extent) {
    case Extent::kOne:
      return 1;
    case Extent::kEmbedding:
      return desc.n_embd;
    case Extent::kQueries:
      return kind.queryCols();
    case Extent::kKeyValues:
      return kind.kvCols();
    case Extent::kHead:
      return kind.head_dim;
    case Extent::kQkv:
      return uint64_t{kind.queryCols()} + 2ull * kind.kvCols();
    case Extent::kFeedForward:
      return kind.n_ff;
    case Extent::kGateUp:
      return 2ull * kind.n_ff;
    case Extent::kRopePairs:
      return desc.ropes[kMainRope].dims / 2;
    case Extent::kVocabulary:
      return desc.n_vocab;
    case Extent::kThreeEmbeddings:
      return 3ull * desc.n_embd;
    case Extent::kConvTaps:
      return kind.conv_taps;
    case Extent::kExperts:
      return kind.experts.count;
    case Extent::kExpertFeedForward:
      return kind.experts.n_ff;
    case Extent::kLayerInput:
      return desc.layer_input;
    case Extent::kLayerInputs:
      return uint64_t{desc.layer_input} * desc.n_layers;
    case Extent::kGatedQueries:
      return 2ull * kind.queryCols();
    case Extent::kStateInputs:
      return uint64_t{kind.state.valueCols()} + kind.state.channels() + kind.state.heads;
    case Extent::kStateChannels:
      return kind.state.channels();
    case Extent::kStateTaps:
      return kind.state.conv_taps;
    case Extent::kStateHeads:
      return kind.state.heads;
    case Extent::kStateKeyHeads:
      return kind.state.key_heads;
    case Extent::kStateValue:
      return kind.state.value_dim;
    case Extent::kStateValues:
      return kind.state.valueCols();
    case Extent::kStateGroup:
      return kind.state.valueCols() / kind.state.key_heads;
    case Extent::kHeads:
      return kind.n_heads;
    case Extent::kQueryLatent:
      return kind.query_latent_dim;
    case Extent::kLatent:
      return kind.latent_dim;
    case Extent::kLatentAndKey:
      return kind.latentCols();
    case Extent::kPlainHead:
      return kind.plainDim();
    case Extent::kValueHead:
      return kind.value_dim;
    case Extent::kValueHeads:
      return kind.attendedCols();
    case Extent::kPlainAndValueHeads:
      return uint64_t{kind.n_heads} * (kind.plainDim() + kind.value_dim);
    case Extent::kGates:
      return kind.gateCols();
    case Extent::kKeyHeads:
      return kind.n_kv_heads;
    case Extent::kContext:
      return desc.context_train;
    case Extent::kExpertInput:
      return kind.expertCols(desc.n_embd);
    case Extent::kExpertGateUp:
      return 2ull * kind.experts.n_ff;
    case Extent::kExpertLatent:
      return kind.experts.latent;
    case Extent::kValueExperts:
      return kind.value_experts.count;
    case Extent::kTwoStateHeads:
      return 2ull * kind.state.heads;
    case Extent::kTokenTypes:
      return desc.token_types;
    case Extent::kDense:
      return desc.dense;
    case Extent::kLabels:
      return desc.labels;
    case Extent::kTarget:
      return desc.target_embd;
    case Extent::kTargetTwice:
      return 2ull * desc.target_embd;
  }
  return 0;
}

namespace {

bool ofLayers(const TensorRule& rule) {
  return rule.where != Where::kModel && rule.where != Where::kModelLayerInputs &&
         rule.where != Where::kRank && rule.where != Where::kDenseHead;
}

/// True if the rule applies to this model's model-wide tensors.
bool isOfModel(const TensorRule& rule, const ModelDesc& desc) {
  return rule.where == Where::kModel ||
         (rule.where == Where::kModelLayerInputs && desc.layer_input != 0) ||
         (rule.where == Where::kRank && desc.labels != 0) ||
         (rule.where == Where::kDenseHead && desc.dense != 0);
}

/// "blk.3.attn_q.weight"
struct TensorName {
  TensorName(const TensorRule& rule, uint32_t layer) {
    if (ofLayers(rule)) {
      std::snprintf(text, sizeof(text), "blk.%" PRIu32 ".%s", layer, rule.name);
    } else {
      std::snprintf(text, sizeof(text), "%s", rule.name);
    }
  }
  char text[kMaxTensorNameBytes + 1];
};

/// Splits "blk.12.attn_q.weight" into 12 and the rest. Leaves other names alone, including names with
/// a non-canonical number.
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

// Finds the rule of a name; among rules with equal names, the rule that matches the layer's kind.
const TensorRule* findRule(const Architecture& architecture, const GgufString& name, bool in_layers,
                           const ModelDesc& desc, uint32_t layer) {
  const TensorRule* found = nullptr;
  forEachRule(architecture, [&](const TensorRule& rule) {
    if (ofLayers(rule) == in_layers && name.equals(rule.name) &&
        (found == nullptr || (layer < desc.n_layers && isIn(rule, desc, layer)))) {
      found = &rule;
    }
  });
  return found;
}

bool isIgnored(const GgufString& name) {
  for (const char* const* ignored = ignoredTensors(); *ignored != nullptr; ++ignored) {
    if (name.equals(*ignored)) {
      return true;
    }
  }
  // Scales of 4-bit activations. This build does not round activations to 4 bits.
  constexpr char kInputScale[] = ".input_scale";
  constexpr size_t kBytes = sizeof(kInputScale) - 1;
  return name.bytes > kBytes &&
         std::memcmp(name.data + name.bytes - kBytes, kInputScale, kBytes) == 0;
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
    case TensorType::kIq2Xxs:
    case TensorType::kIq2Xs:
    case TensorType::kIq2S:
    case TensorType::kIq3Xxs:
    case TensorType::kIq3S:
    case TensorType::kIq4Nl:
    case TensorType::kIq4Xs:
    case TensorType::kTq1_0:
    case TensorType::kTq2_0:
    case TensorType::kMxfp4:
    case TensorType::kNvfp4:
    case TensorType::kQ1_0:
    case TensorType::kQ2_0:
      return matrix;
  }
  return false;
}

bool isMatrix(const TensorRule& rule) {
  return rule.rows != Extent::kOne && rule.cols != Extent::kConvTaps &&
         rule.cols != Extent::kStateTaps && rule.cols != Extent::kStateGroup &&
         rule.cols != Extent::kOne && !rule.vector;
}

Status checkType(const GgufTensor& tensor, bool matrix, const Log& log) {
  if (!isRunnable(tensor.type, matrix)) {
    return log.fail(
        ORIEL_ERROR_UNSUPPORTED,
        "tensor %s has type %s, this build runs %s: use a file in one of these",
        PrintableText(tensor.name).text, tensorTypeName(tensor.type),
        matrix ? "F32, F16, BF16, Q8_0, Q4_0 to Q5_1, Q2_K to Q6_K, IQ2_XXS to IQ4_XS, TQ1_0, "
                 "TQ2_0, Q1_0, Q2_0, MXFP4 and NVFP4"
               : "F32, F16 and BF16 there");
  }
  return kOk;
}

Status checkTensor(const GgufTensor& tensor, const TensorRule& rule, const ModelDesc& desc,
                   const LayerKind& kind, const Log& log) {
  const uint64_t rows = extentOf(desc, kind, rule.rows);
  const uint64_t cols = extentOf(desc, kind, rule.cols);
  const uint64_t depth = extentOf(desc, kind, rule.depth);
  const bool matrix = isMatrix(rule);
  // Norm vectors of all heads may be stored as one.
  const bool flat = !matrix && rule.rows != Extent::kOne && tensor.dims[0] == rows * cols &&
                    tensor.dims[1] == 1 && depth == 1 && tensor.dims[2] == 1;
  if (flat) {
    return checkType(tensor, matrix, log);
  }
  if (tensor.dims[0] != cols || tensor.dims[1] != rows || tensor.dims[2] != depth ||
      tensor.dims[3] != 1) {
    char times[32] = "";
    if (depth != 1) {
      std::snprintf(times, sizeof(times), " (%" PRIu64 " of them)", depth);
    }
    return log.fail(ORIEL_ERROR_FORMAT,
                    "tensor %s has %" PRIu64 " rows of %" PRIu64 " values (%" PRIu64
                    " of them) where the file's own numbers ask for %" PRIu64 " rows of %" PRIu64
                    "%s: convert the model again",
                    PrintableText(tensor.name).text, tensor.dims[1], tensor.dims[0],
                    tensor.dims[2] * tensor.dims[3], rows, cols, times);
  }
  return checkType(tensor, matrix, log);
}

/// "attn_q.scale": factor of the products of "attn_q.weight".
const TensorRule* findScaled(const Architecture& architecture, const GgufString& name,
                             bool in_layers, const ModelDesc& desc, uint32_t layer) {
  constexpr char kScale[] = ".scale";
  constexpr size_t kBytes = sizeof(kScale) - 1;
  char weight[kMaxTensorNameBytes + 1];
  if (name.bytes <= kBytes || name.bytes + 1 >= sizeof(weight) ||
      std::memcmp(name.data + name.bytes - kBytes, kScale, kBytes) != 0) {
    return nullptr;
  }
  const int stem = static_cast<int>(name.bytes - kBytes);
  std::snprintf(weight, sizeof(weight), "%.*s.weight", stem, name.data);
  const TensorRule* const rule =
      findRule(architecture, {weight, std::strlen(weight)}, in_layers, desc, layer);
  return rule != nullptr && isMatrix(*rule) && rule->role != TensorRole::kTokenEmbedding &&
                 rule->depth != Extent::kHeads && rule->role != TensorRole::kLatentKeysValues
             ? rule
             : nullptr;
}

/// Error for a tensor that its layer does not use.
Status misplaced(const GgufFile& file, const GgufTensor& tensor, const Architecture& architecture,
                 const TensorRule& rule, const ModelDesc& desc, uint32_t layer, const Log& log) {
  const bool of_experts = rule.where == Where::kExpertLayers ||
                          rule.where == Where::kSharedLayers || rule.where == Where::kDenseLayers;
  if (of_experts || rule.where == Where::kLayerInputs) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "tensor %s is there, but the file's own numbers give layer %" PRIu32
                    " no %s: convert the model again",
                    PrintableText(tensor.name).text, layer,
                    rule.where == Where::kExpertLayers   ? "experts"
                    : rule.where == Where::kSharedLayers ? "shared expert"
                    : rule.where == Where::kDenseLayers  ? "feed-forward without experts"
                                                         : "input of its own");
  }
  if (rule.where == Where::kNormedStateLayers && desc.kind(layer).keepsState()) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "tensor %s is there, but layer 0 has no such norm: convert the model again",
                    PrintableText(tensor.name).text);
  }
  return log.fail(ORIEL_ERROR_FORMAT,
                  "tensor %s is there, but %s makes layer %" PRIu32
                  " one of %s: convert the model again",
                  PrintableText(tensor.name).text,
                  KeyName(architecture, mixerKey(file, architecture)).text, layer,
                  desc.kind(layer).mixer == Mixer::kShortConv ? "short convolutions"
                  : desc.kind(layer).attends()                ? "attention"
                                                              : "states");
}

/// A single pass checks and records every tensor.
Status checkTensors(const GgufFile& file, const Architecture& architecture,
                    const oriel_allocator& allocator, const Log& log, ModelDesc* desc,
                    TensorIndex* tensors) {
  const uint32_t n_layers = desc->n_layers / desc->loops;  // layers in the file
  ORIEL_TRY(tensors->create(file.tensorCount(), desc->n_layers, allocator, log));
  uint64_t cursor = 0;
  GgufTensor tensor;
  while (file.nextTensor(&cursor, &tensor)) {
    uint32_t layer = 0;
    GgufString name = tensor.name;
    const bool in_layer = splitLayer(tensor.name, &layer, &name);
    const bool is_extra = in_layer && layer >= n_layers && layer < n_layers + desc->extra_layers;
    if (isIgnored(name) || is_extra) {
      continue;
    }
    const TensorRule* rule = findRule(architecture, name, in_layer, *desc, layer);
    TensorRule scale;
    if (rule == nullptr) {
      rule = findScaled(architecture, name, in_layer, *desc, layer);
      if (rule != nullptr) {
        scale = *rule;
        scale.role = scaleOf(rule->role);
        scale.cols = rule->depth;
        scale.rows = scale.depth = Extent::kOne;
        rule = &scale;
      }
    }
    if (rule == nullptr) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "tensor %s %s, which this build cannot run: use another model",
                      PrintableText(tensor.name).text, unknownTensorPurpose(tensor.name));
    }
    if (in_layer && layer >= n_layers) {
      return log.fail(
          ORIEL_ERROR_FORMAT, "tensor %s is there, but %s is %" PRIu32 ": convert the model again",
          PrintableText(tensor.name).text, KeyName(architecture, "block_count").text, n_layers);
    }
    if (in_layer && !isIn(*rule, *desc, layer)) {
      if (rule->where == Where::kMemoryLayers || rule->where == Where::kJoinedLatentLayers) {
        continue;  // its layer reads another layer's KV cache: ignored
      }
      return misplaced(file, tensor, architecture, *rule, *desc, layer, log);
    }
    if ((rule->where == Where::kRank || rule->where == Where::kDenseHead) &&
        !isOfModel(*rule, *desc)) {
      return log.fail(ORIEL_ERROR_FORMAT, "tensor %s is there, but %s: convert the model again",
                      PrintableText(tensor.name).text,
                      rule->where == Where::kRank ? "pooling_type does not say that it ranks texts"
                                                  : "the file gives no width of it");
    }
    if (rule->where == Where::kModelLayerInputs && desc->layer_input == 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "tensor %s is there, but %s is 0: convert the model again",
                      PrintableText(tensor.name).text,
                      KeyName(architecture, "embedding_length_per_layer_input").text);
    }
    const LayerKind& kind = desc->kind(layer);
    ORIEL_TRY(checkTensor(tensor, *rule, *desc, kind, log));
    tensors->add(rule->role, layer, tensor);
  }

  Status status = kOk;
  const auto expect = [&](const TensorRule& rule, uint32_t layer) {
    if (status.ok() && !tensors->has(rule.unless, layer) && !tensors->has(rule.role, layer)) {
      status = log.fail(ORIEL_ERROR_FORMAT,
                        "tensor %s is missing from the GGUF file: convert the model again",
                        TensorName(rule, layer).text);
    }
  };
  forEachRule(architecture, [&](const TensorRule& rule) {
    if (rule.required && isOfModel(rule, *desc)) {
      expect(rule, 0);
    }
    for (uint32_t layer = 0; rule.required && layer < n_layers; ++layer) {
      if (isIn(rule, *desc, layer)) {
        expect(rule, layer);
      }
    }
  });
  tensors->repeat(n_layers);
  desc->tied_output = !tensors->has(TensorRole::kOutput);
  if (desc->tied_output) {
    tensors->tieOutput();
  }
  return status;
}

/// Reads the vocabulary size from its key, or from the embedding. The tokenizer must agree.
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

// `drafts`: read as a draft model.
Status readAnyDesc(const GgufFile& file, bool drafts, const oriel_allocator& allocator,
                   const Log& log, ModelDesc* desc, TensorIndex* tensors) {
  GgufString name;
  if (!file.getString("general.architecture", &name)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "general.architecture is missing from the GGUF file: convert the model again");
  }
  const Architecture* const architecture = findArchitecture(name);
  if (architecture == nullptr) {
    return refuseArchitecture(name, log);
  }
  if (architecture->traits.drafts != drafts) {
    return drafts ? log.fail(ORIEL_ERROR_UNSUPPORTED,
                             "\"%s\" is no architecture that guesses for another model: use the "
                             "assistant of a Gemma 4",
                             architecture->name)
                  : log.fail(ORIEL_ERROR_UNSUPPORTED,
                             "a file of \"%s\" guesses tokens for a Gemma 4 and writes nothing by "
                             "itself: load that model, with this file as its draft model",
                             architecture->name);
  }
  ModelDesc found;
  found.architecture = architecture->name;
  found.rope_pairing = architecture->rope_pairing;
  ORIEL_TRY(refuseVariants(file, *architecture, log));
  ORIEL_TRY(readCounts(file, *architecture, log, &found));
  uint64_t pooling = 0;
  if (file.getUint(KeyName(*architecture, "pooling_type").text, &pooling)) {
    constexpr auto kUnknown = static_cast<uint64_t>(FilePooling::kUnknown);
    found.pooling = static_cast<FilePooling>(std::min(pooling, kUnknown));
  }
  double rms_eps = 0;
  constexpr char kLayerEps[] = "attention.layer_norm_epsilon";
  found.layer_norms = architecture->traits.norms == NormRule::kLayer ||
                      (architecture->traits.norms == NormRule::kByKey &&
                       file.has(KeyName(*architecture, kLayerEps).text));
  ORIEL_TRY(readReal(file, *architecture,
                     found.layer_norms ? kLayerEps : "attention.layer_norm_rms_epsilon",
                     Need::kRequired, log, &rms_eps));
  found.rms_eps = static_cast<float>(rms_eps);
  ORIEL_TRY(readLayers(file, *architecture, log, &found));
  ORIEL_TRY(readEncoder(file, *architecture, log, &found));
  ORIEL_TRY(completeVocabulary(file, log, &found));
  ORIEL_TRY(checkTensors(file, *architecture, allocator, log, &found, tensors));
  ORIEL_TRY(readRope(file, *architecture, *tensors, log, &found));
  *desc = found;
  return kOk;
}

}  // namespace

bool runsAsMatrix(uint32_t tensor_type) { return isRunnable(tensor_type, true); }

Status readModelDesc(const GgufFile& file, const oriel_allocator& allocator, const Log& log,
                     ModelDesc* desc, TensorIndex* tensors) {
  return readAnyDesc(file, false, allocator, log, desc, tensors);
}

Status readDraftDesc(const GgufFile& file, const oriel_allocator& allocator, const Log& log,
                     ModelDesc* desc, TensorIndex* tensors) {
  return readAnyDesc(file, true, allocator, log, desc, tensors);
}

// --- Prediction blocks ---------------------------------------------------------------------------

namespace {

// The tensors of a prediction block besides those of its layer (docs/decisions/015-speculation.md).
// clang-format off
constexpr TensorRule kPredictionRules[] = {
    {TensorRole::kEmbeddingNorm, "nextn.enorm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kHiddenNorm, "nextn.hnorm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kDraftIn, "nextn.eh_proj.weight", Where::kEveryLayer, Extent::kEmbedding, Extent::kTargetTwice, true},
    {TensorRole::kOutputNorm, "nextn.shared_head_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kTokenEmbedding, "nextn.embed_tokens.weight", Where::kEveryLayer, Extent::kVocabulary, Extent::kEmbedding, false},
    {TensorRole::kOutput, "nextn.shared_head_head.weight", Where::kEveryLayer, Extent::kVocabulary, Extent::kEmbedding, false}};
// clang-format on

/// Calls visit(rule) for the tensors of the block in layer n_layers.
template <typename Visit>
void forEachPredictionRule(const Architecture& architecture, const ModelDesc& desc,
                           const Visit& visit) {
  for (const TensorRule& rule : kPredictionRules) {
    visit(rule);
  }
  forEachRule(architecture, [&](const TensorRule& rule) {
    if (ofLayers(rule) && isIn(rule, desc, desc.n_layers)) {
      visit(rule);
    }
  });
}

/// Makes layer n_layers like the last layer, which must have full attention.
Status describePrediction(const Architecture& architecture, const Log& log, ModelDesc* desc) {
  if (!architecture.traits.predicts || desc->extra_layers != 1) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the file has %" PRIu32
                    " layers for prediction, this build runs one, of Qwen 3.5: use another file",
                    desc->extra_layers);
  }
  const uint32_t last = desc->n_layers - 1;
  const LayerKind& kind = desc->kind(last);
  if (kind.mixer != Mixer::kAttention || !kind.gate_beside || kind.view != 0 ||
      desc->views[0].kind != ViewKind::kSession || desc->layers[last].memory_of != last) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "layer %" PRIu32
                    " has no full attention, which its prediction block needs: use another file",
                    last);
  }
  desc->layers[desc->n_layers] = desc->layers[last];
  desc->layers[desc->n_layers].memory_of = static_cast<uint16_t>(desc->n_layers);
  return kOk;
}

}  // namespace

Status readPrediction(const GgufFile& file, const Log& log, ModelDesc* desc, TensorIndex* tensors) {
  GgufString name;
  (void)file.getString("general.architecture", &name);
  const Architecture& architecture = *findArchitecture(name);
  ModelDesc described = *desc;
  described.target_embd = desc->n_embd;
  ORIEL_TRY(describePrediction(architecture, log, &described));
  const uint32_t block = desc->n_layers;
  const auto forEachTensor = [&](const auto& visit) -> Status {
    uint64_t cursor = 0;
    GgufTensor tensor;
    while (file.nextTensor(&cursor, &tensor)) {
      uint32_t layer = 0;
      GgufString rest = tensor.name;
      if (splitLayer(tensor.name, &layer, &rest) && layer == block && !isIgnored(rest)) {
        ORIEL_TRY(visit(rest, tensor));
      }
    }
    return kOk;
  };
  uint64_t count = 0;
  ORIEL_TRY(forEachTensor([&](const GgufString& rest, const GgufTensor& tensor) -> Status {
    const TensorRule* found = nullptr;
    forEachPredictionRule(architecture, described, [&](const TensorRule& rule) {
      found = rest.equals(rule.name) ? &rule : found;
    });
    ++count;
    return found == nullptr
               ? log.fail(ORIEL_ERROR_UNSUPPORTED,
                          "tensor %s %s, which this build cannot run: use another file",
                          PrintableText(tensor.name).text, unknownTensorPurpose(tensor.name))
               : checkTensor(tensor, *found, described, described.kind(block), log);
  }));
  Status status = kOk;
  forEachPredictionRule(architecture, described, [&](const TensorRule& rule) {
    GgufTensor tensor;
    if (status.ok() && rule.required && !file.findTensor(TensorName(rule, block).text, &tensor)) {
      status = log.fail(ORIEL_ERROR_FORMAT,
                        "tensor %s is missing from the GGUF file: convert the model again",
                        TensorName(rule, block).text);
    }
  });
  ORIEL_TRY(status);
  ORIEL_TRY(tensors->extend(count, 1, log));
  ORIEL_TRY(forEachTensor([&](const GgufString& rest, GgufTensor tensor) -> Status {
    tensor.file = kDraftFile;  // results do not depend on it
    forEachPredictionRule(architecture, described, [&](const TensorRule& rule) {
      if (rest.equals(rule.name)) {
        tensors->add(rule.role, block, tensor);
      }
    });
    return kOk;
  }));
  desc->layers[block] = described.layers[block];
  desc->has_prediction = true;
  return kOk;
}

// --- Kinds ---------------------------------------------------------------------------------------

namespace {

bool sameKind(const LayerKind& a, const LayerKind& b) {
  return a.mixer == b.mixer && a.rope == b.rope && a.view == b.view &&
         a.activation == b.activation && a.plain == b.plain && a.parallel == b.parallel &&
         a.norms_summed == b.norms_summed && a.head_norms == b.head_norms && a.gate == b.gate &&
         a.gate_heads == b.gate_heads && a.gate_beside == b.gate_beside &&
         a.row_norms == b.row_norms && a.norms_after_rope == b.norms_after_rope &&
         a.n_heads == b.n_heads && a.n_kv_heads == b.n_kv_heads && a.head_dim == b.head_dim &&
         a.latent_dim == b.latent_dim && a.rope_dim == b.rope_dim && a.value_dim == b.value_dim &&
         a.query_latent_dim == b.query_latent_dim && a.joined_latent == b.joined_latent &&
         a.n_ff == b.n_ff && a.conv_taps == b.conv_taps && a.state_words == b.state_words &&
         a.state_view == b.state_view && a.state == b.state &&
         a.attention_scale == b.attention_scale && a.soft_cap == b.soft_cap &&
         a.value_norm == b.value_norm && a.alibi == b.alibi && a.experts == b.experts &&
         a.value_experts == b.value_experts;
}

}  // namespace

uint8_t addKind(const LayerKind& kind, ModelDesc* desc) {
  for (uint32_t i = 0; i < desc->n_kinds; ++i) {
    if (sameKind(desc->kinds[i], kind)) {
      return static_cast<uint8_t>(i);
    }
  }
  if (desc->n_kinds == kMaxLayerKinds) {
    return UINT8_MAX;
  }
  desc->kinds[desc->n_kinds] = kind;
  return static_cast<uint8_t>(desc->n_kinds++);
}

uint8_t addView(const LayerView& view, ModelDesc* desc) {
  for (uint32_t i = 0; i < desc->n_views; ++i) {
    const LayerView& known = desc->views[i];
    if (known.kind == view.kind && known.window == view.window && known.parts == view.parts) {
      return static_cast<uint8_t>(i);
    }
  }
  if (desc->n_views == kMaxViews) {
    return UINT8_MAX;
  }
  desc->views[desc->n_views] = view;
  return static_cast<uint8_t>(desc->n_views++);
}

bool shareWindow(const uint8_t* parts, ModelDesc* desc) {
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    LayerKind kind = desc->kind(layer);
    if (!kind.attends() || desc->views[kind.view].kind != ViewKind::kSession) {
      continue;
    }
    LayerView view;
    view.parts = parts[desc->layers[layer].memory_of];
    kind.view = addView(view, desc);
    desc->layers[layer].kind = kind.view == UINT8_MAX ? UINT8_MAX : addKind(kind, desc);
    if (desc->layers[layer].kind == UINT8_MAX) {
      return false;
    }
  }
  return true;
}

void makeLayersAlike(ModelDesc* desc) {
  LayerKind kind;
  kind.n_heads = desc->n_heads;
  kind.n_kv_heads = desc->n_kv_heads;
  kind.head_dim = desc->head_dim;
  kind.n_ff = desc->n_ff;
  kind.rope = desc->ropes[kMainRope].dims != 0 ? kMainRope : kNoRope;
  kind.attention_scale =
      desc->head_dim != 0 ? 1.0f / std::sqrt(static_cast<float>(desc->head_dim)) : 0.0f;
  desc->n_kinds = 0;
  desc->n_views = 1;
  desc->views[0] = LayerView();
  const uint8_t index = addKind(kind, desc);
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    desc->layers[layer] = {index, static_cast<uint16_t>(layer)};
  }
}

Status checkMemories(const ModelDesc& desc, const Log& log) {
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    const uint32_t owner = desc.layers[layer].memory_of;
    if (owner > layer || (owner != layer && !desc.ownsMemory(owner))) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "layer %" PRIu32 " reads the memory of layer %" PRIu32
                      ", which has none at that time: convert the model again",
                      layer, owner);
    }
    const LayerKind& a = desc.kind(layer);
    const LayerKind& b = desc.kind(owner);
    if (a.mixer != b.mixer || a.view != b.view || a.n_kv_heads != b.n_kv_heads ||
        a.head_dim != b.head_dim || a.latent_dim != b.latent_dim || a.rope_dim != b.rope_dim ||
        a.state_words != b.state_words || (a.mixer == Mixer::kParallel && owner != layer)) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "layer %" PRIu32 " reads the memory of layer %" PRIu32
                      ", which has another shape: convert the model again",
                      layer, owner);
    }
    constexpr uint64_t kMostWords = kMaxBindingBytes / sizeof(float) / kStateSlots;
    if (a.keepsState() && (a.state_words == 0 || a.state_words > kMostWords)) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "the state of layer %" PRIu32 " has %" PRIu32
                      " values, this build runs 1 to %" PRIu64 ": use another model",
                      layer, a.state_words, kMostWords);
    }
  }
  return kOk;
}

}  // namespace oriel_internal
