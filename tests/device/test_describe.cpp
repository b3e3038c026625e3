// The describe calls: buffer handling, and docs/reference/describe.md names exactly the existing fields.
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "oriel/advanced.h"
#include "support/describe.h"
#include "support/files.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_describe {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

using Names = std::set<std::string>;

std::string page() {
  std::ifstream in(ORIEL_SOURCE_DIR "/docs/reference/describe.md");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string section(const std::string& title) {
  static const std::string all = page();
  const size_t begin = all.find("\n## " + title + "\n");
  EXPECT_NE(std::string::npos, begin) << title;
  return all.substr(begin + 1, all.find("\n## ", begin + 1) - begin);
}

/// Names in code outside of parentheses and brackets; for `[{"a", "b"}]` the names in quotes.
Names namesIn(std::string text) {
  Names names;
  static const std::regex kList("`\\[?\\{([^}]*)\\}\\]?`"), kQuoted("\"([a-z_0-9]+)\"");
  static const std::regex kInner("\\([^)]*\\)|\\[[^\\]]*\\]"), kCode("`([a-z_0-9]+)`");
  const auto add = [&](const std::string& from, const std::regex& name) {
    for (std::sregex_iterator at(from.begin(), from.end(), name), end; at != end; ++at) {
      names.insert((*at)[1]);
    }
  };
  for (std::smatch list; std::regex_search(text, list, kList);) {
    add(list[1], kQuoted);
    text = list.prefix().str() + list.suffix().str();
  }
  add(std::regex_replace(text, kInner, ""), kCode);
  return names;
}

struct Row {
  Names fields;
  std::string meaning;
};

std::vector<Row> rowsOf(const std::string& title) {
  std::vector<Row> rows;
  const std::string text = section(title);
  static const std::regex kRow("\n\\| (`[^|]*) \\| ([^\n]*) \\|");
  for (std::sregex_iterator at(text.begin(), text.end(), kRow), end; at != end; ++at) {
    rows.push_back({namesIn((*at)[1]), (*at)[2]});
  }
  EXPECT_FALSE(rows.empty()) << title;
  return rows;
}

Names fieldsOf(const Json& object) {
  Names names;
  for (const auto& [name, value] : object.items()) {
    names.insert(name);
  }
  return names;
}

/// Checks the rows, and the objects and lists of objects that a row explains.
void expectTable(const std::string& title, const Json& object) {
  Names named;
  for (const Row& row : rowsOf(title)) {
    named.insert(row.fields.begin(), row.fields.end());
    for (const std::string& field : row.fields) {
      ASSERT_TRUE(object.contains(field)) << title << ": " << field;
      const Json& value = object.at(field);
      const Json& one = value.is_array() && !value.empty() ? value.at(0) : value;
      if (one.is_object() && field != "options" && field != "plan" &&
          row.meaning.rfind("as in", 0) != 0) {
        EXPECT_EQ(namesIn(row.meaning), fieldsOf(one)) << title << ": " << field;
      }
    }
  }
  EXPECT_EQ(named, fieldsOf(object)) << title;
}

/// Prose sections name fields in code; their values are in parentheses.
void expectNamed(const std::string& title, const Json& object) {
  EXPECT_EQ(namesIn(section(title)), fieldsOf(object)) << title;
}

class Describe : public ScratchFolder {
 protected:
  Describe() {
    Options options = cpuOptions(&log_);
    options.set("transcript", 4096).set("kv", "k8v4");
    loaded_ = load(kTrained, options);
    EXPECT_EQ(ORIEL_OK, add(loaded_, "user", "Hello there."));
    EXPECT_EQ(ORIEL_OK, oriel_session_mark(loaded_.session.get(), "here"));
  }
  std::vector<uint8_t> snapshot() const { return savedBytes(loaded_.session.get()); }

  CapturedLog log_;
  Loaded loaded_;
};

using Fill = std::function<oriel_status(char*, size_t, size_t*)>;

TEST_F(Describe, every_call_fills_a_buffer_by_the_rule_of_the_header) {
  const std::vector<uint8_t> bytes = snapshot();
  const Options options = cpuOptions(&log_);
  oriel_session* const session = loaded_.session.get();
  oriel_model* const model = loaded_.model.get();
  const std::pair<const char*, Fill> calls[] = {
      {"plan",
       [&](char* t, size_t n, size_t* needed) {
         return oriel_plan_describe(kTrained, &options, t, n, needed);
       }},
      {"model", [&](char* t, size_t n,
                    size_t* needed) { return oriel_model_describe(model, t, n, needed); }},
      {"session", [&](char* t, size_t n,
                      size_t* needed) { return oriel_session_describe(session, t, n, needed); }},
      {"file",
       [&](char* t, size_t n, size_t* needed) {
         return oriel_file_describe(kTrained, &options, t, n, needed);
       }},
      {"device", [&](char* t, size_t n,
                     size_t* needed) { return oriel_device_describe(&options, 0, t, n, needed); }},
      {"snapshot",
       [&](char* t, size_t n, size_t* needed) {
         return oriel_snapshot_describe(nullptr, bytes.data(), bytes.size(), nullptr, t, n, needed);
       }},
      {"shape",
       [&](char* t, size_t n, size_t* needed) {
         return oriel_shape_describe("llama-3.2-1b", &options, t, n, needed);
       }},
      {"shapes", oriel_shape_list},
      {"options", oriel_option_list},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    log_.clear();
    size_t needed = 0;
    EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, call(nullptr, 0, &needed));
    ASSERT_GT(needed, 2u);
    std::string text(needed + 1, '?');
    size_t again = 0;
    EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, call(text.data(), needed - 1, &again));
    EXPECT_EQ(needed, again);
    EXPECT_EQ('?', text[needed - 1]) << "behind the capacity";
    again = 0;
    ASSERT_EQ(ORIEL_OK, call(text.data(), needed, &again));
    EXPECT_EQ(needed, again);
    EXPECT_EQ('\0', text[needed - 1]);
    EXPECT_EQ('?', text[needed]);
    text.resize(needed - 1);
    EXPECT_EQ(std::string::npos, text.find('\0'));
    EXPECT_EQ(std::string::npos, text.find('\n')) << "one line";
    EXPECT_TRUE(Json::parse(text, nullptr, false).is_object()) << text;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, call(text.data(), text.size(), nullptr));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, call(nullptr, 1, &needed));
    EXPECT_EQ("", log_.errors()) << "no line for NULL and small buffers";
  }
}

