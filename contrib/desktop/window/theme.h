// Colours and measures, light and dark.
#pragma once

#include <imgui.h>

namespace desktop {

struct Theme {
  bool dark = true;
  ImU32 background, panel, raised, border;
  ImU32 text, dim, accent, on_accent;
  ImU32 user_bubble, selection, bad, good;
  /// Kinds of memory, and turns of a conversation in rotation.
  ImU32 kinds[5];
  ImU32 turns[6];
};

const Theme& theme();
/// Widgets follow with the next frame.
void useTheme(bool dark, float scale);
/// A measure of the design, in pixels of this screen.
float px(float design_pixels);
ImVec4 asVec(ImU32 color);
ImU32 faded(ImU32 color, float share);

}  // namespace desktop
