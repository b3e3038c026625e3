// Options for reading a JSON schema, and its ignored parts.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace oriel_internal
