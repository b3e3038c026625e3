#include "faults/runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/api.h"
#include "faults/file_faults.h"
#include "support/recovery.h"

namespace oriel_internal::test {
namespace {

constexpr uint32_t kPromptTokens = 40;
constexpr uint32_t kReplyTokens = 6;
constexpr uint32_t kBatch = 16;

// Excludes descriptors that the library's threads open at their start.
size_t openDescriptors() {
  size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    // A descriptor that a C library thread used may be closed by now: not counted.
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(entry.path(), closed).string();
    count += closed || target.rfind("/sys/", 0) == 0 || target.rfind("/proc/", 0) == 0 ? 0 : 1;
  }
  return count;
}

// Temporary files: leftovers of interrupted writes.
size_t temporariesUnder(const std::string& folder) {
  size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    count += entry.path().extension() == ".oriel-tmp" ? 1 : 0;
  }
  return count;
}

int32_t promptId(uint64_t i) { return static_cast<int32_t>(40 + i * 37 % 300); }

int keep(const oriel_token_event* event, void* user) {
  static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
  return 0;
}

ReplyOptions greedily(uint32_t tokens) {
  ReplyOptions options;
  options.max_tokens = tokens;
  options.greedy = 1;
  options.seed = 1;  // which snapshots have, too
  options.set("ignore_stop", true);
  return options;
}

// ---- Phases --------------------------------------------------------------------------------------

oriel_status load(World& world) {
  return oriel_model_load(world.device.model.c_str(), &world.options, &world.model);
}

oriel_status loadAnew(World& world) {
  std::filesystem::remove_all(world.path("cache"));
  return load(world);
}

oriel_status describe(World& world) {
  std::vector<char> json(1 << 16);
  size_t needed = 0;
  oriel_status status = oriel_file_describe(world.device.model.c_str(), &world.options, json.data(),
                                            json.size(), &needed);
  // As an app has a file that a user picked.
  const std::string handed = "/dev/fd/" + std::to_string(world.model_descriptor);
  status = status != ORIEL_OK ? status
                              : oriel_file_describe(handed.c_str(), &world.options, json.data(),
                                                    json.size(), &needed);
  if (status != ORIEL_OK) {
    return status;
  }
  oriel_plan plan = ORIEL_PLAN_INIT;
  return oriel_plan_file(world.device.model.c_str(), &world.options, &plan);
}

oriel_status create(World& world) {
  return oriel_session_create(world.model, nullptr, &world.session);
}

// From where it got to the last time.
oriel_status prefill(World& world) {
  std::vector<int32_t> ids;
  for (uint64_t i = world.position(); i < kPromptTokens; ++i) {
    ids.push_back(promptId(i));
  }
  return ids.empty()
             ? ORIEL_OK
             : oriel_session_append(world.session, ids.data(), ids.size(), nullptr, nullptr);
}

oriel_status decode(World& world) {
  const uint64_t done = world.position() - kPromptTokens;
  if (done == kReplyTokens) {
    return ORIEL_OK;
  }
  world.generated.resize(done);  // a token that was shown last need not have been committed
  const ReplyOptions options = greedily(kReplyTokens - static_cast<uint32_t>(done));
  return oriel_session_generate(world.session, &options, keep, &world.generated, nullptr);
}

// With everything that needs memory to compile.
constexpr char kSchema[] = R"({"type": "object", "properties": {
  "name": {"type": "string", "pattern": "^[a-z]{1,3}$"},
  "day": {"type": "string", "format": "date"},
  "count": {"type": "integer", "minimum": 1, "maximum": 999},
  "either": {"oneOf": [{"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^b+$"}]},
  "one": {"enum": ["one", "two"], "pattern": "^[a-z]+$"}},
  "required": ["name", "count", "either"]})";

// A message that was not added is as if it had never been said.
oriel_status chat(World& world) {
  const uint32_t said = world.session->session->facts().transcript.messages();
  const std::string word(1500, 'a');  // encoding it borrows memory
  const oriel_status status =
      said != 0 ? ORIEL_OK : oriel_chat_add(world.session, "user", word.data(), word.size());
  if (status != ORIEL_OK || said > 1) {
    return status;
  }
  constexpr char kMessage[] = "[{\"role\": \"user\", \"content\": \"Hello\"}]";
  return oriel_chat_add(world.session, nullptr, kMessage, sizeof(kMessage) - 1);
}

