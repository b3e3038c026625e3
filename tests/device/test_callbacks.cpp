// Calls from inside callbacks, and from a second thread: calls that would change the session are refused.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "oriel/advanced.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_callbacks {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

/// The target of the calls, with buffers for their output.
struct Caller {
  oriel_model* model = nullptr;
  oriel_session* session = nullptr;
  std::vector<uint8_t> room = std::vector<uint8_t>(1 << 22);
  std::string file = testing::TempDir() + "oriel-callback.bin";
  size_t needed = 0;

  char* text() { return reinterpret_cast<char*>(room.data()); }
  int32_t* ids() { return reinterpret_cast<int32_t*>(room.data()); }
  uint64_t* numbers() { return reinterpret_cast<uint64_t*>(room.data()); }
};

enum class Rule {
  kAnswered,        ///< works inside callbacks as elsewhere
  kAsks,            ///< the same, but not from another thread
  kRefused,         ///< ORIEL_ERROR_STATE and one line
  kRefusedInside,   ///< the same, but only inside a callback: another thread may
  kDoesNothingBut,  ///< returns nothing: logs one line
};

struct Call {
  const char* name;
  Rule rule;
  std::function<oriel_status(Caller*)> make;
};

template <typename Struct>
Struct sized() {
  Struct made = {};
  made.struct_size = sizeof(made);
  return made;
}

const ReplyOptions kOneToken = greedyOptions(1);
const int32_t kId = 1;
const char* const kMessage = R"({"role": "user", "content": "x"})";
const char* const kList = R"([{"role": "user", "content": "x"}])";

int ignoreLogits(size_t, const float*, size_t, void*) { return 0; }
int ignorePart(const oriel_part*, void*) { return 0; }

