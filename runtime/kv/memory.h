// Memories of a session: rotary phases, keys and values, and slots of states.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "kv/cache_layout.h"
#include "model/model_desc.h"

namespace oriel_internal {

// Rotary position phases that stay exact at any position.

/// Position times frequency as a fixed-point fraction of a turn: phase = step * position modulo 2^64, where step =
/// frequency / 2 pi * 2^64. The product wraps exactly like the angle, so the error of an angle is only the step's error,
/// |position| * 2^-65 turns: 2e-6 rad after 2^43 tokens (float32 products are wrong by 0.01 rad after 2^20).
class RopePhases {
 public:
  /// Frequencies theta^(-2i / dims) / divisors[i] for i < dims / 2 (null: all 1). Pairs are multiplied by `magnitude`.
  /// `steps` has room for dims / 2 numbers and must outlive this object.
  void init(double theta, uint32_t dims, const double* divisors, double magnitude, uint64_t* steps);

  /// Writes dims / 2 pairs (cos, sin), times the magnitude and `scale`, for `position`.
  void rotations(uint64_t position, float* pairs, double scale = 1) const;

  uint64_t step(uint32_t i) const { return steps_[i]; }
  double magnitude() const { return magnitude_; }

 private:
  uint32_t n_ = 0;
  double magnitude_ = 1.0;
  uint64_t* steps_ = nullptr;
};

// The memories of layers for a session: keys and values, or others, each with its bytes and used slots. Code that
// counts, places, saves, clears or draws memories uses forEachMemory.

enum class MemoryKind : uint8_t {
  kKeysValues,  ///< two sides, [heads][slots][head_dim] each, in their formats (sideLayout)
  kLatent,   ///< MLA: one side, one head: the latent, then the rotated key; formats[0] applies to
             ///< both
  kColumns,  ///< one side: float32 [ring][channels], the inputs of a short convolution
  kState,    ///< one side, [ring][words]: versions of a state, each its matrices, then its columns
};

struct Memory {
  MemoryKind kind = MemoryKind::kKeysValues;
  uint32_t layer = 0;  ///< the owner; others may read it
  uint8_t view = 0;    ///< index of ModelDesc::views
  LayerView seen;      ///< that view
  CacheShape shape;    ///< kColumns, kState: one head of 32-bit words
  KvFormat formats[2] = {KvFormat::kF16, KvFormat::kF16};
  StateFormat state = StateFormat::kF32;

  uint32_t sides() const { return kind == MemoryKind::kKeysValues ? 2 : 1; }
  /// Its evicted tokens may be recalled.
  bool isRecalled() const {
    return !isWords() && seen.kind == ViewKind::kSession && shape.window >= kLeastRecallWindow;
  }
  /// Columns or a state: 32-bit words instead of sides with formats.
  bool isWords() const { return kind == MemoryKind::kColumns || kind == MemoryKind::kState; }
  uint64_t sideBytes(uint32_t side) const {
    return isWords() ? 4ull * shape.ringSlots() * shape.head_dim
                     : sideLayout(formats[side], shape).bytes;
  }
  /// For one slot, all sides.
  uint64_t slotBytes() const;
};

/// Slots of a view in a session of `cache`, and their offsets among all sessions; heads stays 0. A layer's own window is
/// never longer than the session's; every ring has the same slack.
CacheShape viewShape(const LayerView& view, const CacheShape& cache);

/// The memory that a layer owns. For a layer with attention and a state: the attention's memory.
Memory memoryOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint32_t layer);
/// A layer's state.
Memory stateOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
               uint32_t layer);

/// visit(const Memory&) for all memories, in the order of the cache arena. `cache` gives sinks, window and ring.
template <typename Visit>
void forEachMemory(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                   const Visit& visit) {
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    if (model.ownsMemory(layer)) {
      visit(memoryOf(model, cache, formats, layer));
      if (model.kind(layer).mixer == Mixer::kParallel) {
        visit(stateOf(model, cache, formats, layer));
      }
    }
  }
}

/// True if the layer's memory is rounded to the cache's formats.
inline bool isRounded(const ModelDesc& model, uint32_t layer) {
  return model.ownsMemory(layer) && model.kind(layer).attends();
}

// Bytes as published figures count them: keys and values of tokens with their scales; no sinks, slack or alignment.

