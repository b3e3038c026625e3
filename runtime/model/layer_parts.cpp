#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "model/keys.h"
#include "model/layers.h"

namespace oriel_internal {
namespace {

bool hasTensor(const GgufFile& file, uint32_t layer, const char* part) {
  char name[kMaxTensorNameBytes + 1];
  std::snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s.weight", layer, part);
  GgufTensor tensor;
  return file.findTensor(name, &tensor);
}

/// Files with separate key and value matrices state the head widths under other keys (_mla). The usual keys then give
/// the widths of the KV cache.
Status readHeads(const GgufFile& file, const Architecture& architecture, const Log& log,
                 LayerKind* kind, const ModelDesc& desc) {
  const bool own_names = file.has(KeyName(architecture, "attention.key_length_mla").text);
  kind->value_dim = desc.n_embd / desc.n_heads;
  ORIEL_TRY(readModelCount(file, architecture,
                           own_names ? "attention.key_length_mla" : "attention.key_length",
                           Need::kRequired, 1, kMaxHeadDim, log, &kind->head_dim));
  return readModelCount(
      file, architecture, own_names ? "attention.value_length_mla" : "attention.value_length",
      own_names ? Need::kRequired : Need::kOptional, 1, kMaxHeadDim, log, &kind->value_dim);
}

}  // namespace

Status readLatent(const GgufFile& file, const Architecture& architecture, uint32_t layer,
                  const Log& log, LayerKind* kind, ModelDesc* desc) {
  ORIEL_TRY(readHeads(file, architecture, log, kind, *desc));
  ORIEL_TRY(readModelCount(file, architecture, "attention.kv_lora_rank", Need::kRequired, 1,
                           kMaxLatentDim, log, &kind->latent_dim));
  ORIEL_TRY(readModelCount(file, architecture, "rope.dimension_count", Need::kRequired, 1,
                           kMaxLatentRopeDim, log, &kind->rope_dim));
  // Some files of DeepSeek-V2-Lite state a width that the model does not use.
  if (!hasTensor(file, layer, "attn_q")) {
    ORIEL_TRY(readModelCount(file, architecture, "attention.q_lora_rank", Need::kRequired, 1,
                             kMaxEmbedding, log, &kind->query_latent_dim));
  }
  kind->joined_latent = hasTensor(file, layer, "attn_kv_b") && !hasTensor(file, layer, "attn_k_b");
  if (kind->rope_dim >= kind->head_dim || kind->rope_dim % 2 != 0 || kind->latent_dim % 2 != 0 ||
      kind->value_dim == 0) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has latents of %" PRIu32 " values, of heads of %" PRIu32
                    " and %" PRIu32 ", of which %" PRIu32
                    " are rotated; this build runs even latents and rotates an even part of a "
                    "head: use another model",
                    kind->latent_dim, kind->head_dim, kind->value_dim, kind->rope_dim);
  }
  desc->head_dim = kind->head_dim;
  desc->n_kv_heads = 1;
  desc->ropes[kMainRope].dims = kind->rope_dim;
  return kOk;
}

namespace {

Status readGroups(const GgufFile& file, const Architecture& architecture, const Log& log,
                  Experts* experts) {
  constexpr char kCount[] = "expert_group_count";
  constexpr char kUsed[] = "expert_group_used_count";
  uint32_t groups = 1;
  ORIEL_TRY(readModelCount(file, architecture, kCount, Need::kOptional, 0, kMaxExpertGroups, log,
                           &groups));
  if (groups <= 1) {
    return kOk;
  }
  uint32_t used = 0;
  ORIEL_TRY(readModelCount(file, architecture, kUsed, Need::kRequired, 1, groups, log, &used));
  if (experts->count % groups != 0 || experts->used > experts->count / groups * used) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu32 " and %s %" PRIu32 ", which does not fit %" PRIu32
                    " experts of which a token uses %" PRIu32 ": convert the model again",
                    KeyName(architecture, kCount).text, groups, KeyName(architecture, kUsed).text,
                    used, experts->count, experts->used);
  }
  experts->groups = groups;
  experts->used_groups = used;
  return kOk;
}

