#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "interrupt.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "prediction.h"
#include "report.h"
#include "sizes.h"
#include "system.h"
#include "terminal.h"
#include "validators.h"

namespace cli {
namespace {

struct BenchOptions {
  CommonOptions common;
  uint32_t prefill = 64;
  uint32_t decode = 64;
  uint32_t depth = 0;
  uint32_t repeat = 3;
  uint32_t soak = 0;
};

constexpr uint32_t kSoakStep = 1000;

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Ids that repeat nothing and are the same everywhere (xorshift32). The first 256 are left out
/// where there are more: control and byte tokens live there.
std::vector<int32_t> arbitraryIds(size_t count, uint32_t n_vocab) {
  const uint32_t first = n_vocab > 512 ? 256 : 0;
  uint32_t state = 0x9E3779B9u;
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    id = static_cast<int32_t>(first + state % (n_vocab - first));
  }
  return ids;
}

/// null of nothing.
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

oriel_generate_options greedyOptions(uint32_t max_tokens) {
  oriel_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = max_tokens;
  options.greedy = 1;
  options.ignore_stop = 1;
  return options;
}

struct Measured {
  std::vector<double> prefill_tokens_per_s;
  std::vector<double> decode_tokens_per_s;
  std::vector<double> time_to_first_token_ms;
};

int onFirstToken(const oriel_token_event*, void* user) {
  auto* first = static_cast<Clock::time_point*>(user);
  if (*first == Clock::time_point()) {
    *first = Clock::now();
  }
  return 0;
}

/// One run: the prompt, then decoding, in a new session that assumes its depth.
void measure(const BenchOptions& options, const Model& model, const std::vector<int32_t>& ids,
             Measured* measured) {
  Session own(model, {}, options.depth);
  Session* const session = &own;
  const CancelOnInterrupt cancel(session->get());
  const Clock::time_point start = Clock::now();
  session->append(ids.data(), options.prefill);
  const double prefill_s = secondsSince(start);
  measured->prefill_tokens_per_s.push_back(options.prefill / prefill_s);
  if (options.decode == 0) {
    return;
  }
  oriel_generation result = {};
  result.struct_size = sizeof(result);
  const oriel_generate_options sampling = greedyOptions(options.decode);
  Clock::time_point first;
  session->check(oriel_session_generate(session->get(), &sampling, onFirstToken, &first, &result));
  const std::chrono::duration<double, std::milli> until_first = first - start;
  measured->time_to_first_token_ms.push_back(until_first.count());
  if (result.tokens > 1) {
    measured->decode_tokens_per_s.push_back(result.decode_tokens_per_s);
  }
}

/// A stretch of kSoakStep tokens of one long generation.
struct SoakStep {
  double seconds = 0;
  uint64_t resident_bytes = 0;
};

struct Soak {
  std::vector<SoakStep> steps;  ///< room reserved: the callback takes no memory
  Clock::time_point step_start;
  uint32_t tokens = 0;
  ProgressBar progress{"soaking"};
  uint32_t total = 0;
};

int onSoakToken(const oriel_token_event*, void* user) {
  auto* soak = static_cast<Soak*>(user);
  if (++soak->tokens % kSoakStep == 0) {
    soak->steps.push_back({secondsSince(soak->step_start), residentBytes()});
    soak->step_start = Clock::now();
    soak->progress.show(soak->tokens, soak->total);
  }
  return 0;
}

/// Generates `tokens` without a pause and reports speed and memory of every thousand.
Json runSoak(uint32_t tokens, const std::vector<int32_t>& ids, Session* session) {
  Soak soak;
  soak.total = tokens;
  soak.steps.reserve(tokens / kSoakStep);
  session->reset();
  session->append(ids.data(), 1);
  const oriel_generate_options sampling = greedyOptions(tokens);
  oriel_generation result = {};
  result.struct_size = sizeof(result);
  soak.step_start = Clock::now();
  session->check(oriel_session_generate(session->get(), &sampling, onSoakToken, &soak, &result));
  Json list = Json::array();
  for (size_t i = 0; i < soak.steps.size(); ++i) {
    Json entry;
    entry["tokens"] = (i + 1) * kSoakStep;
    entry["tokens_per_s"] = kSoakStep / soak.steps[i].seconds;
    entry["resident_bytes"] = soak.steps[i].resident_bytes;
    list.push_back(entry);
  }
  return list;
}

void describe(const Json& json, const BenchOptions& options) {
  char line[384];
  std::string text =
      json["device"].get<std::string>() + " (" + json["driver"].get<std::string>() + ")\n";
  const auto number = [&](const char* field) {
    return json[field].is_null() ? 0.0 : json[field].get<double>();
  };
  const auto predicted = [&](const char* field) -> std::string {
    const Json& value = json["predicted"][field];
    char words[64] = "";
    if (!value.is_null()) {
      std::snprintf(words, sizeof(words), "; predicted %.1f", value.get<double>());
    }
    return words;
  };
  std::snprintf(line, sizeof(line),
                "prefill      %10.1f tokens/s  (%u tokens at depth %u)%s\n"
                "first token  %10.1f ms\n"
                "decode       %10.1f tokens/s  (%u tokens)%s\n"
                "load         %10.1f ms\n",
                number("prefill_tokens_per_s"), options.prefill, options.depth,
                predicted("prefill_tokens_per_s").c_str(), number("time_to_first_token_ms"),
                number("decode_tokens_per_s"), options.decode,
                predicted("decode_tokens_per_s").c_str(), number("load_ms"));
  text += line;
  text += "device       " + formatSize(json["device_bytes"].get<uint64_t>()) + ", host " +
          formatSize(json["host_bytes"].get<uint64_t>()) + ", together " +
          formatSize(json["total_bytes"].get<uint64_t>()) + "\n";
  text += "process      " + formatSize(json["peak_host_bytes"].get<uint64_t>()) +
          " at most, with the driver and this program\n";
  if (json.contains("soak")) {
    text += "soak\n";
    for (const Json& step : json["soak"]) {
      std::snprintf(line, sizeof(line), "  %8llu tokens  %10.1f tokens/s  %s\n",
                    static_cast<unsigned long long>(step["tokens"].get<uint64_t>()),
                    step["tokens_per_s"].get<double>(),
                    formatSize(step["resident_bytes"].get<uint64_t>()).c_str());
      text += line;
    }
  }
  print(text);
}

int runBench(const BenchOptions& options) {
  const CommonOptions& common = options.common;
  const Model model(common, Load::kDevice);
  const std::vector<int32_t> ids = arbitraryIds(options.prefill, model.info().n_vocab);

  Measured warm_up;
  measure(options, model, ids, &warm_up);
  Measured measured;
  for (uint32_t i = 0; i < options.repeat; ++i) {
    measure(options, model, ids, &measured);
  }
  Session session(model);
  const CancelOnInterrupt cancel(session.get());

  const oriel_plan& plan = model.plan();
  Json json;
  json["device"] = model.info().device;
  json["driver"] = model.info().driver;
  json["prefill_tokens_per_s"] = median(measured.prefill_tokens_per_s);
  json["decode_tokens_per_s"] = median(measured.decode_tokens_per_s);
  json["fastest"]["prefill_tokens_per_s"] = fastest(measured.prefill_tokens_per_s);
  json["fastest"]["decode_tokens_per_s"] = fastest(measured.decode_tokens_per_s);
  json["time_to_first_token_ms"] = median(measured.time_to_first_token_ms);
  json["load_ms"] = model.loadMs();
  if (options.soak > 0) {
    json["soak"] = runSoak(options.soak, ids, &session);
  }
  json["device_bytes"] = session.stats().device_bytes;
  json["host_bytes"] = plan.host_bytes;
  json["total_bytes"] = plan.total_bytes;
  json["peak_host_bytes"] = std::max(peakResidentBytes(), residentBytes());
  json["window_tokens"] = plan.window_tokens;
  const PredictedAt at = {options.depth + options.prefill + options.decode / 2.0, options.depth,
                          options.prefill};
  Diagnostics diagnostics(common.verbose);
  const oriel_speed speed = deviceSpeed(modelPath(common), common, &diagnostics);
  json["predicted"] = predictedFields(predictedPlan(model, common, speed), at);
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
  CLI::App* app = program->add_subcommand("bench", "Measure speed and memory");
  addModelOption(app, &options->common);
  app->add_option("--prefill", options->prefill, "Prompt tokens (default 64)")
      ->type_name("N")
      ->check(between(1, 1e6));
  app->add_option("--decode", options->decode, "Tokens to generate (default 64)")
      ->type_name("N")
      ->check(between(0, 1e6));
  app->add_option("--depth", options->depth,
                  "Tokens that the session is taken to hold before the prompt (default 0)")
      ->type_name("N")
      ->check(between(0, 1e6));
  app->add_option("--repeat", options->repeat, "Runs after the warm-up (default 3)")
      ->type_name("R")
      ->check(between(1, 1000));
  app->add_option("--soak", options->soak,
                  "Afterwards generate N tokens at a stretch: speed and memory of every 1000")
      ->type_name("N");
  addCommonOptions(app, &options->common, Uses::kDevice);
  return {app, [options] { return runBench(*options); }};
}

}  // namespace cli
