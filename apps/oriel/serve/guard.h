// Access control: refuses pages of other sites, under any host name.
#pragma once

#include <string>
#include <vector>

#include "serve/http_server.h"

namespace cli {

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
