#include "visual_line.h"

#include <algorithm>
#include <iterator>

#ifdef ORIEL_FRIBIDI
#include <fribidi.h>
#endif

#include "utf8.h"

namespace desktop {
namespace {

struct Range {
  uint32_t first, last;
};
/// Right-to-left scripts and direction marks.
constexpr Range kLeftwards[] = {{0x0590, 0x08ff}, {0x200f, 0x200f},   {0x202b, 0x202b},
                                {0x202e, 0x202e}, {0x2067, 0x2067},   {0xfb1d, 0xfdff},
                                {0xfe70, 0xfefe}, {0x10800, 0x10fff}, {0x1e800, 0x1efff}};
constexpr Range kNothing[] = {{0x00ad, 0x00ad}, {0x061c, 0x061c},  {0x200b, 0x200f},
                              {0x202a, 0x202e}, {0x2060, 0x206f},  {0xfe00, 0xfe0f},
                              {0xfeff, 0xfeff}, {0xe0000, 0xe0fff}};

template <size_t kCount>
bool isIn(const Range (&ranges)[kCount], uint32_t character) {
  return std::any_of(std::begin(ranges), std::end(ranges), [character](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

std::vector<VisualCharacter> charactersOf(const std::string& text, size_t begin, size_t end) {
  std::vector<VisualCharacter> characters;
  for (size_t at = begin; at < end;) {
    size_t next = 0;
    const uint32_t character = utf8::decode(text, at, &next);
    characters.push_back({character, at, false});
    at = next;
  }
  return characters;
}

#ifdef ORIEL_FRIBIDI
FriBidiParType directionOf(const std::vector<VisualCharacter>& characters) {
  std::vector<FriBidiChar> letters;
  for (const VisualCharacter& one : characters) {
    letters.push_back(one.character);
  }
  std::vector<FriBidiCharType> types(letters.size());
  const auto count = static_cast<FriBidiStrIndex>(letters.size());
  fribidi_get_bidi_types(letters.data(), count, types.data());
  return fribidi_get_par_direction(types.data(), count);
}

VisualLine ordered(const std::vector<VisualCharacter>& logical, FriBidiParType direction) {
  VisualLine line;
  std::vector<FriBidiChar> letters;
  for (const VisualCharacter& one : logical) {
    letters.push_back(one.character);
  }
  const size_t count = letters.size();
  std::vector<FriBidiChar> drawn(count + 1);
  std::vector<FriBidiStrIndex> places(count);
  std::vector<FriBidiLevel> levels(count);
  line.leftwards = FRIBIDI_IS_RTL(direction);
  if (fribidi_log2vis(letters.data(), static_cast<FriBidiStrIndex>(count), &direction, drawn.data(),
                      nullptr, places.data(), levels.data()) == 0) {
    line.characters = logical;
    return line;
  }
  for (size_t i = 0; i < count; i++) {
    const auto from = static_cast<size_t>(places[i]);
    line.characters.push_back(
        {drawn[i], logical[from].at, FRIBIDI_LEVEL_IS_RTL(levels[from]) != 0});
  }
  return line;
}
#endif

}  // namespace

bool showsNothing(uint32_t character) { return isIn(kNothing, character); }

bool hasLeftwards(const std::string& text, const Line& line) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(line.begin);
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(line.end);
  if (std::all_of(begin, end, is_ascii)) {
    return false;
  }
  const std::vector<VisualCharacter> all = charactersOf(text, line.begin, line.end);
  return std::any_of(all.begin(), all.end(),
                     [](const VisualCharacter& one) { return isIn(kLeftwards, one.character); });
}

VisualLine visualLine(const std::string& text, const Line& line) {
  VisualLine visual;
  visual.characters = charactersOf(text, line.begin, line.end);
#ifdef ORIEL_FRIBIDI
  const size_t before = line.begin == 0 ? std::string::npos : text.rfind('\n', line.begin - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const Line paragraph = {begin, std::min(text.find('\n', line.begin), text.size())};
  if (!visual.characters.empty() && hasLeftwards(text, paragraph)) {
    visual =
        ordered(visual.characters, directionOf(charactersOf(text, paragraph.begin, paragraph.end)));
  }
#endif
  auto& all = visual.characters;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const VisualCharacter& one) { return showsNothing(one.character); }),
            all.end());
  return visual;
}

}  // namespace desktop
