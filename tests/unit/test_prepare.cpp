// Client messages in the form that each template can write.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "chat/prepare.h"
#include "support/files.h"
#include "support/jinja_template.h"
#include "support/reply.h"
#include "support/timing.h"

namespace oriel_internal::test::test_prepare {
namespace {

using nlohmann::ordered_json;

constexpr size_t kRoom = size_t{64} << 20;

/// A template with the facts that were learned about it.
class Model {
 public:
  explicit Model(std::string text, std::string bos = "", std::string eos = "")
      : text_(std::move(text)), bos_(std::move(bos)), eos_(std::move(eos)) {
    settings_.text = {text_.data(), text_.size()};
    settings_.bos = {bos_.data(), bos_.size()};
    settings_.eos = {eos_.data(), eos_.size()};
    settings_.date = 20261122;
    CapturedLog log;
    EXPECT_TRUE(learnFacts(settings_, {}, log.log(), defaultAllocator(), &facts).ok());
    EXPECT_TRUE(log.lines.empty()) << log.errors();
  }

  Rendered render(const ordered_json& messages, const ordered_json& tools = nullptr,
                  bool generation = false, ThinkingWish thinking = ThinkingWish::kTemplates,
                  const ordered_json& variables = nullptr) {
    const std::string json = messages.dump();
    const std::string tools_json = tools.is_null() ? "" : tools.dump();
    const std::string variables_json = variables.is_null() ? "" : variables.dump();
    TemplateSettings settings = settings_;
    settings.tools = {tools_json.data(), tools_json.size()};
    settings.variables = {variables_json.data(), variables_json.size()};
    settings.thinking = thinking;
    Scratch scratch(defaultAllocator(), kRoom);
    CapturedLog log;
    TemplateRun run(settings, {}, log.log(), &scratch);
    JinjaOutput out;
    const JsonValue* given = nullptr;
    Status status = run.read();
    if (status.ok()) {
      status = parseJson(json.data(), json.size(), "messages", log.log(), &scratch, &given);
    }
    if (status.ok()) {
      status = prepareMessages(facts, *given, &scratch, log.log(), &given);
    }
    if (status.ok()) {
      status = run.render(*given, generation, &out);
    }
    Rendered rendered;
    rendered.status = status.code();
    rendered.error = log.errors();
    if (status.ok()) {
      rendered.text.assign(out.text, out.bytes);
      rendered.ranges.assign(out.ranges, out.ranges + out.n_ranges);
    }
    return rendered;
  }

  TemplateFacts facts;

