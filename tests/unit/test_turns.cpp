// The text of new messages, cut out of the rendering of a whole conversation.
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "chat/turn.h"
#include "exec/transcript.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/jinja_template.h"
#include "support/target.h"

namespace oriel_internal::test::test_turns {
namespace {

using nlohmann::json;

struct Piece {
  Status status;
  std::string text;  ///< an error in angle brackets
  std::vector<std::string> literals;
  std::vector<NewMessage> messages;
  bool begins_bos = false;
};

/// A template with a session's knowledge of it.
class Model {
 public:
  explicit Model(std::string text, std::string bos = "<BOS>", std::string eos = "</s>")
      : text_(std::move(text)), bos_(std::move(bos)), eos_(std::move(eos)) {
    settings.text = {text_.data(), text_.size()};
    settings.bos = {bos_.data(), bos_.size()};
    settings.eos = {eos_.data(), eos_.size()};
    settings.date = 20261122;
    EXPECT_TRUE(learnTemplate(settings, {}, Log(), defaultAllocator(), &learned).ok());
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void give(const json& tools, const json& variables = nullptr) {
    tools_ = tools.is_null() ? "" : tools.dump();
    variables_ = variables.is_null() ? "" : variables.dump();
    settings.tools = {tools_.data(), tools_.size()};
    settings.variables = {variables_.data(), variables_.size()};
  }

  /// The template's own rendering of everything; an error in angle brackets.
  std::string whole(const json& messages, bool generation) const {
    std::string text;
    const Status status = run(messages, [&](TemplateRun* run, const JsonValue& list) {
      const JsonValue* prepared = nullptr;
      JinjaOutput out;
      ORIEL_TRY(prepareMessages(learned.facts, list, run->scratch(), run->log(), &prepared));
      ORIEL_TRY(run->render(*prepared, generation, &out));
      text.assign(out.text, out.bytes);
      return Status(kOk);
    });
    return status.ok() ? text : "<" + log_.errors() + ">";
  }

  Piece piece(const json& messages, size_t held, bool generation, bool replied = false,
              bool closed = false, const char* stop = "") const {
    Piece piece;
    piece.status = run(messages, [&](TemplateRun* run, const JsonValue& list) {
      NewText text;
      ORIEL_TRY(renderNew(run, learned, {&list, static_cast<uint32_t>(held), replied, closed, stop},
                          generation, &text));
      take(text, messages.size() - held, &piece);
      return Status(kOk);
    });
    piece.text = piece.status.ok() ? piece.text : "<" + log_.errors() + ">";
    return piece;
  }

  /// Messages one at a time, then an opened reply.
  std::string inTurns(const json& messages) const {
    std::string all;
    json some = json::array();
    for (const json& message : messages) {
      some.push_back(message);
      const Piece one = piece(some, some.size() - 1, false);
      all += (one.begins_bos ? bos_ : "") + one.text;
    }
    return all + piece(some, some.size(), true).text;
  }

  std::string endOf(Role role) const {
    const JsonText end = learned.ends.of(role);
    return {end.data, end.bytes};
  }
  const std::string& bos() const { return bos_; }
  std::string errors() const { return log_.errors(); }

  TemplateSettings settings;
  LearnedTemplate learned;

 private:
  template <typename Render>
  Status run(const json& messages, const Render& render) const {
    const std::string text = messages.dump();
    Scratch scratch(defaultAllocator(), size_t{64} << 20);
    log_.clear();
    TemplateRun run(settings, {}, log_.log(), &scratch);
    ORIEL_TRY(run.read());
    const JsonValue* list = nullptr;
    ORIEL_TRY(parseJson(text.data(), text.size(), "it", log_.log(), &scratch, &list));
    return render(&run, *list);
  }
  static void take(const NewText& text, size_t count, Piece* piece) {
    piece->text.assign(text.text, text.bytes);
    piece->begins_bos = text.begins_bos;
    piece->messages.assign(text.messages, text.messages + count);
    size_t end = 0;
    for (const NewMessage& one : piece->messages) {
      EXPECT_TRUE(end <= one.body && one.body <= one.end && one.end <= text.bytes);
      end = one.end;
    }
    end = 0;
    for (size_t i = 0; i < text.n_literals; ++i) {
      const TextRange& range = text.literals[i];
      EXPECT_TRUE((i == 0 || end < range.begin) && range.begin < range.end &&
                  range.end <= text.bytes);
      end = range.end;
      piece->literals.push_back(piece->text.substr(range.begin, range.end - range.begin));
    }
  }

  const std::string text_;
  const std::string bos_;
  const std::string eos_;
  std::string tools_;
  std::string variables_;
  mutable CapturedLog log_;
};

json say(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

const json kSystem = say("system", "Be brief.");
const json kTalk = {say("user", "One?"), say("assistant", "Un."), say("user", "Two?"),
                    say("assistant", "Deux."), say("user", "Three?")};

json withSystem(const json& messages) {
  json all = json::array({kSystem});
  all.insert(all.end(), messages.begin(), messages.end());
  return all;
}

constexpr char kChatMl[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// The text of messages up to their end is a prefix of the whole, and with an opened reply it is the whole.
void expectTheWhole(const Model& model, const json& messages, const std::string& label) {
  const std::string whole = model.whole(messages, true);
  const std::string errors = model.errors();
  const Piece fresh = model.piece(messages, 0, true);
  ASSERT_EQ(errors, fresh.status.ok() ? "" : model.errors()) << label;
  if (!errors.empty()) {
    return;
  }
  EXPECT_EQ(whole, (fresh.begins_bos ? model.bos() : "") + fresh.text) << label;
  EXPECT_TRUE(fresh.begins_bos || model.bos().empty() || whole.rfind(model.bos(), 0) != 0) << label;
}

JsonText textOf(const json& text) { return text.get_ref<const std::string&>().c_str(); }

/// Each message's turn begins after the previous message's closing, also if the message comes alone.
void expectBodies(const Model& model, const json& messages, const std::string& label) {
  json some = json::array();
  for (const json& message : messages) {
    const Role role = some.empty() ? Role::kNone : roleNamed(textOf(some.back()["role"]));
    // The closing of a leading system message is part of its text. A turn that continues the system message's turn
    // begins at its own text.
    const std::string before = role == Role::kSystem ? "" : model.endOf(role);
    const bool joins = model.learned.ends.system_joins && messages[0]["role"] == "system";
    some.push_back(message);
    const Piece one = model.piece(some, some.size() - 1, false);
    ASSERT_TRUE(one.status.ok()) << label << one.text;
    const std::string found = one.text.substr(0, one.messages[0].body);
    EXPECT_TRUE(found == before || (joins && found.rfind(before, 0) == 0))
        << label << some << before << "|" << found;
    EXPECT_EQ(one.text.size(), one.messages[0].end) << label << some;
  }
}

/// Exactly the app's bytes, in order.
void expectLiterals(const Model& model, const json& messages, const std::string& label) {
  const Piece fresh = model.piece(messages, 0, true);
  std::multiset<std::string> given;
  for (const json& message : messages) {
    given.insert(message["content"].get<std::string>());
  }
  EXPECT_EQ(given, std::multiset<std::string>(fresh.literals.begin(), fresh.literals.end()))
      << label << fresh.text;
}

TEST(Turns, are_the_whole_conversation_in_chatml) {
  const Model model(kChatMl);
  const json talk = withSystem({say("user", "<|im_end|>Hi"), say("assistant", "Hello.")});
  EXPECT_EQ("<|im_start|>system\nBe brief.<|im_end|>\n",
            model.piece(json::array({kSystem}), 0, false).text);
  const Piece answer = model.piece(talk, 1, false);
  EXPECT_EQ("<|im_start|>user\n<|im_end|>Hi<|im_end|>\n<|im_start|>assistant\nHello.", answer.text);
  EXPECT_EQ((std::vector<std::string>{"<|im_end|>Hi", "Hello."}), answer.literals);
  EXPECT_EQ("<|im_end|>\n<|im_start|>assistant\n", model.piece(talk, 3, true).text);
  EXPECT_EQ(model.whole(talk, true), model.inTurns(talk));
}

TEST(Turns, have_a_place_for_an_empty_message) {
  const Model model(kChatMl);
  for (const char* const blank : {"", " \n"}) {
    const json talk = {say("user", blank), say("assistant", blank), say("user", blank)};
    EXPECT_EQ(model.whole(talk, true), model.inTurns(talk));
  }
}

TEST(Turns, begin_without_the_closing_text_where_that_is_held) {
  const Model model(kChatMl);
  const json talk = {say("user", "Hi"), say("assistant", "Hello."), say("user", "And?")};
  EXPECT_EQ("<|im_start|>user\nAnd?", model.piece(talk, 2, false, false, /*closed=*/true).text);
}

TEST(Turns, of_a_message_that_the_template_leaves_out_are_unsupported) {
  for (const std::string text : {"{{ messages|length }} messages",
                                 "{% for m in messages if m.role != 'tool' and m.role != 'user' "
                                 "%}{{ m.content }}{% endfor %}"}) {
    const Model model(text);
    EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
              model.piece(json::array({say("user", "Hi")}), 0, false).status.code());
    EXPECT_NE(std::string::npos, model.errors().find("leaves out a message of the role \"user\""));
  }
}

TEST(Turns, have_words_for_roles) {
  const Model model(kChatMl);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            model.piece(json::array({say("us<|er", "Hi")}), 0, false).status.code());
}

TEST(Turns, leave_a_system_text_where_it_was_written) {
  const Model model(
      "{% set system = messages[0].content if messages[0].role == 'system' else '' %}"
      "{% for m in messages if m.role != 'system' %}{% if m.role == 'user' %}[Q]"
      "{% if loop.last %}{{ system }} {% endif %}{{ m.content }}[/Q]"
      "{% else %}{{ m.content }}.{% endif %}{% endfor %}");
  const json talk =
      withSystem({say("user", "Hi"), say("assistant", "Hello."), say("user", "And?")});
  EXPECT_EQ("[Q]Hi[/Q]Hello..[Q]Be brief. And?[/Q]", model.whole(talk, true));
  EXPECT_EQ(model.whole(talk, true), model.piece(talk, 0, true).text);
  const std::string stays = "[Q]Be brief. Hi[/Q]Hello..[Q] And?[/Q]";
  EXPECT_EQ(stays, model.inTurns(talk));
  const Piece rest = model.piece(talk, 1, true);
  EXPECT_EQ(stays, model.piece(json::array({kSystem}), 0, false).text + rest.text);
  EXPECT_EQ((std::vector<std::string>{"Hi", "Hello.", "And?"}), rest.literals);
  json answered = talk;
  answered.erase(3);
  EXPECT_EQ("[Q]Hi[/Q]Hello..", model.whole(answered, true)) << "without the system text";
  EXPECT_EQ("[Q]Be brief. Hi[/Q]Hello..", model.piece(answered, 0, true).text);
}

constexpr char kCalls[] =
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}"
    "<call>{{ c.function.name }}</call>{% endfor %}<|end|>{% endfor %}";

json callOf(int count) {
  json calls = json::array();
  for (int i = 0; i < count; ++i) {
    calls.push_back({{"id", "call0000" + std::to_string(i)},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", json::object()}}}});
  }
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}};
}

json resultOf(const std::string& text, int call = 0) {
  return {{"role", "tool"},
          {"name", "f"},
          {"tool_call_id", "call0000" + std::to_string(call)},
          {"content", text}};
}

// The model wrote its calls in its own form. The template closes its reply.
TEST(Turns, of_results_follow_what_the_model_wrote_of_its_calls) {
  const std::string head = "{% for m in messages %}";
  const std::string turn = "<|start|>{{ m.role }}\n{{ m.content }}<|end|>";
  for (const std::string& text :
       {std::string(kCalls), head + turn + "{% endfor %}",
        head + "{% if not m.content and m.tool_calls %}<|end|>{% else %}" + turn +
            "{% endif %}{% endfor %}"}) {
    const Model model(text);
    json talk = {say("user", "Hi"), callOf(2), resultOf("18 C")};
    EXPECT_EQ("<|end|><|start|>tool\n18 C", model.piece(talk, 2, false, /*replied=*/true).text)
        << text;
    talk.push_back(resultOf("19 C", 1));
    EXPECT_EQ("<|end|><|start|>tool\n19 C", model.piece(talk, 3, false).text) << text;
    EXPECT_EQ("<|end|><|start|>tool\n18 C<|end|><|start|>tool\n19 C",
              model.piece(talk, 2, false, true).text)
        << text;
  }
}

TEST(Turns, of_own_templates_join_to_the_whole) {
  // The system text moves to the latest question. A session leaves it at its place.
  const std::set<std::string> moves_system = {"mistral-nemo", "mistral-v3"};
  for (const OwnTemplate* row : allRows()) {
    const Model model(row->text);
    for (const json& talk : {kTalk, withSystem(kTalk)}) {
      expectTheWhole(model, talk, row->name);
      expectLiterals(model, talk, row->name);
      const bool rewrites = moves_system.count(row->name) != 0 && talk[0] == kSystem;
      EXPECT_EQ(!rewrites, model.whole(talk, true) == model.inTurns(talk))
          << row->name << model.whole(talk, true) << model.inTurns(talk);
      expectBodies(model, talk, row->name);
    }
  }
}

TEST(Turns, of_results_may_have_the_name_of_their_call) {
  const Model model(
      "{% set ns = namespace(n='') %}{% for m in messages %}{% if m.role == 'tool' %}"
      "<response>{{ ns.n }}:{{ m.content }}</response>{% else %}<{{ m.role }}>{{ m.content }}"
      "{% for c in m.tool_calls %}{% set ns.n = c.function.name %}<call>{{ ns.n }}"
      "{{ c.function.arguments|tojson }}</call>{% endfor %}{% endif %}{% endfor %}");
  const json talk = {say("user", "Hi"), callOf(1), resultOf("18 C"), say("assistant", "Warm.")};
  EXPECT_EQ("<user>Hi<assistant><call>f{}</call><response>f:18 C</response><assistant>Warm.",
            model.inTurns(talk));
  const Piece fresh = model.piece(talk, 0, false);
  EXPECT_EQ("<user>Hi<assistant><call>f{}", fresh.text.substr(0, fresh.messages[1].end));
  const json called = {talk[0], talk[1], talk[2]};
  EXPECT_EQ("<response>f:18 C", model.piece(called, 2, false, true).text);
  EXPECT_EQ("</call><response>f:18 C", model.piece(called, 2, false, true, false, "</call>").text);
}

TEST(Turns, of_many_blank_messages_take_no_more_memory_than_of_one) {
  const Model model(kChatMl);
  json talk = json::array();
  for (int i = 0; i < 60; ++i) {
    talk.push_back(say("user", i % 2 == 0 ? "" : std::string(300, 'x')));
  }
  const std::string text = talk.dump();
  Scratch scratch(defaultAllocator(), templateScratchBytes(model.settings.bytes() + text.size()));
  CapturedLog log;
  TemplateRun run(model.settings, {}, log.log(), &scratch);
  const JsonValue* list = nullptr;
  NewText cut;
  ASSERT_TRUE(run.read().ok());
  ASSERT_TRUE(parseJson(text.data(), text.size(), "it", log.log(), &scratch, &list).ok());
  EXPECT_TRUE(renderNew(&run, model.learned, {list, 0, false, false}, true, &cut).ok())
      << log.errors();
}

// A conversation that fails halfway must not read as a template that writes less.
TEST(Turns, with_less_memory_are_the_same_or_refused_in_one_line) {
  const Model model(
      "Default.{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
      "{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% endif %}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>{% endif %}");
  const std::string messages =
      json({say("user", "Hi"), callOf(1), resultOf("18 C"), say("assistant", "")}).dump();
  CapturedLog log;
  using Call = std::function<Status(TemplateRun*, const JsonValue*, NewText*)>;
  const std::pair<std::string, Call> calls[] = {
      {"<|end|><|tool|>18 C<|end|><|assistant|>",
       [&](TemplateRun* run, const JsonValue* list, NewText* text) {
         return renderNew(run, model.learned, {list, 2, true, false}, false, text);
       }},
      {"<|end|><|assistant|>",
       [&](TemplateRun* run, const JsonValue* list, NewText* text) {
         return renderNew(run, model.learned, {list, 4, false, false}, true, text);
       }},
      {"Default.", [&](TemplateRun* run, const JsonValue*, NewText* text) {
         return renderPreamble(run, model.learned, text);
       }}};
  for (const auto& [whole, call] : calls) {
    uint32_t refused = 0;
    bool fits = false;
    // A prefix moves the place in its block at which each piece is taken.
    for (const size_t before : {0, 1000, 2000, 3000, 4000}) {
      for (size_t most = 16; most < 200000; most += 1024) {
        Scratch scratch(defaultAllocator(), most);
        scratch.takeText(before);
        TemplateRun run(model.settings, {}, log.log(), &scratch);
        NewText text;
        log.clear();
        const JsonValue* list = nullptr;
        Status status = run.read();
        if (status.ok()) {
          status = parseJson(messages.data(), messages.size(), "it", log.log(), &scratch, &list);
        }
        if (status.ok()) {
          status = call(&run, list, &text);
        }
        if (status.ok()) {
          fits = true;
          EXPECT_EQ(whole, std::string(text.text, text.bytes)) << most;
          EXPECT_EQ("", log.errors());
        } else {
          ++refused;
          EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status.code());
          EXPECT_NE("", log.errors()) << whole << " in " << most;
          EXPECT_EQ(std::string::npos, log.errors().find('\n')) << log.errors();
        }
      }
    }
    EXPECT_TRUE(fits) << whole;
    EXPECT_GT(refused, 5u) << whole;
  }
}

TEST(Turns, are_cancelled_at_every_question) {
  const Model model(kCalls);
  const std::string messages = json({say("user", "Hi"), callOf(1), resultOf("")}).dump();
  for (uint64_t at = 0;; ++at) {
    uint64_t left = at;
    const StopCheck stop = {[](void* user) { return (*static_cast<uint64_t*>(user))-- == 0; },
                            &left};
    LearnedTemplate learned;
    const Status learning =
        learnTemplate(model.settings, stop, Log(), defaultAllocator(), &learned);
    const bool asked = left > at;
    EXPECT_EQ(asked ? ORIEL_ERROR_CANCELLED : ORIEL_OK, learning.code()) << at;
    left = at;
    Scratch scratch(defaultAllocator(), size_t{1} << 20);
    TemplateRun run(model.settings, stop, Log(), &scratch);
    const JsonValue* list = nullptr;
    NewText text;
    ASSERT_TRUE(parseJson(messages.data(), messages.size(), "it", Log(), &scratch, &list).ok());
    ASSERT_TRUE(run.read().ok());
    const Status status = renderNew(&run, model.learned, {list, 1, false, false}, false, &text);
    EXPECT_EQ(left > at ? ORIEL_ERROR_CANCELLED : ORIEL_OK, status.code()) << at;
    if (!asked) {
      EXPECT_GT(at, 4u);
      break;
    }
  }
}

TEST(Turns, are_learned_or_refused_at_every_allocation) {
  const Model model(kCalls);
  struct Heap {
    uint64_t left;
    bool refused;
  };
  for (uint64_t at = 0;; ++at) {
    Heap heap = {at, false};
    const oriel_allocator allocator = {
        [](size_t bytes, void* user) -> void* {
          Heap& self = *static_cast<Heap*>(user);
          self.refused = self.refused || self.left == 0;
          return self.left == 0 ? nullptr : (--self.left, std::malloc(bytes));
        },
        [](void* memory, size_t, void*) { std::free(memory); }, &heap};
    CapturedLog log;
    LearnedTemplate learned;
    const Status status = learnTemplate(model.settings, {}, log.log(), allocator, &learned);
    EXPECT_EQ(heap.refused ? ORIEL_ERROR_OUT_OF_MEMORY : ORIEL_OK, status.code()) << at;
    EXPECT_EQ(heap.refused, log.says("no memory")) << at;
    if (!heap.refused) {
      EXPECT_GT(at, 1u);
      break;
    }
  }
}

// Published templates.

struct Published {
  std::string name;
  json file;
};

std::vector<Published> publishedIn(const std::string& one) {
  std::vector<Published> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(one).parent_path())) {
    all.push_back({entry.path().stem().string(), readJson(entry.path().string())});
  }
  return all;
}

