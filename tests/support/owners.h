// The public API with owners and call helpers, independent of a test framework.
#pragma once

#include <memory>
#include <vector>

#include "support/options.h"

namespace oriel_internal::test {

struct FreeModel {
  void operator()(oriel_model* model) const { oriel_model_free(model); }
};
struct DestroySession {
  void operator()(oriel_session* session) const { oriel_session_destroy(session); }
};
using ModelPtr = std::unique_ptr<oriel_model, FreeModel>;
using SessionPtr = std::unique_ptr<oriel_session, DestroySession>;

/// A loaded model with a session.
struct Loaded {
  ModelPtr model;
  SessionPtr session;
};

/// Callback of a generation: collects the ids in `user`, a std::vector<int32_t>.
inline int keepId(const oriel_token_event* event, void* user) {
  static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
  return 0;
}

/// Callback of an evaluation: collects the logits in `user`, a std::vector<std::vector<float>>.
inline int keepRow(size_t, const float* logits, size_t n, void* user) {
  static_cast<std::vector<std::vector<float>>*>(user)->emplace_back(logits, logits + n);
  return 0;
}

/// Always the most likely token, at most `max_tokens` times (0: unlimited), until a stop token.
inline ReplyOptions greedyOptions(uint32_t max_tokens) {
  ReplyOptions options;
  options.max_tokens = max_tokens;
  options.greedy = 1;
  return options;
}

inline oriel_status goBackTo(oriel_session* session, uint64_t position) {
  return oriel_session_go_back(session, ORIEL_BACK_TO_POSITION, position, nullptr, 0);
}

/// `n` reproducible ids below `n_vocab`.
inline std::vector<int32_t> someIds(size_t n, int32_t n_vocab) {
  std::vector<int32_t> ids(n);
  uint32_t state = 12345;
  for (int32_t& id : ids) {
    state = state * 1664525u + 1013904223u;
    id = static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(n_vocab));
  }
  return ids;
}

}  // namespace oriel_internal::test
