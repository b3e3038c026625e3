// Making sessions.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// What a session begins with.
struct SessionSeed {
  const Session* from = nullptr;  ///< another one goes on as this
  uint64_t assumed_tokens = 0;
  uint64_t chat_hash = 0;
  const float* scales = nullptr;  ///< of adapters; null: there are none
};

/// Of a session's own block.
uint64_t sessionBlockBytes(const oriel_model& model, uint32_t index);
/// As oriel_session_fork, within a call on the source.
Status forkSession(oriel_session* source, Guard::Call* call, oriel_session** out);

}  // namespace oriel_internal