std::string tokenOf(const Published& published, const char* name) {
  return published.file[name].is_null() ? "" : published.file[name].get<std::string>();
}

TEST(PublishedTurns, of_a_fresh_list_are_the_whole) {
  ORIEL_NEED_DATA(data, "templates/Qwen-Qwen3-0.6B.json");
  size_t compared = 0, templates = 0;
  for (const Published& published : publishedIn(data)) {
    Model model(published.file["template"], tokenOf(published, "bos_token"),
                tokenOf(published, "eos_token"));
    size_t number = ++templates;  // other cases of each
    for (const json& one : published.file["cases"]) {
      const json context = one.contains("context") ? one["context"] : json();
      if (!one.contains("expected") || context.contains("documents")) {
        continue;
      }
      model.give(one["tools"], context);
      const json& thinking = one["enable_thinking"];
      model.settings.thinking = thinking.is_null()     ? ThinkingWish::kTemplates
                                : thinking.get<bool>() ? ThinkingWish::kOn
                                                       : ThinkingWish::kOff;
      const std::string name = one["name"];
      // It omits the system text if no question ends the list. A session keeps it.
      if (published.name == "mistralai-Mistral-Nemo-Instruct-2407" &&
          name == "system + two turns, ends with assistant") {
        continue;
      }
      if (!allCases() && ++number % 3 != 0) {
        continue;
      }
      expectTheWhole(model, one["messages"], published.name + ": " + name);
      ++compared;
    }
  }
  EXPECT_GT(compared, allCases() ? 2300u : 700u);
}

