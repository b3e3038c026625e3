#include "speed/measure_speed.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "budget/budget.h"
#include "budget/speed.h"
#include "os/os.h"
#include "speed/probe.h"
#include "speed/speed_file.h"
#include "speed/tune.h"

namespace oriel {
namespace {

constexpr double kNano = 1e-9;
constexpr uint32_t kF16Type = static_cast<uint32_t>(TensorType::kF16);

// Probe of everything but large matrices: narrow, with attention like that of small models (three query
// heads to a KV head). The difference between a shallow and a deep step is attention alone.
constexpr ProbeShape kNarrow = {2, 32, 6, 2, 64, 32, 32, kF16Type};
constexpr uint32_t kNarrowWindow = 1536;
constexpr uint32_t kNarrowChunk = 8;
constexpr uint32_t kShallow = 16;
constexpr uint32_t kDeep = 1500;

// Probes of matrices: kNearWeights, and kFarWeights (half of that in types that would take too much memory)
// where the first takes less than this, so that neither overheads nor caches flatter a fast device.
constexpr ProbeShape kWide[] = {{1, 768, 12, 6, 64, 2048, 32, 0},
                                {2, 2048, 32, 8, 64, 5632, 32, 0},
                                {1, 2048, 32, 8, 64, 5632, 32, 0}};
constexpr double kLongEnoughSeconds = 0.8e-3;
constexpr uint64_t kMostFileBytes = 64ull << 20;
constexpr uint32_t kWideWindow = 64;
constexpr uint32_t kWideChunk = 32;
constexpr uint32_t kWidePart = 8;

constexpr uint32_t kRounds = 3;
constexpr uint32_t kMostRounds = 12;  // while noise hides what depth costs

double positive(double value) { return std::max(value, 0.0); }

/// Times of the narrow probe with one pair of formats.
struct NarrowTimes {
  double decode_shallow = 0;
  double decode_deep = 0;
  double chunk_shallow = 0;
  double chunk_deep = 0;
  double head = 0;
  uint32_t decode_ops = 0;
  uint32_t chunk_ops = 0;
  uint32_t head_ops = 0;
};

// Tokens that a token of a chunk sees on average, when the last sees `depth`.
double meanDepth(uint32_t tokens, uint32_t depth) { return depth - (tokens - 1) / 2.0; }

Status timeNarrow(Probe* probe, NarrowTimes* times) {
  // Round by round, so that a busy moment of the machine does not fall on one of them alone.
  const auto plausible = [times] {
    return times->decode_deep > times->decode_shallow && times->chunk_deep > times->chunk_shallow;
  };
  for (uint32_t round = 0; round < kRounds || (round < kMostRounds && !plausible()); ++round) {
    const auto keepLeast = [round](double seconds, double* least) {
      *least = round == 0 ? seconds : std::min(*least, seconds);
    };
    const struct {
      uint32_t tokens, depth;
      double* least;
    } steps[] = {{1, kShallow, &times->decode_shallow},
                 {1, kDeep, &times->decode_deep},
                 {kNarrowChunk, kShallow, &times->chunk_shallow},
                 {kNarrowChunk, kDeep, &times->chunk_deep}};
    double seconds = 0;
    for (const auto& step : steps) {
      ORIEL_TRY(probe->time(step.tokens, step.depth, &seconds));
      keepLeast(seconds, step.least);
    }
    ORIEL_TRY(probe->timeHead(&seconds));
    keepLeast(seconds, &times->head);
  }
  times->decode_ops = probe->ops(StepList::kDecode);
  times->chunk_ops = probe->ops(StepList::kChunk);
  times->head_ops = probe->ops(StepList::kHead);
  return kOk;
}

/// Solves the narrow probe's equations. `f16` are the times that everything else is compared with.
void narrowRates(const NarrowTimes& times, const NarrowTimes& f16, const oriel_speed& speed,
                 oriel_cache_speed* rate) {
  const double values = double{kNarrow.n_layers} * kNarrow.n_heads * kNarrow.head_dim;
  rate->decode_ns =
      positive(times.decode_deep - times.decode_shallow) / (values * (kDeep - kShallow)) / kNano;
  rate->chunk_ns = positive(times.chunk_deep - times.chunk_shallow) /
                   (values * (kDeep - kShallow) * kNarrowChunk) / kNano;
  rate->append_ns = positive(times.decode_shallow - f16.decode_shallow) / values / kNano;
  const double chunk_ops = times.chunk_ops + times.head_ops;
  const double rest = times.chunk_shallow - kNano * (speed.submit_ns + chunk_ops * speed.dispatch_ns) -
                      kNano * rate->chunk_ns * values * kNarrowChunk *
                          meanDepth(kNarrowChunk, kShallow);
  rate->chunk_append_ns = positive(rest) / (values * kNarrowChunk) / kNano;
}

/// The rates of matrices of the type, given everything else in `speed`.
Status measureWeightType(const ExecutorMaker& maker, uint32_t type, const oriel_allocator& allocator,
                         const Log& log, const oriel_speed& speed, oriel_weight_speed* rate) {
  *rate = {};
  rate->tensor_type = type;
  for (ProbeShape shape : kWide) {
    shape.tensor_type = type;
    if (rate->decode_ns != 0 && probeFileBytes(shape) > kMostFileBytes) {
      continue;
    }
    Probe probe(allocator, log);
    ORIEL_TRY(probe.open(shape, CacheFormats(), kWideWindow, kWideChunk, maker));
    double decode = 0;
    double part = 0;
    double whole = 0;
    ORIEL_TRY(probe.time(1, kShallow, &decode));
    ORIEL_TRY(probe.time(kWidePart, kWidePart, &part));
    ORIEL_TRY(probe.time(kWideChunk, kWideChunk, &whole));

    // What remains without matrices is the same model with weights that cost nothing.
    WorkShape work;
    work.known = true;
    work.n_heads = shape.n_heads;
    work.kv.groups[work.kv.n_groups++] = {shape.n_layers, shape.n_kv_heads, shape.head_dim, 0, false};
    for (const StepList list : {StepList::kDecode, StepList::kChunk, StepList::kHead}) {
      work.n_ops[static_cast<uint32_t>(list)] = probe.ops(list);
    }
    const auto withoutMatrices = [&](uint32_t chunk, double depth) {
      oriel_step_cost cost;
      (void)stepCost(speed, work, CacheFormats(), chunk, &cost);
      return stepSeconds(cost, depth) + cost.head_s;
    };
    const double weights = static_cast<double>(shape.bodyWeights());
    const double matrices = positive(decode - withoutMatrices(0, kShallow));
    const double of_part = positive(part - withoutMatrices(kWidePart, meanDepth(kWidePart, kWidePart)));
    const double of_whole =
        positive(whole - withoutMatrices(kWideChunk, meanDepth(kWideChunk, kWideChunk)));
    const bool first = rate->decode_ns == 0;
    rate->decode_ns = matrices / weights / kNano;
    rate->decode_near_ns = first ? rate->decode_ns : rate->decode_near_ns;
    rate->chunk_token_ns =
        positive(of_whole - of_part) / (kWideChunk - kWidePart) / weights / kNano;
    rate->chunk_ns = positive(of_whole / weights / kNano - kWideChunk * rate->chunk_token_ns);
    if (!first || matrices > kLongEnoughSeconds) {
      break;
    }
  }
  return kOk;
}

}  // namespace

Status measureSpeed(const ExecutorMaker& maker, const uint32_t* types, uint32_t n_types,
                    const char* cache_dir, const oriel_allocator& allocator, const Log& log,
                    oriel_speed* speed) {
  const double begin = nowMs();
  std::memset(static_cast<void*>(speed), 0, sizeof(*speed));
  speed->struct_size = sizeof(*speed);
  bool changed = false;
  NarrowTimes f16;
  for (uint32_t i = kFormatPairCount; i-- > 0;) {  // f16 comes last there, and first here
    const FormatPair& pair = kFormatPairs[i];
    CacheFormats formats;
    formats.k = pair.k;
    formats.v = pair.v;
    Probe probe(allocator, log);
    ORIEL_TRY(probe.open(kNarrow, formats, kNarrowWindow, kNarrowChunk, maker));
    const bool first = speed->cache_count == 0;
    if (first) {
      std::snprintf(speed->device, sizeof(speed->device), "%s", probe.device());
      std::snprintf(speed->driver, sizeof(speed->driver), "%s", probe.driver());
      if (readSpeedFile(cache_dir, speed)) {
        break;
      }
    }
    NarrowTimes times;
    ORIEL_TRY(timeNarrow(&probe, &times));
    if (first) {
      f16 = times;
      speed->dispatch_ns = positive(f16.decode_shallow - f16.head) / f16.decode_ops / kNano;
      speed->submit_ns = positive(f16.head / kNano - f16.head_ops * speed->dispatch_ns);
    }
    oriel_cache_speed* rate = &speed->caches[speed->cache_count++];
    rate->k_format = publicFormat(pair.k);
    rate->v_format = publicFormat(pair.v);
    narrowRates(times, f16, *speed, rate);
    changed = true;
  }
  for (uint32_t i = 0; i < n_types && speed->weight_count < ORIEL_SPEED_WEIGHTS; ++i) {
    if (hasWeightRate(*speed, types[i])) {
      continue;
    }
    if (cache_dir != nullptr) {  // else the choice would not be there for those who plan with these rates
      MatvecTimes times;
      const Status tuned = tuneMatvec(maker, types[i], false, allocator, log, &times);
      if (!tuned.ok() && tuned.code() != ORIEL_ERROR_UNSUPPORTED) {
        return tuned;
      }
    }
    oriel_weight_speed rate;
    const Status status = measureWeightType(maker, types[i], allocator, log, *speed, &rate);
    if (status.code() == ORIEL_ERROR_UNSUPPORTED) {
      continue;
    }
    ORIEL_TRY(status);
    speed->weights[speed->weight_count++] = rate;
    changed = true;
  }
  if (changed) {
    log.write(ORIEL_LOG_INFO, "measured the speed of %s in %.0f ms", speed->device, nowMs() - begin);
    writeSpeedFile(cache_dir, *speed, log);
  }
  return kOk;
}

}  // namespace oriel