// First removes the part of a failed reply, as an app does.
oriel_status reply(World& world, const ReplyOptions& options) {
  if (world.position() != world.reply_begin && world.reply_begin != 0) {
    const oriel_status status = goBackTo(world.session, world.reply_begin);
    if (status != ORIEL_OK) {
      return status;
    }
  }
  world.reply_begin = world.position();
  world.generated.clear();
  return oriel_chat_reply(world.session, &options, keep, &world.generated, nullptr);
}

oriel_status answer(World& world) {
  ReplyOptions options = greedily(4);
  options.set("ignore_stop", false);
  options.schema = kSchema;
  return reply(world, options);
}

// A fact, more than a window of text, and a question.
oriel_status tell(World& world) {
  if (!world.device.recall) {
    return ORIEL_OK;
  }
  const ReplyOptions options = greedily(2);
  oriel_status status = ORIEL_OK;
  for (const std::string& said :
       {std::string("The secret word was smakufu, they said."), filler()}) {
    status = status != ORIEL_OK ? status
                                : oriel_chat_add(world.session, "user", said.data(), said.size());
    status = status != ORIEL_OK
                 ? status
                 : oriel_chat_reply(world.session, &options, nullptr, nullptr, nullptr);
  }
  constexpr char kQuestion[] = "What was the secret word smakufu?";
  return status != ORIEL_OK
             ? status
             : oriel_chat_add(world.session, "user", kQuestion, sizeof(kQuestion) - 1);
}

// The question is read again after the recalled turns.
oriel_status recall(World& world) {
  return world.device.recall ? reply(world, greedily(2)) : ORIEL_OK;
}

oriel_status embed(World& world) {
  std::vector<float> values(4096);
  size_t needed = 0;
  constexpr char kText[] = "A hedgehog saw three others.";
  return oriel_embed(world.session, ORIEL_POOLING_AUTO, 0, kText, sizeof(kText) - 1, values.data(),
                     values.size(), &needed, nullptr);
}

oriel_status convert(World& world) {
  std::vector<int32_t> ids(4096);
  std::vector<char> text(8192);
  size_t needed = 0;
  const std::string word(1500, 'b');
  const std::string message = R"({"role": "user", "content": ")" + word + "\"}";
  constexpr char kJson[] = "[{\"role\": \"user\", \"content\": \"Hello\"}]";
  const auto part = [](const oriel_part*, void*) { return 0; };
  oriel_status status =
      oriel_tokenize(world.model, word.data(), word.size(), 0, ids.data(), ids.size(), &needed);
  status = status != ORIEL_OK
               ? status
               : oriel_render_tokens(world.model, nullptr, message.data(), message.size(),
                                     ORIEL_RENDER_PROMPT | ORIEL_TEXT_BOS, ids.data(), ids.size(),
                                     &needed);
  status = status != ORIEL_OK
               ? status
               : oriel_render(world.model, nullptr, kJson, sizeof(kJson) - 1, ORIEL_RENDER_PROMPT,
                              text.data(), text.size(), &needed);
  return status != ORIEL_OK
             ? status
             : oriel_parse_reply(world.model, nullptr, 0, word.data(), word.size(), part, nullptr);
}

// Saves to an existing file with a second name, and to a new one through a link.
oriel_status save(World& world) {
  const std::string kept = world.path("snapshots/kept"), alias = world.path("snapshots/alias");
  std::filesystem::remove(world.path("snapshots/new"));
  oriel_status status =
      oriel_session_save(world.session, world.path("snapshots/new").c_str(), ORIEL_SAVE_NEW);
  status = status != ORIEL_OK ? status : oriel_session_save(world.session, kept.c_str(), 0);
  std::error_code there;
  std::filesystem::create_symlink(kept, alias, there);
  status = status != ORIEL_OK ? status : oriel_session_save(world.session, alias.c_str(), 0);
  const std::string leads = world.path("snapshots/leads");
  std::filesystem::remove(world.path("snapshots/first"));
  std::filesystem::create_symlink("first", leads, there);
  return status != ORIEL_OK ? status : oriel_session_save(world.session, leads.c_str(), 0);
}

oriel_status restore(World& world) {
  return oriel_session_restore(world.session, world.path("snapshots/kept").c_str(), 0, nullptr);
}

oriel_status fork(World& world) { return oriel_session_fork(world.session, &world.fork); }

oriel_status trim(World& world) {
  return oriel_trim(world.model, ORIEL_TRIM_CACHE, world.path("spill").c_str());
}

