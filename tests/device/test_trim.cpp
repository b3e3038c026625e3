// Memory given back and taken again, exactly; later output is unaffected.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "oriel/advanced.h"
#include "support/allocators.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace oriel_internal::test::test_trim {
namespace {

constexpr oriel_trim_level kGiving[] = {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_CACHE};

/// Number of round trips: ORIEL_TRIM_ROUNDS, or a few.
uint32_t rounds() {
  const char* const wanted = std::getenv("ORIEL_TRIM_ROUNDS");
  return wanted != nullptr ? static_cast<uint32_t>(std::atoi(wanted))
                           : (!onVulkan() || allCases() ? 4 : 2);
}

Json residentOf(const Loaded& loaded) { return describe(loaded.model)["resident"]; }

void expectAt(const Loaded& loaded, oriel_trim_level level) {
  const FullPlan plan = planOf(loaded);
  static const char* const kLevels[] = {"none", "scratch", "weights", "cache", "all"};
  Json resident = residentOf(loaded);
  EXPECT_EQ(kLevels[level], resident["level"]);
  EXPECT_EQ(plan.trimBytes(level), resident["total_bytes"]);
  EXPECT_EQ(level >= ORIEL_TRIM_WEIGHTS ? 0 : plan.weights_bytes, resident["weights_bytes"]);
  EXPECT_EQ(level >= ORIEL_TRIM_CACHE ? 0 : plan.kv_bytes, resident["kv_bytes"]);
  EXPECT_EQ(level >= ORIEL_TRIM_SCRATCH ? 0 : plan.activation_bytes, resident["activation_bytes"]);
  EXPECT_EQ(level >= ORIEL_TRIM_SCRATCH ? 0 : plan.staging_bytes, resident["staging_bytes"]);
  EXPECT_EQ(plan.host_bytes, resident["host_bytes"]);
}

/// True if the folder shows the cache's spill file while it is open.
#ifdef _WIN32
constexpr bool kKeepsItsName = true;
#else
constexpr bool kKeepsItsName = false;
#endif

class TrimOnDevice : public ScratchFolder {
 protected:
  oriel_status trim(const Loaded& loaded, oriel_trim_level level) const {
    const std::string folder = folder_.string();
    return oriel_trim(loaded.model.get(), level,
                      level == ORIEL_TRIM_CACHE ? folder.c_str() : nullptr);
  }
  static oriel_status resume(const Loaded& loaded) {
    return oriel_resume(loaded.model.get(), nullptr, nullptr);
  }
  std::string copyOfModel() const {
    const std::string to = path("model.gguf");
    std::filesystem::copy_file(kTrained, to);
    return to;
  }
};

std::string reply(const Loaded& loaded, const std::string& message, uint64_t seed) {
  EXPECT_EQ(ORIEL_OK, add(loaded, "user", message));
  return listen(oriel_chat_reply, loaded, wildOptions(9, seed)).text;
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, every_level_and_back_again_and_again_keeps_bytes_and_words) {
  Ledger ledger;
  CapturedLog log;
  Options options = sessionOptions(&log, 64, 8);
  options.set("kv", "k8v16");
  options.allocator = ledger.allocator();
  const Loaded loaded = load(kTrained, options);
  const Loaded other = load(kTrained, options);
  const FullPlan plan = planOf(loaded);
  EXPECT_EQ(plan.total_bytes, plan.trimBytes(ORIEL_TRIM_NONE));
  EXPECT_EQ(plan.host_bytes, plan.trimBytes(ORIEL_TRIM_ALL));
  expectAt(loaded, ORIEL_TRIM_NONE);
  for (uint32_t round = 0; round < rounds(); ++round) {
    for (const oriel_trim_level level : kGiving) {
      ASSERT_EQ(ORIEL_OK, add(loaded, "user", "What is a ring?"));
      ASSERT_EQ(ORIEL_OK, add(other, "user", "What is a ring?"));
      const uint64_t before = ledger.live_bytes;
      ASSERT_EQ(ORIEL_OK, trim(loaded, level)) << log.errors();
      expectAt(loaded, level);
      if (!onVulkan()) {
        EXPECT_EQ(before - plan.total_bytes + plan.trimBytes(level), ledger.live_bytes);
      }
      EXPECT_EQ(kKeepsItsName && level == ORIEL_TRIM_CACHE ? 1u : 0u, filesInFolder());
      ledger.peak_bytes = ledger.live_bytes;
      ASSERT_EQ(ORIEL_OK, resume(loaded)) << log.errors();
      expectAt(loaded, ORIEL_TRIM_NONE);
      EXPECT_EQ(before, ledger.live_bytes);
      EXPECT_EQ(0u, filesInFolder());
      const Heard said = listen(oriel_chat_reply, loaded, wildOptions(9, round + 1));
      ASSERT_EQ(ORIEL_OK, said.status);
      EXPECT_EQ(listen(oriel_chat_reply, other, wildOptions(9, round + 1)).text, said.text);
      ASSERT_EQ(statsOf(other).position, statsOf(loaded).position);
      EXPECT_EQ(logitsOf(other), logitsOf(loaded));
    }
  }
  EXPECT_EQ(0u, errorLines(log)) << log.errors();
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, levels_follow_each_other_and_lower_ones_do_nothing) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  const Loaded other = load(kTrained, sessionOptions(&log));
  EXPECT_EQ(reply(other, "Hello!", 1), reply(loaded, "Hello!", 1));
  for (const oriel_trim_level level : kGiving) {
    ASSERT_EQ(ORIEL_OK, trim(loaded, level)) << log.errors();
    expectAt(loaded, level);
    ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_SCRATCH));
    expectAt(loaded, level);
  }
  ASSERT_EQ(ORIEL_OK, resume(loaded));
  ASSERT_EQ(ORIEL_OK, resume(loaded)) << "nothing is left to do";
  EXPECT_EQ(logitsOf(other), logitsOf(loaded));
  EXPECT_EQ(reply(other, "And now?", 2), reply(loaded, "And now?", 2));
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, going_back_after_a_trim_is_what_it_was_before_it) {
  CapturedLog log;
  RandomLlama lfm2 = smallLfm2();
  lfm2.chat_template = kChatMlTemplate;
  const TemporaryModel random(lfm2);
  for (const std::string& model : {std::string(random.path()), std::string(kTrained)}) {
    const Loaded loaded = load(model, sessionOptions(&log, 64, 8));
    const Loaded other = load(model, sessionOptions(&log, 64, 8));
    for (const Loaded* one : {&loaded, &other}) {
      (void)reply(*one, "First.", 1);
      (void)reply(*one, "Second.", 2);
    }
    for (const oriel_trim_level level : kGiving) {
      ASSERT_EQ(ORIEL_OK, trim(loaded, level)) << log.errors();
      ASSERT_EQ(ORIEL_OK, resume(loaded)) << log.errors();
    }
    const uint64_t back = statsOf(loaded).position - 5;
    EXPECT_EQ(goBackTo(other.session.get(), back), goBackTo(loaded.session.get(), back));
    EXPECT_EQ(statsOf(other).position, statsOf(loaded).position);
    const std::vector<int32_t> more = {5, 6, 7};
    ASSERT_EQ(ORIEL_OK, append(loaded, more));
    ASSERT_EQ(ORIEL_OK, append(other, more));
    EXPECT_EQ(logitsOf(other), logitsOf(loaded));
  }
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, calls_that_need_the_device_say_what_to_do_and_others_work) {
  CapturedLog log;
  Loaded loaded = load(kTrained, sessionOptions(&log));
  (void)reply(loaded, "Hello!", 1);
  const uint64_t position = statsOf(loaded).position;
  for (const bool pauses : {true, false}) {
    ASSERT_EQ(ORIEL_OK,
              pauses ? oriel_pause(loaded.model.get()) : trim(loaded, ORIEL_TRIM_WEIGHTS));
    EXPECT_EQ(pauses, residentOf(loaded)["paused"]);
    log.lines.clear();
    EXPECT_EQ(ORIEL_ERROR_STATE, add(loaded, "user", "Hello?"));
    EXPECT_EQ(1u, errorLines(log));
    EXPECT_NE(std::string::npos, log.errors().find("oriel_resume")) << log.errors();
    EXPECT_EQ(ORIEL_ERROR_STATE, listen(oriel_chat_reply, loaded, greedyOptions(3)).status);
    EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(loaded.session.get()));
    EXPECT_EQ(ORIEL_ERROR_STATE, append(loaded, {1}));
    EXPECT_EQ(position, statsOf(loaded).position);
    EXPECT_FALSE(tokens(loaded, "of the model alone", 0).empty());
    ASSERT_EQ(ORIEL_OK, resume(loaded));
    EXPECT_EQ(ORIEL_OK, add(loaded, "user", "Hello again!"));
    ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(3)).status);
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), position));
  }
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, arguments_are_checked) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  oriel_model* const model = loaded.model.get();
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_trim(nullptr, ORIEL_TRIM_SCRATCH, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_trim(model, ORIEL_TRIM_CACHE, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_trim(model, ORIEL_TRIM_SCRATCH, "folder"));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_trim(model, static_cast<oriel_trim_level>(5), nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_resume(nullptr, nullptr, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_pause(nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_trim(model, ORIEL_TRIM_NONE, nullptr));
  const std::string gone = path("is not there");
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_trim(model, ORIEL_TRIM_CACHE, gone.c_str()));
  EXPECT_NE(std::string::npos, log.errors().find("make it first")) << log.errors();
  expectAt(loaded, ORIEL_TRIM_NONE);
  EXPECT_EQ(ORIEL_OK, add(loaded, "user", "nothing was given back"));
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_SCRATCH));
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_trim(model, ORIEL_TRIM_CACHE, gone.c_str()));
  expectAt(loaded, ORIEL_TRIM_SCRATCH);
  ASSERT_EQ(ORIEL_OK, resume(loaded));
  EXPECT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(3)).status);
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, a_trimmed_model_loses_its_session_and_gets_another) {
  CapturedLog log;
  Ledger ledger;
  Options options = sessionOptions(&log);
  options.allocator = ledger.allocator();
  Loaded loaded = load(kTrained, options);
  const Loaded fresh = load(kTrained, options);
  for (const oriel_trim_level level : kGiving) {
    (void)reply(loaded, "My password is Quetzalcoatl-5591.", 1);
    ASSERT_EQ(ORIEL_OK, trim(loaded, level));
    loaded.session.reset();
    EXPECT_EQ(0u, filesInFolder()) << "nothing of it stays on disk";
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_create(loaded.model.get(), nullptr, &session));
    ASSERT_EQ(ORIEL_OK, resume(loaded));
    ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), nullptr, &session));
    loaded.session.reset(session);
    EXPECT_EQ(reply(fresh, "Hello!", 4), reply(loaded, "Hello!", 4));
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(fresh.session.get()));
  }
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_CACHE));
  loaded.session.reset();
  loaded.model.reset();
  EXPECT_EQ(0u, filesInFolder());
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, a_conversation_that_is_kept_nowhere_is_not_given_up) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_ALL)) << "it is empty";
  expectAt(loaded, ORIEL_TRIM_ALL);
  ASSERT_EQ(ORIEL_OK, resume(loaded));
  ASSERT_EQ(ORIEL_OK, append(loaded, {1, 2, 3}));
  log.lines.clear();
  EXPECT_EQ(ORIEL_ERROR_STATE, trim(loaded, ORIEL_TRIM_ALL));
  EXPECT_EQ(1u, errorLines(log));
  expectAt(loaded, ORIEL_TRIM_NONE);
  EXPECT_EQ(ORIEL_OK, add(loaded, "user", "Still there?"));
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, conversations_are_built_again_from_their_transcripts) {
  CapturedLog log;
  Options options = sessionOptions(&log);
  options.set("transcript", 8192);
  const Loaded loaded = load(kTrained, options);
  const Loaded other = load(kTrained, options);
  for (const Loaded* of : {&loaded, &other}) {
    (void)reply(*of, "Hello! My name is Ida.", 12);
    (void)reply(*of, "What is the capital of Italy?", 12);
  }
  std::string said(4096, '\0');
  size_t needed = 0;
  const auto exported = [&](const Loaded& of) {
    said.assign(4096, '\0');
    EXPECT_EQ(ORIEL_OK,
              oriel_transcript_export(of.session.get(), said.data(), said.size(), &needed));
    return std::string(said.c_str());
  };
  const std::string before = exported(loaded);
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_ALL));
  expectAt(loaded, ORIEL_TRIM_ALL);
  EXPECT_EQ(before, exported(loaded)) << "the transcript stays";
  ASSERT_EQ(ORIEL_OK, resume(loaded));
  EXPECT_EQ(before, exported(loaded));
  // Like a session that reads the same transcript.
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(other.session.get()));
  ASSERT_EQ(ORIEL_OK, oriel_transcript_import(other.session.get(), before.data(), before.size()));
  EXPECT_EQ(statsOf(other).position, statsOf(loaded).position);
  EXPECT_EQ(reply(other, "What is my name?", 12), reply(loaded, "What is my name?", 12));
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, what_was_paused_first_is_built_again_too) {
  CapturedLog log;
  Options options = sessionOptions(&log);
  options.set("transcript", 8192);
  const Loaded loaded = load(kTrained, options);
  const Loaded other = load(kTrained, options);
  for (const Loaded* of : {&loaded, &other}) {
    (void)reply(*of, "Hello! My name is Ida.", 12);
  }
  ASSERT_EQ(ORIEL_OK, oriel_pause(loaded.model.get()));
  for (const Loaded* of : {&loaded, &other}) {
    ASSERT_EQ(ORIEL_OK, trim(*of, ORIEL_TRIM_ALL));
    ASSERT_EQ(ORIEL_OK, resume(*of));  // of the paused session: it once waited for itself
  }
  EXPECT_EQ(statsOf(other).position, statsOf(loaded).position);
  EXPECT_EQ(false, residentOf(loaded)["paused"]);
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, weights_come_from_the_file_that_was_loaded_or_not_at_all) {
  CapturedLog log;
  const std::string file = copyOfModel();
  const Loaded loaded = load(file, sessionOptions(&log));
  const Loaded other = load(kTrained, sessionOptions(&log));
  EXPECT_EQ(reply(other, "Hello!", 1), reply(loaded, "Hello!", 1));
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_WEIGHTS));

  const auto expectRefused = [&](const char* why) {
    log.lines.clear();
    EXPECT_EQ(ORIEL_ERROR_IO, resume(loaded)) << why;
    EXPECT_EQ(1u, errorLines(log)) << log.errors();
    expectAt(loaded, ORIEL_TRIM_WEIGHTS);
  };
  std::filesystem::rename(file, path("away"));
  expectRefused("it is gone");
  std::filesystem::copy_file(kRandom, file);
  expectRefused("it is another one");
  std::filesystem::remove(file);
  std::filesystem::copy_file(kTrained, file);
  {
    std::fstream weights(file, std::ios::binary | std::ios::in | std::ios::out);
    weights.seekg(-200, std::ios::end);
    const char was = static_cast<char>(weights.get());
    weights.seekp(-200, std::ios::end);
    weights.put(static_cast<char>(was ^ 1));
  }
  expectRefused("a weight is another");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 100);
  expectRefused("it is cut off");
  std::filesystem::remove(file);
  std::filesystem::rename(path("away"), file);
  ASSERT_EQ(ORIEL_OK, resume(loaded)) << log.errors();
  EXPECT_EQ(reply(other, "And now?", 2), reply(loaded, "And now?", 2));
}

