// Finds stop texts in a stream of bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "base/scratch.h"
#include "reply/json_values.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Finds the text that ends first, and the longest of several texts that end at the same byte. Therefore the result
/// does not depend on the division of the stream. (Knuth, Morris, Pratt 1977, for each of the texts.)
class StopTexts {
 public:
  static constexpr uint32_t kMost = 16;
  static constexpr uint32_t kMostBytes = 256;

  /// Copies `count` NUL-terminated texts of 1 to kMostBytes bytes, and begins a stream.
  void start(const char* const* texts, size_t count);
  /// Overwrites the texts.
  void forget();
  /// Begins another stream.
  void restart();
  bool any() const { return count_ != 0; }
  /// Adds a byte. Returns the length of the text that ends with it; 0: none.
  uint32_t accept(char byte);
  /// Number of latest bytes that are the beginning of a text.
  uint32_t begun() const;

 private:
  struct Text {
    uint32_t bytes = 0;
    uint32_t begun = 0;  ///< number of latest bytes that match its beginning, not the whole text
    char text[kMostBytes] = {};
    /// Index i: length of the longest proper suffix of its first i + 1 bytes that is also its beginning.
    uint8_t border[kMostBytes] = {};

    void set(const char* from);
    uint32_t after(uint32_t begun_before, char byte) const;
  };

  Text texts_[kMost];
  uint32_t count_ = 0;
};

// Passes a reply's text from its tokens to the app.

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

// The parts of a reply (thoughts, calls, text), for apps that receive them during generation.

/// The receiver of a reply's parts.
struct PartListener {
  oriel_part_fn on_part = nullptr;  ///< null: the app does not need them
  void* user = nullptr;
  bool values = false;  ///< also the values of a JSON answer
};

/// Passes parts to the app until it wants no more. Fixed memory.
class ReplyParts {
 public:
  /// Without a receiver, reads nothing unless `reads`. `settings.tools` must stay valid until finish().
  void start(const ReplySettings& settings, const PartListener& listener, bool reads = false);
  bool wanted() const { return reads_; }
  /// Adds text of the reply, as in ReplyReader.
  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void finish() {
    reader_.finish();
    values_.finish();
  }
  /// Overwrites its contents.
  void forget() {
    reader_.forget();
    values_.forget();
  }
  /// The app wants no more.
  bool stopped() const { return stopped_; }
  const ReplyReader& reader() const { return reader_; }

 private:
  static void tell(const ReplyPart& part, void* user);
  static void tellValue(JsonEvent event, const char* path, const char* text, size_t bytes,
                        void* user);
  void tell(oriel_part_kind kind, uint32_t call, const char* text, size_t bytes, const char* path);

  ReplyReader reader_;
  JsonValues values_;
  PartListener listener_;
  bool stopped_ = false;
  bool reads_ = false;
};

// Ends a thought of a reply that has reached its limit of tokens.

/// Counts the tokens of a reply's thoughts. At the limit it returns the tokens of the mark that ends the thought. If
/// the model has begun that mark, it returns the rest.
class ThoughtCap {
 public:
  static constexpr uint32_t kUnlimited = UINT32_MAX;

  /// Begins a reply with at most `most` tokens of thoughts.
  void start(uint32_t most) {
    *this = ThoughtCap();
    most_ = most;
  }
  bool active() const { return most_ != kUnlimited; }
  /// Call after `reader` has read one more token. Marks before a thought do not count.
  void count(const ReplyReader& reader);
  /// Ends the current thought of `reader` if it has reached the limit.
  Status close(const ReplyReader& reader, const Tokenizer& tokenizer, Workspace* workspace);
  /// The token that must come next; -1: any token.
  int32_t next() const { return taken_ < n_ids_ ? ids_[taken_] : -1; }
  void take() { ++taken_; }

 private:
  uint32_t most_ = kUnlimited;
  uint32_t tokens_ = 0;
  bool thinks_ = false;
  bool closing_ = false;  ///< the closing mark was returned, and the reader has not read it yet
  uint32_t n_ids_ = 0;
  uint32_t taken_ = 0;
  int32_t ids_[kMostMark] = {};
};

}  // namespace oriel_internal
