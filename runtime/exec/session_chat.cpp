// The part of a session that reads messages. It renders all messages with the template and reads the part of the text
// that the session does not hold yet (chat/turn.h).
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "exec/picture_store.h"
#include "exec/session.h"

namespace oriel_internal {
namespace {

/// Limit for the JSON of earlier messages in the template's input, besides the latest turn.
constexpr uint64_t kHistoryBytes = 32 * 1024;
/// Limit for tokens after the last message that may be the beginning of the next message.
constexpr uint64_t kMostCommon = 256;

JsonText textOr(const JsonValue& object, const char* key, const char* otherwise) {
  const JsonValue* const member = object.find(key);
  return member != nullptr && member->isString() ? member->text() : JsonText(otherwise);
}

// A stand-in for a reply of the model with tool calls. The held text has the calls in the model's words. Each result
// that follows stands for one call.
JsonMade* replyWithCalls(JsonBuilder* make, const JsonValue* const* results, size_t count) {
  JsonMade* const reply = make->message("assistant", "");
  JsonMade* const calls = make->list();
  for (size_t i = 0; i < count && roleOf(*results[i]) == Role::kTool; ++i) {
    make->append(calls, standInCall(make, textOr(*results[i], "tool_call_id", kStandInCall),
                                    textOr(*results[i], "name", kStandIn)));
  }
  make->set(reply, "tool_calls", calls);
  return reply;
}

// A whole number below `count`; otherwise `count`.
uint32_t indexOf(const JsonValue* number, uint32_t count) {
  uint32_t index = 0;
  if (number == nullptr || !number->isInteger()) {
    return count;
  }
  for (uint32_t i = 0; i < number->text().bytes && index < count; ++i) {
    const char c = number->text().data[i];
    index = c >= '0' && c <= '9' ? 10 * index + static_cast<uint32_t>(c - '0') : count;
  }
  return std::min(index, count);
}

// 16 hexadecimal digits; 0: other text.
uint64_t pictureHash(const JsonText& text) {
  uint64_t hash = 0;
  bool right = text.bytes == 16;
  for (uint32_t i = 0; right && i < text.bytes; ++i) {
    const char c = text.data[i];
    right = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    hash = hash << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return right ? hash : 0;
}

// Places for pictures in bytes [from, to) of a text.
uint32_t placesIn(const NewText& text, size_t from, size_t to, PictureWords words) {
  const char* const token = rowOf(words).token;
  const size_t bytes = std::strlen(token);
  uint32_t count = 0;
  for (const char* at = text.text + from; bytes != 0; at += bytes, ++count) {
    at = std::search(at, text.text + to, token, token + bytes);
    if (at == text.text + to) {
      break;
    }
    const size_t place = static_cast<size_t>(at - text.text);
    for (size_t i = 0; i < text.n_literals; ++i) {
      const bool is_text = place >= text.literals[i].begin && place < text.literals[i].end;
      count -= is_text ? 1 : 0;
    }
  }
  return count;
}

// The last of the first `count` messages.
bool isSystem(const JsonValue* list, uint32_t count) {
  const JsonValue* one = count != 0 ? list->first() : nullptr;
  for (uint32_t i = 1; i < count; ++i) {
    one = one->next();
  }
  return one != nullptr && roleOf(*one) == Role::kSystem;
}

// Renders `count` messages without the first message. False: out of memory.
bool behindFirst(const NewText& text, uint32_t count, Scratch* scratch, NewText* out) {
  const size_t begin = text.messages[0].end;
  TextRange* const literals = scratch->take<TextRange>(text.n_literals + 1);
  NewMessage* const messages = scratch->take<NewMessage>(uint64_t{count} + 1);
  if (literals == nullptr || messages == nullptr) {
    return false;
  }
  *out = {text.text + begin, text.bytes - begin, literals, 0, messages, false};
  for (size_t i = 0; i < text.n_literals; ++i) {
    const TextRange& range = text.literals[i];
    if (range.end > begin) {
      literals[out->n_literals++] = {std::max(range.begin, begin) - begin, range.end - begin};
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const NewMessage& one = text.messages[i + 1];
    messages[i] = {std::max(one.body, begin) - begin, one.end - begin};
  }
  return true;
}

}  // namespace

// SPM adds a space after a control token.
bool Session::continuesAt(uint64_t position) const {
  if (position == 0) {
    return false;
  }
  const int32_t before = memory_.knows(position - 1, position) ? memory_.ids.at(position - 1) : -1;
  return before >= 0 && !context_.tokenizer->isControl(before);
}

// For the first `bytes` of a text.
EncodeOptions Session::encodeAt(const NewText& text, uint64_t base, size_t bytes) const {
  EncodeOptions options;
  options.special = true;
  options.bos = base == 0;
  options.continues = continuesAt(base);
  options.literal = text.literals;
  options.n_literal = text.n_literals;
  while (options.n_literal != 0 && options.literal[options.n_literal - 1].end > bytes) {
    --options.n_literal;
  }
  if (base == 0 && text.begins_bos && !context_.tokenizer->addBos()) {
    options.first_id = context_.tokenizer->bosId();
  }
  return options;
}

// The messages whose tokens the session holds: the system message, and whole turns from the first visible one or the
// first within kHistoryBytes. Then the new messages.
Status Session::conversation(const JsonValue* added, Scratch* scratch, Messages* out) const {
  const uint64_t first_seen =
      at_.position == 0 ? 0 : at_.position - memory_.viewOf(at_.position - 1).count;
  const uint64_t bytes = transcript_.bytes();
  uint64_t most = added != nullptr ? added->count() : 0;
  uint64_t from = 0;
  bool is_cut = transcript_.dropped() != 0;
  bool begun = false;  // after the first message that is not a system message
  Transcript::Entry entry;
  Role before = Role::kNone;
  const char* json = nullptr;
  for (uint64_t at = 0, record = 0; transcript_.next(&at, &entry, &json); record = at) {
    const bool begins = entry.role() == Role::kUser && before != Role::kUser;
    if (begins && record != 0 && (entry.begin <= first_seen || bytes - from > kHistoryBytes) &&
        entry.end <= at_.position && !entry.is(Transcript::kUnread)) {
      is_cut = is_cut || from != record;
      from = record;
    }
    before = entry.role();
    ++most;
  }
  const JsonValue** const all = scratch->take<const JsonValue*>(most + 2);  // and a question
  uint8_t* const own = scratch->take<uint8_t>(most + 2);
  JsonBuilder make(scratch);
  JsonMade* const list = make.list();
  if (all == nullptr || own == nullptr || list == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a conversation: free some");
  }
  size_t n = 0;
  for (uint64_t at = 0, record = 0; transcript_.next(&at, &entry, &json); record = at) {
    const bool held = !entry.is(Transcript::kUnread) && entry.end <= at_.position;
    if (!held || (record < from && !entry.is(Transcript::kSystem))) {
      continue;
    }
    // Some templates want a question first.
    if (is_cut && !begun && entry.role() != Role::kSystem && entry.role() != Role::kUser) {
      all[n++] = make.message("user", kStandIn);
    }
    begun = begun || entry.role() != Role::kSystem;
    own[n] = entry.is(Transcript::kReply | Transcript::kCut) ? 1 : 0;
    out->closed = entry.is(Transcript::kClosed);
    const bool is_id =
        entry.stop >= 0 && static_cast<uint32_t>(entry.stop) < context_.model->n_vocab;
    const Tokenizer::Piece stop =
        is_id ? context_.tokenizer->piece(entry.stop, true) : Tokenizer::Piece();
    out->stop = {stop.data, stop.bytes};
    const Status parsed =
        parseJson(json, entry.bytes, "the transcript", {}, Log(), scratch, &all[n]);
    if (parsed.code() == ORIEL_ERROR_OUT_OF_MEMORY) {
      return context_.log.fail(parsed.code(), "no memory for a conversation: free some");
    }
    // the transcript came with a snapshot
    if (!parsed.ok() || !checkMessage(*all[n], context_.settings.pictures, Log()).ok()) {
      all[n] = make.message(nameOf(entry.role()), kStandIn);
    }
    ++n;
  }
  out->held = static_cast<uint32_t>(n);
  for (const JsonValue* one = added != nullptr ? added->first() : nullptr; one != nullptr;
       one = one->next()) {
    all[n++] = one;
  }
  for (size_t i = 0; i < n; ++i) {
    const bool called = own[i] != 0 && roleOf(*all[i]) == Role::kAssistant && i + 1 < n &&
                        roleOf(*all[i + 1]) == Role::kTool;
    out->replied = out->replied || (called && i + 1 == out->held);
    make.append(list,
                called ? replyWithCalls(&make, all + i + 1, n - i - 1) : make.copyOf(*all[i]));
  }
  out->list = list;
  return scratch->failed() ? context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                               "no memory for a conversation: free some")
                           : kOk;
}

// *same: the tokens from `begin` on, with known ids, are the first tokens of the text; *more: the text has more tokens.
Status Session::compareHeld(const NewText& text, size_t bytes, uint64_t begin, Workspace* workspace,
                            bool* same, bool* more) const {
  const uint64_t count = at_.position - begin;
  const BorrowedBytes room(workspace, count * sizeof(int32_t));
  int32_t* const ids = room.as<int32_t>();
  if (ids == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message: free some");
  }
  size_t found = 0;
  const Status status =
      context_.tokenizer->encode(text.text, bytes, encodeAt(text, begin, bytes), workspace,
                                 context_.log, ids, static_cast<size_t>(count), &found);
  if (!status.ok() && status.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return status;
  }
  *more = found > count;
  *same = found >= count;
  for (uint64_t i = 0; i < count && *same; ++i) {
    *same = ids[i] == memory_.ids.at(begin + i);
  }
  return kOk;
}

// Expects the pictures of new messages. All of their rows must be held.
Status Session::expectPictures(const JsonValue& added) {
  PictureStore* const pictures = memory_.pictures;
  if (pictures == nullptr) {
    return kOk;
  }
  pictures->expectNone();
  const PictureTokens words(*context_.tokenizer, context_.settings.pictures);
  uint64_t tokens = 0;
  const Log& log = context_.log;
  const auto expect = [&](const JsonValue& part) -> Status {
    const JsonValue* const id = part.find("id");
    const uint64_t hash = id != nullptr && id->isString() ? pictureHash(id->text()) : 0;
    const HeldPicture* const picture = hash != 0 ? pictures->find(hash) : nullptr;
    if (picture == nullptr) {
      return log.fail(ORIEL_ERROR_CONTEXT,
                      "the session no longer holds a picture of a message: give it again");
    }
    if (pictures->isFull()) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "the messages have more than %u pictures: give fewer",
                      PictureStore::kMostPending);
    }
    uint64_t count = 0;
    ORIEL_TRY(words.count(*picture, log, &count));
    tokens += count;
    pictures->expect(*picture);
    return kOk;
  };
  for (const JsonValue* one = added.first(); one != nullptr; one = one->next()) {
    ORIEL_TRY(forEachPicture(*one, expect));
  }
  const uint64_t most = uint64_t{memory_.cache().sinks} + memory_.cache().window;
  return tokens <= most
             ? kOk
             : log.fail(ORIEL_ERROR_CONTEXT,
                        "the pictures take %llu tokens, the window holds %llu: give fewer or "
                        "smaller ones, or load the model with a longer window",
                        static_cast<unsigned long long>(tokens),
                        static_cast<unsigned long long>(most));
}

