// What a session was made with: its options, with copies of their texts, outside the plan.
#pragma once

#include <atomic>

#include "base/choices.h"
#include "base/log.h"

namespace oriel_internal {

/// Shared by a session and its forks. Null where no option was given.
struct SessionTexts {
  std::atomic<uint32_t> owners{1};
  uint64_t bytes = 0;  ///< of the block
  SessionSettings settings = {};

  /// Copies what `settings` points to, and points it to the copies.
  static Status copy(const oriel_allocator& allocator, const Log& log, SessionSettings* settings,
                     SessionTexts** out);
  static SessionTexts* share(SessionTexts* texts);
  static void drop(const oriel_allocator& allocator, SessionTexts* texts);
};

}  // namespace oriel_internal
