// The mark that some editors write in front of UTF-8.
#pragma once

#include <cstddef>
#include <cstring>

namespace oriel_internal {

constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

/// Bytes of the mark at the beginning of a file's text, which are no part of it: 3 or 0.
inline size_t byteOrderMarkBytes(const char* text, size_t bytes) {
  constexpr size_t kBytes = sizeof(kByteOrderMark) - 1;
  return bytes >= kBytes && std::memcmp(text, kByteOrderMark, kBytes) == 0 ? kBytes : 0;
}

}  // namespace oriel_internal