/// Templates that rewrite an earlier message when others follow.
const std::set<std::string> kMovesSystem = {"mistralai-Mistral-Nemo-Instruct-2407"};
const std::set<std::string> kMovesTools = {"Mistral-Small-3.2-24B-Instruct-2506",
                                           "mistralai-Mistral-Nemo-Instruct-2407"};
/// A call has a block for a thought until the next question.
const std::set<std::string> kMovesThought = {"Qwen-Qwen3-0.6B", "Qwen3.5-4B", "StepFun3.5-Flash"};
/// These open a reply although not requested: closing texts include the start of another turn.
const std::set<std::string> kOpens = {"CohereForAI-c4ai-command-r-plus-tool_use",
                                      "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
                                      "chat-llama3", "vllm-phi4-mini"};

TEST(PublishedTurns, join_to_the_whole) {
  ORIEL_NEED_DATA(data, "templates/Qwen-Qwen3-0.6B.json");
  const json tools =
      json::array({{{"type", "function"},
                    {"function",
                     {{"name", "f"},
                      {"description", "It looks."},
                      {"parameters", {{"type", "object"}, {"properties", json::object()}}}}}}});
  const json called = {say("user", "One?"), callOf(1), resultOf("Drei."), say("assistant", "Un."),
                       say("user", "Two?")};
  std::set<std::string> moves_system;
  std::set<std::string> moves_tools;
  size_t compared = 0;
  for (const Published& published : publishedIn(data)) {
    Model model(published.file["template"], tokenOf(published, "bos_token"),
                tokenOf(published, "eos_token"));
    for (const json& talk : {kTalk, withSystem(kTalk), called}) {
      const bool calls = talk == called;
      model.give(calls ? tools : json());
      const std::string whole = model.whole(talk, true);
      if (!model.errors().empty()) {
        continue;
      }
      ++compared;
      if (model.inTurns(talk) != whole) {
        EXPECT_TRUE(calls || talk != kTalk) << published.name;
        (calls ? moves_tools : moves_system).insert(published.name);
      }
      if (!calls) {
        expectLiterals(model, talk, published.name);
      } else {
        const Piece result = model.piece({talk[0], talk[1], talk[2]}, 2, false, /*replied=*/true);
        EXPECT_NE(std::string::npos, result.text.find("Drei.")) << published.name << result.text;
      }
      if (!calls && kOpens.count(published.name) == 0) {
        expectBodies(model, talk, published.name);
      }
    }
  }
  for (const std::string& name : kMovesThought) {
    EXPECT_EQ(1u, moves_tools.erase(name)) << name;
  }
  EXPECT_EQ(kMovesTools, moves_tools);
  EXPECT_EQ(kMovesSystem, moves_system);
  EXPECT_GT(compared, 200u);
}

}  // namespace
}  // namespace oriel_internal::test::test_turns

