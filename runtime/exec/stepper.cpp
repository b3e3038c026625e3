#include "exec/stepper.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec/cache_bytes.h"
#include "plan/repack.h"

namespace oriel_internal {
namespace {

// The best token's share among the best few.
double shareOfBest(const TopTokens& top) {
  constexpr uint32_t kFew = 10;
  double sum = 0;
  for (uint32_t i = 0; i < std::min(top.count, kFew); ++i) {
    sum += std::exp(static_cast<double>(top.best[i].logit) - top.best[0].logit);
  }
  return sum > 0 ? 1 / sum : 0;
}

}  // namespace

Stepper::Stepper(const SessionContext& context, Conversation* at, RunningCall* call,
                 SessionMemory* memory, SessionRecall* recall, Sampler* sampler,
                 const RowCache& cache)
    : row_cache(cache),
      context_(context),
      at_(*at),
      call_(*call),
      memory_(*memory),
      recall_(*recall),
      sampler_(*sampler) {}

void Stepper::reset() {
  logits_row_ = top_row_ = 0;
  verified_rows_ = 0;
  has_top_ = ahead_ = false;
  hidden_row_ = -1;
  fed_ = {};
}

// The session may have gone back, or got tokens from elsewhere. The next token is then read without a vector before it,
// like the first of a text.
void Stepper::alignFed() {
  if (fed_.to != at_.position) {
    const bool holds = fed_.from <= at_.position && at_.position < fed_.to;
    fed_ = {holds ? fed_.from : at_.position, at_.position, Fed::kNoRow};
  }
}

void Stepper::fillStep(const int32_t* ids, uint32_t count, StepOutputs outputs, uint32_t states) {
  memory_.willStore(at_.position + count, states);
  fillBlock(context_.executor->step(), at_.position, ids, count, outputs);
  if (predicts()) {
    alignFed();
    StepBlock(context_.executor->step()).header().tail =
        fed_.row != Fed::kNoRow ? fed_.row : HiddenRows{context_.plan->chunk_tokens}.zeros();
  }
  if (memory_.pictures != nullptr) {
    fillPictures(ids, count);
  }
}

// Writes the rows of pictures, part by part.
void Stepper::fillPictures(const int32_t* ids, uint32_t count) const {
  const PictureStore& pictures = *memory_.pictures;
  const uint32_t cols = context_.model->n_embd;
  const uint64_t part_bytes = picturePartBytes(*context_.model, context_.plan->chunk_tokens);
  uint8_t* const place =
      static_cast<uint8_t*>(context_.executor->rowsOfStep(context_.plan->picture_rows));
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t part = 0; TokenIds::isRow(ids[i]) && part < pictures.input().parts; ++part) {
      const float* const row = pictures.row(TokenIds::rowOf(ids[i])) + uint64_t{part} * cols;
      repackRows(WeightType::kF32, reinterpret_cast<const uint8_t*>(row), 1, cols, i,
                 reinterpret_cast<uint32_t*>(place + part * part_bytes));
    }
  }
}

void Stepper::fillBlock(void* step, uint64_t position, const int32_t* ids, uint32_t count,
                        StepOutputs outputs) const {
  fillHeader(step, count, outputs.count);
  const bool together = memory_.pictures != nullptr && memory_.pictures->input().rows_together != 0;
  for (uint32_t i = count, ahead = 0; i-- > 0;) {
    const bool sees = together && i + 1 < count && TokenIds::isRow(ids[i]);
    ahead = sees && TokenIds::isRow(ids[i + 1]) ? ahead + 1 : 0;
    memory_.fillToken(step, i, position, position + i, ids[i], outputs.first + i, ahead);
  }
}

void Stepper::fillHeader(void* step, uint32_t n_tokens, uint32_t n_outputs) const {
  const StepHeader header = {n_tokens, n_outputs, tokenWords(context_.model->n_views), 0, {}};
  std::memcpy(step, &header, sizeof(header));
}

