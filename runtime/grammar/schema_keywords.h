// The keywords of JSON Schema: their value types and handling.
#pragma once

#include "json/json.h"

namespace oriel_internal {

/// The type of a keyword's value.
enum class Shape : uint8_t {
  kAnything,
  kSchema,
  kSchemas,       ///< a non-empty array of schemas
  kSchemaOrList,  ///< a schema, or an array of any length
  kNamedSchemas,  ///< an object of schemas
  kNamedNeeds,    ///< an object of schemas and lists of names
  kText,
  kTexts,
  kTextsOrFlag,
  kNumber,
  kNumberOrFlag,
  kFlag,
  kCount,
  kValues,
  kTypes,
};

enum class Reading : uint8_t {
  kHeld,       ///< enforced
  kRewritten,  ///< rewritten to enforced keywords
  kRefused,    ///< constrains values in a way that expressions cannot
  kSilent,     ///< does not constrain values
  kIgnored,    ///< not checked by validators either; reported
};

struct Keyword {
  const char* name;
  Shape shape;
  Reading reading;
};

/// Null: not a keyword in any draft.
const Keyword* findKeyword(const JsonText& name);
/// The value keyword that an unknown `name` likely misspells. Null: none.
const char* misspelledKeyword(const JsonText& name);
/// Null, or "has to be ...: correct it".
const char* shapeError(Shape shape, const JsonValue& value);
/// True if checking the type visits every element.
bool isWalked(Shape shape);
bool isSchemaValue(const JsonValue& value);
/// TypeBits of a type's name; 0: not a type.
uint32_t typeNamed(const JsonValue& name);

}  // namespace oriel_internal
