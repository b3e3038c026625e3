// The part of a session that rebuilds its conversation from another source, or cuts it.
#include <algorithm>
#include <cstdio>

#include "base/hash.h"
#include "exec/session.h"
#include "exec/snapshot.h"

namespace oriel_internal {

Status Session::rebuild(const RebuildSource& source, Rebuilt* result) {
  using From = RebuildSource::From;
  const uint64_t position = source.position;
  const bool either = source.from == From::kEither && !canGoBack(position) &&
                      position <= at_.position && position >= context_.prefixTokens();
  Rebuilt built;
  Status status = kOk;
  switch (either ? From::kTranscript : source.from) {
    case From::kMemory:
    case From::kEither:
      status = goBack(position);
      break;
    case From::kTranscript:
      status = readTranscript(position);
      break;
    case From::kMessages:
      status = readMessages(static_cast<const char*>(source.data), source.bytes);
      break;
    case From::kSnapshot:
      status = restore(source, &built);
      break;
    case From::kLost:
      status = recover(source, &built);
      break;
    case From::kPrefix:
      status = recoverPrefix(source.prefix, &built);
      break;
  }
  if (status.ok() && result != nullptr) {
    *result = built;
  }
  return status;
}

// ---- From its own memory -------------------------------------------------------------------------

Status Session::goBack(uint64_t position) {
  if (position > at_.position) {
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT, "cannot go to token %llu, there are %llu so far: give an earlier one",
        static_cast<unsigned long long>(position), static_cast<unsigned long long>(at_.position));
  }
  if (position < context_.prefixTokens()) {
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT,
        "cannot go back to token %llu, the first %llu are a prefix that sessions share: go back to "
        "token %llu at most, or clear the prefix",
        static_cast<unsigned long long>(position),
        static_cast<unsigned long long>(context_.prefixTokens()),
        static_cast<unsigned long long>(context_.prefixTokens()));
  }
  const bool over_states = memory_.states != nullptr;
  if (over_states && position == at_.position) {
    return kOk;
  }
  const WayBack way = memory_.wayBack(position);
  if (way.how == WayBack::How::kNone) {
    return memory_.refuse(position);
  }
  if (over_states) {
    return goBackOverStates(position, way);
  }
  if (position == at_.position) {
    return kOk;
  }
  truncate(position);
  return recall_.forgetRecalled() ? recall_.again() : Status(kOk);
}

// Makes the state after `tokens`, found by a WayBack, the latest. `lost`: only on the host, because the device is lost.
Status Session::standAtState(uint64_t tokens, bool lost) {
  const bool is_prefix = tokens != 0 && tokens == context_.prefixTokens();
  if (is_prefix && !lost) {
    call_.waitForDevice();
    ORIEL_TRY(memory_.copyPrefix(/*to_prefix=*/false));
  }
  if (is_prefix) {
    memory_.states->restart(tokens);
  } else {
    memory_.states->goBack(tokens);
  }
  at_.stale = 0;
  return kOk;
}

// Updates only the host's records, because the device is lost. For positions that need no tokens to be read again.
void Session::goBackOnHost(uint64_t position) {
  if (memory_.states != nullptr) {
    (void)standAtState(position, /*lost=*/true);
  }
  truncate(position);
  (void)recall_.forgetRecalled();
}

// Ends the conversation after `position` tokens in the host's records.
void Session::truncate(uint64_t position) {
  Transcript::Entry cut;
  if (transcript_.truncate(position, &cut)) {
    cutReply(cut, position);
  }
  at_.truncate(position);
  if (memory_.pictures != nullptr) {
    memory_.pictures->truncate(position);
  }
  if (position <= at_.sinks) {  // no token was evicted
    at_.recalled = at_.recalled_shared = 0;
    recall_.forgetShown(/*history=*/true);
  }
  if (position < at_.carried.least) {  // before all carried tokens
    at_.carried = {};
    at_.sinks = ownSinks();
  }
  if (position == 0 && !recall_.active()) {
    at_.sinks = ownSinks();
  }
  memory_.layOut();
  if (position == 0 || memory_.onlySinksSee(position)) {
    at_.stored = position;  // no ring slot counts as written
  }
}

