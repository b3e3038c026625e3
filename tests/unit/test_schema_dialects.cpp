// Keywords of earlier drafts and of OpenAPI, schema names, formats as wide as their standards.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/schema_texts.h"

namespace oriel_internal::test::test_schema_dialects {
namespace {

using nlohmann::json;

SchemaRules open() {
  SchemaRules rules;
  rules.open_objects = true;
  return rules;
}

TEST(SchemaDialects, tuples_of_draft_07) {
  expectTexts(
      R"({"type": "array", "items": [{"const": 1}, {"const": "a"}], "additionalItems": false})",
      {"[]", "[1]", R"([1,"a"])"}, {R"([1,"a",2])", R"(["a"])", "[2]"});
  expectTexts(
      R"({"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}, "minItems": 2})",
      {"[1,2]", "[1,2,2]"}, {"[1]", "[1,1]"});
  // With items for all, additionalItems has no effect.
  expectTexts(R"({"type": "array", "items": {"const": 1}, "additionalItems": false})", {"[1,1]"},
              {"[2]"});
}

TEST(SchemaDialects, exclusive_bounds_of_draft_04) {
  expectTexts(
      R"({"type": "integer", "minimum": 3, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false})",
      {"4", "5"}, {"3", "6"});
  expectTexts(R"({"type": "integer", "minimum": 3, "maximum": 5, "exclusiveMaximum": true})",
              {"3", "4"}, {"2", "5"});
}

TEST(SchemaDialects, nullable_of_openapi) {
  const char* const schema = R"({"type": "string", "nullable": true, "maxLength": 1})";
  expectTexts(schema, {"null", "\"a\""}, {"\"ab\"", "1"});
  json named = json::parse(schema);
  named["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  expectTexts(named.dump(), {"\"a\""}, {"null"});
  EXPECT_EQ("[\"nullable\"]", std::string(SchemaTexts(named.dump()).ignored()));
}

TEST(SchemaDialects, dependencies_in_both_spellings) {
  for (const char* keyword : {"dependencies", "dependentRequired"}) {
    const json schema = {{"type", "object"},
                         {"properties", {{"a", {{"const", 1}}}, {"b", {{"const", 2}}}}},
                         {keyword, {{"a", {"b"}}}}};
    expectTexts(schema.dump(), {"{}", R"({"b":2})", R"({"a":1,"b":2})"}, {R"({"a":1})"});
  }
  for (const char* keyword : {"dependencies", "dependentSchemas"}) {
    const json schema = {
        {"type", "object"},
        {"properties", {{"a", {{"const", 1}}}, {"b", {{"enum", {2, 3}}}}}},
        {keyword, {{"a", {{"properties", {{"b", {{"const", 3}}}}}, {"required", {"b"}}}}}}};
    expectTexts(schema.dump(), {"{}", R"({"b":2})", R"({"a":1,"b":3})"},
                {R"({"a":1})", R"({"a":1,"b":2})"});
  }
}

TEST(SchemaDialects, references_by_name) {
  for (const char* reference : {"item.json", "https://example.org/a/item.json", "#/$defs/i",
                                "https://example.org/a/root.json#/$defs/i", "#item"}) {
    const json schema = {
        {"$id", "https://example.org/a/root.json"},
        {"type", "array"},
        {"items", {{"$ref", reference}}},
        {"$defs", {{"i", {{"$id", "item.json"}, {"$anchor", "item"}, {"const", 4}}}}}};
    expectTexts(schema.dump(), {"[4]"}, {"[5]"});
  }
  expectRefused(R"({"$ref": "other.json"})", ORIEL_ERROR_UNSUPPORTED, "leads elsewhere");
}

TEST(SchemaDialects, open_objects_take_further_members_where_nothing_closes_them) {
  const char* const listed = R"({"type": "object", "properties": {"a": {"const": 1}}})";
  expectTexts(listed, {R"({"a":1})"}, {R"({"a":1,"b":2})"});
  expectTexts(listed, {R"({"a":1})", R"({"a":1,"b":2})"}, {R"({"a":2})"}, open());
  json closed = json::parse(listed);
  closed["additionalProperties"] = false;
  expectTexts(closed.dump(), {R"({"a":1})"}, {R"({"a":1,"b":2})"}, open());
}

// ---- conditions

TEST(SchemaConditions, if_then_else) {
  const char* const schema =
      R"({"type": "object", "properties": {"k": {"enum": ["x", "y"]}, "n": {"const": 1}}, "required": ["k"],
          "if": {"properties": {"k": {"const": "x"}}}, "then": {"required": ["n"]}, "else": {"properties": {"n": false}}})";
  for (const SchemaRules& rules : {SchemaRules(), open()}) {
    expectTexts(schema, {R"({"k":"x","n":1})", R"({"k":"y"})"},
                {R"({"k":"x"})", R"({"k":"y","n":1})", R"({"n":1})"}, rules);
  }
}

TEST(SchemaConditions, the_usual_shapes_of_not) {
  expectTexts(R"({"type": "string", "not": {"enum": ["a", "b"]}})", {"\"c\"", "\"ab\"", "\"\""},
              {"\"a\"", "\"b\"", "1"});
  expectTexts(R"({"not": {"type": ["object", "array"]}})", {"1", "\"a\"", "null"}, {"{}", "[]"});
  expectTexts(
      R"({"type": "object", "properties": {"a": true, "b": true}, "not": {"required": ["a"]}})",
      {"{}", R"({"b":1})"}, {R"({"a":1})"}, open());
  expectTexts(R"({"type": "string", "not": {"pattern": "^a"}})", {"\"ba\"", "\"\""}, {"\"ab\""});
  // \d may be a digit of another script; as a constant, too.
  expectTexts(R"({"enum": ["b", "٣"], "not": {"pattern": "\\d"}})", {"\"b\""}, {"\"٣\""});
}

