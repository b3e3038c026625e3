#include "serve/reply_writer.h"

namespace cli {

bool reachedLength(const ReplyOutcome& outcome) {
  return outcome.ended == Ended::kTimeout || outcome.result.stop_reason == ORIEL_STOP_LENGTH;
}

Json extraOf(const ReplyRequest& request, const ReplyOutcome& outcome) {
  Json extra;
  extra["window_used"] = outcome.stats.window_used;
  extra["window_capacity"] = outcome.stats.window_capacity;
  extra["evicted"] = outcome.stats.evicted;
  if (outcome.result.prompt_tokens_evicted != 0) {
    extra["prompt_tokens_evicted"] = outcome.result.prompt_tokens_evicted;
  }
  extra["time_to_first_token_ms"] = outcome.result.time_to_first_token_ms;
  extra["decode_tokens_per_s"] = outcome.result.decode_tokens_per_s;
  if (outcome.result.tokens_drafted != 0) {
    extra["tokens_drafted"] = outcome.result.tokens_drafted;
    extra["tokens_accepted"] = outcome.result.tokens_accepted;
  }
  if (outcome.load_ms != 0) {
    extra["load_ms"] = outcome.load_ms;
  }
  if (outcome.ended == Ended::kTimeout) {
    extra["timed_out"] = true;
  }
  if (!request.unchecked_tools.empty()) {
    extra["unchecked_tools"] = request.unchecked_tools;
  }
  if (!outcome.ignored_keywords.is_null()) {
    extra["ignored_keywords"] = outcome.ignored_keywords;
  }
  return extra;
}

}  // namespace cli
