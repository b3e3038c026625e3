// Calls of tools in a conversation: their arguments and ids, and how they are written into a text.
#pragma once

#include "json/json_builder.h"

namespace oriel_internal {

/// How a model writes calls: open, then each call with `separator` between two, then close.
struct CallSpelling {
  const char* open;
  const char* before_name;
  const char* before_arguments;
  const char* after_arguments;
  const char* separator;
  const char* close;
  bool python = false;    ///< arguments are NAME=VALUE, values as Python writes them
  bool numbered = false;  ///< behind the name stands the call's number among its message's
};
extern const CallSpelling kCallSpellings[];
/// The row for a template that does not write calls; 0 where it does not say how its model writes them.
uint8_t callSpellingOf(const JsonText& chat_template);

/// An object, whatever a client sent. Null: no memory.
JsonMade* argumentsOf(const JsonValue* given, Scratch* scratch);
/// JSON with blanks behind commas and colons, as models were trained on.
JsonText argumentsText(const JsonValue& object, Scratch* scratch);
/// Nine letters or digits: the id itself if it is that, else always the same ones for the same id.
JsonText shortId(const JsonText& id, Scratch* scratch);
/// Appends calls (in the OpenAI form, arguments of any kind) to a content's pieces.
void appendCalls(const JsonValue& calls, const CallSpelling& spelling, Scratch* scratch,
                 JsonMade* pieces);

/// The function of a call: {"function": {...}} or the call itself.
inline const JsonValue& functionOf(const JsonValue& call) {
  const JsonValue* const inner = call.find("function");
  return inner != nullptr && inner->isObject() ? *inner : call;
}

}  // namespace oriel_internal
