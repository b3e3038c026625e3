// Where keys and values lie in memory, and in which format.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "base/limits.h"

namespace oriel_internal {

/// How one side (keys or values) of one layer's ring is stored. Sinks are always f16.
///   kF16   2 bytes a value
///   kInt8  1 byte a value and an f16 scale per group: 8.5 bits at head_dim >= 32
///   kInt4  half a byte a value and an f16 scale per group: 4.5 bits
enum class KvFormat : uint8_t { kF16, kInt8, kInt4 };
const char* kvFormatName(KvFormat format);  ///< "f16", "int8", "int4"

/// Values that share a scale: 32 neighbours of one head; a smaller head is one group, a last group may
/// be shorter.
constexpr uint32_t kKvGroup = 32;
constexpr uint32_t kvGroups(uint32_t head_dim) { return (head_dim + kKvGroup - 1) / kKvGroup; }

/// How the matrices of a recurrent state are stored; its columns are always float32.
///   kF32, kF16
///   kInt8  1 byte a value and an f16 scale per group of kKvGroup neighbours of a row
enum class StateFormat : uint8_t { kF32, kF16, kInt8 };
const char* stateFormatName(StateFormat format);  ///< "f32", "f16", "int8"

/// Formats of every layer: the ones asked for, but for layers that a guard or the caller raised.
class CacheFormats {
 public:
  KvFormat k = KvFormat::kF16;
  KvFormat v = KvFormat::kF16;
  StateFormat state = StateFormat::kF32;
  /// Layers that few bits would ruin: keys in f16 and values in no less than int8, whatever is asked for.
  uint64_t needs_f16[kMaxLayers / 64] = {};
  uint64_t needs_int8[kMaxLayers / 64] = {};  ///< layers whose keys get int8 where `k` says int4
  uint64_t wide_norms[kMaxLayers / 64] = {};  ///< of both: because of the key norm, not of a bias
  uint64_t whole_f16[kMaxLayers / 64] = {};   ///< layers with keys and values in f16: asked for

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

/// Tokens that are kept at a time of those that may come back once they have left the window.
constexpr uint32_t kRecallBlock = 16;
/// A layer that sees fewer tokens than this has nothing kept of it, and nothing comes back: until a block is complete its
/// ring must hold it, beside guesses (15 at most) and a token that is begun ahead.
constexpr uint32_t kLeastRecallWindow = 2 * kRecallBlock;

/// The sessions that memories are for.
struct SessionWindows {
  uint32_t count = 1;
  bool share_sinks = false;             ///< one copy of the sinks: a prefix of all sessions
  uint32_t windows[kMaxSessions] = {};  ///< 0: the window that is chosen
};

/// Slots of one layer and side. Positions below `sinks` have slots of their own; the others share a
/// ring. ring >= window + chunk - 1, so that the first query of a chunk still finds its whole window
/// after the last token of the chunk has been stored.
///
/// Where several sessions have memories they lie side by side: all their sinks, then all their rings, then all their
/// scales. What a session sees of that is a shape with its own window and ring, and where its slots begin.
struct CacheShape {
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t sinks = 0;
  uint32_t window = 0;
  uint32_t ring = 0;
  uint32_t checkpoints = 0;  ///< of recurrent states: slots besides kStateSlots
  /// Null: there is one session. Else the numbers below, and those of views, are found for session `session` of these
  /// (sessionCache). It outlives the shape.
  const SessionWindows* sessions = nullptr;
  uint32_t session = 0;
  uint32_t chosen_window = 0;  ///< of sessions for which none was asked; 0: `window`
  // Slots of all sessions; 0: there is one session.
  uint32_t all_sinks = 0;
  uint32_t all_ring = 0;
  // Slots of the sessions before this one. Where sessions share their sinks, of none.
  uint32_t first_sink = 0;
  uint32_t first_ring = 0;
  /// Slots for sinks, where not all of them hold one: a prefix may be shorter than was planned. 0: `sinks`.
  uint32_t sink_room = 0;
  uint32_t drafts = 0;  ///< guesses that a step may verify, of no more tokens than a chunk has
  /// Sink slots behind `sinks` that hold tokens which came back; every token but the sinks themselves sees them.
  uint32_t recalled = 0;

