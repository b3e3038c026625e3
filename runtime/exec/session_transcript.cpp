// The part of a session that keeps what was said, and builds a conversation again from it.
#include <algorithm>

#include "exec/session.h"

namespace oriel_internal {

// A reply whose end was taken back: its text up to `position`, as far as its tokens are known.
void Session::cutReply(const Transcript::Entry& reply, uint64_t position) {
  transcript_.open(reply.begin, reply.text);
  reply_text_.start(nullptr, 0);
  const bool known = idsKnown(reply.text, position);
  if (!known) {
    transcript_.cut();
  }
  for (uint64_t t = reply.text; known && t < position; ++t) {
    const ReplyText::Shown shown =
        reply_text_.push(context_.tokenizer->piece(ids_.at(t), false), false);
    transcript_.extend(shown.text, shown.bytes);
  }
  const ReplyText::Shown rest = reply_text_.finish(false);
  transcript_.extend(rest.text, rest.bytes);
  transcript_.close(position, -1);
}

Status Session::parseMessages(const char* json, size_t bytes, Scratch* scratch,
                              const JsonValue** messages) {
  ORIEL_TRY(parseJson(json, bytes, "the messages", stopCheck(), context_.log, scratch, messages));
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

// Messages as another transcript has them; the session begins anew. Where they cannot be read its own transcript is still
// to be read.
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
  Status status = reset();
  status = status.ok() ? addMessages(*messages, text.bytes) : status;
  if (!status.ok() && own_bytes != 0) {
    if (const Status back = reset(); back.lost()) {
      status = back;
    }
    transcript_.load(own.as<uint8_t>(), own_bytes, own_dropped);
    transcript_.setUnread(ownMessages(), prefixTokens());
  }
  return status;
}

// ---- The session's own, again --------------------------------------------------------------------

// Beside messages that were dropped, as Transcript says.
bool Session::isTranscribed() const {
  Transcript::Entry entry;
  const char* json = nullptr;
  uint64_t known = prefixTokens();
  for (uint64_t at = ownMessages(); transcript_.next(&at, &entry, &json);) {
    if (entry.is(Transcript::kUnread)) {
      break;  // it begins behind all that is held
    }
    if (entry.begin > known && transcript_.dropped() == 0) {
      return false;
    }
    known = entry.end;
  }
  return known >= at_.position;
}

uint64_t Session::messageBegin(uint64_t start) const {
  Transcript::Entry entry;
  const char* json = nullptr;
  for (uint64_t at = 0; transcript_.next(&at, &entry, &json);) {
    if (entry.begin <= start && start < entry.end) {
      return std::max(entry.begin, prefixTokens());
    }
  }
  return start;
}

// Where the messages begin that are not the prefix's, for Transcript::next(). One of a session that was saved without a
// prefix may begin in it and end behind it: that is its own.
uint64_t Session::ownMessages() const {
  Transcript::Entry entry;
  const char* json = nullptr;
  uint64_t own = 0;
  for (uint64_t at = 0; transcript_.next(&at, &entry, &json) && entry.begin < prefixTokens() &&
                        entry.end <= prefixTokens();) {
    own = at;
  }
  return own;
}

// What is no message, or finds no memory to be read into, is refused while nothing has changed.
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

// On the host, at the beginning. Messages that end behind `position` are gone, the others are to be read.
void Session::standUnread(uint64_t position) {
  Transcript::Entry cut;
  (void)transcript_.truncate(position, &cut);
  transcript_.setUnread(ownMessages(), prefixTokens());
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
  ORIEL_TRY(checkCancelled());
  ORIEL_TRY(checkStored(position));
  if (recall_ != nullptr && !recall_->file.isOpen()) {  // else it begins anew in the same file
    ORIEL_TRY(reopenRecall());
  }
  {
    const DeviceTurn turn = this->turn();
    ORIEL_TRY(turn.status());
    ORIEL_TRY(forgetMemory());  // what a lost device held the host still knows
  }
  standUnread(position);
  ORIEL_TRY(beginBehindPrefix());
  return readUnread();
}

// All of them in one text. From one that fails on they stay unread.
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

}  // namespace oriel_internal
