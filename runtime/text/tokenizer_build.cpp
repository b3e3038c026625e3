// Builds a tokenizer's tables from a file. The file is untrusted: counts are checked before they size anything, and odd
// tokens are refused or excluded from merges.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <new>

#include "base/half.h"
#include "base/hash.h"
#include "base/version.h"
#include "text/pretokenizer.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace oriel_internal {
namespace {

/// Unsigned numbers sorted by descending score; NaN comes last.
uint32_t priorityOfScore(float score) {
  if (std::isnan(score)) {
    return UINT32_MAX;
  }
  const uint32_t bits = floatToBits(score + 0.0f);  // -0 becomes 0
  return (bits & 0x80000000u) != 0 ? bits : 0x7FFFFFFFu - bits;
}

}  // namespace

class TokenizerBuilder {
 public:
  TokenizerBuilder(const GgufFile& file, const Log& log, const StopCheck& stop,
                   const TokenizerBlock& saved)
      : file_(file), log_(log), stop_(stop), saved_(saved), source_(file, log) {}

  Status build(Arena* arena, Tokenizer** tokenizer) {
    *tokenizer = nullptr;
    ORIEL_TRY(source_.read());
    readIds(!arena->measuring());
    ORIEL_TRY(saved_.data != nullptr ? measureSaved() : measureTokens());
    const uint64_t first = arena->used();
    Tokenizer* memory = arena->take<Tokenizer>(1);
    offsets_ = arena->take<uint32_t>(uint64_t{source_.n_vocab} + 1);
    flags_ = arena->take<uint8_t>(source_.n_vocab);
    pool_ = arena->take<char>(pool_bytes_);
    specials_ = arena->take<uint32_t>(n_specials_);
    target_.tokens_.take(arena, source_.n_vocab);
    if (source_.hasScores()) {
      priorities_ = arena->take<uint32_t>(source_.n_vocab);
      map_ = arena->take<uint8_t>(source_.map.count);
    } else if (source_.hasMerges()) {
      merges_ = arena->take<Tokenizer::Merge>(source_.n_merges);
      target_.merge_index_.take(arena, source_.n_merges);
    }
    if (saved_.data != nullptr && arena->used() - first != saved_.bytes) {
      return differs();
    }
    if (arena->measuring()) {
      return kOk;
    }
    if (arena->exhausted()) {
      return log_.fail(
          ORIEL_ERROR_INTERNAL,
          "the tokenizer's tables need more memory than was planned: please report it");
    }
    target_.n_vocab_ = source_.n_vocab;
    target_.pool_bytes_ = pool_bytes_;
    target_.kind_ = source_.kind;
    target_.pre_ = source_.rules.pre;
    target_.whole_words_ = source_.rules.whole_words;
    target_.nfc_ = source_.rules.nfc;
    target_.specials_ = specials_;
    target_.pool_ = pool_;
    target_.offsets_ = offsets_;
    target_.flags_ = flags_;
    target_.priorities_ = priorities_;
    if (source_.map.count != 0) {
      std::memcpy(map_, source_.map.data, static_cast<size_t>(source_.map.count));
    }
    target_.map_ = map_;
    target_.map_bytes_ = source_.map.count;
    target_.merges_ = merges_;
    if (saved_.data != nullptr) {
      ORIEL_TRY(copySaved());
    } else {
      ORIEL_TRY(fillTokens());
      sortSpecials();
      if (source_.hasMerges()) {
        ORIEL_TRY(fillMerges());
      }
    }
    *tokenizer = new (memory) Tokenizer(target_);
    return kOk;
  }

 private:
  /// A token in its stored form.
  struct Decoded {
    char bytes[kMaxTokenBytes];
    size_t n_bytes = 0;
    uint8_t flags = 0;
    int byte = -1;  ///< byte tokens: the byte
  };

  /// Walks the tokens with their types and scores.
  struct Walk {
    explicit Walk(const TokenizerBuilder& builder)
        : tokens(builder.source_.tokens),
          types(builder.source_.types),
          scores(builder.source_.scores) {}
    GgufArrayReader tokens;
    GgufArrayReader types;
    GgufArrayReader scores;
  };

