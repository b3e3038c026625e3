#include "serve/block_writer.h"

#include "serve/message.h"

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

std::string serverEvent(const std::string& name, const Json& data) {
  return "event: " + name + "\ndata: " + dumped(data) + "\n\n";
}

void BlockWriter::send(const std::string& type, const std::string& text) {
  if (request().stream) {
    sends_ =
        sends_ && (exchange()->begun() || exchange()->beginStream(type)) && exchange()->write(text);
  }
}

void BlockWriter::beginOnce() {
  if (!begun_) {
    begun_ = true;
    begin();
  }
}

void BlockWriter::change(Block to, const std::string& name) {
  beginOnce();
  if (now_ == to && to != Block::kCall) {
    return;
  }
  if (now_ != Block::kNone) {
    close(now_, /*complete=*/now_ != Block::kCall);
  }
  now_ = to;
  if (to != Block::kNone) {
    open(to, name);
  }
}

bool BlockWriter::take(const oriel_part& part) {
  const std::string text(part.text, part.text_bytes);
  switch (part.kind) {
    case ORIEL_PART_TEXT:
    case ORIEL_PART_THOUGHT: {
      const Block block = part.kind == ORIEL_PART_TEXT ? Block::kText : Block::kThought;
      if (!text.empty()) {
        change(block, "");
        add(block, text);
      }
      break;
    }
    case ORIEL_PART_CALL_BEGUN:
      change(Block::kCall, text);
      held_ = request().isTextTool(text);
      input_.clear();
      break;
    case ORIEL_PART_CALL_ARGUMENTS:
      if (held_) {
        input_ += text;
      } else if (!text.empty()) {
        add(Block::kCall, text);
      }
      break;
    case ORIEL_PART_CALL_ENDED:
      if (held_) {
        add(Block::kCall, textToolInput(input_));
      }
      close(Block::kCall, /*complete=*/true);
      now_ = Block::kNone;
      return sends_ && request().several_calls;
    case ORIEL_PART_STRING:
    case ORIEL_PART_LITERAL:
    case ORIEL_PART_VALUE_ENDED:
      break;  // not asked for
  }
  return sends_;
}

/// Completions have no parts.
bool BlockWriter::takeToken(const oriel_token_event& event) {
  thought_tokens_ += now_ == Block::kThought ? 1 : 0;
  if (request().is_chat || event.text_bytes == 0) {
    return sends_;
  }
  change(Block::kText, "");
  add(Block::kText, std::string(event.text, event.text_bytes));
  return sends_;
}

ReplySink BlockWriter::sinkFor(uint32_t) {
  return {[this](const oriel_part& part) { return take(part); },
          [this](const oriel_token_event& event) { return takeToken(event); }};
}

void BlockWriter::endChoice(const ReplyOutcome& outcome, bool) {
  change(Block::kNone, "");
  finish(outcome);
}

void BlockWriter::endWith(const ApiError& error) {
  if (!request().stream) {  // a truncated reply must be visible as such
    exchange()->closeAfter();
    return;
  }
  sendFailure(error);
  exchange()->endStream();
}

}  // namespace cli
