// The pictures of a call, and how they become rows.
#pragma once

#include "base/stop_check.h"
#include "exec/picture_store.h"

namespace oriel_internal {

class PictureSource {
 public:
  virtual uint32_t count() const = 0;
  /// Checks a picture and describes its rows; `first` stays 0.
  virtual Status layOut(uint32_t index, const Log& log, HeldPicture* picture) = 0;
  /// Writes its rows. The caller holds the device's turn.
  virtual Status encode(uint32_t index, const Log& log, const StopCheck& stop, float* rows) = 0;

 protected:
  ~PictureSource() = default;
};

}  // namespace oriel_internal
