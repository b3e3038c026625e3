// What a model no longer sees of what it was given, said where it happens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_handle.h"
#include "options.h"

namespace cli {

/// Says on stderr, wherever that leads, that `lost` of the `tokens` tokens of `what` are not seen, and with which
/// options a window of `window_tokens` would hold all of them.
void tellLoss(const std::string& what, uint64_t lost, uint64_t tokens, uint64_t window_tokens,
              const CommonOptions& options, const oriel_plan& plan);

/// Where the turns of a conversation begin and which of them are seen.
struct TurnsSeen {
  std::vector<uint64_t> starts;
  uint64_t position = 0;
  uint64_t first_seen = 0;  ///< behind the sinks
  uint64_t sinks = 0;
};
TurnsSeen turnsSeen(const Session& session);

/// What went between two moments: "2 turns dropped", "part of a turn dropped", "" for nothing.
std::string forgottenText(const TurnsSeen& before, const TurnsSeen& now);
/// Tokens of the longest turn that went as a whole between two moments, its reply included; 0: none.
uint64_t longestForgotten(const TurnsSeen& before, const TurnsSeen& now);

}  // namespace cli
