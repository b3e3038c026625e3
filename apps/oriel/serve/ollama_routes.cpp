#include "serve/protocols.h"

#include <sstream>
#include <string>

#include "serve/request_fields.h"
#include "serve/routes.h"
#include "serve/service.h"

namespace cli {
namespace {

/// The emulated Ollama version; clients require a minimum.
constexpr char kInterfaceVersion[] = "0.12.6";

constexpr ReplyProtocol kChat = {readOllamaChat, writeOllamaChat, false};
constexpr ReplyProtocol kGenerate = {readOllamaGenerate, writeOllamaGenerate, false};

void answer(Service* service, const ReplyProtocol& protocol, OllamaForm form, Exchange* exchange) {
  Asked<ReplyRequest> asked = service->read(exchange->request(), protocol.read);
  if (asked.request.messages.empty() && asked.request.prompts.empty()) {
    const auto model = service->open(asked.model, *exchange);
    exchange->send(200, kJsonType, dumped(ollamaLoaded(model->name, form)));
    return;
  }
  service->reply(std::move(asked), protocol, exchange);
}

/// "8.5M"
std::string parameterText(double count) {
  return count >= 1e9 ? formatted("%.1fB", count / 1e9) : formatted("%.1fM", count / 1e6);
}

/// The type of most tensors. `types`: "Q8_0 x 43, F32 x 13".
std::string commonType(const std::string& types) {
  std::istringstream words(types);
  std::string name;
  std::string best;
  uint64_t most = 0;
  uint64_t count = 0;
  char sign = 0;
  char comma = 0;
  while (words >> name >> sign >> count) {
    if (count > most) {
      most = count;
      best = name;
    }
    words >> comma;
  }
  return best;
}

Json detailsOf(const Json& info) {
  Json details;
  details["parent_model"] = "";
  details["format"] = "gguf";
  details["family"] = textIn(info, "architecture");
  details["families"] = Json::array({textIn(info, "architecture")});
  details["parameter_size"] = parameterText(static_cast<double>(numberIn(info, "parameters")));
  details["quantization_level"] = commonType(textIn(info, "tensor_types"));
  return details;
}

Json tagOf(const ModelCard& model, int64_t time) {
  Json tag;
  tag["name"] = model.name;
  tag["model"] = model.name;
  tag["modified_at"] = ollamaTime(time);
  tag["size"] = model.file_bytes;
  tag["digest"] = "";
  tag["details"] = model.info.is_null() ? Json::object() : detailsOf(model.info);
  return tag;
}

void send(const Json& json, Exchange* exchange) { exchange->send(200, kJsonType, dumped(json)); }

struct Vectors {
  std::string model_name;
  std::vector<std::vector<float>> vectors;
  uint64_t tokens = 0;
};

Vectors embed(Service* service, const char* field, Exchange* exchange) {
  const Asked<std::vector<RawPrompt>> asked =
      service->read(exchange->request(),
                    [&](const Json& body, const ModelFacts& facts) -> std::vector<RawPrompt> {
                      const Fields fields(body, "");
                      const Json* const given = fields.find(field);
                      if (given == nullptr || *given == "" || *given == Json::array()) {
                        return {};  // a request to load the model
                      }
                      return readEmbedInputs(fields, field, facts);
                    });
  Vectors result;
  result.model_name = service->open(asked.model, *exchange)->name;
  if (!asked.request.empty()) {
    result.vectors = service->embed(asked, *exchange, &result.tokens);
  }
  return result;
}

}  // namespace

void answerOllamaChat(Service* service, Exchange* exchange) {
  answer(service, kChat, OllamaForm::kChat, exchange);
}

void answerOllamaGenerate(Service* service, Exchange* exchange) {
  answer(service, kGenerate, OllamaForm::kGenerate, exchange);
}

void answerOllamaEmbed(Service* service, Exchange* exchange) {
  const Clock::time_point start = Clock::now();
  const auto [model_name, vectors, tokens] = embed(service, "input", exchange);
  Json rest;
  rest["model"] = model_name;
  rest["total_duration"] =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  rest["load_duration"] = 0;
  rest["prompt_eval_count"] = tokens;
  sendVectors(R"({"embeddings":[)", vectors.size(),
              [&vectors = vectors](size_t i) { return numbersText(vectors[i]); },
              "]," + dumped(rest).substr(1), exchange);
}

void answerOllamaEmbeddings(Service* service, Exchange* exchange) {
  const auto vectors = embed(service, "prompt", exchange).vectors;
  exchange->send(200, kJsonType,
                 R"({"embedding":)" + (vectors.empty() ? "[]" : numbersText(vectors[0])) + "}");
}

void answerOllamaTags(Service* service, Exchange* exchange) {
  Json tags = Json::array();
  for (const ModelCard& model : service->pool()->cards()) {
    tags.push_back(tagOf(model, service->startedAt()));
  }
  send({{"models", std::move(tags)}}, exchange);
}

void answerOllamaRunning(Service* service, Exchange* exchange) {
  Json tags = Json::array();
  for (const ModelCard& model : service->pool()->cards()) {
    if (model.loaded) {
      Json tag = tagOf(model, service->startedAt());
      tag["expires_at"] = "9999-12-31T23:59:59Z";
      tag["size_vram"] = model.memory_bytes;
      tag["context_length"] = model.window_tokens;
      tags.push_back(std::move(tag));
    }
  }
  send({{"models", std::move(tags)}}, exchange);
}

void answerOllamaShow(Service* service, Exchange* exchange) {
  const auto asked = service->read(exchange->request(), [](const Json& body, const ModelFacts&) {
    return Fields(body, "").text("name");  // name of the field in older clients
  });
  const ModelCard model =
      service->pool()->card(asked.request ? service->pool()->find(*asked.request) : asked.model);
  const Json& info = model.info;
  const std::string architecture = textIn(info, "architecture");
  Json json;
  json["modelfile"] = "";
  json["parameters"] = "";
  json["template"] = "";
  json["details"] = detailsOf(info);
  Json& facts = json["model_info"];
  facts["general.architecture"] = architecture;
  facts["general.parameter_count"] = info["parameters"];
  facts[architecture + ".context_length"] =
      model.window_tokens != 0 ? Json(model.window_tokens) : info["context_train"];
  facts[architecture + ".embedding_length"] = info["n_embd"];
  facts[architecture + ".block_count"] = info["n_layers"];
  json["capabilities"] = {"completion", "tools", "embedding"};
  if (model.sees) {
    json["capabilities"].push_back("vision");
  }
  json["modified_at"] = ollamaTime(service->startedAt());
  send(json, exchange);
}

void answerOllamaVersion(Service*, Exchange* exchange) {
  send({{"version", kInterfaceVersion}, {"oriel", oriel_version()}}, exchange);
}

}  // namespace cli
