#include "bundle/checks.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "oriel/advanced.h"
#include "support/encoding.h"
#include "support/golden.h"

namespace oriel_internal::bundle {

void CheckList::begin(const std::string& group, const std::string& name) {
  group_ = group;
  name_ = name;
  begun_ = std::chrono::steady_clock::now();
  std::printf("%s/%s ... ", group.c_str(), name.c_str());
  std::fflush(stdout);
}

void CheckList::end(bool passed, const std::string& detail, const Json& extra) {
  ++(passed ? passed_ : failed_);
  record(passed ? "passed" : "failed", detail, extra);
}

void CheckList::skip(const std::string& reason) {
  ++skipped_;
  record("skipped", reason, Json::object());
}

void CheckList::atMost(double value, double limit, const std::string& unit) {
  char detail[160];
  std::snprintf(detail, sizeof(detail), "%.3g %s, at most %.3g", value, unit.c_str(), limit);
  end(value <= limit, detail, {{"value", value}, {"limit", limit}});
}

void CheckList::status(oriel_status got, oriel_status wanted) {
  const std::string said = oriel_status_text(got);
  end(got == wanted, got == wanted ? said : said + ", wanted: " + oriel_status_text(wanted));
}

void CheckList::record(const char* status, const std::string& detail, const Json& extra) {
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun_;
  Json result = {{"group", group_},
                 {"name", name_},
                 {"status", status},
                 {"detail", detail},
                 {"ms", took.count()}};
  result.update(extra);
  results_.push_back(result);
  std::printf("%s (%s)\n", status, detail.c_str());
  std::fflush(stdout);
}

namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "llama-q4_0";
/// Practically endless, but ends even if cancelling is broken.
constexpr uint32_t kManyTokens = 20000;

oriel_status tryToLoad(const std::string& path, const Options& options) {
  oriel_model* model = nullptr;
  const oriel_status status = oriel_model_load(path.c_str(), &options, &model);
  oriel_model_free(model);
  return status;
}

void write(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream out(fs::u8path(path), std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

/// malloc that fails after a number of blocks.
struct RefusingAllocator {
  int left;
  int live = 0;

  oriel_allocator allocator() { return {allocate, release, this}; }
  static void* allocate(size_t bytes, void* user) {
    auto* self = static_cast<RefusingAllocator*>(user);
    if (self->left-- <= 0) {
      return nullptr;
    }
    // Space for malloc's pointer before the aligned block.
    void* raw = std::malloc(bytes + 64 + sizeof(void*));
    if (raw == nullptr) {
      return nullptr;
    }
    ++self->live;
    auto address = reinterpret_cast<uintptr_t>(raw) + sizeof(void*);
    address = (address + 63) & ~uintptr_t{63};
    reinterpret_cast<void**>(address)[-1] = raw;
    return reinterpret_cast<void*>(address);
  }
  static void release(void* block, size_t, void* user) {
    if (block != nullptr) {
      --static_cast<RefusingAllocator*>(user)->live;
      std::free(static_cast<void**>(block)[-1]);
    }
  }
};

/// Refuses the first block, the second, ... until loading succeeds: OUT_OF_MEMORY each time, nothing leaked.
void checkRefusedMemory(const Device& device, CheckList* list) {
  constexpr int kMost = 64;
  for (int blocks = 0; blocks < kMost; ++blocks) {
    RefusingAllocator refusing{blocks};
    const oriel_allocator allocator = refusing.allocator();
    Options options = device.options();
    options.allocator = &allocator;
    const oriel_status status = tryToLoad(device.model(kModel), options);
    if (refusing.live != 0) {
      list->end(false, std::to_string(refusing.live) + " blocks were not given back");
      return;
    }
    if (status == ORIEL_OK) {
      list->end(blocks > 0, "refused " + std::to_string(blocks) + " times, then loaded");
      return;
    }
    if (status != ORIEL_ERROR_OUT_OF_MEMORY) {
      list->status(status, ORIEL_ERROR_OUT_OF_MEMORY);
      return;
    }
  }
  list->end(false, "still refused after " + std::to_string(kMost) + " blocks");
}

/// Damaged pipelines on disk must neither crash nor change a result.
void checkDamagedCache(const Device& device, CheckList* list) {
  const std::string folder = device.scratch + "/pipelines";
  fs::create_directories(fs::u8path(folder));
  Options options = device.options();
  options.cache_folder = folder.c_str();
  const std::vector<int32_t> ids = test::someIds(20, 384);
  const auto want = evaluate(open(device.model(kModel), options), ids);
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::u8path(folder))) {
    if (entry.is_regular_file()) {
      std::vector<uint8_t> bytes = test::readBytes(entry.path().u8string());
      for (size_t i = bytes.size() / 3; i < bytes.size(); i += 97) {
        bytes[i] ^= 0x5a;
      }
      bytes.resize(bytes.size() - bytes.size() / 4);
      write(entry.path().u8string(), bytes);
      ++files;
    }
  }
  if (files == 0) {
    list->skip("nothing was kept on disk");
    return;
  }
  const auto got = evaluate(open(device.model(kModel), options), ids);
  list->end(got == want, std::to_string(files) + " damaged files, " +
                             (got == want ? "same logits" : "other logits"));
}

/// A long generation is cancelled from another thread; the session continues afterwards.
void checkCancel(const Device& device, CheckList* list) {
  const Loaded loaded = open(device.model(kModel), device.options());
  append(loaded, test::someIds(8, 384));
  struct Started {
    oriel_session* session;
    std::thread canceller;
  } started{loaded.session.get(), {}};
  const auto on_token = [](const oriel_token_event*, void* user) {
    auto* self = static_cast<Started*>(user);
    if (!self->canceller.joinable()) {
      self->canceller = std::thread([self] { oriel_session_cancel(self->session); });
    }
    return 0;
  };
  ReplyOptions options = test::greedyOptions(kManyTokens);
  options.set("ignore_stop", true);
  const oriel_status status =
      oriel_session_generate(loaded.session.get(), &options, on_token, &started, nullptr);
  if (started.canceller.joinable()) {
    started.canceller.join();
  }
  if (status != ORIEL_ERROR_CANCELLED) {
    list->status(status, ORIEL_ERROR_CANCELLED);
    return;
  }
  const size_t after = greedy(loaded, 4).size();
  list->end(after == 4, "cancelled, " + std::to_string(after) + " tokens afterwards");
}

}  // namespace

