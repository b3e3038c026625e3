#include "serve/api_error.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace cli {
namespace {

const char* typeOf(const ApiError& error) {
  switch (error.status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    case 500:
      return "server_error";
    case 503:
      return "service_unavailable_error";
    default:
      return "invalid_request_error";
  }
}

const char* messagesErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 500:
      return "api_error";
    case 503:
      return "overloaded_error";
    default:
      return "invalid_request_error";
  }
}

Json orNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

Json errorJson(const ApiError& error) {
  Json fields;
  fields["message"] = error.message;
  fields["type"] = typeOf(error);
  fields["param"] = orNull(error.param);
  fields["code"] = orNull(error.code);
  Json json;
  json["error"] = std::move(fields);
  return json;
}

Json messagesError(const ApiError& error) {
  Json json;
  json["type"] = "error";
  json["error"]["type"] = messagesErrorType(error.status);
  json["error"]["message"] = error.message;
  return json;
}

Json ollamaError(const ApiError& error) {
  Json json;
  json["error"] = error.message;
  return json;
}

ApiError wrongField(const std::string& param, const std::string& what_it_must_be) {
  return {400, param + " must be " + what_it_must_be, param, "invalid_value", 0};
}

ApiError failedCall(oriel_status status, const std::string& line) {
  const std::string reason =
      line.empty() ? std::string(oriel_status_text(status)) + ": look at the server's log" : line;
  switch (status) {
    case ORIEL_ERROR_CONTEXT:
      return {400, reason, "", "context_length_exceeded", 0};
    case ORIEL_ERROR_ARGUMENT:
    case ORIEL_ERROR_TEXT:
    case ORIEL_ERROR_FORMAT:
    case ORIEL_ERROR_UNSUPPORTED:
    case ORIEL_ERROR_STATE:
      return {400, reason, "", "", 0};
    case ORIEL_ERROR_DEVICE:
    case ORIEL_ERROR_TIMEOUT:
      return {503, reason, "", kDeviceLost, 0};
    case ORIEL_ERROR_OUT_OF_MEMORY:
      return {503, reason, "", "out_of_memory", 5};
    default:
      return {500, reason, "", "", 0};
  }
}

namespace {

constexpr size_t kShownHostBytes = 100;

/// Removes the port.
std::string hostOf(const std::string& text) {
  const size_t bracket = text.rfind(']');
  const size_t colon = text.find(':', bracket == std::string::npos ? 0 : bracket);
  return inSmallLetters(text.substr(0, colon));
}

bool isThisMachine(const std::string& host) {
  const bool numbers = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "[::1]" || (numbers && host.compare(0, 4, "127.") == 0);
}

/// Constant-time comparison.
bool same(const std::string& a, const std::string& b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ (b.empty() ? 1 : b[i % b.size()]));
  }
  return difference == 0;
}

/// The key after "Bearer " (the scheme is case-insensitive). Empty: none.
std::string bearerKey(const std::string& authorization) {
  static const std::string kScheme = "bearer ";
  const bool is_bearer = inSmallLetters(authorization.substr(0, kScheme.size())) == kScheme;
  return is_bearer ? authorization.substr(kScheme.size()) : "";
}

}  // namespace

/// A foreign host name may point to this machine (DNS rebinding); its page would then count as same-origin.
void RequestGuard::checkHost(const HttpRequest& request) const {
  const std::string* const host = request.header("host");
  const std::string name = host != nullptr ? hostOf(*host) : "";
  const bool allowed =
      std::any_of(options_.hosts.begin(), options_.hosts.end(),
                  [&](const std::string& each) { return each == "*" || hostOf(each) == name; });
  if (options_.loopback && host != nullptr && !isThisMachine(name) && !allowed) {
    const std::string shown = name.substr(0, kShownHostBytes);
    throw ApiError{403,
                   "the request is for the host " + shown +
                       ", not for this machine: ask for localhost, or start the server with "
                       "--allow-host " +
                       shown,
                   "", "host_not_allowed", 0};
  }
}

