// API errors in the forms of each protocol.
#pragma once

#include <string>

#include <oriel/oriel.h>

#include "output.h"

namespace cli {

/// The error code for a lost device.
constexpr char kDeviceLost[] = "device_lost";

/// Thrown to refuse a request. `message` is "WHAT HAPPENED: WHAT TO DO".
struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  ///< the wrong field; empty: none
  std::string code;   ///< machine-readable; empty: none
  int retry_after_s = 0;
};

/// OpenAI's: {"error": {"message", "type", "param", "code"}}
Json errorJson(const ApiError& error);
/// Anthropic's: {"type": "error", "error": {"type", "message"}}
Json messagesError(const ApiError& error);
/// Ollama's: {"error": "..."}
Json ollamaError(const ApiError& error);
/// One per protocol.
using ErrorForm = Json (*)(const ApiError& error);
/// The error for a field of the wrong form.
ApiError wrongField(const std::string& param, const std::string& what_it_must_be);
/// The error for a failed call of the library, with its line.
ApiError failedCall(oriel_status status, const std::string& line);

}  // namespace cli
