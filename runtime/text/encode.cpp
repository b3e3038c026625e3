// Text to ids: special tokens first, then words between them, then merges within words. The text comes in stretches. If
// more text follows a stretch, only the part that later bytes cannot change is encoded.
#include <algorithm>
#include <cstring>

#include "text/merge.h"
#include "text/normalise.h"
#include "text/pretokenizer.h"
#include "text/special_tokens.h"
#include "text/unicode.h"
#include "text/wordpiece.h"

namespace oriel_internal {
namespace {

/// Memory for merging one word, as promised by Tokenizer::workBytes().
constexpr size_t kSymbolBytes = sizeof(Symbol);
constexpr size_t kCandidateBytes = mergeCandidateCapacity(1) * sizeof(MergeCandidate);
static_assert(kSymbolBytes + kCandidateBytes + 1 == 45, "update Tokenizer::workBytes()");

/// Memory for overlapping special tokens: a byte's owner and its queue entry.
constexpr size_t kGroupBytes = sizeof(uint16_t) + sizeof(uint64_t);
/// Initial size of the copy that joins the ends of two parts.
constexpr size_t kJoinedBytes = 2048;
/// Plain text between two checks for a stop.
constexpr size_t kBytesBetweenChecks = 64 * 1024;
/// Alignment of two pieces of a workspace.
constexpr size_t kPieceSlack = 48;

/// Length of SentencePiece white space at `text`: a space, or the U+2581 it becomes.
size_t spmSpaceBytes(const char* text, size_t available) {
  if (text[0] == ' ') {
    return 1;
  }
  return available >= 3 && std::memcmp(text, "\xE2\x96\x81", 3) == 0 ? 3 : 0;
}

}  // namespace

class TokenEncoder {
 public:
  TokenEncoder(const Tokenizer& tokenizer, const EncodeOptions& options, Workspace* workspace,
               const Log& log, int32_t* ids, size_t capacity, TokenSink* sink, bool measures)
      : t_(tokenizer),
        words_(tokenizer),
        unigram_(tokenizer),
        specials_(tokenizer),
        options_(options),
        workspace_(workspace),
        log_(log),
        ids_(ids),
        capacity_(capacity),
        sink_(sink),
        measures_(measures) {}

  Status encode(const TextParts& text) {
    const size_t total = text.bytes();
    ORIEL_TRY(check(total));
    after_special_ = !options_.continues;
    unigram_.begin(t_.add_space_prefix_ && after_special_);
    if (options_.first_id >= 0) {
      emit(options_.first_id);
    }
    if (options_.bos && t_.add_bos_ && !beginsWithBos(text)) {
      emit(t_.bos_id_);
    }
    ORIEL_TRY(encodeParts(text, total));
    if (options_.eos && t_.add_eos_) {
      emit(t_.eos_id_);
    }
    if (sink_ != nullptr && !measures_ && taken_.ok()) {
      taken_ = sink_->take(ids_, n_ids_, true);
    }
    return taken_;
  }

  size_t count() const { return n_ids_; }
  size_t bytesNeeded() const { return word_bytes_ + group_bytes_ + joined_bytes_ + normal_bytes_; }

 private:
  using Match = SpecialTokens::Match;

  Status check(size_t bytes) const {
    if (bytes > kMaxTextBytes) {
      return log_.fail(ORIEL_ERROR_ARGUMENT, "the text has %llu bytes: pass at most %llu at a time",
                       static_cast<unsigned long long>(bytes),
                       static_cast<unsigned long long>(kMaxTextBytes));
    }
    size_t last = 0;
    for (size_t i = 0; i < options_.n_literal; ++i) {
      const TextRange& range = options_.literal[i];
      if (range.begin < last || range.end < range.begin || range.end > bytes) {
        return log_.fail(ORIEL_ERROR_ARGUMENT,
                         "literal range %llu is outside the text or out of order: pass ranges in "
                         "order that do not overlap",
                         static_cast<unsigned long long>(i));
      }
      last = range.end;
    }
    return kOk;
  }

