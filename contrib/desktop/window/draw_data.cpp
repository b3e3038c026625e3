#include "draw_data.h"

#include <algorithm>

namespace desktop {
namespace {

/// A command's clip rectangle in pixels; false: empty.
bool clipTo(SDL_Renderer* renderer, const ImDrawData& data, const ImVec4& clip) {
  const ImVec2 scale = data.FramebufferScale;
  const float left = std::max(0.0f, (clip.x - data.DisplayPos.x) * scale.x);
  const float top = std::max(0.0f, (clip.y - data.DisplayPos.y) * scale.y);
  const float right =
      std::min((clip.z - data.DisplayPos.x) * scale.x, data.DisplaySize.x * scale.x);
  const float bottom =
      std::min((clip.w - data.DisplayPos.y) * scale.y, data.DisplaySize.y * scale.y);
  if (right <= left || bottom <= top) {
    return false;
  }
  const SDL_Rect rectangle = {static_cast<int>(left), static_cast<int>(top),
                              static_cast<int>(right - left), static_cast<int>(bottom - top)};
  SDL_RenderSetClipRect(renderer, &rectangle);
  return true;
}

void drawCommand(SDL_Renderer* renderer, const ImDrawList& list, const ImDrawCmd& command) {
  const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
  const int count = list.VtxBuffer.Size - static_cast<int>(command.VtxOffset);
  constexpr int kStride = sizeof(ImDrawVert);
  SDL_RenderGeometryRaw(renderer, static_cast<SDL_Texture*>(command.GetTexID()), &vertices->pos.x,
                        kStride, reinterpret_cast<const SDL_Color*>(&vertices->col), kStride,
                        &vertices->uv.x, kStride, count, list.IdxBuffer.Data + command.IdxOffset,
                        static_cast<int>(command.ElemCount), sizeof(ImDrawIdx));
}

}  // namespace

SDL_Texture* makeFontTexture(SDL_Renderer* renderer) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  unsigned char* pixels = nullptr;
  int width = 0;
  int height = 0;
  atlas.GetTexDataAsRGBA32(&pixels, &width, &height);
  SDL_Texture* texture = SDL_CreateTexture(renderer, SDL_PIXELFORMAT_ABGR8888,
                                           SDL_TEXTUREACCESS_STATIC, width, height);
  atlas.SetTexID(texture);
  if (texture == nullptr) {
    return nullptr;
  }
  SDL_UpdateTexture(texture, nullptr, pixels, 4 * width);
  SDL_SetTextureBlendMode(texture, SDL_BLENDMODE_BLEND);
  SDL_SetTextureScaleMode(texture, SDL_ScaleModeLinear);
  atlas.ClearTexData();
  return texture;
}

void drawData(SDL_Renderer* renderer, const ImDrawData& data) {
  SDL_RenderSetScale(renderer, data.FramebufferScale.x, data.FramebufferScale.y);
  for (int i = 0; i < data.CmdListsCount; i++) {
    const ImDrawList& list = *data.CmdLists[i];
    for (const ImDrawCmd& command : list.CmdBuffer) {
      if (clipTo(renderer, data, command.ClipRect)) {
        drawCommand(renderer, list, command);
      }
    }
  }
  SDL_RenderSetClipRect(renderer, nullptr);
}

}  // namespace desktop
