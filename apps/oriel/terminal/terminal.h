// What only people see: everything here goes to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "system.h"

namespace cli {

/// Prints to stderr at once: on a terminal as writeShown() does.
void tell(std::string_view text) noexcept;

/// Whether stderr is a terminal that draws: false where TERM is dumb.
bool takesEscapes();

/// Whether what is written there may be styled: a terminal that draws, without NO_COLOR.
bool takesStyles(Stream stream);
/// Whether bars and bullets are drawn: not on dumb terminals, which may be read aloud, nor in locales without UTF-8.
bool drawsBlocks();

/// `text` in a quieter or a stronger shade, where stderr takes escape sequences and NO_COLOR is not set.
std::string dim(const std::string& text);
std::string bold(const std::string& text);

/// `share` (0 to 1) of `columns` cells, in eighths of a cell. Any share above nothing shows. Empty unless drawsBlocks().
std::string bar(double share, unsigned columns);

/// Text without control characters other than line feed and tab: what a model writes must not be
/// able to drive the terminal. What is not UTF-8 becomes U+FFFD.
std::string terminalSafe(std::string_view text);

/// The same without line feeds and tabs: what names a file or comes from one must not make up rows of its own.
std::string oneLine(std::string_view text);

enum class ProgressUnit { kShare, kBytes, kTokens, kLines };

/// One line that is drawn over itself: share, amount, rate and time left. Draws nothing unless stderr takes escape
/// sequences, and nothing for work that is over before anybody could read it.
class ProgressBar {
 public:
  /// Nothing is shown of work that takes no longer than `quiet`.
  explicit ProgressBar(std::string label,
                       std::chrono::milliseconds quiet = std::chrono::milliseconds(300),
                       ProgressUnit unit = ProgressUnit::kShare);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `total` 0: not known.
  void show(uint64_t done, uint64_t total);
  void clear();

 private:
  std::string label_;
  ProgressUnit unit_;
  std::chrono::milliseconds quiet_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point shown_at_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace cli
