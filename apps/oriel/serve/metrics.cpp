#include "serve/metrics.h"

#include "output.h"

namespace cli {
namespace {

std::string head(const char* name, const char* help, const char* type) {
  return formatted("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

std::string single(const char* name, const char* help, const char* type, uint64_t value) {
  return head(name, help, type) +
         formatted("%s %llu\n", name, static_cast<unsigned long long>(value));
}

}  // namespace

void Metrics::countRequest(const std::string& route, int status, double seconds) {
  const std::lock_guard<std::mutex> hold(lock_);
  Total& total = requests_[{route, status}];
  ++total.requests;
  total.seconds += seconds;
}

void Metrics::countReply(uint64_t prompt_tokens, uint64_t cached_tokens, uint64_t tokens,
                         uint64_t evicted) {
  const std::lock_guard<std::mutex> hold(lock_);
  prompt_tokens_ += prompt_tokens;
  cached_tokens_ += cached_tokens;
  tokens_ += tokens;
  evicted_ += evicted;
}

std::string Metrics::text(const Now& now) const {
  const std::lock_guard<std::mutex> hold(lock_);
  std::string counts =
      head("oriel_requests_total", "Requests answered, by route and status.", "counter");
  std::string times =
      head("oriel_request_seconds_total", "Time spent on them, waiting included.", "counter");
  for (const auto& [what, total] : requests_) {
    const std::string labels =
        "{route=\"" + what.first + "\",status=\"" + std::to_string(what.second) + "\"}";
    counts += "oriel_requests_total" + labels + " " + std::to_string(total.requests) + "\n";
    times += "oriel_request_seconds_total" + labels + formatted(" %.6f\n", total.seconds);
  }
  return counts + times +
         single("oriel_prompt_tokens_total", "Tokens of prompts.", "counter", prompt_tokens_) +
         single("oriel_cached_prompt_tokens_total", "Prompt tokens that a session already held.",
                "counter", cached_tokens_) +
         single("oriel_reply_tokens_total", "Tokens generated.", "counter", tokens_) +
         single("oriel_evicted_tokens_total", "Tokens that left a window.", "counter", evicted_) +
         single("oriel_sessions", "Sessions there are.", "gauge", now.sessions) +
         single("oriel_sessions_busy", "Sessions at work.", "gauge", now.busy) +
         single("oriel_requests_waiting", "Requests that wait for a session.", "gauge",
                now.waiting) +
         single("oriel_connections", "Connections open.", "gauge", now.connections) +
         single("oriel_memory_bytes", "Memory of the model and its sessions.", "gauge",
                now.memory_bytes);
}

}  // namespace cli