  /// True if the text starts with BOS: models do not expect a second one.
  bool beginsWithBos(const TextParts& text) const {
    char head[kMaxTokenBytes];
    size_t bytes = 0;
    for (size_t i = 0; i < text.count && bytes < specials_.longestBytes(); ++i) {
      const size_t n = std::min(text.parts[i].bytes, specials_.longestBytes() - bytes);
      std::memcpy(head + bytes, text.parts[i].data, n);
      bytes += n;
    }
    return bytes != 0 &&
           specials_
                   .longest(head, bytes, [&](int32_t id, size_t n) { return maySpecial(id, 0, n); })
                   .id == t_.bos_id_;
  }

  // --- Stretches ---------------------------------------------------------------------------------

  /// Long parts are read in place. Their ends are read from a copy that grows until a word ends in it.
  Status encodeParts(const TextParts& text, size_t total) {
    size_t part = 0;
    size_t part_begin = 0;
    size_t joined = kJoinedBytes;
    for (size_t at = 0; at < total;) {
      while (at >= part_begin + text.parts[part].bytes) {
        part_begin += text.parts[part++].bytes;
      }
      const TextParts::Part& here = text.parts[part];
      const size_t offset = at - part_begin;
      const size_t rest = here.bytes - offset;
      size_t done = 0;
      if (rest == total - at || rest > joined) {
        ORIEL_TRY(encodeStretch(here.data + offset, rest, at, rest == total - at, &done));
        // The rest is one word, perhaps continued in the next part.
        joined = std::max(joined, rest - done + kJoinedBytes);
      } else {
        const size_t bytes = std::min(joined, total - at);
        joined_bytes_ = std::max(joined_bytes_, bytes + kPieceSlack);
        const BorrowedBytes memory(workspace_, bytes);
        if (memory.data() == nullptr) {
          return outOfMemory(bytes);
        }
        for (size_t copied = 0, i = part, from = offset; copied < bytes; ++i, from = 0) {
          const size_t n = std::min(bytes - copied, text.parts[i].bytes - from);
          std::memcpy(memory.as<char>() + copied, text.parts[i].data + from, n);
          copied += n;
        }
        ORIEL_TRY(encodeStretch(memory.as<char>(), bytes, at, bytes == total - at, &done));
        joined = done == 0 ? 2 * joined : joined;
      }
      at += done;
    }
    return kOk;
  }

  /// Encodes a prefix of [text, text + bytes), which begins at byte `base` of the whole text, and returns its length:
  /// everything if `last`.
  Status encodeStretch(const char* text, size_t bytes, size_t base, bool last, size_t* done) {
    text_ = text;
    end_ = bytes;
    base_ = base;
    last_ = last;
    run_begin_ = 0;
    if (strips_) {
      skipStripped();
    }
    // True if a special token fits completely in this stretch.
    const size_t longest = specials_.longestBytes();
    const size_t scan_end = last ? end_ : end_ >= longest ? end_ - longest : 0;
    // Overlapping special tokens form a group; text outside groups is unambiguous. Bytes of a group without a token are
    // plain text.
    size_t at = std::max(run_begin_, std::min(end_, decided_ - std::min(decided_, base_)));
    while (at < scan_end) {
      const Match match = longestSpecial(at);
      if (match.bytes == 0) {
        ++at;
        continue;
      }
      size_t group_end = at + match.bytes;
      bool alone = true;
      size_t inside = at + 1;
      for (; inside < group_end && inside < scan_end; ++inside) {
        const Match other = longestSpecial(inside);
        if (other.bytes != 0) {
          alone = false;
          group_end = std::max(group_end, inside + other.bytes);
        }
      }
      if (inside < group_end) {
        break;  // the group may continue after this stretch
      }
      ORIEL_TRY(alone ? emitSpecial(at, match) : encodeGroup(at, group_end));
      at = std::max(run_begin_, group_end);
      decided_ = base_ + at;
    }
    if (last) {
      ORIEL_TRY(encodeRun(run_begin_, end_, true));
      run_begin_ = end_;
    } else {
      ORIEL_TRY(encodeRun(run_begin_, std::min(at, scan_end), false));
    }
    *done = run_begin_;
    return kOk;
  }