int32_t Session::placeholder() const {
  return memory_.pictures != nullptr
             ? PictureTokens(*context_.tokenizer, context_.settings.pictures).placeholder()
             : -1;
}

// Tokens of the next expected picture, without its placeholder.
uint64_t Session::pictureTokens(uint32_t index) const {
  uint64_t count = 1;
  if (memory_.pictures != nullptr && index < memory_.pictures->pending()) {
    (void)PictureTokens(*context_.tokenizer, context_.settings.pictures)
        .count(memory_.pictures->pending(index), Log(), &count);
  }
  return count - 1;
}

// The number of tokens before the new text: up to the end of the latest message if the later tokens are the beginning
// of the new text. They stay, because going back to a turn ends after the text that closes the previous turn.
Status Session::findBase(const NewText& text, Workspace* workspace, uint64_t* base) const {
  const Transcript::Entry last = transcript_.last(at_.position);
  const uint64_t common = at_.position - last.end;
  *base = at_.position;
  if (last.role() == Role::kNone || common == 0 || common > kMostCommon ||
      !memory_.knows(last.end, at_.position)) {
    return kOk;
  }
  bool more = false;
  bool same = false;
  ORIEL_TRY(compareHeld(text, text.bytes, last.end, workspace, &same, &more));
  *base = same && more ? last.end : at_.position;
  return kOk;
}

