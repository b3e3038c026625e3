// Reports evicted text at the time of eviction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_handle.h"
#include "options.h"

namespace cli {

/// Reports on stderr that `lost` of `tokens` tokens of `what` are evicted, and the options with which a window of
/// `window_tokens` would hold all of them.
void tellLoss(const std::string& what, uint64_t lost, uint64_t tokens, uint64_t window_tokens,
              const CommonOptions& options, const oriel_plan& plan);

/// Turn starts of a conversation, and the visible turns.
struct TurnsSeen {
  std::vector<uint64_t> starts;
  uint64_t position = 0;
  uint64_t first_seen = 0;  ///< after the sinks
  uint64_t sinks = 0;
};
TurnsSeen turnsSeen(const Session& session);

/// The difference between two states: "2 turns dropped", "part of a turn dropped", "" for none.
std::string forgottenText(const TurnsSeen& before, const TurnsSeen& now);
/// Tokens of the longest turn that was completely evicted between two states, including its reply; 0: none.
uint64_t longestForgotten(const TurnsSeen& before, const TurnsSeen& now);

}  // namespace cli
