// Values of a JSON text while it is written, against a reader of the whole text.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "reply/json_values.h"

namespace oriel_internal::test::test_json_values {
namespace {

using nlohmann::json;

/// What was told: values by path, and paths in the order in which they ended.
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
