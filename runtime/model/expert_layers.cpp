#include "model/expert_layers.h"

#include <algorithm>

#include "model/keys.h"

namespace oriel_internal {
namespace {

/// How weights of experts are scaled, and as how many experts the shared one counts.
Status readExpertWeights(const GgufFile& file, const Architecture& architecture, const Log& log,
                         ExpertCounts* found) {
  Experts& experts = found->experts;
  uint32_t groups = 1;
  ORIEL_TRY(readModelCount(file, architecture, "expert_group_count", Need::kOptional, 0, 1, log,
                           &groups));
  (void)file.getBool(KeyName(architecture, "expert_weights_norm").text, &experts.normalised);
  double scale = 1;
  ORIEL_TRY(readScale(file, architecture, "expert_weights_scale", Need::kOptional, log, &scale));
  experts.scale = static_cast<float>(scale);
  uint32_t shared = 0;
  ORIEL_TRY(readModelCount(file, architecture, "expert_shared_count", Need::kOptional, 0,
                           kMaxFeedForward / experts.n_ff, log, &shared));
  found->shared_ff = shared * experts.n_ff;
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
    // Some files leave out an expert's width and state that of all that are used.
    ORIEL_TRY(read("expert_feed_forward_length",
                   traits.expert_gating || experts.n_ff == 0 ? Need::kRequired : Need::kOptional, 1,
                   kMaxFeedForward, &experts.n_ff));
  }
  uint32_t gating = 1;
  if (traits.expert_gating) {
    ORIEL_TRY(read("expert_gating_func",
                   traits.expert_weight_keys ? Need::kOptional : Need::kRequired, 1, 2, &gating));
  }
  experts.sigmoid = gating == 2;
  experts.normalised = traits.expert_normalised;
  if (traits.expert_weight_keys) {
    ORIEL_TRY(readExpertWeights(file, architecture, log, found));
  }
  if (traits.leading_dense) {
    ORIEL_TRY(
        read("leading_dense_block_count", Need::kOptional, 0, n_layers, &found->dense_layers));
  }
  if (traits.shared_expert) {
    ORIEL_TRY(read("expert_shared_feed_forward_length", Need::kOptional, 0, kMaxFeedForward,
                   &found->shared_ff));
  }
  return kOk;
}

}  // namespace oriel_internal
