// Model files as inputs of targets: a header, and how many bytes of weights follow it. The weights are made up, so that
// an input stays small.
#pragma once

#include <string>
#include <vector>

#include "fuzz/gguf_parts.h"

namespace oriel_internal::fuzz {

/// Four bytes, how many of weights are behind the file; four of choices that the target makes; the file.
constexpr size_t kModelHead = 8;
/// Of made-up weights. What does not fit is a file cut off.
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

/// A path that is this process's own, one of each kind; the file is removed at the end of the object's life.
class InputPath {
 public:
  explicit InputPath(const char* kind = "gguf");
  ~InputPath();
  InputPath(const InputPath&) = delete;
  InputPath& operator=(const InputPath&) = delete;
  void write(const std::vector<uint8_t>& bytes) const { write(bytes, bytes.size()); }
  /// With a hole behind the bytes.
  void write(const std::vector<uint8_t>& bytes, uint64_t file_bytes) const;
  const char* c_str() const { return path_.c_str(); }

 private:
  std::string path_;
};

}  // namespace oriel_internal::fuzz
