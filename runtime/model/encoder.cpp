#include "model/encoder.h"

#include <algorithm>
#include <cinttypes>

#include "model/keys.h"

namespace oriel_internal {
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
