// Layout and formats of keys and values in memory.
#pragma once

#include <cstdint>

#include "base/checked.h"

namespace oriel_internal {

/// Storage of one side (keys or values) of one layer's ring. Sinks are always f16.
///   kF16   2 bytes a value
///   kInt8  1 byte a value and an f16 scale per group: 8.5 bits at head_dim >= 32
///   kInt4  half a byte a value and an f16 scale per group: 4.5 bits
enum class KvFormat : uint8_t { kF16, kInt8, kInt4 };
const char* kvFormatName(KvFormat format);  ///< "f16", "int8", "int4"

/// Values that share a scale: 32 neighbours of one head. A smaller head is one group; the last group may be shorter.
constexpr uint32_t kKvGroup = 32;
constexpr uint32_t kvGroups(uint32_t head_dim) { return (head_dim + kKvGroup - 1) / kKvGroup; }

/// Storage of the matrices of a recurrent state; its columns are always float32.
///   kF32, kF16
///   kInt8  1 byte a value and an f16 scale per group of kKvGroup neighbours of a row
enum class StateFormat : uint8_t { kF32, kF16, kInt8 };
const char* stateFormatName(StateFormat format);  ///< "f32", "f16", "int8"

/// Formats per layer: the requested ones, except where a guard or the caller raised them.
class CacheFormats {
 public:
  KvFormat k = KvFormat::kF16;
  KvFormat v = KvFormat::kF16;
  StateFormat state = StateFormat::kF32;
  /// Layers that low-bit formats would ruin: keys are f16 and values at least int8, regardless of the request.
  uint64_t needs_f16[kMaxLayers / 64] = {};
  uint64_t needs_int8[kMaxLayers / 64] = {};  ///< layers with int8 keys if `k` is int4
  uint64_t wide_norms[kMaxLayers / 64] = {};  ///< the part of both that is due to the key norm, not
                                              ///< to a bias
  uint64_t whole_f16[kMaxLayers / 64] = {};   ///< layers with requested f16 keys and values

  void keepF16(uint32_t layer) { whole_f16[layer / 64] |= uint64_t{1} << (layer % 64); }
  void blameNorm(uint32_t layer) { wide_norms[layer / 64] |= uint64_t{1} << (layer % 64); }
  void requireF16(uint32_t layer) { needs_f16[layer / 64] |= uint64_t{1} << (layer % 64); }
  void requireInt8(uint32_t layer) { needs_int8[layer / 64] |= uint64_t{1} << (layer % 64); }
  KvFormat keys(uint32_t layer) const {
    return in(needs_f16, layer) || in(whole_f16, layer)    ? KvFormat::kF16
           : k == KvFormat::kInt4 && in(needs_int8, layer) ? KvFormat::kInt8
                                                           : k;
  }
  /// By a guard.
  bool keysRaised(uint32_t layer) const { return keys(layer) != k && !in(whole_f16, layer); }
  bool raisedByNorm(uint32_t layer) const { return keysRaised(layer) && in(wide_norms, layer); }
  KvFormat values(uint32_t layer) const {
    return in(whole_f16, layer)                           ? KvFormat::kF16
           : v == KvFormat::kInt4 && in(needs_f16, layer) ? KvFormat::kInt8
                                                          : v;
  }

 private:
  static bool in(const uint64_t* set, uint32_t layer) {
    return (set[layer / 64] >> (layer % 64) & 1) != 0;
  }
};

/// Tokens per block of recallable tokens.
constexpr uint32_t kRecallBlock = 16;
/// Layers that see fewer tokens keep nothing for recall. Until a block is complete the ring must hold it, plus drafts
/// (at most 15) and a token that was started early.
constexpr uint32_t kLeastRecallWindow = 2 * kRecallBlock;

/// The sessions that share the cache.
struct SessionWindows {
  uint32_t count = 1;
  bool share_sinks = false;             ///< one copy of the sinks: a prefix for all sessions
  uint32_t windows[kMaxSessions] = {};  ///< 0: the chosen window
};

/// Slots of one layer and side. Positions below `sinks` have their own slots; the others share a ring. ring >= window +
/// chunk - 1, so that the first query of a chunk still finds its whole window after the chunk's last token is stored.
//
/// Several sessions are stored side by side: all sinks, then all rings, then all scales. One session's part is a shape
/// with its own window, ring and slot offsets.
struct CacheShape {
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t sinks = 0;
  uint32_t window = 0;
  uint32_t ring = 0;
  uint32_t checkpoints = 0;  ///< of recurrent states: slots besides kStateSlots and stateDrafts()
  /// Null: one session. Otherwise the numbers below and the numbers of views apply to session `session` of these
  /// (sessionCache). Must outlive the shape.
  const SessionWindows* sessions = nullptr;
  uint32_t session = 0;
  uint32_t chosen_window = 0;  ///< for sessions without a requested window; 0: `window`
  // Slots of all sessions; 0: one session.
  uint32_t all_sinks = 0;
  uint32_t all_ring = 0;
  // Slots of the sessions before this one. 0 if sessions share their sinks.
  uint32_t first_sink = 0;
  uint32_t first_ring = 0;
  /// Slots reserved for sinks, if a prefix may be shorter than planned. 0: `sinks`.
  uint32_t sink_room = 0;
  uint32_t drafts = 0;  ///< drafts that a step may verify, at most the tokens of a chunk
  /// Sink slots after `sinks` with recalled tokens. Visible to every token except the sinks.
  uint32_t recalled = 0;

