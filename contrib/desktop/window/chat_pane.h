// The conversation of one tab: its messages, and the field below them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "composer.h"
#include "context.h"
#include "markdown.h"
#include "text_view.h"

namespace desktop {

class ChatPane {
 public:
  void draw(const Context& context, const ChatState& chat, const ReplySettings& settings);
  /// Takes the keyboard unless another field has it.
  void type(const Context& context, const ChatState& chat, const ReplySettings& settings);
  const std::string& draft() const { return composer_.text(); }
  /// Hidden lines below; 0: at the end.
  float below() const { return below_; }

 private:
  /// The layout of one message.
  struct Shown {
    std::string source;
    std::vector<MarkdownBlock> blocks;
    std::deque<TextView> views;
  };

  void say(const Context& context, const ChatState& chat, const std::string& text,
           const ReplySettings& settings, bool even_if_cut = false);
  void drawRefusal(const Context& context, const ChatState& chat, const ReplySettings& settings);
  void drawMessages(const Context& context, const ChatState& chat);
  Shown& show(const Message& message, size_t index);
  void drawReply(const Context& context, Shown* shown, size_t index, float column);
  void drawMessage(const Context& context, const ChatState& chat, size_t index, float column);
  void drawWelcome(const Context& context) const;

  Composer composer_;
  std::deque<Shown> shown_;
  std::string refused_;  ///< the last refused message that went back to the field
  float below_ = 0;
  bool follow_ = true;
};

}  // namespace desktop
