// The conversation of one tab: its messages, and the field below them.
#pragma once

#include <deque>
#include <string>
#include <utility>
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
  /// A picture that goes with the next message.
  void attach(const std::string& path) { attached_.push_back(path); }
  const std::vector<std::string>& attached() const { return attached_; }
  /// The button for a picture was pressed since the last call.
  bool wantsPicture() { return std::exchange(wants_picture_, false); }
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
  void drawAttached(const Context& context);
  void drawRefusal(const Context& context, const ChatState& chat, const ReplySettings& settings);
  void drawMessages(const Context& context, const ChatState& chat);
  Shown& show(const Message& message, size_t index);
  void drawReply(const Context& context, Shown* shown, size_t index, float column);
  void drawMessage(const Context& context, const ChatState& chat, size_t index, float column);
  void drawWelcome(const Context& context) const;

  Composer composer_;
  std::deque<Shown> shown_;
  std::vector<std::string> attached_;
  bool wants_picture_ = false;
  std::string refused_;  ///< the last refused message that went back to the field
  float below_ = 0;
  bool follow_ = true;
};

}  // namespace desktop
