// Who is at work with a model: sessions' calls go in and out, and whoever takes memory away or lets the device rest
// closes it behind them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace oriel_internal {

/// Thread-safe. Calls are counted; a running one rests between two steps where it is asked to. Control is what closes and
/// opens: one thread has it at a time.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// A call that needs the device, as long as the object is there. entered(): whether it may.
  class Call {
   public:
    explicit Call(Gate* gate) : gate_(gate), entered_(gate->enter(this)) {}
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    bool entered() const { return entered_; }

   private:
    friend class Gate;
    Gate* const gate_;
    const std::thread::id thread_ = std::this_thread::get_id();
    Call* next_ = nullptr;
    bool entered_;
  };

  /// Control, as long as the object is there. Waits for others that have it, unless they wait for a call that this
  /// thread is inside of: so long they do nothing. held(): false for a thread that has it already, from inside a
  /// callback.
  class Control {
   public:
    explicit Control(Gate* gate) : gate_(gate), held_(gate->takeControl(this)) {}
    ~Control();
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;
    bool held() const { return held_; }

   private:
    friend class Gate;
    Gate* const gate_;
    bool owned_ = false;
    bool lent_ = false;  ///< by one that waits for a call of this thread, `lender_`
    std::thread::id lender_;
    const bool held_;
  };

  // Of who has control.

  /// No call enters from here on; waits until those that are inside have ended, or rest. `rests`: they are asked to.
  void close(bool rests);
  /// Those that rest go on.
  void open();
  /// As open(), but no call enters yet.
  void endRest();
  bool closed() const;
  /// Whether running calls are asked to rest; and whether one is inside.
  bool resting() const;
  bool hasCalls() const;
  /// Whether this thread is inside a call, or has control: it would wait for itself.
  bool isInside() const;

  // Of a running call.

  bool wantsRest() const;
  /// Between two steps: waits until open(), or until cancelled(user) and nobody has control. So do the thread's other calls, in whose callbacks
  /// this one was made.
  void rest(bool (*cancelled)(const void* user), const void* user);

 private:
  bool enter(Call* call);
  bool takeControl(Control* control);
  bool isInsideLocked() const;
  uint32_t callsOfThreadLocked() const;
  void endRestLocked();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Call* calls_ = nullptr;
  uint32_t inside_ = 0;
  uint32_t at_rest_ = 0;
  uint64_t rest_ = 0;  ///< number of the rest: one that has ended keeps nobody
  bool closed_ = false;
  bool rests_ = false;
  bool controlled_ = false;
  bool closing_ = false;  ///< who has control waits for the calls inside
  bool lent_ = false;     ///< and one of their threads has control until it is through
  std::thread::id controller_;
};

}  // namespace oriel_internal