Status Stepper::submit(StepRun what, bool may_stop) {
  hidden_row_ = -1;
  verified_rows_ = 0;
  const double begin = nowMs();
  fed_.row = hasBody(what) ? Fed::kNoRow : fed_.row;
  ORIEL_TRY(context_.executor->run(what, may_stop ? call_.stopOfStep() : StopCheck()));
  call_.worked(nowMs() - begin);
  fed_.row = hasBody(what) ? HiddenRows::kBefore : fed_.row;
  if (hasHead(what)) {
    has_top_ = true;
    top_row_ = 0;
    hidden_row_ = 0;
  }
  ++call_.counts.submissions;
  return kOk;
}

Status Stepper::readAhead(const int32_t* ids, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (TokenIds::isRow(ids[i]) && !memory_.pictures->holds(TokenIds::rowOf(ids[i]))) {
      return context_.log.fail(ORIEL_ERROR_CONTEXT,
                               "the session no longer holds a picture that must be read again: "
                               "reset it, and give the picture again");
    }
  }
  return row_cache.active() ? row_cache.readAhead(ids, count, context_.log) : kOk;
}

// Call at the beginning of a step.
Status Stepper::fillRows(const int32_t* ids, uint32_t count) {
  return row_cache.active()
             ? row_cache.fill(ids, count, context_.log,
                              context_.executor->rowsOfStep(context_.plan->file_rows.place))
             : kOk;
}

Status Stepper::step(const int32_t* ids, uint32_t count, StepOutputs outputs, StepRun what) {
  fillStep(ids, count, outputs);
  return submit(what, true);
}

