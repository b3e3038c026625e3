// Splits Markdown into blocks of styled text, with the parser of the terminal program.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace desktop {

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
