#include "text_view.h"

#include <algorithm>
#include <iterator>

namespace desktop {
float lineHeight() { return px(3) + ImGui::GetFontSize() * 1.22f; }

Advance advanceOf(const ImFont* font) {
  const float scale = ImGui::GetFontSize() / font->FontSize;
  return [font, scale](uint32_t c, size_t) {
    return font->GetCharAdvance(static_cast<ImWchar>(c > 0xffff ? 0xfffd : c)) * scale;
  };
}

namespace {

bool sameSpans(const std::vector<Span>& a, const std::vector<Span>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span& x, const Span& y) {
    return x.begin == y.begin && x.end == y.end && x.style == y.style;
  });
}

ImFont* fontOf(const Fonts& fonts, TextStyle style) {
  switch (style) {
    case TextStyle::kBold:
      return fonts.strong();
    case TextStyle::kCode:
      return fonts.mono();
    default:
      return fonts.body();
  }
}

}  // namespace

const Span* TextView::spanAt(size_t byte) const {
  const auto after = std::upper_bound(block_.spans.begin(), block_.spans.end(), byte,
                                      [](size_t at, const Span& span) { return at < span.begin; });
  if (after == block_.spans.begin() || std::prev(after)->end <= byte) {
    return nullptr;
  }
  return &*std::prev(after);
}

Advance TextView::advance() const {
  const float scale = ImGui::GetFontSize() / fonts_->body()->FontSize;
  return [this, scale](uint32_t c, size_t at) {
    const Span* const span = spanAt(at);
    const ImFont* const font = fontOf(*fonts_, span == nullptr ? TextStyle::kPlain : span->style);
    return font->GetCharAdvance(static_cast<ImWchar>(c > 0xffff ? 0xfffd : c)) * scale;
  };
}

ImVec2 TextView::layOut(const Context& context, const MarkdownBlock& block, float width) {
  const float font_size = ImGui::GetFontSize();
  fonts_ = &context.frame->fonts();
  const bool other_text = block.text != edit_.text();
  if (other_text || !sameSpans(block.spans, block_.spans) || width != width_ ||
      font_size != font_size_ || lines_.empty()) {
    context.frame->fonts().want(block.text);
    block_ = block;
    if (other_text) {
      const size_t begin = edit_.selectionBegin();
      const size_t end = edit_.selectionEnd();
      const bool selected = hasSelection();
      edit_.setText(block.text);
      if (selected) {  // a reply grows at its end: what was selected stays
        edit_.moveTo(begin, false);
        edit_.moveTo(end, true);
      }
    }
    width_ = width;
    font_size_ = font_size;
    lines_ = wrapText(block.text, width, advance());
    widest_ = 0;
    for (const Line& line : lines_) {
      widest_ = std::max(widest_, widthOf(block.text, line.begin, line.end, advance()));
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
    drawSelection(text, lines_[i], edit_.selectionBegin(), edit_.selectionEnd(), at, advance());
    drawLine(lines_[i], at);
  }
}

void TextView::drawLine(const Line& line, ImVec2 at) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const std::string& text = block_.text;
  for (size_t begin = line.begin; begin < line.end;) {
    const Span* const span = spanAt(begin);
    size_t end = span == nullptr ? line.end : std::min(line.end, span->end);
    for (const Span& next : block_.spans) {
      if (span == nullptr && next.begin > begin) {
        end = std::min(end, next.begin);
        break;
      }
    }
    const float wide = widthOf(text, begin, end, advance());
    const bool code = span != nullptr && span->style == TextStyle::kCode;
    if (code && !block_.code && text[line.begin] != '|') {
      list.AddRectFilled(ImVec2(at.x - px(2), at.y + px(1)),
                         ImVec2(at.x + wide + px(2), at.y + lineHeight()), theme().raised, px(4));
    }
    ImFont* const font = fontOf(*fonts_, span == nullptr ? TextStyle::kPlain : span->style);
    const float size = ImGui::GetFontSize() * font->FontSize / fonts_->body()->FontSize;
    list.AddText(font, size, ImVec2(at.x, at.y + px(2) + (ImGui::GetFontSize() - size) * 0.75f),
                 theme().text, text.data() + begin, text.data() + end);
    at.x += wide;
    begin = end;
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
  return byteAt(edit_.text(), line, mouse.x - place.x, advance());
}

void drawSelection(const std::string& text, const Line& line, size_t begin, size_t end, ImVec2 place,
                   const Advance& advance) {
  begin = std::max(begin, line.begin);
  end = std::min(end, line.end);
  if (begin >= end) {
    return;
  }
  const float left = place.x + widthOf(text, line.begin, begin, advance);
  const float right = left + widthOf(text, begin, end, advance);
  ImGui::GetWindowDrawList()->AddRectFilled(
      ImVec2(left, place.y), ImVec2(right, place.y + lineHeight()), theme().selection);
}

}  // namespace desktop