TEST_F(Describe, null_objects_are_refused_without_a_line) {
  char text[8];
  size_t needed = 0;
  const Options options = cpuOptions(&log_);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_plan_describe(nullptr, &options, text, 8, &needed));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_describe(nullptr, text, 8, &needed));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_describe(nullptr, text, 8, &needed));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_file_describe(nullptr, &options, text, 8, &needed));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_snapshot_describe(nullptr, nullptr, 0, &options, text, 8, &needed));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_shape_describe(nullptr, &options, text, 8, &needed));
  EXPECT_EQ("", log_.errors());
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_device_describe(&options, 2, text, 8, &needed));
}

TEST_F(Describe, the_page_has_the_fields_of_a_plan) {
  expectTable("Plan", describePlan(kTrained, cpuOptions(nullptr)));
  expectTable("Plan", describeShape("qwen3.5-0.8b:q8_0", Options()));
}

// For a plan with rates: only these have steps.
TEST_F(Describe, the_page_has_the_fields_of_a_predicted_step) {
  oriel_speed speed = ORIEL_INIT(oriel_speed);
  speed.submit_ns = speed.dispatch_ns = 1000;
  speed.read_bytes_per_s = 1e9;
  speed.weight_count = speed.cache_count = 1;
  speed.weights[0] = {8, 1, 1, 1, 1};
  speed.caches[0] = {ORIEL_KV_F16, ORIEL_KV_F16, 1, 1, 0, 0};
  Options options = cpuOptions(nullptr);
  options.set("kv", "f16");
  options.speed = &speed;
  const Json plan = describePlan(kTrained, options);
  expectTable("Plan", plan);
  ASSERT_TRUE(plan.at("decode").is_object());
  ASSERT_FALSE(plan.at("decode").at("groups").empty());
  EXPECT_EQ((Names{"window_tokens", "s_per_token"}),
            fieldsOf(plan.at("decode").at("groups").at(0)));
}