/// Every function that takes a session or a model.
const std::vector<Call>& everyCall() {
  static const std::vector<Call> calls = {
      // oriel.h
      {"oriel_session_get_stats", Rule::kAsks,
       [](Caller* on) {
         auto stats = sized<oriel_stats>();
         return oriel_session_get_stats(on->session, &stats);
       }},
      {"oriel_session_get_tokens", Rule::kAsks,
       [](Caller* on) {
         return oriel_session_get_tokens(on->session, 0, on->ids(), 1024, &on->needed);
       }},
      {"oriel_session_reset", Rule::kRefused,
       [](Caller* on) { return oriel_session_reset(on->session); }},
      {"oriel_chat_add", Rule::kRefused,
       [](Caller* on) { return oriel_chat_add(on->session, "user", "x", 1); }},
      {"oriel_chat_add of JSON", Rule::kRefused,
       [](Caller* on) {
         return oriel_chat_add(on->session, nullptr, kMessage,
                               std::char_traits<char>::length(kMessage));
       }},
      {"oriel_chat_add_pictures", Rule::kRefused,
       [](Caller* on) {
         return oriel_chat_add_pictures(on->session, kMessage,
                                        std::char_traits<char>::length(kMessage), nullptr, 0);
       }},
      {"oriel_chat_reply", Rule::kRefused,
       [](Caller* on) {
         return oriel_chat_reply(on->session, &kOneToken, nullptr, nullptr, nullptr);
       }},
      {"oriel_embed", Rule::kRefused,
       [](Caller* on) {
         return oriel_embed(on->session, ORIEL_POOLING_AUTO, 0, "x", 1,
                            reinterpret_cast<float*>(on->room.data()), 1 << 20, &on->needed,
                            nullptr);
       }},
      {"oriel_embed_many", Rule::kRefused,
       [](Caller* on) {
         const oriel_text text = {"x", 1, nullptr, 0};
         return oriel_embed_many(on->session, ORIEL_POOLING_AUTO, 0, &text, 1,
                                 reinterpret_cast<float*>(on->room.data()), 1 << 20, &on->needed,
                                 nullptr);
       }},
      {"oriel_session_append", Rule::kRefused,
       [](Caller* on) { return oriel_session_append(on->session, &kId, 1, nullptr, nullptr); }},
      {"oriel_session_append_text", Rule::kRefused,
       [](Caller* on) { return oriel_session_append_text(on->session, "x", 1, 0); }},
      {"oriel_session_generate", Rule::kRefused,
       [](Caller* on) {
         return oriel_session_generate(on->session, &kOneToken, nullptr, nullptr, nullptr);
       }},
      {"oriel_session_logits", Rule::kRefused,
       [](Caller* on) {
         const float* logits = nullptr;
         return oriel_session_logits(on->session, &logits, &on->needed);
       }},
      {"oriel_session_append with logits", Rule::kRefused,
       [](Caller* on) {
         return oriel_session_append(on->session, &kId, 1, ignoreLogits, nullptr);
       }},
      {"oriel_session_go_back to a position", Rule::kRefused,
       [](Caller* on) { return goBackTo(on->session, 0); }},
      {"oriel_session_retrieve", Rule::kRefused,
       [](Caller* on) { return oriel_session_retrieve(on->session, "x", 1); }},
      {"oriel_snapshot_save", Rule::kRefused,
       [](Caller* on) {
         return oriel_snapshot_save(on->session, on->room.data(), on->room.size(), &on->needed);
       }},
      {"oriel_snapshot_restore", Rule::kRefused,
       [](Caller* on) {
         return oriel_snapshot_restore(on->session, on->room.data(), on->room.size(), 0, nullptr);
       }},
      {"oriel_session_save", Rule::kRefused,
       [](Caller* on) { return oriel_session_save(on->session, on->file.c_str(), 0); }},
      {"oriel_session_restore", Rule::kRefused,
       [](Caller* on) { return oriel_session_restore(on->session, on->file.c_str(), 0, nullptr); }},
      {"oriel_session_destroy", Rule::kDoesNothingBut,
       [](Caller* on) {
         oriel_session_destroy(on->session);
         return ORIEL_ERROR_STATE;
       }},
      {"oriel_session_create", Rule::kRefusedInside,
       [](Caller* on) {
         oriel_session* further = nullptr;
         const oriel_status status = oriel_session_create(on->model, nullptr, &further);
         oriel_session_destroy(further);
         return status;
       }},
      {"oriel_model_free", Rule::kDoesNothingBut,
       [](Caller* on) {
         oriel_model_free(on->model);
         return ORIEL_ERROR_STATE;
       }},
      {"oriel_model_get_plan", Rule::kAnswered,
       [](Caller* on) {
         auto plan = sized<oriel_plan>();
         return oriel_model_get_plan(on->model, &plan);
       }},
      {"oriel_model_describe", Rule::kAnswered,
       [](Caller* on) {
         return oriel_model_describe(on->model, on->text(), on->room.size(), &on->needed);
       }},
      {"oriel_session_describe", Rule::kAsks,
       [](Caller* on) {
         return oriel_session_describe(on->session, on->text(), on->room.size(), &on->needed);
       }},
      {"oriel_tokenize", Rule::kAnswered,
       [](Caller* on) {
         return oriel_tokenize(on->model, "Words.", 6, 0, on->ids(), 64, &on->needed);
       }},
      {"oriel_detokenize", Rule::kAnswered,
       [](Caller* on) {
         return oriel_detokenize(on->model, &kId, 1, 0, on->text(), 64, &on->needed);
       }},
      {"oriel_render", Rule::kAnswered,
       [](Caller* on) {
         return oriel_render(on->model, nullptr, kList, std::char_traits<char>::length(kList),
                             ORIEL_RENDER_PROMPT, on->text(), 4096, &on->needed);
       }},
      {"oriel_render_tokens", Rule::kAnswered,
       [](Caller* on) {
         return oriel_render_tokens(on->model, nullptr, kList,
                                    std::char_traits<char>::length(kList), ORIEL_RENDER_PROMPT,
                                    on->ids(), 4096, &on->needed);
       }},
      {"oriel_parse_reply", Rule::kAnswered,
       [](Caller* on) {
         return oriel_parse_reply(on->model, nullptr, 0, "Yes.", 4, ignorePart, nullptr);
       }},
      // advanced.h
      {"oriel_session_last_error", Rule::kAnswered,
       [](Caller* on) {
         return oriel_session_last_error(on->session) != nullptr ? ORIEL_OK : ORIEL_ERROR_STATE;
       }},
      {"oriel_model_last_error", Rule::kAnswered,
       [](Caller* on) {
         return oriel_model_last_error(on->model) != nullptr ? ORIEL_OK : ORIEL_ERROR_STATE;
       }},
      {"oriel_transcript_export", Rule::kAsks,
       [](Caller* on) {
         return oriel_transcript_export(on->session, on->text(), on->room.size(), &on->needed);
       }},
      {"oriel_session_use_adapters", Rule::kRefused,
       [](Caller* on) { return oriel_session_use_adapters(on->session, nullptr); }},
      {"oriel_session_mark", Rule::kRefused,
       [](Caller* on) { return oriel_session_mark(on->session, "here"); }},
      {"oriel_session_go_back to a mark", Rule::kRefused,
       [](Caller* on) {
         return oriel_session_go_back(on->session, ORIEL_BACK_TO_MARK, 0, "here", 0);
       }},
      {"oriel_session_go_back by turns", Rule::kRefused,
       [](Caller* on) {
         return oriel_session_go_back(on->session, ORIEL_BACK_BY_TURNS, 1, nullptr, 0);
       }},
      {"oriel_session_fork", Rule::kRefused,
       [](Caller* on) {
         oriel_session* fork = nullptr;
         const oriel_status status = oriel_session_fork(on->session, &fork);
         oriel_session_destroy(fork);
         return status;
       }},
      {"oriel_transcript_import", Rule::kRefused,
       [](Caller* on) { return oriel_transcript_import(on->session, "[]", 2); }},
      {"oriel_reply_many", Rule::kRefused,
       [](Caller* on) {
         auto reply = sized<oriel_reply>();
         reply.session = on->session;
         reply.options = &kOneToken;
         return oriel_reply_many(&reply, 1);
       }},
      {"oriel_prefix_set", Rule::kRefused,
       [](Caller* on) { return oriel_prefix_set(on->model, on->session); }},
      {"oriel_prefix_set without a session", Rule::kRefusedInside,
       [](Caller* on) { return oriel_prefix_set(on->model, nullptr); }},
      {"oriel_trim", Rule::kRefusedInside,
       [](Caller* on) { return oriel_trim(on->model, ORIEL_TRIM_SCRATCH, nullptr); }},
      {"oriel_pause", Rule::kRefusedInside, [](Caller* on) { return oriel_pause(on->model); }},
      {"oriel_session_recover", Rule::kRefused,
       [](Caller* on) {
         return oriel_session_recover(on->session, nullptr, 0, nullptr, nullptr, nullptr);
       }},
      {"oriel_resume", Rule::kRefusedInside,
       [](Caller* on) { return oriel_resume(on->model, nullptr, nullptr); }},
  };
  return calls;
}

