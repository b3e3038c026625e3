#include "model/layers.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "model/keys.h"

namespace oriel_internal {
namespace {

bool hasConvLayers(const Architecture& architecture) {
  bool found = false;
  forEachRule(architecture,
              [&](const TensorRule& rule) { found = found || rule.where == Where::kConvLayers; });
  return found;
}

// --- Heads ---------------------------------------------------------------------------------------

Status checkHeads(const Architecture& architecture, uint32_t layer, uint32_t n_heads,
                  uint32_t n_kv_heads, const Log& log) {
  if (n_heads == 0 || n_heads % n_kv_heads != 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu32 " in layer %" PRIu32 ", which %s (%" PRIu32
                    ") is not a multiple of: convert the model again",
                    KeyName(architecture, "attention.head_count_kv").text, n_kv_heads, layer,
                    KeyName(architecture, "attention.head_count").text, n_heads);
  }
  return kOk;
}

/// Fills in defaults of missing optional keys, and checks that the numbers fit together.
Status completeHeads(const GgufFile& file, const Architecture& architecture, const Log& log,
                     ModelDesc* desc) {
  if (desc->n_kv_heads == 0) {
    desc->head_dim = 0;  // no layer has attention
    return kOk;
  }
  if (desc->head_dim == 0 && architecture.traits.head_of_rope) {
    ORIEL_TRY(readModelCount(file, architecture, "rope.dimension_count", Need::kOptional,
                             kMinHeadDim, kMaxHeadDim, log, &desc->head_dim));
  }
  if (desc->head_dim == 0) {
    if (desc->n_embd % desc->n_heads != 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "the model's width %" PRIu32 " does not divide into %" PRIu32
                      " heads and %s is missing: convert the model again",
                      desc->n_embd, desc->n_heads,
                      KeyName(architecture, "attention.key_length").text);
    }
    desc->head_dim = desc->n_embd / desc->n_heads;
  } else {
    ORIEL_TRY(checkRange(KeyName(architecture, "attention.key_length").text, desc->head_dim,
                         kMinHeadDim, kMaxHeadDim, log));
  }
  if (desc->head_dim < kMinHeadDim || desc->head_dim > kMaxHeadDim || desc->head_dim % 2 != 0) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model's heads have %" PRIu32
                    " values, this build runs even sizes from %" PRIu32 " to %" PRIu32
                    ": use another model",
                    desc->head_dim, kMinHeadDim, kMaxHeadDim);
  }
  const KeyName value_length(architecture, "attention.value_length");
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
  return kOk;
}

/// Number of rotated values in a head of `head_dim`. Leaves `*dims` unchanged if the key is missing.
Status readRopeDims(const GgufFile& file, const Architecture& architecture, const char* suffix,
                    uint32_t head_dim, const Log& log, uint32_t* dims) {
  const KeyName key(architecture, suffix);
  uint64_t count = *dims;
  if (file.has(key.text)) {
    ORIEL_TRY(readCount(file, key.text, log, &count));
    ORIEL_TRY(checkRange(key.text, count, 2, kMaxHeadDim, log));
  }
  if (count > head_dim || count % 2 != 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu64 ", not an even number up to the head size %" PRIu32
                    ": convert the model again",
                    key.text, count, head_dim);
  }
  *dims = static_cast<uint32_t>(count);
  return kOk;
}

/// Reads the rotated values of all tables; `sliding_head`: head_dim of sliding-window layers.
Status readRopeDims(const GgufFile& file, const Architecture& architecture, uint32_t sliding_head,
                    const Log& log, ModelDesc* desc) {
  bool finetuned = !architecture.traits.no_rope;
  if (architecture.traits.finetuned_rope) {
    (void)file.getBool(KeyName(architecture, "rope.scaling.finetuned").text, &finetuned);
  }
  if (desc->head_dim == 0) {
    return kOk;
  }
  uint32_t dims = desc->head_dim;
  ORIEL_TRY(readRopeDims(file, architecture, "rope.dimension_count", desc->head_dim, log, &dims));
  uint32_t sliding = sliding_head == desc->head_dim ? dims : sliding_head;
  ORIEL_TRY(
      readRopeDims(file, architecture, "rope.dimension_count_swa", sliding_head, log, &sliding));
  desc->ropes[kMainRope].dims = finetuned ? dims : 0;
  desc->ropes[kSlidingRope].dims = finetuned ? sliding : 0;
  return kOk;
}

