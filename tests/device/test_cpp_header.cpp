// oriel.hpp: errors as values and as exceptions, callables, and lifetimes.
#include <algorithm>
#include <stdexcept>

#include "support/files.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_cpp_header {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

oriel::Options onCpu() {
  oriel::Options options;
  options.device = "cpu";
  options.threads = 1;
  options.memory_bytes = 64u << 20;
  options.window_tokens = 200;
  options.set("transcript", 4096);
  return options;
}

oriel::Model modelOf(const oriel::Options& options = onCpu()) {
  return oriel::Model::load(kTrained, options).value();
}

oriel::ReplyOptions greedyReply(uint32_t tokens) {
  oriel::ReplyOptions options;
  options.max_tokens = tokens;
  options.greedy = 1;
  return options;
}

RUNS_ON(kOneDevice);
TEST(CppHeader, a_conversation) {
  oriel::Model model = modelOf();
  oriel::Session session = model.session().value();
  EXPECT_TRUE(session.add("user", "Hello!"));
  std::string text;
  const oriel_generation result =
      session.reply([&](std::string_view more) { text += more; }, greedyReply(8)).value();
  EXPECT_LE(result.tokens, 8u);
  EXPECT_FALSE(text.empty());
  const uint64_t position = session.stats().position;
  EXPECT_TRUE(session.addJson(R"([{"role": "user", "content": "And you?"}])"));
  EXPECT_TRUE(session.undoTurns(1));
  const uint64_t back = session.stats().position;
  EXPECT_EQ(position, back);
  EXPECT_EQ(200u, model.plan().window_tokens);
  EXPECT_EQ(back, Json::parse(session.describe().value()).at("position"));
  EXPECT_EQ("cpu", Json::parse(model.describe().value()).at("options").at("device"));
  EXPECT_TRUE(model.trim(ORIEL_TRIM_SCRATCH));
  EXPECT_EQ(ORIEL_ERROR_STATE, session.add("user", "Hello?").status());
  EXPECT_TRUE(model.resume());
  EXPECT_TRUE(session.reset());
  EXPECT_EQ(0u, session.stats().position);
}

TEST(CppHeader, errors_are_results_or_exceptions) {
  const oriel::Result<oriel::Model> missing = oriel::Model::load("missing.gguf", onCpu());
  EXPECT_FALSE(missing);
  EXPECT_EQ(ORIEL_ERROR_IO, missing.status());
  EXPECT_NE(std::string::npos, missing.error().find("missing.gguf")) << missing.error();
  try {
    (void)oriel::Model::load("missing.gguf", onCpu()).value();
    FAIL() << "value() of a failed result";
  } catch (const oriel::Error& error) {
    EXPECT_EQ(ORIEL_ERROR_IO, error.status);
    EXPECT_EQ(missing.error(), error.what());
  }
  oriel::Options wrong = onCpu();
  wrong.set("kvs", "f16");
  EXPECT_NE(std::string::npos, oriel::Model::load(kTrained, wrong).error().find("\"kv\""));
  oriel::Model model = modelOf();
  oriel::Session session = model.session().value();
  EXPECT_EQ(ORIEL_ERROR_TEXT, session.add("user", "\xFF").status());
  EXPECT_NE("", session.add("user", "\xFF").error());
  EXPECT_EQ(ORIEL_ERROR_STATE, model.session().status()) << "there is memory for one";
}

TEST(CppHeader, pictures_go_with_messages) {
  const std::string json =
      R"([{"role":"user","content":[{"type":"image","picture":0},{"type":"text","text":"So?"}]}])";
  std::vector<uint8_t> pixels(40 * 30 * 4, 90);
  const oriel_picture picture = {pixels.data(), 40, 30, 0, ORIEL_BGRA8};
  oriel::Model blind = modelOf();
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, blind.session().value().addJson(json, {picture}).status());
  ORIEL_NEED_DATA(path, "vision/gemma4.gguf");
  oriel::Options options = onCpu();
  options.window_tokens = 512;
  options.set("image_tokens", 70).set("mmproj", dataFile("vision/mmproj-gemma4v.gguf"));
  oriel::Model model = oriel::Model::load(path, options).value();
  oriel::Session session = model.session().value();
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, session.addJson(json).status());
  EXPECT_EQ(0u, session.stats().position);
  EXPECT_TRUE(session.addJson(json, {picture}));
  EXPECT_LT(20u, session.stats().position);
  options.set("mmproj", "gone"); /* the model has its own copy */
  EXPECT_EQ(dataFile("vision/mmproj-gemma4v.gguf"),
            Json::parse(model.describe().value()).at("options").at("mmproj"));
}

TEST(CppHeader, an_exception_from_a_callable_ends_the_reply_and_comes_out) {
  oriel::Model model = modelOf();
  oriel::Session session = model.session().value();
  ASSERT_TRUE(session.add("user", "Hello!"));
  uint32_t calls = 0;
  EXPECT_THROW((void)session.reply(
                   [&](std::string_view) {
                     ++calls;
                     throw std::runtime_error("enough");
                   },
                   greedyReply(8)),
               std::runtime_error);
  EXPECT_EQ(1u, calls);
  ASSERT_TRUE(session.add("user", "Go on."));
  EXPECT_TRUE(session.reply([](std::string_view) {}, greedyReply(4))) << "the session goes on";
}

TEST(CppHeader, a_callable_may_end_the_reply) {
  oriel::Model model = modelOf();
  oriel::Session session = model.session().value();
  ASSERT_TRUE(session.add("user", "Hello!"));
  const auto result = session.reply([](std::string_view) { return false; }, greedyReply(8)).value();
  EXPECT_EQ(ORIEL_STOP_CALLBACK, result.stop_reason);
  EXPECT_EQ(1u, result.tokens);
}

