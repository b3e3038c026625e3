#include "grammar/work.h"

namespace oriel_internal {
namespace {

// Enough for patterns of usual size. Larger ones borrow more and return it.
constexpr size_t kKeptBytes = 256 * 1024;
// Bytes per step for fresh memory, which is mapped, zeroed, overwritten and returned.
constexpr size_t kFreshBytesAStep = 4;

}  // namespace

Scratch* Work::begin() {
  if (room_.has_value() && !room_->failed()) {
    (void)spend((room_->usedBytes() - kKeptBytes) / kFreshBytesAStep);
    room_->releaseTo(empty_);
    return &*room_;
  }
  if (room_.has_value()) {
    (void)spend(room_->usedBytes() / kFreshBytesAStep);
  }
  room_.emplace(around_, kMostDfaBytes);
  if (room_->takeText(kKeptBytes) != nullptr) {
    empty_ = room_->place();
    empty_.used -= kKeptBytes;  // the block stays
    room_->releaseTo(empty_);
  }
  return &*room_;
}

}  // namespace oriel_internal
