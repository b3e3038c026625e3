// Builds JSON values.
#pragma once

#include "json/json.h"

namespace oriel_internal {

class JsonBuilder {
 public:
  explicit JsonBuilder(Scratch* scratch) : scratch_(scratch) {}
  /// Null if memory ran out. Adding to null, or adding null, is a no-op.
  JsonMade* text(const JsonText& text);
  JsonMade* boolean(bool value);
  JsonMade* number(uint32_t value);
  JsonMade* null();
  JsonMade* list();
  JsonMade* object();
  void append(JsonMade* list, JsonMade* element);
  void set(JsonMade* object, const JsonText& key, JsonMade* value);
  /// {"role": role, "content": content}
  JsonMade* message(const JsonText& role, const JsonText& content);
  /// A list with a copy of the value.
  JsonMade* listOf(const JsonValue& value);
  /// Sets the source of a value (JinjaVariable); overrides the source of its list.
  static JsonMade* from(uint32_t origin, JsonMade* value);
  /// One string from the strings in `pieces`, a list filled by append(); each piece keeps its source.
  JsonMade* joined(JsonMade* pieces);
  /// A second reference to the value, for another list.
  JsonMade* copyOf(const JsonValue& value);
  /// The list with each element that lacks a member `key` wrapped as {first_key: first_text, key: element}. Null: out of
  /// memory.
  const JsonValue* wrapped(const JsonValue& list, const char* key, const char* first_key,
                           const char* first_text);

 private:
  static void setCopy(JsonValue* copy, const JsonValue& value, uint32_t flags);
  JsonMade* make(JsonKind kind, const JsonText& text);

  Scratch* const scratch_;
};

}  // namespace oriel_internal
