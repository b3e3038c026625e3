// One call at a time on a session, and none on a device that has failed.
#pragma once

#include "api/api.h"

namespace oriel {

/// One error line and ORIEL_ERROR_STATE, for a call from inside a callback of another or from a second thread.
/// What the log's callback tries while it is told so is refused without a line.
oriel_status refuseCall(oriel_session* handle);

/// Likewise, for a call that needs the device while it is paused or its memory is given back.
oriel_status refuseTrimmed(oriel_model* model);

/// `body()` as the only call on the session. After the device has failed once, ORIEL_ERROR_DEVICE instead.
template <typename Body>
oriel_status callAlone(oriel_session* handle, const Body& body) {
  if (handle->busy.exchange(1, std::memory_order_acquire) != 0) {
    return refuseCall(handle);
  }
  oriel_status code = ORIEL_ERROR_DEVICE;
  if (const Gate::Call call(&handle->model->gate); !call.entered()) {
    code = refuseTrimmed(handle->model);
  } else if (!handle->lost) {
    const Status status = body();
    code = status.code();
    handle->lost = code == ORIEL_ERROR_DEVICE || code == ORIEL_ERROR_TIMEOUT;
  }
  handle->busy.store(0, std::memory_order_release);
  return code;
}

}  // namespace oriel
