// Oriel's own chat templates: one Jinja text per chat format. They replace a model's template if the file has none or
// the app names a format.
#pragma once

#include <cstddef>

#include "gguf/gguf.h"

namespace oriel_internal {

/// One format. Texts take messages, add_generation_prompt, bos_token, eos_token, enable_thinking (true, false or
/// undefined) and strftime_now. They ignore tools, and refuse only messages whose role the format lacks.
struct OwnTemplate {
  const char* name;
  const char* text;  ///< Jinja
  /// A template of this format contains all of these (templateContains). has[0] null: not recognised.
  const char* has[3] = {};
  const char* lacks[2] = {};    ///< and none of these
  bool thinks_if_told = false;  ///< an undefined enable_thinking counts as false; in other formats
                                ///< as true
};

/// Null for an unknown name.
const OwnTemplate* ownTemplateByName(const char* name);
/// The first row whose markers match a template's text (its first kMaxChatTemplateBytes), in linear time. Null: none.
const OwnTemplate* recogniseTemplate(const char* text, size_t bytes);
/// The row for a file without a template, by its vocabulary's control tokens. Null: none.
const OwnTemplate* ownTemplateOfVocabulary(const GgufFile& file);
/// "chatml, gemma2, ...", for messages.
extern const char kOwnTemplateNames[];

/// True if a template's text contains `part`. In `part`, ' matches either quote, and a line feed also matches the escape
/// \n.
bool templateContains(const char* text, size_t bytes, const char* part);

}  // namespace oriel_internal