/// Functions of this build. A declared but missing function gives ORIEL_ERROR_UNSUPPORTED when no call runs.
const std::set<std::string>& builtCalls() {
  static const std::set<std::string> built = [] {
    std::set<std::string> names;
    Options plain = cpuOptions(nullptr);
    plain.set("transcript", 4096);
    const Loaded loaded = load(kTrained, plain);
    Caller app;
    app.model = loaded.model.get();
    app.session = loaded.session.get();
    for (const Call& call : everyCall()) {
      if (call.rule == Rule::kDoesNothingBut || call.make(&app) != ORIEL_ERROR_UNSUPPORTED) {
        names.insert(call.name);
      }
    }
    std::remove(app.file.c_str());
    return names;
  }();
  return built;
}

/// Work that runs once inside callbacks.
struct Inside {
  std::function<void()> work;
  uint32_t ran = 0;

  void run() {
    if (work && ran++ == 0) {
      work();
    }
  }
  static int onToken(const oriel_token_event*, void* user) {
    static_cast<Inside*>(user)->run();
    return 0;
  }
  static int onPart(const oriel_part*, void* user) {
    static_cast<Inside*>(user)->run();
    return 0;
  }
  static int onLogits(size_t, const float*, size_t, void* user) {
    static_cast<Inside*>(user)->run();
    return 0;
  }
  static int onProgress(uint64_t, uint64_t, void* user) {
    static_cast<Inside*>(user)->run();
    return 0;
  }
};

