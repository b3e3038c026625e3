#include "serve/routes.h"

#include <cstring>
#include <string_view>

#include "serve/api_error.h"

namespace cli {
namespace {

/// -1: not a hexadecimal digit.
int digitOf(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/// Removes the version, if a path follows it.
std::string_view unversioned(std::string_view path) {
  constexpr std::string_view kVersion = "/v1/";
  const bool has = path.size() > kVersion.size() && path.substr(0, kVersion.size()) == kVersion;
  return has ? path.substr(kVersion.size() - 1) : path;
}

bool beginsWith(std::string_view path, std::string_view what) {
  return path.substr(0, what.size()) == what;
}

// clang-format off
using A = Route::Answer;
constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", A::kChat, errorJson},
    {"POST", "/v1/completions", A::kCompletions, errorJson},
    {"POST", "/v1/responses", A::kResponses, errorJson},
    {"POST", "/v1/embeddings", A::kEmbeddings, errorJson},
    {"GET", "/v1/models", A::kModels, errorJson},
    {"POST", "/v1/rerank", A::kRerank, errorJson},
    {"POST", "/v1/messages", A::kMessages, messagesError},
    {"POST", "/v1/messages/count_tokens", A::kCountTokens, messagesError},
    {"POST", "/api/chat", A::kOllamaChat, ollamaError},
    {"POST", "/api/generate", A::kOllamaGenerate, ollamaError},
    {"POST", "/api/embed", A::kOllamaEmbed, ollamaError},
    {"POST", "/api/embeddings", A::kOllamaEmbeddings, ollamaError},
    {"GET", "/api/tags", A::kOllamaTags, ollamaError},
    {"GET", "/api/ps", A::kOllamaRunning, ollamaError},
    {"POST", "/api/show", A::kOllamaShow, ollamaError},
    {"GET", "/api/version", A::kOllamaVersion, ollamaError},
    {"POST", "/infill", A::kInfill, errorJson},
    {"POST", "/tokenize", A::kTokenize, errorJson},
    {"POST", "/detokenize", A::kDetokenize, errorJson},
    {"POST", "/apply-template", A::kApplyTemplate, errorJson},
    {"GET", "/props", A::kProps, errorJson},
    {"GET", "/lora-adapters", A::kAdapters, errorJson},
    {"POST", "/lora-adapters", A::kSetAdapters, errorJson},
    {"GET", "/health", A::kHealth, errorJson, false},
    {"GET", "/metrics", A::kMetrics, errorJson},
    {"GET", "/", A::kPage, errorJson, false},
    {"GET", "/v1/models/", A::kModel, errorJson, true, true},
};
// clang-format on

bool hasBody(const HttpRequest& request) {
  const std::string* const length = request.header("content-length");
  return request.header("transfer-encoding") != nullptr ||
         (length != nullptr && length->find_first_not_of('0') != std::string::npos);
}

}  // namespace

const Route* Route::of(const HttpRequest& request) {
  const std::string_view asked = unversioned(request.path);
  const Route* found = nullptr;  // a path may have two methods
  for (const Route& route : kRoutes) {
    const std::string_view path = unversioned(route.path);
    if ((route.begins ? beginsWith(asked, path) : asked == path) &&
        (found == nullptr || request.method == route.method)) {
      found = &route;
    }
  }
  return found;
}

ErrorForm errorFormOf(const Route* route, const HttpRequest& request) {
  return route != nullptr                                     ? route->error
         : beginsWith(request.path, "/api/")                  ? ollamaError
         : beginsWith(unversioned(request.path), "/messages") ? messagesError
                                                              : errorJson;
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
  constexpr std::string_view kFolder = "/models/";
  const std::string& path = request.path;
  std::string name;
  for (size_t i = path.find(kFolder) + kFolder.size(); i < path.size(); ++i) {
    const int high = i + 2 < path.size() && path[i] == '%' ? digitOf(path[i + 1]) : -1;
    const int low = high >= 0 ? digitOf(path[i + 2]) : -1;
    name += low >= 0 ? static_cast<char>(high * 16 + low) : path[i];
    i += low >= 0 ? 2 : 0;
  }
  return name;
}

}  // namespace cli
