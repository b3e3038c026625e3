#include "chat_pane.h"

#include <algorithm>

#include "files.h"
#include "system.h"
#include "text_view.h"
#include "widgets.h"

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

namespace {

constexpr float kColumn = 780;
constexpr float kPictureHeight = 180;
constexpr float kAttachedHeight = 56;

bool canSend(const Context& context, const ChatState& chat) {
  return context.state.model.phase == ModelPhase::kReady && chat.phase == ChatPhase::kIdle;
}

/// A small button without a frame.
bool quietButton(const Context& context, const std::string& widget, const char* label,
                 bool enabled) {
  ImGui::PushFont(context.frame->fonts().small());
  ImGui::PushStyleColor(ImGuiCol_Button, faded(theme().raised, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(0), px(2)));
  const bool pressed = button(context, widget.c_str(), label, enabled);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  ImGui::PopFont();
  return pressed;
}

/// At most this height, and twice this width.
ImVec2 sizeOf(const Frame::Picture& picture, float height) {
  const float scale = std::min(height / picture.height, 2 * height / picture.width);
  return ImVec2(picture.width * scale, picture.height * scale);
}

/// A picture of at most this height, or the name of a file that cannot be read. True: it was clicked.
bool drawPicture(const Context& context, const std::string& path, const std::string& widget,
                 float height) {
  const Frame::Picture& picture = context.frame->picture(path);
  if (picture.texture == nullptr) {
    const std::string name = stemOf(path);
    context.frame->fonts().want(name);
    return button(context, widget.c_str(), name);
  }
  ImGui::Image(picture.texture, sizeOf(picture, height));
  context.name(widget);
  return ImGui::IsItemClicked();
}

std::string waiting(const ChatState& chat) {
  if (chat.phase == ChatPhase::kReading && chat.read_total > 0) {
    return "reading " + std::to_string(chat.read_done) + " of " + std::to_string(chat.read_total) +
           " tokens ...";
  }
  return "...";
}

}  // namespace

void ChatPane::type(const Context& context, const ChatState& chat, const ReplySettings& settings) {
  for (const Typed& typed : context.input->typed) {
    if (typed.control && typed.key == SDL_SCANCODE_C) {
      for (const Shown& shown : shown_) {
        for (const TextView& view : shown.views) {
          if (view.copy()) {
            return;
          }
        }
      }
    }
  }
  std::vector<std::string> before;
  for (const Message& message : chat.messages) {
    if (message.from_user) {
      before.push_back(message.text);
    }
  }
  std::string text;
  if (composer_.type(context, canSend(context, chat), before, &text)) {
    say(context, chat, text, settings);
  }
}

// The chat may have begun to move since the frame's state was copied.
void ChatPane::say(const Context& context, const ChatState& chat, const std::string& text,
                   const ReplySettings& settings, bool even_if_cut) {
  follow_ = true;
  refused_.clear();
  if (context.engine->send(chat.id, text, settings, even_if_cut, attached_)) {
    attached_.clear();
  } else {
    composer_.giveBack(text);
  }
}

