#include "exec/session.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "base/wipe.h"
#include "os/os.h"
#include "text/utf8.h"

namespace oriel {
namespace {

// Planned working memory for tokenising: ids on their way, the frame of a message, and one word of 1 KiB. A longer
// word borrows from the allocator.
constexpr size_t kWorkspaceBytes = 64 * 1024;
constexpr size_t kIdsAtOnce = 2048;
static_assert(kIdsAtOnce * sizeof(int32_t) + Tokenizer::workBytes(1024) + 8192 <= kWorkspaceBytes,
              "oriel.h says from what size on memory is borrowed");

}  // namespace

Session::Session(const SessionContext& context, uint64_t first_position, bool whole_turns)
    : context_(context),
      window_(context.plan->cache),
      local_window_(localShape(context.plan->cache, context.model->local_window)),
      has_local_(context.model->local_window != 0),
      first_position_(first_position),
      whole_turns_(whole_turns) {
  const ModelDesc& model = *context.model;
  const CacheShape& cache = context.plan->cache;
  const auto init = [&](const RopeTable& rope, RopePhases* phases) {
    phases->init(rope.theta, model.rope_dims, rope.divisors, rope.magnitude);
  };
  init(model.ropeFor(uint64_t{cache.sinks} + cache.window), &phases_);
  init(model.rope_local, &local_phases_);
}

Session* Session::create(const SessionContext& context, uint64_t first_position, bool whole_turns,
                         Arena* arena) {
  static_assert(alignof(Session) <= Arena::kAlignment, "raise kAlignment");
  void* room = arena->take<uint8_t>(sizeof(Session));
  void* workspace = arena->take<uint8_t>(kWorkspaceBytes);
  Sampler sampler;
  sampler.init(context.model->n_vocab, arena);
  TokenIds ids;
  if (context.plan != nullptr) {  // else everything but them is measured
    ids.init(context.plan->cache, arena);
  }
  if (arena->measuring() || arena->exhausted()) {
    return nullptr;
  }
  Session* session = new (room) Session(context, first_position, whole_turns);
  session->workspace_block_ = workspace;
  session->sampler_ = sampler;
  session->ids_ = ids;
  return session;
}

Status Session::reset() {
  ORIEL_TRY(context_.executor->forget());
  ahead_ = has_top_ = false;
  position_ = 0;
  last_token_ = -1;
  stored_ = 0;
  has_logits_ = false;
  reply_open_ = false;
  reply_begin_ = reply_end_ = 0;
  turn_open_ = system_joins_ = switched_thinking_ = false;
  prompt_tokens_ = 0;
  prompt_ms_ = 0;
  turns_.clear();
  ids_.forget();
  sampler_.forget();
  decoder_.forget();
  wipe(workspace_block_, kWorkspaceBytes);
  cancelled_.store(0, std::memory_order_relaxed);
  return kOk;
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

// While everything is still seen there is nothing to round to whole turns.
TokenStep Session::stepOf(uint64_t t) const {
  const uint64_t oldest = window_.oldest(t);
  const bool evicted = oldest > context_.plan->cache.sinks;
  const uint64_t floor =
      evicted && whole_turns_ ? turns_.firstSeen(oldest, context_.plan->cache.window) : 0;
  TokenStep step = window_.step(t, floor);
  if (has_local_) {
    // What was given up for the sake of a whole turn is seen by no layer; the window's own end is theirs.
    const TokenStep local = local_window_.step(t, floor > oldest ? floor : 0);
    step.local_slot = local.slot;
    step.local_begin = local.ring_begin;
    step.local_n_ring = local.n_ring;
  }
  return step;
}

bool Session::canRewind(uint64_t position) const {
  return window_.canRewind(stored_, position) &&
         (!has_local_ || local_window_.canRewind(stored_, position));
}

void Session::fillStep(const int32_t* ids, uint32_t count, uint32_t head_row) {
  stored_ = std::max(stored_, position_ + count);
  fillBlock(context_.executor->step(), position_, ids, count, head_row);
}

void Session::fillBlock(void* block, uint64_t position, const int32_t* ids, uint32_t count,
                        uint32_t head_row) const {
  const uint32_t rope_dims = context_.model->rope_dims;
  uint32_t* words = static_cast<uint32_t*>(block);
  const StepHeader header = {count, head_row, 0, 0, {}};
  std::memcpy(words, &header, sizeof(header));
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t t = position + i;
    TokenStep step = stepOf(t);
    step.token = static_cast<uint32_t>(ids[i]);
    std::memcpy(words + kStepHeaderWords + i * kTokenStepWords, &step, sizeof(step));
    float* rotations =
        reinterpret_cast<float*>(words) +
        stepRotationWord(context_.plan->chunk_tokens, rotationWords(rope_dims, has_local_), i);
    phases_.rotations(first_position_ + t, rotations);
    phases_.rotations(first_position_ + SlidingWindow::sinkQueryIndex(step),
                      rotations + kSinkTable * rope_dims);
    if (has_local_) {
      local_phases_.rotations(first_position_ + t, rotations + kLocalTable * rope_dims);
    }
  }
}

Status Session::submit(StepRun what, bool may_stop) {
  StopCheck stop;
  if (may_stop) {
    stop = {[](void* self) { return static_cast<Session*>(self)->takeCancel(); }, this};
  }
  ORIEL_TRY(context_.executor->run(what, stop));
  has_top_ = has_top_ || what != StepRun::kChunk;
  ++submissions_;
  return kOk;
}

// The token after the next must be the best one. It may turn out to be a stop token, which is never fed, but has
// taken the slot of the oldest token: with slack in the ring, one that only going back could have led to.
bool Session::mayRunAhead() const {
  const CacheShape& cache = context_.plan->cache;
  return sampler_.takesTheBest() && cache.ring > cache.window;
}

// The step of a token that was chosen; the executor may have begun it. `more`: another token will be wanted.
Status Session::decode(int32_t id, bool more) {
  has_logits_ = false;
  if (!ahead_) {
    fillStep(&id, 1, 0);
  }
  more = more && mayRunAhead();
  // On devices that do not run ahead, too: a session is the same on all of them.
  stored_ = std::max(stored_, position_ + (more ? 2 : 1));
  more = more && context_.executor->runsAhead();
  if (more || ahead_) {
    if (more) {
      const int32_t unknown = 0;
      fillBlock(context_.executor->aheadStep(), position_ + 1, &unknown, 1, 0);
    }
    ahead_ = false;
    ORIEL_TRY(context_.executor->runAhead(&more));
    ahead_ = more;
    has_top_ = true;
    ++submissions_;
  } else {
    ORIEL_TRY(submit(StepRun::kDecode, false));
  }
  commit(&id, 1);
  has_logits_ = true;
  return kOk;
}

Status Session::dropAhead() {
  if (!ahead_) {
    return kOk;
  }
  ahead_ = false;
  return context_.executor->dropAhead();
}

void Session::commit(const int32_t* ids, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    ids_.set(position_ + i, ids[i]);
    sampler_.accept(ids[i]);
  }
  position_ += count;
  last_token_ = ids[count - 1];
}

