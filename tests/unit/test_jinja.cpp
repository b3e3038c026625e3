// Jinja's rules, against Jinja2 itself: tests/data/jinja/cases.json is written by scripts/make_jinja_cases.py.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "chat/turn.h"
#include "support/captured_log.h"
#include "support/files.h"
#include "support/jinja_template.h"
#include "support/target.h"

namespace oriel_internal::test::test_jinja {
namespace {

using nlohmann::ordered_json;

const std::string kRefused = "the chat template refuses this conversation: ";

TEST(Jinja, renders_as_jinja2_does) {
  std::ifstream text(std::string(ORIEL_TEST_DATA) + "/jinja/cases.json");
  const ordered_json file = ordered_json::parse(text);
  const JinjaVariables variables(file["values"]);
  for (const ordered_json& one : file["cases"]) {
    const std::string name = one["name"];
    const Rendered rendered = render(one["template"], variables.all());
    if (one.contains("expected")) {
      EXPECT_EQ(ORIEL_OK, rendered.status) << name << ": " << rendered.error;
      EXPECT_EQ(one["expected"].get<std::string>(), rendered.text) << name;
    } else {
      EXPECT_EQ(ORIEL_ERROR_ARGUMENT, rendered.status) << name << ": " << one["error"];
    }
  }
  EXPECT_GT(file["cases"].size(), 450u);
}

TEST(Jinja, a_template_refuses_in_its_own_words) {
  const Rendered rendered =
      render("a\n{{ raise_exception('Roles must alternate: ' ~ x) }}", {{"x", "user, user"}});
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, rendered.status);
  EXPECT_EQ(kRefused + "Roles must alternate: user, user", rendered.error);
}

TEST(Jinja, an_error_names_line_and_reason) {
  const struct {
    const char* text;
    const char* line;
    const char* reason;
  } cases[] = {
      {"a\n\n{{ x.y.z }}", "line 3", "'y' is undefined"},
      {"a\n{{ x|frobnicate }}", "line 2", "unknown filter 'frobnicate'"},
      {"{% if x\n%}\n{{ x is frobbed }}{% endif %}", "line 3", "unknown test 'frobbed'"},
      {"\n\n\n{{ frob(1) }}", "line 4", "'frob' is undefined"},
      {"\n{% for a in x %}\n", "line 2", "{% endfor %}"},
      {"\n{{ 'a' }\n", "line 2", "'}' stands where }} should be"},
      {"\r\n\r{{ 1 + 'a' }}", "line 3", "int and str"},
      {"{# a\nb #}\n{{ 1 / 0 }}", "line 3", "zero"},
  };
  for (const auto& one : cases) {
    const Rendered rendered = render(one.text, {{"x", {{"a", 1}}}});
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, rendered.status) << one.text;
    EXPECT_NE(std::string::npos, rendered.error.find(one.line)) << rendered.error;
    EXPECT_NE(std::string::npos, rendered.error.find(one.reason)) << rendered.error;
    EXPECT_EQ(std::string::npos, rendered.error.find('\n')) << rendered.error;
  }
}

TEST(Jinja, a_check_reads_and_runs_nothing) {
  const oriel_allocator allocator = {takeFromHeap, giveToHeap, nullptr};
  Scratch scratch(allocator, 1 << 20);
  CapturedLog log;
  const std::string good = "{{ raise_exception('no') }}{{ undef.x }}{{ x|frobnicate }}";
  EXPECT_TRUE(checkJinja(good.data(), good.size(), {}, log.log(), &scratch).ok());
  const std::string bad = "a\n{% if %}";
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            checkJinja(bad.data(), bad.size(), {}, log.log(), &scratch).code());
  EXPECT_TRUE(log.says("line 2")) << log.errors();
}

TEST(Jinja, of_two_variables_with_one_name_the_first_counts) {
  const ordered_json first = {{"x", "first"}};
  const ordered_json second = {{"x", "second"}};
  const JinjaVariables one(first);
  const JinjaVariables two(second);
  EXPECT_EQ("first", render("{{ x }}", {one.all()[0], two.all()[0]}).text);
}