/// The pictures of the next message, in a line above the field. A click removes one.
void ChatPane::drawAttached(const Context& context) {
  for (size_t i = 0; i < attached_.size(); i++) {
    if (drawPicture(context, attached_[i], "attached" + std::to_string(i), px(kAttachedHeight))) {
      attached_.erase(attached_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    if (ImGui::IsItemHovered()) {
      ImGui::SetTooltip("goes with the next message; a click removes it");
    }
    ImGui::SameLine(0, px(8));
  }
  ImGui::NewLine();
}

/// Shows the warning above the field while the refused message is in it.
void ChatPane::drawRefusal(const Context& context, const ChatState& chat,
                           const ReplySettings& settings) {
  const Refused& refused = chat.refused;
  if (refused.tokens == 0) {
    return;
  }
  if (refused_ != refused.text) {
    refused_ = refused.text;
    composer_.giveBack(refused.text);
    attached_ = refused.pictures;
  }
  if (draft() != refused.text) {
    return;
  }
  dimText("This message has " + cli::grouped(refused.tokens) + " tokens, and the context holds " +
          cli::grouped(refused.capacity) + ": the model would not see its beginning.");
  if (button(context, "send_anyway", "Send anyway", canSend(context, chat))) {
    say(context, chat, composer_.take(), settings, /*even_if_cut=*/true);
  }
}

void ChatPane::draw(const Context& context, const ChatState& chat, const ReplySettings& settings) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float button_width = px(84);
  const bool sees = !context.state.model.settings.mmproj.empty();
  const float picture_width = sees ? px(74) + px(10) : 0;
  const float field_width = width - button_width - px(10) - picture_width;
  const float pictures = attached_.empty() ? 0 : px(kAttachedHeight) + px(12);
  const float field_height = composer_.height(context, field_width);
  const bool refused = chat.refused.tokens != 0 && draft() == chat.refused.text;
  const float warning = refused ? ImGui::GetFrameHeightWithSpacing() + 3 * lineHeight() : 0;
  const float height =
      ImGui::GetContentRegionAvail().y - field_height - px(14) - warning - pictures;
  ImGui::BeginChild("messages", ImVec2(width, std::max(height, px(40))));
  drawMessages(context, chat);
  ImGui::EndChild();
  drawRefusal(context, chat, settings);
  if (!attached_.empty()) {
    drawAttached(context);
  }
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool busy = chat.phase == ChatPhase::kReading || chat.phase == ChatPhase::kReplying;
  composer_.draw(context, low, field_width, context.state.model.phase == ModelPhase::kReady);
  ImGui::SetCursorScreenPos(ImVec2(low.x + field_width + px(10), low.y + px(3)));
  if (sees) {
    wants_picture_ = button(context, "picture", "Picture", true, false, px(74)) || wants_picture_;
    ImGui::SameLine(0, px(10));
  }
  if (busy) {
    if (button(context, "stop", "Stop", true, true, button_width)) {
      context.engine->stop(chat.id);
    }
  } else if (button(context, "send", "Send", canSend(context, chat) && !draft().empty(), true,
                    button_width)) {
    say(context, chat, composer_.take(), settings);
  }
}

void ChatPane::drawMessages(const Context& context, const ChatState& chat) {
  const float wheel = ImGui::GetIO().MouseWheel;
  if (wheel > 0) {
    follow_ = false;
  }
  if (chat.messages.empty()) {
    drawWelcome(context);
  }
  shown_.resize(chat.messages.size());
  const float column = std::min(ImGui::GetContentRegionAvail().x - px(8), px(kColumn));
  for (size_t i = 0; i < chat.messages.size(); i++) {
    drawMessage(context, chat, i, column);
  }
  if (!chat.note.empty()) {
    context.frame->fonts().want(chat.note);
    ImGui::PushFont(context.frame->fonts().small());
    dimText(chat.note);
    ImGui::PopFont();
  }
  if (ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - px(4)) {
    follow_ = true;
  }
  if (follow_) {
    ImGui::SetScrollHereY(1);
  }
  below_ = ImGui::GetScrollMaxY() - ImGui::GetScrollY();
}

void ChatPane::drawMessage(const Context& context, const ChatState& chat, size_t index,
                           float column) {
  const Message& message = chat.messages[index];
  const bool last = index + 1 == chat.messages.size();
  ImVec2 low = ImGui::GetCursorScreenPos();
  const std::string name = "message" + std::to_string(index);
  const float pad = px(11);
  Shown& shown = show(message, index);
  if (message.from_user) {
    for (size_t i = 0; i < message.pictures.size(); i++) {
      const std::string widget = "picture" + std::to_string(index) + "_" + std::to_string(i);
      const Frame::Picture& picture = context.frame->picture(message.pictures[i]);
      const float wide =
          picture.texture == nullptr ? px(120) : sizeOf(picture, px(kPictureHeight)).x;
      ImGui::SetCursorScreenPos(ImVec2(low.x + column - wide, ImGui::GetCursorScreenPos().y));
      (void)drawPicture(context, message.pictures[i], widget, px(kPictureHeight));
    }
    low.y = ImGui::GetCursorScreenPos().y;
    TextView& view = shown.views[0];
    const ImVec2 size = view.layOut(context, shown.blocks[0], column * 0.8f);
    const ImVec2 at(low.x + column - size.x - 2 * pad, low.y);
    const ImVec2 high(low.x + column, low.y + size.y + pad);
    ImGui::GetWindowDrawList()->AddRectFilled(at, high, theme().user_bubble, px(10));
    view.draw(context, ImVec2(at.x + pad, at.y + pad / 2), name);
    ImGui::SetCursorScreenPos(ImVec2(low.x, high.y + px(12)));
  } else if (message.text.empty()) {
    const bool busy = last && chat.phase != ChatPhase::kIdle;
    dimText(busy ? waiting(chat) : "no reply");
  } else {
    drawReply(context, &shown, index, column);
    const bool done = !last || chat.phase == ChatPhase::kIdle;
    if (quietButton(context, "copy" + std::to_string(index), done ? "Copy" : " ", done)) {
      ImGui::SetClipboardText(message.text.c_str());
    }
    ImGui::Dummy(ImVec2(1, px(4)));
  }
}

ChatPane::Shown& ChatPane::show(const Message& message, size_t index) {
  Shown& shown = shown_[index];
  if (shown.blocks.empty() || shown.source != message.text) {
    shown.source = message.text;
    shown.blocks = message.from_user ? std::vector<MarkdownBlock>{{false, message.text, {}}}
                                     : blocksOf(message.text);
    shown.views.resize(shown.blocks.size());
  }
  return shown;
}

void ChatPane::drawReply(const Context& context, Shown* shown, size_t index, float column) {
  const float pad = px(11);
  for (size_t i = 0; i < shown->blocks.size(); i++) {
    const MarkdownBlock& block = shown->blocks[i];
    const std::string name = std::to_string(index) + (i == 0 ? "" : "_" + std::to_string(i));
    const ImVec2 low = ImGui::GetCursorScreenPos();
    const ImVec2 size = shown->views[i].layOut(context, block, column - (block.code ? 3 : 1) * pad);
    if (!block.code) {
      shown->views[i].draw(context, low, "message" + name);
      ImGui::SetCursorScreenPos(ImVec2(low.x, low.y + size.y + px(8)));
      continue;
    }
    const float head = px(24);
    const ImVec2 high(low.x + column - pad, low.y + head + size.y + pad);
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.AddRectFilled(low, high, theme().panel, px(8));
    list.AddRect(low, high, theme().border, px(8));
    shown->views[i].draw(context, ImVec2(low.x + pad, low.y + head), "code" + name);
    ImGui::SetCursorScreenPos(ImVec2(high.x - px(44), low.y + px(3)));
    if (quietButton(context, "copycode" + name, "Copy", true)) {
      ImGui::SetClipboardText(block.text.c_str());
    }
    ImGui::SetCursorScreenPos(ImVec2(low.x, high.y + px(10)));
  }
}

void ChatPane::drawWelcome(const Context& context) const {
  ImGui::Dummy(ImVec2(1, px(30)));
  heading(context, context.state.model.phase == ModelPhase::kReady ? "Say something"
                                                                   : "The model is loading");
  dimText(
      "Drop a GGUF file here to load it. The shared prompt in the panel starts every chat.\n"
      "Ctrl+T opens a chat, Ctrl+Tab goes to the next, Ctrl+W closes it. Esc stops a reply. Up "
      "brings the last message back.");
}

}  // namespace desktop