#if !defined(_WIN32)
#ifdef __linux__
// The open, unnamed file of this process that was in that folder.
std::string nameless(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry, gone).string();
    if (to.rfind(folder.string() + "/", 0) == 0 && to.find(" (deleted)") != std::string::npos) {
      return entry.path().string();
    }
  }
  return "";
}
#endif

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, a_model_that_came_as_a_descriptor_needs_no_path) {
  CapturedLog log;
  const std::string file = copyOfModel();
  const int descriptor = ::open(file.c_str(), O_RDONLY);
  ASSERT_GE(descriptor, 0);
  const Loaded loaded = load("/dev/fd/" + std::to_string(descriptor), sessionOptions(&log));
  ASSERT_EQ(0, ::close(descriptor));
  std::filesystem::remove(file);
  const Loaded other = load(kTrained, sessionOptions(&log));
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_WEIGHTS));
  ASSERT_EQ(ORIEL_OK, resume(loaded)) << log.errors();
  EXPECT_EQ(reply(other, "Hello!", 1), reply(loaded, "Hello!", 1));
}

#ifdef __linux__
RUNS_ON(kCpu);
TEST_F(TrimOnDevice, the_cache_on_disk_has_no_name_and_any_change_is_noticed) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  (void)reply(loaded, "Hello!", 1);
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_CACHE));
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "a process that is killed leaves nothing";
  const std::filesystem::path file = nameless(folder_);
  struct stat info = {};
  ASSERT_EQ(0, ::stat(file.c_str(), &info));
  EXPECT_EQ(0600u, info.st_mode & 07777u);
  EXPECT_EQ(planOf(loaded).kv_bytes, static_cast<uint64_t>(info.st_size));
  {
    std::fstream cache(file, std::ios::binary | std::ios::in | std::ios::out);
    cache.seekp(info.st_size / 2);
    cache.put('x');
  }
  log.lines.clear();
  EXPECT_EQ(ORIEL_ERROR_IO, resume(loaded));
  EXPECT_EQ(1u, errorLines(log)) << log.errors();
  expectAt(loaded, ORIEL_TRIM_CACHE);
}
#endif
#endif

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, memory_that_is_refused_leaves_the_model_trimmed_until_there_is_some) {
  CapturedLog log;
  Ledger ledger;
  Options options = sessionOptions(&log);
  options.allocator = ledger.allocator();
  const Loaded loaded = load(kTrained, options);
  const Loaded other = load(kTrained, options);
  EXPECT_EQ(reply(other, "Hello!", 1), reply(loaded, "Hello!", 1));
  for (const oriel_trim_level level : kGiving) {
    ASSERT_EQ(ORIEL_OK, trim(loaded, level));
    const uint64_t trimmed = ledger.live_bytes;
    ledger.calls = 0;
    uint32_t refused = 0;
    for (uint32_t nth = 1; nth < 100; ++nth) {
      ledger.calls = 0;
      ledger.refuse_nth = nth;
      const oriel_status status = resume(loaded);
      ledger.refuse_nth = 0;
      if (status == ORIEL_OK) {
        break;
      }
      ++refused;
      EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status);
      expectAt(loaded, level);
      EXPECT_EQ(trimmed, ledger.live_bytes);
    }
    if (!onVulkan() || level >= ORIEL_TRIM_WEIGHTS) {
      EXPECT_GT(refused, 0u);
    }
    expectAt(loaded, ORIEL_TRIM_NONE);
  }
  EXPECT_EQ(reply(other, "And now?", 2), reply(loaded, "And now?", 2));
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, a_resume_shows_progress_and_can_be_stopped) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  (void)reply(loaded, "Hello!", 1);
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_WEIGHTS));
  const auto stop = [](uint64_t, uint64_t, void*) { return 1; };
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_resume(loaded.model.get(), stop, nullptr));
  expectAt(loaded, ORIEL_TRIM_WEIGHTS);
  uint64_t last[2] = {};
  const auto watch = [](uint64_t done, uint64_t total, void* user) {
    uint64_t* const seen = static_cast<uint64_t*>(user);
    EXPECT_LT(seen[0], done);
    seen[0] = done;
    seen[1] = total;
    return 0;
  };
  ASSERT_EQ(ORIEL_OK, oriel_resume(loaded.model.get(), watch, last));
  EXPECT_GT(last[0], 0u);
  EXPECT_EQ(last[1], last[0]);
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, several_sessions_behind_a_prefix_go_on_each_as_it_would_have) {
  CapturedLog log;
  Options options = sessionOptions(&log, 64, 8);
  options.sessions = 3;
  options.set("prefix_tokens", 16);
  struct Several {
    ModelPtr model;
    SessionPtr sessions[3];
    std::vector<float> logits(int which) const {
      const float* values = nullptr;
      size_t count = 0;
      EXPECT_EQ(ORIEL_OK, oriel_session_logits(sessions[which].get(), &values, &count));
      return {values, values + count};
    }
    void append(int which, const std::vector<int32_t>& ids) const {
      EXPECT_EQ(ORIEL_OK, oriel_session_append(sessions[which].get(), ids.data(), ids.size(),
                                               nullptr, nullptr));
    }
    void create(int which) { sessions[which] = newSession(model); }
  } both[2];
  for (Several& one : both) {
    oriel_model* model = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model)) << log.errors();
    one.model.reset(model);
    one.create(0);
    one.append(0, {5, 6, 7, 8, 9, 10, 11});
    ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model, one.sessions[0].get())) << log.errors();
    one.create(1);
    one.create(2);
    for (int which = 0; which < 3; ++which) {
      one.append(which, {20 + which, 30, 40, 50});
    }
  }
  const FullPlan plan = planOf(both[0].model.get());
  const std::string folder = folder_.string();
  for (const oriel_trim_level level : kGiving) {
    ASSERT_EQ(ORIEL_OK, oriel_trim(both[0].model.get(), level,
                                   level == ORIEL_TRIM_CACHE ? folder.c_str() : nullptr));
    EXPECT_EQ(plan.trimBytes(level), describe(both[0].model)["resident"]["total_bytes"]);
    if (level == ORIEL_TRIM_CACHE) {  // data lost meanwhile does not come back
      both[0].sessions[1].reset();
      both[1].sessions[1].reset();
    }
    ASSERT_EQ(ORIEL_OK, oriel_resume(both[0].model.get(), nullptr, nullptr)) << log.errors();
    for (const int which : {0, 2}) {
      EXPECT_EQ(both[1].logits(which), both[0].logits(which));
      both[0].append(which, {60 + level, 70});
      both[1].append(which, {60 + level, 70});
      EXPECT_EQ(both[1].logits(which), both[0].logits(which));
    }
  }
  for (Several& one : both) {
    one.create(1);
    one.append(1, {80, 81, 82});
  }
  EXPECT_EQ(both[1].logits(1), both[0].logits(1));
}

