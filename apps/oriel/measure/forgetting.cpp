#include "measure/forgetting.h"

#include <algorithm>

#include "output.h"
#include "plan/plan_source.h"
#include "sizes.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

/// " (--window 3300 --memory 14.2MiB holds all of it)"; for a text longer than the trained context " (--window max holds
/// 8192, all that the model was trained on)"; "" if no options help.
std::string remedy(const CommonOptions& options, const oriel_plan& plan, uint64_t window_tokens) {
  const uint32_t trained = plan.context_train_tokens;
  const bool fits_training = trained == 0 || plan.sink_tokens + window_tokens <= trained;
  const uint64_t longest = trained - std::min(trained, plan.sink_tokens);
  if (window_tokens > UINT32_MAX || (!fits_training && plan.window_tokens >= longest)) {
    return "";
  }
  CommonOptions longer = options;
  longer.load.set("window", fits_training ? window_tokens : longest);
  longer.load.set("sinks", plan.sink_tokens);
  longer.load.erase("min_window");
  const Json found = PlanSource::ofFile(modelPath(options)).tryPlan(memoryOptions(longer));
  if (found.is_null()) {
    return "";
  }
  const uint64_t least = numberIn(found, "minimum_bytes");
  const std::string memory = least <= plan.memory_bytes ? "" : " --memory " + suggestSize(least);
  return fits_training
             ? " (--window " + std::to_string(window_tokens) + memory + " holds all of it)"
             : " (--window max" + memory + " holds " + grouped(trained) +
                   ", all that the model was trained on)";
}

}  // namespace

void tellLoss(const std::string& what, uint64_t lost, uint64_t tokens, uint64_t window_tokens,
              const CommonOptions& options, const oriel_plan& plan) {
  tellText("oriel: warning: " + what + " has " + countOf(tokens, "token") +
           ", and the model no longer sees " + grouped(lost) + " of them: the context holds " +
           grouped(uint64_t{plan.sink_tokens} + plan.window_tokens) +
           remedy(options, plan, window_tokens) + "\n");
}

TurnsSeen turnsSeen(const Session& session) {
  const Json now = session.describe();
  TurnsSeen seen;
  seen.position = numberIn(now, "position");
  seen.first_seen = numberIn(now, "first_visible");
  seen.sinks = numberIn(now, "sinks_used");
  seen.starts = now["turns"].get<std::vector<uint64_t>>();
  return seen;
}

std::string forgottenText(const TurnsSeen& before, const TurnsSeen& now) {
  // A turn is evicted when its successor contains the first visible token.
  uint64_t turns = 0;
  bool part = false;
  for (size_t i = 0; i < now.starts.size(); ++i) {
    const uint64_t begin = std::max(now.starts[i], now.sinks);
    const uint64_t end = i + 1 < now.starts.size() ? now.starts[i + 1] : now.position;
    const bool was_seen = before.first_seen < end;
    if (begin < end && was_seen && now.first_seen >= end) {
      ++turns;
    } else if (begin < now.first_seen && now.first_seen < end &&
               before.first_seen < now.first_seen) {
      part = true;
    }
  }
  if (turns != 0) {
    return std::to_string(turns) + (turns == 1 ? " turn dropped" : " turns dropped");
  }
  return part ? "part of a turn dropped" : "";
}

uint64_t longestForgotten(const TurnsSeen& before, const TurnsSeen& now) {
  uint64_t longest = 0;
  for (size_t i = 0; i + 1 < now.starts.size(); ++i) {
    const uint64_t end = now.starts[i + 1];
    if (before.first_seen < end && now.first_seen >= end) {
      longest = std::max(longest, end - now.starts[i]);
    }
  }
  return longest;
}

}  // namespace cli
