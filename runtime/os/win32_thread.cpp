#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>

#include "os/os.h"

namespace oriel_internal {

struct ThreadEntry {
  static DWORD WINAPI run(void* thread) {
    Thread* self = static_cast<Thread*>(thread);
    self->body_(self->user_);
    return 0;
  }
};

bool Thread::start(void (*body)(void* user), void* user, uint32_t stack_bytes) {
  body_ = body;
  user_ = user;
  const HANDLE handle = CreateThread(nullptr, stack_bytes, &ThreadEntry::run, this,
                                     STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  handle_ = reinterpret_cast<uintptr_t>(handle);
  running_ = handle != nullptr;
  return running_;
}

void Thread::join() {
  if (running_) {
    const HANDLE handle = reinterpret_cast<HANDLE>(handle_);
    (void)WaitForSingleObject(handle, INFINITE);
    (void)CloseHandle(handle);
    running_ = false;
  }
}

uint32_t allowedProcessors() {
  DWORD_PTR process = 0;
  DWORD_PTR system = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &system)) {
    return 1;
  }
  uint32_t count = 0;
  for (; process != 0; process &= process - 1) {
    ++count;
  }
  return count == 0 ? 1 : count;
}
// Asking which processors share a core would need a buffer of unknown size.
uint32_t allowedCores() { return allowedProcessors(); }
void pinToCore(uint32_t) {}
uint32_t currentCore() { return UINT32_MAX; }
#if defined(_M_ARM64) || defined(__aarch64__)
bool processorHasDotProducts() {
  constexpr DWORD kDotProducts = 43;  // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE
  return IsProcessorFeaturePresent(kDotProducts) != 0;
}
#else
bool processorHasDotProducts() { return false; }
#endif
void yieldProcessor() { (void)SwitchToThread(); }

uintptr_t threadId() { return GetCurrentThreadId(); }

}  // namespace oriel_internal