namespace oriel_internal::test::test_transcript {

// Messages in a buffer of fixed size.

namespace {

class Kept {
 public:
  explicit Kept(uint64_t capacity) : block_(capacity / 16 + 1) {
    Arena arena(block_.data(), block_.size() * 16);
    transcript_.init(capacity, &arena);
  }
  Transcript* operator->() { return &transcript_; }
  Transcript& operator*() { return transcript_; }

  void add(const std::string& json, uint64_t begin, uint64_t end) {
    Scratch scratch(defaultAllocator(), size_t{1} << 20);
    const JsonValue* message = nullptr;
    ASSERT_TRUE(parseJson(json.data(), json.size(), "it", {}, &scratch, &message).ok());
    transcript_.add(*message, begin, end);
  }
  std::string written(uint64_t position = UINT64_MAX, uint64_t from = 0) const {
    std::string text;
    transcript_.write(from, position,
                      {[](const char* part, size_t bytes, void* user) {
                         static_cast<std::string*>(user)->append(part, bytes);
                       },
                       &text});
    return text;
  }
  struct Record {
    uint64_t at;
    Transcript::Entry entry;
    std::string json;
  };
  std::vector<Record> records() const {
    std::vector<Record> all;
    Record one;
    const char* json = nullptr;
    uint64_t at = 0;
    while (transcript_.next(&at, &one.entry, &json)) {
      one.json.assign(json, one.entry.bytes);
      one.at = at - one.entry.bytes - sizeof(Transcript::Entry);
      all.push_back(one);
    }
    return all;
  }
  /// The buffer after the last message is zero.
  bool restIsBlank() const {
    const uint8_t* const room = transcript_.data();
    for (uint64_t i = transcript_.bytes(); i < transcript_.capacity(); ++i) {
      if (room[i] != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  struct alignas(16) Piece {
    uint8_t bytes[16];
  };
  std::vector<Piece> block_;
  Transcript transcript_;
};

std::string message(const std::string& role, const std::string& text) {
  return R"({"role":")" + role + R"(","content":")" + text + "\"}";
}
std::string user(const std::string& text) { return message("user", text); }
std::string assistant(const std::string& text) { return message("assistant", text); }

TEST(Transcript, keeps_messages_and_where_they_end) {
  Kept kept(1000);
  EXPECT_EQ("[]", kept.written());
  kept.add(user("a\\\"b"), 0, 5);
  kept->open(5, 7);
  EXPECT_EQ("[" + user("a\\\"b") + "," + assistant("") + "]", kept.written());
  EXPECT_EQ("[" + user("a\\\"b") + "]", kept.written(9)) << "one that goes on ends nowhere";
  EXPECT_EQ(0u, kept->lastReplyEnd());
  kept->extend("one\n", 4);
  kept->extend("two", 3);
  kept->close(12, -1);
  EXPECT_EQ(12u, kept->lastReplyEnd());
  EXPECT_EQ("[" + user("a\\\"b") + "," + assistant("one\\ntwo") + "]", kept.written());
  EXPECT_EQ("[" + assistant("one\\ntwo") + "]", kept.written(12, kept.records()[1].at));
  EXPECT_EQ("[" + user("a\\\"b") + "]", kept.written(11));
  EXPECT_EQ("[]", kept.written(4));
  kept->extend("late", 4);
  EXPECT_EQ(2u, kept->messages());
  EXPECT_TRUE(kept.restIsBlank());
  kept->forget();
  EXPECT_EQ("[]", kept.written());
  EXPECT_TRUE(kept.restIsBlank());
}

TEST(Transcript, knows_the_role_of_each_message_and_the_last_within_a_position) {
  Kept kept(2000);
  EXPECT_EQ(Role::kNone, kept->last(UINT64_MAX).role());
  const std::string call =
      R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{}}}]})";
  kept.add(message("developer", "s"), 0, 2);
  kept.add(user("u"), 2, 4);
  kept.add(call, 4, 6);
  kept.add(message("tool", "t"), 6, 8);
  kept->open(8, 9);
  kept->close(12, -1);
  EXPECT_EQ(1u, kept->messages() - 4);
  const Role roles[] = {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool,
                        Role::kAssistant};
  const std::vector<Kept::Record> all = kept.records();
  ASSERT_EQ(5u, all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(roles[i], all[i].entry.role()) << i;
    EXPECT_EQ(i == 0, all[i].entry.is(Transcript::kSystem)) << i;
    EXPECT_EQ(i == 4, all[i].entry.is(Transcript::kReply)) << i;
    EXPECT_EQ(roles[i], kept->last(all[i].entry.end).role()) << i;
  }
  EXPECT_EQ(call, all[2].json) << "JSON stays as it was";
  EXPECT_EQ(8u, kept->last(11).end);
  EXPECT_EQ(Role::kNone, kept->last(1).role());
}

