// The part of a session that rebuilds its memory from the host's records after a device loss.
#include <algorithm>

#include "exec/session.h"

namespace oriel_internal {

/// A conversation while its memory is built again.
struct Session::Kept {
  ConversationCopy at;
  StateSlots states;  ///< if layers have states

  bool hasCheckpoint(uint64_t position) const {
    bool has = false;
    for (uint32_t i = 0; i < states.count(); ++i) {
      has = has || states.at(i) == position;
    }
    return has;
  }
};

Session::Kept Session::keep() const {
  return {at_, memory_.states != nullptr ? *memory_.states : StateSlots()};
}

void Session::putBack(const Kept& kept) {
  stand(kept.at);
  at_.has_logits = 0;
  if (memory_.states != nullptr) {
    *memory_.states = kept.states;
  }
}

/// Repeats the original steps as far as the ids have marks. Marks turns after their first message, and makes
/// checkpoints at the same places.
class Session::RecoverySteps final : public ReplaySteps {
 public:
  RecoverySteps(Session* session, const Kept& kept, bool in_batches)
      : session_(*session), kept_(kept), in_batches_(in_batches) {}

  uint32_t next(uint64_t position, uint64_t end, bool* exact) const override {
    const TokenIds& ids = session_.memory_.ids;
    const uint32_t marks = ids.marks(position);
    const bool known = (marks & TokenIds::kBegins) != 0;
    *exact = known && !in_batches_;
    if (*exact && (marks & TokenIds::kBatch) == 0) {
      return 1;
    }
    const uint32_t most = session_.feeder_.heldBatch(position, end);
    uint32_t n = 1;
    for (; n < most; ++n) {
      const uint32_t begins = ids.marks(position + n) & TokenIds::kBegins;
      const bool turns = (ids.marks(position + n - 1) & TokenIds::kTurn) != 0;
      if (turns || kept_.hasCheckpoint(position + n) || (begins != 0 && !in_batches_)) {
        break;
      }
    }
    return n;
  }
  void done(bool exact) override {
    const uint64_t position = session_.at_.position;
    if (!exact || (session_.memory_.ids.marks(position - 1) & TokenIds::kTurn) != 0) {
      learnTurns();
    }
    if (session_.memory_.states != nullptr && kept_.hasCheckpoint(position)) {
      session_.memory_.keepState(kept_.states.latestStart() == position);
    }
  }
  void learnTurns() {
    TurnMarks& turns = session_.at_.turns;
    for (uint32_t i = 0; i < kept_.at.turns.count(); ++i) {
      const uint64_t start = kept_.at.turns.at(i);
      if (start < session_.at_.position &&
          (turns.count() == 0 || turns.at(turns.count() - 1) < start)) {
        turns.mark(start);
      }
    }
  }

