// Threads for the CPU executor. Does not use the app's allocator; stacks come from the system.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// A joinable thread. Not movable.
class Thread {
 public:
  Thread() = default;
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Runs body(user) with at least `stack_bytes` of stack, besides the C library's own part (the app's thread-local
  /// data, a guard page). False if the system refuses.
  bool start(void (*body)(void* user), void* user, uint32_t stack_bytes);
  bool running() const { return running_; }
  void join();

 private:
  void (*body_)(void* user) = nullptr;
  void* user_ = nullptr;
  uintptr_t handle_ = 0;  // pthread_t or HANDLE
  bool running_ = false;

  friend struct ThreadEntry;
};

/// Processors that this process may use, at least 1.
uint32_t allowedProcessors();
/// Cores among them: processors that share a core count once. At most allowedProcessors().
uint32_t allowedCores();
/// Pins the calling thread to the `index`-th of allowedCores(). A no-op where unsupported.
void pinToCore(uint32_t index);
/// Index in allowedCores() of the calling thread's current core; UINT32_MAX: unknown.
uint32_t currentCore();
/// True for a 64-bit Arm processor with byte dot products (FEAT_DotProd).
bool processorHasDotProducts();
/// Lets another thread run.
void yieldProcessor();
/// Identifies the calling thread among live threads; never 0.
uintptr_t threadId();

}  // namespace oriel_internal
