// The part of a session that goes back, and that forgets what a state remembers of tokens that are seen no more.
#include <algorithm>
#include <cstdio>

#include "exec/session.h"

namespace oriel_internal {

// All that token `position` would see, and what attention and convolutions remember of it.
bool Session::holdsWhatIsSeenAt(uint64_t position) const {
  const ModelDesc& model = *context_.model;
  bool holds = reaches(position) &&
               ((states_ != nullptr && !model.attends()) || window_.canRewind(stored_, position));
  for (uint32_t view = 1; view < model.n_views; ++view) {
    holds = holds && (model.views[view].kind == ViewKind::kState ||
                      windows_[view].canRewind(stored_, position));
  }
  return holds;
}

// Whether what came from a session with another window leads there.
bool Session::reaches(uint64_t position) const {
  return position >= carried_.least || position == 0 ||
         (states_ == nullptr && onlySinksSee(position));
}

// Whether all that token `position` sees of the conversation stands in sinks, and of each layer that attends. Layers that see
// a part of the session's window have its sinks, too.
bool Session::onlySinksSee(uint64_t position) const {
  const ModelDesc& model = *context_.model;
  bool only = position <= cache_.sinks;
  for (uint32_t view = 1; view < model.n_views; ++view) {
    const ViewKind kind = model.views[view].kind;
    only = only && (kind == ViewKind::kState || kind == ViewKind::kSession);
  }
  return only;
}

bool Session::canRewindAtOnce(uint64_t position) const {
  return states_ != nullptr ? stateBefore(position) == position : holdsWhatIsSeenAt(position);
}

Status Session::rewind(uint64_t position) {
  if (position > position_) {
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT, "cannot go to token %llu, there are %llu so far: give an earlier one",
        static_cast<unsigned long long>(position), static_cast<unsigned long long>(position_));
  }
  if (position < prefixTokens()) {
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT,
        "cannot go back to token %llu, the first %llu are a prefix that sessions share: go back to "
        "token %llu at most, or clear the prefix",
        static_cast<unsigned long long>(position), static_cast<unsigned long long>(prefixTokens()),
        static_cast<unsigned long long>(prefixTokens()));
  }
  if (states_ != nullptr) {
    return rewindStates(position);
  }
  if (!holdsWhatIsSeenAt(position)) {
    return refuseRewind(position);
  }
  if (position == position_) {
    return kOk;
  }
  standAt(position);
  return rewindRecall();
}

// As far as the host knows: the device is lost. For where canRewindAtOnce().
void Session::rewindOnHost(uint64_t position) {
  if (states_ != nullptr) {
    if (position != 0 && position == prefixTokens()) {
      states_->slots.restart(position);
    } else {
      states_->slots.goBack(position);
    }
    states_->stale = false;
  }
  standAt(position);
  (void)forgetRecalled();
}

// What the host knows of a conversation that ends behind `position` tokens.
void Session::standAt(uint64_t position) {
  Transcript::Entry cut;
  if (transcript_.truncate(position, &cut)) {
    cutReply(cut, position);
  }
  position_ = position;
  if (position <= cache_.sinks) {  // nothing had left the window
    cache_.recalled = 0;
    shapeWindows();
    if (recall_ != nullptr) {
      recall_->shown = {};
      recall_->history.clear();
    }
  }
  if (position < carried_.least) {  // before all that was carried over
    carried_ = {};
    setSinks(ownSinks());
  }
  last_token_ = lastHeldToken();
  unfinished_ = -1;
  has_logits_ = false;
  turns_.truncate(position);
  marks_.truncate(position);
  if (onlySinksSee(position)) {
    stored_ = position;  // nothing in the ring counts any more
  }
  if (position == 0) {
    stored_ = 0;
    if (recall_ == nullptr) {
      setSinks(ownSinks());
    }
  }
}