oriel_status resume(World& world) { return oriel_resume(world.model, nullptr, nullptr); }

oriel_status reset(World& world) { return oriel_session_reset(world.session); }

// A driver says so in the middle of a step; the CPU never is, and is only called lost.
oriel_status lose(World& world) {
  if (!world.device.vulkan) {
    world.model->device_lost = true;
    world.session->lost = true;
    return ORIEL_OK;
  }
  const int32_t id = promptId(0);
  loseAtNextSubmission();
  const oriel_status status = oriel_session_append(world.session, &id, 1, nullptr, nullptr);
  faultLayer()->clear();
  return status == ORIEL_ERROR_DEVICE ? ORIEL_OK : ORIEL_ERROR_INTERNAL;
}

// On the same kind of device: otherwise any failure would only select another device.
oriel_status recover(World& world) {
  return oriel_session_recover(world.session, world.device.vulkan ? "vulkan" : "cpu", 0, nullptr,
                               nullptr, nullptr);
}

oriel_status destroy(World& world) {
  oriel_session_destroy(world.fork);
  oriel_session_destroy(world.session);
  oriel_model_free(world.model);
  world.fork = world.session = nullptr;
  world.model = nullptr;
  return ORIEL_OK;
}

}  // namespace

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all = {
      {"describe", {}, describe, false, "`oriel_file_describe`, `oriel_plan_file`"},
      {"load", {}, loadAnew, false, "`oriel_model_load`, the cache folder is empty"},
      {"load again", {"load"}, load, false, "`oriel_model_load`, with what the first load kept"},
      {"create", {"load"}, create, false, "`oriel_session_create`"},
      {"prefill", {"load", "create"}, prefill, true, "`oriel_session_append` of three batches"},
      {"decode",
       {"load", "create", "prefill"},
       decode,
       true,
       "`oriel_session_generate` of six tokens"},
      {"chat", {"load", "create"}, chat, true, "`oriel_chat_add`, `oriel_chat_add_json`"},
      {"reply", {"load", "create", "chat"}, answer, true, "`oriel_chat_reply` with a JSON schema"},
      {"tell", {"load", "create"}, tell, true, nullptr},
      {"recall",
       {"load", "create", "tell"},
       recall,
       true,
       "`oriel_chat_reply` where a turn comes back"},
      {"embed", {"load", "create"}, embed, false, "`oriel_embed`"},
      {"convert",
       {"load"},
       convert,
       false,
       "`oriel_tokenize`, `oriel_render_tokens`, `oriel_render_json`, `oriel_parse_reply`"},
      {"save",
       {"load", "create", "prefill", "decode"},
       save,
       false,
       "`oriel_session_save_file_as` of a new file, `oriel_session_save_file` over an old one"},
      {"restore",
       {"load", "create", "prefill", "decode", "save"},
       restore,
       false,
       "`oriel_session_restore_file`"},
      {"fork", {"load", "create", "prefill", "decode"}, fork, false, "`oriel_session_fork`"},
      {"trim",
       {"load", "create", "prefill", "decode"},
       trim,
       false,
       "`oriel_trim` to `ORIEL_TRIM_CACHE`"},
      {"resume",
       {"load", "create", "prefill", "decode", "trim"},
       resume,
       false,
       "`oriel_resume` from there"},
      {"reset", {"load", "create", "prefill", "decode"}, reset, false, "`oriel_session_reset`"},
      {"lose", {"load", "create", "prefill", "decode"}, lose, false, nullptr},
      {"recover",
       {"load", "create", "prefill", "decode", "lose"},
       recover,
       false,
       "`oriel_session_recover` after `ORIEL_ERROR_DEVICE`"},
      {"destroy",
       {"load", "create", "prefill", "decode", "fork"},
       destroy,
       false,
       "`oriel_session_destroy`, `oriel_model_free`"},
  };
  return all;
}

size_t phaseNumber(const std::string& name) {
  const std::vector<Phase>& all = phases();
  return static_cast<size_t>(
      std::find_if(all.begin(), all.end(), [&](const Phase& phase) { return name == phase.name; }) -
      all.begin());
}

bool Point::operator==(const Point& other) const { return World::difference(*this, other).empty(); }

