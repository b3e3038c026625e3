// The whole server, from listening to the last reply.
#pragma once

#include <cstdint>
#include <string>

#include "serve/service_options.h"

namespace cli {

struct ServeOptions {
  ServiceOptions service;
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  uint64_t body_bytes = 8 << 20;
  uint32_t connections = 64;
};

/// Returns the exit code after a stop request; throws Failure.
int runServer(ServeOptions options);

}  // namespace cli