 private:
  Session& session_;
  const Kept& kept_;
  const bool in_batches_;
};

// Reads the tokens with held ids. If earlier ones are gone, they see only the sinks before them.
Status Session::readHeldAgain(const Kept& kept, bool in_batches, Rebuilt* result) {
  const uint64_t end = kept.at.position;
  const HeldTokens held =
      heldTokens(memory_.cache(), end, kept.at.stored, kept.at.carried.held_from);
  const uint64_t origin = context_.prefixTokens();
  const uint64_t base = memory_.states != nullptr ? kept.at.base : 0;
  uint64_t sinks = std::max(origin, held.sinks);
  uint64_t from = std::max(std::max(base, held.first), sinks);
  for (uint64_t t = from; t < end; ++t) {
    from = memory_.canRead(t) ? from : t + 1;
  }
  for (uint64_t t = origin; t < sinks; ++t) {
    sinks = memory_.canRead(t) ? sinks : origin;
  }
  standAtBeginning(kept.at.first_position);
  at_.sinks = kept.at.sinks;
  memory_.layOut();
  const bool all = from == sinks;
  if (base != 0 && from == base) {
    at_.base = base;
  } else if (!all) {
    at_.carried = {from, from, from};
    if (memory_.states != nullptr) {
      at_.base = from;
    }
    result->dropped = from - sinks;
  }
  const CarriedOver& carried = kept.at.carried;
  const bool was_whole = carried.seen_from == 0 && carried.held_from == 0;
  result->exact = result->dropped == 0 && was_whole;
  call_.expectAgain(sinks - origin + end - from + (kept.at.unfinished >= 0 ? 1 : 0));
  RecoverySteps steps(this, kept, in_batches);
  call_.replays = true;
  Status status = kOk;
  if (!all) {
    const bool exact = result->exact;  // the step across the end of the sinks is divided in two
    status = feeder_.replay(sinks, from == end, &steps, &result->read, &result->exact);
    result->exact = exact;
    at_.position = status.ok() ? from : at_.position;
    steps.learnTurns();
  }
  if (status.ok()) {
    status = feeder_.replay(end, true, &steps, &result->read, &result->exact);
  }
  call_.replays = false;
  return status;
}

// ---- From the transcript -------------------------------------------------------------------------

// Adds a reply's text, which is not a message of the app, because its tokens came one by one. Tokens from `end` on are
// held.
Status Session::streamReply(const JsonText& text, const Transcript::Entry& entry, uint64_t end,
                            bool in_batches, bool* fits) {
  const GenerateSettings settings;
  Scratch tools(*context_.allocator, 1);
  ReplyPlace place;
  ORIEL_TRY(openReply(settings, &tools, &place));
  const uint64_t count = entry.end - entry.text;
  // The counts of a transcript from a snapshot are untrusted. Every token has at least a byte, except a few at the
  // beginning.
  constexpr uint64_t kTokensBefore = 16;
  *fits = at_.position == entry.text && count <= text.bytes + kTokensBefore;
  if (!*fits) {
    return kOk;
  }
  Workspace workspace = feeder_.workspace();
  Workspace memory(nullptr, 0, context_.allocator);
  const BorrowedBytes room(&memory, count * sizeof(int32_t));
  if (room.data() == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                             "no memory for a reply of %llu tokens: free some",
                             static_cast<unsigned long long>(count));
  }
  EncodeOptions encode;
  encode.continues = continuesAt(at_.position);
  size_t found = 0;
  const Status encoded =
      context_.tokenizer->encode(text.data, text.bytes, encode, &workspace, context_.log,
                                 room.as<int32_t>(), static_cast<size_t>(count), &found);
  *fits = found == count;
  if (!*fits) {
    return encoded.code() == ORIEL_ERROR_BUFFER_TOO_SMALL ? Status(kOk) : encoded;
  }
  ORIEL_TRY(encoded);
  // Zero if the first held token belongs to the reply's opening.
  const uint64_t wanted = std::max(entry.text, std::min(entry.end, end)) - entry.text;
  ORIEL_TRY(feeder_.feed(room.as<int32_t>(), static_cast<size_t>(wanted), false,
                         in_batches ? ReadAs::kReply : ReadAs::kSteps));
  transcript_.close(at_.position, -1);
  return kOk;
}