 private:
  const std::string text_;
  const std::string bos_;
  const std::string eos_;
  TemplateSettings settings_;
};

ordered_json say(const std::string& role, const ordered_json& content) {
  return {{"role", role}, {"content", content}};
}

ordered_json call(const ordered_json& arguments, const std::string& id = "call_0123456789abcdef") {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", "look"}, {"arguments", arguments}}}};
}

ordered_json calling(const ordered_json& content, const ordered_json& calls) {
  return {{"role", "assistant"}, {"content", content}, {"tool_calls", calls}};
}

ordered_json result(const std::string& content, const std::string& id = "call_0123456789abcdef") {
  return {{"role", "tool"}, {"tool_call_id", id}, {"content", content}};
}

ordered_json list(std::initializer_list<ordered_json> all) {
  ordered_json made = ordered_json::array();
  for (const ordered_json& one : all) {
    made.push_back(one);
  }
  return made;
}

const ordered_json kHistory =
    list({say("user", "Rain?"), calling(nullptr, list({call("{\"city\": \"Oslo\", \"n\": 2}")})),
          result("yes")});

// A template that writes `first` before each message, then its role and `content`, then `call` for each of its calls.
std::string chat(const std::string& content, const std::string& call,
                 const std::string& first = "") {
  return "{% for m in messages %}" + first + "<{{ m.role }}>" + content +
         (call.empty() ? "" : "{% for c in m.tool_calls or [] %}" + call + "{% endfor %}") +
         "|{% endfor %}";
}
const std::string kJsonCall = "[{{ c.function.name }} {{ c.function.arguments | tojson }}]";

TEST(Prepare, content_null_is_empty_where_the_template_takes_that) {
  Model model(chat("{{ '' + m.content }}", kJsonCall));
  EXPECT_FALSE(model.facts.null_content);
  EXPECT_EQ("<user>Rain?|<assistant>[look {\"city\": \"Oslo\", \"n\": 2}]|<tool>yes|",
            model.render(kHistory).text);
  EXPECT_EQ(
      "<user>Hi|<assistant>|<user>Hi|",
      model.render(list({say("user", "Hi"), say("assistant", nullptr), say("user", "Hi")})).text);
}

TEST(Prepare, content_null_stays_where_calls_are_written_only_beside_it) {
  Model model(
      "{% for m in messages %}<{{ m.role }}>{% if m.content is none %}{% for c in m.tool_calls "
      "%}[" +
      std::string("{{ c.function.name }} {{ c.function.arguments | tojson }}]") +
      "{% endfor %}{% else %}{{ m.content }}{% endif %}|{% endfor %}");
  EXPECT_TRUE(model.facts.null_content);
  ordered_json history = kHistory;
  history[1]["content"] = "";
  EXPECT_EQ("<user>Rain?|<assistant>[look {\"city\": \"Oslo\", \"n\": 2}]|<tool>yes|",
            model.render(history).text);
}

TEST(Prepare, arguments_are_an_object_or_the_text_that_a_template_wants) {
  Model items(chat("{{ m.content }}",
                   "[{{ c.function.name }} {% for k, v in c.function.arguments | items %}{{ k "
                   "}}={{ v }};{% endfor %}]"));
  EXPECT_FALSE(items.facts.text_arguments);
  EXPECT_EQ("<user>Rain?|<assistant>[look city=Oslo;n=2;]|<tool>yes|", items.render(kHistory).text);
  for (const char* way :
       {"{{ c.function.arguments }}", "{{ '' + c.function.arguments }}",
        "{% if c.function.arguments is string %}{{ c.function.arguments }}{% endif %}"}) {
    Model raw(chat("{{ m.content }}", "[{{ c.function.name }} " + std::string(way) + "]"));
    EXPECT_TRUE(raw.facts.text_arguments) << way;
    ordered_json history = kHistory;
    EXPECT_EQ("<user>Rain?|<assistant>[look {\"city\": \"Oslo\", \"n\": 2}]|<tool>yes|",
              raw.render(history).text);
    history[1]["tool_calls"][0]["function"]["arguments"] = {{"city", "Oslo"}, {"n", 2}};
    EXPECT_EQ("<user>Rain?|<assistant>[look {\"city\": \"Oslo\", \"n\": 2}]|<tool>yes|",
              raw.render(history).text);
  }
}

TEST(Prepare, odd_arguments_become_an_object) {
  Model model(chat("{{ m.content }}", kJsonCall));
  const std::pair<ordered_json, std::string> cases[] = {
      {"", "{}"},
      {" \n", "{}"},
      {"null", "{}"},
      {nullptr, "{}"},
      {"{\"a\": [1, null]}", "{\"a\": [1, null]}"},
      {"{\"a\": ", "{\"arguments\": \"{\\\"a\\\": \"}"},
      {"[1]", "{\"arguments\": [1]}"},
  };
  for (const auto& [arguments, wanted] : cases) {
    EXPECT_EQ("<user>Hi|<assistant>[look " + wanted + "]|",
              model.render(list({say("user", "Hi"), calling("", list({call(arguments)}))})).text);
  }
}

TEST(Prepare, ids_are_shortened_where_a_template_wants_nine_letters) {
  Model model(
      chat("{% if m.tool_call_id and m.tool_call_id | length != 9 %}"
           "{{ raise_exception('nine') }}{% endif %}{{ m.tool_call_id }}{{ m.content }}",
           "[{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}]"));
  EXPECT_TRUE(model.facts.short_ids);
  const std::string text = model.render(kHistory).text;
  const std::string id = text.substr(text.find('[') + 1, 9);
  EXPECT_NE(std::string::npos, text.find("<tool>" + id + "yes|")) << text;
  const ordered_json short_one =
      list({say("user", "Rain?"), calling("", list({call("{}", "abcdefgh9")})),
            result("yes", "abcdefgh9")});
  EXPECT_EQ("<user>Rain?|<assistant>[abcdefgh9 look {}]|<tool>abcdefgh9yes|",
            model.render(short_one).text);
}

TEST(Prepare, content_is_a_list_of_parts_where_a_template_takes_no_text) {
  Model model(
      chat("{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}"
           "{% endfor %}",
           ""));
  EXPECT_TRUE(model.facts.parts_only);
  EXPECT_EQ("<user>[1:Hello]|",
            model.render(list({say("user", "Hello")})).marked().replace(1, 4, "user"));
}

TEST(Prepare, parts_become_one_text_and_thoughts_reasoning) {
  Model model(
      chat("{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
           "{{ '' + m.content }}",
           ""));
  EXPECT_FALSE(model.facts.takes_parts);
  const ordered_json parts =
      list({{{"type", "text"}, {"text", "a"}}, {{"type", "input_text"}, {"text", "b"}}});
  const ordered_json answer = list({{{"type", "thinking"}, {"thinking", "t"}},
                                    {{"type", "output_text"}, {"text", "c"}},
                                    {{"type", "refusal"}, {"refusal", "d"}}});
  EXPECT_EQ("<user>ab|<assistant>(t)cd|",
            model.render(list({say("user", parts), say("assistant", answer)})).text);
}

TEST(Prepare, parts_stay_where_a_template_writes_them) {
  Model model(
      chat("{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
           "{{ p.text }};{% endfor %}{% endif %}",
           ""));
  EXPECT_TRUE(model.facts.takes_parts);
  const ordered_json parts =
      list({{{"type", "input_text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}});
  EXPECT_EQ("<user>a;b;|", model.render(list({say("user", parts)})).text);
}

TEST(Prepare, images_are_refused) {
  Model model(chat("{{ m.content }}", ""));
  const ordered_json image = list({{{"type", "image_url"}, {"image_url", {{"url", "x"}}}}});
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, model.render(list({say("user", image)})).status);
}

TEST(Prepare, calls_that_a_template_leaves_out_are_part_of_the_content) {
  Model model(chat("{{ m.content if m.content is string else m.content | tojson }}", ""));
  EXPECT_TRUE(model.facts.no_calls);
  EXPECT_FALSE(model.facts.no_results);
  const Rendered rendered = model.render(kHistory);
  EXPECT_EQ(
      "<user>Rain?|<assistant><tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": "
      "\"Oslo\", \"n\": 2}}\n</tool_call>|<tool>yes|",
      rendered.text);
  // The marks are not client text.
  EXPECT_NE(std::string::npos,
            rendered.marked().find("<tool_call>\n{\"name\": \"[2:look]\", \"arguments\": [2:{"))
      << rendered.marked();
  ordered_json history = kHistory;
  history[1]["content"] = "Wait.";
  history[1]["tool_calls"].push_back(call("{}"));
  EXPECT_NE(std::string::npos,
            model.render(history).text.find("<assistant>Wait.\n<tool_call>\n{\"name\""));
}

TEST(Prepare, calls_are_written_in_the_form_that_a_template_speaks_of) {
  const ordered_json calls = list(
      {call("{\"city\": \"O\\\"slo\", \"ok\": true, \"no\": [null, 1.5]}"), call("{\"n\": 2}")});
  for (const char* mark :
       {"", "<tool_call>", "<|tool_list_start|>", "<|tool_call|>", "<|tool|><|/tool|>",
        "functools[", "[TOOL_CALLS]", "<|tool_calls_section_begin|>",
        "<\xEF\xBD\x9Ctool\xE2\x96\x81"
        "calls\xE2\x96\x81"
        "begin\xEF\xBD\x9C>"}) {
    const std::string text = "{# " + std::string(mark) + " #}" + chat("{{ m.content }}", "");
    Model model(text);
    ASSERT_TRUE(model.facts.no_calls) << mark;
    const std::string written = model.render(list({calling("", calls)})).text;
    const std::string begin = "<assistant>";
    const ReadReply read =
        readReply(formsOfTemplate(text.data(), text.size()),
                  written.substr(begin.size(), written.size() - begin.size() - 1));
    ASSERT_EQ(2u, read.calls.size()) << written;
    EXPECT_EQ("", read.text) << written;
    EXPECT_EQ("look", read.calls[0].name);
    EXPECT_EQ(ordered_json::parse("{\"city\": \"O\\\"slo\", \"ok\": true, \"no\": [null, 1.5]}"),
              ordered_json::parse(read.calls[0].arguments))
        << written;
    EXPECT_TRUE(read.calls[1].ended);
    EXPECT_EQ("{\"n\":2}", ordered_json::parse(read.calls[1].arguments).dump());
  }
}

TEST(Prepare, results_that_a_template_refuses_are_a_question) {
  Model model(chat("{{ m.content }}", "",
                   "{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('no') }}"
                   "{% endif %}"));
  EXPECT_TRUE(model.facts.no_results);
  ordered_json history = kHistory;
  history.push_back(result("no"));
  const Rendered rendered = model.render(history);
  const std::string end =
      "|<user><tool_response>\n[3:yes]\n</tool_response>\n<tool_response>\n[4:no]\n"
      "</tool_response>|";
  const std::string marked = rendered.marked();
  ASSERT_GE(marked.size(), end.size()) << rendered.error;
  EXPECT_EQ(end, marked.substr(marked.size() - end.size()));
}

TEST(Prepare, a_system_message_goes_in_front_of_the_question_where_a_template_has_none) {
  const std::string raises =
      "{% if messages[0].role == 'system' %}{{ raise_exception('none') }}{% endif %}" +
      chat("{{ m.content }}", "");
  const std::string leaves_out =
      "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}|{% endif %}"
      "{% endfor %}";
  for (const std::string& text : {raises, leaves_out}) {
    Model model(text);
    EXPECT_TRUE(model.facts.no_system);
    // Each text has the source of the message that it came with.
    const Rendered rendered = model.render(
        list({say("system", "Be brief."), say("user", "Hi"), say("assistant", "Yes")}));
    EXPECT_EQ("<user>[1:Be brief.]\n\n[2:Hi]|<assistant>[3:Yes]|", rendered.marked());
    EXPECT_EQ("<user>[1:Be brief.]|", model.render(list({say("system", "Be brief.")})).marked());
    EXPECT_EQ("<user>[2:Hi]|", model.render(list({say("system", ""), say("user", "Hi")})).marked());
  }
}

TEST(Prepare, a_late_system_message_that_is_lost_goes_in_front_of_the_next_question) {
  Model model(
      "{% if messages[0].role == 'system' %}<s>{{ messages[0].content }}|{% endif %}"
      "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}|{% endif %}"
      "{% endfor %}");
  EXPECT_FALSE(model.facts.no_system);
  EXPECT_TRUE(model.facts.loses_second);
  EXPECT_TRUE(model.facts.loses_late);
  EXPECT_EQ(
      "<s>[1:A]|<user>[2:B]\n\n[3:C]|",
      model.render(list({say("system", "A"), say("system", "B"), say("user", "C")})).marked());
  EXPECT_EQ("<user>[1:A]|<assistant>[2:B]|<user>[3:C]\n\n[4:D]|",
            model
                .render(list({say("user", "A"), say("assistant", "B"), say("system", "C"),
                              say("user", "D")}))
                .marked());
  EXPECT_EQ("<user>[1:A]|<user>[2:B]|",
            model.render(list({say("user", "A"), say("system", "B")})).marked());
}

TEST(Prepare, a_late_system_message_that_is_refused_has_the_templates_words) {
  Model model(chat("{{ m.content }}", "",
                   "{% if m.role == 'system' and not loop.first %}"
                   "{{ raise_exception('only first') }}{% endif %}"));
  EXPECT_FALSE(model.facts.loses_late);
  const Rendered rendered = model.render(list({say("user", "A"), say("system", "B")}));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, rendered.status);
  EXPECT_EQ("the chat template refuses this conversation: only first", rendered.error);
}

TEST(Prepare, no_memory_is_an_error_at_every_place) {
  TemplateFacts facts;
  facts.no_system = facts.no_calls = facts.no_results = facts.short_ids = true;
  const ordered_json odd = list({{{"type", "text"}, {"text", "a"}},
                                 {{"type", "thinking"}, {"thinking", std::string(3000, 't')}}});
  ordered_json messages = list({say("system", std::string(3000, 's'))});
  for (const ordered_json& one : kHistory) {
    messages.push_back(one);
  }
  messages.push_back(say("assistant", odd));
  messages.push_back(say("system", "last"));
  const std::string json = messages.dump();
  Scratch given(defaultAllocator(), kRoom);
  const JsonValue* read = nullptr;
  ASSERT_TRUE(parseJson(json.data(), json.size(), "messages", Log(), &given, &read).ok());
  bool was_refused = false;
  bool is_ok = false;
  for (size_t room = 0; room < 64 * 1024; room += 256) {
    Scratch scratch(defaultAllocator(), room);
    CapturedLog log;
    const JsonValue* prepared = nullptr;
    const Status status = prepareMessages(facts, *read, &scratch, log.log(), &prepared);
    is_ok = status.ok();
    was_refused = was_refused || !is_ok;
    EXPECT_TRUE(is_ok || status.code() == ORIEL_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(!is_ok, log.says("no memory"));
  }
  EXPECT_TRUE(was_refused);
  EXPECT_TRUE(is_ok);
}

TEST(Prepare, other_names_of_roles) {
  Model all(chat("{{ m.content }}", ""));
  Model few(
      "{% for m in messages %}{% if m.role in ['system', 'user', 'tool'] %}<{{ m.role }}>"
      "{{ m.content }}|{% endif %}{% endfor %}");
  const ordered_json talk = list({say("developer", "A"), say("user", "B"), say("function", "C")});
  EXPECT_EQ("<developer>A|<user>B|<tool>C|", all.render(talk).text);
  EXPECT_EQ("<system>A|<user>B|<tool>C|", few.render(talk).text);
}

TEST(Prepare, a_template_that_refuses_everything_keeps_its_words) {
  Model model("{{ raise_exception('never') }}");
  const Rendered rendered = model.render(kHistory);
  EXPECT_EQ("the chat template refuses this conversation: never", rendered.error);
}

TEST(Prepare, learning_can_be_cancelled_and_says_where_there_is_no_memory) {
  const std::string text = chat("{{ m.content }}", kJsonCall);
  TemplateSettings settings;
  settings.text = {text.data(), text.size()};
  TemplateFacts facts;
  const StopCheck stop = {[](void*) { return true; }, nullptr};
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            learnFacts(settings, stop, Log(), defaultAllocator(), &facts).code());
  const oriel_allocator none = {[](size_t, void*) -> void* { return nullptr; },
                                [](void*, size_t, void*) {}, nullptr};
  CapturedLog log;
  EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, learnFacts(settings, {}, log.log(), none, &facts).code());
  EXPECT_TRUE(log.says("no memory"));
}

// Published templates.

struct Published {
  std::string name;
  ordered_json file;
};

std::vector<Published> publishedIn(const std::string& one) {
  std::vector<Published> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(one).parent_path())) {
    std::ifstream text(entry.path());
    all.push_back({entry.path().stem().string(), ordered_json::parse(text)});
  }
  return all;
}

Model modelOf(const Published& published) {
  const auto token = [&](const char* name) {
    const ordered_json& value = published.file[name];
    return value.is_null() ? std::string() : value.get<std::string>();
  };
  return Model(published.file["template"], token("bos_token"), token("eos_token"));
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++n;
  }
  return n;
}

