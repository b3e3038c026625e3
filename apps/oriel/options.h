// Options shared by commands.
#pragma once

#include <cstdint>
#include <string>

#include <oriel/oriel.hpp>

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

}  // namespace cli
