#include "exec/snapshot.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/arena.h"
#include "base/checked.h"
#include "base/hash.h"
#include "exec/cache_bytes.h"
#include "kv/window.h"
#include "plan/memory_layout.h"

namespace oriel_internal {
namespace {

/// Consecutive used slots of one head.
struct SlotRun {
  BufferRef place;
  CacheShape cache;
  bool in_ring;         ///< tokens in the ring; false: sinks, or a state
  uint64_t slot_bytes;  ///< bytes per slot, of values or of scales
};

// Calls visit(run) for the runs of one side of keys and values.
template <typename Visit>
Status visitTokens(const BufferRef& side, KvFormat format, const CacheShape& cache,
                   uint64_t position, const Visit& visit) {
  const uint64_t sinks = std::min<uint64_t>(position, cache.sinks);
  const uint64_t ring = std::min<uint64_t>(position - sinks, cache.ring);
  for (uint32_t head = 0; head < cache.n_kv_heads; ++head) {
    const SlotRows of_sinks = sinkRows(cache);
    ORIEL_TRY(visit(SlotRun{of_sinks.of(side, cache.sinkRow(head, 0), sinks + cache.recalled),
                            cache, false, of_sinks.bytes}));
    for (const SlotRows& rows : {ringRows(format, cache), scaleRows(format, cache)}) {
      ORIEL_TRY(
          visit(SlotRun{rows.of(side, cache.ringRow(head, 0), ring), cache, true, rows.bytes}));
    }
  }
  return kOk;
}

// Calls visit(run) for the used slots of a side, in the order of a snapshot.
template <typename Visit>
Status visitSide(const Memory& memory, uint32_t side, const BufferRef& place, uint64_t position,
                 uint32_t state_slot, const Visit& visit) {
  const CacheShape& shape = memory.shape;
  if (!memory.isWords()) {
    return visitTokens(place, memory.formats[side], shape, position, visit);
  }
  const bool is_state = memory.kind == MemoryKind::kState;
  const SlotRows slots = wordRows(shape);
  const uint64_t count =
      is_state ? std::min<uint64_t>(position, 1) : std::min<uint64_t>(position, shape.ring);
  return visit(SlotRun{slots.of(place, shape.first_ring + (is_state ? state_slot : 0), count),
                       shape, !is_state, slots.bytes});
}

// Calls visit(memory, side, place) for every side of every memory.
template <typename Visit>
Status forEachSide(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                   const Visit& visit) {
  Status status = kOk;
  forEachPlacedMemory(model, cache, plan.formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        for (uint32_t side = 0; side < memory.sides() && status.ok(); ++side) {
                          status = visit(memory, side, sides[side]);
                        }
                      });
  return status;
}

// Calls visit(run) for all used slots in the memories.
template <typename Visit>
Status forEachUsedRun(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                      uint64_t position, uint32_t state_slot, const Visit& visit) {
  return forEachSide(plan, model, cache,
                     [&](const Memory& memory, uint32_t side, const BufferRef& place) {
                       return visitSide(memory, side, place, position, state_slot, visit);
                     });
}

// Zeros the slots of tokens outside the session, unless they hold tokens visible to the next token. `slots` is a copy
// of the run.
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

HeldTokens heldOf(const SnapshotOwner& owner, const SessionState& state) {
  return heldTokens(owner.cache, state.position, state.stored, state.carried.held_from);
}

SnapshotMemory describe(const Memory& memory) {
  SnapshotMemory described = {};
  described.layer = memory.layer;
  described.kind = static_cast<uint8_t>(memory.kind);
  described.formats[0] = static_cast<uint8_t>(memory.formats[0]);
  described.formats[1] = static_cast<uint8_t>(memory.formats[1]);
  described.state = static_cast<uint8_t>(memory.state);
  described.n_kv_heads = memory.shape.n_kv_heads;
  described.head_dim = memory.shape.head_dim;
  described.sinks = memory.shape.sinks;
  described.window = memory.shape.window;
  // Only the latest state is stored, without checkpoints.
  described.ring = memory.kind == MemoryKind::kState ? 1 : memory.shape.ring;
  described.recalled = memory.shape.recalled;
  return described;
}

uint32_t memoryCount(const SnapshotOwner& owner) {
  uint32_t count = 0;
  forEachMemory(*owner.model, owner.cache, owner.plan->formats, [&](const Memory&) { ++count; });
  return count;
}

template <size_t N>
void putText(const char* text, char (&out)[N]) {
  std::snprintf(out, N, "%s", text);
  for (char* c = out; *c != '\0'; ++c) {
    *c = static_cast<uint8_t>(*c) < 0x20 ? '?' : *c;
  }
}

SnapshotHeader headerOf(const SnapshotOwner& owner, const SavedParts& parts, int64_t saved_at) {
  SnapshotHeader header;
  std::memset(static_cast<void*>(&header), 0,
              sizeof(header));  // also clears padding: same state, same bytes
  std::memcpy(header.magic, kSnapshotMagic, sizeof(header.magic));
  header.version = parts.hasPictures() ? kSnapshotPicturesVersion : versionOf(*parts.at);
  header.n_turns = parts.at->turns.count();
  header.model_hash = owner.model_hash;
  header.layout_hash = layoutHash(owner);
  header.total_bytes = snapshotBytes(owner, parts);
  header.saved_at = saved_at;
  header.transcript_bytes = parts.transcript->bytes();
  header.messages = parts.transcript->messages();
  header.dropped = parts.transcript->dropped();
  header.n_memories = memoryCount(owner);
  header.n_vocab = owner.model->n_vocab;
  header.n_layers = owner.model->n_layers;
  header.sink_room = owner.cache.sinkRoom();
  header.window = owner.cache.window;
  header.ring = owner.cache.ring;
  header.chunk_tokens = owner.plan->chunk_tokens;
  header.whole_turns = owner.whole_turns ? 1 : 0;
  header.k_format = static_cast<uint8_t>(owner.plan->formats.k);
  header.v_format = static_cast<uint8_t>(owner.plan->formats.v);
  header.state_format = static_cast<uint8_t>(owner.plan->formats.state);
  header.keeps_states = owner.model->keepsStates() ? 1 : 0;
  putText(owner.model_name, header.model);
  putText(owner.model->architecture, header.architecture);
  putText(owner.chat, header.chat);
  header.state = *parts.at;
  return header;
}

}  // namespace

