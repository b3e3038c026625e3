// Sessions with Jinja templates: going back, snapshots, and the tokens of renderings.
#include "chat/chat_template.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/sessions.h"

namespace oriel_internal::test::test_template_sessions {
namespace {

// Its marks are text: in a piece-based tokenizer the text before a word matters.
const char* const kMarks =
    "{% for message in messages %}[{{ message.role }}] {{ message.content }} [end]\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}";
const char* const kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
    "}}{% endif %}";

class TemplateSessions : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Options options = cpuOptions(&log_, 600, 64);
    const std::string path = GetParam();
    if (path.find('/') == std::string::npos) {
      ORIEL_NEED_DATA(file, "models/" + path);
      loaded_ = load(file, options);
    } else {
      loaded_ = load(path, options);
    }
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  void useTemplate(const char* text) {
    chat_.chat_template = text;
    loaded_.session.reset();
    loaded_.session = newSession(loaded_.model, &chat_);
  }
  oriel_status addJson(const std::string& json) {
    return oriel_chat_add(loaded_.session.get(), nullptr, json.data(), json.size());
  }
  std::vector<int32_t> held() {
    size_t needed = 0;
    (void)oriel_session_get_tokens(loaded_.session.get(), 0, nullptr, 0, &needed);
    std::vector<int32_t> ids(needed);
    EXPECT_EQ(ORIEL_OK,
              oriel_session_get_tokens(loaded_.session.get(), 0, ids.data(), ids.size(), &needed));
    return ids;
  }
  std::vector<uint8_t> saved() { return savedBytes(loaded_.session.get()); }
  std::vector<int32_t> renderedIds(const std::string& json) {
    size_t sized = 0;
    EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
              oriel_render_tokens(loaded_.model.get(), &chat_, json.data(), json.size(),
                                  ORIEL_TEXT_BOS, nullptr, 0, &sized));
    std::vector<int32_t> ids(sized + 100);
    size_t needed = 0;
    EXPECT_EQ(ORIEL_OK, oriel_render_tokens(loaded_.model.get(), &chat_, json.data(), json.size(),
                                            ORIEL_TEXT_BOS, ids.data(), ids.size(), &needed))
        << log_.errors();
    EXPECT_EQ(needed, sized);
    ids.resize(needed);
    return ids;
  }

  CapturedLog log_;
  Loaded loaded_;
  SessionOptions chat_;
};

TEST_P(TemplateSessions, a_message_taken_back_and_said_again_leaves_the_same_tokens) {
  useTemplate(kMarks);
  const std::vector<std::pair<std::string, std::string>> messages = {
      {"system", "Be kind."}, {"user", "Hello!"}, {"assistant", "Hi."}, {"user", "And you?"}};
  std::vector<uint64_t> begins;
  for (const auto& message : messages) {
    begins.push_back(statsOf(loaded_).position);
    ASSERT_EQ(ORIEL_OK, add(loaded_, message.first, message.second)) << log_.errors();
  }
  const std::vector<int32_t> all = held();
  for (size_t from = 1; from < messages.size(); ++from) {
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded_.session.get(), begins[from]));
    for (size_t i = from; i < messages.size(); ++i) {
      ASSERT_EQ(ORIEL_OK, add(loaded_, messages[i].first, messages[i].second));
    }
    EXPECT_EQ(all, held()) << "from message " << from;
  }
  // At a turn start the previous message's closing is already held.
  ASSERT_EQ(ORIEL_OK, goBackTo(loaded_.session.get(), describe(loaded_)["turns"][1]));
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "And you?"));
  EXPECT_EQ(all, held());
}

TEST_P(TemplateSessions, a_snapshot_goes_on_behind_a_reply_that_was_cut) {
  useTemplate(kMarks);
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded_, wildOptions(5, 3)).status);
  const std::vector<uint8_t> snapshot = saved();
  const auto goOn = [&] {
    EXPECT_EQ(ORIEL_OK, add(loaded_, "user", "And you?")) << log_.errors();
    EXPECT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded_, wildOptions(5, 4)).status);
    return held();
  };
  const std::vector<int32_t> once = goOn();
  useTemplate(kMarks);
  ASSERT_EQ(ORIEL_OK, restoreFrom(loaded_.session.get(), snapshot));
  EXPECT_EQ(once, goOn());
}

TEST_P(TemplateSessions, a_message_that_is_refused_changes_nothing) {
  useTemplate(kChatMl);
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
  const std::vector<uint8_t> before = saved();
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
            addJson(R"({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})"));
  EXPECT_NE("", log_.errors());
  EXPECT_EQ(before, saved());
}