/// A model and its session with identical callbacks.
class Callbacks : public testing::Test {
 protected:
  void SetUp() override {
    Options options = cpuOptions(nullptr);
    options.set("transcript", 4096);
    options.log = onLog;
    options.log_user = this;
    options.set("transcript", 65536);
    ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &app_.model)) << log_.errors();
    loaded_.model.reset(app_.model);
    SessionOptions session;
    session.progress = Inside::onProgress;
    session.progress_user = &on_progress_;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(app_.model, &session, &app_.session));
    loaded_.session.reset(app_.session);
    ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Tell me a story."));
    log_.clear();
  }
  oriel_session* session() { return app_.session; }

  /// Tries every call and checks the results.
  std::function<void()> tryEverything(bool from_another_thread = false) {
    std::map<std::string, oriel_status> answers;
    for (const Call& call : everyCall()) {
      if (call.rule == Rule::kAnswered || call.rule == Rule::kAsks) {
        answers[call.name] = call.make(&app_);
        EXPECT_TRUE(answers[call.name] == ORIEL_OK || builtCalls().count(call.name) == 0 ||
                    answers[call.name] == ORIEL_ERROR_STATE)  // no transcript is kept
            << call.name;
      }
    }
    return [this, answers, from_another_thread] {
      const uint64_t position = from_another_thread ? 0 : statsOf(loaded_).position;
      for (const Call& call : everyCall()) {
        if (builtCalls().count(call.name) == 0 ||
            (from_another_thread && call.rule == Rule::kRefusedInside)) {
          continue;
        }
        const bool answered =
            call.rule == Rule::kAnswered || (call.rule == Rule::kAsks && !from_another_thread);
        const size_t before = errorLines(log_);
        EXPECT_EQ(answered ? answers.at(call.name) : ORIEL_ERROR_STATE, call.make(&app_))
            << call.name;
        EXPECT_EQ(before + (answered ? 0 : 1), errorLines(log_)) << call.name;
      }
      EXPECT_EQ(position, from_another_thread ? 0 : statsOf(loaded_).position);
      EXPECT_TRUE(log_.says(": "));
      tried_ = true;
    };
  }

  std::vector<uint8_t> snapshot() { return savedBytes(session()); }

  /// `call` gives the same bits whether its callbacks try everything or not.
  void expectNothingChanges(Inside* inside, const std::function<oriel_status()>& call) {
    const std::vector<uint8_t> begin = snapshot();
    ASSERT_EQ(ORIEL_OK, restoreFrom(session(), begin));
    const oriel_status expected_status = call();
    const std::vector<uint8_t> expected = snapshot();
    ASSERT_EQ(ORIEL_OK, restoreFrom(session(), begin));
    inside->work = tryEverything();
    inside->ran = 0;
    EXPECT_EQ(expected_status, call());
    EXPECT_TRUE(tried_);
    EXPECT_EQ(expected, snapshot());
  }

  static void onLog(oriel_log_level level, const char* message, void* user) {
    auto* const self = static_cast<Callbacks*>(user);
    self->log_.lines.push_back({level, message});
    self->on_log_.run();
  }

  CapturedLog log_;
  Inside inside_;
  Inside on_progress_;
  Inside on_log_;
  bool tried_ = false;
  Caller app_;
  Loaded loaded_;
};

TEST(CallbackRules, name_every_function_that_takes_a_session_or_a_model) {
  std::set<std::string> ruled = {"oriel_session_cancel", "oriel_model_load"};
  for (const Call& call : everyCall()) {
    ruled.insert(std::string(call.name).substr(0, std::string(call.name).find(' ')));
  }
  const std::regex declared(R"(ORIEL_API[^;]*?\b(oriel_[a-z0-9_]+)\(([^;]*)\);)");
  const std::regex taken(R"(oriel_(session|model|reply) \*)");
  size_t found = 0;
  for (const char* const file : {"oriel.h", "advanced.h"}) {
    std::ifstream in(std::string(ORIEL_SOURCE_DIR "/runtime/include/oriel/") + file);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (std::sregex_iterator at(text.begin(), text.end(), declared), end; at != end; ++at) {
      if (std::regex_search((*at)[2].str(), taken)) {
        EXPECT_EQ(1u, ruled.count((*at)[1])) << (*at)[1] << " has no rule";
        ++found;
      }
    }
  }
  EXPECT_EQ(ruled.size(), found);
}

