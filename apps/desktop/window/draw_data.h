// Dear ImGui's triangles, drawn by SDL's own renderer: it needs no graphics library of its own.
#pragma once

#include <SDL.h>
#include <imgui.h>

namespace desktop {

/// The characters of the current fonts as a texture, made known to Dear ImGui. The caller destroys it. Null: it is too
/// large (SDL_GetError()).
SDL_Texture* makeFontTexture(SDL_Renderer* renderer);
void drawData(SDL_Renderer* renderer, const ImDrawData& data);

}  // namespace desktop
