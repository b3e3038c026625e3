// The part of a session that reads tokens and texts.
#include <algorithm>

#include "exec/session.h"
#include "os/os.h"
#include "text/utf8.h"

namespace oriel_internal {
namespace {

constexpr size_t kIdsAtOnce = 2048;
static_assert(kIdsAtOnce * sizeof(int32_t) + Tokenizer::workBytes(1024) + 8192 <=
                  kSessionWorkspaceBytes,
              "oriel.h says from what size on memory is borrowed");

}  // namespace

Status Session::append(const int32_t* ids, size_t count) {
  ORIEL_TRY(checkIds(ids, count));
  expect(count);
  return appendIds(ids, count, true);
}

Status Session::step(const int32_t* ids, uint32_t count, const Outputs& outputs, StepRun what) {
  fillStep(ids, count, outputs);
  return submit(what, true);
}

StepRun Session::fillRun() const { return context_.stops_early ? StepRun::kFill : StepRun::kChunk; }

// All tokens but the last need only what fills the memories.
Status Session::lastChunk(const int32_t* ids, uint32_t count) {
  const Plan& plan = *context_.plan;
  if (recall_ != nullptr && recall_->captures) {  // the layers behind write over the queries
    ORIEL_TRY(step(ids, count, {}, StepRun::kFill));
    ORIEL_TRY(captureQueries(count));
  }
  if (!context_.stops_early || plan.n_ops[static_cast<uint32_t>(StepList::kTail)] == 0) {
    return step(ids, count, {count - 1, 1}, StepRun::kChunkHead);
  }
  ORIEL_TRY(step(ids, count, {}, StepRun::kFill));
  void* const block = context_.executor->step();
  fillBlock(block, at_.position + count - 1, ids + count - 1, 1, {0, 1});
  StepBlock(block).header().tail = count - 1;
  return submit(StepRun::kTail, true);
}

Status Session::appendIds(const int32_t* ids, size_t count, bool ends) {
  ORIEL_TRY(refresh());
  return readIds(ids, count, ends);
}

// Unless a text `ends` with these ids, they are whole chunks and more follow: what a text is cut into does not
// depend on how it comes.
Status Session::readIds(const int32_t* ids, size_t count, bool ends) {
  const double begin_ms = nowMs();
  const uint32_t chunk = context_.plan->chunk_tokens;
  ORIEL_TRY(readAhead(ids, count));
  for (size_t done = 0; done < count;) {
    ORIEL_TRY(betweenSteps());
    const uint32_t n = static_cast<uint32_t>(std::min<size_t>(count - done, chunk));
    ORIEL_TRY(readChunk(ids + done, n, ends && done + n == count, n == 1));
    done += n;
    at_.prompt_tokens += n;
    tellRead(n);
  }
  at_.prompt_ms += nowMs() - begin_ms;
  return kOk;
}

// `alone`: the one token, as one that was chosen.
Status Session::readChunk(const int32_t* ids, uint32_t count, bool last, bool alone) {
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  ORIEL_TRY(fillRows(ids, count));
  const bool had_logits = keepsLogits();
  at_.has_logits = false;
  const Status status = alone  ? step(ids, 1, {0, 1}, StepRun::kDecode)
                        : last ? lastChunk(ids, count)
                               : step(ids, count, {}, fillRun());
  at_.has_logits = had_logits && endedInBody(status);
  ORIEL_TRY(status);
  commit(ids, count);
  at_.has_logits = last || (recovers_ && alone);
  logits_row_ = 0;
  return kOk;
}

void Session::tellRead(uint32_t tokens) {
  reading_.done += tokens;
  if (context_.progress != nullptr &&
      context_.progress(reading_.done, reading_.total + reading_.later, context_.progress_user) !=
          0) {
    cancel();
  }
}

Status Session::appendText(const char* text, size_t bytes, const EncodeOptions& options) {
  size_t bad = 0;
  if (!isValidUtf8(text, bytes, &bad)) {
    return context_.log.fail(ORIEL_ERROR_TEXT,
                             "the text is not valid UTF-8 at byte %zu: convert it first", bad);
  }
  Workspace workspace = makeWorkspace();
  TextParts parts;
  parts.add(text, bytes);
  return appendEncoded(parts, options, &workspace, nullptr);
}

/// Counts the ids of a text that comes in pieces.
class Session::Counter final : public TokenSink {
 public:
  explicit Counter(Session* session) : session_(session) {}
  Status take(const int32_t*, size_t count, bool) override {
    session_->expect(count);
    tokens_ += count;
    return kOk;
  }
  bool stops() override { return session_->calls_.cancelled(); }
  uint64_t tokens() const { return tokens_; }

