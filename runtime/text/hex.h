// Hexadecimal digits.
#pragma once

namespace oriel_internal {

/// The value of a hexadecimal digit; -1 for any other character.
inline int hexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace oriel_internal
