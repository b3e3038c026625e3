// Measures the stack depth of threads: paints stacks before the run and inspects them afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal::test {

/// A thread's stack below the frame that calls its body; excludes thread-local data and the guard.
struct StackUse {
  size_t room_bytes = 0;
  size_t used_bytes = 0;
};

/// Threads created by this program's objects (not by a driver) with pthread_create, and refused ones.
struct ThreadCount {
  uint32_t made = 0;
  uint32_t refused = 0;
};
ThreadCount countThreads();
/// The ended thread with the deepest stack, among those with `least_bytes` to `most_bytes`; zeros: none.
StackUse deepestThread(size_t least_bytes, size_t most_bytes);

}  // namespace oriel_internal::test
