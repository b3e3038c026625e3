// Values made for templates.
#include <cstring>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <oriel/tools.h>
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "chat/template_run.h"
#include "json/json.h"
#include "reply/reader.h"
#include "support/captured_log.h"
#include "support/target.h"
#include "support/timing.h"

namespace oriel_internal::test::test_json_builder {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;

// Walking a list for each element that is appended takes thousands of times as long.
TEST(JsonBuilder, appends_to_a_long_list_as_fast_as_to_a_short_one) {
  Scratch scratch(defaultAllocator(), kMostBytes);
  JsonBuilder make(&scratch);
  constexpr int kElements = 60000;
  const double apart = processorSeconds([&] {
    for (int i = 0; i < kElements; ++i) {
      make.append(make.list(), make.boolean(true));
    }
  });
  JsonMade* const list = make.list();
  const double together = processorSeconds([&] {
    for (int i = 0; i < kElements; ++i) {
      make.append(list, make.boolean(true));
    }
  });
  EXPECT_EQ(static_cast<uint32_t>(kElements), list->count());
  EXPECT_LT(together, 50 * apart + 0.01);
}

TEST(JsonBuilder, reads_many_tools_in_their_order) {
  std::string text = "[";
  for (int i = 0; i < 40000; ++i) {
    text += (i != 0 ? ",{\"name\":\"f" : "{\"name\":\"f") + std::to_string(i) + "\"}";
  }
  text += "]";
  Scratch scratch(defaultAllocator(), kMostBytes);
  CapturedLog log;
  const JsonValue* tools = nullptr;
  ASSERT_TRUE(readTools({text.data(), text.size()}, {}, log.log(), &scratch, &tools).ok());
  ASSERT_EQ(40000u, tools->count());
  int i = 0;
  for (const JsonValue* tool = tools->first(); tool != nullptr; tool = tool->next(), ++i) {
    ASSERT_TRUE(tool->find("function")->find("name")->text().is(("f" + std::to_string(i)).c_str()));
  }
  EXPECT_EQ(40000, i);
}

}  // namespace
}  // namespace oriel_internal::test::test_json_builder

namespace oriel_internal::test::test_json_items {

// JSON as oriel_json_read gives it to programs.

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

namespace oriel_internal::test::test_json_reader {

// The JSON reader's invariants for any text.

namespace {

constexpr size_t kMostBytes = size_t{1} << 30;

/// Counts stop checks and memory.
struct Watched {
  Watched() : allocator{take, give, this}, scratch(allocator, kMostBytes) {}

  Status read(const std::string& text, JsonRules rules = JsonRules::kTolerant) {
    const StopCheck stop = {[](void* user) {
                              Watched* const self = static_cast<Watched*>(user);
                              return ++self->asked > self->patience;
                            },
                            this};
    return parseJson(text.data(), text.size(), "the text", stop, log.log(), &scratch, &value,
                     rules);
  }

  static void* take(size_t bytes, void* user) {
    static_cast<Watched*>(user)->taken += bytes;
    return std::malloc(bytes);
  }
  static void give(void* memory, size_t, void*) { std::free(memory); }