/// Reads groups, normalisation and scale of the expert weights, and the number of shared experts.
Status readExpertWeights(const GgufFile& file, const Architecture& architecture, const Log& log,
                         ExpertCounts* found) {
  Experts& experts = found->experts;
  ORIEL_TRY(readGroups(file, architecture, log, &experts));
  (void)file.getBool(KeyName(architecture, "expert_weights_norm").text, &experts.normalised);
  double scale = 1;
  ORIEL_TRY(readScale(file, architecture, "expert_weights_scale", Need::kOptional, log, &scale));
  experts.scale = static_cast<float>(scale);
  return readModelCount(file, architecture, "expert_shared_count", Need::kOptional, 0,
                        kMaxFeedForward / experts.n_ff, log, &found->shared_count);
}

/// Width of the shared feed-forward. `n_ff`: width in layers without experts.
Status readShared(const GgufFile& file, const Architecture& architecture, uint32_t n_ff,
                  const Log& log, ExpertCounts* found) {
  const Traits& traits = architecture.traits;
  const bool counted = found->shared_count != 0;
  uint32_t width = traits.shared_by_width ? n_ff : 0;
  if (traits.shared_expert) {
    ORIEL_TRY(readModelCount(file, architecture, "expert_shared_feed_forward_length",
                             Need::kOptional, 0, kMaxFeedForward, log, &width));
  }
  const uint64_t all = width == 0            ? uint64_t{found->shared_count} * found->experts.n_ff
                       : traits.shared_times ? uint64_t{found->shared_count} * width
                                             : width;
  ORIEL_TRY(checkRange(KeyName(architecture, "expert_shared_feed_forward_length").text, all, 0,
                       kMaxFeedForward, log));
  found->shared_ff = static_cast<uint32_t>(all);
  if (traits.shared_mean && counted) {
    found->experts.shared_scale = 0.5f;
    found->experts.scale *= 0.5f;
  }
  found->experts.shared_gate = traits.shared_gate && found->shared_ff != 0;
  return kOk;
}

}  // namespace

Status readExperts(const GgufFile& file, const Architecture& architecture, uint32_t n_layers,
                   uint32_t n_ff, const Log& log, ExpertCounts* found) {
  const Traits& traits = architecture.traits;
  uint64_t stated = 0;
  const KeyName key(architecture, "expert_count");
  if (!traits.experts ||
      (traits.experts_optional &&
       (!file.has(key.text) || (file.getUint(key.text, &stated) && stated == 0)))) {
    return kOk;
  }
  const auto read = [&](const char* suffix, Need need, uint32_t minimum, uint32_t maximum,
                        uint32_t* count) {
    return readModelCount(file, architecture, suffix, need, minimum, maximum, log, count);
  };
  Experts& experts = found->experts;
  ORIEL_TRY(read("expert_count", Need::kRequired, 1, kMaxExperts, &experts.count));
  ORIEL_TRY(read("expert_used_count", Need::kRequired, 1, std::min(kMaxExpertsUsed, experts.count),
                 &experts.used));
  experts.n_ff = traits.expert_width_own ? n_ff / experts.used : n_ff;
  if (traits.expert_width_own) {
    // Some files omit the width of an expert and state the total width of the used experts.
    ORIEL_TRY(read("expert_feed_forward_length",
                   traits.expert_gating || experts.n_ff == 0 ? Need::kRequired : Need::kOptional, 1,
                   kMaxFeedForward, &experts.n_ff));
  }
  uint32_t gating = traits.expert_sigmoid ? 2 : 1;
  if (traits.expert_gating) {
    // 3: a softmax over the selected, which equals the normalised softmax over all.
    ORIEL_TRY(read("expert_gating_func",
                   traits.expert_weight_keys ? Need::kOptional : Need::kRequired, 1, 3, &gating));
  }
  experts.sigmoid = gating == 2;
  experts.normalised = traits.expert_normalised;
  experts.routed_first = traits.routed_first;
  experts.own_input = traits.expert_own_input;
  if (traits.expert_weight_keys) {
    ORIEL_TRY(readExpertWeights(file, architecture, log, found));
  }
  if (traits.leading_dense) {
    ORIEL_TRY(
        read("leading_dense_block_count", Need::kOptional, 0, n_layers, &found->dense_layers));
  }
  experts.normalised = experts.normalised || gating == 3;
  if (traits.expert_latent) {
    ORIEL_TRY(read("moe_latent_size", Need::kOptional, 0, kMaxEmbedding, &experts.latent));
  }
  if (traits.expert_interval) {
    ORIEL_TRY(read("interleave_moe_layer_step", Need::kOptional, 1, kMaxLayers, &found->interval));
    ORIEL_TRY(read("moe_every_n_layers", Need::kOptional, 2, kMaxLayers, &found->period));
  }
  found->by_tensor = traits.expert_by_tensor;
  ORIEL_TRY(readShared(file, architecture, n_ff, log, found));
  Experts& values = found->value_experts;
  if (traits.value_experts) {
    ORIEL_TRY(read("attention.value_expert_count", Need::kOptional, 0, kMaxExperts, &values.count));
  }
  if (values.count != 0) {
    ORIEL_TRY(read("attention.value_expert_used_count", Need::kRequired, 1,
                   std::min(kMaxExpertsUsed, values.count), &values.used));
    values.sigmoid = true;
    values.normalised = experts.normalised;
    values.scale = experts.scale;
  }
  return kOk;
}

