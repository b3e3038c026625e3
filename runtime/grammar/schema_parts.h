// Parts of the reader of JSON schemas: keywords, members, rewritten schemas.
#pragma once

#include "grammar/expression.h"
#include "grammar/grammar.h"
#include "grammar/schema_patterns.h"
#include "json/json.h"

namespace oriel_internal {

// Makes schemas that replace others: rewritten and negated ones.

/// The original of a made schema.
struct SchemaOrigin {
  const JsonValue* schema;
  bool rewritten;  ///< already canonical
  bool unlisted;   ///< its `properties` do not close the object
};

class SchemaMaker : public JsonBuilder {
 public:
  explicit SchemaMaker(Scratch* scratch) : JsonBuilder(scratch), origins_(scratch) {}

  /// An empty schema that messages name as `of`.
  JsonMade* schema(const JsonValue& of, bool unlisted = true, bool rewritten = false) {
    return noted(object(), {&of, rewritten, unlisted});
  }
  /// A copy of a schema of the document or of a made one, to use elsewhere.
  JsonMade* copy(const JsonValue& of, bool unlisted = false) {
    const SchemaOrigin* const origin = originOf(of);
    return noted(copyOf(of), {&of, origin != nullptr && origin->rewritten,
                              unlisted || (origin != nullptr && origin->unlisted)});
  }
  /// False if the list is empty or its memory ran out.
  static bool isSome(const JsonMade* list) { return list != nullptr && list->count() != 0; }
  /// {"not": of}
  JsonMade* negated(const JsonValue& of) {
    JsonMade* const made = schema(of);
    set(made, "not", copy(of, true));
    return made;
  }
  /// {"type": type}
  JsonMade* typed(const JsonValue& of, const char* type) {
    JsonMade* const made = schema(of);
    set(made, "type", text(type));
    return made;
  }
  /// An object that has this property; null: that lacks it.
  JsonMade* withProperty(const JsonValue& of, const JsonText& name, JsonMade* value) {
    JsonMade* const made = schema(of);
    if (value != nullptr) {
      JsonMade* const names = list();
      append(names, text(name));
      set(made, "required", names);
    }
    JsonMade* const properties = object();
    set(properties, name, value != nullptr ? value : boolean(false));
    set(made, "properties", properties);
    return made;
  }

  const SchemaOrigin* originOf(const JsonValue& schema) const {
    const uint32_t number = schema.origin();
    return number != 0 ? &origins_[number - 1] : nullptr;
  }

 private:
  JsonMade* noted(JsonMade* made, const SchemaOrigin& origin) {
    return origins_.push(origin) ? from(origins_.count(), made) : made;
  }

