#include "api/several.h"

#include "oriel/sessions.h"

namespace oriel {

Status readSessions(const oriel_options& options, uint32_t prefix_tokens, const Log& log,
                    PreparedModel* prepared, BudgetRequest* request) {
  SessionWindows& sessions = prepared->sessions;
  sessions.count = std::max(options.sessions, 1u);
  if (sessions.count > kMaxSessions || options.session_window_count > sessions.count) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "%u sessions and windows for %u of them are out of range: ask for at most %u, "
                    "and for no more windows",
                    sessions.count, options.session_window_count, kMaxSessions);
  }
  if (options.session_window_count != 0 && options.session_windows == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the windows of sessions are missing: give them");
  }
  for (uint32_t i = 0; i < options.session_window_count; ++i) {
    sessions.windows[i] = options.session_windows[i];
    if (sessions.windows[i] > kMaxWindow) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "a window of %u tokens is out of range: ask for at most %u",
                      sessions.windows[i], kMaxWindow);
    }
  }
  sessions.share_sinks = prefix_tokens != 0;
  prepared->prefix_tokens = prefix_tokens;
  request->pinned = std::max(request->pinned, prefix_tokens);
  request->sessions =
      sessions.count > 1 || sessions.share_sinks || options.session_window_count != 0 ? &sessions
                                                                                      : nullptr;
  return kOk;
}

namespace {

constexpr char kSystem[] = "system";

// In the model's own chat format, as a session would write it.
Status countSystemPrompt(const char* path, const oriel_options& options, const Log& log,
                         uint32_t* tokens) {
  oriel_options glance = {};
  glance.struct_size = sizeof(glance);
  glance.device = ORIEL_DEVICE_NONE;
  glance.allocator = options.allocator;
  glance.log = options.log;
  glance.log_user = options.log_user;
  oriel_model* model = nullptr;
  ORIEL_TRY(oriel_model_load(path, &glance, &model));
  const oriel_message message = {kSystem, options.system_prompt, options.system_prompt_bytes};
  size_t count = 0;
  const oriel_status status =
      oriel_render_tokens(model, nullptr, &message, 1, 0, ORIEL_TEXT_BOS, nullptr, 0, &count);
  oriel_model_free(model);
  if (status != ORIEL_OK && status != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return status;
  }
  if (count == 0 || count > kMaxWindow) {
    return log.fail(ORIEL_ERROR_CONTEXT, "the system prompt has %zu tokens: shorten it", count);
  }
  *tokens = static_cast<uint32_t>(count);
  return kOk;
}

}  // namespace

Status countPrefix(const char* path, const oriel_options& options, const Log& log,
                   uint32_t* tokens) {
  *tokens = options.prefix_tokens;
  if (options.prefix_tokens > kMaxWindow) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a prefix of %u tokens is out of range: at most %u",
                    options.prefix_tokens, kMaxWindow);
  }
  const bool has_text = options.system_prompt != nullptr && options.system_prompt_bytes != 0;
  if ((has_text ? 1 : 0) + (options.prefix_file != nullptr ? 1 : 0) +
          (options.prefix_tokens != 0 ? 1 : 0) >
      1) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a prefix is a system prompt, a file or a number of tokens: give one of them");
  }
  if (has_text) {
    return countSystemPrompt(path, options, log, tokens);
  }
  return kOk;
}

Status makePrefixOf(const oriel_options& options, oriel_model* model) {
  if (options.system_prompt == nullptr || options.system_prompt_bytes == 0) {
    return kOk;
  }
  oriel_session* session = nullptr;
  ORIEL_TRY(oriel_session_create(model, nullptr, &session));
  oriel_status status =
      oriel_chat_add(session, kSystem, options.system_prompt, options.system_prompt_bytes);
  if (status == ORIEL_OK) {
    status = oriel_prefix_set(session);
  }
  oriel_session_destroy(session);
  return status;
}

}  // namespace oriel
