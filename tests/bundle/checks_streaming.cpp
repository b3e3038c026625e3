#include "bundle/checks.h"
#include "support/distances.h"
#include "support/encoding.h"

namespace oriel_internal::bundle {
namespace {

using nlohmann::json;

Options windowOptions(const Device& device, const json& run) {
  Options options = device.options();
  const uint32_t sinks = run["sinks"];
  options.sink_tokens = sinks == 0 ? UINT32_MAX : sinks;
  options.window_tokens = run["window"];
  options.chunk_tokens = run["chunk"];
  return options;
}

/// The run's first position may be anything: only distances count.
void checkRun(const Device& device, const json& file, const json& run, uint64_t first_position,
              CheckList* list) {
  const Options options = windowOptions(device, run);
  Loaded loaded = open(device.model(file["model"]), options);
  if (first_position != 0) {
    loaded.session.reset();
    SessionOptions session_options;
    session_options.first_position = first_position;
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

/// Rounding is part of the format: two devices may round a value that lies between two codes differently,
/// but on average they must agree far better than the format with f16.
void checkFormats(const Device& device, const json& file, oriel_kv_format k, oriel_kv_format v,
                  CheckList* list) {
  Options options = windowOptions(device, file["runs"][0]);
  setFormats(&options, k, v);
  const auto here = evaluate(open(device.model(file["model"]), options), file["ids"]);
  options.device = "cpu";
  options.device_number = 0;
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
  if (device.kind == "cpu") {
    return;  // it would be compared with itself
  }
  const auto run_formats = [&](const char* name, oriel_kv_format k, oriel_kv_format v) {
    list->run(group, name, [&] { checkFormats(device, file, k, v, list); });
  };
  run_formats("k8v8", ORIEL_KV_INT8, ORIEL_KV_INT8);
  run_formats("k8v4", ORIEL_KV_INT8, ORIEL_KV_INT4);
  run_formats("k4v4", ORIEL_KV_INT4, ORIEL_KV_INT4);
}

}  // namespace oriel_internal::bundle
