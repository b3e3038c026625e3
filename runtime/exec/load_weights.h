// Streams a file's weights to an executor and repacks them on the way.
#pragma once

#include <algorithm>
#include <iterator>

#include "exec/executor.h"
#include "gguf/gguf.h"
#include "model/adapters.h"

namespace oriel_internal {

/// The files of a plan's weights, by GgufTensor::file.
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

/// Working memory for reading, for the duration of the call. A file in memory needs room only to transpose matrices.
struct LoadRoom {
  const oriel_allocator& allocator;
  uint64_t bytes = 256 << 10;  ///< limit, or one row of a matrix if that is larger
};

/// Bytes that loadWeights() uploads.
uint64_t uploadBytes(const Plan& plan);

/// Carries out plan.uploads, reading `files` piece by piece.
///
/// - `progress` runs after every uploaded piece and, if `tells_reads`, also before a read, with the previous values.
/// - *hash, unless null, is extended by every byte read from the model's file. For tensors that may stay in the file,
///   it is extended by a sample of their rows, read or not. The order and size of pieces do not change it.
/// - The hash of each of `adapters` is extended by its tensors.
/// - ORIEL_ERROR_CANCELLED: the callback asked to stop. ORIEL_ERROR_IO: the file was truncated meanwhile.
Status loadWeights(const WeightFiles& files, const Plan& plan, const LoadProgress& progress,
                   const LoadRoom& room, const Log& log, Executor* executor, uint64_t* hash,
                   bool tells_reads = false, Adapters* adapters = nullptr);

}  // namespace oriel_internal
