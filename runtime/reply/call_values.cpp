#include "reply/call_values.h"

#include <algorithm>
#include <cstring>

#include "grammar/json_schema.h"
#include "reply/call_trial.h"
#include "reply/characters.h"
#include "reply/parameter.h"
#include "reply/raw_text.h"

namespace oriel_internal {
namespace {

/// Keywords that cannot be enforced for text that is not JSON.
constexpr const char* kOfStrings[] = {"pattern", "format", "minLength", "maxLength"};
/// Keywords that only the JSON grammar supports.
constexpr const char* kOfJson[] = {"allOf",
                                   "not",
                                   "if",
                                   "patternProperties",
                                   "propertyNames",
                                   "dependentRequired",
                                   "dependentSchemas",
                                   "prefixItems",
                                   "contains",
                                   "uniqueItems",
                                   "minProperties",
                                   "maxProperties"};

constexpr uint64_t kStepsOfMember = 100;  // to look its name up

constexpr const char* kOfChoices[] = {"anyOf", "oneOf", "enum", "const"};

uint32_t numberOf(const JsonValue* value, uint32_t otherwise) {
  if (value == nullptr || !value->isInteger() || value->text().bytes > 6) {
    return otherwise;
  }
  uint32_t number = 0;
  for (size_t i = 0; i < value->text().bytes; ++i) {
    number = number * 10 + static_cast<uint32_t>(value->text().data[i] - '0');
  }
  return number;
}

}  // namespace

int shownBytes(const JsonText& name) { return static_cast<int>(std::min<size_t>(name.bytes, 100)); }

Status failOfKey(const Log& log, const JsonText& key) {
  return log.fail(ORIEL_ERROR_UNSUPPORTED,
                  "a tool's parameter \"%.*s\" has a name that calls in this model's form have no "
                  "place for: use up to 64 letters, digits and _",
                  shownBytes(key), key.data);
}

const JsonValue** membersOf(Grammar* grammar, const JsonValue* properties,
                            const JsonValue* required) {
  const uint32_t count = properties != nullptr ? properties->count() : 0;
  const uint32_t n_required = required != nullptr ? required->count() : 0;
  const JsonValue** const all = grammar->scratch()->take<const JsonValue*>(uint64_t{count} + 1);
  if (all == nullptr || !grammar->work()->spend((uint64_t{count} + n_required) * kStepsOfMember)) {
    return nullptr;
  }
  for (const JsonValue* one = n_required != 0 ? required->first() : nullptr; one != nullptr;
       one = one->next()) {
    const JsonValue* const property =
        one->isString() && count != 0 ? properties->find(one->text()) : nullptr;
    if (property != nullptr) {
      const_cast<JsonValue*>(property)->note();  // the tools were parsed for this grammar
    }
  }
  uint32_t n = 0;
  for (const JsonValue* one = count != 0 ? properties->first() : nullptr; one != nullptr;
       one = one->next()) {
    all[n++] = one;
  }
  return all;
}

ExprId CallValues::fail(const char* what) {
  if (status_.ok()) {
    status_ =
        log_.fail(ORIEL_ERROR_UNSUPPORTED,
                  "a tool's parameters have \"%s\", which calls in this model's form cannot be "
                  "held to: leave it out, or do not ask for checked calls",
                  what);
  }
  return grammar_.never();
}

bool CallValues::refuses(const JsonValue& schema, const char* const* keywords, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (schema.find(keywords[i]) != nullptr) {
      fail(keywords[i]);
      return true;
    }
  }
  return false;
}

const JsonValue& CallValues::resolved(const JsonValue& schema) const {
  const JsonValue* at = &schema;
  for (uint32_t hops = 0; hops < kMostDepth; ++hops) {
    const JsonValue* const ref = at->find("$ref");
    if (ref == nullptr || !ref->isString() || ref->text().bytes < 2 || ref->text().data[0] != '#') {
      return *at;
    }
    const JsonValue* target = &document_;
    const char* text = ref->text().data + 1;
    const char* const end = ref->text().data + ref->text().bytes;
    while (target != nullptr && text != end && *text == '/') {
      const char* const name = ++text;
      text = std::find(text, end, '/');
      target = target->find(JsonText{name, static_cast<size_t>(text - name)});
    }
    if (target == nullptr) {
      return *at;  // readJsonSchema() logs the fault
    }
    at = target;
  }
  return *at;
}

