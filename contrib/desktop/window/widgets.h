// Small elements shared by several parts of the window.
#pragma once

#include <string>
#include <vector>

#include "context.h"
#include "conversation.h"

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
