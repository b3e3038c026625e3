// The part of a session whose device was lost: its memory is built again from what the host knows.
#include <algorithm>

#include "exec/session.h"

namespace oriel_internal {

/// A conversation while its memory is built again.
struct Session::Kept {
  ConversationCopy at;
  StateSlots states;  ///< where layers keep some
  uint64_t read_again = 0;

  bool hasCheckpoint(uint64_t position) const {
    bool has = false;
    for (uint32_t i = 0; i < states.count(); ++i) {
      has = has || states.at(i) == position;
    }
    return has;
  }
};

Session::Kept Session::keep() const {
  return {at_, states_ != nullptr ? *states_ : StateSlots(), read_again_};
}

void Session::putBack(const Kept& kept) {
  stand(kept.at);
  at_.has_logits = 0;
  if (states_ != nullptr) {
    *states_ = kept.states;
  }
  read_again_ = kept.read_again;
}

// What the app was shown of a reply is said, although the device did not live to read the last of it.
void Session::keepCutText(const Status& status) {
  if (status.lost()) {
    const ReplyText::Shown rest = reply_text_.finish(false);
    transcript_.extend(rest.text, rest.bytes);
    reply_parts_.forget();
  }
}

// On the host, with the transcript and the ids as they are.
void Session::standAtBeginning(uint64_t first_position) {
  stand(prefixTokens() != 0 ? context_.prefix->at : Conversation::empty(first_position, ownSinks()));
  if (recall_ != nullptr) {
    recall_->shown = {};
  }
}

Status Session::resetLost() {
  const uint64_t first_position = at_.first_position;
  forgetOnHost();
  ORIEL_TRY(reopenRecall());
  standAtBeginning(first_position);
  takePrefixMessages();
  blank_ = prefixTokens() == 0;
  return kOk;
}

// From here on so many tokens are still to be read.
void Session::expectAgain(uint64_t tokens) { reading_.total = reading_.done + tokens; }

// Turns were not known before the message that began them had been read.
void Session::learnTurns(const Kept& kept) {
  for (uint32_t i = 0; i < kept.at.turns.count(); ++i) {
    const uint64_t start = kept.at.turns.at(i);
    if (start < at_.position && (at_.turns.count() == 0 || at_.turns.at(at_.turns.count() - 1) < start)) {
      at_.turns.mark(start);
    }
  }
}

// Tokens of the next step.
uint32_t Session::stepAt(uint64_t end, const RecoverOptions& options, const Kept& kept,
                         bool* exact) const {
  const uint32_t marks = ids_.marks(at_.position);
  const bool known = (marks & TokenIds::kBegins) != 0;
  *exact = known && !options.in_batches;
  if (*exact && (marks & TokenIds::kBatch) == 0) {
    return 1;
  }
  const uint32_t most =
      static_cast<uint32_t>(std::min<uint64_t>(end - at_.position, context_.plan->chunk_tokens));
  uint32_t n = 1;
  for (; n < most; ++n) {
    const uint32_t begins = ids_.marks(at_.position + n) & TokenIds::kBegins;
    const bool turns = (ids_.marks(at_.position + n - 1) & TokenIds::kTurn) != 0;
    if (turns || kept.hasCheckpoint(at_.position + n) || (begins != 0 && !options.in_batches)) {
      break;
    }
  }
  return n;
}

// Tokens from at_.position up to `end`, whose ids are held, in the steps that they were read in at first.
Status Session::replay(uint64_t end, bool ends, const RecoverOptions& options, const Kept& kept,
                       Recovered* result) {
  while (at_.position < end) {
    ORIEL_TRY(betweenSteps());
    ORIEL_TRY(recall_ != nullptr ? recallAgain() : Status(kOk));
    bool exact = true;
    const uint32_t n = stepAt(end, options, kept, &exact);
    result->exact = result->exact && recallIsAsThen();
    const bool batch = (ids_.marks(at_.position) & TokenIds::kBatch) != 0;
    WipedArray<int32_t, kMaxChunk> ids;
    for (uint32_t i = 0; i < n; ++i) {
      ids[i] = ids_.at(at_.position + i);
    }
    ORIEL_TRY(readAhead(ids, n));
    const bool last = ends && at_.position + n == end;
    ORIEL_TRY(readChunk(ids, n, last, n == 1 && (!batch || !exact)));
    result->read += n;
    result->exact = result->exact && exact;
    const bool knows_turns = (ids_.marks(at_.position - 1) & TokenIds::kTurn) != 0;
    if (knows_turns || !exact) {
      learnTurns(kept);
    }
    if (states_ != nullptr && kept.hasCheckpoint(at_.position)) {
      keepState(kept.states.latestStart() == at_.position);
    }
    tellRead(n);
  }
  return kOk;
}

// The tokens whose ids are held. Where earlier ones are gone, those that are there see nothing before them but the sinks.
Status Session::readHeldAgain(const Kept& kept, const RecoverOptions& options, Recovered* result) {
  const uint64_t end = kept.at.position;
  const HeldTokens held =
      oriel_internal::heldTokens(cache_, end, kept.at.stored, kept.at.carried.held_from);
  const uint64_t origin = prefixTokens();
  const uint64_t base = states_ != nullptr ? kept.at.base : 0;
  uint64_t sinks = std::max(origin, held.sinks);
  uint64_t from = std::max(std::max(base, held.first), sinks);
  for (uint64_t t = from; t < end; ++t) {
    from = ids_.at(t) == TokenIds::kUnknown ? t + 1 : from;
  }
  for (uint64_t t = origin; t < sinks; ++t) {
    sinks = ids_.at(t) == TokenIds::kUnknown ? origin : sinks;
  }
  standAtBeginning(kept.at.first_position);
  at_.sinks = kept.at.sinks;
  layOut();
  const bool all = from == sinks;
  if (base != 0 && from == base) {
    at_.base = base;
  } else if (!all) {
    at_.carried = {from, from, from};
    if (states_ != nullptr) {
      at_.base = from;
    }
    result->dropped = from - sinks;
  }
  const CarriedOver& carried = kept.at.carried;
  const bool was_whole = carried.seen_from == 0 && carried.held_from == 0;
  result->exact = result->dropped == 0 && was_whole;
  expectAgain(sinks - origin + end - from + (kept.at.unfinished >= 0 ? 1 : 0));
  replays_ = true;
  Status status = kOk;
  if (!all) {
    const bool exact = result->exact;  // the step that went past the sinks is cut in two
    status = replay(sinks, from == end, options, kept, result);
    result->exact = exact;
    at_.position = status.ok() ? from : at_.position;
    learnTurns(kept);
  }
  if (status.ok()) {
    status = replay(end, true, options, kept, result);
  }
  replays_ = false;
  return status;
}

// ---- From the transcript -------------------------------------------------------------------------

// Text of a reply that is no message of the app's: its tokens came one by one. Those from `end` on are held.
Status Session::streamReply(const JsonText& text, const Transcript::Entry& entry, uint64_t end,
                            const RecoverOptions& options, bool* fits) {
  const GenerateSettings settings;
  Scratch tools(*context_.allocator, 1);
  ReplyPlace place;
  ORIEL_TRY(openChatReply(settings, &tools, &place));
  const uint64_t count = entry.end - entry.text;
  // Of a transcript that came from a snapshot the counts are whatever it says. A token has a byte, but for a few before.
  constexpr uint64_t kTokensBefore = 16;
  *fits = at_.position == entry.text && count <= text.bytes + kTokensBefore;
  if (!*fits) {
    return kOk;
  }
  Workspace workspace = makeWorkspace();
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
  // Nothing, where the first token that is held is one of the reply's opening.
  const uint64_t wanted = std::max(entry.text, std::min(entry.end, end)) - entry.text;
  const uint32_t most = options.in_batches ? context_.plan->chunk_tokens : 1;
  for (uint64_t done = 0; done < wanted;) {
    ORIEL_TRY(betweenSteps());
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(most, wanted - done));
    const int32_t* const ids = room.as<int32_t>() + done;
    ORIEL_TRY(readAhead(ids, n));
    ORIEL_TRY(readChunk(ids, n, false, n == 1));
    done += n;
    tellRead(n);
  }
  endChatReply();
  return kOk;
}

