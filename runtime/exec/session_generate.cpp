// The part of a session that writes replies.
#include "exec/session.h"
#include "os/os.h"

namespace oriel {

void Session::startReply(const GenerateSettings& settings, int32_t stop_id) {
  sampler_.start(settings.sampling);
  reply_text_.start(settings.stop, settings.n_stop);
  reads_logits_ = settings.logprobs;
  if (settings.min_tokens == 0 || settings.ignore_stop) {
    return;  // nothing to hold back, or stop tokens are like any other
  }
  for (uint32_t i = 0; i < context_.model->n_vocab; ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (id == stop_id || context_.tokenizer->isStop(id)) {
      sampler_.holdBack(id);
    }
  }
  sampler_.hold(true);
}

// From the best tokens alone where they are enough.
Status Session::choose(const GenerateSettings& settings, int32_t* id) {
  const TopTokens* const top = context_.executor->top();
  if (has_top_ && !settings.logprobs && sampler_.suffices(*top)) {
    *id = sampler_.sample(*top);
  } else {
    const float* logits = nullptr;
    ORIEL_TRY(context_.executor->logits(logits_row_, &logits));
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
  if (const Status status = checkCancelled(); !status.ok()) {
    result->stop_reason = ORIEL_STOP_CANCELLED;
    return status;
  }
  ORIEL_TRY(choose(settings, id));
  if (!settings.ignore_stop && (*id == call->stop_id || context_.tokenizer->isStop(*id))) {
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
  const ReplyText::Shown shown = reply_text_.push(context_.tokenizer->piece(*id, false), may_end);
  const bool stop = show(*call, *id, shown, settings.logprobs ? &logprobs_ : nullptr);
  *ended = shown.stopped || stop || result->tokens == settings.max_tokens;
  // What ended the reply is part of the session.
  ORIEL_TRY(decode(*id, !*ended));
  if (shown.stopped || stop) {
    result->stop_reason = shown.stopped ? ORIEL_STOP_TEXT : ORIEL_STOP_CALLBACK;
  }
  return kOk;
}

Status Session::generate(const GenerateSettings& settings, oriel_token_fn on_token, void* user,
                         oriel_generation* result, int32_t stop_id) {
  if (!has_logits_) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "there is nothing to continue: append a prompt first");
  }
  ReplyCall call = {settings, on_token, user, result, stop_id, nowMs(), 0};
  result->prompt_tokens = prompt_tokens_;
  result->stop_reason = ORIEL_STOP_LENGTH;
  startReply(settings, stop_id);
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
  // Who said stop is not called again.
  if (rest.bytes != 0 && result->stop_reason != ORIEL_STOP_CALLBACK) {
    (void)show(call, id, rest, nullptr);
  }
  if (result->tokens > 1) {
    // A step follows every token, the last one as well.
    result->decode_tokens_per_s = result->tokens / ((nowMs() - call.first_ms) / 1000.0);
  }
  prompt_tokens_ = 0;
  prompt_ms_ = 0;
  return status;
}

}  // namespace oriel