// After a failure restores the conversation, without half a message. Leaves it changed if going back would read tokens
// again, or if a message longer than the ring's slack overwrote the previous tokens.
Status Session::rollBack(Status done, const Conversation& before) {
  if (done.ok() || at_.position <= before.position ||
      memory_.wayBack(before.position).how != WayBack::How::kAtOnce) {
    return done;
  }
  if (done.lost()) {
    goBackOnHost(before.position);
  } else if (const Status back = goBack(before.position); !back.ok()) {
    return back.lost() ? back : done;
  }
  ConversationCopy then = before;
  then.stored = at_.stored;
  then.recalled = at_.recalled;
  then.has_logits = 0;
  at_ = then;
  return done;
}

Status Session::goBackOverStates(uint64_t position, const WayBack& way) {
  if (way.how != WayBack::How::kAtOnce) {
    ORIEL_TRY(call_.check());  // before the first change
  }
  const double prompt_ms = at_.prompt_ms;
  if (way.how == WayBack::How::kAnew) {
    truncate(position);
    const Status status = feeder_.readAnew(position);
    at_.prompt_ms = prompt_ms;
    at_.has_logits = 0;
    return status;
  }
  ORIEL_TRY(standAtState(way.from, /*lost=*/false));
  at_.position = way.from;
  at_.has_logits = 0;
  call_.expect(position - way.from);
  const Status status = feeder_.readAgain(position, false);
  at_.prompt_ms = prompt_ms;
  truncate(at_.position);
  return status;
}

// Cuts a reply whose end was removed: keeps its text up to `position`, as far as its tokens are known.
void Session::cutReply(const Transcript::Entry& reply, uint64_t position) {
  transcript_.open(reply.begin, reply.text);
  const bool known = memory_.knows(reply.text, position);
  if (!known) {
    transcript_.cut();
  }
  replier_.writeAgain(reply.text, known ? position : reply.text);
  transcript_.close(position, -1);
}

// ---- With other turns after the sinks -------------------------------------------------------------

// The opening of a reply was read after `before`. If turns come back, reads it again, so that the reply begins with the
// same visible tokens.
Status Session::showAskedTurns(const Conversation& before) {
  RecallSpans found;
  bool changed = false;
  ORIEL_TRY(recall_.find(&found, &changed));
  return changed ? readWith(found, before.position, before.sampler) : Status(kOk);
}

// Includes the messages since the latest reply, if going back to them is possible. Then they also see the retrieved
// turns. Uses the same steps, except for batches shared with another message.
Status Session::readWith(const RecallSpans& found, uint64_t opening, const SamplerState& before) {
  const RecallStand& recall = recall_.state();
  const uint64_t end = at_.position;
  bool whole = recall.query_begin < opening && recall.query_begin >= transcript_.lastReplyEnd() &&
               end - recall.query_begin <= kMaxChunk && memory_.knows(recall.query_begin, end) &&
               memory_.wayBack(recall.query_begin).holds;
  for (uint32_t i = 0; i < found.count; ++i) {  // the beginning of a message may be evicted, too
    whole = whole && found.spans[i].end <= recall.query_begin;
  }
  const uint64_t from = whole ? recall.query_begin : opening;
  if (from == end || end - from > kMaxChunk) {
    return kOk;
  }
  if (!memory_.wayBack(from).holds) {
    // The steps are so small that the opening overwrote tokens that it saw.
    return recall_.showFromHere(found);
  }
  WipedArray<int32_t, kMaxChunk> ids;
  uint32_t marks[kMaxChunk];
  for (uint64_t i = 0; i < end - from; ++i) {
    ids[i] = memory_.ids.at(from + i);
    marks[i] = memory_.ids.marks(from + i) & TokenIds::kTurn;
  }
  ORIEL_TRY(call_.check());
  const WipedCopy<SamplerState> at_end = at_.sampler;
  const uint32_t prompt_tokens = at_.prompt_tokens;
  at_.position = from;
  at_.has_logits = 0;
  recall_.willReadAgain(end);
  at_.sampler = whole ? recall.before : before;
  at_.prompt_tokens -= std::min(at_.prompt_tokens, static_cast<uint32_t>(end - from));
  call_.expect(end - from);
  call_.finishes = true;  // a cancel must not leave half a message
  Status status = recall_.show(found);
  while (at_.position < end && status.ok()) {
    const uint64_t at = at_.position - from;
    uint64_t next = at + 1;
    while (from + next < end && from + next != opening && marks[next - 1] == 0) {
      ++next;
    }
    status = feeder_.feed(ids + at, static_cast<size_t>(next - at), from + next == end);
    if (status.ok() && marks[next - 1] != 0) {
      memory_.ids.addMark(at_.position - 1, TokenIds::kTurn);
    }
  }
  call_.finishes = false;
  if (!status.ok()) {
    // Earlier replies stay. The caller goes back to the opening of the reply; the next call reads it again.
    at_.position = end;
    at_.sampler = at_end;
    at_.prompt_tokens = prompt_tokens;
    const Status back = status.lost() ? status : recall_.again();
    return back.lost() ? back : status;
  }
  recall_.noteShown(from);
  return call_.check();
}

