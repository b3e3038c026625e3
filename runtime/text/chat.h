// Chat formats: the text around messages, one message at a time, so that a new turn never
// re-renders what is already in the cache.
#pragma once

#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace oriel {

enum class ChatFormat : uint8_t { kNone, kChatMl };

/// Recognised from the file's tokenizer.chat_template (by the markers it writes) or, without one,
/// from the vocabulary's control tokens.
ChatFormat recogniseChatFormat(const GgufFile& file);
const char* chatFormatName(ChatFormat format);
/// kNone for a name nobody knows; "none" is not a name.
ChatFormat chatFormatByName(const char* name);

/// A rendered piece of conversation. `literal` is the part that came from the user and must never
/// be read as control tokens.
struct RenderedText {
  char* text = nullptr;  ///< caller's buffer
  size_t capacity = 0;
  size_t needed = 0;  ///< set by the renderer; more than capacity: nothing was written
  TextRange literal;
};

/// One whole message, e.g. "<|im_start|>user\nHello<|im_end|>\n". A role is 1 to 32 characters of
/// [a-z_]; anything else is ORIEL_ERROR_ARGUMENT.
Status renderMessage(ChatFormat format, const char* role, const char* text, size_t bytes,
                     const Log& log, RenderedText* out);
/// What opens the assistant's turn, e.g. "<|im_start|>assistant\n".
const char* generationPrompt(ChatFormat format);
/// What closes it, and the part of that which the model itself writes (a stop token), e.g.
/// "<|im_end|>\n" of which the first token is the model's.
const char* replyEnd(ChatFormat format);

}  // namespace oriel
