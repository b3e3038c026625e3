// Text on a terminal: characters, wrapped lines, and streaming replies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/terminal.h"

namespace cli {

// Iterates over UTF-8 characters.

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

// Shows a streaming reply on a terminal: wrapped between words, with styled Markdown.

// SGR codes for bold text, code, and code fences.
constexpr char kReplyBold[] = "1";
constexpr char kReplyCode[] = "36";
constexpr char kReplyFence[] = "2";

struct ReplyLook {
  bool wraps = true;  ///< break lines between words, not by the terminal
  /// style bold text, code, headings and lists; tables stay unchanged
  bool markdown = true;
  bool draws_blocks = drawsBlocks();  ///< bullets instead of hyphens before items
};

/// Converts pieces of text to terminal output. Holds back an incomplete word or span, so that shown text is never
/// redrawn.
class ReplyView {
 public:
  /// `columns` is called at each word. `shade`: SGR codes for the whole text, e.g. "2".
  ReplyView(ReplyLook look, std::function<size_t()> columns, std::string shade = {});

  /// `text` must not contain control characters except line feeds and tabs.
  std::string take(std::string_view text);
  /// The held back text. Resets styles.
  std::string end();

 private:
  enum class Line { kBegins, kText, kVerbatim };

  void feed(std::string_view character);
  void lineBegins(std::string_view character);
  void item(size_t indent, const std::string& mark);
  void inlineText(std::string_view character);
  bool spanCloses() const;
  void showSpan();
  void endSpan();
  void put(std::string_view character);
  void flushWord();
  void endLine();
  void style(const std::string& codes) { style_ = codes; }

  ReplyLook look_;
  std::function<size_t()> columns_;
  std::string shade_;

  Line line_ = Line::kBegins;
  bool fenced_ = false;  ///< between ``` and ```
  std::string begin_;    ///< the line so far, until its kind is known
  std::string span_;     ///< bold text or code so far, with its mark
  char before_ = '\n';   ///< the last output byte

  std::string out_;
  std::string style_;  ///< current SGR codes
  std::string sent_;   ///< SGR codes sent last
  std::string word_;
  size_t word_columns_ = 0;
  bool goes_on_ = false;  ///< inside a word longer than the line
  size_t gap_ = 0;        ///< spaces before the word
  size_t column_ = 0;
  size_t indent_ = 0;  ///< indent of continuation lines
};

}  // namespace cli
