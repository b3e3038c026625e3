// Decides where a grammar begins in a reply: at its beginning, after the thought, or after a trigger.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "grammar/machine.h"
#include "grammar/schema_rules.h"
#include "reply/forms.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Longest trigger, in bytes.
constexpr size_t kMostTriggerBytes = 256;

struct ConstrainedStart {
  /// Of kMostTriggerBytes at most; 0 bytes: it holds from the beginning. Copied.
  const char* trigger = nullptr;
  size_t trigger_bytes = 0;
  bool again = false;           ///< after the triggered text, waits for the trigger again
  ReplyForms forms = 0;         ///< whose thoughts are known; <think> always is
  bool inside_thought = false;  ///< the prompt has opened one
  bool may_think = false;       ///< the model may open a thought first
  int32_t extra_stop = -1;      ///< as Constraint::compile() has it
};

/// All memory comes from an arena; a session has one where constraints were asked for.
class ConstrainedReply {
 public:
  /// Null when measuring; tokenizer and trie may be null then.
  static ConstrainedReply* create(uint32_t n_vocab, const Tokenizer* tokenizer,
                                  const TokenTrie* trie, Arena* arena);

  /// For compiling a grammar before start().
  Constraint& constraint() { return *constraint_; }
  /// Keywords of the schemas in force that have no effect.
  IgnoredKeywords& ignored() { return ignored_; }
  const IgnoredKeywords& ignored() const { return ignored_; }
  /// Begins a reply that must match the compiled grammar.
  void start(const ConstrainedStart& start);
  /// Replies are free again.
  void stop() { state_.place = Place::kFree; }
  /// The same, and everything that was read or compiled is overwritten.
  void forget();

  /// Null: any token may come. Valid until the next call.
  const uint32_t* mask();
  /// Continues after a token. False, and nothing changes, for a token that the mask allows but the grammar does not: a
  /// trigger or the end of a thought with further text in the same token. Then forbid() it and choose again.
  bool accept(int32_t id);
  /// mask() is without it until the next token.
  void forbid(int32_t id);
  /// The reply is over: the requested form is complete, and nothing may follow.
  bool ended();
  /// Not over, and the vocabulary has no token for the required text.
  bool stuck();

 private:
  enum class Place : uint8_t {
    kFree,      ///< to the end
    kMayThink,  ///< a thought or the grammar begins
    kOpening,   ///< in the mark of a thought
    kThought,   ///< free until its end
    kBefore,    ///< free until the trigger
    kConstrained,
  };
  /// The state after some text.
  struct State {
    Place place = Place::kFree;
    uint32_t matched = 0;  ///< bytes of the trigger, or of the mark that opens a thought
    uint8_t mark = 0;
    uint32_t n_last = 0;
    char last[kMostMark] = {};  ///< the latest bytes of a thought, or of free text
  };

  ConstrainedReply(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  bool isMark(uint8_t row, uint16_t kind) const {
    return (kMarks[row].kinds & kind) != 0 && (kMarks[row].forms & start_.forms) != 0;
  }
  bool holdsMark(uint16_t kind) const;
  void leave();
  void remember(char byte);
  bool matchTrigger(char byte);
  bool acceptFree(Tokenizer::Piece piece);
  bool acceptOpening(int32_t id, Tokenizer::Piece piece);
  bool acceptRest(const char* text, size_t bytes);
  bool acceptGrammar(int32_t id);
  Place behindThought() const;
  void allowMark(uint8_t row, uint32_t matched);
  uint32_t* ownMask(const uint32_t* from);

  const Tokenizer& tokenizer_;
  Constraint* constraint_ = nullptr;
  uint32_t* own_mask_ = nullptr;
  uint32_t n_words_ = 0;
  ConstrainedStart start_;
  char trigger_[kMostTriggerBytes] = {};
  State state_;
  bool forbids_ = false;  ///< own_mask_ is the mask
  IgnoredKeywords ignored_;
};

}  // namespace oriel_internal
