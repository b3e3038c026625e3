// The answers: what is asked, of which session, and how it is answered.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model_handle.h"
#include "serve/guard.h"
#include "serve/http_server.h"
#include "serve/metrics.h"
#include "serve/reply_request.h"
#include "serve/routes.h"
#include "serve/slots.h"
#include "serve/watcher.h"

namespace cli {

class ReplyWriter;

struct ServiceOptions {
  CommonOptions common;    ///< how replies are sampled where a request does not say
  std::string system;      ///< begins every conversation; empty: none
  std::string model_name;  ///< as clients see it
  uint32_t queue = 32;
  uint32_t most_tokens = 0;  ///< of all replies to a request; 0: the command chooses
  std::chrono::seconds timeout{600};
  GuardOptions guard;
};

class Service {
 public:
  Service(const ServiceOptions& options, const Model& model);

  /// By the headers: what is refused, or asks only what it may ask, is answered.
  Admission admit(Exchange* exchange);
  /// What was admitted, once its body is there.
  void answer(Exchange* exchange);
  /// Of what was no sound request.
  void refuse(int status, Exchange* exchange);

  /// Requests that wait are refused; with `at_once` replies that run are cut, too.
  void stop(bool at_once);
  /// Replies that run.
  size_t busy() const { return slots_.busy(); }

  std::function<uint64_t()> connections = [] { return 0; };

 private:
  void run(const Route& route, Exchange* exchange);
  void sendError(const ApiError& error, Exchange* exchange);
  void countAnswer(const Route* route, const Exchange& exchange, Clock::time_point start);

  void page(Exchange* exchange);
  void health(Exchange* exchange);
  void metrics(Exchange* exchange);
  void models(Exchange* exchange);
  void model(Exchange* exchange);
  void chat(Exchange* exchange);
  void completions(Exchange* exchange);
  void embeddings(Exchange* exchange);

  Json modelJson() const;
  Json bodyOf(const HttpRequest& request) const;
  template <typename Read>
  auto readBody(const HttpRequest& request, const Read& read);
  ReplyRequest requestOf(const HttpRequest& request, bool is_chat);
  EmbeddingRequest embeddingRequestOf(const HttpRequest& request);
  Settings sampling(const ReplyRequest& request, uint32_t choice) const;
  uint32_t mostTokens(const ReplyRequest& request) const;
  void checkWithoutSystem() const;
  void leaveOutSystem(ReplyRequest* request) const;
  std::vector<int32_t> idsOf(const RawPrompt& prompt) const;
  Slots::Lease take(const Slots::Matcher& match, const Exchange& client);
  Slot::Call callOf(const Exchange& client);
  void reply(const ReplyRequest& request, Exchange* exchange);
  void generate(const ReplyRequest& request, const std::vector<std::vector<int32_t>>& prompts,
                ReplyWriter* writer, Exchange* exchange);

  const ServiceOptions options_;
  const Model& model_;
  const int64_t started_;
  Metrics metrics_;
  Slots slots_;
  Watcher watcher_;
  const RequestGuard guard_;
  /// They take many times their bytes once they are parsed: one is read at a time. Others do not wait for them.
  std::mutex large_bodies_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> device_lost_{false};
};

}  // namespace cli
