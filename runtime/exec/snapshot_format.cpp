#include "exec/snapshot.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/hash.h"
#include "exec/cache_bytes.h"
#include "exec/host_executor.h"
#include "exec/transcript.h"
#include "kv/quantise.h"
#include "kv/window.h"

namespace oriel_internal {

void takeLayout(const SnapshotMemory& from, Memory* memory) {
  memory->formats[0] = static_cast<KvFormat>(from.formats[0]);
  memory->formats[1] = static_cast<KvFormat>(from.formats[1]);
  memory->state = static_cast<StateFormat>(from.state);
  memory->shape.head_dim = from.head_dim;
  memory->shape.sinks = from.sinks;
  memory->shape.window = from.window;
  memory->shape.ring = from.ring;
  memory->shape.recalled = from.recalled;
}

namespace {

constexpr uint64_t kHash = sizeof(uint64_t);
/// Twice the largest first position is more than a session can reach.
constexpr uint64_t kMostTokens = 2 * kMaxFirstPosition;
/// A ring is a window and a batch. Windows of layers include the sinks.
constexpr uint32_t kMostSlots = 4 * kMaxWindow;

static_assert(sizeof(SnapshotMemory) == 32, "no padding in files");
static_assert(sizeof(CarriedOver) == 24, "no padding in files");

template <typename T>
T readAt(const uint8_t* at) {
  T value;
  std::memcpy(static_cast<void*>(&value), at, sizeof(value));
  return value;
}

Status contradicts(const Log& log) {
  return log.fail(ORIEL_ERROR_FORMAT, "the snapshot contradicts itself: save it again");
}

template <size_t N>
bool isText(const char (&text)[N]) {
  const char* const end = std::find(text, text + N, '\0');
  return end != text + N &&
         std::none_of(text, end, [](char c) { return static_cast<uint8_t>(c) < 0x20; });
}

bool isKnownVersion(uint32_t version) {
  return version == kSnapshotVersion || version == kSnapshotRecallVersion ||
         version == kSnapshotPicturesVersion;
}

// Checks the numbers that sizes are computed from.
bool plausible(const SnapshotHeader& header) {
  const SessionState& state = header.state;
  return state.position <= state.stored && state.stored <= kMostTokens &&
         state.first_position <= kMaxFirstPosition && state.base <= state.position &&
         state.has_logits <= 1 && state.stale <= 1 && state.carried.seen_from <= state.position &&
         state.carried.held_from <= state.carried.seen_from &&
         state.carried.least <= state.position && state.sinks <= header.sink_room &&
         state.recalled <= kMaxRecallTokens && state.recalled <= header.sink_room - state.sinks &&
         (state.recalled == 0 || state.position >= state.sinks) &&
         state.recalled_shared <= state.recalled &&
         (header.version == versionOf(state) || header.version == kSnapshotPicturesVersion) &&
         header.sink_room <= kMaxWindow && header.window >= 1 && header.window <= kMaxWindow &&
         header.ring >= header.window && header.ring <= header.window + 2 * kMaxChunk &&
         header.n_vocab <= kMaxVocabulary && header.n_memories <= 2 * kMaxLayers &&
         header.n_turns <= TurnMarks::kCapacity &&
         header.transcript_bytes <= Transcript::kMostBytes &&
         header.k_format <= static_cast<uint8_t>(KvFormat::kInt4) &&
         header.v_format <= static_cast<uint8_t>(KvFormat::kInt4) &&
         header.state_format <= static_cast<uint8_t>(StateFormat::kInt8) && isText(header.model) &&
         isText(header.architecture) && isText(header.chat);
}

bool plausible(const SnapshotMemory& memory, uint32_t recalled) {
  return (memory.recalled == 0 || memory.recalled == recalled) &&
         memory.kind <= static_cast<uint8_t>(MemoryKind::kState) &&
         memory.formats[0] <= static_cast<uint8_t>(KvFormat::kInt4) &&
         memory.formats[1] <= static_cast<uint8_t>(KvFormat::kInt4) &&
         memory.state <= static_cast<uint8_t>(StateFormat::kInt8) && memory.n_kv_heads != 0 &&
         memory.n_kv_heads <= kMaxHeads && memory.head_dim != 0 && memory.head_dim <= (1u << 28) &&
         memory.sinks <= kMaxWindow && memory.ring != 0 && memory.ring <= kMostSlots;
}

Memory memoryFrom(const SnapshotMemory& from) {
  Memory memory;
  memory.kind = static_cast<MemoryKind>(from.kind);
  memory.layer = from.layer;
  memory.shape.n_kv_heads = from.n_kv_heads;
  takeLayout(from, &memory);
  return memory;
}

// Bytes of all memories; false: more than the limit.
bool cacheBytesUsed(const Snapshot& snapshot, uint64_t most, uint64_t* bytes) {
  *bytes = 0;
  for (uint32_t i = 0; i < snapshot.header.n_memories; ++i) {
    const SnapshotMemory described = snapshot.memory(i);
    if (!plausible(described, snapshot.header.state.recalled)) {
      return false;
    }
    const Memory memory = memoryFrom(described);
    for (uint32_t side = 0; side < memory.sides(); ++side) {
      // 2^10 heads, 2^25 slots and 2^28 values of four bytes fit.
      const uint64_t more = sideBytesUsed(memory, side, snapshot.header.state.position);
      if (more > most - *bytes) {
        return false;
      }
      *bytes += more;
    }
  }
  return true;
}

// Checks all values used as an index or a position.
bool plausibleLists(const Snapshot& snapshot) {
  const SessionState& state = snapshot.header.state;
  const uint32_t n_vocab = snapshot.header.n_vocab;
  const uint64_t n_recent = std::min<uint64_t>(state.sampler.n_recent, SamplerState::kRecentTokens);
  for (uint64_t i = 0; i < n_recent; ++i) {
    if (state.sampler.recent[i] < 0 || static_cast<uint32_t>(state.sampler.recent[i]) >= n_vocab) {
      return false;
    }
  }
  uint64_t previous = 0;
  for (uint32_t i = 0; i < snapshot.header.n_turns; ++i) {
    const uint64_t start = readAt<uint64_t>(snapshot.turns + i * sizeof(uint64_t));
    if (start < previous || start > state.position) {
      return false;
    }
    previous = start;
  }
  for (uint64_t i = 0; i < snapshot.n_ids; ++i) {
    const int32_t id = readAt<int32_t>(snapshot.ids + i * sizeof(int32_t));
    const bool is_row = TokenIds::isRow(id) && TokenIds::rowOf(id) < TokenIds::kPictureRows &&
                        snapshot.picture_bytes != 0;
    if ((id < TokenIds::kUnknown && !is_row) || (id >= 0 && static_cast<uint32_t>(id) >= n_vocab)) {
      return false;
    }
  }
  return Transcript::valid(snapshot.transcript, snapshot.header.transcript_bytes,
                           snapshot.header.messages, state.position);
}

}  // namespace

SnapshotMemory Snapshot::memory(uint32_t index) const {
  return readAt<SnapshotMemory>(memories + index * sizeof(SnapshotMemory));
}

HeldTokens Snapshot::held() const {
  return heldTokens(shape(), header.state.position, header.state.stored,
                    header.state.carried.held_from);
}

bool isSnapshot(const char (&begin)[kSnapshotMagicBytes]) {
  return std::memcmp(begin, kSnapshotMagic, sizeof(kSnapshotMagic)) == 0;
}

uint64_t sideBytesUsed(const Memory& memory, uint32_t side, uint64_t position) {
  const CacheShape& shape = memory.shape;
  const uint64_t sinks = std::min<uint64_t>(position, shape.sinks);
  const uint64_t ring = std::min<uint64_t>(position - sinks, shape.ring);
  switch (memory.kind) {
    case MemoryKind::kColumns:
      return 4ull * shape.head_dim * ring;
    case MemoryKind::kState:
      return position != 0 ? 4ull * shape.head_dim : 0;
    case MemoryKind::kKeysValues:
    case MemoryKind::kLatent:
      break;
  }
  const KvFormat format = memory.formats[side];
  const uint64_t scales = format == KvFormat::kF16 ? 0 : 2ull * kvGroups(shape.head_dim);
  return shape.n_kv_heads *
         ((sinks + shape.recalled) * 4ull * kvValueWords(KvFormat::kF16, shape.head_dim) +
          ring * (4ull * kvValueWords(format, shape.head_dim) + scales));
}

Status checkSnapshotHeader(const void* begin, uint64_t bytes, uint64_t total_bytes,
                           const Log& log) {
  constexpr uint64_t kVersionEnd = kSnapshotMagicBytes + sizeof(uint32_t);
  if (bytes < kVersionEnd || std::memcmp(begin, kSnapshotMagic, sizeof(kSnapshotMagic)) != 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "this is not a session snapshot: give what was saved");
  }
  const uint32_t version =
      readAt<uint32_t>(static_cast<const uint8_t*>(begin) + sizeof(kSnapshotMagic));
  if (!isKnownVersion(version)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the snapshot has version %u, this build reads version %u: save it again",
                    version, kSnapshotVersion);
  }
  const uint64_t said =
      bytes < sizeof(SnapshotHeader)
          ? sizeof(SnapshotHeader)
          : readAt<SnapshotHeader>(static_cast<const uint8_t*>(begin)).total_bytes;
  if (said != total_bytes || bytes < sizeof(SnapshotHeader)) {
    return log.fail(
        ORIEL_ERROR_FORMAT,
        "the snapshot has %llu bytes but should have %llu: it is damaged, save it again",
        static_cast<unsigned long long>(total_bytes), static_cast<unsigned long long>(said));
  }
  return kOk;
}

