#include "serve/service.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "output.h"
#include "reply/json_input.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"
#include "serve/routes.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

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

namespace {

/// A Content-Type without its parameters, in lower case.
std::string mediaType(const std::string& content_type) {
  const std::string type = content_type.substr(0, content_type.find(';'));
  return inSmallLetters(type.substr(0, type.find_last_not_of(" \t") + 1));
}

std::vector<int32_t> gapIds(const Gap& gap, const Model& model) {
  try {
    return fillInIds(model, gap);
  } catch (const Failure& failure) {
    throw ApiError{400, failure.message, "", "unsupported_model", 0};
  }
}

/// For a chat one empty list.
std::vector<std::vector<int32_t>> promptsOf(const ReplyRequest& request, const Model& model) {
  if (request.is_chat) {
    return {{}};
  }
  std::vector<std::vector<int32_t>> prompts;
  for (const RawPrompt& prompt : request.prompts) {
    prompts.push_back(prompt.gap ? gapIds(*prompt.gap, model)
                      : prompt.from_ids
                          ? prompt.ids
                          : model.tokenize(prompt.text, ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS));
    if (prompts.back().empty()) {
      throw wrongField("prompt",
                       "at least one token: this model does not begin with one of its own");
    }
  }
  return prompts;
}

ApiError clientLeft() { return {499, "the client has left", "", "", 0}; }
ApiError isStopping() {
  return {503, "the server is stopping: ask again later", "", "stopping", 5};
}

void checkEnded(Ended ended) {
  if (ended == Ended::kClientGone) {
    throw clientLeft();
  }
  if (ended == Ended::kStopping) {
    throw isStopping();
  }
}

/// The error for the client, from the current exception.
ApiError currentError() {
  try {
    throw;
  } catch (const ApiError& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {503, "the system has no memory left: ask for less", "", "out_of_memory", 5};
  } catch (const Failure& failure) {
    return {500, failure.message, "", "", 0};
  } catch (const std::exception& error) {
    return {500, std::string("unexpected error (") + error.what() + "): please report it", "", "",
            0};
  }
}

}  // namespace

Service::Freeing::~Freeing() {
#ifdef __GLIBC__
  if (body_bytes >= kLargeBytes) {
    malloc_trim(0);
  }
#endif
}

Service::Service(const ServiceOptions& options, ModelPool* pool)
    : options_(options),
      pool_(pool),
      started_(static_cast<int64_t>(std::time(nullptr))),
      guard_(options.guard) {}

void Service::sendError(const Route* route, const ApiError& error, Exchange* exchange) {
  if (error.retry_after_s != 0) {
    exchange->addHeader("Retry-After", std::to_string(error.retry_after_s));
  }
  if (error.status == 401) {
    exchange->addHeader("WWW-Authenticate", "Bearer");
  }
  exchange->send(error.status, kJsonType, dumped(errorFormOf(route, exchange->request())(error)));
}

void Service::refuse(int status, Exchange* exchange) {
  exchange->closeAfter();
  ApiError error{status, "", "", "", 0};
  switch (status) {
    case 408:
      error.message = "the request did not arrive in time: send all of it at once";
      break;
    case 413:
      error.message =
          "the body is too large: send less, or start the server with a larger --max-body";
      break;
    case 431:
      error.message = "the headers are too large: send fewer";
      break;
    case 503:
      error.message = "there are too many connections: close some";
      error.retry_after_s = 1;
      break;
    default:
      error.message = "this is not an HTTP request: check the client";
  }
  sendError(nullptr, error, exchange);
  metrics_.countRequest("none", status, 0);
}

Admission Service::admit(Exchange* exchange) {
  const Clock::time_point start = Clock::now();
  const Route* const route = Route::of(exchange->request());
  try {
    if (cli::admit(guard_, route, exchange)) {
      return guard_.knows(exchange->request()) ? Admission::kKnown : Admission::kStranger;
    }
  } catch (...) {
    exchange->closeAfter();
    sendError(route, currentError(), exchange);
  }
  countAnswer(route, *exchange, start);
  return Admission::kAnswered;
}

