// C calls in the form that JavaScript can make: structs are filled here, positions are doubles, and callbacks end in
// functions of the host (host_library.js). A result struct is reported to the host field by field.
#include "shim.h"

namespace {

void onLog(oriel_log_level level, const char* message, void*) { oriel_host_log(level, message); }
int onProgress(uint64_t done, uint64_t total, void*) {
  return oriel_host_progress(static_cast<double>(done), static_cast<double>(total));
}
int onToken(const oriel_token_event* event, void*) {
  return oriel_host_token(event->id, event->text, event->text_bytes, event->logprob,
                          event->top_count, event->top);
}
int onPart(const oriel_part* part, void*) {
  return oriel_host_part(part->kind, part->call, part->text, part->text_bytes, part->path);
}
int onLogits(size_t index, const float* logits, size_t n_vocab, void*) {
  return oriel_host_logits(static_cast<double>(index), logits, n_vocab);
}

// engine.js fills arrays of these.
static_assert(sizeof(oriel_picture) == (sizeof(void*) == 4 ? 20 : 32));
static_assert(offsetof(oriel_picture, order) == 8 + 2 * sizeof(void*));

oriel_options loadOptions(const oriel_setting* settings, size_t count) {
  oriel_options options = ORIEL_OPTIONS_INIT;
#ifdef __EMSCRIPTEN__
  options.device = "cpu";
#endif
  options.log = onLog;
  options.progress = onProgress;
  options.settings = settings;
  options.setting_count = count;
  return options;
}

oriel_session_options sessionOptions(const oriel_setting* settings, size_t count) {
  oriel_session_options options = ORIEL_SESSION_OPTIONS_INIT;
  options.progress = onProgress;
  options.settings = settings;
  options.setting_count = count;
  return options;
}

#define TELL(result, field) oriel_host_number(#field, static_cast<double>((result).field))

}  // namespace

extern "C" {
oriel_status web_plan_describe(const char* path, const oriel_setting* settings, size_t count,
                               char* json, size_t capacity, size_t* needed) {
  const oriel_options options = loadOptions(settings, count);
  return oriel_plan_describe(path, &options, json, capacity, needed);
}

oriel_status web_file_describe(const char* path, char* json, size_t capacity, size_t* needed) {
  const oriel_options options = loadOptions(nullptr, 0);
  return oriel_file_describe(path, &options, json, capacity, needed);
}

oriel_status web_snapshot_describe(const void* data, size_t bytes, char* json, size_t capacity,
                                   size_t* needed) {
  const oriel_options options = loadOptions(nullptr, 0);
  return oriel_snapshot_describe(nullptr, data, bytes, &options, json, capacity, needed);
}

oriel_status web_model_load(const char* path, const oriel_setting* settings, size_t count,
                            oriel_model** model) {
  const oriel_options options = loadOptions(settings, count);
  return oriel_model_load(path, &options, model);
}

oriel_status web_session_create(oriel_model* model, const oriel_setting* settings, size_t count,
                                oriel_session** session) {
  const oriel_session_options options = sessionOptions(settings, count);
  return oriel_session_create(model, &options, session);
}

oriel_status web_render(const oriel_model* model, const oriel_setting* settings, size_t count,
                        const char* json, size_t bytes, uint32_t flags, char* text, size_t capacity,
                        size_t* needed) {
  const oriel_session_options options = sessionOptions(settings, count);
  return oriel_render(model, &options, json, bytes, flags, text, capacity, needed);
}

/// chat 1: a reply in the chat format. 0: goes on from the tokens.
oriel_status web_reply(oriel_session* session, int chat, const oriel_setting* settings,
                       size_t count) {
  oriel_reply_options options = ORIEL_REPLY_OPTIONS_INIT;
  options.on_part = onPart;
  options.settings = settings;
  options.setting_count = count;
  oriel_generation result = ORIEL_INIT(oriel_generation);
  const oriel_status status = (chat != 0 ? oriel_chat_reply : oriel_session_generate)(
      session, &options, onToken, nullptr, &result);
  TELL(result, stop_reason);
  TELL(result, tokens);
  TELL(result, prompt_tokens);
  TELL(result, prompt_tokens_evicted);
  TELL(result, tokens_drafted);
  TELL(result, tokens_accepted);
  TELL(result, time_to_first_token_ms);
  TELL(result, decode_tokens_per_s);
  return status;
}

oriel_status web_append(oriel_session* session, const int32_t* ids, size_t count, int with_logits) {
  return oriel_session_append(session, ids, count, with_logits != 0 ? onLogits : nullptr, nullptr);
}

oriel_status web_get_stats(const oriel_session* session) {
  oriel_stats stats = ORIEL_STATS_INIT;
  const oriel_status status = oriel_session_get_stats(session, &stats);
  TELL(stats, position);
  TELL(stats, evicted);
  TELL(stats, first_visible);
  TELL(stats, first_stored);
  TELL(stats, sinks_used);
  TELL(stats, window_used);
  TELL(stats, window_capacity);
  TELL(stats, turn_count);
  TELL(stats, device_bytes);
  TELL(stats, host_bytes);
  return status;
}

oriel_status web_snapshot_restore(oriel_session* session, const void* data, size_t bytes,
                                  uint32_t flags) {
  oriel_restored restored = ORIEL_INIT(oriel_restored);
  const oriel_status status = oriel_snapshot_restore(session, data, bytes, flags, &restored);
  TELL(restored, how);
  TELL(restored, rounded);
  TELL(restored, tokens_held);
  TELL(restored, tokens_dropped);
  TELL(restored, tokens_read);
  return status;
}

/// A double holds every position up to 2^53.
oriel_status web_get_tokens(const oriel_session* session, double first, int32_t* ids,
                            size_t capacity, size_t* needed) {
  return oriel_session_get_tokens(session, static_cast<uint64_t>(first), ids, capacity, needed);
}

oriel_status web_go_back(oriel_session* session, oriel_back target, double number, const char* mark,
                         uint32_t flags) {
  return oriel_session_go_back(session, target, static_cast<uint64_t>(number), mark, flags);
}

oriel_status web_resume(oriel_model* model) { return oriel_resume(model, onProgress, nullptr); }

oriel_status web_recover(oriel_session* session, const char* device) {
  oriel_recovered recovered = ORIEL_INIT(oriel_recovered);
  const oriel_status status =
      oriel_session_recover(session, device, 0, onProgress, nullptr, &recovered);
  TELL(recovered, tokens_dropped);
  TELL(recovered, exact);
  return status;
}
}
