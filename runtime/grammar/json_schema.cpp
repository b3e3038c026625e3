#include "grammar/grammar.h"

#include "grammar/schema_parts.h"
#include "grammar/schema_patterns.h"
#include "json/json.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostUnionDepth = 24;
constexpr uint32_t kMostProperties = 1000;
constexpr uint32_t kMostCountedProperties = 4000;  // properties times their largest number
constexpr uint32_t kMostPrefixItems = 1000;
constexpr uint32_t kMostConstants = 20000;
constexpr size_t kMostConstantBytes = 256 * 1024;
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kStepsOfConstant = 256;  // to write it and to sort it
constexpr uint64_t kStepsOfByte = 8;        // of one
constexpr uint64_t kStepsOfName = 4;        // to compare it
constexpr uint64_t kStepsOfRule = 8;        // to compare it

using Verdict = SchemaContext::Verdict;

// Schemas are written value by value. The contents of an object or array become a rule that is written later, so
// recursion ends where a value begins. If a rule turns out to be empty, a second round leaves out everything that needs
// it.
class SchemaWriter : private LiveExpressions {
 public:
  SchemaWriter(SchemaContext* context)
      : LiveExpressions(context->grammar()),
        c_(*context),
        scratch_(context->scratch()),
        first_(g_->count()),
        values_(scratch_),
        numbers_(scratch_),
        strings_(scratch_) {}

  ExprId write(const JsonValue& schema) {
    Conjunction all(scratch_);
    c_.add(&schema, &all);
    ExprId root = value(all);
    writeValues();
    if (!c_.failed() && findEmpty()) {
      root = value(all);
      writeValues();
    }
    return root;
  }

 private:
  struct Value {
    Conjunction all{nullptr};
    uint64_t hash = 0;
    RuleId rule = 0;
    bool never = false;  ///< has no text
  };
  struct KeyFacts {
    StringFacts text;
    bool fixed = false;  ///< only properties have one
  };
  struct NumberRule {
    NumberFacts facts;
    ExprId expression;
  };
  struct StringRule {
    StringFacts facts;
    ExprId expression;
  };

  // ---- values
  static bool isLeaf(uint32_t types) { return (types & (kArrayType | kObjectType)) == 0; }

  ExprId value(const Conjunction& all) {
    if (c_.failed() || all.never) {
      return g_->never();
    }
    const SchemaFacts facts = c_.factsOf(all);
    if (c_.failed()) {
      return g_->never();
    }
    if (facts.constants != nullptr || (isLeaf(facts.types) && !facts.has_union)) {
      return expression(all, 0);
    }
    Value& known = find(all);
    return known.never ? g_->never() : g_->rule(known.rule);
  }

  static uint64_t hashOf(const SchemaElement& element) {
    const uintptr_t key = reinterpret_cast<uintptr_t>(element.schema);
    return (key + element.flags) * 0x9e3779b97f4a7c15ull;
  }
  static bool has(const Conjunction& all, const SchemaElement& element) {
    return std::any_of(all.elements.begin(), all.elements.end(), [&](const SchemaElement& other) {
      return other.schema == element.schema && other.flags == element.flags;
    });
  }
  bool isSame(const Conjunction& a, const Conjunction& b) const {
    const uint64_t count = a.elements.count();
    return g_->work()->spend(count * count) && a.elements.count() == b.elements.count() &&
           std::all_of(a.elements.begin(), a.elements.end(),
                       [&](const SchemaElement& element) { return has(b, element); });
  }

  Value& find(const Conjunction& all) {
    uint64_t hash = all.elements.count();
    for (const SchemaElement& element : all.elements) {
      hash += hashOf(element) >> 8;
    }
    (void)g_->work()->spend(2 * uint64_t{values_.count()});
    for (Value& known : values_) {
      if (known.hash == hash && isSame(known.all, all)) {
        return known;
      }
    }
    const Value next = {all, hash, g_->newRule(), false};
    if (!values_.push(next)) {
      return none_;
    }
    return values_.last();
  }

  void writeValues() {
    for (; written_ < values_.count() && !c_.failed(); ++written_) {
      const Conjunction all = values_[written_].all;
      const RuleId rule = values_[written_].rule;
      if (!values_[written_].never) {
        g_->define(rule, expression(all, 0));
      }
    }
  }

