// Writes JSON on one line to a caller's buffer, or only counts it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"

namespace oriel_internal {

class JsonWriter {
 public:
  static constexpr uint32_t kMostDepth = 8;

  /// The text is NUL-terminated after finish() if there was room.
  JsonWriter(char* text, size_t capacity) : text_(text), capacity_(capacity) {}

  /// `name` is null in a list and for the outermost value.
  void object(const char* name = nullptr) { open(name, '{', '}'); }
  void list(const char* name) { open(name, '[', ']'); }
  void end();
  void text(const char* name, const JsonText& value);
  void whole(const char* name, uint64_t value);
  void signedWhole(const char* name, int64_t value);
  /// Writes null if not finite.
  void real(const char* name, double value);
  void flag(const char* name, bool value);
  void null(const char* name);
  /// For bytes that are already JSON.
  JsonSink sink();

  /// ORIEL_ERROR_BUFFER_TOO_SMALL without room; *needed includes the NUL.
  oriel_status finish(size_t* needed);

 private:
  void open(const char* name, char begin, char end);
  void key(const char* name);
  void add(const char* bytes, size_t count);

  char* const text_;
  const size_t capacity_;
  size_t used_ = 0;
  char ends_[kMostDepth] = {};
  bool first_[kMostDepth + 1] = {true};
  uint32_t depth_ = 0;
};

// Builds JSON values.

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
