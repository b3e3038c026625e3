// Converts text to token ids and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/arena.h"
#include "base/log.h"
#include "base/steps.h"
#include "gguf/gguf.h"
#include "text/merge.h"
#include "text/normalise.h"

namespace oriel_internal {

/// Longest token of a vocabulary, in bytes; real ones stay under 300.
constexpr uint32_t kMaxTokenBytes = 1024;
/// Longest text per encode call, in bytes: offsets fit 32 bits, and a word's working memory (see Tokenizer::workBytes)
/// fits half the address space.
constexpr size_t kMaxTextBytes = SIZE_MAX / 128 < (1u << 30) ? SIZE_MAX / 128 : (1u << 30);

enum class TokenizerKind : uint8_t {
  kBpe,        ///< merges over bytes, within the words of a pre-tokenizer
  kSpm,        ///< merges by score over characters; a space is U+2581 ("llama")
  kCharBpe,    ///< merges by rank over characters, within lines; a space is U+2581 ("gemma4")
  kWordPiece,  ///< pieces of words, the longest first (text/wordpiece.h, "bert")
  kUnigram,    ///< the tokens with the best sum of scores (text/wordpiece.h, "t5")
};
/// The word splitting before BPE merges.
enum class PreTokenizer : uint8_t {
  kNone,
  kGpt2,
  kSmolLm,
  kQwen2,
  kQwen35,
  kLlama3,
  kTekken,
  kGpt4o,
  kSeedCoder,
  kMiniCpm5,
  kKimiK2,
  kYoutu,
  kDeepSeekLlm,
  kDeepSeekCoder,
  kDeepSeek3,
  kFalcon,
  kBloom,
  kViking,
  kSuperBpe,
  kK2Horizon,
  kJais2,
  kAfmoe,
  kSpark,
  kLaguna,
  kExaoneMoe,
  kTinyAya,
  kLines,
};

/// A part of a text, in bytes.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

struct EncodeOptions {
  /// Control tokens in the text become their ids. (User-defined tokens always do: models treat them as ordinary text.)
  bool special = false;
  /// Put BOS first if the model requires one, unless the text already begins with it.
  bool bos = false;
  /// Put EOS last if the model requires one. Not for text that will be continued.
  bool eos = false;
  bool continues = false;  ///< the text continues a previous one: SPM adds no space
  /// Sorted ranges of the text without control tokens (user input). Merges may cross their borders.
  const TextRange* literal = nullptr;
  size_t n_literal = 0;
  int32_t first_id = -1;  ///< put before everything, regardless of the model; -1: none
};

/// A text in parts, read as one, to avoid copying a long message into its frame.
struct TextParts {
  static constexpr size_t kMost = 9;
  struct Part {
    const char* data = nullptr;
    size_t bytes = 0;
  };
  Part parts[kMost];
  size_t count = 0;

  /// Call at most kMost times, not counting calls whose bytes directly follow the previous part in memory.
  void add(const char* data, size_t bytes) {
    if (bytes == 0) {
      return;
    }
    if (count != 0 && parts[count - 1].data + parts[count - 1].bytes == data) {
      parts[count - 1].bytes += bytes;
    } else {
      parts[count++] = {data, bytes};
    }
  }
  size_t bytes() const {
    size_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      total += parts[i].bytes;
    }
    return total;
  }
};

/// Receives ids during encoding.
class TokenSink {
 public:
  /// Takes `count` ids. `last`: they end the text; otherwise at least one more follows.
  virtual Status take(const int32_t* ids, size_t count, bool last) = 0;
  /// Checked at least every 64 KiB of plain text; true ends encoding with ORIEL_ERROR_CANCELLED.
  virtual bool stops() = 0;

 protected:
  ~TokenSink() = default;
};

/// A built tokenizer with its tables, as build() left them in an arena: one block that a file can keep.
struct TokenizerBlock {
  const uint8_t* data = nullptr;  ///< null: none
  uint64_t bytes = 0;
};

/// The error for a TokenizerBlock whose checksum is right and whose tables are not.
Status notOfThisModel(const Log& log);

/// Immutable after building. All tables are in one arena, independent of the file. Trivially destructible.
class Tokenizer {
 public:
  /// Changes with the tables that build() makes of a file, to identify blocks of this build of the library. Raise
  /// kTables whenever they change.
  static uint64_t tablesHash();
  /// The object as the first bytes of a TokenizerBlock, without addresses.
  Tokenizer withoutTables() const;

  /// Reads the tokenizer of a validated file into `arena`. When measuring it checks everything, counts the bytes and
  /// sets *tokenizer to null; warnings are logged when building. Errors name the missing or unknown key
  /// (ORIEL_ERROR_FORMAT, or ORIEL_ERROR_UNSUPPORTED for an unknown model or pre-tokenizer). Tables are copied from
  /// `saved`, if given, and their bounds are checked: ORIEL_ERROR_IO if it was made of another file.
  static Status build(const GgufFile& file, const Log& log, Arena* arena, Tokenizer** tokenizer,
                      const StopCheck& stop = {}, const TokenizerBlock& saved = {});

