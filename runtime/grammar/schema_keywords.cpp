#include "grammar/schema_keywords.h"

#include <iterator>

#include "grammar/schema_parts.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kLargestCount = UINT32_MAX - 1;

constexpr Keyword kKeywords[] = {
    {"type", Shape::kTypes, Reading::kHeld},
    {"enum", Shape::kValues, Reading::kHeld},
    {"const", Shape::kAnything, Reading::kHeld},
    {"properties", Shape::kNamedSchemas, Reading::kHeld},
    {"required", Shape::kTextsOrFlag, Reading::kHeld},
    {"additionalProperties", Shape::kSchema, Reading::kHeld},
    {"patternProperties", Shape::kNamedSchemas, Reading::kHeld},
    {"propertyNames", Shape::kSchema, Reading::kHeld},
    {"minProperties", Shape::kCount, Reading::kHeld},
    {"maxProperties", Shape::kCount, Reading::kHeld},
    {"items", Shape::kSchemaOrList, Reading::kHeld},
    {"prefixItems", Shape::kSchemas, Reading::kHeld},
    {"additionalItems", Shape::kSchema, Reading::kRewritten},
    {"minItems", Shape::kCount, Reading::kHeld},
    {"maxItems", Shape::kCount, Reading::kHeld},
    {"uniqueItems", Shape::kFlag, Reading::kHeld},
    {"contains", Shape::kSchema, Reading::kHeld},
    {"minContains", Shape::kCount, Reading::kHeld},
    {"maxContains", Shape::kCount, Reading::kHeld},
    {"minLength", Shape::kCount, Reading::kHeld},
    {"maxLength", Shape::kCount, Reading::kHeld},
    {"pattern", Shape::kText, Reading::kHeld},
    {"format", Shape::kText, Reading::kHeld},
    {"minimum", Shape::kNumber, Reading::kHeld},
    {"maximum", Shape::kNumber, Reading::kHeld},
    {"exclusiveMinimum", Shape::kNumberOrFlag, Reading::kHeld},
    {"exclusiveMaximum", Shape::kNumberOrFlag, Reading::kHeld},
    {"multipleOf", Shape::kNumber, Reading::kHeld},
    {"anyOf", Shape::kSchemas, Reading::kHeld},
    {"oneOf", Shape::kSchemas, Reading::kHeld},
    {"allOf", Shape::kSchemas, Reading::kHeld},
    {"not", Shape::kSchema, Reading::kHeld},
    {"$ref", Shape::kText, Reading::kHeld},
    {"nullable", Shape::kFlag, Reading::kRewritten},
    {"dependencies", Shape::kNamedNeeds, Reading::kRewritten},
    {"dependentRequired", Shape::kNamedNeeds, Reading::kRewritten},
    {"dependentSchemas", Shape::kNamedSchemas, Reading::kRewritten},
    {"if", Shape::kSchema, Reading::kRewritten},
    {"then", Shape::kSchema, Reading::kRewritten},
    {"else", Shape::kSchema, Reading::kRewritten},
    {"unevaluatedItems", Shape::kSchema, Reading::kRefused},
    {"unevaluatedProperties", Shape::kSchema, Reading::kRefused},
    {"$dynamicRef", Shape::kText, Reading::kRefused},
    {"$recursiveRef", Shape::kText, Reading::kRefused},
    {"$defs", Shape::kNamedSchemas, Reading::kSilent},
    {"definitions", Shape::kAnything, Reading::kSilent},
    {"title", Shape::kAnything, Reading::kSilent},
    {"description", Shape::kAnything, Reading::kSilent},
    {"default", Shape::kAnything, Reading::kSilent},
    {"example", Shape::kAnything, Reading::kSilent},
    {"examples", Shape::kAnything, Reading::kSilent},
    {"deprecated", Shape::kAnything, Reading::kSilent},
    {"readOnly", Shape::kAnything, Reading::kSilent},
    {"writeOnly", Shape::kAnything, Reading::kSilent},
    {"$schema", Shape::kAnything, Reading::kSilent},
    {"$comment", Shape::kAnything, Reading::kSilent},
    {"$id", Shape::kAnything, Reading::kSilent},
    {"id", Shape::kAnything, Reading::kSilent},
    {"$anchor", Shape::kAnything, Reading::kSilent},
    {"$dynamicAnchor", Shape::kAnything, Reading::kSilent},
    {"$recursiveAnchor", Shape::kAnything, Reading::kSilent},
    {"$vocabulary", Shape::kAnything, Reading::kSilent},
    {"contentEncoding", Shape::kAnything, Reading::kIgnored},
    {"contentMediaType", Shape::kAnything, Reading::kIgnored},
    {"contentSchema", Shape::kAnything, Reading::kIgnored},
};

constexpr struct {
  const char* name;
  uint32_t types;
} kTypeNames[] = {
    {"null", kNullType},     {"boolean", kBoolType},  {"integer", kIntegerType},
    {"number", kNumberType}, {"string", kStringType}, {"array", kArrayType},
    {"object", kObjectType},
};