Status Session::streamMessage(const JsonValue& message, const Transcript::Entry& entry,
                              uint64_t end, const RecoverOptions& options, bool* fits) {
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
  return *fits ? streamReply(content->text(), entry, end, options, fits) : Status(kOk);
}

// As they came, through the window as it was then, until `end` tokens are there. *fits: each has the tokens that it had.
Status Session::streamMessages(const Transcript& transcript, uint64_t end,
                               const RecoverOptions& options, bool* fits) {
  *fits = true;
  Transcript::Entry entry;
  const char* json = nullptr;
  for (uint64_t at = ownMessages(); at_.position < end && *fits;) {
    *fits =
        transcript.next(&at, &entry, &json) && entry.begin == at_.position && entry.end != UINT64_MAX;
    if (!*fits) {
      return kOk;
    }
    Scratch scratch(*context_.allocator, templateScratchBytes(entry.bytes));
    const JsonValue* message = nullptr;
    ORIEL_TRY(parseJson(json, entry.bytes, "the transcript", stopCheck(), context_.log, &scratch,
                        &message));
    ORIEL_TRY(streamMessage(*message, entry, end, options, fits));
  }
  return kOk;
}

// Messages up to the first token whose id is held, then those. *fits: the transcript leads there.
Status Session::readStreamAgain(const Kept& kept, uint64_t first_held,
                                const RecoverOptions& options, Recovered* result, bool* fits) {
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
    known[i] = {ids_.at(tokenAt(i)), ids_.marks(tokenAt(i))};
  }
  standAtBeginning(kept.at.first_position);
  const uint64_t origin = at_.position;
  // What came with a snapshot may be no messages at all: then what is held is read.
  const Log log = context_.log;
  LenientLog lenient(log);
  context_.log = lenient.log();
  transcript_.hold(true);  // it was said before
  Status status = streamMessages(transcript_, first_held, options, fits);
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
    *fits = *fits && known[i].id != TokenIds::kUnknown && (!read || ids_.at(t) == known[i].id);
  }
  for (uint64_t i = 0; i < count; ++i) {
    ids_.set(tokenAt(i), known[i].id, known[i].marks);
  }
  ORIEL_TRY(status);
  if (!*fits) {
    return kOk;
  }
  result->read = at_.position - origin;
  result->exact = false;  // of tokens that are not held nobody knows
  replays_ = true;
  const Status rest = replay(end, true, options, kept, result);
  replays_ = false;
  return rest;
}