TEST(Jinja, a_variable_hides_a_function) {
  EXPECT_EQ("5", render("{{ range }}", {{"range", 5}}).text);
}

TEST(Jinja, numbers_beyond_64_bits_are_printed_as_they_are_written) {
  const oriel_allocator allocator = {takeFromHeap, giveToHeap, nullptr};
  Scratch scratch(allocator, 1 << 20);
  const std::string json = "[123456789012345678901234567890, -9223372036854775808, 1E400, -0.0]";
  JinjaVariable x;
  x.name = "x";
  ASSERT_TRUE(parseJson(json.data(), json.size(), "x", {}, &scratch, &x.value).ok());
  EXPECT_EQ("123456789012345678901234567890 -9223372036854775808 inf -0.0",
            render("{{ x|join(' ') }}", {x}).text);
  EXPECT_EQ("[123456789012345678901234567890, -9223372036854775808, Infinity, -0.0]",
            render("{{ x|tojson }}", {x}).text);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, render("{{ x[0] + 1 }}", {x}).status);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, render("{{ 9223372036854775807 + 1 }}", {x}).status);
}

// The results of Python 3.11 and Jinja2 3.1.6; nothing: exceeds 64 bits, or refused there, too.
TEST(Jinja, arithmetic_ends_at_64_bits) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"2.5|round(low)", "0.0"},
      {"(-2.5)|round(low)", "-0.0"},
      {"2.5|round(-400)", "0.0"},
      {"25.0|round(-1)", "20.0"},
      {"15|round(-1)", "20"},
      {"25|round(-1)", "20"},
      {"(-15)|round(-1)", "-20"},
      {"5|round(-1)", "0"},
      {"true|round(-1)", "0"},
      {"123456789012345678|round(-3)", "123456789012346000"},
      {"9223372036854775807|round(-18)", "9000000000000000000"},
      {"9223372036854775807|round(-19)", nullptr},
      {"(-9223372036854775807)|round(-1)", nullptr},
      {"4611686018427387905|round(-19)", "0"},
      {"5|round(-40)", "0"},
      {"5|round(low)", "0"},
      {"2.5|round(high)", "2.5"},
      {"1e308|round(400)", "1e+308"},
      {"'abc'.center(low)", "abc"},
      {"'abc'.ljust(low)", "abc"},
      {"'abc'.rjust(low)", "abc"},
      {"'abc'.zfill(low)", "abc"},
      {"'abc'.center(high, '')", nullptr},
      {"'abc'.center(9, 'ab')", nullptr},
      {"'abc'.center(6, 'é')", "éabcéé"},
      {"'a b c'.split(' ', low)", "['a', 'b', 'c']"},
      {"'a b c'.split(none, low)", "['a', 'b', 'c']"},
      {"'a b c'.rsplit(' ', low)", "['a', 'b', 'c']"},
      {"'a b c'.rsplit(none, low)", "['a', 'b', 'c']"},
      {"'aaa'.replace('a', 'b', low)", "bbb"},
      {"low % 3", "1"},
      {"low // 3", "-3074457345618258603"},
      {"high % -2", "-1"},
      {"high // -2", "-4611686018427387904"},
      {"high % low", "-1"},
      {"low % high", "9223372036854775806"},
      {"low % -1", "0"},
      {"low // -1", nullptr},
      {"-low", nullptr},
      {"low|abs", nullptr},
      {"low * -1", nullptr},
      {"-1 * low", nullptr},
      {"low - 1", nullptr},
      {"'abc'[low:high:high]", "a"},
      {"'abc'[high:low:low]", "c"},
      {"[1, 2, 3][low:high:high]", "[1]"},
      {"[1, 2, 3][high:low:low]", "[3]"},
      {"[1, 2, 3][low]", ""},
      {"'ab' * low", ""},
      {"[1] * low", "[]"},
      {"'ab'|indent(low)", "ab"},
      {"range(low, low + 3)|list",
       "[-9223372036854775808, -9223372036854775807, -9223372036854775806]"},
      {"range(5)[::low]", "range(4, -1, -9223372036854775808)"},
      {"range(5)[::high]|list", "[0]"},
      {"range(0)[::5]", "range(0, 0, 5)"},
      {"range(0, 10, 2)[::7]", "range(0, 10, 14)"},
      {"range(0, 10, 2)[::high]", nullptr},
      {"range(10, 0, -1)[::low]", nullptr},
      {"range(0, high, 4611686018427387904)[1:]", nullptr},
      {"range(low, low + 6, 2)[::-1]", nullptr},
  };
  for (const auto& one : cases) {
    const std::string text = std::string("{% set high = 9223372036854775807 %}") +
                             "{% set low = -high - 1 %}{{ " + one.text + " }}";
    const Rendered rendered = render(text);
    EXPECT_EQ(one.expected != nullptr ? ORIEL_OK : ORIEL_ERROR_ARGUMENT, rendered.status)
        << one.text << ": " << rendered.error;
    EXPECT_EQ(one.expected != nullptr ? one.expected : "", rendered.text) << one.text;
    EXPECT_EQ(one.expected != nullptr, rendered.error.empty()) << one.text;
    EXPECT_EQ(std::string::npos, rendered.error.find('\n')) << rendered.error;
  }
}

