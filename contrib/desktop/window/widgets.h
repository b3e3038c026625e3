// Small elements shared by several parts of the window.
#pragma once

#include <string>
#include <vector>

#include "context.h"

namespace desktop {

/// A button under the name `widget`; `strong` marks the main action.
bool button(const Context& context, const char* widget, const std::string& label,
            bool enabled = true, bool strong = false, float width = 0);
/// Less important text, wrapped.
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
/// A bar of `total` bytes with its shares; the rest is empty.
void stackedBar(const std::vector<Share>& shares, uint64_t total, float height);

}  // namespace desktop
