#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "command_line.h"
#include "measure/bench_run.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "plan/sweep.h"
#include "report.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

struct BenchOptions {
  CommonOptions common;
  uint32_t prefill = 64;
  uint32_t decode = 64;
  uint32_t depth = 0;
  uint32_t repeat = 0;  // kRuns, or more while they are short
  double sustain_minutes = 0;
  uint32_t cancels = 0;
  uint32_t sessions = 1;
  bool ops = false;
  std::string sweep;
  double sweep_seconds = 180;
};

constexpr uint32_t kRuns = 3;
constexpr double kEnoughSeconds = 0.25;

/// null if empty.
Json median(std::vector<double> values) {
  if (values.empty()) {
    return nullptr;
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Json fastest(const std::vector<double>& values) {
  return values.empty() ? Json(nullptr) : Json(*std::max_element(values.begin(), values.end()));
}

struct Measured {
  std::vector<double> prefill_tokens_per_s;
  std::vector<double> decode_tokens_per_s;
  std::vector<double> time_to_first_token_ms;
  uint64_t expert_hits = 0;
  uint64_t expert_misses = 0;
};

/// The hit rate of experts on file. Null: all experts are in memory, or the model has none.
Json expertHitRate(const Measured& measured) {
  const double all = static_cast<double>(measured.expert_hits + measured.expert_misses);
  return all > 0 ? Json(static_cast<double>(measured.expert_hits) / all) : Json(nullptr);
}

void measure(const BenchOptions& options, const Model& model, const std::vector<int32_t>& ids,
             Measured* measured) {
  const BenchRun run = runBenchOnce(model, {options.prefill, options.decode, options.depth}, ids);
  measured->prefill_tokens_per_s.push_back(run.prefill_tokens_per_s);
  if (run.decode_tokens_per_s) {
    measured->decode_tokens_per_s.push_back(*run.decode_tokens_per_s);
  }
  if (run.time_to_first_token_ms) {
    measured->time_to_first_token_ms.push_back(*run.time_to_first_token_ms);
  }
  measured->expert_hits += run.expert_hits;
  measured->expert_misses += run.expert_misses;
}

/// Measures after a warm-up run.
Measured measureAll(const BenchOptions& options, const Model& model,
                    const std::vector<int32_t>& ids) {
  Measured warm_up;
  measure(options, model, ids, &warm_up);
  Measured measured;
  const BenchClock::time_point begin = BenchClock::now();
  const uint32_t runs = options.repeat != 0 ? options.repeat : kRuns;
  for (uint32_t i = 0; i < runs || (options.repeat == 0 && secondsSince(begin) < kEnoughSeconds);
       ++i) {
    measure(options, model, ids, &measured);
  }
  return measured;
}

/// Tokens per second of several sessions that decode together, after a warm-up run. In the memory budget of one session.
Json measureTogether(const BenchOptions& options, uint64_t memory_bytes,
                     const std::vector<int32_t>& ids) {
  CommonOptions common = options.common;
  common.load.set("sessions", options.sessions);
  common.load.set("memory", memory_bytes);
  const Model model(common, Load::kDevice);
  const BenchLoad load = {options.prefill, options.decode, options.depth};
  (void)runTogetherOnce(model, load, ids);
  std::vector<double> tokens_per_s;
  const BenchClock::time_point begin = BenchClock::now();
  const uint32_t runs = options.repeat != 0 ? options.repeat : kRuns;
  for (uint32_t i = 0; i < runs || (options.repeat == 0 && secondsSince(begin) < kEnoughSeconds);
       ++i) {
    tokens_per_s.push_back(runTogetherOnce(model, load, ids));
  }
  return median(tokens_per_s);
}

/// A stretch of a long generation.
struct SustainStep {
  uint64_t tokens = 0;
  double seconds = 0;
  uint64_t resident_bytes = 0;
};

struct Sustain {
  std::vector<SustainStep> steps;  ///< reserved: the callback must not allocate
  double step_seconds = 0;
  BenchClock::time_point step_start;
  uint64_t tokens = 0;  ///< of this step
  ProgressBar progress{"sustaining", std::chrono::milliseconds(300), ProgressUnit::kShare};
};

int onSustainedToken(const oriel_token_event*, void* user) {
  auto* sustain = static_cast<Sustain*>(user);
  ++sustain->tokens;
  const double seconds = secondsSince(sustain->step_start);
  if (seconds < sustain->step_seconds) {
    return 0;
  }
  sustain->steps.push_back({sustain->tokens, seconds, residentBytes()});
  sustain->step_start = BenchClock::now();
  sustain->tokens = 0;
  sustain->progress.show(sustain->steps.size(), sustain->steps.capacity());
  return sustain->steps.size() == sustain->steps.capacity() ? 1 : 0;
}

/// Generates for `minutes` without a pause. Reports every minute, or ten times if that is more often.
Json runSustain(double minutes, const std::vector<int32_t>& ids, Session* session) {
  constexpr double kLeastSteps = 10;
  constexpr double kThrottled = 0.9;  // of the fastest step before
  Sustain sustain;
  const double seconds = 60 * minutes;
  sustain.step_seconds = std::min(60.0, seconds / kLeastSteps);
  sustain.steps.reserve(static_cast<size_t>(seconds / sustain.step_seconds + 0.5));
  session->reset();
  session->append(ids.data(), 1);
  const oriel::ReplyOptions sampling = greedyOptions(0);
  oriel_generation result = ORIEL_INIT(oriel_generation);
  sustain.step_start = BenchClock::now();
  session->check(
      oriel_session_generate(session->get(), &sampling, onSustainedToken, &sustain, &result));
  Json list = Json::array();
  double fastest_step = 0;
  for (const SustainStep& step : sustain.steps) {
    const double tokens_per_s = static_cast<double>(step.tokens) / step.seconds;
    Json entry;
    entry["seconds"] = step.seconds;
    entry["tokens_per_s"] = tokens_per_s;
    entry["throttled"] = tokens_per_s < kThrottled * fastest_step;
    entry["resident_bytes"] = step.resident_bytes;
    list.push_back(entry);
    fastest_step = std::max(fastest_step, tokens_per_s);
  }
  return list;
}

double measured(const Json& value) { return value.is_null() ? 0.0 : value.get<double>(); }

/// "  1234.5 tokens/s   predicted   1300.0 (measured -5 %)   1.2 MiB/token, 43 % of bandwidth".
std::string speedLine(const char* name, const Json& json, const std::string& kind) {
  const std::string field = kind + "_tokens_per_s";
  std::string line = formatted("%-12s %10.1f tokens/s", name, measured(json[field]));
  const Json& predicted = json["predicted"][field];
  if (!predicted.is_null()) {
    line += formatted("   predicted %.1f", predicted.get<double>());
    const Json& off = json["off"][kind + "_percent"];
    line += off.is_null() ? "" : formatted(" (measured %+.0f %%)", off.get<double>());
  }
  const Json& moved = json["moved"];
  line += "   " + formatSize(static_cast<uint64_t>(measured(moved[kind + "_bytes_per_token"]))) +
          " a token";
  const Json& share = moved[kind + "_bandwidth_share"];
  return line +
         (share.is_null() ? "" : formatted(", %.0f %% of bandwidth", 100 * share.get<double>())) +
         "\n";
}

/// Explains a bandwidth share above 100 %; empty for lower shares.
std::string bandwidthNote(const Json& moved) {
  const bool above = measured(moved["prefill_bandwidth_share"]) > 1 ||
                     measured(moved["decode_bandwidth_share"]) > 1;
  return above ? "             more than 100 %: the processor's caches are faster than memory\n"
               : "";
}

void describe(const Json& json, const BenchOptions& options) {
  std::string text =
      oneLine(json["device"].get<std::string>() + " (" + json["driver"].get<std::string>() + ")");
  const Json& bandwidth = json["moved"]["read_bytes_per_s"];
  text +=
      bandwidth.is_null() ? "\n" : formatted(", reads %.1f GB/s\n", bandwidth.get<double>() / 1e9);
  text += speedLine("prefill", json, "prefill");
  if (!json["decode_tokens_per_s"].is_null()) {
    text += speedLine("decode", json, "decode");
    text += formatted("first token  %10.1f ms\n", measured(json["time_to_first_token_ms"]));
  }
  if (json.contains("together_tokens_per_s")) {
    const double together = json["together_tokens_per_s"].get<double>();
    text += formatted("together     %10.1f tokens/s   %u sessions, %.2f times one alone\n",
                      together, options.sessions, together / measured(json["decode_tokens_per_s"]));
  }
  text += bandwidthNote(json["moved"]);
  if (!json["expert_hit_rate"].is_null()) {
    text += formatted("experts      %10.1f %% were in a slot   predicted %.1f %%\n",
                      100 * measured(json["expert_hit_rate"]),
                      100 * measured(json["predicted"]["expert_hit_rate"]));
  }
  text += formatted("load         %10.1f ms\n", measured(json["load_ms"]));
  text += "test         " + countOf(options.prefill, "token") + " of prompt, " +
          grouped(options.decode) + " generated, " +
          (options.depth == 0 ? "nothing before" : "behind " + grouped(options.depth)) + "\n";
  text += "device       " + formatSize(json["device_bytes"].get<uint64_t>()) + ", host " +
          formatSize(json["host_bytes"].get<uint64_t>()) + ", together " +
          formatSize(json["total_bytes"].get<uint64_t>()) + "\n";
  text += "process      " + formatSize(json["peak_host_bytes"].get<uint64_t>()) +
          " at most, with the driver and this program\n";
  text += describePipelines(json["pipelines"]);
  if (json.contains("cancel_ms")) {
    text += describeCancels(json["cancel_ms"]);
  }
  if (json.contains("sustain")) {
    text += "sustained\n";
    double seconds = 0;
    for (const Json& step : json["sustain"]) {
      seconds += step["seconds"].get<double>();
      text += formatted("  %8.1f s  %10.1f tokens/s  %s%s\n", seconds,
                        step["tokens_per_s"].get<double>(),
                        formatSize(step["resident_bytes"].get<uint64_t>()).c_str(),
                        step["throttled"].get<bool>() ? "  throttled" : "");
    }
  }
  printText(text);
}

/// `predicted`, `off` (deviation of the measured figures) and `moved`.
void addPrediction(const BenchOptions& options, const Json& plan, double read_bytes_per_s,
                   Json* json) {
  const PredictedAt at = {options.depth + options.prefill + options.decode / 2.0, options.depth,
                          options.prefill};
  (*json)["predicted"] = predictedFields(plan, at);
  const double bytes[] = {prefillBytes(plan, options.depth, options.prefill) / options.prefill,
                          decodeBytes(plan, at.decode_depth)};
  Json off;
  Json moved;
  moved["read_bytes_per_s"] = read_bytes_per_s > 0 ? Json(read_bytes_per_s) : Json(nullptr);
  size_t i = 0;
  for (const std::string kind : {"prefill", "decode"}) {
    const Json& measured = (*json)[kind + "_tokens_per_s"];
    const Json& predicted = (*json)["predicted"][kind + "_tokens_per_s"];
    const bool comparable =
        !measured.is_null() && !predicted.is_null() && predicted.get<double>() > 0;
    off[kind + "_percent"] =
        comparable ? Json(100 * (measured.get<double>() / predicted.get<double>() - 1))
                   : Json(nullptr);
    moved[kind + "_bytes_per_token"] = bytes[i];
    moved[kind + "_bandwidth_share"] =
        !measured.is_null() && read_bytes_per_s > 0
            ? Json(measured.get<double>() * bytes[i] / read_bytes_per_s)
            : Json(nullptr);
    ++i;
  }
  (*json)["off"] = off;
  (*json)["moved"] = moved;
}

int runSweepCommand(const BenchOptions& options) {
  const Sweep sweep = runSweep(
      options.common, {options.sweep, options.sweep_seconds, options.prefill, options.decode});
  Json json;
  const bool drawn = !sweep.points.empty();
  json["device"] = sweep.device.empty() ? Json(nullptr) : Json(sweep.device);
  json["csv"] = options.sweep + ".csv";
  json["svg"] = drawn ? Json(options.sweep + ".svg") : Json(nullptr);
  json["points"] = sweep.points.size();
  json["points_planned"] = sweep.planned;
  json["interrupted"] = sweep.interrupted;
  if (options.common.json) {
    printJson(json);
  } else {
    printText(
        formatted(sweep.interrupted ? "interrupted, %zu of %u points kept: " : "%zu of %u points: ",
                  sweep.points.size(), sweep.planned) +
        oneLine(options.sweep) + (drawn ? ".csv and .svg\n" : ".csv\n"));
  }
  return sweep.interrupted ? kExitCancelled : kExitDone;
}

/// Memory of the measured model, and the other options.
Json loadedFields(const BenchOptions& options, const Model& model,
                  const std::vector<int32_t>& ids) {
  Session session(model);
  const CancelOnInterrupt cancel(session.get());
  const oriel_plan& plan = model.plan();
  Json json;
  json["device"] = model.info()["device"];
  json["driver"] = model.info()["driver"];
  json["load_ms"] = model.loadMs();
  json["pipelines"] = pipelineFields(model.info());
  if (options.cancels > 0) {
    json["cancel_ms"] = cancelLatency(ids, options.cancels, &session);
  }
  if (options.sustain_minutes > 0) {
    json["sustain"] = runSustain(options.sustain_minutes, ids, &session);
  }
  json["device_bytes"] = session.stats().device_bytes;
  json["host_bytes"] = plan.host_bytes;
  json["total_bytes"] = plan.total_bytes;
  json["peak_host_bytes"] = std::max(peakResidentBytes(), residentBytes());
  json["window_tokens"] = plan.window_tokens;
  return json;
}

void describeOps(const Json& ops) {
  std::string text = formatted("%-8s %-24s %6s %10s %10s %10s %7s\n", "list", "op", "ops",
                               "dispatches", "ms", "expected", "share");
  std::string list;
  for (const Json& op : ops) {
    const std::string of = op["list"].get<std::string>();
    text += formatted("%-8s %-24s %6u %10u %10.3f %10.3f %6.1f%%\n", of == list ? "" : of.c_str(),
                      op["op"].get<std::string>().c_str(), op["count"].get<uint32_t>(),
                      op["dispatches"].get<uint32_t>(), op["ms"].get<double>(),
                      op["expected_ms"].get<double>(), 100 * op["share"].get<double>());
    list = of;
  }
  printText(text);
}

/// The time of every kind of op, each alone on the device.
int runOps(const BenchOptions& options) {
  Json ops = opTimes(options.common, modelPath(options.common), options.depth,
                     options.repeat != 0 ? options.repeat : kRuns);
  std::map<std::string, double> sums;
  for (const Json& op : ops) {
    sums[op["list"].get<std::string>()] += op["ms"].get<double>();
  }
  for (Json& op : ops) {
    const double sum = sums[op["list"].get<std::string>()];
    op["share"] = sum > 0 ? op["ms"].get<double>() / sum : 0.0;
  }
  if (options.common.json) {
    Json json;
    json["depth"] = options.depth;
    json["ops"] = ops;
    printJson(json);
  } else {
    describeOps(ops);
  }
  return kExitDone;
}

int runBench(const BenchOptions& options) {
  if (!options.sweep.empty()) {
    return runSweepCommand(options);
  }
  if (options.ops) {
    return runOps(options);
  }
  const CommonOptions& common = options.common;
  std::optional<Model> model(std::in_place, common, Load::kDevice);
  const std::vector<int32_t> ids = arbitraryIds(options.prefill, model->number("n_vocab"));
  Measured measured = measureAll(options, *model, ids);
  Json json = loadedFields(options, *model, ids);
  // Last, so that the memory for measuring the device does not count.
  const oriel_speed speed = deviceSpeed(common, modelPath(common).c_str(), nullptr, /*again=*/true);
  if (speed.kernels_changed != 0) {  // the prediction is for a plan other than the loaded one
    CommonOptions again = common;
    again.load.set("memory",
                   model->plan().memory_bytes);  // the default now would be less
    model.reset();
    model.emplace(again, Load::kDevice);
    measured = measureAll(options, *model, ids);
  }
  if (interrupts() != 0) {
    throw Failure{kExitCancelled, ""};
  }
  json["prefill_tokens_per_s"] = median(measured.prefill_tokens_per_s);
  json["decode_tokens_per_s"] = median(measured.decode_tokens_per_s);
  json["fastest"]["prefill_tokens_per_s"] = fastest(measured.prefill_tokens_per_s);
  json["fastest"]["decode_tokens_per_s"] = fastest(measured.decode_tokens_per_s);
  json["time_to_first_token_ms"] = median(measured.time_to_first_token_ms);
  json["expert_hits"] = measured.expert_hits;
  json["expert_misses"] = measured.expert_misses;
  json["expert_hit_rate"] = expertHitRate(measured);
  const Json predicted = predictedPlan(model->wholePlan(), common, speed);
  addPrediction(options, predicted, speed.read_bytes_per_s, &json);
  if (options.sessions > 1 && options.decode > 1) {
    const uint64_t memory_bytes = model->plan().memory_bytes;
    model.reset();
    json["sessions"] = options.sessions;
    json["together_tokens_per_s"] = measureTogether(options, memory_bytes, ids);
  }
  if (options.common.json) {
    printJson(json);
  } else {
    describe(json, options);
  }
  return kExitDone;
}

}  // namespace

Command addBenchCommand(CLI::App* program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* app =
      program->add_subcommand("bench", "Measure speed and memory, next to the prediction");
  addModelOption(app, &options->common);
  app->footer("Example:\n  oriel bench model.gguf --memory 1GiB");
  app->add_option("--prefill", options->prefill, "Prompt of N tokens (default 64)")
      ->type_name("N")
      ->transform(wholeNumber(1, 1000000));
  app->add_option("--decode", options->decode, "Generate N tokens after it (default 64)")
      ->type_name("N")
      ->transform(wholeNumber(0, 1000000));
  app->add_option("--depth", options->depth,
                  "Measure as if the session held N tokens already (default 0)")
      ->type_name("N")
      ->transform(wholeNumber(0, 1000000));
  app->add_option("--repeat", options->repeat,
                  "Runs after the warm-up (default 3, and more while they are short)")
      ->type_name("R")
      ->transform(wholeNumber(1, 1000));
  app->add_option(
         "--sessions", options->sessions,
         "Then compare N sessions of one model that decode together with one session alone")
      ->type_name("N")
      ->transform(wholeNumber(1, 64));
  app->add_option("--sustain", options->sustain_minutes,
                  "Afterwards generate for MINUTES, report each minute and mark throttling")
      ->type_name("MINUTES")
      ->check(between(0.001, 1e6));
  app->add_option("--cancel", options->cancels,
                  "Afterwards cancel N prompts, each at another moment, and report how long it "
                  "takes")
      ->type_name("N")
      ->transform(wholeNumber(1, 1000));
  app->add_option("--sweep", options->sweep,
                  "Instead measure depths, windows and cache formats, into STEM.csv and STEM.svg")
      ->type_name("STEM")
      ->check(stem());
  app->add_flag("--ops", options->ops,
                "Instead time every kind of op by the device's timestamps (Vulkan)");
  for (const char* other : {"--prefill", "--decode", "--sessions", "--sustain", "--cancel"}) {
    app->get_option("--ops")->excludes(app->get_option(other));
  }
  app->get_option("--sweep")->excludes(app->get_option("--ops"));
  for (const char* other : {"--depth", "--repeat", "--sessions", "--sustain", "--cancel"}) {
    app->get_option("--sweep")->excludes(app->get_option(other));
  }
  app->add_option(
         "--sweep-seconds", options->sweep_seconds,
         "Seconds for a sweep (default 180); less time means fewer points and fewer repeats")
      ->type_name("S")
      ->check(between(0.1, 1e6));
  addCommonOptions(app, &options->common, Uses::kModel);
  return {app, [options] { return runBench(*options); }};
}

}  // namespace cli
