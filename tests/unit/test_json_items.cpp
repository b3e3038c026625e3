// JSON as oriel_json_read gives it to programs.
#include <gtest/gtest.h>
#include <oriel/tools.h>

#include <cstring>
#include <string>

namespace oriel_internal::test::test_json_items {
namespace {

struct Heard {
  std::string all;
  size_t most = SIZE_MAX;
};

int hear(const oriel_json_item* item, void* user) {
  Heard* const heard = static_cast<Heard*>(user);
  static const char* const names[] = {"null", "bool", "number", "string", "list", "object", "end"};
  heard->all += std::string(heard->all.empty() ? "" : " ") +
                (item->key != nullptr ? std::string(item->key, item->key_bytes) + ":" : "") +
                names[item->kind] +
                (item->text != nullptr ? "=" + std::string(item->text, item->text_bytes) : "") +
                (item->count != 0 ? "#" + std::to_string(item->count) : "");
  return --heard->most == 0 ? 1 : 0;
}

oriel_status read(const std::string& json, Heard* heard, std::string* line) {
  char room[200] = "";
  oriel_options options = ORIEL_OPTIONS_INIT;
  options.error_line = room;
  options.error_line_bytes = sizeof(room);
  const oriel_status status =
      oriel_json_read(json.data(), json.size(), "the text", &options, hear, heard);
  *line = room;
  return status;
}

TEST(JsonItems, come_in_their_order) {
  Heard heard;
  std::string line;
  EXPECT_EQ(ORIEL_OK, read(R"({"a": [1, -2.50, "x\ny"], "": {}, "b": true, "c": false, "d": null})",
                           &heard, &line));
  EXPECT_EQ(
      "object#5 a:list#3 number=1 number=-2.50 string=x\ny end :object end b:bool#1 c:bool "
      "d:null end",
      heard.all);
  EXPECT_EQ("", line);
}

TEST(JsonItems, errors_have_a_line_and_no_items) {
  for (const auto& [json, reason] :
       {std::pair<std::string, std::string>{"[1,",
                                            "invalid JSON at byte 3 of the text: correct it there"},
        {"{\"a\":1,\"a\":2}", "the name \"a\" occurs twice in the text: remove one"},
        {"[\"\\ud800\"]", "invalid JSON at byte 7 of the text: correct it there"},
        {std::string(65, '['), "more than 64 levels in the text: nest less"}}) {
    Heard heard;
    std::string line;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, read(json, &heard, &line));
    EXPECT_EQ(reason, line);
    EXPECT_EQ("", heard.all);
  }
}

TEST(JsonItems, end_where_the_program_says) {
  for (size_t most = 1; most < 5; ++most) {
    Heard heard;
    heard.most = most;
    std::string line;
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, read("[[1]]", &heard, &line));
    EXPECT_EQ("", line);
  }
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_json_read("1", 1, "it", nullptr, nullptr, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_json_read(nullptr, 1, "it", nullptr, hear, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_json_read("1", 1, nullptr, nullptr, hear, nullptr));
}

}  // namespace
}  // namespace oriel_internal::test::test_json_items
