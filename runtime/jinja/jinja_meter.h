// Counts the work of a running template. The primitives count: taking memory, appending to lists and texts, comparing
// texts, looking names up. So no filter can forget it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "jinja/jinja.h"

namespace oriel_internal::jinja {

/// A unit is about a byte that is copied or compared. Once they are used up, or the work is stopped, it has ended:
/// primitives give nothing any more, and whoever asks is told why.
class Meter {
 public:
  enum class End : uint8_t { kNot, kUsedUp, kStopped };
  static constexpr uint64_t kUnitsBetweenStops = 1u << 18;

  void begin(uint64_t most_units, const JinjaStop& stop) {
    stop_ = stop;
    most_units_ = most_units;
    next_look_ = 0;  // the first work asks
  }
  /// False: it has ended.
  bool spend(uint64_t units) {
    units_ += units;
    return units_ < next_look_ || look();
  }
  End end() const { return end_; }
  uint64_t units() const { return units_; }
  uint64_t left() const {
    return end_ == End::kNot && units_ < most_units_ ? most_units_ - units_ : 0;
  }

 private:
  bool look() {
    if (end_ == End::kNot && units_ > most_units_) {
      end_ = End::kUsedUp;
    }
    if (end_ == End::kNot && stop_.asked != nullptr && stop_.asked(stop_.user)) {
      end_ = End::kStopped;
    }
    next_look_ = end_ != End::kNot ? 0 : std::min(units_ + kUnitsBetweenStops, most_units_ + 1);
    return end_ == End::kNot;
  }

  JinjaStop stop_;
  uint64_t units_ = 0;
  uint64_t most_units_ = UINT64_MAX - 1;
  uint64_t next_look_ = 0;
  End end_ = End::kNot;
};

}  // namespace oriel_internal::jinja