template <typename Is>
bool all(const JsonValue& values, Is is) {
  for (const JsonValue* v = values.first(); v != nullptr; v = v->next()) {
    if (!is(*v)) {
      return false;
    }
  }
  return true;
}

bool isText(const JsonValue& value) { return value.isString(); }
bool isTexts(const JsonValue& value) { return value.isArray() && all(value, isText); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Longer words tolerate more errors: one from six letters, two from twelve.
constexpr size_t kMostNameBytes = 40;
size_t mostErrors(size_t letters) { return letters >= 12 ? 2 : letters >= 6 ? 1 : 0; }

// Edit distance with transpositions, for small distances, ignoring case.
size_t distance(const char* a, size_t n_a, const char* b, size_t n_b) {
  size_t rows[3][kMostNameBytes + 1];
  for (size_t j = 0; j <= n_b; ++j) {
    rows[0][j] = j;
  }
  for (size_t i = 1; i <= n_a; ++i) {
    size_t* const row = rows[i % 3];
    const size_t* const above = rows[(i - 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= n_b; ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
      }
    }
  }
  return rows[n_a % 3][n_b];
}

}  // namespace

bool isSchemaValue(const JsonValue& value) { return value.isObject() || value.isBool(); }

uint32_t typeNamed(const JsonValue& name) {
  for (const auto& type : kTypeNames) {
    if (name.isString() && name.text().is(type.name)) {
      return type.types;
    }
  }
  return 0;
}

const Keyword* findKeyword(const JsonText& name) {
  const Keyword* const end = std::end(kKeywords);
  const Keyword* const found = std::find_if(
      std::begin(kKeywords), end, [&](const Keyword& known) { return name.is(known.name); });
  return found != end ? found : nullptr;
}

const char* misspelledKeyword(const JsonText& name) {
  if (name.bytes == 0 || name.bytes > kMostNameBytes || lower(name.data[0]) < 'a' ||
      lower(name.data[0]) > 'z') {
    return nullptr;  // names like "_format" and "$title" are custom
  }
  for (const Keyword& known : kKeywords) {
    const bool is_about_values = known.reading <= Reading::kRefused;
    const size_t letters = std::strlen(known.name);
    if (is_about_values &&
        distance(name.data, name.bytes, known.name, letters) <= mostErrors(letters)) {
      return known.name;
    }
  }
  return nullptr;
}

bool isWalked(Shape shape) {
  switch (shape) {
    case Shape::kSchemas:
    case Shape::kSchemaOrList:
    case Shape::kNamedSchemas:
    case Shape::kNamedNeeds:
    case Shape::kTexts:
    case Shape::kTextsOrFlag:
    case Shape::kTypes:
      return true;
    default:
      return false;
  }
}

const char* shapeError(Shape shape, const JsonValue& value) {
  uint32_t ignored = 0;
  switch (shape) {
    case Shape::kAnything:
      return nullptr;
    case Shape::kSchema:
      return isSchemaValue(value) ? nullptr : "has to be a schema: correct it";
    case Shape::kSchemas:
      return value.isArray() && value.count() != 0 && all(value, isSchemaValue)
                 ? nullptr
                 : "has to be an array of schemas: correct it";
    case Shape::kSchemaOrList:
      return isSchemaValue(value) || (value.isArray() && all(value, isSchemaValue))
                 ? nullptr
                 : "has to be a schema, or an array of them: correct it";
    case Shape::kNamedSchemas:
      return value.isObject() && all(value, isSchemaValue)
                 ? nullptr
                 : "has to be an object of schemas: correct it";
    case Shape::kNamedNeeds:
      return value.isObject() && all(value,
                                     [](const JsonValue& v) {
                                       return isSchemaValue(v) || isText(v) || isTexts(v);
                                     })
                 ? nullptr
                 : "has to be an object of schemas or lists of names: correct it";
    case Shape::kText:
      return isText(value) ? nullptr : "has to be a string: correct it";
    case Shape::kTexts:
      return isTexts(value) ? nullptr : "has to be an array of strings: correct it";
    case Shape::kTextsOrFlag:
      return isTexts(value) || value.isBool() ? nullptr
                                              : "has to be an array of strings: correct it";
    case Shape::kNumber:
      return value.isNumber() ? nullptr : "has to be a number: correct it";
    case Shape::kNumberOrFlag:
      return value.isNumber() || value.isBool() ? nullptr : "has to be a number: correct it";
    case Shape::kFlag:
      return value.isBool() ? nullptr : "has to be true or false: correct it";
    case Shape::kCount:
      return asCount(value, kLargestCount, &ignored)
                 ? nullptr
                 : "has to be a whole number from 0 up: correct it";
    case Shape::kValues:
      return value.isArray() ? nullptr : "has to be an array: correct it";
    case Shape::kTypes:
      return typeNamed(value) != 0 ||
                     (value.isArray() && value.count() != 0 &&
                      all(value, [](const JsonValue& v) { return typeNamed(v) != 0; }))
                 ? nullptr
                 : "has to be a JSON type, or a list of them: correct it";
  }
  return nullptr;
}

}  // namespace oriel_internal
