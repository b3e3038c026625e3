#include "speed/measure_speed.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "budget/budget.h"
#include "os/os.h"
#include "plan/weight_placement.h"
#include "speed/probe.h"

namespace oriel_internal {
namespace {

constexpr double kNano = 1e-9;
constexpr uint32_t kF16Type = static_cast<uint32_t>(TensorType::kF16);
constexpr uint32_t kF32Type = static_cast<uint32_t>(TensorType::kF32);

// Measures the fixed cost of a step and its kernels.
constexpr ProbeShape kNarrow = {2, 32, 6, 2, 64, 32, 32, kF16Type};
// Measures peak reading: 70 MB, or four times as much if that takes less than kLongEnoughSeconds.
constexpr ProbeShape kStream = {3, 1024, 16, 4, 64, 1024, 32, kF32Type};

constexpr uint32_t kShortWindow = 64;
constexpr uint32_t kLongWindow = 2048;
constexpr uint32_t kShallow = 16;
constexpr uint32_t kDeep = 2000;
constexpr uint32_t kFewTokens = 2;
constexpr uint32_t kPart = 16;  // tokens of a partial chunk
constexpr uint32_t kWhole = kMaxProbeChunk;

// The probe has as many layers as the model, unless that takes more memory or, on slow devices, more time. Processor
// caches then hold the same share of the probe as of the model.
constexpr uint64_t kMostBytes = 96ull << 20;
constexpr uint64_t kMostBytesFast = 4 * kMostBytes;
constexpr double kLongEnoughSeconds = 1e-3;
constexpr double kSlowSeconds = 24e-3;  // for decoding one token
constexpr uint64_t kMostHeadBytes = 4ull << 20;
constexpr uint32_t kFewLayers = 2;

constexpr uint32_t kFewRounds = 3;
constexpr uint32_t kMostRounds = 12;  // while depth seems to cost nothing, otherwise ...
constexpr uint32_t kRounds = 6;       // while they take less than ...
constexpr double kPairMs = 300.0;     // ... or noise hides the cost of depth
constexpr double kPairMsSlow = 600.0;
constexpr uint32_t kLayersPerCacheLayer = 3;  // divisor of layers for timing only the cache ops
// Interruptions hardly affect a step this long: one or two runs are enough.
constexpr double kLongSeconds = 0.3;
constexpr double kVeryLongSeconds = 1.0;

double positive(double value) { return std::max(value, 0.0); }

// Mean number of tokens seen by the tokens of a chunk, if the last one sees `depth`.
double meanDepth(uint32_t tokens, uint32_t depth) { return depth - (tokens - 1) / 2.0; }

/// Shared by all measurements.
struct Bench {
  const ExecutorMaker& maker;
  SpeedTarget target;
  const LoadProgress& progress;
  const oriel_allocator& allocator;
  const Log& log;
  double begin = nowMs();
  uint32_t done = 0;
  uint32_t layers = 0;  ///< in probes of the main type
  bool slow = false;    ///< the number of layers is limited by time, not by memory

