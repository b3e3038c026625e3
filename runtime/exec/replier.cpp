#include "exec/replier.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "os/os.h"

namespace oriel_internal {

Replier::Replier(const SessionContext& context, Conversation* at, SessionMemory* memory,
                 Stepper* stepper, Feeder* feeder, Transcript* transcript, Sampler* sampler,
                 const Drafter& drafter, ConstrainedReply* constrained)
    : context_(context),
      at_(*at),
      memory_(*memory),
      stepper_(*stepper),
      feeder_(*feeder),
      transcript_(*transcript),
      sampler_(*sampler),
      drafter_(drafter),
      constrained_(constrained) {}

void Replier::reset(bool wipes) {
  drafter_.restart();
  guesses_ = {};
  if (!wipes) {
    return;
  }
  drafter_.forget();
  model_drafter_.forget();
  sampler_.forget();
  reply_text_.forget();
  reply_parts_.forget();
  logprobs_.forget();
  if (constrained_ != nullptr) {
    constrained_->forget();
  }
}

void Replier::writeAgain(uint64_t begin, uint64_t end) {
  reply_text_.start(nullptr, 0);
  for (uint64_t t = begin; t < end; ++t) {
    const ReplyText::Shown shown =
        reply_text_.push(context_.tokenizer->piece(memory_.ids.at(t), false), false);
    transcript_.extend(shown.text, shown.bytes);
  }
  const ReplyText::Shown rest = reply_text_.finish(false);
  transcript_.extend(rest.text, rest.bytes);
}

void Replier::start(const GenerateSettings& settings, const ReplyPlace& place) {
  reply_stop_ = -1;
  sampler_.start(settings.sampling);
  reply_text_.start(settings.stop, settings.n_stop);
  thought_cap_.start(settings.max_thought_tokens);
  reply_parts_.start(
      {context_.forms, settings.reads_calls, place.thought != nullptr, place.thought, place.tools},
      {settings.on_part, settings.part_user, settings.value_parts}, thought_cap_.active());
  // A device that runs ahead cannot know the mask for a token that is not chosen yet.
  reads_logits_ = settings.logprobs || settings.constrained || settings.on_logits != nullptr;
  if (settings.constrained) {
    ConstrainedStart start;
    start.trigger = settings.trigger;
    start.trigger_bytes = settings.trigger_bytes;
    start.again = settings.trigger_again;
    start.inside_thought = place.thought != nullptr;
    start.may_think = place.may_think && settings.max_thought_tokens != 0;
    start.extra_stop = place.stop_id;
    start.forms = context_.forms;
    constrained_->start(start);
  } else if (constrained_ != nullptr) {
    constrained_->stop();
  }
  if (settings.min_tokens == 0 || settings.ignore_stop) {
    return;  // no tokens to hold back, or stop tokens are normal tokens
  }
  for (uint32_t i = 0; i < context_.model->n_vocab; ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (id == place.stop_id || context_.tokenizer->isStop(id)) {
      sampler_.holdBack(id);
    }
  }
  sampler_.hold(true);
}

// The app changes a copy, while others may use the device. False: it wants no more tokens.
Status Replier::askForLogits(const ReplyCall& call, bool* wanted) {
  const GenerateSettings& settings = call.settings;
  const uint32_t n_vocab = context_.model->n_vocab;
  *wanted = true;
  if (settings.on_logits == nullptr) {
    return kOk;
  }
  {
    const DeviceTurn turn(context_.share, context_.index, DeviceShare::Claim::kBrief);
    ORIEL_TRY(turn.status());
    const float* logits = nullptr;
    ORIEL_TRY(stepper_.ownLogits(&logits));
    std::copy_n(logits, n_vocab, settings.step_logits);
  }
  oriel_step_logits step = {};
  step.struct_size = sizeof(step);
  step.logits = settings.step_logits;
  step.count = n_vocab;
  step.position = at_.position;
  step.tokens = call.result->tokens;
  *wanted = settings.on_logits(&step, settings.logits_user) == 0;
  for (uint32_t id = 0; id < n_vocab; ++id) {  // probabilities need differences
    settings.step_logits[id] = std::min(settings.step_logits[id], FLT_MAX);
  }
  return kOk;
}

// Uses only the best tokens if they suffice.
Status Replier::choose(const GenerateSettings& settings, int32_t* id) {
  const float* const changed = settings.step_logits;
  const TopTokens* const top = stepper_.top();
  if (changed != nullptr) {
    *id = sampler_.sample(changed);
    *id = *id != Sampler::kNone && changed[*id] > -INFINITY ? *id : Sampler::kNone;
  } else if (top != nullptr && !settings.logprobs && sampler_.suffices(*top)) {
    *id = sampler_.sample(*top);
  } else {
    const DeviceTurn turn(context_.share, context_.index, DeviceShare::Claim::kBrief);
    ORIEL_TRY(turn.status());
    const float* logits = nullptr;
    ORIEL_TRY(stepper_.ownLogits(&logits));
    *id = sampler_.sample(logits);
    if (settings.logprobs && *id != Sampler::kNone) {
      logprobs_.compute(logits, context_.model->n_vocab, *id, settings.top_logprobs);
    }
  }
  if (*id != Sampler::kNone) {
    return changed != nullptr ? computeLogprobs(settings, *id) : kOk;
  }
  return context_.log.fail(ORIEL_ERROR_ARGUMENT,
                           "no token may come next, all are forbidden: forbid fewer");
}

Status Replier::computeLogprobs(const GenerateSettings& settings, int32_t id) {
  if (!settings.logprobs) {
    return kOk;
  }
  const DeviceTurn turn(context_.share, context_.index, DeviceShare::Claim::kBrief);
  ORIEL_TRY(turn.status());
  const float* logits = nullptr;
  ORIEL_TRY(stepper_.ownLogits(&logits));
  logprobs_.compute(logits, context_.model->n_vocab, id, settings.top_logprobs);
  return kOk;
}

// The reader of parts also needs control tokens, which delimit the parts.
ReplyText::Shown Replier::pushToken(int32_t id, bool may_stop) {
  const Tokenizer::Piece text = context_.tokenizer->piece(id, false);
  const Tokenizer::Piece written = context_.tokenizer->piece(id, true);
  const bool is_mark = text.bytes == 0 && written.bytes != 0 && reply_parts_.wanted();
  const ReplyText::Shown shown =
      is_mark ? reply_text_.breakOff(may_stop) : reply_text_.push(text, may_stop);
  if (reply_parts_.wanted()) {
    reply_parts_.push(shown.text, shown.bytes);
    reply_parts_.push(written.data, is_mark && !shown.stopped ? written.bytes : 0);
  }
  transcript_.extend(shown.text, shown.bytes);
  return shown;
}

bool Replier::endsReply(const ReplyCall& call, int32_t id) const {
  return !call.settings.ignore_stop && (id == call.place.stop_id || context_.tokenizer->isStop(id));
}

// Chooses a token that the constraint allows. *complete: no token may follow, and the reply ends.
Status Replier::chooseConstrained(const ReplyCall& call, int32_t* id, bool* complete) {
  while (true) {
    *complete = constrained_->ended();
    if (*complete) {
      return kOk;
    }
    const bool stuck = constrained_->stuck();
    if (const Status spent = constrained_->constraint().spent(); !spent.ok()) {
      return spent.code() == ORIEL_ERROR_CANCELLED
                 ? spent
                 : context_.log.fail(
                       spent.code(),
                       "the text can be read in so many ways that the next token takes "
                       "more than %llu steps: let the alternatives of a rule begin "
                       "with different characters",
                       static_cast<unsigned long long>(kMostMaskSteps));
    }
    if (stuck) {
      return context_.log.fail(ORIEL_ERROR_UNSUPPORTED,
                               "the model has no token for what has to come next: let the schema "
                               "or the grammar have other characters");
    }
    sampler_.setMask(constrained_->mask());
    ORIEL_TRY(choose(call.settings, id));
    if (endsReply(call, *id) || constrained_->accept(*id)) {
      return kOk;
    }
    constrained_->forbid(*id);
  }
}

Status Replier::chooseEndOfThought(ReplyCall* call) {
  call->id = thought_cap_.next();
  thought_cap_.take();
  if (call->settings.constrained) {
    (void)constrained_->accept(call->id);  // within a thought any token is allowed
  }
  return computeLogprobs(call->settings, call->id);
}

Status Replier::chooseAny(ReplyCall* call, bool* complete) {
  return call->settings.constrained ? chooseConstrained(*call, &call->id, complete)
                                    : choose(call->settings, &call->id);
}

// A character that has begun belongs to the thought.
Status Replier::capThought() {
  if (!thought_cap_.active() || reply_text_.insideCharacter()) {
    return kOk;
  }
  Workspace workspace = feeder_.workspace();
  return thought_cap_.close(reply_parts_.reader(), *context_.tokenizer, &workspace);
}

// True if the app wants no more tokens. `logprobs`: null for text without a token of its own.
bool Replier::show(const ReplyCall& call, int32_t id, const ReplyText::Shown& shown,
                   const Logprobs* logprobs) {
  oriel_token_event event = {id, shown.text, shown.bytes, 0, 0, nullptr};
  if (logprobs != nullptr) {
    event.logprob = logprobs->chosen();
    event.top_count = logprobs->topCount();
    event.top = logprobs->top();
  }
  return call.on_token != nullptr && call.on_token(&event, call.user) != 0;
}

// Chooses and shows one token. Unless call->goes_on, the reply ends.
Status Replier::chooseToken(ReplyCall* call) {
  const GenerateSettings& settings = call->settings;
  oriel_generation* const result = call->result;
  call->goes_on = false;
  bool complete = false;
  bool wanted = true;
  const bool ends_thought = thought_cap_.next() >= 0;
  Status status = feeder_.betweenSteps();
  if (status.ok() && !ends_thought) {
    status = askForLogits(*call, &wanted);
  }
  if (status.ok() && !wanted) {
    result->stop_reason = ORIEL_STOP_CALLBACK;
    return kOk;
  }
  if (status.ok()) {
    status = ends_thought ? chooseEndOfThought(call) : chooseAny(call, &complete);
  }
  if (!status.ok()) {
    result->stop_reason =
        status.code() == ORIEL_ERROR_CANCELLED ? ORIEL_STOP_CANCELLED : result->stop_reason;
    return status;
  }
  if (complete || (!ends_thought && endsReply(*call, call->id))) {
    reply_stop_ = complete ? call->place.stop_id : call->id;
    result->stop_reason = ORIEL_STOP_TOKEN;
    return kOk;
  }
  ORIEL_TRY(stepper_.readAhead(&call->id, 1));  // reports errors before the app receives the token
  if (result->tokens++ == 0) {
    call->first_ms = nowMs();
    result->time_to_first_token_ms = at_.prompt_ms + call->first_ms - call->begin_ms;
  }
  feeder_.wrote();
  const bool may_end = result->tokens >= settings.min_tokens;
  sampler_.hold(!may_end);
  const ReplyText::Shown shown = pushToken(call->id, may_end);
  thought_cap_.count(reply_parts_.reader());
  ORIEL_TRY(capThought());
  const bool shown_enough = show(*call, call->id, shown, settings.logprobs ? &logprobs_ : nullptr);
  const bool stop = shown_enough || reply_parts_.stopped();
  complete = settings.constrained && constrained_->ended();
  call->ends = shown.stopped ? ORIEL_STOP_TEXT
               : stop        ? ORIEL_STOP_CALLBACK
               : complete    ? ORIEL_STOP_TOKEN  // as if an ending token had come
                             : ORIEL_STOP_LENGTH;
  call->last = call->ends != ORIEL_STOP_LENGTH || result->tokens == settings.max_tokens;
  call->goes_on = true;
  return kOk;
}

// Completes the step of the shown token: a token that ended the reply is part of the session.
void Replier::endStep(ReplyCall* call, Status status) {
  call->status = status;
  call->over = call->last || !status.ok();
  if (status.ok() && call->last) {
    call->result->stop_reason = call->ends;
  }
}

// Calls that continue, each of a different session.
void Replier::step(ReplyCall* const* calls, uint32_t count) {
  if (count == 1 && !calls[0]->replier->context_.sharesDevice()) {
    ReplyCall* const call = calls[0];
    call->replier->endStep(call, call->replier->decode(call->id, tokensLeft(*call)));
    return;
  }
  DecodeRequest requests[kMaxSessions];
  for (uint32_t i = 0; i < count; ++i) {
    requests[i].replier = calls[i]->replier;
    requests[i].index = calls[i]->replier->context_.index;
    requests[i].id = calls[i]->id;
    requests[i].more = !calls[i]->last;
  }
  calls[0]->replier->context_.share->decode(requests, count);
  for (uint32_t i = 0; i < count; ++i) {
    Replier* const replier = calls[i]->replier;
    replier->feeder_.worked(requests[i].ms);
    replier->endStep(calls[i], replier->stepper_.endJoined(requests[i].id, requests[i].status,
                                                           requests[i].ahead));
  }
}

// Tokens from `begin` on that are not visible to the latest token.
uint64_t Replier::evictedOf(uint64_t begin) const {
  if (at_.position == 0) {
    return 0;
  }
  const uint64_t sinks = std::min<uint64_t>(at_.position, memory_.cache().sinks);
  const uint64_t first = std::max(begin, sinks);
  const uint64_t seen = at_.position - memory_.viewOf(at_.position - 1).count;
  return seen - std::min(seen, first);
}

Status Replier::begin(ReplyCall* call) {
  if (at_.has_logits == 0) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "there is nothing to continue: append a prompt first");
  }
  call->replier = this;
  call->begin_ms = nowMs();
  call->result->prompt_tokens = at_.prompt_tokens;
  call->result->prompt_tokens_evicted = static_cast<uint32_t>(
      evictedOf(at_.position - std::min<uint64_t>(at_.position, at_.prompt_tokens)));
  call->result->stop_reason = ORIEL_STOP_LENGTH;
  start(call->settings, call->place);
  drafter_.begin(call->settings.drafts);
  call->drafts = drafter_.counts();
  return capThought();
}

