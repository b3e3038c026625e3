// One call at a time on a session, and none on a device that has failed.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// A call that only reads, as long as the object is there: text calls, getters. Its callbacks may do no more.
class Reading : public Guard::Call {
 public:
  explicit Reading(const oriel_model& model) : Call(&model.guard, Guard::Work::kReads) {}
};

/// A call that reads a session, as long as the object is there: no other thread's call on it begins meanwhile. No callback
/// may be called. entered(): false while another thread's call runs; the line was given.
class Look : public Guard::Call {
 public:
  explicit Look(const oriel_session* handle);
};

/// One error line and ORIEL_ERROR_STATE for a refused call. Calls that the log's callback makes then are refused without
/// a line.
Status refuse(const oriel_model& model, const Log& log, Guard::Answer why);
/// The same for a call on a session; ORIEL_ERROR_DEVICE for one that is lost.
oriel_status refuseCall(const oriel_session* handle, Guard::Answer why);

/// Once the call has the session. Until endCall() it can be cancelled.
void beginCall(oriel_session* handle);
/// For a call on the device, or one that controls: the session learns that its cache was lost.
void meetCache(oriel_session* handle);
/// What the call returns. A session whose device has failed is lost from then on.
oriel_status endCall(oriel_session* handle, Status status);

/// For a failed call that gave no line of its own since there were `before` of them: the device's.
void takeDeviceLine(const oriel_model& model, uint32_t before, ErrorLine* line);

/// The numbers of a session. False: refused, and the line was given.
bool readStats(const oriel_session* handle, oriel_stats* stats);

/// visit(handle) for the model's sessions, up to the first error. For the call that controls.
template <typename Visit>
Status forEachSession(const oriel_model& model, const Visit& visit) {
  for (uint32_t i = 0; i < model.plan.sessionCount(); ++i) {
    if (oriel_session* const handle = model.guard.entry(i).handle; handle != nullptr) {
      ORIEL_TRY(visit(handle));
    }
  }
  return kOk;
}

/// What a call on a session needs of its model.
enum class CallOn : uint8_t { kDecoder, kAnyModel };
/// Refuses a call that an encoder has no answer to.
Status checkDecodes(const oriel_model& model, const Log& log);

/// `body(&call)` as the only call on the session. After the device has failed once, ORIEL_ERROR_DEVICE instead.
template <typename Body>
oriel_status callWith(oriel_session* handle, const Body& body, CallOn on = CallOn::kDecoder) {
  Guard::Call call(&handle->model->guard, Guard::Work::kDevice, Guard::bit(handle->index));
  if (!call.entered()) {
    return refuseCall(handle, call.answer());
  }
  beginCall(handle);
  meetCache(handle);
  Status status = handle->lost ? Status(ORIEL_ERROR_DEVICE) : Status(kOk);
  if (status.ok() && on == CallOn::kDecoder) {
    status = checkDecodes(*handle->model, handle->log);
  }
  return endCall(handle, status.ok() ? Status(body(&call)) : status);
}
/// The same for a body() that needs no more.
template <typename Body>
oriel_status callAlone(oriel_session* handle, const Body& body, CallOn on = CallOn::kDecoder) {
  return callWith(
      handle, [&](Guard::Call*) { return body(); }, on);
}

}  // namespace oriel_internal