// From the best tokens alone where they are enough.
Status Session::choose(int32_t* id) {
  const TopTokens* const top = context_.executor->top();
  if (has_top_ && sampler_.suffices(*top)) {
    *id = sampler_.sample(*top);
    return kOk;
  }
  const float* logits = nullptr;
  ORIEL_TRY(context_.executor->logits(&logits));
  *id = sampler_.sample(logits);
  return kOk;
}

Status Session::rewind(uint64_t position) {
  if (position > position_) {
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT, "cannot go to token %llu, there are %llu so far: give an earlier one",
        static_cast<unsigned long long>(position), static_cast<unsigned long long>(position_));
  }
  if (!canRewind(position)) {
    const CacheShape& cache = context_.plan->cache;
    const uint64_t slack = uint64_t{cache.ring} - cache.window + 1;
    const uint64_t taken = std::min(stored_ - position_, slack);
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT,
        "cannot go back from token %llu to %llu, the tokens before it are gone: go "
        "back %llu tokens at most, or reset",
        static_cast<unsigned long long>(position_), static_cast<unsigned long long>(position),
        static_cast<unsigned long long>(slack - taken));
  }
  if (position != position_) {
    position_ = position;
    last_token_ = -1;
    has_logits_ = false;
    // Inside or right behind the latest reply its end is still to come.
    reply_open_ = position > reply_begin_ && position <= reply_end_;
    // Behind the system text, and behind the opening of a later turn that stands in for it.
    turn_open_ = system_joins_ && turns_.has(position);
    turns_.truncate(position);
    if (position == 0) {
      stored_ = 0;
      system_joins_ = switched_thinking_ = false;
    }
  }
  return kOk;
}