void Replier::run(ReplyCall* const* calls, uint32_t count) {
  ReplyCall* going[kMaxSessions];
  uint32_t n_going = 0;
  do {
    n_going = 0;
    for (uint32_t i = 0; i < count; ++i) {
      ReplyCall* const call = calls[i];
      if (call->over) {
        continue;
      }
      call->status = call->replier->chooseToken(call);
      call->over = !call->goes_on;
      if (call->goes_on) {
        going[n_going++] = call;
      } else {
        call->status = call->replier->end(*call);
      }
    }
    if (n_going != 0) {
      step(going, n_going);
    }
    for (uint32_t i = 0; i < n_going; ++i) {
      if (going[i]->over) {
        going[i]->status = going[i]->replier->end(*going[i]);
      }
    }
  } while (n_going != 0);
}

// The app has received this text, although the device was lost before the step of the last token.
void Replier::keepCutText(const Status& status) {
  if (status.lost()) {
    const ReplyText::Shown rest = reply_text_.finish(false);
    transcript_.extend(rest.text, rest.bytes);
    reply_parts_.forget();
  }
}

Status Replier::end(const ReplyCall& call) {
  if (context_.share != nullptr) {
    context_.share->leave(context_.index);
  }
  Status status = call.status.code() != ORIEL_ERROR_CANCELLED ? call.status : Status(kOk);
  if (status.ok()) {
    status = stepper_.settle();
  }
  guesses_ = {};
  if (!status.ok()) {
    keepCutText(status);
    return status;
  }
  oriel_generation* const result = call.result;
  result->tokens_drafted = static_cast<uint32_t>(drafter_.counts().drafted - call.drafts.drafted);
  result->tokens_accepted =
      static_cast<uint32_t>(drafter_.counts().accepted - call.drafts.accepted);
  const ReplyText::Shown rest = reply_text_.finish(result->tokens >= call.settings.min_tokens);
  transcript_.extend(rest.text, rest.bytes);
  // A callback that returned stop is not called again.
  if (call.ends != ORIEL_STOP_CALLBACK) {
    if (rest.bytes != 0) {
      (void)show(call, call.id, rest, nullptr);
    }
    if (reply_parts_.wanted()) {
      reply_parts_.push(rest.text, rest.bytes);
      reply_parts_.finish();
    }
  }
  reply_parts_.forget();
  if (result->tokens > 1) {
    // A step follows every token, including the last one.
    result->decode_tokens_per_s = result->tokens / ((nowMs() - call.first_ms) / 1000.0);
  }
  at_.prompt_tokens = 0;
  at_.prompt_ms = 0;
  return call.status;
}