  /// Counts one measurement; all take about equally long.
  Status advance() {
    // Overhead, reading, formats, and two per type: choosing the kernel, and its speed.
    const uint32_t all = 2 + kFormatPairCount + 2 * target.n_matrices;
    done = std::min(done + 1, all);
    log.write(ORIEL_LOG_DEBUG, "measured %u of %u after %.0f ms", done, all, nowMs() - begin);
    return progress.callback != nullptr && progress.callback(done, all, progress.user) != 0
               ? Status(ORIEL_ERROR_CANCELLED)
               : kOk;
  }
};

/// Seconds of a step without matrices and attention.
double overheadSeconds(const DeviceSpeed& speed, const Probe& probe, StepList list) {
  const uint32_t ops = probe.ops(list) + (list != StepList::kHead ? probe.ops(StepList::kHead) : 0);
  return kNano * (speed.submit_ns + ops * speed.dispatch_ns);
}

double attendedValues(const ProbeShape& shape) {
  return 1.0 * shape.n_layers * shape.n_heads * shape.head_dim;
}

/// Times of one pair of cache formats.
struct PairTimes {
  double decode = 0;
  double decode_deep = 0;
  double whole = 0;
  double whole_deep = 0;
};

/// Measures in rounds, so that an interruption affects all of them, and takes the median of each, like users' figures.
/// Without `deep` the two at large depth are left out.
Status timePair(const Bench& bench, Probe* probe, bool deep, PairTimes* times) {
  const double begin = nowMs();
  struct Step {
    uint32_t tokens, depth;
    double PairTimes::*usual;
    double seconds[kMostRounds];
    uint32_t n;
  };
  Step steps[] = {{1, kShallow, &PairTimes::decode, {}, 0},
                  {kWhole, kWhole, &PairTimes::whole, {}, 0},
                  {1, kDeep, &PairTimes::decode_deep, {}, 0},
                  {kWhole, kDeep, &PairTimes::whole_deep, {}, 0}};
  for (uint32_t round = 0; round < kMostRounds; ++round) {
    for (Step& step : steps) {
      if (step.depth == kDeep && !deep) {
        continue;
      }
      double& usual = times->*step.usual;
      if ((round == 1 && usual > kVeryLongSeconds) || (round > 1 && usual > kLongSeconds)) {
        continue;
      }
      ORIEL_TRY(probe->time(step.tokens, step.depth, &step.seconds[step.n++], 1));
      double* const middle = step.seconds + (step.n - 1) / 2;
      std::nth_element(step.seconds, middle, step.seconds + step.n);
      usual = *middle;
    }
    const bool plausible =
        !deep || (times->decode_deep > times->decode && times->whole_deep > times->whole);
    const double enough_ms = bench.slow ? kPairMsSlow : kPairMs;
    if (plausible &&
        (round + 1 >= kRounds || (round + 1 >= kFewRounds && nowMs() - begin > enough_ms))) {
      break;
    }
  }
  return kOk;
}

CacheSpeed cacheRate(const FormatPair& pair, const ProbeShape& shape, const PairTimes& times,
                     const PairTimes& f16) {
  const double values = attendedValues(shape) * kNano;
  CacheSpeed rate = {};
  rate.k_format = pair.k;
  rate.v_format = pair.v;
  rate.decode_ns = positive(times.decode_deep - times.decode) / (values * (kDeep - kShallow));
  rate.chunk_ns = positive(times.whole_deep - times.whole) / (values * (kDeep - kWhole) * kWhole);
  // The weights' rate already includes storing f16: both come from the same layers.
  rate.append_ns = positive(times.decode - f16.decode) / values;
  rate.chunk_append_ns = positive(times.whole - f16.whole) / (values * kWhole);
  return rate;
}

/// Nanoseconds per weight of the output matrix.
Status headRate(const DeviceSpeed& speed, const ProbeShape& shape, Probe* probe, double* head_ns) {
  double head = 0;
  ORIEL_TRY(probe->timeHeadAfterLayers(&head));
  const double head_weights = 1.0 * shape.n_vocab * shape.n_embd * kNano;
  *head_ns = positive(head - overheadSeconds(speed, *probe, StepList::kHead)) / head_weights;
  return kOk;
}

/// Solves for the weights, given everything else.
Status weightRate(const DeviceSpeed& speed, const ProbeShape& shape, const CacheSpeed& cache,
                  double decode, double whole, Probe* probe, WeightSpeed* rate) {
  double part = 0;
  *rate = {};
  ORIEL_TRY(headRate(speed, shape, probe, &rate->head_ns));
  ORIEL_TRY(probe->time(kPart, kPart, &part, kFewRounds));
  rate->tensor_type = shape.tensor_type;
  const double weights = static_cast<double>(shape.bodyWeights()) * kNano;
  const double values = attendedValues(shape) * kNano;
  const double head_s = kNano * rate->head_ns * shape.n_vocab * shape.n_embd;
  rate->decode_ns = positive(decode - head_s - overheadSeconds(speed, *probe, StepList::kDecode) -
                             values * cache.decode_ns * kShallow) /
                    weights;
  const auto matrices = [&](double seconds, uint32_t tokens) {
    return positive(seconds - head_s - overheadSeconds(speed, *probe, StepList::kChunk) -
                    values * cache.chunk_ns * tokens * meanDepth(tokens, tokens)) /
           weights;
  };
  const double of_part = matrices(part, kPart);
  const double of_whole = matrices(whole, kWhole);
  rate->chunk_token_ns =
      std::min(positive(of_whole - of_part) / (kWhole - kPart), of_whole / kWhole);
  rate->chunk_ns = positive(of_whole - kWhole * rate->chunk_token_ns);
  return kOk;
}

/// Opens a probe with as many layers as the time allows. `shape` has the model's number.
Status openLayers(Bench* bench, const CacheFormats& formats, uint32_t window, Probe* probe,
                  ProbeShape* shape) {
  const ProbeShape model = *shape;
  uint32_t layers = std::min(kFewLayers, layersWithin(model, kMostBytes));
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    shape->n_layers = layers;
    ORIEL_TRY(probe->open(*shape, formats, window, kWhole, bench->maker));
    double seconds = 0;
    ORIEL_TRY(probe->time(1, kShallow, &seconds));
    const uint32_t most = layersWithin(
        model, attempt != 0 && seconds < kLongEnoughSeconds ? kMostBytesFast : kMostBytes);
    const uint32_t affordable =
        static_cast<uint32_t>(std::min(kSlowSeconds * layers / std::max(seconds, kNano), 1e9));
    const uint32_t wanted = std::min(most, affordable);
    if (wanted <= layers) {
      break;
    }
    layers = wanted;
  }
  bench->slow = layers < layersWithin(model, kMostBytes);
  return kOk;
}

/// The rates of the caches, and of the first weight type. A cache rate is a difference of two whole steps, in which
/// weights displace keys and values from the processor's caches as in the model. On slow devices arithmetic is the
/// limit, so those caches do not matter, and the difference is small compared with a step's noise: there the cache ops
/// are timed alone.
Status measureLayers(Bench* bench, uint32_t type, DeviceSpeed* speed) {
  ProbeShape shape;
  if (!shapeOfType(bench->target.shape, type, kMostBytes, kMostHeadBytes, &shape)) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  Probe layers(bench->allocator, bench->log);
  PairTimes whole_steps;
  ORIEL_TRY(openLayers(bench, CacheFormats(), kLongWindow, &layers, &shape));
  bench->layers = shape.n_layers;
  ORIEL_TRY(timePair(*bench, &layers, !bench->slow, &whole_steps));
  ProbeShape cached = shape;
  if (bench->slow) {
    cached.n_layers = std::max(shape.n_layers / kLayersPerCacheLayer, 1u);
  }
  PairTimes f16;
  for (uint32_t i = kFormatPairCount; i-- > 0;) {  // f16 is last in the table, and first here
    const FormatPair& pair = kFormatPairs[i];
    const bool first = speed->cache_count == 0;
    PairTimes times = whole_steps;
    if (bench->slow || !first) {
      CacheFormats formats;
      formats.k = pair.k;
      formats.v = pair.v;
      Probe probe(bench->allocator, bench->log);
      ORIEL_TRY(probe.open(cached, formats, kLongWindow, kWhole, bench->maker,
                           bench->slow ? ProbeOps::kCache : ProbeOps::kAll));
      ORIEL_TRY(timePair(*bench, &probe, true, &times));
    }
    f16 = first ? times : f16;
    const CacheSpeed rate = cacheRate(pair, cached, times, f16);
    speed->caches[speed->cache_count++] = rate;
    if (first) {
      ORIEL_TRY(weightRate(*speed, shape, rate, whole_steps.decode, whole_steps.whole, &layers,
                           &speed->weights[speed->weight_count]));
      ++speed->weight_count;
      layers.close();
    }
    ORIEL_TRY(bench->advance());
  }
  return kOk;
}

/// The rates of another weight type. If no layer has it, only of the output matrix.
Status measureType(Bench* bench, const WorkShape::Matrices& matrices, DeviceSpeed* speed) {
  ProbeShape shape;
  const uint32_t type = matrices.tensor_type;
  if (!shapeOfType(bench->target.shape, type, kMostBytes, kMostHeadBytes, &shape)) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  Probe probe(bench->allocator, bench->log);
  if (matrices.body_weights == 0) {
    shape.n_layers = std::min(bench->layers, layersWithin(shape, kMostBytes));
    ORIEL_TRY(probe.open(shape, CacheFormats(), kShortWindow, kFewTokens, bench->maker));
    WeightSpeed* const rate = &speed->weights[speed->weight_count++];
    rate->tensor_type = type;
    ORIEL_TRY(headRate(*speed, shape, &probe, &rate->head_ns));
    return bench->advance();
  }
  ORIEL_TRY(openLayers(bench, CacheFormats(), kShortWindow, &probe, &shape));
  double decode = 0;
  double whole = 0;
  ORIEL_TRY(probe.time(1, kShallow, &decode));
  ORIEL_TRY(probe.time(kWhole, kWhole, &whole));
  ORIEL_TRY(weightRate(*speed, shape, speed->caches[0], decode, whole, &probe,
                       &speed->weights[speed->weight_count]));
  ++speed->weight_count;
  return bench->advance();
}

Status measureReading(Bench* bench, DeviceSpeed* speed) {
  ProbeShape shape = kStream;
  for (double seconds = 0; seconds < kLongEnoughSeconds; shape.n_layers *= 4) {
    Probe probe(bench->allocator, bench->log);
    ORIEL_TRY(probe.open(shape, CacheFormats(), kShortWindow, 1, bench->maker));
    ORIEL_TRY(probe.time(1, 1, &seconds));
    const double bytes = 4.0 * static_cast<double>(shape.bodyWeights());
    speed->read_bytes_per_s = seconds > 0 ? bytes / seconds : 0;
    if (shape.n_layers != kStream.n_layers) {
      break;
    }
  }
  return kOk;
}

/// Fixed cost of submission and kernels.
Status measureOverhead(Probe* probe, DeviceSpeed* speed) {
  double decode = 0;
  double head = 0;
  ORIEL_TRY(probe->time(1, kShallow, &decode));
  ORIEL_TRY(probe->timeHead(&head));
  speed->dispatch_ns = positive(decode - head) / probe->ops(StepList::kDecode) / kNano;
  speed->submit_ns = positive(head / kNano - probe->ops(StepList::kHead) * speed->dispatch_ns);
  return kOk;
}

/// SpeedTarget::kernels counts variants for one vector below this, and for chunks in multiples of it.
constexpr uint32_t kChunkKernels = 256;

/// Records the device and the kernels that the rates are measured with.
void identify(Executor& executor, SpeedTarget* target, DeviceSpeed* speed) {
  std::snprintf(speed->device, sizeof(speed->device), "%s", executor.deviceName());
  std::snprintf(speed->driver, sizeof(speed->driver), "%s", executor.driverName());
  const MatmulTuning* const tuning = executor.matmulTuning();
  for (uint32_t i = 0; i < target->n_matrices; ++i) {
    WeightType type;
    if (weightTypeOf(target->matrices[i].tensor_type, &type)) {
      target->kernels[i] = tuning == nullptr
                               ? 0
                               : tuning->choice(MatmulUse::kVector, type) +
                                     kChunkKernels * tuning->choice(MatmulUse::kChunk, type);
    }
  }
  char features[256];
  executor.describeFeatures(features, sizeof(features));
  target->features = hashBytes(features, std::strlen(features));
  speed->shape = target->hash();
}

/// Chooses among the device's matmul variants; later loads use the choice.
Status tuneTypes(Bench* bench, bool* changed) {
  for (uint32_t i = 0; i < bench->target.n_matrices; ++i) {
    for (const MatmulUse use : {MatmulUse::kVector, MatmulUse::kChunk}) {
      MatmulTimes times;
      const Status status = tuneMatmul(bench->maker, use, bench->target.matrices[i].tensor_type,
                                       false, bench->allocator, bench->log, &times);
      if (!status.ok() && status.code() != ORIEL_ERROR_UNSUPPORTED) {
        return status;
      }
      if (times.kept && times.chosen != times.standard) {
        const uint32_t unit = use == MatmulUse::kVector ? 1 : kChunkKernels;
        bench->target.kernels[i] += unit * (times.chosen - times.standard);
        *changed = true;
      }
    }
    ORIEL_TRY(bench->advance());
  }
  return kOk;
}

/// The most frequent weight type in the layers.
uint32_t mainMatrices(const SpeedTarget& target) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < target.n_matrices; ++i) {
    if (target.matrices[i].body_weights > target.matrices[best].body_weights) {
      best = i;
    }
  }
  return best;
}

}  // namespace

