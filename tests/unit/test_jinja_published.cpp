// Templates of published models, against transformers' renderings.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/files.h"
#include "support/jinja_template.h"

namespace oriel_internal::test::test_jinja_published {
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
  size_t rendered_all = 0;
  for (const Published& published : publishedIn(data)) {
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
  EXPECT_GT(rendered_all, 65u);
}

}  // namespace
}  // namespace oriel_internal::test::test_jinja_published
