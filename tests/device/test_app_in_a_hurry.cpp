// Calls by an app that only skimmed the headers: each is answered, refused, or a no-op.
#include <cstring>
#include <limits>

#include "support/files.h"
#include "support/recovery.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_app_in_a_hurry {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

template <typename Struct>
Struct sized() {
  Struct made = {};
  made.struct_size = sizeof(made);
  return made;
}

ModelPtr loadModel(const Options& options, const char* path = kTrained) {
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_model_load(path, &options, &model));
  return ModelPtr(model);
}

const char* const kBrackets =
    "{% for m in messages %}{% if m.role == 'admin' %}{{ raise_exception('no admin') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
const char* const kAngles =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

// ---- Reserved memory without a prefix ------------------------------------------------------------

class RoomForAPrefix : public ScratchFolder {
 protected:
  RoomForAPrefix() {
    Options options = cpuOptions(&log_);
    options.sessions = 2;
    options.set("prefix_tokens", 60);
    model_ = loadModel(options);
  }
  SessionPtr sessionOf(const std::vector<int32_t>& ids) {
    SessionPtr session = newSession(model_);
    EXPECT_EQ(ORIEL_OK, append(session, ids));
    return session;
  }

  CapturedLog log_;
  ModelPtr model_;
  const std::vector<int32_t> ids_ = someIds(33, 500);
};

TEST_F(RoomForAPrefix, keeps_its_sinks_when_the_cache_was_in_a_file) {
  SessionPtr session = sessionOf(ids_);
  EXPECT_EQ(ORIEL_OK, append(session, {400}));
  const std::vector<float> expected = logitsOf(session);
  session.reset();
  session = sessionOf(ids_);
  EXPECT_EQ(ORIEL_OK, oriel_trim(model_.get(), ORIEL_TRIM_CACHE, path("").c_str()));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model_.get(), nullptr, nullptr));
  EXPECT_EQ(ORIEL_OK, append(session, {400}));
  EXPECT_EQ(expected, logitsOf(session));
}

TEST_F(RoomForAPrefix, is_of_one_session_which_is_not_forked) {
  const SessionPtr session = sessionOf(ids_);
  oriel_session* fork = nullptr;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_fork(session.get(), &fork));
  EXPECT_EQ(nullptr, fork);
  EXPECT_NE(nullptr, std::strstr(oriel_session_last_error(session.get()), "oriel_prefix_set"));
  EXPECT_EQ(ORIEL_OK, oriel_prefix_set(model_.get(), session.get()));
  EXPECT_EQ(ORIEL_OK, oriel_session_fork(session.get(), &fork));
  oriel_session_destroy(fork);
}

TEST_F(RoomForAPrefix, no_session_is_said_to_have_less_than_the_prefix) {
  const SessionPtr first = sessionOf(ids_);
  EXPECT_EQ(ORIEL_OK, oriel_prefix_set(model_.get(), first.get()));
  EXPECT_EQ(ORIEL_OK, append(first, {400}));
  const std::vector<float> expected = logitsOf(first);
  SessionOptions options;
  options.set("assumed_tokens", 3);
  oriel_session* other = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(model_.get(), &options, &other));
  EXPECT_EQ(nullptr, other);
  options.set("assumed_tokens", 33);
  EXPECT_EQ(ORIEL_OK, oriel_session_create(model_.get(), &options, &other)) << log_.errors();
  const SessionPtr second(other);
  EXPECT_EQ(ORIEL_OK, append(second, someIds(60, 900)));
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(first.get()));
  EXPECT_EQ(ORIEL_OK, append(first, {400}));
  EXPECT_EQ(expected, logitsOf(first));
}

TEST_F(RoomForAPrefix, a_session_of_another_day_begins_behind_it) {
  SessionOptions options;
  options.set("date", 20240101);
  const SessionPtr first = newSession(model_, &options);
  EXPECT_EQ(ORIEL_OK, append(first, ids_));
  EXPECT_EQ(ORIEL_OK, oriel_prefix_set(model_.get(), first.get()));
  options.set("date", 20301231);
  EXPECT_EQ(ids_.size(), positionOf(newSession(model_, &options)));
}

// ---- Conversations -------------------------------------------------------------------------------

