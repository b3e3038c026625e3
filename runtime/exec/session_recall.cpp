// The part of a session that keeps what leaves the window in a file, and brings back what a message asks for.
#include "exec/session_recall.h"

#include <algorithm>

#include "exec/session.h"

namespace oriel {
namespace {

constexpr uint64_t blockOf(uint64_t token) { return token / kRecallBlock * kRecallBlock; }

}  // namespace

RecallMemory takeRecall(const RecallSettings& settings, Arena* arena) {
  RecallMemory memory;
  if (settings.tokens != 0) {
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
Status Session::openRecall() {
  if (recall_ == nullptr) {
    return kOk;
  }
  const uint64_t token_bytes =
      RecallFile::tokenBytes(*context_.model, cache_, context_.plan->formats);
  const uint64_t tokens = std::min(RecallFile::tokensIn(recall_->settings.file_bytes, token_bytes),
                                   recall_->settings.words);
  return recall_->file.open(recall_->settings.folder, blockOf(tokens), token_bytes, context_.log);
}

void Session::clearRecall() {
  cache_.recalled = 0;
  shapeWindows();
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
  place.first_position = first_position_;
  place.executor = context_.executor;
  place.room = recall_->room;
  return place;
}

// A file that fails is the end of recalling, not of the conversation.
Status Session::giveUpRecall(Status status) {
  if (status.lost()) {
    return status;
  }
  context_.log.write(ORIEL_LOG_WARNING,
                     "turns that leave the window are kept no longer: make room where their file "
                     "is, and begin the conversation anew");
  recall_->file.close();
  return showRecalled({});
}

// The first token behind the sinks that all layers hold of which tokens are kept.
uint64_t Session::heldByAll() const {
  const HeldTokens held = oriel::heldTokens(cache_, position_, stored_, carried_.held_from);
  uint64_t first = held.first > held.sinks ? held.first : 0;
  for (uint32_t view = 0; view < context_.model->n_views; ++view) {
    const CacheShape shape = viewShape(context_.model->views[view], cache_);
    if (context_.model->views[view].kind == ViewKind::kSession &&
        shape.window >= kLeastRecallWindow && stored_ > shape.ring + shape.sinks) {
      first = std::max(first, stored_ - shape.ring);
    }
  }
  return first;
}

// Blocks that are complete, as long as all layers hold them. Between two steps.
Status Session::saveBlocks() {
  if (recall_ == nullptr || recovers_ || !recall_->file.isOpen() ||
      blockOf(position_) <= recall_->saved) {
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
  for (; recall.saved + kRecallBlock <= position_; recall.saved += kRecallBlock) {
    int32_t ids[kRecallBlock];
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      ids[i] = ids_.at(recall.saved + i);
    }
    const Status status = recall.file.save(recall.saved, ids, recallPlace(), context_.log);
    if (!status.ok()) {
      return giveUpRecall(status);
    }
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      addWords(recall.saved + i, ids[i]);
    }
  }
  return kOk;
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

// What the message of a user asks for stands behind the sinks before it is read.
Status Session::recallFor(const char* text, size_t bytes) {
  if (recall_ == nullptr) {
    return kOk;
  }
  if (recovers_) {
    return recallAgain();
  }
  ORIEL_TRY(saveBlocks());
  if (!recall_->file.isOpen()) {
    return kOk;
  }
  RecallQuery query;
  WordReader reader;
  reader.push(text, bytes, [&](uint32_t word) { query.add(word); });
  if (const uint32_t last = reader.finish(); last != WordReader::kNone) {
    query.add(last);
  }
  // What is seen needs not come back.
  const uint64_t first_seen = position_ + 1 - viewOf(position_).count;
  const uint64_t kept = recall_->file.tokens();
  const uint64_t begin = std::max(
      {recall_->first, recall_->saved - std::min(recall_->saved, kept), uint64_t{cache_.sinks}});
  RecallSpans found =
      recall_->index.find(query, begin, std::min(first_seen, recall_->saved), recallRoom());
  if (found.count == 0) {
    return kOk;  // what was asked before may go on
  }
  // So may some of it beside what was found now.
  const uint32_t n_found = found.count;
  for (uint32_t i = 0; i < recall_->shown.count && found.count < RecallSpans::kMost; ++i) {
    const TokenSpan& old = recall_->shown.spans[i];
    bool fits = old.begin >= begin && old.size() <= recallRoom() - found.tokens();
    for (uint32_t k = 0; k < n_found; ++k) {
      fits = fits && (old.end <= found.spans[k].begin || old.begin >= found.spans[k].end);
    }
    if (fits) {
      found.spans[found.count++] = old;
    }
  }
  std::sort(found.spans, found.spans + found.count,
            [](const TokenSpan& a, const TokenSpan& b) { return a.begin < b.begin; });
  if (found == recall_->shown) {
    return kOk;
  }
  ORIEL_TRY(showRecalled(found));
  recall_->history.push({position_, recall_->shown, false});
  return kOk;
}

// The texts of a message in the OpenAI form.
Status Session::recallForMessage(const JsonValue& message) {
  const JsonValue* const content = message.find("content");
  if (recall_ == nullptr || content == nullptr) {
    return kOk;
  }
  if (content->isString()) {
    return recallFor(content->text.data, content->text.bytes);
  }
  for (const JsonValue* part = content->first; part != nullptr; part = part->next) {
    const JsonValue* const text = part->find("text");
    if (text != nullptr && text->isString()) {
      ORIEL_TRY(recallFor(text->text.data, text->text.bytes));
    }
  }
  return kOk;
}

// Slots behind the sinks that a session has.
uint32_t Session::recallRoom() const {
  return recall_ != nullptr ? std::min(recall_->settings.tokens, cache_.sinkRoom() - cache_.sinks)
                            : 0;
}

Status Session::showRecalled(const RecallSpans& spans) {
  cache_.recalled = 0;
  recall_->shown = {};
  Status status = kOk;
  uint32_t count = 0;
  if (spans.count != 0) {
    const DeviceTurn turn = this->turn();
    ORIEL_TRY(turn.status());
    blank_ = false;
    for (uint32_t i = 0; i < spans.count && status.ok(); ++i) {
      int32_t ids[kMaxRecallTokens];
      const TokenSpan& span = spans.spans[i];
      status = recall_->file.bring(span, cache_.sinks + count, recallPlace(), context_.log, ids);
      for (uint64_t k = 0; k < span.size() && status.ok(); ++k) {
        ids_.setRecalled(count++, ids[k]);
      }
    }
  }
  if (status.ok()) {
    cache_.recalled = count;
    recall_->shown = spans;
  }
  shapeWindows();
  return status.ok() ? status : giveUpRecall(status);
}

// What stood there when the session had so many tokens as it has now, behind going back or while its memory is built again.
Status Session::recallAgain() {
  const RecallHistory::Entry* const entry = recall_->history.at(position_);
  const RecallSpans spans = entry != nullptr ? entry->spans : RecallSpans();
  const bool there =
      spans == recall_->shown &&
      (cache_.recalled != 0) == (spans.count != 0 || (entry != nullptr && entry->unknown));
  return there || !recall_->file.isOpen() ? Status(kOk) : showRecalled(spans);
}

// The session went back. What was saved behind the place is not the conversation any more.
Status Session::rewindRecall() {
  if (recall_ == nullptr) {
    return kOk;
  }
  SessionRecall& recall = *recall_;
  recall.saved = std::max(std::min(recall.saved, blockOf(position_)), blockOf(cache_.sinks));
  recall.first = std::min(recall.first, recall.saved);
  recall.index.truncate(recall.saved, position_);
  recall.reader.restart();
  return recall.history.truncate(position_) ? recallAgain() : Status(kOk);
}

// After a snapshot was restored, of which so many tokens stand behind the sinks: nobody knows from where.
void Session::restoreRecall(uint32_t recalled) {
  cache_.recalled = std::min(recalled, cache_.sinkRoom() - cache_.sinks);
  shapeWindows();
  if (recall_ != nullptr) {
    recall_->clear();
    recall_->first = recall_->saved = blockOf(cache_.sinks);
    if (cache_.recalled != 0) {
      RecallHistory::Entry entry;
      entry.unknown = true;
      recall_->history.push(entry);
    }
    for (uint32_t i = 0; i < turns_.count(); ++i) {
      recall_->index.markTurn(turns_.at(i));
    }
  }
}

// As takeOver().
Status Session::takeOverRecall(const Session& other) {
  cache_.recalled = other.cache_.recalled;
  for (uint32_t i = 0; i < cache_.recalled; ++i) {
    ids_.setRecalled(i, other.ids_.recalled(i));
  }
  shapeWindows();
  if (recall_ == nullptr || other.recall_ == nullptr) {
    return kOk;
  }
  SessionRecall& recall = *recall_;
  const SessionRecall& from = *other.recall_;
  recall.index.copy(from.index);
  recall.reader = from.reader;
  recall.history = from.history;
  recall.shown = from.shown;
  recall.first = from.first;
  recall.saved = from.saved;
  if (!recall.file.isOpen() || !from.file.isOpen()) {
    recall.file.close();
    return kOk;
  }
  const Status status = recall.file.copy(from.file, recall.room, context_.log);
  return status.ok() ? status : giveUpRecall(status);
}

Status Session::recall(const char* text, size_t bytes) {
  return recall_ != nullptr
             ? recallFor(text, bytes)
             : context_.log.fail(ORIEL_ERROR_STATE,
                                 "nothing is kept of what left the window: load the model with "
                                 "recall_bytes");
}

uint64_t Session::keptTokens() const {
  if (recall_ == nullptr || !recall_->file.isOpen()) {
    return 0;
  }
  return std::min(recall_->saved - std::min(recall_->first, recall_->saved),
                  recall_->file.tokens());
}

}  // namespace oriel