void Service::answer(Exchange* exchange) {
  const Clock::time_point start = Clock::now();
  const Route* const route = Route::of(exchange->request());
  try {
    answerRoute(route->answer, this, exchange);
  } catch (...) {
    sendError(route, currentError(), exchange);
  }
  countAnswer(route, *exchange, start);
}

void Service::countAnswer(const Route* route, const Exchange& exchange, Clock::time_point start) {
  const std::chrono::duration<double> time = Clock::now() - start;
  metrics_.countRequest(route != nullptr ? route->path : "none", exchange.status(), time.count());
  if (options_.common.verbose) {
    const HttpRequest& request = exchange.request();
    tell(dim(oneLine("oriel: " + request.method + " " + request.path + " " +
                     std::to_string(exchange.status()) +
                     formatted(", %.0f ms", 1000 * time.count()))) +
         "\n");
  }
}

void Service::stop(bool at_once) {
  stopping_ = true;
  if (at_once) {
    watcher_.stopAll();
  }
}

void Service::health(Exchange* exchange) {
  Json json;
  json["status"] = device_lost_ ? "device lost" : stopping_ ? "stopping" : "ok";
  exchange->send(device_lost_ || stopping_ ? 503 : 200, kJsonType, dumped(json));
}

void Service::metrics(Exchange* exchange) {
  Metrics::Now now;
  const ModelPool::Count count = pool_->count();
  now.sessions = count.sessions;
  now.busy = count.busy;
  now.waiting = count.waiting;
  now.connections = connections();
  now.memory_bytes = count.memory_bytes;
  exchange->send(200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text(now));
}

Json Service::bodyOf(const HttpRequest& request) const {
  const std::string* const type = request.header("content-type");
  // Browsers send other types cross-site without asking.
  if (type == nullptr || mediaType(*type) != kJsonType) {
    throw ApiError{415, "the body is not said to be JSON: send Content-Type: application/json", "",
                   "unsupported_media_type", 0};
  }
  try {
    return parseJson(request.body, "the body", kMostBodyValues);
  } catch (const Failure& failure) {
    throw ApiError{400, failure.message, "", "invalid_json", 0};
  }
}

/// Per reply: the replies of a request are bounded together, since unstreamed ones are held in memory.
uint32_t Service::mostTokens(const ReplyRequest& request) const {
  const size_t replies = std::max<size_t>(request.prompts.size(), 1) * request.choices;
  const uint32_t most = std::max(options_.most_tokens / static_cast<uint32_t>(replies), 1u);
  const uint32_t wanted = request.max_tokens.value_or(options_.common.reply.count("max_tokens"));
  return wanted == 0 ? most : std::min(most, wanted);
}

/// Empty without the field or for another type; the reader reports that.
std::string Service::modelNameIn(const Json& body) {
  return body.is_object() ? Fields(body, "").text("model").value_or("") : "";
}

std::function<std::optional<ApiError>()> Service::patience(const Exchange& client) const {
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  return [this, &client, deadline]() -> std::optional<ApiError> {
    if (client.clientGone()) {
      return clientLeft();
    }
    if (stopping_) {
      return isStopping();
    }
    if (Clock::now() >= deadline) {
      return ApiError{503,
                      "no session was free in time: ask again later, or start the server with "
                      "more --sessions or a longer --timeout",
                      "", "timeout", 2};
    }
    return std::nullopt;
  };
}

ModelPool::Lease Service::open(ModelPool::Entry* model, const Exchange& client,
                               const std::function<void()>& begins) {
  if (stopping_) {
    throw isStopping();
  }
  return pool_->open(model, {patience(client), begins});
}

Slot::Call Service::callOf(const Exchange& client) {
  return {&watcher_, &client, Clock::now() + options_.timeout, &device_lost_};
}

void Service::replyTo(const ReplyProtocol& protocol, Exchange* exchange) {
  reply(read(exchange->request(), protocol.read), protocol, exchange);
}

