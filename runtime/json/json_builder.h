// Makes JSON values: for what does not come as JSON.
#pragma once

#include "json/json.h"

namespace oriel_internal {

class JsonBuilder {
 public:
  explicit JsonBuilder(Scratch* scratch) : scratch_(scratch) {}
  /// Null where there is no memory; adding to null, or null, does nothing.
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
  /// A list of a copy of the value.
  JsonMade* listOf(const JsonValue& value);
  /// Sets the source of a value (JinjaVariable): it replaces the one that its list gives it.
  static JsonMade* from(uint32_t origin, JsonMade* value);
  /// One string of the strings of `pieces`, a list that append() filled; each piece keeps its source.
  JsonMade* joined(JsonMade* pieces);
  /// The same value, to stand in another list. The value stays.
  JsonMade* copyOf(const JsonValue& value);
  /// The list, with each element that has no member `key` as {first_key: first_text, key: element}. Null: no memory.
  const JsonValue* wrapped(const JsonValue& list, const char* key, const char* first_key,
                           const char* first_text);

 private:
  static void setCopy(JsonValue* copy, const JsonValue& value, uint32_t flags);
  JsonMade* make(JsonKind kind, const JsonText& text);

  Scratch* const scratch_;
};

}  // namespace oriel_internal
