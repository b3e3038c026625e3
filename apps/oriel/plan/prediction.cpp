#include "plan/prediction.h"

#include <algorithm>
#include <string>

#include "plan/plan_source.h"

namespace cli {
namespace {

/// Of the layers' memories: what is seen behind `depth` tokens.
double cacheBytes(const oriel_plan& plan, double depth) {
  double bytes = 0;
  for (uint32_t i = 0; i < plan.group_count; ++i) {
    const oriel_layer_group& group = plan.groups[i];
    const double most = static_cast<double>(group.window_tokens) +
                        (group.kind == ORIEL_LAYERS_SESSION ? plan.sink_tokens : 0);
    bytes += static_cast<double>(group.bytes_per_token) *
             (group.kind == ORIEL_LAYERS_STATE ? 1 : std::min(depth, most));
  }
  return bytes;
}

double storedBytes(const oriel_plan& plan) {
  double bytes = 0;
  for (uint32_t i = 0; i < plan.group_count; ++i) {
    bytes += static_cast<double>(plan.groups[i].bytes_per_token);
  }
  return bytes;
}

}  // namespace

oriel_plan predictedPlan(const oriel_plan& loaded, const CommonOptions& options,
                         const oriel_speed& speed) {
  oriel_options again = planOptions(options);
  again.min_tokens_per_s = 0;
  again.min_window_tokens = 0;
  again.memory_bytes = loaded.memory_bytes;
  again.window_tokens = loaded.window_tokens;
  again.sink_tokens = loaded.sink_tokens == 0 ? UINT32_MAX : loaded.sink_tokens;
  again.chunk_tokens = loaded.chunk_tokens;
  again.k_format = loaded.k_format;
  again.v_format = loaded.v_format;
  again.expert_slots = loaded.expert_slots;
  again.speed = &speed;
  Diagnostics diagnostics(options.verbose, /*warns=*/false);  // the load did
  again.log = Diagnostics::onLog;
  again.log_user = &diagnostics;
  return PlanSource::ofFile(modelPath(options)).plan(again, diagnostics);
}

double decodeBytes(const oriel_plan& plan, double depth) {
  return static_cast<double>(plan.weights_read_bytes_per_token) + cacheBytes(plan, depth) +
         storedBytes(plan);
}

double prefillBytes(const oriel_plan& plan, double depth, uint32_t prompt_tokens) {
  const double head = static_cast<double>(plan.head_read_bytes);
  const double layers = static_cast<double>(plan.weights_read_bytes_per_token) - head;
  double bytes = head;
  for (uint32_t done = 0; done < prompt_tokens; done += plan.chunk_tokens) {
    const uint32_t tokens = std::min(plan.chunk_tokens, prompt_tokens - done);
    bytes += layers + cacheBytes(plan, depth + done + tokens) + tokens * storedBytes(plan);
  }
  return bytes;
}

}  // namespace cli
