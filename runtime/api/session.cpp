#include "api/session.h"

#include <algorithm>
#include <new>

#include "api/generate_options.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/test_gap.h"
#include "exec/session.h"
#include "oriel/advanced.h"

namespace oriel_internal {
namespace {

const char* lineOf(Guard::Answer why) {
  switch (why) {
    case Guard::Answer::kInside:
      return "a callback may not make this call on the model that called it: return from the "
             "callback first";
    case Guard::Answer::kStopped:
      return "the model is paused, or its memory was given back: call oriel_resume first";
    case Guard::Answer::kUsed:
      return "the model has a session and is not freed: destroy its sessions first";
    default:
      return "the session is in the middle of another call: wait until that has returned, and "
             "change nothing from inside its callbacks";
  }
}

// Statuses that do not log a line.
bool hasLine(oriel_status code) {
  return code != ORIEL_OK && code != ORIEL_ERROR_CANCELLED && code != ORIEL_ERROR_BUFFER_TOO_SMALL;
}

}  // namespace

Status refuse(const oriel_model& model, const Log& log, Guard::Answer why) {
  testGap();
  const Guard::Call telling(&model.guard, Guard::Work::kRefuses);
  if (telling.entered()) {
    (void)log.fail(ORIEL_ERROR_STATE, "%s", lineOf(why));
  }
  return ORIEL_ERROR_STATE;
}

oriel_status refuseCall(const oriel_session* handle, Guard::Answer why) {
  if (why == Guard::Answer::kStopped && handle->lost) {
    return ORIEL_ERROR_DEVICE;
  }
  // The session's last error belongs to the thread that is using it.
  const bool busy = why == Guard::Answer::kBusy;
  const Log log = {handle->log.callback, handle->log.user, busy ? nullptr : handle->log.last_error};
  const uint32_t lines = handle->last_error.count();
  const Status status = refuse(*handle->model, log, why);
  if (why == Guard::Answer::kOwn) {  // must not replace the line of the running call
    handle->errors_before += handle->last_error.count() - lines;
  }
  return status.code();
}

Look::Look(const oriel_session* handle)
    : Call(&handle->model->guard, Guard::Work::kReads, Guard::bit(handle->index)) {
  if (!entered()) {
    (void)refuseCall(handle, answer());
  }
  testGap();
}

Status checkDecodes(const oriel_model& model, const Log& log) {
  const ModelDesc& desc = model.desc;
  return desc.encoder
             ? log.fail(ORIEL_ERROR_UNSUPPORTED,
                        "the file holds %s (%s), which writes no text: %s, or use a chat model",
                        desc.labels != 0 ? "a model that ranks texts" : "an embedding model",
                        desc.architecture, desc.labels != 0 ? "rank with it" : "embed with it")
             : kOk;
}

void beginCall(oriel_session* handle) {
  testGap();
  handle->errors_before = handle->last_error.count();
  handle->session->call().begin();
}

void meetCache(oriel_session* handle) {
  if (handle->cache_lost.exchange(0) != 0 && !handle->session->isFresh()) {
    (void)handle->session->reset(Session::Begin::kUnread);
  }
}

oriel_status endCall(oriel_session* handle, Status status) {
  const oriel_status code = status.code();
  if (!handle->lost && hasLine(code)) {
    takeDeviceLine(*handle->model, handle->errors_before, &handle->last_error);
  }
  // A session that was already lost reports it, even if the device works again.
  if (!handle->lost && noteLoss(*handle->model, status).lost()) {
    handle->lost = true;
  }
  handle->session->call().end();
  const bool unread = handle->session->facts().transcript.hasUnread();
  testGap();
  handle->unread = unread;
  testGap();
  return code;
}

Status noteLoss(const oriel_model& model, Status status) {
  if (status.lost()) {
    model.device_lost = true;
  }
  return status;
}

void takeDeviceLine(const oriel_model& model, uint32_t before, ErrorLine* line) {
  if (line->count() == before && model.device_error.count() != 0) {
    line->set(model.device_error);
  }
}

}  // namespace oriel_internal

using namespace oriel_internal;

namespace {

oriel_status reply(oriel_session* handle, const oriel_reply_options* options, bool chat,
                   oriel_token_fn on_token, void* user, oriel_generation* out) {
  if (handle == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    ORIEL_TRY(out != nullptr ? checkResult(out, "oriel_generation", handle->log) : kOk);
    OneReply reply(handle, options, chat, on_token, user);
    ReplyCall* call = reply.begin();
    Replier::run(&call, call != nullptr ? 1 : 0);
    return reply.end(out);
  });
}

