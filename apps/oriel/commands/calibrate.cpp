#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "command_line.h"
#include "measure/bench_run.h"
#include "measure/calibration.h"
#include "measure/divergence.h"
#include "measure/window_search.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "plan/plan_report.h"
#include "reply/json_input.h"
#include "system.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  std::string text_file;
  std::string tokens_file;
  std::string out;
  size_t max_tokens = 2048;
  double kl_limit = 0.1;
  bool whole_model = false;
};

/// Less text than this gives meaningless numbers.
constexpr size_t kLeastTokens = 256;
constexpr uint32_t kShortestWindow = 32;
/// Up to this many layers are measured one by one; more layers are measured in groups of neighbours.
/// Layers use this share of the tokens, so that all layers together take about as long as the other measurements.
constexpr uint32_t kMostGroups = 8;
constexpr size_t kTokenShareOfLayers = 4;
/// If the file does not state its trained context.
constexpr uint32_t kAssumedContext = 4096;

/// The cost of forgetting with one window.
struct Forgetting {
  uint32_t window_tokens = 0;
  uint32_t visible_tokens = 0;  ///< sinks and window
  double nll_mean = 0;
  double loss_nats = 0;  ///< above the longest window
};

struct FormatLoss {
  const char* name;
  const char* k;
  const char* v;
  const char* state;
  double oriel_calibration::*constant;
  Divergence divergence;

  std::string kv() const { return lowerCase(formatsName(k, v)); }
};

/// Mean of the entries from `begin`.
double meanFrom(const std::vector<double>& values, size_t begin) {
  double sum = 0;
  for (size_t i = begin; i < values.size(); ++i) {
    sum += values[i];
  }
  return sum / static_cast<double>(values.size() - begin);
}

/// Least squares of scale * n^-power: for each power the best scale has a closed form, so only the powers are searched.
/// False if forgetting costs nothing measurable.
bool fitForgetting(const std::vector<Forgetting>& points, oriel_calibration* calibration) {
  double least_error = 0;
  for (const Forgetting& point : points) {
    least_error += point.loss_nats * point.loss_nats;  // with a scale of zero
  }
  bool found = false;
  for (int step = 10; step <= 200 && points.size() >= 2; ++step) {
    const double power = step / 100.0;
    double product = 0;
    double square = 0;
    for (const Forgetting& point : points) {
      const double shape = std::pow(point.visible_tokens, -power);
      product += point.loss_nats * shape;
      square += shape * shape;
    }
    const double scale = product / square;
    double error = 0;
    for (const Forgetting& point : points) {
      const double miss = point.loss_nats - scale * std::pow(point.visible_tokens, -power);
      error += miss * miss;
    }
    if (scale > 0 && error < least_error) {
      least_error = error;
      calibration->forget_scale = scale;
      calibration->forget_power = power;
      found = true;
    }
  }
  return found;
}

class Measuring {
 public:
  explicit Measuring(const CalibrateOptions& options) : options_(options) {
    if (options.text_file.empty()) {
      ids_ = idsFromJson(readJson(options.tokens_file), inputName(options.tokens_file));
    } else {
      text_.emplace(options.text_file);
      text_->readTo(1);
    }
    result_.kl_limit = options.kl_limit;
  }

  void run() {
    CommonOptions whole = options_.common;
    whole.load.set("kv", "f16");
    whole.load.set("state", "f32");
    whole.load.set("activation_bits", "16");
    whole.load.set("calibration", "none");  // the existing calibration will be replaced
    prepare(&whole);
    const Model reference(whole, Load::kDevice);
    plan_ = reference.wholePlan();
    device_ = reference.text("device");
    if (plan_["state_format"].is_null()) {
      formats_.resize(kFormatsOfTokens);
    }
    for (FormatLoss& loss : formats_) {
      CommonOptions single = withFormats(options_.common, plan_, loss.kv());
      single.load.set("state", loss.state);
      if (loss.state != std::string("f32")) {
        single.load.set("prefill_batch",
                        "1");  // as in replies: a chunk of any length rounds states once
      }
      const Model rounded(single, Load::kDevice);
      loss.divergence =
          measureDivergence(Session(reference), Session(rounded), ids_, RowFn(), loss.name);
      result_.*loss.constant = loss.divergence.kl_mean;
    }
    if (!options_.whole_model) {
      measureLayers(reference);
    }
    measureForgetting();
    if (!options_.whole_model && !forgetting_.empty()) {
      measureWindows(reference);
    }
  }