// Tokens except the last need only the ops that fill the memories.
Status Stepper::lastBatch(const int32_t* ids, uint32_t count) {
  const Plan& plan = *context_.plan;
  if (recall_.captures()) {  // later layers overwrite the queries
    ORIEL_TRY(step(ids, count, {}, StepRun::kFill));
    ORIEL_TRY(recall_.captureQueries(count));
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

Status Stepper::read(const int32_t* ids, uint32_t count, bool last, bool alone) {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  ORIEL_TRY(fillRows(ids, count));
  const bool is_row = TokenIds::isRow(ids[count - 1]);  // has no logits
  last = last && !is_row;
  alone = alone && !is_row;
  const bool had_logits = keepsLogits();
  at_.has_logits = 0;
  const Status status = alone  ? step(ids, 1, {0, 1}, StepRun::kDecode)
                        : last ? lastBatch(ids, count)
                               : step(ids, count, {}, fillRun());
  setLogits(had_logits && endedInBody(status));
  ORIEL_TRY(status);
  commit(ids, count);
  setLogits(last || (call_.recovers && alone));
  logits_row_ = 0;
  return kOk;
}

void Stepper::commit(const int32_t* ids, uint32_t count, bool kept) {
  memory_.commit(ids, count, kept);
  fed_.to = at_.position;
  fed_.row = HiddenRows::kFirst + count - 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (!TokenIds::isRow(ids[i])) {
      sampler_.accept(ids[i]);
    }
  }
}

// A session is the same on devices that begin the next token and on others, with guesses and without.
Status Stepper::decode(int32_t id, bool ahead, bool begins) {
  ORIEL_TRY(fillRows(&id, 1));
  const bool had_logits = keepsLogits();
  at_.has_logits = 0;
  if (!ahead_) {
    fillStep(&id, 1, {0, 1});
  }
  at_.stored = std::max(at_.stored, at_.position + (ahead ? 2 : 1));
  bool more = begins && context_.executor->runsAhead();
  const bool runs_ahead = more || ahead_;
  if (more) {
    const int32_t unknown = 0;
    fillBlock(context_.executor->aheadStep(), at_.position + 1, &unknown, 1, {0, 1});
    if (predicts()) {
      StepBlock(context_.executor->aheadStep()).header().tail = HiddenRows::kFirst;
    }
  }
  ahead_ = false;
  fed_.row = Fed::kNoRow;
  const double begin = nowMs();
  const Status status =
      runs_ahead ? context_.executor->runAhead(&more) : submit(StepRun::kDecode, false);
  call_.worked(runs_ahead ? nowMs() - begin : 0);
  at_.unfinished = status.lost() ? id : -1;
  setLogits(had_logits && endedInBody(status));
  ORIEL_TRY(status);
  if (runs_ahead) {
    ahead_ = more;
    has_top_ = true;
    top_row_ = 0;
    hidden_row_ = more ? -1 : 0;
    ++call_.counts.submissions;
  }
  commit(&id, 1, !ahead);
  at_.has_logits = 1;
  logits_row_ = 0;
  return kOk;
}

Status Stepper::leaveDevice() {
  if (at_.has_logits) {
    const float* values = nullptr;
    ORIEL_TRY(ownLogits(&values));
    (void)copyOf(values);
  }
  verified_rows_ = 0;
  has_top_ = false;
  hidden_row_ = -1;
  fed_ = {};
  return kOk;
}

Status Stepper::enterDevice() {
  if (at_.has_logits) {
    const Plan& plan = *context_.plan;
    const uint64_t bytes = sizeof(float) * uint64_t{context_.model->n_vocab};
    ORIEL_TRY(sendCopy(plan, context_.executor, logitsPlace(plan, context_.index).resized(bytes),
                       sampler_.room()));
    logits_row_ = 0;
  }
  return context_.executor->finishWrites();
}

const float* Stepper::copyOf(const float* logits) const {
  const size_t bytes = sizeof(float) * size_t{context_.model->n_vocab};
  return static_cast<const float*>(std::memcpy(sampler_.room(), logits, bytes));
}

Status Stepper::logits(const float** values) const {
  if (!at_.has_logits) {
    return context_.log.fail(ORIEL_ERROR_STATE, "there are no logits yet: append tokens first");
  }
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  ORIEL_TRY(ownLogits(values));
  if (context_.sharesDevice()) {
    *values = copyOf(*values);
  }
  return kOk;
}

// Kept per session if there are several.
Status Stepper::ownLogits(const float** values) const {
  return context_.plan->sessionCount() > 1 ? context_.executor->keptLogits(context_.index, values)
                                           : context_.executor->logits(logits_row_, values);
}

Status Stepper::settle() {
  if (ahead_) {
    ahead_ = false;
    fed_.row = Fed::kNoRow;
    ORIEL_TRY(context_.executor->dropAhead());
    fed_.row = HiddenRows::kBefore;
  }
  verified_rows_ = 0;
  if (!at_.has_logits || logits_row_ == 0 || context_.sharesDevice()) {
    return kOk;
  }
  const BufferRef& logits = context_.plan->logits;
  const uint64_t row_bytes = logits.size_bytes / context_.plan->output_rows;
  BufferRef from = logits.resized(row_bytes);
  from.offset_bytes += logits_row_ * row_bytes;
  const CopyPiece piece = {from, logits.resized(row_bytes)};
  ORIEL_TRY(context_.executor->copy(&piece, 1));
  logits_row_ = 0;
  return kOk;
}

// The device is free while the app looks at a row. If other sessions used it meanwhile, computes the batch again for
// the missing rows.
Status Stepper::evaluate(EvaluatedBatch* batch, uint32_t i, const float** logits) {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  if (context_.sharesDevice() && context_.share->turns() != batch->turn + 1) {
    batch->has_body = false;
    batch->outputs = {};
  }
  StepOutputs& outputs = batch->outputs;
  const bool is_there = batch->has_body && i < outputs.first + outputs.count;
  if (!is_there) {
    const uint32_t n = batch->n_tokens;
    outputs = {i, std::min(n - i, context_.plan->output_rows)};
    ORIEL_TRY(batch->has_body ? kOk : fillRows(batch->ids, n));
    at_.has_logits = 0;
    fillStep(batch->ids, n, outputs);
    const Status status = submit(n == 1            ? StepRun::kDecode
                                 : batch->has_body ? StepRun::kHead
                                                   : StepRun::kChunkHead,
                                 i == 0);
    // Experts could not be read, before the head began.
    setLogits(batch->had_logits && status.code() == ORIEL_ERROR_IO);
    ORIEL_TRY(status);
    batch->has_body = true;
    batch->had_logits = false;
    logits_row_ = outputs.count - 1;
  }
  ORIEL_TRY(context_.executor->logits(i - outputs.first, logits));
  if (context_.sharesDevice()) {
    batch->turn = context_.share->turns();
    *logits = copyOf(*logits);
  }
  return kOk;
}

Status Stepper::readNorms(const int32_t* ids, uint32_t count, StepOutputs outputs, float* sums) {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  ORIEL_TRY(fillRows(ids, count));
  ORIEL_TRY(step(ids, count, outputs, outputs.count != 0 ? StepRun::kChunkNorms : fillRun()));
  commit(ids, count);
  return addNorms(outputs.count, sums);
}

// As many rows at a time as one read allows.
template <typename Visit>
Status Stepper::readRows(const BufferRef& place, uint32_t rows, uint32_t stride,
                         const Visit& visit) {
  const uint64_t row_bytes = sizeof(float) * uint64_t{stride};
  const auto most = static_cast<uint32_t>(context_.plan->upload.size_bytes / 2 / row_bytes);
  for (uint32_t row = 0; row < rows;) {
    const uint32_t n = std::min(rows - row, std::max(most, 1u));
    const void* piece = nullptr;
    ORIEL_TRY(context_.executor->read(place, row * row_bytes, n * row_bytes, &piece));
    visit(row, n, static_cast<const float*>(piece));
    row += n;
  }
  return kOk;
}

Status Stepper::addNorms(uint32_t rows, float* sums) {
  const Op& norm = lastNorm(*context_.plan);
  const uint32_t stride = norm.push.rms_norm.out_stride;
  const double scale = norm.push.rms_norm.scale;  // scale of the logits
  return readRows(norm.bindings[kOpOut], rows, stride,
                  [&](uint32_t, uint32_t n, const float* values) {
                    for (uint32_t c = 0; c < context_.model->n_embd; ++c) {
                      double sum = 0;
                      for (uint32_t i = 0; i < n; ++i) {
                        sum += double{values[uint64_t{i} * stride + c]};
                      }
                      sums[c] += static_cast<float>(sum / scale);
                    }
                  });
}

Status Stepper::readTexts(const int32_t* ids, const TextOfStep* texts, uint32_t count,
                          uint32_t pooling, float* values) {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  memory_.blank = false;
  void* const step = context_.executor->step();
  const StepBlock block(step);
  const TextOfStep& last = texts[count - 1];
  fillHeader(step, last.first + last.tokens, count);
  block.header().tail = pooling;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t place = 0; place < texts[i].tokens; ++place) {
      memory_.fillText(step, texts[i], i, place, ids[texts[i].first + place]);
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    block.token(i).output = texts[i].first + texts[i].tokens - 1;
  }
  ORIEL_TRY(submit(StepRun::kChunkHead, true));
  const uint32_t cols = context_.model->textCols();
  return readRows(context_.plan->logits, count, cols,
                  [&](uint32_t row, uint32_t n, const float* rows) {
                    std::copy_n(rows, uint64_t{n} * cols, values + uint64_t{row} * cols);
                  });
}

