// The data that every part of the window gets for drawing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine.h"
#include "frame.h"
#include "planner.h"
#include "state.h"
#include "theme.h"

namespace desktop {

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
