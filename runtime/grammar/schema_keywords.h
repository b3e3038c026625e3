// The keywords of JSON Schema: the form of their values, and how each is read.
#pragma once

#include "json/json.h"

namespace oriel_internal {

/// The form of a keyword's value.
enum class Shape : uint8_t {
  kAnything,
  kSchema,
  kSchemas,       ///< an array of at least one
  kSchemaOrList,  ///< a schema, or an array of any number
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
  kHeld,       ///< values are held to it
  kRewritten,  ///< another spelling of held keywords
  kRefused,    ///< it bounds values in a way that no expression has
  kSilent,     ///< says nothing about values
  kIgnored,    ///< says nothing about values that a validator would check; reported
};

struct Keyword {
  const char* name;
  Shape shape;
  Reading reading;
};

/// Null: no keyword of any draft.
const Keyword* findKeyword(const JsonText& name);
/// The keyword about values that an unknown `name` is likely a misspelling of. Null: none.
const char* misspelledKeyword(const JsonText& name);
/// Null, or "has to be ...: correct it".
const char* shapeError(Shape shape, const JsonValue& value);
/// Whether checking the shape looks at every element.
bool isWalked(Shape shape);
bool isSchemaValue(const JsonValue& value);
/// TypeBits of a type's name; 0: no type.
uint32_t typeNamed(const JsonValue& name);

}  // namespace oriel_internal