/// Reads the head size of sliding-window layers, which may differ.
Status readSlidingHead(const GgufFile& file, const Architecture& architecture, const Log& log,
                       uint32_t* head_dim) {
  if (!architecture.traits.sliding_head) {
    return kOk;
  }
  ORIEL_TRY(readModelCount(file, architecture, "attention.key_length_swa", Need::kOptional,
                           kMinHeadDim, kMaxHeadDim, log, head_dim));
  uint32_t value_dim = *head_dim;
  ORIEL_TRY(readModelCount(file, architecture, "attention.value_length_swa", Need::kOptional,
                           kMinHeadDim, kMaxHeadDim, log, &value_dim));
  if (value_dim != *head_dim || *head_dim % 2 != 0) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "heads of sliding-window layers have keys of %" PRIu32 " and values of %" PRIu32
                    " values, this build runs equal and even sizes: use another model",
                    *head_dim, value_dim);
  }
  return kOk;
}

// --- Windows -------------------------------------------------------------------------------------

/// Which layers slide: a period, a flag per layer, or the architecture's default.
class SlidingPattern {
 public:
  Status open(const GgufFile& file, const Architecture& architecture, const Log& log,
              ModelDesc* desc) {
    const Traits& traits = architecture.traits;
    key_ = KeyName(architecture, "attention.sliding_window_pattern");
    const KeyName key(architecture, "attention.sliding_window");
    const bool of_some = traits.sliding_period != 0 || traits.all_slide;
    const bool other_size = traits.sliding_layers != 0 && traits.sliding_layers != desc->n_layers;
    uint64_t window = traits.sliding_window;
    if (!file.has(key.text)) {
      if (!of_some || traits.sliding_is_optional || other_size) {
        return kOk;
      }
      if (window == 0) {
        return missingKey(key.text, log);
      }
    } else {
      ORIEL_TRY(readCount(file, key.text, log, &window));
    }
    if (!of_some) {
      desc->window_train = static_cast<uint32_t>(std::min<uint64_t>(window, kMaxWindow));
      return kOk;
    }
    if (other_size) {
      return kOk;
    }
    if (window == 0 && traits.sliding_is_optional) {
      return kOk;
    }
    if (window == 0 || window > kMaxWindow) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is %" PRIu64 ", not a window of 1 to %" PRIu32
                      " tokens: convert the model again",
                      key.text, window, kMaxWindow);
    }
    window_ = static_cast<uint32_t>(window);
    all_ = traits.all_slide;
    if (all_) {
      return kOk;
    }
    return openPattern(file, architecture, log, desc->n_layers);
  }

  /// Window of the next layer, or 0.
  Status next(uint32_t layer, const Log& log, uint32_t* window) {
    bool slides = window_ != 0 && (all_ || (period_ != 0 && layer % period_ != full_));
    if (window_ != 0 && is_list_ && !flags_.nextBool(&slides)) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is neither a number nor a list of booleans: convert the model again",
                      key_.text);
    }
    *window = slides ? window_ : 0;
    return kOk;
  }

 private:
  Status openPattern(const GgufFile& file, const Architecture& architecture, const Log& log,
                     uint32_t n_layers) {
    uint64_t period = architecture.traits.sliding_period;
    GgufArray flags;
    const bool is_list = file.getArray(key_.text, &flags);
    if (is_list) {
      ORIEL_TRY(checkPerLayer(key_.text, flags, n_layers, log));
    }
    if (is_list && !architecture.traits.ignores_pattern) {
      is_list_ = true;
      flags_ = GgufArrayReader(flags);
      return kOk;
    }
    if (!file.has(key_.text) && architecture.traits.pattern_required) {
      return missingKey(key_.text, log);
    }
    if (!is_list && file.has(key_.text)) {
      ORIEL_TRY(readCount(file, key_.text, log, &period));
    }
    if (period == 0 || period > kMaxLayers) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is %" PRIu64 ", not a period of 1 to %" PRIu32
                      " layers: convert the model again",
                      key_.text, period, kMaxLayers);
    }
    period_ = static_cast<uint32_t>(period);
    full_ = architecture.traits.full_first ? 0 : period_ - 1;
    return kOk;
  }

  KeyName key_;
  uint32_t window_ = 0;  // 0: no layer slides
  uint32_t period_ = 0;
  uint32_t full_ = 0;  // of a period
  bool all_ = false;
  bool is_list_ = false;
  GgufArrayReader flags_{GgufArray()};
};

