#include "chat_pane.h"

#include <algorithm>

#include "widgets.h"

namespace desktop {
namespace {

constexpr float kColumn = 780;

bool canSend(const Context& context, const ChatState& chat) {
  return context.state.model.phase == ModelPhase::kReady && chat.phase == ChatPhase::kIdle;
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
      for (const TextView& view : views_) {
        if (view.copy()) {
          return;
        }
      }
    }
  }
  std::string text;
  if (composer_.type(context, canSend(context, chat), &text)) {
    say(context, chat, text, settings);
  }
}

// The chat may have begun to move since the frame's state was copied.
void ChatPane::say(const Context& context, const ChatState& chat, const std::string& text,
                   const ReplySettings& settings) {
  follow_ = true;
  if (!context.engine->send(chat.id, text, settings)) {
    composer_.giveBack(text);
  }
}

void ChatPane::draw(const Context& context, const ChatState& chat, const ReplySettings& settings) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float button_width = px(84);
  const float field_width = width - button_width - px(10);
  const float field_height = composer_.height(context, field_width);
  const float height = ImGui::GetContentRegionAvail().y - field_height - px(14);
  ImGui::BeginChild("messages", ImVec2(width, std::max(height, px(40))));
  drawMessages(context, chat);
  ImGui::EndChild();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool busy = chat.phase == ChatPhase::kReading || chat.phase == ChatPhase::kReplying;
  composer_.draw(context, low, field_width, context.state.model.phase == ModelPhase::kReady);
  ImGui::SetCursorScreenPos(ImVec2(low.x + field_width + px(10), low.y + px(3)));
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
  views_.resize(chat.messages.size());
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
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const std::string name = "message" + std::to_string(index);
  const float pad = px(11);
  if (message.from_user) {
    const ImVec2 size = views_[index].layOut(context, message.text, column * 0.8f);
    const ImVec2 at(low.x + column - size.x - 2 * pad, low.y);
    const ImVec2 high(low.x + column, low.y + size.y + pad);
    ImGui::GetWindowDrawList()->AddRectFilled(at, high, theme().user_bubble, px(10));
    views_[index].draw(context, ImVec2(at.x + pad, at.y + pad / 2), name);
    ImGui::SetCursorScreenPos(ImVec2(low.x, high.y + px(12)));
  } else if (message.text.empty()) {
    const bool busy = last && chat.phase != ChatPhase::kIdle;
    dimText(busy ? waiting(chat) : "no reply");
  } else {
    const ImVec2 size = views_[index].layOut(context, message.text, column - pad);
    views_[index].draw(context, low, name);
    ImGui::SetCursorScreenPos(ImVec2(low.x, low.y + size.y + px(2)));
    const bool done = !last || chat.phase == ChatPhase::kIdle;
    ImGui::PushFont(context.frame->fonts().small());
    ImGui::PushStyleColor(ImGuiCol_Button, faded(theme().raised, 0));
    ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(0), px(2)));
    if (button(context, ("copy" + std::to_string(index)).c_str(), done ? "Copy" : " ", done)) {
      ImGui::SetClipboardText(message.text.c_str());
    }
    ImGui::PopStyleVar();
    ImGui::PopStyleColor(2);
    ImGui::PopFont();
    ImGui::Dummy(ImVec2(1, px(4)));
  }
}

void ChatPane::drawWelcome(const Context& context) const {
  ImGui::Dummy(ImVec2(1, px(30)));
  heading(context, context.state.model.phase == ModelPhase::kReady ? "Say something"
                                                                   : "The model is loading");
  dimText(
      "Ctrl+T opens a chat, Ctrl+W closes it, Ctrl+S saves it, Esc stops a reply.\n"
      "A GGUF file dropped here becomes the model. All chats begin with the shared prompt on "
      "the right, which is held once.");
}

}  // namespace desktop