  size_t taken = 0;
  uint64_t asked = 0;
  uint64_t patience = UINT64_MAX;
  oriel_allocator allocator;
  CapturedLog log;
  Scratch scratch;
  const JsonValue* value = nullptr;
};

std::string times(size_t n, const std::string& text) {
  std::string all;
  all.reserve(n * text.size());
  for (size_t i = 0; i < n; ++i) {
    all += text;
  }
  return all;
}

std::string namesOf(size_t n, const std::string& before = "k") {
  std::string text = "{";
  for (size_t i = 0; i < n; ++i) {
    text += (i == 0 ? "\"" : ",\"") + before + std::to_string(i) + "\":" + std::to_string(i);
  }
  return text + "}";
}

std::string written(const JsonValue& value) {
  std::string text;
  writeJson(value, {[](const char* part, size_t bytes, void* user) {
                      static_cast<std::string*>(user)->append(part, bytes);
                    },
                    &text});
  return text;
}

TEST(JsonReader, skips_a_byte_order_mark_at_the_begin) {
  Watched watched;
  const std::string text = "\xEF\xBB\xBF {\"a\": \"\xEF\xBB\xBF\"}";
  ASSERT_TRUE(watched.read(text).ok());
  EXPECT_EQ("{\"a\":\"\xEF\xBB\xBF\"}", written(*watched.value));
  for (const char* const wrong :
       {"\xEF\xBB\xBF", "\xEF\xBB", " \xEF\xBB\xBF{}", "\xEF\xBB\xBF\xEF\xBB\xBF{}"}) {
    EXPECT_FALSE(watched.read(wrong).ok());
  }
}

// The densest texts there are, and usual ones.
TEST(JsonReader, takes_at_most_eight_bytes_for_each) {
  const size_t n = allCases() ? 400000 : 100000;
  const std::string texts[] = {
      "[" + times(n, "1,") + "1]",
      "[" + times(n, "[],") + "1]",
      "[" + times(n, "[1],") + "1]",
      "[" + times(n, "[[1]],") + "1]",
      "[" + times(n, "{\"\":1},") + "1]",
      "[" + times(n, "\"\\n\",") + "1]",
      "[" + times(n, "{\"\\n\":\"\\t\"},") + "1]",
      "[" + times(n / 20, namesOf(20, "") + ",") + "1]",
      "{" + times(n, "\"\":1,") + "\"\":1}",
      namesOf(n, ""),
      "[" + times(n / 10, R"({"role": "user", "content": "Hello."},)") + "1]",
      "\"" + times(n, "x") + "\"",
      "\"" + times(n, "\\u00e9") + "\"",
  };
  for (const std::string& text : texts) {
    Watched watched;
    EXPECT_TRUE(watched.read(text).ok()) << text.substr(0, 40) << watched.log.errors();
    EXPECT_LE(watched.taken, kJsonBytesPerByte * text.size() + kJsonBaseBytes)
        << text.substr(0, 40);
  }
}

// A name that is compared with all before it is 5,000 million comparisons here.
TEST(JsonReader, work_of_many_names_grows_as_n_log_n) {
  uint64_t asked[2] = {};
  for (int i = 0; i < 2; ++i) {
    Watched watched;
    const size_t n = i == 0 ? 12500 : 100000;
    ASSERT_TRUE(watched.read(namesOf(n)).ok()) << watched.log.errors();
    EXPECT_EQ(n, watched.value->count());
    asked[i] = watched.asked;
  }
  EXPECT_LT(asked[1], 16 * asked[0]);
  EXPECT_LT(asked[1], 200u);
}

TEST(JsonReader, names_of_one_hash_or_one_beginning_are_no_more_work) {
  for (const std::string& before : {std::string(1000, 'a'), std::string()}) {
    Watched watched;
    const std::string text = namesOf(8000, before);
    ASSERT_TRUE(watched.read(text).ok());
    EXPECT_LT(watched.asked, 3 * text.size() / kJsonWorkBetweenStops + 20);
    EXPECT_EQ("7999", std::string(watched.value->find((before + "7999").c_str())->text().data, 4));
    EXPECT_EQ(nullptr, watched.value->find((before + "8000").c_str()));
  }
}

TEST(JsonReader, who_may_stop_is_heard_wherever_the_work_is) {
  const std::string texts[] = {
      "[" + times(300000, "1,") + "1]",
      "\"" + times(600000, "x") + "\"",
      "\"" + times(300000, "\\n") + "\"",
      times(600000, " ") + "1",
      times(600000, "1"),
      namesOf(60000),
  };
  for (const std::string& text : texts) {
    Watched whole;
    ASSERT_TRUE(whole.read(text).ok()) << whole.log.errors();
    EXPECT_GE(whole.asked, 2 * (text.size() / kJsonWorkBetweenStops)) << text.substr(0, 20);
    const uint64_t step = allCases() ? 1 : 3;
    for (uint64_t patience = (whole.asked - 1) % step; patience < whole.asked; patience += step) {
      Watched watched;
      watched.patience = patience;
      EXPECT_EQ(ORIEL_ERROR_CANCELLED, watched.read(text).code()) << text.substr(0, 20);
      EXPECT_EQ(patience + 1, watched.asked) << text.substr(0, 20);
      EXPECT_EQ(nullptr, watched.value);
    }
  }
}

TEST(JsonReader, limits_are_those_that_are_documented) {
  const auto nested = [](size_t levels) { return times(levels, "[") + times(levels, "]"); };
  const auto objects = [](size_t levels) {
    return times(levels, "{\"a\":") + "1" + times(levels, "}");
  };
  for (const std::string& text : {nested(64), objects(64), namesOf(kMaxJsonNames)}) {
    Watched watched;
    EXPECT_TRUE(watched.read(text).ok()) << watched.log.errors();
  }
  const std::pair<std::string, std::string> refused[] = {
      {nested(65), "more than 64 levels in the text: nest less"},
      {objects(65), "more than 64 levels in the text: nest less"},
      {nested(1000000), "more than 64 levels in the text: nest less"},
      {namesOf(kMaxJsonNames + 1), "more than 1048576 names in one object of the text: give fewer"},
      {std::string(kMaxJsonBytes + 1, ' '), "more than 67108864 bytes in the text: give less"},
      {"[1, 2", "invalid JSON at byte 5 of the text: correct it there"},
  };
  for (const auto& [text, line] : refused) {
    Watched watched;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, watched.read(text).code());
    EXPECT_EQ(line, watched.log.errors());
    EXPECT_LT(watched.taken, 100000u);
  }
}

// As in Python: each name is at its first place, with its last value.
TEST(JsonReader, names_that_come_again_are_one) {
  std::mt19937 random(7);
  for (const size_t n : {3, 8, 16, 17, 18, 40, 3000}) {
    for (int round = 0; round < 20; ++round) {
      std::string text = "{";
      for (size_t i = 0; i < n; ++i) {
        const std::string name = std::to_string(random() % n);
        const char* const values[] = {"1", "[1,2,{}]", "{\"a\":\"x\"}", "\"y\\n\"", "[]", "null"};
        text += (i == 0 ? "\"" : ",\"") + name + "\":" + values[random() % 6];
      }
      text += "}";
      const nlohmann::ordered_json known = nlohmann::ordered_json::parse(text);
      Watched watched;
      ASSERT_TRUE(watched.read(text).ok());
      EXPECT_EQ(known.dump(), written(*watched.value)) << text;
      EXPECT_EQ(known.size(), watched.value->count());
      for (const auto& [name, value] : known.items()) {
        const JsonValue* const found = watched.value->find(name.c_str());
        ASSERT_NE(nullptr, found) << name << text;
        EXPECT_EQ(value.dump(), written(*found));
      }
      EXPECT_EQ(nullptr, watched.value->find("none"));
    }
  }
}

TEST(JsonReader, strict_rules_refuse_what_has_two_readings) {
  for (const size_t n : {1, 30}) {
    std::string text = namesOf(n);
    text.insert(text.size() - 1, ",\"k0\":2");
    Watched watched;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, watched.read(text, JsonRules::kStrict).code());
    EXPECT_EQ("the name \"k0\" occurs twice in the text: remove one", watched.log.errors());
  }
  for (const std::string text :
       {"\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "{\"\\udfff\":1}"}) {
    Watched strict;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, strict.read(text, JsonRules::kStrict).code()) << text;
    Watched tolerant;
    EXPECT_TRUE(tolerant.read(text).ok()) << text;
  }
  Watched pair;
  EXPECT_TRUE(pair.read("\"\\ud83d\\ude00\"", JsonRules::kStrict).ok());
}

TEST(JsonReader, copies_and_wrapped_elements_say_the_same) {
  Watched watched;
  const std::string text =
      R"([{"name": "a", "b": [1, {"c": null}]}, {"function": {"name": "d"}}, 5, []])";
  ASSERT_TRUE(watched.read(text).ok());
  JsonBuilder make(&watched.scratch);
  const JsonValue* const wrapped = make.wrapped(*watched.value, "function", "type", "function");
  ASSERT_NE(nullptr, wrapped);
  EXPECT_EQ(R"([{"type":"function","function":{"name":"a","b":[1,{"c":null}]}},)"
            R"({"function":{"name":"d"}},{"type":"function","function":5},)"
            R"({"type":"function","function":[]}])",
            written(*wrapped));
  JsonMade* const list = make.list();
  for (int i = 0; i < 2; ++i) {
    for (const JsonValue* one = wrapped->first(); one != nullptr; one = one->next()) {
      make.append(list, make.copyOf(*make.copyOf(*one)));
    }
  }
  const std::string once = written(*wrapped).substr(1, written(*wrapped).size() - 2);
  EXPECT_EQ("[" + once + "," + once + "]", written(*list));
  EXPECT_EQ("\"d\"", written(*list->first()->next()->find("function")->find("name")));
}

}  // namespace
}  // namespace oriel_internal::test::test_json_reader

