// The text that a template writes for new messages of a conversation.
//
// The text of a conversation is the template's rendering of all of its messages. A session holds its beginning, up to the
// end of the latest message's own text. renderNew() renders held and new messages together and cuts out the rest, by the
// source of each byte. So the text that closes a message comes with the next one.
//
// - Knows: messages, a template, the source of each byte of its text.
// - Must never know: tokens, caches, windows.
#pragma once

#include "chat/prepare.h"
#include "chat/roles.h"
#include "chat/template_run.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Stands for a message's text. Templates look at some texts: this one says nothing.
constexpr char kStandIn[] = "Hello";
/// Some templates want nine letters or digits.
constexpr char kStandInCall[] = "call00001";
/// A call without arguments, in the OpenAI form.
JsonMade* standInCall(JsonBuilder* make, const JsonText& id, const JsonText& name);

/// The text that a template writes after a message, by that message's role, as far as there is room. Found once. After a
/// system message: between it and the opening of the first question.
struct TurnEnds {
  static constexpr size_t kMost = 96;
  char text[kRoles][kMost] = {};
  uint8_t bytes[kRoles] = {};
  /// The first question stands in the turn that the system message opened.
  bool system_joins = false;

  JsonText of(Role role) const {
    const auto i = static_cast<uint32_t>(role);
    return {text[i], bytes[i]};
  }
};

/// All that is found out about a template once.
struct LearnedTemplate {
  TemplateFacts facts;
  TurnEnds ends;
};

/// Renders short conversations. A template that refuses them all is no error.
/// ORIEL_ERROR_OUT_OF_MEMORY, ORIEL_ERROR_CANCELLED.
Status learnTemplate(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                     const oriel_allocator& allocator, LearnedTemplate* out);

/// A conversation of which the first messages are held.
struct Messages {
  const JsonValue* list = nullptr;
  uint32_t held = 0;
  /// The last held message is a reply of the model's own: it wrote its calls in its own words.
  bool replied = false;
  bool closed = false;  ///< the text that closes the last held message is held, too
  JsonText stop = {};   ///< the token that ended that reply, which is not held; empty: unknown
};

struct NewMessage {
  size_t body = 0;  ///< the message's turn begins here, after the closing of the message before
  size_t end = 0;   ///< and its own text ends here
};

struct NewText {
  const char* text = nullptr;
  size_t bytes = 0;
  /// Stretches that came from the app.
  const TextRange* literals = nullptr;
  size_t n_literals = 0;
  const NewMessage* messages = nullptr;  ///< one for each new message
  /// The template writes BOS in front, which is not part of the text.
  bool begins_bos = false;
};

/// All of it lies in the run's scratch.
///
/// @param generation  an opened reply ends the text
/// @return ORIEL_ERROR_UNSUPPORTED if the template leaves a new message out, or writes it before the held ones; errors of
///         the template
Status renderNew(TemplateRun* run, const LearnedTemplate& learned, const Messages& messages,
                 bool generation, NewText* out);

/// The text in front of the first message of a user's without a system message: a default system prompt, tools. Empty
/// where it cannot be told.
Status renderPreamble(TemplateRun* run, const LearnedTemplate& learned, NewText* out);

}  // namespace oriel_internal
