// The system's window: passes events to Dear ImGui and draws its triangles.
#pragma once

#include <imgui.h>
#include <map>
#include <string>
#include <vector>

#include <SDL.h>

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

  /// A picture's file, small enough for a chat; decoded at the first call. Its texture is null if it cannot be read.
  struct Picture {
    SDL_Texture* texture = nullptr;
    float width = 0;
    float height = 0;
    std::string error;  ///< the reason if the texture is null
  };
  const Picture& picture(const std::string& path);

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
  std::map<std::string, Picture> pictures_;
  uint32_t wake_event_ = 0;
  float own_scale_ = 1;
  float zoom_ = 1;
  float scale_ = 1;
  Fonts fonts_;
};

// Draws Dear ImGui's triangles with SDL's own renderer, without another graphics library.

/// Creates the texture of the current fonts and registers it with Dear ImGui. The caller destroys it. Null: too large
/// (SDL_GetError()).
SDL_Texture* makeFontTexture(SDL_Renderer* renderer);
void drawData(SDL_Renderer* renderer, const ImDrawData& data);

}  // namespace desktop
