#include "exec/prefix.h"

#include <algorithm>
#include <new>

#include "exec/session_context.h"

namespace oriel_internal {

uint64_t SessionContext::prefixTokens() const { return prefix != nullptr ? prefix->tokens : 0; }

Prefix* Prefix::create(uint32_t capacity, uint64_t transcript_bytes, Arena* arena) {
  Prefix* const prefix = arena->take<Prefix>(1);
  int32_t* const ids = arena->take<int32_t>(capacity);
  Transcript transcript;
  transcript.init(transcript_bytes, arena);
  if (prefix == nullptr || ids == nullptr) {
    return nullptr;
  }
  new (prefix) Prefix();
  prefix->capacity = capacity;
  prefix->ids = ids;
  prefix->transcript = transcript;
  return prefix;
}

void Prefix::forget() {
  std::fill_n(ids, capacity, 0);
  transcript.forget();
  Prefix empty;
  empty.capacity = capacity;
  empty.ids = ids;
  empty.transcript = transcript;
  *this = empty;
}

}  // namespace oriel_internal
