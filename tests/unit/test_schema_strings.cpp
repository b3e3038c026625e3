// Strings in JSON schemas: lengths, patterns against the standard library's engine, formats against arithmetic.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/schema_texts.h"

namespace oriel_internal::test::test_schema_strings {
namespace {

using nlohmann::json;

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

TEST(SchemaStrings, free_strings_take_every_character_and_escape) {
  expectTexts(R"({"type": "string"})",
              {R"("")", R"("a b")", R"("é日🙂")", R"("\"\\\/\b\f\n\r\t")",
               R"("\u00e9\u0000\uFFFF")", "\"\x7f\xE2\x80\xA8\""},
              {R"("\ud83d")", R"("\uDC00")", R"("\x41")", R"("\u12")", "\"a\nb\"", "\"\x01\"",
               R"("a"b")", "\"\xff\"", "\"\xed\xa0\x80\"", "\"a", "a\""});
}

TEST(SchemaStrings, lengths_count_code_points) {
  expectTexts(R"({"type": "string", "minLength": 2, "maxLength": 3})",
              {R"("ab")", R"("🙂🙂🙂")", R"("\n\"")", R"("éa日")"},
              {R"("")", R"("🙂")", R"("abcd")", R"("\n\n\n\n")"});
  expectTexts(R"({"type": "string", "minLength": 2.0})", {R"("ab")"}, {R"("a")"});
  expectTexts(R"({"type": "string", "maxLength": 0})", {R"("")"}, {R"("a")"});
}

TEST(SchemaStrings, long_lengths_are_exact_and_small) {
  const int bounds[][2] = {{0, 65},    {0, 100},   {7, 300}, {64, 64},
                           {100, 100}, {65, 1000}, {0, 1001}};
  for (const auto& bound : bounds) {
    const json schema = {{"type", "string"}, {"minLength", bound[0]}, {"maxLength", bound[1]}};
    const SchemaTexts texts(schema.dump());
    ASSERT_TRUE(texts.ok());
    EXPECT_LT(texts.grammar().count(), 100u);
    for (const int length : {0, 1, bound[0] - 1, bound[0], bound[0] + 1, bound[1] / 2, bound[1] - 1,
                             bound[1], bound[1] + 1, bound[1] + 70}) {
      if (length >= 0) {
        EXPECT_EQ(length >= bound[0] && length <= bound[1],
                  texts.accepts('"' + std::string(static_cast<size_t>(length), 'x') + '"'))
            << schema << " " << length;
      }
    }
  }
  EXPECT_TRUE(SchemaTexts(R"({"type": "string", "maxLength": 1e6})").ok());
  expectRefused(R"({"type": "string", "minLength": 3, "maxLength": 2})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
}

// Every text of some letters up to a length, by both engines.
TEST(SchemaStrings, patterns_find_what_an_ecma_engine_finds) {
  const std::vector<std::string> patterns = {"a",
                                             "^a",
                                             "a$",
                                             "^a$",
                                             "^a*$",
                                             "a+b",
                                             "^(ab|b)*$",
                                             "^a|b$",
                                             "(^a|b)c?$",
                                             "^[^a]$",
                                             "[ab]{2,3}",
                                             "^a{2}$",
                                             "^a{2,}b?$",
                                             "^(a|ab)(c|bc)$",
                                             "^$",
                                             "^(|a)$",
                                             "^(a*)*$",
                                             "^(?:a|b)+?$",
                                             "^a{0}$",
                                             "^.$",
                                             "^.{2}$",
                                             "x|^$",
                                             "^[a-c]$",
                                             "[^abc]",
                                             "^\\w+$",
                                             "^\\d",
                                             "\\W",
                                             "^[\\w-]+$",
                                             "^\\s$",
                                             "\\S\\S",
                                             "^[^\\s]+$",
                                             "a(b(c|a)*)?$",
                                             "^(a{1,2}){2}$",
                                             "$",
                                             "^",
                                             "a$|b",
                                             "^[-a]$",
                                             "^[a\\-b]+$",
                                             "^\\x61\\u0062$",
                                             "\\.",
                                             "^[.]$",
                                             "^-?\\d+$",
                                             "^a??b$",
                                             "()",
                                             "^(?:)$",
                                             "^a\\/b$",
                                             "^[\\]\\\\]$",
                                             "^(a)(b)?$",
                                             "}|^]",
                                             "(a|b)*a(a|b)",
                                             "^[\\d-]$",
                                             "^\\t$",
                                             "^[^\\W]$",
                                             "a^b",
                                             "b$a"};
  const std::string letters = "ab1 -.c";
  std::vector<std::string> texts = {""};
  for (size_t from = 0, length = 1; length <= 4; ++length) {
    const size_t end = texts.size();
    for (; from < end; ++from) {
      for (const char c : letters) {
        texts.push_back(texts[from] + c);
      }
    }
  }
  for (const std::string special : {"\t", "\\", "]", "}", "a/b", "\"", "_", "a\nb"}) {
    texts.push_back(special);
  }
  for (const std::string& pattern : patterns) {
    const SchemaTexts schema(json({{"type", "string"}, {"pattern", pattern}}).dump());
    const std::regex engine(pattern, std::regex::ECMAScript);
    for (const std::string& text : texts) {
      if (text == "a\nb" && pattern.find_first_of("^$") != std::string::npos) {
        continue;  // the library's engine treats every line as a text of its own
      }
      const bool found = std::regex_search(text, engine);
      ASSERT_EQ(found, schema.accepts(quoted(text)))
          << pattern << " in " << quoted(text) << schema.errors();
    }
  }
}

TEST(SchemaStrings, patterns_keep_to_what_engines_agree_about) {
  // Some engines match digits and letters of other scripts with \d and \w.
  expectTexts(R"({"type": "string", "pattern": "^\\d$"})", {"\"7\""}, {"\"٣\"", "\"a\""});
  expectTexts(R"({"type": "string", "pattern": "^\\D$"})", {"\"a\"", "\"é\"", "\"日\""},
              {"\"7\"", "\"٣\""});
  expectTexts(R"({"type": "string", "pattern": "^\\W$"})", {"\" \"", "\"-\""},
              {"\"a\"", "\"é\"", "\"日\""});
  expectTexts(R"({"type": "string", "pattern": "^[^\\d]$"})", {"\"a\"", "\"é\""},
              {"\"7\"", "\"٣\""});
  expectTexts(R"({"type": "string", "pattern": "^[^\\D]$"})", {"\"7\""}, {"\"٣\"", "\"a\""});
  expectTexts(R"({"type": "string", "pattern": "^\\s$"})", {"\" \"", "\"\\t\"", "\"\xE3\x80\x80\""},
              {"\"\xEF\xBB\xBF\"", "\"\xC2\x85\"", "\"a\""});
  expectTexts(R"({"type": "string", "pattern": "^\\S$"})", {"\"a\"", "\"🙂\""},
              {"\" \"", "\"\xEF\xBB\xBF\"", "\"\xC2\x85\""});
  expectTexts(R"({"type": "string", "pattern": "^.$"})", {"\"a\"", "\"\\t\"", "\"🙂\""},
              {"\"\\n\"", "\"\\r\"", "\"\xE2\x80\xA8\"", "\"ab\""});
  expectTexts(R"({"type": "string", "pattern": "^a$"})", {"\"a\""}, {"\"a\\n\""});
}

TEST(SchemaStrings, what_has_to_be_escaped_is) {
  expectTexts(R"({"type": "string", "pattern": "^[\"\\\\\\n]{3}$"})",
              {R"("\"\\\n")", R"("\n\n\n")"}, {R"("\"\\n")", "\"\\\"\\\\\n\"", R"("\u0022\\\n")"});
  expectTexts(R"({"type": "string", "pattern": "^\\u0001\\x1f$"})", {R"("\u0001\u001f")"},
              {"\"\x01\x1f\""});
}

