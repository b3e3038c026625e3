#include "visual_line.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#ifdef ORIEL_ICU
#include <unicode/ubidi.h>
#include <unicode/uchar.h>
#include <unicode/ushape.h>
#endif

#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace desktop {
namespace {

struct StyledLine {
  std::string text;
  std::vector<Span> spans;
  bool fence = false;
};

/// Splits the terminal output into lines. ReplyView marks styles with SGR codes and resets them at each line's end.
std::vector<StyledLine> linesOf(const std::string& sent) {
  std::vector<StyledLine> lines(1);
  std::string code;
  for (size_t at = 0; at < sent.size();) {
    if (sent.compare(at, 2, "\033[") == 0) {
      const size_t end = sent.find('m', at);
      code = sent.substr(at + 2, end - at - 2);
      at = end + 1;
      continue;
    }
    if (sent[at] == '\n') {
      lines.emplace_back();
      at++;
      continue;
    }
    StyledLine& line = lines.back();
    const size_t begin = line.text.size();
    line.text += sent[at++];
    line.fence = line.fence || (code == cli::kReplyFence && begin == 0);
    const bool bold = code == cli::kReplyBold;
    if (!bold && code != cli::kReplyCode) {
      continue;
    }
    const TextStyle style = bold ? TextStyle::kBold : TextStyle::kCode;
    if (!line.spans.empty() && line.spans.back().end == begin && line.spans.back().style == style) {
      line.spans.back().end++;
    } else {
      line.spans.push_back({begin, begin + 1, style});
    }
  }
  for (StyledLine& line : lines) {
    if (line.text.compare(0, 1, "|") == 0) {
      line.spans = {{0, line.text.size(), TextStyle::kCode}};  // tables keep their columns
    }
  }
  return lines;
}

void append(const StyledLine& line, MarkdownBlock* block, bool first) {
  block->text += first ? "" : "\n";
  const size_t begin = block->text.size();
  block->text += line.text;
  for (const Span& span : line.spans) {
    block->spans.push_back({begin + span.begin, begin + span.end, span.style});
  }
}

}  // namespace

std::vector<MarkdownBlock> blocksOf(const std::string& markdown) {
  cli::ReplyView view({/*wraps=*/false, /*markdown=*/true, /*draws_blocks=*/true},
                      [] { return std::numeric_limits<size_t>::max() / 2; });
  std::string sent = view.take(cli::terminalSafe(markdown));
  sent += view.end();
  std::vector<MarkdownBlock> blocks;
  bool begins = true;
  bool in_code = false;
  for (const StyledLine& line : linesOf(sent)) {
    if (line.fence) {
      in_code = !in_code;
      begins = true;
      if (in_code) {
        blocks.push_back({true, "", {}});
      }
      continue;
    }
    if (begins && !in_code) {
      if (line.text.empty()) {
        continue;  // blocks stand apart without empty lines
      }
      blocks.emplace_back();
    }
    append(line, &blocks.back(), begins);
    begins = false;
  }
  for (MarkdownBlock& block : blocks) {
    while (!block.code && !block.text.empty() && block.text.back() == '\n') {
      block.text.pop_back();
    }
  }
  if (blocks.empty()) {
    blocks.emplace_back();
  }
  return blocks;
}

}  // namespace desktop

namespace desktop::utf8 {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

size_t lengthOf(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead < 0xe0) {
    return 2;
  }
  if (lead >= 0xe0 && lead < 0xf0) {
    return 3;
  }
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

bool isTail(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

uint32_t decode(const std::string& text, size_t offset, size_t* next) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  const size_t length = lengthOf(lead);
  *next = offset + 1;
  if (length == 0 || offset + length > text.size()) {
    return kReplacement;
  }
  uint32_t character = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    if (!isTail(text[offset + i])) {
      return kReplacement;
    }
    character = character << 6 | (static_cast<unsigned char>(text[offset + i]) & 0x3f);
  }
  *next = offset + length;
  return character;
}

std::string encode(uint32_t character) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | (character >> shift & 0x3f));
  };
  if (character < 0x80) {
    return {static_cast<char>(character)};
  }
  if (character < 0x800) {
    return {static_cast<char>(0xc0 | character >> 6), tail(0)};
  }
  return {static_cast<char>(0xe0 | character >> 12), tail(6), tail(0)};
}

size_t next(const std::string& text, size_t offset) {
  size_t end = offset;
  if (offset < text.size()) {
    decode(text, offset, &end);
  }
  return end;
}

size_t previous(const std::string& text, size_t offset) {
  if (offset == 0) {
    return 0;
  }
  size_t begin = offset - 1;
  while (begin > 0 && offset - begin < 4 && isTail(text[begin])) {
    begin--;
  }
  // A stray tail is a character of its own.
  return next(text, begin) == offset ? begin : offset - 1;
}