bool ExpertCounts::isIn(const GgufFile& file, uint32_t layer) const {
  if (experts.count == 0 || layer < dense_layers || (layer + 1) % interval != 0 ||
      (period != 0 && layer % period != 1)) {
    return false;
  }
  char name[kMaxTensorNameBytes + 1];
  std::snprintf(name, sizeof(name), "blk.%" PRIu32 ".ffn_gate_inp.weight", layer);
  GgufTensor router;
  return !by_tensor || file.findTensor(name, &router);
}

namespace {

constexpr char kRecurrentLayers[] = "attention.recurrent_layers";
constexpr char kInterval[] = "full_attention_interval";

/// Checks that `value`, of the key `of`, is a multiple of `by`, of the key `part`.
Status checkMultiple(const Architecture& architecture, const char* of, uint32_t value,
                     const char* part, uint32_t by, const Log& log) {
  if (value % by != 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s is %" PRIu32 ", not a multiple of %s (%" PRIu32
                    "): convert the model again",
                    KeyName(architecture, of).text, value, KeyName(architecture, part).text, by);
  }
  return kOk;
}

/// All heads have a key, and values of its size.
Status readKda(const GgufFile& file, const Architecture& architecture, uint32_t n_heads,
               const Log& log, StateShape* state) {
  ORIEL_TRY(readModelCount(file, architecture, "kda.head_dim", Need::kRequired, 2, kMaxStateDim,
                           log, &state->key_dim));
  ORIEL_TRY(
      checkRange(KeyName(architecture, "attention.head_count").text, n_heads, 1, kMaxHeads, log));
  state->value_dim = state->key_dim;
  state->heads = state->key_heads = n_heads;
  const KeyName safe_key(architecture, "kda.safe_gate");
  const KeyName bound_key(architecture, "kda.gate_lower_bound");
  bool safe = true;
  double bound = -5;
  (void)file.getBool(safe_key.text, &safe);
  (void)file.getFloat(bound_key.text, &bound);
  if (!safe || !(bound < 0)) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "%s is %s and %s %g, this build runs bounded gates: use another model",
                    safe_key.text, safe ? "true" : "false", bound_key.text, bound);
  }
  state->least_decay = static_cast<float>(bound);
  return kOk;
}

}  // namespace

