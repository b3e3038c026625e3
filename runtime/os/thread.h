// Threads as the CPU executor needs them. Nothing here takes memory from the app's allocator: stacks are the
// system's.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// A joinable thread. Not movable: it is started once, where it lies.
class Thread {
 public:
  Thread() = default;
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Runs body(user) with at least `stack_bytes` of stack, besides what the C library takes from a stack (thread-local
  /// data of the app, a guard page). False when the system refuses.
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
/// Cores among them: of processors that share one core, one counts. At most allowedProcessors().
uint32_t allowedCores();
/// Keeps the calling thread on the `index`-th of allowedCores(), where the system can; else does nothing.
void pinToCore(uint32_t index);
/// Which of allowedCores() the calling thread runs on just now; UINT32_MAX: unknown.
uint32_t currentCore();
/// Of a 64-bit Arm processor: it has dot products of bytes (FEAT_DotProd). Of others false.
bool processorHasDotProducts();
/// Lets another thread run, if one wants to.
void yieldProcessor();
/// The calling thread, among those that live; never 0.
uintptr_t threadId();

}  // namespace oriel_internal
