#include "drawn_line.h"

#include <algorithm>

#include "text_view.h"
#include "theme.h"
#include "utf8.h"
#include "visual_line.h"

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

}  // namespace desktop
