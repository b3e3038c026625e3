#include "serve/llama_cpp/text_routes.h"

#include <oriel/advanced.h>

#include <mutex>

#include "failure.h"
#include "serve/anthropic/messages_request.h"
#include "serve/api_error.h"
#include "serve/openai/chat_request.h"
#include "serve/request_fields.h"
#include "serve/service.h"

namespace cli {
namespace {

/// A token's text, or its bytes if they are not valid text.
Json pieceOf(const std::string& text) {
  try {
    (void)Json(text).dump();
    return text;
  } catch (const Json::exception&) {
    Json bytes = Json::array();
    for (const char c : text) {
      bytes.push_back(static_cast<unsigned char>(c));
    }
    return bytes;
  }
}

struct TokenizeRequest {
  std::string content;
  uint32_t flags = 0;
  bool with_pieces = false;
};

TokenizeRequest readTokenize(const Json& body, const ModelFacts&) {
  const Fields fields(body, "");
  TokenizeRequest request;
  const Json& content = fields.need("content", "a text");
  if (!content.is_string()) {
    throw wrongField("content", "a text");
  }
  request.content = content.get<std::string>();
  request.flags = (fields.boolean("add_special").value_or(false) ? ORIEL_TEXT_BOS : 0) |
                  (fields.boolean("parse_special").value_or(true) ? ORIEL_TEXT_SPECIAL : 0);
  request.with_pieces = fields.boolean("with_pieces").value_or(false);
  return request;
}

Json messagesOf(const ReplyRequest& request) {
  Json list = Json::array();
  for (const ChatMessage& message : request.messages) {
    if (message.has_pictures) {
      throw ApiError{400,
                     "a message has pictures, whose tokens are counted when a reply reads them: "
                     "send text, or ask for a reply",
                     "messages", "unsupported_content", 0};
    }
    list.push_back(Json::parse(message.json));
  }
  return list;
}

/// Template errors are the request's fault.
template <typename Work>
auto rendered(const Work& work) {
  try {
    return work();
  } catch (const Failure& failure) {
    throw ApiError{400, failure.message, "messages", "", 0};
  }
}

}  // namespace

void answerTokenize(Service* service, Exchange* exchange) {
  const auto [named, request] = service->read(exchange->request(), readTokenize);
  const auto lease = service->open(named, *exchange);
  const Model& model = lease->model;
  Json tokens = Json::array();
  for (const int32_t id : model.tokenize(request.content, request.flags)) {
    if (request.with_pieces) {
      tokens.push_back(
          {{"id", id}, {"piece", pieceOf(model.detokenize({id}, ORIEL_TEXT_SPECIAL))}});
    } else {
      tokens.push_back(id);
    }
  }
  exchange->send(200, kJsonType, dumped(Json{{"tokens", std::move(tokens)}}));
}

void answerDetokenize(Service* service, Exchange* exchange) {
  const auto [model, ids] =
      service->read(exchange->request(), [](const Json& body, const ModelFacts& facts) {
        const Fields fields(body, "");
        const Json& list = fields.need("tokens", "a list of token ids");
        if (!list.is_array()) {
          throw wrongField("tokens", "a list of token ids");
        }
        return readIds(list, "tokens", facts.n_vocab);
      });
  const std::string text =
      service->open(model, *exchange)->model.detokenize(ids, ORIEL_TEXT_SPECIAL);
  exchange->send(200, kJsonType, dumped(Json{{"content", text}}));
}

void answerApplyTemplate(Service* service, Exchange* exchange) {
  const auto asked = service->read(exchange->request(), readChatRequest);
  const auto lease = service->open(asked.model, *exchange);
  const Settings session = sessionSettings(lease->options.common.session, asked.request.form);
  const std::string text = rendered(
      [&] { return lease->model.render(session, messagesOf(asked.request), ORIEL_RENDER_PROMPT); });
  exchange->send(200, kJsonType, dumped(Json{{"prompt", text}}));
}

void answerProps(Service* service, Exchange* exchange) {
  const ModelCard model = service->pool()->card(service->pool()->find(""));
  Json json;
  json["default_generation_settings"]["n_ctx"] = model.window_tokens;
  json["total_slots"] = model.sessions;
  json["model_alias"] = model.name;
  json["model_path"] = model.name;
  json["modalities"] = {{"vision", model.sees}, {"audio", false}};
  json["build_info"] = std::string("oriel ") + oriel_version();
  exchange->send(200, kJsonType, dumped(json));
}

void answerCountTokens(Service* service, Exchange* exchange) {
  const auto asked = service->read(exchange->request(), readCountRequest);
  const auto lease = service->open(asked.model, *exchange);
  const Settings session = sessionSettings(lease->options.common.session, asked.request.form);
  const size_t count = rendered([&] {
    return lease->model
        .renderedIds(session, messagesOf(asked.request), ORIEL_TEXT_BOS | ORIEL_RENDER_PROMPT)
        .size();
  });
  exchange->send(200, kJsonType, dumped(Json{{"input_tokens", count}}));
}

}  // namespace cli
