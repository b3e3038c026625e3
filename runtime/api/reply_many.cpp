#include <cstddef>
#include <new>

#include "api/one_reply.h"
#include "base/wipe.h"
#include "oriel/advanced.h"

using namespace oriel_internal;

namespace {

oriel_reply& entryOf(oriel_reply* replies, size_t i) {
  return *reinterpret_cast<oriel_reply*>(reinterpret_cast<uint8_t*>(replies) +
                                         i * replies->struct_size);
}

// Whether these can be answered by one call.
bool validReplies(oriel_reply* replies, size_t count) {
  if (replies->struct_size < offsetof(oriel_reply, status) + sizeof(oriel_status) ||
      !validResult(replies)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const oriel_reply& entry = entryOf(replies, i);
    const oriel_session* const session = entry.session;
    oriel_reply known;
    if (session == nullptr || session->model != replies->session->model ||
        (entry.result != nullptr && !validResult(entry.result)) ||
        entry.struct_size != replies->struct_size || !readOptions(&entry, &known)) {
      return false;
    }
    for (size_t j = 0; j < i; ++j) {
      if (entryOf(replies, j).session == session) {
        return false;
      }
    }
  }
  return true;
}

oriel_status setAll(oriel_reply* replies, size_t count, oriel_status code) {
  for (size_t i = 0; i < count; ++i) {
    entryOf(replies, i).status = code;
  }
  return code;
}

oriel_status endAll(oriel_reply* replies, size_t count, Status status) {
  // The line that says why is the first one's.
  const oriel_session& first = *replies->session;
  const bool has_line = first.last_error.count() != first.errors_before;
  for (size_t i = 0; i < count; ++i) {
    oriel_session* const session = entryOf(replies, i).session;
    if (i != 0 && has_line) {
      session->last_error.set(first.last_error);
    }
    (void)endCall(session, status);
  }
  return setAll(replies, count, status.code());
}

// The line that says why is given once: by the session that is busy, or else it is every session's.
oriel_status refuseAll(oriel_reply* replies, size_t count, Guard::Answer why) {
  const Guard& guard = replies->session->model->guard;
  const oriel_session* refused = replies->session;
  for (size_t i = 0; i < count; ++i) {
    const oriel_session* const session = entryOf(replies, i).session;
    refused = guard.entry(session->index).call != nullptr ? session : refused;
  }
  const uint32_t lines = refused->last_error.count();
  const oriel_status code = why == Guard::Answer::kStopped
                                ? refuse(*refused->model, refused->log, why).code()
                                : refuseCall(refused, why);
  for (size_t i = 0; i < count && refused->last_error.count() != lines; ++i) {
    oriel_session* const session = entryOf(replies, i).session;
    if (why == Guard::Answer::kStopped && session != refused) {
      session->last_error.set(refused->last_error);
    }
  }
  return setAll(replies, count, code);
}

oriel_status replyToAll(oriel_reply* replies, size_t count, OneReply* many) {
  ReplyCall* calls[kMaxSessions] = {};
  uint32_t n_calls = 0;
  for (size_t i = 0; i < count; ++i) {
    const oriel_reply& entry = entryOf(replies, i);
    new (many + i)
        OneReply(entry.session, entry.options, entry.generate == 0, entry.on_token, entry.user);
  }
  for (size_t i = 0; i < count; ++i) {
    ReplyCall* const call = many[i].begin();
    if (call != nullptr) {
      calls[n_calls++] = call;
    }
  }
  Replier::run(calls, n_calls);
  oriel_status first = ORIEL_OK;
  for (size_t i = 0; i < count; ++i) {
    oriel_reply& entry = entryOf(replies, i);
    entry.status = endCall(entry.session, many[i].end(entry.result));
    many[i].~OneReply();
    first = first != ORIEL_OK ? first : entry.status;
  }
  return first;
}

}  // namespace

oriel_status oriel_reply_many(oriel_reply* replies, size_t count) {
  if (count == 0) {
    return ORIEL_OK;
  }
  if (replies == nullptr || replies->session == nullptr || count > kMaxSessions) {
    return ORIEL_ERROR_ARGUMENT;
  }
  oriel_model& model = *replies->session->model;
  if (!validResult(replies)) {
    const Reading reading(model);
    return model.guard.entry(replies->session->index).call != nullptr
               ? refuseCall(replies->session, Guard::Answer::kBusy)
               : refuseStruct("oriel_reply", replies->struct_size, shapeOf<oriel_reply>(),
                              replies->session->log)
                     .code();
  }
  if (!validReplies(replies, count)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  uint64_t sessions = 0;
  for (size_t i = 0; i < count; ++i) {
    sessions |= Guard::bit(entryOf(replies, i).session->index);
  }
  // One call on one thread, which rests once for all.
  const Guard::Call call(&model.guard, Guard::Work::kDevice, sessions);
  if (!call.entered()) {
    return refuseAll(replies, count, call.answer());
  }
  for (size_t i = 0; i < count; ++i) {
    beginCall(entryOf(replies, i).session);
    meetCache(entryOf(replies, i).session);
  }
  if (const Status status = checkDecodes(model, replies->session->log); !status.ok()) {
    return endAll(replies, count, status);
  }
  const uint64_t bytes = count * sizeof(OneReply);
  static_assert(alignof(OneReply) <= 64, "blocks are aligned so");
  void* const block = allocateZeroed(model.allocator, bytes);
  if (block == nullptr) {
    return endAll(
        replies, count,
        replies->session->log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                   "no memory for %zu replies at once: free some", count));
  }
  const oriel_status code = replyToAll(replies, count, static_cast<OneReply*>(block));
  wipe(block, bytes);
  release(model.allocator, block, bytes);
  return code;
}
