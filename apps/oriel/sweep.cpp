#include "sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "bench_run.h"
#include "chart.h"
#include "failure.h"
#include "interrupt.h"
#include "plan_source.h"
#include "prediction.h"
#include "report.h"
#include "terminal.h"

namespace cli {
namespace {

constexpr uint32_t kLongestWindow = 4096;  // where none was asked for
constexpr uint32_t kShortestWindow = 128;
constexpr uint32_t kFewTokens = 4;
// Of a point: so many runs, and while they are so short that one late thread shows, more.
constexpr size_t kEnoughRuns = 5;
constexpr double kEnoughSeconds = 0.2;
constexpr int kLineSteps = 48;

struct Pair {
  oriel_kv_format k, v;
};
constexpr Pair kPairs[] = {{ORIEL_KV_F16, ORIEL_KV_F16},
                           {ORIEL_KV_INT8, ORIEL_KV_INT8},
                           {ORIEL_KV_INT8, ORIEL_KV_INT4},
                           {ORIEL_KV_INT4, ORIEL_KV_INT4}};

/// A model to load, and the depths at which it is measured.
struct Stage {
  SweepKind kind = SweepKind::kDepth;
  Pair pair = {};
  uint32_t window = 0;
  std::vector<uint64_t> depths;
};

std::vector<Pair> pairsOf(const CommonOptions& common) {
  if (common.k_format != ORIEL_KV_AUTO) {
    return {{common.k_format, common.v_format}};
  }
  return {std::begin(kPairs), std::end(kPairs)};
}

uint32_t windowOf(const CommonOptions& common, const std::string& path) {
  if (common.window_tokens != 0) {
    return common.window_tokens;
  }
  oriel_options options = planOptions(common);
  options.min_tokens_per_s = 0;
  oriel_plan plan = {};
  const bool known = PlanSource::ofFile(path).tryPlan(options, &plan) && plan.fits != 0;
  return known ? std::min(plan.window_tokens, kLongestWindow) : kLongestWindow;
}

/// What says most comes first: time may be up before the end.
std::vector<Stage> stagesOf(const CommonOptions& common, uint32_t window) {
  std::vector<Stage> stages;
  const std::vector<Pair> pairs = pairsOf(common);
  for (const Pair& pair : pairs) {
    Stage stage = {SweepKind::kDepth, pair, window, {}};
    for (const double share : {0.0, 1.0, 0.25, 0.5, 0.0625, 0.75, 0.125}) {
      stage.depths.push_back(static_cast<uint64_t>(share * window));
    }
    stages.push_back(stage);
  }
  for (const Pair& pair : pairs) {
    if (&pair != &pairs.front() && &pair != &pairs.back()) {
      continue;  // between these two
    }
    for (uint32_t size = kShortestWindow; size <= window; size *= 2) {
      stages.push_back({SweepKind::kWindow, pair, size, {2ull * size}});
    }
  }
  return stages;
}

class Sweeper {
 public:
  Sweeper(const CommonOptions& common, const SweepOptions& options)
      : common_(common),
        options_(options),
        path_(modelPath(common)),
        csv_(std::filesystem::u8path(options.stem + ".csv"), std::ios::binary | std::ios::trunc) {
    csv_ << sweepCsvHeader() << std::flush;
    if (!csv_) {
      throw Failure{kExitFailed,
                    options.stem + ".csv cannot be written: check the folder and its permissions"};
    }
    sweep_.model = std::filesystem::u8path(path_).filename().u8string();
  }

  void run() {
    speed_ = deviceSpeed(path_, common_);
    sweep_.device = speed_.device;
    sweep_.read_bytes_per_s = speed_.read_bytes_per_s;
    sweep_.deepest = windowOf(common_, path_);
    const std::vector<Stage> stages = stagesOf(common_, sweep_.deepest);
    for (const Stage& stage : stages) {
      sweep_.planned += static_cast<uint32_t>(stage.depths.size());
    }
    left_ = sweep_.planned;
    start_ = BenchClock::now();
    for (const Stage& stage : stages) {
      measure(stage);
    }
    progress_.clear();
  }

  Sweep&& take() { return std::move(sweep_); }

 private:
  double secondsLeft() const { return options_.seconds - secondsSince(start_); }