Status describeSnapshot(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log,
                        SnapshotDescription* out) {
  const uint8_t* const at = static_cast<const uint8_t*>(begin);
  constexpr uint64_t kVersionEnd = kSnapshotMagicBytes + sizeof(uint32_t);
  *out = SnapshotDescription();
  std::memset(static_cast<void*>(&out->header), 0, sizeof(out->header));
  if (bytes >= kVersionEnd && std::memcmp(begin, kSnapshotMagic, sizeof(kSnapshotMagic)) == 0) {
    out->header.version = readAt<uint32_t>(at + sizeof(kSnapshotMagic));
    if (!isKnownVersion(out->header.version)) {
      return kOk;
    }
  }
  ORIEL_TRY(checkSnapshotHeader(begin, bytes, total_bytes, log));
  out->header = readAt<SnapshotHeader>(at);
  const uint64_t described =
      sizeof(SnapshotHeader) + uint64_t{out->header.n_memories} * sizeof(SnapshotMemory);
  if (!plausible(out->header) || described + kHash > bytes ||
      readAt<uint64_t>(at + described) != hashBytes(begin, described)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot is damaged: save it again");
  }
  out->readable = true;
  return kOk;
}

Status openSnapshot(const void* data, uint64_t bytes, const Log& log, Snapshot* snapshot) {
  const uint8_t* const begin = static_cast<const uint8_t*>(data);
  ORIEL_TRY(checkSnapshotHeader(data, bytes, bytes, log));
  if (bytes < sizeof(SnapshotHeader) + 2 * kHash ||
      readAt<uint64_t>(begin + bytes - kHash) != hashBytes(data, bytes - kHash)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot is damaged: save it again");
  }
  snapshot->header = readAt<SnapshotHeader>(begin);
  const SnapshotHeader& header = snapshot->header;
  if (!plausible(header)) {
    return contradicts(log);
  }
  // The number of bytes left. It is compared with every part before that part is read.
  uint64_t left = bytes - sizeof(header) - kHash;
  const uint8_t* at = begin + sizeof(header);
  const auto take = [&](uint64_t part, const uint8_t** where) {
    const bool fits = part <= left;
    *where = at;
    at += fits ? part : 0;
    left -= fits ? part : 0;
    return fits;
  };
  const uint8_t* hash = nullptr;
  snapshot->n_ids = snapshot->held().count() + header.state.recalled;
  uint64_t cache = 0;
  if (!take(uint64_t{header.n_memories} * sizeof(SnapshotMemory), &snapshot->memories) ||
      !take(kHash, &hash) ||
      readAt<uint64_t>(hash) != hashBytes(data, static_cast<uint64_t>(hash - begin)) ||
      !take(uint64_t{header.n_turns} * sizeof(uint64_t), &snapshot->turns) ||
      snapshot->n_ids > left / sizeof(int32_t) ||
      !take(snapshot->n_ids * sizeof(int32_t), &snapshot->ids) ||
      !take(header.state.has_logits != 0 ? 4ull * header.n_vocab : 0, &snapshot->logits) ||
      !cacheBytesUsed(*snapshot, left, &cache) || !take(cache, &snapshot->cache) ||
      !take(header.transcript_bytes, &snapshot->transcript) ||
      (left != 0) != (header.version == kSnapshotPicturesVersion) ||
      !take(snapshot->picture_bytes = left, &snapshot->pictures) || !plausibleLists(*snapshot)) {
    return contradicts(log);
  }
  return kOk;
}

