#include "composer.h"

#include <algorithm>

#include "text_view.h"

namespace desktop {
namespace {

constexpr float kMostLines = 7;

TextStyle plainText(size_t) { return TextStyle::kPlain; }

}  // namespace

bool Composer::type(const Context& context, bool can_send, const std::vector<std::string>& before,
                    std::string* sent) {
  bool sends = false;
  for (const Typed& typed : context.input->typed) {
    const bool enter = typed.key == SDL_SCANCODE_RETURN || typed.key == SDL_SCANCODE_KP_ENTER;
    if (!typed.text.empty()) {
      edit_.insert(typed.text);
    } else if (enter && !typed.shift) {
      if (can_send && !sends && edit_.text().find_first_not_of(" \n\t") != std::string::npos) {
        *sent = take();
        sends = true;
      }
    } else if (enter) {
      edit_.insert("\n");
    } else if (!recall(typed, before)) {
      typeKey(typed);
    }
  }
  return sends;
}

/// Up in an empty field recalls the last message. Up and Down then step through earlier ones until the text is edited.
bool Composer::recall(const Typed& key, const std::vector<std::string>& before) {
  const bool up = key.key == SDL_SCANCODE_UP;
  const bool unchanged = recalled_ != 0 && recalled_ <= before.size() &&
                         edit_.text() == before[before.size() - recalled_];
  recalled_ = unchanged ? recalled_ : 0;
  if (key.shift || (!up && key.key != SDL_SCANCODE_DOWN) || (!unchanged && !edit_.text().empty())) {
    return false;
  }
  if (up ? recalled_ == before.size() : recalled_ == 0) {
    return true;
  }
  recalled_ = up ? recalled_ + 1 : recalled_ - 1;
  edit_.setText(recalled_ == 0 ? "" : before[before.size() - recalled_]);
  return true;
}

std::string Composer::take() {
  std::string text = edit_.text();
  text.erase(text.find_last_not_of(" \n\t") + 1);
  edit_.setText("");
  first_line_ = 0;
  return text;
}

bool Composer::typeKey(const Typed& key) {
  const std::string clipboard =
      key.control && key.key == SDL_SCANCODE_V && ImGui::GetClipboardText()
          ? ImGui::GetClipboardText()
          : "";
  switch (key.key) {
    case SDL_SCANCODE_LEFT:
    case SDL_SCANCODE_RIGHT:
      edit_.step(key.key == SDL_SCANCODE_RIGHT, key.control, key.shift);
      return true;
    case SDL_SCANCODE_UP:
      moveLines(-1, key.shift);
      return true;
    case SDL_SCANCODE_DOWN:
      moveLines(1, key.shift);
      return true;
    case SDL_SCANCODE_HOME:
    case SDL_SCANCODE_END: {
      const Line line = lines_.empty() ? Line{} : lines_[lineOf(lines_, edit_.caret())];
      edit_.moveTo(key.key == SDL_SCANCODE_HOME ? line.begin : line.end, key.shift);
      return true;
    }
    case SDL_SCANCODE_BACKSPACE:
    case SDL_SCANCODE_DELETE:
      edit_.erase(key.key == SDL_SCANCODE_DELETE, key.control);
      return true;
    case SDL_SCANCODE_A:
      if (key.control) edit_.selectAll();
      return key.control;
    case SDL_SCANCODE_C:
    case SDL_SCANCODE_X:
      if (key.control && !edit_.selected().empty()) {
        ImGui::SetClipboardText(edit_.selected().c_str());
        if (key.key == SDL_SCANCODE_X) edit_.erase(true, false);
      }
      return key.control;
    case SDL_SCANCODE_V:
      if (key.control) edit_.insert(clipboard);
      return key.control;
    default:
      return false;
  }
}

void Composer::moveLines(int lines, bool extend) {
  if (lines_.empty()) {
    return;
  }
  const size_t row = lineOf(lines_, edit_.caret());
  const auto target = static_cast<int>(row) + lines;
  if (target < 0 || target >= static_cast<int>(lines_.size())) {
    edit_.moveTo(target < 0 ? 0 : edit_.text().size(), extend);
    return;
  }
  const float x = drawn(lines_[row]).caret(edit_.caret());
  edit_.moveTo(drawn(lines_[static_cast<size_t>(target)]).byteAt(x), extend);
}

float Composer::height(const Context& context, float width) {
  context.frame->fonts().want(edit_.text());
  fonts_ = &context.frame->fonts();
  lines_ = wrapText(edit_.text(), width - px(24), advanceOf(*fonts_, plainText));
  return px(18) + lineHeight() * std::min(kMostLines, static_cast<float>(lines_.size()));
}

size_t Composer::byteUnder(ImVec2 mouse) const {
  const int row = static_cast<int>((mouse.y - text_at_.y) / lineHeight() + first_line_);
  const int last = static_cast<int>(lines_.size()) - 1;
  return drawn(lines_[static_cast<size_t>(std::clamp(row, 0, last))]).byteAt(mouse.x - text_at_.x);
}

DrawnLine Composer::drawn(const Line& line) const {
  return DrawnLine(*fonts_, edit_.text(), line, plainText);
}

void Composer::draw(const Context& context, ImVec2 low, float width, bool can_write) {
  const float tall = height(context, width);
  const ImVec2 high(low.x + width, low.y + tall);
  text_at_ = ImVec2(low.x + px(12), low.y + px(9));
  ImGui::SetCursorScreenPos(low);
  ImGui::InvisibleButton("composer", ImVec2(width, tall));
  context.name("composer");
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
    if (ImGui::IsMouseDoubleClicked(0)) {
      edit_.selectWordAt(byteUnder(ImGui::GetMousePos()));
    } else if (ImGui::IsMouseClicked(0)) {
      edit_.moveTo(byteUnder(ImGui::GetMousePos()), ImGui::GetIO().KeyShift);
    }
  }
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(0, 2)) {
    edit_.moveTo(byteUnder(ImGui::GetMousePos()), true);
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(low, high, theme().panel, px(10));
  list.AddRect(low, high, can_write ? theme().accent : theme().border, px(10));
  const std::string& text = edit_.text();
  list.PushClipRect(low, ImVec2(high.x - px(8), high.y), true);
  if (text.empty()) {
    list.AddText(ImVec2(text_at_.x + px(2), text_at_.y + px(2)), theme().dim,
                 can_write ? "Write a message - Enter sends, Shift+Enter begins a line"
                           : "A message can be written when the model is loaded");
  }
  const auto caret_row = static_cast<float>(lineOf(lines_, edit_.caret()));
  first_line_ = std::clamp(first_line_, caret_row - kMostLines + 1, caret_row);
  first_line_ = std::max(first_line_, 0.0f);
  for (size_t i = 0; i < lines_.size(); i++) {
    const ImVec2 at(text_at_.x, text_at_.y + lineHeight() * (static_cast<float>(i) - first_line_));
    const DrawnLine line = drawn(lines_[i]);
    line.drawSelection(at, edit_.selectionBegin(), edit_.selectionEnd());
    line.draw(at, theme().text, false);
    if (static_cast<float>(i) == caret_row && can_write) {
      const float x = at.x + line.caret(edit_.caret());
      list.AddRectFilled(ImVec2(x, at.y + px(1)), ImVec2(x + px(2), at.y + lineHeight() - px(1)),
                         theme().accent);
    }
  }
  list.PopClipRect();
}

}  // namespace desktop