// A template writes what closes it with the next message, as of any reply.
TEST(Transcript, has_a_closed_reply_in_the_place_of_tokens_without_text) {
  Kept kept(1000);
  kept->addClosedReply(9);
  const Transcript::Entry reply = kept->last(9);
  EXPECT_EQ(Role::kAssistant, reply.role());
  EXPECT_TRUE(reply.is(Transcript::kClosed) && reply.is(Transcript::kCut));
  EXPECT_EQ(9u, reply.end);
  EXPECT_EQ("[]", kept.written()) << "it is not exported";
  EXPECT_EQ(0u, kept->dropped());
  EXPECT_TRUE(Transcript::valid(kept->data(), kept->bytes(), 1, 9));
}

TEST(Transcript, without_room_does_nothing) {
  Kept kept(0);
  kept.add(user("a"), 0, 5);
  kept->open(5, 7);
  kept->extend("x", 1);
  kept->close(9, -1);
  kept->addClosedReply(9);
  Transcript::Entry cut;
  EXPECT_FALSE(kept->truncate(8, &cut));
  EXPECT_FALSE(kept->keeps());
  EXPECT_EQ(0u, kept->messages() + kept->dropped());
  kept->forget();
}

TEST(Transcript, keeps_a_message_of_more_than_half_the_room_cut) {
  Kept kept(2000);
  kept.add(user("before"), 0, 2);
  const std::string large = std::string(63, 'x') + "\xC3\xA4" + std::string(2000, 'y');
  kept.add(R"({"role":"tool","name":"f","tool_call_id":"c1","content":")" + large + "\"}", 2, 900);
  EXPECT_EQ("[" + user("before") + "]", kept.written()) << "it is not exported";
  EXPECT_EQ(1u, kept->dropped());
  const Kept::Record cut = kept.records()[1];
  EXPECT_TRUE(cut.entry.is(Transcript::kCut));
  EXPECT_EQ(Role::kTool, cut.entry.role());
  EXPECT_EQ(R"({"role":"tool","content":")" + std::string(63, 'x') +
                R"(","name":"f","tool_call_id":"c1"})",
            cut.json)
      << "in whole characters";
  EXPECT_EQ(900u, kept->last(1000).end);
  kept.add(user("after"), 900, 902);
  EXPECT_EQ("[" + user("before") + "," + user("after") + "]", kept.written());
}

