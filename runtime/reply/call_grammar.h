// What tool calls have to be, as grammars: the marks of a model's form, and arguments that are valid by the tool's
// schema. What follows these grammars is read by ReplyReader as a call.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"
#include "grammar/schema_rules.h"
#include "json/json.h"
#include "reply/forms.h"
#include "text/tokenizer.h"

namespace oriel_internal {

struct CallGrammar {
  const char* trigger = "";  ///< the text with which a call begins
  bool at_start = false;     ///< it is one only where the answer begins
  /// What follows it, up to and with the end of the call or of the list of calls.
  ExprId behind = 0;
  ExprId whole = 0;  ///< the same with the trigger
};

/// Whose arguments a grammar holds to their schema. Those of the others are any object.
enum class CallChecks : uint8_t {
  kAll,     ///< every tool's, as far as the schema and the form allow
  kStrict,  ///< those of tools with "strict": true
};

/// Whether readCallGrammar() knows how calls of these forms look.
bool hasCallGrammar(ReplyForms forms);
/// Whether one of the tools has "strict": true.
bool anyStrict(const JsonValue& tools);

/// The grammar of calls of `tools`, a list in the OpenAI form, in the form that `forms` prefers. Arguments come in the
/// order of the schema's properties. Marks are control tokens where `tokenizer` has them; null: texts.
///
/// A tool whose schema cannot be held is noted, and a warning names the reason: its name is held, and its arguments are
/// any object. A tool with "strict": true has to be held.
///
/// - ORIEL_ERROR_UNSUPPORTED: no grammar is known for these forms; a strict tool's schema has what readJsonSchema() or the
///   form cannot promise; or all of it is too much. The line names it.
/// - ORIEL_ERROR_ARGUMENT: `tools` are no list of tools, or there is none.
Status readCallGrammar(const JsonValue& tools, ReplyForms forms, const Tokenizer* tokenizer,
                       CallChecks checks, const SchemaRules& rules, const Log& log,
                       Grammar* grammar, CallGrammar* calls);

}  // namespace oriel_internal
