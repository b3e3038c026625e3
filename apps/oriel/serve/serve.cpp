#include "serve/serve.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "failure.h"
#include "output.h"
#include "serve/service.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {
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
