// Oriel's own chat templates: one Jinja text for each chat format that models were trained with. They stand in for a
// model's template where a file has none, or where an app names a format.
#pragma once

#include <cstddef>

#include "gguf/gguf.h"

namespace oriel_internal {

/// A row: one format. Texts take messages, add_generation_prompt, bos_token, eos_token, enable_thinking (true, false or
/// undefined) and strftime_now. They ignore tools, and refuse a message only if its role has no place in the format.
struct OwnTemplate {
  const char* name;
  const char* text;  ///< Jinja
  /// A template of this format has all of these in its text (templateContains). has[0] null: not recognised.
  const char* has[3] = {};
  const char* lacks[2] = {};    ///< and none of these
  bool thinks_if_told = false;  ///< an undefined enable_thinking counts as false; elsewhere as true
};

/// Null for an unknown name.
const OwnTemplate* ownTemplateByName(const char* name);
/// The first row whose markers hold for a template's text (its first kMaxChatTemplateBytes), in linear time. Null: none.
const OwnTemplate* recogniseTemplate(const char* text, size_t bytes);
/// The row for a file without a template, by the control tokens of its vocabulary. Null: none.
const OwnTemplate* ownTemplateOfVocabulary(const GgufFile& file);
/// "chatml, gemma2, ...", for messages.
extern const char kOwnTemplateNames[];

/// True if `part` is in a template's text. In `part`, ' matches either quote, and a line feed also the
/// escape \n.
bool templateContains(const char* text, size_t bytes, const char* part);

}  // namespace oriel_internal
