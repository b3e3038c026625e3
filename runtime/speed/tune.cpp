#include "speed/tune.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>

#include "plan/weight_placement.h"
#include "speed/probe.h"

namespace oriel_internal {
namespace {

// One layer with matrices of a 0.5 to 1 billion weight model; larger ones if these are fast, smaller ones if slow.
constexpr ProbeShape kSmall = {1, 512, 8, 4, 64, 1536, 32, 0};
constexpr ProbeShape kUsual = {1, 1024, 16, 8, 64, 2816, 32, 0};
constexpr ProbeShape kLarge = {1, 2048, 32, 8, 64, 5632, 32, 0};
constexpr double kLongEnoughToCompareSeconds = 1e-3;
constexpr double kTooLongSeconds = 0.1;
constexpr uint64_t kMostFileBytes = 64ull << 20;
constexpr uint32_t kWindow = 64;
constexpr uint32_t kDepth = 32;
// Runs twice if it is fast, to save time on software devices.
constexpr double kQuickSeconds = 5e-3;
// Another candidate must be faster by more than the noise.
constexpr double kWorthwhile = 0.97;

Status timeCandidates(Probe* probe, MatmulUse use, WeightType type, uint32_t rounds,
                      MatmulTimes* times) {
  MatmulTuning* const tuning = probe->executor()->matmulTuning();
  // Alternates between the candidates, so that a busy moment of the machine does not affect a single candidate.
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t i = 0; i < times->count; ++i) {
      ORIEL_TRY(tuning->take(use, type, i));
      double seconds = 0;
      ORIEL_TRY(probe->time(tunedTokens(use), kDepth, &seconds));
      const double microseconds = seconds * 1e6;
      times->microseconds[i] =
          round == 0 ? microseconds : std::min(times->microseconds[i], microseconds);
    }
  }
  const double* const all = times->microseconds;
  const uint32_t best = static_cast<uint32_t>(std::min_element(all, all + times->count) - all);
  times->chosen = all[best] < kWorthwhile * all[times->standard] ? best : times->standard;
  ORIEL_TRY(tuning->take(use, type, times->chosen));
  times->kept = tuning->keep(use, type, times->chosen);
  return kOk;
}

}  // namespace

Status tuneMatmul(const ExecutorMaker& maker, MatmulUse use, uint32_t tensor_type, bool again,
                  const oriel_allocator& allocator, const Log& log, MatmulTimes* times) {
  *times = MatmulTimes();
  WeightType type;
  if (!weightTypeOf(tensor_type, &type)) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  ProbeShape larger = kLarge;
  larger.tensor_type = tensor_type;
  const bool has_larger = probeFileBytes(larger) <= kMostFileBytes;
  ProbeShape shape = kUsual;
  for (bool first = true;; first = false) {
    shape.tensor_type = tensor_type;
    Probe probe(allocator, log);
    ORIEL_TRY(probe.open(shape, CacheFormats(), kWindow, tunedTokens(use), maker));
    const MatmulTuning* const tuning = probe.executor()->matmulTuning();
    if (tuning == nullptr || tuning->candidateName(use, type, 1) == nullptr ||
        (!again && tuning->isMeasured(use, type))) {
      return kOk;
    }
    double seconds = 0;
    ORIEL_TRY(probe.time(tunedTokens(use), kDepth, &seconds, 1));
    if (first && seconds < kLongEnoughToCompareSeconds && has_larger) {
      shape = kLarge;
      continue;
    }
    if (first && seconds > kTooLongSeconds) {
      shape = kSmall;
      continue;
    }
    times->standard = tuning->standard(use, type);
    for (const char* name = tuning->candidateName(use, type, 0);
         name != nullptr && times->count < kMostMatmulCandidates;
         name = tuning->candidateName(use, type, times->count)) {
      std::snprintf(times->names[times->count++], sizeof(times->names[0]), "%s", name);
    }
    return timeCandidates(&probe, use, type, seconds < kQuickSeconds ? 2 : 1, times);
  }
}

}  // namespace oriel_internal