ExprId CallValues::value(const JsonValue& schema, ArgumentNotation notation, const char* end_mark) {
  switch (notation) {
    case ArgumentNotation::kJson:
      return json(schema);
    case ArgumentNotation::kRaw:
      return raw(schema, end_mark);
    case ArgumentNotation::kGemma:
      return gemma(schema);
  }
  return grammar_.never();
}

ExprId CallValues::json(const JsonValue& schema) {
  ExprId value = grammar_.never();
  if (status_.ok()) {
    status_ = readJsonSchema(schema, document_, rules_, log_, &grammar_, &value);
  }
  return value;
}

const JsonValue& CallValues::members(const JsonValue& given) {
  const JsonValue& schema = resolved(given);
  const JsonValue* const type = schema.find("type");
  const bool is_plain = type == nullptr || (type->isString() && type->text().is("object"));
  if (!is_plain || schema.find("$ref") != nullptr) {
    (void)json(given);  // logs the fault
  }
  if ((typesOf(&schema) & kTypeObject) == 0) {
    fail("type");
  } else if (!refuses(schema, kOfJson, sizeof(kOfJson) / sizeof(kOfJson[0])) &&
             !refuses(schema, kOfChoices, sizeof(kOfChoices) / sizeof(kOfChoices[0]))) {
    checkRequired(schema);
  }
  return schema;
}

void CallValues::checkRequired(const JsonValue& schema) {
  const JsonValue* const required = schema.find("required");
  const JsonValue* const properties = schema.find("properties");
  const JsonValue* name = required == nullptr ? nullptr : required->first();
  for (; name != nullptr; name = name->next()) {
    if (name->isString() && (properties == nullptr || properties->find(name->text()) == nullptr)) {
      fail("required");
      return;
    }
  }
}

ExprId CallValues::jsonObject(const JsonValue& schema) {
  const ExprId value = json(schema);
  return (typesOf(&resolved(schema)) & kTypeObject) != 0 ? value : fail("type");
}

bool CallValues::listed(const JsonValue& schema, uint8_t types, const char* before,
                        const char* behind, ExprId* out) {
  const JsonValue* const constant = schema.find("const");
  const JsonValue* const list = schema.find("enum");
  const JsonValue* one = constant != nullptr ? constant : list != nullptr ? list->first() : nullptr;
  *out = grammar_.never();
  if (one == nullptr) {
    return false;
  }
  for (; one != nullptr; one = constant != nullptr ? nullptr : one->next()) {
    ExprId value = grammar_.never();
    if (one->isString() && (types & kTypeString) != 0) {
      const JsonText& text = one->text();
      const char* const end = text.data + text.bytes;
      const bool has_mark =
          std::search(text.data, end, behind, behind + std::strlen(behind)) != end;
      value = has_mark ? fail("enum") : grammar_.bytes(text.data, text.bytes);
      value =
          grammar_.sequence(grammar_.text(before), grammar_.sequence(value, grammar_.text(behind)));
    } else if (one->isNumber() && (types & kTypeNumber) != 0) {
      value = grammar_.bytes(one->text().data, one->text().bytes);
    } else if (one->isBool() && (types & kTypeBool) != 0) {
      value = grammar_.text(one->boolean() ? "true" : "false");
    } else if (one->isNull() && (types & kTypeNull) != 0) {
      value = grammar_.text("null");
    } else if (one->isArray() || one->isObject()) {
      value = fail("enum");
    }
    *out = grammar_.choice(*out, value);
  }
  return true;
}

/// Strings between tags are written verbatim; everything else as JSON.
ExprId CallValues::raw(const JsonValue& given, const char* end_mark) {
  const JsonValue& schema = resolved(given);
  const uint8_t types = typesOf(&schema);
  ExprId all = 0;
  if ((types & kTypeString) == 0) {
    return grammar_.sequence(json(schema), grammar_.text(end_mark));
  }
  if (types == kTypeString && listed(schema, types, "", end_mark, &all)) {
    return all;
  }
  if ((types & ~(kTypeString | kTypeNull)) != 0) {
    return fail("several types besides string");
  }
  return refuses(schema, kOfStrings, sizeof(kOfStrings) / sizeof(kOfStrings[0]))
             ? grammar_.never()
             : textUpTo(&grammar_, end_mark);
}

