// Options given by name: texts are copied during the call, and error lines use the caller's words.
#include "support/sessions.h"

namespace oriel_internal::test::test_given_options {
namespace {

/// A setting whose memory is overwritten after the call.
class Passing {
 public:
  Passing& add(const std::string& name, const std::string& value) {
    texts_.push_back(std::make_unique<std::string>(name));
    texts_.push_back(std::make_unique<std::string>(value));
    list_.push_back({texts_[texts_.size() - 2]->c_str(), texts_.back()->c_str()});
    return *this;
  }
  const char* text(const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));
    return texts_.back()->c_str();
  }
  template <typename Struct>
  void give(Struct* options) const {
    options->settings = list_.data();
    options->setting_count = list_.size();
  }
  void end() {
    for (const auto& one : texts_) {
      std::fill(one->begin(), one->end(), '?');
    }
    texts_.clear();
    std::fill(list_.begin(), list_.end(), oriel_setting{"?", "?"});
    list_.clear();
  }

 private:
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<oriel_setting> list_;
};

const char* const kTools =
    R"([{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}])";
const char* const kTemplate =
    "{% if tools %}<tools>{{ tools|tojson }}{{ docs_of }}</tools>{% endif %}"
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

TEST(GivenOptions, a_session_keeps_copies_of_its_texts) {
  CapturedLog log;
  Options options = cpuOptions(&log, 600, 64);
  options.sessions = 2;
  Loaded loaded = load(kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  loaded.session.reset();
  const auto talk = [&](const SessionPtr& session) {
    Heard heard;
    for (const char* text : {"What time is it?", "And now?"}) {
      EXPECT_EQ(ORIEL_OK, oriel_chat_add(session.get(), "user", text, std::strlen(text)));
      const ReplyOptions greedy = greedyOptions(12);
      EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session.get(), &greedy, hear, &heard, nullptr));
    }
    return heard.ids;
  };
  const auto held = [](const SessionPtr& session) {
    std::vector<int32_t> ids(600);
    size_t needed = 0;
    EXPECT_EQ(ORIEL_OK,
              oriel_session_get_tokens(session.get(), 0, ids.data(), ids.size(), &needed));
    ids.resize(needed);
    return ids;
  };
  SessionOptions staying;
  staying.chat_template = kTemplate;
  staying.tools = kTools;
  staying.set("template_variables", R"({"docs_of": "today"})").set("thinking", "off");
  oriel_session* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), &staying, &made)) << log.errors();
  const SessionPtr expected(made);

  Passing passing;
  passing.add("template_variables", R"({"docs_of": "today"})").add("thinking", "off");
  oriel_session_options given = ORIEL_SESSION_OPTIONS_INIT;
  given.chat_template = passing.text(kTemplate);
  given.tools = passing.text(kTools);
  passing.give(&given);
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), &given, &made)) << log.errors();
  const SessionPtr session(made);
  passing.end();

  EXPECT_EQ(describe(expected)["options"], describe(session)["options"]);
  EXPECT_EQ(talk(expected), talk(session));
  EXPECT_EQ(held(expected), held(session));
  EXPECT_EQ("", log.errors());
}

TEST(GivenOptions, a_model_keeps_copies_of_its_settings) {
  CapturedLog log;
  Passing passing;
  passing.add("kv", "k8v4").add("sinks", "7").add("session_windows", "64,48");
  oriel_options given = ORIEL_OPTIONS_INIT;
  given.memory_bytes = 64u << 20;
  given.window_tokens = 96;
  given.sessions = 3;
  given.device = passing.text("cpu");
  given.system_prompt = passing.text("Be kind.");
  passing.give(&given);
  oriel_model* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &given, &made));
  const ModelPtr model(made);
  passing.end();
  const Json options = describe(model)["options"];
  EXPECT_EQ("k8v4", options.at("kv"));
  EXPECT_EQ("7", options.at("sinks"));
  EXPECT_EQ("64,48,96", options.at("session_windows"));
  EXPECT_EQ("cpu", options.at("device"));
  ASSERT_EQ(ORIEL_OK, oriel_trim(model.get(), ORIEL_TRIM_WEIGHTS, nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_resume(model.get(), nullptr, nullptr));
}

TEST(GivenOptions, a_value_by_name_replaces_the_field) {
  Options options = cpuOptions(nullptr, 64);
  options.set("window", 48);
  EXPECT_EQ(48u, planOf(kTrained, options).window_tokens);
  const Loaded loaded = load(kTrained, cpuOptions(nullptr));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello"));
  ReplyOptions reply = greedyOptions(9);
  reply.set("max_tokens", 2);
  EXPECT_EQ(2u, listen(oriel_chat_reply, loaded, reply).ids.size());
}

