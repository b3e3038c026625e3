#include "exec/session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/wipe.h"
#include "os/os.h"
#include "text/utf8.h"

namespace oriel_internal {

Session::Session(const SessionContext& context, uint64_t first_position, bool whole_turns,
                 uint64_t* rope_steps)
    : context_(context),
      cache_(sessionCache(context.plan->cache, context.index)),
      window_(cache_),
      rotations_(rotationTables(*context.model)),
      whole_turns_(whole_turns) {
  const ModelDesc& model = *context.model;
  at_ = Conversation::empty(first_position, cache_.sinks);
  layOut();
  const auto init = [&](const RopeTable& rope, RopePhases* phases) {
    phases->init(rope.theta, rope.dims, rope.divisors, rope.magnitude, rope_steps);
    rope_steps += rope.dims / 2;
  };
  init(model.mainRope(uint64_t{cache_.sinks} + cache_.window), &phases_[kMainRope]);
  if (model.usesRope(kSlidingRope)) {
    init(model.ropes[kSlidingRope], &phases_[kSlidingRope]);
  }
}

// Of the sinks there is room for, those that the conversation has.
void Session::layOut() {
  cache_.setSinks(at_.sinks);
  cache_.recalled = at_.recalled;
  ids_.layOut(cache_);
  const ModelDesc& model = *context_.model;
  window_ = SlidingWindow(cache_);
  for (uint32_t view = 0; view < model.n_views; ++view) {
    const CacheShape shape = viewShape(model.views[view], cache_);
    windows_[view] = SlidingWindow(shape);
    first_slots_[view] = shape.first_ring;
  }
}

// Those that a session begins with.
uint32_t Session::ownSinks() const {
  return prefixTokens() != 0 ? static_cast<uint32_t>(prefixTokens())
                             : cache_.sinkRoom() - context_.recall.tokens;
}

Session* Session::create(const SessionContext& context, uint64_t first_position, bool whole_turns,
                         Arena* arena) {
  static_assert(alignof(Session) <= Arena::kAlignment, "raise kAlignment");
  void* room = arena->take<uint8_t>(sizeof(Session));
  void* workspace = arena->take<uint8_t>(kSessionWorkspaceBytes);
  const ModelDesc& model = *context.model;
  const uint32_t sliding_dims = model.usesRope(kSlidingRope) ? model.ropes[kSlidingRope].dims : 0;
  uint64_t* rope_steps = arena->take<uint64_t>((model.ropes[kMainRope].dims + sliding_dims) / 2);
  Sampler sampler;
  sampler.init(context.model->n_vocab, arena);
  TokenIds ids;
  if (context.plan != nullptr) {  // else everything but them is measured
    int32_t* const shared = context.prefix != nullptr ? context.prefix->ids : nullptr;
    ids.init(sessionCache(context.plan->cache, context.index), shared, arena);
  }
  ConstrainedReply* const constrained =
      context.constraints
          ? ConstrainedReply::create(model.n_vocab, context.tokenizer, context.trie, arena)
          : nullptr;
  Drafter drafter;
  drafter.init(context.drafts, arena);
  Transcript transcript;
  transcript.init(context.transcript_bytes, arena);
  const RecallMemory recall = takeRecall(context.recall, model, arena);
  void* states = model.keepsStates() ? arena->take<StateSlots>(1) : nullptr;
  RowCache rows;
  if (context.file_rows != nullptr) {
    rows.init(*context.file_rows, *context.source, arena);
  }
  if (arena->measuring() || arena->exhausted()) {
    return nullptr;
  }
  Session* session = new (room) Session(context, first_position, whole_turns, rope_steps);
  session->workspace_block_ = workspace;
  session->sampler_ = sampler;
  session->sampler_.attach(&session->at_.sampler);
  session->ids_ = ids;
  session->transcript_ = transcript;
  session->rows_ = rows;
  session->drafter_ = drafter;
  session->constrained_ = constrained;
  if (recall.object != nullptr && session->cache_.window >= kLeastRecallWindow) {
    session->recall_ = new (recall.object) SessionRecall();
    session->recall_->settings = context.recall;
    session->recall_->room = recall.room;
    session->recall_->index = recall.index;
    session->recall_->queries = recall.queries;
    session->recall_->sums = recall.sums;
    session->recall_->queries_bytes = recall.queries_bytes;
    session->recall_->sums_bytes = recall.sums_bytes;
  }
  if (states != nullptr) {
    session->states_ = new (states) StateSlots();
    session->states_->init(context.plan->cache.checkpoints);
  }
  return session;
}

Status Session::forget() {
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  ORIEL_TRY(forgetMemory());  // what a lost device held the host still knows
  forgetOnHost();
  if (recall_ != nullptr) {
    recall_->file.close();
  }
  return kOk;
}

// One that is new has a file of what leaves its window, or is not made.
Status Session::reset(bool is_new) {
  ORIEL_TRY(forget());
  ORIEL_TRY(is_new ? openRecall(context_.log) : reopenRecall());
  return beginBehindPrefix();
}

void Session::forgetOnHost() {
  blank_ = true;
  stand(Conversation::empty(at_.first_position, cache_.sinkRoom() - context_.recall.tokens));
  clearRecall();
  ids_.forget(context_.prefix != nullptr && prefixTokens() == 0);
  rows_.forget();
  drafter_.forget();
  model_drafter_.forget();
  sampler_.forget();
  reply_text_.forget();
  reply_parts_.forget();
  logprobs_.forget();
  transcript_.forget();
  if (constrained_ != nullptr) {
    constrained_->forget();
  }
  wipe(workspace_block_, kSessionWorkspaceBytes);
}

// The memory holds this conversation.
void Session::stand(const Conversation& at) {
  at_ = at;
  layOut();
  if (states_ != nullptr) {
    states_->restart(at_.position);
  }
  drafter_.restart();
  guesses_ = {};
  ahead_ = has_top_ = false;
  logits_row_ = 0;
  hidden_row_ = -1;
}

Status Session::checkIds(const int32_t* ids, size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= context_.model->n_vocab) {
      return context_.log.fail(ORIEL_ERROR_ARGUMENT,
                               "token id %d is outside the vocabulary: use ids from 0 to %u",
                               ids[i], context_.model->n_vocab - 1);
    }
  }
  return kOk;
}

