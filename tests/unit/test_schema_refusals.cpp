// Refused JSON schemas, and hostile ones.
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "support/schema_texts.h"

namespace oriel_internal::test::test_schema_refusals {
namespace {

using nlohmann::json;

TEST(SchemaRefusals, keywords_that_cannot_be_promised_are_named_with_their_place) {
  for (const auto& [keyword, value] : std::map<std::string, json>{{"unevaluatedItems", false},
                                                                  {"unevaluatedProperties", false},
                                                                  {"$dynamicRef", "#a"},
                                                                  {"$recursiveRef", "#"}}) {
    const json inner = {{"type", "string"}, {keyword, value}};
    const json schema = {{"type", "object"}, {"properties", {{"a/b", {{"items", inner}}}}}};
    expectRefused(schema.dump(), ORIEL_ERROR_UNSUPPORTED,
                  "\"" + keyword + "\" at #/properties/a~1b/items is not supported");
  }
  const struct {
    const char* schema;
    const char* words;
  } kPartly[] = {
      {R"({"type": "array", "contains": {"const": 1}, "maxContains": 2})", "\"contains\" at #"},
      {R"({"type": "array", "uniqueItems": true})", "\"uniqueItems\" at #"},
      {R"({"type": "array", "uniqueItems": true, "items": {"type": "integer"}})",
       "\"uniqueItems\" at #"},
      {R"({"type": "number", "not": {"multipleOf": 3}})", "\"not\" at #"},
      {R"({"type": "string", "not": {"format": "email"}})", "\"not\" at #"},
  };
  for (const auto& partly : kPartly) {
    expectRefused(partly.schema, ORIEL_ERROR_UNSUPPORTED, partly.words);
  }
}

// Draft 2020-12, core 4.3.1: unknown keywords are annotations.
TEST(SchemaRefusals, unknown_keywords_and_formats_are_reported_once) {
  const std::string schema = R"({"type": "object", "x-order": 1, "properties": {
      "a": {"type": "string", "format": "iri", "x-order": 2, "contentEncoding": "base64"},
      "b": {"type": "string", "format": "iri", "media\u0000": {}}}})";
  const SchemaTexts texts(schema);
  ASSERT_TRUE(texts.ok()) << texts.errors();
  EXPECT_EQ(json::parse(R"(["x-order", "contentEncoding", "format: iri", "media\u0000"])"),
            json::parse(texts.ignored()));
  EXPECT_TRUE(texts.accepts(R"({"a":"no iri"})"));
  SchemaRules strict;
  strict.strict = true;
  expectRefused(schema, ORIEL_ERROR_UNSUPPORTED, "\"x-order\" at # is not supported", strict);
  expectRefused(R"({"items": {"format": "iri"}})", ORIEL_ERROR_UNSUPPORTED,
                "\"format\" at #/items asks for \"iri\"", strict);
  EXPECT_EQ("[]", SchemaTexts(R"({"type": "null", "title": "t"})").ignored());
}

TEST(SchemaRefusals, a_long_list_of_unknown_keywords_is_cut_between_names) {
  json schema = {{"type", "null"}};
  for (int i = 0; i < 100; ++i) {
    schema["x-" + std::string(static_cast<size_t>(i), '"')] = 1;
  }
  const json ignored = json::parse(SchemaTexts(schema.dump()).ignored());
  EXPECT_EQ("...", ignored.back());
  EXPECT_EQ("x-", ignored.front());
}

TEST(SchemaRefusals, misspelt_keywords_are_errors) {
  for (const auto& [wrong, right] :
       std::map<std::string, std::string>{{"proprties", "properties"},
                                          {"Type", "type"},
                                          {"requierd", "required"},
                                          {"additonalProperties", "additionalProperties"},
                                          {"minlength", "minLength"},
                                          {"oneof", "oneOf"},
                                          {"patern", "pattern"}}) {
    expectRefused(json({{wrong, 1}}).dump(), ORIEL_ERROR_ARGUMENT,
                  "\"" + wrong + "\" at # is unknown: did you mean \"" + right + "\"?");
  }
  // Names that only look alike.
  for (const char* own : {"x-type", "_format", "$title", "kind", "note", "tile", "ref", "order"}) {
    EXPECT_TRUE(SchemaTexts(json({{own, 1}}).dump()).ok()) << own;
  }
}

TEST(SchemaRefusals, what_says_nothing_about_values_is_ignored) {
  expectTexts(
      R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.org/s",
                  "title": "t", "description": "d", "default": 1, "examples": [1], "$comment": "c", "deprecated": true,
                  "readOnly": true, "writeOnly": false, "type": "null", "uniqueItems": false,
                  "$defs": {"unused": {"not": {}}}})",
      {"null"}, {"1"});
}

