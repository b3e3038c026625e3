// Passes a reply's text from its tokens to the app.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/stop_texts.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// The visible text of a reply. Stop texts are never shown, not even in part: a possible beginning of one is held back
/// until it is decided or the reply ends. Fixed memory.
class ReplyText {
 public:
  struct Shown {
    const char* text =
        nullptr;  ///< whole characters; inside this object, valid until the next call
    size_t bytes = 0;
    bool stopped = false;  ///< a stop text ends the reply here; no text follows
  };

  /// `count` stop texts, as in StopTexts.
  void start(const char* const* stop_texts, size_t count);
  /// Overwrites its contents.
  void forget();
  /// Adds a token's text. `may_stop`: a stop text that it completes ends the reply; otherwise it is shown as normal
  /// text.
  Shown push(Tokenizer::Piece piece, bool may_stop);
  /// A token without text: returns the held text. Stop texts do not continue across it.
  Shown breakOff(bool may_stop);
  /// Ends the reply: returns the held text without an incomplete character. Empty if a stop text ended the reply.
  Shown finish(bool may_stop);
  bool insideCharacter() const { return decoder_.insideCharacter(); }

 private:
  Shown pass(const char* text, size_t bytes, bool may_stop, bool ends);

  StreamDecoder decoder_;
  StopTexts stop_texts_;
  bool stopped_ = false;
  size_t n_shown_ = 0;  ///< bytes of text_ that the app has received
  size_t n_text_ = 0;   ///< shown text, then held text
  char text_[StopTexts::kMostBytes + StreamDecoder::kMostBytes] = {};
};

}  // namespace oriel_internal
