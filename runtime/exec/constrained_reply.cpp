#include "exec/replier.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/hash.h"

namespace oriel_internal {

ConstrainedReply* ConstrainedReply::create(uint32_t n_vocab, const Tokenizer* tokenizer,
                                           const TokenTrie* trie, Arena* arena) {
  void* const room = arena->take<uint8_t>(sizeof(ConstrainedReply));
  uint32_t* const mask = arena->take<uint32_t>(maskWords(n_vocab));
  Constraint* const constraint = Constraint::create(n_vocab, tokenizer, trie, arena);
  if (room == nullptr || mask == nullptr || constraint == nullptr) {
    return nullptr;
  }
  ConstrainedReply* const reply = new (room) ConstrainedReply(*tokenizer);
  reply->own_mask_ = mask;
  reply->n_words_ = static_cast<uint32_t>(maskWords(n_vocab));
  reply->constraint_ = constraint;
  return reply;
}

void ConstrainedReply::start(const ConstrainedStart& start) {
  start_ = start;
  start_.forms |= kFormThinkTag;
  start_.trigger_bytes = std::min(start.trigger_bytes, kMostTriggerBytes);
  if (start_.trigger_bytes != 0) {
    std::memcpy(trigger_, start.trigger, start_.trigger_bytes);
  }
  start_.trigger = trigger_;
  state_ = State();
  forbids_ = false;
  constraint_->setExtraStop(start.extra_stop);
  constraint_->restart();
  state_.place = start.inside_thought        ? Place::kThought
                 : start_.trigger_bytes != 0 ? Place::kBefore
                 : start.may_think           ? Place::kMayThink
                                             : Place::kConstrained;
}

void ConstrainedReply::forget() {
  constraint_->release();
  wipe(own_mask_, uint64_t{n_words_} * sizeof(uint32_t));
  wipe(trigger_, sizeof(trigger_));
  wipe(state_.last, sizeof(state_.last));
  state_ = State();
  start_ = ConstrainedStart();
  wipe(&ignored_, sizeof(ignored_));
  ignored_ = IgnoredKeywords();
  forbids_ = false;
}

// --- Masks ---------------------------------------------------------------------------------------

uint32_t* ConstrainedReply::ownMask(const uint32_t* from) {
  if (from == nullptr) {
    std::fill_n(own_mask_, n_words_, UINT32_MAX);
  } else if (from != own_mask_) {
    std::copy_n(from, n_words_, own_mask_);
  }
  return own_mask_;
}

// Tokens that continue a mark: the rest of it, or a control token at its beginning.
void ConstrainedReply::allowMark(uint8_t row, uint32_t matched) {
  const char* const text = kMarks[row].text + matched;
  const size_t bytes = std::strlen(text);
  for (size_t n = 1; n <= bytes; ++n) {
    const int32_t id = tokenizer_.find(text, n);
    if (id >= 0 && (n == bytes || matched != 0 || tokenizer_.isControl(id))) {
      own_mask_[id / 32] |= 1u << id % 32;
    }
  }
}

const uint32_t* ConstrainedReply::mask() {
  if (forbids_) {
    return own_mask_;
  }
  switch (state_.place) {
    case Place::kFree:
    case Place::kThought:
    case Place::kBefore:
      return nullptr;
    case Place::kMayThink:
      ownMask(constraint_->mask());
      for (uint8_t row = 0; row < kMarkCount; ++row) {
        if (isMark(row, kMarkThought)) {
          allowMark(row, 0);
        }
      }
      return own_mask_;
    case Place::kOpening:
      std::fill_n(own_mask_, n_words_, 0u);
      allowMark(state_.mark, state_.matched);
      return own_mask_;
    case Place::kConstrained:
      break;
  }
  // After a trigger, a complete form may end.
  return start_.trigger_bytes != 0 && constraint_->complete() ? nullptr : constraint_->mask();
}

void ConstrainedReply::forbid(int32_t id) {
  ownMask(mask());
  own_mask_[id / 32] &= ~(1u << id % 32);
  forbids_ = true;
}

bool ConstrainedReply::ended() {
  return state_.place == Place::kConstrained && start_.trigger_bytes == 0 && constraint_->ended();
}

bool ConstrainedReply::stuck() {
  if (ended()) {
    return false;
  }
  const uint32_t* const now = mask();
  return now != nullptr &&
         std::all_of(now, now + n_words_, [](uint32_t word) { return word == 0; });
}

// --- Advancing -----------------------------------------------------------------------------------

void ConstrainedReply::remember(char byte) {
  if (state_.n_last == sizeof(state_.last)) {
    std::memmove(state_.last, state_.last + 1, --state_.n_last);
  }
  state_.last[state_.n_last++] = byte;
}

// True if the latest bytes are such a mark.
bool ConstrainedReply::holdsMark(uint16_t kind) const {
  for (uint8_t row = 0; row < kMarkCount; ++row) {
    const size_t bytes = std::strlen(kMarks[row].text);
    if (isMark(row, kind) && bytes <= state_.n_last &&
        std::memcmp(state_.last + state_.n_last - bytes, kMarks[row].text, bytes) == 0) {
      return true;
    }
  }
  return false;
}

// True if the trigger ends with this byte.
bool ConstrainedReply::matchTrigger(char byte) {
  uint32_t& n = state_.matched;
  while (n != 0 && trigger_[n] != byte) {
    // The longest prefix that is a suffix of the matched text.
    const uint32_t matched = n--;
    while (n != 0 && std::memcmp(trigger_, trigger_ + matched - n, n) != 0) {
      --n;
    }
  }
  n += trigger_[n] == byte ? 1 : 0;
  if (n != start_.trigger_bytes) {
    return false;
  }
  n = 0;
  return true;
}

ConstrainedReply::Place ConstrainedReply::behindThought() const {
  return start_.trigger_bytes != 0 ? Place::kBefore : Place::kConstrained;
}

bool ConstrainedReply::acceptRest(const char* text, size_t bytes) {
  return constraint_->acceptText(text, bytes) == bytes;
}

// In free text and in thoughts. Marks that are control tokens also count.
bool ConstrainedReply::acceptFree(Tokenizer::Piece piece) {
  for (size_t i = 0; i < piece.bytes; ++i) {
    remember(piece.data[i]);
    if (state_.place == Place::kThought) {
      if (!holdsMark(kMarkThoughtEnd)) {
        continue;
      }
      state_.place = behindThought();
      state_.n_last = 0;
      if (state_.place == Place::kConstrained) {
        // White space after a thought is part of neither.
        size_t rest = i + 1;
        while (rest < piece.bytes && std::strchr(" \t\r\n", piece.data[rest]) != nullptr) {
          ++rest;
        }
        return acceptRest(piece.data + rest, piece.bytes - rest);
      }
    } else if (matchTrigger(piece.data[i])) {
      state_.place = Place::kConstrained;
      return acceptRest(piece.data + i + 1, piece.bytes - i - 1);
    } else if (holdsMark(kMarkThought)) {
      state_.place = Place::kThought;
      state_.matched = state_.n_last = 0;
    }
  }
  return true;
}

// At the beginning, a mark may start with a control token or be one token.
bool ConstrainedReply::acceptOpening(int32_t id, Tokenizer::Piece piece) {
  const bool begins = state_.place == Place::kMayThink;
  const uint32_t matched = begins ? 0 : state_.matched;
  for (uint8_t row = 0; row < kMarkCount && piece.bytes != 0; ++row) {
    if (!isMark(row, kMarkThought) || (!begins && state_.mark != row)) {
      continue;
    }
    const char* const text = kMarks[row].text + matched;
    const size_t bytes = std::strlen(text);
    const bool whole = piece.bytes == bytes;
    if (piece.bytes > bytes || std::memcmp(piece.data, text, piece.bytes) != 0 ||
        (begins && !whole && !tokenizer_.isControl(id))) {
      continue;
    }
    state_.mark = row;
    state_.matched = whole ? 0 : matched + static_cast<uint32_t>(piece.bytes);
    state_.place = whole ? Place::kThought : Place::kOpening;
    return true;
  }
  return false;
}

// The text after the trigger is complete.
void ConstrainedReply::leave() {
  state_.place = start_.again ? Place::kBefore : Place::kFree;
  if (start_.again) {
    constraint_->restart();
    state_.matched = state_.n_last = 0;
  }
}

bool ConstrainedReply::acceptGrammar(int32_t id) {
  if (constraint_->accept(id)) {
    state_.place = Place::kConstrained;
    if (start_.trigger_bytes != 0 && constraint_->ended()) {
      leave();
    }
    return true;
  }
  if (start_.trigger_bytes != 0 && constraint_->complete()) {
    leave();
    return state_.place != Place::kBefore || acceptFree(tokenizer_.piece(id, true));
  }
  return false;
}

bool ConstrainedReply::accept(int32_t id) {
  const State before = state_;
  const Tokenizer::Piece written = tokenizer_.piece(id, true);
  bool accepted = true;
  switch (state_.place) {
    case Place::kFree:
      break;
    case Place::kThought:
    case Place::kBefore:
      accepted = acceptFree(written);
      if (!accepted) {
        constraint_->restart();
      } else if (state_.place == Place::kConstrained && start_.trigger_bytes != 0 &&
                 constraint_->ended()) {
        leave();
      }
      break;
    case Place::kMayThink:
      accepted = acceptOpening(id, written) || acceptGrammar(id);
      break;
    case Place::kOpening:
      accepted = acceptOpening(id, written);
      break;
    case Place::kConstrained:
      accepted = acceptGrammar(id);
      break;
  }
  if (accepted) {
    forbids_ = false;
  } else {
    state_ = before;
  }
  return accepted;
}

}  // namespace oriel_internal
