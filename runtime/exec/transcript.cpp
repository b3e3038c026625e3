#include "exec/transcript.h"

#include <algorithm>
#include <cstring>

#include "base/wipe.h"
#include "text/utf8.h"

namespace oriel_internal {
namespace {

constexpr uint64_t kRecord = sizeof(Transcript::Entry);
constexpr char kReplyBegin[] = "{\"role\":\"assistant\",\"content\":\"";
constexpr char kReplyEnd[] = "\"}";
constexpr uint64_t kReplyEndBytes = sizeof(kReplyEnd) - 1;

/// Where JSON goes that is counted first.
struct Cursor {
  uint8_t* to = nullptr;  ///< null: counts
  uint64_t bytes = 0;

  JsonSink sink() {
    return {[](const char* text, size_t n, void* user) {
              Cursor& self = *static_cast<Cursor*>(user);
              if (self.to != nullptr) {
                std::memcpy(self.to + self.bytes, text, n);
              }
              self.bytes += n;
            },
            this};
  }
};

void putText(const char* text, const JsonSink& sink) {
  sink.write(text, std::strlen(text), sink.user);
}

// Calls visit(entry, json) for every message that is whole.
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
  open_ = tells_ = false;
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

void Transcript::dropOldest() {
  const uint64_t kept =
      (entryAt(0).flags & kSystem) != 0 ? kRecord + uint64_t{entryAt(0).bytes} : 0;
  const uint64_t gone = kRecord + uint64_t{entryAt(kept).bytes};
  std::memmove(room_ + kept, room_ + kept + gone, static_cast<size_t>(used_ - kept - gone));
  wipe(room_ + used_ - gone, gone);
  used_ -= gone;
  last_ -= std::min(last_, gone);
  --messages_;
  ++dropped_;
}

// A reply that alone is larger than the room.
void Transcript::dropLatest() {
  wipe(room_ + last_, used_ - last_);
  used_ = last_;
  --messages_;
  ++dropped_;
  tells_ = false;
}

// The latest message, where it is a reply that goes on, and the system message stay.
bool Transcript::makeRoom(uint64_t bytes) {
  while (bytes > capacity_ - used_) {
    const bool has_system = messages_ != 0 && (entryAt(0).flags & kSystem) != 0;
    if (messages_ <= (has_system ? 1u : 0u) + (tells_ ? 1u : 0u)) {
      return false;
    }
    dropOldest();
  }
  return true;
}

// What is larger than the whole room is dropped, and nothing for its sake.
template <typename Write>
bool Transcript::addWritten(bool is_system, const Entry& given, const Write& write) {
  if (!keeps() || held_) {
    return false;
  }
  Cursor count;
  write(count.sink());
  const uint64_t system =
      messages_ != 0 && (entryAt(0).flags & kSystem) != 0 ? kRecord + entryAt(0).bytes : 0;
  if (count.bytes + kRecord > capacity_ - system || !makeRoom(count.bytes + kRecord)) {
    ++dropped_;
    return false;
  }
  Entry entry = given;
  entry.bytes = static_cast<uint32_t>(count.bytes);
  entry.flags |= is_system && messages_ == 0 && dropped_ == 0 ? kSystem : 0;
  put(used_, entry);
  Cursor out = {room_ + used_ + kRecord, 0};
  write(out.sink());
  last_ = used_;
  used_ += kRecord + count.bytes;
  ++messages_;
  return true;
}

void Transcript::add(const JsonText& role, const JsonText& text, uint64_t begin, uint64_t end) {
  Entry entry;
  entry.begin = entry.text = begin;
  entry.end = end;
  (void)addWritten(role.is("system"), entry, [&](const JsonSink& sink) {
    putText("{\"role\":", sink);
    writeJsonString(role, sink);
    putText(",\"content\":", sink);
    writeJsonString(text, sink);
    putText("}", sink);
  });
}

void Transcript::add(const JsonValue& message, uint64_t begin, uint64_t end) {
  Entry entry;
  entry.begin = entry.text = begin;
  entry.end = end;
  const JsonValue* const role = message.find("role");
  (void)addWritten(role != nullptr && role->isString() && role->text().is("system"), entry,
                   [&](const JsonSink& sink) { writeJson(message, sink); });
}

void Transcript::open(uint64_t begin, uint64_t text) {
  if (held_) {
    return;
  }
  Entry entry;
  entry.flags = kReply;
  entry.begin = begin;
  entry.text = text;
  entry.end = UINT64_MAX;
  open_ = keeps();
  tells_ = addWritten(false, entry, [&](const JsonSink& sink) { putText(kReplyBegin, sink); });
}

void Transcript::extend(const char* text, size_t bytes) {
  if (!tells_ || bytes == 0) {
    return;
  }
  Cursor count;
  writeJsonEscaped({text, bytes}, count.sink());
  if (!makeRoom(count.bytes + kReplyEndBytes)) {
    dropLatest();
    return;
  }
  Cursor out = {room_ + used_, 0};
  writeJsonEscaped({text, bytes}, out.sink());
  used_ += count.bytes;
  Entry entry = entryAt(last_);
  entry.bytes += static_cast<uint32_t>(count.bytes);
  put(last_, entry);
}

void Transcript::close(uint64_t end) {
  open_ = false;
  if (tells_ && !makeRoom(kReplyEndBytes)) {
    dropLatest();
  }
  if (!tells_) {
    return;
  }
  tells_ = false;
  std::memcpy(room_ + used_, kReplyEnd, kReplyEndBytes);
  used_ += kReplyEndBytes;
  Entry entry = entryAt(last_);
  entry.bytes += kReplyEndBytes;
  entry.end = end;
  put(last_, entry);
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
    const bool unread = (entry.flags & kUnread) != 0;
    if (entry.end > position || (position == 0 && entry.end == 0 && !unread)) {
      found = (entry.flags & kReply) != 0 && entry.text < position;
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
  open_ = tells_ = false;
  return found;
}

// None is missing then from what is read.
void Transcript::setUnread(uint64_t at, uint64_t position) {
  while (at < used_) {
    Entry entry = entryAt(at);
    entry.flags = (entry.flags & kSystem) | kUnread;
    entry.begin = entry.text = entry.end = position;
    put(at, entry);
    at += kRecord + entry.bytes;
  }
  dropped_ = 0;
}

void Transcript::setRead(uint64_t at, uint64_t begin, uint64_t end) {
  Entry entry = entryAt(at);
  entry.flags &= kSystem;
  entry.begin = entry.text = begin;
  entry.end = end;
  put(at, entry);
}

void Transcript::write(const uint8_t* data, uint64_t bytes, uint64_t position,
                       const JsonSink& sink) {
  putText("[", sink);
  bool first = true;
  (void)forEachEntry(data, bytes, [&](const Entry& entry, const uint8_t* json) {
    const bool goes_on = entry.end == UINT64_MAX;
    if (goes_on ? position != UINT64_MAX : entry.end > position) {
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

void Transcript::write(uint64_t position, const JsonSink& sink) const {
  write(room_, used_, position, sink);
}

bool Transcript::valid(const uint8_t* data, uint64_t bytes, uint32_t messages, uint64_t position) {
  uint32_t count = 0;
  uint64_t end = 0;
  const bool whole = forEachEntry(data, bytes, [&](const Entry& entry, const uint8_t* json) {
    size_t bad = 0;
    const bool in_order = entry.begin >= end && entry.text >= entry.begin &&
                          entry.end >= entry.text && entry.end <= position;
    const bool unread = (entry.flags & kUnread) != 0;
    if (unread && ((entry.flags & kReply) != 0 || entry.begin != entry.end)) {
      return false;
    }
    end = entry.end;
    ++count;
    return in_order && entry.flags <= (kSystem | kReply | kUnread) &&
           ((entry.flags & kSystem) == 0 || count == 1) && entry.bytes >= 2 &&
           isValidUtf8(reinterpret_cast<const char*>(json), entry.bytes, &bad);
  });
  return whole && count == messages;
}

void Transcript::load(const uint8_t* data, uint64_t bytes, uint32_t dropped) {
  forget();
  if (!keeps()) {
    return;
  }
  (void)forEachEntry(data, bytes, [&](const Entry& entry, const uint8_t* json) {
    Entry bare = entry;
    bare.flags &= ~kSystem;
    (void)addWritten((entry.flags & kSystem) != 0, bare, [&](const JsonSink& sink) {
      sink.write(reinterpret_cast<const char*>(json), entry.bytes, sink.user);
    });
    return true;
  });
  dropped_ += dropped;
}

}  // namespace oriel_internal