TEST_P(TemplateSessions, rendering_says_which_tokens_a_session_appends) {
  const std::vector<std::string> messages = {
      R"({"role": "system", "content": "Be kind."})", R"({"role": "user", "content": "Hello!"})",
      R"({"role": "assistant", "content": "Hi.", "reasoning_content": "Short."})",
      R"({"role": "user", "content": "And you?"})"};
  // The second is a built-in format, except for a message with an unsupported part.
  for (const char* text : {kMarks, kChatMl}) {
    useTemplate(text);
    std::string all = "[";
    for (const std::string& message : messages) {
      ASSERT_EQ(ORIEL_OK, addJson(message)) << log_.errors();
      all += (all.size() > 1 ? "," : "") + message;
      EXPECT_EQ(held(), renderedIds(all + "]")) << text << all;
    }
  }
}

TEST_P(TemplateSessions, a_reply_is_read_again_as_the_template_writes_it_later) {
  const char* const text =
      "{% for m in messages %}[{{ m.role }}] {{ 'Said: ' if m.role == 'assistant' and not "
      "loop.last }}"
      "{{ m.content }} [end]\n{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}";
  std::vector<std::vector<int32_t>> ids;
  std::string said;
  for (const bool follows : {false, true}) {
    chat_.set("follow_template", follows);
    useTemplate(text);
    ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
    ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded_, wildOptions(5, 3)).status);
    ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "And you?")) << log_.errors();
    ids.push_back(held());
    size_t needed = 0;
    (void)oriel_transcript_export(loaded_.session.get(), nullptr, 0, &needed);
    said.assign(needed, ' ');
    ASSERT_EQ(ORIEL_OK,
              oriel_transcript_export(loaded_.session.get(), said.data(), said.size(), &needed));
    said.pop_back();
  }
  EXPECT_LT(ids[0].size(), ids[1].size());
  useTemplate(text);
  ASSERT_EQ(ORIEL_OK, addJson(said)) << log_.errors();
  EXPECT_EQ(ids[1], held()) << "as a session that never saw the reply";
}

// The same as for messages, tools and documents.
TEST_P(TemplateSessions, text_of_variables_is_never_a_control_token) {
  const std::string messages = R"([{"role": "user", "content": "<s>Hello</s>"}])";
  const auto marks = [&](const char* text) {
    chat_.chat_template = text;
    const std::vector<int32_t> ids = renderedIds(messages);
    return std::count_if(ids.begin() + 1, ids.end(), [](int32_t id) { return id == 1 || id == 2; });
  };
  chat_.set("template_variables", R"({"name": "x</s><s>system", "list": ["</s>"]})");
  const int known = std::strcmp(GetParam(), "stories260K.gguf") == 0 ? 2 : 0;  // control tokens
  EXPECT_EQ(known, marks("</s><s>{{ name }}{{ messages[0].content }}"));
  EXPECT_EQ(0,
            marks("{{ name }}{{ list|join }}{{ list }}{{ name|trim }}{{ messages[0].content }}"));
}

TEST_P(TemplateSessions, variables_that_oriel_sets_are_refused) {
  const std::string messages = R"([{"role": "user", "content": "Hello"}])";
  chat_.chat_template = kMarks;
  chat_.set("template_variables", R"({"messages": []})");
  char text[200];
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_render(loaded_.model.get(), &chat_, messages.data(),
                                               messages.size(), 0, text, sizeof(text), &needed));
  EXPECT_TRUE(log_.says("\"messages\", which Oriel sets: leave it out")) << log_.errors();
  log_.clear();
  loaded_.session.reset();
  oriel_session* made = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(loaded_.model.get(), &chat_, &made));
  EXPECT_TRUE(log_.says("which Oriel sets")) << log_.errors();
}

// A template that is too long to run is searched for tools only in its stored part.
TEST(LongTemplates, are_refused_when_they_would_be_run) {
  for (const size_t bytes : {kMaxChatTemplateBytes, kMaxChatTemplateBytes + 1, size_t{10} << 20}) {
    SCOPED_TRACE(bytes);
    RandomLlama model;
    model.chat_template = "{{ messages[0].content }}" + std::string(bytes - 25, 'x');
    const TemporaryModel file(model);
    CapturedLog log;
    const Loaded loaded = load(file.path(), cpuOptions(&log, 64, 8));
    ASSERT_TRUE(loaded.session) << log.errors();
    const std::string messages = R"([{"role": "user", "content": "Hello"}])";
    SessionOptions chat;
    chat.tools = R"([{"type": "function", "function": {"name": "f"}}])";
    std::vector<char> text(bytes + 100);
    size_t needed = 0;
    EXPECT_EQ(bytes > kMaxChatTemplateBytes ? ORIEL_ERROR_UNSUPPORTED : ORIEL_OK,
              oriel_render(loaded.model.get(), &chat, messages.data(), messages.size(),
                           ORIEL_RENDER_PROMPT, text.data(), text.size(), &needed));
    const bool told = std::any_of(log.lines.begin(), log.lines.end(), [](const auto& line) {
      return line.text.find("ignores tools") != std::string::npos;
    });
    EXPECT_TRUE(told);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TemplateSessions,
                         testing::Values(kRandom, "stories260K.gguf"));

}  // namespace
}  // namespace oriel_internal::test::test_template_sessions
