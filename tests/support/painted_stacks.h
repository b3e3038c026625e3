// How deep threads go: their stacks are painted before they run, and looked at when they have ended.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal::test {

/// A thread's stack below the frame that calls its body: thread-local data and the guard are not in it.
struct StackUse {
  size_t room_bytes = 0;
  size_t used_bytes = 0;
};

/// Threads made with pthread_create by objects in this program, so not by a driver, and those that were refused.
struct ThreadCount {
  uint32_t made = 0;
  uint32_t refused = 0;
};
ThreadCount countThreads();
/// The ended thread with the highest use, among those with `least_bytes` to `most_bytes` of room; zeros: there is none.
StackUse deepestThread(size_t least_bytes, size_t most_bytes);

}  // namespace oriel_internal::test
