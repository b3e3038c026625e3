// Options for reading a JSON schema, and its ignored parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "grammar/expression.h"
#include "json/json.h"

namespace oriel_internal {

/// Names of ignored keywords and formats, without duplicates, as a JSON list. If it is full it ends with "...".
class IgnoredKeywords {
 public:
  static constexpr size_t kBytes = 512;

  /// `before`: "format: " or "".
  void add(const char* before, const JsonText& name);
  void clear() { bytes_ = 0; }
  bool isEmpty() const { return bytes_ == 0; }
  /// "[]" if nothing was ignored.
  const char* json() const { return bytes_ != 0 ? json_ : "[]"; }

 private:
  bool has(const char* entry, size_t bytes) const;

  char json_[kBytes] = "";
  size_t bytes_ = 0;  ///< of json_, without the NUL
  bool full_ = false;
};

struct SchemaRules {
  bool strict = false;                 ///< unknown keywords and formats are errors
  bool open_objects = false;           ///< objects without `additionalProperties` may have further
                                       ///< properties
  IgnoredKeywords* ignored = nullptr;  ///< null: not reported
};

// Reads GBNF, llama.cpp's grammar notation. Its rules: docs/structured-output.md.

/// Errors name the line and are ORIEL_ERROR_ARGUMENT. `root` becomes the grammar's root.
Status readGbnf(const char* text, size_t bytes, const Log& log, Grammar* grammar);

// JSON schemas (draft 2020-12, the part that apps use) as expressions for the texts of valid JSON values.

/// Returns an expression for JSON texts of values that are valid by `schema`. References are resolved in `document`,
/// which contains it. Every text of the expression is valid. Not every valid value has a text: properties come in the
/// schema's order, white space is at most one blank, numbers and escapes have one spelling. ORIEL_ERROR_UNSUPPORTED,
/// with name and place, for a keyword that cannot be enforced. ORIEL_ERROR_ARGUMENT for an invalid schema or one without
/// valid values. Call Work::allow() with the text's length before.
Status readJsonSchema(const JsonValue& schema, const JsonValue& document, const SchemaRules& rules,
                      const Log& log, Grammar* grammar, ExprId* expression);

}  // namespace oriel_internal