  // Finds empty values. True if there are any: everything must be written again.
  bool findEmpty() {
    const uint8_t* const ends = expressionsWithText(g_, first_);
    if (ends == nullptr) {
      return false;
    }
    bool any = false;
    for (Value& known : values_) {
      const ExprId definition = g_->definition(known.rule);
      known.never = definition == kNone || ends[definition - first_] == 0;
      any = any || known.never;
    }
    for (Value& known : values_) {
      known.rule = any ? g_->newRule() : known.rule;
    }
    written_ = any ? 0 : written_;
    return any;
  }

  ExprId expression(const Conjunction& all, uint32_t depth) {
    if (c_.failed() || all.never) {
      return g_->never();
    }
    const SchemaFacts facts = c_.factsOf(all);
    if (c_.failed()) {
      return g_->never();
    }
    if (facts.constants != nullptr) {
      return constants(all, *facts.constants);
    }
    return facts.has_union ? unionOf(all, facts, depth) : concrete(all, facts, depth);
  }

  ExprId unionOf(const Conjunction& all, const SchemaFacts& facts, uint32_t depth) {
    const JsonValue& owner = *all.elements[facts.union_at].schema;
    if (depth > kMostUnionDepth) {
      c_.refuse(owner, facts.is_one_of ? "oneOf" : "anyOf", "goes too deep: nest fewer unions");
      return g_->never();
    }
    const JsonValue* const branches = c_.branchesOf(all, facts);
    List<ExprId> options(scratch_);
    for (const JsonValue* one = branches->first(); one != nullptr && !c_.failed();
         one = one->next()) {
      Conjunction with(scratch_);
      c_.branch(all, facts, *one, &with);
      for (const JsonValue* other = branches->first(); facts.is_one_of && other != nullptr;
           other = other->next()) {
        if (other != one) {
          c_.addNegated(*other, &with, 0, facts.union_at);
        }
      }
      const ExprId option = expression(with, depth + 1);
      if (!c_.failed() && !isNever(option)) {
        options.push(option);
      }
    }
    return choiceOf(options.begin(), options.count(), g_);
  }

  // ---- constants
  ExprId constants(const Conjunction& all, const JsonValue& owner) {
    const JsonValue* const only = owner.find("const");
    const JsonValue* const values = owner.find("enum");
    List<JsonText> texts(scratch_);
    if (only != nullptr) {
      addConstant(all, nullptr, *only, &texts);
    } else if (values->count() > kMostConstants) {
      c_.refuse(owner, "enum", "has too many values: give fewer");
    } else {
      size_t bytes = 0;
      for (const JsonValue* one = values->first(); one != nullptr && !c_.failed();
           one = one->next()) {
        addConstant(all, &owner, *one, &texts);
        const size_t last_bytes = texts.isEmpty() ? 0 : texts.last().bytes;
        (void)c_.spend(owner, kStepsOfConstant + kStepsOfByte * last_bytes);
        bytes += last_bytes;
        if (bytes > kMostConstantBytes) {
          c_.refuse(owner, "enum", "has too many values: give fewer");
        }
      }
    }
    if (c_.failed() || texts.isEmpty()) {
      return g_->never();
    }
    return textsExpression(texts.begin(), texts.count(), g_);
  }

  // `listing`: the schema whose enum contains it, if any.
  void addConstant(const Conjunction& all, const JsonValue* listing, const JsonValue& constant,
                   List<JsonText>* texts) {
    if (c_.isValid(all, constant, listing)) {
      texts->push(jsonOf(constant, scratch_));
    }
  }

  // ---- types
  ExprId concrete(const Conjunction& all, SchemaFacts facts, uint32_t depth) {
    uint32_t undecided = kNone;
    facts.types &= typesApart(all, &facts, &undecided);
    if (undecided != kNone && facts.types != 0 && !c_.failed()) {
      return without(all, undecided, depth);
    }
    if (c_.failed()) {
      return g_->never();
    }
    facts.number.integer = (facts.types & kFractionType) == 0;
    facts.number.fraction = (facts.types & kNumberType) == kFractionType;
    List<ExprId> options(scratch_);
    const auto add = [&](uint32_t type, auto option) {
      if ((facts.types & type) == 0 || c_.failed()) {
        return;
      }
      const ExprId id = option();
      if (!isNever(id)) {
        options.push(id);
      }
    };
    add(kObjectType, [&] { return object(all, facts); });
    add(kArrayType, [&] { return array(all, facts); });
    add(kStringType, [&] { return string(all, facts.string); });
    add(kNumberType, [&] { return number(all, facts.number); });
    add(kBoolType, [&] { return choice(oneOfFew(all, "true"), oneOfFew(all, "false")); });
    add(kNullType, [&] { return oneOfFew(all, "null"); });
    return choiceOf(options.begin(), options.count(), g_);
  }