// ---- During replies -------------------------------------------------------------------------------

/// A reply on its own thread, which can be blocked in its callback.
class Replying {
 public:
  Replying(const Loaded& loaded, uint32_t tokens, uint64_t seed) {
    thread_ = std::thread([&loaded, tokens, seed, this] {
      ReplyOptions options = wildOptions(tokens, seed);
      options.set("ignore_stop", true);
      oriel_generation result = ORIEL_INIT(oriel_generation);
      status_ = oriel_chat_reply(loaded.session.get(), &options, &Replying::take, this, &result);
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    });
  }
  ~Replying() { (void)end(); }

  void waitForTokens(uint32_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count || ended_; });
  }
  uint32_t count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }
  bool ended() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_;
  }
  oriel_status end() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return status_;
  }
  const std::string& text() const { return text_; }

 private:
  static int take(const oriel_token_event* event, void* user) {
    Replying* const self = static_cast<Replying*>(user);
    const std::lock_guard<std::mutex> lock(self->mutex_);
    self->text_.append(event->text, event->text_bytes);
    ++self->count_;
    self->changed_.notify_all();
    return 0;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t count_ = 0;
  bool ended_ = false;
  oriel_status status_ = ORIEL_OK;
  std::string text_;
  std::thread thread_;
};

void linger() { std::this_thread::sleep_for(std::chrono::milliseconds(150)); }

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, a_paused_reply_waits_between_two_tokens_and_goes_on_as_if_nothing_had_been) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  const Loaded other = load(kTrained, sessionOptions(&log));
  for (const Loaded* one : {&loaded, &other}) {
    ASSERT_EQ(ORIEL_OK, add(*one, "user", "Tell me a story."));
  }
  constexpr uint32_t kTokens = 120;
  ReplyOptions options = wildOptions(kTokens, 7);
  options.set("ignore_stop", true);
  const std::string expected = listen(oriel_chat_reply, other, options).text;

  Replying replying(loaded, kTokens, 7);
  for (uint32_t n = 0; n < 4; ++n) {
    replying.waitForTokens(10 * n + 3);
    ASSERT_EQ(ORIEL_OK, oriel_pause(loaded.model.get()));
    const uint32_t count = replying.count();
    linger();
    EXPECT_EQ(count, replying.count());
    if (!replying.ended() && n != 0) {  // a reply between two tokens can release memory, too
      const oriel_trim_level level = n == 1 ? ORIEL_TRIM_SCRATCH : ORIEL_TRIM_WEIGHTS;
      EXPECT_EQ(ORIEL_OK, trim(loaded, level)) << log.errors();
      expectAt(loaded, level);
      EXPECT_EQ(ORIEL_ERROR_STATE, trim(loaded, ORIEL_TRIM_CACHE));
      expectAt(loaded, level);
    }
    ASSERT_EQ(ORIEL_OK, resume(loaded)) << log.errors();
    expectAt(loaded, ORIEL_TRIM_NONE);
  }
  EXPECT_EQ(ORIEL_OK, replying.end());
  EXPECT_EQ(expected, replying.text());
  EXPECT_EQ(logitsOf(other), logitsOf(loaded));
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, a_reply_that_waits_can_be_cancelled) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  for (const bool trims : {false, true}) {
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Tell me a story."));
    Replying replying(loaded, 100000, 7);
    replying.waitForTokens(3);
    ASSERT_EQ(ORIEL_OK, oriel_pause(loaded.model.get()));
    if (trims) {
      ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_WEIGHTS));
    }
    oriel_session_cancel(loaded.session.get());
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, replying.end());
    EXPECT_EQ(ORIEL_ERROR_STATE, add(loaded, "user", "still paused"));
    ASSERT_EQ(ORIEL_OK, resume(loaded)) << log.errors();
    EXPECT_FALSE(logitsOf(loaded).empty());
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  }
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, a_trim_waits_for_the_reply_that_runs) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Tell me a story."));
  Replying replying(loaded, 40, 7);
  replying.waitForTokens(3);
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_SCRATCH));
  EXPECT_GE(replying.count(), 40u);
  EXPECT_EQ(ORIEL_OK, replying.end());
  ASSERT_EQ(ORIEL_OK, resume(loaded));
}

