#include "serve/routes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/protocols.h"
#include "serve/request_fields.h"
#include "serve/service.h"

namespace cli {
namespace {

constexpr ReplyProtocol kChat = {readChatRequest, writeChat};
constexpr ReplyProtocol kCompletions = {readCompletionRequest, writeChat};
constexpr ReplyProtocol kResponses = {readResponsesRequest, writeResponses};
constexpr ReplyProtocol kInfill = {readInfillRequest, writeInfill};
constexpr ReplyProtocol kMessages = {readMessagesRequest, writeMessages};

template <const ReplyProtocol& kProtocol>
void answerReply(Service* service, Exchange* exchange) {
  service->replyTo(kProtocol, exchange);
}

void answerHealth(Service* service, Exchange* exchange) { service->health(exchange); }
void answerMetrics(Service* service, Exchange* exchange) { service->metrics(exchange); }

struct Handler {
  Route::Answer answer;
  void (*run)(Service* service, Exchange* exchange);
};

constexpr Handler kHandlers[] = {
    {Route::Answer::kChat, answerReply<kChat>},
    {Route::Answer::kCompletions, answerReply<kCompletions>},
    {Route::Answer::kResponses, answerReply<kResponses>},
    {Route::Answer::kEmbeddings, answerEmbeddings},
    {Route::Answer::kRerank, answerRerank},
    {Route::Answer::kModels, answerModels},
    {Route::Answer::kModel, answerModel},
    {Route::Answer::kMessages, answerReply<kMessages>},
    {Route::Answer::kCountTokens, answerCountTokens},
    {Route::Answer::kOllamaChat, answerOllamaChat},
    {Route::Answer::kOllamaGenerate, answerOllamaGenerate},
    {Route::Answer::kOllamaEmbed, answerOllamaEmbed},
    {Route::Answer::kOllamaEmbeddings, answerOllamaEmbeddings},
    {Route::Answer::kOllamaTags, answerOllamaTags},
    {Route::Answer::kOllamaRunning, answerOllamaRunning},
    {Route::Answer::kOllamaShow, answerOllamaShow},
    {Route::Answer::kOllamaVersion, answerOllamaVersion},
    {Route::Answer::kInfill, answerReply<kInfill>},
    {Route::Answer::kTokenize, answerTokenize},
    {Route::Answer::kDetokenize, answerDetokenize},
    {Route::Answer::kApplyTemplate, answerApplyTemplate},
    {Route::Answer::kProps, answerProps},
    {Route::Answer::kAdapters, answerAdapters},
    {Route::Answer::kSetAdapters, answerSetAdapters},
    {Route::Answer::kHealth, answerHealth},
    {Route::Answer::kMetrics, answerMetrics},
    {Route::Answer::kPage, answerPage},
};

}  // namespace

void answerRoute(Route::Answer answer, Service* service, Exchange* exchange) {
  for (const Handler& handler : kHandlers) {
    if (handler.answer == answer) {
      handler.run(service, exchange);
    }
  }
}

namespace {

struct EmbeddingRequest {
  std::vector<RawPrompt> inputs;
  bool base64 = false;
  size_t dimensions = 0;  ///< 0: all
};

/// The first values, scaled to length 1 again.
void shorten(size_t dimensions, std::vector<float>* vector) {
  if (dimensions == 0 || dimensions >= vector->size()) {
    return;
  }
  vector->resize(dimensions);
  double squares = 0;
  for (const float value : *vector) {
    squares += double{value} * double{value};
  }
  const double factor = squares > 0 ? 1 / std::sqrt(squares) : 1;
  for (float& value : *vector) {
    value = static_cast<float>(value * factor);
  }
}

EmbeddingRequest readEmbeddingRequest(const Json& body, const ModelFacts& facts) {
  const Fields fields(body, "");
  EmbeddingRequest request;
  request.inputs = readEmbedInputs(fields, "input", facts);
  request.dimensions = static_cast<size_t>(fields.whole("dimensions", 1, facts.n_embd).value_or(0));
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    throw wrongField("encoding_format", "\"float\" or \"base64\"");
  }
  request.base64 = format == "base64";
  return request;
}

struct RerankRequest {
  std::string query;
  std::vector<RawPrompt> documents;
  size_t most = SIZE_MAX;  ///< results
  bool returns_documents = false;
};

RerankRequest readRerankRequest(const Json& body, const ModelFacts&) {
  constexpr size_t kMostDocuments = 2048;
  const Fields fields(body, "");
  RerankRequest request;
  const Json& query = fields.need("query", "a text");
  const Json& documents = fields.need("documents", "a list of texts");
  if (!query.is_string()) {
    throw wrongField("query", "a text");
  }
  request.query = query.get<std::string>();
  if (!documents.is_array() || documents.empty() || documents.size() > kMostDocuments) {
    throw wrongField("documents", "a list of 1 to " + std::to_string(kMostDocuments) + " texts");
  }
  for (const Json& item : documents) {
    const Json* const text = item.is_object() && item.contains("text") ? &item["text"] : &item;
    if (!text->is_string()) {
      throw wrongField("documents", "a list of texts");
    }
    request.documents.emplace_back().text = text->get<std::string>();
  }
  request.most = static_cast<size_t>(
      fields.whole("top_n", 1, INT32_MAX).value_or(static_cast<int64_t>(documents.size())));
  request.returns_documents = fields.boolean("return_documents").value_or(false);
  return request;
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

}  // namespace

std::string numbersText(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) {
    list.push_back(numberOf(value));
  }
  return dumped(list);
}