namespace oriel_internal::test::test_json_values {

// Values of a JSON text while it is written, against a reader of the whole text.

namespace {

using nlohmann::json;

/// The reported values by path, and the paths in the order of their ends.
struct Told {
  std::map<std::string, std::string> strings;
  std::map<std::string, std::string> literals;
  std::vector<std::string> ended;
  size_t pieces = 0;

  static void hear(JsonEvent event, const char* path, const char* text, size_t bytes, void* user) {
    Told& told = *static_cast<Told*>(user);
    if (event == JsonEvent::kString) {
      told.strings[path].append(text, bytes);
      ++told.pieces;
    } else if (event == JsonEvent::kLiteral) {
      told.literals[path].assign(text, bytes);
    } else {
      told.ended.push_back(path);
      EXPECT_EQ(0u, bytes);
    }
  }
};

/// `cuts` decides after which character the text is cut.
template <typename Cuts>
Told toldOf(const std::string& text, const Cuts& cuts) {
  Told told;
  JsonValues values;
  values.start(Told::hear, &told);
  size_t begin = 0;
  for (size_t at = 1; at <= text.size(); ++at) {
    const bool whole = at == text.size() || (static_cast<uint8_t>(text[at]) & 0xC0) != 0x80;
    if (whole && (at == text.size() || cuts())) {
      values.push(text.data() + begin, at - begin);
      begin = at;
    }
  }
  values.finish();
  return told;
}

Told toldOf(const std::string& text) {
  return toldOf(text, [] { return true; });
}

/// The same of a text that was read.
void expect(const json& value, const std::string& path, Told* want) {
  if (value.is_string()) {
    if (!value.get<std::string>().empty()) {
      want->strings[path] = value.get<std::string>();
    }
    want->ended.push_back(path);
  } else if (value.is_structured()) {
    for (const auto& [key, inner] : value.items()) {
      std::string name;
      for (const char c : key) {
        name += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      }
      expect(inner, path + "/" + name, want);
    }
    want->ended.push_back(path);
  } else {
    want->literals[path] = value.dump();
  }
}

json randomValue(std::mt19937* random, uint32_t depth) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>((*random)() % n); };
  const std::vector<std::string> texts = {"",
                                          "a",
                                          "a/b~c",
                                          "\n\t\"\\",
                                          "Grüße 世界",
                                          "\xF0\x9F\x98\x80",
                                          std::string(300, 'x') + "ü",
                                          "true"};
  switch (below(depth == 0 ? 4 : 6)) {
    case 0:
      return texts[below(static_cast<uint32_t>(texts.size()))];
    case 1:
      return static_cast<int>(below(2000)) - 1000;
    case 2:
      return below(2) == 0;
    case 3:
      return nullptr;
    case 4: {
      json list = json::array();
      for (uint32_t i = below(4); i > 0; --i) {
        list.push_back(randomValue(random, depth - 1));
      }
      return list;
    }
    default: {
      json object = json::object();
      for (uint32_t i = below(4); i > 0; --i) {
        object[texts[1 + below(5)]] = randomValue(random, depth - 1);
      }
      return object;
    }
  }
}

