// Keywords, references, and what schemas say that hold together.
#include <cstdio>

#include "grammar/schema_parts.h"
#include "text/hex.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostReferences = 40;  // one leading to the next
constexpr uint32_t kLargestCount = UINT32_MAX - 1;
constexpr size_t kPathBytes = 400;

// What each keyword's value has to be.
enum class Shape : uint8_t {
  kAnything,
  kSchema,
  kSchemas,       // an array of at least one
  kNamedSchemas,  // an object of them
  kText,
  kTexts,
  kNumber,
  kCount,
  kValues,
  kTypes,
};

struct Keyword {
  const char* name;
  Shape shape;
};

constexpr Keyword kKeywords[] = {
    {"type", Shape::kTypes},
    {"enum", Shape::kValues},
    {"const", Shape::kAnything},
    {"properties", Shape::kNamedSchemas},
    {"required", Shape::kTexts},
    {"additionalProperties", Shape::kSchema},
    {"minProperties", Shape::kCount},
    {"maxProperties", Shape::kCount},
    {"items", Shape::kSchema},
    {"prefixItems", Shape::kSchemas},
    {"minItems", Shape::kCount},
    {"maxItems", Shape::kCount},
    {"minLength", Shape::kCount},
    {"maxLength", Shape::kCount},
    {"pattern", Shape::kText},
    {"format", Shape::kText},
    {"minimum", Shape::kNumber},
    {"maximum", Shape::kNumber},
    {"exclusiveMinimum", Shape::kNumber},
    {"exclusiveMaximum", Shape::kNumber},
    {"multipleOf", Shape::kNumber},
    {"anyOf", Shape::kSchemas},
    {"oneOf", Shape::kSchemas},
    {"allOf", Shape::kSchemas},
    {"$ref", Shape::kText},
    {"$defs", Shape::kNamedSchemas},
    {"definitions", Shape::kNamedSchemas},
    // These say nothing about values.
    {"title", Shape::kAnything},
    {"description", Shape::kAnything},
    {"default", Shape::kAnything},
    {"example", Shape::kAnything},
    {"examples", Shape::kAnything},
    {"deprecated", Shape::kAnything},
    {"readOnly", Shape::kAnything},
    {"writeOnly", Shape::kAnything},
    {"$schema", Shape::kAnything},
    {"$comment", Shape::kAnything},
};

constexpr struct {
  const char* name;
  uint32_t types;
} kTypeNames[] = {
    {"null", kNullType},     {"boolean", kBoolType},  {"integer", kIntegerType},
    {"number", kNumberType}, {"string", kStringType}, {"array", kArrayType},
    {"object", kObjectType},
};

uint32_t typeNamed(const JsonValue& name) {
  for (const auto& type : kTypeNames) {
    if (name.isString() && name.text().is(type.name)) {
      return type.types;
    }
  }
  return 0;
}

bool isSchema(const JsonValue& value) { return value.isObject() || value.isBool(); }

template <typename Is>
bool all(const JsonValue& values, Is is) {
  for (const JsonValue* v = values.first(); v != nullptr; v = v->next()) {
    if (!is(*v)) {
      return false;
    }
  }
  return true;
}

const char* shapeError(Shape shape, const JsonValue& value) {
  uint32_t ignored = 0;
  const auto is_text = [](const JsonValue& v) { return v.isString(); };
  switch (shape) {
    case Shape::kAnything:
      return nullptr;
    case Shape::kSchema:
      return isSchema(value) ? nullptr : "has to be a schema: correct it";
    case Shape::kSchemas:
      return value.isArray() && value.count() != 0 && all(value, isSchema)
                 ? nullptr
                 : "has to be an array of schemas: correct it";
    case Shape::kNamedSchemas:
      return value.isObject() && all(value, isSchema)
                 ? nullptr
                 : "has to be an object of schemas: correct it";
    case Shape::kText:
      return value.isString() ? nullptr : "has to be a string: correct it";
    case Shape::kTexts:
      return value.isArray() && all(value, is_text) ? nullptr
                                                    : "has to be an array of strings: correct it";
    case Shape::kNumber:
      return value.isNumber() ? nullptr : "has to be a number: correct it";
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
                 : "has to be the name of a type, or several: correct it";
  }
  return nullptr;
}