TEST(Transcript, keeps_a_system_message_of_more_than_a_quarter_of_the_room_cut) {
  for (const size_t bytes : {400, 600}) {
    Kept kept(2000);
    kept.add(message("system", std::string(bytes, 's')), 0, 2);
    EXPECT_EQ(bytes == 600, kept.records()[0].entry.is(Transcript::kCut));
    EXPECT_EQ(bytes == 600 ? 1u : 0u, kept->dropped());
    for (uint64_t i = 2; i < 60; ++i) {
      kept.add(user("number " + std::to_string(i)), i, i + 1);
    }
    EXPECT_TRUE(kept.records()[0].entry.is(Transcript::kSystem)) << "it stays";
  }
}

// A growing reply evicts the oldest messages, and is cut where it alone is too large.
TEST(Transcript, makes_room_for_a_reply_as_it_grows) {
  for (uint64_t capacity = 1; capacity < 600; ++capacity) {
    Kept kept(capacity);
    kept.add(message("system", "S"), 0, 2);
    kept.add(user("first"), 2, 4);
    kept.add(user("second"), 4, 6);
    const bool has_system = kept.written().find("system") != std::string::npos;
    kept->open(6, 7);
    const bool opened = kept->isOpen();
    for (int i = 0; i < 40; ++i) {
      kept->extend("word ", 5);
      ASSERT_LE(kept->bytes(), capacity);
    }
    kept->close(50, -1);
    ASSERT_LE(kept->bytes(), capacity);
    EXPECT_TRUE(kept.restIsBlank());
    EXPECT_EQ(has_system, kept.written().find("system") != std::string::npos) << capacity;
    EXPECT_TRUE(Transcript::valid(kept->data(), kept->bytes(), kept->messages(), 50)) << capacity;
    EXPECT_EQ(opened, kept->lastReplyEnd() == 50) << capacity;
    if (capacity > 450) {
      EXPECT_NE(std::string::npos, kept.written().find("word word")) << capacity;
    }
  }
}