// ---- From messages -------------------------------------------------------------------------------

Status Session::parseMessages(const char* json, size_t bytes, Scratch* scratch,
                              const JsonValue** messages) {
  ORIEL_TRY(parseJson(json, bytes, "the messages", call_.stop(), context_.log, scratch, messages));
  return (*messages)->isArray()
             ? Status(kOk)
             : context_.log.fail(
                   ORIEL_ERROR_ARGUMENT,
                   "the messages are no list: give what was exported, [{\"role\": ...}]");
}

Status Session::readMessages(const char* json, size_t bytes) {
  if (transcript_.hasUnread()) {
    return context_.log.fail(
        ORIEL_ERROR_STATE,
        "the transcript has messages that are still to be read: a conversation "
        "is read into an empty session, reset it first");
  }
  if (!isFresh()) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "the session holds %llu tokens: a conversation is read into an empty "
                             "one, reset it first",
                             static_cast<unsigned long long>(at_.position));
  }
  Scratch scratch(*context_.allocator, templateScratchBytes(bytes));
  const JsonValue* messages = nullptr;
  ORIEL_TRY(parseMessages(json, bytes, &scratch, &messages));
  return addMessages(*messages, bytes);
}

// Starts the session again and reads messages of another transcript. If that fails, restores the session's own
// transcript as unread.
Status Session::readStored(const uint8_t* entries, uint64_t bytes, uint64_t position) {
  JsonRoom text;
  Transcript::write(entries, bytes, position, true, text.sink());
  Workspace workspace(nullptr, 0, context_.allocator);
  const BorrowedBytes room(&workspace, text.bytes);
  if (room.data() == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes: free some",
                             text.bytes);
  }
  text = {room.as<char>(), 0};
  Transcript::write(entries, bytes, position, true, text.sink());
  Scratch scratch(*context_.allocator, templateScratchBytes(text.bytes));
  const JsonValue* messages = nullptr;
  ORIEL_TRY(parseMessages(room.as<char>(), text.bytes, &scratch, &messages));
  const uint64_t own_bytes = transcript_.bytes();
  const uint32_t own_dropped = transcript_.dropped();
  Workspace own_workspace(nullptr, 0, context_.allocator);
  const BorrowedBytes own(&own_workspace, own_bytes);
  if (own.data() == nullptr && own_bytes != 0) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for %llu bytes: free some",
                             static_cast<unsigned long long>(own_bytes));
  }
  std::copy_n(transcript_.data(), own_bytes, own.as<uint8_t>());
  Status status = reset(Begin::kAgain);
  status = status.ok() ? addMessages(*messages, text.bytes) : status;
  if (!status.ok() && own_bytes != 0) {
    if (const Status back = reset(Begin::kAgain); back.lost()) {
      status = back;
    }
    transcript_.load(own.as<uint8_t>(), own_bytes, own_dropped);
    transcript_.setUnread(ownMessages(), context_.prefixTokens());
  }
  return status;
}