  // null, true and false are simply checked for validity.
  ExprId oneOfFew(const Conjunction& all, const char* text) {
    const JsonValue value = text[0] == 'n' ? JsonValue() : JsonValue(text[0] == 't');
    for (const SchemaElement& element : all.elements) {
      if (element.isExcluding() && c_.isValid(*element.schema, value)) {
        return g_->never();
      }
    }
    return g_->text(text);
  }

  // Types without a valid text because of exclusions. `undecided`: an excluding element whose effect is unknown.
  // Strings are compared by their text if that is enough.
  uint32_t typesApart(const Conjunction& all, SchemaFacts* facts, uint32_t* undecided) {
    uint32_t types = kAnyType;
    Conjunction valid(scratch_);  // there may be many exclusions
    valid.never = all.never;
    for (const SchemaElement& element : all.elements) {
      if (!element.isNegated()) {
        valid.elements.push(element);
      }
    }
    const bool is_plain = valid.elements.count() == all.elements.count();
    for (uint32_t i = 0; !is_plain && i < all.elements.count() && !c_.failed(); ++i) {
      const SchemaElement& element = all.elements[i];
      for (uint32_t type = kIntegerType; element.isExcluding() && type <= kObjectType; type *= 2) {
        if ((facts->types & types & type) == 0 || c_.failed()) {
          continue;
        }
        const Verdict verdict = c_.judge(valid, *facts, type, *element.schema);
        if (verdict == Verdict::kCovered) {
          types &= ~type;
        } else if (verdict == Verdict::kUnknown &&
                   (type != kStringType || !c_.addExclusion(*element.schema, &facts->string))) {
          *undecided = i;
        }
      }
    }
    return types;
  }

  // For each way to be invalid by an element.
  ExprId without(const Conjunction& all, uint32_t excluded, uint32_t depth) {
    const SchemaElement& element = all.elements[excluded];
    bool whole = false;
    const JsonValue* const ways =
        depth <= kMostUnionDepth ? c_.negation(*element.schema, &whole) : nullptr;
    List<ExprId> options(scratch_);
    for (const JsonValue* one = ways != nullptr ? ways->first() : nullptr;
         one != nullptr && !c_.failed(); one = one->next()) {
      Conjunction with(scratch_);
      c_.way(all, excluded, *one, &with);
      const ExprId option = expression(with, depth + 1);
      if (!c_.failed() && !isNever(option)) {
        options.push(option);
      }
    }
    if (options.isEmpty() && !whole && !c_.failed()) {
      refuseNegation(all, element);
    }
    return choiceOf(options.begin(), options.count(), g_);
  }

  void refuseNegation(const Conjunction& all, const SchemaElement& element) {
    const bool is_of_union =
        std::any_of(all.elements.begin(), all.elements.end(), [](const SchemaElement& other) {
          return (other.flags & SchemaElement::kWithoutOneOf) != 0;
        });
    if (!is_of_union && (element.flags & SchemaElement::kOfNot) != 0) {
      c_.refuse(*all.elements[element.parent].schema, "not",
                "excludes values that a grammar cannot distinguish: leave it out, or rewrite it");
      return;
    }
    refuseUnion(all,
                "has branches that may be valid together: write anyOf, or give each a required "
                "property with a const of its own");
  }

  void refuseUnion(const Conjunction& all, const char* what) {
    const JsonValue* owner = all.elements[0].schema;
    for (const SchemaElement& element : all.elements) {
      owner = (element.flags & SchemaElement::kWithoutOneOf) != 0 ? element.schema : owner;
    }
    c_.refuse(*owner, "oneOf", what);
  }

