#include "exec/recall_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

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
    memory.object = arena->take<uint8_t>(sizeof(RecallState));
    memory.room = arena->take<uint8_t>(kRecallRoomBytes);
    memory.index.init(settings.words, model.pictures != nullptr, arena);
  }
  return memory;
}

SessionRecall::SessionRecall(const SessionContext& context, Conversation* at, RunningCall* call,
                             SessionMemory* memory, const Transcript* transcript,
                             const RecallMemory& room)
    : context_(context), at_(*at), call_(*call), memory_(*memory), transcript_(*transcript) {
  if (room.object != nullptr && memory->cache().window >= kLeastRecallWindow) {
    recall_ = new (room.object) RecallState();
    static_cast<RecallMemory&>(*recall_) = room;
  }
}

SessionRecall::~SessionRecall() {
  if (recall_ != nullptr) {
    recall_->~RecallState();
  }
}

Status SessionRecall::open(bool is_new) {
  if (recall_ == nullptr) {
    return kOk;
  }
  const Status status = openFile(is_new ? context_.log : LenientLog(context_.log).log());
  return status.ok() || is_new ? status : giveUp(status);
}

Status SessionRecall::openFile(const Log& log) {
  const uint64_t token_bytes =
      RecallFile::tokenBytes(*context_.model, memory_.cache(), context_.plan->formats);
  const uint64_t tokens = std::min(RecallFile::tokensIn(context_.recall.file_bytes, token_bytes),
                                   context_.recall.words);
  recall_->layer = findRecallLayer(*context_.plan, *context_.model, memory_.cache());
  RecallKeys keys;
  if (recall_->layer.any) {
    keys = {recall_->layer.layer, recall_->layer.n_kv_heads, recall_->layer.head_dim};
  }
  return recall_->file.open(context_.recall.folder, blockOf(tokens), token_bytes, keys, log);
}

void SessionRecall::clear() {
  at_.recalled = at_.recalled_shared = 0;
  memory_.layOut();
  if (recall_ != nullptr) {
    recall_->clear();
    recall_->first = recall_->saved = blockOf(memory_.cache().sinks);
  }
}

RecallPlace SessionRecall::place() const {
  RecallPlace place;
  place.plan = context_.plan;
  place.model = context_.model;
  place.cache = memory_.cache();
  place.phases = memory_.phases;
  place.first_position = at_.first_position;
  const PictureStore* const pictures = memory_.pictures;
  place.pictures = pictures != nullptr && pictures->input().in_dimensions ? pictures : nullptr;
  place.executor = context_.executor;
  place.room = recall_->room;
  return place;
}

// A failing file ends retrieval, not the conversation. A failing device makes the call fail.
Status SessionRecall::giveUp(Status status) {
  if (status.code() != ORIEL_ERROR_IO) {
    return status;
  }
  recall_->stopKeeping(context_.log);
  return show({});
}

// The first token after the sinks that all retrievable layers hold.
uint64_t SessionRecall::heldByAll() const {
  const HeldTokens held = memory_.held();
  uint64_t first = held.first > held.sinks ? held.first : 0;
  for (uint32_t view = 0; view < context_.model->n_views; ++view) {
    const CacheShape shape = viewShape(context_.model->views[view], memory_.cache());
    if (context_.model->views[view].kind == ViewKind::kSession &&
        shape.window >= kLeastRecallWindow && at_.stored > shape.ring + shape.sinks) {
      first = std::max(first, at_.stored - shape.ring);
    }
  }
  return first;
}

Status SessionRecall::saveBlocks() {
  if (recall_ == nullptr || call_.recovers || recall_->embeds || !recall_->file.isOpen() ||
      blockOf(at_.position) <= recall_->saved) {
    return kOk;
  }
  RecallState& recall = *recall_;
  if (const uint64_t held = heldByAll();
      held > recall.saved) {  // earlier tokens came from elsewhere
    recall.first = recall.saved = blockOf(held + kRecallBlock - 1);
    while (recall.saved < at_.position && isNearRow(recall.saved)) {  // the picture is not whole
      recall.first = recall.saved += kRecallBlock;
    }
    recall.reader.restart();
  }
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  for (; recall.saved + kRecallBlock <= at_.position; recall.saved += kRecallBlock) {
    WipedArray<int32_t, kRecallBlock> ids;
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      ids[i] = memory_.ids.at(recall.saved + i);
    }
    uint32_t says = 0;
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      const uint64_t t = recall.saved + i;
      says |= saysSomething(ids[i], t != 0 ? memory_.ids.at(t - 1) : -1) ? 1u << i : 0;
    }
    LenientLog lenient(context_.log);  // the conversation goes on
    const Status status = recall.file.save(recall.saved, ids, says, place(), lenient.log());
    if (!status.ok()) {
      return giveUp(status);
    }
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      addWords(recall.saved + i, ids[i]);
    }
  }
  return kOk;
}

bool SessionRecall::isNearRow(uint64_t token) const {
  for (uint64_t t = token; t <= token + RecallIndex::kBetweenTiles && t < at_.position; ++t) {
    if (TokenIds::isRow(memory_.ids.at(t))) {
      return true;
    }
  }
  return false;
}