static_assert(StateSlots::kMostRows == 1 + Drafter::kMost, "a state for each token");

Status Stepper::verify(const int32_t* ids, uint32_t count, bool ahead) {
  ORIEL_TRY(fillRows(ids, count));
  const bool had_logits = keepsLogits();
  at_.has_logits = 0;
  fillStep(ids, count, {0, count}, count);
  const StepBlock block(context_.executor->step());
  for (uint32_t row = 0; row < count; ++row) {
    block.token(row).place = row;
  }
  const Status status = submit(StepRun::kBatch, false);
  at_.unfinished = status.lost() ? ids[0] : -1;
  setLogits(had_logits && endedInBody(status));
  ORIEL_TRY(status);
  commit(ids, 1, !ahead);
  verified_rows_ = count;
  at_.has_logits = 1;
  logits_row_ = 0;
  return kOk;
}

bool Stepper::take(int32_t id, uint32_t row, bool ahead) {
  if (row >= verified_rows_) {
    return false;
  }
  commit(&id, 1, !ahead);
  logits_row_ = top_row_ = row;
  hidden_row_ = static_cast<int32_t>(row);
  fed_.row = HiddenRows::kFirst + row;
  has_top_ = true;
  at_.has_logits = 1;
  return true;
}

int32_t Stepper::takeHiddenRow() {
  int32_t row = hidden_row_;
  if (predicts()) {
    alignFed();
    const bool lost = fed_.row == Fed::kNoRow || fed_.row == HiddenRows::kBefore;
    // A view cannot hide some sinks.
    const bool hides = fed_.from == 0 || at_.position >= memory_.cache().sinkRoom();
    row = !lost && hides ? static_cast<int32_t>(fed_.row) : -1;
  }
  if (row < 0 || ahead_) {
    return -1;
  }
  hidden_row_ = -1;
  setLogits(at_.has_logits != 0 &&
            logits_row_ == 0);  // a guess overwrites the rows after the first
  return row;
}