TEST(SchemaConditions, oneOf_of_required) {
  const char* const schema =
      R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
          "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})";
  for (const SchemaRules& rules : {SchemaRules(), open()}) {
    expectTexts(schema, {R"({"a":1})", R"({"b":2})"}, {"{}", R"({"a":1,"b":2})"}, rules);
  }
}

TEST(SchemaConditions, pattern_properties_and_names) {
  expectTexts(
      R"({"type": "object", "patternProperties": {"^a": {"const": 1}, "^b": {"const": 2}}, "additionalProperties": false})",
      {"{}", R"({"ax":1,"b":2})"}, {R"({"a":2})", R"({"c":1})"});
  expectTexts(
      R"({"type": "object", "patternProperties": {"^a": {"minimum": 1}, "b$": {"maximum": 2}},
          "additionalProperties": {"type": "null"}})",
      {R"({"ab":1})", R"({"a":9})", R"({"c":null})"}, {R"({"ab":9})", R"({"ab":0})", R"({"c":1})"});
  expectTexts(
      R"({"type": "object", "properties": {"ab": {"type": "integer"}}, "patternProperties": {"^a": {"minimum": 3}}})",
      {R"({"ab":3})"}, {R"({"ab":2})"});
  expectTexts(R"({"type": "object", "propertyNames": {"pattern": "^[a-c]{1,2}$"}})",
              {"{}", R"({"ab":1})"}, {R"({"abc":1})", R"({"d":1})"});
  expectTexts(R"({"type": "object", "propertyNames": {"enum": ["a", "b"]}})", {R"({"a":1,"b":2})"},
              {R"({"c":1})"});
}

TEST(SchemaConditions, unique_items_and_contains) {
  expectTexts(
      R"({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "minItems": 2})",
      {R"(["b","a"])", R"(["a","b","c"])"}, {R"(["a"])", R"(["a","a"])", "[]"});
  expectTexts(R"({"type": "array", "items": {"type": "boolean"}, "uniqueItems": true})",
              {"[]", "[true]", "[false,true]"}, {"[true,true]"});
  expectTexts(
      R"({"type": "array", "items": {"enum": [1, 2, 3]}, "contains": {"const": 2}, "maxItems": 3})",
      {"[2]", "[1,2]", "[3,1,2]"}, {"[]", "[1,3]", "[1,1,1,2]"});
  expectTexts(R"({"type": "array", "items": {"type": "string"}, "contains": {"pattern": "^x"}})",
              {R"(["a","xb"])"}, {R"(["a"])", "[]", R"(["x",1])"});
}

// ---- formats

TEST(SchemaFormats, are_as_wide_as_their_standards) {
  expectTexts(R"({"format": "hostname", "type": "string"})",
              {"\"localhost\"", "\"a\"", "\"a.b.c.example.org\"", "\"xn9.de\""},
              {"\"-a\"", "\"a-\"", "\"a..b\"", "\"a b\"", "\"1.2.3.4\""});
  expectTexts(
      R"({"format": "uri", "type": "string"})",
      {"\"http://localhost:8080/a\"", "\"mailto:a@b.io\"", "\"urn:isbn:12\"", "\"ftp://a.io/%20\"",
       "\"http://[::1]/\"", "\"http://127.0.0.1:65000\"", "\"file:///etc/x\"",
       "\"http://u:p@a.io\""},
      {"\"/a\"", "\"a.io\"", "\"http://\"", "\"http://a b\"", "\"http://a/%2\"", "\"1a:b\""});
  expectTexts(R"({"format": "uri-reference", "type": "string"})",
              {"\"/a/b?c=d#e\"", "\"a/b\"", "\"../a\"", "\"#x\"", "\"?q\"", "\"\"", "\"//a.io/b\"",
               "\"http://a.io\"", "\"./a:b\""},
              {"\"1a:b\"", "\"a b\"", "\"%\"", "\"a\\\\b\""});
}

// Many states times many lengths: longer texts are counted in steps.
TEST(SchemaFormats, counted_groups_reach_their_length) {
  const struct {
    const char* pattern;
    int most;
    const char* word;
    const char* between;
  } kCases[] = {{"^([a-z0-9-]{1,63}\\.){1,8}[a-z]{2,63}$", 253, "abcdefghijklmno", "."},
                {"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z]([a-z0-9-]{0,61}[a-z0-9])?)*$", 253,
                 "abcdefghijklmno", "."},
                {"^(\\w{1,40} ){0,9}\\w{1,40}$", 300, "abcdefghijklmnopqrst", " "},
                {"^(?:[a-z]{1,30}/)*[a-z]{1,30}$", 300, "abcde", "/"},
                {"^\\S{1,100}( \\S{1,100})+$", 300, "abcdefghijklmno", " "}};
  for (const auto& one : kCases) {
    const json schema = {{"type", "string"}, {"pattern", one.pattern}, {"maxLength", one.most}};
    const SchemaTexts texts(schema.dump());
    ASSERT_TRUE(texts.ok()) << one.pattern << texts.errors();
    EXPECT_LT(texts.grammar().ruleCount(), 5000u) << one.pattern;
    size_t longest = 0;
    for (std::string text = one.word; text.size() < 400;
         text += std::string(one.between) + one.word) {
      const bool accepted = texts.accepts('"' + text + '"');
      EXPECT_FALSE(accepted && text.size() > static_cast<size_t>(one.most)) << text;
      longest = accepted ? text.size() : longest;
    }
    EXPECT_GT(longest, 120u) << one.pattern;
    for (const std::string& text : texts.make(60)) {
      EXPECT_LE(text.size(), static_cast<size_t>(one.most) + 2) << text;
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_dialects