  Calibration result() const { return {result_, layers_, windows_}; }
  bool forgets() const { return forgets_; }

  Json details() const {
    Json json;
    json["tokens"] = ids_.size();
    json["device"] = device_;
    json["window_tokens"] = plan_["window_tokens"];
    json["sink_tokens"] = plan_["sink_tokens"];
    json["scored_from"] = scored_from_;
    json["layer_tokens"] = layer_tokens_;
    json["formats"] = Json::array();
    for (const FormatLoss& loss : formats_) {
      Json entry;
      entry["k_format"] = loss.k;
      entry["v_format"] = loss.v;
      if (!plan_["state_format"].is_null()) {
        entry["state_format"] = loss.state;
      }
      entry["kl_mean"] = loss.divergence.kl_mean;
      entry["kl_max"] = loss.divergence.kl_max;
      entry["top1_agreement"] = loss.divergence.top1_agreement;
      entry["failed"] = loss.divergence.kl_mean > options_.kl_limit;
      json["formats"].push_back(entry);
    }
    json["forgetting"] = Json::array();
    for (const Forgetting& point : forgetting_) {
      Json entry;
      entry["window_tokens"] = point.window_tokens;
      entry["nll_mean"] = point.nll_mean;
      entry["loss_nats"] = point.loss_nats;
      json["forgetting"].push_back(entry);
    }
    return json;
  }

  std::string describe() const {
    std::string text;
    char line[160];
    for (const FormatLoss& loss : formats_) {
      std::snprintf(line, sizeof(line), "%-12s %.6f nats a token, same first choice %.2f %%\n",
                    loss.name, loss.divergence.kl_mean, 100 * loss.divergence.top1_agreement);
      text += line;
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      std::snprintf(line, sizeof(line), "layer %-6zu keys int4 %.6f, values int4 %.6f\n", i,
                    layers_[i].keys_int4, layers_[i].values_int4);
      text += line;
    }
    for (const FormatLoss& loss : formats_) {
      if (loss.divergence.kl_mean > options_.kl_limit) {
        std::snprintf(line, sizeof(line), "%s failed: beyond %g nats it is never chosen\n",
                      loss.name, options_.kl_limit);
        text += line;
      }
    }
    for (const Forgetting& point : forgetting_) {
      std::snprintf(line, sizeof(line), "window %-5u %+.6f nats a token\n", point.window_tokens,
                    point.loss_nats);
      text += line;
    }
    text += describeWindows();
    if (forgets_) {
      std::snprintf(line, sizeof(line), "forgetting   %.4f * tokens^-%.2f\n", result_.forget_scale,
                    result_.forget_power);
      return text + line;
    }
    return text + "forgetting   not measurable with this text; the published prior stays\n";
  }

  /// Prints every fourth step; the file has them all.
  std::string describeWindows() const {
    std::string text;
    char line[160];
    for (size_t i = 3; i + forgetting_.size() + 1 < windows_.size(); i += 4) {
      const MeasuredWindows& windows = windows_[i];
      std::snprintf(
          line, sizeof(line), "by layer     %u to %u tokens, %.0f on average: %+.6f nats a token\n",
          windows.shortestWindow(), windows.window_tokens, windows.meanWindow(), windows.loss_nats);
      text += line;
    }
    return text;
  }

 private:
  /// Tokenises, and sets the longest window that the text and the model allow.
  void prepare(CommonOptions* whole) {
    const Model header(*whole, Load::kText);
    if (!options_.text_file.empty()) {
      ids_ = firstTokens(&*text_, header, options_.max_tokens);
    }
    checkIds(ids_, header.number("n_vocab"), inputName(options_.text_file + options_.tokens_file));
    ids_.resize(std::min(ids_.size(), options_.max_tokens));
    if (ids_.size() < kLeastTokens) {
      throw Failure{kExitFailed, inputName(options_.text_file + options_.tokens_file) + " has " +
                                     std::to_string(ids_.size()) +
                                     " tokens to measure with: give at least " +
                                     std::to_string(kLeastTokens)};
    }
    const uint32_t trained = header.number("context_train");
    const uint32_t context = trained != 0 ? trained : kAssumedContext;
    const uint32_t sinks = whole->load.count("sinks", 4);
    const uint32_t window = whole->load.count("window");
    if (window == 0 || window == ORIEL_WINDOW_MAX) {
      whole->load.set("window", std::min<size_t>(std::max(context, sinks + kShortestWindow) - sinks,
                                                 ids_.size()));
    }
  }