SessionState Session::state() const {
  SessionState state;
  state.position = position_;
  state.stored = stored_;
  state.first_position = first_position_;
  state.has_logits = has_logits_ ? 1 : 0;
  state.reply_open = reply_open_ ? 1 : 0;
  state.reply_begin = reply_begin_;
  state.reply_end = reply_end_;
  state.chat = (turn_open_ ? kTurnOpen : 0) | (system_joins_ ? kSystemJoins : 0) |
               (switched_thinking_ ? kSwitchedThinking : 0);
  state.sampler = sampler_.state();
  return state;
}

SnapshotKey Session::snapshotKey() const {
  const char* const chat = context_.chat.name();
  return {context_.model_hash,
          hashBytes(chat, std::strlen(chat),
                    layoutHash(*context_.plan, *context_.model, whole_turns_))};
}

uint64_t Session::snapshotBytes() const {
  return oriel::snapshotBytes(*context_.plan, context_.model->n_vocab, state(), turns_.count());
}

Status Session::save(void* out) const {
  return writeSnapshot(*context_.plan, context_.model->n_vocab, snapshotKey(), state(), turns_,
                       ids_, context_.executor, out);
}

Status Session::restore(const void* data, uint64_t bytes, const Log& log) {
  SessionState state;
  ORIEL_TRY(readSnapshot(*context_.plan, context_.model->n_vocab, snapshotKey(), data, bytes, log,
                         context_.executor, &state, &turns_, &ids_));
  position_ = state.position;
  last_token_ = -1;
  stored_ = state.stored;
  first_position_ = state.first_position;
  has_logits_ = state.has_logits != 0;
  has_top_ = false;
  reply_open_ = state.reply_open != 0;
  reply_begin_ = state.reply_begin;
  reply_end_ = state.reply_end;
  turn_open_ = (state.chat & kTurnOpen) != 0;
  system_joins_ = (state.chat & kSystemJoins) != 0;
  switched_thinking_ = (state.chat & kSwitchedThinking) != 0;
  sampler_.restore(state.sampler);
  prompt_tokens_ = 0;
  prompt_ms_ = 0;
  return kOk;
}

oriel_view Session::view() const {
  const CacheShape& cache = context_.plan->cache;
  oriel_view view = {};
  view.struct_size = sizeof(view);
  view.position = position_;
  view.sinks_used = static_cast<uint32_t>(std::min<uint64_t>(position_, cache.sinks));
  view.first_visible = view.sinks_used;
  view.local_first_visible = position_;
  if (position_ != 0) {
    const TokenStep newest = stepOf(position_ - 1);
    view.first_visible = position_ - newest.n_ring;
    view.local_first_visible = position_ - newest.local_n_ring;
  }
  view.first_stored = oriel::heldTokens(cache, position_, stored_).first;
  view.turn_count = turns_.count();
  return view;
}

