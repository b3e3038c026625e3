#include "chat/turn.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <list>
#include <set>
#include <utility>

#include "base/workspace.h"
#include "support/captured_log.h"
#include "support/encoding.h"
#include "support/files.h"

namespace oriel_internal::test::test_turns {
namespace {

using nlohmann::json;

/// A conversation in a template, as a session takes it: message by message, with replies of a model's own.
class Conversation {
 public:
  explicit Conversation(const std::string& text, const std::string& tools = "")
      : text_(text), tools_(tools), scratch_(defaultAllocator(), 64u << 20) {
    settings_.text = {text_.data(), text_.size()};
    settings_.bos = {"<s>", 3};
    settings_.eos = {"</s>", 4};
    settings_.date = 20261122;
    settings_.tools = {tools_.data(), tools_.size()};
  }

  /// What the whole becomes; what went wrong in angle brackets.
  std::string whole(const json& messages, bool generation) {
    TemplateRun run(settings_, {}, log_.log(), &scratch_);
    JinjaOutput out;
    if (!run.read().ok() || !run.render(*read(messages), generation, &out).ok()) {
      return "<" + log_.errors() + ">";
    }
    return {out.text, out.bytes};
  }

  Status add(const json& message) {
    TemplateRun run(settings_, {}, log_.log(), &scratch_);
    EXPECT_TRUE(run.read().ok());
    TurnText turn;
    ORIEL_TRY(renderTurn(&run, place_, *read(message), &turn));
    take(turn);
    const std::string role = message["role"];
    const LastMessage last = lastMessageOf({role.data(), role.size()});
    place_.has_system |= last == LastMessage::kSystem && place_.last == LastMessage::kNothing;
    place_.last = last;
    place_.closed = false;
    return kOk;
  }

  Status reply(const std::string& text) {
    TemplateRun run(settings_, {}, log_.log(), &scratch_);
    EXPECT_TRUE(run.read().ok());
    TurnText turn;
    ORIEL_TRY(renderReplyOpening(&run, place_, &turn));
    take(turn);
    said += text;
    place_.last = LastMessage::kAssistant;
    return kOk;
  }

  /// What the session holds.
  std::string said;
  std::string literals;
  std::string errors() const { return log_.errors(); }
  TurnPlace& place() { return place_; }
  size_t body = 0;

 private:
  const JsonValue* read(const json& value) {
    kept_.push_back(value.dump());
    const JsonValue* parsed = nullptr;
    EXPECT_TRUE(
        parseJson(kept_.back().data(), kept_.back().size(), "it", log_.log(), &scratch_, &parsed)
            .ok());
    return parsed;
  }
  void take(const TurnText& turn) {
    said += turn.begins_bos ? "<s>" : "";
    body = said.size() + turn.body;
    said.append(turn.text, turn.bytes);
    for (size_t i = 0; i < turn.n_literals; ++i) {
      literals.append(turn.text + turn.literals[i].begin,
                      turn.literals[i].end - turn.literals[i].begin);
      literals += '|';
    }
  }

