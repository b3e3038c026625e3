// The mark that some editors write at the start of a UTF-8 file.
#pragma once

#include <cstddef>
#include <cstring>

namespace oriel_internal {

constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

/// Bytes of the mark at the start of a text: 3 or 0.
inline size_t byteOrderMarkBytes(const char* text, size_t bytes) {
  constexpr size_t kBytes = sizeof(kByteOrderMark) - 1;
  return bytes >= kBytes && std::memcmp(text, kByteOrderMark, kBytes) == 0 ? kBytes : 0;
}

}  // namespace oriel_internal