  /// Rates of a depth's runs.
  struct Place {
    uint64_t depth = 0;
    BenchLoad load;
    std::vector<int32_t> ids;
    std::vector<double> prefill;
    std::vector<double> decode;
    double seconds = 0;
  };

  void measure(const Stage& stage) {
    const uint32_t left_after = left_ - static_cast<uint32_t>(stage.depths.size());
    if (secondsLeft() > 0) {
      CommonOptions common = common_;
      common.window_tokens = stage.window;
      common.k_format = stage.pair.k;
      common.v_format = stage.pair.v;
      common.min_tokens_per_s = 0;
      common.min_window_tokens = 0;
      try {
        const Model model(common, Load::kDevice);
        const oriel_plan plan = predictedPlan(model, common, speed_);
        if (stage.kind == SweepKind::kDepth) {
          addLine(plan);
        }
        measureDepths(stage, model, plan, secondsLeft() * left_after / left_);
      } catch (const Failure& failure) {
        if (failure.exit_code != kExitDoesNotFit) {
          throw;
        }
        if (common_.verbose) {
          tell("oriel: " + failure.message + "\n");
        }
      }
    }
    left_ = left_after;
    progress_.show(sweep_.planned - left_, sweep_.planned);
  }

  /// In rounds over the depths, until `deadline` seconds are left: what slows a machine down for a while
  /// then slows one run of many points, not all runs of one.
  void measureDepths(const Stage& stage, const Model& model, const oriel_plan& plan,
                     double deadline) {
    std::vector<Place> places;
    for (const uint64_t depth : stage.depths) {
      const BenchLoad load = loadOf(plan, depth);
      places.push_back({depth, load, arbitraryIds(load.prefill, model.info().n_vocab), {}, {}, 0});
    }
    std::optional<Failure> failure;
    try {
      bool more = true;
      for (size_t round = 0; more; ++round) {
        more = false;
        for (Place& place : places) {
          if (round == 0 ? secondsLeft() > 0 : secondsLeft() > deadline && !enough(place)) {
            more = true;
            runOnce(model, &place);
          }
          if (round == 0) {
            progress_.show(sweep_.planned - left_ + static_cast<uint32_t>(&place - places.data()) + 1,
                           sweep_.planned);
          }
        }
      }
    } catch (const Failure& early) {
      failure = early;  // what was measured is kept
    }
    for (Place& place : places) {
      if (!place.prefill.empty()) {
        addPoint(stage, plan, &place);
      }
    }
    if (failure) {
      throw *failure;
    }
  }

  static bool enough(const Place& place) {
    return place.prefill.size() >= kEnoughRuns && place.seconds >= kEnoughSeconds;
  }

  static void runOnce(const Model& model, Place* place) {
    const BenchClock::time_point begin = BenchClock::now();
    const BenchRun run = runBenchOnce(model, place->load, place->ids);
    place->seconds += secondsSince(begin);
    place->prefill.push_back(run.prefill_tokens_per_s);
    place->decode.push_back(run.decode_tokens_per_s.value_or(0));
  }

  void addLine(const oriel_plan& plan) {
    PredictedLine line;
    line.formats = formatsName(plan.k_format, plan.v_format);
    for (int i = 0; i <= kLineSteps; ++i) {
      const uint64_t depth = uint64_t{sweep_.deepest} * static_cast<uint32_t>(i) / kLineSteps;
      oriel_prediction prediction;
      if (predict(plan, depth, options_.prefill, &prediction)) {
        line.tokens.push_back(static_cast<double>(depth));
        line.prefill.push_back(prediction.prefill_tokens_per_s);
        line.decode.push_back(prediction.decode_tokens_per_s);
      }
    }
    sweep_.lines.push_back(line);
  }

  /// As many tokens as this point's share of the time allows.
  BenchLoad loadOf(const oriel_plan& plan, uint64_t depth) const {
    BenchLoad load = {options_.prefill, options_.decode, depth};
    oriel_prediction prediction;
    if (predict(plan, depth, options_.prefill, &prediction)) {
      const double seconds = secondsLeft() / left_ / 2;
      const auto within = [&](double tokens_per_s, uint32_t most) {
        const double tokens = std::min(seconds * tokens_per_s / 2, 1e6);
        return std::min(std::max(static_cast<uint32_t>(tokens), kFewTokens), most);
      };
      // A chunk that is not full costs more than its share.
      load.prefill = std::max(within(prediction.prefill_tokens_per_s, load.prefill),
                              std::min(load.prefill, plan.chunk_tokens));
      load.decode = within(prediction.decode_tokens_per_s, load.decode);
    }
    return load;
  }

