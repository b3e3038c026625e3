#include "bundle/checks.h"
#include "support/distances.h"
#include "support/encoding.h"

namespace oriel_internal::bundle {
namespace {

using nlohmann::json;

Options windowOptions(const Device& device, const json& run) {
  Options options = device.options();
  options.set("sinks", run["sinks"].get<uint32_t>());
  options.window_tokens = run["window"];
  options.set("prefill_batch", run["chunk"].get<uint32_t>());
  return options;
}

/// The run's first position is arbitrary: only distances count.
void checkRun(const Device& device, const json& file, const json& run, uint64_t first_position,
              CheckList* list) {
  const Options options = windowOptions(device, run);
  Loaded loaded = open(device.model(file["model"]), options);
  if (first_position != 0) {
    loaded.session.reset();
    SessionOptions session_options;
    session_options.set("first_position", first_position);
    oriel_session* session = nullptr;
    require(oriel_session_create(loaded.model.get(), &session_options, &session), "creating");
    loaded.session.reset(session);
  }
  const auto rows = evaluate(loaded, file["ids"]);
  double worst = 0;
  for (const json& at : run["logits"]) {
    const auto want = test::base64As<float>(at["logits_f32_b64"]);
    worst = test::worse(worst, test::relativeL2(rows.at(at["token"]), want));
  }
  list->atMost(worst, 2e-3, "relative L2 against float64");
}

/// Rounding is part of the format: two devices may round a value near a boundary differently, but on average they must
/// agree far better than the format agrees with f16.
void checkFormats(const Device& device, const json& file, const char* formats, CheckList* list) {
  Options options = windowOptions(device, file["runs"][0]);
  options.set("kv", formats);
  const auto here = evaluate(open(device.model(file["model"]), options), file["ids"]);
  options.device = "cpu";
  const auto on_cpu = evaluate(open(device.model(file["model"]), options), file["ids"]);
  list->atMost(test::meanDivergence(on_cpu, here), 1e-4, "nats from the CPU");
}

}  // namespace

void checkStreaming(const Device& device, CheckList* list) {
  const json file = test::readJson(device.data + "/streaming/llama-mqa.json");
  const std::string group = "streaming";
  for (const json& run : file["runs"]) {
    const std::string name = "sinks " + run["sinks"].dump() + ", window " + run["window"].dump() +
                             ", chunk " + run["chunk"].dump();
    list->run(group, name, [&] { checkRun(device, file, run, 0, list); });
    list->run(group, name + ", from position 2^40",
              [&] { checkRun(device, file, run, uint64_t{1} << 40, list); });
  }
  if (device.option == "cpu") {
    return;  // it would be compared with itself
  }
  for (const char* formats : {"k8v8", "k8v4", "k4v4"}) {
    list->run(group, formats, [&] { checkFormats(device, file, formats, list); });
  }
}

}  // namespace oriel_internal::bundle
