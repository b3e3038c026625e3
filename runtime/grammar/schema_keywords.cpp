#include "grammar/schema_parts.h"

#include <iterator>

#include "grammar/schema_patterns.h"
#include "text/unicode.h"

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

// Validates a given value, for `const` and `enum` combined with other keywords.

namespace {

constexpr uint32_t kMostDepthOfConstants = 120;
constexpr uint32_t kMostMatched = 1000;
constexpr uint64_t kStepsOfValue = 4;     // to compare it
constexpr uint64_t kStepsOfNumber = 160;  // to read it

uint32_t codePoints(const JsonText& text) {
  uint32_t n = 0;
  for (size_t at = 0; at < text.bytes; ++n) {
    at += decodeUtf8(text.data + at, text.bytes - at).bytes;
  }
  return n;
}

bool isSameNumber(const JsonText& a, const JsonText& b) {
  Decimal x;
  Decimal y;
  if (!readDecimal(a, &x) || !readDecimal(b, &y)) {
    return a == b;
  }
  return compareDecimals(x, y) == 0;
}

}  // namespace

bool isSameValue(const JsonValue& a, const JsonValue& b, Work* work) {
  if (!work->spend(kStepsOfValue + a.text().bytes / 16) || a.kind() != b.kind()) {
    return false;
  }
  switch (a.kind()) {
    case JsonKind::kNull:
      return true;
    case JsonKind::kBool:
      return a.boolean() == b.boolean();
    case JsonKind::kNumber:
      return work->spend(kStepsOfNumber + a.text().bytes + b.text().bytes) &&
             isSameNumber(a.text(), b.text());
    case JsonKind::kString:
      return a.text() == b.text();
    case JsonKind::kArray:
    case JsonKind::kObject:
      break;
  }
  if (a.count() != b.count()) {
    return false;
  }
  const JsonValue* other = b.first();
  for (const JsonValue* child = a.first(); child != nullptr; child = child->next()) {
    const JsonValue* const match = a.isObject() ? b.find(child->key()) : other;
    if (match == nullptr || !work->spend(a.isObject() ? stepsToPass(b.count()) : 0) ||
        !isSameValue(*child, *match, work)) {
      return false;
    }
    other = other->next();
  }
  return true;
}

// An excluded pattern is read as either engine may read it.
class SchemaContext::Negating {
 public:
  Negating(SchemaContext* context, bool negates) : context_(*context), before_(context->reading_) {
    if (negates) {
      const bool is_both = before_ == RegexReading::kBoth;
      context_.reading_ = is_both ? RegexReading::kEither : RegexReading::kBoth;
    }
  }
  ~Negating() { context_.reading_ = before_; }
  Negating(const Negating&) = delete;
  Negating& operator=(const Negating&) = delete;

 private:
  SchemaContext& context_;
  const RegexReading before_;
};

bool SchemaContext::isValid(const Conjunction& all, const JsonValue& value,
                            const JsonValue* listing) {
  for (const SchemaElement& element : all.elements) {
    const uint32_t flags = element.schema == listing ? uint32_t{SchemaElement::kWithoutEnum} : 0;
    const Negating negating(this, element.isNegated());
    if (failed() || isValid(*element.schema, value, 0, flags) == element.isNegated()) {
      return false;
    }
  }
  return !failed() && !all.never;
}

bool SchemaContext::isValidByAll(const Conjunction& all, const JsonValue& value) {
  for (const SchemaElement& element : all.elements) {
    const uint32_t flags = element.flags | SchemaElement::kAlone;
    if (failed() || (!element.isNegated() && !isValid(*element.schema, value, 0, flags))) {
      return false;
    }
  }
  return !failed() && !all.never;
}

bool SchemaContext::isValid(const JsonValue& given, const JsonValue& value, uint32_t depth,
                            uint32_t flags) {
  const JsonValue* const canon = canonical(given);
  if (canon == nullptr || canon->isBool()) {
    return canon != nullptr && canon->boolean();
  }
  const JsonValue& schema = *canon;
  if (depth > kMostDepthOfConstants) {
    wrong(schema, "$ref", "leads back here without a property or item between: correct it");
    return false;
  }
  if ((typesOf(schema) & typeOf(value)) == 0) {
    return false;
  }
  if (const JsonValue* const constant = schema.find("const");
      constant != nullptr && !isSameValue(*constant, value, grammar_->work())) {
    return false;
  }
  const bool listed = (flags & SchemaElement::kWithoutEnum) != 0;
  if (const JsonValue* const values = schema.find("enum"); values != nullptr && !listed) {
    const JsonValue* one = values->first();
    while (one != nullptr && !isSameValue(*one, value, grammar_->work())) {
      one = one->next();
    }
    if (one == nullptr) {
      return false;
    }
  }
  if (!isValidUnion(schema, value, depth, flags)) {
    return false;
  }
  switch (value.kind()) {
    case JsonKind::kNull:
    case JsonKind::kBool:
      return true;
    case JsonKind::kNumber: {
      Decimal decimal;
      const NumberFacts facts = numbersOf(schema);
      if (!facts.isBounded()) {
        return true;
      }
      if (!readDecimal(value.text(), &decimal)) {
        refuse(schema, "type", "holds for a constant with too many digits: write fewer");
        return false;
      }
      return facts.allows(decimal);
    }
    case JsonKind::kString:
      return isValidString(schema, value);
    case JsonKind::kArray:
      return isValidArray(schema, value, depth);
    case JsonKind::kObject:
      return isValidObject(schema, value, depth);
  }
  return false;
}

