#include "serve/guard.h"

#include <algorithm>

#include "serve/api_error.h"

namespace cli {
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

}  // namespace cli