/// New messages during reading.
class Session::ReadMessages final : public FedMessages {
 public:
  explicit ReadMessages(Session* of) : session(*of) {}
  void end() override;

  Session& session;
  const JsonValue* next = nullptr;    ///< the current message
  const uint64_t* records = nullptr;  ///< a record per message in the transcript; null: none yet
  uint64_t begin = 0;                 ///< tokens before the current message
  ConversationCopy before;            ///< the conversation at that point
};

/// Finds the tokens at which messages and their turns begin and end, while a text is encoded.
class Session::BorderFinder final : public TokenSink {
 public:
  BorderFinder(const Session* session, const NewText& text, ReadMessages* messages)
      : session_(session),
        text_(text),
        messages_(*messages),
        placeholder_(session->placeholder()) {}

  Status take(const int32_t* ids, size_t count, bool) override {
    for (size_t i = 0; i < count; ++i) {
      settle();
      ++tokens_;
      tokens_ += ids[i] == placeholder_ ? session_->pictureTokens(picture_++) : 0;
      at_ += bytesOf(session_->context_.tokenizer->piece(ids[i], true));
    }
    return kOk;
  }
  bool stops() override { return session_->call_.cancelled(); }
  /// Call after the last token. False: the tokens' texts differ from the text, so no borders were found.
  bool finish() {
    settle();
    return at_ == text_.bytes && next_ + 1 >= 2 * messages_.count;
  }