bool SchemaContext::isValidUnion(const JsonValue& schema, const JsonValue& value, uint32_t depth,
                                 uint32_t flags) {
  const bool alone = (flags & SchemaElement::kAlone) != 0;
  if (const JsonValue* const reference = schema.find("$ref"); reference != nullptr && !alone) {
    const JsonValue* const target = resolve(schema, *reference);
    if (target == nullptr || !isValid(*target, value, depth + 1)) {
      return false;
    }
  }
  if (const JsonValue* const excluded = schema.find("not"); excluded != nullptr && !alone) {
    const Negating negating(this, true);
    if (isValid(*excluded, value, depth + 1)) {
      return false;
    }
  }
  static constexpr struct {
    const char* keyword;
    uint32_t flag;
  } kUnions[] = {{"allOf", 0},
                 {"anyOf", SchemaElement::kWithoutAnyOf},
                 {"oneOf", SchemaElement::kWithoutOneOf}};
  for (const auto& one : kUnions) {
    const JsonValue* const branches = schema.find(one.keyword);
    if (branches == nullptr || (flags & one.flag) != 0 || (alone && one.flag == 0)) {
      continue;
    }
    uint32_t n = 0;
    for (const JsonValue* branch = branches->first(); branch != nullptr; branch = branch->next()) {
      n += isValid(*branch, value, depth + 1) ? 1 : 0;
    }
    const bool is_any = one.flag == SchemaElement::kWithoutAnyOf;
    if (one.flag == 0 ? n != branches->count() : is_any ? n == 0 : n != 1) {
      return false;
    }
  }
  return !failed();
}

bool SchemaContext::isValidString(const JsonValue& schema, const JsonValue& value) {
  const StringFacts facts = stringsOf(schema);
  (void)spend(schema, value.text().bytes);
  const uint32_t length = facts.isBounded() ? codePoints(value.text()) : 0;
  if (failed() || length < facts.min_length || length > facts.max_length) {
    return false;
  }
  bool failed = false;
  for (uint32_t i = 0; i < facts.n_patterns + facts.n_formats; ++i) {
    const bool is_format = i >= facts.n_patterns;
    const JsonText& name = is_format ? facts.formats[i - facts.n_patterns] : facts.patterns[i];
    if (is_format && !isFormatExact(name)) {
      continue;
    }
    if (++matched_ > kMostMatched) {
      refuse(schema, is_format ? "format" : "pattern",
             "is held against too many constants: leave it out there");
      return false;
    }
    const bool matches = patterns_.accepts(name, is_format, value.text(), &failed, reading_);
    if (failed) {
      refuse(schema, is_format ? "format" : "pattern", "is too large: make it smaller");
    }
    if (!matches) {
      return false;
    }
  }
  return true;
}

bool SchemaContext::isValidArray(const JsonValue& schema, const JsonValue& value, uint32_t depth) {
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
  countsOf(schema, "minItems", "maxItems", &least, &most);
  if (value.count() < least || value.count() > most) {
    return false;
  }
  uint32_t index = 0;
  for (const JsonValue* item = value.first(); item != nullptr; item = item->next(), ++index) {
    const JsonValue* const of_item = itemOf(schema, index);
    if (of_item != nullptr && !isValid(*of_item, *item, depth + 1)) {
      return false;
    }
  }
  const JsonValue* const unique = schema.find("uniqueItems");
  return (unique == nullptr || !unique->boolean() || isUnique(schema, value)) &&
         hasContained(schema, value, depth);
}

bool SchemaContext::isUnique(const JsonValue& schema, const JsonValue& array) {
  for (const JsonValue* item = array.first(); item != nullptr; item = item->next()) {
    for (const JsonValue* other = item->next(); other != nullptr; other = other->next()) {
      if (!spend(schema, kStepsOfValue) || isSameValue(*item, *other, grammar_->work())) {
        return false;
      }
    }
  }
  return true;
}

bool SchemaContext::hasContained(const JsonValue& schema, const JsonValue& array, uint32_t depth) {
  const JsonValue* const contained = schema.find("contains");
  if (contained == nullptr) {
    return true;
  }
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
  countsOf(schema, "minContains", "maxContains", &least, &most);
  least = schema.find("minContains") == nullptr ? 1 : least;
  uint32_t n = 0;
  for (const JsonValue* item = array.first(); item != nullptr; item = item->next()) {
    n += isValid(*contained, *item, depth + 1) ? 1 : 0;
  }
  return n >= least && n <= most;
}

bool SchemaContext::isValidObject(const JsonValue& schema, const JsonValue& value, uint32_t depth) {
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
  countsOf(schema, "minProperties", "maxProperties", &least, &most);
  if (value.count() < least || value.count() > most) {
    return false;
  }
  if (const JsonValue* const names = schema.find("required"); names != nullptr) {
    for (const JsonValue* name = names->first(); name != nullptr; name = name->next()) {
      if (!spend(schema, kStepsOfValue + stepsToPass(value.count())) ||
          value.find(name->text()) == nullptr) {
        return false;
      }
    }
  }
  const JsonValue* const of_names = schema.find("propertyNames");
  List<const JsonValue*> of_member(scratch());
  for (const JsonValue* member = value.first(); member != nullptr; member = member->next()) {
    of_member.cutTo(0);
    propertyOf(schema, member->key(), &of_member);
    for (const JsonValue* const one : of_member) {
      if (!isValid(*one, *member, depth + 1)) {
        return false;
      }
    }
    const JsonMade* const name = of_names != nullptr ? maker_.text(member->key()) : nullptr;
    if (name != nullptr && !isValid(*of_names, *name, depth + 1)) {
      return false;
    }
  }
  return true;
}

}  // namespace oriel_internal
