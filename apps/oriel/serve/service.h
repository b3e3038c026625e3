// The answers: what is asked, of which session, and how it is answered.
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

/// What a body asks, and the model that it names.
template <typename Request>
struct Asked {
  ModelPool::Entry* model = nullptr;
  Request request;
};

class Service {
 public:
  /// Both live longer.
  Service(const ServiceOptions& options, ModelPool* pool);

  /// By the headers: what is refused, or asks only what it may ask, is answered.
  Admission admit(Exchange* exchange);
  /// What was admitted, once its body is there.
  void answer(Exchange* exchange);
  /// Of what was no sound request.
  void refuse(int status, Exchange* exchange);

  /// Requests that wait are refused; with `at_once` replies that run are cut, too.
  void stop(bool at_once);
  /// Replies that run.
  size_t busy() const { return pool_->count().busy; }

  std::function<uint64_t()> connections = [] { return 0; };

  // ---- For the handlers of routes ----
  ModelPool* pool() const { return pool_; }
  int64_t startedAt() const { return started_; }

  /// `read(body, facts)` of a JSON body; large ones one at a time. Throws ApiError.
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
  /// The model, loaded. `begins`: called once if somebody must wait for that.
  ModelPool::Lease open(
      ModelPool::Entry* model, const Exchange& client, const std::function<void()>& begins = [] {});
  /// Checks the request, waits for a session and answers.
  void reply(Asked<ReplyRequest> asked, const ReplyProtocol& protocol, Exchange* exchange);
  /// The same for a route that asks for nothing else.
  void replyTo(const ReplyProtocol& protocol, Exchange* exchange);
  /// The vectors of the inputs. *tokens: of all of them.
  std::vector<std::vector<float>> embed(const Asked<std::vector<RawPrompt>>& asked,
                                        const Exchange& client, uint64_t* tokens);

  /// The adapters of requests that name none, as the session option: of this model; empty: as they were loaded.
  std::string adapters(const ModelPool::Entry* model) const;
  void setAdapters(const ModelPool::Entry* model, const std::string& adapters);

  void health(Exchange* exchange);
  void metrics(Exchange* exchange);

 private:
  /// A body that takes some MB to read.
  static constexpr size_t kLargeBytes = 64 << 10;
  /// Behind it the system has back what reading a large body took, which lies in many small pieces.
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
  /// They take many times their bytes once they are parsed: one is read at a time. Others do not wait for them.
  std::mutex large_bodies_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> device_lost_{false};
};

}  // namespace cli
