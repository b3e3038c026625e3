// What json_schema.cpp is made of: schemas that hold together, what they say, and what is known of them.
#pragma once

#include "grammar/json_schema.h"
#include "grammar/list.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_maker.h"
#include "grammar/schema_numbers.h"
#include "grammar/schema_patterns.h"

namespace oriel_internal {

/// The format of a line.
constexpr char kNoSchemaMemory[] = "no memory to read the schema: make it smaller";

/// Types of values. Numbers without a fraction are integers, however they are written.
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

/// A schema, as far as it is still to be looked at.
struct SchemaElement {
  enum Flags : uint32_t {
    kWithoutAnyOf = 1,  ///< a branch of it stands beside it
    kWithoutOneOf = 2,
    kNegated = 4,      ///< it must not be valid
    kWithoutEnum = 8,  ///< the value is one of its `enum`
    kOfNot = 16,       ///< negated by `not`, not as another branch of `oneOf`
    kExpanded = 32,    ///< negated, and one way not to be valid stands beside it
    kAlone =
        64,  ///< of what it refers to, `allOf` and `not`, nothing is asked: they are elements, too
  };
  static constexpr uint32_t kNoParent = UINT32_MAX;

  const JsonValue* schema = nullptr;
  uint32_t flags = 0;
  uint32_t parent = kNoParent;  ///< element that leads to it

  bool isNegated() const { return (flags & kNegated) != 0; }
  bool isExcluding() const { return (flags & (kNegated | kExpanded)) == kNegated; }
};

/// All of them hold at once. References and allOf are taken apart already.
struct Conjunction {
  explicit Conjunction(Scratch* scratch) : elements(scratch) {}

  List<SchemaElement> elements;
  bool never = false;  ///< one is `false`
};

struct SchemaFacts {
  uint32_t types = kAnyType;
  const JsonValue* constants = nullptr;  ///< the schema that has `const` or `enum`
  NumberFacts number;
  StringFacts string;
  uint32_t min_items = 0;
  uint32_t max_items = UINT32_MAX;
  uint32_t min_properties = 0;
  uint32_t max_properties = UINT32_MAX;
  const JsonValue* unique = nullptr;  ///< the schema that has `uniqueItems`
  bool has_union = false;
  uint32_t union_at = 0;  ///< element that has one
  bool is_one_of = false;
};

/// To pass so many members or elements of a value: a long list is not in the caches.
inline uint64_t stepsToPass(uint64_t count) {
  return count * (count <= 100 ? 2 : count <= 1000 ? 4 : 16);
}

/// A schema being read: where it stands, what has gone wrong, and what it may cost.
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
  /// Says so where the work has ended and nothing else was said.
  Status end();

  /// The first of these counts. `what`: "is not supported: leave it out".
  void refuse(const JsonValue& schema, const char* keyword, const char* what);
  void wrong(const JsonValue& schema, const char* keyword, const char* what);
  /// Counts work on a schema; false: it is too much, and has failed.
  bool spend(const JsonValue& schema, uint64_t steps = kStepsOfSchema);

  /// The schema with the keywords of draft 2020-12, once they were checked. Null: it has failed.
  const JsonValue* canonical(const JsonValue& schema);
  const JsonValue* resolve(const JsonValue& schema, const JsonValue& reference);
  /// With what it refers to. Null adds nothing.
  void add(const JsonValue* schema, Conjunction* all, uint32_t parent = SchemaElement::kNoParent,
           uint32_t depth = 0);
  /// `flags`: kOfNot or none.
  void addNegated(const JsonValue& schema, Conjunction* all, uint32_t flags,
                  uint32_t parent = SchemaElement::kNoParent, uint32_t depth = 0);
  /// Ways not to be valid by a canonical schema: what is valid by one of them is not valid by it. `whole`: there are no
  /// others. Null: it has failed.
  const JsonValue* negation(const JsonValue& schema, bool* whole);
  /// Adds a schema that must not be valid to `facts`, if it is only about the text of strings.
  bool addExclusion(const JsonValue& schema, StringFacts* facts);
  SchemaFacts factsOf(const Conjunction& all);
  uint32_t typesOf(const JsonValue& schema);
  NumberFacts numbersOf(const JsonValue& schema);
  StringFacts stringsOf(const JsonValue& schema);
  void join(const JsonValue& schema, const StringFacts& more, StringFacts* facts);
  void countsOf(const JsonValue& schema, const char* min, const char* max, uint32_t* least,
                uint32_t* most);

