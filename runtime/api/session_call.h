// One call at a time on a session, and none on a device that has failed.
#pragma once

#include "api/api.h"
#include "os/thread.h"

namespace oriel_internal {

/// What oriel_session.use is made of.
enum SessionUse : uint32_t { kInCall = 1, kAsked = 2 };

/// False: another call is running. Waits for those that only ask. Else the session is the caller's until it ends, or
/// until endCall().
bool claimSession(const oriel_session* handle);
/// As claimSession(). Until endCall() the call can be cancelled.
bool beginCall(oriel_session* handle);
/// Of a call inside the gate, or of who has control, which has begun: the session learns that its cache was lost.
void meetCache(oriel_session* handle);
/// What the call returns. A session whose device has failed is lost from then on.
oriel_status endCall(oriel_session* handle, Status status);

/// One error line and ORIEL_ERROR_STATE, for a call from inside a callback of another or from a second thread.
/// What the log's callback tries while it is told so is refused without a line.
oriel_status refuseCall(const oriel_session* handle);

/// A call that asks and changes nothing, as long as the object is there: no other thread's call on the session begins
/// meanwhile. No callback may be called.
class Look {
 public:
  explicit Look(const oriel_session* handle);
  ~Look();
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;
  /// Another thread's call runs; refuseCall() has said so.
  bool refused() const { return refused_; }

 private:
  const oriel_session* const handle_;
  bool counted_ = false;
  bool refused_ = false;
};

/// Whether the caller is inside a callback of a call on the model or one of its sessions, where what takes, frees or waits
/// for the device must not begin; then the log has said so, and the status is ORIEL_ERROR_STATE.
bool refusedInside(oriel_model* model);
/// The same for what ends the model: also inside callbacks of calls that only ask.
bool refusedToEnd(oriel_model* model);

/// This thread is in a call on the model itself, whose callbacks must not end it.
class Asking {
 public:
  explicit Asking(const oriel_model& model)
      : threads_(&model.calling), place_(threads_->enter(CallingThreads::asking(threadId()))) {}
  ~Asking() { threads_->leave(place_); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  CallingThreads* const threads_;
  const uint32_t place_;
};

/// One error line and ORIEL_ERROR_STATE, for a call that needs the device while that is paused or memory is given back.
Status refuseTrimmed(const Log& log, std::atomic<uint32_t>* refusing);

/// For a failed call that gave no line of its own since there were `before` of them: the device's.
void takeDeviceLine(const oriel_model& model, uint32_t before, ErrorLine* line);

/// What a call on the session returns that did not enter the gate. It has touched nothing of the session.
oriel_status refuseAtGate(const oriel_session* handle);

/// The numbers of a session. False: refused, and the line was given.
bool readStats(const oriel_session* handle, oriel_stats* stats);

/// `body()` as the only call on the session. After the device has failed once, ORIEL_ERROR_DEVICE instead.
///
/// The gate comes first: who has closed it, and waited for the calls inside, has the sessions to itself.
template <typename Body>
oriel_status callAlone(oriel_session* handle, const Body& body) {
  bool entered;
  {
    const Gate::Call call(&handle->model->gate);
    entered = call.entered();
    if (entered && beginCall(handle)) {
      meetCache(handle);
      return endCall(handle, handle->lost ? Status(ORIEL_ERROR_DEVICE) : Status(body()));
    }
  }
  return entered ? refuseCall(handle) : refuseAtGate(handle);
}

}  // namespace oriel_internal
