#include "api/session_call.h"

#include "base/test_gap.h"

namespace oriel_internal {
namespace {

// Statuses that a call gives without a line.
bool hasLine(oriel_status code) {
  return code != ORIEL_OK && code != ORIEL_ERROR_CANCELLED && code != ORIEL_ERROR_BUFFER_TOO_SMALL;
}

bool tellInside(oriel_model* model) {
  if (model->refusing.exchange(1) == 0) {
    (void)model->log.fail(ORIEL_ERROR_STATE,
                          "a callback of a call on the model asked for what it may not "
                          "have: return from it, and call then");
    model->refusing.store(0);
  }
  return true;
}

}  // namespace

bool claimSession(const oriel_session* handle) {
  testGap();
  uint32_t seen = 0;
  while (!handle->use.compare_exchange_weak(seen, kInCall, std::memory_order_acquire)) {
    if ((seen & kInCall) != 0) {
      return false;
    }
    yieldProcessor();  // what asks calls nobody back
    seen = 0;
  }
  return true;
}

bool beginCall(oriel_session* handle) {
  if (!claimSession(handle)) {
    return false;
  }
  const uintptr_t thread = threadId();
  handle->caller.store(thread, std::memory_order_relaxed);
  handle->place = handle->model->calling.enter(thread);
  handle->errors_before = handle->last_error.count();
  handle->session->beginCall();
  return true;
}

void meetCache(oriel_session* handle) {
  if (handle->cache_lost.exchange(0) != 0 && !handle->session->isFresh()) {
    handle->session->expectReading();
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
  handle->session->endCall();
  const bool unread = handle->session->transcript().hasUnread();
  testGap();
  handle->unread = unread;
  handle->model->calling.leave(handle->place);
  handle->caller.store(0, std::memory_order_relaxed);
  testGap();
  handle->use.store(0, std::memory_order_release);
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

oriel_status refuseCall(const oriel_session* handle) {
  if (handle->refusing.exchange(1) == 0) {
    // The session's last error is the calling thread's.
    const bool inside = handle->caller.load(std::memory_order_relaxed) == threadId();
    const Log log = {handle->log.callback, handle->log.user,
                     inside ? handle->log.last_error : nullptr};
    const uint32_t lines = handle->last_error.count();
    (void)log.fail(ORIEL_ERROR_STATE,
                   "the session is in the middle of another call: wait until that has "
                   "returned, and change nothing from inside its callbacks");
    if (inside) {  // no line of the call that goes on
      handle->errors_before += handle->last_error.count() - lines;
    }
    handle->refusing.store(0);
  }
  return ORIEL_ERROR_STATE;
}

oriel_status refuseAtGate(const oriel_session* handle) {
  testGap();
  return (handle->use.load(std::memory_order_relaxed) & kInCall) != 0 ? refuseCall(handle)
         : handle->lost                                               ? ORIEL_ERROR_DEVICE
                        : refuseTrimmed(handle->log, &handle->refusing).code();
}

Look::Look(const oriel_session* handle) : handle_(handle) {
  uint32_t seen = handle->use.load(std::memory_order_relaxed);
  do {
    if ((seen & kInCall) != 0) {
      // From inside a callback of its own call it may ask: that waits meanwhile.
      refused_ = handle->caller.load(std::memory_order_relaxed) != threadId();
      if (refused_) {
        (void)refuseCall(handle);
      }
      return;
    }
  } while (!handle->use.compare_exchange_weak(seen, seen + kAsked, std::memory_order_acquire));
  counted_ = true;
  testGap();
}

Look::~Look() {
  if (counted_) {
    handle_->use.fetch_sub(kAsked, std::memory_order_release);
  }
}

Status refuseTrimmed(const Log& log, std::atomic<uint32_t>* refusing) {
  if (refusing->exchange(1) == 0) {
    (void)log.fail(ORIEL_ERROR_STATE,
                   "the model is paused, or its memory was given back: call oriel_resume first");
    refusing->store(0);
  }
  return ORIEL_ERROR_STATE;
}

bool refusedInside(oriel_model* model) {
  return (model->calling.has(threadId()) || model->gate.isInside()) && tellInside(model);
}

bool refusedToEnd(oriel_model* model) {
  return model->calling.has(CallingThreads::asking(threadId())) ? tellInside(model)
                                                                : refusedInside(model);
}

}  // namespace oriel_internal
