// The field for messages. Enter sends, Shift+Enter begins a line.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "text_view.h"
#include "visual_line.h"
#include "widgets.h"

namespace desktop {

class Composer {
 public:
  /// The unsent text of a chat.
  const std::string& text() const { return edit_.text(); }
  /// Takes this frame's keys. True: Enter was pressed, and `sent` is the text. `before`: earlier messages
  /// for Up, oldest first.
  bool type(const Context& context, bool can_send, const std::vector<std::string>& before,
            std::string* sent);
  float height(const Context& context, float width);
  void draw(const Context& context, ImVec2 low, float width, bool can_write);
  /// Returns the text to send and empties the field.
  std::string take();
  /// Puts back a text that was not sent.
  void giveBack(const std::string& text) { edit_.setText(text + edit_.text()); }

 private:
  bool typeKey(const Typed& key);
  bool recall(const Typed& key, const std::vector<std::string>& before);
  void moveLines(int lines, bool extend);
  size_t byteUnder(ImVec2 mouse) const;
  DrawnLine drawn(const Line& line) const;

  TextEdit edit_;
  size_t recalled_ = 0;  ///< steps back to the message in the field; 0: not recalled
  std::vector<Line> lines_;
  const Fonts* fonts_ = nullptr;
  ImVec2 text_at_ = ImVec2(0, 0);
  float first_line_ = 0;  ///< lines scrolled out at the top
};

// The conversation of one tab: its messages, and the field below them.

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
