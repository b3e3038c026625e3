// The memory slider: plans while it moves, and reloads the model on request.
#pragma once

#include "context.h"

namespace desktop {

class MemoryPanel {
 public:
  void draw(const Context& context);
  const PlanSettings& wanted() const { return wanted_; }
  void setPrompt(const std::string& prompt);
  /// Loads another model or device, keeping the other settings.
  void load(const Context& context, const std::string& model_path);
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

}  // namespace desktop
