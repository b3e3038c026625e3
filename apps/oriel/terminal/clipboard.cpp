#include "terminal/clipboard.h"

#include <algorithm>
#include <cstdint>

#include "terminal/terminal.h"

namespace cli {
namespace {

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace

bool copyToClipboard(const std::string& text) {
  if (!takesEscapes() || text.size() > kMostCopiedBytes) {
    return false;
  }
  tell("\033]52;c;" + base64(text) + "\a");
  return true;
}

}  // namespace cli