namespace {

constexpr uint32_t kMostValues = std::max(kMaxHeadDim, kMaxLatentDim + kMaxLatentRopeDim);

/// Bytes of one token of a head, and their offsets.
struct Vector {
  uint64_t values = 0;  ///< offset
  uint64_t scales = 0;  ///< offset, in low-bit formats
  KvFormat format = KvFormat::kF16;
  bool rotated = false;
};

/// The places of a side's keys, values or latents.
class Vectors {
 public:
  explicit Vectors(const StoredSide& of)
      : shape_(of.memory.shape),
        format_(of.memory.formats[of.side]),
        keys_(of.memory.kind == MemoryKind::kKeysValues && of.side == 0),
        latents_(of.memory.kind == MemoryKind::kLatent),
        sinks_(std::min<uint64_t>(of.position, shape_.sinks)),
        ring_(std::min<uint64_t>(of.position - sinks_, shape_.ring)) {
    const uint32_t d = shape_.head_dim;
    ring_begin_ = (sinks_ + shape_.recalled) * valueBytes(KvFormat::kF16, d);
    scales_begin_ = ring_begin_ + ring_ * valueBytes(format_, d);
    head_bytes_ = scales_begin_ + ring_ * scaleBytes(format_, d);
  }

  uint64_t sinks() const { return sinks_; }
  uint64_t ring() const { return ring_; }
  Vector at(uint32_t head, uint64_t token) const {
    const uint64_t begin = head * head_bytes_;
    const uint32_t d = shape_.head_dim;
    const bool few = format_ != KvFormat::kF16;
    if (token < shape_.sinks) {
      // Latents and their keys are always rotated, heads' keys only in the ring.
      return {begin + token * valueBytes(KvFormat::kF16, d), 0, KvFormat::kF16, latents_ && few};
    }
    const uint64_t slot = (token - shape_.sinks) % shape_.ring;
    return {begin + ring_begin_ + slot * valueBytes(format_, d),
            begin + scales_begin_ + slot * scaleBytes(format_, d), format_,
            (latents_ || keys_) && few};
  }