 private:
  void settle() {
    for (; next_ < 2 * messages_.count; ++next_) {
      const NewMessage& message = text_.messages[next_ / 2];
      const bool is_end = next_ % 2 != 0;
      if ((is_end ? message.end : message.body) > at_) {
        return;
      }
      TokenSpan& span = messages_.tokens[next_ / 2];
      (is_end ? span.end : span.begin) = tokens_;
    }
  }
  // SPM adds a space before words. BOS has no text.
  size_t bytesOf(const Tokenizer::Piece& piece) const {
    const size_t left = text_.bytes - at_;
    const auto fits = [&](size_t from) {
      return piece.bytes - from <= left &&
             std::memcmp(piece.data + from, text_.text + at_, piece.bytes - from) == 0;
    };
    const bool has_space = piece.bytes != 0 && piece.data[0] == ' ';
    return fits(0) ? piece.bytes : has_space && fits(1) ? piece.bytes - 1 : 0;
  }

  const Session* session_;
  const NewText& text_;
  ReadMessages& messages_;
  size_t next_ = 0;
  size_t at_ = 0;
  uint64_t tokens_ = 0;
  const int32_t placeholder_;
  uint32_t picture_ = 0;
};

// Finds the tokens of each message's turn and text, from the first token of the text on.
Status Session::findBorders(const NewText& text, Workspace* workspace,
                            ReadMessages* messages) const {
  const auto count = [&](size_t begin, size_t end, uint64_t* tokens) -> Status {
    size_t n = 0;
    EncodeOptions part = encodeAt(text, messages->base, end);
    if (begin != 0) {
      part = EncodeOptions();
      part.special = part.continues = true;
    }
    const Status status = context_.tokenizer->encode(text.text + begin, end - begin, part,
                                                     workspace, context_.log, nullptr, 0, &n);
    *tokens = n;
    return status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL ? kOk : status;
  };
  if (messages->count > 1) {
    BorderFinder finder(this, text, messages);
    WipedArray<int32_t, kMaxChunk> ids;
    TextParts parts;
    parts.add(text.text, text.bytes);
    const Status status =
        context_.tokenizer->encodeParts(parts, encodeAt(text, messages->base, text.bytes),
                                        workspace, context_.log, ids, kMaxChunk, &finder);
    if (!status.ok() || finder.finish()) {
      return status;
    }
  }
  // Counts part by part. The result may be off by one token if a word continues across parts.
  size_t from = 0;
  uint64_t before = 0;
  uint32_t picture = 0;
  for (uint32_t i = 0; i < 2 * messages->count - (messages->count != 0 ? 1 : 0); ++i) {
    const NewMessage& message = text.messages[i / 2];
    const size_t to = std::max(from, i % 2 == 0 ? message.body : message.end);
    uint64_t tokens = 0;
    ORIEL_TRY(call_.check());
    ORIEL_TRY(count(from, to, &tokens));
    for (uint32_t n = placesIn(text, from, to, context_.settings.pictures); n != 0; --n) {
      tokens += pictureTokens(picture++);
    }
    from = to;
    before += tokens;
    TokenSpan& span = messages->tokens[i / 2];
    (i % 2 == 0 ? span.begin : span.end) = before;
  }
  return kOk;
}

