// The negation of a schema as a list of schemas: each describes a way to be invalid.
#include "grammar/schema_parts.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostNumbers = 64;
constexpr uint32_t kMostChoices = 8;

struct TypeRow {
  const char* name;
  uint32_t types;
};
constexpr TypeRow kTypes[] = {{"null", kNullType},     {"boolean", kBoolType},
                              {"number", kNumberType}, {"string", kStringType},
                              {"array", kArrayType},   {"object", kObjectType}};

struct CountRow {
  const char* least;
  const char* most;
  const char* type;
};
constexpr CountRow kCounts[] = {{"minLength", "maxLength", "string"},
                                {"minItems", "maxItems", "array"},
                                {"minProperties", "maxProperties", "object"}};

struct BoundRow {
  const char* keyword;
  const char* other;
};
constexpr BoundRow kBounds[] = {{"minimum", "exclusiveMaximum"},
                                {"maximum", "exclusiveMinimum"},
                                {"exclusiveMinimum", "maximum"},
                                {"exclusiveMaximum", "minimum"}};

}  // namespace

// Each enforced keyword contributes the values that it excludes. Values that cannot be expressed are left out and clear
// `whole`.
class SchemaContext::Negation {
 public:
  Negation(SchemaContext* context, const JsonValue& schema)
      : c_(*context), make_(context->maker_), schema_(schema), all_(make_.list()) {}

  JsonMade* alternatives() {
    for (const JsonValue* one = schema_.first(); one != nullptr; one = one->next()) {
      const Keyword* const known = findKeyword(one->key());
      if (known != nullptr && known->reading == Reading::kHeld && !addCount(*one) &&
          !addBound(*one)) {
        add(*one);
      }
    }
    return all_;
  }
  bool whole() const { return whole_; }

 private:
  void push(JsonMade* alternative) { make_.append(all_, alternative); }

  void add(const JsonValue& keyword) {
    const JsonText& key = keyword.key();
    if (key.is("type")) {
      addTypes(~c_.typesOf(schema_));
    } else if (key.is("const")) {
      addConstants(make_.listOf(keyword));
    } else if (key.is("enum")) {
      addConstants(&keyword);
    } else if (key.is("pattern")) {
      JsonMade* const pattern = make_.schema(schema_);
      make_.set(pattern, "pattern", make_.copyOf(keyword));
      JsonMade* const text = make_.typed(schema_, "string");
      make_.set(text, "not", pattern);
      push(text);
    } else if (key.is("not")) {
      push(make_.copy(keyword, true));
    } else if (key.is("$ref")) {
      const JsonValue* const target = c_.resolve(schema_, keyword);
      if (target != nullptr) {
        push(make_.negated(*target));
      }
    } else if (!addOfParts(keyword) && !addOfObjects(keyword) && !addOfArrays(keyword)) {
      whole_ = false;
    }
  }

  void addTypes(uint32_t types) {
    JsonMade* const names = make_.list();
    for (const TypeRow& row : kTypes) {
      if ((types & row.types) == row.types) {
        make_.append(names, make_.text(row.name));
      } else if ((types & row.types) == kIntegerType) {
        make_.append(names, make_.text("integer"));
      } else if ((types & row.types) != 0) {
        JsonMade* const fractions = make_.typed(schema_, "number");
        make_.set(fractions, "not", make_.typed(schema_, "integer"));
        push(fractions);
      }
    }
    if (SchemaMaker::isSome(names)) {
      JsonMade* const made = make_.schema(schema_);
      make_.set(made, "type", names);
      push(made);
    }
  }

  bool addCount(const JsonValue& keyword) {
    for (const CountRow& row : kCounts) {
      const bool is_least = keyword.key().is(row.least);
      uint32_t count = 0;
      if (!is_least && !keyword.key().is(row.most)) {
        continue;
      }
      if (asCount(keyword, UINT32_MAX - 2, &count) && (!is_least || count != 0)) {
        JsonMade* const made = make_.typed(schema_, row.type);
        make_.set(made, is_least ? row.most : row.least,
                  make_.number(is_least ? count - 1 : count + 1));
        push(made);
      }
      return true;
    }
    return false;
  }

