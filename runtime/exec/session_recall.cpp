// The part of a session that keeps what leaves the window in a file, and brings back what a message asks for.
#include "exec/session_recall.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec/session.h"

namespace oriel_internal {
namespace {

constexpr uint64_t blockOf(uint64_t token) { return token / kRecallBlock * kRecallBlock; }

}  // namespace

RecallMemory takeRecall(const RecallSettings& settings, const ModelDesc& model, Arena* arena) {
  RecallMemory memory;
  if (settings.tokens != 0) {
    uint64_t floats = 0;
    uint64_t heads = 0;
    for (uint32_t i = 0; i < model.n_kinds; ++i) {
      floats = std::max<uint64_t>(floats, model.kinds[i].queryCols());
      heads = std::max<uint64_t>(heads, model.kinds[i].n_heads);
    }
    memory.queries_bytes = sizeof(float) * kRecallQueries * floats;
    memory.sums_bytes = sizeof(double) * 2 * kRecallQueries * heads;
    memory.queries = arena->take<float>(memory.queries_bytes / sizeof(float));
    memory.sums = arena->take<double>(memory.sums_bytes / sizeof(double));
    memory.object = arena->take<uint8_t>(sizeof(SessionRecall));
    memory.room = arena->take<uint8_t>(kRecallRoomBytes);
    memory.index.init(settings.words, arena);
  }
  return memory;
}

Session::~Session() {
  if (recall_ != nullptr) {
    recall_->~SessionRecall();
  }
}

// A file of its own, private, which goes with the session.
Status Session::openRecall(const Log& log) {
  if (recall_ == nullptr) {
    return kOk;
  }
  const uint64_t token_bytes =
      RecallFile::tokenBytes(*context_.model, cache_, context_.plan->formats);
  const uint64_t tokens = std::min(RecallFile::tokensIn(recall_->settings.file_bytes, token_bytes),
                                   recall_->settings.words);
  recall_->layer = findRecallLayer(*context_.plan, *context_.model, cache_);
  RecallKeys keys;
  if (recall_->layer.any) {
    keys = {recall_->layer.layer, recall_->layer.n_kv_heads, recall_->layer.head_dim};
  }
  return recall_->file.open(recall_->settings.folder, blockOf(tokens), token_bytes, keys, log);
}

// For a session that was there before: it goes on without a file where there can be none.
Status Session::reopenRecall() {
  const Status status = openRecall(LenientLog(context_.log).log());
  return status.ok() ? status : giveUpRecall(status);
}

void Session::clearRecall() {
  at_.recalled = 0;
  layOut();
  if (recall_ != nullptr) {
    recall_->clear();
    recall_->first = recall_->saved = blockOf(cache_.sinks);
  }
}

RecallPlace Session::recallPlace() const {
  RecallPlace place;
  place.plan = context_.plan;
  place.model = context_.model;
  place.cache = cache_;
  place.phases = phases_;
  place.first_position = at_.first_position;
  place.executor = context_.executor;
  place.room = recall_->room;
  return place;
}

// A file that fails is the end of recalling, not of the conversation. A device that fails is the call's failure.
Status Session::giveUpRecall(Status status) {
  if (status.code() != ORIEL_ERROR_IO) {
    return status;
  }
  recall_->stopKeeping(context_.log);
  return showRecalled({});
}

// The first token behind the sinks that all layers hold of which tokens are kept.
uint64_t Session::heldByAll() const {
  const HeldTokens held =
      oriel_internal::heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from);
  uint64_t first = held.first > held.sinks ? held.first : 0;
  for (uint32_t view = 0; view < context_.model->n_views; ++view) {
    const CacheShape shape = viewShape(context_.model->views[view], cache_);
    if (context_.model->views[view].kind == ViewKind::kSession &&
        shape.window >= kLeastRecallWindow && at_.stored > shape.ring + shape.sinks) {
      first = std::max(first, at_.stored - shape.ring);
    }
  }
  return first;
}