struct MemoryGrowth {
  uint64_t per_token = 0;          ///< bytes per token, in layers that see the session's window
  uint64_t sliding_per_token = 0;  ///< and in the others until their windows are full
  uint64_t sliding_bytes = 0;      ///< of the others when full
  uint64_t fixed_bytes = 0;        ///< memories that do not grow with tokens
};
MemoryGrowth memoryGrowth(const ModelDesc& model, const CacheFormats& formats);
/// Bytes of one version of all recurrent states.
uint64_t stateBytes(const ModelDesc& model, const CacheFormats& formats);
/// Bytes for `tokens` tokens, without fixed_bytes.
uint64_t memoryBytesAt(const ModelDesc& model, const CacheFormats& formats, uint64_t tokens);

// The slots of recurrent state versions: the latest committed state, and checkpoints.

/// Distance of checkpoints in a long text without messages, in tokens. Making one costs nothing, and older ones are
/// thinned out. Going back a little rereads at most this many tokens, a few prefill batches.
constexpr uint64_t kCheckpointTokens = 256;

/// A step reads the latest committed state and writes another slot, so an uncommitted step leaves all valid states
/// unchanged. A checkpoint is a slot that is not written until it is dropped, so making one copies nothing. The state
/// before the first token is zero and needs no slot.
//
/// Two slots besides the checkpoints always suffice. If the latest state is a checkpoint, a step and a step started
/// early find two free slots. Otherwise they find one, and the early step, which begins after the current step, writes
/// over the old latest state.
///
/// A step that verifies drafts writes the state after each of its tokens. It needs a slot more for each draft. The first
/// token reads the latest state, and each other token reads what the token before it wrote. Committing a token makes its
/// state the latest; the states after the last right draft are simply written over.
class StateSlots {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  /// Most tokens of a step with drafts.
  static constexpr uint32_t kMostRows = 16;

  /// At most kMaxCheckpoints and kMostRows - 1.
  void init(uint32_t checkpoints, uint32_t drafts) {
    capacity_ = checkpoints;
    n_slots_ = kStateSlots + checkpoints + drafts;
    restart(0);
  }
  /// Slot 0 holds the state after `position` tokens, and all other states are dropped. 0: zeros.
  void restart(uint64_t position) {
    current_ = 0;
    expect(1);
    zeros_ = position == 0;
    before_ = latest_start_ = kNone;
    count_ = 0;
  }

  /// Slots that a step reads and writes. `ahead`: for a step started early, which reads the first step's output. `row`:
  /// token of a step with drafts; the tokens of other steps share their slots.
  View view(bool ahead, uint64_t row) const {
    View view = {};
    const bool follows = row != 0 && row < rows_;
    view.slot = ahead ? behindNext() : next_[follows ? row : 0];
    view.begin = ahead ? next_[0] : follows ? next_[row - 1] : current_;
    view.count = ahead || follows || !zeros_ ? 1 : 0;
    return view;
  }
  uint32_t current() const { return current_; }

  /// A step may have begun to write. `rows`: the states that it writes, one per token if there are drafts.
  void writing(uint32_t rows) {
    before_ = kNone;
    expect(freeBut(current_, current_));
    for (rows_ = 1; rows_ < rows; ++rows_) {
      next_[rows_] = static_cast<uint8_t>(freeBut(next_[rows_ - 1], current_));
    }
  }
  /// Commits the step, or its next token if there are drafts, after `position` tokens; `kept`: no early step was
  /// started.
  void commit(uint64_t position, bool kept) {
    const uint32_t ahead = behindNext();
    before_ = kept ? position : kNone;
    before_slot_ = current_;
    current_ = next_[taken_];
    if (++taken_ == rows_) {
      expect(ahead);
    }
    zeros_ = false;
  }

