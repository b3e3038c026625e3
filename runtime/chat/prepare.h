// Brings messages into the form that a model's template can write: clients differ, and so do templates.
#pragma once

#include "chat/template_run.h"

namespace oriel_internal {

/// What a template needs or does not write. All false: it takes every message in the OpenAI form.
struct TemplateFacts {
  bool parts_only = false;      ///< content is a list of parts
  bool takes_parts = false;     ///< lists of parts stay lists in questions and answers
  bool no_system = false;       ///< a system message goes in front of the next question
  bool loses_second = false;    ///< so does a system message right behind another one
  bool loses_late = false;      ///< so does a system message behind a question
  bool no_developer = false;    ///< developer is system
  bool null_content = false;    ///< content is null beside calls
  bool text_arguments = false;  ///< arguments are a text of JSON
  bool short_ids = false;       ///< ids of calls have nine letters or digits
  bool no_calls = false;        ///< calls are part of the content
  bool no_results = false;      ///< results of tools are questions
  uint8_t call_spelling = 0;    ///< a row of kCallSpellings (prepare_calls.h)
};

/// Finds the facts by trial renderings, mostly eight and at most 15. Writes no errors of trials. A template that none of
/// the trials fits keeps the defaults, so that its own words are the error of a real conversation.
/// ORIEL_ERROR_OUT_OF_MEMORY, ORIEL_ERROR_CANCELLED.
Status learnFacts(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                  const oriel_allocator& allocator, TemplateFacts* facts);

/// Makes a list of messages for TemplateRun::render(). `messages`, a list, and `scratch` must outlive it.
///
/// Every text keeps the source of the message that it came with (kFirstMessageSource + its place in `messages`), also
/// where that message has become a part of another one or stands elsewhere in the list. Marks that are written here have
/// no source, as the template's own.
///
/// For every template:
/// - content: parts become one text, thoughts among them reasoning_content; null becomes ""
/// - arguments: an object; nothing is {}, anything else {"arguments": it}
/// - roles: function is tool; tool_calls without a call are left out
///
/// ORIEL_ERROR_UNSUPPORTED for images, sounds, videos and files, ORIEL_ERROR_ARGUMENT for a role (checkMessage()),
/// ORIEL_ERROR_OUT_OF_MEMORY.
Status prepareMessages(const TemplateFacts& facts, const JsonValue& messages, Scratch* scratch,
                       const Log& log, const JsonValue** prepared);

}  // namespace oriel_internal