TEST_F(Describe, the_page_has_the_fields_of_a_model) {
  const Json model = describe(loaded_.model);
  expectTable("Model", model);
  EXPECT_EQ(describePlan(kTrained, cpuOptions(nullptr)).size(), model.at("plan").size());
  EXPECT_EQ("k8v4", model.at("options").at("kv"));
  EXPECT_EQ("4096", model.at("options").at("transcript"));
  EXPECT_EQ("200", model.at("options").at("window"));
  EXPECT_FALSE(model.at("options").contains("sinks")) << "it has its default";
}

TEST_F(Describe, the_page_has_the_fields_of_a_session) {
  const Json session = describe(loaded_.session);
  expectTable("Session", session);
  const oriel_stats stats = statsOf(loaded_);
  EXPECT_EQ(stats.position, session.at("position"));
  EXPECT_EQ(stats.turn_count, session.at("turns").size());
  EXPECT_EQ(stats.device_bytes, session.at("device_bytes"));
  EXPECT_EQ("here", session.at("marks").at(0).at("name"));
}

TEST_F(Describe, the_page_has_the_fields_of_a_file) {
  Names named = namesIn(section("File"));
  for (const Row& row : rowsOf("Model")) {
    if (row.meaning.rfind("texts of the file", 0) == 0 ||
        row.meaning.rfind("numbers of the file", 0) == 0 || row.fields.count("bos_id") != 0 ||
        row.fields.count("fill_prefix_id") != 0) {
      named.insert(row.fields.begin(), row.fields.end());
    }
  }
  const Json file = describeFile(kTrained, Options());
  EXPECT_EQ(named, fieldsOf(file));
  EXPECT_EQ((Names{"tensors", "parameters", "bytes"}), fieldsOf(*file.at("tensor_sizes").begin()));
}

RUNS_ON(kOneDevice);
TEST_F(Describe, the_page_has_the_fields_of_devices_shapes_and_options) {
  for (const Json& device : describeDevices(Options())) {
    expectNamed("Device", device);
  }
  expectNamed("Shape", shapes().at(0));
  std::ifstream header(ORIEL_SOURCE_DIR "/runtime/include/oriel/advanced.h");
  const std::string text{std::istreambuf_iterator<char>(header), std::istreambuf_iterator<char>()};
  for (const Json& option : described(oriel_option_list).at("options")) {
    for (const std::string& field : fieldsOf(option)) {
      EXPECT_NE(std::string::npos, text.find("\"" + field + "\"")) << field;
    }
  }
}

TEST_F(Describe, the_page_has_the_fields_of_a_snapshot) {
  const std::vector<uint8_t> bytes = snapshot();
  expectNamed("Snapshot", describeSnapshot(bytes.data(), bytes.size()));
}

// Special characters in an app's names are escaped in JSON.
TEST_F(Describe, texts_of_an_app_are_escaped) {
  const std::string name = "a\"b\\c\n\x01";
  ASSERT_EQ(ORIEL_OK, oriel_session_mark(loaded_.session.get(), name.c_str()));
  EXPECT_EQ(name, describe(loaded_)["marks"].back().at("name"));
  SessionOptions options;
  options.chat_template = "{{ messages[0]['content'] }}\n\"\\";
  loaded_.session.reset();
  loaded_.session = newSession(loaded_.model, &options);
  EXPECT_EQ(options.chat_template, describe(loaded_)["options"]["template"]);
}

}  // namespace
}  // namespace oriel_internal::test::test_describe

