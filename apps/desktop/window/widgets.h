// Small things that several parts of the window draw.
#pragma once

#include <string>
#include <vector>

#include "context.h"

namespace desktop {

/// A button under the name `widget`; `strong` for the one thing that is to be done.
bool button(const Context& context, const char* widget, const std::string& label,
            bool enabled = true, bool strong = false, float width = 0);
/// Words that are less important, wrapped.
void dimText(const std::string& text);
void heading(const Context& context, const char* text);
/// Shortens `text` with dots to at most `width` pixels.
std::string fitted(const std::string& text, float width);
/// "12.3 MiB" at the right edge of the line.
void rightText(const std::string& text, ImU32 color);

struct Share {
  std::string label;
  uint64_t bytes;
  ImU32 color;
};
/// A bar of `total` bytes in its parts; what they leave is empty.
void stackedBar(const std::vector<Share>& shares, uint64_t total, float height);

}  // namespace desktop
