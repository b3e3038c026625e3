// How a JSON schema is read, and the parts of it that have no effect.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"

namespace oriel_internal {

/// Names of keywords and formats that were ignored, each once, as a JSON list. Where there is no room the list ends with
/// "...".
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
  size_t bytes_ = 0;  ///< of json_, without its NUL
  bool full_ = false;
};

struct SchemaRules {
  bool strict = false;        ///< unknown keywords and formats are errors
  bool open_objects = false;  ///< objects without `additionalProperties` have further properties
  IgnoredKeywords* ignored = nullptr;  ///< null: not reported
};

}  // namespace oriel_internal
