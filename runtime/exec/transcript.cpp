#include "exec/transcript.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "text/unicode.h"

namespace oriel_internal {
namespace {

constexpr uint64_t kRecord = sizeof(Transcript::Entry);
constexpr char kReplyBegin[] = "{\"role\":\"assistant\",\"content\":\"";
constexpr char kReplyEnd[] = "\"}";
constexpr uint64_t kReplyEndBytes = sizeof(kReplyEnd) - 1;

void putText(const char* text, const JsonSink& sink) {
  sink.write(text, std::strlen(text), sink.user);
}

// Calls visit(entry, json) for every message that is not cut.
template <typename Visit>
bool forEachEntry(const uint8_t* data, uint64_t bytes, const Visit& visit) {
  for (uint64_t at = 0; at != bytes;) {
    Transcript::Entry entry;
    if (bytes - at < kRecord) {
      return false;
    }
    std::memcpy(static_cast<void*>(&entry), data + at, kRecord);
    at += kRecord;
    if (entry.bytes > bytes - at || !visit(entry, data + at)) {
      return false;
    }
    at += entry.bytes;
  }
  return true;
}

}  // namespace

void Transcript::init(uint64_t capacity, Arena* arena) {
  capacity_ = capacity;
  room_ = capacity != 0 ? arena->take<uint8_t>(capacity) : nullptr;
}

void Transcript::forget() {
  if (held_) {
    return;
  }
  if (room_ != nullptr) {
    wipe(room_, used_);
  }
  used_ = last_ = 0;
  messages_ = dropped_ = 0;
  open_ = false;
}

Transcript::Entry Transcript::entryAt(uint64_t at) const {
  Entry entry;
  std::memcpy(static_cast<void*>(&entry), room_ + at, kRecord);
  return entry;
}

void Transcript::put(uint64_t at, const Entry& entry) { std::memcpy(room_ + at, &entry, kRecord); }

bool Transcript::next(uint64_t* at, Entry* entry, const char** json) const {
  if (*at >= used_) {
    return false;
  }
  *entry = entryAt(*at);
  *json = reinterpret_cast<const char*>(room_ + *at + kRecord);
  *at += kRecord + entry->bytes;
  return true;
}

uint64_t Transcript::systemBytes() const {
  return messages_ != 0 && entryAt(0).is(kSystem) ? kRecord + uint64_t{entryAt(0).bytes} : 0;
}

void Transcript::dropOldest() {
  const uint64_t kept = systemBytes();
  const Entry oldest = entryAt(kept);
  const uint64_t gone = kRecord + uint64_t{oldest.bytes};
  std::memmove(room_ + kept, room_ + kept + gone, static_cast<size_t>(used_ - kept - gone));
  wipe(room_ + used_ - gone, gone);
  used_ -= gone;
  last_ -= std::min(last_, gone);
  --messages_;
  dropped_ += oldest.is(kCut) ? 0 : 1;
}

// Also drops messages that a template would refuse without the question before them.
void Transcript::dropOldestTurn() {
  const uint32_t least = (systemBytes() != 0 ? 1u : 0u) + (open_ ? 1u : 0u);
  do {
    dropOldest();
  } while (messages_ > least && entryAt(systemBytes()).role() != Role::kUser);
}

// Keeps the latest message, if it is a reply in progress, and the system message.
bool Transcript::makeRoom(uint64_t bytes) {
  while (bytes > capacity_ - used_) {
    if (messages_ <= (systemBytes() != 0 ? 1u : 0u) + (open_ ? 1u : 0u)) {
      return false;
    }
    dropOldestTurn();
  }
  return true;
}

// A system message must leave room for others.
uint64_t Transcript::mostBytes(const Entry& entry) const {
  return entry.is(kSystem) ? capacity_ / 4 : capacity_ / 2;
}

template <typename Write>
bool Transcript::addWritten(const Entry& given, uint64_t most_bytes, const Write& write) {
  JsonRoom count;
  write(count.sink());
  const uint64_t bytes =
      count.bytes + kRecord + kReplyEndBytes;  // with room for the end of a reply
  if (!keeps() || held_ || bytes > most_bytes || !makeRoom(bytes)) {
    return false;
  }
  Entry entry = given;
  entry.bytes = static_cast<uint32_t>(count.bytes);
  put(used_, entry);
  JsonRoom out = {reinterpret_cast<char*>(room_ + used_ + kRecord), 0};
  write(out.sink());
  last_ = used_;
  used_ += kRecord + count.bytes;
  ++messages_;
  return true;
}

namespace {

constexpr size_t kCutBytes = 64;  ///< bytes kept of a text

// The beginning of a text, in whole characters.
JsonText cutText(const JsonText& text) {
  size_t bytes = std::min<size_t>(text.bytes, kCutBytes);
  while (bytes != 0 && bytes < text.bytes && (text.data[bytes] & 0xC0) == 0x80) {
    --bytes;
  }
  return {text.data, bytes};
}

// A short version of a message, a few hundred bytes long: its texts are cut, and it has no calls.
void writeCut(const JsonValue& message, const JsonSink& sink) {
  putText("{", sink);
  const char* before = "";
  for (const char* key : {"role", "content", "name", "tool_call_id"}) {
    const JsonValue* const value = message.find(key);
    if (value != nullptr && value->isString()) {
      putText(before, sink);
      putText("\"", sink);
      putText(key, sink);
      putText("\":", sink);
      writeJsonString(cutText(value->text()), sink);
      before = ",";
    }
  }
  putText("}", sink);
}

}  // namespace

void Transcript::add(const JsonValue& message, uint64_t begin, uint64_t end) {
  if (!keeps() || held_) {
    return;
  }
  const Role role = roleOf(message);
  Entry entry;
  entry.begin = entry.text = begin;
  entry.end = end;
  entry.flags = static_cast<uint32_t>(role) << kRoleShift |
                (role == Role::kSystem && messages_ == 0 && dropped_ == 0 ? kSystem : 0);
  if (addWritten(entry, mostBytes(entry),
                 [&](const JsonSink& sink) { writeJson(message, sink); })) {
    return;
  }
  ++dropped_;
  entry.flags |= kCut;
  (void)addWritten(entry, capacity_, [&](const JsonSink& sink) { writeCut(message, sink); });
}

void Transcript::open(uint64_t begin, uint64_t text) {
  if (held_) {
    return;
  }
  Entry entry;
  entry.flags = kReply | static_cast<uint32_t>(Role::kAssistant) << kRoleShift;
  entry.begin = begin;
  entry.text = text;
  entry.end = UINT64_MAX;
  open_ = addWritten(entry, capacity_, [&](const JsonSink& sink) { putText(kReplyBegin, sink); });
}

void Transcript::extend(const char* text, size_t bytes) {
  if (!open_ || held_ || bytes == 0 || entryAt(last_).is(kCut)) {
    return;
  }
  JsonRoom count;
  writeJsonEscaped({text, bytes}, count.sink());
  Entry entry = entryAt(last_);
  if (makeRoom(count.bytes + kReplyEndBytes)) {
    JsonRoom out = {reinterpret_cast<char*>(room_ + used_), 0};
    writeJsonEscaped({text, bytes}, out.sink());
    used_ += count.bytes;
    entry.bytes += static_cast<uint32_t>(count.bytes);
  } else {
    entry.flags |= kCut;
    ++dropped_;
  }
  put(last_, entry);
}

void Transcript::cut() {
  if (open_ && !held_) {
    Entry entry = entryAt(last_);
    entry.flags |= kCut;
    put(last_, entry);
    ++dropped_;
  }
}

void Transcript::addUnread(const JsonValue& message, uint64_t position) {
  const uint64_t at = used_;
  const uint32_t dropped = dropped_;
  add(message, position, position);
  if (used_ > at) {
    setUnread(last_, position);
    dropped_ = dropped;
  }
}

void Transcript::close(uint64_t end, int32_t stop) {
  if (!open_ || held_) {
    return;
  }
  open_ = false;
  std::memcpy(room_ + used_, kReplyEnd, kReplyEndBytes);
  used_ += kReplyEndBytes;
  Entry entry = entryAt(last_);
  entry.bytes += kReplyEndBytes;
  entry.end = end;
  entry.stop = stop;
  put(last_, entry);
}

void Transcript::addClosedReply(uint64_t end) {
  Entry entry;
  entry.flags = kCut | kClosed | static_cast<uint32_t>(Role::kAssistant) << kRoleShift;
  entry.end = end;
  (void)addWritten(entry, capacity_, [&](const JsonSink& sink) {
    putText(kReplyBegin, sink);
    putText(kReplyEnd, sink);
  });
}

Transcript::Entry Transcript::last(uint64_t position) const {
  Entry found;
  Entry entry;
  const char* json = nullptr;
  for (uint64_t at = 0; next(&at, &entry, &json) && !entry.is(kUnread) && entry.end <= position;) {
    found = entry;
  }
  return found;
}

uint64_t Transcript::behind(uint64_t prefix_tokens) const {
  Entry entry;
  const char* json = nullptr;
  uint64_t own = 0;
  for (uint64_t at = 0;
       next(&at, &entry, &json) && entry.begin < prefix_tokens && entry.end <= prefix_tokens;) {
    own = at;
  }
  return own;
}

bool Transcript::covers(uint64_t prefix_tokens, uint64_t position) const {
  Entry entry;
  const char* json = nullptr;
  uint64_t known = prefix_tokens;
  for (uint64_t at = behind(prefix_tokens); next(&at, &entry, &json);) {
    if (entry.is(kUnread)) {
      break;  // it begins after all held tokens
    }
    if (entry.begin > known && dropped_ == 0) {
      return false;
    }
    known = entry.end;
  }
  return known >= position;
}

uint64_t Transcript::messageBegin(uint64_t prefix_tokens, uint64_t start) const {
  Entry entry;
  const char* json = nullptr;
  for (uint64_t at = 0; next(&at, &entry, &json);) {
    if (entry.begin <= start && start < entry.end) {
      return std::max(entry.begin, prefix_tokens);
    }
  }
  return start;
}

uint64_t Transcript::lastReplyEnd() const {
  uint64_t end = 0;
  Entry entry;
  const char* json = nullptr;
  for (uint64_t at = 0; next(&at, &entry, &json);) {
    end = entry.is(kReply) && entry.end != UINT64_MAX ? entry.end : end;
  }
  return end;
}

bool Transcript::truncate(uint64_t position, Entry* cut) {
  if (!keeps() || held_) {
    return false;
  }
  uint64_t kept = 0;
  uint64_t last = 0;
  uint32_t messages = 0;
  bool found = false;
  (void)forEachEntry(room_, used_, [&](const Entry& entry, const uint8_t*) {
    const bool unread = entry.is(kUnread);
    if (entry.end > position || (position == 0 && entry.end == 0 && !unread)) {
      found = entry.is(kReply) && entry.text <= position;
      *cut = entry;
      return false;
    }
    last = kept;
    kept += kRecord + entry.bytes;
    ++messages;
    return true;
  });
  wipe(room_ + kept, used_ - kept);
  used_ = kept;
  last_ = last;
  messages_ = messages;
  dropped_ = position == 0 ? 0 : dropped_;
  open_ = false;
  return found;
}

// Then no message is missing before the unread ones.
void Transcript::setUnread(uint64_t at, uint64_t position) {
  while (at < used_) {
    Entry entry = entryAt(at);
    entry.flags &= ~kReply;
    entry.flags |= kUnread;
    entry.begin = entry.text = entry.end = position;
    put(at, entry);
    at += kRecord + entry.bytes;
  }
  dropped_ = 0;
}

void Transcript::setRead(uint64_t at, uint64_t begin, uint64_t end) {
  Entry entry = entryAt(at);
  entry.flags &= ~(kUnread | kReply);
  entry.begin = entry.text = begin;
  entry.end = end;
  put(at, entry);
}

void Transcript::write(const uint8_t* data, uint64_t bytes, uint64_t position, bool with_cut,
                       const JsonSink& sink) {
  putText("[", sink);
  bool first = true;
  (void)forEachEntry(data, bytes, [&](const Entry& entry, const uint8_t* json) {
    const bool goes_on = entry.end == UINT64_MAX;
    if ((entry.is(kCut) && !with_cut) ||
        (goes_on ? position != UINT64_MAX : entry.end > position)) {
      return true;
    }
    putText(first ? "" : ",", sink);
    first = false;
    sink.write(reinterpret_cast<const char*>(json), entry.bytes, sink.user);
    putText(goes_on ? kReplyEnd : "", sink);
    return true;
  });
  putText("]", sink);
}

void Transcript::write(uint64_t from, uint64_t position, const JsonSink& sink) const {
  write(room_ + from, used_ - from, position, false, sink);
}

namespace {

constexpr uint32_t kFlags = (1u << Transcript::kRoleShift) - 1;
constexpr uint32_t kKnown = Transcript::kSystem | Transcript::kReply | Transcript::kUnread |
                            Transcript::kCut | Transcript::kClosed;

}  // namespace

bool Transcript::valid(const uint8_t* data, uint64_t bytes, uint32_t messages, uint64_t position) {
  uint32_t count = 0;
  uint64_t end = 0;
  const bool whole = forEachEntry(data, bytes, [&](const Entry& entry, const uint8_t* json) {
    size_t bad = 0;
    const bool in_order = entry.begin >= end && entry.text >= entry.begin &&
                          entry.end >= entry.text && entry.end <= position;
    if (entry.is(kUnread) && (entry.is(kReply) || entry.begin != entry.end)) {
      return false;
    }
    end = entry.end;
    ++count;
    return in_order &&
           (entry.flags & ~kFlags) >> kRoleShift <= static_cast<uint32_t>(Role::kTool) &&
           (entry.flags & kFlags & ~kKnown) == 0 && (!entry.is(kSystem) || count == 1) &&
           entry.bytes >= 2 && isValidUtf8(reinterpret_cast<const char*>(json), entry.bytes, &bad);
  });
  return whole && count == messages;
}

void Transcript::load(const uint8_t* data, uint64_t bytes, uint32_t dropped) {
  forget();
  if (!keeps()) {
    return;
  }
  (void)forEachEntry(data, bytes, [&](const Entry& entry, const uint8_t* json) {
    const uint64_t most = entry.is(kSystem) ? mostBytes(entry) : capacity_ - systemBytes();
    const bool added = addWritten(entry, most, [&](const JsonSink& sink) {
      sink.write(reinterpret_cast<const char*>(json), entry.bytes, sink.user);
    });
    if (!added) {
      ++dropped_;
      Entry short_one = entry;
      short_one.flags |= kCut;
      (void)addWritten(short_one, capacity_, [&](const JsonSink& sink) {
        putText("{\"role\":", sink);
        writeJsonString(nameOf(entry.role()), sink);
        putText(",\"content\":\"\"}", sink);
      });
    }
    return true;
  });
  dropped_ += dropped;
}

}  // namespace oriel_internal
