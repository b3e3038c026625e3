// The cost of templates: the work of every filter, test, method and function is counted and bounded.
#include <gtest/gtest.h>

#include <set>

#include "chat/turn.h"
#include "jinja/jinja_filters.h"
#include "jinja/jinja_functions.h"
#include "jinja/jinja_methods.h"
#include "jinja/jinja_parser.h"
#include "jinja/jinja_tests.h"
#include "support/jinja_template.h"

namespace oriel_internal::test::test_jinja_work {
namespace {

using nlohmann::ordered_json;
using Names = std::set<std::string>;

constexpr size_t kMostBytes = size_t{4} << 20;
constexpr uint64_t kMostUnits = 2'000'000;
// A filter that has started processes as much as fits in memory, several times.
constexpr uint64_t kLastUnits = 32'000'000;
// Texts have 30,000 bytes, lists 5,000 elements: processing a whole one counts at least this much.
constexpr uint64_t kLeastUnits = 2'500;

const JinjaVariables& variables() {
  static const JinjaVariables made([] {
    ordered_json values;
    std::string text;
    for (int i = 0; i < 10000; ++i) {
      text += "ab ";
    }
    values["text"] = text;
    values["same"] = text;
    values["blanks"] = std::string(30000, ' ');
    for (int i = 0; i < 5000; ++i) {
      values["list"].push_back(i);
      values["other"].push_back(i);
      values["words"].push_back("ab");
    }
    for (int i = 0; i < 60; ++i) {
      values["given"]["k" + std::to_string(i)] = i;
    }
    return values;
  }());
  return made;
}

struct Ran {
  oriel_status status = ORIEL_OK;
  uint64_t units = 0;
  std::string error;
};

Ran run(const std::string& text, uint64_t most_units, const std::vector<JinjaVariable>& all) {
  const oriel_allocator allocator = {takeFromHeap, giveToHeap, nullptr};
  Scratch scratch(allocator, kMostBytes);
  CapturedLog log;
  const jinja::Node* tree = nullptr;
  const StopCheck stop;
  const Log says = log.log();
  jinja::Parser parser(stop, says, &scratch);
  Ran ran;
  ran.status = parser.parse(text.data(), text.size(), &tree).code();
  if (ran.status == ORIEL_OK) {
    jinja::Heap heap(&scratch);
    heap.meter() = Steps(most_units, {}, jinja::kUnitsBetweenStops);
    jinja::TextBuilder out(&heap);
    jinja::Interpreter interpreter({&heap, &parser, {}, says, {most_units, 400}});
    ran.status = interpreter.run(tree, all.data(), all.size(), &out).code();
    ran.units = heap.meter().steps();
  }
  ran.error = log.errors();
  return ran;
}

Ran run(const std::string& text, uint64_t most_units, const JinjaVariables& given = variables()) {
  return run(text, most_units, given.all());
}

// The most expensive use of one name, relative to its input.
struct Dearest {
  std::string body;
  uint64_t units = 0;
  bool works = false;
  bool refused = false;