void RequestGuard::checkOrigin(Exchange* exchange) const {
  const HttpRequest& request = exchange->request();
  const std::string* const origin = request.header("origin");
  const std::string* const host = request.header("host");
  // A proxy may have served the page over TLS.
  const bool own = origin != nullptr && host != nullptr &&
                   (*origin == "http://" + *host || *origin == "https://" + *host);
  if (origin == nullptr || own) {
    return;
  }
  const bool any = std::count(options_.cors.begin(), options_.cors.end(), "*") != 0;
  if (!any && std::count(options_.cors.begin(), options_.cors.end(), *origin) == 0) {
    throw ApiError{403, "pages of other sites may not ask: start the server with --cors ORIGIN", "",
                   "origin_not_allowed", 0};
  }
  exchange->addHeader("Access-Control-Allow-Origin", any ? "*" : *origin);
  exchange->addHeader("Access-Control-Expose-Headers", "x-request-id, request-id, Retry-After");
  exchange->addHeader("Vary", "Origin");
}

bool RequestGuard::knows(const HttpRequest& request) const {
  const std::string* const given = request.header("authorization");
  const std::string* const bare = request.header("x-api-key");  // Anthropic clients
  return options_.api_key.empty() ||
         (given != nullptr && same(bearerKey(*given), options_.api_key)) ||
         (bare != nullptr && same(*bare, options_.api_key));
}

void RequestGuard::check(Exchange* exchange, bool needs_key) const {
  checkHost(exchange->request());
  checkOrigin(exchange);
  if (needs_key && !knows(exchange->request())) {
    throw ApiError{401, "the API key is missing or wrong: send Authorization: Bearer KEY", "",
                   "invalid_api_key", 0};
  }
}

bool RequestGuard::answerPreflight(Exchange* exchange) const {
  const HttpRequest& request = exchange->request();
  if (request.method != "OPTIONS" || options_.cors.empty() || request.header("origin") == nullptr ||
      request.header("access-control-request-method") == nullptr) {
    return false;
  }
  exchange->addHeader("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  const std::string* const wanted = request.header("access-control-request-headers");
  exchange->addHeader("Access-Control-Allow-Headers",
                      wanted != nullptr ? *wanted : "Authorization, Content-Type");
  exchange->addHeader("Access-Control-Max-Age", "600");
  exchange->send(204, "", "");
  return true;
}

// ---- Fields of a request ------------------------------------------------------------------------

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) {
    throw wrongField(path_.empty() ? "the body" : path_, "an object");
  }
}

std::string Fields::nameOf(const char* name) const {
  return path_.empty() ? name : path_ + "." + name;
}

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null() ? &*found : nullptr;
}

const Json& Fields::need(const char* name, const char* what) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    const std::string full = nameOf(name);
    throw ApiError{400, full + " is missing: give " + what, full, "missing_required_parameter", 0};
  }
  return *value;
}

std::optional<std::string> Fields::text(const char* name) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    throw wrongField(nameOf(name), "a text");
  }
  return value->get<std::string>();
}

std::optional<bool> Fields::boolean(const char* name) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    throw wrongField(nameOf(name), "true or false");
  }
  return value->get<bool>();
}

std::optional<double> Fields::number(const char* name, double least, double most) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most)) {  // also catches NaN
    throw wrongField(nameOf(name), formatted("a number from %.10g to %.10g", least, most));
  }
  return number;
}

std::optional<int64_t> wholeOf(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    return number <= INT64_MAX ? std::optional<int64_t>(static_cast<int64_t>(number))
                               : std::nullopt;
  }
  if (value.is_number_integer()) {
    return value.get<int64_t>();
  }
  const double number = value.is_number() ? value.get<double>() : 0.5;
  const bool exact = std::abs(number) < 9e15 && number == std::floor(number);
  return exact ? std::optional<int64_t>(static_cast<int64_t>(number)) : std::nullopt;
}

std::optional<int64_t> Fields::whole(const char* name, int64_t least, int64_t most) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::optional<int64_t> number = wholeOf(*value);
  if (!number || *number < least || *number > most) {
    throw wrongField(nameOf(name), "a whole number from " + std::to_string(least) + " to " +
                                       std::to_string(most));
  }
  return number;
}

std::string newId(const char* kind) {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id = kind;
  for (int i = 0; i < 24; ++i) {
    id += kLetters[random() % (sizeof(kLetters) - 1)];
  }
  return id;
}

}  // namespace cli