Status Session::refuseRewind(uint64_t position) const {
  if (states_ != nullptr) {
    uint64_t least = StateSlots::kNone;
    if (states_->base != 0 && idsKnown(states_->base, position_)) {
      least = states_->base;
    } else {
      states_->slots.forEachBefore(position_, [&](uint64_t tokens) {
        least = tokens != 0 && usable(tokens) ? tokens : least;
        return false;
      });
    }
    char way[64] = "";
    if (least != StateSlots::kNone) {
      std::snprintf(way, sizeof(way), "go back to token %llu at most, or ",
                    static_cast<unsigned long long>(least));
    }
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT,
        "cannot go back from token %llu to %llu, the states before it are gone: %sreset",
        static_cast<unsigned long long>(position_), static_cast<unsigned long long>(position), way);
  }
  const uint64_t slack = uint64_t{cache_.ring} - cache_.window + 1;
  const uint64_t taken = std::min(stored_ - position_, slack);
  const uint64_t most = std::min(slack - taken, position_ - std::min(position_, carried_.least));
  return context_.log.fail(
      ORIEL_ERROR_CONTEXT,
      "cannot go back from token %llu to %llu, the tokens before it are gone: go "
      "back %llu tokens at most, or reset",
      static_cast<unsigned long long>(position_), static_cast<unsigned long long>(position),
      static_cast<unsigned long long>(most));
}

// Half a message must not stay behind a failure. What would have to be read again does stay, for that takes long; so
// does a message that is longer than the ring's slack: what was evicted for it is gone.
Status Session::takeBackUnless(Status done, uint64_t begin, const SamplerState& before) {
  if (!done.ok() && position_ > begin && canRewindAtOnce(begin)) {
    prompt_tokens_ -= static_cast<uint32_t>(position_ - begin);
    if (done.lost()) {
      rewindOnHost(begin);
    } else if (const Status back = rewind(begin); back.lost()) {
      done = back;
    }
    sampler_.restore(before);
  }
  return done;
}

// ---- States --------------------------------------------------------------------------------------

void Session::restartStates(uint64_t position) {
  if (states_ != nullptr) {
    states_->slots.restart(position);
    states_->base = 0;
    states_->stale = false;
  }
}

// The first token that token t may see because earlier ones were forgotten.
uint64_t Session::baseOf(uint64_t t) const {
  return states_ != nullptr && t >= states_->base ? states_->base : 0;
}

// Whether what follows can be read again from the state after so many tokens, more than none.
bool Session::usable(uint64_t tokens) const {
  return tokens >= states_->base && holdsWhatIsSeenAt(tokens);
}

bool Session::idsKnown(uint64_t begin, uint64_t end) const {
  const HeldTokens held =
      oriel_internal::heldTokens(cache_, position_, stored_, carried_.held_from);
  if (begin == end) {
    return true;
  }
  bool known = held.has(begin) && held.endOfRun(begin) >= end;
  for (uint64_t t = begin; t < end && known; ++t) {
    known = ids_.at(t) != TokenIds::kUnknown;
  }
  return known;
}

int32_t Session::lastHeldToken() const {
  return position_ != 0 && idsKnown(position_ - 1, position_) ? ids_.at(position_ - 1) : -1;
}

// Of how many tokens the state is that leads to `position`; kNone: there is none.
uint64_t Session::stateBefore(uint64_t position) const {
  if (position == position_ && !states_->stale) {
    return position;
  }
  uint64_t found = StateSlots::kNone;
  states_->slots.forEachBefore(position_, [&](uint64_t tokens) {
    // Of all states the first is that behind the prefix, or before the first token.
    const uint64_t origin = prefixTokens();
    const bool is_state = tokens != 0 ? usable(tokens) : position == origin || states_->base == 0;
    const uint64_t at = std::max(tokens, origin);
    if (at <= position && is_state && idsKnown(at, position)) {
      found = at;
    }
    return found != StateSlots::kNone;
  });
  return found;
}

// From what the state was made to begin with.
bool Session::canReadAnew(uint64_t position) const {
  return states_->base != 0 && position >= states_->base && idsKnown(states_->base, position);
}