uint64_t layoutHash(const SnapshotOwner& owner) {
  const ModelDesc& model = *owner.model;
  CacheShape cache = owner.cache;
  cache.setSinks(cache.sinkRoom());
  cache.recalled = 0;
  const uint64_t numbers[] = {
      kSnapshotVersion,     cache.sinks,          cache.window,
      cache.ring,           model.n_layers,       model.n_vocab,
      sizeof(SessionState), TurnMarks::kCapacity, owner.whole_turns ? 1u : 0u};
  uint64_t hash = hashBytes(numbers, sizeof(numbers));
  forEachMemory(model, cache, owner.plan->formats, [&](const Memory& memory) {
    const SnapshotMemory described = describe(memory);
    hash = hashBytes(&described, sizeof(described), hash);
  });
  return hashBytes(owner.chat, std::strlen(owner.chat), hash);
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
    add(run.place);
    return kOk;
  });
  // The slots of a state's versions may be in any order.
  forEachPlacedMemory(model, cache, plan.formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        if (memory.kind == MemoryKind::kState && stored != 0) {
                          const CacheShape& shape = memory.shape;
                          add(wordRows(shape).of(sides[0], shape.first_ring, shape.ring));
                        }
                      });
}

uint64_t snapshotBytes(const SnapshotOwner& owner, const SavedParts& parts) {
  const SessionState& state = *parts.at;
  uint64_t bytes = sizeof(SnapshotHeader) + uint64_t{memoryCount(owner)} * sizeof(SnapshotMemory) +
                   sizeof(uint64_t) + parts.at->turns.count() * sizeof(uint64_t) +
                   sizeof(int32_t) * (heldOf(owner, state).count() + state.recalled) +
                   (state.has_logits != 0 ? 4ull * owner.model->n_vocab : 0) +
                   parts.transcript->bytes() +
                   (parts.hasPictures() ? parts.pictures->savedBytes() : 0) + sizeof(uint64_t);
  forEachMemory(*owner.model, owner.cache, owner.plan->formats, [&](const Memory& memory) {
    for (uint32_t side = 0; side < memory.sides(); ++side) {
      bytes += sideBytesUsed(memory, side, state.position);
    }
  });
  return bytes;
}

