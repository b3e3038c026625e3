// Where weights come from that stay in the model's file.
#pragma once

#include "os/os.h"

namespace oriel_internal {

/// The model's file while a model is there: on disk, or all of it in memory. What lies in it was checked when it was
/// opened.
struct WeightSource {
  const InputFile* file = nullptr;
  const uint8_t* memory = nullptr;  ///< where there is no file

  bool inMemory() const { return memory != nullptr; }
  /// `bytes` from `offset` on, in *data: that is `room`, or where they are in memory anyhow. ORIEL_ERROR_IO when they
  /// are gone or cannot be read.
  Status read(uint64_t offset, uint64_t bytes, void* room, const Log& log,
              const uint8_t** data) const {
    *data = inMemory() ? memory + offset : static_cast<const uint8_t*>(room);
    return inMemory() ? Status(kOk) : file->read(offset, room, bytes, log);
  }
  /// They will be read soon.
  void readAhead(uint64_t offset, uint64_t bytes) const {
    if (!inMemory() && bytes != 0) {
      file->readAhead(offset, bytes);
    }
  }
  /// After reading: ORIEL_ERROR_IO when somebody has written to the file since it was opened, so that what was read
  /// may be anything.
  Status expectUnchanged(const Log& log) const {
    return inMemory() ? Status(kOk) : file->expectUnchanged(log);
  }
};

}  // namespace oriel_internal