// Blocks that are complete, as long as all layers hold them. Between two steps.
Status Session::saveBlocks() {
  if (recall_ == nullptr || recovers_ || recall_->embeds || !recall_->file.isOpen() ||
      blockOf(at_.position) <= recall_->saved) {
    return kOk;
  }
  SessionRecall& recall = *recall_;
  if (const uint64_t held = heldByAll();
      held > recall.saved) {  // what was before came from elsewhere
    recall.first = recall.saved = blockOf(held + kRecallBlock - 1);
    recall.reader.restart();
  }
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  for (; recall.saved + kRecallBlock <= at_.position; recall.saved += kRecallBlock) {
    WipedArray<int32_t, kRecallBlock> ids;
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      ids[i] = ids_.at(recall.saved + i);
    }
    uint32_t says = 0;
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      const uint64_t t = recall.saved + i;
      says |= saysSomething(ids[i], t != 0 ? ids_.at(t - 1) : -1) ? 1u << i : 0;
    }
    LenientLog lenient(context_.log);  // the conversation goes on
    const Status status = recall.file.save(recall.saved, ids, says, recallPlace(), lenient.log());
    if (!status.ok()) {
      return giveUpRecall(status);
    }
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      addWords(recall.saved + i, ids[i]);
    }
  }
  return kOk;
}

// Frames of turns are control tokens and the role behind one; they and punctuation draw attention whatever is asked.
bool Session::saysSomething(int32_t id, int32_t before) const {
  const Tokenizer& tokenizer = *context_.tokenizer;
  if (id < 0 || tokenizer.isControl(id) || (before >= 0 && tokenizer.isControl(before))) {
    return false;
  }
  const Tokenizer::Piece text = tokenizer.piece(id, false);
  return hasWord(text.data, text.bytes);
}

// A control token ends a word.
void Session::addWords(uint64_t token, int32_t id) {
  SessionRecall& recall = *recall_;
  const auto add = [&](uint32_t word) { recall.index.addWord(token, word); };
  const Tokenizer::Piece text = id < 0 ? Tokenizer::Piece() : context_.tokenizer->piece(id, false);
  if (text.bytes != 0) {
    recall.reader.push(text.data, text.bytes, add);
  } else if (const uint32_t word = recall.reader.finish(); word != WordReader::kNone) {
    add(word);
  }
}

// Words of a user's message that was read behind `begin` tokens: what they ask for comes back before the reply.
void Session::askFor(const char* text, size_t bytes, uint64_t begin, const SamplerState& before) {
  if (recall_ == nullptr || recovers_) {
    return;
  }
  SessionRecall& recall = *recall_;
  if (recall.query.count() == 0 || transcript_.last(at_.position).role() == Role::kAssistant) {
    recall.query = {};
    recall.query_begin = begin;
    recall.before = before;
  }
  WordReader reader;
  reader.push(text, bytes, [&](uint32_t word) { recall.query.add(word); });
  if (const uint32_t last = reader.finish(); last != WordReader::kNone) {
    recall.query.add(last);
  }
}

// Weighs what left the window. Whether there is anything.
bool Session::weighKept() {
  SessionRecall& recall = *recall_;
  // What is seen needs not come back.
  const uint64_t first_seen = at_.position + 1 - viewOf(at_.position).count;
  const uint64_t begin = std::max(recall.kept(), uint64_t{cache_.sinks});
  recall.index.weigh(recall.query, begin, std::min(first_seen, recall.saved), recallRoom());
  return recall.index.passageCount() != 0;
}

// The attention that queries give to each passage, of all that they give to what left the window.
Status Session::weighByAttention() {
  SessionRecall& recall = *recall_;
  if (recall.n_queries == 0) {
    return kOk;
  }
  RecallIndex& index = recall.index;
  const RecallScorer scorer(recall.layer, recall.queries, recall.n_queries);
  double* const all = recall.sums;
  double* const own = recall.sums + scorer.sums();
  uint8_t* const keys = static_cast<uint8_t*>(recall.room);
  const uint64_t most = kRecallRoomBytes / recall.file.keys().bytes();
  LenientLog lenient(context_.log);
  const auto addUp = [&](uint32_t passage, double* sums) -> Status {
    const TokenSpan& span = index.passage(passage);
    for (uint64_t t = span.begin; t < span.end;) {
      ORIEL_TRY(checkCancelled());
      const uint64_t end = std::min({span.end, blockOf(t) + kRecallBlock, t + most});
      ORIEL_TRY(recall.file.readKeys(t, static_cast<uint32_t>(end - t), lenient.log(), keys));
      for (uint64_t i = 0; i < end - t; ++i) {
        scorer.add(keys + i * recall.file.keys().bytes(), sums);
      }
      t = end;
    }
    return kOk;
  };
  std::fill_n(all, scorer.sums(), 0.0);
  for (uint32_t i = 0; i < index.passageCount(); ++i) {
    ORIEL_TRY(addUp(i, all));
  }
  for (uint32_t i = 0; i < index.passageCount(); ++i) {
    std::fill_n(own, scorer.sums(), 0.0);
    ORIEL_TRY(addUp(i, own));
    double share = 0;
    for (uint32_t k = 0; k < scorer.sums(); ++k) {
      share += all[k] > 0 ? own[k] / all[k] : 0;
    }
    // The root, lest one turn that draws much attention whatever is asked outweighs all words.
    share = std::sqrt(share / static_cast<double>(index.passage(i).size()));
    index.setAttention(i, static_cast<float>(share));
  }
  return kOk;
}

