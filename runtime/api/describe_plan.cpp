#include "api/describe.h"

namespace oriel_internal {

const char* kvFormatText(oriel_kv_format format) {
  switch (format) {
    case ORIEL_KV_F16:
      return "f16";
    case ORIEL_KV_INT8:
      return "int8";
    case ORIEL_KV_INT4:
      return "int4";
    case ORIEL_KV_AUTO:
      break;
  }
  return "auto";
}

const char* trimLevelText(oriel_trim_level level) {
  static const char* const kLevels[kTrimLevels] = {"none", "scratch", "weights", "cache", "all"};
  return kLevels[level];
}

void writeGroups(const LayerGroup* groups, uint32_t count, bool with_bytes, JsonWriter* out) {
  static const char* const kKinds[] = {"session", "sliding", "convolution", "state"};
  out->list("groups");
  for (uint32_t i = 0; i < count; ++i) {
    const LayerGroup& group = groups[i];
    out->object();
    out->text("kind", kKinds[static_cast<uint32_t>(group.kind)]);
    out->whole("layers", group.layers);
    out->whole("window_tokens", group.window_tokens);
    if (with_bytes) {
      out->whole("ring_tokens", group.ring_tokens);
      out->whole("bytes_per_token", group.bytes_per_token);
      out->whole("bytes", group.bytes);
    }
    out->end();
  }
  out->end();
}

namespace {

// Writes null if unknown.
void writeKnown(const char* name, bool known, uint64_t value, JsonWriter* out) {
  known ? out->whole(name, value) : out->null(name);
}

void writeLayers(const char* name, const uint64_t (&bits)[8], JsonWriter* out) {
  out->list(name);
  for (uint32_t layer = 0; layer < kMaxLayers; ++layer) {
    if ((bits[layer / 64] >> (layer % 64) & 1) != 0) {
      out->whole(nullptr, layer);
    }
  }
  out->end();
}

void writeStep(const char* name, const StepSeconds& step, JsonWriter* out) {
  if (step.tokens == 0) {
    return out->null(name);
  }
  out->object(name);
  out->whole("tokens", step.tokens);
  out->real("overhead_s", step.overhead_s);
  out->real("weights_s", step.weights_s);
  out->real("weights_once_s", step.weights_once_s);
  out->real("head_s", step.head_s);
  out->list("groups");
  for (uint32_t i = 0; i < step.group_count; ++i) {
    out->object();
    out->whole("window_tokens", step.groups[i].window_tokens);
    out->real("s_per_token", step.groups[i].s_per_token);
    out->end();
  }
  out->end();
  out->end();
}

void writeChoices(const PlanResult& plan, JsonWriter* out) {
  out->list("choices");
  for (uint32_t i = 0; i < plan.choice_count; ++i) {
    const PlanChoice& choice = plan.choices[i];
    const bool known = plan.weights_unknown == 0;
    out->object();
    out->text("k_format", kvFormatText(choice.k_format));
    out->text("v_format", kvFormatText(choice.v_format));
    out->flag("chosen", (plan.fits != 0 || !known) && choice.k_format == plan.k_format &&
                            choice.v_format == plan.v_format);
    known ? out->flag("fits", choice.fits != 0) : out->null("fits");
    out->whole("window_tokens", choice.window_tokens);
    out->whole("shortest_window_tokens", choice.shortest_window_tokens);
    out->whole("chunk_tokens", choice.chunk_tokens);
    out->whole("total_bytes", choice.total_bytes);
    writeKnown("minimum_bytes", known, choice.minimum_bytes, out);
    out->real("loss_nats", choice.loss_nats);
    choice.decode_tokens_per_s > 0 ? out->real("decode_tokens_per_s", choice.decode_tokens_per_s)
                                   : out->null("decode_tokens_per_s");
    choice.refused != nullptr ? out->text("refused", choice.refused) : out->null("refused");
    out->end();
  }
  out->end();
}

void writeSessions(const PlanResult& plan, JsonWriter* out) {
  out->whole("sessions", plan.sessions);
  out->list("session_windows");
  for (uint32_t i = 0; i < plan.sessions; ++i) {
    out->whole(nullptr, plan.session_windows[i]);
  }
  out->end();
  out->whole("session_bytes", plan.session_bytes);
  out->whole("prefix_tokens", plan.prefix_tokens);
  out->whole("prefix_bytes", plan.prefix_bytes);
  out->whole("transcript_bytes", plan.transcript_bytes);
}

void writeTrimLevels(const PlanResult& plan, JsonWriter* out) {
  out->list("trim_levels");
  for (uint32_t level = 0; level < kTrimLevels; ++level) {
    out->object();
    out->text("level", trimLevelText(static_cast<oriel_trim_level>(level)));
    out->whole("bytes", plan.trim_bytes[level]);
    out->end();
  }
  out->end();
}

const char* stateFormatText(StateChoice format) {
  return format == StateChoice::kF32 ? "f32" : format == StateChoice::kF16 ? "f16" : "int8";
}

}  // namespace

void writePlanObject(const char* name, const PlanResult& plan, JsonWriter* out) {
  out->object(name);
  const bool known = plan.weights_unknown == 0;
  known ? out->flag("fits", plan.fits != 0) : out->null("fits");
  out->whole("memory_bytes", plan.memory_bytes);
  out->whole("total_bytes", plan.total_bytes);
  writeKnown("minimum_bytes", known, plan.minimum_bytes, out);
  writeKnown("weights_bytes", known, plan.weights_bytes, out);
  out->whole("mapped_bytes", plan.mapped_bytes);
  out->whole("kv_bytes", plan.kv_bytes);
  out->whole("activation_bytes", plan.activation_bytes);
  out->whole("staging_bytes", plan.staging_bytes);
  out->whole("host_bytes", plan.host_bytes);
  out->whole("constraint_bytes", plan.constraint_bytes);
  out->whole("kv_bytes_per_token", plan.kv_bytes_per_token);
  out->whole("kv_bytes_at", plan.kv_window_bytes);
  out->whole("window_tokens", plan.window_tokens);
  out->whole("sink_tokens", plan.sink_tokens);
  out->whole("ring_tokens", plan.ring_tokens);
  out->whole("chunk_tokens", plan.chunk_tokens);
  out->whole("context_train_tokens", plan.context_train_tokens);
  out->text("k_format", kvFormatText(plan.k_format));
  out->text("v_format", kvFormatText(plan.v_format));
  plan.state_format != StateChoice::kAuto
      ? out->text("state_format", stateFormatText(plan.state_format))
      : out->null("state_format");
  writeKnown("weights_read_bytes_per_token", known, plan.weights_read_bytes_per_token, out);
  writeKnown("head_read_bytes", known, plan.head_read_bytes, out);
  writeKnown("crossover_tokens", known, plan.crossover_tokens, out);
  out->real("loss_nats", plan.loss_nats);
  out->flag("calibrated", plan.calibrated != 0);
  writeLayers("raised_by_bias", plan.raised_by_bias, out);
  writeLayers("raised_by_norm", plan.raised_by_norm, out);
  out->list("window_shares");
  for (uint32_t layer = 0; layer < plan.layer_count; ++layer) {
    out->whole(nullptr, plan.window_shares[layer]);
  }
  out->end();
  writeGroups(plan.groups, plan.group_count, true, out);
  writeSessions(plan, out);
  out->whole("state_bytes", plan.state_bytes);
  out->whole("state_slots", plan.state_slots);
  out->whole("checkpoints", plan.checkpoints);
  writeKnown("on_file_bytes", known, plan.on_file_bytes, out);
  out->whole("expert_slots", plan.expert_slots);
  out->whole("expert_count", plan.expert_count);
  out->real("expert_hit_rate", plan.expert_hit_rate);
  out->real("file_s", plan.file_s);
  out->whole("draft_tokens", plan.draft_tokens);
  out->whole("draft_bytes", plan.draft_bytes);
  out->whole("draft_weights_bytes", plan.draft_weights_bytes);
  out->whole("adapter_bytes", plan.adapter_bytes);
  out->whole("image_tokens", plan.image_tokens);
  out->whole("image_bytes", plan.image_bytes);
  out->whole("recall_tokens", plan.recall_tokens);
  out->whole("recall_memory_bytes", plan.recall_memory_bytes);
  out->whole("recall_file_bytes", plan.recall_file_bytes);
  out->whole("recall_file_tokens", plan.recall_file_tokens);
  out->whole("activation_bits", plan.activation_bits);
  writeTrimLevels(plan, out);
  writeChoices(plan, out);
  writeStep("decode", plan.decode, out);
  writeStep("prefill", plan.prefill, out);
  out->end();
}

oriel_plan publicPlan(const PlanResult& plan) {
  oriel_plan out = {};
  out.fits = plan.fits;
  out.weights_unknown = plan.weights_unknown;
  out.memory_bytes = plan.memory_bytes;
  out.total_bytes = plan.total_bytes;
  out.weights_bytes = plan.weights_bytes;
  out.mapped_bytes = plan.mapped_bytes;
  out.kv_bytes = plan.kv_bytes;
  out.activation_bytes = plan.activation_bytes;
  out.staging_bytes = plan.staging_bytes;
  out.host_bytes = plan.host_bytes;
  out.minimum_bytes = plan.minimum_bytes;
  out.kv_bytes_per_token = plan.kv_bytes_per_token;
  out.window_tokens = plan.window_tokens;
  out.sink_tokens = plan.sink_tokens;
  out.prefill_batch_tokens = plan.chunk_tokens;
  out.sessions = plan.sessions;
  out.context_train_tokens = plan.context_train_tokens;
  out.k_format = plan.k_format;
  out.v_format = plan.v_format;
  out.loss_nats = plan.loss_nats;
  return out;
}

}  // namespace oriel_internal
