// Files in parts, for fuzzing: GGUF files and snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/snapshot.h"
#include "exec/transcript.h"
#include "fuzz/fuzz.h"
#include "support/gguf_writer.h"

namespace oriel_internal::fuzz {

// Takes a GGUF file apart as far as possible, changes it in meaningful ways, and assembles it again. Reads the format
// independently, so that the library's reader can be compared.

// Types of values by their number in the file, and how many bytes each takes; 0: as many as it says.
constexpr uint32_t kTextType = static_cast<uint32_t>(test::ValueType::kString);
constexpr uint32_t kListType = static_cast<uint32_t>(test::ValueType::kArray);
constexpr size_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct GgufParts {
  using Key = test::GgufWriter::Key;
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    uint32_t type = 0;
    uint64_t offset = 0;
  };

  uint32_t version = 3;
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::vector<uint8_t> data;  ///< after the header
  bool whole = false;         ///< everything that was counted was there

  /// Null if missing; the first of duplicates.
  Key* find(const std::string& name);
  const Key* find(const std::string& name) const {
    return const_cast<GgufParts*>(this)->find(name);
  }
  /// The value of a text; "" for anything else.
  std::string textOf(const std::string& name) const;
  uint64_t alignment() const;
  /// Assigns consecutive offsets by shapes and types; returns the bytes of all tensors' data.
  uint64_t layOut();
};

GgufParts takeGgufApart(const uint8_t* bytes, size_t size);
/// The header, padded, followed by `data`.
std::vector<uint8_t> putTogether(const GgufParts& parts);

/// Bytes of a tensor's data by the format; UINT64_MAX on overflow, 0 for unknown types.
uint64_t tensorBytes(const GgufParts::Tensor& tensor);

// Keys of models, set or replaced. Types by their number in the file.
void setNumber(const std::string& name, uint32_t type, double value, GgufParts* parts);
void setText(const std::string& name, const std::string& text, GgufParts* parts);
void setList(const std::string& name, const std::vector<int32_t>& values, GgufParts* parts);

/// Elements of an array value as in the file, if complete; otherwise none.
struct ArrayParts {
  uint32_t element_type = 0;
  uint64_t said_count = 0;
  std::vector<std::string> elements;
};
ArrayParts takeArrayApart(const GgufParts::Key& key);
std::vector<uint8_t> arrayValue(const ArrayParts& array);

/// The keys that a mutator changes.
enum class Care { kAnything, kModel, kTokenizer, kPrefix };

/// Changes one thing.
void mutateGguf(GgufParts* parts, Care care, Chance* chance);

// Takes a snapshot apart, changes it and assembles it again: lists have the lengths in the header, values are within
// bounds, and checksums are valid. Tests only.

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