Status Session::streamMessage(const JsonValue& message, const Transcript::Entry& entry,
                              uint64_t end, bool in_batches, bool* fits) {
  if ((entry.flags & Transcript::kReply) == 0) {
    Scratch scratch(*context_.allocator, templateScratchBytes(entry.bytes));
    JsonMade* const list = JsonBuilder(&scratch).listOf(message);
    ORIEL_TRY(list != nullptr && !scratch.failed()
                  ? addMessages(*list, entry.bytes)
                  : context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message"));
    *fits = at_.position == entry.end;
    return kOk;
  }
  const JsonValue* const content = message.find("content");
  *fits = content != nullptr && content->isString();
  return *fits ? streamReply(content->text(), entry, end, in_batches, fits) : Status(kOk);
}

// Reads tokens in the original order, through the original window, until `end` tokens are read. *fits: each message has
// its original number of tokens.
Status Session::streamMessages(uint64_t end, bool in_batches, bool* fits) {
  *fits = true;
  Transcript::Entry entry;
  const char* json = nullptr;
  for (uint64_t at = ownMessages(); at_.position < end && *fits;) {
    *fits = transcript_.next(&at, &entry, &json) && entry.begin == at_.position &&
            entry.end != UINT64_MAX;
    if (!*fits) {
      return kOk;
    }
    Scratch scratch(*context_.allocator, templateScratchBytes(entry.bytes));
    const JsonValue* message = nullptr;
    ORIEL_TRY(parseJson(json, entry.bytes, "the transcript", call_.stop(), context_.log, &scratch,
                        &message));
    ORIEL_TRY(streamMessage(*message, entry, end, in_batches, fits));
  }
  return kOk;
}

// Reads messages up to the first token with a held id, then the held tokens. *fits: the transcript matches them.
Status Session::readStreamAgain(const Kept& kept, uint64_t first_held, bool in_batches,
                                Rebuilt* result, bool* fits) {
  const uint64_t end = kept.at.position;
  const uint64_t sinks = std::min<uint64_t>(kept.at.sinks, end);
  const uint64_t count = sinks + end - first_held;
  const auto tokenAt = [&](uint64_t i) { return i < sinks ? i : first_held + i - sinks; };
  Workspace memory(nullptr, 0, context_.allocator);
  const BorrowedBytes room(&memory, count * sizeof(uint64_t));
  if (room.data() == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                             "no memory for the ids of %llu tokens: free some",
                             static_cast<unsigned long long>(count));
  }
  struct Known {
    int32_t id;
    uint32_t marks;
  };
  Known* const known = room.as<Known>();
  for (uint64_t i = 0; i < count; ++i) {
    known[i] = {memory_.ids.at(tokenAt(i)), memory_.ids.marks(tokenAt(i))};
  }
  standAtBeginning(kept.at.first_position);
  const uint64_t origin = at_.position;
  // The transcript of a snapshot may be invalid: then the held tokens are read.
  const Log log = context_.log;
  LenientLog lenient(log);
  context_.log = lenient.log();
  transcript_.hold(true);  // the message was logged before
  Status status = streamMessages(first_held, in_batches, fits);
  transcript_.hold(false);
  context_.log = log;
  if (!status.ok() && !status.lost() && status.code() != ORIEL_ERROR_CANCELLED) {
    if (status.code() == ORIEL_ERROR_OUT_OF_MEMORY || status.code() == ORIEL_ERROR_IO) {
      status = log.fail(
          status.code(), "the conversation cannot be read again: %s",
          status.code() == ORIEL_ERROR_IO ? "look after the model's file" : "free some memory");
    } else {
      *fits = false;
      status = kOk;
    }
  }
  *fits = *fits && at_.position <= end;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t t = tokenAt(i);
    const bool read = t < sinks || t < at_.position;
    *fits =
        *fits && known[i].id != TokenIds::kUnknown && (!read || memory_.ids.at(t) == known[i].id);
  }
  for (uint64_t i = 0; i < count; ++i) {
    memory_.ids.set(tokenAt(i), known[i].id, known[i].marks);
  }
  ORIEL_TRY(status);
  if (!*fits) {
    return kOk;
  }
  result->read = at_.position - origin;
  result->exact = false;  // the original tokens are unknown
  RecoverySteps steps(this, kept, in_batches);
  call_.replays = true;
  const Status rest = feeder_.replay(end, true, &steps, &result->read, &result->exact);
  call_.replays = false;
  return rest;
}

// ---- The whole conversation ----------------------------------------------------------------------