std::string Service::adapters(const ModelPool::Entry* model) const {
  const std::lock_guard<std::mutex> lock(adapters_lock_);
  for (const auto& [of, chosen] : adapters_) {
    if (of == model) {
      return chosen;
    }
  }
  return "";
}

void Service::setAdapters(const ModelPool::Entry* model, const std::string& adapters) {
  const std::lock_guard<std::mutex> lock(adapters_lock_);
  for (auto& [of, chosen] : adapters_) {
    if (of == model) {
      chosen = adapters;
      return;
    }
  }
  adapters_.emplace_back(model, adapters);
}

/// A stream sends a comment while the model loads.
void Service::reply(Asked<ReplyRequest> asked, const ReplyProtocol& protocol, Exchange* exchange) {
  ReplyRequest& request = asked.request;
  if (request.form.adapters.empty()) {
    request.form.adapters = adapters(asked.model);
  }
  const Clock::time_point start = Clock::now();
  bool waited = false;
  const auto lease = open(asked.model, *exchange, [&] {
    waited = true;
    if (request.stream && protocol.streams_events && exchange->beginStream(kEventStream)) {
      exchange->write(": loading the model\n\n");
    }
  });
  const double load_ms =
      waited ? std::chrono::duration<double, std::milli>(Clock::now() - start).count() : 0;
  const std::unique_ptr<ReplyWriter> writer =
      protocol.write({lease->model, lease->name, request, exchange});
  try {
    if (request.is_chat) {
      lease->leaveOutSystem(&request);
    } else {
      lease->checkWithoutSystem();
    }
    lease->check.check(&request);
    generate(request, &*lease, load_ms, writer.get(), exchange);
    writer->end();
  } catch (...) {
    if (!exchange->begun()) {
      throw;
    }
    writer->endWith(currentError());
  }
}

/// Releases the session before the client sees the end and sends the next request.
void Service::generate(const ReplyRequest& request, LoadedModel* model, double load_ms,
                       ReplyWriter* writer, Exchange* exchange) {
  const std::vector<std::vector<int32_t>> prompts = promptsOf(request, model->model);
  const auto lease = model->slots.take(
      [&](const Slot& slot) { return slot.match(request, prompts[0]); }, patience(*exchange));
  const Slot::Call call = callOf(*exchange);
  uint32_t number = 0;
  for (const std::vector<int32_t>& ids : prompts) {
    for (uint32_t i = 0; i < request.choices; ++i, ++number) {
      const Settings options = samplingOf(request, options_.common.reply, mostTokens(request), i);
      const ReplySink sink = writer->sinkFor(number);
      ReplyOutcome outcome = request.is_chat ? lease->chat(request, options, sink, call)
                                             : lease->complete(request, ids, options, sink, call);
      outcome.load_ms = load_ms;
      metrics_.countReply(outcome.prompt_tokens, outcome.cached_tokens, outcome.result.tokens,
                          outcome.evicted);
      checkEnded(outcome.ended);
      writer->endChoice(outcome, i == 0);
    }
  }
}

std::vector<std::vector<float>> Service::embed(const Asked<std::vector<RawPrompt>>& asked,
                                               const Exchange& client, uint64_t* tokens,
                                               const std::string* query) {
  const auto model = open(asked.model, client);
  model->checkWithoutSystem();
  const auto lease =
      model->slots.take([&](const Slot&) { return Slot::Match(); }, patience(client));
  return lease->embed(asked.request, query, callOf(client), tokens);
}