Status goBack(oriel_session* handle, uint64_t position, bool reads) {
  RebuildSource source;
  source.from = reads ? RebuildSource::From::kEither : RebuildSource::From::kMemory;
  source.position = position;
  return handle->session->rebuild(source, nullptr);
}

Status backToMark(oriel_session* handle, const char* name, bool reads) {
  const Bookmarks& marks = handle->session->facts().at.marks;
  const Bookmark* const mark = marks.find(name);
  if (mark == nullptr) {
    return handle->log.fail(ORIEL_ERROR_ARGUMENT,
                            "there is no mark named %.31s: the session's description lists them",
                            name);
  }
  ORIEL_TRY(goBack(handle, mark->position, reads));
  // A rebuilt conversation has lost its marks.
  return marks.find(name) != nullptr ? Status(kOk) : handle->session->mark(name);
}

Status backByTurns(oriel_session* handle, uint64_t turns, bool reads) {
  const SessionFacts of = handle->session->facts();
  const TurnMarks& starts = of.at.turns;
  if (turns == 0 || turns > starts.count()) {
    return handle->log.fail(ORIEL_ERROR_CONTEXT,
                            "cannot go back %llu turns, %u are known: give a smaller number",
                            static_cast<unsigned long long>(turns), starts.count());
  }
  const uint64_t start = starts.at(starts.count() - static_cast<uint32_t>(turns));
  return goBack(handle, of.transcript.messageBegin(of.context.prefixTokens(), start), reads);
}

}  // namespace

// The session's own numbers first; the device's numbers may wait for other calls.
bool oriel_internal::readStats(const oriel_session* handle, oriel_stats* stats) {
  const oriel_model& model = *handle->model;
  {
    const Look look(handle);
    if (!look.entered()) {
      return false;
    }
    const SessionFacts of = handle->session->facts();
    const SessionView view = of.memory.view();
    const uint32_t recalled = of.at.recalled;
    stats->position = view.position;
    stats->first_visible = view.first_visible;
    stats->first_stored = view.first_stored;
    stats->sinks_used = view.sinks_used;
    stats->turn_count = view.turn_count;
    stats->window_used = view.window_used;
    stats->window_capacity = model.plan.cache.sinks + of.memory.cache().window;
    const uint64_t seen = stats->window_used - std::min(recalled, stats->window_used);
    stats->evicted = stats->position - std::min(seen, stats->position);
  }
  {
    const auto lock = model.guard.lock();
    for (uint32_t kind = 0; kind < kArenaKinds; ++kind) {
      stats->device_bytes += model.executor->allocatedBytes(static_cast<ArenaKind>(kind));
    }
  }
  stats->host_bytes = model.host_bytes + handle->host_bytes + executorBytes(model.pictures);
  return true;
}

oriel_status oriel_session_reset(oriel_session* handle) {
  const auto reset = [&] {
    handle->last_error.clear();  // it may quote the conversation
    return handle->session->reset(Session::Begin::kAgain);
  };
  return handle == nullptr ? ORIEL_ERROR_ARGUMENT : callAlone(handle, reset, CallOn::kAnyModel);
}