class HurriedChat : public ScratchFolder {
 protected:
  HurriedChat() {
    options_ = cpuOptions(&log_);
    options_.set("transcript", 1 << 15);
    options_.set("constraints", true);
    options_.sessions = 4;
    model_ = loadModel(options_);
  }
  SessionPtr chatWith(const char* chat_template) {
    SessionOptions options;
    options.chat_template = chat_template;
    options.progress = countProgress;
    options.progress_user = this;
    return newSession(model_, &options);
  }
  static int countProgress(uint64_t, uint64_t, void* user) {
    return static_cast<HurriedChat*>(user)->cancels_ ? 1 : 0;
  }
  static std::vector<uint8_t> saved(const SessionPtr& session) { return savedBytes(session.get()); }

  CapturedLog log_;
  Options options_ = {};
  ModelPtr model_;
  bool cancels_ = false;
};

TEST_F(HurriedChat, a_snapshot_that_cannot_be_read_leaves_what_was_said) {
  const SessionPtr strange = chatWith(kAngles);
  ASSERT_EQ(ORIEL_OK, say(strange, "first"));
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(strange.get(), "admin", "second", 6));
  const std::vector<uint8_t> snapshot = saved(strange);
  const SessionPtr own = chatWith(kBrackets);
  ASSERT_EQ(ORIEL_OK, say(own, "My important conversation."));
  ASSERT_EQ(ORIEL_OK, speak(own, oriel_chat_reply, 6).status);
  const std::string said = transcriptOf(own);
  const std::vector<int32_t> expected = generateIds(own, 8);
  ASSERT_EQ(ORIEL_OK, oriel_session_go_back(own.get(), ORIEL_BACK_BY_TURNS, 1, nullptr, 0));

  const SessionPtr again = chatWith(kBrackets);
  ASSERT_EQ(ORIEL_OK, say(again, "My important conversation."));
  ASSERT_EQ(ORIEL_OK, speak(again, oriel_chat_reply, 6).status);
  ASSERT_EQ(said, transcriptOf(again));
  const uint64_t position = positionOf(again);
  const auto readSnapshot = [&] {
    return oriel_snapshot_restore(again.get(), snapshot.data(), snapshot.size(), ORIEL_RESTORE_READ,
                                  nullptr);
  };
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, readSnapshot());
  EXPECT_EQ(said, transcriptOf(again));
  EXPECT_EQ(0u, positionOf(again));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model_.get(), nullptr, nullptr));
  EXPECT_EQ(position, positionOf(again));
  EXPECT_EQ(said, transcriptOf(again));

  const SessionPtr other = chatWith(kAngles);
  ASSERT_EQ(ORIEL_OK, say(other, "first"));
  ASSERT_EQ(ORIEL_OK, say(other, "second"));
  const std::vector<uint8_t> sound = saved(other);
  cancels_ = true;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_snapshot_restore(again.get(), sound.data(), sound.size(),
                                                          ORIEL_RESTORE_READ, nullptr));
  cancels_ = false;
  EXPECT_EQ(said, transcriptOf(again));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model_.get(), nullptr, nullptr));
  EXPECT_EQ(position, positionOf(again));
  EXPECT_EQ(expected.size(), generateIds(again, 8).size());
}

TEST_F(HurriedChat, two_templates_are_two_formats) {
  const SessionPtr angles = chatWith(kAngles);
  ASSERT_EQ(ORIEL_OK, say(angles, "first"));
  const std::vector<uint8_t> snapshot = saved(angles);
  EXPECT_EQ(ORIEL_OK, restoreFrom(chatWith(kAngles).get(), snapshot));
  const SessionPtr brackets = chatWith(kBrackets);
  EXPECT_EQ(ORIEL_ERROR_FORMAT, restoreFrom(brackets.get(), snapshot));
  EXPECT_TRUE(log_.says("chat format jinja-")) << log_.errors();
}