// The first token that token t sees because of turns. While everything is still seen there is nothing to round to
// whole turns.
uint64_t Session::floorOf(uint64_t t) const {
  const uint64_t oldest = window_.oldest(t);
  const bool evicted = oldest > cache_.sinks;
  const uint64_t floor = evicted && whole_turns_ ? at_.turns.firstSeen(oldest, cache_.window) : 0;
  // A token that is read again sees what it saw before later turns began.
  const uint64_t carried = t >= at_.carried.seen_from ? at_.carried.seen_from : 0;
  return std::max({floor > t ? oldest : floor, baseOf(t), carried});
}

// Of token t of a step that begins behind `begin` tokens.
View Session::viewOf(uint32_t view, uint64_t t, uint64_t floor, uint64_t begin) const {
  switch (context_.model->views[view].kind) {
    case ViewKind::kSession:
      if (context_.model->views[view].parts == 0) {
        return window_.view(t, floor);
      }
      [[fallthrough]];
    case ViewKind::kSliding:
      // What was given up for the sake of a whole turn is seen by no layer; the window's own end is theirs.
      return windows_[view].view(
          t, floor > window_.oldest(t) ? floor : std::max(baseOf(t), at_.carried.held_from));
    case ViewKind::kColumns:
      return windows_[view].view(t, baseOf(t));
    case ViewKind::kState: {
      View state = states_->view(begin != at_.position);
      state.first = first_slots_[view];
      return state;
    }
  }
  return {};
}

void Session::willStore(uint64_t end) {
  at_.stored = std::max(at_.stored, end);
  blank_ = false;
  if (states_ != nullptr) {
    states_->writing();
  }
}

void Session::fillStep(const int32_t* ids, uint32_t count, const Outputs& outputs) {
  willStore(at_.position + count);
  fillBlock(context_.executor->step(), at_.position, ids, count, outputs);
}

void Session::fillBlock(void* step, uint64_t position, const int32_t* ids, uint32_t count,
                        const Outputs& outputs) const {
  fillHeader(step, count, outputs.count);
  for (uint32_t i = 0; i < count; ++i) {
    fillToken(step, i, position, position + i, ids[i], outputs.first + i);
  }
}