  void emit(int32_t id) {
    if (measures_) {
      return;
    }
    if (sink_ != nullptr && n_ids_ == capacity_) {
      if (taken_.ok()) {
        taken_ = sink_->take(ids_, n_ids_, false);
      }
      n_ids_ = 0;
    }
    if (n_ids_ < capacity_) {
      ids_[n_ids_] = id;
    }
    ++n_ids_;
  }

  // --- Special tokens ----------------------------------------------------------------------------

  bool touchesLiteral(size_t begin, size_t end) const {
    begin += base_;
    end += base_;
    // The first range that ends after `begin`.
    size_t low = 0;
    size_t high = options_.n_literal;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (options_.literal[middle].end > begin) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low < options_.n_literal && options_.literal[low].begin < end;
  }

  /// True if the special token `id` may be recognised in [at, at + bytes).
  bool maySpecial(int32_t id, size_t at, size_t bytes) const {
    return t_.type(id) == Tokenizer::kUserDefined ||
           (options_.special && !touchesLiteral(at, at + bytes));
  }

  Match longestSpecial(size_t at) const {
    return specials_.longest(text_ + at, end_ - at,
                             [&](int32_t id, size_t bytes) { return maySpecial(id, at, bytes); });
  }
  Match longestInGroup(size_t at, size_t available) const {
    return specials_.longestUnshared(
        text_ + at, available, [&](int32_t id, size_t bytes) { return maySpecial(id, at, bytes); });
  }

  /// Ends the plain text before `at` and starts the next run after the token.
  Status emitSpecial(size_t at, const Match& match) {
    ORIEL_TRY(encodeRun(run_begin_, at, true));
    emit(match.id);
    after_special_ = true;
    unigram_.begin(t_.add_space_prefix_);
    run_begin_ = at + match.bytes;
    strips_ = (t_.flags_[match.id] & Tokenizer::kStripsRight) != 0;
    if (strips_) {
      skipStripped();
    }
    return taken_;
  }

  /// Skips white space after a token that strips it; strips_ stays true if more may follow.
  void skipStripped() {
    while (run_begin_ < end_) {
      if (!last_ && end_ - run_begin_ < kMaxUtf8Bytes) {
        return;
      }
      const Utf8Char c = decodeUtf8(text_ + run_begin_, end_ - run_begin_);
      if (!c.valid || charClass(c.code_point) != CharClass::kSpace) {
        strips_ = false;
        return;
      }
      run_begin_ += c.bytes;
    }
  }

  /// Special tokens in [begin, end) overlap: the longest wins, on a tie the leftmost.
  Status encodeGroup(size_t begin, size_t end) {
    const size_t bytes = end - begin;
    group_bytes_ = std::max(group_bytes_, bytes * kGroupBytes + kPieceSlack);
    // Per byte: the length of the accepted token that begins here, or one of these values.
    constexpr uint16_t kFree = 0;
    constexpr uint16_t kTaken = UINT16_MAX;
    const BorrowedBytes memory(workspace_, bytes * sizeof(uint16_t));
    uint16_t* const owner = memory.as<uint16_t>();
    if (owner == nullptr) {
      return outOfMemory(bytes * kGroupBytes);
    }
    std::memset(owner, 0, bytes * sizeof(uint16_t));
    {
      const BorrowedBytes queue_memory(workspace_, bytes * sizeof(uint64_t));
      uint64_t* const queue = queue_memory.as<uint64_t>();
      if (queue == nullptr) {
        return outOfMemory(bytes * kGroupBytes);
      }
      // The longest token at each place. The largest number is the longest, on a tie the leftmost.
      size_t count = 0;
      const auto push = [&](size_t at, size_t available) {
        const Match match = longestInGroup(begin + at, available);
        if (match.bytes != 0) {
          queue[count++] = uint64_t{match.bytes} << 32 | (UINT32_MAX - static_cast<uint32_t>(at));
        }
        return match.bytes != 0;
      };
      for (size_t at = 0; at < bytes; ++at) {
        push(at, bytes - at);
      }
      std::make_heap(queue, queue + count);
      while (count > 0) {
        std::pop_heap(queue, queue + count);
        const uint64_t best = queue[--count];
        const size_t length = static_cast<size_t>(best >> 32);
        const size_t at = UINT32_MAX - static_cast<uint32_t>(best);
        size_t n_free = 0;
        while (n_free < length && owner[at + n_free] == kFree) {
          ++n_free;
        }
        if (n_free == length) {
          std::fill(owner + at, owner + at + length, kTaken);
          owner[at] = static_cast<uint16_t>(length);
        } else if (n_free != 0 && push(at, n_free)) {
          // The blocking token is longer than this one. Each retry at least halves the free bytes, except the first.
          std::push_heap(queue, queue + count);
        }
      }
    }
    for (size_t at = 0; at < bytes;) {
      if (owner[at] == kFree) {
        ++at;
        continue;
      }
      const size_t length = owner[at];
      ORIEL_TRY(
          emitSpecial(begin + at, {length, specials_.exactUnshared(text_ + begin + at, length)}));
      at += length;
    }
    return kOk;
  }

