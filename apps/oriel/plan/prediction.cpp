#include "plan/prediction.h"

#include <algorithm>
#include <string>

#include "measure/divergence.h"
#include "options.h"
#include "plan/plan_report.h"
#include "sizes.h"

namespace cli {
namespace {

/// Cache bytes visible after `depth` tokens.
double cacheBytes(const Json& plan, double depth) {
  double bytes = 0;
  for (const Json& group : plan["groups"]) {
    const double most = realIn(group, "window_tokens") +
                        (group["kind"] == "session" ? realIn(plan, "sink_tokens") : 0);
    bytes +=
        realIn(group, "bytes_per_token") * (group["kind"] == "state" ? 1 : std::min(depth, most));
  }
  return bytes;
}

double storedBytes(const Json& plan) {
  double bytes = 0;
  for (const Json& group : plan["groups"]) {
    bytes += realIn(group, "bytes_per_token");
  }
  return bytes;
}

}  // namespace

Json predictedPlan(const Json& loaded, const CommonOptions& options, const oriel_speed& speed) {
  CommonOptions again = asPlanned(options, loaded);
  again.load.set("memory", numberIn(loaded, "memory_bytes"));
  again.load.set("kv", lowerCase(formatsName(loaded)));
  if (const uint64_t slots = numberIn(loaded, "expert_slots"); slots != 0) {
    again.load.set("expert_slots", slots);
  }
  oriel::Options library_options = planOptions(again);
  library_options.speed = &speed;
  const Diagnostics diagnostics(options.verbose, /*warns=*/false);  // the load did
  diagnostics.listen(&library_options);
  return PlanSource::ofFile(modelPath(options)).plan(library_options, diagnostics);
}

double decodeBytes(const Json& plan, double depth) {
  return realIn(plan, "weights_read_bytes_per_token") + cacheBytes(plan, depth) + storedBytes(plan);
}

double prefillBytes(const Json& plan, double depth, uint32_t prompt_tokens) {
  const double head = realIn(plan, "head_read_bytes");
  const double layers = realIn(plan, "weights_read_bytes_per_token") - head;
  const uint32_t chunk = countIn(plan, "chunk_tokens");
  double bytes = head;
  for (uint32_t done = 0; done < prompt_tokens; done += chunk) {
    const uint32_t tokens = std::min(chunk, prompt_tokens - done);
    bytes += layers + cacheBytes(plan, depth + done + tokens) + tokens * storedBytes(plan);
  }
  return bytes;
}

}  // namespace cli