oriel_status oriel_session_go_back(oriel_session* handle, oriel_back target, uint64_t number,
                                   const char* mark, uint32_t flags) {
  const int kind = rawEnum(target);
  if (handle == nullptr || kind < ORIEL_BACK_TO_POSITION || kind > ORIEL_BACK_TO_MARK ||
      (kind == ORIEL_BACK_TO_MARK) != (mark != nullptr) || (flags & ~ORIEL_READ_AGAIN) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const bool reads = (flags & ORIEL_READ_AGAIN) != 0;
  return callAlone(handle, [&] {
    return kind == ORIEL_BACK_TO_MARK    ? backToMark(handle, mark, reads)
           : kind == ORIEL_BACK_BY_TURNS ? backByTurns(handle, number, reads)
                                         : goBack(handle, number, reads);
  });
}

void oriel_session_cancel(oriel_session* handle) {
  if (handle != nullptr) {
    handle->session->call().cancel();
  }
}

oriel_status oriel_session_append(oriel_session* handle, const int32_t* ids, size_t count,
                                  oriel_logits_fn on_logits, void* user) {
  if (handle == nullptr || (ids == nullptr && count != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  TokenSource source;
  source.ids = ids;
  source.count = count;
  source.on_logits = on_logits;
  source.user = user;
  return callAlone(handle, [&] { return handle->session->append(source); });
}

oriel_status oriel_session_append_text(oriel_session* handle, const char* text, size_t bytes,
                                       uint32_t flags) {
  if (handle == nullptr || (text == nullptr && bytes != 0) || !validTextFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  TokenSource source;
  source.text = text;
  source.count = bytes;
  source.is_text = true;
  source.options.special = (flags & ORIEL_TEXT_SPECIAL) != 0;
  source.options.bos = (flags & ORIEL_TEXT_BOS) != 0;
  return callAlone(handle, [&] { return handle->session->append(source); });
}

oriel_status oriel_session_logits(oriel_session* handle, const float** logits, size_t* count) {
  if (handle == nullptr || logits == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    ORIEL_TRY(handle->session->facts().stepper.logits(logits));
    if (count != nullptr) {
      *count = handle->model->desc.n_vocab;
    }
    return kOk;
  });
}

oriel_status oriel_session_generate(oriel_session* handle, const oriel_reply_options* options,
                                    oriel_token_fn on_token, void* user, oriel_generation* out) {
  return reply(handle, options, /*chat=*/false, on_token, user, out);
}

namespace {

/// The pictures of one call, and the model's encoder.
class CallPictures final : public PictureSource {
 public:
  CallPictures(const oriel_model& model, const oriel_picture* pictures, uint32_t count)
      : model_(model), pictures_(pictures), count_(count) {}

  uint32_t count() const override { return count_; }
  Status layOut(uint32_t index, const Log& log, HeldPicture* picture) override {
    const PictureEncoder& encoder = model_.pictures->encoder;
    Picture given;
    ORIEL_TRY(readPicture(pictures_[index], log, &given));
    ORIEL_TRY(encoder.layOut(given, log, &layout_));
    *picture = {};
    describeRows(layout_, picture);
    picture->hash = hashOfPicture(given, encoder.imageRows());
    return kOk;
  }
  Status encode(uint32_t index, const Log& log, const StopCheck& stop, float* rows) override {
    Picture given;
    ORIEL_TRY(readPicture(pictures_[index], log, &given));
    return model_.pictures->encoder.encode(given, layout_, log, stop, rows);
  }

 private:
  const oriel_model& model_;
  const oriel_picture* const pictures_;
  const uint32_t count_;
  PictureLayout layout_;  ///< of the latest picture
};

}  // namespace

oriel_status oriel_chat_add(oriel_session* handle, const char* role, const char* text,
                            size_t bytes) {
  if (handle == nullptr || (text == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->appendMessages(role, text, bytes); });
}

oriel_status oriel_chat_add_pictures(oriel_session* handle, const char* json, size_t bytes,
                                     const oriel_picture* pictures, size_t count) {
  if (handle == nullptr || json == nullptr || (pictures == nullptr && count != 0) ||
      count > UINT32_MAX) {
    return ORIEL_ERROR_ARGUMENT;
  }
  CallPictures source(*handle->model, pictures, static_cast<uint32_t>(count));
  return callAlone(handle,
                   [&] { return handle->session->appendMessages(nullptr, json, bytes, &source); });
}

oriel_status oriel_chat_reply(oriel_session* handle, const oriel_reply_options* options,
                              oriel_token_fn on_token, void* user, oriel_generation* out) {
  return reply(handle, options, /*chat=*/true, on_token, user, out);
}

oriel_status oriel_session_get_tokens(const oriel_session* handle, uint64_t first, int32_t* ids,
                                      size_t capacity, size_t* needed) {
  if (handle == nullptr || needed == nullptr || (ids == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Reading reading(*handle->model);  // its line
  uint64_t count = 0;
  bool held;
  SessionView view;
  {
    const Look look(handle);
    if (!look.entered()) {
      return ORIEL_ERROR_STATE;
    }
    const SessionMemory& memory = handle->session->facts().memory;
    held = copyHeld(memory.ids, memory.held(), first, ids, capacity, &count);
    std::replace_if(ids, ids + (held && count <= capacity ? count : 0), TokenIds::isRow,
                    TokenIds::kUnknown);
    view = memory.view();
  }
  *needed = static_cast<size_t>(count);
  if (!held) {
    return handle->log
        .fail(ORIEL_ERROR_CONTEXT,
              "token %llu is not in the cache: give a token below %u, or from %llu to %llu",
              static_cast<unsigned long long>(first), view.sinks_used,
              static_cast<unsigned long long>(view.first_stored),
              static_cast<unsigned long long>(view.position))
        .code();
  }
  return count > capacity ? ORIEL_ERROR_BUFFER_TOO_SMALL : ORIEL_OK;
}

using namespace oriel_internal;

oriel_status oriel_session_fork(oriel_session* handle, oriel_session** fork) {
  if (fork != nullptr) {
    *fork = nullptr;
  }
  if (handle == nullptr || fork == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callWith(handle, [&](Guard::Call* call) { return forkSession(handle, call, fork); });
}

oriel_status oriel_session_mark(oriel_session* handle, const char* name) {
  if (handle == nullptr || name == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->mark(name); });
}