  /// Bytes of `workspace` for encode() when the longest word has `word_bytes`. A word is the longest stretch that merges
  /// could join; white space ends it in ordinary vocabularies.
  static constexpr size_t workBytes(size_t word_bytes) { return (word_bytes + 1) * 45 + 48; }

  /// Writes up to `capacity` ids and sets *needed. ORIEL_ERROR_BUFFER_TOO_SMALL if there are more (ids may be partly
  /// written; nothing is logged). Accepts any bytes; invalid UTF-8 becomes byte tokens if the vocabulary has them. O(n
  /// log n) in the longest word. Works in `workspace`.
  Status encode(const char* text, size_t bytes, const EncodeOptions& options, Workspace* workspace,
                const Log& log, int32_t* ids, size_t capacity, size_t* needed) const;

  /// The same ids, `capacity` at a time (fewer at the end), so memory does not grow with the text. Besides encode()'s
  /// memory, `workspace` provides a few KiB if there are several parts, and 11 bytes per byte of the longest stretch
  /// without blanks that needs normalising. If memory runs out, ids already taken by the sink stay taken; size the
  /// workspace by encodeBytes() to prevent that.
  Status encodeParts(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                     const Log& log, int32_t* ids, size_t capacity, TokenSink* sink) const;
  /// Bytes of `workspace` that encodeParts() needs for this text, found by splitting it into words.
  Status encodeBytes(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                     const Log& log, TokenSink* sink, size_t* bytes) const;

  /// Upper bound on encode()'s ids, without EOS: one per byte of normalised text, BOS, and for SPM a space before the
  /// first word and after every special token.
  size_t idsAtMost(size_t bytes) const {
    bytes *= kind_ == TokenizerKind::kUnigram ? kMostMapGrowth : nfc_ ? kMostNfcGrowth : 1;
    const bool one_byte_specials = (special_lengths_[0] & 2) != 0;
    return (add_space_prefix_ && one_byte_specials ? 2 * bytes : bytes) + 2;
  }

  /// A token's bytes inside a text. Control tokens are empty unless `special`, except for those around a thought or a
  /// tool call. The pointer is valid as long as the tokenizer.
  struct Piece {
    const char* data = nullptr;
    size_t bytes = 0;
  };
  Piece piece(int32_t id, bool special) const;
  /// The bytes of a sequence (SPM drops the space before the first word). ORIEL_ERROR_ARGUMENT for an id outside the
  /// vocabulary. Writes nothing if *needed exceeds `capacity` (ORIEL_ERROR_BUFFER_TOO_SMALL).
  Status decode(const int32_t* ids, size_t count, bool special, char* text, size_t capacity,
                size_t* needed) const;

  uint32_t vocabSize() const;
  TokenizerKind kind() const;
  PreTokenizer preTokenizer() const;
  int32_t bosId() const;  ///< -1: none
  int32_t eosId() const;  ///< -1: none
  bool addBos() const;
  /// The file requires EOS after a complete text, e.g. one to embed.
  bool addEos() const;
  /// SPM: encode() adds a space before the first word, so decoded text starts with a space to drop.
  bool addsSpacePrefix() const;
  /// True for tokens that end a text or a turn: EOS, EOT, EOM, and end-of-turn tokens of chat formats.
  bool isStop(int32_t id) const;
  /// Id of the token with exactly this spelling; -1: none.
  int32_t find(const char* text, size_t bytes) const;
  bool isControl(int32_t id) const;

 private:
  friend class TokenizerBuilder;
  friend class TokenEncoder;
  friend class SpecialTokens;
  friend class WordPieces;
  friend class Unigram;

  /// Characters that the map of a unigram tokenizer makes of a byte, in known files.
  static constexpr size_t kMostMapGrowth = 12;

  /// Values of tokenizer.ggml.token_type.
  enum Type : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  static constexpr uint8_t kTypeMask = 7;
  /// Recognised in a text before any merge.
  static bool isWhole(int64_t type) {
    return type == kUnknown || type == kControl || type == kUserDefined;
  }
  static constexpr uint8_t kStop = 8;
  /// Represents exactly its text and takes no part in merges.
  static constexpr uint8_t kVerbatim = 16;
  /// White space after it is dropped.
  static constexpr uint8_t kStripsRight = 32;
  /// A control token that is shown, because it classifies the text next to it.
  static constexpr uint8_t kShown = 64;

  /// A pair of ids and their merge, 21 bits each: merges are a vocabulary's largest table.
  struct Merge {
    static constexpr uint32_t kIdBits = IndexTable::kIndexBits;
    uint64_t packed = UINT64_MAX;  ///< all ones: unused, its tokens are missing in the vocabulary