  uint32_t sessionCount() const { return sessions != nullptr ? sessions->count : 1; }
  /// One copy of the sinks is all sessions'.
  bool sharesSinks() const { return sessions != nullptr && sessions->share_sinks; }
  /// Of session i.
  uint32_t windowOf(uint32_t i) const {
    return sessions->windows[i] != 0 ? sessions->windows[i]
           : chosen_window != 0      ? chosen_window
                                     : window;
  }
  uint32_t sinkSlots() const { return all_sinks != 0 ? all_sinks : sinkRoom(); }
  uint32_t ringSlots() const { return all_ring != 0 ? all_ring : ring; }
  constexpr uint32_t sinkRoom() const { return sink_room != 0 ? sink_room : sinks; }
  /// At most sinkRoom(): so many tokens are sinks, those behind them are in the ring.
  void setSinks(uint32_t count) {
    sink_room = sinkRoom();
    sinks = count;
  }
  /// Vectors of a side before that of a head's slot.
  uint64_t sinkRow(uint32_t head, uint32_t slot) const {
    return uint64_t{first_sink} * n_kv_heads + uint64_t{head} * sinkRoom() + slot;
  }
  uint64_t ringRow(uint32_t head, uint32_t slot) const {
    return uint64_t{first_ring} * n_kv_heads + uint64_t{head} * ring + slot;
  }
};

/// Slots that a ring of so many takes among several: an even number, so that every session's scales begin on a word.
constexpr uint32_t sessionSlots(uint32_t ring) { return ring + ring % 2; }

/// What session `session` has of a cache that was planned for several. SessionWindows::count of them: where a prefix
/// keeps what is not in its sinks, in memories that have none.
CacheShape sessionCache(const CacheShape& cache, uint32_t session);
/// The session with the longest window, the first of several: what plans and kernels are made for.
CacheShape longestSession(const CacheShape& cache);

/// 32-bit words of the values of one head of one token, without scales.
constexpr uint32_t kvValueWords(KvFormat format, uint32_t head_dim) {
  return format == KvFormat::kF16    ? head_dim / 2
         : format == KvFormat::kInt8 ? (head_dim + 3) / 4
                                     : (head_dim + 7) / 8;
}

/// One side of one layer (shaders/shared/layout.h has the order). Offsets in words.
struct SideLayout {
  uint64_t ring_word = 0;    ///< of CacheShape::ringRow(), [value words] each; sinks are at 0
  uint64_t scales_word = 0;  ///< likewise, f16 [groups], two to a word; low-bit formats only
  uint64_t bytes = 0;
};
SideLayout sideLayout(KvFormat format, const CacheShape& shape);

/// Bytes that one more token of window adds to one layer's side, scales included.
constexpr uint64_t kvSideBytesPerToken(KvFormat format, uint32_t n_kv_heads, uint32_t head_dim) {
  return static_cast<uint64_t>(n_kv_heads) *
         (4ull * kvValueWords(format, head_dim) +
          (format == KvFormat::kF16 ? 0 : 2ull * kvGroups(head_dim)));
}

/// 32-bit words of the values of one row of a state's matrix, without scales.
constexpr uint32_t stateValueWords(StateFormat format, uint32_t key_dim) {
  return format == StateFormat::kF32   ? key_dim
         : format == StateFormat::kF16 ? (key_dim + 1) / 2
                                       : (key_dim + 3) / 4;
}
/// Of so many rows: all values, then of kInt8 the scales [rows][kvGroups(key_dim)], two to a word.
constexpr uint32_t stateMatrixWords(StateFormat format, uint32_t rows, uint32_t key_dim) {
  return rows * stateValueWords(format, key_dim) +
         (format == StateFormat::kInt8 ? (rows * kvGroups(key_dim) + 1) / 2 : 0);
}

/// Length of the Walsh-Hadamard blocks that rotate a head: the largest power of two that divides it.
constexpr uint32_t hadamardBlock(uint32_t head_dim) { return head_dim & (~head_dim + 1); }

}  // namespace oriel_internal
