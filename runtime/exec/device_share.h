// Sessions of one model take turns on its device, one step each. Waiting tokens of several sessions share a step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/checked.h"
#include "base/log.h"

namespace oriel_internal {

class Replier;
struct DeviceWaiter;

/// The step of a chosen token.
struct DecodeRequest {
  Replier* replier = nullptr;
  uint32_t index = 0;  ///< index among the model's sessions
  int32_t id = -1;
  bool more = false;   ///< another token will follow
  bool ahead = false;  ///< the device may begin with that token
  Status status;       ///< set at the end of the step
  double ms = 0;       ///< time of the step
  // Private to the share:
  enum class Stage : uint8_t { kWaits, kRuns, kDone };
  Stage stage = Stage::kWaits;
  DeviceWaiter* waiter = nullptr;
};

/// Thread-safe. First come, first served. A thread holds the device for one step at most, or to read its results. No
/// callback runs meanwhile, so no thread waits for an app. No allocations.
///
/// With one session it takes no lock and never waits.
class DeviceShare {
 public:
  /// Runs the steps of these requests as one step and fills in their statuses.
  using RunSteps = void (*)(DecodeRequest* const* requests, uint32_t count);

  DeviceShare() = default;
  DeviceShare(const DeviceShare&) = delete;
  DeviceShare& operator=(const DeviceShare&) = delete;

  /// Call before the first session. `batch_rows`: requests per step.
  void init(uint32_t sessions, uint32_t batch_rows, RunSteps run) {
    several_ = sessions > 1;
    batch_rows_ = batch_rows;
    run_ = run;
  }
  bool several() const { return several_; }

  /// Waits until all requests are done, each in one step with other waiting requests. If other sessions were in a
  /// recent step and are choosing their next token, waits briefly for them.
  void decode(DecodeRequest* requests, uint32_t count);
  /// The session needs no more tokens, so others stop waiting for it.
  void leave(uint32_t session);

  /// Counts changes of the device's holder. A session compares two values to see if another session had the device.
  uint64_t turns() const { return turns_; }
  /// Number of requests that wait for a step.
  uint32_t waiting() {
    const Lock lock(mutex_);
    return n_waiting_;
  }

  /// The kind of a turn.
  enum class Claim : uint8_t {
    kStep,   ///< in order of arrival
    kBrief,  ///< to read the results of the session's latest step, before waiting steps
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
  uint32_t depth_ = 0;   ///< nested turns of the holder
  uint32_t holder_ = 0;  ///< session
  std::thread::id owner_;
  uint64_t turns_ = 0;
  double step_ms_ = 0;                ///< time of the latest step of requests
  bool choosing_[kMaxSessions] = {};  ///< was in a step, and will need another
  uint32_t n_choosing_ = 0;
  uint32_t n_waiting_ = 0;  ///< number of requests
};

/// Holds the device for one session during the object's lifetime. `share` may be null: no other users.
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

  /// ORIEL_ERROR_STATE if this thread holds the device for another session: the device's log message led to this call.
  const Status& status() const { return status_; }

 private:
  DeviceShare* const share_;
  const Status status_;
};

}  // namespace oriel_internal
