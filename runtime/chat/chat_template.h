// The chat template of a model: the file's own, one that the app gave, or one of ours.
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "chat/own_templates.h"
#include "gguf/gguf.h"

namespace oriel_internal {

/// Trivially copyable. Refers to the constant tables, and to a text that outlives it.
struct ChatTemplate {
  static constexpr size_t kMaxToken = 64;

  /// The format that the text is known to be of; null: none is known.
  const OwnTemplate* row = nullptr;
  const char* jinja = nullptr;  ///< without NUL at its end; null: there is no template
  size_t jinja_bytes = 0;
  /// Of a model that ranks texts: what it reads, with {query} and {document}. Ends in NUL once it is kept. Null: none.
  const char* rerank = nullptr;
  size_t rerank_bytes = 0;
  char bos[kMaxToken] = "";  ///< texts of the model's tokens
  char eos[kMaxToken] = "</s>";

  bool exists() const { return jinja != nullptr; }
  bool isOurs() const { return row != nullptr && jinja == row->text; }
  const char* name() const { return row != nullptr ? row->name : exists() ? "jinja" : "none"; }
};

/// A longer template is not run. Published ones have under 30 KiB.
constexpr size_t kMaxChatTemplateBytes = 256 * 1024;
/// From the file's tokenizer.chat_template, which it points to, or, without one, from the vocabulary's control tokens.
ChatTemplate recogniseChat(const GgufFile& file);
/// The same text in an arena, of a text that is too long to run a part that is too long. When measuring counts it.
void keepTemplate(Arena* arena, ChatTemplate* chat);
/// A format's name or the text of a Jinja template. Null: the model's own. ORIEL_ERROR_ARGUMENT for anything else.
Status chooseChat(const ChatTemplate& own, const char* wanted, const Log& log, ChatTemplate* out);
/// Our text of the same format, if one is known, in the place of a text that cannot be run.
bool replaceByOurs(ChatTemplate* chat);

constexpr size_t kMaxRoleBytes = 32;
/// A role is 1 to kMaxRoleBytes characters of [a-z_].
bool isRole(const char* role, size_t bytes);
/// A warning for a role that the template does not name. `number`: of the message, from 1; 0: it is the only one.
void warnOfRole(const ChatTemplate& chat, const char* role, size_t bytes, size_t number,
                const Log& log);

}  // namespace oriel_internal
