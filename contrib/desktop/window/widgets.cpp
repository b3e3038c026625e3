#include "widgets.h"

#include <algorithm>

#include "utf8.h"

namespace desktop {

bool button(const Context& context, const char* widget, const std::string& label, bool enabled,
            bool strong, float width) {
  context.frame->fonts().want(label);
  ImGui::BeginDisabled(!enabled);
  if (strong) {
    ImGui::PushStyleColor(ImGuiCol_Button, theme().accent);
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, faded(theme().accent, 0.85f));
    ImGui::PushStyleColor(ImGuiCol_Text, theme().on_accent);
  }
  const bool pressed = ImGui::Button((label + "##" + widget).c_str(), ImVec2(width, 0));
  if (strong) {
    ImGui::PopStyleColor(3);
  }
  ImGui::EndDisabled();
  context.name(widget);
  return pressed;
}

void dimText(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
}

void heading(const Context& context, const char* text) {
  ImGui::PushFont(context.frame->fonts().strong());
  ImGui::TextUnformatted(text);
  ImGui::PopFont();
}

std::string fitted(const std::string& text, float width) {
  std::string shown = text;
  while (!shown.empty() && ImGui::CalcTextSize(shown.c_str()).x > width) {
    const size_t end = shown.size() - (shown.size() < text.size() ? 3 : 0);
    shown = text.substr(0, utf8::previous(text, end)) + "...";
    if (end == 0) {
      return "";
    }
  }
  return shown;
}

void rightText(const std::string& text, ImU32 color) {
  ImGui::SameLine();
  const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(room, 0.0f));
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
}

void stackedBar(const std::vector<Share>& shares, uint64_t total, float height) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(low, ImVec2(low.x + width, low.y + height), theme().raised, px(4));
  double before = 0;
  for (const Share& share : shares) {
    const auto place = [&](double bytes) {
      return low.x + width * static_cast<float>(std::min(1.0, bytes / static_cast<double>(total)));
    };
    const double after = before + static_cast<double>(share.bytes);
    if (total > 0 && place(after) - place(before) >= 0.5f) {
      list.AddRectFilled(ImVec2(place(before), low.y), ImVec2(place(after), low.y + height),
                         share.color, px(3));
    }
    before = after;
  }
  ImGui::Dummy(ImVec2(width, height));
}

}  // namespace desktop
