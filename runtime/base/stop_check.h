// How work learns that it is to end early.
#pragma once

#include "base/status.h"
#include "oriel/advanced.h"

namespace oriel_internal {

/// Asked again and again by work that may take long, on the thread that began it.
struct StopCheck {
  bool (*asked)(void* user) = nullptr;  ///< null: never
  void* user = nullptr;

  bool operator()() const { return asked != nullptr && asked(user); }
  /// ORIEL_ERROR_CANCELLED where it says yes.
  Status check() const { return (*this)() ? Status(ORIEL_ERROR_CANCELLED) : kOk; }
};

/// How far a load has got, for the app's callback.
struct LoadProgress {
  oriel_progress_fn callback = nullptr;
  void* user = nullptr;
  uint64_t done = 0;
  uint64_t total = 1;  ///< a guess, until `done` grows

  /// Tells the callback; ORIEL_ERROR_CANCELLED when it asks to stop.
  Status tell() const {
    return callback != nullptr && callback(done, total, user) != 0 ? Status(ORIEL_ERROR_CANCELLED)
                                                                   : kOk;
  }
  /// The same for work that does not count. This object outlives it.
  StopCheck stop() {
    return {[](void* self) { return !static_cast<const LoadProgress*>(self)->tell().ok(); }, this};
  }
};

}  // namespace oriel_internal
