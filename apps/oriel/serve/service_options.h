// How the server answers, as its command line says.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "options.h"
#include "serve/guard.h"

namespace cli {

struct ServiceOptions {
  CommonOptions common;     ///< how replies are sampled where a request does not say
  std::string system;       ///< begins every conversation; empty: none
  std::string model_name;   ///< of the first model, as clients see it
  bool all_models = false;  ///< the local models are served by name, too
  uint32_t queue = 32;
  uint32_t most_tokens = 0;  ///< of all replies to a request; 0: the command chooses
  std::chrono::seconds timeout{600};
  GuardOptions guard;
};

}  // namespace cli
