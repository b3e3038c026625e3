// Decides which calls a model and its sessions admit: one mutex, one phase, one list of calls, one table of sessions.
//
// Every call on a model is in the list until it returns. A thread in the list may only read. Any other call that it
// makes comes from a callback, and is refused. No thread holds the mutex during a callback, an allocation or I/O, so
// getters never wait for a call or for the device.
//
// Two mechanisms are separate, each for a reason:
// - DeviceShare (device_share.h) orders the steps of admitted calls. It computes waiting tokens of several sessions as
//   one step, which notes/performance.md measures.
// - CallCancel (call_cancel.h): a cancel takes no lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/checked.h"

struct oriel_session;

namespace oriel_internal {

/// Thread-safe.
class Guard {
 public:
  /// The kind of a call.
  enum class Work : uint8_t {
    kReads,     ///< changes nothing: allowed inside another call
    kRefuses,   ///< writes the log line of a refused call
    kHost,      ///< changes data without the device
    kDevice,    ///< works with the device
    kRests,     ///< waits between two steps until a pause ends
    kControls,  ///< frees or takes the model's memory: one call at a time
  };
  enum class Answer : uint8_t {
    kEntered,
    kOwn,      ///< refused: this thread is inside a call on the session
    kInside,   ///< refused: this thread is inside another call on the model
    kBusy,     ///< refused: another thread's call has the session
    kStopped,  ///< refused: no call on the device may begin
    kUsed,     ///< refused: the model has sessions
  };
  enum class Phase : uint8_t {
    kOpen,
    kStopped,  ///< no call on the device begins
    kPaused,   ///< the same, and running calls rest
  };
  static constexpr uint64_t bit(uint32_t session) { return uint64_t{1} << session; }

  /// A call, for the lifetime of the object.
  class Call {
   public:
    /// Takes the sessions of the mask; reading calls share them. Waits for reading calls on them. A controlling call
    /// also waits for the previous controlling call.
    Call(Guard* guard, Work work, uint64_t sessions = 0);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    Answer answer() const { return answer_; }
    bool entered() const { return answer_ == Answer::kEntered; }
    /// Continues with other work. Waits and is refused as at the beginning of a call. Then its work is kHost.
    Answer become(Work work);
    /// Takes a session when it becomes free. False: not free within `wait_ms`.
    bool take(uint32_t session, double wait_ms);
    void giveBack(uint32_t session);
    /// Takes the slot of a new session. False: it is taken.
    bool takeFree(uint32_t session);

   private:
    friend class Guard;
    Guard* const guard_;
    const uintptr_t thread_;
    uint64_t sessions_;
    Call* next_ = nullptr;
    Work work_;
    Answer answer_;
  };

  Guard() = default;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// For a few loads and stores of data shared by getters and calls: no callback, allocation or I/O.
  std::unique_lock<std::mutex> lock() const { return std::unique_lock<std::mutex>(mutex_); }

  // For the controlling call.

  /// Waits until calls on the device have ended or rest. A pause continues.
  void close(Phase phase);
  /// Resting calls continue.
  void open();
  Phase phase() const;
  bool hasDeviceCalls() const;

  // For a call on the device.

  bool wantsRest() const;
  /// Between two steps: waits until open(), or until cancelled(user) while no controlling call runs.
  void rest(bool (*cancelled)(const void* user), const void* user);

  // Sessions, by index.

  struct Entry {
    oriel_session* handle = nullptr;  ///< null: no session, or it is being created
    const Call* call = nullptr;       ///< the call that holds the session; null: none
    bool isFree() const { return handle == nullptr && call == nullptr; }
  };
  Entry entry(uint32_t session) const;
  void setHandle(uint32_t session, oriel_session* handle);
  /// Number of sessions, including those being created.
  uint32_t takenCount() const;
  /// Checks if the model may be freed: kEntered, or else kInside or kUsed.
  Answer mayEnd() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  Answer admit(Lock* lock, Work work, uint64_t sessions);
  const Call* holderOf(uint64_t sessions) const;
  void hold(uint64_t sessions, const Call* call);
  void take(Lock* lock, uint64_t sessions, const Call* call);
  void begin(Call* call, Work work);
  void end(const Call* call);
  template <typename Test>
  Call* find(const Test& test) const;
  bool areRead(uint64_t sessions) const;
  bool has(Work work) const;
  bool isInside() const;
  Call* ofThread(Work work) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Call* calls_ = nullptr;
  const Call* controller_ = nullptr;
  Phase phase_ = Phase::kOpen;
  Entry entries_[kMaxSessions];
  static_assert(kMaxSessions <= 64, "a bit of a mask each");
};

}  // namespace oriel_internal