// ---- All of it -----------------------------------------------------------------------------------

Status Session::readAllAgain(const Kept& kept, const RecoverOptions& options, Recovered* result) {
  const uint64_t end = kept.at.position;
  const uint64_t unfinished = kept.at.unfinished >= 0 ? 1 : 0;
  const CarriedOver& carried = kept.at.carried;
  if (states_ != nullptr && kept.at.stale && idsKnown(kept.at.base, end)) {
    // What is seen was to be read again anyway.
    const uint64_t sinks = std::min<uint64_t>(kept.at.sinks, end);
    result->read = sinks - std::min(sinks, prefixTokens()) + end - kept.at.base;
    expectAgain(result->read);
    return readAnew(end);
  }
  const HeldTokens held =
      oriel_internal::heldTokens(cache_, end, kept.at.stored, carried.held_from);
  const bool forgets = states_ != nullptr && (kept.at.base != 0 || context_.forgets_evicted);
  const bool streams = held.first > held.sinks && !forgets && carried.seen_from == 0 &&
                       carried.held_from == 0 && kept.at.sinks == ownSinks() && transcript_.keeps() &&
                       transcript_.dropped() == 0;
  bool fits = false;
  if (streams) {
    expectAgain(end - prefixTokens() + unfinished);
    ORIEL_TRY(readStreamAgain(kept, held.first, options, result, &fits));
  }
  if (streams && !fits) {
    *result = Recovered();
    putBack(kept);
    const DeviceTurn turn = this->turn();
    ORIEL_TRY(turn.status());
    ORIEL_TRY(forgetMemory());
    ORIEL_TRY(prefixTokens() != 0 ? statesOfPrefix() : Status(kOk));
  }
  return fits ? Status(kOk) : readHeldAgain(kept, options, result);
}

