#include "text_view.h"

#include <algorithm>
#include <iterator>

#include "visual_line.h"
#include "widgets.h"

namespace desktop {
namespace {

/// Current text size divided by the body font's size.
float scaleOf(const Fonts& fonts) { return ImGui::GetFontSize() / fonts.body()->FontSize; }

}  // namespace

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

Advance advanceOf(const Fonts& fonts, const StyleAt& style) {
  const float scale = scaleOf(fonts);
  return [&fonts, style, scale](uint32_t character, size_t at) {
    return showsNothing(character)
               ? 0
               : fontOf(fonts, style(at))->GetCharAdvance(fonts.glyph(character)) * scale;
  };
}

DrawnLine::DrawnLine(const Fonts& fonts, const std::string& text, const Line& line,
                     const StyleAt& style)
    : fonts_(fonts), begin_(line.begin), end_(line.end) {
  const float scale = scaleOf(fonts);
  const VisualLine visual = visualLine(text, line);
  leftwards_ = visual.leftwards;
  for (const VisualCharacter& one : visual.characters) {
    const TextStyle its = style(one.at);
    const ImWchar glyph = fonts.glyph(one.character);
    const float wide = fontOf(fonts, its)->GetCharAdvance(glyph) * scale;
    glyphs_.push_back({glyph, one.at, utf8::next(text, one.at), its, one.leftwards, width_, wide});
    width_ += wide;
  }
}

float DrawnLine::caret(size_t byte) const {
  const Glyph* before = nullptr;  // the nearest in logical order at or before `byte`
  for (const Glyph& glyph : glyphs_) {
    if (glyph.at <= byte && (before == nullptr || glyph.at > before->at)) {
      before = &glyph;
    }
  }
  if (before == nullptr) {
    return leftwards_ ? width_ : 0;
  }
  const bool leading = before->at == byte;
  return leading == before->leftwards ? before->x + before->width : before->x;
}

size_t DrawnLine::byteAt(float x) const {
  for (const Glyph& glyph : glyphs_) {
    if (x < glyph.x + glyph.width) {
      const bool left = x < glyph.x + glyph.width / 2;
      return left == glyph.leftwards ? std::min(glyph.next, end_) : glyph.at;
    }
  }
  return glyphs_.empty() || !leftwards_ ? end_ : begin_;
}

void DrawnLine::drawSelection(ImVec2 at, size_t begin, size_t end) const {
  for (const Glyph& glyph : glyphs_) {
    if (glyph.at >= begin && glyph.at < end) {
      ImGui::GetWindowDrawList()->AddRectFilled(
          ImVec2(at.x + glyph.x, at.y), ImVec2(at.x + glyph.x + glyph.width, at.y + lineHeight()),
          theme().selection);
    }
  }
}

void DrawnLine::draw(ImVec2 at, ImU32 colour, bool boxes) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  for (size_t i = 0; i < glyphs_.size();) {
    const Glyph& first = glyphs_[i];
    std::string run;
    float wide = 0;
    for (; i < glyphs_.size() && glyphs_[i].style == first.style; i++) {
      run += utf8::encode(glyphs_[i].character);
      wide += glyphs_[i].width;
    }
    const ImVec2 low(at.x + first.x, at.y);
    if (boxes && first.style == TextStyle::kCode) {
      list.AddRectFilled(ImVec2(low.x - px(2), low.y + px(1)),
                         ImVec2(low.x + wide + px(2), low.y + lineHeight()), theme().raised, px(4));
    }
    ImFont* const font = fontOf(fonts_, first.style);
    const float size = font->FontSize * scaleOf(fonts_);
    // Aligns the baseline with the body font.
    const float lower = (ImGui::GetFontSize() - size) * 0.75f;
    list.AddText(font, size, ImVec2(low.x, low.y + px(2) + lower), colour, run.data(),
                 run.data() + run.size());
  }
}

float lineHeight() { return px(3) + ImGui::GetFontSize() * 1.22f; }

namespace {

bool sameSpans(const std::vector<Span>& a, const std::vector<Span>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span& x, const Span& y) {
    return x.begin == y.begin && x.end == y.end && x.style == y.style;
  });
}

}  // namespace

TextStyle TextView::styleAt(size_t byte) const {
  const auto after = std::upper_bound(block_.spans.begin(), block_.spans.end(), byte,
                                      [](size_t at, const Span& span) { return at < span.begin; });
  const bool inside = after != block_.spans.begin() && std::prev(after)->end > byte;
  return inside ? std::prev(after)->style : TextStyle::kPlain;
}

DrawnLine TextView::drawn(const Line& line) const {
  return DrawnLine(*fonts_, block_.text, line, [this](size_t at) { return styleAt(at); });
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
      if (selected) {  // a reply grows at its end: keep the selection
        edit_.moveTo(begin, false);
        edit_.moveTo(end, true);
      }
    }
    width_ = width;
    font_size_ = font_size;
    lines_ =
        wrapText(block.text, width, advanceOf(*fonts_, [this](size_t at) { return styleAt(at); }));
    widest_ = 0;
    for (const Line& line : lines_) {
      widest_ = std::max(widest_, drawn(line).width());
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
    const DrawnLine line = drawn(lines_[i]);
    const ImVec2 from(at.x + indentOf(line), at.y);
    line.drawSelection(from, edit_.selectionBegin(), edit_.selectionEnd());
    const bool table = lines_[i].begin < lines_[i].end && text[lines_[i].begin] == '|';
    line.draw(from, theme().text, !block_.code && !table);
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
  const DrawnLine line = drawn(lines_[static_cast<size_t>(std::clamp(row, 0, last))]);
  return line.byteAt(mouse.x - place.x - indentOf(line));
}

}  // namespace desktop