  void addPoint(const Stage& stage, const oriel_plan& plan, Place* place) {
    const auto middle = [](std::vector<double>* values) {
      const auto at = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
      std::nth_element(values->begin(), at, values->end());
      return *at;
    };
    const uint64_t depth = place->depth;
    const BenchLoad& load = place->load;
    const double shown = static_cast<double>(depth) + load.prefill + load.decode / 2.0;
    SweepPoint point;
    point.kind = stage.kind;
    point.formats = formatsName(plan.k_format, plan.v_format);
    point.window_tokens = plan.window_tokens;
    point.depth_tokens = depth;
    point.prompt_tokens = load.prefill;
    point.generated_tokens = load.decode;
    point.total_bytes = plan.total_bytes;
    point.prefill_tokens_per_s = middle(&place->prefill);
    point.decode_tokens_per_s = middle(&place->decode);
    point.prefill_bytes_per_token =
        prefillBytes(plan, static_cast<double>(depth), load.prefill) / load.prefill;
    point.decode_bytes_per_token = decodeBytes(plan, shown);
    oriel_prediction prediction;
    if (predict(plan, depth, load.prefill, &prediction)) {
      point.predicted_prefill = prediction.prefill_tokens_per_s;
    }
    if (predict(plan, static_cast<uint64_t>(shown), 0, &prediction)) {
      point.predicted_decode = prediction.decode_tokens_per_s;
    }
    csv_ << sweepCsvRow(point, sweep_.read_bytes_per_s) << std::flush;
    sweep_.points.push_back(point);
  }

  const CommonOptions& common_;
  const SweepOptions& options_;
  const std::string path_;
  std::ofstream csv_;
  Sweep sweep_;
  oriel_speed speed_ = {};
  BenchClock::time_point start_;
  uint32_t left_ = 0;
  ProgressBar progress_{"measuring"};
};

std::string orEmpty(double value) { return value > 0 ? formatted("%.3f", value) : ""; }

}  // namespace

std::string sweepCsvHeader() {
  return "sweep,kv,window_tokens,depth_tokens,prompt_tokens,generated_tokens,total_bytes,"
         "prefill_tokens_per_s,predicted_prefill_tokens_per_s,prefill_bytes_per_token,"
         "prefill_bandwidth_share,decode_tokens_per_s,predicted_decode_tokens_per_s,"
         "decode_bytes_per_token,decode_bandwidth_share\n";
}

std::string sweepCsvRow(const SweepPoint& point, double read_bytes_per_s) {
  const auto share = [&](double tokens_per_s, double bytes_per_token) {
    return orEmpty(read_bytes_per_s > 0 ? tokens_per_s * bytes_per_token / read_bytes_per_s : 0);
  };
  std::string kv = point.formats;
  std::transform(kv.begin(), kv.end(), kv.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return formatted("%s,%s,%u,%llu,%u,%u,%llu,", point.kind == SweepKind::kDepth ? "depth" : "window",
                   kv.c_str(), point.window_tokens,
                   static_cast<unsigned long long>(point.depth_tokens), point.prompt_tokens,
                   point.generated_tokens, static_cast<unsigned long long>(point.total_bytes)) +
         orEmpty(point.prefill_tokens_per_s) + "," + orEmpty(point.predicted_prefill) + "," +
         formatted("%.0f,", point.prefill_bytes_per_token) +
         share(point.prefill_tokens_per_s, point.prefill_bytes_per_token) + "," +
         orEmpty(point.decode_tokens_per_s) + "," + orEmpty(point.predicted_decode) + "," +
         formatted("%.0f,", point.decode_bytes_per_token) +
         share(point.decode_tokens_per_s, point.decode_bytes_per_token) + "\n";
}

Sweep runSweep(const CommonOptions& common, const SweepOptions& options) {
  Sweeper sweeper(common, options);
  std::optional<Failure> failure;
  try {
    sweeper.run();
  } catch (const Failure& early) {
    failure = early;
  }
  Sweep sweep = sweeper.take();
  if (!sweep.points.empty()) {
    writeTextFile(options.stem + ".svg", plotSweep(sweep));
  }
  if (failure) {
    throw *failure;
  }
  return sweep;
}

}  // namespace cli
