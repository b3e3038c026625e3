#include "serve/model_routes.h"

#include "serve/api_error.h"
#include "serve/page.h"
#include "serve/routes.h"
#include "serve/service.h"

namespace cli {
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