TEST(Jinja, a_member_that_comes_twice_has_its_last_value) {
  const oriel_allocator allocator = {takeFromHeap, giveToHeap, nullptr};
  Scratch scratch(allocator, 1 << 20);
  const std::string json = R"({"a": 1, "b": 2, "a": 3})";
  JinjaVariable x;
  x.name = "x";
  ASSERT_TRUE(parseJson(json.data(), json.size(), "x", {}, &scratch, &x.value).ok());
  EXPECT_EQ("{'a': 3, 'b': 2} 3", render("{{ x }} {{ x.a }}", {x}).text);
  EXPECT_EQ(R"({"a": 3, "b": 2})", render("{{ x|tojson }}", {x}).text);
}

TEST(Jinja, the_clock_stands_at_noon_of_its_date) {
  const std::string text = "{{ strftime_now('%d %b %Y, %A, %H:%M:%S') }}";
  EXPECT_EQ("26 Jul 2024, Friday, 12:00:00", render(text, {}, 1 << 20, {}, {}).text);
  EXPECT_EQ("29 Feb 2028, Tuesday, 12:00:00", render(text, {}, 1 << 20, {}, {20280229}).text);
}

}  // namespace
}  // namespace oriel_internal::test::test_jinja

namespace oriel_internal::test::test_jinja_published {

// Templates of published models, against transformers' renderings.

namespace {

using nlohmann::ordered_json;

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

// Compares raised messages, not Python's own errors.
bool isRight(const ordered_json& one, const Rendered& rendered) {
  if (one.contains("expected")) {
    return rendered.status == ORIEL_OK && rendered.text == one["expected"];
  }
  if (one["error_kind"] != "raised") {
    return rendered.status == ORIEL_ERROR_ARGUMENT;
  }
  return rendered.status == ORIEL_ERROR_ARGUMENT &&
         rendered.error ==
             "the chat template refuses this conversation: " + one["error"].get<std::string>();
}

// All cases are included.
TEST(JinjaPublished, all_conversations_render_to_the_byte) {
  ORIEL_NEED_DATA(data, "templates/Qwen-Qwen3-0.6B.json");
  size_t cases = 0;
  for (const Published& published : publishedIn(data)) {
    for (const ordered_json& one : published.file["cases"]) {
      const JinjaVariables variables(variablesOf(published.file, one));
      const Rendered rendered = render(published.file["template"], variables.all());
      EXPECT_TRUE(isRight(one, rendered))
          << published.name << ", " << one["name"] << ": " << rendered.error;
      ++cases;
    }
  }
  EXPECT_GT(cases, 2600u);
}

// A megabyte and a few times the input; steps in proportion to the input.
TEST(JinjaPublished, a_thousand_messages_render) {
  ORIEL_NEED_DATA(data, "templates/Qwen-Qwen3-0.6B.json");
  size_t rendered_all = 0, number = 0;
  for (const Published& published : publishedIn(data)) {
    if (!allCases() && ++number % 3 != 0) {
      continue;
    }
    ordered_json one = published.file["cases"][0];
    ordered_json few = ordered_json::array();
    ordered_json many = ordered_json::array();
    for (int i = 0; i < 1000; ++i) {
      const std::string text = "Message " + std::to_string(i) + std::string(80, 'w');
      many.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", text}});
    }
    few.push_back(many[0]);
    one["messages"] = few;
    const JinjaVariables first(variablesOf(published.file, one));
    const bool takes_it = render(published.file["template"], first.all()).status == ORIEL_OK;
    one["messages"] = many;
    const ordered_json values = variablesOf(published.file, one);
    const JinjaVariables variables(values);
    const size_t most = (size_t{1} << 20) + 3 * values.dump().size();
    const Rendered rendered = render(published.file["template"], variables.all(), most);
    EXPECT_EQ(takes_it, rendered.status == ORIEL_OK) << published.name << rendered.error;
    rendered_all += takes_it ? 1 : 0;
  }
  EXPECT_GT(rendered_all, allCases() ? 65u : 20u);
}

}  // namespace
}  // namespace oriel_internal::test::test_jinja_published

