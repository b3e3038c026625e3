#include "exec/snapshot_format.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/limits.h"
#include "exec/transcript.h"
#include "kv/turns.h"

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
         (header.version == versionOf(state) ||
          (header.version == kSnapshotPicturesVersion && state.recalled == 0)) &&
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

}  // namespace oriel_internal
