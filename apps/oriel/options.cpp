#include "options.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>

#include "failure.h"
#include "kv_formats.h"
#include "models/model_store.h"
#include "report.h"
#include "setting_flags.h"
#include "sizes.h"
#include "system.h"
#include "validators.h"

namespace cli {
namespace {

constexpr const char* kBundledName = "oriel-tiny";
constexpr const char* kBundledFile = "oriel-tiny-q8_0.gguf";
/// What the library takes.
constexpr uint32_t kMostDrafts = 15;

void setMemory(const std::string& text, CommonOptions* options) {
  if (text.find_first_of("123456789") == std::string::npos && text.find('0') != std::string::npos) {
    throw CLI::ValidationError(
        "--memory",
        "'" + text + "' is no memory at all: give some, or leave it out for half of what is free");
  }
  if (!parseSize(text, &options->memory_bytes)) {
    throw CLI::ValidationError(
        "--memory",
        "'" + text + "' is not a size: write bytes, 300MB (10^6), 300MiB or 300M (2^20)");
  }
}

void setRecall(const std::string& text, CommonOptions* options) {
  options->recall_bytes = 0;
  if (text != "0" && !parseSize(text, &options->recall_bytes)) {
    throw CLI::ValidationError(
        "--recall",
        "'" + text + "' is not a size: write bytes, 300MB (10^6), 300MiB or 300M (2^20)");
  }
}

void setKvFormat(const std::string& given, CommonOptions* options) {
  if (parseKvFormat(given, options)) {
    return;
  }
  throw CLI::ValidationError(
      "--kv", "'" + given + "' is not a cache format: use auto, f16, k8v8, k8v4 or k4v4");
}

void addFeature(const std::string& text, CommonOptions* options) {
  options->enabled_features += (options->enabled_features.empty() ? "" : ",") + text;
}

void setDevice(const std::string& given, CommonOptions* options) {
  const std::string text = lowerCase(given);
  const std::string vulkan = "vulkan";
  options->device_number = 0;
  options->device_named = true;
  if (text == "auto") {
    options->device = ORIEL_DEVICE_AUTO;
    return;
  }
  if (text == "cpu") {
    options->device = ORIEL_DEVICE_CPU;
    return;
  }
  options->device = ORIEL_DEVICE_VULKAN;
  if (text == vulkan) {
    return;
  }
  uint32_t index = 0;
  if (text.compare(0, vulkan.size() + 1, vulkan + ":") == 0 && text.size() <= vulkan.size() + 5 &&
      text.find_first_not_of("0123456789", vulkan.size() + 1) == std::string::npos &&
      CLI::detail::lexical_cast(text.substr(vulkan.size() + 1), index)) {
    options->device_number = index + 1;
    return;
  }
  throw CLI::ValidationError("--device",
                             "'" + given + "' is not a device: use auto, cpu, vulkan or vulkan:N");
}

void setCalibration(const std::string& text, CommonOptions* options) {
  options->calibration.reset();
  if (text == "none") {
    options->calibration = "";
  } else if (text != "auto") {
    options->calibration = text;
  }
}

void setEvict(const std::string& given, CommonOptions* options) {
  const std::string text = lowerCase(given);
  if (text != "turns" && text != "tokens") {
    throw CLI::ValidationError("--evict",
                               "'" + given + "' is not what can be forgotten: use turns or tokens");
  }
  options->split_turns = text == "tokens";
}

/// An option whose text is read by `set`.
void addText(CLI::App* command, CommonOptions* options, const char* name, const char* type,
             const char* group, const char* help, void (*set)(const std::string&, CommonOptions*)) {
  command
      ->add_option_function<std::string>(
          name, [options, set](const std::string& text) { set(text, options); }, help)
      ->type_name(type)
      ->group(group);
}

}  // namespace

void addCommonOptions(CLI::App* command, CommonOptions* options, Uses uses) {
  // Options in the group "" are accepted but not shown.
  const auto shown = [uses](const char* group, Uses with) {
    const auto bits = static_cast<unsigned>(with);
    return (static_cast<unsigned>(uses) & bits) == bits ? group : "";
  };
  const char* const memory = shown("Memory", Uses::kMemory);
  addText(
      command, options, "--memory", "SIZE", memory,
      "Most memory for model and session together: 300MiB or 300M (2^20), 300MB (10^6) or bytes "
      "(default: half of what is free)",
      setMemory);
  command
      ->add_option("--window", options->window_tokens,
                   "Tokens to remember, besides the first few; max: all that the model was trained "
                   "on (default: as many as fit, up to 8192 and what it was trained on)")
      ->type_name("N")
      ->transform(windowTokens())
      ->group(memory);
  command
      ->add_option("--min-window", options->min_window_tokens,
                   "Remember at least N tokens: cache formats that cannot hold them are not chosen")
      ->type_name("N")
      ->transform(wholeNumber(0, kMostWindowTokens))
      ->group(memory);
  command
      ->add_option("--sinks", options->sink_tokens,
                   "First tokens to keep for ever, whatever else is forgotten (default 4)")
      ->type_name("N")
      ->transform(wholeNumber(0, kMostWindowTokens))
      ->group(memory);
  addText(
      command, options, "--kv", "FORMAT", memory,
      "How the cache is stored: f16, k8v8, k8v4 or k4v4, from large to small (default: auto, which "
      "chooses)",
      setKvFormat);
  command
      ->add_option("--draft", options->draft_tokens,
                   "Guess up to N next tokens from what was said before, and verify them in one "
                   "step where that is faster: the same replies, sooner where text repeats "
                   "(default: 0, none)")
      ->type_name("N")
      ->transform(wholeNumber(0, kMostDrafts))
      ->group(memory);
  addText(
      command, options, "--recall", "SIZE", memory,
      "Keep turns that left the window in a file of at most SIZE, and bring back what a message "
      "asks for (default: 0, they are gone)",
      setRecall);
  command
      ->add_option("--min-speed", options->min_tokens_per_s,
                   "Reply with at least N tokens/s when the window is full, as predicted for the "
                   "device: windows and cache formats are chosen for it")
      ->type_name("N")
      ->check(between(0.0, 1e9))
      ->group(shown("Memory", Uses::kModel));

  addText(command, options, "--calibration", "FILE", shown("Memory", Uses::kModel),
          "What `oriel calibrate` measured on this model: a file, none, or auto, the one beside "
          "the model "
          "(default)",
          setCalibration);

  addText(
      command, options, "--evict", "WHAT", shown("Memory", Uses::kSampling),
      "What goes at once when the window is full: turns, a question with its answer (default), or "
      "single tokens",
      setEvict);
  command
      ->add_flag("--forget", options->forget,
                 "In models that keep a state: reply from what is still seen alone, and read that "
                 "again whenever something went")
      ->group(shown("Memory", Uses::kSampling));

  const char* const device = shown("Device", Uses::kDevice);
  addText(command, options, "--device", "DEVICE", device,
          "cpu, vulkan or vulkan:N as `oriel devices` lists them (default: auto, the best GPU, "
          "else the CPU)",
          setDevice);
  addText(command, options, "--enable-feature", "NAME", device,
          "Use what a Vulkan device is known or was found to be faulty in: a name that `oriel "
          "devices` shows as off, long_submissions, or device, one that is refused",
          addFeature);
  command
      ->add_flag("--no-cache", options->no_cache,
                 "Keep neither compiled kernels nor measurements in the user's cache folder")
      ->group(device);

  const auto group_of = [&](const std::string& name) {
    const bool is_device =
        name == "threads" || name == "activation_bits" || name.rfind("device", 0) == 0;
    return is_device ? device : memory;
  };
  addSettingFlags(command, &options->settings, group_of);

  const char* const sampling = shown("Sampling", Uses::kSampling);
  command
      ->add_option("--seed", options->seed,
                   "The same N gives the same text again (default 0: another each time)")
      ->type_name("N")
      ->transform(wholeNumber(0, UINT64_MAX))
      ->group(sampling);
  command->add_flag("--greedy", options->greedy, "Take the most likely token each time")
      ->group(sampling);
  command
      ->add_option("--temperature", options->temperature,
                   "How freely to choose (default 0.7; 0: as --greedy)")
      ->type_name("T")
      ->check(between(0.0, 100.0))
      ->group(sampling);
  command
      ->add_option("--top-k", options->top_k,
                   "Choose among the K most likely tokens (default 40; 0: all)")
      ->type_name("K")
      ->transform(wholeNumber(0, UINT32_MAX))
      ->group(sampling);
  command
      ->add_option("--top-p", options->top_p,
                   "Choose among the most likely tokens that together have probability P (default "
                   "0.95; 1: all)")
      ->type_name("P")
      ->check(between(0.0001, 1.0))
      ->group(sampling);
  command
      ->add_option(
          "--min-p", options->min_p,
          "Leave out tokens less than P times as likely as the likeliest (default 0.05; 0: "
          "none)")
      ->type_name("P")
      ->check(between(0.0, 1.0))
      ->group(sampling);
  command
      ->add_option("--repeat-penalty", options->repeat_penalty,
                   "Above 1, the last tokens are less likely to come again (default 1: off)")
      ->type_name("R")
      ->check(between(0.01, 100.0))
      ->group(sampling);
  command
      ->add_option("--presence-penalty", options->presence_penalty,
                   "Taken from the logit of each of the last tokens (default 0: off)")
      ->type_name("P")
      ->check(between(-10.0, 10.0))
      ->group(sampling);
  command
      ->add_option("--frequency-penalty", options->frequency_penalty,
                   "Taken from it for each time that the token was said (default 0: off)")
      ->type_name("P")
      ->check(between(-10.0, 10.0))
      ->group(sampling);
  command
      ->add_option("--repeat-window", options->repeat_window,
                   "How many of the last tokens these three look at (default 64, at most 256)")
      ->type_name("N")
      ->transform(wholeNumber(1, 256))
      ->group(sampling);

  const char* const output = "Output";
  command->add_flag("--json", options->json, "One JSON object on one line instead of text")
      ->group(output);
  command->add_flag("--verbose", options->verbose, "Say on stderr what is being decided")
      ->group(output);
}

void addModelOption(CLI::App* command, CommonOptions* options) {
  command
      ->add_option(
          "MODEL", options->model,
          "GGUF file, or the name of a model that `oriel pull` got (default: what the environment "
          "variable ORIEL_MODEL names, else the bundled model)")
      ->type_name("");
}

oriel_options planOptions(const CommonOptions& options) {
  oriel_options result = {};
  result.struct_size = sizeof(result);
  result.memory_bytes = options.memory_bytes;
  result.window_tokens = options.window_tokens;
  result.min_window_tokens = options.min_window_tokens;
  if (options.sink_tokens) {
    result.sink_tokens = *options.sink_tokens == 0 ? UINT32_MAX : *options.sink_tokens;
  }
  result.chunk_tokens = options.chunk_tokens;
  result.k_format = options.k_format;
  result.v_format = options.v_format;
  result.f16_layers = options.f16_layers.empty() ? nullptr : options.f16_layers.data();
  result.window_shares = options.window_shares.empty() ? nullptr : options.window_shares.data();
  result.window_share_count = static_cast<uint32_t>(options.window_shares.size());
  result.f16_layer_count = static_cast<uint32_t>(options.f16_layers.size());
  result.draft_tokens = options.draft_tokens;
  result.recall_bytes = options.recall_bytes;
  result.device = options.device;
  result.device_number = options.device_number;
  result.min_tokens_per_s = options.min_tokens_per_s;
  result.constraints = options.constraints ? 1 : 0;
  result.sessions = options.sessions;
  result.session_windows =
      options.session_windows.empty() ? nullptr : options.session_windows.data();
  result.session_window_count = static_cast<uint32_t>(options.session_windows.size());
  result.prefix_tokens = options.prefix_tokens;
  result.prefix_file = options.prefix_file.empty() ? nullptr : options.prefix_file.c_str();
  result.transcript_bytes = options.transcript_bytes;
  result.disabled_features = std::getenv("ORIEL_DISABLE");
  result.enabled_features =
      options.enabled_features.empty() ? nullptr : options.enabled_features.c_str();
  result.calibration_file = options.calibration ? options.calibration->c_str() : nullptr;
  options.setting_list.clear();
  for (const auto& [name, value] : options.settings) {
    options.setting_list.push_back({name.c_str(), value.c_str()});
  }
  result.settings = options.setting_list.data();
  result.setting_count = options.setting_list.size();
  return result;
}

uint64_t nextSeed(uint64_t seed, uint32_t number) {
  const uint64_t next = seed + number;
  return seed == 0 ? 0 : next < seed ? next + 1 : next;
}

oriel_generate_options generateOptions(const CommonOptions& options, uint32_t max_tokens) {
  // Here zero means what people mean by it; for the library it means "default".
  oriel_generate_options result = {};
  result.struct_size = sizeof(result);
  result.max_tokens = max_tokens;
  result.seed = options.seed;
  result.greedy = options.greedy || options.temperature == 0.0f ? 1 : 0;
  result.temperature = options.temperature.value_or(0);
  if (options.top_k) {
    result.top_k = *options.top_k == 0 ? UINT32_MAX : *options.top_k;
  }
  result.top_p = options.top_p.value_or(0);
  if (options.min_p) {
    result.min_p = *options.min_p == 0 ? -1.0f : *options.min_p;
  }
  result.repeat_penalty = options.repeat_penalty.value_or(0);
  result.presence_penalty = options.presence_penalty;
  result.frequency_penalty = options.frequency_penalty;
  result.repeat_window = options.repeat_window;
  return result;
}

bool isBundledName(const std::string& word) { return word == kBundledName; }

std::string modelPath(const CommonOptions& options) {
  if (!options.model.empty()) {
    return isBundledName(options.model) ? bundledModel() : modelFile(options.model);
  }
  if (isSet("ORIEL_MODEL")) {
    std::string path = variable("ORIEL_MODEL");
    if (path.empty()) {  // as with options: a script forgot to fill it
      throw Failure{
          kExitUsage,
          "the environment variable ORIEL_MODEL is empty: name a GGUF file in it, or unset it"};
    }
    return modelFile(path);
  }
  return bundledModel();
}

bool usesBundledModel(const CommonOptions& options) {
  return isBundledName(options.model) || (options.model.empty() && !isSet("ORIEL_MODEL"));
}

std::string bundledModel() {
  namespace fs = std::filesystem;
  // Installed, the model is in share beside bin; in a build tree, in the sources around it.
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
  throw Failure{kExitFailed,
                "the bundled model is not beside this program: name a GGUF file, or set "
                "ORIEL_MODEL to one"};
}

}  // namespace cli