// Records the end of the current message's tokens.
void Session::ReadMessages::end() {
  const uint32_t i = done++;
  const JsonValue& message = *next;
  next = message.next();
  Conversation& at = session.at_;
  const uint64_t position = at.position;
  if (roleOf(message) == Role::kUser) {
    const uint64_t start = std::clamp(base + tokens[i].begin, begin, position);
    at.turns.mark(start);
    session.recall_.markTurn(start);
    session.memory_.ids.addMark(position - 1, TokenIds::kTurn);
    session.recall_.askFor(message, begin, before.sampler);
  }
  if (records != nullptr) {
    session.transcript_.setRead(records[i], begin, position);
  } else {
    session.transcript_.add(message, begin, position);
  }
  begin = position;
  before = at;
  if (done != count) {
    session.memory_.keepState(/*start=*/true);
  }
}

// A list of the latest reply, as a message, and the new messages.
Status Session::withLastReply(const JsonValue& added, Scratch* scratch,
                              const JsonValue** out) const {
  JsonBuilder make(scratch);
  JsonMade* const list = make.list();
  Transcript::Entry entry;
  const char* json = nullptr;
  const JsonValue* reply = nullptr;
  for (uint64_t at = 0; transcript_.next(&at, &entry, &json) && entry.end <= at_.position;) {
    if (entry.end == at_.position) {
      char* const text = scratch->takeText(entry.bytes);  // going back overwrites the transcript
      if (text == nullptr) {
        return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message: free some");
      }
      std::memcpy(text, json, entry.bytes);
      ORIEL_TRY(parseJson(text, entry.bytes, "the transcript", {}, context_.log, scratch, &reply));
    }
  }
  if (reply != nullptr) {
    make.append(list, make.copyOf(*reply));
  }
  for (const JsonValue* one = added.first(); one != nullptr; one = one->next()) {
    make.append(list, make.copyOf(*one));
  }
  *out = list;
  return list != nullptr && !scratch->failed()
             ? kOk
             : context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message: free some");
}

// *done: the latest reply was read again, in the template's words, with the new messages after it.
Status Session::followTemplate(const JsonValue& added, uint64_t bytes, bool* done) {
  const Transcript::Entry reply = transcript_.last(at_.position);
  // Calls and empty replies stay as the model wrote them.
  if (!reply.is(Transcript::kReply) || reply.is(Transcript::kCut) || reply.end != at_.position ||
      reply.begin == at_.position || roleOf(*added.first()) == Role::kTool) {
    return kOk;
  }
  Scratch scratch(*context_.allocator,
                  templateScratchBytes(context_.settings.bytes() + bytes + transcript_.bytes()));
  const JsonValue* list = nullptr;
  ORIEL_TRY(withLastReply(added, &scratch, &list));
  TemplateRun run(context_.settings, call_.stop(), Log(), &scratch);
  ORIEL_TRY(run.read());
  Messages all;
  ORIEL_TRY(conversation(&added, &scratch, &all));
  --all.held;
  all.replied = false;
  NewText text;
  if (!renderNew(&run, context_.learned, all, false, &text).ok() || !canGoBack(reply.begin) ||
      !memory_.knows(reply.begin, at_.position)) {
    return call_.check();  // errors in the messages are reported when they are read
  }
  Workspace workspace(nullptr, 0, context_.allocator);
  bool same = false;
  bool more = false;
  ORIEL_TRY(compareHeld(text, text.messages[0].end, reply.begin, &workspace, &same, &more));
  if (same && !more) {
    // The text after the reply is already rendered. A system message before the reply may move it.
    const bool moves = reply.is(Transcript::kClosed) || isSystem(all.list, all.held);
    NewText rest;
    *done = !moves && behindFirst(text, added.count(), &scratch, &rest);
    return *done ? readRendered(added, nullptr, rest, &scratch) : Status(kOk);
  }
  *done = true;
  ORIEL_TRY(goBack(reply.begin));
  call_.finishes = true;  // a cancel must not lose the reply
  const Status status = readNew(*list, bytes + reply.bytes, nullptr);
  call_.finishes = false;
  if (!status.ok() && at_.position <= reply.begin) {  // the reply is still unread
    transcript_.addUnread(*list->first(), at_.position);
  }
  return status;
}