  /// Layers that follow the session's window: a shorter window reduces their memory.
  std::vector<uint32_t> layersOfWindow(const Model& reference) const {
    const uint32_t n_layers = reference.number("n_layers");
    const PlanSource source = PlanSource::ofFile(modelPath(options_.common));
    std::vector<uint32_t> layers;
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      CommonOptions shorter = withFormats(options_.common, plan_, "f16");
      std::vector<uint8_t> shares(n_layers, 0);
      shares[layer] = 1;
      shorter.load.setList("window_shares", shares);
      const Json plan = source.tryPlan(planOptions(shorter));
      if (!plan.is_null() && numberIn(plan, "kv_bytes_at") < numberIn(plan_, "kv_bytes_at")) {
        layers.push_back(layer);
      }
    }
    return layers;
  }

  /// All on the tokens of measureForgetting(), whose uniform windows are part of the list.
  void measureWindows(const Model& reference) {
    const uint32_t n_layers = reference.number("n_layers");
    size_t times = 0;
    windows_ = searchWindows(
        n_layers, layersOfWindow(reference), countIn(plan_, "window_tokens"),
        [&](uint32_t window, const std::vector<uint8_t>& shares) {
          CommonOptions shorter = withFormats(options_.common, plan_, "f16");
          shorter.load.set("window", window);
          shorter.load.setList("window_shares", shares);
          const Model model(shorter, Load::kDevice);
          return meanFrom(
              scoreTokens(Session(model), ids_, "windows by layer, " + std::to_string(++times)),
              scored_from_);
        });
    if (windows_.empty()) {
      return;
    }
    const std::vector<uint8_t> alike(n_layers, 0);
    windows_.push_back({countIn(plan_, "window_tokens"), alike, 0});
    for (const Forgetting& point : forgetting_) {
      windows_.push_back({point.window_tokens, alike, point.loss_nats});
    }
  }

  /// One side in int4 in one group of layers, all others in f16. int8 has the same error at a sixteenth of the step, so
  /// layers share it equally.
  void measureLayers(const Model& reference) {
    const uint32_t n_layers = reference.number("n_layers");
    const uint32_t size = (n_layers + kMostGroups - 1) / kMostGroups;
    const std::vector<int32_t> ids(
        ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(std::max(
                                         kLeastTokens, ids_.size() / kTokenShareOfLayers)));
    layer_tokens_ = ids.size();
    layers_.resize(n_layers);
    for (const bool keys : {true, false}) {
      for (uint32_t begin = 0; begin < n_layers; begin += size) {
        const uint32_t end = std::min(begin + size, n_layers);
        CommonOptions single = withFormats(options_.common, plan_, keys ? "k4v16" : "k16v4");
        std::vector<uint8_t> in_f16(n_layers, 1);
        std::fill(in_f16.begin() + begin, in_f16.begin() + end, uint8_t{0});
        single.load.setList("f16_layers", in_f16);
        const Model rounded(single, Load::kDevice);
        const std::string label = std::string(keys ? "keys" : "values") + " of layer " +
                                  std::to_string(begin) + " of " + std::to_string(n_layers);
        const double kl =
            measureDivergence(Session(reference), Session(rounded), ids, RowFn(), label).kl_mean;
        for (uint32_t layer = begin; layer < end; ++layer) {
          oriel_layer_calibration& entry = layers_[layer];
          (keys ? entry.keys_int4 : entry.values_int4) = kl / (end - begin);
        }
      }
    }
    const auto total = [&](double oriel_layer_calibration::*side) {
      double sum = 0;
      for (const oriel_layer_calibration& layer : layers_) {
        sum += layer.*side;
      }
      return sum;
    };
    const double of_keys = total(&oriel_layer_calibration::keys_int4);
    const double of_values = total(&oriel_layer_calibration::values_int4);
    for (oriel_layer_calibration& layer : layers_) {
      layer.keys_int8 = of_keys > 0 ? result_.keys_int8 * layer.keys_int4 / of_keys : 0;
      layer.values_int8 = of_values > 0 ? result_.values_int8 * layer.values_int4 / of_values : 0;
    }
  }

  /// Every window is scored on the same tokens: those after the longest shortened window is full.
  void measureForgetting() {
    std::vector<uint32_t> windows;
    const uint32_t sinks = countIn(plan_, "sink_tokens");
    for (uint32_t window = kShortestWindow;
         window <= (sinks + countIn(plan_, "window_tokens")) / 2 && window <= ids_.size() / 2;
         window *= 2) {
      windows.push_back(window);
    }
    scored_from_ = windows.empty() ? 0 : windows.back();
    const double full = meanFrom(formats_[0].divergence.reference_nll, scored_from_);
    for (const uint32_t window : windows) {
      CommonOptions shorter = withFormats(options_.common, plan_, "f16");
      shorter.load.set("window", window);
      const Model model(shorter, Load::kDevice);
      const std::vector<double> nll =
          scoreTokens(Session(model), ids_, "window " + std::to_string(window));
      const double mean = meanFrom(nll, scored_from_);
      forgetting_.push_back({window, sinks + window, mean, mean - full});
    }
    forgets_ = fitForgetting(forgetting_, &result_);
  }

  const CalibrateOptions& options_;
  std::optional<TextInput> text_;
  std::vector<int32_t> ids_;
  Json plan_;
  std::string device_;
  static constexpr size_t kFormatsOfTokens = 4;  ///< the others are for states
  std::vector<FormatLoss> formats_ = {
      {"keys int8", "int8", "f16", "f32", &oriel_calibration::keys_int8, {}},
      {"keys int4", "int4", "f16", "f32", &oriel_calibration::keys_int4, {}},
      {"values int8", "f16", "int8", "f32", &oriel_calibration::values_int8, {}},
      {"values int4", "f16", "int4", "f32", &oriel_calibration::values_int4, {}},
      {"state f16", "f16", "f16", "f16", &oriel_calibration::state_f16, {}},
      {"state int8", "f16", "f16", "int8", &oriel_calibration::state_int8, {}}};
  std::vector<oriel_layer_calibration> layers_;
  size_t layer_tokens_ = 0;
  std::vector<Forgetting> forgetting_;
  std::vector<MeasuredWindows> windows_;
  size_t scored_from_ = 0;
  bool forgets_ = false;
  oriel_calibration result_ = {};
};