// Where a value stands in a document, as a JSON pointer; cut where it is long.
class Path {
 public:
  Path(const JsonValue& document, const JsonValue& value) { find(document, value); }
  const char* text() const { return text_; }

 private:
  bool find(const JsonValue& at, const JsonValue& value) {
    if (&at == &value) {
      return true;
    }
    uint32_t index = 0;
    for (const JsonValue* child = at.first(); child != nullptr; child = child->next(), ++index) {
      const size_t before = bytes_;
      put('/');
      at.isObject() ? putKey(child->key()) : putIndex(index);
      if (find(*child, value)) {
        return true;
      }
      bytes_ = before;
      text_[bytes_] = '\0';
    }
    return false;
  }
  void put(char c) {
    if (bytes_ + 1 < kPathBytes) {
      text_[bytes_++] = c;
      text_[bytes_] = '\0';
    }
  }
  void putKey(const JsonText& key) {
    for (size_t i = 0; i < key.bytes; ++i) {
      const char c = key.data[i];
      if (c == '~' || c == '/') {
        put('~');
      }
      put(c == '~' ? '0' : c == '/' ? '1' : static_cast<uint8_t>(c) < 0x20 ? '?' : c);
    }
  }
  void putIndex(uint32_t index) {
    if (index >= 10) {
      putIndex(index / 10);
    }
    put(static_cast<char>('0' + index % 10));
  }

  char text_[kPathBytes] = "#";
  size_t bytes_ = 1;
};

// Between two slashes of a reference: %-escapes, then those of JSON pointers.
bool decodeToken(const char* at, const char* end, char* out, size_t* bytes) {
  size_t n = 0;
  while (at != end) {
    char c = *at++;
    if (c == '%') {
      const int high = end - at >= 2 ? hexDigit(at[0]) : -1;
      const int low = end - at >= 2 ? hexDigit(at[1]) : -1;
      if (high < 0 || low < 0) {
        return false;
      }
      c = static_cast<char>(high * 16 + low);
      at += 2;
    }
    const bool escaped = n != 0 && out[n - 1] == '~' && (c == '0' || c == '1');
    if (escaped) {
      // "~01" is "~1": what has been decoded does not begin another escape.
      out[n - 1] = c == '0' ? '\x01' : '/';
    } else {
      out[n++] = c;
    }
  }
  std::replace(out, out + n, '\x01', '~');
  *bytes = n;
  return true;
}

const JsonValue* elementAt(const JsonValue& array, const JsonText& index) {
  uint32_t n = 0;
  for (size_t i = 0; i < index.bytes; ++i) {
    if (index.data[i] < '0' || index.data[i] > '9' || n > 1000000) {
      return nullptr;
    }
    n = n * 10 + static_cast<uint32_t>(index.data[i] - '0');
  }
  const JsonValue* at = index.bytes != 0 ? array.first() : nullptr;
  for (; at != nullptr && n != 0; --n) {
    at = at->next();
  }
  return at;
}

}  // namespace

uint32_t typeOf(const JsonValue& value) {
  Decimal decimal;
  switch (value.kind()) {
    case JsonKind::kNull:
      return kNullType;
    case JsonKind::kBool:
      return kBoolType;
    case JsonKind::kNumber:
      return !readDecimal(value.text(), &decimal) || decimal.isInteger() ? kIntegerType
                                                                         : kFractionType;
    case JsonKind::kString:
      return kStringType;
    case JsonKind::kArray:
      return kArrayType;
    case JsonKind::kObject:
      return kObjectType;
  }
  return 0;
}

void SchemaContext::fail(oriel_status code, const JsonValue& schema, const char* keyword,
                         const char* what) {
  (void)end();
  if (status_.ok()) {
    status_ = log_.fail(code, "the schema's keyword \"%s\" at %s %s", keyword,
                        Path(document_, schema).text(), what);
  }
}

void SchemaContext::refuse(const JsonValue& schema, const char* keyword, const char* what) {
  fail(ORIEL_ERROR_UNSUPPORTED, schema, keyword, what);
}

void SchemaContext::wrong(const JsonValue& schema, const char* keyword, const char* what) {
  fail(ORIEL_ERROR_ARGUMENT, schema, keyword, what);
}

