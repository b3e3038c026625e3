// The JSON reader's invariants for any text.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/workspace.h"
#include "json/json.h"
#include "json/json_builder.h"
#include "support/captured_log.h"

namespace oriel_internal::test::test_json_reader {
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
  const size_t n = 400000;
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
    for (uint64_t patience = 0; patience < whole.asked; ++patience) {
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