 private:
  Session* session_;
  uint64_t tokens_ = 0;
};

/// Hands ids to the session while a text is being encoded. The ids of each message are whole chunks and a rest, wherever
/// they come from.
class Session::Feed final : public TokenSink {
 public:
  /// `counter`: has counted them before the first comes; null: nobody has. `messages`: of the text; null: it has none.
  Feed(Session* session, const Counter* counter, ReadMessages* messages)
      : session_(session),
        counter_(counter),
        messages_(messages),
        begin_(session->at_.position),
        skip_(messages != nullptr ? session->at_.position - messages->base : 0) {}

  Status take(const int32_t* ids, size_t count, bool last) override {
    const uint64_t skipped = std::min<uint64_t>(skip_, count);
    skip_ -= skipped;
    ids += skipped;
    count -= static_cast<size_t>(skipped);
    session_->expect(counter_ != nullptr ? 0 : count);
    tokens_ += count;
    const bool all = last || counter_ != nullptr;
    warned_ = warned_ || session_->warnIfLonger(
                             begin_, counter_ != nullptr ? counter_->tokens() : tokens_, all);
    if (messages_ == nullptr) {
      return session_->appendIds(ids, count, last);
    }
    const uint32_t chunk = session_->context_.plan->chunk_tokens;
    for (size_t i = 0; i < count; ++i) {
      held_[n_held_++] = ids[i];
      const bool is_last = last && i + 1 == count;
      if (n_held_ == chunk || is_last || endsMessage(session_->at_.position + n_held_)) {
        ORIEL_TRY(flush(is_last));
      }
    }
    return kOk;
  }
  bool stops() override { return session_->calls_.cancelled(); }

 private:
  // The last one ends with the text.
  bool endsMessage(uint64_t position) const {
    return messages_->done + 1 < messages_->count &&
           position >= messages_->base + messages_->tokens[messages_->done].end;
  }
  Status flush(bool last) {
    const uint32_t count = n_held_;
    n_held_ = 0;
    ORIEL_TRY(session_->appendIds(held_, count, last));
    while (endsMessage(session_->at_.position) || (last && messages_->done < messages_->count)) {
      session_->endMessage(messages_);
    }
    return kOk;
  }

