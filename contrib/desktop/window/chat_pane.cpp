#include "chat_pane.h"

#include <algorithm>

#include "sizes.h"
#include "widgets.h"

namespace desktop {
namespace {

constexpr float kColumn = 780;

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
  if (!context.engine->send(chat.id, text, settings, even_if_cut)) {
    composer_.giveBack(text);
  }
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
  const float field_width = width - button_width - px(10);
  const float field_height = composer_.height(context, field_width);
  const bool refused = chat.refused.tokens != 0 && draft() == chat.refused.text;
  const float warning = refused ? ImGui::GetFrameHeightWithSpacing() + 3 * lineHeight() : 0;
  const float height = ImGui::GetContentRegionAvail().y - field_height - px(14) - warning;
  ImGui::BeginChild("messages", ImVec2(width, std::max(height, px(40))));
  drawMessages(context, chat);
  ImGui::EndChild();
  drawRefusal(context, chat, settings);
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
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const std::string name = "message" + std::to_string(index);
  const float pad = px(11);
  Shown& shown = show(message, index);
  if (message.from_user) {
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
