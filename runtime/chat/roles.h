// Message roles that templates and sessions distinguish.
#pragma once

#include "json/json.h"

namespace oriel_internal {

/// kNone: no message. Unknown roles count as user.
enum class Role : uint8_t { kNone, kSystem, kUser, kAssistant, kTool };
constexpr uint32_t kRoles = 5;

inline Role roleNamed(const JsonText& name) {
  return name.is("system") || name.is("developer")  ? Role::kSystem
         : name.is("assistant") || name.is("model") ? Role::kAssistant
         : name.is("tool") || name.is("ipython") || name.is("function") || name.is("tool_response")
             ? Role::kTool
             : Role::kUser;
}

inline Role roleOf(const JsonValue& message) {
  const JsonValue* const role = message.find("role");
  return roleNamed(role != nullptr && role->isString() ? role->text() : JsonText());
}

/// The usual name; "user" for kNone.
inline JsonText nameOf(Role role) {
  constexpr const char* kNames[kRoles] = {"user", "system", "user", "assistant", "tool"};
  return kNames[static_cast<uint32_t>(role)];
}

}  // namespace oriel_internal
