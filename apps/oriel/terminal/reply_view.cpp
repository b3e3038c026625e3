#include "terminal/reply_view.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include "output.h"
#include "system.h"
#include "terminal/terminal.h"

namespace cli {

size_t characterBytes(unsigned char lead) {
  return lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
}

char32_t nextCharacter(std::string_view utf8, size_t* at) {
  const auto lead = static_cast<unsigned char>(utf8[*at]);
  const size_t wanted = characterBytes(lead);
  char32_t character = wanted == 1 ? lead : lead & (0xFFu >> (wanted + 1));
  size_t taken = 1;
  while (taken < wanted && *at + taken < utf8.size() &&
         (static_cast<unsigned char>(utf8[*at + taken]) & 0xC0) == 0x80) {
    character = character << 6 | (static_cast<unsigned char>(utf8[*at + taken]) & 0x3Fu);
    ++taken;
  }
  *at += taken;
  return taken == wanted && (wanted > 1 || lead < 0x80) ? character : kReplacement;
}

std::u32string charactersOf(std::string_view utf8) {
  std::u32string characters;
  for (size_t at = 0; at < utf8.size();) {
    const size_t begin = at;
    const char32_t character = nextCharacter(utf8, &at);
    const size_t bytes = at - begin;
    const bool overlong = (bytes == 3 && character < 0x800) || (bytes == 4 && character < 0x10000);
    const bool surrogate = character >= 0xD800 && character < 0xE000;
    characters += overlong || surrogate || character >= 0x110000 ? kReplacement : character;
  }
  return characters;
}

std::string utf8Of(std::u32string_view characters) {
  std::string utf8;
  for (const char32_t c : characters) {
    if (c < 0x80) {
      utf8 += static_cast<char>(c);
    } else if (c < 0x800) {
      utf8 += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      utf8 += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
               static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      utf8 += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
               static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
  }
  return utf8;
}

namespace {

constexpr size_t kUsualColumns = 80;
/// Narrower terminals get lines of this width and wrap them.
constexpr size_t kLeastColumns = 20;
constexpr size_t kGap = 2;         // between two columns of a table
constexpr size_t kNoteIndent = 4;  // of the note below a row

/// Combining marks and invisible characters.
constexpr CharacterRange kNoColumns[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},  {0x0E34, 0x0E3A},
    {0x0E47, 0x0E4E}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},  {0x20D0, 0x20F0},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};
/// East Asian wide and full-width characters and emoji (Unicode's EastAsianWidth.txt, blocks rounded).
constexpr CharacterRange kTwoColumns[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xA960, 0xA97C},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

/// Length of an escape sequence "ESC [ ... letter" at this place; 0: none.
size_t escapeAt(std::string_view text, size_t at) {
  if (text[at] != '\033' || at + 1 >= text.size() || text[at + 1] != '[') {
    return 0;
  }
  size_t end = at + 2;
  while (end < text.size() && (text[end] < '@' || text[end] > '~')) {
    ++end;
  }
  return std::min(end + 1, text.size()) - at;
}

/// The character at `begin` and its length; broken UTF-8 counts byte by byte.
uint32_t characterAt(std::string_view text, size_t at, size_t* bytes) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t count = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint32_t character = count == 1 ? lead : lead & (0xFFu >> (count + 1));
  *bytes = std::min(count, text.size() - at);
  for (size_t i = 1; i < *bytes; ++i) {
    character = character << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  }
  return character;
}

size_t terminalOr80(Stream stream) {
  return isTerminal(stream) ? std::max<size_t>(terminalColumns(stream), kLeastColumns)
                            : kUsualColumns;
}

/// Indent of continuation lines: see wrapped().
struct Hanging {
  size_t indent = 0;
  size_t moved_from = 0;  ///< start of a cell that moves to the next line; 0: none
};