 private:
  CacheShape shape_;
  KvFormat format_;
  bool keys_;
  bool latents_;
  uint64_t sinks_;
  uint64_t ring_;
  uint64_t ring_begin_ = 0;
  uint64_t scales_begin_ = 0;
  uint64_t head_bytes_ = 0;
};

// Its own inverse.
void rotate(const StoredSide& of, float* values) {
  const uint32_t d = of.memory.shape.head_dim;
  const uint32_t first = of.memory.kind == MemoryKind::kLatent ? of.latent_dim : d;
  hadamard(values, first, hadamardBlock(first));
  if (first != d) {
    hadamard(values + first, d - first, hadamardBlock(d - first));
  }
}

void carryVectors(const StoredSide& from, const uint8_t* stored, uint64_t first,
                  const StoredSide& to, uint8_t* out, bool* rounded) {
  const Vectors old_places(from);
  const Vectors new_places(to);
  const uint32_t d = to.memory.shape.head_dim;
  const auto carry = [&](uint32_t head, uint64_t token) {
    const Vector old_at = old_places.at(head, token);
    const Vector new_at = new_places.at(head, token);
    if (old_at.format == new_at.format && old_at.rotated == new_at.rotated) {
      std::memcpy(out + new_at.values, stored + old_at.values,
                  static_cast<size_t>(valueBytes(new_at.format, d)));
      std::memcpy(out + new_at.scales, stored + old_at.scales,
                  static_cast<size_t>(scaleBytes(new_at.format, d)));
      return;
    }
    float values[kMostValues];
    loadVector(old_at.format, stored + old_at.values, stored + old_at.scales, d, values);
    if (old_at.rotated != new_at.rotated) {
      rotate(to, values);
    }
    storeVector(new_at.format, values, d, out + new_at.values, out + new_at.scales);
    *rounded = true;
  };
  const uint64_t ring_first = std::max<uint64_t>(
      {first, to.memory.shape.sinks, to.position - std::min(to.position, new_places.ring())});
  for (uint32_t head = 0; head < to.memory.shape.n_kv_heads; ++head) {
    for (uint64_t token = 0; token < new_places.sinks(); ++token) {
      carry(head, token);
    }
    for (uint64_t token = ring_first; token < to.position; ++token) {
      carry(head, token);
    }
  }
}

void carryColumns(const StoredSide& from, const uint8_t* stored, uint64_t first,
                  const StoredSide& to, uint8_t* out) {
  const size_t slot_bytes = 4ull * to.memory.shape.head_dim;
  const uint32_t old_ring = from.memory.shape.ring;
  const uint32_t new_ring = to.memory.shape.ring;
  for (uint64_t t = std::max(first, to.position - std::min<uint64_t>(to.position, new_ring));
       t < to.position; ++t) {
    std::memcpy(out + t % new_ring * slot_bytes, stored + t % old_ring * slot_bytes, slot_bytes);
  }
}

void copyWords(const uint8_t* from, uint32_t count, uint32_t* to) {
  std::memcpy(to, from, 4ull * count);
}

// Row by row. In int8 the scales follow all values, so this joins each row with its scales.
void carryState(const StoredSide& from, const uint8_t* stored, const StoredSide& to, uint8_t* out,
                bool* rounded) {
  const StateShape& state = to.state;
  if (from.memory.state == to.memory.state || state.rule == StateRule::kNone) {
    std::memcpy(out, stored, static_cast<size_t>(to.bytes()));
    return;
  }
  *rounded = true;
  const uint32_t rows = state.heads * state.value_dim;
  const auto wordsOf = [&](StateFormat format) {
    return stateMatrixWords(format, rows, state.key_dim);
  };
  // A row as a matrix of one.
  constexpr uint32_t kMostRow = kMaxStateDim + kMaxStateDim / kKvGroup;
  for (uint32_t row = 0; row < rows; ++row) {
    uint32_t words[kMostRow] = {};
    float values[kMaxStateDim];
    const uint32_t groups = kvGroups(state.key_dim);
    const uint32_t old_words = stateValueWords(from.memory.state, state.key_dim);
    copyWords(stored + 4ull * row * old_words, old_words, words);
    if (from.memory.state == StateFormat::kInt8) {
      std::memcpy(words + old_words, stored + 4ull * rows * old_words + 2ull * row * groups,
                  2ull * groups);
    }
    StateMatrix(from.memory.state, 1, state.key_dim).load(words, 0, values);
    std::fill_n(words, kMostRow, 0u);
    StateMatrix(to.memory.state, 1, state.key_dim).store(words, 0, values);
    const uint32_t new_words = stateValueWords(to.memory.state, state.key_dim);
    std::memcpy(out + 4ull * row * new_words, words, 4ull * new_words);
    if (to.memory.state == StateFormat::kInt8) {
      std::memcpy(out + 4ull * rows * new_words + 2ull * row * groups, words + new_words,
                  2ull * groups);
    }
  }
  std::memcpy(out + 4ull * wordsOf(to.memory.state), stored + 4ull * wordsOf(from.memory.state),
              4ull * state.columnWords());
}

// The first token visible to the latest of `position` tokens.
uint64_t firstSeen(const CacheShape& cache, const TurnMarks& turns, bool whole_turns,
                   uint64_t position) {
  const uint64_t oldest = SlidingWindow(cache).oldest(position - std::min<uint64_t>(position, 1));
  const bool evicted = oldest > cache.sinks;
  const uint64_t floor = evicted && whole_turns ? turns.firstSeen(oldest, cache.window) : 0;
  return std::max(floor, oldest);
}

}  // namespace

