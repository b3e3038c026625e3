// The server's command line options.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "options.h"
#include "serve/guard.h"

namespace cli {

struct ServiceOptions {
  CommonOptions common;     ///< defaults for replies
  std::string system;       ///< starts every conversation; empty: none
  std::string model_name;   ///< of the first model, for clients
  bool all_models = false;  ///< serves local models by name
  uint32_t queue = 32;
  uint32_t most_tokens = 0;  ///< for all replies of a request; 0: the default
  std::chrono::seconds timeout{600};
  GuardOptions guard;
};

}  // namespace cli
