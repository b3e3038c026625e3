// Options that commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <oriel/oriel.h>

#include "setting_flags.h"

namespace CLI {
class App;
}

namespace cli {

struct CommonOptions {
  std::string model;  ///< empty: the bundled one
  bool json = false;
  bool verbose = false;

  Settings settings;  ///< options that only the library needs to understand
  mutable std::vector<oriel_setting> setting_list;  ///< of planOptions(): points to them

  uint64_t memory_bytes = 0;
  uint32_t window_tokens = 0;
  uint32_t min_window_tokens = 0;
  std::optional<uint32_t> sink_tokens;
  uint32_t chunk_tokens = 0;           ///< no option: for commands that load a model twice alike
  std::vector<uint8_t> window_shares;  ///< no option: as oriel_options.window_shares
  std::vector<uint8_t> f16_layers;     ///< no option: as oriel_options.f16_layers
  oriel_kv_format k_format = ORIEL_KV_AUTO;
  oriel_kv_format v_format = ORIEL_KV_AUTO;
  uint32_t draft_tokens = 0;
  uint64_t recall_bytes = 0;
  oriel_device_kind device = ORIEL_DEVICE_AUTO;
  uint32_t device_number = 0;
  bool device_named = false;  ///< --device was given
  std::string enabled_features;
  double min_tokens_per_s = 0;
  std::optional<std::string>
      calibration;  ///< a file; "": none; by default the one beside the model
  bool no_cache = false;
  bool split_turns = false;  ///< --evict tokens
  bool forget = false;
  bool constraints = false;  ///< room for schemas and grammars
  uint32_t sessions = 1;
  std::vector<uint32_t> session_windows;  ///< of the first so many; 0: as the others
  uint32_t prefix_tokens = 0;
  std::string prefix_file;  ///< empty: none
  uint32_t transcript_bytes = 0;

  uint64_t seed = 0;
  bool greedy = false;
  std::optional<float> temperature;
  std::optional<uint32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repeat_penalty;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  uint32_t repeat_window = 0;  ///< 0: the library's
};

/// Every command accepts every common option; its help shows those that change what it does, in groups
/// by bits.
enum class Uses : unsigned { kText = 0, kMemory = 1, kDevice = 2, kModel = 3, kSampling = 7 };

/// `options` must outlive the parsing. To be called last: help keeps the order.
void addCommonOptions(CLI::App* command, CommonOptions* options, Uses uses);
/// The optional positional MODEL.
void addModelOption(CLI::App* command, CommonOptions* options);

/// What the plan for a file or a shape is made of, in every command: all but callbacks, cache_dir, rates of the
/// device and pinned tokens. Points into `options`.
oriel_options planOptions(const CommonOptions& options);
oriel_generate_options generateOptions(const CommonOptions& options, uint32_t max_tokens);
/// The seed of the `number`-th reply (0: the first) to the same prompt. Never 0, which is the clock's, unless `seed` is.
uint64_t nextSeed(uint64_t seed, uint32_t number);

/// The GGUF file to use: MODEL, else the environment's ORIEL_MODEL, else the bundled one. Throws Failure for the name of
/// a model that is not here.
std::string modelPath(const CommonOptions& options);
/// The model that comes with the program.
bool isBundledName(const std::string& word);
bool usesBundledModel(const CommonOptions& options);
/// The one that comes with the program. Throws Failure.
std::string bundledModel();

}  // namespace cli
