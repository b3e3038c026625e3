// Answers requests: parsing, choice of a session, reply.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/guard.h"
#include "serve/http_server.h"
#include "serve/metrics.h"
#include "serve/model_pool.h"
#include "serve/reply_request.h"
#include "serve/reply_writer.h"
#include "serve/routes.h"
#include "serve/service_options.h"
#include "serve/watcher.h"

namespace cli {

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

}  // namespace cli
