// The server's counters in Prometheus format.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/api_error.h"
#include "serve/block_writer.h"
#include "serve/http_server.h"
#include "serve/message.h"
#include "serve/model_pool.h"
#include "serve/routes.h"
#include "serve/slot.h"

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

// Answers requests: parsing, choice of a session, reply.

/// A parsed body and the model that it names.
template <typename Request>
struct Asked {
  ModelPool::Entry* model = nullptr;
  Request request;
};

class Service {
 public:
  /// Both must outlive it.
  Service(const ServiceOptions& options, ModelPool* pool);

  /// Decides by the headers; refused and trivial requests are answered here.
  Admission admit(Exchange* exchange);
  /// Answers an admitted request with its body.
  void answer(Exchange* exchange);
  /// Answers a malformed request.
  void refuse(int status, Exchange* exchange);

  /// Refuses waiting requests; `at_once` also cuts running replies.
  void stop(bool at_once);
  /// Number of running replies.
  size_t busy() const { return pool_->count().busy; }

  std::function<uint64_t()> connections = [] { return 0; };

  // ---- For the handlers of routes ----
  ModelPool* pool() const { return pool_; }
  int64_t startedAt() const { return started_; }

  /// `read(body, facts)` for a JSON body; large ones one at a time. Throws ApiError.
  template <typename Read>
  auto read(const HttpRequest& request, const Read& read)
      -> Asked<decltype(read(Json(), ModelFacts()))> {
    std::unique_lock<std::mutex> hold(large_bodies_, std::defer_lock);
    if (request.body.size() >= kLargeBytes) {
      hold.lock();
    }
    const Freeing freeing{request.body.size()};
    const Json body = bodyOf(request);
    ModelPool::Entry* const model = pool_->find(modelNameIn(body));
    return {model, read(body, pool_->facts(model))};
  }
  /// The model, loaded. `begins`: called once if loading takes time.
  ModelPool::Lease open(
      ModelPool::Entry* model, const Exchange& client, const std::function<void()>& begins = [] {});
  /// Checks the request, waits for a session and replies.
  void reply(Asked<ReplyRequest> asked, const ReplyProtocol& protocol, Exchange* exchange);
  /// The same for a route that only replies.
  void replyTo(const ReplyProtocol& protocol, Exchange* exchange);
  /// The vectors of the inputs, or with a query their scores. *tokens: of all of them.
  std::vector<std::vector<float>> embed(const Asked<std::vector<RawPrompt>>& asked,
                                        const Exchange& client, uint64_t* tokens,
                                        const std::string* query = nullptr);

  /// The session option "adapters" for requests to this model without adapters. Empty: the scales at load.
  std::string adapters(const ModelPool::Entry* model) const;
  void setAdapters(const ModelPool::Entry* model, const std::string& adapters);

  void health(Exchange* exchange);
  void metrics(Exchange* exchange);

 private:
  /// Size above which parsing takes some MB.
  static constexpr size_t kLargeBytes = 64 << 10;
  /// Returns freed memory to the system after a large body, which leaves many small pieces.
  struct Freeing {
    const size_t body_bytes;
    ~Freeing();
  };

  void sendError(const Route* route, const ApiError& error, Exchange* exchange);
  void countAnswer(const Route* route, const Exchange& exchange, Clock::time_point start);
  Json bodyOf(const HttpRequest& request) const;
  static std::string modelNameIn(const Json& body);
  std::function<std::optional<ApiError>()> patience(const Exchange& client) const;
  uint32_t mostTokens(const ReplyRequest& request) const;
  Slot::Call callOf(const Exchange& client);
  void generate(const ReplyRequest& request, LoadedModel* model, double load_ms,
                ReplyWriter* writer, Exchange* exchange);

  const ServiceOptions& options_;
  ModelPool* const pool_;
  mutable std::mutex adapters_lock_;
  std::vector<std::pair<const ModelPool::Entry*, std::string>> adapters_;
  const int64_t started_;
  Metrics metrics_;
  Watcher watcher_;
  const RequestGuard guard_;
  /// Parsed bodies take many times their bytes, so large ones are parsed one at a time. Small ones do not wait.
  std::mutex large_bodies_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> device_lost_{false};
};

// The whole server, from listening to the last reply.

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