  const JsonValue& ownerOf(const Conjunction& all, std::initializer_list<const char*> keywords,
                           const char** keyword) const {
    for (const char* const one : keywords) {
      for (const SchemaElement& element : all.elements) {
        if (!element.isNegated() && element.schema->find(one) != nullptr) {
          *keyword = one;
          return *element.schema;
        }
      }
    }
    *keyword = "type";
    return *all.elements[0].schema;
  }

  ExprId number(const Conjunction& all, const NumberFacts& facts) {
    (void)g_->work()->spend(kStepsOfRule * numbers_.count());
    for (const NumberRule& known : numbers_) {
      if (known.facts == facts) {
        return known.expression;
      }
    }
    ExprId id = g_->never();
    const char* const error = numberExpression(facts, g_, &id);
    if (error != nullptr) {
      const char* keyword = nullptr;
      const JsonValue& owner =
          ownerOf(all, {"multipleOf", "exclusiveMinimum", "exclusiveMaximum", "minimum", "maximum"},
                  &keyword);
      c_.refuse(owner, keyword, error);
      return g_->never();
    }
    id = asRule(id);
    numbers_.push({facts, id});
    return id;
  }

  ExprId string(const Conjunction& all, const StringFacts& facts) {
    (void)g_->work()->spend(kStepsOfRule * strings_.count());
    for (const StringRule& known : strings_) {
      if (known.facts == facts) {
        return known.expression;
      }
    }
    ExprId id = g_->never();
    const bool is_free = facts.max_length == UINT32_MAX && facts.min_length == 0;
    const ExprId character = is_free ? anyCharacter(g_) : countedCharacter(g_);
    const char* const error = stringExpression(facts, character, g_, &id);
    if (error != nullptr) {
      const char* keyword = nullptr;
      const JsonValue& owner =
          ownerOf(all, {"pattern", "format", "minLength", "maxLength"}, &keyword);
      c_.refuse(owner, keyword, error);
      return g_->never();
    }
    id = asRule(id);
    strings_.push({facts, id});
    return id;
  }

  // ---- arrays
  ExprId array(const Conjunction& all, const SchemaFacts& facts) {
    uint32_t n_prefix = 0;
    for (const SchemaElement& element : all.elements) {
      const JsonValue* const prefix = element.schema->find("prefixItems");
      if (!element.isNegated() && prefix != nullptr) {
        n_prefix = std::max(n_prefix, prefix->count());
        if (n_prefix > kMostPrefixItems) {
          c_.refuse(*element.schema, "prefixItems", "has too many items: give fewer");
          return g_->never();
        }
      }
    }
    // No value is valid for an item: the array ends before it.
    uint32_t most = facts.max_items;
    List<ExprId> items(scratch_);
    for (uint32_t i = 0; i <= n_prefix && i < most && !c_.failed(); ++i) {
      Conjunction item(scratch_);
      c_.addItem(all, i, &item);
      items.push(value(item));
      if (c_.failed()) {
        return g_->never();
      }
      most = isNever(items.last()) ? i : most;
    }
    const JsonValue* const contained = containedOf(all, n_prefix != 0, facts.unique != nullptr);
    if (facts.min_items > most || c_.failed() || (contained != nullptr && most == 0)) {
      return g_->never();
    }
    if (most == 0) {
      return g_->text("[]");
    }
    const ArrayLengths lengths = {facts.min_items, most};
    if (contained != nullptr) {
      return containing(all, *contained, items[0], lengths);
    }
    if (facts.unique == nullptr || most == 1) {
      return arrayExpression(items, n_prefix, lengths, g_);
    }
    if (n_prefix != 0) {
      c_.refuse(*facts.unique, "uniqueItems", "is not supported with prefixItems: leave it out");
      return g_->never();
    }
    Conjunction item(scratch_);
    c_.addItem(all, 0, &item);
    return uniqueItems(item, *facts.unique, lengths);
  }