Status measureSpeed(const ExecutorMaker& maker, const SpeedTarget& target, const char* cache_dir,
                    bool again, const LoadProgress& progress, const oriel_allocator& allocator,
                    const Log& log, DeviceSpeed* speed) {
  std::memset(static_cast<void*>(speed), 0, sizeof(*speed));
  Bench bench = {maker, target, progress, allocator, log};
  bool chosen = false;  // kernels were chosen when rates were measured before
  bool changed = false;
  {
    Probe probe(allocator, log);
    ORIEL_TRY(probe.open(kNarrow, CacheFormats(), kShortWindow, 1, maker));
    identify(*probe.executor(), &bench.target, speed);
    DeviceSpeed kept = *speed;
    chosen = readSpeedFile(cache_dir, &kept);
    if (chosen && !again) {
      *speed = kept;
      return kOk;
    }
    ORIEL_TRY(measureOverhead(&probe, speed));
    ORIEL_TRY(bench.advance());
  }
  if (cache_dir != nullptr && !chosen) {  // without a folder the choice could not be stored
    ORIEL_TRY(tuneTypes(&bench, &changed));
    speed->shape = bench.target.hash();
  }
  const uint32_t main = mainMatrices(target);
  if (target.n_matrices != 0) {
    const Status status = measureLayers(&bench, target.matrices[main].tensor_type, speed);
    if (!status.ok() && status.code() != ORIEL_ERROR_UNSUPPORTED) {
      return status;
    }
  }
  for (uint32_t i = 0; i < target.n_matrices && speed->cache_count != 0; ++i) {
    if (i != main) {
      const Status status = measureType(&bench, target.matrices[i], speed);
      if (!status.ok() && status.code() != ORIEL_ERROR_UNSUPPORTED) {
        return status;
      }
    }
  }
  ORIEL_TRY(measureReading(&bench, speed));
  log.write(ORIEL_LOG_INFO, "measured the speed of %s in %.0f ms", speed->device,
            nowMs() - bench.begin);
  writeSpeedFile(cache_dir, *speed, log);
  speed->kernels_changed = changed ? 1 : 0;  // only for this call, not for the file
  return kOk;
}

}  // namespace oriel_internal