Status SchemaContext::end() {
  if (status_.ok() && (grammar_->noMemory() || patterns_.noMemory())) {  // not the schema's fault
    status_ = log_.fail(ORIEL_ERROR_OUT_OF_MEMORY, kNoSchemaMemory);
  } else if (status_.ok() && grammar_->work()->stopped()) {
    status_ = log_.fail(ORIEL_ERROR_CANCELLED, "working out the schema was stopped: ask again");
  } else if (status_.ok() && grammar_->work()->ended()) {
    status_ = log_.fail(ORIEL_ERROR_UNSUPPORTED,
                        "the schema is too much to work out (at %s): make it smaller, above all "
                        "unions within unions and patterns in branches of oneOf",
                        Path(document_, at_ != nullptr ? *at_ : schema_).text());
  }
  return status_;
}

bool SchemaContext::spend(const JsonValue& schema, uint64_t steps) {
  at_ = &schema;
  if (!grammar_->work()->spend(steps)) {
    (void)end();
  }
  return !failed();
}

bool SchemaContext::check(const JsonValue& schema) {
  const JsonValue*& known = checked_[reinterpret_cast<uintptr_t>(&schema) / 16 % kMostChecked];
  if (known == &schema) {
    return spend(schema, kStepsOfKnown);
  }
  if (!spend(schema) || !spend(schema, stepsOfMembers(schema))) {
    return false;
  }
  for (const JsonValue* member = schema.first(); member != nullptr; member = member->next()) {
    if (!checkShape(schema, *member)) {
      return false;
    }
  }
  known = &schema;
  return true;
}

bool SchemaContext::checkShape(const JsonValue& schema, const JsonValue& keyword) {
  for (const Keyword& known : kKeywords) {
    if (keyword.key().is(known.name)) {
      const bool is_walked = known.shape == Shape::kSchemas ||
                             known.shape == Shape::kNamedSchemas || known.shape == Shape::kTexts ||
                             known.shape == Shape::kTypes;
      if (is_walked && !spend(schema, stepsToPass(keyword.count()))) {
        return false;
      }
      const char* const error = shapeError(known.shape, keyword);
      if (error != nullptr) {
        wrong(schema, known.name, error);
      }
      return error == nullptr;
    }
  }
  // `$id` would be where references begin; a `uniqueItems` of false says nothing.
  const bool at_root = &schema == &schema_ || &schema == &document_;
  if ((keyword.key().is("$id") && at_root) ||
      (keyword.key().is("uniqueItems") && keyword.isBool() && !keyword.boolean())) {
    return true;
  }
  char name[80];
  const size_t bytes = std::min<size_t>(keyword.key().bytes, sizeof(name) - 1);
  std::memcpy(name, keyword.key().data, bytes);
  name[bytes] = '\0';
  std::replace_if(
      name, name + bytes, [](char c) { return static_cast<uint8_t>(c) < 0x20; }, '?');
  refuse(schema, name, "is not supported: leave it out, or say it otherwise");
  return false;
}

const JsonValue* SchemaContext::resolve(const JsonValue& schema, const JsonValue& reference) {
  const char* at = reference.text().data;
  const char* const end = at + reference.text().bytes;
  if (at == end || *at != '#' || (end - at > 1 && at[1] != '/')) {
    refuse(schema, "$ref", "leads elsewhere: only references like \"#/$defs/name\" are supported");
    return nullptr;
  }
  const JsonValue* target = &document_;
  char* const token = scratch()->takeText(reference.text().bytes + 1);
  if (token == nullptr || !spend(schema, 4 * uint64_t{reference.text().bytes})) {
    return nullptr;
  }
  for (++at; at != end && target != nullptr;) {
    const char* const slash = std::find(at + 1, end, '/');
    size_t bytes = 0;
    if (!decodeToken(at + 1, slash, token, &bytes)) {
      target = nullptr;
      break;
    }
    const JsonText name = {token, bytes};
    (void)spend(schema, stepsToPass(target->count()));
    target = target->isObject()  ? target->find(name)
             : target->isArray() ? elementAt(*target, name)
                                 : nullptr;
    at = slash;
  }
  if (target == nullptr || !isSchema(*target)) {
    wrong(schema, "$ref", "leads to no schema: correct it");
    return nullptr;
  }
  return target;
}