ExprId CallValues::gemmaString(const JsonValue& schema) {
  return refuses(schema, kOfStrings, sizeof(kOfStrings) / sizeof(kOfStrings[0]))
             ? grammar_.never()
             : grammar_.sequence(grammar_.text(kGemmaQuote), textUpTo(&grammar_, kGemmaQuote));
}

ExprId CallValues::gemmaArray(const JsonValue& schema) {
  const JsonValue* const items = schema.find("items");
  if (items == nullptr || !items->isObject()) {
    return fail("an array without items");
  }
  const uint32_t least = numberOf(schema.find("minItems"), 0);
  const uint32_t most = numberOf(schema.find("maxItems"), kAnyTimes);
  if (most < least || most == 0) {
    return most == 0 && least == 0 ? grammar_.text("[]") : fail("minItems above maxItems");
  }
  const ExprId one = gemma(*items);
  const ExprId more = grammar_.sequence(grammar_.text(","), one);
  const ExprId rest =
      grammar_.repeat(more, least == 0 ? 0 : least - 1, most == kAnyTimes ? kAnyTimes : most - 1);
  const ExprId list = grammar_.sequence(one, rest);
  return grammar_.sequence(
      grammar_.text("["),
      grammar_.sequence(least == 0 ? grammar_.optional(list) : list, grammar_.text("]")));
}

ExprId CallValues::gemmaObject(const JsonValue& schema) {
  const JsonValue* const properties = schema.find("properties");
  const JsonValue* each = properties == nullptr ? nullptr : properties->first();
  for (; each != nullptr && status_.ok(); each = each->next()) {
    status_ = isGemmaKey(each->key()) ? kOk : failOfKey(log_, each->key());
  }
  checkRequired(schema);
  const ExprId members = membersInOrder(
      &grammar_, properties, schema.find("required"), ",", [this](const JsonValue& property) {
        return grammar_.sequence(grammar_.bytes(property.key().data, property.key().bytes),
                                 grammar_.sequence(grammar_.text(":"), gemma(property)));
      });
  return grammar_.sequence(grammar_.text("{"), grammar_.sequence(members, grammar_.text("}")));
}

ExprId CallValues::gemma(const JsonValue& given) {
  const JsonValue& schema = resolved(given);
  if (!status_.ok() || ++depth_ > kMostDepth) {
    return fail("parameters nested too deeply");
  }
  ExprId value = grammar_.never();
  const uint8_t types = typesOf(&schema);
  const JsonValue* choices = schema.find("anyOf");
  choices = choices != nullptr ? choices : schema.find("oneOf");
  if (refuses(schema, kOfJson, sizeof(kOfJson) / sizeof(kOfJson[0]))) {
    value = grammar_.never();
  } else if (choices != nullptr) {
    for (const JsonValue* one = choices->first(); one != nullptr; one = one->next()) {
      value = grammar_.choice(value, gemma(*one));
    }
  } else if (types == kTypeAny) {
    value = fail("a parameter without a type");
  } else if (types == kTypeNumber || !listed(schema, types, kGemmaQuote, kGemmaQuote, &value)) {
    value = gemmaOf(schema, types);
  }
  --depth_;
  return value;
}

/// A value of any of these types.
ExprId CallValues::gemmaOf(const JsonValue& schema, uint8_t types) {
  ExprId value = grammar_.never();
  if ((types & kTypeString) != 0) {
    value = grammar_.choice(value, gemmaString(schema));
  }
  if ((types & kTypeObject) != 0) {
    value = grammar_.choice(value, gemmaObject(schema));
  }
  if ((types & kTypeArray) != 0) {
    value = grammar_.choice(value, gemmaArray(schema));
  }
  if ((types & kTypeNull) != 0) {
    value = grammar_.choice(value, grammar_.text("null"));
  }
  if ((types & kTypeBool) != 0) {
    value = grammar_.choice(value, grammar_.choice(grammar_.text("true"), grammar_.text("false")));
  }
  if ((types & kTypeNumber) != 0) {
    value = types == kTypeNumber ? grammar_.choice(value, json(schema))
                                 : fail("number among several types");
  }
  return value;
}

}  // namespace oriel_internal
