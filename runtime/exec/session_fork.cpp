// The part of a session that begins with what another has: behind a prefix, or as a fork.
#include <cstring>

#include "exec/session.h"
#include "exec/session_memory.h"
#include "text/utf8.h"

namespace oriel_internal {

// Of the device's part: this session's, where there are others.
Status Session::forgetMemory() {
  const Plan& plan = *context_.plan;
  const bool shares = prefixTokens() != 0;
  if (plan.sessionCount() == 1 && !shares) {
    return context_.executor->forget();
  }
  BufferRef* const pieces = static_cast<BufferRef*>(workspace_block_);
  constexpr size_t kMost = kSessionWorkspaceBytes / sizeof(BufferRef);
  size_t count = 0;
  sessionPieces(plan, *context_.model, cache_, !shares, pieces, kMost, &count);
  if (count > kMost) {
    return context_.log.fail(ORIEL_ERROR_INTERNAL, "a session of %zu pieces: please report it",
                             count);
  }
  return context_.executor->forget(pieces, count);
}

// Where memories have no sinks, what they have of the prefix is copied; its state goes to slot 0.
Status Session::statesOfPrefix() {
  const Plan& plan = *context_.plan;
  MemoryCopy what;
  what.from = sessionCache(plan.cache, plan.sessionCount());
  what.from.sinks = cache_.sinks;
  what.to = cache_;
  what.tokens = {0, 0, prefixTokens()};
  what.beside_sinks = true;
  return copyMemory(plan, *context_.model, what, workspace_block_, kSessionWorkspaceBytes,
                    context_.executor);
}

Status Session::beginBehindPrefix() {
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  const Prefix* const prefix = context_.prefix;
  if (prefix == nullptr || prefix->tokens == 0) {
    return kOk;
  }
  at_.sinks = prefix->tokens;
  layOut();
  ORIEL_TRY(statesOfPrefix());
  blank_ = false;
  stand(prefix->at);
  takePrefixMessages();
  return kOk;
}

// If messages are there, they begin with the prefix's, and others are still to be read.
void Session::takePrefixMessages() {
  if (prefixTokens() != 0 && transcript_.messages() == 0) {
    const Transcript& from = context_.prefix->transcript;
    transcript_.load(from.data(), from.bytes(), from.dropped());
  }
}

Status Session::copyToPrefix() const {
  const Plan& plan = *context_.plan;
  MemoryCopy what;
  what.from = cache_;
  what.to = sessionCache(plan.cache, plan.sessionCount());
  what.to.sinks = cache_.sinks;
  what.tokens = {0, 0, at_.position};
  what.from_state = states_ != nullptr ? states_->current() : 0;
  what.beside_sinks = true;
  return copyMemory(plan, *context_.model, what, workspace_block_, kSessionWorkspaceBytes,
                    context_.executor);
}

Status Session::makePrefix(Prefix* prefix) const {
  ORIEL_TRY(copyToPrefix());
  prefix->tokens = static_cast<uint32_t>(at_.position);
  prefix->at = Conversation(static_cast<const SessionState&>(at_));
  prefix->at.turns = at_.turns;
  prefix->at.stored = at_.position;
  prefix->at.has_logits = 0;
  prefix->at.carried = {};
  prefix->at.sinks = prefix->tokens;
  prefix->transcript.load(transcript_.data(), transcript_.bytes(), transcript_.dropped());
  return kOk;
}

Status Session::becomePrefix(Prefix* prefix) {
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  const bool had_none = prefix->tokens == 0;
  const uint32_t sinks = cache_.sinks;
  ORIEL_TRY(makePrefix(prefix));
  const Status status = beginBehindPrefix();
  if (!status.ok() && !status.lost() && had_none) {
    prefix->forget();
    at_.sinks = sinks;
    layOut();
  }
  return status;
}

Status Session::mark(const char* name) {
  const size_t bytes = std::strlen(name);
  size_t bad = 0;
  if (bytes == 0 || bytes >= Bookmarks::kNameBytes || !isValidUtf8(name, bytes, &bad)) {
    return context_.log.fail(ORIEL_ERROR_ARGUMENT,
                             "a mark's name has 1 to %u bytes of UTF-8: give another",
                             Bookmarks::kNameBytes - 1);
  }
  if (!at_.marks.set(name, at_.position)) {
    return context_.log.fail(ORIEL_ERROR_CONTEXT,
                             "a session has %u marks at most: use one of their names again",
                             Bookmarks::kCapacity);
  }
  keepState(/*start=*/false);
  return kOk;
}

bool Session::canGoBack(uint64_t position) const {
  return states_ != nullptr ? stateBefore(position) != StateSlots::kNone || canReadAnew(position)
                            : holdsWhatIsSeenAt(position);
}

// What the memory has of the place is tried first; its error line is the app's where there is no other way.
Status Session::goBackTo(uint64_t position, bool read_again) {
  return canGoBack(position) || !read_again || position > at_.position || position < prefixTokens()
             ? rewind(position)
             : readTranscript(position);
}

// The device's part.
Status Session::takeOverMemory(const Session& other, const HeldTokens& held) {
  const Plan& plan = *context_.plan;
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  MemoryCopy what;
  what.from = other.cache_;
  what.to = cache_;
  what.tokens = {held.sinks + other.at_.recalled, held.first, held.position};
  what.sinks = !cache_.sharesSinks();
  what.from_state = other.states_ != nullptr ? other.states_->current() : 0;
  blank_ = false;
  ORIEL_TRY(copyMemory(plan, *context_.model, what, workspace_block_, kSessionWorkspaceBytes,
                       context_.executor));
  if (other.at_.has_logits) {
    const uint64_t row_bytes = plan.kept_logits.size_bytes / plan.sessionCount();
    const auto rowOf = [&](uint32_t session) {
      const BufferRef& rows = plan.kept_logits;
      return BufferRef(rows.arena, rows.segment, rows.offset_bytes + session * row_bytes,
                       row_bytes);
    };
    const CopyPiece logits = {rowOf(other.context_.index), rowOf(context_.index)};
    ORIEL_TRY(context_.executor->copy(&logits, 1));
  }
  return kOk;
}

Status Session::takeOver(const Session& other) {
  const HeldTokens held = oriel_internal::heldTokens(other.cache_, other.at_.position, other.at_.stored,
                                                     other.at_.carried.held_from);
  at_.sinks = other.at_.sinks;
  layOut();
  ORIEL_TRY(takeOverMemory(other, held));
  const auto takeId = [&](uint64_t t) { ids_.set(t, other.ids_.at(t), other.ids_.marks(t)); };
  for (uint64_t t = 0; t < held.sinks; ++t) {
    takeId(t);
  }
  for (uint64_t t = held.first; t < held.position; ++t) {
    takeId(t);
  }
  stand(other.at_);
  takeOverRecall(other);
  transcript_.load(other.transcript_.data(), other.transcript_.bytes(),
                   other.transcript_.dropped());
  return kOk;
}

}  // namespace oriel_internal
