#include "model/state_layers.h"

#include <cinttypes>

#include "model/keys.h"

namespace oriel_internal {
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
