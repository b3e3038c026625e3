// JSON schemas (draft 2020-12, the part that apps use) as expressions for the texts of valid JSON values.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"
#include "grammar/schema_rules.h"
#include "json/json.h"

namespace oriel_internal {

/// Returns an expression for JSON texts of values that are valid by `schema`. References are resolved in `document`,
/// which contains it. Every text of the expression is valid. Not every valid value has a text: properties come in the
/// schema's order, white space is at most one blank, numbers and escapes have one spelling. ORIEL_ERROR_UNSUPPORTED,
/// with name and place, for a keyword that cannot be enforced. ORIEL_ERROR_ARGUMENT for an invalid schema or one without
/// valid values. Call Work::allow() with the text's length before.
Status readJsonSchema(const JsonValue& schema, const JsonValue& document, const SchemaRules& rules,
                      const Log& log, Grammar* grammar, ExprId* expression);

}  // namespace oriel_internal