  bool addBound(const JsonValue& keyword) {
    for (const BoundRow& row : kBounds) {
      if (keyword.key().is(row.keyword)) {
        push(numbers(nullptr, nullptr, row.other, &keyword));
        return true;
      }
    }
    return false;
  }

  JsonMade* numbers(const char* low, const JsonValue* low_value, const char* high,
                    const JsonValue* high_value) {
    JsonMade* const made = make_.typed(schema_, "number");
    if (low_value != nullptr) {
      make_.set(made, low, make_.copyOf(*low_value));
    }
    if (high_value != nullptr) {
      make_.set(made, high, make_.copyOf(*high_value));
    }
    return made;
  }

  // Values of types without constants, and other values of types with constants.
  void addConstants(const JsonValue* values) {
    uint32_t types = 0;
    List<const JsonValue*> sorted(c_.scratch());
    JsonMade* const texts = make_.list();
    bool flags[2] = {};
    const JsonValue* object = nullptr;
    uint32_t objects = 0;
    for (const JsonValue* one = values != nullptr ? values->first() : nullptr; one != nullptr;
         one = one->next()) {
      types |= typeOf(*one);
      if (one->isString()) {
        make_.append(texts, make_.copyOf(*one));
      } else if (one->isNumber()) {
        sorted.push(one);
      } else if (one->isBool()) {
        flags[one->boolean() ? 1 : 0] = true;
      } else if (!one->isNull()) {
        whole_ = false;
        objects += one->isObject() ? 1 : 0;
        object = one->isObject() ? one : object;
        pushNotEmpty(*one);
      }
    }
    types |= (types & kNumberType) != 0 ? uint32_t{kNumberType} : 0;
    addTypes(~types);
    if (flags[0] != flags[1]) {
      JsonMade* const made = make_.schema(schema_);
      make_.set(made, "const", make_.boolean(flags[0]));
      push(made);
    }
    if (SchemaMaker::isSome(texts)) {
      JsonMade* const listed = make_.schema(schema_);
      make_.set(listed, "enum", texts);
      JsonMade* const made = make_.typed(schema_, "string");
      make_.set(made, "not", listed);
      push(made);
    }
    addBetween(&sorted);
    if (objects == 1) {
      addOtherMembers(*object);
    }
  }

  // An object that lacks any of these members or has another value for it.
  void addOtherMembers(const JsonValue& object) {
    for (const JsonValue* member = object.first(); member != nullptr; member = member->next()) {
      JsonMade* const same = make_.schema(schema_);
      if (same == nullptr) {
        return;
      }
      make_.set(same, "const", make_.copyOf(*member));
      JsonMade* const ways[] = {make_.withProperty(schema_, member->key(), nullptr),
                                make_.withProperty(schema_, member->key(), make_.negated(*same))};
      for (JsonMade* const way : ways) {
        make_.set(way, "type", make_.text("object"));
        push(way);
      }
    }
  }

  void pushNotEmpty(const JsonValue& constant) {
    if (constant.count() == 0) {
      JsonMade* const made = make_.typed(schema_, constant.isArray() ? "array" : "object");
      make_.set(made, constant.isArray() ? "minItems" : "minProperties", make_.number(1));
      push(made);
    }
  }

