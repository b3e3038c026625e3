// Which version of a recurrent state lies in which slot.
#pragma once

#include <cstdint>

#include "kv/memory.h"

namespace oriel {

/// A step reads the state after the last committed token and writes another slot, so that a step which is not
/// committed has touched nothing that counts. The state before the first token is zeros and needs no slot.
class StateSlots {
 public:
  /// Of a step behind `position` tokens, or of one behind that step (`ahead`), which reads what it writes.
  View view(uint64_t position, bool ahead) const {
    const uint32_t read = ahead ? 1 - current_ : current_;
    return {1 - read, 0, read, position != 0 ? 1u : 0u};
  }
  uint32_t current() const { return current_; }

  /// A step may have begun to write.
  void writing() { before_ = kNone; }
  /// The step behind `position` tokens is committed; `kept`: nothing has been begun behind it.
  void commit(uint64_t position, bool kept) {
    current_ = 1 - current_;
    before_ = kept ? position : kNone;
  }
  /// How many tokens the other slot's state is of; UINT64_MAX: it is of none that count.
  uint64_t before() const { return before_; }
  /// Whether the state after `kept` of `position` tokens is there.
  bool canRewind(uint64_t position, uint64_t kept) const {
    return kept == position || kept == 0 || kept == before_;
  }
  void rewind(uint64_t position, uint64_t kept) {
    if (kept != position && kept != 0) {
      current_ = 1 - current_;
    }
    if (kept != position) {
      before_ = kNone;
    }
  }
  /// The state lies in slot 0, or there is none yet.
  void restart() {
    current_ = 0;
    before_ = kNone;
  }

 private:
  static_assert(kStateSlots == 2, "one is read, the other written");
  static constexpr uint64_t kNone = UINT64_MAX;
  uint32_t current_ = 0;
  uint64_t before_ = kNone;  ///< tokens that the state in the other slot is of
};

}  // namespace oriel
