#include "frame.h"

#include <imgui.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include <backends/imgui_impl_sdl.h>

#include "output.h"
#include "pictures.h"

namespace desktop {
namespace {

/// The screen's scale relative to 96 dots per inch; implausible values count as 1.
float screenScale(SDL_Window* window) {
  float dots = 0;
  if (SDL_GetDisplayDPI(SDL_GetWindowDisplayIndex(window), &dots, nullptr, nullptr) != 0) {
    return 1;
  }
  const float scale = std::round(dots / 96 * 4) / 4;
  return scale >= 1 && scale <= 4 ? scale : 1;
}

constexpr uint32_t kPictureSide = 640;  // of textures; chats show pictures smaller

/// RGBA; each pixel is the mean of step x step pixels.
std::vector<uint8_t> shrunk(const cli::DecodedPicture& picture, uint32_t step) {
  const uint32_t width = std::max(picture.width / step, 1u);
  const uint32_t height = std::max(picture.height / step, 1u);
  const uint32_t columns = std::min(step, picture.width);
  const uint32_t rows = std::min(step, picture.height);
  std::vector<uint8_t> pixels;
  for (size_t at = 0; at < size_t{width} * height * 4; ++at) {
    const size_t x = at / 4 % width * step;
    const size_t y = at / 4 / width * step;
    uint32_t sum = at % 4 == 3 ? 255 * columns * rows : 0;
    for (size_t i = 0; at % 4 != 3 && i < size_t{columns} * rows; ++i) {
      sum += picture.rgb[((y + i / columns) * picture.width + x + i % columns) * 3 + at % 4];
    }
    pixels.push_back(static_cast<uint8_t>(sum / (columns * rows)));
  }
  return pixels;
}

/// False while Ctrl or Super is held. AltGr, which some systems report as Ctrl+Alt, does type.
bool isForText(Uint16 modifiers) {
  const bool control = (modifiers & KMOD_CTRL) != 0 && (modifiers & (KMOD_ALT | KMOD_MODE)) == 0;
  return !control && (modifiers & KMOD_GUI) == 0;
}

}  // namespace

Frame::Frame(const FrameOptions& options) {
  SDL_SetHint(SDL_HINT_IME_SHOW_UI, "1");
  SDL_SetHint(SDL_HINT_VIDEO_X11_NET_WM_BYPASS_COMPOSITOR, "0");
  if (SDL_Init(SDL_INIT_VIDEO) != 0) {
    throw std::runtime_error(std::string("no screen is available (") + SDL_GetError() +
                             "): start it in a desktop session, or under xvfb-run");
  }
  const uint32_t flags = SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI;
  window_ = SDL_CreateWindow("Oriel", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, options.width,
                             options.height, flags);
  renderer_ = window_ == nullptr ? nullptr : SDL_CreateRenderer(window_, -1, 0);
  if (renderer_ == nullptr) {
    throw std::runtime_error(std::string("the window cannot be made: ") + SDL_GetError());
  }
  SDL_SetWindowMinimumSize(window_, 480, 360);
  wake_event_ = SDL_RegisterEvents(1);
  own_scale_ = options.scale > 0 ? options.scale : screenScale(window_);
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.ConfigInputTextCursorBlink = false;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  ImGui_ImplSDL2_InitForSDLRenderer(window_);
  SDL_StartTextInput();
  setZoom(1);
}

Frame::~Frame() {
  for (const auto& entry : pictures_) {
    SDL_DestroyTexture(entry.second.texture);
  }
  SDL_DestroyTexture(font_texture_);
  ImGui_ImplSDL2_Shutdown();
  ImGui::DestroyContext();
  SDL_DestroyRenderer(renderer_);
  SDL_DestroyWindow(window_);
  SDL_Quit();
}

const Frame::Picture& Frame::picture(const std::string& path) {
  const auto [entry, added] = pictures_.try_emplace(path);
  Picture& shown = entry->second;
  if (!added) {
    return shown;
  }
  try {
    const cli::DecodedPicture picture = cli::readPicture(path);
    const uint32_t step =
        (std::max(picture.width, picture.height) + kPictureSide - 1) / kPictureSide;
    const int width = static_cast<int>(std::max(picture.width / step, 1u));
    const int height = static_cast<int>(std::max(picture.height / step, 1u));
    shown.texture = SDL_CreateTexture(renderer_, SDL_PIXELFORMAT_ABGR8888, SDL_TEXTUREACCESS_STATIC,
                                      width, height);
    if (shown.texture == nullptr) {
      shown.error = "cannot show the picture " + path + ": " + SDL_GetError();
      return shown;
    }
    SDL_UpdateTexture(shown.texture, nullptr, shrunk(picture, step).data(), 4 * width);
    SDL_SetTextureScaleMode(shown.texture, SDL_ScaleModeLinear);
    shown.width = static_cast<float>(width);
    shown.height = static_cast<float>(height);
  } catch (const cli::Failure& failure) {
    shown.error = failure.message;
  }
  return shown;
}

void Frame::setZoom(float zoom) {
  zoom_ = std::clamp(zoom, 0.6f, 2.5f);
  scale_ = own_scale_ * zoom_;
  fonts_.setScale(scale_);
}

Input Frame::wait(int timeout_ms) {
  Input input;
  SDL_Event event;
  if (timeout_ms < 0 ? SDL_WaitEvent(nullptr) == 0
                     : SDL_WaitEventTimeout(nullptr, timeout_ms) == 0) {
    return input;
  }
  bool key_went_down = false;
  SDL_PumpEvents();
  while (SDL_PeepEvents(&event, 1, SDL_PEEKEVENT, SDL_FIRSTEVENT, SDL_LASTEVENT) > 0) {
    if (event.type == SDL_KEYUP && key_went_down) {
      break;  // widgets check pressed keys, so the release is sent in the next frame
    }
    SDL_PollEvent(&event);
    key_went_down = key_went_down || event.type == SDL_KEYDOWN;
    input.anything = true;
    takeIn(event, &input);
  }
  return input;
}

void Frame::takeIn(const SDL_Event& event, Input* input) {
  ImGui_ImplSDL2_ProcessEvent(&event);
  if (event.type == SDL_QUIT) {
    input->quit = true;
  } else if (event.type == SDL_TEXTINPUT) {
    if (types_) {
      input->typed.push_back({event.text.text});
    }
  } else if (event.type == SDL_KEYUP) {
    types_ = isForText(event.key.keysym.mod);
  } else if (event.type == SDL_WINDOWEVENT) {
    input->focused = input->focused || event.window.event == SDL_WINDOWEVENT_FOCUS_GAINED;
  } else if (event.type == SDL_KEYDOWN) {
    const auto modifiers = event.key.keysym.mod;
    types_ = isForText(modifiers);
    input->typed.push_back({"", event.key.keysym.scancode, (modifiers & KMOD_SHIFT) != 0,
                            (modifiers & (KMOD_CTRL | KMOD_GUI)) != 0});
  } else if (event.type == SDL_DROPFILE) {
    input->dropped_file = event.drop.file;
    SDL_free(event.drop.file);
  }
}

void Frame::begin() {
  if (fonts_.build()) {
    SDL_DestroyTexture(font_texture_);
    font_texture_ = makeFontTexture(renderer_);
    while (font_texture_ == nullptr && fonts_.buildFewer()) {
      font_texture_ = makeFontTexture(renderer_);
    }
    if (font_texture_ == nullptr) {
      std::fprintf(stderr, "oriel-desktop: the window is too small for text (%s): Ctrl+minus\n",
                   SDL_GetError());
    }
  }
  ImGui_ImplSDL2_NewFrame();
  ImGui::NewFrame();
}

void Frame::end(uint32_t background) {
  ImGui::Render();
  const auto part = [background](int shift) { return static_cast<uint8_t>(background >> shift); };
  SDL_SetRenderDrawColor(renderer_, part(0), part(8), part(16), 255);
  SDL_RenderClear(renderer_);
  drawData(renderer_, *ImGui::GetDrawData());
  SDL_RenderPresent(renderer_);
}

void Frame::wake() {
  SDL_Event event = {};
  event.type = wake_event_;
  SDL_PushEvent(&event);
}

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
