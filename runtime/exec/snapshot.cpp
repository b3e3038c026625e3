#include "exec/snapshot.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/limits.h"
#include "kv/window.h"
#include "plan/memory_layout.h"

namespace oriel {
namespace {

constexpr char kMagic[8] = {'O', 'R', 'I', 'E', 'L', 'S', 'N', 'P'};

/// Used slots of one head that lie one behind another.
struct SlotRun {
  BufferRef side;
  CacheShape cache;
  bool in_ring;  ///< of tokens; else sinks, or a state
  uint64_t offset_bytes;
  uint64_t slots;
  uint64_t slot_bytes;  ///< of values or of scales
  uint64_t bytes() const { return slots * slot_bytes; }
};

// Calls visit(run) for the runs of one side of keys and values.
template <typename Visit>
Status visitSide(const BufferRef& side, KvFormat format, const CacheShape& cache, uint64_t position,
                 const Visit& visit) {
  const uint64_t sinks = std::min<uint64_t>(position, cache.sinks);
  const uint64_t ring = std::min<uint64_t>(position - sinks, cache.ring);
  const SideLayout layout = sideLayout(format, cache);
  const uint64_t sink_bytes = 4ull * kvValueWords(KvFormat::kF16, cache.head_dim);
  const uint64_t value_bytes = 4ull * kvValueWords(format, cache.head_dim);
  const uint64_t scale_bytes = format == KvFormat::kF16 ? 0 : 2ull * kvGroups(cache.head_dim);
  for (uint64_t head = 0; head < cache.n_kv_heads; ++head) {
    const uint64_t row = cache.ringRow(static_cast<uint32_t>(head), 0);
    const uint64_t sink_row = cache.sinkRow(static_cast<uint32_t>(head), 0);
    ORIEL_TRY(visit(SlotRun{side, cache, false, sink_row * sink_bytes, sinks, sink_bytes}));
    ORIEL_TRY(visit(
        SlotRun{side, cache, true, 4 * layout.ring_word + row * value_bytes, ring, value_bytes}));
    ORIEL_TRY(visit(
        SlotRun{side, cache, true, 4 * layout.scales_word + row * scale_bytes, ring, scale_bytes}));
  }
  return kOk;
}

// Calls visit(run) for everything in the memories that holds something.
template <typename Visit>
Status forEachUsedRun(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                      uint64_t position, uint32_t state_slot, const Visit& visit) {
  Status status = kOk;
  forEachPlacedMemory(
      model, cache, plan.formats, [&](const Memory& memory, const BufferRef(&sides)[2]) {
        const CacheShape& shape = memory.shape;
        const uint64_t slot_bytes = 4ull * shape.head_dim;
        for (uint32_t side = 0; side < memory.sides() && status.ok(); ++side) {
          switch (memory.kind) {
            case MemoryKind::kKeysValues:
            case MemoryKind::kLatent:
              status = visitSide(sides[side], memory.formats[side], shape, position, visit);
              break;
            case MemoryKind::kColumns:
              status = visit(SlotRun{sides[side], shape, true, shape.first_ring * slot_bytes,
                                     std::min<uint64_t>(position, shape.ring), slot_bytes});
              break;
            case MemoryKind::kState:
              status = visit(SlotRun{sides[side], shape, false,
                                     (shape.first_ring + state_slot) * slot_bytes,
                                     position != 0 ? uint64_t{1} : 0, slot_bytes});
              break;
          }
        }
      });
  return status;
}

uint64_t usedCacheBytes(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                        uint64_t position) {
  uint64_t bytes = 0;
  (void)forEachUsedRun(plan, model, cache, position, 0, [&](const SlotRun& run) -> Status {
    bytes += run.bytes();
    return kOk;
  });
  return bytes;
}

// Zeros the slots that tokens took which are not, or no longer, part of the session, unless they hold
// what its next token will see. `slots` is a copy of the run.
void clearUnseen(const SlotRun& run, const SessionState& state, uint8_t* slots) {
  if (!run.in_ring) {
    return;
  }
  const CacheShape& cache = run.cache;
  const SlidingWindow window(cache);
  const uint64_t used_before = uint64_t{cache.sinks} + cache.ring;
  const uint64_t end = std::min(state.stored, window.oldest(state.position) + cache.ring);
  for (uint64_t t = std::max(state.position, used_before); t < end; ++t) {
    std::memset(slots + (window.slot(t) - cache.sinkRoom()) * run.slot_bytes, 0,
                static_cast<size_t>(run.slot_bytes));
  }
}

// Splits a run into pieces that fit half the upload ring.
template <typename Visit>
Status forEachPiece(const Plan& plan, uint64_t bytes, const Visit& visit) {
  const uint64_t most = plan.upload.size_bytes / 2;
  for (uint64_t done = 0; done < bytes; done += most) {
    ORIEL_TRY(visit(done, std::min(most, bytes - done)));
  }
  return kOk;
}

// Everything that is used as an index or a position. The checksum is no proof of who wrote the bytes.
bool plausible(const SnapshotHeader& header, const uint8_t* turn_starts, uint64_t n_ids,
               uint32_t n_vocab) {
  // Twice what a session may begin with is more than it can get to.
  constexpr uint64_t kMostTokens = 2 * kMaxFirstPosition;
  const SessionState& state = header.state;
  if (state.position > state.stored || state.stored > kMostTokens ||
      state.first_position > kMaxFirstPosition || state.since_base > state.position) {
    return false;
  }
  const uint64_t n_recent = std::min<uint64_t>(state.sampler.n_recent, SamplerState::kRecentTokens);
  for (uint64_t i = 0; i < n_recent; ++i) {
    if (state.sampler.recent[i] < 0 || static_cast<uint32_t>(state.sampler.recent[i]) >= n_vocab) {
      return false;
    }
  }
  uint64_t previous = 0;
  for (uint32_t i = 0; i < header.n_turns; ++i) {
    uint64_t start = 0;
    std::memcpy(&start, turn_starts + i * sizeof(start), sizeof(start));
    if (start < previous || start > state.position) {
      return false;
    }
    previous = start;
  }
  const uint8_t* const ids = turn_starts + header.n_turns * sizeof(uint64_t);
  for (uint64_t i = 0; i < n_ids; ++i) {
    int32_t id = 0;
    std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
    if (id < TokenIds::kUnknown || (id >= 0 && static_cast<uint32_t>(id) >= n_vocab)) {
      return false;
    }
  }
  return true;
}

// Calls visit(token) for every token that is held, in order.
template <typename Visit>
void forEachHeld(const HeldTokens& held, const Visit& visit) {
  for (uint64_t t = 0; t < held.sinks; ++t) {
    visit(t);
  }
  for (uint64_t t = held.first; t < held.position; ++t) {
    visit(t);
  }
}

}  // namespace

uint64_t layoutHash(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                    bool whole_turns) {
  const uint64_t numbers[] = {kSnapshotVersion,     cache.sinks,          cache.window,
                              cache.ring,           model.n_layers,       model.n_vocab,
                              sizeof(SessionState), TurnMarks::kCapacity, whole_turns ? 1u : 0u};
  uint64_t hash = hashBytes(numbers, sizeof(numbers));
  forEachMemory(model, cache, plan.formats, [&](const Memory& memory) {
    CacheShape shape = memory.shape;
    if (memory.kind == MemoryKind::kState) {
      shape.ring = 1;  // the latest; checkpoints stay behind
    }
    const uint32_t of[] = {static_cast<uint32_t>(memory.kind),
                           memory.layer,
                           shape.n_kv_heads,
                           shape.head_dim,
                           shape.sinks,
                           shape.window,
                           shape.ring,
                           static_cast<uint32_t>(memory.formats[0]),
                           static_cast<uint32_t>(memory.formats[1])};
    hash = hashBytes(of, sizeof(of), hash);
  });
  return hash;
}

void writtenPieces(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                   uint64_t stored, BufferRef* pieces, size_t capacity, size_t* count) {
  *count = 0;
  const auto add = [&](const BufferRef& piece) {
    if (piece.size_bytes != 0 && (*count)++ < capacity) {
      pieces[*count - 1] = piece;
    }
  };
  (void)forEachUsedRun(plan, model, cache, stored, 0, [&](const SlotRun& run) -> Status {
    add({run.side.arena, run.side.segment, run.side.offset_bytes + run.offset_bytes, run.bytes()});
    return kOk;
  });
  // Versions of states lie anywhere among their slots.
  forEachPlacedMemory(
      model, cache, plan.formats, [&](const Memory& memory, const BufferRef(&sides)[2]) {
        if (memory.kind == MemoryKind::kState && stored != 0) {
          const CacheShape& shape = memory.shape;
          const uint64_t slot_bytes = 4ull * shape.head_dim;
          add({sides[0].arena, sides[0].segment,
               sides[0].offset_bytes + shape.first_ring * slot_bytes, shape.ring * slot_bytes});
        }
      });
}

uint64_t snapshotBytes(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                       const SessionState& state, uint32_t n_turns) {
  return sizeof(SnapshotHeader) + n_turns * sizeof(uint64_t) +
         sizeof(int32_t) * heldTokens(cache, state.position, state.stored).count() +
         (state.has_logits != 0 ? 4ull * model.n_vocab : 0) +
         usedCacheBytes(plan, model, cache, state.position) + sizeof(uint64_t);
}

Status writeSnapshot(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                     const SnapshotKey& key, const SessionState& state, const LiveSlots& live,
                     const TurnMarks& turns, const TokenIds& ids, Executor* executor, void* out) {
  uint8_t* at = static_cast<uint8_t*>(out);
  const auto put = [&at](const void* data, uint64_t bytes) {
    std::memcpy(at, data, static_cast<size_t>(bytes));
    at += bytes;
  };
  SnapshotHeader header;
  std::memset(static_cast<void*>(&header), 0,
              sizeof(header));  // padding, too: same state, same bytes
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kSnapshotVersion;
  header.n_turns = turns.count();
  header.model_hash = key.model_hash;
  header.layout_hash = key.layout_hash;
  header.total_bytes = snapshotBytes(plan, model, cache, state, turns.count());
  header.state = state;
  put(&header, sizeof(header));
  for (uint32_t i = 0; i < turns.count(); ++i) {
    const uint64_t start = turns.at(i);
    put(&start, sizeof(start));
  }
  forEachHeld(heldTokens(cache, state.position, state.stored), [&](uint64_t token) {
    const int32_t id = ids.at(token);
    put(&id, sizeof(id));
  });
  if (state.has_logits != 0) {
    const float* logits = nullptr;
    ORIEL_TRY(plan.sessionCount() > 1 ? executor->keptLogits(live.session, &logits)
                                      : executor->logits(live.logits, &logits));
    put(logits, 4ull * model.n_vocab);
  }
  const auto putRun = [&](const SlotRun& run) -> Status {
    uint8_t* const slots = at;
    const auto putPiece = [&](uint64_t done, uint64_t piece_bytes) -> Status {
      const void* piece = nullptr;
      ORIEL_TRY(executor->read(run.side, run.offset_bytes + done, piece_bytes, &piece));
      put(piece, piece_bytes);
      return kOk;
    };
    const Status status = forEachPiece(plan, run.bytes(), putPiece);
    clearUnseen(run, state, slots);
    return status;
  };
  ORIEL_TRY(forEachUsedRun(plan, model, cache, state.position, live.state, putRun));
  const uint64_t checksum = hashBytes(out, static_cast<uint64_t>(at - static_cast<uint8_t*>(out)));
  put(&checksum, sizeof(checksum));
  return kOk;
}

bool isSnapshot(const char (&begin)[kSnapshotMagicBytes]) {
  static_assert(sizeof(kMagic) == kSnapshotMagicBytes, "as the header says");
  return std::memcmp(begin, kMagic, sizeof(kMagic)) == 0;
}

Status checkSnapshotHeader(const void* begin, uint64_t bytes, uint64_t total_bytes,
                           const Log& log) {
  SnapshotHeader header;
  if (bytes < sizeof(header) || total_bytes < sizeof(header) + sizeof(uint64_t) ||
      std::memcmp(begin, kMagic, sizeof(kMagic)) != 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "this is not a session snapshot: give what was saved");
  }
  std::memcpy(static_cast<void*>(&header), begin, sizeof(header));
  if (header.version != kSnapshotVersion) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the snapshot has version %u, this build reads version %u: save it again",
                    header.version, kSnapshotVersion);
  }
  if (header.total_bytes != total_bytes) {
    return log.fail(
        ORIEL_ERROR_FORMAT,
        "the snapshot has %llu bytes but should have %llu: it is damaged, save it again",
        static_cast<unsigned long long>(total_bytes),
        static_cast<unsigned long long>(header.total_bytes));
  }
  return kOk;
}