// --- Scales --------------------------------------------------------------------------------------

Status readMultipliers(const GgufFile& file, const Architecture& architecture, const Log& log,
                       ModelDesc* desc) {
  const Traits& traits = architecture.traits;
  const double width = desc->n_embd;
  double embedding = traits.scaled_embedding ? std::sqrt(width) : 1.0;
  double residual = 1;
  double logits = 1;  // a divisor
  if (traits.scale_defaults) {
    embedding = 12;
    residual = 1.4 / std::sqrt(static_cast<double>(desc->n_layers));
    logits = width / 256;
  }
  if (traits.scales) {
    ORIEL_TRY(readScale(file, architecture, "embedding_scale", Need::kOptional, log, &embedding));
    ORIEL_TRY(readScale(file, architecture, "residual_scale", Need::kOptional, log, &residual));
    ORIEL_TRY(readScale(file, architecture, "logit_scale",
                        traits.scale_defaults ? Need::kOptional : Need::kRequired, log, &logits));
  }
  if (traits.logit_factor) {
    double factor = 1;
    ORIEL_TRY(readScale(file, architecture, "logit_scale", Need::kRequired, log, &factor));
    logits = 1 / factor;
  }
  double cap = traits.logit_cap;
  if (traits.logit_cap != 0) {
    ORIEL_TRY(readScale(file, architecture, "final_logit_softcapping", Need::kOptional, log, &cap));
  }
  desc->logit_cap = static_cast<float>(cap);
  desc->embedding_scale = static_cast<float>(embedding / residual);
  desc->residual_eps =
      static_cast<float>(static_cast<double>(desc->rms_eps) / (residual * residual));
  desc->logit_scale = static_cast<float>(1 / logits);
  if (!std::isfinite(desc->embedding_scale) || !std::isfinite(desc->residual_eps) ||
      !std::isfinite(desc->logit_scale)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s and its like are out of any range: convert the model again",
                    KeyName(architecture, "residual_scale").text);
  }
  if (traits.query_temperature) {
    ORIEL_TRY(readScale(file, architecture, "attention.temperature_scale", Need::kOptional, log,
                        &desc->query_temperature));
    desc->temperature_tokens = desc->context_train;
    ORIEL_TRY(readCountAsReal(file, architecture, "rope.scaling.original_context_length", log,
                              &desc->temperature_tokens));
    if (desc->temperature_tokens == 0) {
      desc->query_temperature = 0;
    }
    if (desc->query_temperature != 0 && desc->ropes[kMainRope].dims != desc->head_dim) {
      return log.fail(
          ORIEL_ERROR_UNSUPPORTED,
          "%s is %" PRIu32
          ", with a temperature this build runs heads that are rotated whole: use another model",
          KeyName(architecture, "rope.dimension_count").text, desc->ropes[kMainRope].dims);
    }
  }
  return kOk;
}

/// Reads the attention properties that all layers share.
Status readAttention(const GgufFile& file, const Architecture& architecture, const Log& log,
                     const ModelDesc& desc, LayerKind* kind) {
  const Traits& traits = architecture.traits;
  kind->head_norms = traits.head_norms;
  kind->row_norms = traits.row_norms;
  kind->norms_after_rope = traits.norms_after_rope;
  kind->value_norm = traits.value_norm;
  kind->alibi = traits.alibi;
  if (traits.gated) {
    kind->gate = kGateSigmoid;
    kind->gate_beside = true;
  }
  kind->head_dim = desc.head_dim;
  const bool by_width = traits.width_scaled_layers == desc.n_layers;
  double scale = 1.0 / std::sqrt(by_width ? static_cast<double>(desc.n_embd) / desc.n_heads
                                          : static_cast<double>(desc.head_dim));
  if (traits.unit_scores) {
    scale = 1;
  } else if (!traits.no_attention_scale) {
    ORIEL_TRY(readScale(file, architecture, "attention.scale", Need::kOptional, log, &scale));
  }
  kind->attention_scale = static_cast<float>(scale);
  double cap = traits.score_cap;
  if (traits.score_cap != 0) {
    ORIEL_TRY(readScale(file, architecture, "attn_logit_softcapping", Need::kOptional, log, &cap));
  }
  kind->soft_cap = static_cast<float>(cap);
  return kOk;
}