TEST(SchemaRefusals, keywords_of_the_wrong_shape) {
  for (const char* schema : {R"({"type": "text"})",
                             R"({"type": []})",
                             R"({"type": 1})",
                             R"({"enum": 1})",
                             R"({"properties": []})",
                             R"({"properties": {"a": 1}})",
                             R"({"required": "a"})",
                             R"({"required": [1]})",
                             R"({"items": [1]})",
                             R"({"not": 1})",
                             R"({"if": []})",
                             R"({"contains": "a"})",
                             R"({"patternProperties": {"a": 1}})",
                             R"({"dependentRequired": {"a": 1}})",
                             R"({"uniqueItems": "yes"})",
                             R"({"nullable": 1})",
                             R"({"prefixItems": []})",
                             R"({"anyOf": []})",
                             R"({"oneOf": {}})",
                             R"({"allOf": [1]})",
                             R"({"minLength": -1})",
                             R"({"minItems": 1.5})",
                             R"({"maxProperties": "1"})",
                             R"({"minimum": "1"})",
                             R"({"pattern": 1})",
                             R"({"format": 1})",
                             R"({"$ref": 1})",
                             R"({"additionalProperties": 1})"}) {
    expectRefused(schema, ORIEL_ERROR_ARGUMENT, "has to be");
    expectRefused(schema, ORIEL_ERROR_ARGUMENT, ": correct it");
  }
  for (const char* schema : {"1", "[]", "null", "\"a\""}) {
    expectRefused(schema, ORIEL_ERROR_ARGUMENT, "this is not a schema");
  }
}

// Each ends with a status in short processor time.
class Hostile : public testing::Test {
 protected:
  void SetUp() override { begin_ = std::clock(); }
  void TearDown() override { EXPECT_LT((std::clock() - begin_) / CLOCKS_PER_SEC, 10); }

 private:
  std::clock_t begin_ = 0;  // processor time, independent of other load
};

TEST_F(Hostile, counts) {
  for (const char* count : {"4294836225", "4294836226", "4294967295", "9223372036854775807"}) {
    for (const char* what : {R"({"minItems": %})", R"({"type": "array", "maxItems": %})",
                             R"({"minLength": %})", R"({"type": "object", "minProperties": %})"}) {
      std::string schema = what;
      schema.replace(schema.find('%'), 1, count);
      const SchemaTexts texts(schema);
      EXPECT_TRUE(texts.ok() || texts.code() == ORIEL_ERROR_UNSUPPORTED ||
                  texts.code() == ORIEL_ERROR_ARGUMENT)
          << schema << texts.errors();
    }
  }
}

TEST_F(Hostile, little_memory) {
  for (
      const std::string schema :
      {R"({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 4}, {"type": "array"}]})",
       R"({"type": "object", "properties": {"a": {"enum": [1, "b", null], "required": true}},
            "patternProperties": {"^x": {"items": [{"const": 1}], "additionalItems": false}},
            "propertyNames": {"not": {"const": "q"}}, "dependencies": {"a": ["b"], "b": {"required": ["c"]}},
            "if": {"required": ["b"]}, "then": {"minProperties": 2}, "else": {"not": {"required": ["c"]}}})",
       R"({"not": {"enum": [{"a": 1}, [], 2, 3.5, "x", true]}, "oneOf": [{"type": "integer"}, {"minimum": 2}]})",
       R"({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true, "not": {"contains": {"const": "b"}}})"}) {
    for (size_t bytes = 0; bytes < 120000; bytes += 112) {
      const SchemaTexts texts(schema, bytes);
      EXPECT_TRUE(texts.ok() || texts.code() == ORIEL_ERROR_OUT_OF_MEMORY ||
                  texts.code() == ORIEL_ERROR_UNSUPPORTED)
          << schema << texts.errors();
    }
  }
}

TEST_F(Hostile, patterns) {
  for (const char* pattern :
       {"(a{1000}){1000}", "((a{100}){100}){100}", "(a|b)*a(a|b){30}", "(.*)(.*)(.*)(.*)[a-f]{40}",
        "((((((((((a?)*)*)*)*)*)*)*)*)*)*b", "a{10000}", "[\\s\\S]{5000}x[\\s\\S]{5000}"}) {
    const SchemaTexts texts(json({{"type", "string"}, {"pattern", pattern}}).dump());
    EXPECT_TRUE(texts.ok() || texts.code() == ORIEL_ERROR_UNSUPPORTED) << texts.errors();
  }
  const std::string deep = std::string(5000, '(') + std::string(5000, ')');
  expectRefused(json({{"type", "string"}, {"pattern", deep}}).dump(), ORIEL_ERROR_UNSUPPORTED,
                "nested");
  const std::string wide = "[" + std::string(300000, 'a') + "]" + std::string(20000, '|');
  const SchemaTexts texts(json({{"type", "string"}, {"pattern", wide}}).dump());
  EXPECT_TRUE(texts.ok() || texts.code() == ORIEL_ERROR_UNSUPPORTED);
}

