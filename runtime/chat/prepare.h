// Tool calls in a conversation: their arguments, ids and textual form.
#pragma once

#include "chat/template_run.h"
#include "json/json.h"

namespace oriel_internal {

/// The form of calls: open, then the calls with `separator` between them, then close.
struct CallSpelling {
  const char* open;
  const char* before_name;
  const char* before_arguments;
  const char* after_arguments;
  const char* separator;
  const char* close;
  bool python = false;    ///< arguments are NAME=VALUE, values in Python syntax
  bool numbered = false;  ///< the name is followed by the call's number in its message
};
extern const CallSpelling kCallSpellings[];
/// The row for a template that does not write calls; 0 if the model's form is unknown.
uint8_t callSpellingOf(const JsonText& chat_template);

/// Always an object, for any input. Null: out of memory.
JsonMade* argumentsOf(const JsonValue* given, Scratch* scratch);
/// JSON with blanks after commas and colons, as in training data.
JsonText argumentsText(const JsonValue& object, Scratch* scratch);
/// Nine letters or digits: the id itself if it has that form, else a fixed function of it.
JsonText shortId(const JsonText& id, Scratch* scratch);
/// Appends calls (OpenAI form, any arguments) to the pieces of a content.
void appendCalls(const JsonValue& calls, const CallSpelling& spelling, Scratch* scratch,
                 JsonMade* pieces);

/// The function of a call: {"function": {...}} or the call itself.
inline const JsonValue& functionOf(const JsonValue& call) {
  const JsonValue* const inner = call.find("function");
  return inner != nullptr && inner->isObject() ? *inner : call;
}

// Converts messages to the form that a model's template accepts. Clients and templates both differ.

/// A template's limits. All false: it takes every message in the OpenAI form.
struct TemplateFacts {
  bool parts_only = false;      ///< content is a list of parts
  bool takes_parts = false;     ///< lists of parts are accepted in questions and answers
  bool no_system = false;       ///< a system message is put before the next question
  bool loses_second = false;    ///< so is a system message directly after another one
  bool loses_late = false;      ///< so is a system message after a question
  bool no_developer = false;    ///< developer becomes system
  bool null_content = false;    ///< content is null if there are calls
  bool text_arguments = false;  ///< arguments are JSON as text
  bool short_ids = false;       ///< ids of calls have nine letters or digits
  bool no_calls = false;        ///< calls are written into the content
  bool no_results = false;      ///< results of tools become questions
  uint8_t call_spelling = 0;    ///< a row of kCallSpellings (prepare_calls.h)
};

/// Finds the facts by trial renderings, usually eight and at most 15. Errors of trials are not logged. If no trial
/// succeeds the defaults stay, so that a real conversation reports the template's own error. ORIEL_ERROR_OUT_OF_MEMORY,
/// ORIEL_ERROR_CANCELLED.
Status learnFacts(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                  const oriel_allocator& allocator, TemplateFacts* facts);

/// Makes a list of messages for TemplateRun::render(). `messages`, a list, and `scratch` must outlive it.
//
/// Every text keeps the source of its message (kFirstMessageSource + its index in `messages`), even if the message is
/// merged or moved. Marks written here have no source, like the template's own text.
//
/// For every template:
/// - content: parts become one text, thoughts among them reasoning_content; null becomes ""
/// - arguments: an object; nothing becomes {}, anything else {"arguments": it}
/// - pictures: {"type": "image"} if the template takes parts, else the words that stand for one
/// - roles: function becomes tool; an empty tool_calls is left out
//
/// ORIEL_ERROR_UNSUPPORTED for images, sounds, videos and files, ORIEL_ERROR_ARGUMENT for a role (checkMessage()),
/// ORIEL_ERROR_OUT_OF_MEMORY.
Status prepareMessages(const TemplateFacts& facts, const JsonValue& messages, Scratch* scratch,
                       const Log& log, const JsonValue** prepared,
                       PictureWords pictures = PictureWords::kNone);

}  // namespace oriel_internal
