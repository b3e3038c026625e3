#include "grammar/json_schema.h"

#include "grammar/schema_objects.h"
#include "grammar/schema_parts.h"
#include "grammar/schema_texts.h"
#include "json/json_builder.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostUnionDepth = 24;
constexpr uint32_t kMostProperties = 1000;
constexpr uint32_t kMostCountedProperties = 4000;  // properties times how many there may be
constexpr uint32_t kMostPrefixItems = 1000;
constexpr uint32_t kMostConstants = 20000;
constexpr size_t kMostConstantBytes = 256 * 1024;
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kStepsOfConstant = 256;  // to write and to sort it
constexpr uint64_t kStepsOfByte = 8;        // of one
constexpr uint64_t kStepsOfName = 4;        // to compare it
constexpr uint64_t kStepsOfRule = 8;        // to compare it

using Verdict = SchemaContext::Verdict;

// Schemas are written value by value: what an object or array holds becomes a rule of its own, which is written
// later. So recursion ends where a value begins. A rule that turns out to have no text is known as such in a second
// round, where what needs it is left out.
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

  // Values of which no text ends. True: there are some, and everything is to be written again.
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
    return facts.has_union ? unionOf(all, facts, depth) : concrete(all, facts);
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
          c_.addNegated(*other, &with);
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

  // `listing`: the schema that has it in its enum, if any.
  void addConstant(const Conjunction& all, const JsonValue* listing, const JsonValue& constant,
                   List<JsonText>* texts) {
    if (c_.isValid(all, constant, listing)) {
      texts->push(jsonOf(constant, scratch_));
    }
  }

  // ---- types
  ExprId concrete(const Conjunction& all, SchemaFacts facts) {
    facts.types &= typesApart(all, facts);
    if ((facts.types & kNumberType) == kFractionType && !c_.failed()) {
      refuseUnion(all, "has branches that tell integers from other numbers: give them bounds");
    }
    if (c_.failed()) {
      return g_->never();
    }
    facts.number.integer = (facts.types & kFractionType) == 0;
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

  // Of null, true and false it can be tried whether they are valid.
  ExprId oneOfFew(const Conjunction& all, const char* text) {
    const JsonValue value = text[0] == 'n' ? JsonValue() : JsonValue(text[0] == 't');
    for (const SchemaElement& element : all.elements) {
      if (element.isNegated() && c_.isValid(*element.schema, value)) {
        return g_->never();
      }
    }
    return g_->text(text);
  }

  // Other types of which no text is valid by another branch of `oneOf`.
  uint32_t typesApart(const Conjunction& all, const SchemaFacts& facts) {
    uint32_t types = kAnyType;
    for (const SchemaElement& element : all.elements) {
      for (uint32_t type = kIntegerType; element.isNegated() && type <= kObjectType; type *= 2) {
        if ((facts.types & types & type) == 0 || c_.failed()) {
          continue;
        }
        const Verdict verdict = c_.judge(all, facts, type, *element.schema);
        if (verdict == Verdict::kCovered) {
          types &= ~type;
        } else if (verdict == Verdict::kUnknown) {
          refuseUnion(all,
                      "has branches that may be valid together: write anyOf, or give each a "
                      "required property with a const of its own");
        }
      }
    }
    return types;
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
    // An item that nothing is valid for: the array ends before it.
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
    if (facts.min_items > most) {
      return g_->never();
    }
    if (most == 0) {
      return g_->text("[]");
    }
    return arrayOf(items, n_prefix, facts.min_items, most);
  }

  // items[n_prefix] stands for all behind the prefix.
  ExprId arrayOf(const List<ExprId>& items, uint32_t n_prefix, uint32_t least, uint32_t most) {
    const uint32_t n_single = std::max(std::min(n_prefix, most), 1u);
    ExprId rest = g_->empty();
    if (most > n_single) {
      const uint32_t more = most == UINT32_MAX ? most : most - n_single;
      const ExprId next = sequence(comma(), items[n_prefix]);
      rest = countedExpression(next, least > n_single ? least - n_single : 0, more, g_);
    }
    for (uint32_t i = n_single; i-- != 0;) {
      rest = g_->sequence(items[i], rest);
      if (i != 0) {
        rest = g_->sequence(comma(), rest);
        rest = asRule(i >= least ? optional(rest) : rest);
      }
    }
    rest = least == 0 ? optional(rest) : rest;
    return g_->sequence(g_->text("["), g_->sequence(rest, g_->text("]")));
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

  // In the order of the schemas, then what is only required.
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
    List<JsonText> names(scratch_);
    for (ObjectProperty& property : properties) {
      names.push(property.name);
      Conjunction of_value(scratch_);
      c_.addProperty(all, property.name, &of_value);
      const ExprId its_value = value(of_value);
      if (c_.failed() || (isNever(its_value) && property.required)) {
        return g_->never();
      }
      const JsonValue* const key = JsonBuilder(scratch_).text(property.name);
      const JsonText text = key != nullptr ? jsonOf(*key, scratch_) : JsonText();
      const ExprId colon = g_->sequence(g_->text(":"), blank());
      property.member = sequence(g_->bytes(text.data, text.bytes), sequence(colon, its_value));
    }
    List<ObjectProperty> kept(scratch_);
    for (const ObjectProperty& property : properties) {
      if (!isNever(property.member)) {
        kept.push(property);
      }
    }
    return objectOf(kept, otherMember(all, &names), facts, all);
  }

  // A property that is not named; kNever: there is none.
  ExprId otherMember(const Conjunction& all, List<JsonText>* names) {
    if (!c_.isOpen(all)) {
      return g_->never();
    }
    Conjunction of_value(scratch_);
    for (const SchemaElement& element : all.elements) {
      if (!element.isNegated()) {
        c_.add(element.schema->find("additionalProperties"), &of_value);
      }
    }
    const ExprId its_value = value(of_value);
    if (c_.failed() || isNever(its_value)) {
      return g_->never();
    }
    const ExprId key = otherKey(names->begin(), names->count(), g_);
    return sequence(key, sequence(g_->sequence(g_->text(":"), blank()), its_value));
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
    // How many were written is counted as far as it matters.
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
  const ExprId first_;  ///< of those that are written here
  List<Value> values_;
  uint32_t written_ = 0;
  List<NumberRule> numbers_;
  List<StringRule> strings_;
  Value none_;
};

}  // namespace

Status readJsonSchema(const JsonValue& schema, const JsonValue& document, const Log& log,
                      Grammar* grammar, ExprId* expression) {
  SchemaContext context(schema, document, log, grammar);
  if (!schema.isObject() && !schema.isBool()) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the schema is none: it has to be an object, true or false");
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