  // --- Plain text --------------------------------------------------------------------------------

  /// Text between two special tokens (or the ends). If more plain text may follow (`whole` is false), only words that it
  /// cannot change; run_begin_ then moves past them.
  Status encodeRun(size_t begin, size_t end, bool whole) {
    size_t at = begin;
    ORIEL_TRY(t_.kind_ == TokenizerKind::kWordPiece ? encodePieces(&at, end, whole)
              : t_.nfc_                             ? encodeNormalised(&at, end, whole)
                                                    : encodeWords(text_, &at, end, whole));
    if (!whole) {
      run_begin_ = at;
    }
    return kOk;
  }

  /// Encodes words of `text` from *at; *at ends after them.
  Status encodeWords(const char* text, size_t* at, size_t end, bool whole) {
    WordCutter cutter(t_.pre_, text, end);
    while (*at < end) {
      bool open = false;
      const size_t next = nextWord(&cutter, *at, end, &open);
      if (open && !whole) {
        break;
      }
      const bool prefix = t_.add_space_prefix_ && after_special_;
      after_special_ = false;
      if (t_.kind_ == TokenizerKind::kUnigram) {
        ORIEL_TRY(encodeUnigram(text + *at, next - *at));
      } else if (t_.kind_ == TokenizerKind::kBpe) {
        ORIEL_TRY(encodeBpeWord(text + *at, next - *at));
      } else {
        ORIEL_TRY(encodeCharacters(text + *at, next - *at, prefix));
      }
      ORIEL_TRY(checkStop(next - *at));
      *at = next;
    }
    return kOk;
  }

  /// Counts `bytes` encoded bytes. Returns ORIEL_ERROR_CANCELLED if the caller wants to stop.
  Status checkStop(size_t bytes) {
    ORIEL_TRY(taken_);
    unchecked_ += bytes;
    if (unchecked_ >= kBytesBetweenChecks) {
      unchecked_ = 0;
      if (sink_ != nullptr && sink_->stops()) {
        return ORIEL_ERROR_CANCELLED;
      }
    }
    return kOk;
  }

  // --- WordPiece and unigram ---------------------------------------------------------------------

  /// A word that has begun is kept from stretch to stretch.
  Status encodePieces(size_t* at, size_t end, bool whole) {
    const auto take = [this](int32_t id) { emit(id); };
    while (*at < end && (whole || end - *at >= kMaxUtf8Bytes)) {
      const Utf8Char c = decodeUtf8(text_ + *at, end - *at);
      words_.add(c.code_point, take);
      ORIEL_TRY(checkStop(c.bytes));
      *at += c.bytes;
    }
    if (whole) {
      words_.end(take);
    }
    return taken_;
  }

  Status encodeUnigram(const char* word, size_t bytes) {
    const size_t room = unigram_.normalBytes(word, bytes);
    const size_t needed = room + (room + 1) * sizeof(Unigram::Step);
    word_bytes_ = std::max(word_bytes_, needed + kPieceSlack);
    if (measures_) {
      return kOk;
    }
    const BorrowedBytes normal(workspace_, room);
    const BorrowedBytes steps(workspace_, (room + 1) * sizeof(Unigram::Step));
    if (normal.data() == nullptr || steps.data() == nullptr) {
      return outOfMemory(needed);
    }
    const size_t n = unigram_.normalise(word, bytes, normal.as<char>());
    unigram_.split(normal.as<char>(), n, steps.as<Unigram::Step>(),
                   [this](int32_t id) { emit(id); });
    return taken_;
  }

