// Oriel's own chat templates: one Jinja text per chat format. They replace a model's template if the file has none or
// the app names a format.
#pragma once

#include <cstddef>

#include "base/arena.h"
#include "base/log.h"
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

// A model's chat template: from the file, from the app, or built into Oriel.

/// Trivially copyable. Refers to constant tables and to a text that must outlive it.
struct ChatTemplate {
  static constexpr size_t kMaxToken = 64;

  /// the recognised format of the text; null: unknown
  const OwnTemplate* row = nullptr;
  const char* jinja = nullptr;  ///< not NUL-terminated; null: no template
  size_t jinja_bytes = 0;
  /// The prompt of a ranking model, with {query} and {document}. Ends in NUL after keepTemplate(). Null: none.
  const char* rerank = nullptr;
  size_t rerank_bytes = 0;
  char bos[kMaxToken] = "";  ///< texts of the model's tokens
  char eos[kMaxToken] = "</s>";

  bool exists() const { return jinja != nullptr; }
  bool isOurs() const { return row != nullptr && jinja == row->text; }
  const char* name() const { return row != nullptr ? row->name : exists() ? "jinja" : "none"; }
};

/// Longest template that is run. Published ones have under 30 KiB.
constexpr size_t kMaxChatTemplateBytes = 256 * 1024;
/// From the file's tokenizer.chat_template (not copied), or else from the vocabulary's control tokens.
ChatTemplate recogniseChat(const GgufFile& file);
/// Copies the text into an arena, which may be measuring. A text that is too long to run is truncated, but stays too
/// long.
void keepTemplate(Arena* arena, ChatTemplate* chat);
/// The name of a format or a Jinja text. Null: the model's own. ORIEL_ERROR_ARGUMENT for anything else.
Status chooseChat(const ChatTemplate& own, const char* wanted, const Log& log, ChatTemplate* out);
/// Replaces a text that cannot be run by Oriel's text for the same format, if there is one.
bool replaceByOurs(ChatTemplate* chat);

constexpr size_t kMaxRoleBytes = 32;
/// A role is 1 to kMaxRoleBytes characters of [a-z_].
bool isRole(const char* role, size_t bytes);
/// Warns if the template does not name the role. `number`: the message's, from 1; 0: it is the only one.
void warnOfRole(const ChatTemplate& chat, const char* role, size_t bytes, size_t number,
                const Log& log);

}  // namespace oriel_internal
