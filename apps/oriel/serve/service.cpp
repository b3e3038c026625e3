#include "serve/service.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "failure.h"
#include "reply/json_input.h"
#include "serve/page.h"
#include "serve/reply_writer.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr char kJson[] = "application/json";
/// What a client's seed of 0 is here, where 0 is the clock's: a number that clients do not count up to.
constexpr uint64_t kSeedZero = 0x9e3779b97f4a7c15;

/// What the library takes.
constexpr double kLeastTopP = 0.0001;

/// A body that takes some MB to read.
constexpr size_t kLargeBytes = 64 << 10;

std::vector<std::unique_ptr<Slot>> makeSlots(const ServiceOptions& options, const Model& model) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (uint32_t i = 0; i < model.plan().sessions; ++i) {
    slots.push_back(std::make_unique<Slot>(model, options.common.session));
  }
  return slots;
}

std::string base64Of(const std::vector<float>& values) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

/// Of a Content-Type, without its parameters: a type's name has no case.
std::string mediaType(const std::string& content_type) {
  const std::string type = content_type.substr(0, content_type.find(';'));
  return inSmallLetters(type.substr(0, type.find_last_not_of(" \t") + 1));
}

/// Behind it the system has back what reading a large body took, which lies in many small pieces.
struct Freeing {
  const size_t body_bytes;
  ~Freeing() {
#ifdef __GLIBC__
    if (body_bytes >= kLargeBytes) {
      malloc_trim(0);
    }
#endif
  }
};

void checkEnded(Ended ended) {
  if (ended == Ended::kClientGone) {
    throw ApiError{499, "the client has left", "", "", 0};
  }
  if (ended == Ended::kStopping) {
    throw ApiError{503, "the server is stopping: ask again later", "", "stopping", 5};
  }
}

/// What a client is told of the exception that is being handled.
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

Service::Service(const ServiceOptions& options, const Model& model)
    : options_(options),
      model_(model),
      started_(static_cast<int64_t>(std::time(nullptr))),
      slots_(makeSlots(options_, model), options.queue),
      guard_(options.guard) {}

void Service::sendError(const ApiError& error, Exchange* exchange) {
  if (error.retry_after_s != 0) {
    exchange->addHeader("Retry-After", std::to_string(error.retry_after_s));
  }
  if (error.status == 401) {
    exchange->addHeader("WWW-Authenticate", "Bearer");
  }
  exchange->send(error.status, kJson, dumped(errorJson(error)));
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
      error.message = "this is no HTTP request: check the client";
  }
  sendError(error, exchange);
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
    sendError(currentError(), exchange);
  }
  countAnswer(route, *exchange, start);
  return Admission::kAnswered;
}

