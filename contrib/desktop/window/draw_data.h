// Draws Dear ImGui's triangles with SDL's own renderer, without another graphics library.
#pragma once

#include <SDL.h>
#include <imgui.h>

namespace desktop {

/// Creates the texture of the current fonts and registers it with Dear ImGui. The caller destroys it. Null: too large
/// (SDL_GetError()).
SDL_Texture* makeFontTexture(SDL_Renderer* renderer);
void drawData(SDL_Renderer* renderer, const ImDrawData& data);

}  // namespace desktop
