// Text for the window: Markdown blocks, characters and visual lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace desktop {

// Splits Markdown into blocks of styled text, with the parser of the terminal program.

enum class TextStyle { kPlain, kBold, kCode };

/// A range of bytes in one style.
struct Span {
  size_t begin = 0;
  size_t end = 0;
  TextStyle style = TextStyle::kPlain;
};

struct MarkdownBlock {
  bool code = false;  ///< a fenced block, without its fences
  std::string text;
  std::vector<Span> spans;  ///< ascending; all other text is plain
};

/// Accepts incomplete text. Returns at least one block.
std::vector<MarkdownBlock> blocksOf(const std::string& markdown);

}  // namespace desktop

namespace desktop::utf8 {

// Steps through UTF-8 text. Bytes that are not UTF-8 count as one character each.

/// Decodes the character at `offset` (U+FFFD for a wrong byte). *next: offset of the next one.
uint32_t decode(const std::string& text, size_t offset, size_t* next);
/// UTF-8 of a character up to U+FFFF.
std::string encode(uint32_t character);
/// Offsets of the next and the previous character, within the text.
size_t next(const std::string& text, size_t offset);
size_t previous(const std::string& text, size_t offset);
/// Offset of character number `count`; the text's size if it has fewer.
size_t offsetOf(const std::string& text, size_t count);

}  // namespace desktop::utf8

namespace desktop {

// Wraps text in a column, and maps points to bytes.

struct Line {
  size_t begin = 0;  ///< bytes of the text
  size_t end = 0;    ///< excludes the newline or space at which it broke
};

/// The width of the character at byte `at`, in the unit of the column's width.
using Advance = std::function<float(uint32_t character, size_t at)>;

/// Breaks at newlines. A line wider than `width` breaks after a space, or inside a word that is wider than a line.
/// Returns at least one line.
std::vector<Line> wrapText(const std::string& text, float width, const Advance& advance);

float widthOf(const std::string& text, size_t begin, size_t end, const Advance& advance);
/// The line that shows a caret before byte `offset`.
size_t lineOf(const std::vector<Line>& lines, size_t offset);

// Puts the characters of a line into display order, left to right.

struct VisualCharacter {
  uint32_t character = 0;  ///< Arabic letters in their joined form
  size_t at = 0;           ///< offset in the text, in bytes
  bool leftwards = false;  ///< part of right-to-left text
};

struct VisualLine {
  std::vector<VisualCharacter> characters;
  bool leftwards = false;  ///< the paragraph is right-to-left
};

/// Omits invisible characters. Without ICU the order is logical.
VisualLine visualLine(const std::string& text, const Line& line);
/// True if the line has right-to-left characters.
bool hasLeftwards(const std::string& text, const Line& line);
/// True for joiners, direction marks and variation selectors.
bool showsNothing(uint32_t character);

// Editable text with a caret and a selection. Offsets are bytes, always between characters.

class TextEdit {
 public:
  const std::string& text() const { return text_; }
  size_t caret() const { return caret_; }
  size_t selectionBegin() const { return std::min(caret_, anchor_); }
  size_t selectionEnd() const { return std::max(caret_, anchor_); }
  std::string selected() const {
    return text_.substr(selectionBegin(), selectionEnd() - selectionBegin());
  }

  void setText(std::string text);
  /// Replaces the selection.
  void insert(const std::string& text);
  /// The selection, or else the character or word on one side.
  void erase(bool forward, bool word);
  /// `extend`: the selection grows to the offset; otherwise it is cleared.
  void moveTo(size_t offset, bool extend);
  void step(bool forward, bool word, bool extend);
  void selectAll();
  void selectWordAt(size_t offset);

 private:
  size_t neighbour(bool forward, bool word) const;

  std::string text_;
  size_t caret_ = 0;
  size_t anchor_ = 0;
};

}  // namespace desktop
