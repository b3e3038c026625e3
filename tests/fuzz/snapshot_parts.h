// A snapshot taken apart, changed and put together again: its lists have the lengths that its header speaks of, its
// values lie within each other's bounds, and its sums are true. Tests only.
#pragma once

#include <string>
#include <vector>

#include "exec/snapshot_format.h"
#include "exec/transcript.h"
#include "fuzz/fuzz.h"

namespace oriel_internal::fuzz {

struct SnapshotParts {
  struct Message {
    Transcript::Entry entry;
    std::string json;
  };

  SnapshotHeader header;
  std::vector<SnapshotMemory> memories;
  std::vector<uint64_t> turns;
  std::vector<int32_t> ids;
  std::string logits;
  std::vector<std::string> sides;  ///< memory by memory
  std::vector<Message> messages;
};

/// The header of a snapshot; zeros behind its end.
SnapshotHeader headerOf(const std::string& bytes);
/// Puts in what nobody could have saved otherwise: magic, size and both sums. The version is what the snapshot says, if
/// this build reads it, else that of its state.
void makeTrue(std::string* bytes);

/// False for one that is not whole.
bool takeSnapshotApart(const std::string& bytes, SnapshotParts* parts);
/// Changes one thing that means something, and with it what depends on it.
void changeSnapshot(Chance* chance, SnapshotParts* parts);
std::string putTogether(SnapshotParts parts);

}  // namespace oriel_internal::fuzz
