// Streams a file's weights to an executor, repacking on the way.
#pragma once

#include <algorithm>
#include <iterator>

#include "exec/executor.h"
#include "gguf/gguf.h"
#include "model/adapters.h"

namespace oriel_internal {

/// Files that a plan's weights lie in, by GgufTensor::file.
struct WeightFiles {
  WeightFiles(const GgufFile& model,
              const GgufFile* draft_model = nullptr)  // NOLINT: implicit on purpose
      : of{&model, draft_model} {}
  const GgufFile* of[kAdapterFile + kMaxAdapters] = {};
  bool inMemory() const {
    return std::all_of(std::begin(of), std::end(of),
                       [](const GgufFile* file) { return file == nullptr || file->inMemory(); });
  }
};

/// Memory to read into, for the length of the call. None is taken for a file in memory, but what matrices that are
/// transposed need besides.
struct LoadRoom {
  const oriel_allocator& allocator;
  uint64_t bytes = 256 << 10;  ///< at most; one row of a matrix where that is more
};

/// Bytes that loadWeights() sends.
uint64_t uploadBytes(const Plan& plan);

/// Carries out plan.uploads, reading `files` piece by piece. `progress` is told of every piece that was sent and, where
/// `tells_reads`, before one is read: then with what it was told last.
/// *hash, unless null, is continued over every byte that was read of the model's file, of tensors that may stay in the file over a sample
/// of their rows, read or not: which parts they were read in, and which tensor came first, does not matter. ORIEL_ERROR_CANCELLED when the callback asks to stop, ORIEL_ERROR_IO
/// when the file was cut off meanwhile. The hash of each of `adapters` is continued over its tensors.
Status loadWeights(const WeightFiles& files, const Plan& plan, const LoadProgress& progress,
                   const LoadRoom& room, const Log& log, Executor* executor, uint64_t* hash,
                   bool tells_reads = false, Adapters* adapters = nullptr);

}  // namespace oriel_internal
