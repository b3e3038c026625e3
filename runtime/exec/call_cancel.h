// A cancel that applies to one call only.
#pragma once

#include <atomic>
#include <cstdint>

namespace oriel_internal {

/// Calls run one after the other, on any thread. Any thread may cancel. One word holds the number of the running call
/// and its cancel flag. A cancel that comes after the end of its call has no effect, because the next call has another
/// word.
class CallCancel {
 public:
  void begin() { word_.store((word_.load() & ~kFlags) + kNextCall + kRunning); }
  void end() { word_.store(word_.load() & ~kFlags); }
  /// No effect if no call runs.
  void cancel() {
    uint32_t seen = word_.load();
    if ((seen & kFlags) == kRunning) {
      // Fails if the call has ended or another thread has cancelled it.
      (void)word_.compare_exchange_strong(seen, seen | kCancelled);
    }
  }
  /// Lasts until the end of the call.
  bool cancelled() const { return (word_.load(std::memory_order_relaxed) & kCancelled) != 0; }

 private:
  static constexpr uint32_t kRunning = 1;
  static constexpr uint32_t kCancelled = 2;
  static constexpr uint32_t kFlags = kRunning | kCancelled;
  static constexpr uint32_t kNextCall = 4;

  std::atomic<uint32_t> word_{0};  // the number of the latest call, and the flags
};

}  // namespace oriel_internal
