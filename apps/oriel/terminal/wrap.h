// Iterates over UTF-8 characters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// Stands for invalid bytes.
constexpr char32_t kReplacement = 0xFFFD;

/// Length of a character that begins with `lead`; also 1 for invalid bytes.
size_t characterBytes(unsigned char lead);

/// Reads the character at *at and advances: kReplacement for incomplete bytes. Accepts overlong forms and surrogates.
char32_t nextCharacter(std::string_view utf8, size_t* at);

/// Characters from `first` to `last`.
struct CharacterRange {
  char32_t first;
  char32_t last;
};
template <size_t N>
bool isIn(const CharacterRange (&ranges)[N], char32_t character) {
  return std::any_of(ranges, ranges + N, [character](const CharacterRange& range) {
    return character >= range.first && character <= range.last;
  });
}

/// Converts from and to UTF-8.
std::u32string charactersOf(std::string_view utf8);
std::string utf8Of(std::u32string_view characters);

// Wraps text to the terminal's width, between words.

/// Terminal columns of UTF-8 text: wide characters take two; combining ones and escape sequences take none.
size_t columnsOf(std::string_view text);

/// Width for results: the width of the terminal on stdout, otherwise 80.
size_t resultColumns();
/// The same for stderr.
size_t noteColumns();

/// `text` with lines wider than `columns` broken between words. Continuation lines are indented to the last cell ("
/// label   text": cells are two spaces apart) if that leaves half the width, otherwise to the first one, or else the
/// last cell moves down completely. A word is never broken; a long one exceeds the width.
std::string wrapped(std::string_view text, size_t columns);
/// `text` from column `indent`, the cursor's position; continuation lines start there, too.
std::string wrapped(std::string_view text, size_t columns, size_t indent);

/// Prints results (stdout) and notes (stderr), wrapped. If neither is a terminal, notes stay on one line for scripts.
void printText(std::string_view text);
void tellText(std::string_view text);

/// A table as wide as its cells. If it is too wide, columns with the highest `drop` are left out first.
class Table {
 public:
  struct Column {
    std::string title;
    bool right = false;
    unsigned drop = 0;  ///< 0: stays
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// `note`, if any, is printed below the row.
  void row(std::vector<std::string> cells, std::string note = {});
  std::string text(size_t columns, size_t indent = 0) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string note;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// Safe display of foreign text on a terminal.

/// The latest output of a stream, since a character may continue in the next call.
struct ShownBefore {
  char32_t base = 0;      ///< the base character for marks; 0: none
  bool selected = false;  ///< it has a variation selector
};

/// Writes the text with invisible and direction-changing characters as JSON escapes ("\u202e"): direction overrides,
/// zero-width characters, tags. Shaping characters stay: joiners in emoji and joining scripts, one variation selector.
/// False: the stream failed.
bool writeShown(std::string_view text, std::FILE* stream, ShownBefore* before) noexcept;
/// True if the text is written unchanged.
bool showsAll(std::string_view text);

}  // namespace cli