World::World(const Device& on)
    : device(on), model_descriptor(::open(on.model.c_str(), O_RDONLY | O_CLOEXEC)) {
  FileFaults::all().know(model_descriptor, "model");
  clearFolders();
  options.memory_bytes = 64u << 20;
  // On the CPU as long that the cache has whole large pages.
  options.window_tokens = !device.vulkan ? 4096 : 200;
  options.set("prefill_batch", kBatch);
  if (device.recall) {
    options.window_tokens = kRecallWindow;
    options.set("sinks", kRecallSinks);
    options.set("retrieval", 4u << 20).set("retrieval_tokens", 48);
    options.set("retrieval_folder", path("recall"));
  }
  options.set("kv", "f16");
  options.device = device.vulkan ? "vulkan" : "cpu";
  options.set("device_timeout_ms", device.timeout_ms);
  options.set("offload", device.on_file);
  options.sessions = 2;
  options.set("constraints", true);
  options.set("transcript", 8192);
  options.log = log.log().callback;
  options.log_user = log.log().user;
  options.allocator = ledger.allocator();
  cache_ = path("cache");
  options.cache_folder = cache_.c_str();
}

World::~World() {
  end();
  ::close(model_descriptor);
}

void World::clearFolders() {
  for (const char* folder : {"snapshots", "spill", "recall"}) {
    std::filesystem::remove_all(path(folder));
    std::filesystem::create_directories(path(folder));
  }
  for (const char* left : {"snapshots/kept", "spill/oriel-trim"}) {
    std::ofstream(path(left) + std::string(".0123456789abcdef.oriel-tmp")) << "left";
  }
}

void World::endSessions() {
  oriel_session_destroy(fork);
  oriel_session_destroy(session);
  fork = session = nullptr;
  generated.clear();
  reply_begin = 0;
}

void World::end() {
  endSessions();
  oriel_model_free(model);
  model = nullptr;
}

uint64_t World::position() const {
  oriel_stats stats = ORIEL_STATS_INIT;
  return session != nullptr && oriel_session_get_stats(session, &stats) == ORIEL_OK ? stats.position
                                                                                    : 0;
}

bool World::trimmed() const { return model != nullptr && model->trimmed.level != ORIEL_TRIM_NONE; }

bool World::lost() {
  size_t needed = 0;
  oriel_session* probe = nullptr;
  if (model != nullptr && session == nullptr) {
    oriel_status status = oriel_session_create(model, nullptr, &probe);
    if (status == ORIEL_OK) {  // a session to recover the device
      status = oriel_snapshot_save(probe, nullptr, 0, &needed);
      oriel_session_destroy(probe);
    }
    return status == ORIEL_ERROR_DEVICE;
  }
  oriel_status status =
      session == nullptr ? ORIEL_OK : oriel_snapshot_save(session, nullptr, 0, &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    std::vector<uint8_t> room(needed);
    status = oriel_snapshot_save(session, room.data(), room.size(), &needed);
  }
  return status == ORIEL_ERROR_DEVICE;
}

Point World::point() {
  Point point;
  point.position = position();
  size_t needed = 0;
  if (session != nullptr &&
      oriel_snapshot_save(session, nullptr, 0, &needed) == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    point.snapshot.resize(needed);
    if (oriel_snapshot_save(session, point.snapshot.data(), needed, &needed) != ORIEL_OK) {
      point.snapshot.clear();
    }
  }
  point.live_bytes = ledger.live_bytes;
  point.objects = faultLayer() != nullptr ? faultLayer()->objects() : 0;
  point.descriptors = openDescriptors();
  point.temporaries = temporariesUnder(device.folder);
  return point;
}

std::string World::difference(const Point& is, const Point& should) {
  std::string all;
  const auto compare = [&all](const char* what, uint64_t got, uint64_t wanted) {
    if (got != wanted) {
      all += std::string(all.empty() ? "" : ", ") + what + " " + std::to_string(got) +
             " instead of " + std::to_string(wanted);
    }
  };
  compare("position", is.position, should.position);
  compare("bytes", is.live_bytes, should.live_bytes);
  compare("objects", is.objects, should.objects);
  compare("descriptors", is.descriptors, should.descriptors);
  compare("temporary files", is.temporaries, should.temporaries);
  compare("bytes of the snapshot", is.snapshot.size(), should.snapshot.size());
  if (is.snapshot.size() == should.snapshot.size() && is.snapshot != should.snapshot) {
    all += std::string(all.empty() ? "" : ", ") + "another snapshot";
  }
  return all;
}

}  // namespace oriel_internal::test
