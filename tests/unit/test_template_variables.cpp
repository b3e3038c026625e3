// Variables from an app for a template: text with its own source. They never replace Oriel's variables.
#include <gtest/gtest.h>

#include "base/workspace.h"
#include "chat/turn.h"
#include "support/captured_log.h"

namespace oriel_internal::test::test_template_variables {
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
