#include "api/session_call.h"

#include "base/test_gap.h"

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

// Statuses that a call gives without a line.
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
  // The session's last error belongs to the thread that has it.
  const bool busy = why == Guard::Answer::kBusy;
  const Log log = {handle->log.callback, handle->log.user, busy ? nullptr : handle->log.last_error};
  const uint32_t lines = handle->last_error.count();
  const Status status = refuse(*handle->model, log, why);
  if (why == Guard::Answer::kOwn) {  // no line of the call that goes on
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
  // One that was lost before says so whatever the device does by now.
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
