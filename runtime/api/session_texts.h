// A session's options with copies of their texts. They are not part of the plan.
#pragma once

#include <atomic>

#include "base/choices.h"
#include "base/log.h"

namespace oriel_internal {

// Shared by a session and its forks. Null without options.
struct SessionTexts {
  std::atomic<uint32_t> owners{1};
  uint64_t bytes = 0;  ///< of the block
  SessionSettings settings = {};

  // Copies the texts of `settings` and points it at the copies.
  static Status copy(const oriel_allocator& allocator, const Log& log, SessionSettings* settings,
                     SessionTexts** out);
  static SessionTexts* share(SessionTexts* texts);
  static void drop(const oriel_allocator& allocator, SessionTexts* texts);
};

}  // namespace oriel_internal
