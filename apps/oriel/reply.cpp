#include "reply.h"

#include <algorithm>

#include "interrupt.h"
#include "report.h"
#include "system.h"

namespace cli {
namespace {

int onToken(const oriel_token_event* event, void* user) {
  auto* reply = static_cast<Reply*>(user);
  const std::string_view text(event->text, event->text_bytes);
  reply->ids.push_back(event->id);
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
  reply->ids.clear();
  reply->result = {};
  reply->result.struct_size = sizeof(reply->result);
  const oriel_status status = call(session.get(), &options, onToken, reply, &reply->result);
  reply->cancelled = status == ORIEL_ERROR_CANCELLED;
  if (!reply->cancelled) {
    session.check(status, Diagnostics::Blame::kOptions);
  }
  // The rest of an unfinished character comes as one more event of the last token.
  reply->ids.resize(std::min<size_t>(reply->ids.size(), reply->result.tokens));
  print("");  // throws if the callback could not write
}

}  // namespace

void generate(const Session& session, const oriel_generate_options& options, Reply* reply) {
  run(oriel_session_generate, session, options, reply);
}

void chatReply(const Session& session, const oriel_generate_options& options, Reply* reply) {
  run(oriel_chat_reply, session, options, reply);
}

Json replyFields(const Reply& reply, const oriel_stats& stats) {
  Json json;
  json["text"] = reply.text;
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
