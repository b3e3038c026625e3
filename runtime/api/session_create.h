// Making sessions.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// What a session begins with.
struct SessionSeed {
  const Session* from = nullptr;  ///< another one goes on as this
  uint64_t assumed_tokens = 0;
  uint64_t chat_hash = 0;
};

/// Of a session's own block.
uint64_t sessionBlockBytes(const oriel_model& model, uint32_t index);
/// How many the model has.
uint32_t takenSessions(const oriel_model& model);
/// All of a model's sessions, as long as the object is there, so that none can be made. held(): whether all were free.
class AllSessions {
 public:
  explicit AllSessions(oriel_model* model);
  ~AllSessions();
  AllSessions(const AllSessions&) = delete;
  AllSessions& operator=(const AllSessions&) = delete;
  bool held() const { return count_ == model_.plan.sessionCount(); }

 private:
  oriel_model& model_;
  uint32_t count_ = 0;  ///< the first of them, that are held
};
/// As oriel_session_fork, within a call on the source.
Status forkSession(oriel_session* source, oriel_session** out);

}  // namespace oriel_internal
