// The name index of an object with many members: sorted by hash, length, bytes and place.
#pragma once

#include <cstring>

#include "base/hash.h"
#include "json/json.h"

namespace oriel_internal {

struct JsonName {
  uint32_t hash = 0;
  uint32_t place = 0;  ///< of the member's value: nodes after the object
};

/// Up to this many names are compared one by one.
constexpr uint32_t kMostNamesWithoutIndex = 16;

inline uint32_t nodesOfNames(uint32_t count) {
  return static_cast<uint32_t>((uint64_t{count} * sizeof(JsonName) + sizeof(JsonValue) - 1) /
                               sizeof(JsonValue));
}

inline uint32_t hashOfName(const JsonText& name) {
  return static_cast<uint32_t>(hashBytes(name.data, name.bytes) >> 32);
}

/// Below, at or above 0; equal hashes are compared by bytes.
inline int compareNames(uint32_t hash_a, const JsonText& a, uint32_t hash_b, const JsonText& b) {
  if (hash_a != hash_b) {
    return hash_a < hash_b ? -1 : 1;
  }
  if (a.bytes != b.bytes) {
    return a.bytes < b.bytes ? -1 : 1;
  }
  return a.bytes != 0 ? std::memcmp(a.data, b.data, a.bytes) : 0;
}

inline int compareNames(const JsonValue* object, const JsonName& a, const JsonName& b) {
  return compareNames(a.hash, object[a.place].key(), b.hash, object[b.place].key());
}

}  // namespace oriel_internal