// The best of what was weighed, and beside it what stood there before as far as there is room: it may still be spoken of.
RecallSpans Session::chooseKept() const {
  const SessionRecall& recall = *recall_;
  RecallSpans found = recall.index.best(recallRoom());
  if (found.count == 0) {
    return recall.shown;
  }
  const uint64_t kept = recall.kept();
  const uint32_t n_found = found.count;
  for (uint32_t i = 0; i < recall.shown.count && found.count < RecallSpans::kMost; ++i) {
    const TokenSpan& old = recall.shown.spans[i];
    bool fits = old.begin >= kept && old.size() <= recallRoom() - found.tokens();
    for (uint32_t k = 0; k < n_found; ++k) {
      fits = fits && (old.end <= found.spans[k].begin || old.begin >= found.spans[k].end);
    }
    if (fits) {
      found.spans[found.count++] = old;
    }
  }
  std::sort(found.spans, found.spans + found.count,
            [](const TokenSpan& a, const TokenSpan& b) { return a.begin < b.begin; });
  return found;
}

// Before the opening of a reply is read: whether its queries are of use.
Status Session::beginRecall() {
  if (recall_ == nullptr) {
    return kOk;
  }
  if (recovers_) {
    return recallAgain();
  }
  ORIEL_TRY(saveBlocks());
  recall_->n_queries = 0;
  recall_->captures = recall_->file.isOpen() && weighKept();
  return kOk;
}

// Of the last tokens of a chunk of `count`, in the turn of the step that left their queries.
Status Session::captureQueries(uint32_t count) {
  SessionRecall& recall = *recall_;
  const RecallLayer& layer = recall.layer;
  const uint64_t d = layer.head_dim;
  recall.n_queries = layer.any ? std::min(count, kRecallQueries) : 0;
  // As many heads at a time as the upload ring takes.
  const uint64_t most =
      layer.any ? context_.plan->upload.size_bytes / 2 / (2 * sizeof(float) * d) : 1;
  for (uint32_t i = 0; i < recall.n_queries; ++i) {
    const uint64_t row = uint64_t{count - recall.n_queries + i} * layer.stride;
    float* const to = recall.queries + i * layer.queryFloats();
    for (uint64_t first = 0; first < layer.n_heads; first += most) {
      const uint64_t heads = std::min(most, layer.n_heads - first);
      const void* read = nullptr;
      ORIEL_TRY(context_.executor->read(layer.queries, sizeof(float) * (row + 2 * first * d),
                                        2 * sizeof(float) * heads * d, &read));
      for (uint64_t h = 0; h < heads; ++h) {
        std::memcpy(to + (first + h) * d, static_cast<const float*>(read) + (2 * h + 1) * d,
                    static_cast<size_t>(sizeof(float) * d));
      }
    }
  }
  return kOk;
}

// No reply was opened.
Status Session::endRecall(Status opened) {
  if (recall_ != nullptr) {
    recall_->captures = false;
  }
  return opened;
}

// The opening of a reply was read, behind `before`. Where something comes back it is read again, so that the reply
// begins with what it sees then.
Status Session::recallForReply(const Conversation& before) {
  if (recall_ == nullptr || !recall_->captures) {
    return kOk;
  }
  SessionRecall& recall = *recall_;
  recall.captures = false;
  if (const Status status = weighByAttention(); !status.ok()) {
    return giveUpRecall(status);
  }
  const RecallSpans found = chooseKept();
  return found == recall.shown ? Status(kOk) : readWith(found, before.position, before.sampler);
}

