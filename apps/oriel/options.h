// Options shared by commands.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <oriel/oriel.h>
#include <CLI/CLI.hpp>
#include <oriel/oriel.hpp>

#include "plan/chart.h"
#include "settings.h"

namespace CLI {
class App;
}

namespace cli {

struct CommonOptions {
  std::string model;         ///< as given; empty: not given
  std::string preset_model;  ///< from the chosen preset of the config file
  std::string config_model;  ///< from the config file
  bool json = false;
  bool verbose = false;
  bool no_cache = false;
  bool no_wrap = false;  ///< for replies on a terminal
  bool plain = false;
  Settings load;  ///< the library's options by scope, as far as given
  Settings session;
  Settings reply;
  Settings file_sampling;  ///< the model file's sampling; used unless given
  std::string tools_file;  ///< source of the session's tools; empty: none
  std::string form_file;   ///< source of the reply's schema or grammar; empty: none
};

/// Every command accepts all common options. These bits select the common options in its help: the ones it uses.
enum class Uses : unsigned { kText = 0, kMemory = 1, kDevice = 2, kModel = 3, kSampling = 7 };

/// `options` must outlive the parsing. Call last: help keeps the order.
void addCommonOptions(CLI::App* command, CommonOptions* options, Uses uses);
/// The optional positional MODEL.
void addModelOption(CLI::App* command, CommonOptions* options);

/// The plan options for a file or a shape in every command: everything except callbacks, the cache folder and device
/// rates. At least `pinned_tokens` sinks.
oriel::Options planOptions(const CommonOptions& options, uint32_t pinned_tokens = 0);
/// The same for questions of memory instead of speed.
oriel::Options memoryOptions(const CommonOptions& options, uint32_t pinned_tokens = 0);
/// For commands whose numbers are compared: activations of 16 bits unless the user chose.
void use16BitActivations(CommonOptions* options);
oriel::ReplyOptions replyOptions(const Settings& reply);
/// True if a reply is constrained, which the model must reserve memory for.
bool constrains(const Settings& reply);
/// True if a reply depends on earlier text, even if that was taken back.
bool penalises(const Settings& reply);
/// The seed of reply `number` (from 0) to the same prompt. Never 0, which means the clock, unless `seed` is 0.
uint64_t nextSeed(uint64_t seed, uint32_t number);

/// The GGUF file to use, from the first of these: MODEL, the preset, ORIEL_MODEL, the config file, the bundled model.
/// Throws Failure for an unknown name.
std::string modelPath(const CommonOptions& options);
/// True if it names the bundled model.
bool isBundledName(const std::string& word);
bool usesBundledModel(const CommonOptions& options);
/// The bundled model. Throws Failure.
std::string bundledModel();

// Checks of option values.

/// The library's limit; more sinks would collide with its value for "none".
constexpr uint32_t kMostWindowTokens = 4194304;

/// A number from `least` to `most`.
inline CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) {
          return std::string();
        }
        char message[96];
        std::snprintf(message, sizeof(message), "must be from %.10g to %.10g", least, most);
        return "'" + text + "' is not allowed: it " + message;
      },
      "");
}

/// A decimal integer without sign. For transform(): removes leading zeros, which the parser would read as octal.
inline CLI::Validator wholeNumber(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const bool digits =
            !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        errno = 0;
        const unsigned long long value = digits ? std::strtoull(text.c_str(), nullptr, 10) : 0;
        if (!digits || errno != 0 || value < least || value > most) {
          return "'" + text + "' is not allowed: it must be a whole number from " +
                 std::to_string(least) + " to " + std::to_string(most);
        }
        text = std::to_string(value);
        return std::string();
      },
      "");
}

/// Tokens of a window: a number, or "max" for the whole trained context, which becomes the library's value for it.
inline CLI::Validator windowTokens() {
  return CLI::Validator(
      [](std::string& text) {
        if (text == "max") {
          text = std::to_string(ORIEL_WINDOW_MAX);
          return std::string();
        }
        const std::string why_not = wholeNumber(0, kMostWindowTokens)(text);
        return why_not.empty() ? why_not : why_not + ", or max";
      },
      "");
}

/// The name of a drawing file: must end in .svg.
inline CLI::Validator svgFile() {
  return CLI::Validator(
      [](const std::string& text) {
        return text.empty() || isSvgName(text)
                   ? std::string()
                   : "'" + text +
                         "' is not allowed: drawings are SVG, so write a name that ends with .svg";
      },
      "");
}

/// A file name without its extension.
inline CLI::Validator stem() {
  return CLI::Validator(
      [](const std::string& text) {
        if (text.back() == '/') {
          return "'" + text + "' is a folder: add a name";
        }
        for (const char* ending :
             {".svg", ".csv", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"}) {
          const size_t length = std::strlen(ending);
          if (text.size() >= length && text.compare(text.size() - length, length, ending) == 0) {
            return "'" + text + "' is not allowed: leave out " + ending +
                   "; .csv and .svg are written and added";
          }
        }
        return std::string();
      },
      "");
}

/// A to Z only: typed names are ASCII.
inline std::string lowerCase(std::string text) {
  for (char& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

/// Refuses an empty text: an unset variable of a script is not a value.
inline CLI::Validator notEmpty() {
  return CLI::Validator(
      [](const std::string& text) {
        return text.empty() ? std::string("is empty") : std::string();
      },
      "");
}

}  // namespace cli