Hanging hangingOf(std::string_view line, size_t columns) {
  const size_t leading = std::min(line.find_first_not_of(' '), line.size());
  size_t first_column = 0;
  size_t last_column = 0;
  size_t last_cell = 0;
  for (size_t gap = line.find("  ", leading); gap != std::string_view::npos;
       gap = line.find("  ", last_cell)) {
    const size_t cell = line.find_first_not_of(' ', gap);
    if (cell == std::string_view::npos) {
      break;
    }
    last_cell = cell;
    last_column = columnsOf(line.substr(0, cell));
    first_column = first_column == 0 ? last_column : first_column;
  }
  if (last_column != 0 && last_column <= columns / 2) {
    return {last_column, 0};
  }
  if (first_column != 0 && first_column <= columns * 2 / 5 && first_column != last_column) {
    return {first_column, 0};
  }
  if (last_column != 0) {
    return {std::min(leading, columns / 2) + kNoteIndent, last_cell};
  }
  return {std::min(leading, columns / 2) + (line.substr(leading, 2) == "- " ? 2 : 0), 0};
}

/// `line` with breaks; its first word is at column `at`.
std::string broken(std::string_view line, size_t columns, size_t indent, size_t at) {
  std::string out;
  size_t column = at;
  bool begun = false;  // the line has a word
  for (size_t begin = 0; begin < line.size();) {
    const size_t word = std::min(line.find_first_not_of(' ', begin), line.size());
    const size_t end = std::min(line.find(' ', word), line.size());
    const size_t width = columnsOf(line.substr(word, end - word));
    if (begun && column + (word - begin) + width > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      out.append(line, begin, word - begin);
      column += word - begin;
    }
    out.append(line, word, end - word);
    column += width;
    begun = true;
    begin = end;
  }
  return out;
}

std::string padded(const std::string& cell, size_t width, bool right) {
  const std::string space(width - std::min(width, columnsOf(cell)), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

size_t columnsOf(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) {
    size_t bytes = escapeAt(text, at);
    if (bytes == 0) {
      const uint32_t character = characterAt(text, at, &bytes);
      columns += isIn(kNoColumns, character) ? 0 : isIn(kTwoColumns, character) ? 2 : 1;
    }
    at += bytes;
  }
  return columns;
}

size_t resultColumns() { return terminalOr80(Stream::kOut); }

size_t noteColumns() { return terminalOr80(Stream::kErr); }

std::string wrapped(std::string_view text, size_t columns) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (columnsOf(line) <= columns) {
      out += line;
    } else {
      const Hanging hanging = hangingOf(line, columns);
      const std::string_view above = line.substr(0, hanging.moved_from);
      if (!above.empty()) {
        out +=
            broken(above.substr(0, above.find_last_not_of(' ') + 1), columns, hanging.indent, 0) +
            "\n" + std::string(hanging.indent, ' ');
      }
      out += broken(line.substr(hanging.moved_from), columns, hanging.indent,
                    above.empty() ? 0 : hanging.indent);
    }
    out += end < text.size() ? "\n" : "";
    begin = end + 1;
  }
  return out;
}

std::string wrapped(std::string_view text, size_t columns, size_t indent) {
  return broken(text, columns, indent, indent);
}

void printText(std::string_view text) { print(wrapped(text, resultColumns())); }

void tellText(std::string_view text) {
  tell(isTerminal(Stream::kErr) ? wrapped(text, noteColumns()) : std::string(text));
}

void Table::row(std::vector<std::string> cells, std::string note) {
  rows_.push_back({std::move(cells), std::move(note)});
}

std::string Table::text(size_t columns, size_t indent) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columnsOf(columns_[i].title);
    for (const Row& row : rows_) {
      width = std::max(width, columnsOf(row.cells[i]));
    }
    widths.push_back(width);
  }
  std::vector<bool> shown(columns_.size(), true);
  const auto total = [&] {
    size_t sum = indent;
    for (size_t i = 0; i < shown.size(); ++i) {
      sum += shown[i] ? widths[i] + (i == 0 ? 0 : kGap) : 0;
    }
    return sum;
  };
  while (total() > columns) {
    size_t next = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (shown[i] && columns_[i].drop != 0 &&
          (next == columns_.size() || columns_[i].drop > columns_[next].drop)) {
        next = i;
      }
    }
    if (next == columns_.size()) {
      break;
    }
    shown[next] = false;
  }
  std::string out;
  const auto add = [&](const auto& cell_of, const std::string& note) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (shown[i]) {
        line +=
            std::string(i == 0 ? 0 : kGap, ' ') + padded(cell_of(i), widths[i], columns_[i].right);
      }
    }
    out += line.erase(line.find_last_not_of(' ') + 1) + "\n";
    if (!note.empty()) {
      const size_t below = indent + (columns < kUsualColumns ? kNoteIndent / 2 : kNoteIndent);
      out += std::string(below, ' ') + wrapped(note, columns, below) + "\n";
    }
  };
  add([&](size_t i) { return columns_[i].title; }, "");
  for (const Row& row : rows_) {
    add([&](size_t i) { return row.cells[i]; }, row.note);
  }
  return out;
}

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

