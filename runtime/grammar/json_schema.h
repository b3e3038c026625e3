// JSON schemas (draft 2020-12, the part that apps use) as expressions: the texts of the JSON values that are valid.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"
#include "grammar/schema_rules.h"
#include "json/json.h"

namespace oriel_internal {

/// An expression for the JSON texts of values that are valid by `schema`. References are looked up in `document`, which
/// holds it. Every text of the expression is valid; not every valid value has a text: properties come in the schema's
/// order, white space is one blank at most, numbers and escapes have one spelling. Keywords that cannot be promised
/// are ORIEL_ERROR_UNSUPPORTED with their name and place; a schema that nothing is valid by, or that is none, is
/// ORIEL_ERROR_ARGUMENT. Work::allow() says before how long the text is.
Status readJsonSchema(const JsonValue& schema, const JsonValue& document, const SchemaRules& rules,
                      const Log& log, Grammar* grammar, ExprId* expression);

}  // namespace oriel_internal
