// How much memory the control groups of a Linux process leave it.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// Bytes that all groups the process is in still allow, those above them included; UINT64_MAX: no limit. Both
/// versions, and both at once. Cached pages of files count as free, used lately or not; those of shmem and tmpfs do not.
/// `root` stands before "/proc" and "/sys": "" but in tests.
uint64_t freeInControlGroups(const char* root);

}  // namespace oriel_internal
