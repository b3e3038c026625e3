#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "sizes.h"
#include "terminal.h"

namespace cli {
namespace {

/// The same with half and with twice the window, as far as such windows are possible.
std::vector<oriel_plan> neighbours(const std::string& path, const oriel_options& options,
                                   const oriel_plan& plan) {
  std::vector<oriel_plan> result;
  const uint64_t windows[] = {plan.window_tokens / 2, uint64_t{plan.window_tokens} * 2};
  for (const uint64_t window : windows) {
    oriel_options other = options;
    other.log = nullptr;  // a window that is not possible is no failure of this command
    other.memory_bytes = plan.memory_bytes;
    other.window_tokens = static_cast<uint32_t>(std::min<uint64_t>(window, UINT32_MAX));
    oriel_plan neighbour = {};
    neighbour.struct_size = sizeof(neighbour);
    if (window > 0 && oriel_plan_file(path.c_str(), &other, &neighbour) == ORIEL_OK) {
      result.push_back(neighbour);
    }
  }
  return result;
}

Json toJson(const oriel_plan& plan, const std::vector<oriel_plan>& alternatives) {
  Json json = planFields(plan);
  json["predicted"] = predictedFields(plan);
  json["alternatives"] = Json::array();
  for (const oriel_plan& other : alternatives) {
    Json entry;
    entry["window_tokens"] = other.window_tokens;
    entry["total_bytes"] = other.total_bytes;
    entry["fits"] = other.fits != 0;
    json["alternatives"].push_back(entry);
  }
  return json;
}

std::string why(const oriel_plan& plan, const CommonOptions& options) {
  if (plan.fits == 0) {
    return "the smallest plan with these options; it needs more than was given";
  }
  if (options.window_tokens != 0) {
    return "the window was given";
  }
  if (plan.context_train_tokens != 0 &&
      plan.sink_tokens + plan.window_tokens >= plan.context_train_tokens) {
    return "the model was trained on " + std::to_string(plan.context_train_tokens) +
           " tokens, and all of them fit";
  }
  return "the longest window that fits; another token costs " + formatSize(plan.kv_bytes_per_token);
}

void describe(const std::string& path, const oriel_plan& plan,
              const std::vector<oriel_plan>& alternatives, const CommonOptions& options) {
  const struct {
    const char* name;
    uint64_t bytes;
  } rows[] = {
      {"weights", plan.weights_bytes},
      {"cache", plan.kv_bytes},
      {"activations", plan.activation_bytes},
      {"staging", plan.staging_bytes},
      {"host", plan.host_bytes},
  };
  std::string text = std::filesystem::u8path(path).filename().u8string() +
                     (plan.fits != 0 ? " fits in " : " does not fit in ") +
                     formatSize(plan.memory_bytes) + "\n\n";
  char line[256];
  for (const auto& row : rows) {
    const double share = plan.total_bytes == 0 ? 0
                                               : static_cast<double>(row.bytes) /
                                                     static_cast<double>(plan.total_bytes);
    std::snprintf(line, sizeof(line), "  %-12s%12s  ", row.name, formatSize(row.bytes).c_str());
    text += line + bar(share, 32) + "\n";
  }
  std::snprintf(line, sizeof(line), "  %-12s%12s  (%llu bytes)\n\n", "total",
                formatSize(plan.total_bytes).c_str(),
                static_cast<unsigned long long>(plan.total_bytes));
  text += line;

  text += "  window      the last " + std::to_string(plan.window_tokens) +
          " tokens and the first " + std::to_string(plan.sink_tokens) + "; keys " +
          kvFormatName(plan.k_format) + ", values " + kvFormatName(plan.v_format) + ", " +
          formatSize(plan.kv_bytes_per_token) + " a token\n";
  text += "  why         " + why(plan, options) + "\n";
  text += "  least       " + formatSize(plan.minimum_bytes) + " (" +
          std::to_string(plan.minimum_bytes) + " bytes)\n";
  text += "  crossover   at " + std::to_string(plan.crossover_tokens) +
          " tokens reading the cache costs as much as reading the weights\n";
  for (const oriel_plan& other : alternatives) {
    text += "  instead     a window of " + std::to_string(other.window_tokens) + " takes " +
            formatSize(other.total_bytes) + (other.fits != 0 ? "" : ", which does not fit") + "\n";
  }
  print(text);
}

int runPlan(const CommonOptions& options) {
  Diagnostics diagnostics(options.verbose);
  const std::string path = modelPath(options);
  oriel_options plan_options = planOptions(options);
  plan_options.log = Diagnostics::onLog;
  plan_options.log_user = &diagnostics;
  const oriel_plan plan = planFile(path, plan_options, diagnostics);
  const std::vector<oriel_plan> alternatives = neighbours(path, plan_options, plan);
  if (options.json) {
    printJson(toJson(plan, alternatives));
  } else {
    describe(path, plan, alternatives, options);
  }
  if (plan.fits == 0) {
    throw Failure{kExitDoesNotFit, path + " does not fit in " + std::to_string(plan.memory_bytes) +
                                       " bytes: give at least " +
                                       std::to_string(plan.minimum_bytes) + " (--memory " +
                                       suggestSize(plan.minimum_bytes) + ")"};
  }
  return kExitDone;
}

}  // namespace

Command addPlanCommand(CLI::App* program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = program->add_subcommand("plan", "Show what would be chosen for a memory size");
  addModelOption(app, options.get());
  addCommonOptions(app, options.get(), Uses::kPlan);
  return {app, [options] { return runPlan(*options); }};
}

}  // namespace cli