bool Session::heldTokens(uint64_t first, int32_t* ids, uint64_t capacity, uint64_t* count) const {
  const HeldTokens held = oriel::heldTokens(context_.plan->cache, position_, stored_);
  *count = 0;
  if (!held.has(first)) {
    return first == position_;
  }
  *count = held.endOfRun(first) - first;
  for (uint64_t i = 0; i < *count && *count <= capacity; ++i) {
    ids[i] = ids_.at(first + i);
  }
  return true;
}

Status Session::append(const int32_t* ids, size_t count) {
  ORIEL_TRY(checkIds(ids, count));
  return appendIds(ids, count, true);
}

// Unless a text `ends` with these ids, they are whole chunks and more follow: what a text is cut into does not
// depend on how it comes.
Status Session::appendIds(const int32_t* ids, size_t count, bool ends) {
  const double begin_ms = nowMs();
  const uint32_t chunk = context_.plan->chunk_tokens;
  for (size_t done = 0; done < count;) {
    ORIEL_TRY(checkCancelled());
    const uint32_t n = static_cast<uint32_t>(std::min<size_t>(count - done, chunk));
    const bool last = ends && done + n == count;
    const bool had_logits = has_logits_;
    has_logits_ = false;
    fillStep(ids + done, n, n - 1);
    const StepRun what = n == 1 ? StepRun::kDecode : last ? StepRun::kChunkHead : StepRun::kChunk;
    const Status status = submit(what, true);
    has_logits_ = had_logits && status.code() == ORIEL_ERROR_CANCELLED;
    ORIEL_TRY(status);
    commit(ids + done, n);
    has_logits_ = last;
    done += n;
    prompt_tokens_ += n;
  }
  prompt_ms_ += nowMs() - begin_ms;
  return kOk;
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
  return appendEncoded(parts, options, &workspace);
}

Workspace Session::makeWorkspace() const {
  return Workspace(workspace_block_, kWorkspaceBytes, context_.allocator);
}

/// Hands ids to the session while a text is being encoded.
class Session::Feed final : public TokenSink {
 public:
  explicit Feed(Session* session) : session_(session) {}
  Status take(const int32_t* ids, size_t count, bool last) override {
    return session_->appendIds(ids, count, last);
  }
  bool stops() override { return session_->takeCancel(); }

 private:
  Session* session_;
};