Status readState(const GgufFile& file, const Architecture& architecture, uint32_t n_heads,
                 const Log& log, StateShape* state) {
  if (architecture.traits.state == StateRule::kNone) {
    return kOk;
  }
  constexpr char kHeads[] = "ssm.time_step_rank";
  constexpr char kKeyHeads[] = "ssm.group_count";
  constexpr char kInner[] = "ssm.inner_size";
  state->rule = architecture.traits.state;
  uint32_t inner = 0;
  const auto read = [&](const char* suffix, uint32_t minimum, uint32_t maximum, uint32_t* count) {
    return readModelCount(file, architecture, suffix, Need::kRequired, minimum, maximum, log,
                          count);
  };
  ORIEL_TRY(read("ssm.conv_kernel", 2, kMaxConvTaps, &state->conv_taps));
  if (state->rule == StateRule::kKda) {
    return readKda(file, architecture, n_heads, log, state);
  }
  ORIEL_TRY(read("ssm.state_size", 2, kMaxStateDim, &state->key_dim));
  ORIEL_TRY(read(kHeads, 1, kMaxHeads, &state->heads));
  ORIEL_TRY(read(kKeyHeads, 1, state->heads, &state->key_heads));
  ORIEL_TRY(read(kInner, 1, kMaxFeedForward, &inner));
  ORIEL_TRY(checkMultiple(architecture, kInner, inner, kHeads, state->heads, log));
  ORIEL_TRY(checkMultiple(architecture, kHeads, state->heads, kKeyHeads, state->key_heads, log));
  state->value_dim = inner / state->heads;
  if (state->value_dim > kMaxStateDim) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "heads of states have %" PRIu32 " values, this build runs 1 to %" PRIu32
                    ": use another model",
                    state->value_dim, kMaxStateDim);
  }
  return kOk;
}

const char* mixerKey(const GgufFile& file, const Architecture& architecture) {
  if (architecture.traits.state_layers != StateLayers::kMost) {
    return "attention.head_count_kv";
  }
  return file.has(KeyName(architecture, kRecurrentLayers).text) ? kRecurrentLayers : kInterval;
}

Status MixerPattern::open(const GgufFile& file, const Architecture& architecture, uint32_t n_blocks,
                          const Log& log) {
  states_ = architecture.traits.state_layers;
  of_ = architecture.name;
  if (states_ != StateLayers::kMost) {
    return kOk;
  }
  const KeyName list(architecture, kRecurrentLayers);
  GgufArray flags;
  is_list_ = file.getArray(list.text, &flags);
  if (is_list_) {
    flags_ = GgufArrayReader(flags);
    return checkPerLayer(list.text, flags, n_blocks, log);
  }
  interval_ = 4;
  return readModelCount(file, architecture, kInterval, Need::kOptional, 1, kMaxLayers, log,
                        &interval_);
}

Status MixerPattern::next(uint32_t layer, uint32_t n_kv_heads, uint32_t n_ff, const Log& log,
                          Mixer* mixer) {
  bool attends = true;
  switch (states_) {
    case StateLayers::kNone:
      *mixer = n_kv_heads != 0 ? Mixer::kAttention : Mixer::kShortConv;
      return kOk;
    case StateLayers::kAllBeside:
      *mixer = Mixer::kParallel;
      break;
    case StateLayers::kAll:
      *mixer = Mixer::kState;
      return kOk;
    case StateLayers::kWithoutHeads:
      *mixer = n_kv_heads != 0 ? Mixer::kAttention : Mixer::kState;
      return kOk;
    case StateLayers::kBranches:
      *mixer = n_ff != 0 ? Mixer::kNone : n_kv_heads != 0 ? Mixer::kAttention : Mixer::kState;
      return kOk;
    case StateLayers::kMost:
      attends = interval_ != 0 && (layer + 1) % interval_ == 0;
      if (is_list_) {
        bool recurrent = false;
        if (!flags_.nextBool(&recurrent)) {
          return log.fail(ORIEL_ERROR_FORMAT,
                          "%s.%s is not a list of booleans: convert the model again", of_,
                          kRecurrentLayers);
        }
        attends = !recurrent;
      }
      *mixer = attends ? Mixer::kAttention : Mixer::kState;
      break;
  }
  if (attends && n_kv_heads == 0) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s.attention.head_count_kv is 0 in layer %" PRIu32
                    ", which has attention: convert the model again",
                    of_, layer);
  }
  return kOk;
}

}  // namespace oriel_internal
