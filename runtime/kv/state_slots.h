// Which version of a recurrent state lies in which slot: the one after the last committed token, and checkpoints.
#pragma once

#include <cstdint>

#include "kv/memory.h"

namespace oriel_internal {

/// A long text without messages gets a checkpoint every so many tokens. They cost nothing to make, and what is kept of
/// them thins out with age; this is what going back a little reads again at most, a few prefill batches.
constexpr uint64_t kCheckpointTokens = 256;

/// A step reads the state after the last committed token and writes another slot, so that a step which is not
/// committed has touched nothing that counts. A checkpoint is a slot that is not written again until it is dropped: to
/// make one copies nothing. The state before the first token is zeros and needs no slot.
///
/// Two slots besides the checkpoints always suffice. Where the latest state is a checkpoint itself, a step and one
/// begun ahead of it find two that nobody needs; where it is not, they find one, and the step ahead, which begins when
/// the step is over, writes where the latest state was.
class StateSlots {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  /// At most kMaxCheckpoints.
  void init(uint32_t checkpoints) {
    capacity_ = checkpoints;
    restart(0);
  }
  /// The state of so many tokens lies in slot 0, and nothing else counts. 0: zeros.
  void restart(uint64_t position) {
    current_ = 0;
    next_ = 1;
    zeros_ = position == 0;
    before_ = latest_start_ = kNone;
    count_ = 0;
  }

  /// What a step reads and writes, or one behind that step (`ahead`), which reads what it writes.
  View view(bool ahead) const {
    View view = {};
    view.slot = ahead ? behindNext() : next_;
    view.begin = ahead ? next_ : current_;
    view.count = ahead || !zeros_ ? 1 : 0;
    return view;
  }
  uint32_t current() const { return current_; }

  /// A step may have begun to write.
  void writing() {
    before_ = kNone;
    next_ = freeBut(current_, current_);
  }
  /// The step behind `position` tokens is committed; `kept`: nothing has been begun behind it.
  void commit(uint64_t position, bool kept) {
    const uint32_t ahead = behindNext();
    before_ = kept ? position : kNone;
    before_slot_ = current_;
    current_ = next_;
    next_ = ahead;
    zeros_ = false;
  }

  /// Keeps the state after `position` tokens, which is the latest. `start`: a message begins here; the latest start is
  /// not dropped. Checkpoints that are not usable(position) any more, and so never will be, go first; then the one that
  /// is missed least.
  template <typename Usable>
  void keep(uint64_t position, bool start, const Usable& usable) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      if (usable(checkpoints_[i].position)) {
        checkpoints_[kept++] = checkpoints_[i];
      }
    }
    count_ = kept;
    latest_start_ = start ? position : latest_start_;
    if (zeros_ || (count_ != 0 && checkpoints_[count_ - 1].position == position)) {
      return;
    }
    if (count_ == capacity_ && !dropOne(position)) {
      return;
    }
    checkpoints_[count_++] = {position, current_};
  }
  /// Whether a text without messages has gone on for long enough.
  bool isDue(uint64_t position) const {
    return capacity_ != 0 &&
           position - (count_ != 0 ? checkpoints_[count_ - 1].position : 0) >= kCheckpointTokens;
  }

  /// Calls visit(tokens) for every state there is but the latest, that of the most tokens first and zeros last, until
  /// it returns true.
  template <typename Visit>
  void forEachBefore(uint64_t position, const Visit& visit) const {
    bool one_step = before_ != kNone && before_ != 0;
    for (uint32_t i = count_; i-- > 0;) {
      const uint64_t tokens = checkpoints_[i].position;
      if (one_step && before_ > tokens) {
        one_step = false;
        if (visit(before_)) {
          return;
        }
      }
      one_step = one_step && before_ != tokens;
      if (tokens < position && visit(tokens)) {
        return;
      }
    }
    if (!(one_step && visit(before_)) && position != 0) {
      visit(0);
    }
  }
  /// The state after `tokens`, which forEachBefore() showed, is the latest. Later ones count no more.
  void goBack(uint64_t tokens) {
    while (count_ != 0 && checkpoints_[count_ - 1].position > tokens) {
      --count_;
    }
    if (tokens == 0) {
      restart(0);
      return;
    }
    current_ = count_ != 0 && checkpoints_[count_ - 1].position == tokens
                   ? checkpoints_[count_ - 1].slot
                   : before_slot_;
    before_ = kNone;
    latest_start_ = latest_start_ > tokens ? kNone : latest_start_;
  }

  uint32_t capacity() const { return capacity_; }
  uint64_t latestStart() const { return latest_start_; }
  uint32_t count() const { return count_; }
  /// Tokens of checkpoint `i`, ascending.
  uint64_t at(uint32_t i) const { return checkpoints_[i].position; }

 private:
  struct Checkpoint {
    uint64_t position;
    uint32_t slot;
  };

  bool isCheckpoint(uint32_t slot) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (checkpoints_[i].slot == slot) {
        return true;
      }
    }
    return false;
  }
  /// The first slot behind `slot`, round the ring, that no checkpoint needs and that is not `but`.
  uint32_t freeBut(uint32_t slot, uint32_t but) const {
    const uint32_t n_slots = kStateSlots + capacity_;
    uint32_t found = (slot + 1) % n_slots;
    while (found == but || isCheckpoint(found)) {
      found = (found + 1) % n_slots;
    }
    return found;
  }
  /// What a step behind the one that writes next_ writes: by then the latest state is not needed, unless kept.
  uint32_t behindNext() const { return isCheckpoint(current_) ? freeBut(next_, next_) : current_; }

  /// Without checkpoint i what it leads to is read again from the one before it. That is missed less the longer ago it
  /// is: what going back reads stays in proportion to how far it goes.
  bool dropOne(uint64_t position) {
    uint32_t least = count_;
    double least_missed = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      const uint64_t tokens = checkpoints_[i].position;
      if (tokens == latest_start_) {
        continue;
      }
      const double more = static_cast<double>(tokens - (i != 0 ? at(i - 1) : 0));
      const double missed = more / static_cast<double>(position - tokens);
      if (least == count_ || missed < least_missed) {
        least = i;
        least_missed = missed;
      }
    }
    if (least == count_) {
      return false;
    }
    for (uint32_t i = least; i + 1 < count_; ++i) {
      checkpoints_[i] = checkpoints_[i + 1];
    }
    --count_;
    return true;
  }

  Checkpoint checkpoints_[kMaxCheckpoints];  ///< count_ of them, ascending
  uint32_t count_ = 0;
  uint32_t capacity_ = 0;
  uint32_t current_ = 0;
  uint32_t next_ = 1;  ///< what the step behind the latest state writes
  bool zeros_ = true;  ///< the latest state is that before the first token
  uint32_t before_slot_ = 0;
  uint64_t before_ = kNone;        ///< tokens that the state in before_slot_ is of
  uint64_t latest_start_ = kNone;  ///< of messages
};

}  // namespace oriel_internal
