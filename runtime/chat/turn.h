// One message of a conversation at a time, cut out of what a template makes of a short conversation of the same shape:
// a session neither keeps old messages nor renders them again.
//
// A session's text always ends right behind the latest message's own text. What the template writes behind that (an end
// of turn, tools, a separator) comes with the next message or with the opening of a reply: so it is what the template
// writes between these two, whatever they are.
#pragma once

#include "chat/template_run.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Whose text a session ends with.
enum class LastMessage : uint8_t { kNothing, kSystem, kUser, kAssistant, kTool };

/// Where a session stands.
struct TurnPlace {
  LastMessage last = LastMessage::kNothing;
  bool closed = false;      ///< what closes that message is there, too: so behind a rewind
  bool has_system = false;  ///< the conversation began with a system message
  /// The token that ended the latest reply, as text, if that was the last message: the model may have written calls that
  /// the template would write in other words. Empty: it is not known.
  JsonText reply_stop;
};

struct TurnText {
  const char* text = nullptr;
  size_t bytes = 0;
  /// Stretches that came from the app.
  const TextRange* literals = nullptr;
  size_t n_literals = 0;
  /// Of a user's message: where its turn begins, behind what closes the message before.
  size_t body = 0;
  bool repeats_system = false;  ///< a stand-in is part of it
  bool begins_bos =
      false;  ///< in front of it the template writes BOS, which is not part of the text
};

/// What a message's role makes of the place behind it.
LastMessage lastMessageOf(const JsonText& role);
/// Whether a format can write it as well: a role and a text.
bool isPlainMessage(const JsonValue& message);

/// What a message in the OpenAI form adds to the session. It lies in the run's scratch.
Status renderTurn(TemplateRun* run, const TurnPlace& place, const JsonValue& message,
                  TurnText* turn);
/// What opens a reply.
Status renderReplyOpening(TemplateRun* run, const TurnPlace& place, TurnText* turn);
/// What stands before the first message of a user's where no system message does: a default system prompt, tools. Empty
/// where the template does not tell.
Status renderPreamble(TemplateRun* run, TurnText* turn);
/// What closes a reply that says something: its first token is the model's own. An empty text where the template does
/// not tell.
Status renderReplyEnd(TemplateRun* run, JsonText* end);

}  // namespace oriel_internal
