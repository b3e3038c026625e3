#include "frame.h"

#include <imgui.h>

#include <backends/imgui_impl_sdl.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "draw_data.h"

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
  SDL_DestroyTexture(font_texture_);
  ImGui_ImplSDL2_Shutdown();
  ImGui::DestroyContext();
  SDL_DestroyRenderer(renderer_);
  SDL_DestroyWindow(window_);
  SDL_Quit();
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

}  // namespace desktop