// True if the token after the next must be the best one.
// It may turn out to be a stop token, which is never fed. Its step has then overwritten the slot of the oldest token.
// With slack in the ring, only going back could have reached that slot. If the host must read data for the token, it
// must know the token first. Logits of a step that ran ahead are overwritten before the app could read them.
bool Replier::mayRunAhead() const {
  const Plan& plan = *context_.plan;
  return sampler_.takesTheBest() && !reads_logits_ && thought_cap_.next() < 0 &&
         memory_.cache().ring > memory_.cache().window && !plan.on_file.any();
}

// Runs the step of a chosen token, unless it is already done. The executor may have begun it. `wanted`: most tokens
// needed after it.
Status Replier::decode(int32_t id, uint32_t wanted) {
  const bool more = wanted != 0;
  // The session is the same with and without guesses.
  const uint64_t end = at_.position + 1 + (more && drafter_.active() ? drafter_.most() : 0);
  const bool ahead = more && mayRunAhead();
  Status status = kOk;
  if (!drafter_.active()) {
    status = stepper_.decode(id, ahead, ahead);
  } else if (!takeGuess(id, ahead)) {
    const DraftText text = draftText(id);
    const uint32_t room = std::min(wanted, context_.drafts);
    guesses_.count = drafter_.guess(text, room, guesses_.ids);
    if (guesses_.count == 0) {
      ORIEL_TRY(guessByModel(id, room));
    }
    const double begin_ms = nowMs();
    if (guesses_.count != 0 && !stepper_.isAhead()) {
      status = verify(id, ahead);
    } else {
      // Ask again for the next token.
      const bool waits =
          guesses_.count != 0 ||
          (hasDraftModel() && model_drafter_.pays(drafter_.cost(), room, drafter_.use()));
      guesses_.count = 0;
      status = stepper_.decode(id, ahead, ahead && !waits);
    }
    drafter_.took(1 + guesses_.count, nowMs() - begin_ms);
  }
  ORIEL_TRY(status);
  at_.stored = std::max(at_.stored, end);
  return kOk;
}

