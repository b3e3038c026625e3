#include "exec/session.h"

#include <cstring>
#include <new>

#include "api/constraint.h"
#include "api/generate_options.h"
#include "api/session_call.h"
#include "base/limits.h"
#include "base/wipe.h"

using namespace oriel_internal;

namespace {

// Runs generate(settings, &result) between reading the options and writing the result.
template <typename Generate>
oriel_status generateWith(oriel_session* handle, const ReplyChoices* options,
                          oriel_generation* out, const Generate& generate) {
  if (handle == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    ORIEL_TRY(out != nullptr ? checkResult(out, "oriel_generation", handle->log) : kOk);
    GenerateSettings settings;
    ORIEL_TRY(readGenerateOptions(*handle->model, options, handle->log, &settings));
    const Status read = readConstraint(*handle->model, options, handle->session, &settings);
    if (!read.ok() && read.code() != ORIEL_ERROR_CANCELLED) {
      return read;
    }
    oriel_generation result = {};
    const Status status = read.ok() ? generate(settings, &result) : read;
    if (status.code() == ORIEL_ERROR_CANCELLED) {
      result.stop_reason = ORIEL_STOP_CANCELLED;  // also when it was the prompt that was stopped
    }
    if (out != nullptr) {
      writeResult(result, out);
    }
    return status;
  });
}

// Of TurnMarks, or of StateSlots; null: none.
template <typename Positions>
oriel_status listPositions(const Positions* from, uint64_t* out, size_t capacity, size_t* needed) {
  *needed = from != nullptr ? from->count() : 0;
  if (*needed > capacity) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  for (uint32_t i = 0; i < *needed; ++i) {
    out[i] = from->at(i);
  }
  return ORIEL_OK;
}

// What the session itself says; what the device says waits for others. False: refused.
bool describeSession(const oriel_session* handle, oriel_stats* stats) {
  const Look look(handle);
  if (look.refused()) {
    return false;
  }
  const Session& session = *handle->session;
  stats->position = session.position();
  stats->window_used = session.windowUsed();
  stats->window_capacity = handle->model->plan.cache.sinks + session.cache().window;
  stats->tokens_recalled = session.recalledTokens();
  stats->tokens_kept = session.keptTokens();
  stats->evicted =
      stats->position -
      std::min(stats->window_used - std::min(stats->tokens_recalled, stats->window_used),
               static_cast<uint32_t>(std::min<uint64_t>(stats->position, UINT32_MAX)));
  stats->submissions = session.submissions();
  stats->rows_wanted = session.rows().wanted();
  stats->rows_read = session.rows().reads();
  stats->tokens_read_again = session.readAgain();
  stats->tokens_drafted = session.drafts().drafted;
  stats->tokens_accepted = session.drafts().accepted;
  return true;
}

}  // namespace

oriel_status oriel_session_reset(oriel_session* handle) {
  return handle == nullptr ? ORIEL_ERROR_ARGUMENT : callAlone(handle, [&] {
    handle->last_error.clear();  // it may quote what was said
    return handle->session->reset();
  });
}

oriel_status oriel_session_rewind(oriel_session* handle, uint64_t position) {
  return handle == nullptr ? ORIEL_ERROR_ARGUMENT
                           : callAlone(handle, [&] { return handle->session->rewind(position); });
}

void oriel_session_cancel(oriel_session* handle) {
  if (handle != nullptr) {
    handle->session->cancel();
  }
}

oriel_status oriel_session_append(oriel_session* handle, const int32_t* ids, size_t count) {
  if (handle == nullptr || (ids == nullptr && count != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->append(ids, count); });
}

oriel_status oriel_session_append_text(oriel_session* handle, const char* text, size_t bytes,
                                       uint32_t flags) {
  if (handle == nullptr || (text == nullptr && bytes != 0) || !validTextFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  EncodeOptions options;
  options.special = (flags & ORIEL_TEXT_SPECIAL) != 0;
  options.bos = (flags & ORIEL_TEXT_BOS) != 0;
  return callAlone(handle, [&] { return handle->session->appendText(text, bytes, options); });
}

oriel_status oriel_session_logits(oriel_session* handle, const float** logits, size_t* count) {
  if (handle == nullptr || logits == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    ORIEL_TRY(handle->session->logits(logits));
    if (count != nullptr) {
      *count = handle->model->desc.n_vocab;
    }
    return kOk;
  });
}

