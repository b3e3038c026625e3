#include "plan/sweep.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "measure/bench_run.h"
#include "measure/divergence.h"
#include "options.h"
#include "output.h"
#include "plan/chart.h"
#include "plan/plan_report.h"
#include "report.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

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

namespace {

constexpr uint32_t kLongestWindow = 4096;  // the default
constexpr uint32_t kShortestWindow = 128;
constexpr uint32_t kFewTokens = 8;
// The machine's temperature and load change, so each point is visited several times, alternating with all others. Times
// are repeated while runs are short enough for one late thread to matter. Before each round the device's rates are
// measured again, if this many times their measuring time has passed.
constexpr uint32_t kVisits = 5;
constexpr double kVisitSeconds = 0.04;
constexpr double kSecondsPerMeasuring = 2;
constexpr int kLineSteps = 48;

/// A depth, and the rates of its runs.
struct Place {
  uint64_t depth = 0;
  BenchLoad load;
  uint32_t visits = 0;
  std::vector<double> prefill;
  std::vector<double> decode;
  std::vector<size_t> rates;  ///< of each run: index of the latest rates
};

/// A model to load, and the depths to measure.
struct Stage {
  SweepKind kind = SweepKind::kDepth;
  std::string kv;
  uint32_t window = 0;
  std::vector<Place> places;
  bool fits = true;
  Json loaded;                  ///< null: not yet
  std::vector<Json> predicted;  ///< the same with each set of rates so far
};

std::vector<std::string> pairsOf(const CommonOptions& common) {
  const std::string kv = common.load.text("kv");
  if (!kv.empty() && kv != "auto") {
    return {kv};
  }
  return {std::begin(kFormatPairs), std::end(kFormatPairs)};
}

uint32_t windowOf(const CommonOptions& common, const std::string& path) {
  const uint32_t given = common.load.count("window");
  if (given != 0 && given != ORIEL_WINDOW_MAX) {
    return given;
  }
  oriel::Options options = memoryOptions(common);
  const Diagnostics diagnostics(common.verbose);
  diagnostics.listen(&options);
  const Json plan = PlanSource::ofFile(path).plan(options, diagnostics);
  return plannedFits(plan) ? std::min(countIn(plan, "window_tokens"), kLongestWindow)
                           : kLongestWindow;
}

Stage stageOf(SweepKind kind, const std::string& kv, uint32_t window,
              const std::vector<uint64_t>& depths) {
  Stage stage;
  stage.kind = kind;
  stage.kv = kv;
  stage.window = window;
  for (const uint64_t depth : depths) {
    Place place;
    place.depth = depth;
    stage.places.push_back(place);
  }
  return stage;
}

/// The most informative stages come first, since time may run out.
std::vector<Stage> stagesOf(const CommonOptions& common, uint32_t window) {
  std::vector<Stage> stages;
  std::vector<uint64_t> depths;
  for (const double share : {0.0, 1.0, 0.25, 0.5, 0.0625, 0.75, 0.125}) {
    depths.push_back(static_cast<uint64_t>(share * window));
  }
  const std::vector<std::string> pairs = pairsOf(common);
  stages.reserve(pairs.size());
  for (const std::string& pair : pairs) {
    stages.push_back(stageOf(SweepKind::kDepth, pair, window, depths));
  }
  for (const std::string& pair : pairs) {
    if (&pair != &pairs.front() && &pair != &pairs.back()) {
      continue;  // between these two
    }
    for (uint32_t size = kShortestWindow; size <= window; size *= 2) {
      stages.push_back(stageOf(SweepKind::kWindow, pair, size, {2ull * size}));
    }
  }
  return stages;
}

double medianOf(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

class Sweeper {
 public:
  Sweeper(const CommonOptions& common, const SweepOptions& options)
      : common_(common), options_(options), path_(modelPath(common)) {
    sweep_.model = std::filesystem::u8path(path_).filename().u8string();
    const ResultFile place(csvPath());  // fails early if the file cannot be written
  }

  /// After Ctrl-C, writeCsv() and take() still give the results so far.
  void run() {
    measureDevice();
    sweep_.device = speeds_.front().device;
    sweep_.deepest = windowOf(common_, path_);
    stages_ = stagesOf(common_, sweep_.deepest);
    for (const Stage& stage : stages_) {
      sweep_.planned += static_cast<uint32_t>(stage.places.size());
    }
    start_ = BenchClock::now();
    for (uint32_t visit = 0; visit < kVisits && secondsLeft() > 0; ++visit) {
      if (secondsSince(measured_) > kSecondsPerMeasuring * measuring_seconds_) {
        measureDevice();
      }
      for (Stage& stage : stages_) {
        visitStage(&stage);
      }
      const auto fits = [](const Stage& stage) { return stage.fits; };
      if (misfit_ && std::none_of(stages_.begin(), stages_.end(), fits)) {
        throw Failure(*misfit_);
      }
    }
  }

  void endProgress() { progress_.clear(); }

  Sweep take() {
    for (const Stage& stage : stages_) {
      if (stage.kind == SweepKind::kDepth && !stage.loaded.is_null()) {
        sweep_.lines.push_back(lineOf(stage));
      }
    }
    return std::move(sweep_);
  }

  std::string csvPath() const { return options_.stem + ".csv"; }
  /// Writes all points so far. Without points it keeps an earlier sweep's file.
  void writeCsv() {
    sweep_.read_bytes_per_s = readBytesPerSecond();
    sweep_.points.clear();
    std::string text = sweepCsvHeader();
    for (const Stage& stage : stages_) {
      for (const Place& place : stage.places) {
        if (!place.prefill.empty()) {
          sweep_.points.push_back(pointOf(stage, place));
          text += sweepCsvRow(sweep_.points.back(), sweep_.read_bytes_per_s);
        }
      }
    }
    if (!sweep_.points.empty()) {
      writeResultFile(csvPath(), text);
    }
  }

 private:
  double secondsLeft() const { return options_.seconds - secondsSince(start_); }

  void measureDevice() {
    progress_.clear();
    const BenchClock::time_point begin = BenchClock::now();
    speeds_.push_back(deviceSpeed(common_, path_.c_str(), nullptr, /*again=*/true));
    measured_ = BenchClock::now();
    measuring_seconds_ = secondsSince(begin);
  }

  void visitStage(Stage* stage) {
    if (!stage->fits || secondsLeft() <= 0) {
      return;
    }
    CommonOptions common = common_;
    common.load.set("window", stage->window);
    common.load.set("kv", stage->kv);
    common.load.erase("min_speed");
    common.load.erase("min_window");
    common.load.set("calibration", "none");  // nothing is left to choose
    try {
      const Model model(common, Load::kDevice);
      stage->loaded = model.wholePlan();
      predictAgain(stage);
      for (Place& place : stage->places) {
        if (secondsLeft() > 0) {
          visit(model, *stage, &place);
        }
      }
    } catch (const Failure& failure) {
      if (failure.exit_code != kExitDoesNotFit) {
        throw;
      }
      stage->fits = false;
      if (!misfit_) {
        misfit_ = failure;
      }
      if (common_.verbose) {
        tell("oriel: " + oneLine(failure.message) + "\n");
      }
    }
    writeCsv();
  }

  void visit(const Model& model, const Stage& stage, Place* place) {
    if (place->visits == 0) {
      place->load = loadOf(stage.predicted.back(), place->depth);
    }
    const std::vector<int32_t> ids = arbitraryIds(place->load.prefill, model.number("n_vocab"));
    const BenchClock::time_point begin = BenchClock::now();
    do {
      const BenchRun run = runBenchOnce(model, place->load, ids);
      place->prefill.push_back(run.prefill_tokens_per_s);
      place->decode.push_back(run.decode_tokens_per_s.value_or(0));
      place->rates.push_back(speeds_.size() - 1);
    } while (secondsSince(begin) < kVisitSeconds);
    ++place->visits;
    uint64_t visits = 0;
    for (const Stage& each : stages_) {
      for (const Place& other : each.places) {
        visits += other.visits;
      }
    }
    progress_.show(visits, uint64_t{kVisits} * sweep_.planned);
  }

  /// Points not measured yet.
  uint32_t unvisited() const {
    uint32_t count = 0;
    for (const Stage& stage : stages_) {
      for (const Place& place : stage.places) {
        count += stage.fits && place.visits == 0 ? 1 : 0;
      }
    }
    return count;
  }

  /// The tokens that this point's share of the time allows.
  BenchLoad loadOf(const Json& plan, uint64_t depth) const {
    BenchLoad load = {options_.prefill, options_.decode, depth};
    oriel_prediction prediction;
    if (predict(plan, depth, options_.prefill, &prediction)) {
      const double seconds = secondsLeft() / unvisited() / kVisits;
      const auto within = [&](double tokens_per_s, uint32_t most) {
        const double tokens = std::min(seconds * tokens_per_s / 2, 1e6);
        return std::min(std::max(static_cast<uint32_t>(tokens), kFewTokens), most);
      };
      // A partial chunk costs more than its share.
      load.prefill = std::max(within(prediction.prefill_tokens_per_s, load.prefill),
                              std::min(load.prefill, countIn(plan, "chunk_tokens")));
      load.decode = within(prediction.decode_tokens_per_s, load.decode);
    }
    return load;
  }

  double readBytesPerSecond() const {
    std::vector<double> values;
    for (const oriel_speed& speed : speeds_) {
      values.push_back(speed.read_bytes_per_s);
    }
    return values.empty() ? 0 : medianOf(values);
  }

  /// Predicts with the rates measured since.
  void predictAgain(Stage* stage) {
    while (stage->predicted.size() < speeds_.size()) {
      stage->predicted.push_back(
          predictedPlan(stage->loaded, common_, speeds_[stage->predicted.size()]));
    }
  }

  /// The median prediction of these rates, tokens/s; 0: unknown.
  static double predicted(const Stage& stage, const std::vector<size_t>& rates, uint64_t depth,
                          uint32_t prompt_tokens, double oriel_prediction::*tokens_per_s) {
    std::vector<double> values;
    for (const size_t i : rates) {
      oriel_prediction prediction;
      if (predict(stage.predicted[i], depth, prompt_tokens, &prediction)) {
        values.push_back(prediction.*tokens_per_s);
      }
    }
    return values.empty() ? 0 : medianOf(values);
  }

  PredictedLine lineOf(const Stage& stage) const {
    std::vector<size_t> all;
    for (const Place& place : stage.places) {
      all.insert(all.end(), place.rates.begin(), place.rates.end());
    }
    PredictedLine line;
    line.formats = formatsName(stage.loaded);
    for (int i = 0; i <= kLineSteps; ++i) {
      const uint64_t depth = uint64_t{sweep_.deepest} * static_cast<uint32_t>(i) / kLineSteps;
      const double prefill =
          predicted(stage, all, depth, options_.prefill, &oriel_prediction::prefill_tokens_per_s);
      if (prefill > 0) {
        line.tokens.push_back(static_cast<double>(depth));
        line.prefill.push_back(prefill);
        line.decode.push_back(
            predicted(stage, all, depth, options_.prefill, &oriel_prediction::decode_tokens_per_s));
      }
    }
    return line;
  }

  static SweepPoint pointOf(const Stage& stage, const Place& place) {
    const Json& plan = stage.loaded;
    const BenchLoad& load = place.load;
    const double shown = static_cast<double>(place.depth) + load.prefill + load.decode / 2.0;
    SweepPoint point;
    point.kind = stage.kind;
    point.formats = formatsName(plan);
    point.window_tokens = countIn(plan, "window_tokens");
    point.depth_tokens = place.depth;
    point.prompt_tokens = load.prefill;
    point.generated_tokens = load.decode;
    point.total_bytes = numberIn(plan, "total_bytes");
    point.prefill_tokens_per_s = medianOf(place.prefill);
    point.decode_tokens_per_s = medianOf(place.decode);
    point.prefill_bytes_per_token =
        prefillBytes(plan, static_cast<double>(place.depth), load.prefill) / load.prefill;
    point.decode_bytes_per_token = decodeBytes(plan, shown);
    point.predicted_prefill = predicted(stage, place.rates, place.depth, load.prefill,
                                        &oriel_prediction::prefill_tokens_per_s);
    point.predicted_decode = predicted(stage, place.rates, static_cast<uint64_t>(shown), 0,
                                       &oriel_prediction::decode_tokens_per_s);
    return point;
  }

  const CommonOptions& common_;
  const SweepOptions& options_;
  const std::string path_;
  Sweep sweep_;
  std::vector<Stage> stages_;
  std::optional<Failure> misfit_;  ///< the error of the first point that does not fit
  std::vector<oriel_speed> speeds_;
  BenchClock::time_point measured_;
  double measuring_seconds_ = 0;
  BenchClock::time_point start_;
  ProgressBar progress_{"measuring"};
};

}  // namespace

Sweep runSweep(const CommonOptions& common, const SweepOptions& options) {
  Sweeper sweeper(common, options);
  std::optional<Failure> failure;
  try {
    sweeper.run();
  } catch (const Failure& early) {
    failure = early;
  }
  sweeper.endProgress();
  sweeper.writeCsv();
  Sweep sweep = sweeper.take();
  if (!sweep.points.empty()) {
    writeResultFile(options.stem + ".svg", plotSweep(sweep));
  }
  if (failure && failure->exit_code != kExitCancelled) {
    throw *failure;
  }
  sweep.interrupted = failure.has_value();
  return sweep;
}

// ---- Tables and plots of a sweep ----------------------------------------------------------------

namespace {

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
  return formatted("%s,%s,%u,%llu,%u,%u,%llu,",
                   point.kind == SweepKind::kDepth ? "depth" : "window", kv.c_str(),
                   point.window_tokens, static_cast<unsigned long long>(point.depth_tokens),
                   point.prompt_tokens, point.generated_tokens,
                   static_cast<unsigned long long>(point.total_bytes)) +
         orEmpty(point.prefill_tokens_per_s) + "," + orEmpty(point.predicted_prefill) + "," +
         formatted("%.0f,", point.prefill_bytes_per_token) +
         share(point.prefill_tokens_per_s, point.prefill_bytes_per_token) + "," +
         orEmpty(point.decode_tokens_per_s) + "," + orEmpty(point.predicted_decode) + "," +
         formatted("%.0f,", point.decode_bytes_per_token) +
         share(point.decode_tokens_per_s, point.decode_bytes_per_token) + "\n";
}

namespace {

constexpr double kSweepWidth = 1160;
constexpr double kSweepHeight = 440;
constexpr double kTop = 112;
constexpr double kPanelWidth = 300;
constexpr double kPanelHeight = 250;
constexpr double kLeft = 74;
constexpr double kPanelStep = 374;
constexpr double kDotRadius = 3.5;
constexpr double kHeadRoom = 1.08;

struct Series {
  const char* colour;
  std::vector<Point> measured;
  std::vector<Point> predicted;
};

/// The axes and lines of a picture; a sweep has three.
struct Panel {
  std::string title;
  std::string x_title;
  bool log_x = false;
  std::vector<Series> series;
};

std::vector<std::string> formatsOf(const Sweep& sweep) {
  std::vector<std::string> formats;
  for (const PredictedLine& line : sweep.lines) {
    formats.push_back(line.formats);
  }
  return formats;
}

Panel panelOf(const Sweep& sweep, SweepKind kind, bool decode) {
  Panel panel;
  for (const std::string& formats : formatsOf(sweep)) {
    Series series = {formatColour(formats), {}, {}};
    for (const SweepPoint& point : sweep.points) {
      if (point.kind != kind || point.formats != formats) {
        continue;
      }
      const double x = kind == SweepKind::kWindow ? std::log2(point.window_tokens)
                                                  : static_cast<double>(point.depth_tokens);
      series.measured.push_back(
          {x, decode ? point.decode_tokens_per_s : point.prefill_tokens_per_s});
      if (kind == SweepKind::kWindow && point.predicted_decode > 0) {
        series.predicted.push_back({x, point.predicted_decode});
      }
    }
    for (const PredictedLine& line : sweep.lines) {
      for (size_t i = 0;
           kind == SweepKind::kDepth && line.formats == formats && i < line.tokens.size(); ++i) {
        series.predicted.push_back({line.tokens[i], decode ? line.decode[i] : line.prefill[i]});
      }
    }
    const auto by_x = [](const Point& a, const Point& b) { return a.x < b.x; };
    std::sort(series.measured.begin(), series.measured.end(), by_x);
    std::sort(series.predicted.begin(), series.predicted.end(), by_x);
    panel.series.push_back(series);
  }
  return panel;
}

std::vector<Tick> ticksOf(const Panel& panel, double first, double last) {
  std::vector<Tick> ticks;
  const double step = panel.log_x ? 1 : niceStep(last - first, 5, 1);
  for (double at = std::ceil(first / step) * step; at <= last; at += step) {
    ticks.push_back({at, numberLabel(panel.log_x ? std::exp2(at) : at, 1)});
  }
  return ticks;
}

void drawPanel(const Panel& panel, double x, Svg* svg) {
  double first = 1e300;
  double last = -1e300;
  double most = 0;
  for (const Series& series : panel.series) {
    for (const auto* points : {&series.measured, &series.predicted}) {
      for (const Point& point : *points) {
        first = std::min(first, point.x);
        last = std::max(last, point.x);
        most = std::max(most, point.y);
      }
    }
  }
  const Point corner = {x, kTop};
  svg->text({x, kTop - 14}, panel.title, Svg::Anchor::kStart, 14, "#333", true);
  if (first > last) {
    svg->text({x + kPanelWidth / 2, kTop + kPanelHeight / 2}, "no time was left",
              Svg::Anchor::kMiddle, 13, kQuietColour);
    return;
  }
  const double margin = std::max((last - first) / 40, 1e-9);
  const Chart chart = {corner,         kPanelWidth,   kPanelHeight,
                       first - margin, last + margin, std::max(most, 1e-3) * kHeadRoom};
  chart.drawAxes(ticksOf(panel, first, last), panel.x_title, "tokens/s", 58, svg);
  for (const Series& series : panel.series) {
    if (!series.predicted.empty()) {
      svg->polyline(chart.at(series.predicted), {series.colour, 1.5, true});
    }
  }
  for (const Series& series : panel.series) {
    if (!series.measured.empty()) {
      svg->polyline(chart.at(series.measured), {series.colour, 2, false});
    }
    for (const Point& point : series.measured) {
      svg->dot(chart.at(point.x, point.y), kDotRadius, "#ffffff", series.colour);
    }
  }
}

/// The fastest format's speed at both depths: ": 350 tokens/s at depth 0, 120 at depth 4,096 (K8V8)".
std::string resultOf(const Sweep& sweep) {
  const SweepPoint* first = nullptr;
  for (const SweepPoint& point : sweep.points) {
    const bool better = first == nullptr || point.depth_tokens < first->depth_tokens ||
                        (point.depth_tokens == first->depth_tokens &&
                         point.decode_tokens_per_s > first->decode_tokens_per_s);
    if (point.kind == SweepKind::kDepth && better) {
      first = &point;
    }
  }
  if (first == nullptr) {
    return "";
  }
  const SweepPoint* last = first;
  for (const SweepPoint& point : sweep.points) {
    if (point.kind == SweepKind::kDepth && point.formats == first->formats &&
        point.depth_tokens > last->depth_tokens) {
      last = &point;
    }
  }
  const auto at = [](const SweepPoint& point, const char* unit) {
    return numberLabel(point.decode_tokens_per_s, point.decode_tokens_per_s < 10 ? 0.1 : 1) + unit +
           " at depth " + grouped(point.depth_tokens);
  };
  return ": " + at(*first, " tokens/s") + (last == first ? "" : ", " + at(*last, "")) + " (" +
         first->formats + ")";
}

}  // namespace

std::string plotSweep(const Sweep& sweep) {
  Svg svg(kSweepWidth, kSweepHeight);
  svg.text({kLeft, 34}, sweep.model + " on " + sweep.device + resultOf(sweep), Svg::Anchor::kStart,
           18, kStrongColour, true);
  Legend legend({kLeft, 62}, &svg);
  for (const std::string& formats : formatsOf(sweep)) {
    legend.line(formats, {formatColour(formats), 3, false});
  }
  legend.dot("measured", "#ffffff", kStrongColour);
  legend.line("predicted", {kStrongColour, 1.5, true});

  Panel decode = panelOf(sweep, SweepKind::kDepth, true);
  decode.title = "Decoding";
  Panel prefill = panelOf(sweep, SweepKind::kDepth, false);
  prefill.title = "Reading a prompt";
  decode.x_title = prefill.x_title = "depth, tokens (window " + grouped(sweep.deepest) + " tokens)";
  Panel window = panelOf(sweep, SweepKind::kWindow, true);
  window.title = "Decoding, window full";
  window.x_title = "window, tokens";
  window.log_x = true;
  double x = kLeft;
  for (const Panel* panel : {&decode, &prefill, &window}) {
    drawPanel(*panel, x, &svg);
    x += kPanelStep;
  }
  return svg.document();
}

}  // namespace cli