RUNS_ON(kCpu);
TEST_F(TrimOnDevice, from_inside_a_callback_nothing_is_given_back) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello!"));
  struct Seen {
    oriel_model* model;
    oriel_status statuses[3];
  } seen = {loaded.model.get(), {}};
  ReplyOptions options = greedyOptions(2);
  const auto tries = [](const oriel_token_event*, void* user) {
    Seen* const in = static_cast<Seen*>(user);
    in->statuses[0] = oriel_trim(in->model, ORIEL_TRIM_SCRATCH, nullptr);
    in->statuses[1] = oriel_pause(in->model);
    in->statuses[2] = oriel_resume(in->model, nullptr, nullptr);
    return 0;
  };
  EXPECT_EQ(ORIEL_OK, oriel_chat_reply(loaded.session.get(), &options, tries, &seen, nullptr));
  for (const oriel_status status : seen.statuses) {
    EXPECT_EQ(ORIEL_ERROR_STATE, status);
  }
  // Also refused inside the log of a call on the model.
  struct FromLog {
    oriel_model* model = nullptr;
    oriel_session* session = nullptr;
    std::vector<oriel_status> statuses;
    static void write(oriel_log_level level, const char*, void* user) {
      FromLog& self = *static_cast<FromLog*>(user);
      oriel_model* const model = self.model;
      if (model == nullptr || level != ORIEL_LOG_ERROR) {
        return;
      }
      self.model = nullptr;  // refusals log lines, too
      self.statuses = {oriel_trim(model, ORIEL_TRIM_SCRATCH, nullptr), oriel_pause(model),
                       oriel_resume(model, nullptr, nullptr),
                       oriel_session_recover(self.session, nullptr, 0, nullptr, nullptr, nullptr)};
    }
  } from_log;
  Options logs = sessionOptions(&log);
  logs.log = FromLog::write;
  logs.log_user = &from_log;
  const Loaded other = load(kTrained, logs);
  from_log.session = other.session.get();
  for (const bool creates : {true, false}) {
    from_log.model = other.model.get();
    oriel_session* made = nullptr;
    EXPECT_EQ(ORIEL_ERROR_STATE, creates ? oriel_session_create(other.model.get(), nullptr, &made)
                                         : oriel_prefix_set(other.model.get(), nullptr));
    EXPECT_EQ(std::vector<oriel_status>(4, ORIEL_ERROR_STATE), from_log.statuses);
  }
  // Also refused inside the progress callback of a resume.
  ASSERT_EQ(ORIEL_OK, trim(loaded, ORIEL_TRIM_WEIGHTS));
  const auto nested = [](uint64_t, uint64_t, void* user) {
    EXPECT_EQ(ORIEL_ERROR_STATE,
              oriel_trim(static_cast<oriel_model*>(user), ORIEL_TRIM_CACHE, "."));
    return 0;
  };
  ASSERT_EQ(ORIEL_OK, oriel_resume(loaded.model.get(), nested, loaded.model.get()));
}

}  // namespace
}  // namespace oriel_internal::test::test_trim
