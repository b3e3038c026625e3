// Arguments of a call as expressions, in the notation of its form.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"
#include "grammar/schema_rules.h"
#include "json/json.h"

namespace oriel_internal {

enum class ArgumentNotation : uint8_t { kJson, kRaw, kGemma };

/// Builds expressions for one tool's parameter values. Logs and keeps the first failure.
class CallValues {
 public:
  /// `document`: the schema of the tool's parameters.
  CallValues(const JsonValue& document, const SchemaRules& rules, const Log& log, Grammar* grammar)
      : document_(document), rules_(rules), log_(log), grammar_(*grammar) {}

  /// A value by `schema`. kRaw includes the mark that ends it.
  ExprId value(const JsonValue& schema, ArgumentNotation notation, const char* end_mark = "");
  ExprId jsonObject(const JsonValue& schema);
  /// The schema with the properties, after resolving `$ref`. It may not constrain all properties together.
  const JsonValue& members(const JsonValue& given);
  /// {key:value,...} in Gemma's notation.
  ExprId gemmaObject(const JsonValue& schema);
  const Status& status() const { return status_; }

 private:
  static constexpr uint32_t kMostDepth = 16;

  ExprId json(const JsonValue& schema);
  ExprId raw(const JsonValue& schema, const char* end_mark);
  ExprId gemma(const JsonValue& schema);
  ExprId gemmaArray(const JsonValue& schema);
  ExprId gemmaString(const JsonValue& schema);
  /// The values of an enum or const with these types: strings between the two marks, others as JSON. False: it has
  /// neither.
  bool listed(const JsonValue& schema, uint8_t types, const char* before, const char* behind,
              ExprId* out);
  ExprId gemmaOf(const JsonValue& schema, uint8_t types);
  /// Fails if a required name is not a property.
  void checkRequired(const JsonValue& schema);
  /// Follows $ref.
  const JsonValue& resolved(const JsonValue& schema) const;
  ExprId fail(const char* what);
  bool refuses(const JsonValue& schema, const char* const* keywords, size_t count);

  const JsonValue& document_;
  const SchemaRules& rules_;
  const Log& log_;
  Grammar& grammar_;
  Status status_ = kOk;
  uint32_t depth_ = 0;
};

/// ORIEL_ERROR_UNSUPPORTED: forms with unquoted keys cannot hold this one.
Status failOfKey(const Log& log, const JsonText& key);
/// Bytes of a name that a line quotes.
int shownBytes(const JsonText& name);

/// The properties in order, ending with null; required ones are noted. Null: out of memory, or the work has ended.
const JsonValue** membersOf(Grammar* grammar, const JsonValue* properties,
                            const JsonValue* required);

/// The members in order, separated by `between`; optional ones may be left out. `member(property)` gives the expression
/// of one.
template <typename Member>
ExprId membersInOrder(Grammar* grammar, const JsonValue* properties, const JsonValue* required,
                      const char* between, const Member& member) {
  const JsonValue** const all = membersOf(grammar, properties, required);
  // Built back to front: the rest after a member, and the rest without one.
  ExprId behind = grammar->empty();
  ExprId first = grammar->empty();
  for (uint32_t i = all != nullptr && all[0] != nullptr ? properties->count() : 0; i > 0; --i) {
    const ExprId one = member(*all[i - 1]);
    const RuleId behind_rule = grammar->newRule();
    grammar->define(behind_rule, behind);
    const ExprId rest = grammar->rule(behind_rule);
    const bool needed = all[i - 1]->noted();
    const ExprId with = grammar->sequence(one, rest);
    const ExprId more = grammar->sequence(grammar->text(between), with);
    behind = needed ? more : grammar->choice(more, rest);
    first = needed ? with : grammar->choice(with, first);
  }
  return first;
}

}  // namespace oriel_internal
