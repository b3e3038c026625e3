// The server's counters in Prometheus format.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace cli {

class Metrics {
 public:
  void countRequest(const std::string& route, int status, double seconds);
  void countReply(uint64_t prompt_tokens, uint64_t cached_tokens, uint64_t tokens,
                  uint64_t evicted);

  /// Current values; counters are kept here.
  struct Now {
    uint64_t sessions = 0;
    uint64_t busy = 0;
    uint64_t waiting = 0;
    uint64_t connections = 0;
    uint64_t memory_bytes = 0;
  };
  std::string text(const Now& now) const;

 private:
  struct Total {
    uint64_t requests = 0;
    double seconds = 0;
  };
  mutable std::mutex lock_;
  std::map<std::pair<std::string, int>, Total> requests_;
  uint64_t prompt_tokens_ = 0;
  uint64_t cached_tokens_ = 0;
  uint64_t tokens_ = 0;
  uint64_t evicted_ = 0;
};

}  // namespace cli