size_t offsetOf(const std::string& text, size_t count) {
  size_t offset = 0;
  while (count-- > 0 && offset < text.size()) {
    offset = next(text, offset);
  }
  return offset;
}

}  // namespace desktop::utf8

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
  characters.reserve(end - begin);
  for (size_t at = begin; at < end;) {
    size_t next = 0;
    const uint32_t character = utf8::decode(text, at, &next);
    characters.push_back({character, at, false});
    at = next;
  }
  return characters;
}

#ifdef ORIEL_ICU
constexpr uint32_t kInvisible = 0xfeff;

/// UTF-16 text with the character index of each unit.
struct Units {
  std::u16string text;
  std::vector<size_t> character;

  int32_t size() const { return static_cast<int32_t>(text.size()); }
  /// Index of the first unit of a character.
  int32_t of(size_t index) const {
    const auto found = std::lower_bound(character.begin(), character.end(), index);
    return static_cast<int32_t>(found - character.begin());
  }
};

Units unitsOf(const std::vector<VisualCharacter>& characters) {
  Units units;
  units.text.reserve(characters.size());
  units.character.reserve(characters.size());
  for (size_t i = 0; i < characters.size(); i++) {
    auto character = static_cast<UChar32>(characters[i].character);
    if (u_charDirection(character) == U_BLOCK_SEPARATOR) {
      character = ' ';  // ubidi_setLine fails across paragraphs
    }
    char16_t pair[2] = {};
    size_t count = 0;
    U16_APPEND_UNSAFE(pair, count, character);
    units.text.append(pair, count);
    units.character.insert(units.character.end(), count, i);
  }
  return units;
}

bool isMark(uint32_t character) {
  return (U_GET_GC_MASK(static_cast<UChar32>(character)) & U_GC_M_MASK) != 0;
}

/// Replaces the Arabic letters of `count` units by their joined forms. Marks keep their character.
void joinLetters(const Units& units, int32_t begin, int32_t count,
                 std::vector<VisualCharacter>* characters) {
  const char16_t* const text = units.text.data() + begin;
  std::u16string joined(static_cast<size_t>(count), u' ');
  UErrorCode status = U_ZERO_ERROR;
  u_shapeArabic(
      text, count, joined.data(), count,
      U_SHAPE_LETTERS_SHAPE | U_SHAPE_TEXT_DIRECTION_LOGICAL | U_SHAPE_LENGTH_FIXED_SPACES_NEAR,
      &status);
  if (U_FAILURE(status)) {
    return;
  }
  for (size_t i = 0; i < joined.size(); i++) {
    const size_t at = units.character[static_cast<size_t>(begin) + i];
    uint32_t& character = (*characters)[at].character;
    if (joined[i] != text[i] && !isMark(character)) {
      // A space replaces the alef of a lam-alef ligature.
      character = joined[i] == u' ' ? kInvisible : joined[i];
    }
  }
}

/// Appends [begin, end) from right to left. Marks stay after their letter, as fonts expect.
void appendLeftwards(const std::vector<VisualCharacter>& logical, size_t begin, size_t end,
                     std::vector<VisualCharacter>* to) {
  while (end > begin) {
    size_t letter = end - 1;
    while (letter > begin && isMark(logical[letter].character)) {
      letter--;
    }
    for (size_t i = letter; i < end; i++) {
      const UChar32 mirrored = u_charMirror(static_cast<UChar32>(logical[i].character));
      to->push_back({static_cast<uint32_t>(mirrored), logical[i].at, true});
    }
    end = letter;
  }
}