// With the messages since the latest reply, where going back to them is possible: what they ask for is then seen while they
// are read, too. In the same steps, but for batches that ended with another message's.
Status Session::readWith(const RecallSpans& found, uint64_t opening, const SamplerState& before) {
  SessionRecall& recall = *recall_;
  const uint64_t end = at_.position;
  bool whole = recall.query_begin < opening && recall.query_begin >= transcript_.lastReplyEnd() &&
               end - recall.query_begin <= kMaxChunk && holdsWhatIsSeenAt(recall.query_begin);
  for (uint32_t i = 0; i < found.count; ++i) {  // the beginning of a message may have left, too
    whole = whole && found.spans[i].end <= recall.query_begin;
  }
  const uint64_t from = whole ? recall.query_begin : opening;
  if (from == end || end - from > kMaxChunk) {
    return kOk;
  }
  if (!holdsWhatIsSeenAt(
          from)) {  // steps are so small that the opening took the place of what it saw
    ORIEL_TRY(showRecalled(found));
    recall.history.push({end, recall.shown, false});
    return kOk;
  }
  WipedArray<int32_t, kMaxChunk> ids;
  uint32_t marks[kMaxChunk];
  for (uint64_t i = 0; i < end - from; ++i) {
    ids[i] = ids_.at(from + i);
    marks[i] = ids_.marks(from + i) & TokenIds::kTurn;
  }
  ORIEL_TRY(checkCancelled());
  const WipedCopy<SamplerState> at_end = at_.sampler;
  const uint32_t prompt_tokens = at_.prompt_tokens;
  at_.position = from;
  at_.has_logits = false;
  recall.first = recall.kept();  // blocks of what is read again are written again
  recall.saved = std::max(std::min(recall.saved, blockOf(from)), recall.first);
  recall.index.truncate(recall.saved, end);
  recall.reader.restart();
  at_.sampler = whole ? recall.before : before;
  at_.prompt_tokens -= std::min(at_.prompt_tokens, static_cast<uint32_t>(end - from));
  expect(end - from);
  finishes_ = true;  // half a message must not stay behind a cancel
  Status status = showRecalled(found);
  while (at_.position < end && status.ok()) {
    const uint64_t at = at_.position - from;
    uint64_t next = at + 1;
    while (from + next < end && from + next != opening && marks[next - 1] == 0) {
      ++next;
    }
    status = readIds(ids + at, static_cast<size_t>(next - at), from + next == end);
    if (status.ok() && marks[next - 1] != 0) {
      ids_.addMark(at_.position - 1, TokenIds::kTurn);
    }
  }
  finishes_ = false;
  if (!status.ok()) {
    // What was said before stays said. Who called goes back to where the reply was opened; the next one reads it again.
    at_.position = end;
    at_.sampler = at_end;
    at_.prompt_tokens = prompt_tokens;
    const Status back = status.lost() ? status : recallAgain();
    return back.lost() ? back : status;
  }
  recall.history.push({from, recall.shown, false});
  return checkCancelled();
}

// The texts of a message in the OpenAI form.
void Session::askForMessage(const JsonValue& message, uint64_t begin, const SamplerState& before) {
  const JsonValue* const content = message.find("content");
  if (content != nullptr && content->isString()) {
    askFor(content->text().data, content->text().bytes, begin, before);
  }
  for (const JsonValue* part = content != nullptr ? content->first() : nullptr; part != nullptr;
       part = part->next()) {
    const JsonValue* const text = part->find("text");
    if (text != nullptr && text->isString()) {
      askFor(text->text().data, text->text().bytes, begin, before);
    }
  }
}

// Slots behind the sinks that a session has.
uint32_t Session::recallRoom() const {
  return recall_ != nullptr ? std::min(recall_->settings.tokens, cache_.sinkRoom() - cache_.sinks)
                            : 0;
}

Status Session::showRecalled(const RecallSpans& spans) {
  at_.recalled = 0;
  recall_->shown = {};
  Status status = kOk;
  uint32_t count = 0;
  if (spans.count != 0) {
    waitForDevice();
    const DeviceTurn turn = this->turn();
    ORIEL_TRY(turn.status());
    blank_ = false;
    LenientLog lenient(context_.log);
    for (uint32_t i = 0; i < spans.count && status.ok(); ++i) {
      WipedArray<int32_t, kMaxRecallTokens> ids;
      const TokenSpan& span = spans.spans[i];
      status = recall_->file.bring(span, cache_.sinks + count, recallPlace(), lenient.log(), ids);
      for (uint64_t k = 0; k < span.size() && status.ok(); ++k) {
        ids_.setRecalled(count++, ids[k]);
      }
    }
  }
  if (status.ok()) {
    at_.recalled = count;
    recall_->shown = spans;
  }
  layOut();
  return status.ok() ? status : giveUpRecall(status);
}

