// Who may ask: a page of another site may not, whatever name it found for this machine.
#pragma once

#include <string>
#include <vector>

#include "serve/http_server.h"

namespace cli {

struct GuardOptions {
  std::string api_key;             ///< empty: none is asked for
  std::vector<std::string> cors;   ///< origins whose pages may ask; "*": any
  std::vector<std::string> hosts;  ///< names besides localhost that requests may be for
  bool loopback = true;
};

class RequestGuard {
 public:
  explicit RequestGuard(GuardOptions options) : options_(std::move(options)) {}

  /// Adds what browsers want to know. Throws ApiError: 403, 401.
  void check(Exchange* exchange, bool needs_key) const;
  /// It has the key, or none is asked for.
  bool knows(const HttpRequest& request) const;
  /// Answers a browser that asks what it may ask; false: it was nothing of that kind.
  bool answerPreflight(Exchange* exchange) const;

 private:
  void checkHost(const HttpRequest& request) const;
  void checkOrigin(Exchange* exchange) const;

  const GuardOptions options_;
};

}  // namespace cli
