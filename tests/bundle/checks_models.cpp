#include <cstring>
#include <stdexcept>

#include "bundle/checks.h"
#include "oriel/advanced.h"
#include "support/distances.h"
#include "support/golden.h"

namespace oriel_internal::bundle {
namespace {

using nlohmann::json;
using test::base64As;
using test::readJson;
using test::relativeL2;

void checkGolden(const Device& device, const test::GoldenModel& golden, CheckList* list) {
  const Loaded loaded = open(device.model(golden.name), device.options());
  const json file = readJson(device.data + "/logits.json")["models"][golden.name];
  double worst = 0;
  size_t compared = 0;
  for (const json& prompt : file["prompts"]) {
    require(oriel_session_reset(loaded.session.get()), "resetting");
    append(loaded, prompt["ids"]);
    const json& exact = prompt["exact"];
    worst =
        test::worse(worst, relativeL2(logits(loaded), base64As<float>(exact["logits_f32_b64"])));
    std::vector<int32_t> want = exact["greedy"];
    want.resize(std::min(want.size(), test::trustedSteps(exact, golden.tolerance)));
    if (!want.empty() && greedy(loaded, static_cast<uint32_t>(want.size())) != want) {
      list->end(false, "greedy tokens differ", {{"value", worst}, {"limit", golden.tolerance}});
      return;
    }
    compared += want.size();
  }
  if (compared == 0) {
    list->end(false, "no greedy token could be compared");
    return;
  }
  list->atMost(worst, golden.tolerance, "relative L2, greedy tokens equal");
}

void checkBundled(const json& c, const Loaded& loaded, CheckList* list) {
  require(oriel_session_reset(loaded.session.get()), "resetting");
  const std::string text = c["prompt"];
  require(
      oriel_session_append_text(loaded.session.get(), text.data(), text.size(), ORIEL_TEXT_SPECIAL),
      "appending");
  const std::vector<float> all = logits(loaded);
  std::vector<float> top;
  for (const int32_t id : c["top_ids"]) {
    top.push_back(all[static_cast<size_t>(id)]);
  }
  const double error = relativeL2(top, c["top_logits"].get<std::vector<double>>());
  const std::vector<int32_t> want = c["greedy_ids"];
  const std::vector<int32_t> got = greedy(loaded, static_cast<uint32_t>(want.size()));
  if (got != want) {
    list->end(false, "greedy text differs", {{"value", error}, {"greedy_ids", got}});
    return;
  }
  list->atMost(error, 2e-3, "relative L2, greedy text equal");
}

/// Tokens that sessions have read before they decode.
constexpr size_t kBatchPrompts[] = {5, 17, 40, 1};
constexpr uint32_t kBatchTokens = 8;

struct BatchMember {
  test::SessionPtr session;
  ReplyOptions options = test::greedyOptions(kBatchTokens);
  std::vector<int32_t> ids;
  std::vector<float> logits;
};

std::vector<BatchMember> readPrompts(const Loaded& loaded, const std::vector<int32_t>& ids) {
  std::vector<BatchMember> members(std::size(kBatchPrompts));
  for (size_t i = 0; i < members.size(); ++i) {
    oriel_session* session = nullptr;
    require(oriel_session_create(loaded.model.get(), nullptr, &session), "creating a session");
    members[i].session.reset(session);
    members[i].options.set("ignore_stop", true);
    require(oriel_session_append(session, ids.data(), kBatchPrompts[i], nullptr, nullptr),
            "appending");
  }
  return members;
}

void keepLogits(std::vector<BatchMember>* members) {
  for (BatchMember& member : *members) {
    const float* values = nullptr;
    size_t count = 0;
    require(oriel_session_logits(member.session.get(), &values, &count), "reading logits");
    member.logits.assign(values, values + count);
  }
}

// Sessions that decode together give exactly the same bits as alone: on a GPU a pipeline must give the same sums on any
// grid.
void checkBatch(const Device& device, const std::string& path, CheckList* list) {
  Options options = device.options();
  options.sessions = static_cast<uint32_t>(std::size(kBatchPrompts)) + 1;
  const Loaded loaded = open(path, options);
  const std::vector<int32_t> ids = test::someIds(kBatchPrompts[2], 200);
  std::vector<BatchMember> alone = readPrompts(loaded, ids);
  for (BatchMember& member : alone) {
    require(oriel_session_generate(member.session.get(), &member.options, test::keepId, &member.ids,
                                   nullptr),
            "generating");
  }
  keepLogits(&alone);
  for (BatchMember& member : alone) {
    member.session.reset();
  }
  std::vector<BatchMember> together = readPrompts(loaded, ids);
  std::vector<oriel_reply> replies;
  for (BatchMember& member : together) {
    oriel_reply reply = ORIEL_INIT(oriel_reply);
    reply.session = member.session.get();
    reply.options = &member.options;
    reply.on_token = test::keepId;
    reply.user = &member.ids;
    reply.generate = 1;
    replies.push_back(reply);
  }
  require(oriel_reply_many(replies.data(), replies.size()), "generating together");
  keepLogits(&together);
  for (size_t i = 0; i < alone.size(); ++i) {
    const std::vector<float>& a = alone[i].logits;
    const std::vector<float>& b = together[i].logits;
    if (alone[i].ids != together[i].ids || a.size() != b.size() ||
        std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) {
      list->end(
          false, "a session of a batch differs from one alone",
          {{"session", i}, {"value", relativeL2(b, std::vector<double>(a.begin(), a.end()))}});
      return;
    }
  }
  list->end(true, "equal to the bit");
}

/// The bundle's file of the bundled model, one of those in the reference.
std::vector<json> bundledModels(const Device& device) {
  const json golden = readJson(device.data + "/oriel-tiny-golden.json");
  std::vector<json> files;
  for (const json& file : golden["files"]) {
    if (test::fileExists(device.data + "/models/" + file["file"].get<std::string>())) {
      files.push_back(file);
    }
  }
  if (files.empty()) {
    throw std::runtime_error("cannot read " + device.data + "/models/oriel-tiny-*.gguf");
  }
  return files;
}

std::vector<test::GoldenModel> goldenModels(const Device& device) {
  return test::goldenModels(device.data + "/logits.json");
}

}  // namespace

bool namesModel(const Device& device) {
  for (const test::GoldenModel& golden : goldenModels(device)) {
    if (device.wantsModel(golden.name)) {
      return true;
    }
  }
  for (const json& file : bundledModels(device)) {
    if (device.wantsModel(file["file"])) {
      return true;
    }
  }
  return false;
}

void checkModels(const Device& device, CheckList* list) {
  const std::string group = "models";
  for (const test::GoldenModel& golden : goldenModels(device)) {
    if (device.wantsModel(golden.name)) {
      list->run(group, golden.name, [&] { checkGolden(device, golden, list); });
      list->run(group, golden.name + ":batch",
                [&] { checkBatch(device, device.model(golden.name), list); });
    }
  }
  for (const json& file : bundledModels(device)) {
    const std::string name = file["file"];
    if (!device.wantsModel(name)) {
      continue;
    }
    list->run(group, name + ":batch",
              [&] { checkBatch(device, device.data + "/models/" + name, list); });
    Loaded loaded;
    for (const json& c : file["cases"]) {
      list->run(group, name + ":" + c["name"].get<std::string>(), [&] {
        if (!loaded.session) {
          loaded = open(device.data + "/models/" + name, device.options());
        }
        checkBundled(c, loaded, list);
      });
    }
  }
}

}  // namespace oriel_internal::bundle