  /// Reads the next token of `walk`, number `id`, and decodes it.
  Status nextToken(Walk* walk, uint32_t id, Decoded* token, float* score) const {
    GgufString text;
    int64_t type = Tokenizer::kNormal;
    *score = 0.0f;
    if (!walk->tokens.nextString(&text)) {
      return source_.missing("tokenizer.ggml.tokens");
    }
    if (source_.has_types && !walk->types.nextInt(&type)) {
      return source_.missing("tokenizer.ggml.token_type");
    }
    if (source_.hasScores() && !walk->scores.nextFloat(score)) {
      return source_.missing("tokenizer.ggml.scores");
    }
    if (text.bytes > kMaxTokenBytes) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "token %u is %llu bytes long: use a model whose tokens have at most %u", id,
                       static_cast<unsigned long long>(text.bytes), kMaxTokenBytes);
    }
    if (type < Tokenizer::kNormal || type > Tokenizer::kByte) {
      type = Tokenizer::kNormal;  // "undefined", and types of later versions
    }
    const int32_t own_id = static_cast<int32_t>(id);
    if (isTurnToken(text, type, own_id)) {
      type = Tokenizer::kControl;
    }
    token->byte = -1;
    if (marksSpaces()) {
      token->byte = !source_.has_types || type == Tokenizer::kByte ? parseByteToken(text) : -1;
      if (type == Tokenizer::kByte && token->byte < 0) {
        return log_.fail(ORIEL_ERROR_FORMAT,
                         "token %u is a byte token but reads \"%s\": convert the model again", id,
                         PrintableText(text).text);
      }
    }
    if (token->byte >= 0) {
      type = Tokenizer::kByte;
    } else if (type == Tokenizer::kByte) {
      type = Tokenizer::kNormal;  // byte-level BPE needs no byte tokens
    }
    // SentencePiece matches user-defined runs of spaces like other symbols.
    const bool spaced = marksSpaces() && type == Tokenizer::kUserDefined;
    const bool decoded = (!Tokenizer::isWhole(type) || spaced) && decodeOrdinary(text, token);
    const bool verbatim = Tokenizer::isWhole(type) || !decoded;
    if (!decoded) {
      std::memcpy(token->bytes, text.data, text.bytes);
      token->n_bytes = text.bytes;
    }
    if (token->byte >= 0) {
      token->bytes[0] = static_cast<char>(token->byte);
      token->n_bytes = 1;
    }
    token->flags = static_cast<uint8_t>(type);
    if (verbatim || token->byte >= 0) {
      token->flags |= Tokenizer::kVerbatim;
    }
    const bool stops = isOneOf(text, kStopNames) || text.equals(kCloseName);
    if (isEndId(own_id) || (stops && type == Tokenizer::kControl) ||
        (Tokenizer::isWhole(type) && isOneOf(text, kFillEndNames))) {
      token->flags |= Tokenizer::kStop;
    }
    if (type == Tokenizer::kControl && isOneOf(text, kShownNames)) {
      token->flags |= Tokenizer::kShown;
    }
    if (strips_right_ && Tokenizer::isWhole(type) && own_id != target_.bos_id_ &&
        own_id != target_.unknown_id_ && !text.equals("<|endoftext|>")) {
      token->flags |= Tokenizer::kStripsRight;
    }
    return kOk;
  }

  /// True for tokens that mark turns although the file calls them ordinary or user-defined: as user input they would end
  /// or open a turn.
  bool isTurnToken(const GgufString& text, int64_t type, int32_t id) const {
    if (type == Tokenizer::kUserDefined) {
      return isOneOf(text, kStopNames) || isOneOf(text, kTurnNames) || isEndId(id);
    }
    const bool untyped = !source_.has_types && (isEndId(id) || id == target_.bos_id_);
    const bool named = source_.kind == TokenizerKind::kCharBpe
                           ? isOneOf(text, kGemma4Names)
                           : isOneOf(text, kStopNames) || isOneOf(text, kTurnNames) ||
                                 (text.equals(kCloseName) && (!source_.has_types || isEndId(id)));
    return type == Tokenizer::kNormal && (named || untyped);
  }

  bool marksSpaces() const { return source_.kind != TokenizerKind::kBpe; }

  /// Decodes an ordinary token. False for text that merging can never produce; it is shown as written.
  bool decodeOrdinary(const GgufString& text, Decoded* token) const {
    return decodeText(text.data, text.bytes, token->bytes, &token->n_bytes);
  }

  /// The same for a part of a token.
  bool decodeText(const char* text, size_t bytes, char* out, size_t* n_out) const {
    return marksSpaces() ? decodeMarked(text, bytes, out, n_out)
                         : decodeByteLevel(text, bytes, out, n_out);
  }

  /// SentencePiece writes a space as U+2581. Here spaces are plain, in vocabulary and text.
  static bool decodeMarked(const char* text, size_t bytes, char* out, size_t* n_out) {
    *n_out = 0;
    for (size_t at = 0; at < bytes; ++at) {
      char c = text[at];
      if (c == ' ') {
        return false;
      }
      if (bytes - at >= 3 && std::memcmp(text + at, "\xE2\x96\x81", 3) == 0) {
        c = ' ';
        at += 2;
      }
      out[(*n_out)++] = c;
    }
    return true;
  }

  static bool isSpecial(const Decoded& token) {
    return token.n_bytes != 0 && Tokenizer::isWhole(token.flags & Tokenizer::kTypeMask);
  }
  bool isEndId(int32_t id) const { return id == target_.eos_id_ || id == eot_id_ || id == eom_id_; }

  Status checkStop(uint32_t number) const {
    constexpr uint32_t kEntriesAtOnce = 4096;
    return number % kEntriesAtOnce == 0 ? stop_.check() : kOk;
  }

  Status measureTokens() {
    Walk walk(*this);
    Decoded token;
    float score = 0.0f;
    uint64_t total = 0;
    for (uint32_t id = 0; id < source_.n_vocab; ++id) {
      ORIEL_TRY(checkStop(id));
      ORIEL_TRY(nextToken(&walk, id, &token, &score));
      total += token.n_bytes;
      n_specials_ += isSpecial(token) ? 1 : 0;
    }
    pool_bytes_ = total;  // at most kMaxVocabulary * kMaxTokenBytes = 2^30
    return kOk;
  }

  Status fillTokens() {
    Walk walk(*this);
    Decoded token;
    float score = 0.0f;
    uint32_t at = 0;
    uint32_t n_specials = 0;
    for (int32_t& id : target_.byte_ids_) {
      id = -1;
    }
    target_.words_end_at_spaces_ = marksSpaces();
    for (uint32_t number = 0; number < source_.n_vocab; ++number) {
      ORIEL_TRY(checkStop(number));
      const int32_t id = static_cast<int32_t>(number);
      ORIEL_TRY(nextToken(&walk, number, &token, &score));
      if (token.n_bytes > pool_bytes_ - at || (isSpecial(token) && n_specials == n_specials_)) {
        return log_.fail(
            ORIEL_ERROR_IO,
            "the file's list of tokens changed while it was being read: load it again");
      }
      std::memcpy(pool_ + at, token.bytes, token.n_bytes);
      offsets_[number] = at;
      at += static_cast<uint32_t>(token.n_bytes);
      offsets_[number + 1] = at;
      flags_[number] = token.flags;
      if (isSpecial(token)) {
        specials_[n_specials++] = number;
      }
      if (source_.kind == TokenizerKind::kUnigram) {
        priorities_[number] = floatToBits(score);
        const bool normal = (token.flags & Tokenizer::kTypeMask) == Tokenizer::kNormal;
        target_.least_score_ =
            normal ? std::min(target_.least_score_, score) : target_.least_score_;
      } else if (priorities_ != nullptr) {
        priorities_[number] = priorityOfScore(score);
      }
      ORIEL_TRY(indexToken(id, token));
    }
    return kOk;
  }

  Status indexToken(int32_t id, const Decoded& token) {
    if (token.byte >= 0) {
      int32_t* slot = &target_.byte_ids_[token.byte];
      *slot = *slot < 0 ? id : *slot;
      return kOk;
    }
    if (token.n_bytes == 0) {
      return kOk;  // an empty token is never found
    }
    const bool verbatim = (token.flags & Tokenizer::kVerbatim) != 0;
    KeyHash hash = Tokenizer::keyHash(verbatim);
    hash.add(token.bytes, token.n_bytes);
    // Among tokens with equal text the last counts, as in llama.cpp.
    const auto same = [&](uint32_t other) {
      const Tokenizer::Piece known = target_.bytesOf(static_cast<int32_t>(other));
      return ((flags_[other] & Tokenizer::kVerbatim) != 0) == verbatim &&
             known.bytes == token.n_bytes &&
             std::memcmp(known.data, token.bytes, token.n_bytes) == 0;
    };
    if (target_.tokens_.insert(hash.end(), static_cast<uint32_t>(id), true, same) ==
        IndexTable::Inserted::kTooMany) {
      return log_.fail(
          ORIEL_ERROR_FORMAT,
          "the vocabulary looks made to be slow to search: get the model from a source "
          "you trust");
    }
    const uint32_t bytes = static_cast<uint32_t>(token.n_bytes);
    if (!verbatim) {
      target_.longest_ordinary_ =
          bytes > target_.longest_ordinary_ ? bytes : target_.longest_ordinary_;
      if (source_.kind == TokenizerKind::kBpe && token.n_bytes == 1) {
        target_.byte_ids_[static_cast<uint8_t>(token.bytes[0])] = id;
      }
      for (size_t i = 1; i < token.n_bytes; ++i) {
        if (token.bytes[i] == ' ' && token.bytes[i - 1] != ' ') {
          target_.words_end_at_spaces_ = false;
        }
      }
    } else if (isSpecial(token)) {
      target_.longest_special_ =
          bytes > target_.longest_special_ ? bytes : target_.longest_special_;
      target_.special_lengths_[token.n_bytes / 64] |= uint64_t{1} << (token.n_bytes % 64);
    }
    return kOk;
  }

  void sortSpecials() {
    std::sort(specials_, specials_ + n_specials_, [this](uint32_t a, uint32_t b) {
      const Tokenizer::Piece left = target_.bytesOf(static_cast<int32_t>(a));
      const Tokenizer::Piece right = target_.bytesOf(static_cast<int32_t>(b));
      const int order =
          std::memcmp(left.data, right.data, left.bytes < right.bytes ? left.bytes : right.bytes);
      if (order != 0) {
        return order < 0;
      }
      return left.bytes != right.bytes ? left.bytes < right.bytes : a < b;
    });
    uint32_t next = 0;
    for (uint32_t byte = 0; byte <= 256; ++byte) {
      while (next < n_specials_ && firstByte(specials_[next]) < byte) {
        ++next;
      }
      target_.special_first_[byte] = next;
    }
  }

  Status differs() const { return notOfThisModel(log_); }

  /// Counts the tables of saved_.
  Status measureSaved() {
    if (saved_.bytes < sizeof(Tokenizer)) {
      return differs();
    }
    std::memcpy(static_cast<void*>(&facts_), saved_.data, sizeof(Tokenizer));
    pool_bytes_ = facts_.pool_bytes_;
    n_specials_ = facts_.special_first_[256];
    const bool plausible = pool_bytes_ <= saved_.bytes && n_specials_ <= source_.n_vocab &&
                           facts_.n_vocab_ == source_.n_vocab;
    return plausible ? Status(kOk) : differs();
  }

  /// Copies the tables of saved_ in the order in which build() takes them. Every index is checked, since whatever wrote
  /// the file may have had another vocabulary.
  Status copySaved() {
    uint8_t ends = 0;  // any byte, so not read as a bool
    std::memcpy(&ends, &facts_.words_end_at_spaces_, sizeof(ends));
    target_.words_end_at_spaces_ = ends != 0;
    target_.least_score_ = facts_.least_score_;
    target_.longest_ordinary_ = facts_.longest_ordinary_;
    target_.longest_special_ = facts_.longest_special_;
    std::copy_n(facts_.byte_ids_, 256, target_.byte_ids_);
    std::copy_n(facts_.special_first_, 257, target_.special_first_);
    std::copy_n(facts_.special_lengths_, std::size(facts_.special_lengths_),
                target_.special_lengths_);
    const uint32_t n_vocab = source_.n_vocab;
    uint64_t at = 0;
    const auto next = [&](uint64_t bytes) {
      const uint8_t* const piece = saved_.data + at;
      at = alignUp(at + bytes, Arena::kAlignment);
      return piece;
    };
    const auto copy = [&](void* to, uint64_t bytes) {
      const uint8_t* const from = next(bytes);
      if (bytes != 0) {
        std::memcpy(to, from, static_cast<size_t>(bytes));
      }
    };
    (void)next(sizeof(Tokenizer));
    copy(offsets_, (uint64_t{n_vocab} + 1) * sizeof(*offsets_));
    copy(flags_, n_vocab);
    copy(pool_, pool_bytes_);
    copy(specials_, n_specials_ * sizeof(*specials_));
    bool fits = target_.tokens_.copyFrom(next(target_.tokens_.bytes()), n_vocab);
    if (source_.hasScores()) {
      copy(priorities_, uint64_t{n_vocab} * sizeof(*priorities_));
      // The map was copied from the model's file.
    } else if (source_.hasMerges()) {
      copy(merges_, uint64_t{source_.n_merges} * sizeof(*merges_));
      fits = fits &&
             target_.merge_index_.copyFrom(next(target_.merge_index_.bytes()), source_.n_merges);
      for (uint32_t i = 0; i < source_.n_merges; ++i) {
        fits = fits && (merges_[i].packed == UINT64_MAX || target_.valid(merges_[i].merged()));
      }
    }
    fits = fits && offsets_[0] == 0 && offsets_[n_vocab] == pool_bytes_ &&
           target_.longest_special_ <= kMaxTokenBytes &&
           target_.longest_ordinary_ <= kMaxTokenBytes;
    for (uint32_t id = 0; id < n_vocab; ++id) {
      fits = fits && offsets_[id + 1] >= offsets_[id] &&
             offsets_[id + 1] - offsets_[id] <= kMaxTokenBytes;
    }
    for (uint32_t i = 0; i < n_specials_; ++i) {
      fits = fits && specials_[i] < n_vocab;
    }
    for (uint32_t byte = 0; byte < 256; ++byte) {
      fits = fits && target_.special_first_[byte] <= target_.special_first_[byte + 1] &&
             (target_.byte_ids_[byte] == -1 || target_.valid(target_.byte_ids_[byte]));
    }
    return fits ? Status(kOk) : differs();
  }

  uint8_t firstByte(uint32_t id) const {
    return static_cast<uint8_t>(target_.bytesOf(static_cast<int32_t>(id)).data[0]);
  }

  Status fillMerges() {
    GgufArrayReader reader(source_.merges);
    uint32_t n_ignored = 0;
    for (uint32_t rank = 0; rank < source_.n_merges; ++rank) {
      ORIEL_TRY(checkStop(rank));
      GgufString text;
      if (!reader.nextString(&text)) {
        return source_.missing("tokenizer.ggml.merges");
      }
      Tokenizer::Merge* merge = &merges_[rank];
      if (!parseMerge(text, merge)) {
        // Symbols are ids here, so a merge through a text without an id is impossible. Published vocabularies have
        // none, and other tokenizers refuse such files.
        *merge = {};
        ++n_ignored;
        continue;
      }
      if (merge->packed == UINT64_MAX) {
        continue;
      }
      const auto same = [&](uint32_t other) { return merges_[other].pair() == merge->pair(); };
      if (target_.merge_index_.insert(KeyHash::mix(merge->pair()), rank, false, same) ==
          IndexTable::Inserted::kTooMany) {
        return log_.fail(
            ORIEL_ERROR_FORMAT,
            "the tokenizer's merges look made to be slow to search: get the model from "
            "a source you trust");
      }
    }
    if (n_ignored != 0) {
      log_.write(
          ORIEL_LOG_WARNING,
          "%u of %u merges name tokens that the vocabulary lacks and are ignored: text may be "
          "split differently from how the model was trained",
          n_ignored, source_.n_merges);
    }
    return kOk;
  }

  /// "left right", in the tokens' own spelling, which has no space. Merges to a special token are dropped: user input
  /// must not produce one.
  bool parseMerge(const GgufString& text, Tokenizer::Merge* merge) const {
    if (text.bytes == 0 || text.bytes > 2 * kMaxTokenBytes) {
      return false;
    }
    const char* space = static_cast<const char*>(std::memchr(text.data, ' ', text.bytes));
    if (space == nullptr) {
      return false;
    }
    const size_t left_bytes = static_cast<size_t>(space - text.data);
    char bytes[2 * kMaxTokenBytes];
    size_t n_left = 0;
    size_t n_right = 0;
    if (!decodeText(text.data, left_bytes, bytes, &n_left) ||
        !decodeText(space + 1, text.bytes - left_bytes - 1, bytes + n_left, &n_right)) {
      return false;
    }
    if (n_left == 0 || n_right == 0) {
      return false;
    }
    const int32_t left = symbolOf(bytes, n_left);
    const int32_t right = symbolOf(bytes + n_left, n_right);
    const int32_t merged = symbolOf(bytes, n_left + n_right);
    if (left < 0 || right < 0 || merged < 0) {
      *merge = {};
      return merged < 0 && target_.lookUp(true, bytes, n_left + n_right) >= 0;
    }
    merge->packed = Tokenizer::Merge::pairOf(left, right) << Tokenizer::Merge::kIdBits |
                    static_cast<uint32_t>(merged);
    return true;
  }

  /// The token for these bytes in merges, -1: none. Gemma 4's merges also produce the unknown token and user-defined
  /// tokens, which are safe as user input.
  int32_t symbolOf(const char* bytes, size_t n_bytes) const {
    int32_t id = target_.lookUp(false, bytes, n_bytes);
    if (id < 0 && source_.kind == TokenizerKind::kCharBpe) {
      id = target_.lookUp(true, bytes, n_bytes);
      const int type = id < 0 ? Tokenizer::kControl : target_.type(id);
      id = type == Tokenizer::kUnknown || type == Tokenizer::kUserDefined ? id : -1;
    }
    return id;
  }

  /// The id under `key`, or `otherwise` if missing; -1 if it is outside the vocabulary.
  int32_t readId(const char* key, int32_t otherwise, bool warn) const {
    uint64_t id = 0;
    if (!file_.getUint(key, &id)) {
      return otherwise >= 0 && static_cast<uint32_t>(otherwise) < source_.n_vocab ? otherwise : -1;
    }
    if (id >= source_.n_vocab) {
      if (warn) {
        log_.write(ORIEL_LOG_WARNING, "%s is %llu, but there are %u tokens: it is ignored", key,
                   static_cast<unsigned long long>(id), source_.n_vocab);
      }
      return -1;
    }
    return static_cast<int32_t>(id);
  }

  void readIds(bool warn) {
    const bool spm = source_.kind == TokenizerKind::kSpm;
    const bool words = source_.kind == TokenizerKind::kWordPiece;
    const bool unigram = source_.kind == TokenizerKind::kUnigram;
    if (source_.pre_guessed && warn) {
      log_.write(ORIEL_LOG_WARNING,
                 "the file names no pre-tokenizer and %s is used: if text comes out badly, convert "
                 "the model again with a newer converter",
                 preTokenizerName(source_.rules.pre));
    }
    // The defaults are SentencePiece's own order: <unk>, <s>, </s>.
    target_.unknown_id_ = readId("tokenizer.ggml.unknown_token_id",
                                 spm       ? 0
                                 : words   ? 100
                                 : unigram ? 2
                                           : -1,
                                 warn);
    target_.bos_id_ = readId("tokenizer.ggml.bos_token_id", spm ? 1 : -1, warn);
    target_.eos_id_ = readId("tokenizer.ggml.eos_token_id", spm ? 2 : unigram ? 1 : -1, warn);
    if (words) {  // [CLS] and [SEP]
      target_.bos_id_ = readId("tokenizer.ggml.cls_token_id", target_.bos_id_, warn);
      target_.eos_id_ = readId("tokenizer.ggml.seperator_token_id", target_.eos_id_, warn);
      target_.lowers_ = true;
      file_.getBool("tokenizer.ggml.normalizer.lowercase", &target_.lowers_);
      target_.strips_accents_ = target_.lowers_;
      file_.getBool("tokenizer.ggml.normalizer.strip_accents", &target_.strips_accents_);
      target_.add_eos_ = true;
    }
    eot_id_ = readId("tokenizer.ggml.eot_token_id", -1, warn);
    eom_id_ = readId("tokenizer.ggml.eom_token_id", -1, warn);
    target_.add_bos_ = spm || words || source_.rules.add_bos;
    file_.getBool("tokenizer.ggml.add_bos_token", &target_.add_bos_);
    target_.add_bos_ = target_.add_bos_ && target_.bos_id_ >= 0;
    file_.getBool("tokenizer.ggml.add_eos_token", &target_.add_eos_);
    target_.add_eos_ = target_.add_eos_ && target_.eos_id_ >= 0;
    target_.add_space_prefix_ = spm || unigram || words;
    file_.getBool("tokenizer.ggml.remove_extra_whitespaces", &target_.merges_spaces_);
    if (spm || unigram) {
      file_.getBool("tokenizer.ggml.add_space_prefix", &target_.add_space_prefix_);
    }
    // Phi-3 and 3.5 were trained this way; their files do not say it. (Later ones use byte-level BPE.)
    GgufString architecture;
    strips_right_ = spm && file_.getString("general.architecture", &architecture) &&
                    architecture.equals("phi3");
  }

  const GgufFile& file_;
  const Log& log_;
  const StopCheck stop_;
  const TokenizerBlock saved_;
  Tokenizer facts_;  ///< the object in saved_, without its pointers
  TokenizerSource source_;
  bool strips_right_ = false;
  uint32_t n_specials_ = 0;
  uint64_t pool_bytes_ = 0;
  int32_t eot_id_ = -1;
  int32_t eom_id_ = -1;
  uint32_t* offsets_ = nullptr;
  uint8_t* flags_ = nullptr;
  char* pool_ = nullptr;
  uint32_t* specials_ = nullptr;
  uint32_t* priorities_ = nullptr;
  uint8_t* map_ = nullptr;
  Tokenizer::Merge* merges_ = nullptr;
  Tokenizer target_;
};

Status Tokenizer::build(const GgufFile& file, const Log& log, Arena* arena, Tokenizer** tokenizer,
                        const StopCheck& stop, const TokenizerBlock& saved) {
  return TokenizerBuilder(file, log, stop, saved).build(arena, tokenizer);
}

Tokenizer Tokenizer::withoutTables() const {
  Tokenizer facts = *this;
  facts.pool_ = nullptr;
  facts.offsets_ = nullptr;
  facts.flags_ = nullptr;
  facts.priorities_ = nullptr;
  facts.map_ = nullptr;
  facts.merges_ = nullptr;
  facts.specials_ = nullptr;
  facts.tokens_ = IndexTable();
  facts.merge_index_ = IndexTable();
  return facts;
}

Status notOfThisModel(const Log& log) {
  return log.fail(
      ORIEL_ERROR_IO,
      "the prepared vocabulary is not this model's: empty the folder of prepared files");
}

uint64_t Tokenizer::tablesHash() {
  constexpr uint64_t kTables = 1;
  const uint64_t facts[] = {kTables, sizeof(Tokenizer), kMaxTokenBytes};
  return hashBytes(facts, sizeof(facts), hashBytes(kVersionText, sizeof(kVersionText)));
}

}  // namespace oriel_internal
