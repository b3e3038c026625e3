// Tokens recognised by name, regardless of their type in the file.
#pragma once

#include <cstddef>
#include <cstring>

#include "gguf/gguf.h"
#include "text/hex.h"

namespace oriel_internal {

/// Tokens that end a text or a turn, regardless of the file's metadata.
constexpr const char* kStopNames[] = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>",
    "<|end_of_text|>", "<end_of_utterance>", "<EOT>", "<eos>", "[EOS]", "[EOT]", "[|endofturn|]",
    "<|end_of_sentence|>", "<|eos|>", "<|return|>", "<|call|>", "<turn|>", "<|tool_response>",
    // Parenthesised, because an escape would swallow the next letter; the parentheses show that no comma is missing.
    ("<\xEF\xBD\x9C"
     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"),
    ("<\xEF\xBD\x9Chy_place\xE2\x96\x81holder\xE2\x96\x81no\xE2\x96\x81"
     "2\xEF\xBD\x9C>")};
/// Tokens that open a turn or name the speaker.
constexpr const char* kTurnNames[] = {
    "<|im_start|>",
    "<start_of_turn>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|begin_of_text|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "<|start_of_role|>",
    "<|end_of_role|>",
    "<|startoftext|>",
    "<|begin_of_sentence|>",
    "[|system|]",
    "[|user|]",
    "[|assistant|]",
    "<|turn>",
    "<|think|>",
    "<\xEF\xBD\x9Chy_User\xEF\xBD\x9C>",
    "<\xEF\xBD\x9Chy_Assistant\xEF\xBD\x9C>",
    ("<\xEF\xBD\x9Chy_place\xE2\x96\x81holder\xE2\x96\x81no\xE2\x96\x81"
     "3\xEF\xBD\x9C>")};
/// Code models end a filled gap with these.
constexpr const char* kFillEndNames[] = {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
                                         "<fim_pad>",   "<file_sep>",    "<|file_separator|>"};
/// The names that apply to Gemma 4. Its merges treat the others as ordinary words.
constexpr const char* kGemma4Names[] = {"<|turn>",          "<turn|>", "<|think|>",
                                        "<|tool_response>", "<bos>",   "<eos>"};
/// Control tokens that are shown in the output: they separate thoughts and tool calls from the answer.
constexpr const char* kShownNames[] = {"<|channel>",   "<channel|>",       "<|tool_call>",
                                       "<tool_call|>", "<tool_response|>", "<|\"|>"};
/// Also ends a text if the file has it as a control token or as its end token. Otherwise it is HTML, as in the
/// vocabularies of Gemma and Qwen.
constexpr const char* kCloseName = "</s>";

template <size_t n>
bool isOneOf(const GgufString& text, const char* const (&names)[n]) {
  if (text.bytes == 0 || (text.data[0] != '<' && text.data[0] != '[')) {
    return false;  // fast path: every name starts with one of these
  }
  for (const char* name : names) {
    if (text.equals(name)) {
      return true;
    }
  }
  return false;
}

/// 10 for "<0x0A>"; -1 for any other form.
inline int parseByteToken(const GgufString& text) {
  if (text.bytes != 6 || std::memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') {
    return -1;
  }
  const int high = hexDigit(text.data[3]);
  const int low = hexDigit(text.data[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace oriel_internal