Status writeSnapshot(const SnapshotOwner& owner, const SavedParts& parts, const LiveSlots& live,
                     int64_t saved_at, Executor* executor, void* out) {
  const Plan& plan = *owner.plan;
  const SessionState& state = *parts.at;
  uint8_t* const begin = static_cast<uint8_t*>(out);
  uint8_t* at = begin;
  const auto put = [&at](const void* data, uint64_t bytes) {
    if (bytes != 0) {
      std::memcpy(at, data, static_cast<size_t>(bytes));
      at += bytes;
    }
  };
  const auto putHash = [&] {
    const uint64_t hash = hashBytes(out, static_cast<uint64_t>(at - begin));
    put(&hash, sizeof(hash));
  };
  const SnapshotHeader header = headerOf(owner, parts, saved_at);
  put(&header, sizeof(header));
  forEachMemory(*owner.model, owner.cache, plan.formats, [&](const Memory& memory) {
    const SnapshotMemory described = describe(memory);
    put(&described, sizeof(described));
  });
  putHash();
  for (uint32_t i = 0; i < parts.at->turns.count(); ++i) {
    const uint64_t start = parts.at->turns.at(i);
    put(&start, sizeof(start));
  }
  forEachHeld(heldOf(owner, state), [&](uint64_t token) {
    const int32_t id = parts.ids->at(token);
    put(&id, sizeof(id));
  });
  for (uint32_t i = 0; i < state.recalled; ++i) {
    const int32_t id = parts.ids->recalled(i);
    put(&id, sizeof(id));
  }
  if (state.has_logits != 0) {
    const float* logits = nullptr;
    ORIEL_TRY(plan.sessionCount() > 1 ? executor->keptLogits(live.session, &logits)
                                      : executor->logits(live.logits, &logits));
    put(logits, 4ull * owner.model->n_vocab);
  }
  const auto putRun = [&](const SlotRun& run) -> Status {
    uint8_t* const slots = at;
    const auto putPiece = [&](const void* piece, uint64_t, uint64_t bytes) -> Status {
      put(piece, bytes);
      return kOk;
    };
    const Status status = readBytes(plan, executor, run.place, putPiece);
    clearUnseen(run, state, slots);
    return status;
  };
  ORIEL_TRY(forEachUsedRun(plan, *owner.model, owner.cache, state.position, live.state, putRun));
  put(parts.transcript->data(), parts.transcript->bytes());
  if (parts.hasPictures()) {
    parts.pictures->save(at);
    at += parts.pictures->savedBytes();
  }
  putHash();
  return kOk;
}