oriel_status oriel_session_evaluate(oriel_session* handle, const int32_t* ids, size_t count,
                                    oriel_logits_fn on_logits, void* user) {
  if (handle == nullptr || (ids == nullptr && count != 0) || on_logits == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->evaluate(ids, count, on_logits, user); });
}

oriel_status oriel_session_generate(oriel_session* handle, const oriel_reply_options* options,
                                    oriel_token_fn on_token, void* user, oriel_generation* out) {
  return generateWith(handle, options, out,
                      [&](const GenerateSettings& settings, oriel_generation* result) {
                        return handle->session->generate(settings, on_token, user, result);
                      });
}

oriel_status oriel_chat_add(oriel_session* handle, const char* role, const char* text,
                            size_t bytes) {
  if (handle == nullptr || role == nullptr || (text == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    ORIEL_TRY(handle->session->chatAdd(role, text, bytes));
    warnOfRole(handle->session->context().chat, role, std::strlen(role), 0, handle->log);
    return kOk;
  });
}

oriel_status oriel_chat_reply(oriel_session* handle, const oriel_reply_options* options,
                              oriel_token_fn on_token, void* user, oriel_generation* out) {
  return generateWith(handle, options, out,
                      [&](const GenerateSettings& settings, oriel_generation* result) {
                        return handle->session->chatReply(settings, on_token, user, result);
                      });
}

oriel_status oriel_session_get_stats(const oriel_session* handle, oriel_stats* out) {
  if (handle == nullptr || !validResult(out)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const oriel_model& model = *handle->model;
  const Session& session = *handle->session;
  oriel_stats stats = {};
  stats.struct_size = sizeof(stats);
  if (!describeSession(handle, &stats)) {
    return ORIEL_ERROR_STATE;
  }
  {
    const std::lock_guard<std::mutex> lock(model.device_mutex);
    for (uint32_t kind = 0; kind < kArenaKinds; ++kind) {
      stats.device_bytes += model.executor->allocatedBytes(static_cast<ArenaKind>(kind));
    }
  }
  stats.host_bytes = model.host_bytes + handle->host_bytes;
  const DeviceTurn turn(model.on_file != nullptr ? &model.share : nullptr, session.context().index,
                        DeviceShare::Claim::kBrief);
  if (model.on_file != nullptr && turn.status().ok()) {
    stats.expert_hits = model.on_file->experts.hits();
    stats.expert_misses = model.on_file->experts.misses();
  }
  writeResult(stats, out);
  return ORIEL_OK;
}

oriel_status oriel_session_get_view(const oriel_session* handle, SessionView* out) {
  if (handle == nullptr || !validResult(out)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const Look look(handle);
  if (look.refused()) {
    return ORIEL_ERROR_STATE;
  }
  writeResult(handle->session->view(), out);
  return ORIEL_OK;
}

oriel_status oriel_session_get_turns(const oriel_session* handle, uint64_t* starts, size_t capacity,
                                     size_t* needed) {
  if (handle == nullptr || needed == nullptr || (starts == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Look look(handle);
  if (look.refused()) {
    return ORIEL_ERROR_STATE;
  }
  return listPositions(&handle->session->turns(), starts, capacity, needed);
}

oriel_status oriel_session_get_checkpoints(const oriel_session* handle, uint64_t* positions,
                                           size_t capacity, size_t* needed) {
  if (handle == nullptr || needed == nullptr || (positions == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Look look(handle);
  if (look.refused()) {
    return ORIEL_ERROR_STATE;
  }
  return listPositions(handle->session->states(), positions, capacity, needed);
}

oriel_status oriel_session_get_tokens(const oriel_session* handle, uint64_t first, int32_t* ids,
                                      size_t capacity, size_t* needed) {
  if (handle == nullptr || needed == nullptr || (ids == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  uint64_t count = 0;
  bool held;
  SessionView view;
  {
    const Look look(handle);
    if (look.refused()) {
      return ORIEL_ERROR_STATE;
    }
    held = handle->session->heldTokens(first, ids, capacity, &count);
    view = handle->session->view();
  }
  *needed = static_cast<size_t>(count);
  if (!held) {
    return handle->log
        .fail(ORIEL_ERROR_CONTEXT,
              "token %llu is not held: ask for one of the first %u or from %llu to %llu",
              static_cast<unsigned long long>(first), view.sinks_used,
              static_cast<unsigned long long>(view.first_stored),
              static_cast<unsigned long long>(view.position))
        .code();
  }
  return count > capacity ? ORIEL_ERROR_BUFFER_TOO_SMALL : ORIEL_OK;
}
