// The field that messages are written in. Enter sends, Shift+Enter begins a line.
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
  /// What one chat has written and not sent.
  const std::string& text() const { return edit_.text(); }
  /// Takes this frame's keys. True: Enter was pressed, and `sent` is the text. `before`: earlier messages
  /// for Up, oldest first.
  bool type(const Context& context, bool can_send, const std::vector<std::string>& before,
            std::string* sent);
  float height(const Context& context, float width);
  void draw(const Context& context, ImVec2 low, float width, bool can_write);
  /// The text is to be sent; the field becomes empty.
  std::string take();
  /// It was not sent after all.
  void giveBack(const std::string& text) { edit_.setText(text + edit_.text()); }

 private:
  bool typeKey(const Typed& key);
  bool recall(const Typed& key, const std::vector<std::string>& before);
  void moveLines(int lines, bool extend);
  size_t byteUnder(ImVec2 mouse) const;
  DrawnLine drawn(const Line& line) const;

  TextEdit edit_;
  size_t recalled_ = 0;  ///< steps back to the message in the field; 0: none
  std::vector<Line> lines_;
  const Fonts* fonts_ = nullptr;
  ImVec2 text_at_ = ImVec2(0, 0);
  float first_line_ = 0;  ///< scrolled lines above what is shown
};

}  // namespace desktop