  // --- NFC ---------------------------------------------------------------------------------------

  /// A blank always begins a word here: no word of these pre-tokenizers continues across it.
  bool isBorder(size_t at, size_t begin) const {
    if (text_[at] != ' ' || at == begin) {
      return false;
    }
    size_t last = at - 1;
    while (last > begin && at - last < kMaxUtf8Bytes && (text_[last] & 0xC0) == 0x80) {
      --last;
    }
    const Utf8Char before = decodeUtf8(text_ + last, at - last);
    return before.valid && charClass(before.code_point) != CharClass::kSpace;
  }

  /// Most text is in NFC and read in place. Text that may not be is copied, with its surroundings up to word borders.
  Status encodeNormalised(size_t* at, size_t end, bool whole) {
    while (*at < end) {
      const size_t odd = *at + firstChangedByNfc(text_ + *at, end - *at);
      if (odd == end) {
        return encodeWords(text_, at, end, whole);
      }
      size_t from = odd;
      while (from > *at && !isBorder(from, *at)) {
        --from;
      }
      ORIEL_TRY(encodeWords(text_, at, from, true));
      size_t to = odd + 1;
      while (to < end && !isBorder(to, *at)) {
        ++to;
      }
      if (to == end && !whole) {
        return kOk;
      }
      ORIEL_TRY(encodeStretchInNfc(text_ + *at, to - *at));
      *at = to;
    }
    return kOk;
  }

  Status encodeStretchInNfc(const char* text, size_t bytes) {
    const size_t count = decomposedChars(text, bytes);
    const size_t needed = count * sizeof(uint64_t) + bytes * kMostNfcGrowth;
    normal_bytes_ = std::max(normal_bytes_, needed + kPieceSlack);
    const BorrowedBytes chars(workspace_, count * sizeof(uint64_t));
    const BorrowedBytes normal(workspace_, bytes * kMostNfcGrowth);
    if (chars.data() == nullptr || normal.data() == nullptr) {
      return outOfMemory(needed);
    }
    const size_t n = toNfc(text, bytes, chars.as<uint64_t>(), normal.as<char>());
    size_t at = 0;
    return encodeWords(normal.as<char>(), &at, n, true);
  }

  /// *open becomes true if text after `end` could change the answer.
  size_t nextWord(WordCutter* cutter, size_t at, size_t end, bool* open) const {
    if (!t_.words_end_at_spaces_ || startsLineFeeds(at)) {
      return cutter->wordEnd(at, open);
    }
    size_t next = spmWordEnd(at, end);
    while (t_.kind_ == TokenizerKind::kUnigram && next < end && !unigram_.endsWord(text_, next)) {
      next = spmWordEnd(next, end);
    }
    *open = end - next < kMaxUtf8Bytes;
    return next;
  }

  bool startsLineFeeds(size_t at) const {
    return t_.pre_ == PreTokenizer::kLines && text_[at] == '\n';
  }

  /// Spaces, then other characters up to the next space or, with separate lines, the next line feed.
  size_t spmWordEnd(size_t at, size_t end) const {
    size_t space = 0;
    while (at < end && (space = spmSpaceBytes(text_ + at, end - at)) != 0) {
      at += space;
    }
    while (at < end && spmSpaceBytes(text_ + at, end - at) == 0 && !startsLineFeeds(at)) {
      ++at;
    }
    return at;
  }

  /// Reserves a word's working memory; true if only measuring.
  bool onlyMeasures(size_t bytes) {
    word_bytes_ = std::max(word_bytes_, Tokenizer::workBytes(bytes));
    return measures_;
  }

