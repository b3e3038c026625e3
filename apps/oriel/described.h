// Reads the library's JSON descriptions.
#pragma once

#include <string>

#include <oriel/oriel.h>

#include "output.h"

namespace cli {

/// Returns the output of `call(text, capacity, needed)`, of any length. `*json` is null on failure.
template <typename Call>
oriel_status described(Json* json, const Call& call) {
  std::string text(1 << 14, '\0');
  size_t needed = 0;
  oriel_status status = call(text.data(), text.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status = call(text.data(), text.size(), &needed);
  }
  *json = status == ORIEL_OK ? Json::parse(text.c_str()) : Json();
  return status;
}

/// A numeric field; 0 if unknown.
inline uint64_t numberIn(const Json& object, const char* field) {
  const Json& value = object.at(field);
  return value.is_number() ? value.get<uint64_t>() : 0;
}
inline uint32_t countIn(const Json& object, const char* field) {
  return static_cast<uint32_t>(numberIn(object, field));
}
inline double realIn(const Json& object, const char* field) {
  const Json& value = object.at(field);
  return value.is_number() ? value.get<double>() : 0;
}
/// "" if missing.
inline std::string textIn(const Json& object, const char* field) {
  const Json& value = object.at(field);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace cli
