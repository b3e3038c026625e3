// Sessions of one model take turns on its device, a step each. Tokens that several of them wait for become one step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/limits.h"
#include "base/status.h"

namespace oriel_internal {

class Replier;
struct DeviceWaiter;

/// The step of a token that was chosen.
struct DecodeRequest {
  Replier* replier = nullptr;
  uint32_t index = 0;  ///< of the session, among the model's
  int32_t id = -1;
  bool more = false;   ///< another token will be wanted
  bool ahead = false;  ///< and the device may begin with it
  Status status;       ///< of the step, once it is done
  // The share's own.
  enum class Stage : uint8_t { kWaits, kRuns, kDone };
  Stage stage = Stage::kWaits;
  DeviceWaiter* waiter = nullptr;
};

/// Thread-safe. First come, first served; no thread has the device for longer than a step, or than reading its results
/// takes. No callback runs meanwhile, so no thread waits for an app. No allocations.
//
/// With one session there is no waiting and no lock.
class DeviceShare {
 public:
  /// Runs the steps of these requests as one, and fills in their statuses.
  using RunSteps = void (*)(DecodeRequest* const* requests, uint32_t count);

  DeviceShare() = default;
  DeviceShare(const DeviceShare&) = delete;
  DeviceShare& operator=(const DeviceShare&) = delete;

  /// Before the first session. `batch_rows`: requests that a step takes.
  void init(uint32_t sessions, uint32_t batch_rows, RunSteps run) {
    several_ = sessions > 1;
    batch_rows_ = batch_rows;
    run_ = run;
  }
  bool several() const { return several_; }

  /// Waits until every request is done: each in one step with the other waiting requests. If other sessions were in a
  /// recent step and are choosing their next token, it waits briefly for them.
  void decode(DecodeRequest* requests, uint32_t count);
  /// The session wants no more tokens: others no longer wait for it.
  void leave(uint32_t session);

  /// How often the device changed hands. A session that gives it back and takes it again sees whether others had it.
  uint64_t turns() const { return turns_; }

  /// How a turn comes about.
  enum class Claim : uint8_t {
    kStep,   ///< in its turn
    kBrief,  ///< to read the results of the session's latest step: before waiting steps
  };

 private:
  friend class DeviceTurn;
  using Waiter = DeviceWaiter;
  struct Line {
    Waiter* first = nullptr;
    void add(Waiter* waiter);
    void remove(const Waiter* waiter);
  };
  using Lock = std::unique_lock<std::mutex>;

  Status take(uint32_t session, Claim claim);
  void give();
  bool isFor(const Waiter& waiter, Claim claim) const;
  void begin(uint32_t session);
  void end();
  void lead(Waiter* waiter, Lock* lock);
  void linger(Waiter* waiter, Lock* lock);
  bool hasRoomForOthers() const { return n_choosing_ != 0 && n_waiting_ < batch_rows_; }
  void tellLingering();
  uint32_t collect(DecodeRequest** batch);
  uint32_t takeAlong(Waiter* waiter, DecodeRequest** batch, uint32_t count);
  void finish(DecodeRequest* const* batch, uint32_t count);
  void setChoosing(uint32_t session, bool chooses);

  bool several_ = false;
  uint32_t batch_rows_ = 1;
  RunSteps run_ = nullptr;

  std::mutex mutex_;
  Line brief_;
  Line line_;
  Waiter* lingers_ = nullptr;  ///< the first in line
  bool held_ = false;
  uint32_t depth_ = 0;   ///< turns of the holder, one inside the other
  uint32_t holder_ = 0;  ///< session
  std::thread::id owner_;
  uint64_t turns_ = 0;
  double step_ms_ = 0;                ///< that the latest step of requests took
  bool choosing_[kMaxSessions] = {};  ///< was in a step, and will want another
  uint32_t n_choosing_ = 0;
  uint32_t n_waiting_ = 0;  ///< requests
};

/// The device for one session during the object's lifetime. `share` may be null: no other users.
class DeviceTurn {
 public:
  DeviceTurn(DeviceShare* share, uint32_t session,
             DeviceShare::Claim claim = DeviceShare::Claim::kStep)
      : share_(share != nullptr && share->several() ? share : nullptr),
        status_(share_ != nullptr ? share_->take(session, claim) : kOk) {}
  ~DeviceTurn() {
    if (share_ != nullptr && status_.ok()) {
      share_->give();
    }
  }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

  /// ORIEL_ERROR_STATE where this thread has the device for another session: what the device said to the log led here.
  const Status& status() const { return status_; }

 private:
  DeviceShare* const share_;
  const Status status_;
};

}  // namespace oriel_internal
