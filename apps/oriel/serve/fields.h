// Typed access to request fields. null counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "output.h"

namespace cli {

/// Reads an object; throws ApiError that names the field ("messages[2].role").
class Fields {
 public:
  /// `path`: position of the object, "" or "messages[2]".
  Fields(const Json& object, std::string path);

  /// nullptr: absent.
  const Json* find(const char* name) const;
  /// Throws if absent.
  const Json& need(const char* name, const char* what) const;
  std::string nameOf(const char* name) const;

  std::optional<std::string> text(const char* name) const;
  std::optional<bool> boolean(const char* name) const;
  std::optional<double> number(const char* name, double least, double most) const;
  std::optional<int64_t> whole(const char* name, int64_t least, int64_t most) const;

 private:
  const Json& object_;
  const std::string path_;
};

/// Integers, also written as 3.0.
std::optional<int64_t> wholeOf(const Json& value);

// Ids of requests, replies and calls.

/// `kind` followed by 24 random letters and digits: "chatcmpl-...".
std::string newId(const char* kind);

}  // namespace cli