bool SchemaContext::leadsTo(const Conjunction& all, uint32_t ancestor, uint32_t element) {
  while (element != SchemaElement::kNoParent && element != ancestor) {
    element = all.elements[element].parent;
  }
  return element == ancestor;
}

void SchemaContext::add(const JsonValue* schema, Conjunction* all, uint32_t parent,
                        uint32_t depth) {
  if (schema == nullptr || failed()) {
    return;
  }
  if (schema->isBool()) {
    all->never = all->never || !schema->boolean();
    return;
  }
  if (!check(*schema)) {
    return;
  }
  if (depth > kMostReferences) {
    refuse(*schema, "$ref", "is one of too many that lead to each other: leave some out");
    return;
  }
  const uint32_t at = all->elements.count();
  if (!spend(*schema, at)) {
    return;
  }
  for (uint32_t i = 0; i < at; ++i) {
    if (all->elements[i].schema != schema || all->elements[i].isNegated()) {
      continue;
    }
    if (leadsTo(*all, i, parent)) {
      wrong(*schema, "$ref", "leads back here without a property or item between: correct it");
    }
    return;
  }
  if (!all->elements.push({schema, 0, parent})) {
    return;
  }
  if (const JsonValue* const reference = schema->find("$ref"); reference != nullptr) {
    add(resolve(*schema, *reference), all, at, depth + 1);
  }
  if (const JsonValue* const parts = schema->find("allOf"); parts != nullptr) {
    for (const JsonValue* part = parts->first(); part != nullptr; part = part->next()) {
      add(part, all, at, depth + 1);
    }
  }
}

void SchemaContext::addNegated(const JsonValue& schema, Conjunction* all) {
  if (schema.isBool()) {
    all->never = all->never || schema.boolean();
    return;
  }
  if (check(schema)) {
    all->elements.push({&schema, SchemaElement::kNegated});
  }
}

uint32_t SchemaContext::typesOf(const JsonValue& schema) {
  const JsonValue* const type = schema.find("type");
  if (type == nullptr) {
    return kAnyType;
  }
  uint32_t types = typeNamed(*type);
  for (const JsonValue* one = type->first(); one != nullptr; one = one->next()) {
    types |= typeNamed(*one);
  }
  return types;
}

NumberFacts SchemaContext::numbersOf(const JsonValue& schema) {
  NumberFacts facts;
  const auto bound = [&](const char* keyword, Decimal* decimal) {
    const JsonValue* const value = schema.find(keyword);
    if (value == nullptr) {
      return false;
    }
    (void)spend(schema, value->text().bytes);
    if (!readBound(value->text(), decimal)) {
      refuse(schema, keyword, "has too many digits: write fewer");
      return false;
    }
    return true;
  };
  Decimal decimal;
  if (bound("minimum", &decimal)) {
    facts.addMin(decimal, false);
  }
  if (bound("exclusiveMinimum", &decimal)) {
    facts.addMin(decimal, true);
  }
  if (bound("maximum", &decimal)) {
    facts.addMax(decimal, false);
  }
  if (bound("exclusiveMaximum", &decimal)) {
    facts.addMax(decimal, true);
  }
  if (bound("multipleOf", &decimal)) {
    Step step;
    if (decimal.negative || decimal.isZero()) {
      wrong(schema, "multipleOf", "has to be above zero: correct it");
    } else if (!asStep(decimal, &step)) {
      refuse(schema, "multipleOf", "has too many digits: write fewer");
    } else {
      facts.addStep(step);
    }
  }
  return facts;
}

