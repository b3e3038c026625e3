#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "command_line.h"
#include "options.h"
#include "output.h"
#include "reply/reply_options.h"
#include "setting_flags.h"
#include "system.h"

#ifdef ORIEL_SERVE
#include "serve/service.h"
#endif

namespace cli {

#ifdef ORIEL_SERVE

namespace {

constexpr char kServerGroup[] = "Server";
constexpr uint64_t kMostBodyBytes = 1 << 30;
constexpr uint32_t kMostTokens = 65536;

void setBodyBytes(const std::string& text, ServeOptions* options) {
  if (!parseSize(text, &options->body_bytes) || options->body_bytes == 0 ||
      options->body_bytes > kMostBodyBytes) {
    throw CLI::ValidationError("--max-body",
                               "'" + text + "' is not a size up to 1GiB: write e.g. 8MiB");
  }
}

void addServerOptions(CLI::App* app, ServeOptions* options) {
  ServiceOptions* const service = &options->service;
  app->add_option("--host", options->host,
                  "Address to listen on (default 127.0.0.1: this machine alone)")
      ->type_name("ADDRESS")
      ->group(kServerGroup);
  app->add_option("--port", options->port, "Port (default 8080; 0: a free one)")
      ->type_name("N")
      ->transform(wholeNumber(0, 65535))
      ->group(kServerGroup);
  app->add_option(
         "--api-key", service->guard.api_key,
         "Key that clients must send as Authorization: Bearer KEY (default: ORIEL_API_KEY)")
      ->type_name("KEY")
      ->group(kServerGroup);
  app->add_option("--cors", service->guard.cors,
                  "Origin whose pages may ask; *: any (may be given several times)")
      ->type_name("ORIGIN")
      ->allow_extra_args(false)
      ->group(kServerGroup);
  app->add_option("--allow-host", service->guard.hosts,
                  "Additional host name that requests may have, for a proxy; *: any (may "
                  "be given several "
                  "times)")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->group(kServerGroup);
  app->add_flag("--all-models", service->all_models,
                "Serve every pulled model by its name, within one --memory; the least recently "
                "used model is unloaded")
      ->group(kServerGroup);
  app->add_option("--queue", service->queue, "Requests that may wait for a session (default 32)")
      ->type_name("N")
      ->transform(wholeNumber(0, 10000))
      ->group(kServerGroup);
  app->add_option_function<uint32_t>(
         "--timeout",
         [service](uint32_t seconds) { service->timeout = std::chrono::seconds(seconds); },
         "Seconds to wait for a session, and again for a reply (default 600)")
      ->type_name("S")
      ->transform(wholeNumber(1, 1000000))
      ->group(kServerGroup);
  app->add_option_function<std::string>(
         "--max-body", [options](const std::string& text) { setBodyBytes(text, options); },
         "Largest body of a request (default 8MiB)")
      ->type_name("SIZE")
      ->group(kServerGroup);
  app->add_option("--connections", options->connections, "Connections at a time (default 64)")
      ->type_name("N")
      ->transform(wholeNumber(1, 4096))
      ->group(kServerGroup);
  app->add_option("--name", service->model_name,
                  "The model's name for clients (default: the file's, without .gguf)")
      ->type_name("NAME")
      ->group(kServerGroup);
}

int run(ServeOptions options) {
  std::string* const key = &options.service.guard.api_key;
  const char* const from_environment = std::getenv("ORIEL_API_KEY");
  if (key->empty() && from_environment != nullptr) {
    *key = from_environment;
    if (key->empty()) {
      throw Failure{
          kExitUsage,
          "the environment variable ORIEL_API_KEY is empty: put a key in it, or unset it"};
    }
  }
  if (options.service.most_tokens == 0) {
    options.service.most_tokens =
        std::max(kMostTokens, options.service.common.reply.count("max_tokens"));
  }
  if (!options.service.common.session.has("date")) {
    options.service.common.session.set("date", today());
  }
  return runServer(std::move(options));
}

}  // namespace

Command addServeCommand(CLI::App* program) {
  auto options = std::make_shared<ServeOptions>();
  ServiceOptions* const service = &options->service;
  CLI::App* app = program->add_subcommand(
      "serve", "Serve clients of OpenAI, Ollama and Anthropic, and a chat page");
  addModelOption(app, &service->common);
  app->footer(
      "Prints the address it listens on. Example:\n"
      "  oriel serve model.gguf --port 8080 --memory 2GiB");
  app->add_option("--system", service->system,
                  "System message of every conversation; it is read once and held once");
  addTokensOption(app, &service->common, 2048,
                  "Longest reply where a request does not say (default 2048; 0: until it ends)");
  app->add_option("--max-tokens", service->most_tokens,
                  "Limit for the tokens of all replies to a request (default 65536)")
      ->type_name("N")
      ->transform(wholeNumber(1, INT32_MAX));
  addServerOptions(app, options.get());
  addChatFormatOptions(app, &service->common);
  app->remove_option(app->get_option("--tools"));  // tools come with requests
  addFlagOf(app, "sessions", &service->common, "Sessions")
      ->description("Replies at a time, each with a cache of its own (default: 4, or what fits)");
  addCommonOptions(app, &service->common, Uses::kSampling);
  app->get_option("--json")->description("The address as one JSON object on one line");
  return {app, [options] { return run(*options); }};
}

#else

Command addServeCommand(CLI::App* program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app =
      program->add_subcommand("serve", "Answer OpenAI's clients (not part of this build)");
  addModelOption(app, options.get());
  app->allow_extras();
  addCommonOptions(app, options.get(), Uses::kSampling);
  return {app, []() -> int {
            throw Failure{kExitFailed,
                          "this program was built without its server: install libboost-dev "
                          "(Boost.Beast's headers) and build again, on a POSIX system"};
          }};
}

#endif

}  // namespace cli
