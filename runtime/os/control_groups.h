// Memory that a Linux process's control groups leave free.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// Bytes still allowed by all groups of the process and their parents; UINT64_MAX: no limit. Supports both cgroup
/// versions, also mixed. Cached file pages count as free; shmem and tmpfs do not. `root` is put before "/proc" and
/// "/sys"; "" except in tests.
uint64_t freeInControlGroups(const char* root);

}  // namespace oriel_internal
