// Markdown as blocks of styled text, by the rules of the terminal program.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace desktop {

enum class TextStyle { kPlain, kBold, kCode };

/// Bytes of a text that are drawn alike.
struct Span {
  size_t begin = 0;
  size_t end = 0;
  TextStyle style = TextStyle::kPlain;
};

struct MarkdownBlock {
  bool code = false;  ///< between fences, which are left out
  std::string text;
  std::vector<Span> spans;  ///< ascending; what they leave is plain
};

/// Also of a text that is still being written. There is one block at least.
std::vector<MarkdownBlock> blocksOf(const std::string& markdown);

}  // namespace desktop
