// The look of the window: colours, measures and small elements.
#pragma once

#include <imgui.h>
#include <map>
#include <string>
#include <vector>

#include "conversation.h"
#include "engine.h"
#include "frame.h"
#include "planner.h"
#include "state.h"

namespace desktop {

// Colours and measures, light and dark.

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

// Small elements shared by several parts of the window.

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

// The memory slider: plans while it moves, and reloads the model on request.

class MemoryPanel {
 public:
  void draw(const Context& context);
  const PlanSettings& wanted() const { return wanted_; }
  void setPrompt(const std::string& prompt);
  /// Loads another model or device, keeping the other settings.
  void load(const Context& context, const std::string& model_path);
  /// Loads the model again with an encoder of pictures.
  void see(const Context& context, const std::string& mmproj);
  void apply(const Context& context);
  void useMemory(uint64_t bytes) { wanted_.memory_bytes = bytes; }
  void begin(const PlanSettings& settings) { wanted_ = settings; }

 private:
  void drawSlider(const Context& context, const PlanPreview& preview);
  void drawOutcome(const Context& context, const PlanPreview& preview);
  void drawChoices(const Context& context);

  PlanSettings wanted_;
  PlanSettings in_force_;  ///< as last shown by the panel
  PlanSettings asked_;     ///< latest request to the planner
};

// Draws the cache of the front chat: sinks, evicted tokens, turns in the window, free slots.

void drawCache(const Context& context, const ChatState* chat);

}  // namespace desktop
