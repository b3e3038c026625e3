#include "exec/session_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "exec/cache_bytes.h"
#include "exec/snapshot.h"
#include "plan/memory_layout.h"

namespace oriel_internal {

SessionMemory::SessionMemory(const SessionContext& context, Conversation* at, RunningCall* call,
                             const TokenIds& token_ids, StateSlots* state_slots,
                             AdapterUse* adapter_use, PictureStore* picture_rows,
                             uint64_t* rope_steps, void* workspace, uint64_t first_position,
                             bool evicts_turns)
    : ids(token_ids),
      states(state_slots),
      adapters(adapter_use),
      pictures(picture_rows),
      whole_turns(evicts_turns),
      context_(context),
      at_(*at),
      call_(*call),
      cache_(sessionCache(context.plan->cache, context.index)),
      window_(cache_),
      rotations_(rotationTables(*context.model)),
      workspace_(workspace) {
  const ModelDesc& model = *context.model;
  const auto init = [&](const RopeTable& rope, RopePhases* table) {
    table->init(rope.theta, rope.dims, rope.divisors, rope.magnitude, rope_steps);
    rope_steps += rope.dims / 2;
  };
  init(model.mainRope(uint64_t{cache_.sinks} + cache_.window), &phases[kMainRope]);
  if (model.usesRope(kSlidingRope)) {
    init(model.ropes[kSlidingRope], &phases[kSlidingRope]);
  }
  if (states != nullptr) {
    states->init(context.plan->cache.checkpoints, context.plan->cache.stateDrafts());
  }
  at_ = Conversation::empty(first_position, cache_.sinks);
  layOut();
}

// ---- The conversation's share of the slots -------------------------------------------------------

void SessionMemory::layOut() {
  cache_.setSinks(at_.sinks);
  cache_.recalled = at_.recalled;
  ids.layOut(cache_);
  const ModelDesc& model = *context_.model;
  window_ = SlidingWindow(cache_);
  for (uint32_t view = 0; view < model.n_views; ++view) {
    const CacheShape shape = viewShape(model.views[view], cache_);
    windows_[view] = SlidingWindow(shape);
    first_slots_[view] = shape.first_ring;
  }
}

void SessionMemory::stand() {
  layOut();
  if (states != nullptr) {
    states->restart(at_.position);
  } else {
    at_.base = 0;
    at_.stale = 0;
  }
}

// ---- Visible tokens ------------------------------------------------------------------------------

// The first token visible to token t if whole turns are evicted. While all tokens are visible, it does not round to
// whole turns.
uint64_t SessionMemory::floorOf(uint64_t t) const {
  const uint64_t oldest = window_.oldest(t);
  const bool evicted = oldest > cache_.sinks;
  const uint64_t floor = evicted && whole_turns ? at_.turns.firstSeen(oldest, cache_.window) : 0;
  // A token that is read again sees the same tokens as before later turns began.
  const uint64_t carried = t >= at_.carried.seen_from ? at_.carried.seen_from : 0;
  return std::max({floor > t ? oldest : floor, baseOf(t), carried});
}

// The view of token t in a step after `begin` tokens.
View SessionMemory::viewOf(uint32_t view, uint64_t t, uint64_t floor, uint64_t begin) const {
  switch (context_.model->views[view].kind) {
    case ViewKind::kSession:
      if (context_.model->views[view].parts == 0) {
        return window_.view(t, floor);
      }
      [[fallthrough]];
    case ViewKind::kSliding:
      // No layer sees tokens that were evicted to keep turns whole. The end of its own window is the layer's limit.
      return windows_[view].view(
          t, floor > window_.oldest(t) ? floor : std::max(baseOf(t), at_.carried.held_from));
    case ViewKind::kColumns:
      return windows_[view].view(t, baseOf(t));
    case ViewKind::kText:
      break;  // fillText()
    case ViewKind::kState: {
      View state = states->view(begin != at_.position, t - begin);
      state.first = first_slots_[view];
      return state;
    }
  }
  return {};
}

// ---- Steps ---------------------------------------------------------------------------------------

void SessionMemory::commit(const int32_t* read, uint32_t count, bool kept) {
  if (states != nullptr) {
    states->commit(at_.position, kept);
  }
  if (!call_.replays) {
    const uint32_t step = TokenIds::kBegins | (count > 1 ? TokenIds::kBatch : 0);
    for (uint32_t i = 0; i < count; ++i) {
      ids.set(at_.position + i, read[i], i == 0 ? step : 0);
    }
  }
  at_.position += count;
  if (states != nullptr && !call_.replays && at_.position >= at_.base &&
      states->isDue(at_.position)) {
    keepState(false);
  }
}

void SessionMemory::willStore(uint64_t end, uint32_t state_rows) {
  at_.stored = std::max(at_.stored, end);
  blank = false;
  if (states != nullptr) {
    states->writing(state_rows);
  }
}

void SessionMemory::fillToken(void* step, uint32_t row, uint64_t begin, uint64_t t, int32_t id,
                              uint32_t output, uint32_t ahead) const {
  const uint32_t n_views = context_.model->n_views;
  const StepBlock block(step);
  const uint64_t floor = floorOf(t);
  // A picture's row has the id of the padding token, for its per-layer inputs.
  const bool is_row = TokenIds::isRow(id);
  block.token(row) = {is_row ? 0u : static_cast<uint32_t>(id), context_.index, output,
                      is_row ? kPicturePlace + row : context_.index};
  for (uint32_t view = 0; view < n_views; ++view) {
    block.view(row, view) = viewOf(view, t, floor, begin);
    if (context_.model->views[view].kind == ViewKind::kSliding) {
      block.view(row, view).count += ahead;
    }
  }
  float* const tables =
      block.floats(stepRotationWord(context_.plan->chunk_tokens, n_views, rotations_.words, row));
  const uint64_t index = SlidingWindow::sinkQueryIndex(block.view(row, 0));
  if (pictures != nullptr && pictures->input().in_dimensions) {
    fillDimensions(t, index, tables);
  } else {
    fillRotations(t, index, tables);
  }
  for (uint32_t i = 0; adapters != nullptr && i < context_.model->adapters->n_gates; ++i) {
    tables[rotations_.gates + i] = adapters->at(context_.model->adapters->gates[i], t);
  }
}

// Every text has slots of its own, like each of several sessions.
void SessionMemory::fillText(void* step, const TextOfStep& text, uint32_t index, uint32_t place,
                             int32_t id) const {
  const ModelDesc& model = *context_.model;
  const StepBlock block(step);
  const uint32_t row = text.first + place;
  block.token(row) = {static_cast<uint32_t>(id), index, 0, place < text.second ? 0u : 1u};
  for (uint32_t v = 0; v < model.n_views; ++v) {
    const uint32_t reach = model.views[v].window != 0 ? model.views[v].window : text.tokens;
    const uint32_t begin = place > reach ? place - reach : 0;
    const uint32_t end = model.causal ? place + 1 : std::min(text.tokens, place + reach + 1);
    View& view = block.view(row, v);
    view = {};
    view.slot = place;
    view.begin = begin;
    view.count = end - begin;
    view.ring = text.tokens;
    view.first = text.first;
    view.all_ring = cache_.ring;
  }
  fillRotations(place, place,
                block.floats(stepRotationWord(context_.plan->chunk_tokens, model.n_views,
                                              rotations_.words, row)));
}

// All tables of token t, with place `index` in the cache.
void SessionMemory::fillRotations(uint64_t t, uint64_t index, float* tables) const {
  const ModelDesc& model = *context_.model;
  if (rotations_.gates == 0) {
    return;
  }
  const uint64_t position = at_.first_position + t;
  const RotationTables::Of& main = rotations_.ropes[kMainRope];
  double temperature = 1;
  if (model.query_temperature != 0) {
    const double stretches = std::floor(static_cast<double>(index) / model.temperature_tokens);
    temperature += model.query_temperature * std::log(stretches + 1);
    phases[kMainRope].rotations(position, tables + main.queries, temperature);
  }
  phases[kMainRope].rotations(position, tables + main.keys);
  phases[kMainRope].rotations(at_.first_position + index, tables + main.sinks, temperature);
  if (model.usesRope(kSlidingRope)) {
    phases[kSlidingRope].rotations(position, tables + rotations_.ropes[kSlidingRope].keys);
  }
}

// The same with positions in three dimensions. Sinks and retrieved tokens have the distance that they would have without
// the other evicted tokens.
void SessionMemory::fillDimensions(uint64_t t, uint64_t index, float* tables) const {
  const RotationTables::Of& main = rotations_.ropes[kMainRope];
  const uint32_t pairs = context_.model->ropes[kMainRope].dims / 2;
  const PicturePosition at = pictures->positionOf(t);
  const uint32_t recalled = t < cache_.sinks ? 0 : at_.recalled;
  const uint64_t evicted = t - index + recalled;
  const uint64_t gap = positionOf(cache_.sinks + evicted) - positionOf(cache_.sinks) -
                       (recalled != 0 ? recalled - at_.recalled_shared : 0);
  WipedArray<float, kMaxHeadDim> turned;
  for (uint32_t dimension = 0; dimension < 3; ++dimension) {
    const uint64_t position = at_.first_position + at.of[dimension];
    for (const bool of_sinks : {false, true}) {
      float* const table = tables + (of_sinks ? main.sinks : main.keys);
      phases[kMainRope].rotations(of_sinks && evicted != 0 ? position - gap : position, turned);
      for (uint32_t i = 0; i < pairs; ++i) {
        if (pictures->dimensions()[i] == dimension) {
          std::copy_n(turned + 2 * i, 2, table + 2 * i);
        }
      }
    }
  }
}

SessionView SessionMemory::view() const {
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
  view.first_stored = held().first;
  view.turn_count = at_.turns.count();
  view.window_used = at_.position == 0 ? 0 : SlidingWindow::visible(viewOf(at_.position - 1));
  return view;
}

// ---- Held tokens ---------------------------------------------------------------------------------

bool SessionMemory::knows(uint64_t begin, uint64_t end) const {
  const HeldTokens held = this->held();
  if (begin == end) {
    return true;
  }
  bool known = held.has(begin) && held.endOfRun(begin) >= end;
  for (uint64_t t = begin; t < end && known; ++t) {
    known = canRead(t);
  }
  return known;
}

bool SessionMemory::canRead(uint64_t t) const {
  const int32_t id = ids.at(t);
  return TokenIds::isRow(id) ? pictures != nullptr && pictures->holds(TokenIds::rowOf(id))
                             : id != TokenIds::kUnknown;
}

// ---- Going back ----------------------------------------------------------------------------------

bool SessionMemory::holdsWhatIsSeenAt(uint64_t position) const {
  const ModelDesc& model = *context_.model;
  bool holds = reaches(position) &&
               ((states != nullptr && !model.attends()) || window_.canRewind(at_.stored, position));
  for (uint32_t view = 1; view < model.n_views; ++view) {
    holds = holds && (model.views[view].kind == ViewKind::kState ||
                      windows_[view].canRewind(at_.stored, position));
  }
  return holds;
}

// True if the limits of a carried-over conversation allow this position.
bool SessionMemory::reaches(uint64_t position) const {
  return position >= at_.carried.least || position == 0 ||
         (states == nullptr && onlySinksSee(position));
}

bool SessionMemory::onlySinksSee(uint64_t position) const {
  const ModelDesc& model = *context_.model;
  bool only = position <= cache_.sinks;
  for (uint32_t view = 1; view < model.n_views; ++view) {
    const ViewKind kind = model.views[view].kind;
    only = only && (kind == ViewKind::kState || kind == ViewKind::kSession);
  }
  return only;
}

// True if the tokens after the state of `tokens` tokens can be read again. Requires more than 0 tokens.
bool SessionMemory::usable(uint64_t tokens) const {
  return tokens >= at_.base && holdsWhatIsSeenAt(tokens);
}

uint64_t SessionMemory::stateBefore(uint64_t position) const {
  if (position == at_.position && !at_.stale) {
    return position;
  }
  uint64_t found = StateSlots::kNone;
  states->forEachBefore(at_.position, [&](uint64_t tokens) {
    // The first state is the one after the prefix, or before the first token.
    const uint64_t origin = context_.prefixTokens();
    const bool is_state = tokens != 0 ? usable(tokens) : position == origin || at_.base == 0;
    const uint64_t at = std::max(tokens, origin);
    if (at <= position && is_state && knows(at, position)) {
      found = at;
    }
    return found != StateSlots::kNone;
  });
  return found;
}

WayBack SessionMemory::wayBack(uint64_t position) const {
  WayBack way;
  way.holds = holdsWhatIsSeenAt(position);
  if (states == nullptr) {
    way.how = way.holds ? WayBack::How::kAtOnce : WayBack::How::kNone;
    return way;
  }
  way.from = stateBefore(position);
  const bool anew = at_.base != 0 && position >= at_.base && knows(at_.base, position);
  way.how = way.from == position            ? WayBack::How::kAtOnce
            : way.from != StateSlots::kNone ? WayBack::How::kFromState
            : anew                          ? WayBack::How::kAnew
                                            : WayBack::How::kNone;
  return way;
}

Status SessionMemory::refuse(uint64_t position) const {
  if (states != nullptr) {
    uint64_t least = StateSlots::kNone;
    if (at_.base != 0 && knows(at_.base, at_.position)) {
      least = at_.base;
    } else {
      states->forEachBefore(at_.position, [&](uint64_t tokens) {
        least = tokens != 0 && usable(tokens) ? tokens : least;
        return false;
      });
    }
    char way[64] = "";
    if (least != StateSlots::kNone) {
      std::snprintf(way, sizeof(way), "go back to token %llu at most, or ",
                    static_cast<unsigned long long>(least));
    }
    return context_.log.fail(
        ORIEL_ERROR_CONTEXT,
        "cannot go back from token %llu to %llu, the states before it are gone: %sreset",
        static_cast<unsigned long long>(at_.position), static_cast<unsigned long long>(position),
        way);
  }
  const uint64_t slack = uint64_t{cache_.ring} - cache_.window + 1;
  const uint64_t taken = std::min(at_.stored - at_.position, slack);
  const uint64_t most =
      std::min(slack - taken, at_.position - std::min(at_.position, at_.carried.least));
  return context_.log.fail(
      ORIEL_ERROR_CONTEXT,
      "cannot go back from token %llu to %llu, the tokens before it are gone: go "
      "back %llu tokens at most, or reset",
      static_cast<unsigned long long>(at_.position), static_cast<unsigned long long>(position),
      static_cast<unsigned long long>(most));
}

void SessionMemory::keepState(bool start) {
  if (states != nullptr && !at_.stale) {
    states->keep(at_.position, start, [this](uint64_t tokens) { return usable(tokens); });
  }
}

// ---- Bytes ---------------------------------------------------------------------------------------

// If there are several sessions, only this session's pieces.
Status SessionMemory::forget(bool written) {
  const Plan& plan = *context_.plan;
  const bool shares = context_.prefixTokens() != 0;
  BufferRef* const pieces = static_cast<BufferRef*>(workspace_);
  constexpr size_t kMost = kSessionWorkspaceBytes / sizeof(BufferRef);
  size_t count = kMost + 1;
  if (written) {
    writtenPieces(plan, *context_.model, cache_, at_.stored, pieces, kMost, &count);
  }
  if (count > kMost && plan.sessionCount() == 1 && !shares) {
    return context_.executor->forget();
  }
  if (count > kMost) {
    sessionPieces(plan, *context_.model, cache_, !shares, pieces, kMost, &count);
  }
  return count <= kMost ? context_.executor->forget(pieces, count)
                        : context_.log.fail(ORIEL_ERROR_INTERNAL,
                                            "a session of %zu pieces: please report it", count);
}

Status SessionMemory::copyPrefix(bool to_prefix) {
  const Plan& plan = *context_.plan;
  CacheShape beside = sessionCache(plan.cache, plan.sessionCount());
  beside.sinks = cache_.sinks;
  MemoryCopy what;
  what.from = to_prefix ? cache_ : beside;
  what.to = to_prefix ? beside : cache_;
  what.tokens = {0, 0, to_prefix ? at_.position : context_.prefixTokens()};
  what.from_state = to_prefix && states != nullptr ? states->current() : 0;
  what.beside_sinks = true;
  return copyMemory(plan, *context_.model, what, workspace_, kSessionWorkspaceBytes,
                    context_.executor);
}

Status SessionMemory::copyFrom(const SessionMemory& other) {
  const Plan& plan = *context_.plan;
  const HeldTokens held = other.held();
  MemoryCopy what;
  what.from = other.cache_;
  what.to = cache_;
  what.tokens = {held.sinks + other.at_.recalled, held.first, held.position};
  what.sinks = !cache_.sharesSinks();
  what.from_state = other.states != nullptr ? other.states->current() : 0;
  blank = false;
  ORIEL_TRY(copyMemory(plan, *context_.model, what, workspace_, kSessionWorkspaceBytes,
                       context_.executor));
  if (other.at_.has_logits) {
    const CopyPiece logits = {logitsPlace(plan, other.context_.index),
                              logitsPlace(plan, context_.index)};
    ORIEL_TRY(context_.executor->copy(&logits, 1));
  }
  const auto takeId = [&](uint64_t t) { ids.set(t, other.ids.at(t), other.ids.marks(t)); };
  for (uint64_t t = 0; t < held.sinks; ++t) {
    takeId(t);
  }
  for (uint64_t t = held.first; t < held.position; ++t) {
    takeId(t);
  }
  return kOk;
}

}  // namespace oriel_internal
