// The part of a session that writes replies.
#include "exec/session.h"
#include "os/os.h"

namespace oriel {

void Session::startReply(const GenerateSettings& settings, const ReplyPlace& place) {
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
Status Session::choose(const GenerateSettings& settings, int32_t* id) {
  const TopTokens* const top = context_.executor->top() + context_.index;
  if (has_top_ && !settings.logprobs && sampler_.suffices(*top)) {
    *id = sampler_.sample(*top);
  } else {
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
    if (constrained_->stuck()) {
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

// One token: chosen, shown, and its step done. Says by the result's stop_reason and *ended whether it was the last, or
// would have been.
Status Session::generateToken(ReplyCall* call, int32_t* id, bool* ended) {
  const GenerateSettings& settings = call->settings;
  oriel_generation* const result = call->result;
  *ended = true;
  if (const Status status = betweenSteps(); !status.ok()) {
    result->stop_reason =
        status.code() == ORIEL_ERROR_CANCELLED ? ORIEL_STOP_CANCELLED : result->stop_reason;
    return status;
  }
  bool complete = false;
  ORIEL_TRY(settings.constrained ? chooseConstrained(*call, id, &complete) : choose(settings, id));
  if (complete || endsReply(*call, *id)) {
    reply_stop_ = complete ? call->place.stop_id : *id;
    result->stop_reason = ORIEL_STOP_TOKEN;
    return kOk;
  }
  ORIEL_TRY(readAhead(id, 1));  // a token is not handed out that cannot be gone on from
  if (result->tokens++ == 0) {
    call->first_ms = nowMs();
    result->time_to_first_token_ms = prompt_ms_ + call->first_ms - call->begin_ms;
  }
  const bool may_end = result->tokens >= settings.min_tokens;
  sampler_.hold(!may_end);
  const ReplyText::Shown shown = pushToken(*id, may_end);
  const bool shown_enough = show(*call, *id, shown, settings.logprobs ? &logprobs_ : nullptr);
  const bool stop = shown_enough || reply_parts_.stopped();
  complete = settings.constrained && constrained_->ended();
  *ended = shown.stopped || stop || complete || result->tokens == settings.max_tokens;
  // What ended the reply is part of the session.
  ORIEL_TRY(decode(*id, !*ended));
  if (shown.stopped || stop) {
    result->stop_reason = shown.stopped ? ORIEL_STOP_TEXT : ORIEL_STOP_CALLBACK;
  } else if (complete) {
    result->stop_reason = ORIEL_STOP_TOKEN;  // as if one that ends it had come
  }
  return kOk;
}

Status Session::generate(const GenerateSettings& settings, const ReplyPlace& place,
                         oriel_token_fn on_token, void* user, oriel_generation* result) {
  if (!has_logits_) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "there is nothing to continue: append a prompt first");
  }
  ReplyCall call = {settings, on_token, user, result, place, nowMs(), 0};
  result->prompt_tokens = prompt_tokens_;
  result->stop_reason = ORIEL_STOP_LENGTH;
  startReply(settings, place);
  Status status = kOk;
  int32_t id = -1;
  for (bool ended = false; !ended && status.ok();) {
    status = generateToken(&call, &id, &ended);
  }
  if (!status.ok() && status.code() != ORIEL_ERROR_CANCELLED) {
    return status;
  }
  ORIEL_TRY(dropAhead());
  const ReplyText::Shown rest = reply_text_.finish(result->tokens >= settings.min_tokens);
  transcript_.extend(rest.text, rest.bytes);
  // Who said stop is not called again.
  if (result->stop_reason != ORIEL_STOP_CALLBACK) {
    if (rest.bytes != 0) {
      (void)show(call, id, rest, nullptr);
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
  prompt_tokens_ = 0;
  prompt_ms_ = 0;
  return status;
}

}  // namespace oriel
