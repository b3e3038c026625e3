// A reply on a terminal while it is written: wrapped between words, with Markdown shown.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "terminal/terminal.h"

namespace cli {

// SGR codes of bold text, of code, and of the fences around code.
constexpr char kReplyBold[] = "1";
constexpr char kReplyCode[] = "36";
constexpr char kReplyFence[] = "2";

struct ReplyLook {
  bool wraps = true;  ///< lines are broken between words, not by the terminal
  /// Bold text, code, headings and lists are styled; tables stay as they are.
  bool markdown = true;
  bool draws_blocks = drawsBlocks();  ///< bullets, not hyphens, in front of items
};

/// Turns pieces of a text into what the terminal is sent. A word, and a bold or code span, is held back until it is
/// complete, so that nothing that was shown has to be drawn again.
class ReplyView {
 public:
  /// `columns` is asked at each word. `shade`: SGR codes of the whole text, e.g. "2".
  ReplyView(ReplyLook look, std::function<size_t()> columns, std::string shade = {});

  /// `text` has no control characters but line feeds and tabs.
  std::string take(std::string_view text);
  /// What was held back. Styles are reset.
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
  char before_ = '\n';   ///< the last byte that was put

  std::string out_;
  std::string style_;  ///< SGR codes of what is put now
  std::string sent_;   ///< of what was put last
  std::string word_;
  size_t word_columns_ = 0;
  bool goes_on_ = false;  ///< with a word that is longer than the line
  size_t gap_ = 0;        ///< spaces in front of the word
  size_t column_ = 0;
  size_t indent_ = 0;  ///< of the lines that this one is broken into
};

}  // namespace cli
