// Tells thought, answer and tool calls of a reply apart while it streams.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"

namespace oriel {

enum class PartKind : uint8_t { kText, kThought, kCallBegun, kCallArguments, kCallEnded };

struct ReplyPart {
  PartKind kind = PartKind::kText;
  uint32_t call = 0;  ///< its number in the reply
  const char* text = nullptr;
  size_t bytes = 0;
};

/// Forms in which models write calls, as bits: which of them a reader looks for.
using CallForms = uint32_t;

struct ReplySettings {
  CallForms forms = 0;          ///< 0: no calls are read
  bool inside_thought = false;  ///< the template has opened a thought
  /// Tools in the OpenAI form; null: not known. Says which arguments are texts where a form does not tell.
  const JsonValue* tools = nullptr;
};

/// The forms that a template's text (or a format's name) speaks for.
CallForms callFormsOf(const char* chat_template, size_t bytes);

/// Fixed memory, whatever comes: what is too long to be held back is shown as text.
class ReplyReader {
 public:
  using OnPart = void (*)(const ReplyPart& part, void* user);

  void start(const ReplySettings& settings, OnPart on_part, void* user);
  /// More of the reply: whole UTF-8 characters, cut anywhere; control tokens written out.
  void push(const char* text, size_t bytes);
  /// The reply is over: what was held back is shown.
  void finish();
  /// Overwrites what it has held.
  void forget();
};

}  // namespace oriel