Status Session::addMessages(const JsonValue& added, uint64_t bytes, const uint64_t* records) {
  if (context_.settings.text.bytes == 0) {
    return context_.log.fail(ORIEL_ERROR_UNSUPPORTED,
                             "the model has no chat template: name one (\"template\")");
  }
  for (const JsonValue* one = added.first(); one != nullptr; one = one->next()) {
    ORIEL_TRY(checkMessage(*one, context_.settings.pictures, context_.log));
  }
  if (added.count() == 0) {
    return kOk;
  }
  bool done = false;
  if (context_.follows_template && !call_.recovers && records == nullptr) {
    ORIEL_TRY(followTemplate(added, bytes, &done));
  }
  return done ? Status(kOk) : readNew(added, bytes, records);
}

// Reads the part of the template's text that the session does not hold. `bytes`: size of the new messages' JSON.
Status Session::readNew(const JsonValue& added, uint64_t bytes, const uint64_t* records) {
  Scratch scratch(*context_.allocator,
                  templateScratchBytes(context_.settings.bytes() + bytes + transcript_.bytes()));
  TemplateRun run(context_.settings, call_.stop(), context_.log, &scratch);
  ORIEL_TRY(run.read());
  Messages all;
  ORIEL_TRY(conversation(&added, &scratch, &all));
  NewText text;
  ORIEL_TRY(renderNew(&run, context_.learned, all, false, &text));
  return readRendered(added, records, text, &scratch);
}

Status Session::readRendered(const JsonValue& added, const uint64_t* records, const NewText& text,
                             Scratch* scratch) {
  ReadMessages messages(this);
  messages.next = added.first();
  messages.count = added.count();
  messages.records = records;
  messages.tokens = scratch->take<TokenSpan>(messages.count);
  if (messages.tokens == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for %u messages: free some",
                             messages.count);
  }
  ORIEL_TRY(expectPictures(added));
  Workspace workspace = feeder_.workspace();
  ORIEL_TRY(findBase(text, &workspace, &messages.base));
  ORIEL_TRY(findBorders(text, &workspace, &messages));
  messages.begin = messages.base;
  memory_.keepState(/*start=*/true);
  messages.before = at_;
  const Status done = readTurns(text, &messages, &workspace);
  if (memory_.pictures != nullptr) {
    memory_.pictures->expectNone();
  }
  return rollBack(done, messages.before);
}

Status Session::readTurns(const NewText& text, ReadMessages* messages, Workspace* workspace) {
  TextParts parts;
  parts.add(text.text, text.bytes);
  ORIEL_TRY(
      feeder_.feedText(parts, encodeAt(text, messages->base, text.bytes), workspace, messages));
  while (messages->done != messages->count) {  // a message without tokens
    messages->end();
  }
  return kOk;
}