RUNS_ON(kOneDevice);
TEST_F(Callbacks, a_token_callback_may_ask_but_change_nothing) {
  const ReplyOptions options = wildOptions(12, /*seed=*/5);
  expectNothingChanges(&inside_, [&] {
    return oriel_chat_reply(session(), &options, Inside::onToken, &inside_, nullptr);
  });
}

TEST_F(Callbacks, a_part_callback_may_ask_but_change_nothing) {
  ReplyOptions options = wildOptions(12, /*seed=*/5);
  options.on_part = Inside::onPart;
  options.part_user = &inside_;
  expectNothingChanges(
      &inside_, [&] { return oriel_chat_reply(session(), &options, nullptr, nullptr, nullptr); });
}

TEST_F(Callbacks, a_logits_callback_may_ask_but_change_nothing) {
  const std::vector<int32_t> ids = someIds(40, 2000);
  expectNothingChanges(&inside_, [&] {
    return oriel_session_append(session(), ids.data(), ids.size(), Inside::onLogits, &inside_);
  });
}

TEST_F(Callbacks, a_progress_callback_may_ask_but_change_nothing) {
  const std::vector<int32_t> ids = someIds(40, 2000);
  expectNothingChanges(&on_progress_, [&] { return append(loaded_, ids); });
}

TEST_F(Callbacks, the_logs_callback_may_ask_but_change_nothing) {
  const int32_t wrong = -1;
  expectNothingChanges(
      &on_log_, [&] { return oriel_session_append(session(), &wrong, 1, nullptr, nullptr); });
}

TEST_F(Callbacks, what_may_be_asked_is_answered) {
  inside_.work = [this] {
    const oriel_stats stats = statsOf(loaded_);
    std::vector<int32_t> ids(512);
    size_t needed = 0;
    EXPECT_EQ(1u, describe(session())["turns"].size());
    EXPECT_EQ(ORIEL_OK, oriel_session_get_tokens(session(), 0, ids.data(), ids.size(), &needed));
    EXPECT_EQ(stats.position, needed);
    EXPECT_FALSE(tokens(loaded_, "Words.", 0).empty());
    EXPECT_FALSE(rendered(loaded_, {{"user", "Hello"}}, true).empty());
    oriel_session_cancel(session());
  };
  const ReplyOptions options = greedyOptions(12);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            oriel_chat_reply(session(), &options, Inside::onToken, &inside_, nullptr));
  EXPECT_LT(0u, inside_.ran);
  EXPECT_EQ("", log_.errors());
}

// The rule covers all sessions of the model.
TEST(CallbacksOfAnotherSession, may_ask_but_change_nothing) {
  CapturedLog log;
  Options options = cpuOptions(&log);
  options.sessions = 3;
  options.set("transcript", 4096);
  const Loaded loaded = load(kTrained, options);
  oriel_session* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), nullptr, &made));
  const SessionPtr other(made);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Tell me a story."));
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(made, "user", "Tell me another.", 16));
  Caller app;
  app.model = loaded.model.get();
  app.session = made;
  Inside inside;
  inside.work = [&] {
    for (const Call& call : everyCall()) {
      const bool answered = call.rule == Rule::kAnswered || call.rule == Rule::kAsks;
      const size_t before = errorLines(log);
      EXPECT_EQ(answered ? ORIEL_OK : ORIEL_ERROR_STATE, call.make(&app)) << call.name;
      EXPECT_EQ(before + (answered ? 0 : 1), errorLines(log)) << call.name;
    }
  };
  const ReplyOptions few = greedyOptions(4);
  EXPECT_EQ(ORIEL_OK,
            oriel_chat_reply(loaded.session.get(), &few, Inside::onToken, &inside, nullptr));
  EXPECT_LT(0u, inside.ran);
  EXPECT_EQ(ORIEL_OK, oriel_chat_reply(made, &few, nullptr, nullptr, nullptr));
}