  void add(const std::string& use, const std::string& values) {
    const Ran ran = run("{% set x = [" + values + "] %}" + use, kMostUnits);
    for (const char* const words :
         {"is not supported", "which templates may not", "refuses this conversation"}) {
      refused = refused || ran.error.find(words) != std::string::npos;
    }
    if (ran.status != ORIEL_OK && ran.units <= kMostUnits) {
      return;
    }
    // `base` sets the values twice, without the use. The rest is the cost of the use.
    const uint64_t base =
        run("{% set x = [" + values + "] %}{% set x = [" + values + "] %}", UINT32_MAX).units;
    const uint64_t more = ran.units > base ? ran.units - base : 0;
    works = true;
    if (more >= units) {
      units = more;
      body = use;
    }
  }
};

void expectCounted(const std::string& name, const Dearest& dearest, const Names& constant) {
  if (!dearest.works) {
    EXPECT_TRUE(dearest.refused) << name << ": give it a value that it takes";
    return;
  }
  EXPECT_EQ(constant.count(name) == 0, dearest.units >= kLeastUnits)
      << name << " counts " << dearest.units << " units in " << dearest.body;
  const Ran ran = run("{% for i in range(100000) %}{% for j in range(10) %}" + dearest.body +
                          "{% endfor %}{% endfor %}",
                      kMostUnits);
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, ran.status) << dearest.body << ran.error;
  EXPECT_LT(ran.units, kMostUnits + kLastUnits) << dearest.body;
}

const char* const kValues[] = {"text",        "blanks",      "list", "words", "given",
                               "dict(given)", "'%c' * 5000", "7",    "1.5"};
// Their spelling in a call; their contents.
const struct {
  const char* call;
  const char* values;
} kArguments[] = {{"", "1"},
                  {"(same)", "same"},
                  {"(other)", "other"},
                  {"(words)", "words"},
                  {"((same ~ 'x',) * 40)", "(same ~ 'x',) * 40"},
                  {"(30000)", "1"},
                  {"('a', 'b')", "1"},
                  {"('upper')", "1"},
                  {"(attribute='0')", "1"},
                  {"(0, 1)", "1"},
                  {"('k7')", "1"},
                  {"(indent=9000)", "1"}};

TEST(JinjaWork, every_filter_counts_what_it_does) {
  const Names constant = {"abs", "d", "default", "round"};
  for (uint16_t id = 0; jinja::filterName(id) != nullptr; ++id) {
    const std::string name = jinja::filterName(id);
    Dearest dearest;
    for (const std::string value : kValues) {
      for (const auto& one : kArguments) {
        dearest.add("{% set x = (" + value + ")|" + name + one.call + " %}",
                    value + ", " + one.values);
      }
    }
    expectCounted(name, dearest, constant);
  }
}

TEST(JinjaWork, every_test_counts_what_it_does) {
  const Names constant = {"boolean", "callable", "defined", "escaped",  "even",
                          "false",   "filter",   "float",   "integer",  "iterable",
                          "mapping", "none",     "number",  "odd",      "sequence",
                          "string",  "test",     "true",    "undefined"};
  for (uint16_t id = 0; jinja::testName(id) != nullptr; ++id) {
    const std::string name = jinja::testName(id);
    Dearest dearest;
    for (const std::string value : kValues) {
      for (const std::string other : {"", ", text", ", same", ", list", ", other", ", 7"}) {
        dearest.add("{% set x = [" + value + "]|select('" + name + "'" + other + ") %}",
                    value + other);
      }
    }
    expectCounted(name, dearest, constant);
  }
}

TEST(JinjaWork, every_method_counts_what_it_does) {
  const Names constant = {"copy", "cycle"};
  for (uint8_t id = 1; jinja::methodName(id) != nullptr; ++id) {
    const std::string name = jinja::methodName(id);
    Dearest dearest;
    for (const std::string value : kValues) {
      for (const auto& one : kArguments) {
        const std::string call = one.call[0] == '\0' ? "()" : one.call;
        dearest.add("{% set x = (" + value + ")." + name + call + " %}", value + ", " + one.values);
      }
    }
    const std::string twice = "{% set x = loop." + name + "(list, list) %}";
    dearest.add("{% for k in [1] %}" + twice + twice + "{% endfor %}", "list");
    expectCounted(name, dearest, constant);
  }
}

TEST(JinjaWork, every_function_counts_what_it_does) {
  const Names constant = {"range"};
  for (uint32_t id = 0; jinja::functionName(id) != nullptr; ++id) {
    const std::string name = jinja::functionName(id);
    Dearest dearest;
    for (const std::string value : kValues) {
      dearest.add("{% set x = " + name + "(" + value + ") %}", value);
    }
    expectCounted(name, dearest, constant);
  }
}

// Operations without a table.
TEST(JinjaWork, what_else_is_large_is_counted) {
  for (const std::string use :
       {"text ~ same", "text + same", "text * 2", "list + list", "list * 2", "text[1:]",
        "text[::2]", "list[1:]", "text[29999]", "text == same", "text < same", "list == other",
        "'bb' in text", "-1 in list", "'%s' % text", "'%r' % text", "given|string ~ list",
        "'{0}'.format(text)", "('{0}' * 5000).format(1)"}) {
    Dearest dearest;
    dearest.add("{% set x = " + use + " %}", "1");
    expectCounted(use, dearest, {});
  }
  for (const std::string use :
       {"{% for x in text %}{% endfor %}", "{% for x in text|list if x == 1 %}{% endfor %}",
        "{% set x %}{{ text }}{% endset %}", "{% filter upper %}{{ text }}{% endfilter %}"}) {
    Dearest dearest;
    dearest.add(use, "1");
    expectCounted(use, dearest, {});
  }
}

// A name is found as soon among many as among few.
TEST(JinjaWork, of_a_name_does_not_grow_with_the_names) {
  uint64_t units[2] = {};
  for (int i = 0; i < 2; ++i) {
    std::string names;
    for (int k = 0; k < (i == 0 ? 40 : 4000); ++k) {
      names += "{% set n" + std::to_string(k) + " = 1 %}";
    }
    const std::string asks = "{% for i in range(1000) %}{{ n7 and zz }}{% endfor %}";
    units[i] = run(names + asks, UINT32_MAX).units - run(names, UINT32_MAX).units;
  }
  EXPECT_LT(units[1], units[0] + units[0] / 10);
}

TEST(JinjaWork, of_an_object_grows_with_its_members) {
  for (const std::string use : {"given|list", "given|items", "given.items()", "given|tojson",
                                "given|string", "given.keys()", "given.values()"}) {
    uint64_t units[2] = {};
    for (int i = 0; i < 2; ++i) {
      ordered_json values;
      for (int k = 0; k < (i == 0 ? 2000 : 8000); ++k) {
        values["given"]["name" + std::to_string(k)] = 1;
      }
      const Ran ran = run("{% set x = " + use + " %}", UINT32_MAX, JinjaVariables(values));
      EXPECT_EQ(ORIEL_OK, ran.status) << ran.error;
      units[i] = ran.units;
    }
    EXPECT_LT(units[1], 6 * units[0]) << use;
  }
}

// A walk through all members for each is 64 times the work for 8 times the members.
TEST(JinjaWork, of_looking_members_up_grows_with_the_look_ups) {
  uint64_t units[2] = {};
  for (int i = 0; i < 2; ++i) {
    ordered_json values;
    for (int k = 0; k < (i == 0 ? 1000 : 8000); ++k) {
      values["given"]["name" + std::to_string(k)] = 1;
    }
    const Ran ran = run("{% for name in given %}{{ given[name] }}{{ name in given }}{% endfor %}",
                        UINT32_MAX, JinjaVariables(values));
    EXPECT_EQ(ORIEL_OK, ran.status) << ran.error;
    units[i] = ran.units;
  }
  EXPECT_LT(units[1], 9 * units[0]);
}

TEST(JinjaWork, members_that_come_again_stand_where_they_stood_first) {
  const std::string text = R"({"a": 1, "b": 2, "a": 3, "": 4, "b": 5})";
  const oriel_allocator allocator = {takeFromHeap, giveToHeap, nullptr};
  Scratch scratch(allocator, kMostBytes);
  const JsonValue* value = nullptr;
  ASSERT_TRUE(parseJson(text.data(), text.size(), "it", {}, &scratch, &value).ok());
  const std::vector<JinjaVariable> given = {{"given", value}};
  EXPECT_EQ("a3b54 ab {'a': 3, 'b': 5, '': 4}",
            render("{% for k, v in given|items %}{{ k ~ v }}{% endfor %} "
                   "{% for k in given %}{{ k }}{% endfor %} {{ given }}",
                   given, kMostBytes)
                .text);
}

// The stop check runs after every fixed number of units, also within one filter.
TEST(JinjaWork, who_may_stop_is_asked_as_often_as_work_is_done) {
  for (const std::string body :
       {"{% set x = list|reverse %}", "{% set x = text.startswith((same ~ 'x',) * 40) %}"}) {
    int asked = 0;
    const StopCheck stop = {[](void* user) { return ++*static_cast<int*>(user) > 1; }, &asked};
    const std::string text = "{% for i in range(100000) %}" + body + "{% endfor %}";
    const Rendered rendered = render(text, variables().all(), kMostBytes, stop);
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, rendered.status) << rendered.error;
    EXPECT_EQ(2, asked);
  }
}