TEST(SchemaStrings, patterns_hold_together_with_lengths_and_each_other) {
  expectTexts(R"({"type": "string", "pattern": "^a+b*$", "minLength": 3, "maxLength": 4})",
              {"\"aab\"", "\"aaaa\"", "\"abbb\""}, {"\"ab\"", "\"aaabb\"", "\"bbb\""});
  expectTexts(R"({"allOf": [{"pattern": "a"}, {"pattern": "^.{3}$"}], "type": "string"})",
              {"\"xay\"", "\"aaa\""}, {"\"xyz\"", "\"ab\""});
  expectRefused(R"({"type": "string", "pattern": "^a$", "minLength": 2})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
  expectRefused(R"({"type": "string", "pattern": "^a+$", "maxLength": 0})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
  // Too many to count: fewer, but some.
  const SchemaTexts texts(R"({"type": "string", "pattern": "^[^@]+@[^@]+$", "maxLength": 5000})");
  EXPECT_TRUE(texts.accepts("\"anna@example.org\""));
  EXPECT_LT(texts.grammar().ruleCount(), 5000u);
}

TEST(SchemaStrings, what_patterns_cannot_have_is_refused_by_name) {
  const struct {
    const char* pattern;
    const char* words;
  } kRefused[] = {{"(a)\\1", "backreferences"},
                  {"(?=a)", "look-around"},
                  {"(?!a)", "look-around"},
                  {"(?<=a)b", "look-around"},
                  {"(?<!a)b", "look-around"},
                  {"\\bword", "\\b"},
                  {"\\p{L}", "\\p"},
                  {"(?i)a", "group of that kind"},
                  {"\\k<a>", "backreferences"},
                  {"\\uD83D\\uDE00", "surrogate"},
                  {"\\z", "escape"},
                  {"[]a]", "class"},
                  {"a{,3}", "{0,n}"}};
  for (const auto& refused : kRefused) {
    const std::string schema = json({{"type", "string"}, {"pattern", refused.pattern}}).dump();
    expectRefused(schema, ORIEL_ERROR_UNSUPPORTED, refused.words);
    expectRefused(schema, ORIEL_ERROR_UNSUPPORTED, "\"pattern\" at #");
  }
  for (const char* wrong : {"(a", "a)", "[a", "*a", "a**", "[b-a]", "a{3,2}", "\\", "\\xg1", "+"}) {
    expectRefused(json({{"type", "string"}, {"pattern", wrong}}).dump(), ORIEL_ERROR_ARGUMENT,
                  "\"pattern\" at #");
  }
}

bool isDate(int year, int month, int day) {
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const int days[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

TEST(SchemaStrings, dates_are_those_of_the_calendar) {
  const SchemaTexts texts(R"({"type": "string", "format": "date"})");
  ASSERT_TRUE(texts.ok()) << texts.errors();
  for (const int year :
       {0, 1, 4, 99, 100, 400, 1582, 1900, 1999, 2000, 2023, 2024, 2100, 2400, 9999}) {
    for (int month = 0; month <= 13; ++month) {
      for (int day = 0; day <= 32; ++day) {
        char text[24];
        std::snprintf(text, sizeof(text), "\"%04d-%02d-%02d\"", year, month, day);
        ASSERT_EQ(isDate(year, month, day), texts.accepts(text)) << text;
      }
    }
  }
  EXPECT_FALSE(texts.accepts("\"2026-1-2\""));
  EXPECT_FALSE(texts.accepts("\"2026-01-01Z\""));
}

TEST(SchemaStrings, other_formats) {
  expectTexts(R"({"type": "string", "format": "time"})", {"\"23:59:59Z\"", "\"00:00:00.5+01:30\""},
              {"\"24:00:00Z\"", "\"12:60:00Z\"", "\"12:00:60Z\"", "\"12:00:00\"", "\"1:00:00Z\""});
  expectTexts(R"({"type": "string", "format": "date-time"})",
              {"\"2026-11-23T12:30:00Z\"", "\"2024-02-29T00:00:00.123-05:00\""},
              {"\"2023-02-29T00:00:00Z\"", "\"2026-11-23 12:30:00Z\"", "\"2026-11-23T12:30:00\""});
  expectTexts(R"({"type": "string", "format": "duration"})",
              {"\"P1D\"", "\"PT2H30M\"", "\"P1Y2M3DT4H5M6S\"", "\"P3W\""},
              {"\"P\"", "\"PT\"", "\"P1Y3D\"", "\"1D\"", "\"P1W2D\"", "\"PT1H2S\""});
  expectTexts(R"({"type": "string", "format": "email"})",
              {"\"a@b.io\"", "\"anna.k+x@mail.example.org\""},
              {"\"a@b\"", "\"@b.io\"", "\"a..b@c.de\"", "\"a@-b.io\""});
  expectTexts(R"({"type": "string", "format": "uuid"})",
              {"\"123e4567-e89b-12d3-a456-426614174000\""},
              {"\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400g\""});
  expectTexts(R"({"type": "string", "format": "ipv4"})", {"\"0.0.0.0\"", "\"255.1.20.199\""},
              {"\"256.0.0.0\"", "\"01.0.0.0\"", "\"1.2.3\"", "\"1.2.3.4.5\""});
  expectTexts(
      R"({"type": "string", "format": "ipv6"})",
      {"\"::\"", "\"::1\"", "\"1::\"", "\"2001:db8::8a2e:370:7334\"", "\"1:2:3:4:5:6:7:8\""},
      {"\"1:2:3\"", "\"1::2::3\"", "\"12345::\"", "\":::\"", "\"1:2:3:4:5:6:7:8:9\""});
  expectTexts(R"({"type": "string", "format": "hostname"})", {"\"example.org\"", "\"a-b.c1.de\""},
              {"\"-a.de\"", "\"a..de\"", "\"a_b.de\"", "\".de\""});
  expectTexts(R"({"type": "string", "format": "uri"})",
              {"\"https://example.org/a/b?c=d#e\"", "\"http://a.io:8080\""},
              {"\"example.org\"", "\"https://\"", "\"https://a.io/ b\""});
}

// A limit picks a form of the format whose longest text fits, or counts.
TEST(SchemaStrings, formats_keep_to_lengths) {
  for (const char* format : {"email", "hostname", "uri", "uri-reference", "date", "uuid", "ipv6"}) {
    for (const int most : {36, 45, 64, 100, 255, 2048}) {
      const json schema = {
          {"type", "string"}, {"format", format}, {"maxLength", most}, {"minLength", 4}};
      const SchemaTexts texts(schema.dump());
      ASSERT_TRUE(texts.ok()) << schema << texts.errors();
      EXPECT_LT(texts.grammar().ruleCount(), 3000u) << schema;
      for (const std::string& text : texts.make(50)) {
        EXPECT_LE(text.size(), static_cast<size_t>(most) + 2) << text;
        EXPECT_GE(text.size(), 6u) << text;
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_strings
