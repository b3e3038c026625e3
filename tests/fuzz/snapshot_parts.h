// Takes a snapshot apart, changes it and assembles it again: lists have the lengths in the header, values are within
// bounds, and checksums are valid. Tests only.
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

/// The header of a snapshot; zeros past its end.
SnapshotHeader headerOf(const std::string& bytes);
/// Sets the fields that only saving computes: magic, size and both checksums. Keeps the version if this build supports
/// it, otherwise uses that of the state.
void makeTrue(std::string* bytes);

/// False if incomplete.
bool takeSnapshotApart(const std::string& bytes, SnapshotParts* parts);
/// Makes one meaningful change, with its dependencies.
void changeSnapshot(Chance* chance, SnapshotParts* parts);
std::string putTogether(SnapshotParts parts);

}  // namespace oriel_internal::fuzz