  List<SchemaOrigin> origins_;
};

// The keywords of JSON Schema: their value types and handling.

/// The type of a keyword's value.
enum class Shape : uint8_t {
  kAnything,
  kSchema,
  kSchemas,       ///< a non-empty array of schemas
  kSchemaOrList,  ///< a schema, or an array of any length
  kNamedSchemas,  ///< an object of schemas
  kNamedNeeds,    ///< an object of schemas and lists of names
  kText,
  kTexts,
  kTextsOrFlag,
  kNumber,
  kNumberOrFlag,
  kFlag,
  kCount,
  kValues,
  kTypes,
};

enum class Reading : uint8_t {
  kHeld,       ///< enforced
  kRewritten,  ///< rewritten to enforced keywords
  kRefused,    ///< constrains values in a way that expressions cannot
  kSilent,     ///< does not constrain values
  kIgnored,    ///< not checked by validators either; reported
};

struct Keyword {
  const char* name;
  Shape shape;
  Reading reading;
};

/// Null: not a keyword in any draft.
const Keyword* findKeyword(const JsonText& name);
/// The value keyword that an unknown `name` likely misspells. Null: none.
const char* misspelledKeyword(const JsonText& name);
/// Null, or "has to be ...: correct it".
const char* shapeError(Shape shape, const JsonValue& value);
/// True if checking the type visits every element.
bool isWalked(Shape shape);
bool isSchemaValue(const JsonValue& value);
/// TypeBits of a type's name; 0: not a type.
uint32_t typeNamed(const JsonValue& name);

// Array items as an expression.

/// Length limits of an array.
struct ArrayLengths {
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
};

/// Up to this many values may come in any order; more values keep their order.
constexpr uint32_t kMostUniqueInAnyOrder = 8;
/// Longest lengths that can be counted together with `contains` or unique values.
constexpr uint32_t kMostCountedItems = 200;

/// items[n_prefix] stands for every item after the prefix. 0 < most, least <= most.
ExprId arrayExpression(const List<ExprId>& items, uint32_t n_prefix, const ArrayLengths& lengths,
                       Grammar* grammar);
/// Items from these values, each at most once. least <= most. kNever: impossible.
ExprId uniqueItemsExpression(const JsonText* values, uint32_t count, const ArrayLengths& lengths,
                             Grammar* grammar);
/// Items with at least one `hit`. least, and a finite most, must be at most kMostCountedItems.
ExprId containingExpression(ExprId item, ExprId hit, const ArrayLengths& lengths, Grammar* grammar);

// Object members in order, as an expression.

struct ObjectProperty {
  JsonText name;
  bool required;
  ExprId member;  ///< key, colon and value; kNever: forbidden
};

struct ObjectShape {
  const List<ObjectProperty>* properties;
  ExprId other;  ///< a member with another name; kNever: forbidden
  uint32_t least;
  uint32_t most;     ///< UINT32_MAX: unlimited
  uint32_t top = 0;  ///< members are counted up to here

  uint32_t more(uint32_t count) const { return std::min(count + 1, top); }
};

/// kNever if nothing fits.
ExprId objectExpression(const ObjectShape& shape, Grammar* grammar);

// The parts of json_schema.cpp: combined schemas, and facts about them.

/// A format for error lines.
constexpr char kNoSchemaMemory[] = "no memory to read the schema: make it smaller";

/// Value types. Numbers without a fraction are integers, in any spelling.
enum TypeBits : uint32_t {
  kNullType = 1,
  kBoolType = 2,
  kIntegerType = 4,
  kFractionType = 8,
  kStringType = 16,
  kArrayType = 32,
  kObjectType = 64,
  kNumberType = kIntegerType | kFractionType,
  kAnyType = 127,
};
uint32_t typeOf(const JsonValue& value);

/// A schema with the parts of it that are still to be applied.
struct SchemaElement {
  enum Flags : uint32_t {
    kWithoutAnyOf = 1,  ///< the chosen anyOf branch is a separate element
    kWithoutOneOf = 2,
    kNegated = 4,      ///< it must not be valid
    kWithoutEnum = 8,  ///< its `enum` was applied
    kOfNot = 16,       ///< negated by `not`, not as another branch of `oneOf`
    kExpanded = 32,    ///< negated, and one way to be invalid is a separate element
    kAlone = 64,       ///< its references, `allOf` and `not` are separate elements
  };
  static constexpr uint32_t kNoParent = UINT32_MAX;

  const JsonValue* schema = nullptr;
  uint32_t flags = 0;
  uint32_t parent = kNoParent;  ///< element it came from

  bool isNegated() const { return (flags & kNegated) != 0; }
  bool isExcluding() const { return (flags & (kNegated | kExpanded)) == kNegated; }
};

/// All of them must hold. References and allOf are already expanded.
struct Conjunction {
  explicit Conjunction(Scratch* scratch) : elements(scratch) {}

