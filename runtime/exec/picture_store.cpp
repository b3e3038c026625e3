#include "exec/picture_store.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "kv/token_ids.h"

namespace oriel_internal {

int32_t PictureTokens::find(const char* text) const {
  return tokenizer_.find(text, std::strlen(text));
}

bool PictureTokens::nameOf(const HeldPicture& picture, uint32_t tile, uint32_t index, char* name,
                           size_t capacity) const {
  const bool whole = picture.isWhole(tile);
  const uint32_t columns = picture.tile_columns;
  const unsigned row = columns != 0 ? tile / columns + 1 : 0;
  const unsigned column = columns != 0 ? tile % columns + 1 : 0;
  switch (words_) {
    case PictureWords::kNone:
    case PictureWords::kGemma4:
    case PictureWords::kQwen3:
      return false;
    case PictureWords::kLfm2:
      if (columns == 0 || index != 0) {
        return false;
      }
      std::snprintf(name, capacity, whole ? "<|img_thumbnail|>" : "<|img_row_%u_col_%u|>", row,
                    column);
      return true;
    case PictureWords::kIdefics3:
      break;
  }
  // A line of tiles ends with a newline, the last line with two.
  const bool begins_line = tile != 0 && (whole || column == 1);
  if (index == 0 && begins_line) {
    std::snprintf(name, capacity, "%s", whole ? "\n\n" : "\n");
    return true;
  }
  index -= begins_line ? 1 : 0;
  if (index == 0) {
    std::snprintf(name, capacity, "<fake_token_around_image>");
  } else {
    std::snprintf(name, capacity, whole ? "<global-img>" : "<row_%u_col_%u>", row, column);
  }
  return index < 2;
}

Status PictureTokens::check(const Log& log) const {
  HeldPicture smallest;
  smallest.rows = smallest.columns[1] = smallest.lines[1] = 1;
  uint64_t tokens = 0;
  return placeholder() >= 0 ? count(smallest, log, &tokens)
                            : log.fail(ORIEL_ERROR_UNSUPPORTED,
                                       "the model's vocabulary has no token %s: give the "
                                       "\"mmproj\" file of this model",
                                       rowOf(words_).token);
}

Status PictureTokens::count(const HeldPicture& picture, const Log& log, uint64_t* count) const {
  uint64_t tokens = 0;
  const Status status = forEach(picture, [&](int32_t id) -> Status {
    ++tokens;
    return id == -1 ? ORIEL_ERROR_UNSUPPORTED : kOk;
  });
  *count = tokens;
  return status.ok() ? status
                     : log.fail(ORIEL_ERROR_UNSUPPORTED,
                                "the model's vocabulary lacks a token of this picture's tiles: "
                                "give the \"mmproj\" file of this model, or a smaller picture");
}

PictureStore* PictureStore::create(const PictureInput& input, uint32_t n_embd, uint32_t capacity,
                                   Arena* arena) {
  void* const room = arena->take<PictureStore>(1);
  float* const rows = arena->take<float>(uint64_t{capacity} * input.width(n_embd));
  if (room == nullptr) {
    return nullptr;
  }
  PictureStore* const made = new (room) PictureStore();
  made->input_ = &input;
  made->n_embd_ = n_embd;
  made->capacity_ = capacity;
  made->rows_ = rows;
  return made;
}

// ---- Rows ----------------------------------------------------------------------------------------

float* PictureStore::room(uint32_t count, uint32_t keep) {
  const uint32_t left = capacity() - next_ % capacity();
  const uint32_t skipped = count <= left ? 0 : left;
  if (count > capacity() || uint64_t{keep} + skipped + count > capacity() ||
      uint64_t{next_} + skipped + count > TokenIds::kPictureRows) {
    return nullptr;
  }
  next_ += skipped;
  const uint32_t end = next_ + count;
  uint32_t gone = 0;
  while (gone < n_held_ && (n_held_ - gone == kMostHeld || held_[gone].first + capacity() < end)) {
    ++gone;
  }
  n_held_ -= gone;
  std::move(held_ + gone, held_ + gone + n_held_, held_);
  return rows_ + uint64_t{next_ % capacity()} * width();
}

void PictureStore::add(const HeldPicture& picture) {
  HeldPicture& held = held_[n_held_++];
  held = picture;
  held.first = next_;
  next_ += picture.rows;
}

const HeldPicture* PictureStore::find(uint64_t hash) const {
  for (uint32_t i = n_held_; i-- > 0;) {
    if (held_[i].hash == hash) {
      return held_ + i;
    }
  }
  const HeldPicture* const found = shared_rows_ != 0 ? shared_->find(hash) : nullptr;
  return found != nullptr && found->first < shared_rows_ ? found : nullptr;
}

const HeldPicture* PictureStore::pictureOf(uint32_t number) const {
  if (number < shared_rows_) {
    return shared_->pictureOf(number);
  }
  for (uint32_t i = 0; i < n_held_; ++i) {
    if (number >= held_[i].first && number - held_[i].first < held_[i].rows) {
      return held_ + i;
    }
  }
  return nullptr;
}

// ---- Positions -----------------------------------------------------------------------------------

bool PictureStore::addSpan(uint64_t begin, uint32_t rows, uint32_t columns) {
  truncate(begin);
  if (n_spans_ == kMostSpans) {
    return false;
  }
  const uint64_t shift = n_spans_ != 0 ? spans_[n_spans_ - 1].shift : 0;
  const uint32_t side = std::max(columns, (rows + columns - 1) / columns);
  spans_[n_spans_++] = {begin, shift + rows - side, rows, columns};
  return true;
}

void PictureStore::truncate(uint64_t tokens) {
  while (n_spans_ != 0 && spans_[n_spans_ - 1].begin >= tokens) {
    --n_spans_;
  }
  if (n_spans_ != 0 && tokens - spans_[n_spans_ - 1].begin < spans_[n_spans_ - 1].rows) {
    // The rest of a picture was removed: the next token follows these rows.
    const PictureSpan cut = spans_[--n_spans_];
    (void)addSpan(cut.begin, static_cast<uint32_t>(tokens - cut.begin), cut.columns);
  }
}

PicturePosition PictureStore::positionOf(uint64_t t) const {
  const PictureSpan* const after =
      std::upper_bound(spans_, spans_ + n_spans_, t,
                       [](uint64_t token, const PictureSpan& span) { return token < span.begin; });
  if (after == spans_) {
    return {{t, t, t}};
  }
  const PictureSpan& span = after[-1];
  const uint64_t row = t - span.begin;
  if (row >= span.rows) {
    const uint64_t at = t - span.shift;
    return {{at, at, at}};
  }
  const uint64_t begin = span.begin - (after - 1 != spans_ ? after[-2].shift : 0);
  return {{begin, begin + row / span.columns, begin + row % span.columns}};
}

// ---- As a whole ----------------------------------------------------------------------------------

void PictureStore::forget(const PictureStore* shared) {
  wipe(rows_, sizeof(float) * size_t{capacity()} * width());
  n_held_ = n_spans_ = n_pending_ = 0;
  wipe(held_, sizeof(held_));
  shared_ = shared;
  next_ = shared_rows_ = shared != nullptr ? shared->next_ : 0;
  if (shared != nullptr) {
    sharePositions(*shared);
  }
}

const HeldPicture* PictureStore::share(const PictureStore& session, uint32_t number,
                                       uint32_t* here) {
  const HeldPicture& picture = *session.pictureOf(number);
  if (find(picture.hash) == nullptr) {
    float* const rows = n_held_ != kMostHeld && picture.rows <= capacity() - next_
                            ? room(picture.rows, next_)
                            : nullptr;
    if (rows == nullptr) {
      return nullptr;
    }
    std::copy_n(session.row(picture.first), size_t{picture.rows} * width(), rows);
    add(picture);
  }
  const HeldPicture* const own = find(picture.hash);
  *here = own->first + (number - picture.first);
  return own;
}

void PictureStore::sharePositions(const PictureStore& session) {
  n_spans_ = session.n_spans_;
  std::copy_n(session.spans_, n_spans_, spans_);
}

uint64_t PictureStore::sharedHash() const {
  uint64_t hash = 0;
  for (uint32_t number = 0; number < shared_rows_;) {
    const HeldPicture& picture = *shared_->pictureOf(number);
    hash = hashBytes(&picture.hash, sizeof(picture.hash), hash);
    number += picture.rows;
  }
  return hash;
}

void PictureStore::copyFrom(const PictureStore& other) {
  float* const rows = rows_;
  *this = other;
  rows_ = rows;
  std::copy_n(other.rows_, size_t{capacity()} * width(), rows_);
}

namespace {

struct SavedPictures {
  uint32_t width;
  uint32_t capacity;
  uint32_t next;
  uint32_t n_held;
  uint32_t n_spans;
  uint32_t shared_rows;
  uint64_t shared_hash;
};

}  // namespace

uint64_t PictureStore::savedSharedHash(const uint8_t* data, uint64_t bytes) {
  SavedPictures saved = {};
  std::memcpy(&saved, data, std::min<uint64_t>(bytes, sizeof(saved)));
  return saved.shared_hash;
}

uint64_t PictureStore::savedBytes() const {
  uint64_t rows = 0;
  for (uint32_t i = 0; i < n_held_; ++i) {
    rows += held_[i].rows;
  }
  return sizeof(SavedPictures) + n_held_ * sizeof(HeldPicture) + n_spans_ * sizeof(PictureSpan) +
         rows * width() * sizeof(float);
}

void PictureStore::save(uint8_t* out) const {
  const auto put = [&out](const void* data, size_t bytes) {
    std::memcpy(out, data, bytes);
    out += bytes;
  };
  const SavedPictures saved = {width(),  capacity(),   next_,       n_held_,
                               n_spans_, shared_rows_, sharedHash()};
  put(&saved, sizeof(saved));
  put(held_, n_held_ * sizeof(HeldPicture));
  put(spans_, n_spans_ * sizeof(PictureSpan));
  for (uint32_t i = 0; i < n_held_; ++i) {
    put(row(held_[i].first), sizeof(float) * size_t{held_[i].rows} * width());
  }
}

// The conversation's ids contain row numbers. A session with room for another number of rows therefore keeps the
// positions, but not the rows.
bool PictureStore::load(const uint8_t* data, uint64_t bytes, bool checks_only) {
  SavedPictures saved;
  if (bytes < sizeof(saved)) {
    return false;
  }
  std::memcpy(&saved, data, sizeof(saved));
  const uint8_t* at = data + sizeof(saved);
  const uint64_t lists = saved.n_held * sizeof(HeldPicture) + saved.n_spans * sizeof(PictureSpan);
  if (saved.width != width() || saved.n_held > kMostHeld || saved.n_spans > kMostSpans ||
      saved.capacity == 0 || saved.next > TokenIds::kPictureRows ||
      saved.shared_rows > saved.next || (shared_rows_ != 0 && saved.shared_rows != shared_rows_) ||
      lists > bytes - sizeof(saved)) {
    return false;
  }
  HeldPicture held[kMostHeld];
  PictureSpan spans[kMostSpans];
  std::memcpy(held, at, saved.n_held * sizeof(HeldPicture));
  at += saved.n_held * sizeof(HeldPicture);
  std::memcpy(spans, at, saved.n_spans * sizeof(PictureSpan));
  at += saved.n_spans * sizeof(PictureSpan);
  uint64_t rows = 0;
  uint64_t end = saved.shared_rows;
  for (uint32_t i = 0; i < saved.n_held; ++i) {
    uint64_t counted = 0;
    const HeldPicture& one = held[i];
    if (one.tiles() > HeldPicture::kMostTiles) {
      return false;
    }
    for (uint32_t tile = 0; tile < one.tiles(); ++tile) {
      counted += one.rowsOf(tile);
    }
    if (one.rows == 0 || counted != one.rows || one.first < end ||
        one.first % saved.capacity + uint64_t{one.rows} > saved.capacity ||
        uint64_t{one.first} + one.rows > saved.next ||
        one.first + uint64_t{saved.capacity} < saved.next) {
      return false;
    }
    end = uint64_t{one.first} + one.rows;
    rows += one.rows;
  }
  uint64_t before = 0;
  uint64_t shift = 0;
  for (uint32_t i = 0; i < saved.n_spans; ++i) {
    const PictureSpan& one = spans[i];
    if (one.rows == 0 || one.columns == 0 || one.columns > one.rows || one.begin < before ||
        one.shift < shift || one.shift > one.begin + one.rows) {
      return false;
    }
    before = one.begin + one.rows;
    shift = one.shift;
  }
  if (bytes - sizeof(saved) - lists != rows * width() * sizeof(float)) {
    return false;
  }
  if (checks_only) {
    return true;
  }
  n_spans_ = saved.n_spans;
  std::copy_n(spans, saved.n_spans, spans_);
  next_ = saved.next;
  n_held_ = n_pending_ = 0;
  for (uint32_t i = 0; i < saved.n_held && saved.capacity == capacity(); ++i) {
    held_[n_held_++] = held[i];
    const size_t piece = sizeof(float) * size_t{held[i].rows} * width();
    std::memcpy(rows_ + uint64_t{held[i].first % capacity()} * width(), at, piece);
    at += piece;
  }
  return true;
}

}  // namespace oriel_internal