// A text of any length, some ids at a time. What may fail for lack of memory does so before the first of them.
Status Session::appendEncoded(const TextParts& text, const EncodeOptions& options,
                              Workspace* workspace) {
  const Tokenizer& tokenizer = *context_.tokenizer;
  const uint32_t chunk = context_.plan->chunk_tokens;
  const size_t capacity = kIdsAtOnce / chunk * chunk;
  const BorrowedBytes ids(workspace, capacity * sizeof(int32_t));
  Feed feed(this);
  size_t bytes = 0;
  if (tokenizer.idsAtMost(text.bytes()) >= capacity) {
    ORIEL_TRY(tokenizer.encodeBytes(text, options, workspace, context_.log, &feed, &bytes));
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
  return tokenizer.encodeParts(text, options, borrows ? &own : workspace, context_.log,
                               ids.as<int32_t>(), capacity, &feed);
}

Status Session::evaluate(const int32_t* ids, size_t count, oriel_logits_fn on_logits, void* user) {
  ORIEL_TRY(checkIds(ids, count));
  const uint32_t chunk = context_.plan->chunk_tokens;
  const uint32_t n_vocab = context_.model->n_vocab;
  for (size_t done = 0; done < count;) {
    ORIEL_TRY(checkCancelled());
    const uint32_t n = static_cast<uint32_t>(std::min<size_t>(count - done, chunk));
    has_logits_ = false;
    bool stop = false;
    uint32_t shown = 0;
    for (; shown < n && !stop; ++shown) {
      const uint32_t row = shown;
      if (row != 0) {
        ORIEL_TRY(checkCancelled());
      }
      fillStep(ids + done, n, row);
      ORIEL_TRY(submit(n == 1     ? StepRun::kDecode
                       : row == 0 ? StepRun::kChunkHead
                                  : StepRun::kHead,
                       row == 0));
      const float* logits = nullptr;
      ORIEL_TRY(context_.executor->logits(&logits));
      stop = on_logits(done + row, logits, n_vocab, user) != 0;
    }
    commit(ids + done, n);
    has_logits_ = shown == n;  // else they are those of an earlier token
    done += n;
    if (stop) {
      return kOk;
    }
  }
  return kOk;
}

Status Session::logits(const float** values) const {
  if (!has_logits_) {
    return context_.log.fail(ORIEL_ERROR_STATE, "there are no logits yet: append tokens first");
  }
  return context_.executor->logits(values);
}

Status Session::generate(const SamplerOptions& sampling, uint32_t max_tokens, bool ignore_stop,
                         oriel_token_fn on_token, void* user, oriel_generation* result,
                         int32_t stop_id) {
  if (!has_logits_) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "there is nothing to continue: append a prompt first");
  }
  const double begin_ms = nowMs();
  double first_ms = 0;
  result->prompt_tokens = prompt_tokens_;
  result->stop_reason = ORIEL_STOP_LENGTH;
  sampler_.start(sampling);
  decoder_.reset(false);

  const auto emit = [&](int32_t id, const char* text, size_t bytes) {
    const oriel_token_event event = {id, text, bytes};
    return on_token != nullptr && on_token(&event, user) != 0;
  };
  Status status = kOk;
  int32_t id = -1;
  while (max_tokens == 0 || result->tokens < max_tokens) {
    status = checkCancelled();
    if (!status.ok()) {
      result->stop_reason = ORIEL_STOP_CANCELLED;
      break;
    }
    ORIEL_TRY(choose(&id));
    if (!ignore_stop && (id == stop_id || context_.tokenizer->isStop(id))) {
      result->stop_reason = ORIEL_STOP_TOKEN;
      break;
    }
    if (result->tokens++ == 0) {
      first_ms = nowMs();
      result->time_to_first_token_ms = prompt_ms_ + first_ms - begin_ms;
    }
    const char* text = nullptr;
    size_t bytes = 0;
    decoder_.push(context_.tokenizer->piece(id, false), &text, &bytes);
    const bool stop = emit(id, text, bytes);
    const bool more = !stop && (max_tokens == 0 || result->tokens < max_tokens);
    ORIEL_TRY(decode(id, more));
    if (stop) {
      result->stop_reason = ORIEL_STOP_CALLBACK;
      break;
    }
  }
  ORIEL_TRY(dropAhead());
  const char* text = nullptr;
  size_t bytes = 0;
  decoder_.finish(&text, &bytes);
  if (bytes != 0 &&
      result->stop_reason != ORIEL_STOP_CALLBACK) {  // who said stop is not called again
    emit(id, text, bytes);
  }
  if (result->tokens > 1) {
    // A step follows every token, the last one as well.
    result->decode_tokens_per_s = result->tokens / ((nowMs() - first_ms) / 1000.0);
  }
  prompt_tokens_ = 0;
  prompt_ms_ = 0;
  return status;
}

// Half a message must not stay behind a failure. One that is longer than the ring's slack does: what
// was evicted for it is gone.
Status Session::takeBackUnless(Status done, uint64_t begin, const SamplerState& before) {
  if (!done.ok() && position_ != begin && canRewind(begin)) {
    prompt_tokens_ -= static_cast<uint32_t>(position_ - begin);
    const bool turn_open = turn_open_;
    ORIEL_TRY(rewind(begin));
    turn_open_ = turn_open;
    sampler_.restore(before);
  }
  return done;
}

}  // namespace oriel
