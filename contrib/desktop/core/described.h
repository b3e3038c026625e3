// The library's descriptions of its objects.
#pragma once

#include <string>

#include <oriel/advanced.h>
#include <nlohmann/json.hpp>

namespace desktop {

using Json = nlohmann::json;

/// The JSON of a describe call (docs/reference/describe.md); null on failure.
template <typename Object>
Json described(const Object* object, oriel_status (*call)(const Object*, char*, size_t, size_t*)) {
  std::string text(1 << 14, '\0');
  size_t needed = 0;
  oriel_status status = call(object, text.data(), text.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status = call(object, text.data(), text.size(), &needed);
  }
  return status == ORIEL_OK ? Json::parse(text.c_str()) : Json();
}

}  // namespace desktop