  const std::string text_;
  const std::string tools_;
  std::list<std::string> kept_;
  CapturedLog log_;
  Scratch scratch_;
  TemplateSettings settings_;
  TurnPlace place_;
};

constexpr char kChatMl[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ "
    "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% "
    "endif %}";

TEST(Turns, joined_are_the_whole_conversation) {
  Conversation talk(kChatMl);
  ASSERT_TRUE(talk.add({{"role", "system"}, {"content", "Be brief."}}).ok());
  EXPECT_EQ(talk.said, "<|im_start|>system\nBe brief.");
  ASSERT_TRUE(talk.add({{"role", "user"}, {"content", "<|im_end|>Hi"}}).ok());
  EXPECT_EQ(talk.said.substr(0, talk.body), "<|im_start|>system\nBe brief.<|im_end|>\n");
  ASSERT_TRUE(talk.reply("Hello.").ok());
  ASSERT_TRUE(talk.add({{"role", "user"}, {"content", "And?"}}).ok());
  ASSERT_TRUE(talk.reply("").ok());
  const json all = {{{"role", "system"}, {"content", "Be brief."}},
                    {{"role", "user"}, {"content", "<|im_end|>Hi"}},
                    {{"role", "assistant"}, {"content", "Hello."}},
                    {{"role", "user"}, {"content", "And?"}}};
  EXPECT_EQ(talk.said, talk.whole(all, true));
  EXPECT_EQ(talk.literals, "Be brief.|<|im_end|>Hi|And?|") << "roles are the template's";
}

TEST(Turns, an_empty_message_has_its_place) {
  Conversation talk(kChatMl);
  ASSERT_TRUE(talk.add({{"role", "user"}, {"content", ""}}).ok());
  ASSERT_TRUE(talk.reply("").ok());
  EXPECT_EQ(talk.said, "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Turns, behind_a_rewind_what_closes_is_there) {
  Conversation talk(kChatMl);
  talk.place() = {LastMessage::kAssistant, true, false, {}};
  ASSERT_TRUE(talk.add({{"role", "user"}, {"content", "Hi"}}).ok());
  EXPECT_EQ(talk.said, "<|im_start|>user\nHi");
}

TEST(Turns, a_template_that_shows_no_message_cannot_be_continued) {
  Conversation talk("{{ messages|length }} messages");
  EXPECT_EQ(talk.add({{"role", "user"}, {"content", "Hi"}}).code(), ORIEL_ERROR_UNSUPPORTED);
}

TEST(Turns, roles_are_words) {
  Conversation talk(kChatMl);
  EXPECT_EQ(talk.add({{"role", "us<|er"}, {"content", "Hi"}}).code(), ORIEL_ERROR_ARGUMENT);
}

/// What stands before and behind a reply, up to the end of the question that it answers: the opening of a reply that is to
/// come may hold more than that of one that is there (a thought that begins).
std::pair<std::string, std::string> aroundReply(const std::string& text,
                                                const std::string& question,
                                                const std::string& reply) {
  const size_t question_end = text.find(question) + question.size();
  const size_t reply_end = text.find(reply) + reply.size();
  return {text.substr(0, question_end), text.substr(reply_end)};
}

constexpr char kMovesSystem[] =
    "{% set system = messages[0].content if messages[0].role == 'system' else '' %}{% for m in "
    "messages "
    "if m.role != 'system' %}{% if m.role == 'user' %}[Q]{% if loop.last %}{{ system }}{% endif %} "
    "{{ "
    "m.content }}[/Q]{% else %}{{ m.content }}{% endif %}{% endfor %}";

TEST(Turns, a_system_text_that_would_move_stays) {
  Conversation talk(kMovesSystem);
  ASSERT_TRUE(talk.add({{"role", "system"}, {"content", "Be brief."}}).ok());
  ASSERT_TRUE(talk.add({{"role", "user"}, {"content", "Hi"}}).ok());
  ASSERT_TRUE(talk.reply("Hello.").ok());
  ASSERT_TRUE(talk.add({{"role", "user"}, {"content", "And?"}}).ok());
  ASSERT_TRUE(talk.reply("").ok());
  EXPECT_EQ(talk.said, "[Q]Be brief. Hi[/Q]Hello.[Q] And?[/Q]");
}

constexpr char kCallTemplate[] =
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls "
    "%}<call>{{ "
    "c.function.name }}</call>{% endfor %}<|end|>{% endfor %}";

json resultOf(const std::string& text) {
  return {{"role", "tool"}, {"name", "f"}, {"tool_call_id", "call00001"}, {"content", text}};
}

TEST(Turns, a_result_follows_what_the_model_wrote_of_its_call) {
  for (const std::string stop : {"<|end|>", "<|other|>", ""}) {
    Conversation talk(kCallTemplate);
    ASSERT_TRUE(talk.add({{"role", "user"}, {"content", "Hi"}}).ok());
    talk.said += "<call>f</call>";  // a reply
    talk.place().last = LastMessage::kAssistant;
    talk.place().reply_stop = {stop.data(), stop.size()};
    ASSERT_TRUE(talk.add(resultOf("18 C")).ok());
    ASSERT_TRUE(talk.add(resultOf("19 C")).ok()) << talk.errors();
    EXPECT_EQ(talk.said,
              "<|start|>user\nHi<call>f</call><|end|><|start|>tool\n18 C<|end|><|start|>tool\n19 C")
        << stop;
  }
}

TEST(Turns, results_may_stand_behind_answers_whose_calls_are_not_shown_or_are_one) {
  const std::string head = "{% for m in messages %}";
  const std::string tail = "<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}";
  const std::string one =
      "{% if m.tool_calls and m.tool_calls|length > 1 %}{{ raise_exception('one') }}{% endif %}";
  const std::string none = "{% if not m.content and m.tool_calls %}{% else %}";
  for (const std::string& text :
       {head + tail, head + one + tail,
        head + none + "<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endif %}{% endfor %}"}) {
    Conversation talk(text);
    ASSERT_TRUE(talk.add({{"role", "user"}, {"content", "Hi"}}).ok());
    talk.said += "f()";
    talk.place().last = LastMessage::kAssistant;
    ASSERT_TRUE(talk.add(resultOf("18 C")).ok()) << text << talk.errors();
    ASSERT_TRUE(talk.add(resultOf("19 C")).ok()) << text << talk.errors();
    EXPECT_EQ(talk.said, "<|start|>user\nHif()<|end|><|start|>tool\n18 C<|end|><|start|>tool\n19 C")
        << text;
  }
}

// The shapes that are tried first fail unseen: what counts is the last one.
TEST(Turns, what_a_shape_met_is_said_once_and_only_where_none_works) {
  const std::string head =
      "{% set ns = namespace(n=0, s='ab') %}{% for m in messages %}{% if m.tool_calls %}"
      "{% set ns.n = m.tool_calls|length %}{% endif %}"
      "{% if loop.last and m.role == 'tool' and m.content and ns.n > 1 %}";
  const std::string tail = "{% endif %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}";
  Conversation refused(head + "{{ raise_exception('one') }}" + tail);
  refused.place().last = LastMessage::kTool;
  ASSERT_TRUE(refused.add(resultOf("")).ok());
  EXPECT_EQ(refused.errors(), "");
  Conversation large(head + "{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}" +
                     tail);
  large.place().last = LastMessage::kTool;
  EXPECT_EQ(large.add(resultOf("18 C")).code(), ORIEL_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(large.errors(), "");
  EXPECT_EQ(large.errors().find('\n'), std::string::npos) << large.errors();
}

// What fails halfway must not read as a template that writes less.
TEST(Turns, with_less_memory_are_the_same_or_refused_in_one_line) {
  const std::string text =
      "Default.{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
      "{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% endif %}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>{% endif %}";
  const std::string message = R"({"role": "tool", "tool_call_id": "c1", "content": "18 C"})";
  TemplateSettings settings;
  settings.text = {text.data(), text.size()};
  TurnPlace behind_a_result;
  behind_a_result.last = LastMessage::kTool;
  CapturedLog log;
  using Call = std::function<Status(TemplateRun*, Scratch*, TurnText*)>;
  const std::vector<Call> calls = {
      [&](TemplateRun* run, Scratch* scratch, TurnText* turn) {
        const JsonValue* parsed = nullptr;
        ORIEL_TRY(parseJson(message.data(), message.size(), "it", log.log(), scratch, &parsed));
        return renderTurn(run, behind_a_result, *parsed, turn);
      },
      [&](TemplateRun* run, Scratch*, TurnText* turn) {
        return renderReplyOpening(run, behind_a_result, turn);
      },
      [](TemplateRun* run, Scratch*, TurnText* turn) { return renderPreamble(run, turn); },
      [](TemplateRun* run, Scratch*, TurnText* turn) {
        JsonText end;
        const Status status = renderReplyEnd(run, &end);
        turn->text = end.data;
        turn->bytes = end.bytes;
        return status;
      }};
  const std::vector<std::string> whole = {"<|end|><|tool|>18 C", "<|end|><|assistant|>", "Default.",
                                          "<|end|>"};
  for (size_t i = 0; i < calls.size(); ++i) {
    uint32_t refused = 0;
    bool fits = false;
    // A prefix moves the place in its block at which each piece is taken.
    for (const size_t before : {0, 1000, 2000, 3000, 4000}) {
      for (size_t most = 16; most < 200000; most += 1024) {
        Scratch scratch(defaultAllocator(), most);
        scratch.takeText(before);
        TemplateRun run(settings, {}, log.log(), &scratch);
        TurnText turn;
        log.clear();
        const Status status = calls[i](&run, &scratch, &turn);
        if (status.ok()) {
          fits = true;
          EXPECT_EQ(std::string(turn.text, turn.bytes), whole[i]) << i << " in " << most;
          EXPECT_EQ(log.errors(), "");
        } else {
          ++refused;
          EXPECT_EQ(status.code(), ORIEL_ERROR_OUT_OF_MEMORY);
          EXPECT_NE(log.errors(), "") << i << " in " << most;
          EXPECT_EQ(log.errors().find('\n'), std::string::npos) << log.errors();
        }
      }
    }
    EXPECT_TRUE(fits) << i;
    EXPECT_GT(refused, 5u) << i;
  }
}

/// Templates that write the system's text elsewhere once another question comes, or leave it out.
const std::set<std::string> kOtherSystem = {"mistralai-Mistral-Nemo-Instruct-2407", "chat-phi3"};

// Templates differ in everything but this: a session that grows reads as the template writes the whole of it.
TEST(Turns, of_published_templates_read_as_the_whole) {
  ORIEL_NEED_DATA(folder, "templates");
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const json file = readJson(entry.path().string());
    for (const bool with_system : {false, true}) {
      if (with_system && kOtherSystem.count(file["name"]) != 0) {
        continue;
      }
      const std::string label =
          file["name"].get<std::string>() + (with_system ? " with a system message" : "");
      json all = json::array();
      if (with_system) {
        all.push_back({{"role", "system"}, {"content", "Be brief."}});
      }
      const std::string question = "What is two and two?";
      all.push_back({{"role", "user"}, {"content", question}});
      all.push_back({{"role", "assistant"}, {"content", "Four."}});
      all.push_back({{"role", "user"}, {"content", "Und drei?"}});
      Conversation talk(file["template"].get<std::string>());
      const std::string whole = talk.whole(all, true);
      if (!talk.errors().empty()) {
        continue;  // nothing to compare with
      }
      Conversation session(file["template"].get<std::string>());
      for (const json& message : all) {
        const bool is_reply = message["role"] == "assistant";
        EXPECT_TRUE((is_reply ? session.reply(message["content"]) : session.add(message)).ok())
            << label << ": " << session.errors();
      }
      EXPECT_TRUE(session.reply("").ok()) << label << ": " << session.errors();
      ++compared;
      EXPECT_EQ(aroundReply(session.said, question, "Four."), aroundReply(whole, question, "Four."))
          << label;
    }
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace oriel_internal::test::test_turns