void answerEmbeddings(Service* service, Exchange* exchange) {
  const auto [model, request] = service->read(exchange->request(), readEmbeddingRequest);
  uint64_t tokens = 0;
  std::vector<std::vector<float>> vectors =
      service->embed({model, request.inputs}, *exchange, &tokens);
  for (std::vector<float>& vector : vectors) {
    shorten(request.dimensions, &vector);
  }
  Json rest;
  rest["model"] = service->pool()->card(model).name;
  rest["usage"]["prompt_tokens"] = tokens;
  rest["usage"]["total_tokens"] = tokens;
  const auto write = [&, base64 = request.base64](size_t i) {
    const std::string vector =
        base64 ? "\"" + base64Of(vectors[i]) + "\"" : numbersText(vectors[i]);
    return R"({"object":"embedding","index":)" + std::to_string(i) + R"(,"embedding":)" + vector +
           "}";
  };
  sendVectors(R"({"object":"list","data":[)", vectors.size(), write, "]," + dumped(rest).substr(1),
              exchange);
}

void answerRerank(Service* service, Exchange* exchange) {
  const auto [model, request] = service->read(exchange->request(), readRerankRequest);
  uint64_t tokens = 0;
  const std::vector<std::vector<float>> scores =
      service->embed({model, request.documents}, *exchange, &tokens, &request.query);
  std::vector<double> keys(scores.size());
  std::transform(scores.begin(), scores.end(), keys.begin(),
                 [](const auto& row) { return -row[0]; });
  std::vector<size_t> order = orderOf(keys);
  order.resize(std::min(order.size(), request.most));
  Json json;
  json["object"] = "list";
  json["model"] = service->pool()->card(model).name;
  json["usage"]["prompt_tokens"] = tokens;
  json["usage"]["total_tokens"] = tokens;
  json["results"] = Json::array();
  for (const size_t i : order) {
    Json one;
    one["index"] = i;
    one["relevance_score"] = numberOf(scores[i][0]);
    if (request.returns_documents) {
      one["document"]["text"] = request.documents[i].text;
    }
    json["results"].push_back(std::move(one));
  }
  exchange->send(200, "application/json", dumped(json));
}

namespace {

/// OpenAI's fields, and the context length under the names of vLLM, OpenRouter and llama.cpp.
Json modelJson(const ModelCard& model, int64_t created) {
  Json json;
  json["id"] = model.name;
  json["object"] = "model";
  json["created"] = created;
  json["owned_by"] = "oriel";
  json["meta"]["size"] = model.file_bytes;
  json["architecture"]["input_modalities"] = {"text"};
  if (model.sees) {
    json["architecture"]["input_modalities"].push_back("image");
  }
  json["oriel"]["loaded"] = model.loaded;
  if (const Json& info = model.info; !info.is_null()) {
    const Json window =
        model.window_tokens != 0 ? Json(model.window_tokens) : info["context_train"];
    json["max_model_len"] = window;
    json["context_length"] = window;
    json["meta"]["n_vocab"] = info["n_vocab"];
    json["meta"]["n_ctx"] = window;
    json["meta"]["n_ctx_train"] = info["context_train"];
    json["meta"]["n_embd"] = info["n_embd"];
    json["meta"]["n_params"] = info["parameters"];
    json["oriel"]["window_tokens"] = window;
    json["oriel"]["sessions"] = model.sessions;
    json["oriel"]["architecture"] = info["architecture"];
    json["oriel"]["n_embd"] = info["n_embd"];
  }
  return json;
}

}  // namespace

void answerModels(Service* service, Exchange* exchange) {
  Json json;
  json["object"] = "list";
  json["data"] = Json::array();
  for (const ModelCard& model : service->pool()->cards()) {
    json["data"].push_back(modelJson(model, service->startedAt()));
  }
  exchange->send(200, kJsonType, dumped(json));
}

void answerModel(Service* service, Exchange* exchange) {
  const std::string name = modelNameOf(exchange->request());
  ModelPool* const pool = service->pool();
  const ModelCard model = pool->card(pool->find(name));
  if (!pool->servesAll() && name != model.name) {
    throw ModelPool::unknown(name);
  }
  exchange->send(200, kJsonType, dumped(modelJson(model, service->startedAt())));
}

void answerPage(Service*, Exchange* exchange) {
  exchange->addHeader("Content-Security-Policy",
                      "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
                      "script-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'");
  exchange->addHeader("X-Content-Type-Options", "nosniff");
  exchange->addHeader("Cache-Control", "no-store");
  exchange->send(200, "text/html; charset=utf-8", chatPage());
}

}  // namespace cli