int runCalibrate(const CalibrateOptions& options) {
  const std::string model_path = modelPath(options.common);
  const std::string path = options.out.empty() ? sidecarPath(model_path) : options.out;
  Measuring calibration(options);
  SidecarFile file(path, model_path);  // results that took long must not be lost
  calibration.run();
  const Json details = calibration.details();
  file.write(calibration.result(), details);
  if (options.common.json) {
    Json json;
    json["sidecar"] = path;
    json["constants"] = calibrationFields(calibration.result().constants);
    json["layers"] = layerFields(calibration.result().layers);
    json["windows"] = windowFields(calibration.result().windows);
    json["measured"] = details;
    printJson(json);
  } else {
    printText(calibration.describe() +
              "(0.01 nats a token make the right next token 1 % less likely)\nwritten to   " +
              oneLine(path) + "\n");
  }
  return kExitDone;
}

}  // namespace

Command addCalibrateCommand(CLI::App* program) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* app =
      program->add_subcommand("calibrate", "Measure the cost of windows and cache formats");
  addModelOption(app, &options->common);
  app->footer("Example:\n  oriel calibrate model.gguf --text book.txt");
  CLI::Option* text =
      app->add_option("--text", options->text_file,
                      "Text to measure with; - is stdin; this or --tokens-file is needed")
          ->type_name("FILE");
  CLI::Option* tokens = app->add_option("--tokens-file", options->tokens_file,
                                        R"(The same as token ids, JSON {"ids": [...]}; - is stdin)")
                            ->type_name("FILE")
                            ->excludes(text);
  app->add_option("--max-tokens", options->max_tokens, "Use the first N tokens only (default 2048)")
      ->type_name("N")
      ->transform(wholeNumber(0, SIZE_MAX));
  app->add_option("--kl-limit", options->kl_limit,
                  "Never choose formats whose rounding costs more than NATS a token (default 0.1)")
      ->type_name("NATS")
      ->check(between(1e-6, 100.0));
  app->add_flag("--whole-model", options->whole_model,
                "Measure all layers together only: half the time");
  app->add_option("--out", options->out,
                  "Output file (default: MODEL.calibration.json, which later runs use)")
      ->type_name("FILE");
  addCommonOptions(app, &options->common, Uses::kModel);
  return {app, [options, text, tokens] {
            if (text->empty() && tokens->empty()) {
              throw Failure{kExitUsage,
                            "there is nothing to measure with: give --text or --tokens-file"};
            }
            return runCalibrate(*options);
          }};
}

}  // namespace cli
