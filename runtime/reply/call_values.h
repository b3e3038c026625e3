// Tool calls as expressions: calls, and their arguments in the notation of a form.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"
#include "grammar/grammar.h"
#include "json/json.h"
#include "reply/forms.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

// Expressions for values without a schema: arguments of tools whose schema cannot be enforced.

/// 1 to 64 letters, digits and _.
ExprId anyKey(Grammar* grammar);
/// Any number of `one`, separated by `between`.
ExprId anyList(Grammar* grammar, ExprId one, const char* between);
/// {key:value,...} in Gemma's notation.
ExprId anyGemmaObject(Grammar* grammar);

// Grammars of tool calls: a model's marks, and arguments that are valid by the tool's schema. ReplyReader reads every
// text of these grammars as a call.

struct CallGrammar {
  const char* trigger = "";  ///< the text that starts a call
  bool at_start = false;     ///< only at the start of the answer
  /// The rest after the trigger, up to the end of the call or list of calls.
  ExprId behind = 0;
  ExprId whole = 0;  ///< the same with the trigger
};

/// Tools whose arguments are checked by their schema. Other tools accept any object.
enum class CallChecks : uint8_t {
  kAll,     ///< all tools, as far as schema and form allow
  kStrict,  ///< tools with "strict": true
};

/// True if readCallGrammar() supports any of these forms.
bool hasCallGrammar(ReplyForms forms);
/// True if a tool has "strict": true.
bool anyStrict(const JsonValue& tools);

/// The grammar of calls of `tools`, a list in the OpenAI form, in the preferred form of `forms`. Arguments come in the
/// order of the schema's properties. Marks are control tokens if `tokenizer` has them; null: text.
//
/// A tool whose schema cannot be enforced is noted, with a warning that names the reason: only its name is constrained,
/// and its arguments are any object. For a tool with "strict": true that is an error.
//
/// - ORIEL_ERROR_UNSUPPORTED: these forms have no grammar; a strict tool's schema cannot be enforced by readJsonSchema()
/// or
///   by the form; or the grammar is too large. The line names the reason.
/// - ORIEL_ERROR_ARGUMENT: `tools` is not a list of tools, or empty.
Status readCallGrammar(const JsonValue& tools, ReplyForms forms, const Tokenizer* tokenizer,
                       CallChecks checks, const SchemaRules& rules, const Log& log,
                       Grammar* grammar, CallGrammar* calls);

// Checks that a written call is read back as the same call. Finds names that a form cannot hold before a model is
// constrained to them.

class CallTrial {
 public:
  /// The expected call of `name`, without arguments or with {`key`: 1}.
  CallTrial(ReplyForms forms, const JsonText& name, const JsonText* key);
  CallTrial(const CallTrial&) = delete;
  CallTrial& operator=(const CallTrial&) = delete;

  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void push(const char* text);
  void push(const JsonText& text) { push(text.data, text.bytes); }
  /// Call at the end: true if exactly that call was read.
  bool succeeds();

 private:
  static void onPart(const ReplyPart& part, void* user);
  /// Compares the next bytes of the arguments.
  void compare(const char* text, size_t bytes);

  ReplyReader reader_;
  const JsonText name_;
  const bool has_key_;
  const JsonText key_;
  uint32_t calls_ = 0;
  bool named_ = false;
  bool ended_ = false;
  bool same_ = true;
  size_t at_ = 0;  ///< position in the arguments
};

/// True if Gemma's notation can hold this object key.
bool isGemmaKey(const JsonText& key);

// Arguments of a call as expressions, in the notation of its form.

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