    static uint64_t pairOf(int32_t left, int32_t right) {
      return uint64_t{static_cast<uint32_t>(left)} << kIdBits | static_cast<uint32_t>(right);
    }
    uint64_t pair() const { return packed >> kIdBits; }
    int32_t merged() const { return static_cast<int32_t>(packed & ((1u << kIdBits) - 1)); }
  };

  Tokenizer() = default;
  bool valid(int32_t id) const { return id >= 0 && static_cast<uint32_t>(id) < n_vocab_; }
  Type type(int32_t id) const { return static_cast<Type>(flags_[id] & kTypeMask); }
  Piece bytesOf(int32_t id) const {
    return {pool_ + offsets_[id], size_t{offsets_[id + 1]} - offsets_[id]};
  }
  /// The key in tokens_: the represented bytes, with ordinary and verbatim tokens separate.
  static KeyHash keyHash(bool verbatim) { return KeyHash(verbatim ? 1 : 0); }
  /// True if `id` represents exactly its text, and that is this text.
  bool isVerbatim(int32_t id, const char* text, size_t bytes) const {
    const Piece known = bytesOf(id);
    return (flags_[id] & kVerbatim) != 0 && known.bytes == bytes &&
           std::memcmp(known.data, text, bytes) == 0;
  }
  int32_t lookUp(uint64_t hash, bool verbatim, const char* text, size_t bytes) const;
  int32_t lookUp(bool verbatim, const char* text, size_t bytes) const;

  uint32_t n_vocab_ = 0;
  TokenizerKind kind_ = TokenizerKind::kBpe;
  PreTokenizer pre_ = PreTokenizer::kNone;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool add_space_prefix_ = false;
  bool whole_words_ = false;     ///< BPE: a word that is a token is not merged but taken
  bool nfc_ = false;             ///< BPE: text is normalised before it is cut into words
  bool lowers_ = false;          ///< WordPiece: capitals become small letters
  bool strips_accents_ = false;  ///< WordPiece: letters lose their accents
  bool merges_spaces_ = false;   ///< unigram: runs of spaces are one, and none ends the text
  /// Not kBpe: no piece has a space after something else, so words can be merged one by one.
  bool words_end_at_spaces_ = false;
  int32_t bos_id_ = -1;
  int32_t eos_id_ = -1;
  int32_t unknown_id_ = -1;
  uint64_t pool_bytes_ = 0;
  const char* pool_ = nullptr;         ///< bytes of all pieces, in order of id, with plain spaces
  const uint32_t* offsets_ = nullptr;  ///< [n_vocab + 1] into pool_
  const uint8_t* flags_ = nullptr;     ///< [n_vocab] type and bits
  /// [n_vocab] SPM: less for a better score. Unigram: the score, as bits of a float.
  const uint32_t* priorities_ = nullptr;
  const uint8_t* map_ = nullptr;  ///< unigram: how text is normalised
  uint64_t map_bytes_ = 0;
  float least_score_ = 0;          ///< unigram: of ordinary tokens
  const Merge* merges_ = nullptr;  ///< both kinds of BPE, best first
  IndexTable tokens_;
  IndexTable merge_index_;         ///< pair of ids to index in merges_
  int32_t byte_ids_[256] = {};     ///< token of a byte, -1: none
  uint32_t longest_ordinary_ = 0;  ///< bytes of the longest token that merges can make
  uint32_t longest_special_ = 0;   ///< bytes
  /// Control, user-defined and unknown tokens sorted by bytes, on a tie the effective one last. Tokens that begin with
  /// byte b are in [special_first_[b], special_first_[b + 1]).
  const uint32_t* specials_ = nullptr;
  uint32_t special_first_[257] = {};
  uint64_t special_lengths_[kMaxTokenBytes / 64 + 1] = {};  ///< bit set of their lengths
};

/// Converts a stream of tokens to whole UTF-8 characters. Incomplete characters are kept back; invalid bytes are
/// replaced by U+FFFD.
class StreamDecoder {
 public:
  /// Longest output of one call: a broken byte becomes the three bytes of U+FFFD.
  static constexpr size_t kMostBytes = 3 * (kMaxTokenBytes + 4);

  void reset(bool drop_first_space);
  /// Overwrites its buffers.
  void forget();
  /// Appends a piece of at most kMaxTokenBytes; *text is the text to show now (inside this object, valid until the next
  /// call).
  void push(Tokenizer::Piece piece, const char** text, size_t* bytes);
  /// The rest at the end (an incomplete character becomes U+FFFD).
  void finish(const char** text, size_t* bytes);
  /// True while a character is incomplete.
  bool insideCharacter() const { return n_pending_ != 0; }

 private:
  void emitWhole(const char* bytes, size_t count, bool at_end);

  char pending_[4] = {};  ///< an incomplete character
  size_t n_pending_ = 0;
  bool drop_space_ = false;
  size_t n_text_ = 0;
  char text_[kMostBytes] = {};
};

}  // namespace oriel_internal
