// The text of new messages, cut out of the rendering of a whole conversation.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "chat/turn.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/own_text.h"

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
  size_t compared = 0;
  for (const Published& published : publishedIn(data)) {
    Model model(published.file["template"], tokenOf(published, "bos_token"),
                tokenOf(published, "eos_token"));
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
      expectTheWhole(model, one["messages"], published.name + ": " + name);
      ++compared;
    }
  }
  EXPECT_GT(compared, 2300u);
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