// --- Kinds ---------------------------------------------------------------------------------------

uint8_t ropeOf(const Traits& traits, const ModelDesc& desc, uint32_t layer, bool slides,
               bool some_slide, bool dense) {
  const uint8_t rope = slides && !traits.sliding_main_rope ? kSlidingRope : kMainRope;
  if (desc.ropes[rope].dims == 0 ||
      (traits.no_rope_period != 0 && (layer + 1) % traits.no_rope_period == 0) ||
      (traits.no_rope_in_full && some_slide && !slides && !(traits.rope_in_dense && dense))) {
    return kNoRope;
  }
  return rope;
}

/// The last layers read the KV cache of the last earlier layer with the same sliding behaviour.
Status shareMemories(const GgufFile& file, const Architecture& architecture, const Log& log,
                     ModelDesc* desc) {
  uint32_t shared = 0;
  ORIEL_TRY(readModelCount(file, architecture, "attention.shared_kv_layers", Need::kOptional, 0,
                           desc->n_layers - 1, log, &shared));
  const uint32_t owners = desc->n_layers - shared;
  for (uint32_t layer = owners; layer < desc->n_layers; ++layer) {
    uint32_t source = owners;
    while (source != 0 && desc->slides(source - 1) != desc->slides(layer)) {
      --source;
    }
    if (source == 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is %" PRIu32 ", but no layer before has what layer %" PRIu32
                      " reads: convert the model again",
                      KeyName(architecture, "attention.shared_kv_layers").text, shared, layer);
    }
    desc->layers[layer].memory_of = static_cast<uint16_t>(source - 1);
  }
  return kOk;
}

Status describeLayer(const Architecture& architecture, uint32_t layer, LayerKind kind,
                     uint32_t window, bool some_slide, const Log& log, ModelDesc* desc) {
  if (!kind.attends()) {
    // Unused fields get equal values in all such layers, so that they share a kind.
    kind.n_heads = kind.n_kv_heads = kind.head_dim = 0;
    kind.attention_scale = kind.soft_cap = 0;
    kind.rope = kNoRope;
    kind.row_norms = kind.norms_after_rope = kind.value_norm = kind.head_norms = false;
    kind.gate = kNoGate;
    kind.gate_heads = kind.gate_beside = kind.alibi = false;
    kind.value_experts = Experts();
    kind.latent_dim = kind.rope_dim = kind.value_dim = kind.query_latent_dim = 0;
    kind.joined_latent = false;
    window = 0;
  } else {
    kind.rope =
        ropeOf(architecture.traits, *desc, layer, window != 0, some_slide, kind.experts.count == 0);
  }
  if (kind.mixer != Mixer::kShortConv) {
    kind.conv_taps = 0;
  }
  if (kind.keepsState()) {
    kind.state_words = kind.state.matrixValues() + kind.state.columnWords();
  } else {
    kind.state = StateShape();
  }
  LayerView view;
  if (kind.mixer == Mixer::kShortConv) {
    view = {ViewKind::kColumns, kind.conv_taps};
  } else if (kind.mixer == Mixer::kState) {
    view = {ViewKind::kState, 0};
  } else if (window != 0) {
    view = {ViewKind::kSliding, window};
  }
  kind.view = addView(view, desc);
  if (kind.mixer == Mixer::kParallel) {
    kind.state_view = addView({ViewKind::kState, 0}, desc);
  }
  const bool full = kind.view == UINT8_MAX || kind.state_view == UINT8_MAX;
  desc->layers[layer].kind = full ? UINT8_MAX : addKind(kind, desc);
  desc->layers[layer].memory_of = static_cast<uint16_t>(layer);
  if (desc->layers[layer].kind == UINT8_MAX) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has more than %" PRIu32 " kinds of layers: use another model",
                    kMaxLayerKinds);
  }
  return kOk;
}