void Session::fillHeader(void* step, uint32_t n_tokens, uint32_t n_outputs) const {
  const StepHeader header = {n_tokens, n_outputs, tokenWords(context_.model->n_views), 0, {}};
  std::memcpy(step, &header, sizeof(header));
}

// Token t of a step that begins behind `position` tokens, in a block with a header.
void Session::fillToken(void* step, uint32_t row, uint64_t position, uint64_t t, int32_t id,
                        uint32_t output) const {
  const uint32_t n_views = context_.model->n_views;
  const StepBlock block(step);
  const uint64_t floor = floorOf(t);
  block.token(row) = {static_cast<uint32_t>(id), context_.index, output, context_.index};
  for (uint32_t view = 0; view < n_views; ++view) {
    block.view(row, view) = viewOf(view, t, floor, position);
  }
  fillRotations(
      t, SlidingWindow::sinkQueryIndex(block.view(row, 0)),
      block.floats(stepRotationWord(context_.plan->chunk_tokens, n_views, rotations_.words, row)));
}

// All tables of token t, whose place in the cache is `index`.
void Session::fillRotations(uint64_t t, uint64_t index, float* tables) const {
  const ModelDesc& model = *context_.model;
  if (rotations_.words == 0) {
    return;
  }
  const uint64_t position = at_.first_position + t;
  const RotationTables::Of& main = rotations_.ropes[kMainRope];
  double temperature = 1;
  if (model.query_temperature != 0) {
    const double stretches = std::floor(static_cast<double>(index) / model.temperature_tokens);
    temperature += model.query_temperature * std::log(stretches + 1);
    phases_[kMainRope].rotations(position, tables + main.queries, temperature);
  }
  phases_[kMainRope].rotations(position, tables + main.keys);
  phases_[kMainRope].rotations(at_.first_position + index, tables + main.sinks, temperature);
  if (model.usesRope(kSlidingRope)) {
    phases_[kSlidingRope].rotations(position, tables + rotations_.ropes[kSlidingRope].keys);
  }
}

Status Session::submit(StepRun what, bool may_stop) {
  StopCheck stop;
  if (may_stop && !finishes_) {
    stop = stopCheck();
  }
  hidden_row_ = -1;
  ORIEL_TRY(context_.executor->run(what, stop));
  if (hasHead(what)) {
    has_top_ = true;
    top_row_ = 0;
    hidden_row_ = 0;
  }
  ++submissions_;
  return kOk;
}

// Rows of the text in hand that stay in the file: what can fail does so before the first step.
Status Session::readAhead(const int32_t* ids, size_t count) {
  return rows_.active() ? rows_.readAhead(ids, count, context_.log) : kOk;
}

// Those of a step, before anything else is done for it.
Status Session::fillRows(const int32_t* ids, uint32_t count) {
  return rows_.active() ? rows_.fill(ids, count, context_.log, context_.executor->fileRows()) : kOk;
}

// The token after the next must be the best one. It may turn out to be a stop token, which is never fed, but has
// taken the slot of the oldest token: with slack in the ring, one that only going back could have led to. Where the
// host has to read what the token needs, it must know the token. Logits of a step that goes ahead are gone before they
// could be read.
bool Session::mayRunAhead() const {
  const Plan& plan = *context_.plan;
  return sampler_.takesTheBest() && !reads_logits_ && cache_.ring > cache_.window &&
         !plan.on_file.any();
}

// The step of a token that was chosen, where it is not done yet; the executor may have begun it. `wanted`: so many tokens
// will be wanted behind it at most.
Status Session::decode(int32_t id, uint32_t wanted) {
  const bool more = wanted != 0;
  // Whatever is guessed: a session is the same.
  const uint64_t end = at_.position + 1 + (more && drafter_.active() ? drafter_.most() : 0);
  Status status = kOk;
  if (!drafter_.active()) {
    status = runStep(id, more);
  } else if (!takeGuess(id)) {
    const DraftText text = draftText(id);
    const uint32_t room = std::min(wanted, context_.drafts);
    guesses_.count = drafter_.guess(text, room, guesses_.ids);
    if (guesses_.count == 0) {
      ORIEL_TRY(guessByModel(id, room, &guesses_));
    }
    const double begin_ms = nowMs();
    if (guesses_.count != 0 && !ahead_) {
      status = verify(id);
    } else {
      // To be asked again for the next token.
      const bool waits =
          guesses_.count != 0 ||
          (hasDraftModel() && model_drafter_.pays(drafter_.cost(), room, drafter_.use()));
      guesses_.count = 0;
      status = runStep(id, more && !waits);
    }
    drafter_.took(1 + guesses_.count, nowMs() - begin_ms);
  }
  ORIEL_TRY(status);
  at_.stored = std::max(at_.stored, end);
  return kOk;
}

