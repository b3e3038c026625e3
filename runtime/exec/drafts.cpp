#include "exec/drafts.h"

#include <algorithm>

namespace oriel_internal {
namespace {

// Weight of the assumed share, in tokens.
constexpr uint32_t kAssumed = 3;
// Factor by which a stored time moves towards the latest one.
constexpr double kTimeStep = 1.04;
// The factor that shrinks the times of unused sizes, so that every size is tried again at some point.
constexpr double kFading = 0.999;
// Required ratio of expected times, because the estimate may be wrong.
constexpr double kWorthIt = 1.08;
// Interval of one-row steps, which keep their time up to date.
constexpr uint32_t kStepsOfMany = 64;
constexpr uint32_t kMostLength = 64;

}  // namespace

void GuessShare::judged(bool right) {
  judged_ = std::min(judged_ + 1, remembered_ - kAssumed);
  share_ += ((right ? 1.0 : 0.0) - share_) / (kAssumed + judged_);
}

double movedTowards(double time, double latest) {
  return time == 0 ? latest : latest > time ? time * kTimeStep : time / kTimeStep;
}

// Multiplicative hash for tables of powers of two (Knuth, The Art of Computer Programming 3, 6.4).
uint32_t* DraftIndex::entryOf(const DraftText& text, uint64_t last) const {
  uint64_t key = 0;
  for (uint32_t i = 0; i < kGroup; ++i) {
    key = (key ^ static_cast<uint32_t>(text.at(last - i))) * 0x9e3779b97f4a7c15ull;
    key ^= key >> 29;
  }
  return entries_ + key % kEntries;
}

uint64_t DraftIndex::after(const DraftText& text, uint64_t last) const {
  if (last < kGroup) {
    return 0;
  }
  const uint64_t back = static_cast<uint32_t>(last) - *entryOf(text, last);
  const uint32_t distance = static_cast<uint32_t>(back);
  if (distance == 0 || distance > last - (kGroup - 1)) {
    return 0;
  }
  const uint64_t found = last - distance;
  for (uint32_t i = 0; i < kGroup; ++i) {
    const int32_t id = text.at(found - i);
    if (id < 0 || id != text.at(last - i)) {
      return 0;
    }
  }
  return found + 1;
}

void DraftIndex::add(const DraftText& text, uint64_t last) {
  if (last + 1 >= kGroup) {
    *entryOf(text, last) = static_cast<uint32_t>(last);
  }
}

uint32_t DraftCost::lengthClass(uint32_t length) {
  return length <= 3    ? 0
         : length == 4  ? 1
         : length <= 6  ? 2
         : length <= 9  ? 3
         : length <= 15 ? 4
                        : 5;
}

uint32_t DraftCost::sizeClass(uint32_t rows) {
  return rows <= 1 ? 0 : rows == 2 ? 1 : rows <= 4 ? 2 : rows <= 8 ? 3 : 4;
}

void DraftCost::judged(uint32_t length, bool right) { right_[lengthClass(length)].judged(right); }

void DraftCost::took(uint32_t rows, double ms) {
  if (rows <= 1) {
    one_ms_ = movedTowards(one_ms_, ms);
    steps_of_many_ = 0;
    return;
  }
  ++steps_of_many_;
  if (one_ms_ > 0) {
    double& time = times_[sizeClass(rows)];
    time = std::max(1.0, ms > time * one_ms_ ? time * kTimeStep : time / kTimeStep);
  }
}

// With g guesses that are right with shares r1, r2, ... a step gives 1 + r1 + r1 r2 + ... tokens.
uint32_t DraftCost::best(uint32_t length, uint32_t most) {
  double shares[Drafter::kMost];
  for (uint32_t guess = 0; guess < most; ++guess) {
    shares[guess] = right_[lengthClass(length + guess)].value();
  }
  return best(shares, most);
}

bool DraftCost::knowsOne() const { return one_ms_ != 0 && steps_of_many_ < kStepsOfMany; }

uint32_t DraftCost::cheapest(const double* shares, uint32_t most, double each) const {
  uint32_t taken = 0;
  double least = 1 / kWorthIt;  // relative to a token alone
  double tokens = 1;
  double chance = 1;
  for (uint32_t guesses = 1; guesses <= most; ++guesses) {
    chance *= shares[guesses - 1];
    tokens += chance;
    const double time = (times_[sizeClass(1 + guesses)] + guesses * each) / tokens;
    if (time < least) {
      least = time;
      taken = guesses;
    }
  }
  return taken;
}

uint32_t DraftCost::best(const double* shares, uint32_t most) {
  if (!knowsOne()) {
    return 0;
  }
  const uint32_t taken = cheapest(shares, most, 0);
  for (uint32_t size = 1; size < kSizes && taken == 0; ++size) {
    times_[size] = std::max(1.0, times_[size] * kFading);
  }
  return taken;
}

void Drafter::init(uint32_t most, Arena* arena) {
  most_ = std::min(most, kMost);
  if (most_ != 0) {
    index_.init(arena);
  }
}

void Drafter::forget() {
  if (most_ != 0) {
    index_.forget();
  }
  cost_ = DraftCost();
  use_ = DraftUse::kNever;
  seen_ = source_ = 0;
  length_ = 0;
}

// Finds an earlier occurrence of the tokens up to `last`, and the number of tokens that agree.
void Drafter::look(const DraftText& text, uint64_t last) {
  source_ = index_.after(text, last);
  length_ = 0;
  while (source_ != 0 && length_ < kMostLength && length_ < source_ &&
         text.at(source_ - 1 - length_) >= 0 &&
         text.at(source_ - 1 - length_) == text.at(last - length_)) {
    ++length_;
  }
}

void Drafter::chosen(const DraftText& text) {
  const uint64_t last = text.count() - 1;
  if (seen_ != last) {
    // The session went back, or has read tokens.
    source_ = 0;
    text.forEach(std::min(seen_, last), [&](uint64_t t) { index_.add(text, t); });
  }
  if (source_ != 0) {
    const bool right = text.at(source_) == text.at(last);
    cost_.judged(length_, right);
    source_ = right ? source_ + 1 : 0;
    length_ = std::min(length_ + 1, kMostLength);
  }
  if (source_ == 0) {
    look(text, last);
  }
  index_.add(text, last);
  seen_ = last + 1;
}

// The guessed text may repeat before it ends.
uint32_t Drafter::guess(const DraftText& text, uint32_t room, int32_t* ids) {
  uint32_t count = 0;
  const uint64_t begin = text.count();
  const uint32_t most = std::min(room, most_);
  while (source_ != 0 && count < most) {
    const uint64_t from = source_ + count;
    const int32_t id = from < begin ? text.at(from) : ids[from - begin];
    if (id < 0) {
      break;
    }
    ids[count++] = id;
  }
  return use_ == DraftUse::kAlways ? count : count == 0 ? 0 : cost_.best(length_, count);
}

namespace {

// If guesses do not pay, one is made per this number of tokens, or fewer: they take at most 1/kTrialShare of the time.
constexpr uint32_t kWait = 16;
constexpr uint32_t kTrialShare = 100;
constexpr double kMostWait = 1000;
// Assumed time of a guess before the first measurement, relative to a step.
constexpr double kAssumedTime = 0.1;

}  // namespace

uint32_t ModelDrafter::surenessOf(double share) {
  return share < 0.3 ? 0 : share < 0.5 ? 1 : share < 0.7 ? 2 : share < 0.9 ? 3 : 4;
}

// The time of a guess, relative to a step of one row.
double ModelDrafter::each(const DraftCost& cost) const {
  return cost.oneMs() == 0 ? 0 : guess_ms_ == 0 ? kAssumedTime : guess_ms_ / cost.oneMs();
}

// Tokens from one guess to the next if guesses do not pay.
uint32_t ModelDrafter::interval(const DraftCost& cost) const {
  return std::max(kWait, static_cast<uint32_t>(std::min(kTrialShare * each(cost), kMostWait)));
}

uint32_t ModelDrafter::best(const DraftCost& cost, uint32_t most) const {
  double shares[Drafter::kMost];
  std::fill_n(shares, most, any_.value());
  return cost.cheapest(shares, most, each(cost));
}

bool ModelDrafter::pays(const DraftCost& cost, uint32_t most, DraftUse use) const {
  return most != 0 &&
         (use == DraftUse::kAlways || waited_ + 1 >= interval(cost) || best(cost, most) != 0);
}

uint32_t ModelDrafter::wanted(const DraftCost& cost, uint32_t most, DraftUse use) const {
  if (use == DraftUse::kAlways) {
    return most;
  }
  if (!cost.knowsOne()) {
    return 0;
  }
  // The first guess only measures the time.
  const uint32_t count = guess_ms_ == 0 ? std::min(best(cost, most), 1u) : best(cost, most);
  return count == 0 && waited_ >= interval(cost) ? std::min(most, 1u) : count;
}

uint32_t ModelDrafter::made(const ModelGuess* guesses, uint32_t count, double ms, DraftCost* cost,
                            DraftUse use) {
  count_ = count;
  next_ = waited_ = 0;
  for (uint32_t i = 0; i < count; ++i) {
    ids_[i] = guesses[i].id;
    sureness_[i] = static_cast<uint8_t>(guesses[i].sureness);
  }
  if (count == 0) {
    return 0;
  }
  guess_ms_ = movedTowards(guess_ms_, ms / count);
  if (use == DraftUse::kAlways) {
    return count;
  }
  double shares[Drafter::kMost];
  for (uint32_t i = 0; i < count; ++i) {
    shares[i] = right_[guesses[i].sureness].value();
  }
  return cost->best(shares, count);
}

void ModelDrafter::chosen(int32_t id) {
  ++waited_;
  if (next_ == count_) {
    return;
  }
  const bool right = ids_[next_] == id;
  right_[sureness_[next_++]].judged(right);
  any_.judged(right);
  count_ = right ? count_ : next_;  // later guesses were for other tokens
}

}  // namespace oriel_internal
