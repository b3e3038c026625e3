// Decides which calls a model and its sessions admit: one mutex, one phase, one list of calls, one table of sessions.
//
// Every call on a model is in the list until it returns. A thread that is in the list may only read: any other call
// that it makes comes from a callback, and is refused. No thread holds the mutex during a callback, an allocation or
// I/O, so getters never wait for a call or for the device.
//
// Two mechanisms stay apart, each for a reason:
//  - DeviceShare (device_share.h) orders the steps of calls that are inside. It computes waiting tokens of several
//    sessions as one step, which docs/performance.md measures.
//  - CallCancel (call_cancel.h): a cancel takes no lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/limits.h"

struct oriel_session;

namespace oriel_internal {

/// Thread-safe.
class Guard {
 public:
  /// The kind of a call.
  enum class Work : uint8_t {
    kReads,     ///< changes nothing: may be made inside another call
    kRefuses,   ///< writes the line of a refused call
    kHost,      ///< changes something, without the device
    kDevice,    ///< works with the device
    kRests,     ///< waits between two steps until a pause ends
    kControls,  ///< gives or takes the model's memory: one call at a time
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

  /// A call, as long as the object is there.
  class Call {
   public:
    /// Takes the sessions of the mask, which reading calls share. Waits for reading calls on them, and to control for
    /// who does so already.
    Call(Guard* guard, Work work, uint64_t sessions = 0);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    Answer answer() const { return answer_; }
    bool entered() const { return answer_ == Answer::kEntered; }
    /// Goes on with other work. Waits and is refused as at its beginning; then its work is kHost.
    Answer become(Work work);
    /// Takes a session as soon as it is free. False: not within `wait_ms`.
    bool take(uint32_t session, double wait_ms);
    void giveBack(uint32_t session);
    /// Takes the room of a session that is not there. False: it is taken.
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

  // For the call that controls.

  /// Waits until calls on the device have ended, or rest. A pause goes on.
  void close(Phase phase);
  /// Resting calls go on.
  void open();
  Phase phase() const;
  bool hasDeviceCalls() const;

  // For a call on the device.

  bool wantsRest() const;
  /// Between two steps: waits until open(), or until cancelled(user) without a controlling call.
  void rest(bool (*cancelled)(const void* user), const void* user);

  // Sessions, by index.

  struct Entry {
    oriel_session* handle = nullptr;  ///< null: it is not there, or being made
    const Call* call = nullptr;       ///< that has the session; null: none
    bool isFree() const { return handle == nullptr && call == nullptr; }
  };
  Entry entry(uint32_t session) const;
  void setHandle(uint32_t session, oriel_session* handle);
  /// How many are there or are being made.
  uint32_t takenCount() const;
  /// Whether the model may be freed: kEntered, or else kInside or kUsed.
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