  Status encodeBpeWord(const char* word, size_t bytes) {
    if (onlyMeasures(bytes)) {
      return kOk;
    }
    if (bytes == 1) {
      emitByte(*word);
      return kOk;
    }
    if (t_.whole_words_ && bytes <= t_.longest_ordinary_) {
      if (const int32_t id = t_.lookUp(false, word, bytes); id >= 0) {
        emit(id);
        return kOk;
      }
    }
    BorrowedBytes symbol_memory(workspace_, bytes * kSymbolBytes);
    BorrowedBytes candidate_memory(workspace_, bytes * kCandidateBytes);
    Symbol* symbols = symbol_memory.as<Symbol>();
    MergeCandidate* candidates = candidate_memory.as<MergeCandidate>();
    if (symbols == nullptr || candidates == nullptr) {
      return outOfMemory(bytes * (kSymbolBytes + kCandidateBytes));
    }
    for (size_t i = 0; i < bytes; ++i) {
      symbols[i].bytes = 1;
      symbols[i].id = t_.byte_ids_[static_cast<uint8_t>(word[i])];
    }
    const uint32_t word_bytes = static_cast<uint32_t>(bytes);
    mergeSymbols(symbols, word_bytes, candidates,
                 [&](uint32_t left, uint32_t right, MergeCandidate* candidate) {
                   return mergeOf(symbols[left], symbols[right], candidate);
                 });
    for (uint32_t at = 0; at < word_bytes; at += symbols[at].bytes) {
      if (symbols[at].id >= 0) {
        emit(symbols[at].id);
      } else {
        emitByte(word[at]);
      }
    }
    return kOk;
  }

  /// The merge of two symbols, by rank.
  bool mergeOf(const Symbol& left, const Symbol& right, MergeCandidate* candidate) const {
    if (left.id < 0 || right.id < 0) {
      return false;
    }
    const uint64_t ids = Tokenizer::Merge::pairOf(left.id, right.id);
    const uint32_t rank = t_.merge_index_.find(
        KeyHash::mix(ids), [&](uint32_t other) { return t_.merges_[other].pair() == ids; });
    if (rank == IndexTable::kNone) {
      return false;
    }
    candidate->priority = rank;
    candidate->merged = t_.merges_[rank].merged();
    return true;
  }

  /// A word whose symbols are characters.
  Status encodeCharacters(const char* text, size_t bytes, bool with_prefix) {
    if (onlyMeasures(bytes)) {
      return kOk;
    }
    // A token of line feeds takes precedence over merges.
    if (t_.pre_ == PreTokenizer::kLines && text[0] == '\n' && bytes <= t_.longest_ordinary_) {
      if (const int32_t id = t_.lookUp(false, text, bytes); id >= 0) {
        emit(id);
        return kOk;
      }
    }
    BorrowedBytes word_memory(workspace_, bytes + 1);
    BorrowedBytes symbol_memory(workspace_, (bytes + 1) * kSymbolBytes);
    BorrowedBytes candidate_memory(workspace_, (bytes + 1) * kCandidateBytes);
    char* word = word_memory.as<char>();
    Symbol* symbols = symbol_memory.as<Symbol>();
    MergeCandidate* candidates = candidate_memory.as<MergeCandidate>();
    if (word == nullptr || symbols == nullptr || candidates == nullptr) {
      return outOfMemory((bytes + 1) * (kSymbolBytes + kCandidateBytes + 1));
    }
    uint32_t word_bytes = 0;
    if (with_prefix) {
      word[word_bytes++] = ' ';
    }
    for (size_t at = 0; at < bytes;) {
      const size_t space = spmSpaceBytes(text + at, bytes - at);
      word[word_bytes++] = space != 0 ? ' ' : text[at];
      at += space != 0 ? space : 1;
    }
    for (uint32_t at = 0; at < word_bytes; at += symbols[at].bytes) {
      const Utf8Char c = decodeUtf8(word + at, word_bytes - at);
      symbols[at].bytes = c.valid ? c.bytes : 1;
      symbols[at].id = t_.lookUp(false, word + at, symbols[at].bytes);
    }
    const auto pair = [&](uint32_t left, uint32_t right, MergeCandidate* candidate) {
      if (t_.kind_ == TokenizerKind::kCharBpe) {
        return mergeOf(symbols[left], symbols[right], candidate);
      }
      const uint32_t together = symbols[left].bytes + symbols[right].bytes;
      const int32_t id =
          together > t_.longest_ordinary_ ? -1 : t_.lookUp(false, word + left, together);
      if (id < 0) {
        return false;
      }
      candidate->priority = t_.priorities_[id];
      candidate->merged = id;
      return true;
    };
    mergeSymbols(symbols, word_bytes, candidates, pair);
    for (uint32_t at = 0; at < word_bytes; at += symbols[at].bytes) {
      if (symbols[at].id >= 0) {
        emit(symbols[at].id);
      } else {
        emitUnknownChar(word + at, symbols[at].bytes);
      }
    }
    return kOk;
  }