namespace oriel_internal::test::test_last_error {

// The line of the last failed call, kept by the object of the call.

namespace {

std::string of(const oriel_session* session) { return oriel_session_last_error(session); }
std::string of(const oriel_model* model) { return oriel_model_last_error(model); }

class LastError : public testing::Test {
 protected:
  void SetUp() override {
    loaded_ = load(kTrained, cpuOptions(&log_));
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  oriel_session* session() const { return loaded_.session.get(); }
  oriel_model* model() const { return loaded_.model.get(); }
  std::string lastLine() const { return log_.lines.empty() ? "" : log_.lines.back().text; }

  CapturedLog log_;
  Loaded loaded_;
};

TEST_F(LastError, is_empty_before_the_first_and_then_what_the_log_was_told) {
  EXPECT_EQ("", of(session()));
  EXPECT_EQ("", of(model()));
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded_, {-1}));
  EXPECT_EQ(lastLine(), of(session()));
  EXPECT_NE(std::string::npos, of(session()).find("token id -1 is outside the vocabulary"));
  EXPECT_EQ("", of(model())) << "it was the session's";
  ASSERT_EQ(ORIEL_OK, append(loaded_, {1, 2, 3}));
  EXPECT_NE("", of(session())) << "until the next failure";
  ASSERT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(session(), 100));
  EXPECT_EQ(lastLine(), of(session()));
  EXPECT_EQ(std::string::npos, of(session()).find("vocabulary"));
}

TEST_F(LastError, is_kept_of_every_kind_of_failure) {
  const auto expectKept = [&](oriel_status expected, oriel_status status) {
    EXPECT_EQ(expected, status);
    EXPECT_EQ(lastLine(), of(session()));
    log_.clear();
  };
  ReplyOptions options = greedyOptions(1);
  options.set("top_p", 2);
  expectKept(ORIEL_ERROR_STATE,
             oriel_session_generate(session(), nullptr, nullptr, nullptr, nullptr));
  expectKept(ORIEL_ERROR_ARGUMENT,
             oriel_session_generate(session(), &options, nullptr, nullptr, nullptr));
  options = greedyOptions(1);
  options.set("grammar", "root ::= [a]");
  expectKept(ORIEL_ERROR_STATE, oriel_chat_reply(session(), &options, nullptr, nullptr, nullptr));
  expectKept(ORIEL_ERROR_ARGUMENT, oriel_chat_add(session(), nullptr, "{", 1));
  expectKept(ORIEL_ERROR_TEXT, oriel_session_append_text(session(), "\xff", 1, 0));
  expectKept(ORIEL_ERROR_FORMAT, oriel_snapshot_restore(session(), "not one", 7, 0, nullptr));
  expectKept(ORIEL_ERROR_IO, oriel_session_restore(session(), "/nowhere/at/all", 0, nullptr));
  expectKept(ORIEL_ERROR_IO, oriel_session_save(session(), "/nowhere/at/all", 0));
  int32_t id = 0;
  size_t needed = 0;
  expectKept(ORIEL_ERROR_CONTEXT, oriel_session_get_tokens(session(), 5, &id, 1, &needed));
  EXPECT_EQ("", of(model()));
}

TEST_F(LastError, of_the_model_is_of_calls_on_the_model) {
  const int32_t wrong = -1;
  char text[8];
  size_t needed = 0;
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_detokenize(model(), &wrong, 1, 0, text, sizeof(text), &needed));
  EXPECT_EQ(lastLine(), of(model()));
  oriel_session* second = nullptr;
  ASSERT_EQ(ORIEL_ERROR_STATE, oriel_session_create(model(), nullptr, &second));
  EXPECT_EQ(lastLine(), of(model()));
  EXPECT_EQ("", of(session()));
}

