#include "fuzz/gguf_parts.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "kv/window.h"

namespace oriel_internal::fuzz {
namespace {

/// Fits in an input's 64 KiB.
constexpr uint64_t kMostListed = 4096;

template <typename T>
void append(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
std::vector<T> listAt(const uint8_t* at, uint64_t count) {
  std::vector<T> list(count);
  if (count != 0) {
    std::memcpy(static_cast<void*>(list.data()), at, count * sizeof(T));
  }
  return list;
}

void putSum(size_t at, std::string* bytes) {
  if (at + sizeof(uint64_t) <= bytes->size()) {
    const uint64_t sum = hashBytes(bytes->data(), at);
    std::memcpy(&(*bytes)[at], &sum, sizeof(sum));
  }
}

Memory memoryOf(const SnapshotMemory& described) {
  Memory memory;
  memory.kind = static_cast<MemoryKind>(described.kind);
  memory.shape.n_kv_heads = described.n_kv_heads;
  takeLayout(described, &memory);
  return memory;
}

bool ofTokens(const SnapshotMemory& memory) {
  return memory.kind == static_cast<uint8_t>(MemoryKind::kKeysValues) ||
         memory.kind == static_cast<uint8_t>(MemoryKind::kLatent);
}

template <typename T>
void lower(T* value, T most) {
  *value = std::min(*value, most);
}

uint64_t idCount(const SnapshotHeader& header) {
  const SessionState& state = header.state;
  return heldTokens(shapeOf(header), state.position, state.stored, state.carried.held_from)
             .count() +
         state.recalled;
}

/// Every value within the bounds that others give it.
void settle(SnapshotParts* parts) {
  SnapshotHeader& header = parts->header;
  SessionState& state = header.state;
  state.stored = std::max(state.stored, state.position);
  lower(&header.state.sinks, header.sink_room);
  lower(&state.base, state.position);
  lower(&state.carried.seen_from, state.position);
  lower(&state.carried.held_from, state.carried.seen_from);
  lower(&state.carried.least, state.position);
  lower(&state.recalled, std::min(kMaxRecallTokens, header.sink_room - header.state.sinks));
  state.recalled = state.position < header.state.sinks ? 0 : state.recalled;
  header.version = versionOf(state);
  for (SnapshotMemory& memory : parts->memories) {
    memory.recalled = ofTokens(memory) && memory.window >= kLeastRecallWindow ? state.recalled : 0;
  }
  std::sort(parts->turns.begin(), parts->turns.end());
  for (uint64_t& start : parts->turns) {
    lower(&start, state.position);
  }
  parts->turns.resize(std::min<size_t>(parts->turns.size(), TurnMarks::kCapacity));
  header.n_turns = static_cast<uint32_t>(parts->turns.size());
  for (int32_t& id : parts->ids) {
    id = std::clamp(id, TokenIds::kUnknown, static_cast<int32_t>(header.n_vocab) - 1);
  }
  for (uint32_t i = 0; i < SamplerState::kRecentTokens; ++i) {
    state.sampler.recent[i] =
        std::clamp(state.sampler.recent[i], 0, static_cast<int32_t>(header.n_vocab) - 1);
  }
  uint64_t end = 0;
  for (SnapshotParts::Message& message : parts->messages) {
    Transcript::Entry& entry = message.entry;
    entry.begin = std::min(std::max(entry.begin, end), state.position);
    entry.text = std::clamp(entry.text, entry.begin, state.position);
    entry.end = std::clamp(entry.end, entry.text, state.position);
    if ((entry.flags & Transcript::kUnread) != 0) {
      entry.flags &= ~Transcript::kReply;
      entry.text = entry.end = entry.begin;
    }
    entry.flags &= &message == &parts->messages.front() ? ~0u : ~Transcript::kSystem;
    entry.bytes = static_cast<uint32_t>(message.json.size());
    end = entry.end;
  }
  header.messages = static_cast<uint32_t>(parts->messages.size());
}

void changeMessages(Chance* chance, SnapshotParts* parts) {
  std::vector<SnapshotParts::Message>& messages = parts->messages;
  const size_t at = chance->below(messages.size());
  switch (messages.empty() ? 0 : chance->below(4)) {
    case 0: {
      SnapshotParts::Message message;
      message.entry.begin = message.entry.text = message.entry.end = parts->header.state.position;
      message.entry.flags = chance->once(2) ? Transcript::kUnread : 0;
      message.json = chance->once(2) ? R"({"role":"user","content":"Hi"})"
                                     : R"({"role":"assistant","content":"\u00e9"})";
      messages.push_back(message);
      break;
    }
    case 1:
      messages.erase(messages.begin() + static_cast<ptrdiff_t>(at));
      parts->header.dropped += chance->once(2) ? 1 : 0;
      break;
    case 2:
      messages.insert(messages.begin() + static_cast<ptrdiff_t>(at), messages[at]);
      break;
    default:
      messages[at].entry.flags ^= 1u << chance->below(3);
      messages[at].entry.end += chance->below(9);
  }
}

/// Another window, ring or number of sinks, in the memories that have the session's as well.
void changeShape(Chance* chance, SnapshotParts* parts) {
  SnapshotHeader& header = parts->header;
  const SnapshotHeader before = header;
  if (chance->once(2)) {
    header.window = static_cast<uint32_t>(1 + chance->below(96));
    header.ring = header.window + static_cast<uint32_t>(chance->below(24));
  } else {
    header.sink_room = static_cast<uint32_t>(chance->below(48));
    header.state.sinks = chance->once(2)
                             ? header.sink_room
                             : static_cast<uint32_t>(chance->below(header.sink_room + 1));
  }
  for (SnapshotMemory& memory : parts->memories) {
    if (memory.window == before.window) {
      memory.window = header.window;
      memory.ring = memory.ring == before.ring ? header.ring : memory.ring;
    }
    memory.sinks = memory.sinks == before.state.sinks ? header.state.sinks : memory.sinks;
  }
}

void changeState(Chance* chance, SessionState* state) {
  switch (chance->below(5)) {
    case 0:
      state->stale ^= 1;
      break;
    case 1:
      state->has_logits ^= 1;
      break;
    case 2:
      state->carried.seen_from = chance->below(state->position + 1);
      state->carried.held_from = chance->below(state->carried.seen_from + 1);
      state->carried.least = chance->below(state->position + 1);
      break;
    case 3:
      state->base = chance->below(state->position + 1);
      break;
    default:
      state->first_position = chance->awkward() % kMaxFirstPosition;
  }
}

}  // namespace

SnapshotHeader headerOf(const std::string& bytes) {
  SnapshotHeader header;
  std::memset(static_cast<void*>(&header), 0, sizeof(header));
  std::memcpy(static_cast<void*>(&header), bytes.data(), std::min(bytes.size(), sizeof(header)));
  return header;
}

void makeTrue(std::string* bytes) {
  if (bytes->size() < sizeof(SnapshotHeader)) {
    return;
  }
  SnapshotHeader header = headerOf(*bytes);
  std::memcpy(header.magic, kSnapshotMagic, sizeof(header.magic));
  if (header.version != kSnapshotVersion && header.version != kSnapshotRecallVersion) {
    header.version = versionOf(header.state);
  }
  header.total_bytes = bytes->size();
  std::memcpy(bytes->data(), &header, sizeof(header));
  putSum(sizeof(header) + size_t{header.n_memories} * sizeof(SnapshotMemory), bytes);
  putSum(bytes->size() - sizeof(uint64_t), bytes);
}

bool takeSnapshotApart(const std::string& bytes, SnapshotParts* parts) {
  Snapshot snapshot;
  if (!openSnapshot(bytes.data(), bytes.size(), Log(), &snapshot).ok()) {
    return false;
  }
  parts->header = snapshot.header;
  parts->memories = listAt<SnapshotMemory>(snapshot.memories, snapshot.header.n_memories);
  parts->turns = listAt<uint64_t>(snapshot.turns, snapshot.header.n_turns);
  parts->ids = listAt<int32_t>(snapshot.ids, snapshot.n_ids);
  parts->logits.assign(snapshot.logits, snapshot.cache);
  const uint8_t* at = snapshot.cache;
  for (const SnapshotMemory& described : parts->memories) {
    const Memory memory = memoryOf(described);
    for (uint32_t side = 0; side < memory.sides(); ++side) {
      const uint64_t side_bytes = sideBytesUsed(memory, side, snapshot.header.state.position);
      parts->sides.emplace_back(at, at + side_bytes);
      at += side_bytes;
    }
  }
  const uint8_t* const end = snapshot.transcript + snapshot.header.transcript_bytes;
  for (at = snapshot.transcript; at != end;) {
    SnapshotParts::Message message;
    std::memcpy(static_cast<void*>(&message.entry), at, sizeof(message.entry));
    at += sizeof(message.entry);
    message.json.assign(at, at + message.entry.bytes);
    at += message.entry.bytes;
    parts->messages.push_back(message);
  }
  return true;
}

void changeSnapshot(Chance* chance, SnapshotParts* parts) {
  SessionState& state = parts->header.state;
  switch (chance->below(10)) {
    case 0:
    case 1: {
      const uint64_t before = state.position;
      state.position = chance->once(3) ? chance->below(300) : before + chance->below(9);
      state.position -= std::min<uint64_t>(state.position, chance->below(9));
      state.stored = chance->once(2) ? state.position : state.stored;
      break;
    }
    case 2:
      state.recalled = chance->once(3) ? 0 : static_cast<uint32_t>(1 + chance->below(48));
      break;
    case 3:
      if (!parts->ids.empty()) {
        chance->anyOf(parts->ids) = static_cast<int32_t>(chance->below(301)) - 1;
      }
      break;
    case 4:
      parts->turns.push_back(chance->below(state.position + 1));
      break;
    case 5:
      if (!parts->turns.empty()) {
        parts->turns.erase(parts->turns.begin() +
                           static_cast<ptrdiff_t>(chance->below(parts->turns.size())));
      }
      break;
    case 6:
      changeMessages(chance, parts);
      break;
    case 7:
      changeShape(chance, parts);
      break;
    case 8:
      if (!parts->memories.empty()) {
        SnapshotMemory& memory = chance->anyOf(parts->memories);
        memory.formats[chance->below(2)] = static_cast<uint8_t>(chance->below(3));
        memory.state = static_cast<uint8_t>(chance->below(3));
      }
      break;
    default:
      changeState(chance, &state);
  }
}

std::string putTogether(SnapshotParts parts) {
  settle(&parts);
  SnapshotHeader& header = parts.header;
  if (idCount(header) > kMostListed) {
    return {};
  }
  parts.ids.resize(idCount(header), TokenIds::kUnknown);
  parts.logits.resize(header.state.has_logits != 0 ? 4ull * header.n_vocab : 0);
  std::string transcript;
  for (const SnapshotParts::Message& message : parts.messages) {
    append(message.entry, &transcript);
    transcript += message.json;
  }
  header.transcript_bytes = transcript.size();
  std::string bytes;
  append(header, &bytes);
  for (const SnapshotMemory& memory : parts.memories) {
    append(memory, &bytes);
  }
  bytes.append(sizeof(uint64_t), '\0');
  for (const uint64_t start : parts.turns) {
    append(start, &bytes);
  }
  for (const int32_t id : parts.ids) {
    append(id, &bytes);
  }
  bytes += parts.logits;
  size_t next = 0;
  for (const SnapshotMemory& described : parts.memories) {
    const Memory memory = memoryOf(described);
    for (uint32_t side = 0; side < memory.sides(); ++side, ++next) {
      const uint64_t side_bytes = sideBytesUsed(memory, side, header.state.position);
      if (side_bytes > kMaxInputBytes) {
        return {};
      }
      parts.sides[next].resize(side_bytes);
      bytes += parts.sides[next];
    }
  }
  bytes += transcript;
  bytes.append(sizeof(uint64_t), '\0');
  makeTrue(&bytes);
  return bytes;
}

}  // namespace oriel_internal::fuzz
