// A cancel that counts for one call and for none after it.
#pragma once

#include <atomic>
#include <cstdint>

namespace oriel_internal {

/// Calls begin and end one after the other, on whatever thread; any thread may cancel. One word says which call runs
/// and whether it is cancelled, so that a cancel which is overtaken by the end of its call changes nothing: the next
/// call is another word.
class CallCancel {
 public:
  void begin() { word_.store((word_.load() & ~kFlags) + kNextCall + kRunning); }
  void end() { word_.store(word_.load() & ~kFlags); }
  /// Nothing happens where no call runs.
  void cancel() {
    uint32_t seen = word_.load();
    if ((seen & kFlags) == kRunning) {
      // Where this fails the call has ended, or somebody else has cancelled it.
      (void)word_.compare_exchange_strong(seen, seen | kCancelled);
    }
  }
  /// For the rest of the call.
  bool cancelled() const { return (word_.load(std::memory_order_relaxed) & kCancelled) != 0; }

 private:
  static constexpr uint32_t kRunning = 1;
  static constexpr uint32_t kCancelled = 2;
  static constexpr uint32_t kFlags = kRunning | kCancelled;
  static constexpr uint32_t kNextCall = 4;

  std::atomic<uint32_t> word_{0};  // the number of the latest call, and the flags
};

}  // namespace oriel_internal
