// Client input to the local server: HTTP in pieces, and request bodies. An input: two bytes of choices, and the
// connection's data.
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "fuzz/words.h"
#include "output.h"
#include "reply/json_input.h"
#include "serve/api_error.h"
#include "serve/http_server.h"
#include "serve/protocols.h"
#include "serve/request_fields.h"
#include "serve/routes.h"

namespace oriel_internal::fuzz::fuzz_server {
namespace {

using cli::HttpReader;
using cli::HttpRequest;
using cli::Json;

constexpr uint32_t kVocabulary = 1000;
constexpr cli::ModelFacts kFacts = {kVocabulary, /*n_embd=*/64};
constexpr cli::HttpLimits kLimits = {2048, 16384};

struct Received {
  std::vector<HttpRequest> requests;
  int refused = 0;
  bool waits = false;

  /// Among several errors the first one found is reported; the exact header limit depends on the pieces.
  bool operator==(const Received& other) const {
    if (refused == 431 || other.refused == 431) {
      return true;
    }
    bool same = (refused == 0) == (other.refused == 0) && waits == other.waits &&
                requests.size() == other.requests.size();
    for (size_t i = 0; same && i < requests.size(); ++i) {
      const HttpRequest& a = requests[i];
      const HttpRequest& b = other.requests[i];
      same = a.method == b.method && a.path == b.path && a.query == b.query &&
             a.headers == b.headers && a.body == b.body && a.keep_alive == b.keep_alive &&
             a.knows_chunks == b.knows_chunks;
    }
    return same;
  }
};

/// A connection as read by the server: leftover bytes begin the next request.
Received receive(const std::string& input, size_t most_at_once, Chance* chance) {
  Received received;
  std::string unread;
  size_t at = 0;
  for (bool ends = false; !ends;) {
    HttpReader reader(kLimits);
    bool asked = false;  // it stops after the header
    while (!reader.done() && reader.refused() == 0) {
      const size_t taken = reader.put(unread.data(), unread.size());
      EXPECT_LE(taken, unread.size());
      unread.erase(0, taken);
      EXPECT_TRUE(reader.begun() || taken == 0);
      if (reader.done() || reader.refused() != 0) {
        break;
      }
      if (!asked && reader.headerDone()) {
        EXPECT_TRUE(reader.request().body.empty());
        asked = true;
        continue;
      }
      EXPECT_LE(unread.size(), kLimits.header_bytes) << "what waits is bounded";
      if (at == input.size()) {
        reader.putEnd();
        ends = true;
        break;
      }
      const size_t bytes = std::min<size_t>(1 + chance->below(most_at_once), input.size() - at);
      unread += input.substr(at, bytes);
      at += bytes;
    }
    received.refused = reader.refused();
    EXPECT_TRUE(received.refused == 0 || received.refused == 400 || received.refused == 413 ||
                received.refused == 431)
        << received.refused;
    ends = ends || received.refused != 0;
    if (reader.done() && received.refused == 0) {
      EXPECT_TRUE(reader.headerDone());
      received.waits = reader.waitsForContinue();
      received.requests.push_back(reader.request());
      ends = ends || received.requests.size() == 4;
    }
  }
  return received;
}

void checkError(const cli::ApiError& error) {
  EXPECT_EQ(400, error.status);
  EXPECT_TRUE(error.message.find(": ") != std::string::npos ||
              error.message.find(" must be ") != std::string::npos)
      << error.message;
  const std::string json =
      cli::errorJson(error).dump(-1, ' ', false, Json::error_handler_t::replace);
  EXPECT_TRUE(nlohmann::json::accept(json)) << json;
  const std::string head = cli::httpHead(error.status, {{"Content-Type", error.message}});
  EXPECT_EQ(head.size() - 4, head.find("\r\n\r\n")) << "one header stays one";
}

void checkRequest(const cli::ReplyRequest& request) {
  for (const cli::ChatMessage& message : request.messages) {
    EXPECT_TRUE(nlohmann::json::accept(message.json)) << message.json;
  }
  EXPECT_TRUE(request.form.tools.empty() || nlohmann::json::accept(request.form.tools));
  EXPECT_TRUE(request.form.variables.empty() || nlohmann::json::accept(request.form.variables));
  EXPECT_TRUE(request.held.schema.empty() || nlohmann::json::accept(request.held.schema));
  EXPECT_EQ(request.held.given(), !request.held.param.empty());
  for (const cli::RawPrompt& prompt : request.prompts) {
    for (const int32_t id : prompt.ids) {
      EXPECT_TRUE(id >= 0 && static_cast<uint32_t>(id) < kVocabulary);
    }
  }
  for (const auto& [id, bias] : request.biases) {
    EXPECT_TRUE(id >= 0 && static_cast<uint32_t>(id) < kVocabulary);
    EXPECT_TRUE(bias >= -100 && bias <= 100) << bias;
  }
  EXPECT_GE(request.choices, 1u);
}

/// Whether it is JSON.
bool readBody(const std::string& body) {
  Json json;
  try {
    json = cli::parseJson(body, "the body", cli::kMostBodyValues);
  } catch (const cli::Failure& failure) {
    EXPECT_NE(std::string::npos, failure.message.find(": ")) << failure.message;
    return false;
  }
  constexpr cli::ReplyRequest (*kReaders[])(const Json&, const cli::ModelFacts&) = {
      cli::readChatRequest,     cli::readCompletionRequest, cli::readResponsesRequest,
      cli::readMessagesRequest, cli::readCountRequest,      cli::readOllamaChat,
      cli::readOllamaGenerate};
  for (const auto& reader : kReaders) {
    try {
      checkRequest(reader(json, kFacts));
    } catch (const cli::ApiError& error) {
      checkError(error);
    }
  }
  try {
    (void)cli::readEmbedInputs(cli::Fields(json, ""), "input", kFacts);
  } catch (const cli::ApiError& error) {
    checkError(error);
  }
  return true;
}

/// Two ends of a connection.
struct Connection {
  Connection() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    server = cli::Socket(ends[0]);
    client = cli::Socket(ends[1]);
  }
  /// The bytes that the server has sent. Afterwards it cannot send more.
  std::string received() {
    server = cli::Socket();
    std::string all;
    char some[4096];
    for (ssize_t bytes = 0; (bytes = read(client.get(), some, sizeof(some))) > 0;) {
      all.append(some, static_cast<size_t>(bytes));
    }
    return all;
  }
  cli::Socket server;
  cli::Socket client;
};

std::string headerOf(const HttpRequest& request, const char* name) {
  const std::string* const value = request.header(name);
  return value == nullptr ? "" : *value;
}

/// Admitted requests have the key if one is required, and come from an allowed page.
void checkAdmitted(const HttpRequest& request, const cli::Route& route,
                   const cli::GuardOptions& options) {
  EXPECT_TRUE(request.method == route.method ||
              (request.method == "HEAD" && std::string(route.method) == "GET"));
  const std::string key = headerOf(request, "authorization");
  EXPECT_TRUE(
      !route.needs_key || options.api_key.empty() ||
      (cli::inSmallLetters(key.substr(0, 7)) == "bearer " && key.substr(7) == options.api_key) ||
      headerOf(request, "x-api-key") == options.api_key);
  const std::string origin = headerOf(request, "origin");
  const std::string host = headerOf(request, "host");
  const bool any = !options.cors.empty() && options.cors[0] == "*";
  EXPECT_TRUE(request.header("origin") == nullptr || any || origin == "http://" + host ||
              origin == "https://" + host ||
              std::count(options.cors.begin(), options.cors.end(), origin) != 0)
      << origin;
  if (options.loopback && request.header("host") != nullptr) {
    std::string name = host;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const bool allowed =
        std::any_of(options.hosts.begin(), options.hosts.end(), [&name](const std::string& each) {
          return each == "*" || name.compare(0, each.size(), each) == 0;
        });
    EXPECT_TRUE(allowed || name.compare(0, 9, "localhost") == 0 ||
                name.compare(0, 4, "127.") == 0 || name.compare(0, 5, "[::1]") == 0)
        << host;
  }
  if (route.answer == cli::Route::Answer::kModel) {
    const std::string name = cli::modelNameOf(request);
    const bool escaped = request.path.find('%') != std::string::npos;
    const size_t begin = request.path.find("/models/") + sizeof("/models/") - 1;
    EXPECT_TRUE(escaped || request.path.substr(begin) == name);
    EXPECT_LE(begin + name.size(), request.path.size());
  }
}

/// As Service answers it, without a model.
void routeRequest(const HttpRequest& request) {
  const cli::GuardOptions kGuards[] = {{"", {}, {}, true},
                                       {"secret", {}, {}, false},
                                       {"", {"https://a.example", "null"}, {"a.example"}, true},
                                       {"k", {"*"}, {}, false}};
  for (const cli::GuardOptions& options : kGuards) {
    const cli::RequestGuard guard(options);
    Connection connection;
    cli::Exchange exchange(request, connection.server, {{"Server", "oriel"}});
    const cli::Route* const route = cli::Route::of(request);
    try {
      if (cli::admit(guard, route, &exchange)) {
        EXPECT_NE(nullptr, route);
        checkAdmitted(request, *route, options);
        exchange.send(200, "text/plain", "ok");
      } else {
        EXPECT_EQ("OPTIONS", request.method);
        EXPECT_FALSE(options.cors.empty());
        EXPECT_EQ(204, exchange.status());
      }
    } catch (const cli::ApiError& error) {
      EXPECT_TRUE(error.status == 401 || error.status == 403 || error.status == 404 ||
                  error.status == 405 || error.status == 413)
          << error.status;
      EXPECT_NE(std::string::npos, error.message.find(": ")) << error.message;
      const Json json = cli::errorJson(error);
      exchange.send(error.status, "application/json",
                    json.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    EXPECT_TRUE(exchange.begun());
    const std::string sent = connection.received();
    const size_t end = sent.find("\r\n\r\n");
    ASSERT_NE(std::string::npos, end) << sent;
    EXPECT_EQ(0u, sent.find("HTTP/1.1 " + std::to_string(exchange.status())));
    const bool bare = request.method == "HEAD" || exchange.status() == 204;
    EXPECT_EQ(bare, end + 4 == sent.size()) << sent;
    // One header for each added one: sent values cannot end a header.
    EXPECT_LE(std::count(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(end), '\n'), 10);
  }
}

}  // namespace

ORIEL_FUZZ(server) {
  Input input(data, size);
  const uint8_t choice = input.byte();
  Chance chance(input.byte());
  const std::string sent = input.takeRest();
  if (choice % 2 == 0) {
    if (readBody(sent)) {
      pastFirstCheck();
    }
    return;
  }
  const Received whole = receive(sent, sent.size() + 1, &chance);
  EXPECT_TRUE(whole == receive(sent, 1, &chance)) << "byte by byte";
  EXPECT_TRUE(whole == receive(sent, 40, &chance)) << "in pieces";
  if (!whole.requests.empty()) {
    pastFirstCheck();
  }
  for (const HttpRequest& request : whole.requests) {
    EXPECT_LE(request.body.size(), kLimits.body_bytes);
    EXPECT_EQ(std::string::npos, request.path.find('?'));
    for (const auto& [name, value] : request.headers) {
      EXPECT_EQ(std::string::npos, name.find_first_of("\r\n:"));
      EXPECT_EQ(std::string::npos, value.find_first_of("\r\n"));
      EXPECT_NE(nullptr, request.header(name));
    }
    routeRequest(request);
    (void)readBody(request.body);
  }
}

ORIEL_FUZZ_MUTATE(server) {
  static const WordMutator mutator(jsonWordsAnd(
      {"\r\n",
       "\r\n\r\n",
       "POST /v1/chat/completions HTTP/1.1\r\n",
       "GET / HTTP/1.0\r\n",
       "HEAD",
       "OPTIONS",
       "DELETE",
       "OPTIONS /v1/completions HTTP/1.1\r\n",
       "GET /v1/models/x HTTP/1.1\r\n",
       "GET /v1/models/%20%2fx HTTP/1.1\r\n",
       "GET http://localhost/health?x HTTP/1.1\r\n",
       "GET /health HTTP/1.1\r\n",
       "GET /metrics HTTP/1.1\r\n",
       "POST /v1/responses HTTP/1.1\r\n",
       "POST /messages HTTP/1.1\r\n",
       "POST /api/chat HTTP/1.1\r\n",
       "GET /api/tags HTTP/1.1\r\n",
       "x-api-key: k\r\n",
       "Host: 127.0.0.1:8080\r\n",
       "Host: [::1]:80\r\n",
       "Host: 127.evil.example\r\n",
       "Host: a.example\r\n",
       "Origin: http://localhost\r\n",
       "Origin: https://a.example\r\n",
       "Origin: null\r\n",
       "Authorization: Bearer secret\r\n",
       "Authorization: bearer k\r\n",
       "Access-Control-Request-Method: POST\r\n",
       "Access-Control-Request-Headers: Authorization\r\n",
       " HTTP/1.1",
       "Host: localhost\r\n",
       "Content-Length: 2\r\n",
       "Content-Length: 99999999999999999999\r\n",
       "Transfer-Encoding: chunked\r\n",
       "Transfer-Encoding: gzip, chunked\r\n",
       "Transfer-Encoding: identity\r\n",
       "Connection: close\r\n",
       "Connection: keep-alive\r\n",
       "Expect: 100-continue\r\n",
       "Content-Type: application/json\r\n",
       "5\r\nhello\r\n",
       "0\r\n\r\n",
       "1;a=\"b\"\r\nx\r\n",
       "ffffffffffffffff\r\n",
       "?a=b",
       "%00",
       "\x80",
       "0.5",
       "1e9",
       "\"messages\":",
       "\"role\":\"user\",",
       "\"role\":\"assistant\",",
       "\"role\":\"tool\",",
       "\"role\":\"developer\",",
       "\"content\":\"a\"",
       "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]",
       "\"content\":null,",
       "\"prompt\":",
       "\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
       "\"arguments\":\"{}\"}}]",
       "\"tool_call_id\":\"1\",",
       "\"reasoning_content\":\"a\",",
       "\"model\":\"x\",",
       "\"stream\":true,",
       "\"stream_options\":{\"include_usage\":true},",
       "\"n\":2,",
       "\"max_tokens\":5,",
       "\"max_completion_tokens\":5,",
       "\"temperature\":0.5,",
       "\"top_p\":0.9,",
       "\"top_k\":4,",
       "\"min_p\":0.1,",
       "\"seed\":7,",
       "\"stop\":[\"a\",\"b\"],",
       "\"stop\":\"a\",",
       "\"presence_penalty\":1,",
       "\"frequency_penalty\":-1,",
       "\"repeat_penalty\":1.1,",
       "\"logit_bias\":{\"5\":-100},",
       "\"logprobs\":true,",
       "\"logprobs\":3,",
       "\"top_logprobs\":2,",
       "\"response_format\":{\"type\":\"json_object\"},",
       "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",\"schema\":{}"
       "}},",
       "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],",
       "\"tool_choice\":\"required\",",
       "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}},",
       "\"parallel_tool_calls\":false,",
       "\"chat_template_kwargs\":{\"enable_thinking\":false},",
       "\"echo\":true,",
       "\"suffix\":\"a\",",
       "\"user\":\"u\",",
       "\"best_of\":2,",
       "\"reasoning_effort\":\"low\","}));
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(server) {
  const std::string body =
      R"({"model":"x","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":null,"reasoning_content":"t","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":[1]}"}}]},{"role":"tool","tool_call_id":"1","content":"7"},{"role":"assistant","content":"ok"},{"role":"user","content":"And?"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto","max_tokens":5,"temperature":0.5,"top_p":0.9,"top_k":4,"min_p":0.1,"seed":7,"stop":["a"],"logit_bias":{"5":-100},"logprobs":true,"top_logprobs":2,"stream":true,"stream_options":{"include_usage":true},"n":2,"presence_penalty":0.5,"frequency_penalty":-0.5,"parallel_tool_calls":false})";
  const std::string completion =
      R"({"prompt":["a",[1,2,3]],"max_tokens":3,"logprobs":2,"stop":"x","repeat_penalty":1.1,"echo":false})";
  const std::string even("\0\0", 2);
  const std::string odd("\1\5", 2);
  for (
      const std::string& one :
      {body, completion, std::string(R"({"prompt":[[1],[2]]})"),
       std::string(R"({"prompt":[1,1000]})"),
       std::string(
           R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}})"),
       std::string(
           R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_object"},"chat_template_kwargs":{"enable_thinking":false,"x":1}})"),
       std::string(
           R"({"messages":[{"role":"user","content":"a"}],"tools":[],"tool_choice":{"type":"function","function":{"name":"f"}},"max_completion_tokens":1})"),
       std::string(
           R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]})"),
       std::string(R"({"messages":[]})"), std::string("[]"), std::string(R"("text")"),
       std::string(R"({"n":1e9,"prompt":""})")}) {
    seeds->push_back(even + one);
  }
  const auto post = [](const std::string& content) {
    return "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
           "application/json\r\nContent-Length: " +
           std::to_string(content.size()) + "\r\n\r\n" + content;
  };
  seeds->push_back(odd + post(body));
  seeds->push_back(odd + post(completion) + post("{}") + "GET / HTTP/1.0\r\n\r\n");
  seeds->push_back(odd +
                   "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: "
                   "100-continue\r\n\r\n5\r\n{\"a\":\r\n2;x=y\r\n1}\r\n0\r\nT: v\r\n\r\n");
  for (const char* path : {"/v1/models", "/v1/models/x", "/health", "/metrics", "/", "/x",
                           "/v1/chat/completions", "/v1/completions", "/v1/embeddings"}) {
    for (const char* method : {"GET", "POST", "HEAD", "OPTIONS"}) {
      for (const char* headers :
           {"Host: localhost:8080\r\nAuthorization: Bearer secret\r\nOrigin: "
            "http://localhost:8080\r\n",
            "Host: 127.0.0.1\r\nAuthorization: Bearer k\r\nOrigin: https://a.example\r\n"
            "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: X-A\r\n",
            "Host: 127.evil.example\r\nOrigin: null\r\nAuthorization: Bearer secre\r\n"}) {
        seeds->push_back(odd + method + " " + path + " HTTP/1.1\r\n" + headers + "\r\n");
      }
    }
  }
  seeds->push_back(odd + "GET / HTTP/1.1\nHost: a\n\n");
  seeds->push_back(odd + "GET / HTTP/1.1\r\nA: " + std::string(3000, 'b') + "\r\n\r\n");
  seeds->push_back(odd + "POST / HTTP/1.1\r\nContent-Length: 20000\r\n\r\n");
  seeds->push_back(odd + "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello");
  seeds->push_back(odd + "nonsense\r\n\r\n");
  seeds->push_back(odd + "HEAD /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n");
}

}  // namespace oriel_internal::fuzz::fuzz_server