  Session* session_;
  const Counter* counter_;
  ReadMessages* messages_;
  const uint64_t begin_;
  uint64_t skip_;  ///< ids that the session has already
  uint64_t tokens_ = 0;
  bool warned_ = false;
  WipedArray<int32_t, kMaxChunk> held_;
  uint32_t n_held_ = 0;
};

// Before the ids from `begin` on are read, of which there are `tokens`, or more unless these are `all`.
bool Session::warnIfLonger(uint64_t begin, uint64_t tokens, bool all) const {
  const uint64_t first = std::max<uint64_t>(begin, cache_.sinks);
  const uint64_t end = begin + tokens;
  if (recovers_ || replays_ || end <= first + cache_.window) {
    return false;
  }
  context_.log.write(
      ORIEL_LOG_WARNING,
      "the text has %s%llu tokens, and the window holds %u: the beginning is not seen "
      "by the reply, shorten the text or load the model with a longer window",
      all ? "" : "more than ", static_cast<unsigned long long>(tokens), cache_.window);
  return true;
}

// Whole chunks.
size_t Session::idsAtOnce() const {
  return kIdsAtOnce / context_.plan->chunk_tokens * context_.plan->chunk_tokens;
}

bool Session::comesInPieces(const TextParts& text) const {
  return context_.tokenizer->idsAtMost(text.bytes()) >= idsAtOnce();
}

// Counting takes about a hundredth of the time that reading does: only where somebody is told.
Status Session::appendEncoded(const TextParts& text, const EncodeOptions& options,
                              Workspace* workspace, ReadMessages* messages) {
  const bool tells =
      context_.progress != nullptr || context_.tokenizer->idsAtMost(text.bytes()) > cache_.window;
  Counter counter(this);
  Counter* const counts = tells && comesInPieces(text) ? &counter : nullptr;
  Feed feed(this, counts, messages);
  return feedEncoded(text, options, workspace, &feed, counts);
}

// A text of any length, whole chunks of ids at a time. What may fail for lack of memory does so before the first of
// them.
Status Session::feedEncoded(const TextParts& text, const EncodeOptions& options,
                            Workspace* workspace, TokenSink* sink, TokenSink* counter) {
  const Tokenizer& tokenizer = *context_.tokenizer;
  const size_t capacity = idsAtOnce();
  const BorrowedBytes ids(workspace, capacity * sizeof(int32_t));
  size_t bytes = 0;
  if (comesInPieces(text)) {
    ORIEL_TRY(tokenizer.encodeBytes(text, options, workspace, context_.log, sink, &bytes));
  }
  const bool borrows = bytes > workspace->available();
  const BorrowedBytes memory(workspace, borrows ? bytes : 0);
  if (ids.data() == nullptr || memory.data() == nullptr) {
    return context_.log.fail(
        ORIEL_ERROR_OUT_OF_MEMORY,
        "no %zu bytes of working memory for one word of the text: free memory or shorten it",
        bytes);
  }
  Workspace own(memory.data(), bytes, context_.allocator);
  Workspace* const words = borrows ? &own : workspace;
  if (counter != nullptr) {
    ORIEL_TRY(tokenizer.encodeParts(text, options, words, context_.log, ids.as<int32_t>(), capacity,
                                    counter));
  }
  return tokenizer.encodeParts(text, options, words, context_.log, ids.as<int32_t>(), capacity,
                               sink);
}

/// A chunk whose logits are asked for, row by row.
struct Session::Evaluation {
  const int32_t* ids;
  uint32_t n_tokens;
  Outputs outputs;        ///< rows that are there
  bool has_body = false;  ///< and what a head needs for others
  bool had_logits = false;
  uint64_t turn = 0;  ///< of the device, that left them there
};

// The head runs over as many rows at once as the plan has room for. The device is not kept while the app looks at a row:
// where others have used it meanwhile, the chunk is computed again for those that are missing.
Status Session::evaluateRow(Evaluation* chunk, uint32_t i, const float** logits) {
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  if (sharesDevice() && context_.share->turns() != chunk->turn + 1) {
    chunk->has_body = false;
    chunk->outputs = {};
  }
  Outputs& outputs = chunk->outputs;
  const bool is_there = chunk->has_body && i < outputs.first + outputs.count;
  if (!is_there) {
    const uint32_t n = chunk->n_tokens;
    outputs = {i, std::min(n - i, context_.plan->output_rows)};
    ORIEL_TRY(chunk->has_body ? kOk : fillRows(chunk->ids, n));
    at_.has_logits = false;
    fillStep(chunk->ids, n, outputs);
    const Status status = submit(n == 1            ? StepRun::kDecode
                                 : chunk->has_body ? StepRun::kHead
                                                   : StepRun::kChunkHead,
                                 i == 0);
    // Of experts: the head had not begun.
    at_.has_logits = chunk->had_logits && status.code() == ORIEL_ERROR_IO;
    ORIEL_TRY(status);
    chunk->has_body = true;
    chunk->had_logits = false;
    logits_row_ = outputs.count - 1;
  }
  ORIEL_TRY(context_.executor->logits(i - outputs.first, logits));
  if (sharesDevice()) {
    chunk->turn = context_.share->turns();
    *logits = copyOf(*logits);
  }
  return kOk;
}

Status Session::evaluate(const int32_t* ids, size_t count, oriel_logits_fn on_logits, void* user) {
  ORIEL_TRY(checkIds(ids, count));
  const uint32_t n_vocab = context_.model->n_vocab;
  ORIEL_TRY(refresh());
  ORIEL_TRY(readAhead(ids, count));
  bool stop = false;
  for (size_t done = 0; done < count && !stop;) {
    ORIEL_TRY(betweenSteps());
    const uint32_t n =
        static_cast<uint32_t>(std::min<size_t>(count - done, context_.plan->chunk_tokens));
    Evaluation chunk = {ids + done, n, {}};
    chunk.had_logits = keepsLogits();
    uint32_t shown = 0;
    for (; shown < n && !stop; ++shown) {
      if (shown != 0) {
        ORIEL_TRY(checkCancelled());
      }
      const float* logits = nullptr;
      ORIEL_TRY(evaluateRow(&chunk, shown, &logits));
      stop = on_logits(done + shown, logits, n_vocab, user) != 0;
    }
    commit(ids + done, n);
    at_.has_logits = shown == n;  // else they are those of an earlier token
    done += n;
  }
  return settleLogits();
}

}  // namespace oriel_internal