/// Reads the layers' attn_gate: per head or per value.
void readGate(const GgufFile& file, const Traits& traits, uint32_t layer, LayerKind* kind) {
  char name[kMaxTensorNameBytes + 1];
  std::snprintf(name, sizeof(name), "blk.%" PRIu32 ".attn_gate.weight", layer);
  GgufTensor gate;
  if (traits.gate != kNoGate && kind->attends() && file.findTensor(name, &gate)) {
    kind->gate = traits.gate;
    kind->gate_heads = gate.dims[1] == kind->n_heads;
  }
}

/// Reads model-wide properties: norms, passes and positions.
Status readForm(const GgufFile& file, const Architecture& architecture, const Log& log,
                ModelDesc* desc) {
  const Traits& traits = architecture.traits;
  GgufTensor tensor;
  desc->bare_norms = traits.bare_norms;
  desc->learned_positions = traits.learned_positions;
  desc->fused_gates = traits.fused_gates && !file.findTensor("blk.0.ffn_gate.weight", &tensor);
  desc->post_norms =
      traits.optional_post_norms && (file.findTensor("blk.0.post_attention_norm.weight", &tensor) ||
                                     file.findTensor("blk.0.post_ffw_norm.weight", &tensor));
  if (traits.grouped_norms) {
    constexpr char kNormGroupsKey[] = "attention.group_norm_groups";
    ORIEL_TRY(readModelCount(file, architecture, kNormGroupsKey, Need::kOptional, 1, kMaxEmbedding,
                             log, &desc->norm_groups));
    if (desc->n_embd % desc->norm_groups != 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is %" PRIu32 ", which does not divide the width %" PRIu32
                      ": convert the model again",
                      KeyName(architecture, kNormGroupsKey).text, desc->norm_groups, desc->n_embd);
    }
  }
  if (traits.qkv_limit) {
    double limit = 0;
    ORIEL_TRY(readScale(file, architecture, "attention.clamp_kqv", Need::kOptional, log, &limit));
    desc->qkv_limit = static_cast<float>(limit);
  }
  if (traits.loops) {
    ORIEL_TRY(readModelCount(file, architecture, "num_loops", Need::kOptional, 1,
                             kMaxLayers / desc->n_layers, log, &desc->loops));
    bool skips = false;
    (void)file.getBool(KeyName(architecture, "skip_loop_final_norm").text, &skips);
    desc->loop_norms = !skips;
  }
  if (desc->learned_positions && desc->context_train == 0) {
    return missingKey(KeyName(architecture, "context_length").text, log);
  }
  return kOk;
}

/// The numbers of xIELU: a scalar for all layers or an array.
Status readXielu(const GgufFile& file, const Log& log, ModelDesc* desc) {
  constexpr const char* kKeys[] = {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"};
  for (uint32_t i = 0; i < 4; ++i) {
    double value = 0;
    GgufArray list;
    const bool is_list = file.getArray(kKeys[i], &list);
    if (is_list) {
      ORIEL_TRY(checkPerLayer(kKeys[i], list, desc->n_layers, log));
    } else if (!file.getFloat(kKeys[i], &value)) {
      return missingKey(kKeys[i], log);
    }
    GgufArrayReader reader(list);
    for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
      float of = static_cast<float>(value);
      if ((is_list && !reader.nextFloat(&of)) || !std::isfinite(of)) {
        return log.fail(ORIEL_ERROR_FORMAT, "%s is not finite: convert the model again", kKeys[i]);
      }
      desc->layers[layer].activation[i] = of;
    }
  }
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    float(&of)[4] = desc->layers[layer].activation;
    const auto softplus = [](float x) {
      return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x)));
    };
    of[0] = softplus(of[0]);
    of[1] = of[2] + softplus(of[1]);
  }
  return kOk;
}

}  // namespace

