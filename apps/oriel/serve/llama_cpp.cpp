#include "serve/protocols.h"

#include <cstdlib>
#include <mutex>
#include <utility>

#include <oriel/advanced.h>

#include "model_handle.h"
#include "output.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"
#include "serve/service.h"

namespace cli {
namespace {

Json adaptersOf(const LoadedModel& model) {
  Json described;
  (void)cli::described(&described, [&](char* text, size_t capacity, size_t* needed) {
    return oriel_model_describe(model.model.get(), text, capacity, needed);
  });
  return described["adapters"];
}

ReplyRequest readChoice(const Json& body, const ModelFacts&) {
  ReplyRequest request;
  request.form.adapters = readAdapters(body, "the body");
  return request;
}

}  // namespace

void answerAdapters(Service* service, Exchange* exchange) {
  ModelPool::Entry* const entry = service->pool()->find("");
  const auto lease = service->open(entry, *exchange);
  Json list = adaptersOf(*lease);
  const std::string chosen = service->adapters(entry);
  for (size_t id = 0; id < list.size(); ++id) {
    list[id]["id"] = id;
    if (chosen.empty()) {
      continue;
    }
    const std::string key = "," + std::to_string(id) + ":";
    const size_t at = ("," + chosen).find(key);
    list[id]["scale"] =
        at == std::string::npos ? 0.0 : std::strtod(chosen.c_str() + at + key.size() - 1, nullptr);
  }
  exchange->send(200, kJsonType, dumped(list));
}

void answerSetAdapters(Service* service, Exchange* exchange) {
  const auto asked = service->read(exchange->request(), readChoice);
  const auto lease = service->open(asked.model, *exchange);
  const std::string& chosen = asked.request.form.adapters;
  const size_t count = adaptersOf(*lease).size();
  for (size_t at = 0; at < chosen.size() && chosen != "none";) {
    if (std::strtoul(chosen.c_str() + at, nullptr, 10) >= count) {
      throw wrongField("id", "one of the " + std::to_string(count) + " adapters that are loaded");
    }
    at = std::min(chosen.find(',', at), chosen.size() - 1) + 1;
  }
  service->setAdapters(asked.model, chosen);
  exchange->send(200, kJsonType, R"({"success":true})");
}

namespace {

constexpr size_t kMostFiles = 256;
constexpr char kOnlyReads[] = "only_reads";

std::vector<OtherFile> readFiles(const Fields& fields) {
  std::vector<OtherFile> files;
  const Json* const list = fields.find("input_extra");
  if (list != nullptr && (!list->is_array() || list->size() > kMostFiles)) {
    throw wrongField("input_extra", "a list of files");
  }
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Fields file((*list)[i], "input_extra[" + std::to_string(i) + "]");
    files.push_back({file.text("filename").value_or("file"), file.text("text").value_or("")});
  }
  return files;
}

class InfillWriter : public ReplyWriter {
 public:
  explicit InfillWriter(const ReplyContext& context)
      : context_(context), only_reads_(context.request.echo.contains(kOnlyReads)) {}

  ReplySink sinkFor(uint32_t) override {
    return {[](const oriel_part&) { return true; },
            [this](const oriel_token_event& event) { return take(event); }};
  }
  void endChoice(const ReplyOutcome& outcome, bool) override;
  void end() override;
  void endWith(const ApiError& error) override { sendEvent(errorJson(error)); }

 private:
  bool take(const oriel_token_event& event) {
    const std::string text(event.text, event.text_bytes);
    if (only_reads_ || text.empty() || !context_.request.stream) {
      return true;
    }
    return sendEvent({{"index", 0}, {"content", text}, {"stop", false}});
  }
  bool sendEvent(const Json& event) {
    Exchange* const exchange = context_.exchange;
    return (exchange->begun() || exchange->beginStream(kEventStream)) &&
           exchange->write("data: " + dumped(event) + "\n\n");
  }

  const ReplyContext context_;
  const bool only_reads_;
  Json last_;
};

Json timingsOf(const ReplyOutcome& outcome, uint32_t tokens) {
  const auto perSecond = [](double count, double ms) { return ms > 0 ? count * 1000 / ms : 0; };
  const double read = outcome.result.prompt_tokens;
  const double read_ms = outcome.result.time_to_first_token_ms;
  const double rate = outcome.result.decode_tokens_per_s;
  const double written_ms = rate > 0 && tokens > 1 ? (tokens - 1) * 1000 / rate : 0;
  Json timings;
  timings["prompt_n"] = outcome.result.prompt_tokens;
  timings["prompt_ms"] = read_ms;
  timings["prompt_per_token_ms"] = read > 0 ? read_ms / read : 0;
  timings["prompt_per_second"] = perSecond(read, read_ms);
  timings["predicted_n"] = tokens;
  timings["predicted_ms"] = written_ms;
  timings["predicted_per_token_ms"] = tokens > 1 ? written_ms / (tokens - 1) : 0;
  timings["predicted_per_second"] = rate;
  return timings;
}

void InfillWriter::endChoice(const ReplyOutcome& outcome, bool) {
  const uint32_t tokens = only_reads_ ? 0 : outcome.result.tokens;
  last_["index"] = 0;
  last_["content"] = context_.request.stream || only_reads_ ? std::string() : outcome.parts.text;
  last_["stop"] = true;
  last_["model"] = context_.model_name;
  last_["tokens_predicted"] = tokens;
  last_["tokens_evaluated"] = outcome.prompt_tokens;
  last_["tokens_cached"] = outcome.cached_tokens;
  last_["truncated"] = outcome.evicted != 0;
  last_["stop_type"] = reachedLength(outcome)                          ? "limit"
                       : outcome.result.stop_reason == ORIEL_STOP_TEXT ? "word"
                                                                       : "eos";
  last_["timings"] = timingsOf(outcome, tokens);
  last_["oriel"] = extraOf(context_.request, outcome);
}

void InfillWriter::end() {
  if (!context_.request.stream) {
    context_.exchange->send(200, kJsonType, dumped(last_));
    return;
  }
  sendEvent(last_);
  context_.exchange->endStream();
}

}  // namespace

ReplyRequest readInfillRequest(const Json& body, const ModelFacts&) {
  const Fields fields(body, "");
  ReplyRequest request;
  request.is_chat = false;
  Gap gap;
  // The prompt is text typed since the prefix: it comes directly before the gap.
  gap.prefix = fields.text("input_prefix").value_or("") + fields.text("prompt").value_or("");
  gap.suffix = fields.text("input_suffix").value_or("");
  gap.others = readFiles(fields);
  request.prompts.emplace_back();
  request.prompts.back().gap = std::move(gap);
  request.stream = fields.boolean("stream").value_or(false);
  // only fills the cache with the prompt
  if (fields.whole("n_predict", -1, kMostReplyTokens) == 0) {
    request.max_tokens = 1;
    request.echo[kOnlyReads] = true;
  } else {
    request.max_tokens = readMostTokens(fields, "n_predict");
  }
  readSampling(fields, &request);
  readStop(fields, "stop", &request);
  return request;
}

std::unique_ptr<ReplyWriter> writeInfill(const ReplyContext& context) {
  return std::make_unique<InfillWriter>(context);
}

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
    list.push_back(jsonFrom(message.json));
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
