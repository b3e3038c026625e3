// Request fields with types, and API errors in the form of each protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <oriel/oriel.h>

#include "output.h"
#include "serve/http_server.h"

namespace cli {

// Typed access to request fields. null counts as absent.

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

// API errors in the forms of each protocol.

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
