// API errors in the forms of each protocol.
#pragma once

#include <string>
#include <vector>

#include <oriel/oriel.h>

#include "output.h"
#include "serve/http_server.h"

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

// Access control: refuses pages of other sites, under any host name.

struct GuardOptions {
  std::string api_key;             ///< empty: none required
  std::vector<std::string> cors;   ///< allowed origins; "*": any
  std::vector<std::string> hosts;  ///< allowed host names besides localhost
  bool loopback = true;
};

class RequestGuard {
 public:
  explicit RequestGuard(GuardOptions options) : options_(std::move(options)) {}

  /// Adds the CORS headers. Throws ApiError: 403, 401.
  void check(Exchange* exchange, bool needs_key) const;
  /// True if it has the key, or none is required.
  bool knows(const HttpRequest& request) const;
  /// Answers a CORS preflight request; false: it is not one.
  bool answerPreflight(Exchange* exchange) const;

 private:
  void checkHost(const HttpRequest& request) const;
  void checkOrigin(Exchange* exchange) const;

  const GuardOptions options_;
};

}  // namespace cli
