// Wraps text to the terminal's width, between words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cli {

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

}  // namespace cli
