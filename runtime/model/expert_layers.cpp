#include "model/expert_layers.h"

#include <algorithm>
#include <cinttypes>

#include "model/keys.h"

namespace oriel_internal {
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

}  // namespace oriel_internal
