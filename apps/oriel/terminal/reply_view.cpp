#include "terminal/reply_view.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "terminal/wrap.h"

namespace cli {
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