  uint32_t sessionCount() const { return sessions != nullptr ? sessions->count : 1; }
  /// All sessions share one copy of the sinks.
  bool sharesSinks() const { return sessions != nullptr && sessions->share_sinks; }
  /// The window of session i.
  uint32_t windowOf(uint32_t i) const {
    return sessions->windows[i] != 0 ? sessions->windows[i]
           : chosen_window != 0      ? chosen_window
                                     : window;
  }
  uint32_t sinkSlots() const { return all_sinks != 0 ? all_sinks : sinkRoom(); }
  uint32_t ringSlots() const { return all_ring != 0 ? all_ring : ring; }
  /// Slots of recurrent states for drafts: a step writes the state after each of its tokens.
  constexpr uint32_t stateDrafts() const { return drafts < ring - window ? drafts : ring - window; }
  constexpr uint32_t sinkRoom() const { return sink_room != 0 ? sink_room : sinks; }
  /// The first `count` tokens become sinks, at most sinkRoom(); later tokens go to the ring.
  void setSinks(uint32_t count) {
    sink_room = sinkRoom();
    sinks = count;
  }
  /// Index of a head's slot, in vectors of one side.
  uint64_t sinkRow(uint32_t head, uint32_t slot) const {
    return uint64_t{first_sink} * n_kv_heads + uint64_t{head} * sinkRoom() + slot;
  }
  uint64_t ringRow(uint32_t head, uint32_t slot) const {
    return uint64_t{first_ring} * n_kv_heads + uint64_t{head} * ring + slot;
  }
};

/// Ring slots of a session in a cache for several: an even number, so that each session's scales begin on a word.
constexpr uint32_t sessionSlots(uint32_t ring) { return ring + ring % 2; }

/// One session's part of a cache for several. `session` may be SessionWindows::count: the part of the prefix that is not
/// in sinks, in memories without sinks.
CacheShape sessionCache(const CacheShape& cache, uint32_t session);
/// The session with the longest window, the first on a tie. Plans and kernels are made for it.
CacheShape longestSession(const CacheShape& cache);

/// 32-bit words of one token's values for one head, without scales.
constexpr uint32_t kvValueWords(KvFormat format, uint32_t head_dim) {
  return format == KvFormat::kF16    ? head_dim / 2
         : format == KvFormat::kInt8 ? (head_dim + 3) / 4
                                     : (head_dim + 7) / 8;
}

/// One side of one layer (order: shaders/shared/layout.h). Offsets in words.
struct SideLayout {
  uint64_t ring_word = 0;    ///< ring rows of [value words] each; sinks are at 0
  uint64_t scales_word = 0;  ///< the same for f16 [groups], two to a word; low-bit formats only
  uint64_t bytes = 0;
};
SideLayout sideLayout(KvFormat format, const CacheShape& shape);

/// Bytes per token of window in one layer's side, including scales.
constexpr uint64_t kvSideBytesPerToken(KvFormat format, uint32_t n_kv_heads, uint32_t head_dim) {
  return static_cast<uint64_t>(n_kv_heads) *
         (4ull * kvValueWords(format, head_dim) +
          (format == KvFormat::kF16 ? 0 : 2ull * kvGroups(head_dim)));
}

/// 32-bit words of one row of a state's matrix, without scales.
constexpr uint32_t stateValueWords(StateFormat format, uint32_t key_dim) {
  return format == StateFormat::kF32   ? key_dim
         : format == StateFormat::kF16 ? (key_dim + 1) / 2
                                       : (key_dim + 3) / 4;
}
/// Words of `rows` rows: all values, then for kInt8 the scales [rows][kvGroups(key_dim)], two to a word.
constexpr uint32_t stateMatrixWords(StateFormat format, uint32_t rows, uint32_t key_dim) {
  return rows * stateValueWords(format, key_dim) +
         (format == StateFormat::kInt8 ? (rows * kvGroups(key_dim) + 1) / 2 : 0);
}

/// Length of the Walsh-Hadamard blocks that rotate a head: the largest power of two that divides head_dim.
constexpr uint32_t hadamardBlock(uint32_t head_dim) { return head_dim & (~head_dim + 1); }

}  // namespace oriel_internal
