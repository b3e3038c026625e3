#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "command_line.h"
#include "measure/divergence.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "plan/chart.h"
#include "plan/plan_report.h"
#include "setting_flags.h"
#include "system.h"
#include "terminal/reply_view.h"

namespace cli {
namespace {

struct PlanOptions : CommonOptions {
  std::string shape;
  std::string weights;
  std::string plot_path;
  bool list = false;
  bool explain = false;
};

void setWeights(const std::string& text, PlanOptions* options) {
  options->weights = lowerCase(text);
  if (options->weights != "q4_0" && options->weights != "q8_0" && options->weights != "f16") {
    throw CLI::ValidationError("--weights",
                               "'" + text + "' is not a weight format: use q4_0, q8_0 or f16");
  }
}

/// The listed name that was meant.
std::string shapeName(const std::string& given) {
  std::vector<std::string> names;
  for (const Json& shape : knownShapes()) {
    names.push_back(shape["name"]);
  }
  std::string name = lowerCase(given);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string near = nearest(name, names);
    throw Failure{kExitUsage, "no shape of the name " + given + " is known: " +
                                  (near.empty() ? "" : "did you mean " + near + "? ") +
                                  "`oriel plan --list` names them"};
  }
  return name;
}

int listShapes(const PlanOptions& options) {
  const Json shapes = knownShapes();
  if (options.json) {
    printJson(shapesJson(shapes));
  } else {
    printText(describeShapes(shapes));
  }
  return kExitDone;
}

int runPlan(const PlanOptions& options) {
  if (options.list) {
    return listShapes(options);
  }
  const Diagnostics diagnostics(options.verbose);
  const PlanSource source = options.shape.empty()
                                ? PlanSource::ofFile(modelPath(options))
                                : PlanSource::ofShape(shapeName(options.shape), options.weights);
  oriel::Options plan_options = planOptions(options);
  diagnostics.listen(&plan_options);

  std::optional<oriel_speed> speed;
  if (options.load.real("min_speed") > 0 ||
      (options.load.has("device") && source.weightsKnown(plan_options))) {
    speed = source.speed(options);
  }
  plan_options.speed = speed ? &*speed : nullptr;

  const Json plan = source.plan(plan_options, diagnostics);
  const std::vector<Json> neighbours = neighboursOf(source, plan_options, plan);
  if (!options.plot_path.empty()) {
    writeResultFile(options.plot_path, plotPlan(source, options, plan_options.speed, plan));
  }
  if (options.json) {
    printJson(planJson(source, plan, plan_options.speed, neighbours));
  } else {
    printText(describePlan(source, options.load, plan_options.speed, plan,
                           options.explain ? &neighbours : nullptr));
  }
  if (weightsUnknown(plan)) {
    throw Failure{kExitDoesNotFit, "cannot tell whether " + source.name() + " fits: it takes " +
                                       formatSize(numberIn(plan, "total_bytes")) +
                                       " plus its weights, whose size is not known here"};
  }
  if (!plannedFits(plan)) {
    const uint64_t least = numberIn(plan, "minimum_bytes");
    const std::string typed = options.load.typed("memory");
    throw Failure{kExitDoesNotFit, source.name() + " does not fit in " +
                                       sizeAsTyped(typed, numberIn(plan, "memory_bytes")) +
                                       ": it needs " + formatSize(least) + ", try --memory " +
                                       suggestSize(least, typed)};
  }
  return kExitDone;
}

}  // namespace

Command addPlanCommand(CLI::App* program) {
  auto options = std::make_shared<PlanOptions>();
  PlanOptions* const raw = options.get();
  CLI::App* app = program->add_subcommand("plan", "Explain how a memory budget is used");
  app->footer(
      "Examples:\n"
      "  oriel plan --memory 16MiB\n"
      "  oriel plan --arch llama-3.2-1b --memory 1GiB\n"
      "  oriel plan model.gguf --memory 4GB --device auto --explain");
  addModelOption(app, raw);
  CLI::Option* const model = app->get_option("MODEL");
  CLI::Option* const shape =
      app->add_option("--arch", raw->shape,
                      "Plan for a published model without its file, instead of MODEL")
          ->type_name("NAME")
          ->excludes(model);
  app->add_option_function<std::string>(
         "--weights", [raw](const std::string& text) { setWeights(text, raw); },
         "With --arch: how its matrices are stored, q4_0, q8_0 or f16 (default: q4_0)")
      ->type_name("FORMAT")
      ->needs(shape);
  app->add_flag("--explain", raw->explain,
                "Also show losses, formats, what more or less memory would hold, and trim levels");
  app->add_flag("--list", raw->list, "List the names for --arch")->excludes(model)->excludes(shape);
  app->add_option("--plot", raw->plot_path, "Also draw window against memory for each cache format")
      ->type_name("FILE.svg")
      ->check(svgFile());
  addFlagOf(app, "constraints", raw, "Memory")->excludes(shape);
  for (const char* const name : {"sessions", "session_windows", "transcript", "prefix_tokens"}) {
    addFlagOf(app, name, raw, "Sessions");
  }
  addFlagOf(app, "prefix_file", raw, "Sessions")
      ->excludes(shape)
      ->excludes(app->get_option("--prefix-tokens"));
  addCommonOptions(app, raw, Uses::kModel);
  return {app, [options] { return runPlan(*options); }};
}

}  // namespace cli