TEST(Transcript, forgets_what_ends_behind_a_place) {
  const auto conversation = [](Kept* kept) {
    kept->add(user("a"), 0, 5);
    (*kept)->open(5, 8);
    (*kept)->extend("b", 1);
    (*kept)->close(12, -1);
    kept->add(user("c"), 12, 20);
  };
  for (uint64_t position = 0; position < 25; ++position) {
    Kept kept(1000);
    conversation(&kept);
    Transcript::Entry cut;
    const bool in_reply = kept->truncate(position, &cut);
    EXPECT_EQ(position >= 20   ? 3u
              : position >= 12 ? 2u
              : position >= 5  ? 1u
                               : 0u,
              kept->messages())
        << position;
    EXPECT_EQ(position >= 8 && position < 12, in_reply) << position;
    EXPECT_TRUE(!in_reply || (cut.begin == 5 && cut.text == 8 && cut.end == 12));
    EXPECT_TRUE(kept.restIsBlank());
    kept.add(user("d"), position, position + 1);
    EXPECT_NE(std::string::npos, kept.written().find(user("d")));
  }
}

TEST(Transcript, comes_back_whole_and_in_a_smaller_room_the_latest) {
  Kept kept(2000);
  kept.add(message("system", "be"), 0, 3);
  for (uint64_t i = 0; i < 10; ++i) {
    kept.add(user("number " + std::to_string(i)), 3 + i, 4 + i);
  }
  ASSERT_TRUE(Transcript::valid(kept->data(), kept->bytes(), 11, 13));
  EXPECT_FALSE(Transcript::valid(kept->data(), kept->bytes(), 10, 13));
  EXPECT_FALSE(Transcript::valid(kept->data(), kept->bytes(), 11, 12)) << "behind the end";
  Kept again(2000);
  again.add(user("gone"), 0, 1);
  again->load(kept->data(), kept->bytes(), 4);
  EXPECT_EQ(kept.written(), again.written());
  EXPECT_EQ(4u, again->dropped());
  Kept smaller(400);
  smaller->load(kept->data(), kept->bytes(), 4);
  EXPECT_EQ(11u + 4u, smaller->messages() + smaller->dropped());
  EXPECT_NE(std::string::npos, smaller.written().find("system"));
  EXPECT_NE(std::string::npos, smaller.written().find("number 9"));
  EXPECT_EQ(std::string::npos, smaller.written().find("number 1"));
  Kept none(0);
  none->load(kept->data(), kept->bytes(), 0);
  EXPECT_EQ(0u, none->messages());
}

