#include "options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

#include "model_handle.h"
#include "models/catalogue.h"
#include "output.h"
#include "setting_flags.h"
#include "system.h"

namespace cli {
namespace {

constexpr const char* kBundledName = "oriel-tiny";
constexpr const char* kBundledFile = "oriel-tiny-q8_0.gguf";
/// The default.
constexpr uint32_t kSinks = 4;

/// Options set by the program, or by flags of some commands.
constexpr const char* kOwn[] = {"cache_folder", "system_prompt",   "constraints",   "transcript",
                                "sessions",     "session_windows", "prefix_tokens", "prefix_file"};
/// Options of sessions and replies that every command takes.
constexpr const char* kOfAll[] = {"evict",
                                  "forget",
                                  "max_thought_tokens",
                                  "seed",
                                  "greedy",
                                  "temperature",
                                  "top_k",
                                  "top_p",
                                  "min_p",
                                  "repeat_penalty",
                                  "presence_penalty",
                                  "frequency_penalty",
                                  "repeat_window",
                                  "typical_p",
                                  "top_n_sigma",
                                  "xtc_probability",
                                  "xtc_threshold",
                                  "dry_multiplier",
                                  "dry_base",
                                  "dry_allowed_length",
                                  "dry_window",
                                  "strict_schema",
                                  "open_objects",
                                  "max_tokens_per_s",
                                  "duty"};

bool isIn(const char* const* begin, const char* const* end, const std::string& name) {
  return std::find(begin, end, name) != end;
}

/// The help heading, and the kind of command that shows the option there.
std::pair<const char*, Uses> placeOf(const Json& row) {
  const std::string name = row["name"];
  const bool is_device = name == "threads" || name == "activation_bits" ||
                         name == "enable_features" || name.rfind("device", 0) == 0;
  if (row["scope"] == "reply") {
    const bool is_form = name == "strict_schema" || name == "open_objects";
    return {is_form ? "Replies" : "Sampling", Uses::kSampling};
  }
  if (row["scope"] == "session") {
    return {"Memory", Uses::kSampling};
  }
  return is_device
             ? std::pair("Device", Uses::kDevice)
             : std::pair("Memory", name == "min_speed" || name == "calibration" ? Uses::kModel
                                                                                : Uses::kMemory);
}

}  // namespace

void addCommonOptions(CLI::App* command, CommonOptions* options, Uses uses) {
  for (const Json& row : optionTable()) {
    const std::string name = row["name"];
    const bool taken = row["scope"] == "load" ? !isIn(std::begin(kOwn), std::end(kOwn), name)
                                              : isIn(std::begin(kOfAll), std::end(kOfAll), name);
    if (!taken || row["flag"] == "" ||
        command->get_option_no_throw("--" + row["flag"].get<std::string>()) != nullptr) {
      continue;
    }
    // Options in the group "" are accepted but hidden.
    const auto [group, with] = placeOf(row);
    const auto bits = static_cast<unsigned>(with);
    const bool shown = (static_cast<unsigned>(uses) & bits) == bits &&
                       (row["layer"] != "laboratory" || name == "enable_features");
    addFlagOf(command, name, options, shown ? group : "");
  }
  command
      ->add_flag("--no-cache", options->no_cache,
                 "Keep no kernels, no measurements and no weights in the user's cache folder")
      ->group((static_cast<unsigned>(uses) & static_cast<unsigned>(Uses::kDevice)) != 0 ? "Device"
                                                                                        : "");
  command
      ->add_option_function<std::string>(
          "--preset", [](const std::string&) {},
          "With the options of this preset in the config file (~/.config/oriel/config.json)")
      ->type_name("NAME")
      ->group("Config file");
  command
      ->add_flag_function(
          "--no-config", [](int64_t) {}, "Do not read the config file")
      ->group("Config file");
  const char* const output = "Output";
  command->add_flag("--json", options->json, "One JSON object on one line instead of text")
      ->group(output);
  command->add_flag("--verbose", options->verbose, "Explain decisions on stderr")->group(output);
}

void addModelOption(CLI::App* command, CommonOptions* options) {
  command
      ->add_option(
          "MODEL", options->model,
          "GGUF file, or a name that was pulled; also -m MODEL (default: the environment variable "
          "ORIEL_MODEL, the config file's, else the bundled model)")
      ->type_name("");
  command->add_option("--preset-model", options->preset_model)->group("");
  command->add_option("--config-model", options->config_model)->group("");
}

namespace {

/// Most bytes of prepared files, and the part of the free disk.
constexpr uint64_t kMostPreparedBytes = 8ull << 30;
constexpr uint64_t kPreparedPart = 10;
/// The file of a smaller model loads about as fast without.
constexpr uint64_t kLeastPreparedModel = 64u << 20;

/// Keeps the weights of large models in the kernels' order in the user's cache folder. Not if --memory bounds the
/// weights, too.
void prepareWeights(const CommonOptions& options, Settings* load) {
#ifndef _WIN32
  namespace fs = std::filesystem;
  if (load->has("prepared_dir") || load->has("memory")) {
    return;
  }
  std::error_code error;
  uint64_t model = 0;
  try {
    model = fs::file_size(modelPath(options), error);
  } catch (const Failure&) {
    return;  // loading it reports why
  }
  const std::string cache = !error && model >= kLeastPreparedModel ? cacheFolder(options) : "";
  const uint64_t available = cache.empty() ? 0 : fs::space(cache, error).available;
  if (available != 0 && !error) {
    load->set("prepared_dir", cache + "/prepared");
    load->set("prepared_bytes", std::min(available / kPreparedPart + 1, kMostPreparedBytes));
  }
#else
  (void)options;
  (void)load;
#endif
}

}  // namespace

oriel::Options planOptions(const CommonOptions& options, uint32_t pinned_tokens) {
  Settings load = options.load;
  prepareWeights(options, &load);
  if (pinned_tokens > load.number("sinks", kSinks)) {
    load.set("sinks", pinned_tokens);
  }
  const char* const disabled = std::getenv("ORIEL_DISABLE");
  if (disabled != nullptr && !load.has("disable_features")) {
    load.set("disable_features", disabled);
  }
  return load.as<oriel::Options>();
}

oriel::Options memoryOptions(const CommonOptions& options, uint32_t pinned_tokens) {
  CommonOptions without_speed = options;
  without_speed.load.erase("min_speed");
  return planOptions(without_speed, pinned_tokens);
}

void use16BitActivations(CommonOptions* options) {
  if (!options->load.has("activation_bits")) {
    options->load.set("activation_bits", "16");
  }
}

oriel::ReplyOptions replyOptions(const Settings& reply) {
  Settings settings = reply;
  settings.erase("seed");        // every number is a valid seed
  if (settings.has("greedy")) {  // overrides the temperature
    settings.set("temperature", "0");
  }
  auto options = settings.as<oriel::ReplyOptions>();
  options.seed = reply.number("seed");
  return options;
}

bool penalises(const Settings& reply) {
  return reply.real("repeat_penalty", 1) != 1 || reply.real("presence_penalty") != 0 ||
         reply.real("frequency_penalty") != 0 || reply.real("dry_multiplier") != 0;
}

uint64_t nextSeed(uint64_t seed, uint32_t number) {
  const uint64_t next = seed + number;
  return seed == 0 ? 0 : next < seed ? next + 1 : next;
}

bool isBundledName(const std::string& word) { return word == kBundledName; }

std::string modelPath(const CommonOptions& options) {
  const auto file = [](const std::string& given) {
    return isBundledName(given) ? bundledModel() : modelFile(given);
  };
  if (!options.model.empty() || !options.preset_model.empty()) {
    return file(options.model.empty() ? options.preset_model : options.model);
  }
  if (isSet("ORIEL_MODEL")) {
    std::string path = variable("ORIEL_MODEL");
    if (path.empty()) {  // an empty value is an unset script variable
      throw Failure{
          kExitUsage,
          "the environment variable ORIEL_MODEL is empty: name a GGUF file in it, or unset it"};
    }
    return modelFile(path);
  }
  return options.config_model.empty() ? bundledModel() : file(withHome(options.config_model));
}

bool usesBundledModel(const CommonOptions& options) {
  return isBundledName(options.model) || (options.model.empty() && options.preset_model.empty() &&
                                          options.config_model.empty() && !isSet("ORIEL_MODEL"));
}

std::string bundledModel() {
  namespace fs = std::filesystem;
  // Installed, the model is in share next to bin; in a build tree, it is in the source folder.
  std::error_code error;
  fs::path folder = executablePath().parent_path();
  const fs::path installed = folder / ".." / "share" / "oriel" / "models" / kBundledFile;
  if (!folder.empty() && fs::is_regular_file(installed, error)) {
    return installed.lexically_normal().u8string();
  }
  for (; !folder.empty(); folder = folder.parent_path()) {
    const fs::path in_sources = folder / "models" / "oriel-tiny" / kBundledFile;
    if (fs::is_regular_file(in_sources, error)) {
      return in_sources.u8string();
    }
    if (folder == folder.root_path()) {
      break;
    }
  }
  throw Failure{kExitFailed, "the bundled model is missing: name a GGUF file, or set ORIEL_MODEL"};
}

}  // namespace cli
