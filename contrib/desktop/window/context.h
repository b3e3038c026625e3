// Colours and measures, light and dark.
#pragma once

#include <imgui.h>
#include <map>
#include <string>
#include <vector>

#include "engine.h"
#include "frame.h"
#include "planner.h"
#include "state.h"

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

// The data that every part of the window gets for drawing.

struct Rectangle {
  float x, y, width, height;
};

struct Context {
  Engine* engine;
  Planner* planner;
  Frame* frame;
  Input* input;
  AppState state;                             ///< as of this frame
  std::map<std::string, Rectangle>* widgets;  ///< position of each widget, for tests that use the
                                              ///< mouse

  /// Records the position of the latest widget.
  void name(const std::string& widget) const {
    const ImVec2 low = ImGui::GetItemRectMin();
    const ImVec2 size = ImGui::GetItemRectSize();
    (*widgets)[widget] = {low.x, low.y, size.x, size.y};
  }
};

}  // namespace desktop
