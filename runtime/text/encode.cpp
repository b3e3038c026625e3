// From text to ids: special tokens first, words between them, merges within words.
#include <cstring>

#include "text/merge.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace oriel {
namespace {

/// What merging one word takes; Tokenizer::workBytes() promises it.
constexpr size_t kSymbolBytes = sizeof(Symbol);
constexpr size_t kCandidateBytes = mergeCandidateCapacity(1) * sizeof(MergeCandidate);
static_assert(kSymbolBytes + kCandidateBytes + 1 == 45, "update Tokenizer::workBytes()");

size_t shorter(size_t a, size_t b) { return a < b ? a : b; }

bool hasBit(const uint64_t* set, size_t bit) { return (set[bit / 64] >> (bit % 64) & 1) != 0; }

/// Bytes of the white space that SentencePiece knows at `text`: a space, or the U+2581 it becomes.
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
               const Log& log, int32_t* ids, size_t capacity)
      : t_(tokenizer),
        options_(options),
        workspace_(workspace),
        log_(log),
        ids_(ids),
        capacity_(capacity) {}

  Status encode(const char* text, size_t bytes, size_t* needed) {
    *needed = 0;
    ORIEL_TRY(check(bytes));
    text_ = text;
    end_ = bytes;
    after_special_ = !options_.continues;
    if (options_.bos && t_.add_bos_) {
      emit(t_.bos_id_);
    }
    // Special tokens that overlap form a group; the text outside groups needs no decisions.
    for (size_t at = 0; at < end_;) {
      Match match = longestSpecial(at);
      if (match.bytes == 0) {
        ++at;
        continue;
      }
      size_t group_end = at + match.bytes;
      bool alone = true;
      for (size_t inside = at + 1; inside < group_end; ++inside) {
        const Match other = longestSpecial(inside);
        if (other.bytes != 0) {
          alone = false;
          group_end = inside + other.bytes > group_end ? inside + other.bytes : group_end;
        }
      }
      if (alone) {
        ORIEL_TRY(emitSpecial(at, match));
      } else {
        ORIEL_TRY(encodeGroup(at, group_end));
      }
      at = run_begin_ > group_end ? run_begin_ : group_end;
    }
    ORIEL_TRY(encodeRun(run_begin_, end_));
    *needed = n_ids_;
    return n_ids_ > capacity_ ? ORIEL_ERROR_BUFFER_TOO_SMALL : ORIEL_OK;
  }

 private:
  struct Match {
    size_t bytes = 0;  ///< 0: none
    int32_t id = -1;
  };

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

  void emit(int32_t id) {
    if (n_ids_ < capacity_) {
      ids_[n_ids_] = id;
    }
    ++n_ids_;
  }

  // --- Special tokens ----------------------------------------------------------------------------

  bool touchesLiteral(size_t begin, size_t end) const {
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

  /// True when the special token `id` may be recognised in [at, at + bytes).
  bool maySpecial(int32_t id, size_t at, size_t bytes) const {
    return t_.type(id) == Tokenizer::kUserDefined ||
           (options_.special && !touchesLiteral(at, at + bytes));
  }

  /// Walks down the sorted special tokens, byte by byte: all in [first, last) begin with the bytes
  /// read so far, and the shortest comes first.
  Match longestSpecial(size_t at) const {
    const uint8_t head = static_cast<uint8_t>(text_[at]);
    uint32_t first = t_.special_first_[head];
    uint32_t last = t_.special_first_[head + 1];
    Match best;
    for (size_t bytes = 1; first < last; ++bytes) {
      int32_t complete = -1;
      for (; first < last && specialPiece(first).bytes == bytes; ++first) {
        complete = static_cast<int32_t>(t_.specials_[first]);
      }
      if (complete >= 0 && maySpecial(complete, at, bytes)) {
        best = {bytes, complete};
      }
      if (first == last || at + bytes == end_) {
        break;
      }
      const uint8_t next = static_cast<uint8_t>(text_[at + bytes]);
      if (specialByte(first, bytes) != next || specialByte(last - 1, bytes) != next) {
        first = firstNotBelow(first, last, bytes, next);
        last = firstNotBelow(first, last, bytes, uint32_t{next} + 1);
      }
    }
    return best;
  }

  Tokenizer::Piece specialPiece(uint32_t index) const {
    return t_.bytesOf(static_cast<int32_t>(t_.specials_[index]));
  }
  uint8_t specialByte(uint32_t index, size_t at) const {
    return static_cast<uint8_t>(specialPiece(index).data[at]);
  }
  /// The first in [first, last) whose byte `at` is `byte` or more.
  uint32_t firstNotBelow(uint32_t first, uint32_t last, size_t at, uint32_t byte) const {
    while (first < last) {
      const uint32_t middle = first + (last - first) / 2;
      if (specialByte(middle, at) < byte) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }

  /// Ends the run of plain text before `at` and starts the next one after the token.
  Status emitSpecial(size_t at, const Match& match) {
    ORIEL_TRY(encodeRun(run_begin_, at));
    emit(match.id);
    after_special_ = true;
    run_begin_ = at + match.bytes;
    if ((t_.flags_[match.id] & Tokenizer::kStripsRight) != 0) {
      while (run_begin_ < end_) {
        const Utf8Char c = decodeUtf8(text_ + run_begin_, end_ - run_begin_);
        if (!c.valid || charClass(c.code_point) != CharClass::kSpace) {
          break;
        }
        run_begin_ += c.bytes;
      }
    }
    return kOk;
  }

  /// Special tokens in [begin, end) overlap: longer ones go first, of equals the leftmost.
  Status encodeGroup(size_t begin, size_t end) {
    const size_t bytes = end - begin;
    // Per byte: how many bytes the accepted token that begins here has, or one of these.
    constexpr uint16_t kFree = 0;
    constexpr uint16_t kTaken = UINT16_MAX;
    BorrowedBytes memory(workspace_, bytes * sizeof(uint16_t));
    uint16_t* owner = memory.as<uint16_t>();
    if (owner == nullptr) {
      return outOfMemory(bytes * sizeof(uint16_t));
    }
    std::memset(owner, 0, bytes * sizeof(uint16_t));
    for (size_t length = shorter(bytes, t_.longest_special_); length > 0; --length) {
      if (!hasBit(t_.special_lengths_, length)) {
        continue;
      }
      for (size_t at = 0; at + length <= bytes; ++at) {
        // Accepted tokens are at least this long: one that overlaps covers the first or last byte.
        if (owner[at] != kFree || owner[at + length - 1] != kFree ||
            exactSpecial(begin + at, length) < 0) {
          continue;
        }
        for (size_t i = 0; i < length; ++i) {
          owner[at + i] = kTaken;
        }
        owner[at] = static_cast<uint16_t>(length);
      }
    }
    for (size_t at = 0; at < bytes;) {
      if (owner[at] == kFree) {
        ++at;
        continue;
      }
      const size_t length = owner[at];
      ORIEL_TRY(emitSpecial(begin + at, {length, exactSpecial(begin + at, length)}));
      at += length;
    }
    return kOk;
  }

  int32_t exactSpecial(size_t at, size_t bytes) const {
    const uint8_t head = static_cast<uint8_t>(text_[at]);
    if (t_.special_first_[head] == t_.special_first_[head + 1]) {
      return -1;
    }
    const int32_t id = t_.lookUp(true, text_ + at, bytes);
    return id >= 0 && Tokenizer::isWhole(t_.type(id)) && maySpecial(id, at, bytes) ? id : -1;
  }

  // --- Plain text --------------------------------------------------------------------------------

  /// Text between two special tokens (or the ends).
  Status encodeRun(size_t begin, size_t end) {
    if (begin >= end) {
      return kOk;  // nothing, or white space that the token before took
    }
    const bool prefix = t_.add_space_prefix_ && after_special_;
    after_special_ = false;
    if (t_.kind_ == TokenizerKind::kBpe) {
      for (size_t at = begin; at < end;) {
        const size_t next = wordEnd(t_.pre_, text_, at, end);
        ORIEL_TRY(encodeBpeWord(text_ + at, next - at));
        at = next;
      }
      return kOk;
    }
    bool with_prefix = prefix;
    for (size_t at = begin; at < end;) {
      const size_t next = t_.words_end_at_spaces_ ? spmWordEnd(at, end) : end;
      ORIEL_TRY(encodeSpmWord(text_ + at, next - at, with_prefix));
      with_prefix = false;
      at = next;
    }
    return kOk;
  }

  /// Spaces, then anything else up to the next space.
  size_t spmWordEnd(size_t at, size_t end) const {
    size_t space = 0;
    while (at < end && (space = spmSpaceBytes(text_ + at, end - at)) != 0) {
      at += space;
    }
    while (at < end && spmSpaceBytes(text_ + at, end - at) == 0) {
      ++at;
    }
    return at;
  }

  Status encodeBpeWord(const char* word, size_t bytes) {
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
    const auto pair = [&](uint32_t left, uint32_t right, MergeCandidate* candidate) {
      if (symbols[left].id < 0 || symbols[right].id < 0) {
        return false;
      }
      const uint64_t ids = Tokenizer::Merge::pairOf(symbols[left].id, symbols[right].id);
      const uint32_t rank = t_.merge_index_.find(
          KeyHash::mix(ids), [&](uint32_t other) { return t_.merges_[other].pair() == ids; });
      if (rank == IndexTable::kNone) {
        return false;
      }
      candidate->priority = rank;
      candidate->merged = t_.merges_[rank].merged();
      return true;
    };
    const uint32_t word_bytes = static_cast<uint32_t>(bytes);
    mergeSymbols(symbols, word_bytes, candidates, pair);
    for (uint32_t at = 0; at < word_bytes; at += symbols[at].bytes) {
      if (symbols[at].id >= 0) {
        emit(symbols[at].id);
      } else {
        emitByte(word[at]);
      }
    }
    return kOk;
  }

  Status encodeSpmWord(const char* text, size_t bytes, bool with_prefix) {
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

  /// A byte of a BPE word; without a token of its own it is the unknown token or, as in llama.cpp,
  /// nothing.
  void emitByte(char byte) {
    const int32_t id = t_.byte_ids_[static_cast<uint8_t>(byte)];
    if (id >= 0) {
      emit(id);
    } else if (t_.unknown_id_ >= 0) {
      emit(t_.unknown_id_);
    }
  }

  /// A character that is not in the vocabulary: its bytes, or one unknown token for all of it.
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
  const EncodeOptions& options_;
  Workspace* workspace_;
  const Log& log_;
  int32_t* ids_;
  size_t capacity_;
  const char* text_ = nullptr;
  size_t end_ = 0;
  size_t n_ids_ = 0;
  size_t run_begin_ = 0;
  bool after_special_ = true;  ///< the start of a text counts as such
};

Status Tokenizer::encode(const char* text, size_t bytes, const EncodeOptions& options,
                         Workspace* workspace, const Log& log, int32_t* ids, size_t capacity,
                         size_t* needed) const {
  return TokenEncoder(*this, options, workspace, log, ids, capacity).encode(text, bytes, needed);
}

}  // namespace oriel
