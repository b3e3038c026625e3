// Runs a grammar over a vocabulary: the byte trie, and the machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "grammar/automaton.h"
#include "grammar/expression.h"
#include "grammar/state_sets.h"
#include "text/tokenizer.h"

namespace oriel_internal {

// The vocabulary as a byte trie, with facts about tokens that hold for every grammar.

/// Character classes of tokens. Masks are computed by class where all characters of a class are equivalent, as in most
/// strings.
enum class TextKind : uint8_t {
  kLower,
  kUpper,
  kDigit,
  kSpace,
  kJoiner,  ///< _ - .
  kPunctuation,
  kQuote,
  kBackslash,
  kControl,  ///< below 0x20, and 0x7F
  kBeyondAscii,
  kOther,  ///< partial characters, more than kLongestPlain characters, or control tokens
};
constexpr uint32_t kTextKinds = 11;
constexpr uint32_t kindBit(TextKind kind) { return 1u << static_cast<uint32_t>(kind); }
/// Kinds that strings often treat specially. Tokens with such characters, about 5 %, have a separate trie.
constexpr uint32_t kOddKinds = kindBit(TextKind::kQuote) | kindBit(TextKind::kBackslash) |
                               kindBit(TextKind::kControl) | kindBit(TextKind::kOther);
/// The kind of a byte below 0x80.
TextKind kindOfAscii(uint8_t byte);

/// Longest token, in code points, with kinds; longer ones are rare.
constexpr uint32_t kLongestPlain = 32;

/// Built once per model; immutable and thread-safe.
class TokenTrie {
 public:
  /// 8 bytes. Nodes are in depth-first order, children sorted by byte: the next node is the first child, and the node
  /// `skip` further is the next sibling. Tokens with equal bytes are siblings.
  struct Node {
    static constexpr uint32_t kNoToken = (1u << 21) - 1;

    uint32_t byte_and_skip = 0;  ///< skip << 8 | byte; skip counts the node and everything below it
    uint32_t kinds_and_token = 0;  ///< kinds of its own token and all below << 21 | token

    uint8_t byte() const { return static_cast<uint8_t>(byte_and_skip); }
    uint32_t skip() const { return byte_and_skip >> 8; }
    uint32_t token() const { return kinds_and_token & kNoToken; }
    uint32_t kinds() const { return kinds_and_token >> 21; }
  };
  static_assert(kTextKinds == 11, "kinds and a token share 32 bits");
  static_assert(kMaxVocabulary < Node::kNoToken, "a token has 21 bits");

  /// Control tokens without text appear as their TokenMark. Tokens that end a reply are left out. When measuring, counts
  /// the bytes and sets *trie to null. Checks `stop` before it starts. Borrows 24 bytes per token from `allocator` in
  /// both cases.
  static Status build(const Tokenizer& tokenizer, const oriel_allocator& allocator, const Log& log,
                      Arena* arena, TokenTrie** trie, const StopCheck& stop = {});
  /// Copies a trie that build() left in an arena and a file has kept. Null if it is not of this vocabulary.
  static TokenTrie* copyOf(const TokenizerBlock& saved, uint32_t n_vocab, Arena* arena);
  /// The object as the first bytes of such a block, without addresses.
  TokenTrie withoutTables() const;

  uint32_t vocabSize() const { return n_vocab_; }
  uint32_t words() const { return n_words_; }
  struct Tree {
    const Node* nodes = nullptr;
    uint32_t count = 0;
  };
  const Tree& all() const { return all_; }
  /// Tokens with a character of kOddKinds.
  const Tree& odd() const { return odd_; }
  /// A bit for each token with a character of that kind; kOther includes control tokens.
  const uint32_t* having(uint32_t kind) const {
    return having_ + static_cast<size_t>(kind) * n_words_;
  }
  /// Code points per token; 0: kOther. Ordered so that 64 of them give 64 mask bits: bit b is at 8 * (b % 8) + b / 8.
  const uint8_t* lengths() const { return lengths_; }
  const int32_t* stops() const { return stops_; }
  uint32_t stopCount() const { return n_stops_; }

 private:
  friend class TrieBuilder;

  TokenTrie() = default;

