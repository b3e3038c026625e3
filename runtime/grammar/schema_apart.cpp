// Decides whether the branches of `oneOf` are disjoint: whether a text of one schema can be valid by another.
#include <iterator>

#include "grammar/schema_formats.h"
#include "grammar/schema_parts.h"

namespace oriel_internal {
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