  // Constants, true, false and null as texts, without duplicates. False: other values are valid, too.
  bool valuesOf(const Conjunction& all, uint32_t depth, List<const JsonValue*>* values) {
    const SchemaFacts facts = c_.factsOf(all);
    if (c_.failed() || all.never || depth > kMostUnionDepth) {
      return all.never;
    }
    if (facts.constants != nullptr) {
      const JsonValue* const only = facts.constants->find("const");
      const JsonValue* one = only != nullptr ? only : facts.constants->find("enum")->first();
      for (; one != nullptr; one = only != nullptr ? nullptr : one->next()) {
        addValue(all, only != nullptr ? nullptr : facts.constants, *one, values);
      }
      return true;
    }
    if (facts.has_union && !facts.is_one_of) {
      const JsonValue* one = c_.branchesOf(all, facts)->first();
      for (bool fine = true; one != nullptr && fine; one = fine ? one->next() : one) {
        Conjunction with(scratch_);
        c_.branch(all, facts, *one, &with);
        fine = valuesOf(with, depth + 1, values);
      }
      return one == nullptr;
    }
    static const JsonValue kFew[] = {JsonValue(), JsonValue(false), JsonValue(true)};
    for (const JsonValue& one : kFew) {
      if ((facts.types & typeOf(one)) != 0) {
        addValue(all, nullptr, one, values);
      }
    }
    return !facts.has_union && (facts.types & ~(kNullType | kBoolType)) == 0;
  }

  void addValue(const Conjunction& all, const JsonValue* listing, const JsonValue& value,
                List<const JsonValue*>* values) {
    for (const JsonValue* const known : *values) {
      if (isSameValue(*known, value, g_->work())) {
        return;
      }
    }
    if (c_.isValid(all, value, listing)) {
      values->push(&value);
    }
  }

  ExprId uniqueItems(const Conjunction& item, const JsonValue& owner, const ArrayLengths& lengths) {
    List<const JsonValue*> values(scratch_);
    if (!valuesOf(item, 0, &values)) {
      c_.refuse(owner, "uniqueItems",
                "is only supported where the items are an enum, const or boolean: leave it out");
      return g_->never();
    }
    const bool counts = lengths.most < values.count() || lengths.least > 1;
    if (values.count() > kMostUniqueInAnyOrder && counts &&
        std::min(std::max(lengths.least, lengths.most), values.count()) > kMostCountedItems) {
      c_.refuse(owner, "uniqueItems", "is too complex with these lengths: leave it out");
      return g_->never();
    }
    if (lengths.least > values.count()) {
      return g_->never();
    }
    List<JsonText> texts(scratch_);
    for (const JsonValue* const value : values) {
      texts.push(jsonOf(*value, scratch_));
    }
    const ArrayLengths needed = {lengths.least,
                                 lengths.most < values.count() ? lengths.most : UINT32_MAX};
    return uniqueItemsExpression(texts.begin(), texts.count(), needed, g_);
  }

  // The `contains` of one schema, with the default count.
  const JsonValue* containedOf(const Conjunction& all, bool has_prefix, bool is_unique) {
    const JsonValue* owner = nullptr;
    for (const SchemaElement& element : all.elements) {
      const JsonValue& schema = *element.schema;
      if (element.isNegated() || schema.find("contains") == nullptr) {
        continue;
      }
      uint32_t least = 0;
      uint32_t most = UINT32_MAX;
      c_.countsOf(schema, "minContains", "maxContains", &least, &most);
      least = schema.find("minContains") == nullptr ? 1 : least;
      if (least == 0 && most == UINT32_MAX) {
        continue;
      }
      if (least != 1 || most != UINT32_MAX || owner != nullptr || has_prefix || is_unique) {
        c_.refuse(schema, "contains",
                  "is only supported once, for one item, without prefixItems and uniqueItems: "
                  "leave it out");
        return nullptr;
      }
      owner = &schema;
    }
    return owner;
  }

  ExprId containing(const Conjunction& all, const JsonValue& owner, ExprId item,
                    const ArrayLengths& lengths) {
    const uint32_t counted = lengths.most != UINT32_MAX ? lengths.most : lengths.least;
    if (counted > kMostCountedItems) {
      c_.refuse(owner, "contains", "is too complex with these lengths: make them smaller");
      return g_->never();
    }
    Conjunction hit(scratch_);
    c_.addItem(all, 0, &hit);
    c_.add(owner.find("contains"), &hit);
    const ExprId its_value = value(hit);
    return isNever(its_value) ? its_value : containingExpression(item, its_value, lengths, g_);
  }

