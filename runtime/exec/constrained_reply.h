// Decides where a grammar begins in a reply: at the beginning, after the thought, or after a trigger.
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
  /// Copied, at most kMostTriggerBytes. 0 bytes: the grammar applies from the beginning.
  const char* trigger = nullptr;
  size_t trigger_bytes = 0;
  bool again = false;           ///< after the triggered text, wait for the trigger again
  ReplyForms forms = 0;         ///< forms of thoughts; <think> always counts
  bool inside_thought = false;  ///< the prompt has opened a thought
  bool may_think = false;       ///< the model may open a thought first
  int32_t extra_stop = -1;      ///< as in Constraint::compile()
};

/// All memory comes from an arena. A session has this object if its options allow constraints.
class ConstrainedReply {
 public:
  /// Returns null when measuring; tokenizer and trie may be null then.
  static ConstrainedReply* create(uint32_t n_vocab, const Tokenizer* tokenizer,
                                  const TokenTrie* trie, Arena* arena);

  /// Working memory to compile a grammar before start().
  Constraint& constraint() { return *constraint_; }
  /// Keywords of the active schemas that have no effect.
  IgnoredKeywords& ignored() { return ignored_; }
  const IgnoredKeywords& ignored() const { return ignored_; }
  /// Begins a reply that must match the compiled grammar.
  void start(const ConstrainedStart& start);
  /// Replies are unconstrained again.
  void stop() { state_.place = Place::kFree; }
  /// The same; also overwrites all text and compiled grammars.
  void forget();

  /// Null: all tokens are allowed. Valid until the next call.
  const uint32_t* mask();
  /// Advances by a token. False, without a change, for a token that the mask allows but the grammar does not: a trigger
  /// or the end of a thought with further text in the same token. Then call forbid() and choose again.
  bool accept(int32_t id);
  /// Removes the token from mask() until the next token.
  void forbid(int32_t id);
  /// The requested form is complete, and no token may follow.
  bool ended();
  /// The reply is incomplete, and the vocabulary has no token for the required text.
  bool stuck();

 private:
  enum class Place : uint8_t {
    kFree,      ///< to the end
    kMayThink,  ///< a thought or the grammar may begin
    kOpening,   ///< in the mark of a thought
    kThought,   ///< free until its end
    kBefore,    ///< free until the trigger
    kConstrained,
  };
  /// The state after some text.
  struct State {
    Place place = Place::kFree;
    uint32_t matched = 0;  ///< matched bytes of the trigger, or of the opening mark of a thought
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
