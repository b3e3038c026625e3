// The field for messages. Enter sends, Shift+Enter begins a line.
#pragma once

#include <string>
#include <vector>

#include "context.h"
#include "drawn_line.h"
#include "text_edit.h"
#include "wrapped_text.h"

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

}  // namespace desktop
