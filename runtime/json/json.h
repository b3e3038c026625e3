// JSON as it comes from an app: tools, messages, schemas. Read into a tree of plain structs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "base/scratch.h"

namespace oriel_internal {

/// Bytes of somebody's text.
struct JsonText {
  const char* data = nullptr;
  size_t bytes = 0;

  bool is(const char* other) const;
  bool operator==(const JsonText& other) const;
};

enum class JsonKind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

/// One value. Elements and members stand in their order, each naming the next.
struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  bool boolean = false;
  bool has_key = false;
  bool trusted = false;  ///< of a string: it was checked, and may stand where control tokens do
  uint32_t count = 0;    ///< elements or members
  JsonText text;         ///< of a string: decoded, UTF-8. Of a number: as it is written
  JsonText key;          ///< of a member: decoded
  const JsonValue* first = nullptr;
  const JsonValue* next = nullptr;

  bool isString() const { return kind == JsonKind::kString; }
  bool isObject() const { return kind == JsonKind::kObject; }
  bool isArray() const { return kind == JsonKind::kArray; }
  bool isNumber() const { return kind == JsonKind::kNumber; }
  bool isBool() const { return kind == JsonKind::kBool; }
  bool isNull() const { return kind == JsonKind::kNull; }
  /// A number without fraction and exponent.
  bool isInteger() const;
  /// The member of that name; of several the last, as everywhere. Null: there is none, or this is no object.
  const JsonValue* find(const char* name) const;
  const JsonValue* find(const JsonText& name) const;
};

constexpr uint32_t kMaxJsonDepth = 64;
constexpr size_t kMaxJsonBytes = 64u << 20;

/// Reads one value, as RFC 8259 has it: nothing but white space may stand before and behind. Strings point into `text`
/// where they have no escapes, so it must stay. `what` names the text in messages ("the tools").
/// ORIEL_ERROR_ARGUMENT with the byte where it goes wrong, ORIEL_ERROR_OUT_OF_MEMORY.
Status parseJson(const char* text, size_t bytes, const char* what, const Log& log, Scratch* scratch,
                 const JsonValue** value);

/// Where written JSON goes; `write` is called with stretches of it.
struct JsonSink {
  void (*write)(const char* text, size_t bytes, void* user) = nullptr;
  void* user = nullptr;
};
/// A string between quotes, escapes as short as they are; UTF-8 and U+007F stay as they are.
void writeJsonString(const JsonText& text, const JsonSink& sink);
/// What writeJsonString() writes for a stretch of a string, without the quotes.
void writeJsonEscaped(const JsonText& text, const JsonSink& sink);
/// Without blanks; numbers as they were written.
void writeJson(const JsonValue& value, const JsonSink& sink);

}  // namespace oriel_internal
