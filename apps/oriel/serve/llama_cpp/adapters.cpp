#include "serve/llama_cpp/adapters.h"

#include "described.h"
#include "serve/api_error.h"
#include "serve/service.h"

namespace cli {
namespace {

Json adaptersOf(const LoadedModel& model) {
  Json described;
  (void)cli::described(&described, [&](char* text, size_t capacity, size_t* needed) {
    return oriel_model_describe(model.model.get(), text, capacity, needed);
  });
  return described.value("adapters", Json::array());
}

/// The scale that a list as readAdapters() writes it gives an adapter.
double scaleIn(const std::string& chosen, size_t id) {
  const std::string key = std::to_string(id) + ":";
  for (size_t at = 0; at < chosen.size();) {
    const size_t end = std::min(chosen.find(',', at), chosen.size());
    if (chosen.compare(at, key.size(), key) == 0) {
      return std::strtod(chosen.c_str() + at + key.size(), nullptr);
    }
    at = end + 1;
  }
  return 0;
}

}  // namespace

std::string readAdapters(const Json& list, const std::string& name) {
  if (!list.is_array()) {
    throw wrongField(name, R"(a list as [{"id": 0, "scale": 0.5}])");
  }
  std::string chosen;
  for (const Json& item : list) {
    const Fields fields(item, name);
    const Json& id = fields.need("id", "the number of an adapter");
    const std::optional<int64_t> number = wholeOf(id);
    if (!number || *number < 0) {
      throw wrongField(fields.nameOf("id"), "the number of an adapter, from 0 on");
    }
    const double scale = fields.number("scale", -1e6, 1e6).value_or(1);
    chosen += (chosen.empty() ? "" : ",") + std::to_string(*number) + ":" + Json(scale).dump();
  }
  return chosen.empty() ? "none" : chosen;
}

void answerAdapters(Service* service, Exchange* exchange) {
  ModelPool::Entry* const entry = service->pool()->find("");
  const auto lease = service->open(entry, *exchange);
  const std::string chosen = service->adapters(entry);
  Json list = Json::array();
  for (const Json& adapter : adaptersOf(*lease)) {
    const size_t id = list.size();
    list.push_back({{"id", id},
                    {"path", adapter["path"]},
                    {"name", adapter["name"]},
                    {"scale", chosen.empty() ? adapter["scale"] : Json(scaleIn(chosen, id))}});
  }
  exchange->send(200, kJsonType, dumped(list));
}

void answerSetAdapters(Service* service, Exchange* exchange) {
  Json list;
  const auto asked =
      service->read(exchange->request(), [&](const Json& body, const ModelFacts&) -> std::string {
        list = body;
        return readAdapters(body, "the body");
      });
  const auto lease = service->open(asked.model, *exchange);
  const size_t count = adaptersOf(*lease).size();
  for (const Json& item : list) {
    if (item["id"].get<size_t>() >= count) {
      throw wrongField("id", "one of the " + std::to_string(count) + " adapters that are loaded");
    }
  }
  service->setAdapters(asked.model, asked.request);
  exchange->send(200, kJsonType, dumped(Json{{"success", true}}));
}

}  // namespace cli
