#include "serve/embeddings.h"

#include <cstring>
#include <string>

#include "serve/api_error.h"
#include "serve/request_fields.h"
#include "serve/service.h"

namespace cli {
namespace {

struct EmbeddingRequest {
  std::vector<RawPrompt> inputs;
  bool base64 = false;
};

EmbeddingRequest readEmbeddingRequest(const Json& body, const ModelFacts& facts) {
  const Fields fields(body, "");
  EmbeddingRequest request;
  request.inputs = readEmbedInputs(fields, "input", facts);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    throw wrongField("encoding_format", "\"float\" or \"base64\"");
  }
  request.base64 = format == "base64";
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
  const std::vector<std::vector<float>> vectors =
      service->embed({model, request.inputs}, *exchange, &tokens);
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

void answerRerank(Service*, Exchange*) {
  throw ApiError{400,
                 "this model has no head that ranks texts: compare vectors of /v1/embeddings, or "
                 "serve a reranker where one runs",
                 "", "unsupported_model", 0};
}

}  // namespace cli