  List<SchemaElement> elements;
  bool never = false;  ///< an element is `false`
};

struct SchemaFacts {
  uint32_t types = kAnyType;
  const JsonValue* constants = nullptr;  ///< the schema with `const` or `enum`
  NumberFacts number;
  StringFacts string;
  uint32_t min_items = 0;
  uint32_t max_items = UINT32_MAX;
  uint32_t min_properties = 0;
  uint32_t max_properties = UINT32_MAX;
  const JsonValue* unique = nullptr;  ///< the schema with `uniqueItems`
  bool has_union = false;
  uint32_t union_at = 0;  ///< element with a union
  bool is_one_of = false;
};

/// Steps to visit `count` members or elements: long lists are not cached.
inline uint64_t stepsToPass(uint64_t count) {
  return count * (count <= 100 ? 2 : count <= 1000 ? 4 : 16);
}

/// A schema that is being read: its position, errors and cost.
class SchemaContext {
 public:
  SchemaContext(const JsonValue& schema, const JsonValue& document, const SchemaRules& rules,
                const Log& log, Grammar* grammar)
      : schema_(schema),
        document_(document),
        rules_(rules),
        log_(log),
        grammar_(grammar),
        patterns_(grammar),
        maker_(grammar->scratch()),
        rewritten_(grammar->scratch()),
        negations_(grammar->scratch()),
        found_(grammar->scratch()) {
    for (Compared& level : compared_) {
      level = {Conjunction(grammar->scratch()), List<const JsonValue*>(grammar->scratch())};
    }
  }

  Grammar* grammar() const { return grammar_; }
  Scratch* scratch() const { return grammar_->scratch(); }
  bool failed() const { return !status_.ok() || grammar_->failed(); }
  Status status() const { return status_; }
  /// Reports that the work ended, unless another error was logged.
  Status end();

  /// The first refusal wins. `what`: "is not supported: leave it out".
  void refuse(const JsonValue& schema, const char* keyword, const char* what);
  void wrong(const JsonValue& schema, const char* keyword, const char* what);
  /// Counts work on a schema; false: the limit is exceeded, which is an error.
  bool spend(const JsonValue& schema, uint64_t steps = kStepsOfSchema);

  /// The schema in keywords of draft 2020-12, checked. Null after an error.
  const JsonValue* canonical(const JsonValue& schema);
  const JsonValue* resolve(const JsonValue& schema, const JsonValue& reference);
  /// Adds a schema and its references. Null adds nothing.
  void add(const JsonValue* schema, Conjunction* all, uint32_t parent = SchemaElement::kNoParent,
           uint32_t depth = 0);
  /// `flags`: kOfNot or none.
  void addNegated(const JsonValue& schema, Conjunction* all, uint32_t flags,
                  uint32_t parent = SchemaElement::kNoParent, uint32_t depth = 0);
  /// Schemas for the ways to be invalid by a canonical schema: a value that any of them accepts is invalid by `schema`.
  /// `whole`: they cover all ways. Null after an error.
  const JsonValue* negation(const JsonValue& schema, bool* whole);
  /// Adds an excluded schema to `facts`, if it concerns only the text of strings.
  bool addExclusion(const JsonValue& schema, StringFacts* facts);
  SchemaFacts factsOf(const Conjunction& all);
  uint32_t typesOf(const JsonValue& schema);
  NumberFacts numbersOf(const JsonValue& schema);
  StringFacts stringsOf(const JsonValue& schema);
  void join(const JsonValue& schema, const StringFacts& more, StringFacts* facts);
  void countsOf(const JsonValue& schema, const char* min, const char* max, uint32_t* least,
                uint32_t* most);

