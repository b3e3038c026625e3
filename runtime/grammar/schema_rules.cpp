#include "grammar/schema_rules.h"

#include <algorithm>

namespace oriel_internal {
namespace {

constexpr char kAndMore[] = "\"...\"";
constexpr size_t kMostEntryBytes = 80;

}  // namespace

bool IgnoredKeywords::has(const char* entry, size_t bytes) const {
  const char* const end = json_ + bytes_;
  return std::search(json_, end, entry, entry + bytes) != end;
}

void IgnoredKeywords::add(const char* before, const JsonText& name) {
  if (full_ && bytes_ != 0) {
    return;
  }
  char entry[6 * kMostEntryBytes + 32];  // an escape has up to six bytes
  JsonRoom room = {entry, 0};
  const JsonSink sink = room.sink();
  sink.write("\"", 1, sink.user);
  writeJsonEscaped(before, sink);
  writeJsonEscaped({name.data, std::min<size_t>(name.bytes, kMostEntryBytes)}, sink);
  sink.write("\"", 1, sink.user);
  if (has(entry, room.bytes)) {
    return;
  }
  // Bytes before the closing bracket; then a comma, a blank, and room for the "..." mark.
  const size_t used = bytes_ == 0 ? 1 : bytes_ - 1;
  full_ = used + 2 + room.bytes + 2 + sizeof(kAndMore) + 2 > kBytes;
  const char* const added = full_ ? kAndMore : entry;
  const size_t added_bytes = full_ ? sizeof(kAndMore) - 1 : room.bytes;
  char* at = json_ + used;
  if (bytes_ == 0) {
    json_[0] = '[';
  } else {
    *at++ = ',';
    *at++ = ' ';
  }
  at = std::copy(added, added + added_bytes, at);
  *at++ = ']';
  *at = '\0';
  bytes_ = static_cast<size_t>(at - json_);
}

}  // namespace oriel_internal
