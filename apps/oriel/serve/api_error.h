// Errors as clients read them.
#pragma once

#include <string>

#include <oriel/oriel.h>

#include "output.h"

namespace cli {

/// The code of a call whose device is gone.
constexpr char kDeviceLost[] = "device_lost";

/// Thrown where a request is refused. `message` is "WHAT HAPPENED: WHAT TO DO".
struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  ///< the field that is wrong; empty: none
  std::string code;   ///< for programs; empty: none
  int retry_after_s = 0;
};

/// OpenAI's: {"error": {"message", "type", "param", "code"}}
Json errorJson(const ApiError& error);
/// Anthropic's: {"type": "error", "error": {"type", "message"}}
Json messagesError(const ApiError& error);
/// Ollama's: {"error": "..."}
Json ollamaError(const ApiError& error);
/// One for each protocol.
using ErrorForm = Json (*)(const ApiError& error);
/// A field that has not the form it should have.
ApiError wrongField(const std::string& param, const std::string& what_it_must_be);
/// A call of the library that failed, with its line.
ApiError failedCall(oriel_status status, const std::string& line);

}  // namespace cli
