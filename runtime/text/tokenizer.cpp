// Queries of a built tokenizer, and decoding of ids.
#include "text/tokenizer.h"

#include <cstring>

#include "base/hash.h"
#include "text/unicode.h"

namespace oriel_internal {

int32_t Tokenizer::lookUp(uint64_t hash, bool verbatim, const char* text, size_t bytes) const {
  const uint32_t id = tokens_.find(hash, [&](uint32_t candidate) {
    const Piece known = bytesOf(static_cast<int32_t>(candidate));
    return ((flags_[candidate] & kVerbatim) != 0) == verbatim && known.bytes == bytes &&
           std::memcmp(known.data, text, bytes) == 0;
  });
  return id == IndexTable::kNone ? -1 : static_cast<int32_t>(id);
}

int32_t Tokenizer::lookUp(bool verbatim, const char* text, size_t bytes) const {
  KeyHash hash = keyHash(verbatim);
  hash.add(text, bytes);
  return lookUp(hash.end(), verbatim, text, bytes);
}

int32_t Tokenizer::find(const char* text, size_t bytes) const {
  if (bytes == 0 || bytes > kMaxTokenBytes) {
    return -1;
  }
  const int32_t id = lookUp(true, text, bytes);
  return id >= 0 ? id : lookUp(false, text, bytes);
}

Tokenizer::Piece Tokenizer::piece(int32_t id, bool special) const {
  const bool hidden =
      valid(id) && (type(id) == kControl || type(id) == kUnknown) && (flags_[id] & kShown) == 0;
  if (!valid(id) || (!special && hidden)) {
    return {};
  }
  return bytesOf(id);
}

Status Tokenizer::decode(const int32_t* ids, size_t count, bool special, char* text,
                         size_t capacity, size_t* needed) const {
  *needed = 0;
  size_t total = 0;
  // The space is dropped from the first non-empty piece.
  bool drop_space = add_space_prefix_;
  const auto next = [&](int32_t id) {
    Piece part = piece(id, special);
    if (drop_space && part.bytes != 0) {
      drop_space = false;
      if (part.data[0] == ' ') {
        ++part.data;
        --part.bytes;
      }
    }
    return part;
  };
  for (size_t i = 0; i < count; ++i) {
    if (!valid(ids[i])) {
      return ORIEL_ERROR_ARGUMENT;
    }
    total += next(ids[i]).bytes;
  }
  *needed = total;
  if (total > capacity) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  drop_space = add_space_prefix_;
  for (size_t i = 0; i < count; ++i) {
    const Piece part = next(ids[i]);
    if (part.bytes != 0) {
      std::memcpy(text, part.data, part.bytes);
      text += part.bytes;
    }
  }
  return kOk;
}

uint32_t Tokenizer::vocabSize() const { return n_vocab_; }
TokenizerKind Tokenizer::kind() const { return kind_; }
PreTokenizer Tokenizer::preTokenizer() const { return pre_; }
int32_t Tokenizer::bosId() const { return bos_id_; }
int32_t Tokenizer::eosId() const { return eos_id_; }
bool Tokenizer::addBos() const { return add_bos_; }
bool Tokenizer::addEos() const { return add_eos_; }
bool Tokenizer::addsSpacePrefix() const { return add_space_prefix_; }
bool Tokenizer::isStop(int32_t id) const { return valid(id) && (flags_[id] & kStop) != 0; }
bool Tokenizer::isControl(int32_t id) const { return valid(id) && type(id) == kControl; }

void StreamDecoder::reset(bool drop_first_space) {
  n_pending_ = 0;
  n_text_ = 0;
  drop_space_ = drop_first_space;
}

void StreamDecoder::forget() {
  wipe(pending_, sizeof(pending_));
  wipe(text_, sizeof(text_));
  reset(false);
}

void StreamDecoder::push(Tokenizer::Piece piece, const char** text, size_t* bytes) {
  n_text_ = 0;
  if (drop_space_ && piece.bytes != 0) {
    drop_space_ = false;
    if (piece.data[0] == ' ') {
      ++piece.data;
      --piece.bytes;
    }
  }
  if (piece.bytes > kMaxTokenBytes) {
    piece.bytes = kMaxTokenBytes;  // larger than any tokenizer's piece
  }
  // Complete the pending character byte by byte: at most three bytes are pending.
  while (n_pending_ != 0 && piece.bytes != 0) {
    pending_[n_pending_] = *piece.data;
    const Utf8Char c = decodeUtf8(pending_, n_pending_ + 1);
    if (c.valid || c.incomplete) {
      ++piece.data;
      --piece.bytes;
      n_pending_ = c.valid ? 0 : n_pending_ + 1;
      if (c.valid) {
        emitWhole(pending_, c.bytes, false);
      }
    } else {
      // The new byte cannot continue it: the pending bytes were one broken sequence.
      const size_t n_broken = n_pending_;
      n_pending_ = 0;
      emitWhole(pending_, n_broken, true);
    }
  }
  emitWhole(piece.data, piece.bytes, false);
  *text = text_;
  *bytes = n_text_;
}

void StreamDecoder::finish(const char** text, size_t* bytes) {
  n_text_ = 0;
  const size_t n_broken = n_pending_;
  n_pending_ = 0;
  emitWhole(pending_, n_broken, true);
  *text = text_;
  *bytes = n_text_;
}

/// Writes whole characters to text_; an incomplete last one goes to pending_ unless `at_end`.
void StreamDecoder::emitWhole(const char* bytes, size_t count, bool at_end) {
  static constexpr char kReplacement[] = "\xEF\xBF\xBD";
  for (size_t at = 0; at < count;) {
    const Utf8Char c = decodeUtf8(bytes + at, count - at);
    if (c.incomplete && !at_end) {
      std::memmove(pending_, bytes + at, c.bytes);
      n_pending_ = c.bytes;
      return;
    }
    const char* source = c.valid ? bytes + at : kReplacement;
    const size_t n_source = c.valid ? c.bytes : 3;
    std::memcpy(text_ + n_text_, source, n_source);
    n_text_ += n_source;
    at += c.bytes;
  }
}

}  // namespace oriel_internal
