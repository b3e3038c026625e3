#include "serve/llama_cpp/adapters.h"

#include <cstdlib>

#include "described.h"
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

}  // namespace cli