TEST_F(Hostile, constants) {
  json many = json::array();
  for (int i = 0; i < 200000; ++i) {
    many.push_back("value " + std::to_string(i));
  }
  expectRefused(json({{"enum", many}}).dump(), ORIEL_ERROR_UNSUPPORTED, "\"enum\"");
  expectRefused(json({{"enum", json::array({std::string(2000000, 'a'), "b"})}}).dump(),
                ORIEL_ERROR_UNSUPPORTED, "\"enum\"");
  json nested = json::array();
  for (int i = 0; i < 2000; ++i) {
    nested.push_back(std::string(static_cast<size_t>(i) / 10, 'a'));
  }
  EXPECT_TRUE(SchemaTexts(json({{"enum", nested}}).dump()).ok());
  json tried = json::array();
  for (int i = 0; i < 15000; ++i) {
    tried.push_back("a" + std::to_string(i));
  }
  expectRefused(json({{"enum", tried}, {"pattern", "^[^b]+$"}}).dump(), ORIEL_ERROR_UNSUPPORTED,
                "\"pattern\"");
}

TEST_F(Hostile, properties) {
  for (const int count : {500, 5000, 50000}) {
    json properties = json::object();
    json required = json::array();
    for (int i = 0; i < count; ++i) {
      properties["property " + std::to_string(i)] = {{"type", "string"}};
      required.push_back("property " + std::to_string(i));
    }
    const json schema = {{"type", "object"}, {"properties", properties}, {"required", required}};
    const SchemaTexts texts(schema.dump());
    EXPECT_EQ(count == 500, texts.ok()) << texts.errors();
    json open = schema;
    open["additionalProperties"] = true;
    open.erase("required");
    EXPECT_EQ(count == 500, SchemaTexts(open.dump()).ok());
  }
}

TEST_F(Hostile, references) {
  json defs = json::object();
  for (int i = 0; i < 5000; ++i) {
    defs["d" + std::to_string(i)] = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
  }
  defs["d5000"] = {{"type", "null"}};
  expectRefused(json({{"$ref", "#/$defs/d0"}, {"$defs", defs}}).dump(), ORIEL_ERROR_UNSUPPORTED,
                "\"$ref\"");
  json chain = json::object();
  for (int i = 0; i < 3000; ++i) {
    chain["d" + std::to_string(i)] = {{"type", "array"},
                                      {"items", {{"$ref", "#/$defs/d" + std::to_string(i + 1)}}}};
  }
  chain["d3000"] = {{"type", "null"}};
  const SchemaTexts texts(json({{"$ref", "#/$defs/d0"}, {"$defs", chain}}).dump());
  EXPECT_TRUE(texts.ok() || texts.code() == ORIEL_ERROR_UNSUPPORTED) << texts.errors();
}

TEST_F(Hostile, unions) {
  json all = json::array();
  for (int i = 0; i < 20; ++i) {
    json any = json::array();
    for (int j = 0; j < 5; ++j) {
      any.push_back({{"minimum", i * j}, {"title", std::to_string(j)}});
    }
    all.push_back({{"anyOf", any}});
  }
  expectRefused(json({{"allOf", all}}).dump(), ORIEL_ERROR_UNSUPPORTED, "make it smaller");
  json one = json::array();
  for (int i = 0; i < 1000; ++i) {
    one.push_back(
        {{"type", "object"}, {"properties", {{"k", {{"const", i}}}}}, {"required", {"k"}}});
  }
  const SchemaTexts many(json({{"oneOf", one}}).dump());
  EXPECT_TRUE(many.ok() || many.code() == ORIEL_ERROR_UNSUPPORTED) << many.errors();
  // Each union holds the next twice.
  json defs = json::object();
  for (int i = 0; i < 40; ++i) {
    const json next = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
    defs["d" + std::to_string(i)] = {{"anyOf", {next, {{"type", "null"}}, next}}};
  }
  defs["d40"] = {{"type", "null"}};
  const SchemaTexts texts(json({{"$ref", "#/$defs/d0"}, {"$defs", defs}}).dump());
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, texts.code()) << texts.errors();
}

TEST_F(Hostile, memory_ends_in_a_status) {
  const std::string schema = json({{"type", "object"},
                                   {"properties",
                                    {{"a", {{"type", "string"}, {"pattern", "^[a-z]{200}$"}}},
                                     {"b", {{"enum", {"x", "y", "z"}}}},
                                     {"c", {{"type", "number"}, {"multipleOf", 0.01}}}}}})
                                 .dump();
  bool done = false;
  for (size_t bytes = 1024; bytes < (8u << 20) && !done; bytes += bytes / 3) {
    const SchemaTexts texts(schema, bytes);
    EXPECT_TRUE(texts.ok() || texts.code() == ORIEL_ERROR_OUT_OF_MEMORY) << bytes << texts.errors();
    done = texts.ok();
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_refusals
