// The system's window: passes events to Dear ImGui and draws its triangles.
#pragma once

#include <SDL.h>

#include <string>
#include <vector>

#include "fonts.h"

namespace desktop {

/// Typed text, or a key with its modifiers (SDL_Keymod), in order of arrival.
struct Typed {
  std::string text;  ///< empty: a key
  SDL_Scancode key = SDL_SCANCODE_UNKNOWN;
  bool shift = false;
  bool control = false;
};

struct Input {
  std::vector<Typed> typed;
  std::string dropped_file;
  bool quit = false;
  bool focused = false;   ///< the window got the keyboard
  bool anything = false;  ///< an event came
};

struct FrameOptions {
  int width = 1180;
  int height = 760;
  float scale = 0;  ///< 0: the screen's
};

class Frame {
 public:
  /// Throws std::runtime_error without a screen.
  explicit Frame(const FrameOptions& options);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Waits at most `timeout_ms` (negative: no limit) for events, and handles them.
  Input wait(int timeout_ms);
  void begin();
  void end(uint32_t background);
  /// Makes wait() return. Any thread may call this.
  void wake();

  Fonts& fonts() { return fonts_; }
  float scale() const { return scale_; }
  void setZoom(float zoom);
  float zoom() const { return zoom_; }

 private:
  void takeIn(const SDL_Event& event, Input* input);

  bool types_ = true;  ///< accept text input: no command key is held

  SDL_Window* window_ = nullptr;
  SDL_Renderer* renderer_ = nullptr;
  SDL_Texture* font_texture_ = nullptr;
  uint32_t wake_event_ = 0;
  float own_scale_ = 1;
  float zoom_ = 1;
  float scale_ = 1;
  Fonts fonts_;
};

}  // namespace desktop