Status Session::appendMessages(const char* role, const char* text, size_t bytes,
                               PictureSource* source) {
  if (role == nullptr) {
    return appendJson(text, bytes, source);
  }
  ORIEL_TRY(checkUtf8("message", text, bytes));
  Scratch scratch(*context_.allocator, kTemplateBytes);
  JsonBuilder make(&scratch);
  JsonMade* const list = make.list();
  make.append(list, make.message({role, std::strlen(role)}, {text, bytes}));
  if (list == nullptr || scratch.failed()) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message: free some");
  }
  ORIEL_TRY(addMessages(*list, bytes));
  warnOfRole(context_.chat, role, std::strlen(role), 0, context_.log);
  return kOk;
}

// Reads the picture of a part {"type": "image", "picture": N}, unless its rows are held. *part becomes
// {"type": "image", "id": ...}. Rows from `first` on must stay.
Status Session::readPicture(const JsonValue& given, PictureSource* source, uint32_t first,
                            Scratch* scratch, JsonMade** part) {
  const Log& log = context_.log;
  PictureStore& pictures = *memory_.pictures;
  const uint32_t count = source != nullptr ? source->count() : 0;
  const uint32_t index = indexOf(given.find("picture"), count);
  if (index >= count) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a part of type \"image\" names none of the %u pictures of the call: write "
                    "{\"type\": \"image\", \"picture\": 0}",
                    count);
  }
  HeldPicture picture;
  ORIEL_TRY(source->layOut(index, log, &picture));
  if (pictures.find(picture.hash) == nullptr) {
    float* const rows = pictures.room(picture.rows, pictures.next() - first);
    if (rows == nullptr) {
      return log.fail(ORIEL_ERROR_CONTEXT,
                      "the pictures take more than the %u rows that the session holds: give fewer "
                      "or smaller ones, or load the model with more (\"image_tokens\")",
                      pictures.capacity());
    }
    call_.waitForDevice();
    const DeviceTurn turn = context_.turn();
    ORIEL_TRY(turn.status());
    ORIEL_TRY(source->encode(index, log, call_.stop(), rows));
    pictures.add(picture);
  }
  constexpr size_t kDigits = 16;
  char* const id = scratch->takeText(kDigits + 1);
  if (id != nullptr) {
    std::snprintf(id, kDigits + 1, "%016llx", static_cast<unsigned long long>(picture.hash));
    JsonBuilder make(scratch);
    *part = make.object();
    make.set(*part, "type", make.text("image"));
    make.set(*part, "id", make.text({id, kDigits}));
  }
  return kOk;
}

// Messages whose pictures have ids. The JSON of a transcript has no others.
Status Session::readPictures(const JsonValue& messages, PictureSource* source, Scratch* scratch,
                             const JsonValue** out) {
  JsonBuilder make(scratch);
  JsonMade* const list = make.list();
  const uint32_t first = memory_.pictures->next();
  for (const JsonValue* one = messages.first(); one != nullptr; one = one->next()) {
    bool has_pixels = false;
    ORIEL_TRY(forEachPicture(*one, [&](const JsonValue& part) {
      has_pixels = has_pixels || part.find("id") == nullptr;
      return kOk;
    }));
    if (!has_pixels) {
      make.append(list, make.copyOf(*one));
      continue;
    }
    JsonMade* const message = make.object();
    for (const JsonValue* member = one->first(); member != nullptr; member = member->next()) {
      if (!member->key().is("content")) {
        make.set(message, member->key(), make.copyOf(*member));
        continue;
      }
      JsonMade* const parts = make.list();
      for (const JsonValue* part = member->first(); part != nullptr; part = part->next()) {
        JsonMade* made = nullptr;
        if (isPicturePart(*part) && part->find("id") == nullptr) {
          ORIEL_TRY(readPicture(*part, source, first, scratch, &made));
        } else {
          made = make.copyOf(*part);
        }
        make.append(parts, made);
      }
      make.set(message, "content", parts);
    }
    make.append(list, message);
  }
  *out = list;
  return list != nullptr && !scratch->failed()
             ? kOk
             : context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message: free some");
}

