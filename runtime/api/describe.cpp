#include "api/describe.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "api/session.h"
#include "options/settings.h"

namespace oriel_internal {
namespace {

void writeDevice(const ModelInfo& info, JsonWriter* out) {
  out->text("device", info.device);
  out->text("driver", info.driver);
  out->text("device_trust", info.device_trust);
  out->whole("pipelines", info.pipelines);
  info.pipelines_from_cache == UINT32_MAX
      ? out->null("pipelines_from_cache")
      : out->whole("pipelines_from_cache", info.pipelines_from_cache);
  out->real("pipelines_ms", info.pipelines_ms);
}

void writeLayerFormats(const oriel_model& model, JsonWriter* out) {
  const CacheFormats& formats = model.plan.formats;
  out->list("layers");
  for (uint32_t layer = 0; model.executor != nullptr && layer < model.desc.n_layers; ++layer) {
    const uint32_t owner = model.desc.layers[layer].memory_of;
    out->object();
    if (isRounded(model.desc, owner)) {
      out->text("k_format", kvFormatText(publicFormat(formats.keys(owner))));
      out->text("v_format", kvFormatText(publicFormat(formats.values(owner))));
    } else {
      out->null("k_format");
      out->null("v_format");
    }
    out->end();
  }
  out->end();
}

void writePrefix(const oriel_model& model, const PrefixSeen& prefix, JsonWriter* out) {
  out->object("prefix");
  out->whole("tokens", prefix.tokens);
  out->whole("capacity", model.plan_result.prefix_tokens);
  out->whole("bytes", model.plan_result.prefix_bytes);
  out->flag("trained", prefix.trained);
  out->end();
}

void writeResident(const oriel_model& model, JsonWriter* out) {
  const bool paused = model.guard.phase() == Guard::Phase::kPaused;
  uint64_t host = model.host_bytes + executorBytes(model.pictures);
  for (uint32_t i = 0; i < kMaxSessions; ++i) {
    host += model.guard.entry(i).handle != nullptr ? sessionBlockBytes(model, i) : 0;
  }
  uint64_t bytes[kArenaKinds] = {};
  oriel_trim_level level;
  {
    const auto lock = model.guard.lock();
    level = model.trimmed.level;
    for (uint32_t kind = 0; model.executor != nullptr && kind < kArenaKinds; ++kind) {
      bytes[kind] = model.executor->allocatedBytes(static_cast<ArenaKind>(kind));
    }
  }
  const auto of = [&](ArenaKind kind) { return bytes[static_cast<uint32_t>(kind)]; };
  out->object("resident");
  out->text("level", trimLevelText(level));
  out->flag("paused", paused);
  out->whole("weights_bytes", of(ArenaKind::kWeights));
  out->whole("kv_bytes", of(ArenaKind::kCache));
  out->whole("activation_bytes", of(ArenaKind::kActivations));
  out->whole("staging_bytes", of(ArenaKind::kIo));
  out->whole("host_bytes", host);
  out->whole("total_bytes", std::accumulate(std::begin(bytes), std::end(bytes), host));
  out->end();
}

template <typename Positions>
void writePositions(const char* name, const Positions* from, JsonWriter* out) {
  out->list(name);
  for (uint32_t i = 0; from != nullptr && i < from->count(); ++i) {
    out->whole(nullptr, from->at(i));
  }
  out->end();
}

void writeOptions(OptionScope scope, const void* options, JsonWriter* out) {
  out->object("options");
  writeSettings(scope, options, out->sink());
  out->end();
}

void writeMarks(const Bookmarks& marks, JsonWriter* out) {
  out->list("marks");
  for (uint32_t i = 0; i < marks.count(); ++i) {
    out->object();
    out->text("name", marks.at(i).name);
    out->whole("position", marks.at(i).position);
    out->end();
  }
  out->end();
}

void writeTranscript(const Transcript& transcript, JsonWriter* out) {
  out->object("transcript");
  out->whole("messages", transcript.messages());
  out->whole("dropped", transcript.dropped());
  out->whole("bytes", transcript.bytes());
  out->whole("capacity", transcript.capacity());
  out->end();
}

void writeStats(const oriel_stats& stats, JsonWriter* out) {
  out->whole("position", stats.position);
  out->whole("evicted", stats.evicted);
  out->whole("first_visible", stats.first_visible);
  out->whole("first_stored", stats.first_stored);
  out->whole("sinks_used", stats.sinks_used);
  out->whole("window_used", stats.window_used);
  out->whole("window_capacity", stats.window_capacity);
  out->whole("device_bytes", stats.device_bytes);
  out->whole("host_bytes", stats.host_bytes);
}

// Ignored schema keywords of the latest reply.
void writeIgnored(const ConstrainedReply* constrained, JsonWriter* out) {
  const char* const list = constrained != nullptr ? constrained->ignored().json() : "[]";
  const JsonSink sink = out->sink();
  out->list("ignored_keywords");
  sink.write(list + 1, std::strlen(list) - 2, sink.user);
  out->end();
}

void writeSession(const oriel_session& handle, JsonWriter* out) {
  const SessionFacts session = handle.session->facts();
  const SessionView view = session.memory.view();
  out->list("group_first_visible");
  for (uint32_t i = 0; i < handle.model->desc.n_views; ++i) {
    out->whole(nullptr, view.group_first_visible[i]);
  }
  out->end();
  writePositions("turns", &session.at.turns, out);
  writePositions("checkpoints", session.memory.states, out);
  writeMarks(session.at.marks, out);
  writeTranscript(session.transcript, out);
  out->whole("submissions", session.call.counts.submissions);
  out->whole("rows_wanted", session.stepper.row_cache.wanted());
  out->whole("rows_read", session.stepper.row_cache.reads());
  out->whole("tokens_read_again", session.call.counts.read_again);
  out->whole("tokens_drafted", session.replier.drafts().drafted);
  out->whole("tokens_accepted", session.replier.drafts().accepted);
  out->whole("tokens_kept", session.retrieved.keptTokens());
  out->whole("tokens_recalled", session.at.recalled);
  out->list("recalled_ids");
  for (uint32_t i = 0; i < session.at.recalled; ++i) {
    out->signedWhole(nullptr, std::max(session.memory.ids.recalled(i), TokenIds::kUnknown));
  }
  out->end();
  writeIgnored(session.replier.constrained(), out);
  out->text("chat_template", session.context.chat.name());
  const SessionSettings none = {};
  writeOptions(OptionScope::kSession, handle.texts != nullptr ? &handle.texts->settings : &none,
               out);
}

// The load options with their effective values.
void writeLoadOptions(const oriel_model& model, JsonWriter* out) {
  LoadOptions shown = model.wish.asked();
  const PlanResult& plan = model.plan_result;
  shown.recall_dir = model.recall.folder;
  shown.draft_model = model.draft_source.path();
  shown.mmproj = model.pictures != nullptr ? model.pictures->path : nullptr;
  const auto differs = [](const auto* values, uint32_t count) {
    return std::any_of(values, values + count, [&](auto value) { return value != values[0]; });
  };
  if (plan.window_shares[0] != 0 || differs(plan.window_shares, plan.layer_count)) {
    shown.window_shares = plan.window_shares;
    shown.window_share_count = plan.layer_count;
  }
  if (differs(plan.session_windows, plan.sessions)) {
    shown.session_windows = plan.session_windows;
    shown.session_window_count = plan.sessions;
  }
  uint8_t f16[kMaxLayers] = {};
  for (uint32_t layer = 0; model.executor != nullptr && layer < model.desc.n_layers; ++layer) {
    const uint32_t owner = model.desc.layers[layer].memory_of;
    f16[layer] = isRounded(model.desc, owner) && model.plan.formats.keys(owner) == KvFormat::kF16 &&
                 model.plan.formats.values(owner) == KvFormat::kF16;
  }
  if (differs(f16, model.desc.n_layers)) {
    shown.f16_layers = f16;
    shown.f16_layer_count = model.desc.n_layers;
  }
  writeOptions(OptionScope::kLoad, &shown, out);
}

void writeAdapters(const AdapterFiles::Kept& kept, JsonWriter* out) {
  out->list("adapters");
  for (uint32_t i = 0; kept.adapters != nullptr && i < kept.adapters->count; ++i) {
    const Adapter& adapter = kept.adapters->list[i];
    out->object();
    out->text("name", adapter.name);
    out->text("path", kept.sources[i].path());
    out->real("scale", static_cast<double>(adapter.scale));
    out->flag("control_vector", adapter.is_control);
    out->flag("activated", adapter.n_invocation != 0);
    out->end();
  }
  out->end();
}

void writeExperts(const WeightsOnFile* on_file, JsonWriter* out) {
  out->whole("expert_hits", on_file != nullptr ? on_file->experts.hits() : 0);
  out->whole("expert_misses", on_file != nullptr ? on_file->experts.misses() : 0);
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_model_get_plan(const oriel_model* model, oriel_plan* plan) {
  if (model == nullptr || !validResult(plan)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  if (model->executor == nullptr) {
    return withoutWeights(*model);
  }
  writeResult(publicPlan(model->plan_result), plan);
  return ORIEL_OK;
}

oriel_status oriel_model_describe(const oriel_model* model, char* json, size_t capacity,
                                  size_t* needed) {
  if (model == nullptr || !validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  JsonWriter out(json, capacity);
  out.object();
  ModelInfo info;
  PrefixSeen prefix;
  {
    const auto lock = model->guard.lock();
    info = model->info;
    prefix = model->prefix_seen;
  }
  writeFileInfo(info, &out);
  out.text("tensor_types", info.tensor_types);
  writeDevice(info, &out);
  writeLayerFormats(*model, &out);
  writePrefix(*model, prefix, &out);
  writeResident(*model, &out);
  if (model->executor != nullptr) {
    writePlanObject("plan", model->plan_result, &out);
  } else {
    out.null("plan");
  }
  writeAdapters(model->adapters, &out);
  writeLoadOptions(*model, &out);
  out.end();
  return out.finish(needed);
}

oriel_status oriel_session_get_stats(const oriel_session* handle, oriel_stats* out) {
  if (handle == nullptr || !validResult(out)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  oriel_stats stats = {};
  if (!readStats(handle, &stats)) {
    return ORIEL_ERROR_STATE;
  }
  writeResult(stats, out);
  return ORIEL_OK;
}

oriel_status oriel_session_describe(const oriel_session* handle, char* json, size_t capacity,
                                    size_t* needed) {
  if (handle == nullptr || !validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  oriel_stats stats = {};
  if (!readStats(handle, &stats)) {
    return ORIEL_ERROR_STATE;
  }
  JsonWriter out(json, capacity);
  out.object();
  writeStats(stats, &out);
  {
    const Look look(handle);
    if (!look.entered()) {
      return ORIEL_ERROR_STATE;
    }
    writeSession(*handle, &out);
  }
  writeExperts(handle->model->on_file, &out);
  out.end();
  return out.finish(needed);
}

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