Status readLayers(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc) {
  const Traits& traits = architecture.traits;
  const bool has_convs = hasConvLayers(architecture);
  const bool attends = traits.state_layers != StateLayers::kAll;
  const bool mixed = has_convs || traits.state != StateRule::kNone;
  if (traits.no_trained_context && desc->context_train == 1u << 20) {
    desc->context_train = 0;  // converters' value for models without position encoding
  }
  if (traits.extra_layers) {
    ORIEL_TRY(readModelCount(file, architecture, "nextn_predict_layers", Need::kOptional, 0,
                             desc->n_layers - 1, log, &desc->extra_layers));
    desc->n_layers -= desc->extra_layers;
  }
  const uint32_t n_blocks = desc->n_layers + desc->extra_layers;
  LayerCounts heads;
  LayerCounts kv_heads;
  LayerCounts feed_forward;
  ORIEL_TRY(heads.open(file, architecture, "attention.head_count", n_blocks, mixed ? 0 : 1,
                       kMaxHeads, log));
  ORIEL_TRY(kv_heads.open(file, architecture, "attention.head_count_kv", n_blocks, mixed ? 0 : 1,
                          kMaxHeads, log));
  const bool branches = traits.state_layers == StateLayers::kBranches;
  ORIEL_TRY(feed_forward.open(file, architecture, "feed_forward_length", n_blocks,
                              attends && !branches ? 1 : 0, kMaxFeedForward, log));
  GgufTensor gate;
  const bool by_tensor = traits.feed_forward_by_tensor &&
                         file.findTensor("blk.0.ffn_gate.weight", &gate) && gate.dims[1] != 0 &&
                         gate.dims[1] <= kMaxFeedForward;
  for (const auto& [counts, suffix] : {std::pair{&feed_forward, "feed_forward_length"},
                                       std::pair{&heads, "attention.head_count"}}) {
    if (attends && !counts->present()) {
      return missingKey(KeyName(architecture, suffix).text, log);
    }
  }

  // Per-layer numbers come first: the widest layer decides the head width.
  struct Counts {
    uint32_t heads, kv_heads, ff;
    Mixer mixer;
  };
  Counts counts[kMaxLayers];
  bool keeps_states = false;
  uint32_t first_attention = 0;
  uint32_t first_state = 0;
  MixerPattern mixers;
  ORIEL_TRY(mixers.open(file, architecture, n_blocks, log));
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    Counts& of = counts[layer];
    of = {};
    if (attends) {
      ORIEL_TRY(heads.next(log, &of.heads));
      of.kv_heads = of.heads;
      ORIEL_TRY(feed_forward.next(log, &of.ff));
    }
    if (attends && kv_heads.present()) {
      ORIEL_TRY(kv_heads.next(log, &of.kv_heads));
    }
    of.ff = by_tensor ? static_cast<uint32_t>(gate.dims[1]) : of.ff;
    ORIEL_TRY(mixers.next(layer, of.kv_heads, of.ff, log, &of.mixer));
    const bool keeps_state = of.mixer == Mixer::kState || of.mixer == Mixer::kParallel;
    first_state = keeps_state && !keeps_states ? layer : first_state;
    keeps_states = keeps_states || keeps_state;
    if (of.mixer == Mixer::kAttention || of.mixer == Mixer::kParallel) {
      ORIEL_TRY(checkHeads(architecture, layer, of.heads, of.kv_heads, log));
      first_attention = desc->n_heads == 0 ? layer : first_attention;
      desc->n_heads = std::max(desc->n_heads, of.heads);
      desc->n_kv_heads = std::max(desc->n_kv_heads, of.kv_heads);
    }
  }
  ExpertCounts experts;
  ORIEL_TRY(readExperts(file, architecture, desc->n_layers, counts[0].ff, log, &experts));
  bool has_experts[kMaxLayers];
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    has_experts[layer] = experts.isIn(file, layer);
    if (has_experts[layer] && !experts.experts.own_input) {
      counts[layer].ff = experts.shared_ff;
    }
    desc->n_ff = std::max(desc->n_ff, counts[layer].ff);
  }
  ORIEL_TRY(readForm(file, architecture, log, desc));
  LayerKind common;
  common.activation = traits.activation;
  common.plain = traits.plain;
  common.parallel = traits.parallel;
  GgufTensor found;
  if (traits.parallel_by_key) {
    common.parallel = true;
    (void)file.getBool(KeyName(architecture, "use_parallel_residual").text, &common.parallel);
  }
  if (traits.parallel_without_norm) {
    common.parallel = !file.findTensor("blk.0.ffn_norm.weight", &found);
  }
  if (traits.latent_attention && desc->n_kv_heads != 0) {
    ORIEL_TRY(readLatent(file, architecture, first_attention, log, &common, desc));
  } else {
    ORIEL_TRY(completeHeads(file, architecture, log, desc));
  }
  const uint32_t full_head = desc->head_dim;
  uint32_t sliding_head = full_head;
  if (!traits.latent_attention) {
    ORIEL_TRY(readSlidingHead(file, architecture, log, &sliding_head));
    ORIEL_TRY(readRopeDims(file, architecture, sliding_head, log, desc));
  }
  desc->head_dim = std::max(full_head, sliding_head);
  if (traits.layer_inputs) {
    ORIEL_TRY(readModelCount(file, architecture, "embedding_length_per_layer_input",
                             Need::kRequired, 0, kMaxLayerInput, log, &desc->layer_input));
  }
  SlidingPattern sliding;
  ORIEL_TRY(sliding.open(file, architecture, log, desc));
  ORIEL_TRY(readMultipliers(file, architecture, log, desc));
  if (desc->n_kv_heads != 0) {
    ORIEL_TRY(readAttention(file, architecture, log, *desc, &common));
  }
  if (keeps_states) {
    ORIEL_TRY(readState(file, architecture, counts[first_state].heads, log, &common.state));
  }
  GgufTensor norm;
  common.state.in_order = traits.state_in_order;
  common.state.normed =
      !traits.state_norm_optional || file.findTensor("blk.0.ssm_norm.weight", &norm);
  if (has_convs) {
    ORIEL_TRY(readModelCount(file, architecture, "shortconv.l_cache", Need::kRequired, 1,
                             kMaxConvTaps, log, &common.conv_taps));
  }
  uint32_t windows[kMaxLayers];
  bool some_slide = false;
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    ORIEL_TRY(sliding.next(layer, log, &windows[layer]));
    some_slide = some_slide || windows[layer] != 0;
  }
  for (uint32_t layer = 0; layer < desc->n_layers; ++layer) {
    LayerKind kind = common;
    kind.mixer = counts[layer].mixer;
    kind.n_heads = counts[layer].heads;
    kind.n_kv_heads = kind.isLatent() ? 1 : counts[layer].kv_heads;
    kind.n_ff = counts[layer].ff;
    if (has_experts[layer]) {
      kind.experts = experts.experts;
      kind.value_experts = experts.value_experts;
      kind.norms_summed = traits.norms_summed;
    }
    kind.head_dim = windows[layer] != 0 ? sliding_head : full_head;
    readGate(file, traits, layer, &kind);
    ORIEL_TRY(describeLayer(architecture, layer, kind, windows[layer], some_slide, log, desc));
  }
  if (!keeps_states && desc->n_kv_heads == 0) {
    return log.fail(
        ORIEL_ERROR_UNSUPPORTED,
        "%s is 0 in every layer, this build runs models with attention: use another model",
        KeyName(architecture, "attention.head_count_kv").text);
  }
  if (traits.activation == kXielu) {
    ORIEL_TRY(readXielu(file, log, desc));
  }
  // The further passes are like the first.
  const uint32_t n_once = desc->n_layers;
  desc->n_layers *= desc->loops;
  for (uint32_t layer = n_once; layer < desc->n_layers; ++layer) {
    desc->layers[layer] = desc->layers[layer % n_once];
    desc->layers[layer].memory_of = static_cast<uint16_t>(layer);
  }
  if (traits.shared_memories && !traits.drafts) {  // an assistant's layers read another model's
    ORIEL_TRY(shareMemories(file, architecture, log, desc));
  }
  return checkMemories(*desc, log);
}

}  // namespace oriel_internal