  void addBetween(List<const JsonValue*>* numbers_listed) {
    List<const JsonValue*>& all = *numbers_listed;
    if (all.isEmpty()) {
      return;
    }
    if (all.count() > kMostNumbers) {
      whole_ = false;
      return;
    }
    (void)c_.spend(schema_, kStepsOfSchema * all.count());
    std::sort(all.begin(), all.end(), [](const JsonValue* a, const JsonValue* b) {
      Decimal x;
      Decimal y;
      (void)readBound(a->text(), &x);
      (void)readBound(b->text(), &y);
      return compareDecimals(x, y) < 0;
    });
    const JsonValue* below = nullptr;
    for (uint32_t i = 0; i <= all.count(); ++i) {
      const JsonValue* const above = i < all.count() ? all[i] : nullptr;
      push(numbers("exclusiveMinimum", below, "exclusiveMaximum", above));
      below = above;
    }
  }

  // For allOf, anyOf and oneOf.
  bool addOfParts(const JsonValue& keyword) {
    const bool is_all = keyword.key().is("allOf");
    const bool is_one = keyword.key().is("oneOf");
    if (!is_all && !is_one && !keyword.key().is("anyOf")) {
      return false;
    }
    JsonMade* const none = make_.list();
    for (const JsonValue* one = keyword.first(); one != nullptr; one = one->next()) {
      if (is_all) {
        push(make_.negated(*one));
      } else {
        make_.append(none, make_.negated(*one));
      }
    }
    if (!is_all) {
      push(allOf(none));
    }
    if (is_one && keyword.count() <= kMostChoices) {
      addPairs(keyword);
    }
    whole_ = whole_ && (!is_one || keyword.count() <= kMostChoices);
    return true;
  }

  void addPairs(const JsonValue& branches) {
    for (const JsonValue* one = branches.first(); one != nullptr; one = one->next()) {
      for (const JsonValue* other = one->next(); other != nullptr; other = other->next()) {
        JsonMade* const both = make_.list();
        make_.append(both, make_.copy(*one, true));
        make_.append(both, make_.copy(*other, true));
        push(allOf(both));
      }
    }
  }

  JsonMade* allOf(JsonMade* parts) {
    JsonMade* const made = make_.schema(schema_);
    make_.set(made, "allOf", parts);
    return made;
  }

  bool addOfObjects(const JsonValue& keyword) {
    if (keyword.key().is("required")) {
      for (const JsonValue* name = keyword.first(); name != nullptr; name = name->next()) {
        JsonMade* const made = make_.withProperty(schema_, name->text(), nullptr);
        make_.set(made, "type", make_.text("object"));
        push(made);
      }
      return true;
    }
    if (!keyword.key().is("properties")) {
      return false;
    }
    for (const JsonValue* one = keyword.first(); one != nullptr; one = one->next()) {
      JsonMade* const made = make_.withProperty(schema_, one->key(), make_.negated(*one));
      make_.set(made, "type", make_.text("object"));
      push(made);
    }
    return true;
  }

  bool addOfArrays(const JsonValue& keyword) {
    const JsonText& key = keyword.key();
    if (key.is("prefixItems")) {
      JsonMade* before = make_.list();
      uint32_t n = 0;
      for (const JsonValue* one = keyword.first(); one != nullptr; one = one->next()) {
        JsonMade* const made = make_.typed(schema_, "array");
        JsonMade* const prefix = make_.list();
        for (uint32_t i = 0; i < n; ++i) {
          make_.append(prefix, make_.boolean(true));
        }
        make_.append(prefix, make_.negated(*one));
        make_.set(made, "prefixItems", prefix);
        make_.set(made, "minItems", make_.number(++n));
        push(made);
        (void)c_.spend(schema_, n);
      }
      return before != nullptr;
    }
    if (key.is("items") && schema_.find("prefixItems") == nullptr) {
      JsonMade* const made = make_.typed(schema_, "array");
      make_.set(made, "contains", make_.negated(keyword));
      push(made);
      return true;
    }
    const bool is_plain =
        schema_.find("minContains") == nullptr && schema_.find("maxContains") == nullptr;
    if (key.is("contains") && is_plain) {
      JsonMade* const made = make_.typed(schema_, "array");
      make_.set(made, "items", make_.negated(keyword));
      push(made);
      return true;
    }
    return key.is("uniqueItems") && !keyword.boolean();
  }

