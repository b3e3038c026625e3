#include "markdown.h"

#include <limits>

#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace desktop {
namespace {

struct StyledLine {
  std::string text;
  std::vector<Span> spans;
  bool fence = false;
};

/// Splits the terminal output into lines. ReplyView marks styles with SGR codes and resets them at each line's end.
std::vector<StyledLine> linesOf(const std::string& sent) {
  std::vector<StyledLine> lines(1);
  std::string code;
  for (size_t at = 0; at < sent.size();) {
    if (sent.compare(at, 2, "\033[") == 0) {
      const size_t end = sent.find('m', at);
      code = sent.substr(at + 2, end - at - 2);
      at = end + 1;
      continue;
    }
    if (sent[at] == '\n') {
      lines.emplace_back();
      at++;
      continue;
    }
    StyledLine& line = lines.back();
    const size_t begin = line.text.size();
    line.text += sent[at++];
    line.fence = line.fence || (code == cli::kReplyFence && begin == 0);
    const bool bold = code == cli::kReplyBold;
    if (!bold && code != cli::kReplyCode) {
      continue;
    }
    const TextStyle style = bold ? TextStyle::kBold : TextStyle::kCode;
    if (!line.spans.empty() && line.spans.back().end == begin && line.spans.back().style == style) {
      line.spans.back().end++;
    } else {
      line.spans.push_back({begin, begin + 1, style});
    }
  }
  for (StyledLine& line : lines) {
    if (line.text.compare(0, 1, "|") == 0) {
      line.spans = {{0, line.text.size(), TextStyle::kCode}};  // tables keep their columns
    }
  }
  return lines;
}

void append(const StyledLine& line, MarkdownBlock* block, bool first) {
  block->text += first ? "" : "\n";
  const size_t begin = block->text.size();
  block->text += line.text;
  for (const Span& span : line.spans) {
    block->spans.push_back({begin + span.begin, begin + span.end, span.style});
  }
}

}  // namespace

std::vector<MarkdownBlock> blocksOf(const std::string& markdown) {
  cli::ReplyView view({/*wraps=*/false, /*markdown=*/true, /*draws_blocks=*/true},
                      [] { return std::numeric_limits<size_t>::max() / 2; });
  std::string sent = view.take(cli::terminalSafe(markdown));
  sent += view.end();
  std::vector<MarkdownBlock> blocks;
  bool begins = true;
  bool in_code = false;
  for (const StyledLine& line : linesOf(sent)) {
    if (line.fence) {
      in_code = !in_code;
      begins = true;
      if (in_code) {
        blocks.push_back({true, "", {}});
      }
      continue;
    }
    if (begins && !in_code) {
      if (line.text.empty()) {
        continue;  // blocks stand apart without empty lines
      }
      blocks.emplace_back();
    }
    append(line, &blocks.back(), begins);
    begins = false;
  }
  for (MarkdownBlock& block : blocks) {
    while (!block.code && !block.text.empty() && block.text.back() == '\n') {
      block.text.pop_back();
    }
  }
  if (blocks.empty()) {
    blocks.emplace_back();
  }
  return blocks;
}

}  // namespace desktop