TEST_F(HurriedChat, a_reply_that_no_token_can_begin_is_asked_for_again) {
  const SessionPtr session = chatWith(nullptr);
  ASSERT_EQ(ORIEL_OK, say(session, "Hello."));
  const uint64_t position = positionOf(session);
  const std::string said = transcriptOf(session);
  std::vector<Bias> none;
  for (int32_t id = 0; id < 1024; ++id) {
    none.push_back({id, -std::numeric_limits<float>::infinity()});
  }
  ReplyOptions options = greedyOptions(5);
  addBiases(&options, none);
  options.set("grammar", "root ::= \"a\"");
  EXPECT_NE(ORIEL_OK, speak(session, oriel_chat_reply, options).status);
  EXPECT_EQ(position, positionOf(session));
  EXPECT_EQ(said, transcriptOf(session));
  auto reply = sized<oriel_reply>();
  reply.session = session.get();
  reply.options = &options;
  EXPECT_NE(ORIEL_OK, oriel_reply_many(&reply, 1));
  EXPECT_EQ(position, positionOf(session));

  const Said answer = speak(session, oriel_chat_reply, 5);
  EXPECT_EQ(ORIEL_OK, answer.status) << log_.errors();
  const SessionPtr calm = chatWith(nullptr);
  ASSERT_EQ(ORIEL_OK, say(calm, "Hello."));
  EXPECT_EQ(speak(calm, oriel_chat_reply, 5).text, answer.text);
  EXPECT_EQ(transcriptOf(calm), transcriptOf(session));
}

TEST_F(HurriedChat, text_that_is_in_no_message_is_not_given_up) {
  const SessionPtr session = chatWith(nullptr);
  ASSERT_EQ(ORIEL_OK, say(session, "Hello."));
  ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 5).status);
  EXPECT_EQ(ORIEL_OK, oriel_trim(model_.get(), ORIEL_TRIM_ALL, nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model_.get(), nullptr, nullptr));
  ASSERT_EQ(ORIEL_OK, append(session, {300, 301, 302}));
  const uint64_t position = positionOf(session);
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_trim(model_.get(), ORIEL_TRIM_ALL, nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model_.get(), nullptr, nullptr));
  EXPECT_EQ(position, positionOf(session));
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(session.get()));
  ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session.get(), "Once.", 5, 0));
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_trim(model_.get(), ORIEL_TRIM_ALL, nullptr));
}

TEST_F(HurriedChat, a_folder_without_a_name_is_not_the_root) {
  const SessionPtr session = chatWith(nullptr);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_trim(model_.get(), ORIEL_TRIM_CACHE, ""));
  EXPECT_TRUE(log_.says("folder")) << log_.errors();
  EXPECT_EQ(ORIEL_OK, say(session, "Hello."));
  Options recalls = cpuOptions(&log_);
  recalls.set("retrieval", 1 << 20);
  recalls.set("retrieval_folder", "");
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kTrained, &recalls, &model));
  EXPECT_EQ(nullptr, model);
}

// ---- Arguments -----------------------------------------------------------------------------------

TEST(Hurried, what_a_failed_call_would_have_made_is_null) {
  int something = 0;
  const oriel_options unsized_options = {};
  auto* model = reinterpret_cast<oriel_model*>(&something);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kTrained, &unsized_options, &model));
  EXPECT_EQ(nullptr, model);
  model = reinterpret_cast<oriel_model*>(&something);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(nullptr, nullptr, &model));
  EXPECT_EQ(nullptr, model);
  const Loaded loaded = load(kTrained, cpuOptions(nullptr));
  auto* session = reinterpret_cast<oriel_session*>(&something);
  const oriel_session_options unsized_session = {};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_create(loaded.model.get(), &unsized_session, &session));
  EXPECT_EQ(nullptr, session);
  session = reinterpret_cast<oriel_session*>(&something);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_fork(nullptr, &session));
  EXPECT_EQ(nullptr, session);
}

TEST(Hurried, a_struct_size_of_another_meaning_is_none) {
  const Loaded loaded = load(kTrained, cpuOptions(nullptr));
  ReplyOptions options = greedyOptions(1);
  oriel_stats stats = {};
  for (const size_t size : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 20, size_t{3}, size_t{0}}) {
    options.struct_size = stats.struct_size = size;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_session_generate(loaded.session.get(), &options, nullptr, nullptr, nullptr));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_get_stats(loaded.session.get(), &stats));
  }
}

TEST(Hurried, bits_that_are_no_flags_are_refused) {
  const Loaded loaded = load(kTrained, cpuOptions(nullptr));
  oriel_session* const session = loaded.session.get();
  EXPECT_EQ(ORIEL_OK, append(loaded, {300, 301}));
  EXPECT_EQ(ORIEL_OK, oriel_session_mark(session, "here"));
  int32_t ids[64];
  char text[64];
  size_t needed = 0;
  const std::string message = messagesJson({{"user", "x"}});
  for (const uint32_t flags : {4u, 0x80000000u, UINT32_MAX}) {
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_append_text(session, "x", 1, flags));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_tokenize(loaded.model.get(), "x", 1, flags, ids, 64, &needed));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_detokenize(loaded.model.get(), ids, 0, flags, text, 64, &needed));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_render_tokens(loaded.model.get(), nullptr, message.data(), message.size(),
                                  flags == 4 ? 8u : flags, ids, 64, &needed));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_session_go_back(session, ORIEL_BACK_TO_MARK, 0, "here", flags));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_session_go_back(session, ORIEL_BACK_BY_TURNS, 1, nullptr, flags));
  }
  EXPECT_EQ(2u, statsOf(loaded).position);
}