// True if the step of this token is done, because it was the next guess.
bool Replier::takeGuess(int32_t id, bool ahead) {
  drafter_.chosen(draftText(id));
  model_drafter_.chosen(id);
  if (guesses_.taken == guesses_.count || guesses_.ids[guesses_.taken] != id) {
    guesses_ = {};
    return false;
  }
  if (!stepper_.take(id, ++guesses_.taken, ahead)) {
    guesses_ = {};
    return false;
  }
  drafter_.accepted();
  return true;
}

// Runs the step of a token and of the guesses after it.
Status Replier::verify(int32_t id, bool ahead) {
  const uint32_t count = 1 + guesses_.count;
  int32_t ids[1 + Drafter::kMost] = {id};
  std::copy_n(guesses_.ids, guesses_.count, ids + 1);
  ORIEL_TRY(stepper_.verify(ids, count, ahead));
  drafter_.verified(guesses_.count);
  return kOk;
}

// Makes up to `room` guesses of the tokens after the chosen token `id`. The first uses the vector of the previous
// token, the others use vectors of guesses.
Status Replier::guessByModel(int32_t id, uint32_t room) {
  guesses_.count = 0;
  if (!hasDraftModel() || at_.position == 0) {
    return kOk;
  }
  const uint32_t wanted = model_drafter_.wanted(drafter_.cost(), room, drafter_.use());
  const int32_t first = wanted != 0 ? stepper_.takeHiddenRow() : -1;
  if (first < 0) {
    return kOk;
  }
  const double begin_ms = nowMs();
  WipedArray<ModelGuess, Drafter::kMost> made;
  uint32_t count = 0;
  for (; count < wanted; ++count) {
    const Status status = stepper_.guess(count == 0 ? id : made[count - 1].id, count,
                                         static_cast<uint32_t>(first), &made[count]);
    if (status.lost()) {
      at_.unfinished = id;
      return status;
    }
    if (!status.ok() || made[count].id < 0) {
      break;  // continue without guesses
    }
  }
  guesses_.count =
      model_drafter_.made(made, count, nowMs() - begin_ms, &drafter_.cost(), drafter_.use());
  for (uint32_t i = 0; i < guesses_.count; ++i) {
    guesses_.ids[i] = made[i].id;
  }
  return kOk;
}

