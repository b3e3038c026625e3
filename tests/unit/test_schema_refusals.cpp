// Refused JSON schemas, and hostile ones.
#include <ctime>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/grammar_case.h"
#include "support/target.h"

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
    for (size_t bytes = 0; bytes < 120000; bytes += allCases() ? 112 : 304) {
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

namespace oriel_internal::test::test_schema_dialects {

// Keywords of earlier drafts and of OpenAPI, schema names, formats as wide as their standards.

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
