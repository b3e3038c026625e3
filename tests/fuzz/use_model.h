// Model files as fuzz inputs: a header, and the number of weight bytes after it. The weights are generated, so inputs
// stay small.
#pragma once

#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "fuzz/gguf_parts.h"

namespace oriel_internal::fuzz {

/// Four bytes: number of weight bytes; four bytes: the target's choices; then the file.
constexpr size_t kModelHead = 8;
/// Limit on generated weights. Above it the file is truncated.
constexpr uint64_t kMostWeightBytes = 4 << 20;

struct ModelInput {
  ModelInput(const uint8_t* data, size_t size);
  /// With the weights.
  std::vector<uint8_t> file() const;

  uint64_t weight_bytes = 0;
  uint32_t choices = 0;
  std::vector<uint8_t> header;
};

std::string modelInput(uint32_t choices, GgufParts parts);
/// The headers of one small model of each family, its matrices of another type each time; with vocabularies.
std::vector<GgufParts> familyHeaders();
/// As ORIEL_FUZZ_MUTATE: changes the file's parts, most of the time, and says again how many weights it has.
size_t mutateModel(uint8_t* data, size_t size, size_t max_size, uint64_t seed, Care care);

/// Random numbers that are sound weights in every float format, and scales of blocks.
void makeWeights(uint8_t* bytes, size_t count);

/// A path private to this process, one per kind; the destructor removes the file.
class InputPath {
 public:
  explicit InputPath(const char* kind = "gguf");
  ~InputPath();
  InputPath(const InputPath&) = delete;
  InputPath& operator=(const InputPath&) = delete;
  void write(const std::vector<uint8_t>& bytes) const { write(bytes, bytes.size()); }
  /// With a hole after the bytes.
  void write(const std::vector<uint8_t>& bytes, uint64_t file_bytes) const;
  const char* c_str() const { return path_.c_str(); }

 private:
  std::string path_;
};

// A typical app's use of a model file: plans, loads, reads and generates.

/// Uses the file at `path` of `file_bytes` bytes, or is refused: every call follows checks.h, and memory stays within
/// the cap and twice the file. `choices` selects the options. Returns the status of the load.
oriel_status useModel(const char* path, uint64_t file_bytes, uint32_t choices);
/// Whether these choices load the header and the tokenizer only.
bool withoutWeights(uint32_t choices);
/// Plans alone. *fits: a load has the memory that it needs.
oriel_status planModel(const char* path, uint64_t file_bytes, uint32_t choices, bool* fits);

}  // namespace oriel_internal::fuzz