// Refuses invalid messages, and reports lack of memory, before any change.
Status Session::checkStored(uint64_t position) const {
  Transcript::Entry entry;
  const char* json = nullptr;
  for (uint64_t at = ownMessages();
       transcript_.next(&at, &entry, &json) && entry.end <= position;) {
    Scratch scratch(*context_.allocator, templateScratchBytes(entry.bytes));
    const JsonValue* message = nullptr;
    ORIEL_TRY(parseJson(json, entry.bytes, "the transcript", context_.log, &scratch, &message));
  }
  return kOk;
}

// On the host, at the beginning. Removes messages that end after `position` and marks the others as unread.
void Session::standUnread(uint64_t position) {
  Transcript::Entry cut;
  (void)transcript_.truncate(position, &cut);
  transcript_.setUnread(ownMessages(), context_.prefixTokens());
  transcript_.hold(true);
  forgetOnHost();
  transcript_.hold(false);
}

Status Session::readTranscript(uint64_t position) {
  if (!transcript_.keeps()) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "the session keeps no transcript to read again: load the model with "
                             "room for one (\"transcript\")");
  }
  ORIEL_TRY(call_.check());
  ORIEL_TRY(checkStored(position));
  ORIEL_TRY(recall_.isOpen() ? Status(kOk) : recall_.open(false));  // starts again in the same file
  ORIEL_TRY(forgetDevice());
  standUnread(position);
  ORIEL_TRY(beginBehindPrefix());
  return readUnread();
}

// Reads all of them as one text. If one fails, it and the later ones stay unread.
Status Session::readUnread() {
  const uint64_t first = ownMessages();
  Transcript::Entry entry;
  const char* json = nullptr;
  uint64_t count = 0;
  for (uint64_t at = first; transcript_.next(&at, &entry, &json);) {
    ++count;
  }
  const uint64_t bytes = transcript_.bytes();
  Scratch scratch(*context_.allocator, templateScratchBytes(bytes));
  JsonBuilder make(&scratch);
  JsonMade* const list = make.list();
  uint64_t* const records = scratch.take<uint64_t>(count + 1);
  if (list == nullptr || records == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a conversation: free some");
  }
  count = 0;
  for (uint64_t at = first; transcript_.next(&at, &entry, &json);) {
    records[count++] = at - entry.bytes - sizeof(Transcript::Entry);
    const JsonValue* message = nullptr;
    ORIEL_TRY(parseJson(json, entry.bytes, "the transcript", context_.log, &scratch, &message));
    make.append(list, make.copyOf(*message));
  }
  if (scratch.failed()) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a conversation: free some");
  }
  transcript_.hold(true);
  const Status status = addMessages(*list, bytes, records);
  transcript_.hold(false);
  for (uint64_t at = first, record = first; transcript_.next(&at, &entry, &json); record = at) {
    if (entry.is(Transcript::kUnread) || entry.end > at_.position) {
      transcript_.setUnread(record, at_.position);
      break;
    }
  }
  return status;
}

// The part of a session that saves and restores snapshots.

namespace {

// Distinguishes templates from the app, because a text that continues in one template may not in another. The model's
// hash already covers its own template.
void nameChat(const SessionContext& context, SnapshotOwner* owner) {
  const ChatTemplate& chat = context.chat;
  if (!context.own_template && chat.row == nullptr) {
    std::snprintf(owner->chat, sizeof(owner->chat), "jinja-%016llx",
                  static_cast<unsigned long long>(hashBytes(chat.jinja, chat.jinja_bytes)));
  } else {
    std::snprintf(owner->chat, sizeof(owner->chat), "%s", chat.name());
  }
}

// A model with adapters counts as another model.
void nameModel(const SessionContext& context, const AdapterUse* use, SnapshotOwner* owner) {
  const size_t room = sizeof(owner->model_name);
  size_t used = static_cast<size_t>(
      std::max(std::snprintf(owner->model_name, room, "%s", context.model_name), 0));
  for (uint32_t i = 0; use != nullptr && i < context.model->adapters->count; ++i) {
    const Adapter& adapter = context.model->adapters->list[i];
    if (use->scale[i] == 0) {
      continue;
    }
    owner->model_hash = hashBytes(&adapter.hash, sizeof(adapter.hash), owner->model_hash);
    owner->model_hash = hashBytes(&use->scale[i], sizeof(float), owner->model_hash);
    if (used < room) {
      used += static_cast<size_t>(
          std::max(std::snprintf(owner->model_name + used, room - used, " + %s:%.4g", adapter.name,
                                 static_cast<double>(use->scale[i])),
                   0));
    }
  }
}

}  // namespace

