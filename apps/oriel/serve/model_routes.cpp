#include "serve/model_routes.h"

#include "serve/api_error.h"
#include "serve/page.h"
#include "serve/routes.h"
#include "serve/service.h"

namespace cli {
namespace {

/// OpenAI's fields, and the context's length as vLLM, OpenRouter and llama.cpp name it.
Json modelJson(const Service& service) {
  const Json& info = service.model().info();
  const uint32_t window = service.model().plan().window_tokens;
  Json json;
  json["id"] = service.modelName();
  json["object"] = "model";
  json["created"] = service.startedAt();
  json["owned_by"] = "oriel";
  json["max_model_len"] = window;
  json["context_length"] = window;
  json["meta"]["n_vocab"] = info["n_vocab"];
  json["meta"]["n_ctx"] = window;
  json["meta"]["n_ctx_train"] = info["context_train"];
  json["meta"]["n_embd"] = info["n_embd"];
  json["meta"]["n_params"] = info["parameters"];
  json["meta"]["size"] = info["file_bytes"];
  json["oriel"]["window_tokens"] = window;
  json["oriel"]["sessions"] = service.sessions();
  json["oriel"]["architecture"] = info["architecture"];
  json["oriel"]["n_embd"] = info["n_embd"];
  return json;
}

}  // namespace

void answerModels(Service* service, Exchange* exchange) {
  Json json;
  json["object"] = "list";
  json["data"] = Json::array({modelJson(*service)});
  exchange->send(200, kJsonType, dumped(json));
}

void answerModel(Service* service, Exchange* exchange) {
  const std::string name = modelNameOf(exchange->request());
  if (name != service->modelName()) {
    throw ApiError{404, "there is no model " + name + ": GET /v1/models says which there is",
                   "model", "model_not_found", 0};
  }
  exchange->send(200, kJsonType, dumped(modelJson(*service)));
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
