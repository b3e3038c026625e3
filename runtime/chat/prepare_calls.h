// Tool calls in a conversation: their arguments, ids and textual form.
#pragma once

#include "json/json_builder.h"

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

}  // namespace oriel_internal