SnapshotOwner Session::snapshotOwner() const {
  SnapshotOwner owner;
  owner.plan = context_.plan;
  owner.model = context_.model;
  owner.cache = memory_.cache();
  owner.model_hash = context_.model_hash;
  nameModel(context_, memory_.adapters, &owner);
  nameChat(context_, &owner);
  owner.whole_turns = memory_.whole_turns;
  owner.allocator = context_.allocator;
  owner.recall_tokens = context_.recall.tokens;
  if (context_.prefixTokens() != 0) {
    owner.prefix_ids = context_.prefix->ids;
    owner.prefix_tokens = context_.prefix->tokens;
    owner.prefix_pictures = memory_.pictures != nullptr ? memory_.pictures->sharedHash() : 0;
  }
  return owner;
}

Status Session::save(void* out, uint64_t* bytes, int64_t saved_at) const {
  const SnapshotOwner owner = snapshotOwner();
  const SavedParts parts = {&at_, &memory_.ids, &transcript_, memory_.pictures};
  *bytes = snapshotBytes(owner, parts);
  if (out == nullptr) {
    return kOk;
  }
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  const LiveSlots live = {memory_.states != nullptr ? memory_.states->current() : 0,
                          stepper_.logitsRow(), context_.index};
  return writeSnapshot(owner, parts, live, saved_at, context_.executor, out);
}

// The use of a snapshot from another model or in another chat format.
Status Session::readFrom(const Snapshot& snapshot, Rebuilt* result) {
  const uint64_t dropped = snapshot.held().count();
  ORIEL_TRY(readStored(snapshot.transcript, snapshot.header.transcript_bytes, UINT64_MAX - 1));
  result->how = Rebuilt::How::kRead;
  result->dropped = dropped;
  result->held = result->read = at_.position;
  return kOk;
}

Status Session::restore(const RebuildSource& options, Rebuilt* result) {
  const Log& log = options.log;
  Snapshot snapshot;
  ORIEL_TRY(openSnapshot(options.data, options.bytes, log, &snapshot));
  SnapshotOwner owner = snapshotOwner();
  char refusal[512];
  const SnapshotFit fit = fitOf(owner, snapshot, refusal, sizeof(refusal));
  const bool reads = fit == SnapshotFit::kNot && options.reads && !options.exact;
  if (reads && snapshot.header.messages != 0) {
    return readFrom(snapshot, result);
  }
  if (fit == SnapshotFit::kNot || (fit == SnapshotFit::kCarries && options.exact)) {
    const char* const more = reads ? "; it has no transcript to read"
                             : fit == SnapshotFit::kNot && snapshot.header.messages != 0
                                 ? ", or let its transcript be read again"
                                 : "";
    return log.fail(ORIEL_ERROR_FORMAT, "%s%s", refusal, more);
  }
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  RestoredParts parts;
  memory_.blank = false;
  ORIEL_TRY(restoreSnapshot(owner, snapshot, fit, log, context_.executor, &parts, &memory_.ids,
                            &transcript_, memory_.pictures));
  stand(parts.at);
  recall_.restore();
  feeder_.standAdapters();
  if (fit == SnapshotFit::kCarries && memory_.states != nullptr && at_.stale) {
    // All tokens that must still be read again must be held.
    at_.base = std::max(at_.base, at_.position + 1 - memory_.viewOf(at_.position).count);
  }
  result->how = fit == SnapshotFit::kSame ? Rebuilt::How::kExactly : Rebuilt::How::kCarried;
  result->rounded = parts.rounded;
  result->held = parts.held;
  result->dropped = parts.dropped;
  return kOk;
}

}  // namespace oriel_internal
