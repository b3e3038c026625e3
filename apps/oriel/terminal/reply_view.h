// Shows a streaming reply on a terminal: wrapped between words, with styled Markdown.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "terminal/terminal.h"

namespace cli {

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
