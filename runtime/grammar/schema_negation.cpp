// The negation of a schema as a list of schemas: each describes a way to be invalid.
#include <iterator>

#include "grammar/schema_parts.h"
#include "grammar/schema_patterns.h"

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

// Decides whether the branches of `oneOf` are disjoint: whether a text of one schema can be valid by another.

namespace {

using Verdict = SchemaContext::Verdict;

bool hasOneOf(const JsonValue& schema, const char* const* keywords, size_t count) {
  return std::any_of(keywords, keywords + count,
                     [&](const char* keyword) { return schema.find(keyword) != nullptr; });
}

}  // namespace

const JsonValue* SchemaContext::branchesOf(const Conjunction& all, const SchemaFacts& facts) {
  return all.elements[facts.union_at].schema->find(facts.is_one_of ? "oneOf" : "anyOf");
}

void SchemaContext::branch(const Conjunction& all, const SchemaFacts& facts,
                           const JsonValue& branch, Conjunction* out) {
  out->never = all.never;
  for (uint32_t i = 0; i < all.elements.count(); ++i) {
    SchemaElement element = all.elements[i];
    if (i == facts.union_at) {
      element.flags |=
          facts.is_one_of ? SchemaElement::kWithoutOneOf : SchemaElement::kWithoutAnyOf;
    }
    out->elements.push(element);
  }
  const JsonValue& owner = *all.elements[facts.union_at].schema;
  if (spend(owner) && spend(owner, all.elements.count())) {
    add(&branch, out, facts.union_at);
  }
}

void SchemaContext::way(const Conjunction& all, uint32_t excluded, const JsonValue& way,
                        Conjunction* out) {
  out->never = all.never;
  for (uint32_t i = 0; i < all.elements.count(); ++i) {
    SchemaElement element = all.elements[i];
    element.flags |= i == excluded ? uint32_t{SchemaElement::kExpanded} : 0;
    out->elements.push(element);
  }
  const JsonValue& owner = *all.elements[excluded].schema;
  if (spend(owner) && spend(owner, all.elements.count())) {
    add(&way, out, excluded);
  }
}

// ---- verdicts

bool SchemaContext::isProvenInvalid(const Conjunction& all, const JsonValue& other,
                                    uint32_t depth) {
  if (all.never) {
    return true;
  }
  if (failed() || depth > kMostDepthCompared) {
    return false;
  }
  const SchemaFacts facts = factsOf(all);
  if (facts.constants != nullptr) {
    const JsonValue* const only = facts.constants->find("const");
    if (only != nullptr) {
      return !isValid(other, *only);
    }
    for (const JsonValue* one = facts.constants->find("enum")->first(); one != nullptr;
         one = one->next()) {
      if (isValid(all, *one, facts.constants) && isValid(other, *one)) {
        return false;
      }
    }
    return true;
  }
  if (facts.has_union) {
    for (const JsonValue* one = branchesOf(all, facts)->first(); one != nullptr;
         one = one->next()) {
      Conjunction with(scratch());
      branch(all, facts, *one, &with);
      if (!isProvenInvalid(with, other, depth + 1)) {
        return false;
      }
    }
    return true;
  }
  for (uint32_t type = 1; type <= kObjectType; type *= 2) {
    if ((facts.types & type) != 0 && judge(all, facts, type, other, depth + 1) != Verdict::kApart) {
      return false;
    }
  }
  return true;
}

Verdict SchemaContext::judge(const Conjunction& all, const SchemaFacts& facts, uint32_t type,
                             const JsonValue& given, uint32_t depth) {
  const JsonValue* const canon = canonical(given);
  if (canon == nullptr) {
    return Verdict::kUnknown;
  }
  const JsonValue& other = *canon;
  if (other.isBool()) {
    return other.boolean() ? Verdict::kCovered : Verdict::kApart;
  }
  if (!spend(other) || !spend(other, stepsOfMembers(other)) || depth > kMostDepthCompared) {
    return Verdict::kUnknown;
  }
  if ((typesOf(other) & type) == 0) {
    return Verdict::kApart;
  }
  const Verdict parts[] = {judgeUnion(all, facts, type, other, depth),
                           judgeConstants(all, type, other),
                           judgeKeywords(all, facts, type, other, depth)};
  Verdict verdict = Verdict::kCovered;
  for (const Verdict part : parts) {
    if (part == Verdict::kApart) {
      return part;
    }
    verdict = part == Verdict::kUnknown ? part : verdict;
  }
  return verdict;
}