Status readSnapshot(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                    const SnapshotKey& key, const void* data, uint64_t bytes, const Log& log,
                    Executor* executor, SessionState* state, TurnMarks* turns, TokenIds* ids) {
  ORIEL_TRY(checkSnapshotHeader(data, bytes, bytes, log));
  const uint8_t* at = static_cast<const uint8_t*>(data);
  SnapshotHeader header;
  std::memcpy(static_cast<void*>(&header), at, sizeof(header));
  uint64_t checksum = 0;
  std::memcpy(&checksum, at + bytes - sizeof(checksum), sizeof(checksum));
  if (checksum != hashBytes(data, bytes - sizeof(checksum))) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot is damaged: save it again");
  }
  if (header.model_hash != key.model_hash) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot belongs to another model: load that one");
  }
  if (header.layout_hash != key.layout_hash) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the snapshot was made with another window, chunk, cache, state or chat "
                    "format: ask for the same");
  }
  if (header.n_turns > TurnMarks::kCapacity ||
      header.total_bytes != snapshotBytes(plan, model, cache, header.state, header.n_turns)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot contradicts itself: save it again");
  }

  const HeldTokens held = heldTokens(cache, header.state.position, header.state.stored);
  if (!plausible(header, at + sizeof(header), held.count(), model.n_vocab)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot contradicts itself: save it again");
  }

  // The device first: where it fails the host's part stays that of the conversation before.
  const uint8_t* of_host = at + sizeof(header);
  at = of_host + header.n_turns * sizeof(uint64_t) + held.count() * sizeof(int32_t);
  const auto send = [&](const BufferRef& to, uint64_t offset_bytes, uint64_t run_bytes) {
    return forEachPiece(plan, run_bytes, [&](uint64_t done, uint64_t piece_bytes) -> Status {
      void* piece = nullptr;
      ORIEL_TRY(executor->beginWrite(piece_bytes, &piece));
      std::memcpy(piece, at, static_cast<size_t>(piece_bytes));
      at += piece_bytes;
      return executor->endWrite(to, offset_bytes + done, piece_bytes);
    });
  };
  if (header.state.has_logits != 0) {
    const uint64_t row_bytes = 4ull * model.n_vocab;
    const bool several = plan.sessionCount() > 1;
    ORIEL_TRY(send(several ? plan.kept_logits : plan.logits, cache.session * row_bytes, row_bytes));
  }
  ORIEL_TRY(forEachUsedRun(plan, model, cache, header.state.position, 0, [&](const SlotRun& run) {
    return send(run.side, run.offset_bytes, run.bytes());
  }));
  ORIEL_TRY(executor->finishWrites());

  *state = header.state;
  const auto take = [&of_host](auto* value) {
    std::memcpy(value, of_host, sizeof(*value));
    of_host += sizeof(*value);
  };
  turns->clear();
  for (uint32_t i = 0; i < header.n_turns; ++i) {
    uint64_t start = 0;
    take(&start);
    turns->mark(start);
  }
  ids->forget();
  forEachHeld(held, [&](uint64_t token) {
    int32_t id = 0;
    take(&id);
    ids->set(token, id);
  });
  return kOk;
}

}  // namespace oriel
