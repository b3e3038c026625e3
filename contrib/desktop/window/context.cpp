#include "context.h"

namespace desktop {
namespace {

// 0xRRGGBB
constexpr ImU32 rgb(unsigned value) {
  return IM_COL32(value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff, 255);
}

Theme current;
float scale = 1;

Theme darkTheme() {
  return {
      true,
      rgb(0x15181d),
      rgb(0x1b1f26),
      rgb(0x252b34),
      rgb(0x323a46),
      rgb(0xe7eaee),
      rgb(0x98a2b0),
      rgb(0x4f9cf9),
      rgb(0x0b1420),
      rgb(0x22384f),
      rgb(0x2f5f96),
      rgb(0xf0716b),
      rgb(0x58c48b),
      {rgb(0x4f9cf9), rgb(0x58c48b), rgb(0xe5b454), rgb(0xc586e0), rgb(0x7f8b9b)},
      {rgb(0x4f9cf9), rgb(0x58c48b), rgb(0xe5b454), rgb(0xc586e0), rgb(0x4cc3cf), rgb(0xec8d6a)}};
}

Theme lightTheme() {
  return {
      false,
      rgb(0xffffff),
      rgb(0xf5f7f9),
      rgb(0xe9edf2),
      rgb(0xd3dae2),
      rgb(0x1c232c),
      rgb(0x5d6875),
      rgb(0x1f6fd6),
      rgb(0xffffff),
      rgb(0xe0edfc),
      rgb(0xb4d3f7),
      rgb(0xc23b34),
      rgb(0x1f8a55),
      {rgb(0x3b82dd), rgb(0x35a56c), rgb(0xd29a2b), rgb(0xa45fc4), rgb(0x8a94a1)},
      {rgb(0x3b82dd), rgb(0x35a56c), rgb(0xd29a2b), rgb(0xa45fc4), rgb(0x259aa8), rgb(0xd9693f)}};
}

void setColors(ImGuiStyle* style) {
  ImVec4* colors = style->Colors;
  const Theme& t = current;
  current.dark ? ImGui::StyleColorsDark(style) : ImGui::StyleColorsLight(style);
  colors[ImGuiCol_Text] = asVec(t.text);
  colors[ImGuiCol_TextDisabled] = asVec(t.dim);
  colors[ImGuiCol_WindowBg] = asVec(t.background);
  colors[ImGuiCol_ChildBg] = asVec(faded(t.background, 0));
  colors[ImGuiCol_PopupBg] = asVec(t.panel);
  colors[ImGuiCol_Border] = asVec(t.border);
  colors[ImGuiCol_FrameBg] = asVec(t.raised);
  colors[ImGuiCol_FrameBgHovered] = asVec(t.border);
  colors[ImGuiCol_FrameBgActive] = asVec(t.border);
  colors[ImGuiCol_Button] = asVec(t.raised);
  colors[ImGuiCol_ButtonHovered] = asVec(t.border);
  colors[ImGuiCol_ButtonActive] = asVec(t.selection);
  colors[ImGuiCol_Header] = asVec(t.raised);
  colors[ImGuiCol_HeaderHovered] = asVec(t.border);
  colors[ImGuiCol_HeaderActive] = asVec(t.selection);
  colors[ImGuiCol_SliderGrab] = asVec(t.accent);
  colors[ImGuiCol_SliderGrabActive] = asVec(t.accent);
  colors[ImGuiCol_CheckMark] = asVec(t.accent);
  colors[ImGuiCol_TitleBg] = colors[ImGuiCol_TitleBgActive] = asVec(t.raised);
  colors[ImGuiCol_ScrollbarBg] = asVec(faded(t.background, 0));
  colors[ImGuiCol_ScrollbarGrab] = asVec(t.border);
  colors[ImGuiCol_TextSelectedBg] = asVec(t.selection);
  colors[ImGuiCol_NavHighlight] = asVec(t.accent);
  colors[ImGuiCol_ModalWindowDimBg] = ImVec4(0, 0, 0, t.dark ? 0.55f : 0.3f);
  colors[ImGuiCol_Separator] = asVec(t.border);
}

}  // namespace

const Theme& theme() { return current; }

void useTheme(bool dark, float pixel_scale) {
  scale = pixel_scale;
  current = dark ? darkTheme() : lightTheme();
  ImGuiStyle style;
  setColors(&style);
  style.WindowPadding = ImVec2(14, 12);
  style.FramePadding = ImVec2(10, 6);
  style.ItemSpacing = ImVec2(8, 8);
  style.ItemInnerSpacing = ImVec2(6, 6);
  style.FrameRounding = 6;
  style.GrabRounding = 6;
  style.GrabMinSize = 14;
  style.PopupRounding = 8;
  style.WindowRounding = 8;
  style.ScrollbarRounding = 6;
  style.ScrollbarSize = 11;
  style.WindowBorderSize = 0;
  style.PopupBorderSize = 1;
  style.ScaleAllSizes(scale);
  ImGui::GetStyle() = style;
}

float px(float design_pixels) {
  return static_cast<float>(static_cast<int>(design_pixels * scale + 0.5f));
}

ImVec4 asVec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

ImU32 faded(ImU32 color, float share) {
  ImVec4 vec = asVec(color);
  vec.w *= share;
  return ImGui::ColorConvertFloat4ToU32(vec);
}

}  // namespace desktop