Status Session::readAllAgain(const Kept& kept, bool in_batches, Rebuilt* result) {
  const uint64_t end = kept.at.position;
  const uint64_t unfinished = kept.at.unfinished >= 0 ? 1 : 0;
  const CarriedOver& carried = kept.at.carried;
  if (memory_.states != nullptr && kept.at.stale && memory_.knows(kept.at.base, end)) {
    // The visible tokens must be read again anyway.
    const uint64_t sinks = std::min<uint64_t>(kept.at.sinks, end);
    result->read = sinks - std::min(sinks, context_.prefixTokens()) + end - kept.at.base;
    call_.expectAgain(result->read);
    return feeder_.readAnew(end);
  }
  const HeldTokens held = heldTokens(memory_.cache(), end, kept.at.stored, carried.held_from);
  const bool forgets = memory_.states != nullptr && (kept.at.base != 0 || context_.forgets_evicted);
  const bool streams = held.first > held.sinks && !forgets && carried.seen_from == 0 &&
                       carried.held_from == 0 && kept.at.sinks == ownSinks() &&
                       transcript_.keeps() && transcript_.dropped() == 0 &&
                       (memory_.pictures == nullptr || !memory_.pictures->hasSpans());
  bool fits = false;
  if (streams) {
    call_.expectAgain(end - context_.prefixTokens() + unfinished);
    ORIEL_TRY(readStreamAgain(kept, held.first, in_batches, result, &fits));
  }
  if (streams && !fits) {
    *result = Rebuilt();
    putBack(kept);
    ORIEL_TRY(emptyDevice());
  }
  return fits ? Status(kOk) : readHeldAgain(kept, in_batches, result);
}

// The device or memory was lost while the transcript was read. Starts again from its beginning.
Status Session::recoverUnread(Rebuilt* result) {
  ORIEL_TRY(readTranscript(UINT64_MAX - 1));
  result->held = memory_.held().count();
  result->read = at_.position - context_.prefixTokens();
  result->exact = false;
  return kOk;
}

// Clears the memory with zeros and restores the prefix's states.
Status Session::emptyDevice() {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  ORIEL_TRY(memory_.forget());
  return context_.prefixTokens() != 0 ? memory_.copyPrefix(/*to_prefix=*/false) : Status(kOk);
}

Status Session::recover(const RebuildSource& source, Rebuilt* result) {
  *result = Rebuilt();
  if (transcript_.hasUnread()) {
    return recoverUnread(result);
  }
  stepper_.reset();
  const Kept kept = keep();
  ORIEL_TRY(emptyDevice());
  call_.recovers = true;
  Status status = readAllAgain(kept, source.in_batches, result);
  if (status.ok()) {
    ConversationCopy then = kept.at;
    then.base = at_.base;
    then.stale = at_.stale;
    then.carried = at_.carried;
    then.has_logits = at_.position != context_.prefixTokens() ? at_.has_logits : 0;
    at_ = then;
    memory_.layOut();
    stepper_.forgetHidden();
    replier_.reset();
    status = readUnfinished(result);
  }
  call_.recovers = false;
  if (!status.ok()) {
    putBack(kept);
    return status;
  }
  result->held = memory_.held().count();
  result->exact = result->exact && source.prefix_exact;
  return kOk;
}

// Completes the step of the last shown token.
Status Session::readUnfinished(Rebuilt* result) {
  if (const int32_t id = at_.unfinished; id >= 0) {
    ORIEL_TRY(feeder_.feed(&id, 1, true, ReadAs::kSteps));
    at_.unfinished = -1;
    ++result->read;
  }
  return kOk;
}

Status Session::recoverPrefix(Prefix* prefix, Rebuilt* result) {
  const Kept kept = keep();
  const uint32_t tokens = prefix->tokens;
  for (uint32_t t = 0; t < tokens; ++t) {
    if (TokenIds::idOf(prefix->ids[t]) == TokenIds::kUnknown) {
      return context_.log.fail(ORIEL_ERROR_STATE,
                               "the prefix came from a snapshot without ids and cannot be read "
                               "again: load the model again, and restore that snapshot");
    }
  }
  Kept of_prefix;
  of_prefix.at.turns = prefix->at.turns;
  prefix->tokens = 0;  // until it is restored
  standAtBeginning(prefix->at.first_position);
  call_.expectAgain(tokens);
  call_.recovers = call_.replays = true;
  RecoverySteps steps(this, of_prefix, /*in_batches=*/false);
  Status status = feeder_.replay(tokens, true, &steps, &result->read, &result->exact);
  call_.recovers = call_.replays = false;
  if (status.ok()) {
    status = memory_.copyPrefix(/*to_prefix=*/true);
  }
  prefix->tokens = tokens;
  putBack(kept);
  ORIEL_TRY(status);
  return memory_.forget();
}

}  // namespace oriel_internal
