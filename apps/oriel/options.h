// Options that commands share.
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
  std::string model;         ///< as it was given; empty: it was not
  std::string preset_model;  ///< of the config file's preset that was asked for
  std::string config_model;  ///< of the config file
  bool json = false;
  bool verbose = false;
  bool no_cache = false;
  bool no_wrap = false;  ///< of replies on a terminal
  bool plain = false;
  Settings load;  ///< options of the library by scope, as far as they were given
  Settings session;
  Settings reply;
  Settings
      file_sampling;  ///< what the model's file has for the reply; used where that is not given
  std::string tools_file;  ///< where the session's tools come from; empty: there are none
  std::string form_file;   ///< where the reply's schema or grammar comes from; empty: there is none
};

/// Every command accepts every common option; its help shows those that change what it does, in groups
/// by bits.
enum class Uses : unsigned { kText = 0, kMemory = 1, kDevice = 2, kModel = 3, kSampling = 7 };

/// `options` must outlive the parsing. To be called last: help keeps the order.
void addCommonOptions(CLI::App* command, CommonOptions* options, Uses uses);
/// The optional positional MODEL.
void addModelOption(CLI::App* command, CommonOptions* options);

/// What the plan for a file or a shape is made of, in every command: all but callbacks, the cache folder and rates of the
/// device. At least `pinned_tokens` sinks.
oriel::Options planOptions(const CommonOptions& options, uint32_t pinned_tokens = 0);
/// The same for a question of memory, not of speed.
oriel::Options memoryOptions(const CommonOptions& options, uint32_t pinned_tokens = 0);
oriel::ReplyOptions replyOptions(const Settings& reply);
/// Whether a reply is held to something, for which the model must be loaded with room.
bool constrains(const Settings& reply);
/// Whether a reply depends on what was said before it, and taken back.
bool penalises(const Settings& reply);
/// The seed of the `number`-th reply (0: the first) to the same prompt. Never 0, which is the clock's, unless `seed` is.
uint64_t nextSeed(uint64_t seed, uint32_t number);

/// The GGUF file to use: MODEL, else the preset's, the environment's ORIEL_MODEL, the config file's, the bundled one. Throws Failure for the name of
/// a model that is not here.
std::string modelPath(const CommonOptions& options);
/// The model that comes with the program.
bool isBundledName(const std::string& word);
bool usesBundledModel(const CommonOptions& options);
/// The one that comes with the program. Throws Failure.
std::string bundledModel();

}  // namespace cli