  // ---- objects
  bool addName(const JsonText& name, const JsonValue& owner, List<ObjectProperty>* properties) {
    if (!c_.spend(owner, kStepsOfName * properties->count())) {
      return false;
    }
    for (const ObjectProperty& known : *properties) {
      if (known.name == name) {
        return true;
      }
    }
    if (properties->count() == kMostProperties) {
      c_.refuse(owner, "properties", "has too many: give fewer");
      return false;
    }
    return properties->push({name, false, 0});
  }

  // In the order of the schemas, then names that are only required.
  void namesOf(const Conjunction& all, List<ObjectProperty>* properties) {
    for (const SchemaElement& element : all.elements) {
      const JsonValue* const named =
          element.isNegated() ? nullptr : element.schema->find("properties");
      for (const JsonValue* one = named != nullptr ? named->first() : nullptr;
           one != nullptr && addName(one->key(), *element.schema, properties); one = one->next()) {
      }
    }
    for (const SchemaElement& element : all.elements) {
      const JsonValue* const names =
          element.isNegated() ? nullptr : element.schema->find("required");
      for (const JsonValue* one = names != nullptr ? names->first() : nullptr;
           one != nullptr && addName(one->text(), *element.schema, properties); one = one->next()) {
        (void)c_.spend(*element.schema, kStepsOfName * properties->count());
        for (ObjectProperty& property : *properties) {
          property.required = property.required || property.name == one->text();
        }
      }
    }
  }

  ExprId object(const Conjunction& all, const SchemaFacts& facts) {
    List<ObjectProperty> properties(scratch_);
    namesOf(all, &properties);
    Conjunction keys(scratch_);
    const bool has_keys = c_.namesOf(all, &keys);
    const KeyFacts of_keys = has_keys ? factsOfKeys(all, keys, &properties) : KeyFacts();
    JsonBuilder build(scratch_);
    JsonMade* const names = build.list();
    for (ObjectProperty& property : properties) {
      JsonMade* const key = build.text(property.name);
      build.append(names, key);
      const bool may_be = !has_keys || (key != nullptr && c_.isValid(keys, *key, nullptr));
      property.member = may_be ? memberOf(all, property) : g_->never();
      if (c_.failed() || (isNever(property.member) && property.required)) {
        return g_->never();
      }
    }
    List<ObjectProperty> kept(scratch_);
    for (const ObjectProperty& property : properties) {
      if (!isNever(property.member)) {
        kept.push(property);
      }
    }
    const ExprId other = of_keys.fixed ? g_->never() : otherMember(all, names, of_keys.text);
    return objectOf(kept, other, facts, all);
  }

  ExprId memberOf(const Conjunction& all, const ObjectProperty& property) {
    Conjunction of_value(scratch_);
    c_.addProperty(all, property.name, &of_value);
    const ExprId its_value = value(of_value);
    if (c_.failed() || isNever(its_value)) {
      return g_->never();
    }
    const JsonValue* const key = JsonBuilder(scratch_).text(property.name);
    const JsonText text = key != nullptr ? jsonOf(*key, scratch_) : JsonText();
    const ExprId colon = g_->sequence(g_->text(":"), blank());
    return sequence(g_->bytes(text.data, text.bytes), sequence(colon, its_value));
  }

  // Constraints on further names. If these are enumerable, they become properties.
  KeyFacts factsOfKeys(const Conjunction& all, const Conjunction& keys,
                       List<ObjectProperty>* properties) {
    const SchemaFacts facts = c_.factsOf(keys);
    KeyFacts of_keys;
    of_keys.text = facts.string;
    of_keys.fixed = keys.never || (facts.types & kStringType) == 0 || facts.constants != nullptr;
    if (facts.constants != nullptr) {
      const JsonValue* const only = facts.constants->find("const");
      const JsonValue* one = only != nullptr ? only : facts.constants->find("enum")->first();
      for (; one != nullptr; one = only != nullptr ? nullptr : one->next()) {
        if (one->isString() && (c_.isOpen(all) || c_.isNamed(all, one->text()))) {
          addName(one->text(), *facts.constants, properties);
        }
      }
      return of_keys;
    }
    bool is_plain = !facts.has_union || of_keys.fixed;
    for (const SchemaElement& element : keys.elements) {
      is_plain =
          is_plain && (!element.isExcluding() || c_.addExclusion(*element.schema, &of_keys.text));
    }
    if (!is_plain) {
      const char* keyword = nullptr;
      const JsonValue& owner = ownerOf(all, {"propertyNames"}, &keyword);
      c_.refuse(owner, keyword, "is too complex with unions: give a pattern, lengths or an enum");
    }
    return of_keys;
  }