Status Session::rewindStates(uint64_t position) {
  if (position == position_) {
    return kOk;
  }
  const uint64_t from = stateBefore(position);
  const bool anew = from == StateSlots::kNone && canReadAnew(position);
  if (from == StateSlots::kNone && !anew) {
    return refuseRewind(position);
  }
  if (from != position) {
    ORIEL_TRY(checkCancelled());  // as long as nothing has changed
  }
  if (anew) {
    standAt(position);
    const double prompt_ms = prompt_ms_;
    const Status status = readAnew(position);
    prompt_ms_ = prompt_ms;
    has_logits_ = false;
    last_token_ = lastHeldToken();
    return status;
  }
  ORIEL_TRY(goBackToState(from));
  states_->stale = false;
  position_ = from;
  has_logits_ = false;
  const double prompt_ms = prompt_ms_;
  expect(position - from);
  const Status status = readAgain(position, false);
  prompt_ms_ = prompt_ms;
  standAt(position_);
  if (position_ == 0) {
    states_->base = 0;
  }
  return status;
}

Status Session::goBackToState(uint64_t tokens) {
  if (tokens != 0 && tokens == prefixTokens()) {
    waitForDevice();
    ORIEL_TRY(statesOfPrefix());
    states_->slots.restart(tokens);
  } else {
    states_->slots.goBack(tokens);
  }
  return kOk;
}

// Tokens from position_ up to `end`, in the batches that appending them all would be cut into. To those who count and
// remember tokens they are not new.
Status Session::readAgain(uint64_t end, bool ends) {
  const uint32_t chunk = context_.plan->chunk_tokens;
  const SamplerCopy sampler = sampler_.state();
  const uint32_t prompt_tokens = prompt_tokens_;
  Status status = kOk;
  while (position_ < end && status.ok()) {
    WipedArray<int32_t, kMaxChunk> ids;
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(end - position_, chunk));
    for (uint32_t i = 0; i < n; ++i) {
      ids[i] = ids_.at(position_ + i);
    }
    status = readIds(ids, n, ends && position_ + n == end);
    read_again_ += status.ok() ? n : 0;
  }
  sampler_.restore(sampler);
  prompt_tokens_ = prompt_tokens;
  return status;
}

// The state of what token `end` sees, and nothing else, as if the conversation had consisted of the sinks and of the
// tokens from the base on. Where that fails it remains to be done.
Status Session::readAnew(uint64_t end) {
  const uint64_t sinks = std::min<uint64_t>(cache_.sinks, end);
  const int32_t last_token = last_token_;
  const uint64_t origin = prefixTokens();
  ORIEL_TRY(origin != 0 ? statesOfPrefix() : kOk);
  states_->slots.restart(origin);
  states_->stale = false;
  position_ = origin;
  has_logits_ = false;
  expect(sinks + (states_->base < end ? end - states_->base : 0));
  Status status = readAgain(sinks, states_->base >= end);
  if (status.ok()) {
    position_ = states_->base;
    status = readAgain(end, true);
  }
  position_ = end;
  last_token_ = last_token;
  has_logits_ = has_logits_ && status.ok();
  states_->stale = !status.ok();
  return status;
}

// Does what was begun and not finished.
Status Session::refresh() {
  return states_ != nullptr && states_->stale ? readAnew(position_) : kOk;
}

// What attention has just ceased to see, states cease to know.
Status Session::forgetEvicted() {
  if (states_ == nullptr || !context_.forgets_evicted) {
    return kOk;
  }
  const uint64_t first = position_ + 1 - viewOf(position_).count;
  if (first > std::max<uint64_t>(states_->base, cache_.sinks)) {
    states_->base = first;
    states_->stale = true;
  }
  return refresh();
}

// The latest state becomes a checkpoint; `start`: a message begins.
void Session::keepState(bool start) {
  if (states_ != nullptr && !states_->stale) {
    states_->slots.keep(position_, start, [this](uint64_t tokens) { return usable(tokens); });
  }
}

}  // namespace oriel_internal
