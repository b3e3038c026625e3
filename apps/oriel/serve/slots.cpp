#include "serve/slots.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

namespace cli {
namespace {

constexpr std::chrono::milliseconds kLongestHold(100);
/// Held contents are given up only for a match of at least 1/this of them.
constexpr uint64_t kWorth = 4;

}  // namespace

Slots::Slots(std::vector<std::unique_ptr<Slot>> slots, uint32_t queue)
    : slots_(std::move(slots)), queue_(queue) {
  for (const auto& slot : slots_) {
    free_.push_back(slot.get());
  }
}

Slots::Lease::~Lease() { slots_->giveBack(slot_); }

void Slots::giveBack(Slot* slot) {
  {
    const std::lock_guard<std::mutex> hold(lock_);
    slot->last_used = ++uses_;
    free_.push_back(slot);
  }
  changed_.notify_all();
}

/// The longest match; without a worthwhile one an empty slot, or the least recently used.
Slot* Slots::best(const Matcher& match) const {
  const auto rank = [&](const Slot* slot) {
    const Slot::Match found = match(*slot);
    const uint64_t worth = found.kept * kWorth >= found.lost ? found.kept : 0;
    return std::make_tuple(worth, slot->empty(), UINT64_MAX - slot->last_used);
  };
  return *std::max_element(free_.begin(), free_.end(),
                           [&](const Slot* a, const Slot* b) { return rank(a) < rank(b); });
}

Slots::Lease Slots::take(const Matcher& match, const GivesUp& gives_up) {
  std::unique_lock<std::mutex> hold(lock_);
  if (waiting_.size() >= queue_ && (free_.empty() || !waiting_.empty())) {
    throw ApiError{429,
                   std::to_string(waiting_.size()) +
                       " requests wait already: ask again later, or start the server with more "
                       "--sessions or a longer --queue",
                   "", "queue_full", 2};
  }
  const auto mine = waiting_.insert(waiting_.end(), 0);
  while (mine != waiting_.begin() || free_.empty()) {
    changed_.wait_for(hold, kLongestHold);
    const std::optional<ApiError> reason = gives_up();
    if (reason) {
      waiting_.erase(mine);
      changed_.notify_all();
      throw ApiError(*reason);
    }
  }
  Slot* const slot = best(match);
  waiting_.erase(mine);
  free_.erase(std::find(free_.begin(), free_.end(), slot));
  changed_.notify_all();
  return {this, slot};
}

size_t Slots::busy() const {
  const std::lock_guard<std::mutex> hold(lock_);
  return slots_.size() - free_.size();
}

size_t Slots::waiting() const {
  const std::lock_guard<std::mutex> hold(lock_);
  return waiting_.size();
}

}  // namespace cli
