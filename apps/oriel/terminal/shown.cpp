#include "terminal/shown.h"

#include "terminal/characters.h"

namespace cli {
namespace {

/// Invisible or direction-changing characters: Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt), line
/// and paragraph separators, and annotations (U+FFF9 to U+FFFB).
constexpr CharacterRange kHidden[] = {
    {0x00AD, 0x00AD},   {0x034F, 0x034F},  {0x061C, 0x061C}, {0x115F, 0x1160}, {0x17B4, 0x17B5},
    {0x180B, 0x180F},   {0x200B, 0x200F},  {0x2028, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},  {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

/// Joining scripts, ideographs and emoji begin here; Latin, Greek and Cyrillic come before.
constexpr char32_t kFirstShaped = 0x0600;

bool isJoiner(char32_t c) { return c == 0x200C || c == 0x200D; }

bool isSelector(char32_t c) {
  return (c >= 0x180B && c <= 0x180D) || (c >= 0xFE00 && c <= 0xFE0F) ||
         (c >= 0xE0100 && c <= 0xE01EF);
}

// True if the character is written unchanged. Only one such mark per base character, so that a row of them cannot hide
// text.
bool stays(char32_t c, ShownBefore* before) {
  if (!isIn(kHidden, c)) {
    *before = {c, false};
    return true;
  }
  const bool of_emoji = c >= 0xFE00 && c <= 0xFE0F && before->base > ' ';  // also after digits
  const bool shapes = isSelector(c)
                          ? !before->selected && (before->base >= kFirstShaped || of_emoji)
                          : isJoiner(c) && before->base >= kFirstShaped;
  *before = {shapes && isSelector(c) ? before->base : 0, true};
  return shapes;
}

bool writeEscape(char32_t c, std::FILE* stream) noexcept {
  if (c < 0x10000) {
    return std::fprintf(stream, "\\u%04x", static_cast<unsigned>(c)) > 0;
  }
  const auto pair = static_cast<unsigned>(c - 0x10000);
  return std::fprintf(stream, "\\u%04x\\u%04x", 0xD800 + (pair >> 10), 0xDC00 + (pair & 0x3FF)) > 0;
}

}  // namespace

bool showsAll(std::string_view text) {
  ShownBefore before;
  for (size_t at = 0; at < text.size();) {
    if (!stays(nextCharacter(text, &at), &before)) {
      return false;
    }
  }
  return true;
}

bool writeShown(std::string_view text, std::FILE* stream, ShownBefore* before) noexcept {
  size_t written = 0;
  const auto writeUntil = [&](size_t end) {
    const size_t bytes = end - written;
    const bool ok = std::fwrite(text.data() + written, 1, bytes, stream) == bytes;
    written = end;
    return ok;
  };
  bool ok = true;
  for (size_t at = 0; ok && at < text.size();) {
    const size_t begin = at;
    const char32_t c = nextCharacter(text, &at);
    if (!stays(c, before)) {
      ok = writeUntil(begin) && writeEscape(c, stream);
      written = at;
    }
  }
  return ok && writeUntil(text.size());
}

}  // namespace cli
