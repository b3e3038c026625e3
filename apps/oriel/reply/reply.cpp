#include "reply/reply.h"

#include <algorithm>

#include "output.h"
#include "report.h"
#include "system.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

bool show(Reply* reply, std::string_view text) {
  if (!reply->streams || text.empty()) {
    return true;
  }
  return tryPrint(reply->view ? reply->view->take(terminalSafe(text)) : std::string(text));
}

/// Shows the text that the view held back.
bool showRest(Reply* reply) { return !reply->view || tryPrint(reply->view->end()); }

void showThought(Reply* reply, std::string_view text) {
  if (!reply->thought_view) {
    reply->thought_view.emplace(ReplyLook{reply->look.wraps, false}, noteColumns,
                                takesStyles(Stream::kErr) ? "2" : "");
    tell(dim("(thinking)") + "\n");
  }
  tell(reply->thought_view->take(terminalSafe(text)));
}

/// On its own line, even after part of an answer.
void showCall(const Reply& reply, const ToolCall& call) {
  const bool in_line = !reply.parts.text.empty() && reply.parts.text.back() != '\n';
  tellText((in_line ? "\n" : "") + dim(oneLine("calls " + call.name + " " + call.arguments)) +
           "\n");
}

/// Call before the part is appended.
void showWork(Reply* reply, const oriel_part& part) {
  const bool thought = !reply->parts.thought.empty();
  const bool begun = !reply->parts.text.empty() || !reply->parts.calls.empty();
  if (part.kind == ORIEL_PART_THOUGHT) {
    showThought(reply, {part.text, part.text_bytes});
  } else if (thought && !begun && reply->thought_view) {
    tell(reply->thought_view->end() + "\n\n");
  }
  if (part.kind == ORIEL_PART_CALL_ENDED) {
    (void)showRest(reply);
    showCall(*reply, reply->parts.calls.back());
  }
}

int onPart(const oriel_part* part, void* user) {
  auto* reply = static_cast<Reply*>(user);
  if (reply->shows_work) {
    showWork(reply, *part);
  }
  reply->parts.add(*part);
  const bool is_text = part->kind == ORIEL_PART_TEXT;
  return is_text && !show(reply, {part->text, part->text_bytes}) ? 1 : 0;
}

int takeToken(const oriel_token_event& event, Reply* reply) {
  reply->at_each_token();
  reply->ids.push_back(event.id);
  if (reply->wants_logprobs) {
    reply->logprobs.push_back({event.id, event.logprob, {event.top, event.top + event.top_count}});
  }
  return 0;
}

int onToken(const oriel_token_event* event, void* user) {
  return takeToken(*event, static_cast<Reply*>(user));
}

int onTextToken(const oriel_token_event* event, void* user) {
  auto* reply = static_cast<Reply*>(user);
  (void)takeToken(*event, reply);
  const std::string_view text(event->text, event->text_bytes);
  reply->parts.text += text;
  return show(reply, text) ? 0 : 1;
}

/// Throws unless it succeeded; errors of a schema or a grammar name its file.
void checkReply(const Session& session, oriel_status status, const Reply& reply) {
  if (status != ORIEL_OK && !reply.form_file.empty()) {
    const std::string reason = session.reason(status);
    const bool is_form =
        reason.find("schema") != std::string::npos || reason.find("grammar") != std::string::npos;
    if (is_form) {
      throw Failure{kExitFailed, reply.form_file + ": " + reason};
    }
  }
  session.check(status, Diagnostics::Blame::kOptions);
}

using Generate = decltype(&oriel_session_generate);

void run(Generate call, const Session& session, const oriel::ReplyOptions& options,
         oriel_token_fn on_token, Reply* reply) {
  reply->parts = {};
  reply->ids.clear();
  reply->logprobs.clear();
  reply->result = ORIEL_INIT(oriel_generation);
  reply->view.reset();
  reply->thought_view.reset();
  if (reply->streams && isTerminal(Stream::kOut)) {
    reply->look.markdown = reply->look.markdown && takesStyles(Stream::kOut);
    reply->view.emplace(reply->look, resultColumns);
  }
  const oriel_status status = session.cancellable(
      [&] { return call(session.get(), &options, on_token, reply, &reply->result); });
  reply->cancelled = status == ORIEL_ERROR_CANCELLED;
  if (reply->thought_view && reply->parts.text.empty() && reply->parts.calls.empty()) {
    tell(reply->thought_view->end());
  }
  (void)showRest(reply);
  if (!reply->cancelled) {
    checkReply(session, status, *reply);
  }
  // Text held back at the end arrives as an additional event of the last token.
  const size_t tokens = std::min<size_t>(reply->ids.size(), reply->result.tokens);
  reply->ids.resize(tokens);
  reply->logprobs.resize(std::min(reply->logprobs.size(), tokens));
  print("");  // throws if the callback could not write
}

}  // namespace

void generate(const Session& session, const Settings& options, Reply* reply) {
  reply->wants_logprobs = options.has("top_logprobs");
  run(oriel_session_generate, session, replyOptions(options), onTextToken, reply);
}

oriel::ReplyOptions turnOptions(const Settings& options, Reply* reply) {
  oriel::ReplyOptions turn = replyOptions(options);
  turn.on_part = onPart;
  turn.part_user = reply;
  if (!reply->has_tools) {
    turn.set("tool_choice", "none");
  }
  reply->wants_logprobs = options.has("top_logprobs");
  return turn;
}

void chatReply(const Session& session, const Settings& options, Reply* reply) {
  run(oriel_chat_reply, session, turnOptions(options, reply), onToken, reply);
}

oriel_reply replyOf(const Session& session, const oriel::ReplyOptions& options, Reply* reply) {
  reply->result = ORIEL_INIT(oriel_generation);
  oriel_reply one = ORIEL_INIT(oriel_reply);
  one.session = session.get();
  one.options = &options;
  one.on_token = onToken;
  one.user = reply;
  one.result = &reply->result;
  return one;
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
  json["text"] = reply.parts.text;
  if (!reply.parts.thought.empty()) {
    json["thought"] = reply.parts.thought;
  }
  if (reply.has_tools) {
    json["tool_calls"] = callsJson(reply.parts);
  }
  if (reply.wants_logprobs) {
    json["logprobs"] = logprobFields(reply.logprobs);
  }
  json["tokens"] = reply.result.tokens;
  json["prompt_tokens"] = reply.result.prompt_tokens;
  if (reply.result.prompt_tokens_evicted != 0) {
    json["prompt_tokens_evicted"] = reply.result.prompt_tokens_evicted;
  }
  json["stop_reason"] = reply.cancelled ? "cancelled" : stopReasonName(reply.result.stop_reason);
  json["time_to_first_token_ms"] = reply.result.time_to_first_token_ms;
  json["decode_tokens_per_s"] = reply.result.decode_tokens_per_s;
  json["window_used"] = stats.window_used;
  json["window_capacity"] = stats.window_capacity;
  json["evicted"] = stats.evicted;
  return json;
}

}  // namespace cli