namespace {

using namespace std::chrono_literals;

/// Time for running replies after a stop request.
constexpr auto kGrace = 5s;
/// Time for the cut-off replies to send their error.
constexpr auto kFarewell = 500ms;
/// Share of connections (1/N) for clients without a key so far.
constexpr uint32_t kStrangerShare = 8;
constexpr uint32_t kLeastStrangers = 4;

std::string nameOf(const std::string& path) {
  return std::filesystem::u8path(path).stem().u8string();
}

/// For use in an address.
std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

void announce(const ServeOptions& options, const ModelCard& model, const Listener& listener) {
  const std::string url =
      "http://" + bracketed(listener.address) + ":" + std::to_string(listener.port);
  const uint32_t sessions = model.sessions;
  if (options.service.common.json) {
    Json json;
    json["url"] = url;
    json["host"] = listener.address;
    json["port"] = listener.port;
    json["model"] = model.name;
    json["sessions"] = sessions;
    json["window_tokens"] = model.window_tokens;
    json["memory_bytes"] = model.memory_bytes;
    printJson(json);
  } else {
    print(url + "\n");
  }
  if (!listener.loopback && options.service.guard.api_key.empty()) {
    tellText(
        "oriel: warning: anyone who reaches this address can use the model: require a key with "
        "--api-key, or leave --host at 127.0.0.1\n");
  }
  if (isTerminal(Stream::kErr) && !options.service.common.json) {
    tellText(dim(oneLine(model.name) + ", " + std::to_string(sessions) +
                 (sessions == 1 ? " session of " : " sessions of ") +
                 std::to_string(model.window_tokens) +
                 " tokens. Chat in a browser at this address; OpenAI's clients take " + url +
                 "/v1 as base URL. Ctrl-C stops.") +
             "\n");
  }
}

/// Waits until all connections have ended, the time is over or `stops()` is true.
template <typename Stops>
void waitForEnd(const HttpServer& server, Clock::duration most, const Stops& stops) {
  const Clock::time_point deadline = Clock::now() + most;
  while (server.connections() != 0 && Clock::now() < deadline && !stops()) {
    std::this_thread::sleep_for(20ms);
  }
}

/// A client cannot delay this by half a request or slow reading.
void endReplies(HttpServer* server, Service* service) {
  service->stop(/*at_once=*/false);
  server->stop();
  waitForEnd(*server, kGrace, [] { return interrupts() > 1; });
  const uint32_t cut = server->answering();
  service->stop(/*at_once=*/true);
  waitForEnd(*server, kFarewell, [] { return false; });
  server->cut();
  if (cut != 0) {
    tellText("oriel: " + std::to_string(cut) + (cut == 1 ? " reply was" : " replies were") +
             " cut off\n");
  }
}

std::string describe(size_t running) {
  return running == 0 ? "stopping\n"
                      : "stopping: " + std::to_string(running) +
                            (running == 1 ? " reply has" : " replies have") +
                            " five seconds to end; Ctrl-C ends now\n";
}

}  // namespace

int runServer(ServeOptions options) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);  // threads are short-lived: share freed memory among them
#endif
  ServiceOptions& service_options = options.service;
  // Listens first, so that a port in use is reported at once.
  Listener listener = listenOn(options.host, options.port);
  service_options.guard.loopback = listener.loopback;
  service_options.common.load.set("constraints", "true");
  if (service_options.model_name.empty()) {
    service_options.model_name = nameOf(modelPath(service_options.common));
  }
  ModelPool pool(service_options);
  Service service(service_options, &pool);
  ServerLimits limits;
  limits.http.body_bytes = options.body_bytes;
  limits.connections = options.connections;
  limits.header_time = std::min(limits.header_time, service_options.timeout);
  limits.stranger_time = std::chrono::milliseconds(limits.header_time) / 2;
  if (!service_options.guard.api_key.empty()) {
    limits.strangers = std::max(options.connections / kStrangerShare, kLeastStrangers);
  }
  catchTermination();
  HttpServer server(std::move(listener), limits,
                    {[&](Exchange* exchange) { return service.admit(exchange); },
                     [&](Exchange* exchange) { service.answer(exchange); },
                     [&](int status, Exchange* exchange) { service.refuse(status, exchange); }});
  service.connections = [&server] { return server.connections(); };
  announce(options, pool.cards().front(), server.listener());
  server.run(wakeDescriptor(), [] { return interrupts() != 0; });
  tellText("oriel: " + describe(service.busy()));
  endReplies(&server, &service);
  return kExitDone;
}

}  // namespace cli