// Leaves out rows of the block that cannot be filled. If experts could not be read for all rows, runs each row alone,
// because only some may need the missing experts.
void Replier::runTogether(DecodeRequest* const* requests, uint32_t count) {
  const SessionContext& context = requests[0]->replier->context_;
  const Stepper& first = requests[0]->replier->stepper_;
  void* const block = context.executor->step();
  DecodeRequest* filled[kMaxSessions];
  uint32_t n_filled = 0;
  first.fillHeader(block, count, count);
  for (uint32_t i = 0; i < count; ++i) {
    Replier& replier = *requests[i]->replier;
    requests[i]->ahead = requests[i]->more && replier.mayRunAhead();
    requests[i]->status =
        replier.stepper_.fillJoined(block, n_filled, requests[i]->id, requests[i]->ahead);
    if (requests[i]->status.ok()) {
      filled[n_filled++] = requests[i];
    }
  }
  if (n_filled == 0) {
    return;
  }
  first.fillHeader(block, n_filled, n_filled);
  const double begin = nowMs();
  const Status status = context.executor->run(n_filled == 1 ? StepRun::kDecode : StepRun::kBatch);
  const double ms = nowMs() - begin;
  for (uint32_t i = 0; i < n_filled; ++i) {
    filled[i]->status = status;
    filled[i]->ms = ms;
  }
  if (n_filled > 1 && endedInBody(status)) {
    for (uint32_t i = 0; i < n_filled; ++i) {
      runTogether(filled + i, 1);
    }
  }
}

}  // namespace oriel_internal
