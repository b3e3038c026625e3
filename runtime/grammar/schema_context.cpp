// Facts of combined schemas.
#include <cstdio>

#include "grammar/schema_formats.h"
#include "grammar/schema_parts.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostReferences = 40;  // chained
constexpr uint32_t kMostCountOfKeyword = UINT32_MAX - 1;
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

void SchemaContext::refuse(const JsonValue& schema, const char* keyword, const char* what) {
  fail(ORIEL_ERROR_UNSUPPORTED, schema, keyword, what);
}

void SchemaContext::wrong(const JsonValue& schema, const char* keyword, const char* what) {
  fail(ORIEL_ERROR_ARGUMENT, schema, keyword, what);
}

bool SchemaContext::spend(const JsonValue& schema, uint64_t steps) {
  at_ = &schema;
  if (!grammar_->work()->spend(steps)) {
    (void)end();
  }
  return !failed();
}

bool SchemaContext::leadsTo(const Conjunction& all, uint32_t ancestor, uint32_t element) {
  while (element != SchemaElement::kNoParent && element != ancestor) {
    element = all.elements[element].parent;
  }
  return element == ancestor;
}

void SchemaContext::add(const JsonValue* schema, Conjunction* all, uint32_t parent,
                        uint32_t depth) {
  schema = schema != nullptr && !failed() ? canonical(*schema) : nullptr;
  if (schema == nullptr) {
    return;
  }
  if (schema->isBool()) {
    all->never = all->never || !schema->boolean();
    return;
  }
  if (depth > kMostReferences) {
    refuse(*schema, "$ref", "is part of too many nested references: leave some out");
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
  if (const JsonValue* const excluded = schema->find("not"); excluded != nullptr && !failed()) {
    addNegated(*excluded, all, SchemaElement::kOfNot, at, depth + 1);
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
      failOfPattern(schema, "pattern", error, is_wrong);
    }
    facts.patterns[facts.n_patterns++] = pattern->text();
  }
  if (const JsonValue* const format = schema.find("format"); format != nullptr) {
    if (formatPattern(format->text()) != nullptr) {
      facts.formats[facts.n_formats++] = format->text();
    } else {
      ignoreFormat(schema, format->text());
    }
  }
  return facts;
}

void SchemaContext::failOfPattern(const JsonValue& schema, const char* keyword, const char* error,
                                  bool is_wrong) {
  char what[160];
  std::snprintf(what, sizeof(what), "has a part that cannot be used (%s): write it otherwise",
                error);
  fail(is_wrong ? ORIEL_ERROR_ARGUMENT : ORIEL_ERROR_UNSUPPORTED, schema, keyword, what);
}

void SchemaContext::ignoreFormat(const JsonValue& schema, const JsonText& format) {
  if (!rules_.strict) {
    ignore(schema, "format: ", format);
    return;
  }
  char what[120];
  std::snprintf(what, sizeof(what), "asks for \"%.*s\", which is not supported: leave it out",
                static_cast<int>(std::min<size_t>(format.bytes, 40)), format.data);
  refuse(schema, "format", what);
}

void SchemaContext::countsOf(const JsonValue& schema, const char* min, const char* max,
                             uint32_t* least, uint32_t* most) {
  uint32_t count = 0;
  if (const JsonValue* const value = schema.find(min);
      value != nullptr && asCount(*value, kMostCountOfKeyword, &count)) {
    *least = std::max(*least, count);
  }
  if (const JsonValue* const value = schema.find(max);
      value != nullptr && asCount(*value, kMostCountOfKeyword, &count)) {
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
      refuse(schema, "multipleOf", "exceeds the limit of items: leave some out");
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
      refuse(schema, keyword, "exceeds the limit of items: leave some out");
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
  bool fits = true;
  for (uint32_t i = 0; i < more.n_not_patterns; ++i) {
    fits = fits && facts->excludePattern(more.not_patterns[i]);
  }
  for (uint32_t i = 0; i < more.n_not_listed; ++i) {
    fits = fits && facts->excludeListed(*more.not_listed[i]);
  }
  if (!fits) {
    refuse(schema, "not", "exceeds the limit of items: leave some out");
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
    const JsonValue* const unique = schema.find("uniqueItems");
    facts.unique = unique != nullptr && unique->boolean() ? &schema : facts.unique;
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