void Service::answer(Exchange* exchange) {
  const Clock::time_point start = Clock::now();
  const Route* const route = Route::of(exchange->request());
  try {
    run(*route, exchange);
  } catch (...) {
    sendError(currentError(), exchange);
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

void Service::run(const Route& route, Exchange* exchange) {
  switch (route.answer) {
    case Route::Answer::kChat:
      return chat(exchange);
    case Route::Answer::kCompletions:
      return completions(exchange);
    case Route::Answer::kEmbeddings:
      return embeddings(exchange);
    case Route::Answer::kModels:
      return models(exchange);
    case Route::Answer::kModel:
      return model(exchange);
    case Route::Answer::kHealth:
      return health(exchange);
    case Route::Answer::kMetrics:
      return metrics(exchange);
    case Route::Answer::kPage:
      return page(exchange);
  }
}

void Service::stop(bool at_once) {
  stopping_ = true;
  if (at_once) {
    watcher_.stopAll();
  }
}

void Service::page(Exchange* exchange) {
  exchange->addHeader("Content-Security-Policy",
                      "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
                      "script-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'");
  exchange->addHeader("X-Content-Type-Options", "nosniff");
  exchange->addHeader("Cache-Control", "no-store");
  exchange->send(200, "text/html; charset=utf-8", chatPage());
}

void Service::health(Exchange* exchange) {
  Json json;
  json["status"] = device_lost_ ? "device lost" : stopping_ ? "stopping" : "ok";
  exchange->send(device_lost_ || stopping_ ? 503 : 200, kJson, dumped(json));
}

void Service::metrics(Exchange* exchange) {
  Metrics::Now now;
  now.sessions = slots_.count();
  now.busy = slots_.busy();
  now.waiting = slots_.waiting();
  now.connections = connections();
  now.memory_bytes = model_.plan().total_bytes;
  exchange->send(200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text(now));
}

Json Service::modelJson() const {
  Json json;
  json["id"] = options_.model_name;
  json["object"] = "model";
  json["created"] = started_;
  json["owned_by"] = "oriel";
  json["oriel"]["window_tokens"] = model_.plan().window_tokens;
  json["oriel"]["sessions"] = slots_.count();
  json["oriel"]["architecture"] = model_.info()["architecture"];
  json["oriel"]["n_embd"] = model_.info()["n_embd"];
  return json;
}

void Service::models(Exchange* exchange) {
  Json json;
  json["object"] = "list";
  json["data"] = Json::array({modelJson()});
  exchange->send(200, kJson, dumped(json));
}

void Service::model(Exchange* exchange) {
  const std::string name = modelNameOf(exchange->request());
  if (name != options_.model_name) {
    throw ApiError{404, "there is no model " + name + ": GET /v1/models says which there is",
                   "model", "model_not_found", 0};
  }
  exchange->send(200, kJson, dumped(modelJson()));
}

Json Service::bodyOf(const HttpRequest& request) const {
  const std::string* const type = request.header("content-type");
  // Browsers let pages of any site send other types without asking.
  if (type == nullptr || mediaType(*type) != kJson) {
    throw ApiError{415, "the body is not said to be JSON: send Content-Type: application/json", "",
                   "unsupported_media_type", 0};
  }
  try {
    return parseJson(request.body, "the body", kMostBodyValues);
  } catch (const Failure& failure) {
    throw ApiError{400, failure.message, "", "invalid_json", 0};
  }
}

Settings Service::sampling(const ReplyRequest& request, uint32_t choice) const {
  Settings options = options_.common.reply;
  const auto take = [&options](const char* name, const std::optional<double>& value) {
    if (value) {
      options.setFloat(name, *value);
    }
  };
  if (request.temperature) {
    options.erase("greedy");
  }
  take("temperature", request.temperature);
  take("min_p", request.min_p);
  take("repeat_penalty", request.repeat_penalty);
  take("presence_penalty", request.presence_penalty);
  take("frequency_penalty", request.frequency_penalty);
  if (request.top_p == 0.0) {
    options.set("greedy", "true");
  } else if (request.top_p) {
    options.setFloat("top_p", std::max(*request.top_p, kLeastTopP));
  }
  if (request.top_k) {
    options.set("top_k", *request.top_k);
  }
  uint64_t seed = request.seed.value_or(options.number("seed"));
  if (request.seed && seed == 0) {
    seed = kSeedZero;
  }
  options.set("seed", nextSeed(seed, choice));
  options.set("max_tokens", mostTokens(request));
  for (const auto& [id, bias] : request.biases) {
    options.add("logit_bias",
                std::to_string(id) + ":" + (bias <= -100 ? "-inf" : formatted("%.9g", bias)));
  }
  for (const std::string& text : request.stop) {
    options.add("stop", text);
  }
  if (request.logprobs) {
    options.set("top_logprobs", std::max(request.top_logprobs, 1u));
  }
  if (!request.schema.empty()) {
    options.set("schema", request.schema);
  }
  if (request.strict_schema) {  // as OpenAI has it: no members that are not listed
    options.erase("open_objects");
  }
  options.set("tool_choice", request.tool_choice);
  return options;
}

/// Of each reply: a request's replies together are bounded, as one that is not streamed is held until it ends.
uint32_t Service::mostTokens(const ReplyRequest& request) const {
  const size_t replies = std::max<size_t>(request.prompts.size(), 1) * request.choices;
  const uint32_t most = std::max(options_.most_tokens / static_cast<uint32_t>(replies), 1u);
  const uint32_t wanted = request.max_tokens.value_or(options_.common.reply.count("max_tokens"));
  return wanted == 0 ? most : std::min(most, wanted);
}

void Service::checkWithoutSystem() const {
  if (!options_.system.empty()) {
    throw ApiError{
        400,
        "every session here begins with the server's --system: ask for chat completions, "
        "or start the server without it",
        "", "unsupported_parameter", 0};
  }
}

/// It is what every session begins with.
void Service::leaveOutSystem(ReplyRequest* request) const {
  if (options_.system.empty()) {
    return;
  }
  if (!(request->form == ChatForm())) {
    throw ApiError{400,
                   "all conversations here share one system prompt, in which tools and variables "
                   "would stand: leave them out, or start the server without --system",
                   "tools", "unsupported_parameter", 0};
  }
  std::vector<ChatMessage>& messages = request->messages;
  if (messages.front().key == systemKey(options_.system)) {
    messages.erase(messages.begin());
  }
  const bool others = std::any_of(messages.begin(), messages.end(), [](const ChatMessage& message) {
    return message.key.compare(0, 16, R"({"role":"system")") == 0;
  });
  if (others || messages.empty()) {
    throw ApiError{400,
                   "all conversations here begin with the server's --system: send messages of the "
                   "user and of the assistant",
                   "messages", "unsupported_content", 0};
  }
}

std::vector<int32_t> Service::idsOf(const RawPrompt& prompt) const {
  return prompt.from_ids ? prompt.ids
                         : model_.tokenize(prompt.text, ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS);
}

Slots::Lease Service::take(const Slots::Matcher& match, const Exchange& client) {
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  const auto gives_up = [&]() -> std::optional<ApiError> {
    if (client.clientGone()) {
      return ApiError{499, "the client has left", "", "", 0};
    }
    if (stopping_) {
      return ApiError{503, "the server is stopping: ask again later", "", "stopping", 5};
    }
    if (Clock::now() >= deadline) {
      return ApiError{503,
                      "no session was free in time: ask again later, or start the server with "
                      "more --sessions or a longer --timeout",
                      "", "timeout", 2};
    }
    return std::nullopt;
  };
  if (stopping_) {
    throw ApiError{503, "the server is stopping: ask again later", "", "stopping", 5};
  }
  return slots_.take(match, gives_up);
}

Slot::Call Service::callOf(const Exchange& client) {
  return {&watcher_, &client, Clock::now() + options_.timeout, &device_lost_};
}

template <typename Read>
auto Service::readBody(const HttpRequest& request, const Read& read) {
  std::unique_lock<std::mutex> hold(large_bodies_, std::defer_lock);
  if (request.body.size() >= kLargeBytes) {
    hold.lock();
  }
  const Freeing freeing{request.body.size()};
  return read(bodyOf(request));
}

ReplyRequest Service::requestOf(const HttpRequest& request, bool is_chat) {
  const uint32_t n_vocab = model_.number("n_vocab");
  return readBody(request, [&](const Json& body) {
    return is_chat ? readChatRequest(body, n_vocab) : readCompletionRequest(body, n_vocab);
  });
}

EmbeddingRequest Service::embeddingRequestOf(const HttpRequest& request) {
  return readBody(request, [&](const Json& body) {
    return readEmbeddingRequest(body, model_.number("n_vocab"), model_.number("n_embd"));
  });
}

void Service::chat(Exchange* exchange) {
  ReplyRequest request = requestOf(exchange->request(), /*is_chat=*/true);
  leaveOutSystem(&request);
  reply(request, exchange);
}

void Service::completions(Exchange* exchange) {
  const ReplyRequest request = requestOf(exchange->request(), /*is_chat=*/false);
  checkWithoutSystem();
  reply(request, exchange);
}

void Service::reply(const ReplyRequest& request, Exchange* exchange) {
  std::vector<std::vector<int32_t>> prompts(1);
  if (!request.is_chat) {
    prompts.clear();
    for (const RawPrompt& prompt : request.prompts) {
      prompts.push_back(idsOf(prompt));
      if (prompts.back().empty()) {
        throw wrongField("prompt",
                         "at least one token: this model does not begin with one of its own");
      }
    }
  }
  ReplyWriter writer(model_, options_.model_name, request, exchange);
  try {
    generate(request, prompts, &writer, exchange);
    writer.end();
  } catch (...) {
    if (!exchange->begun()) {
      throw;
    }
    writer.endWith(currentError());
  }
}

/// The session is given back before the client has the end of its reply, and may ask again.
void Service::generate(const ReplyRequest& request,
                       const std::vector<std::vector<int32_t>>& prompts, ReplyWriter* writer,
                       Exchange* exchange) {
  const auto lease =
      take([&](const Slot& slot) { return slot.match(request, prompts[0]); }, *exchange);
  const Slot::Call call = callOf(*exchange);
  uint32_t number = 0;
  for (const std::vector<int32_t>& ids : prompts) {
    for (uint32_t i = 0; i < request.choices; ++i, ++number) {
      const Settings options = sampling(request, i);
      const ReplySink sink = writer->sinkFor(number);
      const ReplyOutcome outcome = request.is_chat ? lease->chat(request, options, sink, call)
                                                   : lease->complete(ids, options, sink, call);
      metrics_.countReply(outcome.prompt_tokens, outcome.cached_tokens, outcome.result.tokens,
                          outcome.evicted);
      checkEnded(outcome.ended);
      writer->endChoice(outcome, i == 0);
    }
  }
}

void Service::embeddings(Exchange* exchange) {
  EmbeddingRequest request = embeddingRequestOf(exchange->request());
  std::vector<RawPrompt>& inputs = request.inputs;
  checkWithoutSystem();
  const auto lease = take([&](const Slot&) { return Slot::Match(); }, *exchange);
  Json json;
  json["object"] = "list";
  json["data"] = Json::array();
  uint64_t tokens = 0;
  const Slot::Call call = callOf(*exchange);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].from_ids) {
      inputs[i].text = model_.detokenize(inputs[i].ids, 0);
    }
    uint32_t count = 0;
    const std::vector<float> values = lease->embed(inputs[i], call, &count);
    tokens += count;
    Json one;
    one["object"] = "embedding";
    one["index"] = i;
    if (request.base64) {
      one["embedding"] = base64Of(values);
    } else {
      one["embedding"] = Json::array();
      for (const float value : values) {
        one["embedding"].push_back(numberOf(value));
      }
    }
    json["data"].push_back(std::move(one));
  }
  json["model"] = options_.model_name;
  json["usage"]["prompt_tokens"] = tokens;
  json["usage"]["total_tokens"] = tokens;
  exchange->send(200, kJson, dumped(json));
}

}  // namespace cli
