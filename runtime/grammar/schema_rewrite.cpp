// Rewrites schemas to draft 2020-12, with conditions as unions. Finds keywords without effect.
#include <cstdio>

#include "grammar/schema_parts.h"

namespace oriel_internal {
namespace {

JsonText shownName(const JsonText& name, char* shown, size_t room) {
  const size_t bytes = std::min<size_t>(name.bytes, room - 1);
  std::memcpy(shown, name.data, bytes);
  shown[bytes] = '\0';
  std::replace_if(
      shown, shown + bytes, [](char c) { return static_cast<uint8_t>(c) < 0x20; }, '?');
  return {shown, bytes};
}

bool isFlag(const JsonValue* value, bool flag) {
  return value != nullptr && value->isBool() && value->boolean() == flag;
}

}  // namespace

const JsonValue& SchemaContext::original(const JsonValue& schema) const {
  const JsonValue* at = &schema;
  while (const SchemaOrigin* const origin = maker_.originOf(*at)) {
    at = origin->schema;
  }
  return *at;
}

bool SchemaContext::isUnlisted(const JsonValue& schema) const {
  const SchemaOrigin* const origin = maker_.originOf(schema);
  return origin != nullptr && origin->unlisted;
}

void SchemaContext::ignore(const JsonValue& schema, const char* before, const JsonText& name) {
  if (rules_.strict) {
    char shown[80];
    refuse(schema, shownName(name, shown, sizeof(shown)).data,
           "is not supported: leave it out, or say it otherwise");
  } else if (rules_.ignored != nullptr) {
    rules_.ignored->add(before, name);
  }
}

// OpenAPI documents name their version by a keyword of their own.
bool SchemaContext::isOpenApi() const { return document_.find("$schema") == nullptr; }

bool SchemaContext::checkKeyword(const JsonValue& schema, const JsonValue& keyword,
                                 bool* rewrites) {
  const Keyword* const known = findKeyword(keyword.key());
  if (known == nullptr) {
    char shown[80];
    const char* const name = shownName(keyword.key(), shown, sizeof(shown)).data;
    if (const char* const meant = misspelledKeyword(keyword.key()); meant != nullptr) {
      char what[120];
      std::snprintf(what, sizeof(what), "is unknown: did you mean \"%s\"?", meant);
      wrong(schema, name, what);
    } else {
      ignore(schema, "", keyword.key());
    }
    return !failed();
  }
  if (isWalked(known->shape) && !spend(schema, stepsToPass(keyword.count()))) {
    return false;
  }
  if (const char* const error = shapeError(known->shape, keyword); error != nullptr) {
    wrong(schema, known->name, error);
  } else if (known->reading == Reading::kRefused && !isFlag(&keyword, true)) {
    refuse(schema, known->name, "is not supported: leave it out, or say it otherwise");
  } else if (known->reading == Reading::kIgnored) {
    ignore(schema, "", keyword.key());
  }
  const bool by_value =
      (known->shape == Shape::kSchemaOrList && keyword.isArray()) ||
      ((known->shape == Shape::kNumberOrFlag || known->shape == Shape::kTextsOrFlag) &&
       keyword.isBool()) ||
      (keyword.key().is("properties") && hasRequiredFlag(keyword));
  *rewrites = *rewrites || known->reading == Reading::kRewritten || by_value;
  return !failed();
}

// True for draft 3's `required: true` in a property.
bool SchemaContext::hasRequiredFlag(const JsonValue& properties) {
  for (const JsonValue* one = properties.first(); one != nullptr; one = one->next()) {
    if (isFlag(one->find("required"), true)) {
      return true;
    }
  }
  return false;
}

const JsonValue* SchemaContext::canonical(const JsonValue& schema) {
  if (schema.isBool()) {
    return &schema;
  }
  const uintptr_t key = reinterpret_cast<uintptr_t>(&schema) / 16;
  const JsonValue*& checked = checked_[key % kMostChecked];
  if (checked == &schema) {
    return spend(schema, kStepsOfKnown) ? &schema : nullptr;
  }
  for (uint32_t at = rewritten_heads_[key % kRewrittenHeads]; at != 0;
       at = rewritten_[at - 1].next) {
    if (rewritten_[at - 1].from == &schema) {
      return spend(schema, kStepsOfKnown) ? rewritten_[at - 1].to : nullptr;
    }
  }
  if (!spend(schema) || !spend(schema, stepsOfMembers(schema))) {
    return nullptr;
  }
  const SchemaOrigin* const origin = maker_.originOf(schema);
  bool rewrites = false;
  for (const JsonValue* member = schema.first(); member != nullptr; member = member->next()) {
    if (!checkKeyword(schema, *member, &rewrites)) {
      return nullptr;
    }
  }
  if (!rewrites || (origin != nullptr && origin->rewritten)) {
    checked = &schema;
    return &schema;
  }
  const JsonValue* const to = rewritten(schema);
  uint32_t& head = rewritten_heads_[key % kRewrittenHeads];
  if (to == nullptr || !rewritten_.push({&schema, to, head})) {
    return nullptr;
  }
  head = rewritten_.count();
  return to;
}

const JsonValue* SchemaContext::rewritten(const JsonValue& schema) {
  JsonMade* const out = maker_.schema(schema, isUnlisted(schema), true);
  JsonMade* const parts = maker_.list();
  JsonMade* const required = maker_.list();
  const bool has_list = schema.find("items") != nullptr && schema.find("items")->isArray();
  for (const JsonValue* one = schema.first(); one != nullptr; one = one->next()) {
    const JsonText& key = one->key();
    const Keyword* const known = findKeyword(key);
    const char* to = nullptr;  // its name in draft 2020-12
    if (known == nullptr || known->reading == Reading::kIgnored) {
      continue;
    }
    if (key.is("items")) {
      to = !has_list ? "items" : one->count() != 0 ? "prefixItems" : nullptr;
    } else if (key.is("additionalItems")) {
      to = has_list ? "items" : nullptr;
    } else if (known->shape == Shape::kNumberOrFlag) {
      to = one->isBool() ? nullptr : known->name;
    } else if (key.is("minimum")) {
      to = isFlag(schema.find("exclusiveMinimum"), true) ? "exclusiveMinimum" : "minimum";
    } else if (key.is("maximum")) {
      to = isFlag(schema.find("exclusiveMaximum"), true) ? "exclusiveMaximum" : "maximum";
    } else if (key.is("type")) {
      maker_.set(out, "type", typeOrNull(schema, *one));
    } else if (key.is("required") || key.is("allOf")) {
      JsonMade* const list = key.is("allOf") ? parts : required;
      for (const JsonValue* each = one->first(); each != nullptr; each = each->next()) {
        maker_.append(list, maker_.copy(*each));
      }
    } else if (known->reading == Reading::kRewritten) {
      addConditions(schema, *one, parts);
    } else if (known->reading == Reading::kHeld) {
      to = known->name;
    }
    if (key.is("properties")) {
      addRequiredFlags(*one, required);
    }
    if (to != nullptr) {
      maker_.set(out, to, one->isObject() ? maker_.copy(*one) : maker_.copyOf(*one));
    }
  }
  if (SchemaMaker::isSome(required)) {
    maker_.set(out, "required", required);
  }
  if (SchemaMaker::isSome(parts)) {
    maker_.set(out, "allOf", parts);
  }
  return scratch()->failed() ? nullptr : out;
}

void SchemaContext::addRequiredFlags(const JsonValue& properties, JsonMade* required) {
  for (const JsonValue* one = properties.first(); one != nullptr; one = one->next()) {
    if (isFlag(one->find("required"), true)) {
      maker_.append(required, maker_.text(one->key()));
    }
  }
}

// Adds null if OpenAPI's `nullable` is set. JSON Schema ignores `nullable`.
JsonMade* SchemaContext::typeOrNull(const JsonValue& schema, const JsonValue& type) {
  if (!isFlag(schema.find("nullable"), true) || !isOpenApi()) {
    return maker_.copyOf(type);
  }
  JsonMade* const types = maker_.list();
  if (type.isString()) {
    maker_.append(types, maker_.copyOf(type));
  }
  for (const JsonValue* one = type.first(); one != nullptr; one = one->next()) {
    maker_.append(types, maker_.copyOf(*one));
  }
  maker_.append(types, maker_.text("null"));
  return types;
}

// Conditional constraints: each becomes a union of "condition fails" and "consequence holds".
void SchemaContext::addConditions(const JsonValue& schema, const JsonValue& keyword,
                                  JsonMade* parts) {
  if (keyword.key().is("nullable")) {
    if (!isOpenApi()) {
      ignore(schema, "", keyword.key());
    }
  } else if (keyword.key().is("if")) {
    addCondition(schema, keyword, parts);
  } else if (keyword.isObject() && !keyword.key().is("then") && !keyword.key().is("else")) {
    for (const JsonValue* one = keyword.first(); one != nullptr; one = one->next()) {
      addDependency(schema, *one, parts);
    }
  }
}

JsonMade* SchemaContext::unionOf(const JsonValue& schema, JsonMade* a, JsonMade* b) {
  JsonMade* const either = maker_.schema(schema);
  JsonMade* const branches = maker_.list();
  maker_.append(branches, a);
  maker_.append(branches, b);
  maker_.set(either, "anyOf", branches);
  return either;
}

void SchemaContext::addCondition(const JsonValue& schema, const JsonValue& condition,
                                 JsonMade* parts) {
  const JsonValue* const positive = schema.find("then");
  const JsonValue* const negative = schema.find("else");
  if (positive == nullptr && negative == nullptr) {
    return;
  }
  const auto branch = [&](JsonMade* first, const JsonValue* then) {
    JsonMade* const made = maker_.schema(schema);
    JsonMade* const both = maker_.list();
    maker_.append(both, first);
    if (then != nullptr) {
      maker_.append(both, maker_.copy(*then));
    }
    maker_.set(made, "allOf", both);
    return made;
  };
  maker_.append(parts, unionOf(schema, branch(maker_.copy(condition, true), positive),
                               branch(maker_.negated(condition), negative)));
}

void SchemaContext::addDependency(const JsonValue& schema, const JsonValue& needs,
                                  JsonMade* parts) {
  JsonMade* const names = maker_.list();
  maker_.append(names, maker_.text(needs.key()));
  JsonMade* const with = maker_.schema(schema);
  if (needs.isString()) {
    maker_.append(names, maker_.copyOf(needs));
  }
  for (const JsonValue* one = needs.isArray() ? needs.first() : nullptr; one != nullptr;
       one = one->next()) {
    maker_.append(names, maker_.copyOf(*one));
  }
  maker_.set(with, "required", names);
  if (isSchemaValue(needs)) {
    JsonMade* const all = maker_.list();
    maker_.append(all, maker_.copy(needs));
    maker_.set(with, "allOf", all);
  }
  maker_.append(parts, unionOf(schema, maker_.withProperty(schema, needs.key(), nullptr), with));
}

}  // namespace oriel_internal