/// Orders characters [begin, end) of a paragraph as one line. Empty on failure.
VisualLine ordered(std::vector<VisualCharacter> paragraph, size_t begin, size_t end) {
  VisualLine visual;
  const Units units = unitsOf(paragraph);
  const icu::LocalUBiDiPointer whole(ubidi_open());
  const icu::LocalUBiDiPointer line(ubidi_open());
  UErrorCode status = U_ZERO_ERROR;
  ubidi_setPara(whole.getAlias(), units.text.data(), units.size(), UBIDI_DEFAULT_LTR, nullptr,
                &status);
  const int32_t first = units.of(begin);
  const int32_t last = units.of(end);
  ubidi_setLine(whole.getAlias(), first, last, line.getAlias(), &status);
  const int32_t runs = ubidi_countRuns(line.getAlias(), &status);
  if (U_FAILURE(status)) {
    return visual;
  }
  joinLetters(units, first, last - first, &paragraph);
  visual.leftwards = (ubidi_getParaLevel(line.getAlias()) & 1) != 0;
  for (int32_t run = 0; run < runs; run++) {
    int32_t start = 0;
    int32_t length = 0;
    const UBiDiDirection direction = ubidi_getVisualRun(line.getAlias(), run, &start, &length);
    const size_t from = units.character[static_cast<size_t>(first + start)];
    const size_t to = units.character[static_cast<size_t>(first + start + length - 1)] + 1;
    if (direction == UBIDI_RTL) {
      appendLeftwards(paragraph, from, to, &visual.characters);
    } else {
      const auto at = paragraph.begin();
      visual.characters.insert(visual.characters.end(), at + static_cast<std::ptrdiff_t>(from),
                               at + static_cast<std::ptrdiff_t>(to));
    }
  }
  return visual;
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
#ifdef ORIEL_ICU
  const size_t before = line.begin == 0 ? std::string::npos : text.rfind('\n', line.begin - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const Line paragraph = {begin, std::min(text.find('\n', line.end), text.size())};
  if (line.begin < line.end && hasLeftwards(text, paragraph)) {
    const std::vector<VisualCharacter> all = charactersOf(text, paragraph.begin, paragraph.end);
    const auto indexOf = [&all](size_t byte) {
      const auto found =
          std::lower_bound(all.begin(), all.end(), byte,
                           [](const VisualCharacter& one, size_t value) { return one.at < value; });
      return static_cast<size_t>(found - all.begin());
    };
    visual = ordered(all, indexOf(line.begin), indexOf(line.end));
  }
#endif
  if (visual.characters.empty()) {
    visual.characters = charactersOf(text, line.begin, line.end);
  }
  auto& all = visual.characters;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const VisualCharacter& one) { return showsNothing(one.character); }),
            all.end());
  return visual;
}

std::vector<Line> wrapText(const std::string& text, float width, const Advance& advance) {
  std::vector<Line> lines;
  size_t begin = 0;
  size_t break_at = 0;  // after the last space of the line; begin: no space
  float used = 0;
  for (size_t at = 0; at < text.size();) {
    size_t next = 0;
    const uint32_t character = utf8::decode(text, at, &next);
    if (character == '\n') {
      lines.push_back({begin, at});
      begin = break_at = next;
      used = 0;
    } else {
      used += advance(character, at);
      if (character == ' ') {
        break_at = next;  // spaces may exceed the width
      } else if (used > width && at > begin) {
        const size_t cut = break_at > begin ? break_at : at;
        lines.push_back({begin, cut});
        begin = break_at = cut;
        used = widthOf(text, cut, next, advance);
      }
    }
    at = next;
  }
  lines.push_back({begin, text.size()});
  return lines;
}

float widthOf(const std::string& text, size_t begin, size_t end, const Advance& advance) {
  float used = 0;
  for (size_t at = begin; at < end;) {
    size_t next = 0;
    used += advance(utf8::decode(text, at, &next), at);
    at = next;
  }
  return used;
}

size_t lineOf(const std::vector<Line>& lines, size_t offset) {
  size_t found = 0;
  for (size_t i = 0; i < lines.size() && lines[i].begin <= offset; i++) {
    found = i;
  }
  return found;
}

namespace {

bool isSpace(char c) { return c == ' ' || c == '\n' || c == '\t'; }

}  // namespace

void TextEdit::setText(std::string text) {
  text_ = std::move(text);
  caret_ = anchor_ = text_.size();
}

void TextEdit::insert(const std::string& text) {
  const size_t begin = selectionBegin();
  text_.replace(begin, selectionEnd() - begin, text);
  caret_ = anchor_ = begin + text.size();
}

void TextEdit::erase(bool forward, bool word) {
  if (caret_ == anchor_) {
    anchor_ = neighbour(forward, word);
  }
  insert("");
}

void TextEdit::moveTo(size_t offset, bool extend) {
  caret_ = std::min(offset, text_.size());
  if (!extend) {
    anchor_ = caret_;
  }
}

void TextEdit::step(bool forward, bool word, bool extend) {
  if (!extend && caret_ != anchor_) {
    moveTo(forward ? selectionEnd() : selectionBegin(), false);
  } else {
    moveTo(neighbour(forward, word), extend);
  }
}

void TextEdit::selectAll() {
  anchor_ = 0;
  caret_ = text_.size();
}

void TextEdit::selectWordAt(size_t offset) {
  anchor_ = caret_ = std::min(offset, text_.size());
  while (anchor_ > 0 && !isSpace(text_[anchor_ - 1])) {
    anchor_--;
  }
  while (caret_ < text_.size() && !isSpace(text_[caret_])) {
    caret_++;
  }
}

size_t TextEdit::neighbour(bool forward, bool word) const {
  if (!word) {
    return forward ? utf8::next(text_, caret_) : utf8::previous(text_, caret_);
  }
  size_t at = caret_;
  if (forward) {
    while (at < text_.size() && isSpace(text_[at])) at++;
    while (at < text_.size() && !isSpace(text_[at])) at++;
  } else {
    while (at > 0 && isSpace(text_[at - 1])) at--;
    while (at > 0 && !isSpace(text_[at - 1])) at--;
  }
  return at;
}

}  // namespace desktop