// Frames of turns are control tokens and the role after them. Frames and punctuation attract attention for any
// question.
bool SessionRecall::saysSomething(int32_t id, int32_t before) const {
  const Tokenizer& tokenizer = *context_.tokenizer;
  if (id < 0 || tokenizer.isControl(id) || (before >= 0 && tokenizer.isControl(before))) {
    return false;
  }
  const Tokenizer::Piece text = tokenizer.piece(id, false);
  return hasWord(text.data, text.bytes);
}

// A control token ends a word.
void SessionRecall::addWords(uint64_t token, int32_t id) {
  RecallState& recall = *recall_;
  const auto add = [&](uint32_t word) { recall.index.addWord(token, word); };
  const Tokenizer::Piece text = id < 0 ? Tokenizer::Piece() : context_.tokenizer->piece(id, false);
  if (text.bytes != 0) {
    recall.reader.push(text.data, text.bytes, add);
  } else if (const uint32_t word = recall.reader.finish(); word != WordReader::kNone) {
    add(word);
  }
  if (TokenIds::isRow(id)) {
    recall.index.addRow(token, TokenIds::rowOf(id));
  }
}

// Words of a user's message read after `begin` tokens: turns that they ask for come back before the reply.
void SessionRecall::askFor(const char* text, size_t bytes, uint64_t begin,
                           const SamplerState& before) {
  if (recall_ == nullptr || call_.recovers) {
    return;
  }
  RecallState& recall = *recall_;
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

void SessionRecall::askFor(const JsonValue& message, uint64_t begin, const SamplerState& before) {
  if (recall_ == nullptr || call_.recovers) {
    return;
  }
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

// Weighs the evicted turns. Returns whether there are any.
bool SessionRecall::weighKept() {
  RecallState& recall = *recall_;
  // Visible turns are not retrieved.
  const uint64_t first_seen = at_.position + 1 - memory_.viewOf(at_.position).count;
  const uint64_t begin = std::max(recall.kept(), uint64_t{memory_.cache().sinks});
  recall.index.weigh(recall.query, begin, std::min(first_seen, recall.saved), room());
  return recall.index.passageCount() != 0;
}

// The attention of queries to each passage, relative to all evicted tokens.
Status SessionRecall::weighByAttention() {
  RecallState& recall = *recall_;
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
      ORIEL_TRY(call_.check());
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
    // The square root limits turns that attract attention for any question, so that they do not outweigh words.
    share = std::sqrt(share / static_cast<double>(index.passage(i).size()));
    index.setAttention(i, static_cast<float>(share));
  }
  return kOk;
}

// The best of the weighed turns and, if space remains, the earlier ones: the conversation may still be about them.
RecallSpans SessionRecall::chooseKept() const {
  const RecallState& recall = *recall_;
  RecallSpans found = recall.index.best(room());
  if (found.count == 0) {
    return recall.shown;
  }
  const uint64_t kept = recall.kept();
  const uint32_t n_found = found.count;
  for (uint32_t i = 0; i < recall.shown.count && found.count < RecallSpans::kMost; ++i) {
    const TokenSpan& old = recall.shown.spans[i];
    bool fits = old.begin >= kept && old.size() <= room() - found.tokens();
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

Status SessionRecall::begin() {
  if (recall_ == nullptr) {
    return kOk;
  }
  if (call_.recovers) {
    return again();
  }
  ORIEL_TRY(saveBlocks());
  recall_->n_queries = 0;
  recall_->captures = recall_->file.isOpen() && weighKept();
  return kOk;
}

Status SessionRecall::captureQueries(uint32_t count) {
  RecallState& recall = *recall_;
  const RecallLayer& layer = recall.layer;
  const uint64_t d = layer.head_dim;
  recall.n_queries = layer.any ? std::min(count, kRecallQueries) : 0;
  // As many heads at a time as fit the upload ring.
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

Status SessionRecall::end(Status opened) {
  if (recall_ != nullptr) {
    recall_->captures = false;
  }
  return opened;
}

Status SessionRecall::find(RecallSpans* found, bool* changed) {
  *changed = false;
  if (!captures()) {
    return kOk;
  }
  recall_->captures = false;
  if (const Status status = weighByAttention(); !status.ok()) {
    return giveUp(status);
  }
  *found = chooseKept();
  *changed = !(*found == recall_->shown);
  return kOk;
}

void SessionRecall::willReadAgain(uint64_t end) {
  RecallState& recall = *recall_;
  recall.first = recall.kept();
  recall.saved = std::max(std::min(recall.saved, blockOf(at_.position)), recall.first);
  recall.index.truncate(recall.saved, end);
  recall.reader.restart();
}

// The session's slots after the sinks.
uint32_t SessionRecall::room() const {
  return recall_ != nullptr
             ? std::min(context_.recall.tokens, memory_.cache().sinkRoom() - memory_.cache().sinks)
             : 0;
}

// In a sink's place a turn's positions follow those of the tokens before it.
Status SessionRecall::show(const RecallSpans& spans) {
  at_.recalled = at_.recalled_shared = 0;
  recall_->shown = {};
  Status status = kOk;
  uint32_t count = 0;
  uint64_t position = memory_.positionOf(memory_.cache().sinks);
  const uint64_t origin = position;
  if (spans.count != 0) {
    call_.waitForDevice();
    const DeviceTurn turn = context_.turn();
    ORIEL_TRY(turn.status());
    memory_.blank = false;
    LenientLog lenient(context_.log);
    for (uint32_t i = 0; i < spans.count && status.ok(); ++i) {
      WipedArray<int32_t, kMaxRecallTokens> ids;
      const TokenSpan& span = spans.spans[i];
      const uint64_t begin = memory_.positionOf(span.begin);
      status = recall_->file.bring(span, memory_.cache().sinks + count, position - begin, place(),
                                   lenient.log(), ids);
      position += memory_.positionOf(span.end) - begin;
      for (uint64_t k = 0; k < span.size() && status.ok(); ++k) {
        memory_.ids.setRecalled(count++, ids[k]);
      }
    }
  }
  if (status.ok()) {
    at_.recalled = count;
    at_.recalled_shared = static_cast<uint16_t>(count - (position - origin));
    recall_->shown = spans;
  }
  memory_.layOut();
  return status.ok() ? status : giveUp(status);
}

Status SessionRecall::again() {
  if (recall_ == nullptr) {
    return kOk;
  }
  const RecallHistory::Entry* const entry = recall_->history.at(at_.position);
  const RecallSpans then = entry != nullptr ? entry->spans : RecallSpans();
  const bool any = then.count != 0 || (entry != nullptr && entry->unknown);
  if (then == recall_->shown && any == (at_.recalled != 0)) {
    return kOk;
  }
  const bool held = recall_->file.isOpen() && recall_->keeps(then);
  return show(held ? then : RecallSpans());
}

bool SessionRecall::isAsThen() const {
  if (recall_ == nullptr) {
    return true;
  }
  const RecallHistory::Entry* const entry = recall_->history.at(at_.position);
  return recall_->history.knows(at_.position) &&
         (entry == nullptr || (!entry->unknown && entry->spans == recall_->shown));
}

bool SessionRecall::forgetRecalled() {
  if (recall_ == nullptr) {
    return false;
  }
  RecallState& recall = *recall_;
  recall.first = recall.kept();  // blocks overwritten in the file's ring are lost
  recall.saved =
      std::max(std::min(recall.saved, blockOf(at_.position)), blockOf(memory_.cache().sinks));
  recall.first = std::min(recall.first, recall.saved);
  recall.index.truncate(recall.saved, at_.position);
  recall.reader.restart();
  if (at_.position <= recall.query_begin) {
    recall.query = {};
  }
  return recall.history.truncate(at_.position);
}

void SessionRecall::restore() {
  at_.recalled = std::min(at_.recalled, memory_.cache().sinkRoom() - memory_.cache().sinks);
  at_.recalled_shared = std::min(at_.recalled_shared, static_cast<uint16_t>(at_.recalled));
  memory_.layOut();
  if (recall_ != nullptr) {
    recall_->clear();
    recall_->first = recall_->saved = blockOf(memory_.cache().sinks);
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

void SessionRecall::takeOver(const SessionRecall& other) {
  for (uint32_t i = 0; i < at_.recalled; ++i) {
    memory_.ids.setRecalled(i, other.memory_.ids.recalled(i));
  }
  if (recall_ == nullptr || other.recall_ == nullptr) {
    return;
  }
  RecallState& recall = *recall_;
  const RecallState& from = *other.recall_;
  recall.index.copy(from.index);
  static_cast<RecallStand&>(recall) = from;
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

Status SessionRecall::recall(const char* text, size_t bytes) {
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
  return found == recall_->shown ? Status(kOk) : showFromHere(found);
}

Status SessionRecall::showFromHere(const RecallSpans& found) {
  ORIEL_TRY(show(found));
  noteShown(at_.position);
  return kOk;
}

void SessionRecall::noteShown(uint64_t since) {
  recall_->history.push({since, recall_->shown, false});
}

void SessionRecall::close() {
  if (recall_ != nullptr) {
    recall_->file.close();
  }
}

void SessionRecall::embedUntilClear() {
  if (recall_ != nullptr) {
    recall_->embeds = true;
  }
}

void SessionRecall::markTurn(uint64_t start) {
  if (recall_ != nullptr) {
    recall_->index.markTurn(start);
  }
}

void SessionRecall::forgetShown(bool history) {
  if (recall_ != nullptr) {
    recall_->shown = {};
  }
  if (recall_ != nullptr && history) {
    recall_->history.clear();
  }
}

uint64_t SessionRecall::keptTokens() const {
  if (recall_ == nullptr || !recall_->file.isOpen()) {
    return 0;
  }
  return std::min(recall_->saved - std::min(recall_->first, recall_->saved),
                  recall_->file.tokens());
}

}  // namespace oriel_internal