TEST(Transcript, reads_messages_again_without_those_that_are_cut) {
  Kept kept(2000);
  kept.add(user("a"), 0, 5);
  kept.add(user(std::string(3000, 'x')), 5, 900);
  kept->open(900, 901);
  kept->close(905, -1);
  kept->setUnread(0, 0);
  EXPECT_TRUE(kept->hasUnread());
  EXPECT_EQ("[" + user("a") + "," + assistant("") + "]", kept.written());
  for (const Kept::Record& one : kept.records()) {
    EXPECT_TRUE(one.entry.is(Transcript::kUnread) && !one.entry.is(Transcript::kReply));
    kept->setRead(one.at, 1, 2);
  }
  EXPECT_FALSE(kept->hasUnread());
  EXPECT_EQ(Role::kAssistant, kept->last(2).role());
}

// Bytes from a file: nothing outside them is read.
TEST(Transcript, of_damaged_bytes_is_not_valid_or_harmless) {
  Kept kept(500);
  kept.add(user("a\xC3\xA4"), 0, 5);
  kept.add(user("b"), 5, 9);
  const std::vector<uint8_t> whole(kept->data(), kept->data() + kept->bytes());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = whole;
      bytes[i] = static_cast<uint8_t>(value);
      bytes.shrink_to_fit();
      if (Transcript::valid(bytes.data(), bytes.size(), 2, 9)) {
        Kept into(500);
        into->load(bytes.data(), bytes.size(), 0);
        EXPECT_EQ(2u, into->messages());
      }
    }
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(Transcript::valid(part.data(), part.size(), 2, 9)) << i;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_transcript