namespace {

constexpr size_t kLongestSpan = 400;  ///< bytes; a longer unclosed span is text
constexpr size_t kTab = 8;
constexpr size_t kDeepest = 40;  ///< spaces before an item

size_t runOf(std::string_view text, char c) {
  return std::min(text.find_first_not_of(c), text.size());
}

bool isWordByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

ReplyView::ReplyView(ReplyLook look, std::function<size_t()> columns, std::string shade)
    : look_(look), columns_(std::move(columns)), shade_(std::move(shade)), style_(shade_) {}

std::string ReplyView::take(std::string_view text) {
  if (!look_.wraps && !look_.markdown && shade_.empty()) {
    return std::string(text);
  }
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    (void)nextCharacter(text, &at);
    feed(text.substr(begin, at - begin));
  }
  return std::exchange(out_, {});
}

std::string ReplyView::end() {
  if (line_ == Line::kBegins && !begin_.empty()) {
    lineBegins({});
  }
  while (!span_.empty()) {
    endSpan();
  }
  style_.clear();
  if (!sent_.empty()) {
    word_ += "\033[0m";
    sent_.clear();
  }
  flushWord();
  style(shade_);
  return std::exchange(out_, {});
}

void ReplyView::feed(std::string_view character) {
  if (character == "\n") {
    endLine();
  } else if (line_ == Line::kBegins && look_.markdown) {
    lineBegins(character);
  } else if (line_ == Line::kVerbatim) {
    put(character);
  } else {
    inlineText(character);
  }
}

void ReplyView::endLine() {
  if (line_ == Line::kBegins && !begin_.empty()) {
    lineBegins({});
  }
  out_ += end() + "\n";
  line_ = Line::kBegins;
  before_ = '\n';
  column_ = gap_ = indent_ = 0;
  goes_on_ = false;
}

/// Collects the line until its first word decides its kind. Without a character: the line ends.
void ReplyView::lineBegins(std::string_view character) {
  begin_ += character;
  const size_t spaces = runOf(begin_, ' ');
  const std::string_view rest = std::string_view(begin_).substr(spaces);
  const bool ended = character.empty();
  if (rest.empty() && !ended && spaces < kDeepest) {
    return;
  }
  const size_t fence = runOf(rest, '`');
  if (fence > 0 && fence < 3 && fence == rest.size() && !ended) {
    return;
  }
  const auto begins = [&](Line kind, const std::string& codes) {
    line_ = kind;
    style(codes);
    const std::string text = std::exchange(begin_, {});
    indent_ = kind == Line::kText ? spaces : 0;
    for (size_t at = 0; at < text.size();) {
      const size_t from = at;
      (void)nextCharacter(text, &at);
      feed(std::string_view(text).substr(from, at - from));
    }
  };
  if (fence >= 3) {
    fenced_ = !fenced_;
    return begins(Line::kVerbatim, kReplyFence);
  }
  if (fenced_) {
    return begins(Line::kVerbatim, kReplyCode);
  }
  if (!rest.empty() && rest[0] == '|') {
    return begins(Line::kVerbatim, shade_);
  }
  const size_t level = runOf(rest, '#');
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const bool bullet = !rest.empty() && (rest[0] == '-' || rest[0] == '*' || rest[0] == '+');
  const bool number = digits > 0 && digits < 4 &&
                      (rest.size() == digits || rest[digits] == '.' || rest[digits] == ')');
  const size_t mark = bullet ? 1 : number ? digits + 1 : level <= 6 ? level : 0;
  if (mark >= rest.size() && !ended && (mark != 0 || rest.empty())) {
    return;
  }
  if (mark == 0 || mark >= rest.size() || rest[mark] != ' ') {
    return begins(Line::kText, shade_);
  }
  if (level == mark) {
    begin_.clear();
    line_ = Line::kText;
    return style(kReplyBold);
  }
  item(spaces, bullet ? (look_.draws_blocks ? "•" : "-") : std::string(rest.substr(0, mark)));
}

