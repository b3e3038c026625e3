// The source of each byte of a rendered conversation.
#include <gtest/gtest.h>

#include "support/jinja_template.h"

namespace oriel_internal::test::test_jinja_sources {
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