namespace {

/// Window, sinks, batch and formats, for people.
struct LayoutWords {
  char text[128] = "";
  LayoutWords(KvFormat k, KvFormat v, StateFormat state, bool keeps_states, const CacheShape& cache,
              uint32_t chunk, bool whole_turns) {
    const auto bits = [](KvFormat format) {
      return format == KvFormat::kF16 ? 16 : format == KvFormat::kInt8 ? 8 : 4;
    };
    char formats[16] = "f16";
    if (k != KvFormat::kF16 || v != KvFormat::kF16) {
      std::snprintf(formats, sizeof(formats), "K%dV%d", bits(k), bits(v));
    }
    const char* const with = keeps_states ? ", states in " : "";
    std::snprintf(text, sizeof(text),
                  "%s, a window of %u tokens, %u sinks, batches of %u, evicts %s%s%s", formats,
                  cache.window, cache.sinkRoom(), chunk, whole_turns ? "turns" : "tokens", with,
                  keeps_states ? stateFormatName(state) : "");
  }
};

// True if the saved session's memories match this session's model.
bool isOfModel(const SnapshotOwner& owner, const Snapshot& snapshot) {
  uint32_t i = 0;
  bool same = snapshot.header.n_memories == memoryCount(owner) &&
              snapshot.header.n_vocab == owner.model->n_vocab &&
              snapshot.header.n_layers == owner.model->n_layers;
  forEachMemory(*owner.model, snapshot.shape(), owner.plan->formats, [&](const Memory& memory) {
    if (!same) {
      return;
    }
    const SnapshotMemory stored = snapshot.memory(i++);
    SnapshotMemory expected = describe(memory);
    expected.formats[0] = stored.formats[0];
    expected.formats[1] = stored.formats[1];
    expected.state = stored.state;
    if (memory.seen.kind == ViewKind::kSession && stored.window >= 1 &&
        stored.window <= snapshot.header.window) {  // only the session decides how to divide it
      expected.window = stored.window;
      expected.ring = stored.window + snapshot.header.ring - snapshot.header.window;
      expected.recalled = stored.window >= kLeastRecallWindow ? snapshot.header.state.recalled : 0;
    }
    if (memory.kind == MemoryKind::kState) {
      CacheFormats formats = owner.plan->formats;
      formats.state = static_cast<StateFormat>(stored.state);
      expected.head_dim =
          stateOf(*owner.model, snapshot.shape(), formats, memory.layer).shape.head_dim;
    }
    same = std::memcmp(&stored, &expected, sizeof(stored)) == 0;
  });
  return same;
}

// True if the snapshot has the layout given by its hash. Then its bytes have the same layout as this session's.
bool isOfLayout(const SnapshotOwner& owner, const Snapshot& snapshot, const CacheShape& cache) {
  uint32_t i = 0;
  bool same = snapshot.header.sink_room == owner.cache.sinkRoom() &&
              snapshot.header.window == owner.cache.window &&
              snapshot.header.ring == owner.cache.ring;
  forEachMemory(*owner.model, cache, owner.plan->formats, [&](const Memory& memory) {
    const SnapshotMemory stored = snapshot.memory(i++);
    const SnapshotMemory expected = describe(memory);
    same = same && std::memcmp(&stored, &expected, sizeof(stored)) == 0;
  });
  return same;
}

bool beginsWithPrefix(const SnapshotOwner& owner, const Snapshot& snapshot) {
  const HeldTokens held = snapshot.held();
  const uint64_t known = held.first <= held.sinks ? held.position : held.sinks;
  const uint64_t pictures =
      PictureStore::savedSharedHash(snapshot.pictures, snapshot.picture_bytes);
  bool same = owner.prefix_tokens <= known &&
              (owner.prefix_tokens == 0 || pictures == owner.prefix_pictures);
  for (uint32_t i = 0; i < owner.prefix_tokens && same; ++i) {
    int32_t id = 0;
    std::memcpy(&id, snapshot.ids + i * sizeof(id), sizeof(id));
    same = id == TokenIds::idOf(owner.prefix_ids[i]);
  }
  return same;
}

/// Returns the sides of a snapshot in the layout of the restoring session.
class Sides {
 public:
  Sides(const SnapshotOwner& owner, const Snapshot& snapshot, const CacheShape& cache,
        uint64_t first, bool same)
      : owner_(owner), snapshot_(snapshot), cache_(cache), first_(first), same_(same) {}

  /// Bytes of the largest side that needs conversion.
  uint64_t mostBytes() const {
    uint64_t most = 0;
    forEachMemory(*owner_.model, cache_, owner_.plan->formats, [&](const Memory& memory) {
      for (uint32_t side = 0; side < memory.sides() && !same_; ++side) {
        most = std::max(most, sideBytesUsed(memory, side, snapshot_.header.state.position));
      }
    });
    return most;
  }
  /// Call in order. `room` has mostBytes().
  const uint8_t* next(const Memory& memory, uint32_t side, uint8_t* room) {
    const uint64_t position = snapshot_.header.state.position;
    const SnapshotMemory stored = snapshot_.memory(memory_);
    Memory old = memory;
    takeLayout(stored, &old);
    const StoredSide from = storedSide(*owner_.model, old, side, position);
    const uint8_t* const at = snapshot_.cache + done_;
    done_ += from.bytes();
    memory_ += side + 1 == memory.sides() ? 1 : 0;
    if (same_) {
      return at;
    }
    // Views with their own window: the tokens in their rings.
    const uint64_t stored_tokens = snapshot_.header.state.stored;
    const uint64_t gone = stored_tokens - std::min<uint64_t>(stored_tokens, stored.ring);
    carrySide(from, at, memory.seen.isWholeSession() ? first_ : gone,
              storedSide(*owner_.model, memory, side, position), room, &rounded_);
    return room;
  }
  bool rounded() const { return rounded_; }

