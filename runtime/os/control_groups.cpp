// Linux only. https://docs.kernel.org/admin-guide/cgroup-v2.html and cgroup-v1/memory.html
#define _FILE_OFFSET_BITS 64
#include "os/os.h"

#include <algorithm>
#include <cstdio>

#include "os/posix_file.h"

namespace oriel_internal {
namespace {

/// The files of one cgroup version, and its usual mount point.
struct Version {
  const char* mount;
  const char* limit;
  const char* throttle;  ///< a limit at which the kernel slows the group down; nullptr: none
  const char* used;
  /// Labels in memory.stat, for the group and its children: file pages, which the kernel drops (after writing dirty
  /// ones) before a limit is exceeded. "file" and "cache" also count shmem and tmpfs, which it cannot drop; those pages
  /// are on the anonymous lists.
  const char* reclaimable[2];
};
constexpr Version kUnified = {"/sys/fs/cgroup",
                              "memory.max",
                              "memory.high",
                              "memory.current",
                              {"\ninactive_file ", "\nactive_file "}};
/// If version 1 is also mounted, version 2 has no memory files, and the limits of version 1 apply.
constexpr Version kLegacy = {"/sys/fs/cgroup/memory",
                             "memory.limit_in_bytes",
                             nullptr,
                             "memory.usage_in_bytes",
                             {"\ntotal_inactive_file ", "\ntotal_active_file "}};

/// Space for a file name after a group's path.
constexpr size_t kFileNameBytes = 32;

/// Reads FOLDER/NAME; false if missing. Uses the free space after `folder` and restores it.
template <size_t N>
bool readIn(char* folder, size_t length, const char* name, char (&text)[N]) {
  std::snprintf(folder + length, kFileNameBytes, "/%s", name);
  const bool found = readText(folder, text, N);
  folder[length] = '\0';
  return found;
}

/// UINT64_MAX: FOLDER/NAME is missing or says "max".
uint64_t limitIn(char* folder, size_t length, const char* name) {
  char text[64];
  const bool is_number =
      name != nullptr && readIn(folder, length, name, text) && text[0] >= '0' && text[0] <= '9';
  return is_number ? std::strtoull(text, nullptr, 10) : UINT64_MAX;
}

/// Free bytes in one group; UINT64_MAX: no limit.
uint64_t freeInGroup(char* folder, size_t length, const Version& version) {
  const uint64_t limit =
      std::min(limitIn(folder, length, version.limit), limitIn(folder, length, version.throttle));
  if (limit == UINT64_MAX) {
    return UINT64_MAX;
  }
  char text[8192];
  uint64_t used = 0;
  if (readIn(folder, length, version.used, text)) {
    used = std::strtoull(text, nullptr, 10);
  }
  if (readIn(folder, length, "memory.stat", text)) {
    for (const char* const label : version.reclaimable) {
      used -= std::min(used, numberAfter(text, label));
    }
  }
  return limit - std::min(limit, used);
}

/// The minimum over the group and its parents, up to the mount. In a container the group may not be visible below the
/// mount; the mount is then the container's own group.
uint64_t freeUpwards(const char* root, const Version& version, const char* group) {
  char folder[kMaxPathBytes];
  const int mount = std::snprintf(folder, sizeof(folder), "%s%s", root, version.mount);
  const int whole = std::snprintf(folder, sizeof(folder), "%s%s%s", root, version.mount, group);
  if (mount < 0 || whole < mount || static_cast<size_t>(whole) + kFileNameBytes >= sizeof(folder)) {
    return UINT64_MAX;
  }
  uint64_t least = UINT64_MAX;
  size_t end = static_cast<size_t>(whole);
  for (;;) {
    while (end > static_cast<size_t>(mount) && folder[end - 1] == '/') {
      --end;
    }
    folder[end] = '\0';
    least = std::min(least, freeInGroup(folder, end, version));
    if (end <= static_cast<size_t>(mount)) {
      return least;
    }
    while (end > static_cast<size_t>(mount) && folder[end - 1] != '/') {
      --end;
    }
  }
}

/// True if the comma-separated list contains "memory".
bool namesMemory(const char* controllers) {
  constexpr char kMemory[] = "memory";
  constexpr size_t kLength = sizeof(kMemory) - 1;
  for (const char* at = controllers; at != nullptr; at = std::strchr(at, ',')) {
    at += *at == ',' ? 1 : 0;
    if (std::strncmp(at, kMemory, kLength) == 0 && (at[kLength] == ',' || at[kLength] == '\0')) {
      return true;
    }
  }
  return false;
}

/// A line "NUMBER:CONTROLLERS:GROUP". Version 2 has number 0 and no controllers.
uint64_t freeByLine(const char* root, char* line) {
  char* const controllers = std::strchr(line, ':');
  char* const group = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
  if (group == nullptr || group[1] != '/') {
    return UINT64_MAX;
  }
  *controllers = *group = '\0';
  // A group outside this process's view is shown as "/../..".
  const char* const path = std::strstr(group + 1, "/..") != nullptr ? "/" : group + 1;
  if (controllers[1] == '\0' && std::strcmp(line, "0") == 0) {
    return freeUpwards(root, kUnified, path);
  }
  return namesMemory(controllers + 1) ? freeUpwards(root, kLegacy, path) : UINT64_MAX;
}

}  // namespace

uint64_t freeInControlGroups(const char* root) {
  char text[kMaxPathBytes + 256];  // a line fits
  std::snprintf(text, sizeof(text), "%s/proc/self/cgroup", root);
  const Descriptor file(openRetrying(text, O_RDONLY));
  uint64_t least = UINT64_MAX;
  size_t used = 0;
  bool skips = false;  // skipping the rest of a line that was too long
  for (bool more = file.valid(); more;) {
    const ssize_t got = ::read(file.get(), text + used, sizeof(text) - 1 - used);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    more = got > 0;
    used += more ? static_cast<size_t>(got) : 0;
    if (!more && used > 0) {
      text[used++] = '\n';  // the last line lacks a newline
    }
    text[used] = '\0';
    char* line = text;
    for (char* end = nullptr; (end = std::strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      least = std::min(least, skips ? UINT64_MAX : freeByLine(root, line));
      skips = false;
    }
    used -= static_cast<size_t>(line - text);
    std::memmove(text, line, used);
    if (used == sizeof(text) - 1) {
      skips = true;
      used = 0;
    }
  }
  return least;
}

}  // namespace oriel_internal
