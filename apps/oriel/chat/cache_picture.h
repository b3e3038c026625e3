// Drawings of a session's cache: kept, visible and evicted tokens, and formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_handle.h"

namespace cli {

struct CacheView {
  uint64_t position = 0;
  uint64_t first_visible = 0;
  uint64_t first_stored = 0;
  uint64_t sinks_used = 0;
  uint64_t pinned_tokens = 0;  ///< of the sinks
  uint64_t capacity = 0;       ///< sinks and window
  uint64_t kv_bytes = 0;
  bool of_several = false;      ///< kv_bytes covers all conversations
  uint64_t sliding_layers = 0;  ///< with a short window of their own
  uint64_t sliding_seen = 0;    ///< tokens in these layers that the newest token can see
  std::vector<uint64_t> turns;  ///< first tokens of the user's turns, ascending
  Json layers;                  ///< from oriel_model_describe
};

CacheView cacheViewOf(const Model& model, const Session& session, uint32_t pinned_tokens);

/// A few lines of block characters, at most `columns` wide.
std::string cacheText(const CacheView& cache, unsigned columns);
/// A standalone SVG document.
std::string cacheSvg(const CacheView& cache);

}  // namespace cli
