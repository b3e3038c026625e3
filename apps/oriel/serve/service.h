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
#include "serve/reply_check.h"
#include "serve/reply_request.h"
#include "serve/reply_writer.h"
#include "serve/routes.h"
#include "serve/slots.h"
#include "serve/watcher.h"

namespace cli {

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

  // ---- For the handlers of routes ----
  const Model& model() const { return model_; }
  const std::string& modelName() const { return options_.model_name; }
  const Settings& sessionOptions() const { return options_.common.session; }
  int64_t startedAt() const { return started_; }
  size_t sessions() const { return slots_.count(); }
  ModelFacts facts() const { return {model_.number("n_vocab"), model_.number("n_embd")}; }

  /// `read(body)` of a JSON body; large ones one at a time. Throws ApiError.
  template <typename Read>
  auto readBody(const HttpRequest& request, const Read& read) {
    std::unique_lock<std::mutex> hold(large_bodies_, std::defer_lock);
    if (request.body.size() >= kLargeBytes) {
      hold.lock();
    }
    const Freeing freeing{request.body.size()};
    return read(bodyOf(request));
  }
  /// Checks the request, waits for a session and answers.
  void reply(ReplyRequest request, const ReplyProtocol& protocol, Exchange* exchange);
  /// The same for a route that asks for nothing else.
  void replyTo(const ReplyProtocol& protocol, Exchange* exchange);
  /// The vectors of the inputs. *tokens: of all of them.
  std::vector<std::vector<float>> embed(const std::vector<RawPrompt>& inputs,
                                        const Exchange& client, uint64_t* tokens);
  /// Throws ApiError where every session begins with the server's --system.
  void checkWithoutSystem() const;

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
  uint32_t mostTokens(const ReplyRequest& request) const;
  void leaveOutSystem(ReplyRequest* request) const;
  std::vector<std::vector<int32_t>> promptsOf(const ReplyRequest& request) const;
  Slots::Lease take(const Slots::Matcher& match, const Exchange& client);
  Slot::Call callOf(const Exchange& client);
  void generate(const ReplyRequest& request, const std::vector<std::vector<int32_t>>& prompts,
                ReplyWriter* writer, Exchange* exchange);

  const ServiceOptions options_;
  const Model& model_;
  const int64_t started_;
  Metrics metrics_;
  Slots slots_;
  ReplyCheck check_;
  Watcher watcher_;
  const RequestGuard guard_;
  /// They take many times their bytes once they are parsed: one is read at a time. Others do not wait for them.
  std::mutex large_bodies_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> device_lost_{false};
};

}  // namespace cli