  uint32_t n_vocab_ = 0;
  uint32_t n_words_ = 0;
  uint32_t n_stops_ = 0;
  Tree all_;
  Tree odd_;
  const uint32_t* having_ = nullptr;  ///< [kTextKinds][n_words]
  const uint8_t* lengths_ = nullptr;  ///< [n_words / 2, rounded up][64]
  const int32_t* stops_ = nullptr;
};

// Constrains a generation to a grammar: computes the mask of tokens that may come next.

/// A mask has one bit per token: id i in bit i % 32 of word i / 32; 1: allowed.
constexpr uint64_t maskWords(uint64_t n_vocab) { return (n_vocab + 31) / 32; }

/// For the automaton and its state sets. A schema's automaton takes 10 to 100 KiB. The rest keeps sets of states, some
/// hundred bytes each.
constexpr size_t kConstraintBytes = 1024 * 1024;
/// Masks kept for recurring sets of states, e.g. inside a string: n_vocab / 8 bytes each.
constexpr uint32_t kKeptMasks = 16;

/// Steps per call: a mask, accepting a token, or the trial of a compiled grammar. Takes at most 0.2 s of one core; an
/// ordinary grammar needs a thousandth. Compiling is subtracted from the trial. Walking the token trie is not counted:
/// it has fewer than 2^24 nodes.
constexpr uint64_t kMostMaskSteps = 250'000'000;

/// One active grammar. All memory is taken once; compiling a grammar refills it. Not thread-safe.
class Constraint {
 public:
  /// Takes the automaton, its state and the masks from `arena`: kConstraintBytes, kKeptMasks masks and some hundred
  /// bytes. Null when measuring; tokenizer and trie may be null then. `bytes` replaces kConstraintBytes in tests.
  static Constraint* create(uint32_t n_vocab, const Tokenizer* tokenizer, const TokenTrie* trie,
                            Arena* arena, size_t bytes = kConstraintBytes);

  /// ORIEL_ERROR_ARGUMENT for left recursion, an undefined rule or a grammar that matches no text.
  /// ORIEL_ERROR_UNSUPPORTED if it is too large, or so ambiguous that one mask takes more than kMostMaskSteps. On
  /// failure no grammar is active; otherwise this one is, at its start. `extra_stop`: a token that ends the reply
  /// besides the tokenizer's own; -1: none. Works in the grammar's scratch memory. The grammar's stop check stays in
  /// use.
  Status compile(const Grammar& grammar, int32_t extra_stop, const Log& log);
  bool inForce() const { return in_force_; }
  /// Back to the start of the grammar.
  void restart();
  /// Replaces the one given to compile(); -1: none.
  void setExtraStop(int32_t id);
  /// Overwrites everything that was read. The grammar stays active, at its start.
  void forget();
  /// Overwrites the grammar, too: none is active.
  void release();

  /// kOk, or why the latest call gave up: ORIEL_ERROR_CANCELLED if stopped, ORIEL_ERROR_UNSUPPORTED after more than
  /// kMostMaskSteps. In that case its mask is empty, it accepted nothing, and the text is unchanged.
  Status spent() const;
  uint64_t steps() const { return sets_.steps().steps(); }
  /// Tokens that may come next: n_vocab bits, then zeros to the end of the last word. Includes tokens that end the reply
  /// if the text may end here. Valid until the next call. At least one bit is set unless ended() or stuck().
  const uint32_t* mask();
  /// True if no token may come although the text is not at its end: the vocabulary lacks the next bytes or an end token,
  /// or spent() is an error. The caller ends the reply.
  bool stuck();
  /// Advances past a token. False, without a change, if the token is not allowed. A token that ends
  /// the reply must be the last.
  bool accept(int32_t id);
  /// Advances past bytes while they are allowed; returns how many.
  size_t acceptText(const char* text, size_t bytes);
  /// The text may end here.
  bool complete();
  /// The text may end here, and nothing may follow.
  bool ended();
  const Automaton& automaton() const { return automaton_; }
  /// True if something in the grammar was forbidden since compile(), because it was too ambiguous or nested too deep
  /// (StateSets).
  bool bounded() const { return sets_.bounded(); }

 private:
  using Set = StateSets::Id;
  /// Tokens of only these kinds are allowed up to a length; longer ones are not.
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
  uint32_t kinds_taken_ = 0;  ///< of characters anywhere in the grammar, and kOther
  Set now_ = StateSets::kNothing;
  Set set_of_mask_[kKeptMasks] = {};
  bool empty_mask_[kKeptMasks] = {};
  uint32_t next_mask_ = 0;
  int32_t extra_stop_ = -1;
  StopCheck stop_;
  bool in_force_ = false;
  bool stopped_ = false;  ///< a token that ends the reply was accepted
};

}  // namespace oriel_internal