const std::string kEndless =
    "{% for i in range(100000) %}{% for j in range(10) %}"
    "{% set x = range(5000)|list|reverse|list %}{% endfor %}{% endfor %}";

// A model with such a template loads. A conversation gets an error.
TEST(JinjaWork, of_a_models_template_is_bounded_where_it_is_learned) {
  CapturedLog log;
  TemplateSettings settings;
  settings.text = {kEndless.data(), kEndless.size()};
  uint64_t asked = 0;
  StopCheck stop = {[](void* user) { return ++*static_cast<uint64_t*>(user) == 0; }, &asked};
  LearnedTemplate learned;
  EXPECT_TRUE(learnTemplate(settings, stop, log.log(), defaultAllocator(), &learned).ok());
  EXPECT_EQ(0u, log.lines.size()) << log.errors();
  const uint64_t learning = asked;
  asked = 0;
  const Rendered rendered = render(kEndless, variables().all(), kMostBytes, stop);
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, rendered.status);
  EXPECT_NE(std::string::npos, rendered.error.find("takes more than")) << rendered.error;
  EXPECT_LE(learning, 2 * asked) << "a template that ran out of steps is not tried again";

  const std::string large =
      "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}";
  TemplateSettings hungry;
  hungry.text = {large.data(), large.size()};
  EXPECT_TRUE(learnTemplate(hungry, stop, log.log(), defaultAllocator(), &learned).ok());
  EXPECT_EQ(0u, log.lines.size()) << log.errors();

  stop = {[](void*) { return true; }, nullptr};
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            learnTemplate(settings, stop, log.log(), defaultAllocator(), &learned).code());
  EXPECT_EQ(0u, log.lines.size());
}

