// Tokenizer data in a file: lists, special tokens, and tokens for fill-in-the-middle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/log.h"
#include "gguf/gguf.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"

namespace oriel_internal {

// Hexadecimal digits.

/// The value of a hexadecimal digit; -1 for any other character.
inline int hexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Finds the control, user-defined or unknown token at a place in a text. Bounded time per place for any vocabulary: one
// binary search, then at most one lookup per token length.

class SpecialTokens {
 public:
  struct Match {
    size_t bytes = 0;  ///< 0: none
    int32_t id = -1;
  };

  explicit SpecialTokens(const Tokenizer& tokenizer) : t_(tokenizer) {}

  size_t longestBytes() const { return t_.longest_special_; }

  /// The longest token at `text`, of at most `available` bytes, for which `may(id, bytes)` holds. Among tokens with
  /// equal bytes only the last counts.
  template <typename May>
  Match longest(const char* text, size_t available, const May& may) const {
    return search(text, available, false, may);
  }
  /// The same where tokens overlap. A token is ignored if a later ordinary token has the same bytes.
  template <typename May>
  Match longestUnshared(const char* text, size_t available, const May& may) const {
    return search(text, available, true, may);
  }
  /// The longestUnshared() id for exactly these bytes; -1: none.
  int32_t exactUnshared(const char* text, size_t bytes) const {
    const int32_t id = t_.lookUp(true, text, bytes);
    return id >= 0 && Tokenizer::isWhole(t_.type(id)) ? id : -1;
  }

 private:
  template <typename May>
  Match search(const char* text, size_t available, bool only_unshared, const May& may) const {
    const uint8_t head = static_cast<uint8_t>(text[0]);
    const uint32_t first = t_.special_first_[head];
    if (first == t_.special_first_[head + 1]) {
      return {};
    }
    // Every match is a prefix of the last token that does not sort after the text.
    const size_t most = available < longestBytes() ? available : longestBytes();
    const uint32_t behind = firstBehind(first, t_.special_first_[head + 1], text, most);
    if (behind == first) {
      return {};
    }
    const int32_t nearest = static_cast<int32_t>(t_.specials_[behind - 1]);
    const Tokenizer::Piece piece = t_.bytesOf(nearest);
    size_t shared = 0;
    for (const size_t end = piece.bytes < most ? piece.bytes : most;
         shared < end && piece.data[shared] == text[shared];) {
      ++shared;
    }
    if (shared == piece.bytes && !only_unshared && may(nearest, shared)) {
      return {shared, nearest};
    }
    const auto stands = [](int32_t id, size_t bytes, const void* of) {
      return (*static_cast<const May*>(of))(id, bytes);
    };
    return longestOfLengths(text, shared, only_unshared, stands, &may);
  }

  /// `may` decides whether a token with these bytes is allowed here. Not a template, since it is long and rarely called.
  using MayStand = bool (*)(int32_t id, size_t bytes, const void* may);
  Match longestOfLengths(const char* text, size_t most, bool only_unshared, MayStand stands,
                         const void* may) const;

  /// The last special token with exactly these bytes; -1: none.
  int32_t lastSpecial(const char* text, size_t bytes) const;
  /// The first of the sorted tokens in [first, last) that sorts after `text` and is not a prefix of it.
  uint32_t firstBehind(uint32_t first, uint32_t last, const char* text, size_t bytes) const;

