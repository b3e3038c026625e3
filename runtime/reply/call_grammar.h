// Expressions for values without a schema: arguments of tools whose schema cannot be enforced.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"
#include "grammar/schema_rules.h"
#include "json/json.h"
#include "reply/forms.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