TEST(JsonValues, equal_those_of_the_whole_text_however_it_is_cut) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const json value = randomValue(&random, 4);
    Told want;
    expect(value, "", &want);
    const std::string text = value.dump(random() % 2 == 0 ? -1 : 2, ' ', random() % 2 == 0);
    const Told got = toldOf(text, [&] { return random() % 3 == 0; });
    ASSERT_EQ(want.strings, got.strings) << text;
    ASSERT_EQ(want.literals, got.literals) << text;
    ASSERT_EQ(want.ended, got.ended) << text;
  }
}

TEST(JsonValues, a_string_comes_as_it_grows) {
  const Told told = toldOf(R"({"answer": "one two", "n": 12.5e3})");
  EXPECT_EQ("one two", told.strings.at("/answer"));
  EXPECT_EQ(7u, told.pieces);
  EXPECT_EQ("12.5e3", told.literals.at("/n"));
  EXPECT_EQ((std::vector<std::string>{"/answer", ""}), told.ended);
}

TEST(JsonValues, halves_of_pairs_become_the_replacement_character) {
  EXPECT_EQ("\xF0\x9F\x98\x80", toldOf(R"("\uD83D\uDE00")").strings.at(""));
  EXPECT_EQ("\xEF\xBF\xBDx", toldOf(R"("\uD83Dx")").strings.at(""));
  EXPECT_EQ("\xEF\xBF\xBD", toldOf(R"("\uDE00")").strings.at(""));
  EXPECT_EQ("\xEF\xBF\xBD\xF0\x9F\x98\x80", toldOf(R"("\uD83D\uD83D\uDE00")").strings.at(""));
}

TEST(JsonValues, what_is_no_json_ends_the_telling) {
  EXPECT_TRUE(toldOf("Hello").ended.empty());
  EXPECT_TRUE(toldOf("").literals.empty());
  const Told told = toldOf(R"({"a": "b", "c": ?, "d": "e"})");
  EXPECT_EQ((std::map<std::string, std::string>{{"/a", "b"}}), told.strings);
  EXPECT_EQ(1u, toldOf(R"([1] [2])").literals.size());
  EXPECT_TRUE(toldOf(R"("a\x")").ended.empty());
}

TEST(JsonValues, deep_texts_and_long_paths_are_left_out) {
  const std::string deep = std::string(40, '[') + "1" + std::string(40, ']');
  EXPECT_TRUE(toldOf(deep).literals.empty());
  const std::string name(300, 'k');
  const Told told = toldOf("{\"" + name + "\": \"lost\", \"kept\": \"x\"}");
  EXPECT_EQ((std::map<std::string, std::string>{{"/kept", "x"}}), told.strings);
}

}  // namespace
}  // namespace oriel_internal::test::test_json_values