StringFacts SchemaContext::stringsOf(const JsonValue& schema) {
  StringFacts facts;
  countsOf(schema, "minLength", "maxLength", &facts.min_length, &facts.max_length);
  if (const JsonValue* const pattern = schema.find("pattern"); pattern != nullptr) {
    bool is_wrong = false;
    const char* const error = patterns_.error(pattern->text(), &is_wrong);
    if (error != nullptr) {
      char what[160];
      std::snprintf(what, sizeof(what), "has a part that cannot be used (%s): write it otherwise",
                    error);
      fail(is_wrong ? ORIEL_ERROR_ARGUMENT : ORIEL_ERROR_UNSUPPORTED, schema, "pattern", what);
    }
    facts.patterns[facts.n_patterns++] = pattern->text();
  }
  if (const JsonValue* const format = schema.find("format"); format != nullptr) {
    if (formatPattern(format->text()) == nullptr) {
      char what[120];
      std::snprintf(what, sizeof(what), "asks for \"%.*s\", which is not supported: leave it out",
                    static_cast<int>(std::min<size_t>(format->text().bytes, 40)),
                    format->text().data);
      refuse(schema, "format", what);
    }
    facts.formats[facts.n_formats++] = format->text();
  }
  return facts;
}

void SchemaContext::countsOf(const JsonValue& schema, const char* min, const char* max,
                             uint32_t* least, uint32_t* most) {
  uint32_t count = 0;
  if (const JsonValue* const value = schema.find(min);
      value != nullptr && asCount(*value, kLargestCount, &count)) {
    *least = std::max(*least, count);
  }
  if (const JsonValue* const value = schema.find(max);
      value != nullptr && asCount(*value, kLargestCount, &count)) {
    *most = std::min(*most, count);
  }
}

void SchemaContext::join(const JsonValue& schema, const NumberFacts& more, NumberFacts* facts) {
  if (more.has_min) {
    facts->addMin(more.min, more.above_min);
  }
  if (more.has_max) {
    facts->addMax(more.max, more.below_max);
  }
  for (uint32_t i = 0; i < more.n_steps; ++i) {
    if (!facts->addStep(more.steps[i])) {
      refuse(schema, "multipleOf", "is one of too many: leave some out");
    }
  }
}

void SchemaContext::join(const JsonValue& schema, const StringFacts& more, StringFacts* facts) {
  facts->min_length = std::max(facts->min_length, more.min_length);
  facts->max_length = std::min(facts->max_length, more.max_length);
  const auto add = [&](const JsonText& text, JsonText* texts, uint32_t* n, const char* keyword) {
    if (std::find(texts, texts + *n, text) != texts + *n) {
      return;
    }
    if (*n == StringFacts::kMostPatterns) {
      refuse(schema, keyword, "is one of too many: leave some out");
      return;
    }
    texts[(*n)++] = text;
  };
  for (uint32_t i = 0; i < more.n_patterns; ++i) {
    add(more.patterns[i], facts->patterns, &facts->n_patterns, "pattern");
  }
  for (uint32_t i = 0; i < more.n_formats; ++i) {
    add(more.formats[i], facts->formats, &facts->n_formats, "format");
  }
}

SchemaFacts SchemaContext::factsOf(const Conjunction& all) {
  SchemaFacts facts;
  (void)grammar_->work()->spend(all.elements.count());
  for (uint32_t i = 0; i < all.elements.count() && !failed(); ++i) {
    const SchemaElement& element = all.elements[i];
    if (element.isNegated()) {
      continue;
    }
    const JsonValue& schema = *element.schema;
    if (!spend(schema, kStepsOfSchema / 2 + stepsOfMembers(schema))) {
      break;
    }
    facts.types &= typesOf(schema);
    if (facts.constants == nullptr &&
        (schema.find("const") != nullptr || schema.find("enum") != nullptr)) {
      facts.constants = &schema;
    }
    join(schema, numbersOf(schema), &facts.number);
    join(schema, stringsOf(schema), &facts.string);
    countsOf(schema, "minItems", "maxItems", &facts.min_items, &facts.max_items);
    countsOf(schema, "minProperties", "maxProperties", &facts.min_properties,
             &facts.max_properties);
    const bool any_of =
        (element.flags & SchemaElement::kWithoutAnyOf) == 0 && schema.find("anyOf") != nullptr;
    const bool one_of =
        (element.flags & SchemaElement::kWithoutOneOf) == 0 && schema.find("oneOf") != nullptr;
    if (!facts.has_union && (any_of || one_of)) {
      facts.has_union = true;
      facts.union_at = i;
      facts.is_one_of = !any_of;
    }
  }
  return facts;
}

}  // namespace oriel_internal
