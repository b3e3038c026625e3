// Reads weights that stay in the model's file.
#pragma once

#include "os/os.h"

namespace oriel_internal {

/// The model's file, open as long as the model: on disk, or completely in memory. Its contents were checked when it was
/// opened.
struct WeightSource {
  const InputFile* file = nullptr;
  const uint8_t* memory = nullptr;  ///< the whole file, if it is in memory

  bool inMemory() const { return memory != nullptr; }
  /// Reads `bytes` from `offset` on. *data is `room`, or the place in memory. ORIEL_ERROR_IO if the file is gone or
  /// cannot be read.
  Status read(uint64_t offset, uint64_t bytes, void* room, const Log& log,
              const uint8_t** data) const {
    *data = inMemory() ? memory + offset : static_cast<const uint8_t*>(room);
    return inMemory() ? Status(kOk) : file->read(offset, room, bytes, log);
  }
  /// Announces a later read of these bytes.
  void readAhead(uint64_t offset, uint64_t bytes) const {
    if (!inMemory() && bytes != 0) {
      file->readAhead(offset, bytes);
    }
  }
  /// Call after reading. ORIEL_ERROR_IO: the file was written since it was opened, so the data read may be wrong.
  Status expectUnchanged(const Log& log) const {
    return inMemory() ? Status(kOk) : file->expectUnchanged(log);
  }
};

}  // namespace oriel_internal