  /// A byte of a BPE word. Without its own token it is the unknown token or, as in llama.cpp, dropped.
  void emitByte(char byte) {
    const int32_t id = t_.byte_ids_[static_cast<uint8_t>(byte)];
    if (id >= 0) {
      emit(id);
    } else if (t_.unknown_id_ >= 0) {
      emit(t_.unknown_id_);
    }
  }

  /// A character outside the vocabulary: its bytes, or one unknown token.
  void emitUnknownChar(const char* bytes, uint32_t count) {
    bool has_bytes = true;
    for (uint32_t i = 0; i < count; ++i) {
      has_bytes = has_bytes && t_.byte_ids_[static_cast<uint8_t>(bytes[i])] >= 0;
    }
    for (uint32_t i = 0; has_bytes && i < count; ++i) {
      emit(t_.byte_ids_[static_cast<uint8_t>(bytes[i])]);
    }
    if (!has_bytes && t_.unknown_id_ >= 0) {
      emit(t_.unknown_id_);
    }
  }

  Status outOfMemory(size_t bytes) const {
    return log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                     "no %llu bytes of working memory for one word of the text: free memory or "
                     "shorten it",
                     static_cast<unsigned long long>(bytes));
  }

  const Tokenizer& t_;
  WordPieces words_;
  Unigram unigram_;
  const SpecialTokens specials_;
  const EncodeOptions& options_;
  Workspace* workspace_;
  const Log& log_;
  int32_t* ids_;
  size_t capacity_;
  TokenSink* sink_;             ///< null: ids_ holds the whole result
  const bool measures_;         ///< splits the text without encoding it
  const char* text_ = nullptr;  ///< the stretch
  size_t end_ = 0;
  size_t base_ = 0;
  bool last_ = true;
  size_t n_ids_ = 0;
  size_t run_begin_ = 0;
  size_t decided_ = 0;         ///< in the whole text: special tokens before this are final
  bool after_special_ = true;  ///< the start of a text counts
  bool strips_ = false;        ///< white space here belongs to the token before it
  size_t unchecked_ = 0;
  size_t word_bytes_ = 0;  ///< largest use of the workspace
  size_t group_bytes_ = 0;
  size_t joined_bytes_ = 0;
  size_t normal_bytes_ = 0;
  Status taken_;  ///< of the sink
};

Status Tokenizer::encode(const char* text, size_t bytes, const EncodeOptions& options,
                         Workspace* workspace, const Log& log, int32_t* ids, size_t capacity,
                         size_t* needed) const {
  *needed = 0;
  TextParts parts;
  parts.add(text, bytes);
  TokenEncoder encoder(*this, options, workspace, log, ids, capacity, nullptr, false);
  ORIEL_TRY(encoder.encode(parts));
  *needed = encoder.count();
  return *needed > capacity ? ORIEL_ERROR_BUFFER_TOO_SMALL : ORIEL_OK;
}

Status Tokenizer::encodeParts(const TextParts& text, const EncodeOptions& options,
                              Workspace* workspace, const Log& log, int32_t* ids, size_t capacity,
                              TokenSink* sink) const {
  return TokenEncoder(*this, options, workspace, log, ids, capacity, sink, false).encode(text);
}

Status Tokenizer::encodeBytes(const TextParts& text, const EncodeOptions& options,
                              Workspace* workspace, const Log& log, TokenSink* sink,
                              size_t* bytes) const {
  TokenEncoder encoder(*this, options, workspace, log, nullptr, 0, sink, true);
  ORIEL_TRY(encoder.encode(text));
  *bytes = encoder.bytesNeeded();
  return kOk;
}

}  // namespace oriel_internal
