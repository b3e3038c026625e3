#include "model/adapters.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "model/keys.h"

namespace oriel_internal {
namespace {

bool sameTable(const RopeTable& a, const RopeTable& b) {
  return a.dims == b.dims && a.theta == b.theta && a.magnitude == b.magnitude &&
         std::equal(a.divisors, a.divisors + a.dims / 2, b.divisors);
}

Status differs(const char* what, uint64_t draft, uint64_t target, const Log& log) {
  return log.fail(ORIEL_ERROR_FORMAT,
                  "the draft model is for a target with %s %" PRIu64 " but the model has %" PRIu64
                  ": use the assistant that was published with this model",
                  what, draft, target);
}

// Last layer of the target that slides (or does not, by `slides`); n_layers if not found.
uint32_t lastLayer(const ModelDesc& target, bool slides) {
  for (uint32_t layer = target.n_layers; layer-- != 0;) {
    if (target.kind(layer).attends() && target.slides(layer) == slides) {
      return layer;
    }
  }
  return target.n_layers;
}

Status joinLayer(const ModelDesc& draft, uint32_t layer, const Log& log, ModelDesc* target) {
  const bool slides = draft.slides(layer);
  const uint32_t last = lastLayer(*target, slides);
  if (last == target->n_layers) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "layer %" PRIu32
                    " of the draft model reads a %s layer, of which the model has none: use the "
                    "assistant that was published with this model",
                    layer, slides ? "sliding-window" : "full-attention");
  }
  const LayerKind& reads = draft.kind(layer);
  const LayerKind& kind = target->kind(last);
  if (reads.head_dim != kind.head_dim) {
    return differs("heads of size", reads.head_dim, kind.head_dim, log);
  }
  if (reads.n_heads % kind.n_kv_heads != 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the draft model has %" PRIu32 " heads, not a multiple of the model's %" PRIu32
                    " heads of keys: use the assistant that was published with this model",
                    reads.n_heads, kind.n_kv_heads);
  }
  if (slides && draft.viewOf(layer).window != target->viewOf(last).window) {
    return differs("sliding windows of", draft.viewOf(layer).window, target->viewOf(last).window,
                   log);
  }
  if (reads.rope != kind.rope ||
      (kind.rope != kNoRope && !sameTable(draft.ropes[kind.rope], target->ropes[kind.rope]))) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the draft model turns queries otherwise than the model its keys: use the "
                    "assistant that was published with this model");
  }
  target->draft.layers[layer] = {reads.n_heads, reads.n_ff, target->layers[last].memory_of};
  return kOk;
}

}  // namespace

Status joinDraft(const ModelDesc& draft, const TensorIndex& draft_tensors, const Log& log,
                 ModelDesc* target, TensorIndex* tensors) {
  if (std::strcmp(target->architecture, "gemma4") != 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the draft model guesses for a Gemma 4 but the model is of architecture "
                    "\"%s\": leave the draft model out",
                    target->architecture);
  }
  if (draft.n_vocab != target->n_vocab) {
    return differs("a vocabulary of", draft.n_vocab, target->n_vocab, log);
  }
  if (draft.target_embd != target->n_embd) {
    return differs("a width of", draft.target_embd, target->n_embd, log);
  }
  // The draft reads two concatenated vectors, and each needs an aligned buffer binding.
  if (target->n_embd * sizeof(float) % kBufferAlignment != 0 ||
      draft.n_layers > DraftDesc::kMaxLayers) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "this build runs draft models of up to %" PRIu32
                    " layers for models whose width is a multiple of %" PRIu32
                    ": leave the draft model out",
                    DraftDesc::kMaxLayers, static_cast<uint32_t>(kBufferAlignment / sizeof(float)));
  }
  for (uint32_t layer = 0; layer < draft.n_layers; ++layer) {
    ORIEL_TRY(joinLayer(draft, layer, log, target));
  }
  ORIEL_TRY(tensors->addDraft(draft_tensors, log));
  target->draft.n_embd = draft.n_embd;
  target->draft.rms_eps = draft.rms_eps;
  target->draft.n_layers = draft.n_layers;
  return kOk;
}