  /// Adds the constraints on an object's property or an array's item.
  void addProperty(const Conjunction& objects, const JsonText& name, Conjunction* value);
  void addItem(const Conjunction& arrays, uint32_t index, Conjunction* value);
  /// Schemas that apply to a property's value.
  void propertyOf(const JsonValue& schema, const JsonText& name, List<const JsonValue*>* out);
  const JsonValue* itemOf(const JsonValue& schema, uint32_t index);
  /// True if unnamed properties are allowed.
  bool isOpen(const Conjunction& objects);
  bool isNamed(const Conjunction& objects, const JsonText& name);
  /// Unnamed properties, grouped by the patterns that their names match.
  struct Others {
    StringFacts key;
    Conjunction value{nullptr};
    bool is_any = false;  ///< matches no pattern
  };
  /// All combinations of patterns. `names`: the named properties, a list of strings.
  void othersOf(const Conjunction& objects, const JsonValue* names, List<Others>* out);
  /// Constraints on property names; false: none.
  bool namesOf(const Conjunction& objects, Conjunction* names);
  bool isRequired(const JsonValue& schema, const JsonText& name);

  /// Expands a union: `all` without the union, with each branch in turn.
  void branch(const Conjunction& all, const SchemaFacts& facts, const JsonValue& branch,
              Conjunction* out);
  /// `all` with one way to be invalid by the excluding element.
  void way(const Conjunction& all, uint32_t excluded, const JsonValue& way, Conjunction* out);
  const JsonValue* branchesOf(const Conjunction& all, const SchemaFacts& facts);

  /// Validates a given value.
  /// `flags`: SchemaElement's flags, for unions to skip.
  bool isValid(const JsonValue& schema, const JsonValue& value, uint32_t depth = 0,
               uint32_t flags = 0);
  /// `listing`: the schema whose `enum` contains the value, if any.
  bool isValid(const Conjunction& all, const JsonValue& value, const JsonValue* listing);
  /// Skips negated elements, and unions with an expanded branch.
  bool isValidByAll(const Conjunction& all, const JsonValue& value);

  /// The relation of one type's texts to another schema.
  enum class Verdict : uint8_t { kApart, kCovered, kUnknown };
  Verdict judge(const Conjunction& all, const SchemaFacts& facts, uint32_t type,
                const JsonValue& other, uint32_t depth = 0);

 private:
  class Negation;
  class Negating;
  class OtherWays;
  struct Rewritten {
    const JsonValue* from;
    const JsonValue* to;
    uint32_t next;  ///< in rewritten_, plus 1
  };
  struct Negated {
    const JsonValue* of;
    const JsonValue* alternatives;
    bool whole;
  };
  /// Buffers for comparisons at one depth, reused for each pair of schemas.
  struct Compared {
    Conjunction value{nullptr};
    List<const JsonValue*> theirs{nullptr};

    Conjunction& begin() {
      value.elements.cutTo(0);
      value.never = false;
      return value;
    }
  };
  static constexpr uint32_t kMostDepthCompared = 10;
  static constexpr uint32_t kRewrittenHeads = 256;
  /// Approximate cost of visiting a schema, besides its contents.
  static constexpr uint64_t kStepsOfSchema = 128;
  static constexpr uint64_t kStepsOfKnown = 8;  ///< cost of a schema that was checked before
  static constexpr uint32_t kMostChecked = 512;
  /// Cost of looking up every keyword. More members than keywords means duplicates.
  static uint64_t stepsOfMembers(const JsonValue& schema) {
    return schema.count() * uint64_t{schema.count() <= 64 ? 48u : 480u};
  }
  void fail(oriel_status code, const JsonValue& schema, const char* keyword, const char* what);
  static bool leadsTo(const Conjunction& all, uint32_t ancestor, uint32_t element);