 private:
  const SnapshotOwner& owner_;
  const Snapshot& snapshot_;
  const CacheShape cache_;
  const uint64_t first_;
  const bool same_;
  uint32_t memory_ = 0;
  uint64_t done_ = 0;
  bool rounded_ = false;
};

}  // namespace

SnapshotFit fitOf(const SnapshotOwner& owner, const Snapshot& snapshot, char* refusal,
                  size_t capacity) {
  const SnapshotHeader& header = snapshot.header;
  refusal[0] = '\0';
  if (header.model_hash != owner.model_hash) {
    std::snprintf(refusal, capacity,
                  "the snapshot belongs to another model, %.60s (%016llx), this one is %.60s "
                  "(%016llx): load that one",
                  header.model, static_cast<unsigned long long>(header.model_hash),
                  owner.model_name, static_cast<unsigned long long>(owner.model_hash));
    return SnapshotFit::kNot;
  }
  if (!beginsWithPrefix(owner, snapshot)) {
    std::snprintf(refusal, capacity,
                  "the snapshot does not begin with this model's prefix of %u tokens: clear the "
                  "prefix first, or restore in a model without one",
                  owner.prefix_tokens);
    return SnapshotFit::kNot;
  }
  const bool same_sinks = owner.prefix_tokens == 0 || header.state.sinks == owner.prefix_tokens;
  if (header.layout_hash == layoutHash(owner) && same_sinks) {
    return SnapshotFit::kSame;
  }
  if (std::strcmp(header.chat, owner.chat) != 0) {
    std::snprintf(refusal, capacity,
                  "the snapshot's turns are in the chat format %.60s, this session's are in %.60s: "
                  "ask for that one",
                  header.chat, owner.chat);
    return SnapshotFit::kNot;
  }
  const LayoutWords theirs(static_cast<KvFormat>(header.k_format),
                           static_cast<KvFormat>(header.v_format),
                           static_cast<StateFormat>(header.state_format), header.keeps_states != 0,
                           snapshot.shape(), header.chunk_tokens, header.whole_turns != 0);
  const Plan& plan = *owner.plan;
  const LayoutWords ours(plan.formats.k, plan.formats.v, plan.formats.state,
                         owner.model->keepsStates(), owner.cache, plan.chunk_tokens,
                         owner.whole_turns);
  if (std::strcmp(theirs.text, ours.text) == 0) {
    std::snprintf(
        refusal, capacity,
        "the snapshot's layers share its window in another way than this session's: ask for "
        "the same (\"window_shares\"), or let what fits be carried over");
    return SnapshotFit::kCarries;
  }
  std::snprintf(refusal, capacity,
                "the snapshot has %s, this session %s: ask for the same, or let what fits be "
                "carried over",
                theirs.text, ours.text);
  return SnapshotFit::kCarries;
}