Status Session::appendJson(const char* json, size_t bytes, PictureSource* source) {
  Scratch scratch(*context_.allocator, templateScratchBytes(bytes));
  const JsonValue* value = nullptr;
  ORIEL_TRY(parseJson(json, bytes, "the messages", call_.stop(), context_.log, &scratch, &value));
  JsonBuilder make(&scratch);
  const bool is_list = value->isArray();
  if (!is_list) {
    value = make.listOf(*value);
  }
  if (value == nullptr || scratch.failed()) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message: free some");
  }
  if (memory_.pictures != nullptr) {
    ORIEL_TRY(readPictures(*value, source, &scratch, &value));
  }
  ORIEL_TRY(addMessages(*value, bytes));
  size_t number = 0;
  for (const JsonValue* one = value->first(); one != nullptr; one = one->next()) {
    const JsonText& role = one->find("role")->text();
    warnOfRole(context_.chat, role.data, role.bytes, is_list ? ++number : 0, context_.log);
  }
  return kOk;
}

Status Session::openReply(const GenerateSettings& settings, Scratch* tools, ReplyPlace* reply) {
  if (context_.settings.text.bytes == 0 || at_.position == 0 ||
      transcript_.last(at_.position).is(Transcript::kReply)) {
    return context_.log.fail(ORIEL_ERROR_STATE, "there is no message to answer: add one first");
  }
  // Only a reader of the reply's parts needs the tools. They stay valid while it reads.
  const bool wants_tools = settings.on_part != nullptr && context_.settings.tools.bytes != 0;
  ORIEL_TRY(wants_tools ? readTools(context_.settings.tools, call_.stop(), context_.log, tools,
                                    &reply->tools)
                        : kOk);
  ORIEL_TRY(feeder_.forgetEvicted());
  memory_.keepState(/*start=*/false);
  reply->before = at_;
  ORIEL_TRY(recall_.begin());
  uint64_t base = at_.position;
  const Status opened = openTurn(reply, &base);
  ORIEL_TRY(opened.ok() ? rollBack(showAskedTurns(reply->before), reply->before)
                        : recall_.end(opened));
  reply->may_think = context_.thinks && reply->thought == nullptr;
  reply->text = at_.position;
  transcript_.open(base, at_.position);
  return kOk;
}

// The text that opens a reply.
Status Session::openTurn(ReplyPlace* reply, uint64_t* base) {
  Scratch scratch(*context_.allocator,
                  templateScratchBytes(context_.settings.bytes() + transcript_.bytes()));
  TemplateRun run(context_.settings, call_.stop(), context_.log, &scratch);
  ORIEL_TRY(run.read());
  Messages all;
  ORIEL_TRY(conversation(nullptr, &scratch, &all));
  NewText text;
  ORIEL_TRY(renderNew(&run, context_.learned, all, true, &text));
  reply->thought = opensThought(text.text, text.bytes, context_.forms);
  Workspace workspace = feeder_.workspace();
  ORIEL_TRY(findStop(&workspace, &reply->stop_id));
  ReadMessages none(this);
  ORIEL_TRY(findBase(text, &workspace, &none.base));
  none.begin = *base = none.base;
  const ConversationCopy before = at_;
  return rollBack(readTurns(text, &none, &workspace), before);
}

// The template's token after an answer ends a reply, regardless of the file's stop tokens.
Status Session::findStop(Workspace* workspace, int32_t* id) const {
  const JsonText end = context_.learned.ends.of(Role::kAssistant);
  int32_t first[1] = {-1};
  size_t count = 0;
  EncodeOptions options;
  options.special = true;
  options.continues = true;
  const Status encoded =
      context_.tokenizer->encode(end.data, end.bytes, options, workspace, Log(), first, 1, &count);
  if (encoded.code() == ORIEL_ERROR_OUT_OF_MEMORY) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                             "no memory to find what ends a reply: free some");
  }
  const bool known = encoded.ok() || encoded.code() == ORIEL_ERROR_BUFFER_TOO_SMALL;
  *id = known && count != 0 && context_.tokenizer->isControl(first[0]) ? first[0] : -1;
  return kOk;
}

Status Session::closeReply(const ReplyCall& call) {
  transcript_.close(at_.position + (at_.unfinished >= 0 ? 1 : 0), replier_.stop());
  const Status& done = call.status;
  const bool has_begun = at_.position != call.place.text || at_.unfinished >= 0;
  return done.lost() || done.code() == ORIEL_ERROR_CANCELLED || has_begun
             ? done
             : rollBack(done, call.place.before);
}

}  // namespace oriel_internal