TEST(CppHeader, logits_are_changed_by_a_callable_which_may_throw) {
  oriel::Model model = modelOf();
  oriel::Session session = model.session().value();
  ASSERT_TRUE(session.add("user", "Hello!"));
  int32_t forced = 0;
  size_t needed = 0;
  (void)oriel_tokenize(model.get(), "a", 1, 0, &forced, 1, &needed);
  oriel::ReplyOptions options = greedyReply(8);
  options.logits = [&](const oriel_step_logits& step) {
    step.logits[forced] = 1e9f;
    return step.tokens < 3;
  };
  std::string text;
  const auto show = [&](std::string_view more) { text += more; };
  const oriel_generation result = session.reply(show, options).value();
  EXPECT_EQ(ORIEL_STOP_CALLBACK, result.stop_reason);
  EXPECT_EQ(3u, result.tokens);
  EXPECT_EQ(3, std::count(text.begin(), text.end(), 'a')) << text;
  ASSERT_TRUE(session.add("user", "Go on."));
  options.logits = [](const oriel_step_logits& step) -> bool {
    return step.tokens < 2 ? true : throw std::runtime_error("enough");
  };
  uint32_t shown = 0;
  EXPECT_THROW((void)session.reply([&](std::string_view) { ++shown; }, options),
               std::runtime_error);
  EXPECT_EQ(2u, shown);
  const oriel::ReplyOptions copy = options;
  options.logits = nullptr;
  ASSERT_TRUE(session.add("user", "Go on."));
  EXPECT_TRUE(session.reply(show, options)) << "the session goes on";
  ASSERT_TRUE(session.add("user", "Go on."));
  EXPECT_THROW((void)session.reply(show, copy), std::runtime_error) << "a copy has the callable";
}

TEST(CppHeader, callables_live_as_long_as_what_was_made_with_them) {
  const auto lines = std::make_shared<std::vector<std::string>>();
  std::weak_ptr<std::vector<std::string>> kept = lines;
  oriel::Session session;
  {
    oriel::Options options = onCpu();
    options.onLog([lines](oriel_log_level level, std::string_view line) {
      if (level == ORIEL_LOG_ERROR) {
        lines->emplace_back(line);
      }
    });
    oriel::Model model = modelOf(options);
    options = oriel::Options();
    const auto steps = std::make_shared<uint32_t>(0);
    oriel::SessionOptions of;
    of.onProgress([steps](uint64_t, uint64_t) {
      ++*steps;
      return true;
    });
    session = model.session(of).value();
    of = oriel::SessionOptions();
    ASSERT_TRUE(session.add("user", "Hello!"));
    EXPECT_LT(0u, *steps);
  }
  EXPECT_EQ(ORIEL_ERROR_TEXT, session.add("user", "\xFF").status()) << "its model is there";
  ASSERT_EQ(1u, lines->size());
  EXPECT_EQ(lines->front(), session.add("user", "\xFF").error());
  EXPECT_EQ(2, kept.use_count()) << "here and in the model";
  session = oriel::Session();
  EXPECT_EQ(1, kept.use_count());
}

TEST(CppHeader, a_progress_callable_may_cancel_the_load) {
  oriel::Options options = onCpu();
  uint32_t calls = 0;
  options.onProgress([&](uint64_t, uint64_t) { return ++calls < 2; });
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel::Model::load(kTrained, options).status());
  EXPECT_EQ(2u, calls);
}

// A copy owns its texts and does not point to the original's.
TEST(CppHeader, options_are_values) {
  auto first = std::make_unique<oriel::Options>(onCpu());
  first->set("kv", "k8v4").set("sinks", 7u).set("constraints", true);
  const oriel::Options copy = *first;
  oriel::Options assigned;
  assigned = *first;
  first->set("kv", "f16");
  first.reset();
  for (const oriel::Options* options : {&copy, static_cast<const oriel::Options*>(&assigned)}) {
    Json plan = describePlan(kTrained, *options);
    EXPECT_EQ("int8", plan["k_format"]);
    EXPECT_EQ("int4", plan["v_format"]);
    EXPECT_EQ(7u, plan["sink_tokens"]);
    EXPECT_GT(plan["constraint_bytes"], 0u);
  }
  oriel::Options list = onCpu();
  list.sessions = 3;
  list.add("session_windows", "64").add("session_windows", "48");
  EXPECT_EQ(Json({64, 48, 200}), describePlan(kTrained, list)["session_windows"]);
  list.set("session_windows", "32");
  EXPECT_EQ(Json({32, 200, 200}), describePlan(kTrained, list)["session_windows"]);
}

class CppHeaderFiles : public ScratchFolder {};

TEST_F(CppHeaderFiles, a_session_is_saved_moved_and_restored) {
  oriel::Options options = onCpu();
  options.sessions = 2;
  oriel::Model model = modelOf(options);
  oriel::Session first = model.session().value();
  ASSERT_TRUE(first.add("user", "My name is Ada."));
  ASSERT_TRUE(first.save(path("chat"), ORIEL_SAVE_NEW));
  EXPECT_EQ(ORIEL_ERROR_IO, first.save(path("chat"), ORIEL_SAVE_NEW).status());
  oriel::Session moved = std::move(first);
  EXPECT_EQ(nullptr, first.get());
  oriel::Session second = model.session().value();
  const oriel_restored restored = second.restore(path("chat")).value();
  EXPECT_EQ(ORIEL_RESTORED_EXACTLY, restored.how);
  EXPECT_EQ(moved.stats().position, second.stats().position);
  moved = std::move(second);  // ends the session that was there
  EXPECT_TRUE(model.session()) << "so that there is room again";
}

}  // namespace
}  // namespace oriel_internal::test::test_cpp_header
