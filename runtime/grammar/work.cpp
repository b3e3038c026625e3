#include "grammar/work.h"

namespace oriel_internal {
namespace {

// What patterns of usual size take; larger ones ask the system for more, and give it back.
constexpr size_t kKeptBytes = 256 * 1024;
// Of memory that is taken anew: it is mapped, set to zeros, overwritten and given back.
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