const ordered_json kTool =
    list({{{"type", "function"},
           {"function",
            {{"name", "find_it"},
             {"description", "Finds it."},
             {"parameters",
              {{"type", "object"},
               {"properties", {{"place", {{"type", "string"}, {"description", "Where."}}}}},
               {"required", list({"place"})}}}}}}});

/// True if the reply reader finds the whole call between the question and the result.
bool readsCall(const std::string& chat_template, const std::string& text) {
  const size_t begin = text.find("zuser") + 5;
  const size_t end = std::min(text.find("zresult"), text.size());
  ReplySettings settings;
  settings.forms = formsOfTemplate(chat_template.data(), chat_template.size());
  const ReadReply read = readPieces(settings, {text.substr(begin, end - begin)});
  return read.calls.size() == 1 && read.calls[0].ended && read.calls[0].name == "find_it" &&
         ordered_json::parse(read.calls[0].arguments).dump() == "{\"place\":\"zvalue\"}";
}

/// Words that each conversation must contain exactly once.
struct Talk {
  const char* name;
  ordered_json messages;
  std::vector<std::string> words;
  bool tools = false;
};

std::vector<Talk> talks() {
  const std::string id = "call_0123456789abcdef";
  const ordered_json asked = calling(
      nullptr,
      list({{{"id", id},
             {"type", "function"},
             {"function", {{"name", "find_it"}, {"arguments", "{\"place\": \"zvalue\"}"}}}}}));
  const ordered_json system = say("system", "zsystem");
  const ordered_json user = say("user", "zuser");
  return {
      {"call, result",
       list({user, asked, result("zresult", id)}),
       {"zuser", "zvalue", "zresult"},
       true},
      {"call, result, question",
       list({user, asked, result("zresult", id), say("user", "zlater")}),
       {"zuser", "zvalue", "zresult", "zlater"},
       true},
      {"call, result, answer, question",
       list({user, asked, result("zresult", id), say("assistant", "zanswer"),
             say("user", "zlater")}),
       {"zuser", "zvalue", "zresult", "zanswer", "zlater"},
       true},
      {"system, user", list({system, user}), {"zsystem", "zuser"}},
      {"user, system", list({user, system}), {"zsystem", "zuser"}},
      {"system, system, user",
       list({system, say("system", "zsecond"), user}),
       {"zsystem", "zsecond", "zuser"}},
      {"user, assistant, system, user",
       list({user, say("assistant", "zanswer"), system, say("user", "zlater")}),
       {"zuser", "zanswer", "zsystem", "zlater"}},
  };
}

