// Holds a generation to a grammar: which tokens may come next, as a mask over the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "grammar/expression.h"
#include "text/tokenizer.h"

namespace oriel {

/// The vocabulary as a tree of bytes, and what is known of its tokens whatever the grammar. Built once a model;
/// immutable, may be used from several threads.
class TokenTrie {
 public:
  /// When measuring counts the bytes and leaves *trie null. Control tokens are not part of it.
  static Status build(const Tokenizer& tokenizer, Arena* arena, TokenTrie** trie);
};

/// A mask has a bit for each token, id i in bit i % 32 of word i / 32; 1: allowed.
constexpr uint64_t maskWords(uint64_t n_vocab) { return (n_vocab + 31) / 32; }

/// One grammar at work. All of its memory is taken once; compiling a grammar fills it anew. Not thread-safe.
class Constraint {
 public:
  /// Takes the automaton, its state and the mask from `arena`; null when measuring.
  static Constraint* create(const Tokenizer& tokenizer, const TokenTrie* trie, Arena* arena);

  /// Left recursion, a rule without definition and a grammar that no text fits are ORIEL_ERROR_ARGUMENT; one that is
  /// too large for the memory ORIEL_ERROR_UNSUPPORTED. Then none is in force. Otherwise it is, from its beginning.
  /// `extra_stop`: a token that ends the reply besides the tokenizer's own; -1: none.
  Status compile(const Grammar& grammar, int32_t extra_stop, const Log& log);
  /// Back to the beginning of the grammar.
  void restart();
  /// Overwrites everything that was read.
  void forget();

  /// Tokens that may come next, n_vocab bits; tokens that end the reply where the text may end here. Valid until the
  /// next call. At least one bit is set unless ended().
  const uint32_t* mask();
  /// Goes on behind a token. False, and nothing changes, for one that may not come.
  bool accept(int32_t id);
  /// Goes on behind bytes, at most as far as they may come: how many did.
  size_t acceptText(const char* text, size_t bytes);
  /// The text may end here.
  bool complete();
  /// It may end here, and nothing may follow.
  bool ended();
};

}  // namespace oriel