  /// What an object's property or an array's item has to be.
  void addProperty(const Conjunction& objects, const JsonText& name, Conjunction* value);
  void addItem(const Conjunction& arrays, uint32_t index, Conjunction* value);
  /// Schemas that a property's value has to be valid by.
  void propertyOf(const JsonValue& schema, const JsonText& name, List<const JsonValue*>* out);
  const JsonValue* itemOf(const JsonValue& schema, uint32_t index);
  /// Properties that none of them names may be there.
  bool isOpen(const Conjunction& objects);
  bool isNamed(const Conjunction& objects, const JsonText& name);
  /// Properties that no schema names, by the patterns that their names match.
  struct Others {
    StringFacts key;
    Conjunction value{nullptr};
    bool is_any = false;  ///< they match none
  };
  /// All ways to match patterns. `names`: the properties that are named, a list of strings.
  void othersOf(const Conjunction& objects, const JsonValue* names, List<Others>* out);
  /// What names of properties have to be valid by; false: nothing is said of them.
  bool namesOf(const Conjunction& objects, Conjunction* names);
  bool isRequired(const JsonValue& schema, const JsonText& name);

  /// The branches of a union: of `all` without the union, each with one branch.
  void branch(const Conjunction& all, const SchemaFacts& facts, const JsonValue& branch,
              Conjunction* out);
  /// `all` with one way not to be valid by the excluding element.
  void way(const Conjunction& all, uint32_t excluded, const JsonValue& way, Conjunction* out);
  const JsonValue* branchesOf(const Conjunction& all, const SchemaFacts& facts);

  /// Of a value that is given.
  /// `flags`: SchemaElement's, unions that are not looked at.
  bool isValid(const JsonValue& schema, const JsonValue& value, uint32_t depth = 0,
               uint32_t flags = 0);
  /// `listing`: the schema, if any, that has the value in its `enum`.
  bool isValid(const Conjunction& all, const JsonValue& value, const JsonValue* listing);
  /// Leaves out what must not be valid, and unions of which a branch stands beside them.
  bool isValidByAll(const Conjunction& all, const JsonValue& value);

  /// What texts of one type are to another schema.
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
    uint32_t next;  ///< of rewritten_, plus 1
  };
  struct Negated {
    const JsonValue* of;
    const JsonValue* alternatives;
    bool whole;
  };
  /// What is compared at one depth: its room is used again for each pair of schemas.
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
  /// About what looking at one takes, beside what it holds.
  static constexpr uint64_t kStepsOfSchema = 128;
  static constexpr uint64_t kStepsOfKnown = 8;  ///< of one whose keywords were checked before
  static constexpr uint32_t kMostChecked = 512;
  /// To look for every keyword in a schema. With more members than there are keywords they repeat.
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
  List<const JsonValue*> found_;  ///< schemas of one property
  Compared compared_[kMostDepthCompared + 1];
  const char* resource_keyword_ = "$id";
  bool looked_for_resources_ = false;
  bool has_resources_ = false;
  const JsonValue* at_ = nullptr;                ///< what was worked on last
  RegexReading reading_ = RegexReading::kBoth;   ///< of patterns held against constants
  uint32_t matched_ = 0;                         ///< patterns held against constants
  const JsonValue* checked_[kMostChecked] = {};  ///< schemas that check() has passed, by address
};

/// Whether two values are the same to JSON Schema: numbers by value, objects whatever their order.
bool isSameValue(const JsonValue& a, const JsonValue& b, Work* work);

}  // namespace oriel_internal