TEST(PreparePublished, every_text_is_written_once_or_the_templates_words_are_the_error) {
  ORIEL_NEED_DATA(data, "templates/Qwen-Qwen3-0.6B.json");
  size_t rendered_all = 0;
  size_t read_all = 0;
  for (const Published& published : publishedIn(data)) {
    Model model = modelOf(published);
    for (const Talk& talk : talks()) {
      const Rendered rendered =
          model.render(talk.messages, talk.tools ? kTool : ordered_json(), true);
      if (rendered.status != ORIEL_OK) {
        std::cout << published.name << ", " << talk.name << ": " << rendered.error << "\n";
        // One needs a variable of its own; one fails at every tool.
        EXPECT_TRUE(rendered.error.find("refuses this conversation: ") != std::string::npos ||
                    published.name == "fireworks-ai-llama-3-firefunction-v2" ||
                    (published.name == "llama-cpp-deepseek-r1" && talk.tools));
        continue;
      }
      ++rendered_all;
      if (talk.tools) {
        const bool is_read = readsCall(published.file["template"], rendered.text);
        read_all += is_read ? 1 : 0;
        EXPECT_TRUE(is_read || !model.facts.no_calls) << published.name << rendered.text;
        if (!is_read) {
          std::cout << published.name << ", " << talk.name << ": the call is not read\n";
        }
      }
      for (const std::string& word : talk.words) {
        EXPECT_EQ(1u, count(rendered.text, word))
            << published.name << ", " << talk.name << ": " << word << "\n"
            << rendered.text.substr(rendered.text.size() > 600 ? rendered.text.size() - 600 : 0);
      }
    }
  }
  std::cout << rendered_all << " conversations rendered, " << read_all << " calls read\n";
  EXPECT_GT(read_all, 150u);
  EXPECT_GT(rendered_all, 440u);
}