namespace {

// The first token held by all layers that need it. If the saved session's layers had smaller windows than this
// session's, it is the latest of these layers' first tokens.
uint64_t firstInAll(const Snapshot& snapshot, const ModelDesc& model, const CacheShape& cache) {
  const uint64_t stored = snapshot.header.state.stored;
  const uint64_t position = snapshot.header.state.position;
  uint64_t first = 0;
  uint32_t index = 0;
  forEachMemory(model, cache, CacheFormats(), [&](const Memory& memory) {
    const SnapshotMemory of_old = snapshot.memory(index++);
    if (memory.seen.kind == ViewKind::kSession && memory.shape.window > of_old.window) {
      const uint64_t gone = stored - std::min<uint64_t>(stored, of_old.ring);
      const uint64_t oldest = SlidingWindow(memory.shape).oldest(position);
      first = gone > of_old.sinks && gone > oldest ? std::max(first, gone) : first;
    }
  });
  return first;
}

}  // namespace

Carrying planCarrying(const Snapshot& snapshot, const TurnMarks& turns, const ModelDesc& model,
                      const CacheShape& cache, bool whole_turns) {
  const SessionState& state = snapshot.header.state;
  const uint64_t position = state.position;
  const CacheShape old_cache = snapshot.shape();
  const HeldTokens old_held = snapshot.held();
  const bool all = old_held.first <= old_held.sinks;
  Carrying carrying;
  carrying.sinks = all ? cache.sinks : std::min(cache.sinks, old_cache.sinks);
  CacheShape fits = cache;
  fits.setSinks(carrying.sinks);

  CarriedOver& carried = carrying.state;
  carried.held_from = all ? 0 : old_held.first;
  const uint64_t old_seen =
      std::max(firstSeen(old_cache, turns, snapshot.header.whole_turns != 0, position),
               state.carried.seen_from);
  const uint64_t new_seen =
      std::max(firstSeen(fits, turns, whole_turns, position), carried.held_from);
  carried.seen_from = std::max(new_seen < old_seen ? old_seen : carried.held_from,
                               firstInAll(snapshot, model, fits));
  // Only in a forged snapshot: it stores more than a session can have after going back.
  carried.seen_from = std::min(carried.seen_from, position);
  carried.held_from = std::min(carried.held_from, carried.seen_from);
  if (carried.seen_from <= carrying.sinks) {
    carried.seen_from = carried.held_from = 0;
  }
  // The earliest position for both sessions: all tokens visible there must be held.
  carried.least = std::max(state.carried.least, carried.seen_from);
  uint32_t index = 0;
  forEachMemory(model, fits, CacheFormats(), [&](const Memory& memory) {
    const SnapshotMemory of_old = snapshot.memory(index++);
    if (memory.kind == MemoryKind::kState) {
      return;
    }
    const uint64_t gone = state.stored - std::min<uint64_t>(state.stored, of_old.ring);
    if (gone > of_old.sinks) {
      const uint32_t window = std::min(of_old.window, memory.shape.window);
      carried.least = std::max(carried.least, gone + window - 1);
    }
  });
  carried.least = std::min(carried.least, position);
  carrying.held = heldTokens(fits, position, position, carried.held_from).count();
  carrying.dropped = old_held.count() - std::min(old_held.count(), carrying.held);
  return carrying;
}

StoredSide storedSide(const ModelDesc& model, const Memory& memory, uint32_t side,
                      uint64_t position) {
  StoredSide stored;
  stored.memory = memory;
  stored.side = side;
  stored.position = position;
  stored.latent_dim = model.kind(memory.layer).latent_dim;
  stored.state = model.kind(memory.layer).state;
  return stored;
}

void carrySide(const StoredSide& from, const uint8_t* stored, uint64_t first, const StoredSide& to,
               uint8_t* out, bool* rounded) {
  if (to.position == 0) {
    return;
  }
  std::memset(out, 0, static_cast<size_t>(to.bytes()));
  switch (to.memory.kind) {
    case MemoryKind::kKeysValues:
    case MemoryKind::kLatent:
      carryVectors(from, stored, first, to, out, rounded);
      return;
    case MemoryKind::kColumns:
      carryColumns(from, stored, first, to, out);
      return;
    case MemoryKind::kState:
      carryState(from, stored, to, out, rounded);
      return;
  }
}

}  // namespace oriel_internal