// Names that were chosen to lie in one place of the table (FNV-1a, 512 places) are compared with each other.
std::vector<std::string> namesOfOnePlace(size_t count) {
  std::vector<std::string> names;
  for (uint32_t i = 0; names.size() < count; ++i) {
    std::string name = "n";
    for (uint32_t rest = i; rest != 0; rest /= 26) {
      name += static_cast<char>('a' + rest % 26);
    }
    uint32_t hash = 2166136261u;
    for (const char c : name) {
      hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    }
    if ((hash ^ hash >> 16) % 512 == 7) {
      names.push_back(name);
    }
  }
  return names;
}

TEST(JinjaWork, of_reading_names_is_bounded) {
  std::string apart;
  for (int i = 0; i < 20000; ++i) {
    apart += "{{n" + std::to_string(i) + "}}";
  }
  EXPECT_EQ(ORIEL_OK, run("{% if false %}" + apart + "{% endif %}", kMostUnits).status);
  std::string alike;
  for (const std::string& name : namesOfOnePlace(12000)) {
    alike += "{{" + name + "}}";
  }
  const Ran ran = run("{% if false %}" + alike + "{% endif %}", kMostUnits);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, ran.status);
  EXPECT_NE(std::string::npos, ran.error.find("its names are too much alike")) << ran.error;
}

// Names that Oriel looks up itself: at each loop, call and key.
TEST(JinjaWork, of_looking_names_up_counts_the_names_before) {
  std::string alike;
  const std::vector<std::string> names = namesOfOnePlace(2001);
  for (size_t i = 0; i < 2000; ++i) {
    alike += "{{" + names[i] + "}}";
  }
  const std::string look_up = "{% set x = (1)['" + names[2000] + "'] %}";
  const uint64_t few = run(look_up, UINT32_MAX).units;
  const uint64_t many = run("{% if false %}" + alike + "{% endif %}" + look_up, UINT32_MAX).units;
  EXPECT_GE(many, few + 2000);
}

TEST(JinjaWork, of_keys_counts_their_bytes) {
  EXPECT_GE(run("{% set x = (1)[text] %}", UINT32_MAX).units, 30000u);
  const std::string digits(30000, '7');
  const oriel_allocator allocator = {takeFromHeap, giveToHeap, nullptr};
  Scratch scratch(allocator, kMostBytes);
  JinjaVariable variable;
  variable.name = "number";
  ASSERT_EQ(ORIEL_OK,
            parseJson(digits.data(), digits.size(), "the number", Log(), &scratch, &variable.value)
                .code());
  EXPECT_GE(
      run("{% set x = number == number %}", UINT32_MAX, std::vector<JinjaVariable>{variable}).units,
      30000u);
}

// A template is read again for each conversation that it is tried with.
TEST(JinjaWork, of_reading_counts_as_steps) {
  const std::string text = "{% if false %}" + std::string(40000, 'x') + "{{a}}{{b}}{% endif %}";
  Scratch scratch(defaultAllocator(), kMostBytes);
  JinjaOutput few;
  JinjaOutput many;
  ASSERT_TRUE(runJinja(text.data(), text.size(), nullptr, 0, {}, {}, Log(), &scratch, &few).ok());
  std::string words = "{% if false %}";
  for (int i = 0; i < 8000; ++i) {
    words += "{{a}}";
  }
  words += "{% endif %}";
  ASSERT_TRUE(
      runJinja(words.data(), words.size(), nullptr, 0, {}, {}, Log(), &scratch, &many).ok());
  EXPECT_LT(few.steps, 100u);
  EXPECT_GT(many.steps, 24000u);
}

}  // namespace
}  // namespace oriel_internal::test::test_jinja_work
