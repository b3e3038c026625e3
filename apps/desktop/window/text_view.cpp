#include "text_view.h"

#include <algorithm>

namespace desktop {
float lineHeight() { return px(3) + ImGui::GetFontSize() * 1.22f; }

Advance advanceOf(const ImFont* font) {
  const float scale = ImGui::GetFontSize() / font->FontSize;
  return [font, scale](uint32_t c) {
    return font->GetCharAdvance(static_cast<ImWchar>(c > 0xffff ? 0xfffd : c)) * scale;
  };
}

ImVec2 TextView::layOut(const Context& context, const std::string& text, float width) {
  const float font_size = ImGui::GetFontSize();
  if (text != edit_.text() || width != width_ || font_size != font_size_ || lines_.empty()) {
    context.frame->fonts().want(text);
    if (text != edit_.text()) {
      const size_t begin = edit_.selectionBegin();
      const size_t end = edit_.selectionEnd();
      const bool selected = hasSelection();
      edit_.setText(text);
      if (selected) {  // a reply grows at its end: what was selected stays
        edit_.moveTo(begin, false);
        edit_.moveTo(end, true);
      }
    }
    width_ = width;
    font_size_ = font_size;
    const Advance advance = advanceOf(ImGui::GetFont());
    lines_ = wrapText(text, width, advance);
    widest_ = 0;
    for (const Line& line : lines_) {
      widest_ = std::max(widest_, widthOf(text, line.begin, line.end, advance));
    }
  }
  return ImVec2(std::min(widest_ + 1, width), lineHeight() * static_cast<float>(lines_.size()));
}

void TextView::draw(const Context& context, ImVec2 place, const std::string& id) {
  const ImVec2 size(std::max(widest_, px(8)), lineHeight() * static_cast<float>(lines_.size()));
  ImGui::SetCursorScreenPos(place);
  ImGui::InvisibleButton(id.c_str(), size);
  context.name(id);
  const ImVec2 mouse = ImGui::GetMousePos();
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
    if (ImGui::IsMouseDoubleClicked(0)) {
      edit_.selectWordAt(byteUnder(mouse, place));
    } else if (ImGui::IsMouseClicked(0)) {
      edit_.moveTo(byteUnder(mouse, place), ImGui::GetIO().KeyShift);
    }
  } else if (ImGui::IsMouseClicked(0)) {
    dropSelection();
  }
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(0, 2)) {
    edit_.moveTo(byteUnder(mouse, place), true);
  }
  const ImVec2 low = ImGui::GetWindowPos();
  const float bottom = low.y + ImGui::GetWindowHeight();
  const std::string& text = edit_.text();
  for (size_t i = 0; i < lines_.size(); i++) {
    const ImVec2 at(place.x, place.y + lineHeight() * static_cast<float>(i));
    if (at.y + lineHeight() < low.y || at.y > bottom) {
      continue;
    }
    drawSelection(text, lines_[i], edit_.selectionBegin(), edit_.selectionEnd(), at);
    ImGui::GetWindowDrawList()->AddText(ImVec2(at.x, at.y + px(2)), theme().text,
                                        text.data() + lines_[i].begin, text.data() + lines_[i].end);
  }
}

bool TextView::copy() const {
  if (hasSelection()) {
    ImGui::SetClipboardText(edit_.selected().c_str());
  }
  return hasSelection();
}

size_t TextView::byteUnder(ImVec2 mouse, ImVec2 place) const {
  const auto row = static_cast<int>((mouse.y - place.y) / lineHeight());
  const int last = static_cast<int>(lines_.size()) - 1;
  const Line& line = lines_[static_cast<size_t>(std::clamp(row, 0, last))];
  return byteAt(edit_.text(), line, mouse.x - place.x, advanceOf(ImGui::GetFont()));
}

void drawSelection(const std::string& text, const Line& line, size_t begin, size_t end,
                   ImVec2 place) {
  begin = std::max(begin, line.begin);
  end = std::min(end, line.end);
  if (begin >= end) {
    return;
  }
  const Advance advance = advanceOf(ImGui::GetFont());
  const float left = place.x + widthOf(text, line.begin, begin, advance);
  const float right = left + widthOf(text, begin, end, advance);
  ImGui::GetWindowDrawList()->AddRectFilled(
      ImVec2(left, place.y), ImVec2(right, place.y + lineHeight()), theme().selection);
}

}  // namespace desktop