// Applies `$ref`, not, allOf, anyOf and oneOf.
Verdict SchemaContext::judgeUnion(const Conjunction& all, const SchemaFacts& facts, uint32_t type,
                                  const JsonValue& other, uint32_t depth) {
  Verdict verdict = Verdict::kCovered;
  if (const JsonValue* const reference = other.find("$ref"); reference != nullptr) {
    const JsonValue* const target = resolve(other, *reference);
    verdict = target != nullptr ? judge(all, facts, type, *target, depth + 1) : Verdict::kUnknown;
  }
  if (const JsonValue* const excluded = other.find("not"); excluded != nullptr) {
    const Verdict of_excluded = judge(all, facts, type, *excluded, depth + 1);
    if (of_excluded == Verdict::kCovered || verdict == Verdict::kApart) {
      return Verdict::kApart;
    }
    verdict = of_excluded == Verdict::kUnknown ? of_excluded : verdict;
  }
  static constexpr const char* kUnions[] = {"allOf", "anyOf", "oneOf"};
  for (const char* const keyword : kUnions) {
    const JsonValue* const branches = other.find(keyword);
    if (branches == nullptr || verdict == Verdict::kApart) {
      continue;
    }
    uint32_t apart = 0;
    uint32_t covered = 0;
    for (const JsonValue* one = branches->first(); one != nullptr; one = one->next()) {
      const Verdict branch = judge(all, facts, type, *one, depth + 1);
      apart += branch == Verdict::kApart ? 1 : 0;
      covered += branch == Verdict::kCovered ? 1 : 0;
    }
    const uint32_t n = branches->count();
    const bool is_all = keyword == kUnions[0];
    const bool is_one = keyword == kUnions[2];
    if (is_all ? apart != 0 : apart == n || (is_one && covered > 1)) {
      return Verdict::kApart;
    }
    const bool covers = is_all   ? covered == n
                        : is_one ? covered == 1 && apart == n - 1
                                 : covered != 0;
    verdict = covers ? verdict : Verdict::kUnknown;
  }
  return verdict;
}

Verdict SchemaContext::judgeConstants(const Conjunction& all, uint32_t type,
                                      const JsonValue& other) {
  const auto may_be = [&](const JsonValue& value) {
    return (typeOf(value) & type) != 0 && isValidByAll(all, value);
  };
  Verdict verdict = Verdict::kCovered;
  if (const JsonValue* const only = other.find("const"); only != nullptr) {
    if (!may_be(*only)) {
      return Verdict::kApart;
    }
    verdict = type == kNullType ? verdict : Verdict::kUnknown;
  }
  if (const JsonValue* const values = other.find("enum"); values != nullptr) {
    const JsonValue* one = values->first();
    while (one != nullptr && !may_be(*one)) {
      one = one->next();
    }
    if (one == nullptr) {
      return Verdict::kApart;
    }
    verdict = type == kNullType ? verdict : Verdict::kUnknown;
  }
  return verdict;
}

Verdict SchemaContext::judgeKeywords(const Conjunction& all, const SchemaFacts& facts,
                                     uint32_t type, const JsonValue& other, uint32_t depth) {
  static constexpr const char* kOfArrays[] = {"items",    "prefixItems", "minItems",
                                              "maxItems", "contains",    "uniqueItems"};
  static constexpr const char* kOfObjects[] = {
      "properties",    "required",      "additionalProperties", "patternProperties",
      "propertyNames", "minProperties", "maxProperties"};
  switch (type) {
    case kIntegerType:
    case kFractionType:
      return judgeNumber(facts, other);
    case kStringType:
      return judgeString(facts, other);
    case kArrayType:
      return hasOneOf(other, kOfArrays, std::size(kOfArrays)) ? judgeArray(all, facts, other, depth)
                                                              : Verdict::kCovered;
    case kObjectType:
      return hasOneOf(other, kOfObjects, std::size(kOfObjects)) ? judgeObject(all, other, depth)
                                                                : Verdict::kCovered;
    default:
      return Verdict::kCovered;
  }
}