  const Tokenizer& t_;
};

// Tokens recognised by name, regardless of their type in the file.

/// Tokens that end a text or a turn, regardless of the file's metadata.
constexpr const char* kStopNames[] = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>",
    "<|end_of_text|>", "<end_of_utterance>", "<EOT>", "<eos>", "[EOS]", "[EOT]", "[|endofturn|]",
    "<|end_of_sentence|>", "<|eos|>", "<|return|>", "<|call|>", "<turn|>", "<|tool_response>",
    // Parenthesised, because an escape would swallow the next letter; the parentheses show that no comma is missing.
    ("<\xEF\xBD\x9C"
     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"),
    ("<\xEF\xBD\x9Chy_place\xE2\x96\x81holder\xE2\x96\x81no\xE2\x96\x81"
     "2\xEF\xBD\x9C>")};
/// Tokens that open a turn or name the speaker.
constexpr const char* kTurnNames[] = {
    "<|im_start|>",
    "<start_of_turn>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|begin_of_text|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "<|start_of_role|>",
    "<|end_of_role|>",
    "<|startoftext|>",
    "<|begin_of_sentence|>",
    "[|system|]",
    "[|user|]",
    "[|assistant|]",
    "<|turn>",
    "<|think|>",
    "<\xEF\xBD\x9Chy_User\xEF\xBD\x9C>",
    "<\xEF\xBD\x9Chy_Assistant\xEF\xBD\x9C>",
    ("<\xEF\xBD\x9Chy_place\xE2\x96\x81holder\xE2\x96\x81no\xE2\x96\x81"
     "3\xEF\xBD\x9C>")};
/// Code models end a filled gap with these.
constexpr const char* kFillEndNames[] = {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
                                         "<fim_pad>",   "<file_sep>",    "<|file_separator|>"};
/// The names that apply to Gemma 4. Its merges treat the others as ordinary words.
constexpr const char* kGemma4Names[] = {"<|turn>",          "<turn|>", "<|think|>",
                                        "<|tool_response>", "<bos>",   "<eos>"};
/// Control tokens that are shown in the output: they separate thoughts and tool calls from the answer.
constexpr const char* kShownNames[] = {"<|channel>",   "<channel|>",       "<|tool_call>",
                                       "<tool_call|>", "<tool_response|>", "<|\"|>"};
/// Also ends a text if the file has it as a control token or as its end token. Otherwise it is HTML, as in the
/// vocabularies of Gemma and Qwen.
constexpr const char* kCloseName = "</s>";

template <size_t n>
bool isOneOf(const GgufString& text, const char* const (&names)[n]) {
  if (text.bytes == 0 || (text.data[0] != '<' && text.data[0] != '[')) {
    return false;  // fast path: every name starts with one of these
  }
  for (const char* name : names) {
    if (text.equals(name)) {
      return true;
    }
  }
  return false;
}

/// 10 for "<0x0A>"; -1 for any other form.
inline int parseByteToken(const GgufString& text) {
  if (text.bytes != 6 || std::memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') {
    return -1;
  }
  const int high = hexDigit(text.data[3]);
  const int low = hexDigit(text.data[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Tokens for fill-in-the-middle: before the gap, after it, and where the model writes.

/// -1: missing. Either all three or none.
struct FillTokens {
  int32_t prefix = -1;
  int32_t suffix = -1;
  int32_t middle = -1;
};

/// From the file's keys, otherwise by name.
FillTokens fillTokens(const GgufFile& file, const Tokenizer& tokenizer);

// The tokenizer data in a file: its kind and its lists, found and counted but not yet read.

class TokenizerSource {
 public:
  TokenizerSource(const GgufFile& file, const Log& log) : file_(file), log_(log) {}

  /// Finds everything below; errors name the missing or unknown key.
  Status read();
  /// The error for a missing or unreadable key.
  Status missing(const char* key) const;

  TokenizerKind kind = TokenizerKind::kBpe;
  PreTokenizerRules rules;
  bool pre_guessed = false;  ///< the file names none, as with old converters
  bool has_types = false;
  GgufArray tokens;
  GgufArray types;   ///< if has_types: the type of each token
  GgufArray scores;  ///< SPM and unigram: the score of each token
  GgufArray map;     ///< unigram: bytes, may be empty
  GgufArray merges;  ///< both kinds of BPE
  uint32_t n_vocab = 0;
  uint32_t n_merges = 0;
  bool hasScores() const { return kind == TokenizerKind::kSpm || kind == TokenizerKind::kUnigram; }
  bool hasMerges() const { return kind == TokenizerKind::kBpe || kind == TokenizerKind::kCharBpe; }

 private:
  Status readKind();
  void guessPreTokenizer();
  Status readArrays();
  /// An array with one entry per token.
  Status readParallel(const char* key, GgufArray* array);

  const GgufFile& file_;
  const Log& log_;
};

}  // namespace oriel_internal
