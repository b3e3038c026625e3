#include "reply.h"

#include <algorithm>

#include "interrupt.h"
#include "report.h"
#include "system.h"
#include "terminal.h"

namespace cli {
namespace {

struct Progress {
  Reply* reply;
  ThoughtSplitter splitter;
};

void showThought(const std::string& text, bool first) {
  tell((first ? dim("(thinking)") + "\n" : "") + dim(terminalSafe(text)));
}

int onToken(const oriel_token_event* event, void* user) {
  auto* progress = static_cast<Progress*>(user);
  Reply* const reply = progress->reply;
  reply->at_each_token();
  const auto [thought, text] =
      progress->splitter.feed(event->id, std::string_view(event->text, event->text_bytes));
  reply->ids.push_back(event->id);
  if (reply->wants_logprobs) {
    reply->logprobs.push_back(
        {event->id, event->logprob, {event->top, event->top + event->top_count}});
  }
  if (reply->shows_thoughts && !thought.empty()) {
    showThought(thought, reply->thought.empty());
  } else if (reply->shows_thoughts && !text.empty() && reply->text.empty() &&
             !reply->thought.empty()) {
    tell("\n\n");
  }
  reply->thought += thought;
  reply->text += text;
  if (!reply->streams || text.empty()) {
    return 0;
  }
  const bool shown = isTerminal(Stream::kOut) ? tryPrint(terminalSafe(text)) : tryPrint(text);
  return shown ? 0 : 1;
}

using Generate = decltype(&oriel_session_generate);

void run(Generate call, const Session& session, const oriel_generate_options& options,
         Reply* reply) {
  reply->text.clear();
  reply->thought.clear();
  reply->ids.clear();
  reply->logprobs.clear();
  reply->wants_logprobs = options.logprobs != 0;
  reply->result = {};
  reply->result.struct_size = sizeof(reply->result);
  Progress progress = {reply, ThoughtSplitter(reply->think_tags)};
  const oriel_status status = call(session.get(), &options, onToken, &progress, &reply->result);
  reply->cancelled = status == ORIEL_ERROR_CANCELLED;
  if (!reply->cancelled) {
    session.check(status, Diagnostics::Blame::kOptions);
  }
  // What was held back at the end comes as one more event of the last token.
  const size_t tokens = std::min<size_t>(reply->ids.size(), reply->result.tokens);
  reply->ids.resize(tokens);
  reply->logprobs.resize(std::min(reply->logprobs.size(), tokens));
  print("");  // throws if the callback could not write
}

}  // namespace

void generate(const Session& session, const oriel_generate_options& options, Reply* reply) {
  run(oriel_session_generate, session, options, reply);
}

void chatReply(const Session& session, const oriel_generate_options& options, Reply* reply) {
  run(oriel_chat_reply, session, options, reply);
}

namespace {

Json logprobFields(const std::vector<TokenLogprobs>& logprobs) {
  Json list = Json::array();
  for (const TokenLogprobs& token : logprobs) {
    Json top = Json::array();
    for (const oriel_token_logprob& likely : token.top) {
      top.push_back({likely.id, numberOf(likely.logprob)});
    }
    Json fields;
    fields["id"] = token.id;
    fields["logprob"] = numberOf(token.logprob);
    fields["top"] = std::move(top);
    list.push_back(std::move(fields));
  }
  return list;
}

}  // namespace

Json replyFields(const Reply& reply, const oriel_stats& stats) {
  Json json;
  json["text"] = reply.text;
  if (!reply.thought.empty()) {
    json["thought"] = reply.thought;
  }
  if (reply.wants_logprobs) {
    json["logprobs"] = logprobFields(reply.logprobs);
  }
  json["tokens"] = reply.result.tokens;
  json["prompt_tokens"] = reply.result.prompt_tokens;
  json["stop_reason"] = reply.cancelled ? "cancelled" : stopReasonName(reply.result.stop_reason);
  json["time_to_first_token_ms"] = reply.result.time_to_first_token_ms;
  json["decode_tokens_per_s"] = reply.result.decode_tokens_per_s;
  json["window_used"] = stats.window_used;
  json["window_capacity"] = stats.window_capacity;
  json["evicted"] = stats.evicted;
  return json;
}

}  // namespace cli