Status Session::runStep(int32_t id, bool more) {
  ORIEL_TRY(fillRows(&id, 1));
  const bool had_logits = keepsLogits();
  at_.has_logits = false;
  if (!ahead_) {
    fillStep(&id, 1, {0, 1});
  }
  more = more && mayRunAhead();
  // On devices that do not run ahead, too: a session is the same on all of them.
  at_.stored = std::max(at_.stored, at_.position + (more ? 2 : 1));
  const bool kept = !more;
  more = more && context_.executor->runsAhead();
  if (more || ahead_) {
    if (more) {
      const int32_t unknown = 0;
      fillBlock(context_.executor->aheadStep(), at_.position + 1, &unknown, 1, {0, 1});
    }
    ahead_ = false;
    const Status status = context_.executor->runAhead(&more);
    at_.unfinished = status.lost() ? id : -1;
    at_.has_logits = had_logits && endedInBody(status);
    ORIEL_TRY(status);
    ahead_ = more;
    has_top_ = true;
    top_row_ = 0;
    hidden_row_ = more ? -1 : 0;
    ++submissions_;
  } else {
    const Status status = submit(StepRun::kDecode, false);
    at_.unfinished = status.lost() ? id : -1;
    at_.has_logits = had_logits && endedInBody(status);
    ORIEL_TRY(status);
  }
  commit(&id, 1, kept);
  at_.has_logits = true;
  logits_row_ = 0;
  return kOk;
}

Status Session::dropAhead() {
  if (!ahead_) {
    return kOk;
  }
  ahead_ = false;
  return context_.executor->dropAhead();
}

// Nothing is on its way to the device then, nor does anything lie there that a step has begun.
Status Session::betweenSteps() {
  if (context_.guard != nullptr && context_.guard->wantsRest() && !finishes_) {
    ORIEL_TRY(dropAhead());
    ORIEL_TRY(settleLogits());
    context_.guard->rest(
        [](const void* self) { return static_cast<const Session*>(self)->calls_.cancelled(); },
        this);
  }
  ORIEL_TRY(checkCancelled());
  return saveBlocks();
}

// A call that was cancelled while it rested may have to undo what it did: nobody has the device until it may go on.
void Session::waitForDevice() const {
  if (context_.guard != nullptr && context_.guard->wantsRest() && !finishes_) {
    context_.guard->rest([](const void*) { return false; }, nullptr);
  }
}

// Logits go where the next token would be chosen. The best tokens are found in them again.
Status Session::leaveDevice() {
  if (at_.has_logits) {
    const float* values = nullptr;
    ORIEL_TRY(context_.plan->sessionCount() > 1
                  ? context_.executor->keptLogits(context_.index, &values)
                  : context_.executor->logits(logits_row_, &values));
    std::memcpy(sampler_.room(), values, sizeof(float) * context_.model->n_vocab);
  }
  has_top_ = false;
  guesses_ = {};
  hidden_row_ = -1;
  return kOk;
}

Status Session::enterDevice() {
  const Plan& plan = *context_.plan;
  const bool several = plan.sessionCount() > 1;
  const BufferRef& rows = several ? plan.kept_logits : plan.logits;
  const uint64_t row = several ? context_.index * (rows.size_bytes / plan.sessionCount()) : 0;
  const uint64_t bytes = at_.has_logits ? sizeof(float) * uint64_t{context_.model->n_vocab} : 0;
  const uint64_t most = plan.upload.size_bytes / 2;
  for (uint64_t done = 0; done < bytes; done += most) {
    const uint64_t piece_bytes = std::min(most, bytes - done);
    void* piece = nullptr;
    ORIEL_TRY(context_.executor->beginWrite(piece_bytes, &piece));
    std::memcpy(piece, static_cast<const uint8_t*>(sampler_.room()) + done,
                static_cast<size_t>(piece_bytes));
    ORIEL_TRY(context_.executor->endWrite(rows, row + done, piece_bytes));
  }
  logits_row_ = at_.has_logits ? 0 : logits_row_;
  return context_.executor->finishWrites();
}

