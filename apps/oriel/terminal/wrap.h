// Text for people within the width of a terminal: lines are broken between words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// Columns that UTF-8 text takes on a terminal: wide characters take two; combining ones and escape
/// sequences take none.
size_t columnsOf(std::string_view text);

/// Columns for results: those of the terminal on stdout, and 80 where stdout is none.
size_t resultColumns();
/// Columns for what goes to stderr, likewise.
size_t noteColumns();

/// `text` with every line that is wider than `columns` broken between words. What follows stands below the
/// line's last cell ("  label   text": cells are two spaces apart) if that leaves half the width, else
/// below the first one; else the last one moves down as a whole. A word is never broken: one that is too
/// long sticks out.
std::string wrapped(std::string_view text, size_t columns);
/// `text` from column `indent`, where the cursor is; what follows stands there, too.
std::string wrapped(std::string_view text, size_t columns, size_t indent);

/// Results (stdout) and notes (stderr) for people, wrapped. Where a terminal shows neither, notes stay
/// whole lines: scripts look for them.
void printText(std::string_view text);
void tellText(std::string_view text);

/// A table as wide as its cells. Where that is too wide, columns go, those of the highest `drop` first.
class Table {
 public:
  struct Column {
    std::string title;
    bool right = false;
    unsigned drop = 0;  ///< 0: stays
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// `note`, if any, stands below the row.
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