  // An unnamed property; kNever: not allowed.
  ExprId otherMember(const Conjunction& all, const JsonMade* names, const StringFacts& of_keys) {
    List<SchemaContext::Others> others(scratch_);
    c_.othersOf(all, names, &others);
    List<ExprId> options(scratch_);
    for (const SchemaContext::Others& other : others) {
      const ExprId its_value = value(other.value);
      const ExprId key =
          c_.failed() || isNever(its_value) ? g_->never() : keyOf(all, other, names, of_keys);
      if (c_.failed()) {
        return g_->never();
      }
      if (!isNever(key)) {
        const ExprId colon = g_->sequence(g_->text(":"), blank());
        options.push(sequence(key, sequence(colon, its_value)));
      }
    }
    return choiceOf(options.begin(), options.count(), g_);
  }

  ExprId keyOf(const Conjunction& all, const SchemaContext::Others& other, const JsonMade* names,
               const StringFacts& of_keys) {
    StringFacts facts = other.key;
    if (facts.n_patterns == 0 && facts.n_not_patterns == 0 && !of_keys.isBounded()) {
      List<JsonText> texts(scratch_);
      for (const JsonValue* one = names->first(); one != nullptr; one = one->next()) {
        texts.push(one->text());
      }
      return otherKey(texts.begin(), texts.count(), g_);
    }
    const char* keyword = nullptr;
    const JsonValue& owner = ownerOf(all, {"patternProperties", "propertyNames"}, &keyword);
    c_.join(owner, of_keys, &facts);
    ExprId key = g_->never();
    const char* const error = stringExpression(facts, countedCharacter(g_), g_, &key);
    if (error != nullptr) {
      c_.refuse(owner, keyword, error);
    }
    return c_.failed() || isNever(key) ? g_->never() : asRule(key);
  }

  ExprId objectOf(const List<ObjectProperty>& properties, ExprId other, const SchemaFacts& facts,
                  const Conjunction& all) {
    uint32_t required = 0;
    for (const ObjectProperty& property : properties) {
      required += property.required ? 1 : 0;
    }
    ObjectShape shape = {&properties, other, 0, UINT32_MAX};
    if (facts.min_properties > required) {
      shape.least = facts.min_properties;
    }
    if (facts.max_properties < properties.count() || !isNever(other)) {
      shape.most = facts.max_properties;
    }
    // Counts written members only as far as needed.
    const uint32_t top = shape.most != UINT32_MAX ? shape.most : shape.least;
    if ((uint64_t{top} + 1) * (properties.count() + 1) > kMostCountedProperties && top != 0) {
      const char* keyword = nullptr;
      const JsonValue& owner = ownerOf(all, {"minProperties", "maxProperties"}, &keyword);
      c_.refuse(owner, keyword, "is too much to count: make it smaller, or leave it out");
      return g_->never();
    }
    shape.top = top;
    return objectExpression(shape, g_);
  }

  SchemaContext& c_;
  Scratch* const scratch_;
  const ExprId first_;  ///< of the expressions written here
  List<Value> values_;
  uint32_t written_ = 0;
  List<NumberRule> numbers_;
  List<StringRule> strings_;
  Value none_;
};

}  // namespace

Status readJsonSchema(const JsonValue& schema, const JsonValue& document, const SchemaRules& rules,
                      const Log& log, Grammar* grammar, ExprId* expression) {
  SchemaContext context(schema, document, rules, log, grammar);
  if (!schema.isObject() && !schema.isBool()) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "this is not a schema: it must be an object, true or false");
  }
  const ExprId root = SchemaWriter(&context).write(schema);
  ORIEL_TRY(context.end());
  if (grammar->scratch()->failed()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, kNoSchemaMemory);
  }
  if (grammar->failed()) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED, "the schema becomes too large: make it smaller");
  }
  if (grammar->at(root).kind == ExprKind::kNever) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "nothing is valid by the schema: correct what contradicts itself");
  }
  *expression = root;
  return kOk;
}

}  // namespace oriel_internal