// `kept`: nothing can have been begun behind these tokens.
void Session::commit(const int32_t* ids, uint32_t count, bool kept) {
  if (states_ != nullptr) {
    states_->commit(at_.position, kept);
  }
  remember(ids, count);
  at_.position += count;
  if (states_ != nullptr && !replays_ && at_.position >= at_.base &&
      states_->isDue(at_.position)) {
    keepState(false);
  }
}

// The tokens of a step.
void Session::remember(const int32_t* ids, uint32_t count) {
  const uint32_t step = TokenIds::kBegins | (count > 1 ? TokenIds::kBatch : 0);
  for (uint32_t i = 0; i < count; ++i) {
    if (!replays_) {
      ids_.set(at_.position + i, ids[i], i == 0 ? step : 0);
    }
    sampler_.accept(ids[i]);
  }
}

// Of a message that has just been read.
void Session::markTurn(uint64_t start) {
  at_.turns.mark(start);
  if (recall_ != nullptr) {
    recall_->index.markTurn(start);
  }
  ids_.addMark(at_.position - 1, TokenIds::kTurn);
}

SessionView Session::view() const {
  SessionView view = {};
  view.position = at_.position;
  view.sinks_used = static_cast<uint32_t>(std::min<uint64_t>(at_.position, cache_.sinks));
  view.first_visible = view.sinks_used;
  std::fill_n(view.group_first_visible, context_.model->n_views, at_.position);
  if (at_.position != 0) {
    const uint64_t t = at_.position - 1;
    view.first_visible = at_.position - viewOf(t).count;
    for (uint32_t v = 0; v < context_.model->n_views; ++v) {
      if (context_.model->views[v].kind != ViewKind::kState) {
        view.group_first_visible[v] = at_.position - viewOf(v, t, floorOf(t), at_.position).count;
      }
    }
  }
  view.first_stored =
      oriel_internal::heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from).first;
  view.turn_count = at_.turns.count();
  return view;
}

uint64_t Session::evictedOf(uint64_t begin) const {
  if (at_.position == 0) {
    return 0;
  }
  const uint64_t first = std::max<uint64_t>(begin, std::min<uint64_t>(at_.position, cache_.sinks));
  const uint64_t seen = at_.position - viewOf(at_.position - 1).count;
  return seen - std::min(seen, first);
}

bool Session::heldTokens(uint64_t first, int32_t* ids, uint64_t capacity, uint64_t* count) const {
  const HeldTokens held =
      oriel_internal::heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from);
  *count = 0;
  if (!held.has(first)) {
    return first == at_.position;
  }
  *count = held.endOfRun(first) - first;
  for (uint64_t i = 0; i < *count && *count <= capacity; ++i) {
    ids[i] = ids_.at(first + i);
  }
  return true;
}

Workspace Session::makeWorkspace() const {
  return Workspace(workspace_block_, kSessionWorkspaceBytes, context_.allocator);
}

// Where the next token would be chosen, until then.
const float* Session::copyOf(const float* logits) const {
  const size_t bytes = sizeof(float) * size_t{context_.model->n_vocab};
  return static_cast<const float*>(std::memcpy(sampler_.room(), logits, bytes));
}

// Where others use the device, too, the caller gets a copy.
Status Session::logits(const float** values) const {
  if (!at_.has_logits) {
    return context_.log.fail(ORIEL_ERROR_STATE, "there are no logits yet: append tokens first");
  }
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  ORIEL_TRY(ownLogits(values));
  if (sharesDevice()) {
    *values = copyOf(*values);
  }
  return kOk;
}

// After the last token: kept where there are other sessions. Valid as long as this one has the device.
Status Session::ownLogits(const float** values) const {
  return context_.plan->sessionCount() > 1 ? context_.executor->keptLogits(context_.index, values)
                                           : context_.executor->logits(logits_row_, values);
}

}  // namespace oriel_internal
