#include "measure/forgetting.h"

#include <algorithm>

#include "output.h"
#include "plan/plan_source.h"
#include "sizes.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

/// " (--window 3300 --memory 14.2MiB holds all of it)"; of a text that is longer than what the model was trained on
/// " (--window max holds 8192, all that the model was trained on)"; "" where no options would help.
std::string remedy(const CommonOptions& options, const oriel_plan& plan, uint64_t window_tokens) {
  const uint32_t trained = plan.context_train_tokens;
  const bool fits_training = trained == 0 || plan.sink_tokens + window_tokens <= trained;
  const uint64_t longest = trained - std::min(trained, plan.sink_tokens);
  if (window_tokens > UINT32_MAX || (!fits_training && plan.window_tokens >= longest)) {
    return "";
  }
  CommonOptions longer = options;
  longer.window_tokens = static_cast<uint32_t>(fits_training ? window_tokens : longest);
  longer.min_window_tokens = 0;
  oriel_options wanted = planOptions(longer);
  wanted.min_tokens_per_s = 0;  // a question of memory
  wanted.sink_tokens = plan.sink_tokens == 0 ? UINT32_MAX : plan.sink_tokens;
  oriel_plan found;
  if (!PlanSource::ofFile(modelPath(options)).tryPlan(wanted, &found)) {
    return "";
  }
  const bool fits = found.minimum_bytes <= plan.memory_bytes;
  const std::string memory = fits ? "" : " --memory " + suggestSize(found.minimum_bytes);
  return fits_training
             ? " (--window " + std::to_string(window_tokens) + memory + " holds all of it)"
             : " (--window max" + memory + " holds " + std::to_string(trained) +
                   ", all that the model was trained on)";
}

}  // namespace

void tellLoss(const std::string& what, uint64_t lost, uint64_t tokens, uint64_t window_tokens,
              const CommonOptions& options, const oriel_plan& plan) {
  tellText("oriel: warning: " + what + " has " + std::to_string(tokens) +
           " tokens, and the model no longer sees " + std::to_string(lost) + " of them: it holds " +
           std::to_string(uint64_t{plan.sink_tokens} + plan.window_tokens) +
           remedy(options, plan, window_tokens) + "\n");
}

TurnsSeen turnsSeen(const Session& session) {
  oriel_view view = {};
  view.struct_size = sizeof(view);
  session.check(oriel_session_get_view(session.get(), &view));
  TurnsSeen seen;
  seen.position = view.position;
  seen.first_seen = view.first_visible;
  seen.sinks = view.sinks_used;
  seen.starts.resize(view.turn_count);
  size_t needed = 0;
  session.check(
      oriel_session_get_turns(session.get(), seen.starts.data(), seen.starts.size(), &needed));
  return seen;
}

std::string forgottenText(const TurnsSeen& before, const TurnsSeen& now) {
  // A turn is gone when the next one, or what comes behind it, is the first that is seen.
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
    return std::to_string(turns) + (turns == 1 ? " turn forgotten" : " turns forgotten");
  }
  return part ? "part of a turn forgotten" : "";
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
