#include "model/draft_model.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

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

}  // namespace oriel_internal
