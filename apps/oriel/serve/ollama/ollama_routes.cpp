#include "serve/ollama/ollama_routes.h"

#include <sstream>
#include <string>

#include "serve/embeddings.h"
#include "serve/ollama/ollama_request.h"
#include "serve/ollama/ollama_writer.h"
#include "serve/request_fields.h"
#include "serve/service.h"

namespace cli {
namespace {

/// Ollama's version whose routes these are: clients ask for a least one.
constexpr char kInterfaceVersion[] = "0.12.6";

constexpr ReplyProtocol kChat = {readOllamaChat, writeOllamaChat};
constexpr ReplyProtocol kGenerate = {readOllamaGenerate, writeOllamaGenerate};

void answer(Service* service, const ReplyProtocol& protocol, OllamaForm form, Exchange* exchange) {
  ReplyRequest request = service->readBody(
      exchange->request(), [&](const Json& body) { return protocol.read(body, service->facts()); });
  if (request.messages.empty() && request.prompts.empty()) {
    exchange->send(200, kJsonType, dumped(ollamaLoaded(service->modelName(), form)));
    return;
  }
  service->reply(std::move(request), protocol, exchange);
}

/// "8.5M"
std::string parameterText(double count) {
  return count >= 1e9 ? formatted("%.1fB", count / 1e9) : formatted("%.1fM", count / 1e6);
}

/// The type that most tensors have. `types`: "Q8_0 x 43, F32 x 13".
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
  details["family"] = info["architecture"];
  details["families"] = Json::array({info["architecture"]});
  details["parameter_size"] = parameterText(static_cast<double>(numberIn(info, "parameters")));
  details["quantization_level"] = commonType(textIn(info, "tensor_types"));
  return details;
}

Json tagOf(const Service& service) {
  const Json& info = service.model().info();
  Json tag;
  tag["name"] = service.modelName();
  tag["model"] = service.modelName();
  tag["modified_at"] = ollamaTime(service.startedAt());
  tag["size"] = info["file_bytes"];
  tag["digest"] = "";
  tag["details"] = detailsOf(info);
  return tag;
}

void send(const Json& json, Exchange* exchange) { exchange->send(200, kJsonType, dumped(json)); }

std::vector<std::vector<float>> embed(Service* service, const char* field, Exchange* exchange,
                                      uint64_t* tokens) {
  const std::vector<RawPrompt> inputs =
      service->readBody(exchange->request(), [&](const Json& body) -> std::vector<RawPrompt> {
        const Fields fields(body, "");
        checkModelField(fields);
        const Json* const given = fields.find(field);
        if (given == nullptr || *given == "" || *given == Json::array()) {
          return {};  // the client only wants the model to be there
        }
        return readEmbedInputs(fields, field, service->facts());
      });
  return inputs.empty() ? std::vector<std::vector<float>>()
                        : service->embed(inputs, *exchange, tokens);
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
  uint64_t tokens = 0;
  const auto vectors = embed(service, "input", exchange, &tokens);
  Json rest;
  rest["model"] = service->modelName();
  rest["total_duration"] =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  rest["load_duration"] = 0;
  rest["prompt_eval_count"] = tokens;
  sendVectors(R"({"embeddings":[)", vectors.size(),
              [&](size_t i) { return numbersText(vectors[i]); }, "]," + dumped(rest).substr(1),
              exchange);
}

void answerOllamaEmbeddings(Service* service, Exchange* exchange) {
  uint64_t tokens = 0;
  const auto vectors = embed(service, "prompt", exchange, &tokens);
  exchange->send(200, kJsonType,
                 R"({"embedding":)" + (vectors.empty() ? "[]" : numbersText(vectors[0])) + "}");
}

void answerOllamaTags(Service* service, Exchange* exchange) {
  send({{"models", Json::array({tagOf(*service)})}}, exchange);
}

void answerOllamaRunning(Service* service, Exchange* exchange) {
  Json tag = tagOf(*service);
  tag["expires_at"] = "9999-12-31T23:59:59Z";
  tag["size_vram"] = service->model().plan().total_bytes;
  tag["context_length"] = service->model().plan().window_tokens;
  send({{"models", Json::array({std::move(tag)})}}, exchange);
}

void answerOllamaShow(Service* service, Exchange* exchange) {
  service->readBody(exchange->request(), [](const Json& body) {
    checkModelField(Fields(body, ""));
    return 0;
  });
  const Json& info = service->model().info();
  const std::string architecture = textIn(info, "architecture");
  Json json;
  json["modelfile"] = "";
  json["parameters"] = "";
  json["template"] = "";
  json["details"] = detailsOf(info);
  Json& facts = json["model_info"];
  facts["general.architecture"] = architecture;
  facts["general.parameter_count"] = info["parameters"];
  facts[architecture + ".context_length"] = service->model().plan().window_tokens;
  facts[architecture + ".embedding_length"] = info["n_embd"];
  facts[architecture + ".block_count"] = info["n_layers"];
  json["capabilities"] = {"completion", "tools", "embedding"};
  json["modified_at"] = ollamaTime(service->startedAt());
  send(json, exchange);
}

void answerOllamaVersion(Service*, Exchange* exchange) {
  send({{"version", kInterfaceVersion}, {"oriel", oriel_version()}}, exchange);
}

}  // namespace cli