void checkFaults(const Device& device, CheckList* list) {
  const std::string group = "faults";
  const auto refused = [&](const std::string& name, const std::string& path, const Options& options,
                           oriel_status wanted) {
    list->run(group, name, [&] { list->status(tryToLoad(path, options), wanted); });
  };
  refused("a file that is not there", device.scratch + "/none.gguf", device.options(),
          ORIEL_ERROR_IO);

  const std::string bent = device.scratch + "/bent.gguf";
  std::vector<uint8_t> bytes = test::readBytes(device.model(kModel));
  if (bytes.empty()) {
    throw std::runtime_error(device.model(kModel) + " is empty");
  }
  write(bent, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2)});
  refused("half a file", bent, device.options(), ORIEL_ERROR_FORMAT);
  bytes[0] ^= 0xff;
  write(bent, bytes);
  refused("a file of another kind", bent, device.options(), ORIEL_ERROR_FORMAT);

  Options options = device.options();
  options.memory_bytes = 100000;
  refused("too little memory", device.model(kModel), options, ORIEL_ERROR_MEMORY_BUDGET);
  options = device.options();
  options.device = "vulkan:98";
  refused("a device that is not there", device.model(kModel), options, ORIEL_ERROR_NO_DEVICE);

  list->run(group, "memory that is refused", [&] { checkRefusedMemory(device, list); });
  list->run(group, "a damaged cache folder", [&] { checkDamagedCache(device, list); });
  list->run(group, "cancelled from another thread", [&] { checkCancel(device, list); });
}

namespace {

struct Sink {
  CheckList* list;
  Json candidates = Json::array();
};

void onCheck(const oriel_check* check, void* user) {
  CheckList* list = static_cast<Sink*>(user)->list;
  list->begin("kernels", check->name);
  if (check->result == ORIEL_CHECK_SKIPPED) {
    list->skip(check->reason);
  } else if (check->result == ORIEL_CHECK_FAILED) {
    list->end(false, check->reason, {{"value", check->error}, {"limit", check->limit}});
  } else {
    list->atMost(check->error, check->limit, "of the root mean square");
  }
}

void onCandidate(const oriel_candidate* candidate, void* user) {
  static_cast<Sink*>(user)->candidates.push_back({{"op", candidate->op},
                                                  {"name", candidate->name},
                                                  {"microseconds", candidate->microseconds},
                                                  {"chosen", candidate->chosen != 0}});
}

}  // namespace

Json checkKernels(const Device& device, bool time_candidates, CheckList* list) {
  Sink sink{list};
  oriel_self_test_result result = ORIEL_INIT(oriel_self_test_result);
  const Options options = device.options();
  const oriel_status status =
      oriel_self_test(&options, onCheck, time_candidates ? onCandidate : nullptr, &sink, &result);
  if (status != ORIEL_OK) {
    list->begin("kernels", "self-test");
    list->end(false, std::string(oriel_status_text(status)) + ": " + lastError());
  }
  return sink.candidates;
}

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