// Preparing changes only what the template refuses or drops.
TEST(PreparePublished, published_conversations_render_as_published) {
  ORIEL_NEED_DATA(data, "templates/Qwen-Qwen3-0.6B.json");
  const std::set<std::string> mended = {"arguments as a string", "call with null content",
                                        "call without content", "content as parts"};
  size_t same = 0;
  for (const Published& published : publishedIn(data)) {
    Model model = modelOf(published);
    const TemplateFacts& facts = model.facts;
    for (const ordered_json& one : published.file["cases"]) {
      if (!one.contains("expected") ||
          (one.contains("context") && one["context"].contains("documents"))) {
        continue;
      }
      const ordered_json& thinking = one["enable_thinking"];
      const Rendered rendered =
          model.render(one["messages"], one["tools"], one["add_generation_prompt"],
                       thinking.is_null()     ? ThinkingWish::kTemplates
                       : thinking.get<bool>() ? ThinkingWish::kOn
                                              : ThinkingWish::kOff,
                       one.contains("context") ? one["context"] : ordered_json());
      EXPECT_EQ(ORIEL_OK, rendered.status) << published.name << rendered.error;
      const std::string messages = one["messages"].dump();
      const auto uses = [&](const char* part) { return messages.find(part) != std::string::npos; };
      const bool calls = uses("tool_calls") && (facts.no_calls || facts.no_results ||
                                                facts.text_arguments || facts.null_content);
      const bool system = uses("\"system\"") && (facts.no_system || facts.loses_late);
      const bool developer = uses("\"developer\"") && facts.no_developer;
      const bool is_same = rendered.text == one["expected"];
      same += is_same ? 1 : 0;
      EXPECT_TRUE(is_same || calls || system || developer || mended.count(one["name"]) != 0)
          << published.name << ", " << one["name"] << "\n"
          << one["expected"] << "\n"
          << rendered.text;
    }
  }
  std::cout << same << " texts are as published\n";
  EXPECT_GT(same, 2100u);
}

}  // namespace
}  // namespace oriel_internal::test::test_prepare