  /// Makes a checkpoint of the latest state, after `position` tokens. `start`: a message begins here; the latest start
  /// is never dropped. When full, drops checkpoints that have stopped being usable(position), then the least useful one.
  template <typename Usable>
  void keep(uint64_t position, bool start, const Usable& usable) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      if (usable(checkpoints_[i].position)) {
        checkpoints_[kept++] = checkpoints_[i];
      }
    }
    count_ = kept;
    latest_start_ = start ? position : latest_start_;
    if (zeros_ || (count_ != 0 && checkpoints_[count_ - 1].position == position)) {
      return;
    }
    if (count_ == capacity_ && !dropOne(position)) {
      return;
    }
    checkpoints_[count_++] = {position, current_};
  }
  /// True if a text without messages has continued long enough.
  bool isDue(uint64_t position) const {
    return capacity_ != 0 &&
           position - (count_ != 0 ? checkpoints_[count_ - 1].position : 0) >= kCheckpointTokens;
  }

  /// Calls visit(tokens) for each state before the latest, in descending order with zeros last, until it returns true.
  template <typename Visit>
  void forEachBefore(uint64_t position, const Visit& visit) const {
    bool one_step = before_ != kNone && before_ != 0;
    for (uint32_t i = count_; i-- > 0;) {
      const uint64_t tokens = checkpoints_[i].position;
      if (one_step && before_ > tokens) {
        one_step = false;
        if (visit(before_)) {
          return;
        }
      }
      one_step = one_step && before_ != tokens;
      if (tokens < position && visit(tokens)) {
        return;
      }
    }
    if (!(one_step && visit(before_)) && position != 0) {
      visit(0);
    }
  }
  /// Makes the state after `tokens`, shown by forEachBefore(), the latest. Drops later ones.
  void goBack(uint64_t tokens) {
    while (count_ != 0 && checkpoints_[count_ - 1].position > tokens) {
      --count_;
    }
    if (tokens == 0) {
      restart(0);
      return;
    }
    current_ = count_ != 0 && checkpoints_[count_ - 1].position == tokens
                   ? checkpoints_[count_ - 1].slot
                   : before_slot_;
    before_ = kNone;
    latest_start_ = latest_start_ > tokens ? kNone : latest_start_;
  }

  uint32_t capacity() const { return capacity_; }
  uint64_t latestStart() const { return latest_start_; }
  uint32_t count() const { return count_; }
  /// Position of checkpoint `i`, ascending.
  uint64_t at(uint32_t i) const { return checkpoints_[i].position; }

 private:
  struct Checkpoint {
    uint64_t position;
    uint32_t slot;
  };

  /// The next step writes one state.
  void expect(uint32_t slot) {
    next_[0] = static_cast<uint8_t>(slot);
    rows_ = 1;
    taken_ = 0;
  }
  bool isCheckpoint(uint32_t slot) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (checkpoints_[i].slot == slot) {
        return true;
      }
    }
    return false;
  }
  /// The first slot after `slot`, cyclically, that is free of checkpoints and is not `but`.
  uint32_t freeBut(uint32_t slot, uint32_t but) const {
    uint32_t found = (slot + 1) % n_slots_;
    while (found == but || isCheckpoint(found)) {
      found = (found + 1) % n_slots_;
    }
    return found;
  }
  /// Output slot of the step that follows the writer of next_. By then the latest state is free, unless kept.
  uint32_t behindNext() const {
    return isCheckpoint(current_) ? freeBut(next_[taken_], next_[taken_]) : current_;
  }

  /// Without checkpoint i its successors are recomputed from the previous one. Older checkpoints are less useful:
  /// rereading stays in proportion to the distance of going back.
  bool dropOne(uint64_t position) {
    uint32_t least = count_;
    double least_missed = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      const uint64_t tokens = checkpoints_[i].position;
      if (tokens == latest_start_) {
        continue;
      }
      const double more = static_cast<double>(tokens - (i != 0 ? at(i - 1) : 0));
      const double missed = more / static_cast<double>(position - tokens);
      if (least == count_ || missed < least_missed) {
        least = i;
        least_missed = missed;
      }
    }
    if (least == count_) {
      return false;
    }
    for (uint32_t i = least; i + 1 < count_; ++i) {
      checkpoints_[i] = checkpoints_[i + 1];
    }
    --count_;
    return true;
  }

  Checkpoint checkpoints_[kMaxCheckpoints];  ///< count_ entries, ascending
  uint32_t count_ = 0;
  uint32_t capacity_ = 0;
  uint32_t current_ = 0;
  uint32_t n_slots_ = kStateSlots;
  uint8_t next_[kMostRows] = {1};  ///< output slots of the next step
  uint32_t rows_ = 1;              ///< of these
  uint32_t taken_ = 0;             ///< committed ones
  bool zeros_ = true;              ///< the latest state is zero, before the first token
  uint32_t before_slot_ = 0;
  uint64_t before_ = kNone;        ///< position of the state in before_slot_
  uint64_t latest_start_ = kNone;  ///< of messages
};

}  // namespace oriel_internal