namespace {

constexpr uint32_t kMaxTokenTypes = 1024;
constexpr uint32_t kMaxLabels = 4096;

// False for layers with a state or a convolution: those layers run as in a decoder.
bool canBeWhole(const ModelDesc& desc) {
  bool latent = false;
  for (uint32_t k = 0; k < desc.n_kinds; ++k) {
    latent = latent || desc.kinds[k].isLatent();
  }
  return !desc.keepsStates() && !latent && desc.layer_input == 0 && desc.loops == 1 &&
         desc.query_temperature == 0;
}

Status readHeads(const GgufFile& file, const Architecture& architecture, const Log& log,
                 ModelDesc* desc) {
  if (desc->pooling == FilePooling::kRank) {
    GgufArray labels;
    const KeyName key(architecture, "classifier.output_labels");
    desc->labels = 1;
    if (file.getArray(key.text, &labels)) {
      ORIEL_TRY(checkRange(key.text, labels.count, 1, kMaxLabels, log));
      desc->labels = static_cast<uint32_t>(labels.count);
    }
    desc->rank_activation = architecture.traits.rank_activation;
    return kOk;
  }
  return readModelCount(file, architecture, "dense_2_feat_out", Need::kOptional, 1, kMaxEmbedding,
                        log, &desc->dense);
}

Status readTypes(const GgufFile& file, const Log& log, ModelDesc* desc) {
  constexpr char kTypes[] = "tokenizer.ggml.token_type_count";
  GgufTensor tensor;
  if (!file.findTensor("token_types.weight", &tensor)) {
    return kOk;
  }
  uint64_t types = tensor.dims[1];
  if (file.has(kTypes)) {
    ORIEL_TRY(readCount(file, kTypes, log, &types));
  }
  ORIEL_TRY(checkRange(kTypes, types, 1, kMaxTokenTypes, log));
  desc->token_types = static_cast<uint32_t>(types);
  return kOk;
}

}  // namespace

Status readEncoder(const GgufFile& file, const Architecture& architecture, const Log& log,
                   ModelDesc* desc) {
  const Traits& traits = architecture.traits;
  bool causal = !traits.encoder;
  (void)file.getBool(KeyName(architecture, "attention.causal").text, &causal);
  const bool pools = desc->pooling != FilePooling::kNone && desc->pooling != FilePooling::kUnknown;
  if (!traits.encoder && (!canBeWhole(*desc) || (causal && !pools) || traits.drafts)) {
    return causal ? kOk
                  : log.fail(ORIEL_ERROR_UNSUPPORTED,
                             "%s is false, which this build runs where layers have attention or "
                             "short convolutions alone: use another model",
                             KeyName(architecture, "attention.causal").text);
  }
  desc->encoder = true;
  desc->causal = causal;
  desc->window_train = 0;
  for (uint32_t v = 0; v < desc->n_views; ++v) {
    LayerView& view = desc->views[v];
    const bool slides = view.kind == ViewKind::kSliding;
    // A window covers half of its tokens in each direction, or all of them backwards.
    const uint32_t window = causal ? view.window - 1 : view.window / 2;
    view = {ViewKind::kText, slides ? std::max(window, 1u) : 0};
  }
  if (causal && desc->convolves()) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "%s is true, this build embeds with short convolutions that look both ways: "
                    "use another model",
                    KeyName(architecture, "attention.causal").text);
  }
  ORIEL_TRY(readHeads(file, architecture, log, desc));
  if (desc->labels != 0) {
    desc->pooling = traits.rank_pooling;
  }
  return readTypes(file, log, desc);
}

}  // namespace oriel_internal