/// One line, which names the caller's text.
void expectSaid(const CapturedLog& log, const std::vector<std::string>& words) {
  EXPECT_EQ(1u, errorLines(log)) << log.errors();
  for (const std::string& word : words) {
    EXPECT_TRUE(log.says(word)) << word << ": " << log.errors();
  }
}

TEST(GivenOptions, of_a_wrong_scope_are_told_where_they_belong) {
  CapturedLog log;
  Options load_options = cpuOptions(&log);
  load_options.set("temperature", 1);
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kTrained, &load_options, &model));
  expectSaid(log, {"\"temperature\"", "reply"});

  log.clear();
  Loaded loaded = load(kTrained, cpuOptions(&log));
  SessionOptions session_options;
  session_options.set("kv", "f16");
  loaded.session.reset();
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_create(loaded.model.get(), &session_options, &session));
  expectSaid(log, {"\"kv\"", "load"});
  EXPECT_STREQ(log.errors().c_str(), oriel_model_last_error(loaded.model.get()));

  log.clear();
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), nullptr, &session));
  loaded.session.reset(session);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello"));
  ReplyOptions reply = greedyOptions(2);
  reply.set("template", "chatml");
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_chat_reply(session, &reply, nullptr, nullptr, nullptr));
  expectSaid(log, {"\"template\"", "session"});
}

TEST(GivenOptions, that_are_not_known_are_guessed_and_wrong_values_get_the_range) {
  const std::pair<std::pair<const char*, const char*>, std::vector<std::string>> cases[] = {
      {{"prefil_batch", "8"}, {"\"prefil_batch\"", "did you mean \"prefill_batch\""}},
      {{"activation_bits", "9"}, {"\"activation_bits\"", "\"9\"", "16 or 8"}},
      {{"speculate", "16"}, {"\"speculate\"", "\"16\"", "0 to 15"}},
      {{"offload", "some"}, {"\"offload\"", "\"some\"", "rows"}},
      {{"device", "vulkan:x"}, {"\"device\"", "\"vulkan:x\""}},
      {{"colour", "red"}, {"\"colour\"", "not known"}}};
  for (const auto& [given, words] : cases) {
    CapturedLog log;
    char line[1024] = "";
    Options options = cpuOptions(&log);
    options.set(given.first, given.second);
    options.error_line = line;
    options.error_line_bytes = sizeof(line);
    oriel_plan plan = ORIEL_PLAN_INIT;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_plan_file(kTrained, &options, &plan)) << given.first;
    expectSaid(log, words);
    EXPECT_EQ(log.errors(), line);
  }
}

TEST(GivenOptions, that_contradict_each_other_are_refused_by_name) {
  struct Pair {
    const char* first;
    const char* value;
    const char* second;
    const char* other;
  };
  const Pair pairs[] = {{"min_window", "300", "window", "200"},
                        {"draft_model", "none.gguf", "sessions", "2"},
                        {"prefix_file", "none.bin", "system_prompt", "Be kind."},
                        {"retrieval", "1MB", "prefix_tokens", "8"}};
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.first);
    CapturedLog log;
    Options options = cpuOptions(&log);
    options.set("retrieval_folder", testing::TempDir());
    options.set(pair.first, pair.value).set(pair.second, pair.other);
    oriel_model* model = nullptr;
    const oriel_status status = oriel_model_load(kTrained, &options, &model);
    EXPECT_TRUE(status == ORIEL_ERROR_ARGUMENT || status == ORIEL_ERROR_UNSUPPORTED) << status;
    expectSaid(log,
               {std::string("\"") + pair.first + "\"", std::string("\"") + pair.second + "\""});
  }
  CapturedLog log;
  Options with_constraints = cpuOptions(&log);
  with_constraints.set("constraints", true);
  Loaded loaded = load(kTrained, with_constraints);
  ReplyOptions both = greedyOptions(4);
  both.schema = "{}";
  both.set("grammar", "root ::= \"a\"");
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello"));
  log.clear();
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, listen(oriel_chat_reply, loaded, both).status);
  expectSaid(log, {"\"schema\"", "\"grammar\""});
  log.clear();
  loaded.session.reset();
  SessionOptions forgets;
  forgets.set("forget", true).set("evict", "tokens");
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(loaded.model.get(), &forgets, &session));
  expectSaid(log, {"\"forget\"", "\"evict\""});
}

}  // namespace
}  // namespace oriel_internal::test::test_given_options