// All guesses of a draft model use the place of the chosen token, whose key and value are not there yet. Their attention
// leaves out that place. A prediction block stores a key and a value of each, at the places of the next tokens.
void Stepper::fillGuess(int32_t id, uint32_t index, uint32_t row) const {
  void* const step = context_.executor->step();
  fillHeader(step, 1, 1);
  memory_.fillToken(step, 0, at_.position, at_.position + (predicts() ? index : 0), id, 0);
  const StepBlock block(step);
  block.header().tail = index == 0   ? row
                        : predicts() ? HiddenRows{context_.plan->chunk_tokens}.guess()
                                     : 0;
  block.token(0).place = context_.plan->draft_place;
  if (predicts()) {
    hideUnfed(index);
    return;
  }
  for (uint32_t view = 0; view < context_.model->n_views; ++view) {
    View& seen = block.view(0, view);
    uint32_t& own = seen.count != 0 ? seen.count : seen.n_sinks;
    own -= own != 0 ? 1 : 0;
  }
}

// A guess sees no tokens before fed_.from.
void Stepper::hideUnfed(uint32_t index) const {
  View& seen = StepBlock(context_.executor->step()).view(0, 0);
  const uint64_t first = at_.position + index + 1 - seen.count;
  if (fed_.from == 0) {
    return;
  }
  seen.n_sinks = 0;
  if (fed_.from > first) {
    const uint64_t hidden = fed_.from - first;
    seen.begin = static_cast<uint32_t>((seen.begin + hidden) % seen.ring);
    seen.count -= static_cast<uint32_t>(hidden);
  }
}

Status Stepper::guess(int32_t id, uint32_t index, uint32_t row, ModelGuess* guess) {
  fillGuess(id, index, row);
  ORIEL_TRY(context_.executor->run(StepRun::kDraft));
  const TopTokens& top = context_.executor->top()[context_.plan->draft_place];
  if (top.count == 0) {
    return kOk;  // its logits contain no number
  }
  *guess = {static_cast<int32_t>(top.best[0].id), ModelDrafter::surenessOf(shareOfBest(top))};
  return kOk;
}

// ---- One step of several sessions ----------------------------------------------------------------

Status Stepper::fillJoined(void* block, uint32_t row, int32_t id, bool ahead) {
  if (row_cache.active()) {
    ORIEL_TRY(row_cache.fill(&id, 1, context_.log,
                             context_.executor->rowsOfStep(context_.plan->file_rows.place), row));
  }
  // The session must be the same on devices that run ahead.
  memory_.willStore(at_.position + (ahead ? 2 : 1));
  memory_.fillToken(block, row, at_.position, at_.position, id, row);
  return kOk;
}

Status Stepper::endJoined(int32_t id, const Status& status, bool ahead) {
  if (!status.ok()) {
    setLogits(at_.has_logits != 0 && endedInBody(status));
    at_.unfinished = status.lost() ? id : -1;
    return status;
  }
  ++call_.counts.submissions;
  has_top_ = true;
  at_.has_logits = 1;
  logits_row_ = top_row_ = 0;
  commit(&id, 1, !ahead);
  return kOk;
}

}  // namespace oriel_internal