uint64_t Session::heldCount() const {
  return oriel_internal::heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from).count();
}

// The device was lost, or memory, while the transcript was read: that is done from its beginning.
Status Session::recoverUnread(Recovered* result) {
  ORIEL_TRY(readTranscript(UINT64_MAX - 1));
  result->held = heldCount();
  result->read = at_.position - prefixTokens();
  result->exact = false;
  return kOk;
}

Status Session::recover(const RecoverOptions& options, Recovered* result) {
  *result = Recovered();
  if (transcript_.hasUnread()) {
    return recoverUnread(result);
  }
  ahead_ = has_top_ = false;
  const Kept kept = keep();
  {
    const DeviceTurn turn = this->turn();
    ORIEL_TRY(turn.status());
    ORIEL_TRY(forgetMemory());
    ORIEL_TRY(prefixTokens() != 0 ? statesOfPrefix() : Status(kOk));
  }
  recovers_ = true;
  Status status = readAllAgain(kept, options, result);
  const Conversation read = at_;
  const StateSlots slots = states_ != nullptr ? *states_ : StateSlots();
  const bool has_top = has_top_;
  replays_ = false;
  putBack(kept);
  if (status.ok()) {
    if (states_ != nullptr) {
      *states_ = slots;
    }
    at_.base = read.base;
    at_.stale = read.stale;
    at_.carried = read.carried;
    at_.has_logits = read.has_logits != 0 && at_.position != prefixTokens() ? 1 : 0;
    has_top_ = has_top && at_.has_logits != 0;
    status = readUnfinished(options, kept.at.unfinished, result);
  }
  recovers_ = false;
  if (!status.ok()) {
    putBack(kept);
    return status;
  }
  result->held = heldCount();
  result->exact = result->exact && options.prefix_exact;
  return kOk;
}

// The token that was shown last: its step is done now.
Status Session::readUnfinished(const RecoverOptions&, int32_t id, Recovered* result) {
  if (id < 0) {
    return kOk;
  }
  ORIEL_TRY(betweenSteps());
  ORIEL_TRY(readAhead(&id, 1));
  ORIEL_TRY(readChunk(&id, 1, true, true));
  at_.unfinished = -1;
  ++result->read;
  tellRead(1);
  return kOk;
}

Status Session::recoverPrefix(Prefix* prefix, bool* exact) {
  const Kept kept = keep();
  const uint32_t tokens = prefix->tokens;
  *exact = true;
  for (uint32_t t = 0; t < tokens; ++t) {
    if (TokenIds::idOf(prefix->ids[t]) == TokenIds::kUnknown) {
      return context_.log.fail(ORIEL_ERROR_STATE,
                               "the prefix came from a snapshot without ids and cannot be read "
                               "again: load the model again, and restore that snapshot");
    }
  }
  Kept of_prefix;
  of_prefix.at.turns = prefix->at.turns;
  prefix->tokens = 0;  // as long as it is not there
  standAtBeginning(prefix->at.first_position);
  expectAgain(tokens);
  recovers_ = replays_ = true;
  Recovered result;
  Status status = replay(tokens, true, RecoverOptions(), of_prefix, &result);
  *exact = result.exact;
  recovers_ = replays_ = false;
  if (status.ok()) {
    status = copyToPrefix();
  }
  prefix->tokens = tokens;
  putBack(kept);
  ORIEL_TRY(status);
  return forgetMemory();
}

}  // namespace oriel_internal
