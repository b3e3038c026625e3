// Jinja's rules, against Jinja2 itself: tests/data/jinja/cases.json is written by scripts/make_jinja_cases.py.
#include <gtest/gtest.h>

#include <fstream>

#include "support/jinja_template.h"

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
