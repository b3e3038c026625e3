// Creates sessions.
#pragma once

#include "api/api.h"

namespace oriel_internal {

// The start state of a session.
struct SessionSeed {
  const Session* from = nullptr;  // fork of this session
  uint64_t assumed_tokens = 0;
  uint64_t chat_hash = 0;
  const float* scales = nullptr;  ///< of adapters; null: the model has no adapters
};

// Size of a session's own block.
uint64_t sessionBlockBytes(const oriel_model& model, uint32_t index);
// Implements oriel_session_fork, within a call on the source.
Status forkSession(oriel_session* source, Guard::Call* call, oriel_session** out);

}  // namespace oriel_internal