namespace oriel_internal::test::test_jinja_sources {

// The source of each byte of a rendered conversation.

namespace {

using nlohmann::ordered_json;

/// [n: ...] around text from source n; x is 1, y is 2, messages begin at 10.
std::string marked(const std::string& text) {
  const ordered_json values = {
      {"x", "ab c"},
      {"y", "<Y>"},
      {"d", {{"k", "v"}, {"n", 5}}},
      {"messages",
       {{{"role", "user"}, {"content", " Hi\n"}}, {{"role", "me"}, {"content", "Yo"}}}}};
  JinjaVariables variables(values);
  variables.source("x", 1).source("y", 2).source("d", 3).source("messages", 10, true);
  const Rendered rendered = render(text, variables.all());
  EXPECT_EQ(ORIEL_OK, rendered.status) << text << rendered.error;
  size_t end = 0;
  TextOrigin before = 0;
  for (const SourceRange& range : rendered.ranges) {
    EXPECT_LT(range.begin, range.end) << text;
    EXPECT_GE(range.begin, end) << text;
    EXPECT_TRUE(range.begin > end || range.source != before) << text;
    EXPECT_NE(0u, range.source) << text;
    end = range.end;
    before = range.source;
  }
  EXPECT_LE(end, rendered.text.size());
  return rendered.marked();
}

TEST(JinjaSources, the_templates_own_text_has_none) {
  EXPECT_EQ("a1True<|im_end|>", marked("a{{ 1 }}{{ true }}{{ '<|im_end|>' }}"));
  EXPECT_EQ("<|im_end|>", marked("{% set s = '<|im' ~ '_end|>' %}{{ s }}"));
}

TEST(JinjaSources, element_i_of_the_messages_has_its_own) {
  EXPECT_EQ("[10:user]:[10: Hi\n];[11:me]:[11:Yo];",
            marked("{% for m in messages %}{{ m.role }}:{{ m['content'] }};{% endfor %}"));
  EXPECT_EQ("[11:Yo]", marked("{{ messages[-1].content }}"));
  EXPECT_EQ("[11:Yo]", marked("{{ messages[1:][0].content }}"));
  EXPECT_EQ("[10:content]", marked("{{ messages[0]|list|last }}"));
}

TEST(JinjaSources, survive_what_templates_do_to_strings) {
  const char* const cases[][2] = {
      {"{{ 'a' + x + 'b' }}", "a[1:ab c]b"},
      {"{{ x + y }}", "[1:ab c][2:<Y>]"},
      {"{{ 'a' ~ x ~ 1 }}", "a[1:ab c]1"},
      {"{{ (' ' + messages[0].content)|trim }}", "[10:Hi]"},
      {"{{ (x + y)[3:5] }}", "[1:c][2:<]"},
      {"{{ (x + y)[::-1] }}", "[2:>Y<][1:c ba]"},
      {"{{ x.split(' ')[1] }}", "[1:c]"},
      {"{{ x.split(' ')|join('-') }}", "[1:ab]-[1:c]"},
      {"{{ [x, y]|join }}", "[1:ab c][2:<Y>]"},
      {"{{ 'a b'|replace(' ', x) }}", "a[1:ab c]b"},
      {"{{ x|replace('b', '<|end|>') }}", "[1:a]<|end|>[1: c]"},
      {"{{ x|upper ~ y|lower }}", "[1:AB C][2:<y>]"},
      {"{{ x|tojson }}", "[1:\"ab c\"]"},
      {"{{ d|tojson }}", "[3:{\"k\": \"v\", \"n\": 5}]"},
      {"{{ [x]|tojson }}", "[[1:\"ab c\"]]"},
      {"{{ {'k': x}|tojson }}", "{\"k\": [1:\"ab c\"]}"},
      {"{{ d }}", "[3:{'k': 'v', 'n': 5}]"},
      {"{{ d.n }}{{ d.n + 1 }}", "[3:5]6"},
      {"{{ '{}!'.format(x) }}", "[1:ab c]!"},
      {"{{ '%s!' % x }}", "[1:ab c]!"},
      {"{% set s %}a{{ x }}b{% endset %}{{ s }}{{ s }}", "a[1:ab c]ba[1:ab c]b"},
      {"{% macro m(v) %}<{{ v }}>{% endmacro %}{{ m(x) ~ m(y) }}", "<[1:ab c]><[2:<Y>]>"},
      {"{% filter upper %}a{{ x }}{% endfilter %}", "A[1:AB C]"},
      {"{% set ns = namespace(s='') %}{% for i in [x, 'q', y] %}{% set ns.s = ns.s + i %}"
       "{% endfor %}{{ ns.s }}",
       "[1:ab c]q[2:<Y>]"},
      {"{{ (x + 'q')|e }}{{ y|e }}", "[1:ab c]q[2:&lt;Y&gt;]"},
      {"{{ (x ~ '\n' ~ y)|indent(2) }}", "[1:ab c]\n  [2:<Y>]"},
      {"{{ undef|default(x) }}{{ x if x else y }}", "[1:ab cab c]"},
      {"{% for c in x %}{{ c }}.{% endfor %}", "[1:a].[1:b].[1: ].[1:c]."},
      {"{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", "[3:kvn5]"},
      {"{{ [y, x]|sort|first }}{{ [x, y]|map('upper')|list|last }}", "[2:<Y><Y>]"},
      {"{{ x.strip('a') }}{{ x.partition(' ')[2] }}{{ x.center(6, '*') }}", "[1:b cc]*[1:ab c]*"},
      {"{{ ['a' ~ x] }}", "['a[1:ab c']]"},
      {"{{ x * 2 }}", "[1:ab cab c]"},
      {"{{ (x|safe) + y }}", "[1:ab c][2:&lt;Y&gt;]"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(one[1], marked(one[0])) << one[0];
  }
}

// A template can never turn user text into its own text.
TEST(JinjaSources, of_a_control_token_in_a_message_no_byte_is_the_templates) {
  const ordered_json values = {{"messages", {{{"role", "user"}, {"content", "<|im_end|>\n"}}}}};
  JinjaVariables variables(values);
  variables.source("messages", 7, true);
  const Rendered rendered = render(
      "{% for m in messages %}{% set c = m.content.split('\n')[0]|trim %}"
      "{% macro w(t) %}{{ t ~ '' }}{% endmacro %}{{ w(c)|replace('', '') }}|{{ c|tojson }}{% "
      "endfor %}",
      variables.all());
  ASSERT_EQ(ORIEL_OK, rendered.status) << rendered.error;
  EXPECT_EQ("[7:<|im_end|>]|[7:\"<|im_end|>\"]", rendered.marked());
}

}  // namespace
}  // namespace oriel_internal::test::test_jinja_sources

namespace oriel_internal::test::test_template_variables {

// Variables from an app for a template: text with its own source. They never replace Oriel's variables.

namespace {

constexpr char kTemplate[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if name %}[{{ name }}]{% endif %}{% if more %}{{ more.list|join('<|im_end|>') }}"
    "{{ more|tojson }}{{ name|upper|replace('X', 'y') ~ '.' }}{% for key in more %}{{ key }}"
    "{% endfor %}{% endif %}{% if name == messages[0].content %}same{% endif %}";

class Given {
 public:
  explicit Given(const std::string& variables, ThinkingWish thinking = ThinkingWish::kTemplates)
      : variables_(variables), scratch_(defaultAllocator(), size_t{16} << 20) {
    settings_.text = {kTemplate, sizeof(kTemplate) - 1};
    settings_.bos = "<s>";
    settings_.variables = {variables_.data(), variables_.size()};
    settings_.thinking = thinking;
  }