Status restoreSnapshot(const SnapshotOwner& owner, const Snapshot& snapshot, SnapshotFit fit,
                       const Log& log, Executor* executor, RestoredParts* parts, TokenIds* ids,
                       Transcript* transcript, PictureStore* pictures) {
  const SnapshotHeader& header = snapshot.header;
  const Plan& plan = *owner.plan;
  const ModelDesc& model = *owner.model;
  if (!isOfModel(owner, snapshot)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot contradicts itself: save it again");
  }
  if (snapshot.picture_bytes != 0 &&
      (pictures == nullptr ||
       !pictures->load(snapshot.pictures, snapshot.picture_bytes, /*checks_only=*/true))) {
    return log.fail(ORIEL_ERROR_FORMAT, pictures == nullptr
                                            ? "the snapshot has pictures: load the model with its "
                                              "vision encoder (\"mmproj\")"
                                            : "the snapshot contradicts itself: save it again");
  }
  TurnMarks marks;
  for (uint32_t i = 0; i < header.n_turns; ++i) {
    uint64_t start = 0;
    std::memcpy(&start, snapshot.turns + i * sizeof(start), sizeof(start));
    marks.mark(start);
  }
  const bool same = fit == SnapshotFit::kSame;
  RestoredParts restored;
  static_cast<SessionState&>(restored.at) = header.state;
  restored.at.turns = marks;
  restored.held = snapshot.held().count();
  CacheShape cache = owner.cache;
  cache.setSinks(same                       ? header.state.sinks
                 : owner.prefix_tokens != 0 ? owner.prefix_tokens
                                            : cache.sinkRoom() - owner.recall_tokens);
  cache.recalled = same ? header.state.recalled : 0;
  if (same && !isOfLayout(owner, snapshot, cache)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the snapshot contradicts itself: save it again");
  }
  if (!same) {
    const Carrying carrying = planCarrying(snapshot, marks, model, cache, owner.whole_turns);
    restored.at.carried = carrying.state;
    restored.at.recalled = restored.at.recalled_shared = 0;
    restored.at.stored = header.state.position;
    restored.at.sinks = carrying.sinks;
    restored.held = carrying.held;
    restored.dropped = carrying.dropped;
    cache.setSinks(carrying.sinks);
  }
  Sides sides(owner, snapshot, cache, restored.at.carried.held_from, same);
  Workspace workspace(nullptr, 0, owner.allocator);
  const uint64_t room_bytes = sides.mostBytes();
  const BorrowedBytes room(&workspace, room_bytes);
  if (room.data() == nullptr && room_bytes != 0) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no memory to carry a snapshot over, %llu bytes: close other programs",
                    static_cast<unsigned long long>(room_bytes));
  }

  // The device first: if it fails, the host keeps the previous conversation.
  if (header.state.has_logits != 0) {
    ORIEL_TRY(sendCopy(plan, executor,
                       logitsPlace(plan, cache.session).resized(4ull * model.n_vocab),
                       snapshot.logits));
  }
  const auto sendSide = [&](const Memory& memory, uint32_t side, const BufferRef& place) {
    const uint8_t* at = sides.next(memory, side, room.as<uint8_t>());
    return visitSide(memory, side, place, header.state.position, 0, [&](const SlotRun& run) {
      const uint8_t* const from = at;
      at += run.place.size_bytes;
      const bool is_prefix = !run.in_ring && !memory.isWords() && owner.prefix_tokens != 0;
      return is_prefix ? Status(kOk) : sendCopy(plan, executor, run.place, from);
    });
  };
  ORIEL_TRY(forEachSide(plan, model, cache, sendSide));
  ORIEL_TRY(executor->finishWrites());

  restored.rounded = sides.rounded();
  *parts = restored;
  const HeldTokens held =
      heldTokens(cache, restored.at.position, restored.at.stored, restored.at.carried.held_from);
  const uint8_t* id_at = snapshot.ids;
  ids->layOut(cache);
  ids->forget();
  forEachHeld(snapshot.held(), [&](uint64_t token) {
    int32_t id = 0;
    std::memcpy(&id, id_at, sizeof(id));
    id_at += sizeof(id);
    if (held.has(token) && token >= owner.prefix_tokens) {  // other sessions read the prefix's ids
      ids->set(token, id);
    }
  });
  for (uint32_t i = 0; i < restored.at.recalled; ++i, id_at += sizeof(int32_t)) {
    int32_t id = 0;
    std::memcpy(&id, id_at, sizeof(id));
    ids->setRecalled(i, id);
  }
  transcript->load(snapshot.transcript, header.transcript_bytes, header.dropped);
  if (pictures != nullptr) {
    pictures->forgetOwn();
    (void)pictures->load(snapshot.pictures, snapshot.picture_bytes, /*checks_only=*/false);
  }
  return kOk;
}

}  // namespace oriel_internal
