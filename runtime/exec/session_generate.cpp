// The part of a session that writes replies.
#include <algorithm>

#include "exec/session.h"
#include "os/os.h"

namespace oriel_internal {

void Session::startReply(const GenerateSettings& settings, const ReplyPlace& place) {
  reply_stop_ = -1;
  sampler_.start(settings.sampling);
  reply_text_.start(settings.stop, settings.n_stop);
  reply_parts_.start({context_.forms, settings.reads_calls, place.inside_thought, place.tools},
                     settings.on_part, settings.part_user);
  // A device that goes ahead cannot know the mask of a token that is not chosen yet.
  reads_logits_ = settings.logprobs || settings.constrained;
  if (settings.constrained) {
    ConstrainedStart start;
    start.trigger = settings.trigger;
    start.trigger_bytes = settings.trigger_bytes;
    start.again = settings.trigger_again;
    start.inside_thought = place.inside_thought;
    start.may_think = place.may_think;
    start.extra_stop = place.stop_id;
    start.forms = context_.forms;
    constrained_->start(start);
  } else if (constrained_ != nullptr) {
    constrained_->stop();
  }
  if (settings.min_tokens == 0 || settings.ignore_stop) {
    return;  // nothing to hold back, or stop tokens are like any other
  }
  for (uint32_t i = 0; i < context_.model->n_vocab; ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (id == place.stop_id || context_.tokenizer->isStop(id)) {
      sampler_.holdBack(id);
    }
  }
  sampler_.hold(true);
}

// From the best tokens alone where they are enough.
// Those only a step of this session writes.
Status Session::choose(const GenerateSettings& settings, int32_t* id) {
  const TopTokens* const top = context_.executor->top() + context_.index + top_row_;
  if (has_top_ && !settings.logprobs && sampler_.suffices(*top)) {
    *id = sampler_.sample(*top);
  } else {
    const DeviceTurn turn(context_.share, context_.index, DeviceShare::Claim::kBrief);
    ORIEL_TRY(turn.status());
    const float* logits = nullptr;
    ORIEL_TRY(ownLogits(&logits));
    *id = sampler_.sample(logits);
    if (settings.logprobs && *id != Sampler::kNone) {
      logprobs_.compute(logits, context_.model->n_vocab, *id, settings.top_logprobs);
    }
  }
  return *id != Sampler::kNone
             ? kOk
             : context_.log.fail(ORIEL_ERROR_ARGUMENT,
                                 "no token may come next, all are forbidden: forbid fewer");
}

// The reader of parts sees control tokens, too: they stand around what it tells apart.
ReplyText::Shown Session::pushToken(int32_t id, bool may_stop) {
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

bool Session::endsReply(const ReplyCall& call, int32_t id) const {
  return !call.settings.ignore_stop && (id == call.place.stop_id || context_.tokenizer->isStop(id));
}

// A token that the constraint allows. *complete: none may come, the reply is over.
Status Session::chooseConstrained(const ReplyCall& call, int32_t* id, bool* complete) {
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

// Whether the app wants no more. `logprobs`: null for what is no token of its own.
bool Session::show(const ReplyCall& call, int32_t id, const ReplyText::Shown& shown,
                   const Logprobs* logprobs) {
  oriel_token_event event = {id, shown.text, shown.bytes, 0, 0, nullptr};
  if (logprobs != nullptr) {
    event.logprob = logprobs->chosen();
    event.top_count = logprobs->topCount();
    event.top = logprobs->top();
  }
  return call.on_token != nullptr && call.on_token(&event, call.user) != 0;
}

// One token: chosen and shown. Unless it goes on, the reply is over.
Status Session::chooseToken(ReplyCall* call) {
  const GenerateSettings& settings = call->settings;
  oriel_generation* const result = call->result;
  call->goes_on = false;
  bool complete = false;
  Status status = betweenSteps();
  if (status.ok()) {
    status = settings.constrained ? chooseConstrained(*call, &call->id, &complete)
                                  : choose(settings, &call->id);
  }
  if (!status.ok()) {
    result->stop_reason =
        status.code() == ORIEL_ERROR_CANCELLED ? ORIEL_STOP_CANCELLED : result->stop_reason;
    return status;
  }
  if (complete || endsReply(*call, call->id)) {
    reply_stop_ = complete ? call->place.stop_id : call->id;
    result->stop_reason = ORIEL_STOP_TOKEN;
    return kOk;
  }
  ORIEL_TRY(readAhead(&call->id, 1));  // a token is not handed out that cannot be gone on from
  if (result->tokens++ == 0) {
    call->first_ms = nowMs();
    result->time_to_first_token_ms = at_.prompt_ms + call->first_ms - call->begin_ms;
  }
  const bool may_end = result->tokens >= settings.min_tokens;
  sampler_.hold(!may_end);
  const ReplyText::Shown shown = pushToken(call->id, may_end);
  const bool shown_enough = show(*call, call->id, shown, settings.logprobs ? &logprobs_ : nullptr);
  const bool stop = shown_enough || reply_parts_.stopped();
  complete = settings.constrained && constrained_->ended();
  call->ends = shown.stopped ? ORIEL_STOP_TEXT
               : stop        ? ORIEL_STOP_CALLBACK
               : complete    ? ORIEL_STOP_TOKEN  // as if one that ends it had come
                             : ORIEL_STOP_LENGTH;
  call->last = call->ends != ORIEL_STOP_LENGTH || result->tokens == settings.max_tokens;
  call->goes_on = true;
  return kOk;
}

// The step of the token that was shown is done: what ended the reply is part of the session.
void Session::endStep(ReplyCall* call, Status status) {
  call->status = status;
  call->over = call->last || !status.ok();
  if (status.ok() && call->last) {
    call->result->stop_reason = call->ends;
  }
}

// Of calls that go on, each of a session of its own.
void Session::step(ReplyCall* const* calls, uint32_t count) {
  if (count == 1 && !calls[0]->session->sharesDevice()) {
    ReplyCall* const call = calls[0];
    call->session->endStep(call, call->session->decode(call->id, call->tokensLeft()));
    return;
  }
  DecodeRequest requests[kMaxSessions];
  for (uint32_t i = 0; i < count; ++i) {
    requests[i].session = calls[i]->session;
    requests[i].index = calls[i]->session->context_.index;
    requests[i].id = calls[i]->id;
    requests[i].more = !calls[i]->last;
  }
  calls[0]->session->context_.share->decode(requests, count);
  for (uint32_t i = 0; i < count; ++i) {
    Session* const session = calls[i]->session;
    session->endStep(calls[i], session->endJoined(requests[i]));
  }
}

Status Session::beginReply(ReplyCall* call) {
  if (!at_.has_logits) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "there is nothing to continue: append a prompt first");
  }
  call->session = this;
  call->begin_ms = nowMs();
  call->result->prompt_tokens = at_.prompt_tokens;
  call->result->prompt_tokens_evicted =
      static_cast<uint32_t>(evictedOf(at_.position - std::min<uint64_t>(at_.position, at_.prompt_tokens)));
  call->result->stop_reason = ORIEL_STOP_LENGTH;
  startReply(call->settings, call->place);
  drafter_.begin(call->settings.drafts);
  call->drafts = drafter_.counts();
  return kOk;
}

void Session::generateTogether(ReplyCall* const* calls, uint32_t count) {
  ReplyCall* going[kMaxSessions];
  uint32_t n_going = 0;
  do {
    n_going = 0;
    for (uint32_t i = 0; i < count; ++i) {
      ReplyCall* const call = calls[i];
      if (call->over) {
        continue;
      }
      call->status = call->session->chooseToken(call);
      call->over = !call->goes_on;
      if (call->goes_on) {
        going[n_going++] = call;
      } else {
        call->status = call->session->endReply(*call);
      }
    }
    if (n_going != 0) {
      step(going, n_going);
    }
    for (uint32_t i = 0; i < n_going; ++i) {
      if (going[i]->over) {
        going[i]->status = going[i]->session->endReply(*going[i]);
      }
    }
  } while (n_going != 0);
}

Status Session::generate(const GenerateSettings& settings, const ReplyPlace& place,
                         oriel_token_fn on_token, void* user, oriel_generation* result) {
  ReplyCall call(settings, on_token, user, result);
  call.place = place;
  ORIEL_TRY(beginReply(&call));
  ReplyCall* const calls[] = {&call};
  generateTogether(calls, 1);
  return call.status;
}

Status Session::endReply(const ReplyCall& call) {
  if (context_.share != nullptr) {
    context_.share->leave(context_.index);
  }
  Status status = call.status.code() != ORIEL_ERROR_CANCELLED ? call.status : Status(kOk);
  if (status.ok()) {
    status = dropAhead();
  }
  if (status.ok()) {
    status = settleLogits();
  }
  if (!status.ok()) {
    guesses_ = {};
    keepCutText(status);
    return status;
  }
  oriel_generation* const result = call.result;
  result->tokens_drafted = static_cast<uint32_t>(drafter_.counts().drafted - call.drafts.drafted);
  result->tokens_accepted =
      static_cast<uint32_t>(drafter_.counts().accepted - call.drafts.accepted);
  const ReplyText::Shown rest = reply_text_.finish(result->tokens >= call.settings.min_tokens);
  transcript_.extend(rest.text, rest.bytes);
  // Who said stop is not called again.
  if (result->stop_reason != ORIEL_STOP_CALLBACK) {
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
    // A step follows every token, the last one as well.
    result->decode_tokens_per_s = result->tokens / ((nowMs() - call.first_ms) / 1000.0);
  }
  at_.prompt_tokens = 0;
  at_.prompt_ms = 0;
  return call.status;
}

}  // namespace oriel_internal