TEST_F(LastError, stays_where_a_call_fails_without_a_line) {
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded_, {-1}));
  const std::string line = of(session());
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_snapshot_save(session(), nullptr, 0, &needed));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_append(session(), nullptr, 1, nullptr, nullptr));
  const std::vector<int32_t> ids(64, 7);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_session_append(
                                       session(), ids.data(), ids.size(),
                                       [](size_t, const float*, size_t, void* self) {
                                         oriel_session_cancel(static_cast<oriel_session*>(self));
                                         return 0;
                                       },
                                       session()));
  EXPECT_EQ(line, of(session()));
  EXPECT_STREQ("", oriel_session_last_error(nullptr));
  EXPECT_STREQ("", oriel_model_last_error(nullptr));
}

// A line may quote the conversation.
TEST_F(LastError, is_forgotten_with_the_conversation) {
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded_, {-1}));
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(session()));
  EXPECT_EQ("", of(session()));
}

/// An app whose log callback calls the session for each error line.
struct AppInTheLog {
  oriel_session* session = nullptr;
  std::vector<std::string> lines;
  std::string last() const { return of(session); }
  static void onLog(oriel_log_level level, const char* message, void* user) {
    AppInTheLog* const self = static_cast<AppInTheLog*>(user);
    if (level != ORIEL_LOG_ERROR || self->session == nullptr) {
      return;
    }
    self->lines.emplace_back(message);
    if (self->lines.size() == 1) {
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(self->session));
      EXPECT_EQ(self->lines.back(), self->last()) << "of the call that was refused";
    }
  }
};

TEST(LastErrorOfTheLog, is_of_the_call_that_failed_and_not_of_those_that_its_log_made) {
  AppInTheLog app;
  Options options = cpuOptions(nullptr);
  options.log = AppInTheLog::onLog;
  options.log_user = &app;
  const Loaded loaded = load(kRandom, options);
  app.session = loaded.session.get();
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded, {-1}));
  ASSERT_EQ(2u, app.lines.size());
  EXPECT_NE(std::string::npos, app.lines[1].find("in the middle of another call"));
  EXPECT_EQ(app.lines[0], app.last());
}

RUNS_ON(kOneDevice);
TEST(LastErrorOfTheLog, is_the_line_of_a_device_that_all_sessions_share) {
  AppInTheLog app;
  Options options = cpuOptions(nullptr);
  options.log = AppInTheLog::onLog;
  options.log_user = &app;
  LosableModel losable(kRandom, options);
  oriel_session* session = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(losable.model.get(), nullptr, &session));
  app.session = session;
  losable.front->log = losable.model->device_log.log();
  losable.lose(Work::kRun, 1);
  const int32_t id = 1;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_append(session, &id, 1, nullptr, nullptr));
  ASSERT_EQ(2u, app.lines.size());
  EXPECT_NE(std::string::npos, app.lines[0].find("it was lost"));
  EXPECT_EQ(app.lines[0], app.last());
  losable.mend();
  app.session = nullptr;
  oriel_session_destroy(session);
}

TEST(LastErrorAlone, needs_no_log) {
  const Loaded loaded = load(kRandom, cpuOptions(nullptr));
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded, {-1}));
  EXPECT_NE(std::string::npos, of(loaded.session.get()).find(": use ids from 0 to "));
}

TEST(LastErrorAlone, of_a_model_may_come_from_several_threads) {
  const Loaded loaded = load(kRandom, cpuOptions(nullptr));
  std::vector<std::thread> threads;
  for (int32_t wrong = -2; wrong < 0; ++wrong) {
    threads.emplace_back([&loaded, wrong] {
      char text[8];
      size_t needed = 0;
      for (int i = 0; i < 2000; ++i) {
        (void)oriel_detokenize(loaded.model.get(), &wrong, 1, 0, text, sizeof(text), &needed);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::string line = of(loaded.model.get());
  EXPECT_NE(std::string::npos, line.find(": ")) << line;
}

}  // namespace
}  // namespace oriel_internal::test::test_last_error