  Status render(const std::string& content) {
    JsonBuilder make(&scratch_);
    JsonMade* const list = make.list();
    make.append(list, make.message("user", {content.data(), content.size()}));
    TemplateRun run(settings_, {}, log.log(), &scratch_);
    ORIEL_TRY(run.read());
    return run.render(*list, false, &out);
  }
  std::string text() const { return {out.text, out.bytes}; }
  /// The part of the output that may hold control tokens.
  std::string trusted() const {
    std::string all;
    size_t at = 0;
    for (size_t i = 0; i < out.n_ranges; ++i) {
      all.append(out.text + at, out.ranges[i].begin - at);
      at = out.ranges[i].end;
    }
    return all.append(out.text + at, out.bytes - at);
  }

  CapturedLog log;
  JinjaOutput out;

 private:
  const std::string variables_;
  Scratch scratch_;
  TemplateSettings settings_;
};

TEST(TemplateVariables, never_say_what_a_template_alone_may_say) {
  Given given(R"({"name": "x<|im_end|>", "more": {"<|im_start|>": "<|im_end|>",
                  "list": ["<|im_start|>", "<|im_start|>"]}})");
  ASSERT_TRUE(given.render("Hi").ok()) << given.log.errors();
  const std::string trusted = given.trusted();
  // The template's own: around the message, between the elements, and in place of a letter.
  EXPECT_EQ("<|im_start|>user\n<|im_end|>\n[]<|im_end|>y.", trusted) << given.text();
  EXPECT_NE(std::string::npos, given.text().find("[x<|im_end|>]")) << given.text();
}

TEST(TemplateVariables, are_compared_with_other_text_as_text) {
  Given given(R"({"name": "Hi"})");
  ASSERT_TRUE(given.render("Hi").ok());
  EXPECT_EQ("<|im_start|>user\nHi<|im_end|>\n[Hi]same", given.text());
  Given other(R"({"name": "Hi"})");
  ASSERT_TRUE(other.render("Ho").ok());
  EXPECT_EQ("<|im_start|>user\nHo<|im_end|>\n[Hi]", other.text());
}

TEST(TemplateVariables, of_names_that_oriel_sets_are_refused) {
  for (const std::string name : {"messages", "add_generation_prompt", "bos_token", "eos_token",
                                 "tools", "documents", "m\\u0065ssages"}) {
    Given given("{\"" + name + "\": 1}");
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, given.render("Hi").code()) << name;
    EXPECT_TRUE(given.log.says("which Oriel sets: leave it out")) << given.log.errors();
  }
  Given nul("{\"messages\\u0000\": [], \"name\\u0000\": \"x\"}");  // other names
  ASSERT_TRUE(nul.render("Hi").ok());
  EXPECT_EQ("<|im_start|>user\nHi<|im_end|>\n", nul.text());
}

// The app controls thinking, by an option or by a variable.
TEST(TemplateVariables, may_say_whether_to_think_where_no_option_does) {
  Given given(R"({"enable_thinking": false})");
  EXPECT_TRUE(given.render("Hi").ok()) << given.log.errors();
  Given both(R"({"enable_thinking": false})", ThinkingWish::kOn);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, both.render("Hi").code());
}

}  // namespace
}  // namespace oriel_internal::test::test_template_variables
