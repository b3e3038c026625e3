#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "api/describe.h"
#include "api/session_call.h"
#include "api/session_create.h"
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
    out->signedWhole(nullptr, session.memory.ids.recalled(i));
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
