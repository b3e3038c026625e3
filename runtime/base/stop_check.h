// Cancellation of running work.
#pragma once

#include "base/status.h"
#include "oriel/advanced.h"

namespace oriel_internal {

/// Long work calls it repeatedly, on the thread that started the work.
struct StopCheck {
  bool (*asked)(void* user) = nullptr;  ///< null: never
  void* user = nullptr;

  bool operator()() const { return asked != nullptr && asked(user); }
  /// ORIEL_ERROR_CANCELLED if the check asks to stop.
  Status check() const { return (*this)() ? Status(ORIEL_ERROR_CANCELLED) : kOk; }
};

/// Progress of a load, for the app's callback.
struct LoadProgress {
  oriel_progress_fn callback = nullptr;
  void* user = nullptr;
  uint64_t done = 0;
  uint64_t total = 1;  ///< an estimate, until `done` grows

  /// Calls the callback; ORIEL_ERROR_CANCELLED if it asks to stop.
  Status tell() const {
    return callback != nullptr && callback(done, total, user) != 0 ? Status(ORIEL_ERROR_CANCELLED)
                                                                   : kOk;
  }
  /// The same for work without a count. This object must outlive it.
  StopCheck stop() {
    return {[](void* self) { return !static_cast<const LoadProgress*>(self)->tell().ok(); }, this};
  }
};

}  // namespace oriel_internal