  SchemaContext& c_;
  SchemaMaker& make_;
  const JsonValue& schema_;
  JsonMade* const all_;
  bool whole_ = true;
};

const JsonValue* SchemaContext::negation(const JsonValue& schema, bool* whole) {
  for (const Negated& known : negations_) {
    if (known.of == &schema) {
      *whole = known.whole;
      return known.alternatives;
    }
  }
  if (!spend(schema, kStepsOfSchema + 4 * stepsOfMembers(schema) + negations_.count())) {
    return nullptr;
  }
  Negation negation(this, schema);
  const JsonValue* const alternatives = negation.alternatives();
  *whole = negation.whole();
  if (failed() || !negations_.push({&schema, alternatives, *whole})) {
    return nullptr;
  }
  return alternatives;
}

const JsonValue* SchemaContext::onlyKeyword(const JsonValue& schema) const {
  const JsonValue* only = nullptr;
  for (const JsonValue* one = schema.first(); one != nullptr; one = one->next()) {
    const Keyword* const known = findKeyword(one->key());
    if (known == nullptr || known->reading != Reading::kHeld) {
      continue;
    }
    if (only != nullptr) {
      return nullptr;
    }
    only = one;
  }
  return only;
}

// A negation with only one way is enforced like any other schema.
bool SchemaContext::addOnlyWay(const JsonValue& schema, Conjunction* all, uint32_t parent,
                               uint32_t depth) {
  const JsonValue* const only = onlyKeyword(schema);
  if (only == nullptr) {
    return false;
  }
  const JsonText& key = only->key();
  const bool is_one = only->isArray() && only->count() == 1;
  if (!key.is("not") && !key.is("anyOf") && !(key.is("required") && is_one) &&
      !(key.is("allOf") && is_one)) {
    return false;
  }
  bool whole = false;
  const JsonValue* const ways = negation(schema, &whole);
  if (ways == nullptr || ways->count() != 1 || !whole) {
    return failed();
  }
  add(ways->first(), all, parent, depth + 1);
  return true;
}

void SchemaContext::addNegated(const JsonValue& given, Conjunction* all, uint32_t flags,
                               uint32_t parent, uint32_t depth) {
  const JsonValue* const schema = canonical(given);
  if (schema == nullptr) {
    return;
  }
  if (schema->isBool()) {
    all->never = all->never || schema->boolean();
    return;
  }
  if (!addOnlyWay(*schema, all, parent, depth)) {
    all->elements.push({schema, SchemaElement::kNegated | flags, parent});
  }
}

bool SchemaContext::addExclusion(const JsonValue& schema, StringFacts* facts) {
  const JsonValue* listed = nullptr;
  const JsonValue* pattern = nullptr;
  uint32_t n = 0;
  for (const JsonValue* one = schema.first(); one != nullptr; one = one->next()) {
    const Keyword* const known = findKeyword(one->key());
    if (known == nullptr || known->reading != Reading::kHeld || one->key().is("type")) {
      continue;
    }
    listed = one->key().is("enum") || one->key().is("const") ? one : listed;
    pattern = one->key().is("pattern") ? one : pattern;
    ++n;
  }
  if (n != 1 || (listed == nullptr && pattern == nullptr) || (typesOf(schema) & kStringType) == 0) {
    return false;
  }
  if (pattern != nullptr) {
    (void)stringsOf(schema);  // logs the fault
  }
  const bool fits =
      pattern != nullptr ? facts->excludePattern(pattern->text()) : facts->excludeListed(*listed);
  if (!fits) {
    refuse(schema,
           pattern != nullptr         ? "pattern"
           : listed->key().is("enum") ? "enum"
                                      : "const",
           "exceeds the limit of negated schemas: leave some out");
  }
  return true;
}

}  // namespace oriel_internal