// A trim waits for the reply. Getters wait for neither, on any thread.
TEST(CallsThatAsk, do_not_wait_for_a_call_that_waits) {
  CapturedLog log;
  Options options = cpuOptions(&log);
  options.sessions = 2;
  options.set("prefix_tokens", 8);
  const Loaded loaded = load(kTrained, options);
  oriel_model* const model = loaded.model.get();
  ASSERT_EQ(ORIEL_OK, append(loaded, {1, 2, 3}));
  std::atomic<bool> inside{false};
  std::atomic<bool> goes_on{false};
  Inside waits;
  waits.work = [&] {
    inside = true;
    while (!goes_on.load()) {
      std::this_thread::yield();
    }
    EXPECT_EQ("none", describe(model).at("resident").at("level"));
  };
  std::thread replying([&] {
    const ReplyOptions few = greedyOptions(2);
    EXPECT_EQ(ORIEL_OK,
              oriel_session_generate(loaded.session.get(), &few, Inside::onToken, &waits, nullptr));
  });
  while (!inside.load()) {
    std::this_thread::yield();
  }
  std::thread trimming(
      [&] { EXPECT_EQ(ORIEL_OK, oriel_trim(model, ORIEL_TRIM_SCRATCH, nullptr)); });
  while (oriel_prefix_set(model, nullptr) != ORIEL_ERROR_STATE ||
         !log.says("oriel_resume")) {  // until the trim has begun
    std::this_thread::yield();
  }
  EXPECT_EQ("none", describe(model).at("resident").at("level"));
  EXPECT_EQ(0u, describe(model).at("prefix").at("tokens"));
  goes_on = true;
  replying.join();
  trimming.join();
  EXPECT_EQ("scratch", describe(model).at("resident").at("level"));
}

// An app that responds to every error line with the same wrong call.
TEST(CallbacksOfTheLog, may_not_change_the_session_and_do_not_go_round_for_ever) {
  struct App {
    Loaded loaded;
    uint32_t lines = 0;
    static void onLog(oriel_log_level level, const char*, void* user) {
      App* const self = static_cast<App*>(user);
      if (level != ORIEL_LOG_ERROR || self->loaded.session == nullptr) {
        return;
      }
      ++self->lines;
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(self->loaded.session.get()));
      oriel_session_destroy(self->loaded.session.get());
      oriel_model_free(self->loaded.model.get());
    }
  } app;
  Options options = cpuOptions(nullptr);
  options.log = App::onLog;
  options.log_user = &app;
  Loaded loaded = load(kRandom, options);
  app.loaded.model.swap(loaded.model);
  app.loaded.session.swap(loaded.session);
  const int32_t wrong = -1;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_append(app.loaded.session.get(), &wrong, 1, nullptr, nullptr));
  EXPECT_LE(1u, app.lines);
  EXPECT_GE(8u, app.lines);
  EXPECT_EQ(ORIEL_OK, append(app.loaded, {1, 2}));
}

TEST(Model, that_has_a_session_is_not_freed) {
  CapturedLog log;
  Loaded loaded = load(kRandom, cpuOptions(&log));
  oriel_model* const model = loaded.model.get();
  oriel_model_free(model);
  EXPECT_EQ(1u, errorLines(log));
  EXPECT_TRUE(log.says("destroy its sessions first")) << log.errors();
  EXPECT_EQ(ORIEL_OK, append(loaded, {1, 2, 3}));
  loaded.session.reset();
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
  oriel_session_destroy(session);
  loaded.model.reset();
  EXPECT_EQ(1u, errorLines(log));
}

TEST_F(Callbacks, a_second_thread_is_refused_while_the_first_is_in_a_call) {
  const std::function<void()> work = tryEverything(/*from_another_thread=*/true);
  inside_.work = [&] { std::thread(work).join(); };
  const ReplyOptions options = greedyOptions(4);
  EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session(), &options, Inside::onToken, &inside_, nullptr));
  EXPECT_TRUE(tried_);
  EXPECT_STREQ("", oriel_session_last_error(session())) << "those were the other thread's";
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(session()));
}

}  // namespace
}  // namespace oriel_internal::test::test_callbacks
