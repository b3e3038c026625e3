#include "serve/routes.h"

#include <cstring>

#include "serve/api_error.h"

namespace cli {
namespace {

const char kModels[] = "/v1/models/";

/// -1: it is no hexadecimal digit.
int digitOf(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

bool hasBody(const HttpRequest& request) {
  const std::string* const length = request.header("content-length");
  return request.header("transfer-encoding") != nullptr ||
         (length != nullptr && length->find_first_not_of('0') != std::string::npos);
}

}  // namespace

const Route* Route::of(const HttpRequest& request) {
  static constexpr Route kRoutes[] = {
      {"POST", "/v1/chat/completions", Answer::kChat, true},
      {"POST", "/v1/completions", Answer::kCompletions, true},
      {"POST", "/v1/embeddings", Answer::kEmbeddings, true},
      {"GET", "/v1/models", Answer::kModels, true},
      {"GET", "/health", Answer::kHealth, false},
      {"GET", "/metrics", Answer::kMetrics, true},
      {"GET", "/", Answer::kPage, false},
      {"GET", kModels, Answer::kModel, true, true},
  };
  for (const Route& route : kRoutes) {
    if (route.begins ? request.path.compare(0, std::strlen(route.path), route.path) == 0
                     : request.path == route.path) {
      return &route;
    }
  }
  return nullptr;
}

bool admit(const RequestGuard& guard, const Route* route, Exchange* exchange) {
  const HttpRequest& request = exchange->request();
  const bool preflight = request.method == "OPTIONS";
  guard.check(exchange, !preflight && (route == nullptr || route->needs_key));
  if (guard.answerPreflight(exchange)) {
    return false;
  }
  if (route == nullptr) {
    throw ApiError{404,
                   "there is no " + request.path + " here: see docs/serve.md for what there is", "",
                   "not_found", 0};
  }
  const bool is_get = std::strcmp(route->method, "GET") == 0;
  if (request.method != route->method && !(is_get && request.method == "HEAD")) {
    exchange->addHeader("Allow", is_get ? "GET, HEAD" : route->method);
    throw ApiError{405,
                   request.path + " does not take " + request.method + ": use " + route->method, "",
                   "method_not_allowed", 0};
  }
  if (is_get && hasBody(request)) {
    throw ApiError{413, request.method + " takes no body here: send none", "", "", 0};
  }
  return true;
}

std::string modelNameOf(const HttpRequest& request) {
  const std::string& path = request.path;
  std::string name;
  for (size_t i = sizeof(kModels) - 1; i < path.size(); ++i) {
    const int high = i + 2 < path.size() && path[i] == '%' ? digitOf(path[i + 1]) : -1;
    const int low = high >= 0 ? digitOf(path[i + 2]) : -1;
    name += low >= 0 ? static_cast<char>(high * 16 + low) : path[i];
    i += low >= 0 ? 2 : 0;
  }
  return name;
}

}  // namespace cli