  // ---- other spellings
  const JsonValue& original(const JsonValue& schema) const;
  bool isUnlisted(const JsonValue& schema) const;
  bool isOpenApi() const;
  void ignore(const JsonValue& schema, const char* before, const JsonText& name);
  void ignoreFormat(const JsonValue& schema, const JsonText& format);
  bool checkKeyword(const JsonValue& schema, const JsonValue& keyword, bool* rewrites);
  static bool hasRequiredFlag(const JsonValue& properties);
  const JsonValue* rewritten(const JsonValue& schema);
  void addRequiredFlags(const JsonValue& properties, JsonMade* required);
  JsonMade* typeOrNull(const JsonValue& schema, const JsonValue& type);
  JsonMade* unionOf(const JsonValue& schema, JsonMade* a, JsonMade* b);
  void addConditions(const JsonValue& schema, const JsonValue& keyword, JsonMade* parts);
  void addCondition(const JsonValue& schema, const JsonValue& condition, JsonMade* parts);
  void addDependency(const JsonValue& schema, const JsonValue& needs, JsonMade* parts);
  const JsonValue* onlyKeyword(const JsonValue& schema) const;
  bool addOnlyWay(const JsonValue& schema, Conjunction* all, uint32_t parent, uint32_t depth);

  // ---- references
  const JsonValue& resourceOf(const JsonValue& schema);
  bool isResource(const JsonValue& schema) const;
  const JsonValue* pointed(const JsonValue& schema, const JsonValue& from, const JsonText& pointer);

  void join(const JsonValue& schema, const NumberFacts& more, NumberFacts* facts);

  bool isValidUnion(const JsonValue& schema, const JsonValue& value, uint32_t depth,
                    uint32_t flags);
  bool isValidString(const JsonValue& schema, const JsonValue& value);
  bool isValidArray(const JsonValue& schema, const JsonValue& value, uint32_t depth);
  bool isUnique(const JsonValue& schema, const JsonValue& array);
  bool hasContained(const JsonValue& schema, const JsonValue& array, uint32_t depth);
  bool isValidObject(const JsonValue& schema, const JsonValue& value, uint32_t depth);

  bool isProvenInvalid(const Conjunction& all, const JsonValue& other, uint32_t depth);
  bool matches(const JsonValue& schema, const JsonText& pattern, const JsonText& name,
               RegexReading reading);
  bool listsNames(const JsonValue& schema);
  bool isMatched(const JsonValue& schema, const JsonText& name);
  void failOfPattern(const JsonValue& schema, const char* keyword, const char* error,
                     bool is_wrong);
  Verdict judgeUnion(const Conjunction& all, const SchemaFacts& facts, uint32_t type,
                     const JsonValue& other, uint32_t depth);
  Verdict judgeConstants(const Conjunction& all, uint32_t type, const JsonValue& other);
  Verdict judgeKeywords(const Conjunction& all, const SchemaFacts& facts, uint32_t type,
                        const JsonValue& other, uint32_t depth);
  Verdict judgeNumber(const SchemaFacts& facts, const JsonValue& other);
  Verdict judgeString(const SchemaFacts& facts, const JsonValue& other);
  Verdict judgeArray(const Conjunction& all, const SchemaFacts& facts, const JsonValue& other,
                     uint32_t depth);
  Verdict judgeObject(const Conjunction& all, const JsonValue& other, uint32_t depth);

  const JsonValue& schema_;
  const JsonValue& document_;
  const SchemaRules& rules_;
  const Log& log_;
  Grammar* const grammar_;
  Status status_ = kOk;
  SchemaPatterns patterns_;
  SchemaMaker maker_;
  List<Rewritten> rewritten_;
  uint32_t rewritten_heads_[kRewrittenHeads] = {};
  List<Negated> negations_;
  List<const JsonValue*> found_;  ///< schemas that apply to one property
  Compared compared_[kMostDepthCompared + 1];
  const char* resource_keyword_ = "$id";
  bool looked_for_resources_ = false;
  bool has_resources_ = false;
  const JsonValue* at_ = nullptr;                ///< the latest schema
  RegexReading reading_ = RegexReading::kBoth;   ///< for patterns checked against constants
  uint32_t matched_ = 0;                         ///< count of patterns checked against constants
  const JsonValue* checked_[kMostChecked] = {};  ///< schemas accepted by check(), by address
};

/// Equality in JSON Schema: numbers by value, objects in any order.
bool isSameValue(const JsonValue& a, const JsonValue& b, Work* work);

}  // namespace oriel_internal
