// The part of a session that goes back, and that forgets what a state remembers of tokens that are seen no more.
#include <algorithm>
#include <cstdio>

#include "exec/session.h"

namespace oriel_internal {

// All that token `position` would see, and what attention and convolutions remember of it.
bool Session::holdsWhatIsSeenAt(uint64_t position) const {
  const ModelDesc& model = *context_.model;
  bool holds = reaches(position) &&
               ((states_ != nullptr && !model.attends()) || window_.canRewind(at_.stored, position));
  for (uint32_t view = 1; view < model.n_views; ++view) {
    holds = holds && (model.views[view].kind == ViewKind::kState ||
                      windows_[view].canRewind(at_.stored, position));
  }
  return holds;
}

// Whether what came from a session with another window leads there.
bool Session::reaches(uint64_t position) const {
  return position >= at_.carried.least || position == 0 ||
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
  if (position > at_.position) {
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT, "cannot go to token %llu, there are %llu so far: give an earlier one",
        static_cast<unsigned long long>(position), static_cast<unsigned long long>(at_.position));
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
  if (position == at_.position) {
    return kOk;
  }
  truncate(position);
  return rewindRecall();
}

// As far as the host knows: the device is lost. For where canRewindAtOnce().
void Session::rewindOnHost(uint64_t position) {
  if (states_ != nullptr) {
    if (position != 0 && position == prefixTokens()) {
      states_->restart(position);
    } else {
      states_->goBack(position);
    }
    at_.stale = false;
  }
  truncate(position);
  (void)forgetRecalled();
}

// The conversation ends after `position` tokens, as far as the host knows.
void Session::truncate(uint64_t position) {
  Transcript::Entry cut;
  if (transcript_.truncate(position, &cut)) {
    cutReply(cut, position);
  }
  at_.truncate(position);
  if (position <= at_.sinks) {  // nothing had left the window
    at_.recalled = 0;
    if (recall_ != nullptr) {
      recall_->shown = {};
      recall_->history.clear();
    }
  }
  if (position < at_.carried.least) {  // before all that was carried over
    at_.carried = {};
    at_.sinks = ownSinks();
  }
  if (position == 0 && recall_ == nullptr) {
    at_.sinks = ownSinks();
  }
  layOut();
  if (position == 0 || onlySinksSee(position)) {
    at_.stored = position;  // nothing in the ring counts any more
  }
}

Status Session::refuseRewind(uint64_t position) const {
  if (states_ != nullptr) {
    uint64_t least = StateSlots::kNone;
    if (at_.base != 0 && idsKnown(at_.base, at_.position)) {
      least = at_.base;
    } else {
      states_->forEachBefore(at_.position, [&](uint64_t tokens) {
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
        static_cast<unsigned long long>(at_.position), static_cast<unsigned long long>(position), way);
  }
  const uint64_t slack = uint64_t{cache_.ring} - cache_.window + 1;
  const uint64_t taken = std::min(at_.stored - at_.position, slack);
  const uint64_t most = std::min(slack - taken, at_.position - std::min(at_.position, at_.carried.least));
  return context_.log.fail(
      ORIEL_ERROR_CONTEXT,
      "cannot go back from token %llu to %llu, the tokens before it are gone: go "
      "back %llu tokens at most, or reset",
      static_cast<unsigned long long>(at_.position), static_cast<unsigned long long>(position),
      static_cast<unsigned long long>(most));
}

// After a failure the conversation is what it was before, so that no half message stays. It remains as it is where going
// back would read tokens again, or where the tokens before were overwritten: a message longer than the ring's slack.
Status Session::rollBack(Status done, const Conversation& before) {
  if (done.ok() || at_.position <= before.position || !canRewindAtOnce(before.position)) {
    return done;
  }
  if (done.lost()) {
    rewindOnHost(before.position);
  } else if (const Status back = rewind(before.position); !back.ok()) {
    return back.lost() ? back : done;
  }
  ConversationCopy then = before;
  then.stored = at_.stored;
  then.recalled = at_.recalled;
  then.has_logits = 0;
  at_ = then;
  return done;
}

// ---- States --------------------------------------------------------------------------------------

void Session::restartStates(uint64_t position) {
  if (states_ != nullptr) {
    states_->restart(position);
    at_.base = 0;
    at_.stale = 0;
  }
}

// The first token that token t may see because earlier ones were forgotten.
uint64_t Session::baseOf(uint64_t t) const {
  return states_ != nullptr && t >= at_.base ? at_.base : 0;
}

// Whether what follows can be read again from the state after so many tokens, more than none.
bool Session::usable(uint64_t tokens) const {
  return tokens >= at_.base && holdsWhatIsSeenAt(tokens);
}

bool Session::idsKnown(uint64_t begin, uint64_t end) const {
  const HeldTokens held =
      oriel_internal::heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from);
  if (begin == end) {
    return true;
  }
  bool known = held.has(begin) && held.endOfRun(begin) >= end;
  for (uint64_t t = begin; t < end && known; ++t) {
    known = ids_.at(t) != TokenIds::kUnknown;
  }
  return known;
}

// Of how many tokens the state is that leads to `position`; kNone: there is none.
uint64_t Session::stateBefore(uint64_t position) const {
  if (position == at_.position && !at_.stale) {
    return position;
  }
  uint64_t found = StateSlots::kNone;
  states_->forEachBefore(at_.position, [&](uint64_t tokens) {
    // Of all states the first is that behind the prefix, or before the first token.
    const uint64_t origin = prefixTokens();
    const bool is_state = tokens != 0 ? usable(tokens) : position == origin || at_.base == 0;
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
  return at_.base != 0 && position >= at_.base && idsKnown(at_.base, position);
}

Status Session::rewindStates(uint64_t position) {
  if (position == at_.position) {
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
    truncate(position);
    const double prompt_ms = at_.prompt_ms;
    const Status status = readAnew(position);
    at_.prompt_ms = prompt_ms;
    at_.has_logits = false;
    return status;
  }
  ORIEL_TRY(goBackToState(from));
  at_.stale = false;
  at_.position = from;
  at_.has_logits = false;
  const double prompt_ms = at_.prompt_ms;
  expect(position - from);
  const Status status = readAgain(position, false);
  at_.prompt_ms = prompt_ms;
  truncate(at_.position);
  return status;
}

Status Session::goBackToState(uint64_t tokens) {
  if (tokens != 0 && tokens == prefixTokens()) {
    waitForDevice();
    ORIEL_TRY(statesOfPrefix());
    states_->restart(tokens);
  } else {
    states_->goBack(tokens);
  }
  return kOk;
}

// Tokens from at_.position up to `end`, in the batches that appending them all would be cut into. To those who count and
// remember tokens they are not new.
Status Session::readAgain(uint64_t end, bool ends) {
  const uint32_t chunk = context_.plan->chunk_tokens;
  const WipedCopy<SamplerState> sampler = at_.sampler;
  const uint32_t prompt_tokens = at_.prompt_tokens;
  Status status = kOk;
  while (at_.position < end && status.ok()) {
    WipedArray<int32_t, kMaxChunk> ids;
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(end - at_.position, chunk));
    for (uint32_t i = 0; i < n; ++i) {
      ids[i] = ids_.at(at_.position + i);
    }
    status = readIds(ids, n, ends && at_.position + n == end);
    read_again_ += status.ok() ? n : 0;
  }
  at_.sampler = sampler;
  at_.prompt_tokens = prompt_tokens;
  return status;
}

// The state of what token `end` sees, and nothing else, as if the conversation had consisted of the sinks and of the
// tokens from the base on. Where that fails it remains to be done.
Status Session::readAnew(uint64_t end) {
  const uint64_t sinks = std::min<uint64_t>(cache_.sinks, end);
  const uint64_t origin = prefixTokens();
  ORIEL_TRY(origin != 0 ? statesOfPrefix() : kOk);
  states_->restart(origin);
  at_.stale = false;
  at_.position = origin;
  at_.has_logits = false;
  expect(sinks + (at_.base < end ? end - at_.base : 0));
  Status status = readAgain(sinks, at_.base >= end);
  if (status.ok()) {
    at_.position = at_.base;
    status = readAgain(end, true);
  }
  at_.position = end;
  at_.has_logits = at_.has_logits && status.ok();
  at_.stale = !status.ok();
  return status;
}

// Does what was begun and not finished.
Status Session::refresh() {
  return states_ != nullptr && at_.stale ? readAnew(at_.position) : kOk;
}

// What attention has just ceased to see, states cease to know.
Status Session::forgetEvicted() {
  if (states_ == nullptr || !context_.forgets_evicted) {
    return kOk;
  }
  const uint64_t first = at_.position + 1 - viewOf(at_.position).count;
  if (first > std::max<uint64_t>(at_.base, cache_.sinks)) {
    at_.base = first;
    at_.stale = true;
  }
  return refresh();
}

// The latest state becomes a checkpoint; `start`: a message begins.
void Session::keepState(bool start) {
  if (states_ != nullptr && !at_.stale) {
    states_->keep(at_.position, start, [this](uint64_t tokens) { return usable(tokens); });
  }
}

}  // namespace oriel_internal