// What stood there when the session had so many tokens as it has now, behind going back or while its memory is built again.
// Nothing, where the file has some of it no more.
Status Session::recallAgain() {
  const RecallHistory::Entry* const entry = recall_->history.at(at_.position);
  const RecallSpans then = entry != nullptr ? entry->spans : RecallSpans();
  const bool any = then.count != 0 || (entry != nullptr && entry->unknown);
  if (then == recall_->shown && any == (at_.recalled != 0)) {
    return kOk;
  }
  const bool held = recall_->file.isOpen() && recall_->keeps(then);
  return showRecalled(held ? then : RecallSpans());
}

// Whether what stands behind the sinks is what stood there when the session had so many tokens as it has now.
bool Session::recallIsAsThen() const {
  if (recall_ == nullptr) {
    return true;
  }
  const RecallHistory::Entry* const entry = recall_->history.at(at_.position);
  return recall_->history.knows(at_.position) &&
         (entry == nullptr || (!entry->unknown && entry->spans == recall_->shown));
}

// The session went back.
Status Session::rewindRecall() { return forgetRecalled() ? recallAgain() : Status(kOk); }

// What was saved behind the place is not the conversation any more. Whether something else may have stood behind the sinks.
bool Session::forgetRecalled() {
  if (recall_ == nullptr) {
    return false;
  }
  SessionRecall& recall = *recall_;
  recall.first = recall.kept();  // what the file's ring has written over does not come back
  recall.saved = std::max(std::min(recall.saved, blockOf(at_.position)), blockOf(cache_.sinks));
  recall.first = std::min(recall.first, recall.saved);
  recall.index.truncate(recall.saved, at_.position);
  recall.reader.restart();
  if (at_.position <= recall.query_begin) {
    recall.query = {};
  }
  return recall.history.truncate(at_.position);
}

// After a snapshot was restored: the origin of what stands behind the sinks is unknown.
void Session::restoreRecall() {
  at_.recalled = std::min(at_.recalled, cache_.sinkRoom() - cache_.sinks);
  layOut();
  if (recall_ != nullptr) {
    recall_->clear();
    recall_->first = recall_->saved = blockOf(cache_.sinks);
    if (at_.recalled != 0) {
      RecallHistory::Entry entry;
      entry.unknown = true;
      recall_->history.push(entry);
    }
    for (uint32_t i = 0; i < at_.turns.count(); ++i) {
      recall_->index.markTurn(at_.turns.at(i));
    }
  }
}

// As takeOver(), but for the device, of which the memory is copied already. A copy whose file has no room goes on with what
// stands behind its sinks.
void Session::takeOverRecall(const Session& other) {
  for (uint32_t i = 0; i < at_.recalled; ++i) {
    ids_.setRecalled(i, other.ids_.recalled(i));
  }
  if (recall_ == nullptr || other.recall_ == nullptr) {
    return;
  }
  SessionRecall& recall = *recall_;
  const SessionRecall& from = *other.recall_;
  recall.index.copy(from.index);
  recall.reader = from.reader;
  recall.history = from.history;
  recall.query = from.query;
  recall.query_begin = from.query_begin;
  recall.before = from.before;
  recall.shown = from.shown;
  recall.first = from.first;
  recall.saved = from.saved;
  if (!recall.file.isOpen() || !from.file.isOpen()) {
    recall.file.close();
    return;
  }
  if (!recall.file
           .copy(from.file, {from.kept(), from.saved}, recall.room, LenientLog(context_.log).log())
           .ok()) {
    recall.stopKeeping(context_.log);
  }
}

// By words alone: nobody knows which tokens ask.
Status Session::recall(const char* text, size_t bytes) {
  if (recall_ == nullptr) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "nothing is kept of what left the window: load the model with "
                             "\"retrieval\"");
  }
  ORIEL_TRY(saveBlocks());
  recall_->query = {};
  askFor(text, bytes, at_.position, at_.sampler);
  if (!recall_->file.isOpen() || !weighKept()) {
    return kOk;
  }
  const RecallSpans found = chooseKept();
  if (!(found == recall_->shown)) {
    ORIEL_TRY(showRecalled(found));
    recall_->history.push({at_.position, recall_->shown, false});
  }
  return kOk;
}

uint64_t Session::keptTokens() const {
  if (recall_ == nullptr || !recall_->file.isOpen()) {
    return 0;
  }
  return std::min(recall_->saved - std::min(recall_->first, recall_->saved),
                  recall_->file.tokens());
}

}  // namespace oriel_internal