/// Wrapped lines of an item are indented to its text.
void ReplyView::item(size_t indent, const std::string& mark) {
  begin_.clear();
  line_ = Line::kText;
  style(shade_);
  for (size_t i = 0; i < indent; ++i) {
    put(" ");
  }
  word_ += mark;
  word_columns_ += columnsOf(mark);
  flushWord();
  put(" ");
  before_ = ' ';
  indent_ = column_ + gap_;
}

void ReplyView::inlineText(std::string_view character) {
  const char c = character[0];
  if (span_.empty()) {
    const bool opens = look_.markdown && (c == '`' || (c == '*' && !isWordByte(before_)));
    if (opens) {
      span_ = character;
    } else {
      put(character);
    }
    return;
  }
  if (spanCloses() && c != span_[0]) {
    showSpan();
    return inlineText(character);
  }
  span_ += character;
  const size_t length = runOf(span_, span_[0]);
  const bool is_mark =
      length == span_.size() || (span_[0] == '*' ? length == 2 && span_[2] != ' ' : length <= 2);
  if (!is_mark || span_.size() > kLongestSpan) {
    endSpan();
  }
}

/// True at a run of marks as long as the opening one.
bool ReplyView::spanCloses() const {
  const size_t length = runOf(span_, span_[0]);
  const size_t text_end = span_.size() - std::min(span_.size(), length);
  return text_end > length && span_.find_first_not_of(span_[0], text_end) == std::string::npos &&
         span_[text_end - 1] != span_[0] && (span_[0] == '`' || span_[text_end - 1] != ' ');
}

void ReplyView::showSpan() {
  const std::string span = std::exchange(span_, {});
  const size_t length = runOf(span, span[0]);
  const std::string around = std::exchange(style_, span[0] == '*' ? kReplyBold : kReplyCode);
  for (size_t at = length; at < span.size() - length;) {
    const size_t from = at;
    (void)nextCharacter(span, &at);
    put(std::string_view(span).substr(from, at - from));
  }
  style(around);
}

/// An unclosed mark was text, and the text after it may contain other spans.
void ReplyView::endSpan() {
  if (spanCloses()) {
    return showSpan();
  }
  const std::string text = std::exchange(span_, {});
  const size_t length = runOf(text, text[0]);
  for (size_t i = 0; i < length; ++i) {
    put(text.substr(0, 1));
  }
  for (size_t at = length; at < text.size();) {
    const size_t from = at;
    (void)nextCharacter(text, &at);
    inlineText(std::string_view(text).substr(from, at - from));
  }
}

void ReplyView::put(std::string_view character) {
  before_ = character.back();
  if (style_ != sent_) {
    word_ += (sent_.empty() ? "" : "\033[0m") + (style_.empty() ? "" : "\033[" + style_ + "m");
    sent_ = style_;
  }
  const bool tab = character == "\t";
  if (line_ == Line::kVerbatim) {
    word_ += character;
    return flushWord();
  }
  if (tab || character == " ") {
    flushWord();
    goes_on_ = false;
    gap_ += tab ? kTab - (column_ + gap_) % kTab : 1;
    return;
  }
  const size_t width = columnsOf(character);
  word_ += character;
  word_columns_ += width;
  if (width > 1) {
    flushWord();  // scripts without spaces
  } else if (word_columns_ >= columns_()) {
    flushWord();
    goes_on_ = true;  // the terminal breaks it
  }
}

void ReplyView::flushWord() {
  const size_t columns = columns_();
  if (word_columns_ != 0) {
    if (look_.wraps && !goes_on_ && column_ > indent_ && column_ + gap_ + word_columns_ > columns) {
      const size_t indent = std::min(indent_, columns / 2);
      out_ += "\n" + std::string(indent, ' ');
      column_ = indent;
    } else {
      out_.append(gap_, ' ');
      column_ += gap_;
    }
    gap_ = 0;
    column_ += word_columns_;
    column_ = (column_ - 1) % columns + 1;
  }
  out_ += word_;
  word_.clear();
  word_columns_ = 0;
}

}  // namespace cli
