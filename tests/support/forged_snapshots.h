// Snapshots with arbitrary contents and valid checksums, like an attacker's.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "exec/snapshot.h"

namespace oriel_internal::test {

inline SnapshotHeader headerOf(const std::vector<uint8_t>& snapshot) {
  SnapshotHeader header;
  std::memcpy(static_cast<void*>(&header), snapshot.data(), sizeof(header));
  return header;
}

/// Recomputes both checksums: of the description, if complete, and of the whole.
inline void makeSumsTrue(std::vector<uint8_t>* snapshot) {
  const SnapshotHeader header = headerOf(*snapshot);
  const size_t described = sizeof(header) + size_t{header.n_memories} * sizeof(SnapshotMemory);
  for (const size_t at : {described, snapshot->size() - 8}) {
    if (at + 8 <= snapshot->size()) {
      const uint64_t sum = hashBytes(snapshot->data(), at);
      std::memcpy(snapshot->data() + at, &sum, 8);
    }
  }
}

/// `change` gets the session's state.
template <typename Change>
std::vector<uint8_t> forged(std::vector<uint8_t> snapshot, const Change& change) {
  SnapshotHeader header = headerOf(snapshot);
  change(&header.state);
  std::memcpy(snapshot.data(), &header, sizeof(header));
  makeSumsTrue(&snapshot);
  return snapshot;
}

}  // namespace oriel_internal::test