TEST(Hurried, an_empty_conversation_is_measured_without_a_buffer) {
  const Loaded loaded = load(kTrained, cpuOptions(nullptr));
  SessionOptions chat;
  chat.chat_template = "plain";
  size_t needed = 1;
  EXPECT_EQ(ORIEL_OK, oriel_render(loaded.model.get(), &chat, nullptr, 0, 0, nullptr, 0, &needed));
  EXPECT_EQ(0u, needed);
}

TEST(Hurried, no_weights_no_layers) {
  Options options = cpuOptions(nullptr);
  options.device = "none";
  const ModelPtr model = loadModel(options);
  oriel_plan plan = ORIEL_PLAN_INIT;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_model_get_plan(model.get(), &plan));
  const Json all = describe(model);
  EXPECT_TRUE(all.at("layers").empty());
  EXPECT_TRUE(all.at("plan").is_null());
}

TEST(Hurried, an_empty_system_prompt_is_no_prefix) {
  CapturedLog log;
  Options options = cpuOptions(&log);
  const std::string folder = testing::TempDir();
  options.set("retrieval", 1 << 20);
  options.set("retrieval_folder", folder);
  options.system_prompt = "";
  EXPECT_NE(nullptr, loadModel(options)) << log.errors();
}

// ---- Callbacks that end the model ----------------------------------------------------------------

struct Closing {
  oriel_model* model = nullptr;
  uint32_t tried = 0;

  static int onProgress(uint64_t, uint64_t, void* user) {
    static_cast<Closing*>(user)->close();
    return 0;
  }
  static int onPart(const oriel_part*, void* user) {
    static_cast<Closing*>(user)->close();
    return 0;
  }
  static void onLog(oriel_log_level level, const char*, void* user) {
    Closing* const self = static_cast<Closing*>(user);
    if (level == ORIEL_LOG_ERROR && self->model != nullptr) {
      self->close();
    }
  }
  void close() {
    if (tried++ == 0) {
      oriel_model_free(model);
    }
  }
};

class ClosedWindow : public ScratchFolder {
 protected:
  ClosedWindow() {
    Options options = cpuOptions(nullptr);
    options.log = Closing::onLog;
    options.log_user = &closing_;
    options.set("prefix_tokens", 40);
    model_ = loadModel(options);
    closing_.model = model_.get();
  }
  void expectThere(uint32_t tried) {
    EXPECT_LE(tried, closing_.tried);
    closing_.model = nullptr;
    const SessionPtr session = newSession(model_);
    EXPECT_EQ(ORIEL_OK, append(session, {300, 301}));
  }

  Closing closing_;
  ModelPtr model_;
};

RUNS_ON(kOneDevice);
TEST_F(ClosedWindow, while_weights_are_read_again) {
  ASSERT_EQ(ORIEL_OK, oriel_trim(model_.get(), ORIEL_TRIM_WEIGHTS, nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model_.get(), Closing::onProgress, &closing_));
  expectThere(1);
}

TEST_F(ClosedWindow, while_a_reply_is_read_apart) {
  EXPECT_EQ(ORIEL_OK,
            oriel_parse_reply(model_.get(), nullptr, 0, "Yes.", 4, Closing::onPart, &closing_));
  expectThere(1);
}

TEST_F(ClosedWindow, while_the_log_is_told_why_not) {
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_trim(model_.get(), ORIEL_TRIM_CACHE, path("nowhere").c_str()));
  EXPECT_LE(1u, closing_.tried);
  closing_.tried = 0;
  size_t needed = 0;
  const int32_t none = -1;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_detokenize(model_.get(), &none, 1, 0, nullptr, 0, &needed));
  EXPECT_LE(1u, closing_.tried);
  closing_.tried = 0;
  SessionOptions options;
  options.set("first_position", UINT64_MAX);
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(model_.get(), &options, &session));
  expectThere(1);
}

}  // namespace
}  // namespace oriel_internal::test::test_app_in_a_hurry
