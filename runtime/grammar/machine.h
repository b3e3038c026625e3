// Holds a generation to a grammar: which tokens may come next, as a mask over the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "grammar/automaton.h"
#include "grammar/expression.h"
#include "grammar/state_sets.h"
#include "grammar/token_trie.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// A mask has a bit for each token, id i in bit i % 32 of word i / 32; 1: allowed.
constexpr uint64_t maskWords(uint64_t n_vocab) { return (n_vocab + 31) / 32; }

/// Of the automaton and of what is known of it. A schema's automaton takes 10 to 100 KiB; the more is left, the longer
/// sets of states are kept, each worth some hundred bytes.
constexpr size_t kConstraintBytes = 1024 * 1024;
/// Masks that are kept for sets of states that come again, as inside of a string: n_vocab / 8 bytes each.
constexpr uint32_t kKeptMasks = 16;

/// Steps of one call: a mask, a token that is accepted, the trial of a grammar that is compiled. A mask of an ordinary
/// grammar takes a thousandth; this takes 0.2 s of one core, as these steps are short. Of a trial what compiling took is
/// subtracted. Walking the tree of tokens is not counted: it has fewer than 2^24 nodes.
constexpr uint64_t kMostMaskSteps = 250'000'000;

/// One grammar at work. All of its memory is taken once; compiling a grammar fills it anew. Not thread-safe.
class Constraint {
 public:
  /// Takes the automaton, its state and the masks from `arena`: kConstraintBytes, kKeptMasks masks and some hundred
  /// bytes. Null when measuring; tokenizer and trie may be null then. `bytes` instead of kConstraintBytes: for tests.
  static Constraint* create(uint32_t n_vocab, const Tokenizer* tokenizer, const TokenTrie* trie,
                            Arena* arena, size_t bytes = kConstraintBytes);

  /// Left recursion, a rule without definition and a grammar that no text fits are ORIEL_ERROR_ARGUMENT; one that is
  /// too large for the memory, or so ambiguous that one mask takes more than kMostMaskSteps, ORIEL_ERROR_UNSUPPORTED.
  /// Then none is in force. Otherwise it is, from its beginning.
  /// `extra_stop`: a token that ends the reply besides the tokenizer's own; -1: none. Works in the grammar's scratch
  /// memory. The grammar's stop is asked as long as it is in force.
  Status compile(const Grammar& grammar, int32_t extra_stop, const Log& log);
  bool inForce() const { return in_force_; }
  /// Back to the beginning of the grammar.
  void restart();
  /// Another one instead of compile()'s; -1: none.
  void setExtraStop(int32_t id);
  /// Overwrites everything that was read. The grammar stays in force, at its beginning.
  void forget();
  /// Overwrites the grammar, too: none is in force.
  void release();

  /// kOk, or why the latest call gave up: ORIEL_ERROR_CANCELLED where it was stopped, ORIEL_ERROR_UNSUPPORTED where it
  /// took more than kMostMaskSteps. Then its mask is empty, it accepted nothing, and the text is where it was.
  Status spent() const;
  uint64_t steps() const { return sets_.steps().steps(); }
  /// Tokens that may come next, n_vocab bits, and zeros up to the end of the last word; tokens that end the reply
  /// where the text may end here. Valid until the next call. At least one bit is set unless ended() or stuck().
  const uint32_t* mask();
  /// No token may come, though the text could go on or end: the vocabulary has none for the bytes that come next, or
  /// none that ends a reply; or spent(). The caller ends it.
  bool stuck();
  /// Goes on behind a token. False, and nothing changes, for one that may not come. Behind one that ends the reply
  /// nothing may follow.
  bool accept(int32_t id);
  /// Goes on behind bytes, at most as far as they may come: how many did.
  size_t acceptText(const char* text, size_t bytes);
  /// The text may end here.
  bool complete();
  /// It may end here, and nothing may follow.
  bool ended();
  const Automaton& automaton() const { return automaton_; }
  /// Since compile() something was forbidden that the grammar has, as it was too ambiguous or nested too deep (StateSets).
  bool bounded() const { return sets_.bounded(); }

 private:
  using Set = StateSets::Id;
  /// Tokens that consist of these kinds of characters may come if they are not longer than that: all others of them
  /// may not.
  struct FreeText {
    uint32_t kinds = 0;
    uint32_t length = 0;
  };
  class Walk;

  Constraint(const Tokenizer& tokenizer, const TokenTrie& trie)
      : tokenizer_(tokenizer), trie_(trie) {}
  bool isStop(int32_t id) const;
  void beginCall() { sets_.begin({kMostMaskSteps, stop_}); }
  bool tryOut(uint64_t most_steps);
  void goToStart();
  Set stepFrom(Set set, uint8_t byte);
  void makeRoom(Set* other);
  void dropMasks();
  void findKindsTaken();
  FreeText findFreeText();
  bool findFreeText(FreeText* found);
  void fill(uint32_t* mask);
  void fillKinds(const FreeText& free, uint32_t* mask) const;
  void fillStops(uint32_t* mask);
  uint32_t slotOf(Set set);

  const Tokenizer& tokenizer_;
  const TokenTrie& trie_;
  uint8_t* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  uint32_t* masks_ = nullptr;  ///< [kKeptMasks][words]
  Automaton automaton_;
  StateSets sets_;
  uint32_t kinds_taken_ = 0;  ///< of characters that the grammar has anywhere, and kOther
  Set now_ = StateSets::kNothing;
  Set set_of_mask_[kKeptMasks] = {};
  bool empty_mask_[kKeptMasks] = {};
  uint32_t next_mask_ = 0;
  int32_t extra_stop_ = -1;
  StopCheck stop_;
  bool in_force_ = false;
  bool stopped_ = false;  ///< a token that ends the reply came
};

}  // namespace oriel_internal