Verdict SchemaContext::judgeNumber(const SchemaFacts& facts, const JsonValue& other) {
  const NumberFacts theirs = numbersOf(other);
  const NumberFacts& ours = facts.number;
  if (!theirs.isBounded()) {
    return Verdict::kCovered;
  }
  const auto above = [](const NumberFacts& a, const NumberFacts& b) {
    if (!a.has_min || !b.has_max) {
      return false;
    }
    const int order = compareDecimals(a.min, b.max);
    return order > 0 || (order == 0 && (a.above_min || b.below_max));
  };
  return above(ours, theirs) || above(theirs, ours) ? Verdict::kApart : Verdict::kUnknown;
}

Verdict SchemaContext::judgeString(const SchemaFacts& facts, const JsonValue& other) {
  const StringFacts theirs = stringsOf(other);
  if (failed() || !theirs.isBounded()) {
    return Verdict::kCovered;
  }
  // Formats allow more texts than Oriel writes.
  StringFacts wider = theirs;
  wider.n_formats = 0;
  for (uint32_t i = 0; i < theirs.n_formats; ++i) {
    if (isFormatExact(theirs.formats[i])) {
      wider.formats[wider.n_formats++] = theirs.formats[i];
    }
  }
  return patterns_.mayMeet(facts.string, wider) ? Verdict::kUnknown : Verdict::kApart;
}

Verdict SchemaContext::judgeArray(const Conjunction& all, const SchemaFacts& facts,
                                  const JsonValue& other, uint32_t depth) {
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
  countsOf(other, "minItems", "maxItems", &least, &most);
  if (facts.min_items > most || facts.max_items < least) {
    return Verdict::kApart;
  }
  for (uint32_t i = 0; i < std::min(facts.min_items, 32u); ++i) {
    const JsonValue* const theirs = itemOf(other, i);
    Conjunction& item = compared_[depth].begin();
    addItem(all, i, &item);
    if (theirs != nullptr && isProvenInvalid(item, *theirs, depth + 1)) {
      return Verdict::kApart;
    }
  }
  return Verdict::kUnknown;
}

Verdict SchemaContext::judgeObject(const Conjunction& all, const JsonValue& other, uint32_t depth) {
  // They require a property that Oriel never writes.
  const JsonValue* const required = other.find("required");
  for (const JsonValue* name = required != nullptr ? required->first() : nullptr; name != nullptr;
       name = name->next()) {
    if (!isNamed(all, name->text()) && !isOpen(all)) {
      return Verdict::kApart;
    }
    Conjunction& value = compared_[depth].begin();
    addProperty(all, name->text(), &value);
    if (value.never) {
      return Verdict::kApart;
    }
  }
  // Oriel always writes a property that is not valid there.
  for (const SchemaElement& element : all.elements) {
    const JsonValue* const ours = element.isNegated() ? nullptr : element.schema->find("required");
    for (const JsonValue* name = ours != nullptr ? ours->first() : nullptr; name != nullptr;
         name = name->next()) {
      List<const JsonValue*>& theirs = compared_[depth].theirs;
      theirs.cutTo(0);
      propertyOf(other, name->text(), &theirs);
      if (theirs.isEmpty()) {
        continue;
      }
      Conjunction& value = compared_[depth].begin();
      addProperty(all, name->text(), &value);
      for (const JsonValue* const one : theirs) {
        if (isProvenInvalid(value, *one, depth + 1)) {
          return Verdict::kApart;
        }
      }
    }
  }
  return Verdict::kUnknown;
}

}  // namespace oriel_internal
