// Objects, arrays, constants, unions and references of JSON schemas.
#include <cmath>
#include <cstdio>
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "grammar/schema_patterns.h"
#include "support/grammar_case.h"
#include "support/target.h"

namespace oriel_internal::test::test_schema_objects {
namespace {

TEST(SchemaObjects, properties_come_in_order_and_optional_ones_may_be_left_out) {
  expectTexts(R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"},
                  "c": {"type": "null"}}, "required": ["b"]})",
              {R"({"b":null})", R"({"a":null,"b":null})", R"({"b": null, "c": null})",
               R"({"a":null, "b":null,"c": null})"},
              {"{}", R"({"a":null})", R"({"b":null,"a":null})", R"({"b":null,"b":null})",
               R"({"b":null,})", R"({,"b":null})", R"({"b":null,"d":null})", R"({ "b":null})",
               R"({"b":null })", R"({"b":  null})", R"({"b" :null})", R"({"b":1})"});
  expectTexts(R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}})",
              {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"},
              {R"({"b":null,"a":null})"});
  expectTexts(R"({"type": "object", "properties": {}})", {"{}"}, {R"({"a":1})"});
}

TEST(SchemaObjects, names_are_written_as_they_have_to_be_escaped) {
  expectTexts(R"({"type": "object", "properties": {"a\"\\\n\u0001é": {"type": "null"}}})",
              {"{\"a\\\"\\\\\\n\\u0001é\":null}"}, {"{\"a\\\"\\\\\\n\\u0001\\u00e9\":null}"});
}

TEST(SchemaObjects, further_properties_only_where_they_are_asked_for) {
  expectTexts(R"({"type": "object"})", {"{}", R"({"a":1})", R"({"a": [], "b": {"c": "d"}})"},
              {"[]"});
  expectTexts(
      R"({"type": "object", "properties": {"a": {"type": "null"}},
                  "additionalProperties": {"type": "integer"}})",
      {"{}", R"({"a":null})", R"({"a":null,"b":1})", R"({"b":1,"c":2})", R"({"":1})",
       R"({"ab":1,"é":2})"},
      {R"({"a":1})", R"({"b":null})", R"({"b":1,"a":null})", R"({"\u0061":1})", R"({"b\n":1})"});
  expectTexts(R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"});
  expectTexts(R"({"type": "object", "properties": {"a": true, "ab": true, "abc": true, "b": true},
                  "additionalProperties": {"const": 7}})",
              {R"({"":7})", R"({"abcd":7})", R"({"ac":7})", R"({"a":1,"c":7})", R"({"abb":7})"},
              {R"({"c":7,"a":1})", R"({"c":7,"abc":7})", R"({"c":7,"b":7})", R"({"c":8})"});
}

TEST(SchemaObjects, what_is_required_but_not_described_is_written_last) {
  expectTexts(R"({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["z", "a"],
                  "additionalProperties": {"type": "integer"}})",
              {R"({"a":null,"z":1})", R"({"a":null,"z":1,"b":2})"},
              {R"({"a":null})", R"({"z":1,"a":null})", R"({"a":null,"z":null})"});
  expectTexts(R"({"type": "object", "required": ["z"]})", {R"({"z":[]})", R"({"z":1,"y":2})"},
              {"{}"});
  expectRefused(R"({"type": "object", "required": ["z"], "additionalProperties": false})",
                ORIEL_ERROR_ARGUMENT, "nothing is valid");
}

TEST(SchemaObjects, properties_that_nothing_is_valid_for) {
  expectTexts(R"({"type": "object", "properties": {"a": false, "b": {"type": "null"}}})",
              {"{}", R"({"b":null})"}, {R"({"a":null})"});
  expectRefused(R"({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]})",
                ORIEL_ERROR_ARGUMENT, "nothing is valid");
}

TEST(SchemaObjects, properties_are_counted) {
  const std::string three =
      R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 1}, "c": {"const": 1}}, )";
  expectTexts(three + R"("minProperties": 2})",
              {R"({"a":1,"b":1})", R"({"b":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
              {"{}", R"({"c":1})"});
  expectTexts(three + R"("maxProperties": 1})", {"{}", R"({"c":1})"}, {R"({"a":1,"c":1})"});
  expectTexts(three + R"("required": ["b"], "minProperties": 2, "maxProperties": 2})",
              {R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
              {R"({"b":1})", R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"});
  // Further names may repeat and are then the same property, so all of them count as one property.
  expectTexts(R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
              {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}", R"({"a":1,"b":2,"c":3})"});
  expectTexts(three + R"("minProperties": 2, "additionalProperties": true})",
              {R"({"a":1,"x":1})", R"({"a":1,"b":1})", R"({"a":1,"x":1,"y":1})"},
              {R"({"x":1,"y":1})", R"({"x":1,"x":1})"});
}

TEST(SchemaArrays, items_and_their_number) {
  expectTexts(R"({"type": "array", "items": {"const": 1}, "minItems": 1, "maxItems": 3})",
              {"[1]", "[1,1]", "[1, 1,1]"}, {"[]", "[1,1,1,1]", "[1,]", "[ 1]", "[2]"});
  expectTexts(R"({"type": "array", "items": false})", {"[]"}, {"[1]"});
  expectTexts(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
  expectTexts(R"({"type": "array"})", {"[]", "[1,\"a\",[],{}]"}, {"{}"});
  const SchemaTexts many(
      R"({"type": "array", "items": {"const": 1}, "minItems": 70, "maxItems": 200})");
  for (const int count : {69, 70, 71, 135, 199, 200, 201}) {
    std::string text = "[1";
    for (int i = 1; i < count; ++i) {
      text += ",1";
    }
    EXPECT_EQ(count >= 70 && count <= 200, many.accepts(text + "]")) << count;
  }
}

TEST(SchemaArrays, items_of_a_prefix_have_schemas_of_their_own) {
  expectTexts(
      R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}})",
      {"[]", "[1]", "[1,2]", "[1,2,3,3]"}, {"[2]", "[1,3]", "[1,2,2]"});
  expectTexts(
      R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 1})",
      {"[1]", "[1,2]"}, {"[]", "[1,2,3]"});
  expectTexts(R"({"type": "array", "prefixItems": [{"const": 1}, false]})", {"[]", "[1]"},
              {"[1,2]"});
  expectTexts(R"({"type": "array", "prefixItems": [{"const": 1}], "maxItems": 1})", {"[]", "[1]"},
              {"[1,1]"});
  expectTexts(
      R"({"type": "array", "prefixItems": [{"const": 1}], "minItems": 3, "items": {"const": 0}})",
      {"[1,0,0]", "[1,0,0,0]"}, {"[1,0]"});
  expectRefused(R"({"type": "array", "prefixItems": [false], "minItems": 1})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
}

TEST(SchemaConstants, are_written_as_they_are) {
  expectTexts(R"({"enum": [1, 1.50, "a\"\n", null, {"b": [true, {}], "a": 1}, "é"]})",
              {"1", "1.50", R"("a\"\n")", "null", R"({"b":[true,{}],"a":1})", "\"é\""},
              {"1.5", "true", R"({"a":1,"b":[true,{}]})", "\"\\u00e9\""});
  expectTexts(R"({"const": -0.0})", {"-0.0"}, {"0"});
}

TEST(SchemaConstants, have_to_fit_what_stands_beside_them) {
  expectTexts(
      R"({"enum": [1, "a", 2.5, null, 7, "abc"], "type": ["integer", "string"], "minimum": 2, "maxLength": 1})",
      {"7", "\"a\""}, {"1", "2.5", "null", "\"abc\""});
  expectTexts(R"({"enum": [1.0, 2.5], "type": "integer"})", {"1.0"}, {"2.5"});
  expectTexts(R"({"enum": ["2024-02-30", "2024-02-29"], "format": "date"})", {"\"2024-02-29\""},
              {"\"2024-02-30\""});
  expectTexts(R"({"enum": ["ab", "ba"], "pattern": "^a"})", {"\"ab\""}, {"\"ba\""});
  expectTexts(R"({"enum": [[1], [1, 2], {"a": 1}, {}], "minItems": 2, "required": ["a"]})",
              {"[1,2]", "{\"a\":1}"}, {"[1]", "{}"});
  expectTexts(R"({"const": 3, "enum": [3, 4]})", {"3"}, {"4"});
  expectTexts(R"({"enum": [1, 2, 3], "anyOf": [{"maximum": 1}, {"minimum": 3}]})", {"1", "3"},
              {"2"});
  expectTexts(R"({"enum": [1, 2, 3], "oneOf": [{"maximum": 2}, {"minimum": 2}]})", {"1", "3"},
              {"2"});
  expectRefused(R"({"const": 3, "enum": [4]})", ORIEL_ERROR_ARGUMENT, "nothing is valid");
  expectRefused(R"({"const": "a", "type": "integer"})", ORIEL_ERROR_ARGUMENT, "nothing is valid");
}

TEST(SchemaTypes, keywords_bound_one_type_and_let_the_others_pass) {
  expectTexts(R"({"minimum": 5})", {"5", "\"a\"", "null", "[]", "{}", "true", "[1]"}, {"4", "-1"});
  expectTexts(R"({"maxLength": 1})", {"\"a\"", "12"}, {"\"ab\""});
  expectTexts(R"({"type": ["string", "null"], "maxLength": 1})", {"\"a\"", "null"},
              {"\"ab\"", "1"});
  expectTexts("true", {"1", "\"a\"", "[{}]"}, {"", "1 "});
  expectTexts("{}", {"1", "\"a\"", "[{\"a\": [null]}]"}, {"[1"});
  expectTexts(R"({"type": ["integer", "number"], "maximum": 2})", {"1", "1.5"}, {"2.5"});
  expectTexts(R"({"allOf": [{"type": "number"}, {"type": "integer"}]})", {"1"}, {"1.5"});
}

TEST(SchemaUnions, any_of_is_each_of_its_branches_with_what_stands_beside) {
  expectTexts(R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})",
              {"1", "\"a\""}, {"\"ab\"", "null"});
  expectTexts(R"({"type": "string", "anyOf": [{"maxLength": 2}, {"minLength": 4}]})",
              {"\"ab\"", "\"abcd\""}, {"\"abc\"", "1"});
  expectTexts(R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
                  "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
              {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"}, {"{}"});
  expectTexts(
      R"({"anyOf": [{"minimum": 1}, {"maximum": -1}], "allOf": [{"anyOf": [{"multipleOf": 2}, {"multipleOf": 3}]}],
                  "type": "integer"})",
      {"2", "3", "-4"}, {"0", "1", "5"});
}

TEST(SchemaUnions, all_of_is_joined) {
  expectTexts(R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                  {"properties": {"b": {"type": "null"}, "a": {"minimum": 3}}}], "type": "object"})",
              {R"({"a":3})", R"({"a":4,"b":null})"},
              {R"({"a":2})", R"({"b":null})", R"({"a":3,"c":1})"});
  expectTexts(
      R"({"allOf": [{"items": {"minimum": 3}}, {"prefixItems": [{"maximum": 4}]}], "type": "array",
                  "items": {"type": "integer"}})",
      {"[]", "[3]", "[4,9]"}, {"[5]", "[2]", "[4,2]"});
  expectTexts(
      R"({"properties": {"a": {"const": 1}}, "type": "object", "allOf": [{"additionalProperties": {"const": 2}}]})",
      {"{}", R"({"x":2})"}, {R"({"a":1})", R"({"a":2})", R"({"x":1})"});
}

TEST(SchemaUnions, one_of_needs_branches_that_are_apart) {
  expectTexts(R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", {"1", "\"a\""}, {"null"});
  expectTexts(
      R"({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
                  {"type": "object", "properties": {"k": {"enum": ["b", "c"]}, "n": {"const": 1}}, "required": ["k"]}]})",
      {R"({"k":"a"})", R"({"k":"c","n":1})"}, {R"({"k":"a","n":1})", "{}"});
  expectTexts(
      R"({"oneOf": [{"type": "number", "maximum": 0}, {"type": "number", "exclusiveMinimum": 0}]})",
      {"0", "1", "-1"}, {});
  expectTexts(
      R"({"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}]})",
      {"\"a\"", "\"abc\""}, {});
  expectTexts(
      R"({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}]})",
      {"\"a\"", "\"b\""}, {"\"c\""});
  expectTexts(R"({"oneOf": [{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 2}]})",
              {"[]", "[1,2]"}, {});
  expectTexts(R"({"oneOf": [{"required": ["a"], "properties": {"a": {"const": 1}}},
                  {"required": ["b"], "properties": {"b": {"const": 1}}}], "type": "object"})",
              {R"({"a":1})", R"({"b":1})"}, {R"({"a":1,"b":1})", "{}"});
  expectTexts(R"({"oneOf": [{"type": "number"}, {}]})", {"\"a\"", "null", "[]"}, {"1"});
  expectTexts(R"({"oneOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]})", {"1", "3"}, {"2"});
  expectTexts(R"({"oneOf": [{"type": "boolean"}, {"const": true}]})", {"false"}, {"true"});
  expectTexts(
      R"({"allOf": [{"$ref": "#/$defs/A"}, {"anyOf": [{"$ref": "#/$defs/A"}, {"const": 1}]}],
                  "$defs": {"A": {"anyOf": [{"const": 1}, {"const": 2}]}}})",
      {"1", "2"}, {"3"});
  expectTexts(R"({"oneOf": [{"type": "null"}, false, {"type": "integer"}]})", {"null", "1"}, {});
  expectTexts(
      R"({"$defs": {"A": {"type": "object", "properties": {"t": {"const": 1}}, "required": ["t"]},
                            "B": {"type": "object", "properties": {"t": {"const": 2}}, "required": ["t"]}},
                  "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]})",
      {R"({"t":1})", R"({"t":2})"}, {R"({"t":3})"});
}

// Values valid by two branches are left out.
TEST(SchemaUnions, values_of_oneOf_are_valid_by_one_branch_alone) {
  expectTexts(R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", {"1", "2.5", "\"a\"", "-7"},
              {"2", "3", "1.5"});
  expectTexts(R"({"oneOf": [{"type": "number"}, {"type": "integer"}]})", {"1.5", "-0.25"},
              {"1", "2.0"});
  expectTexts(R"({"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]})",
              {"\"abcd\""}, {"\"abc\"", "\"\"", "1"});
  expectTexts(R"({"oneOf": [{"type": "object"}, {"type": "object", "required": ["a"]}]})",
              {"{}", R"({"b":1})"}, {R"({"a":1})", R"({"b":1,"a":1})"});
  expectTexts(
      R"({"oneOf": [{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}]})",
      {"\"a\"", "\"xb\""}, {"\"ab\"", "\"x\""});
  expectTexts(R"({"oneOf": [{"type": "array"}, {"type": "array", "items": {"type": "null"}}]})",
              {"[1]", "[null,1]"}, {"[]", "[null]"});
  expectTexts(R"({"oneOf": [{"const": []}, {"maxLength": 5}]})", {"1", "\"abcde\"", "[1]"},
              {"[]", "\"abcdef\""});
}

TEST(SchemaUnions, branches_that_cannot_be_told_apart_are_refused) {
  for (const char* schema :
       {R"({"oneOf": [{"type": "number"}, {"type": "number", "multipleOf": 3}]})",
        R"({"oneOf": [{"type": "string"}, {"type": "string", "format": "email"}]})",
        R"({"oneOf": [{"type": "array"}, {"type": "array", "uniqueItems": true}]})"}) {
    expectRefused(schema, ORIEL_ERROR_UNSUPPORTED, "\"oneOf\" at #");
  }
}

TEST(SchemaReferences, are_followed_where_they_are_local) {
  expectTexts(
      R"({"$defs": {"a~b/c%": {"const": 1}}, "type": "array", "items": {"$ref": "#/$defs/a~0b~1c%25"}})",
      {"[1]"}, {"[2]"});
  expectTexts(
      R"({"definitions": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/definitions/n", "maximum": 3}},
                  "type": "object"})",
      {R"({"a":3})"}, {R"({"a":4})", R"({"a":"b"})"});
  expectTexts(R"({"prefixItems": [{"const": 1}, {"$ref": "#/prefixItems/0"}], "type": "array"})",
              {"[1,1]"}, {"[1,2]"});
  expectTexts(R"({"type": "object", "properties": {"$ref": {"const": "a"}}})", {R"({"$ref":"a"})"},
              {R"({"$ref":1})"});
  expectTexts(R"({"$defs": {"s": {"type": "string"}}, "enum": [{"$ref": "#/$defs/s"}]})",
              {R"({"$ref":"#/$defs/s"})"}, {"\"a\""});
}

TEST(SchemaReferences, may_recur) {
  expectTexts(
      R"({"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["v"]})",
      {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"}, {R"({"v":1,"next":{}})"});
  expectTexts(
      R"({"$defs": {"E": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/E"}}]}},
                  "$ref": "#/$defs/E"})",
      {"1", "[]", "[1,[2,[]]]"}, {"[null]"});
}

// Endless recursion is left out; if nothing else remains, nothing is valid.
TEST(SchemaReferences, without_end_have_no_texts) {
  expectRefused(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
                ORIEL_ERROR_ARGUMENT, "nothing is valid");
  expectTexts(R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/L"}, "b": {"const": 1}},
                  "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}, "minItems": 1}}})",
              {"{}", R"({"b":1})"}, {R"({"a":[]})"});
  const SchemaTexts texts(R"({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/L"}],
                              "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}, "minItems": 1}}})");
  for (const std::string& text : texts.make(20)) {
    EXPECT_EQ("null", text);
  }
}

TEST(SchemaReferences, that_lead_nowhere_are_refused) {
  expectRefused(R"({"$ref": "#"})", ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(
      R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})",
      ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", ORIEL_ERROR_ARGUMENT,
                "leads back");
  expectRefused(R"({"allOf": [{"$ref": "#"}]})", ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(
      R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}})",
      ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(R"({"$ref": "#/$defs/a"})", ORIEL_ERROR_ARGUMENT, "leads to no schema");
  expectRefused(R"({"$ref": "#/type", "type": "string"})", ORIEL_ERROR_ARGUMENT,
                "leads to no schema");
  expectRefused(R"({"$ref": "https://example.org/a"})", ORIEL_ERROR_UNSUPPORTED, "\"$ref\"");
  expectRefused(R"({"$ref": "#anchor"})", ORIEL_ERROR_ARGUMENT, "leads to no schema");
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_objects

namespace oriel_internal::test::test_schema_strings {

// Strings in JSON schemas: lengths, patterns against the standard library's engine, formats against arithmetic.

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

namespace oriel_internal::test::test_schema_numbers {

// Numbers in JSON schemas against plain arithmetic.

namespace {

using nlohmann::json;

Decimal decimal(const std::string& text) {
  Decimal value;
  EXPECT_TRUE(readDecimal({text.data(), text.size()}, &value)) << text;
  return value;
}

TEST(Decimals, are_compared_by_value_however_they_are_written) {
  const std::vector<std::vector<std::string>> ascending = {
      {"-1e20", "-100000000000000000000"},
      {"-12.5", "-1.25e1", "-125e-1", "-12.500"},
      {"-12"},
      {"-0.001", "-1e-3", "-0.1E-2"},
      {"0", "-0", "0.0", "0e5", "-0.00e-7"},
      {"0.001", "1e-3", "10e-4", "0.0010"},
      {"1", "1.0", "1e0", "0.1e1", "10e-1"},
      {"9.99"},
      {"10", "1e1", "1e+1", "1E1"},
      {"9007199254740991"},
      {"9007199254740992", "9007199254740992.0"},
      {"1e50"},
  };
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      for (const std::string& a : ascending[i]) {
        for (const std::string& b : ascending[j]) {
          const int order = compareDecimals(decimal(a), decimal(b));
          EXPECT_EQ(i < j, order < 0) << a << " " << b;
          EXPECT_EQ(i > j, order > 0) << a << " " << b;
        }
      }
    }
  }
  Decimal value;
  const std::string huge = "1e999999999999";
  EXPECT_FALSE(readDecimal({huge.data(), huge.size()}, &value));
}

TEST(SchemaNumbers, integers_have_no_fraction_no_exponent_and_one_spelling) {
  expectTexts(R"({"type": "integer"})",
              {"0", "7", "-1", "123456789", "9007199254740991", "-9007199254740991"},
              {"-0", "01", "+1", "1.0", "1e3", "", "-", "9007199254740992", "-9007199254740992",
               "12345678901234567", "true", "\"1\""});
}

TEST(SchemaNumbers, numbers_may_have_a_fraction_and_a_short_exponent) {
  expectTexts(
      R"({"type": "number"})",
      {"0", "0.0", "-0.5", "3.14", "10000000000.0", "1e5", "2.5E-10", "1e+99", "0.0025", "1e-0",
       "1.5e05", "1e-07", "1234567890.1234567"},
      {"-0", "-0.0", ".5", "5.", "01.5", "1e100", "1e", "NaN", "1234567890.12345678", "0x1"});
}

// Every integer near the bounds, compared.
TEST(SchemaNumbers, bounds_of_integers_are_exact) {
  const std::vector<double> bounds = {-1000, -90, -9.5, -1, -0.5, 0,      0.25,
                                      1,     9,   10,   99, 100,  101.75, 999};
  for (const double low : bounds) {
    for (const double high : bounds) {
      for (int exclusive = 0; exclusive < 4; ++exclusive) {
        const bool above = (exclusive & 1) != 0;
        const bool below = (exclusive & 2) != 0;
        const json schema = {{"type", "integer"},
                             {above ? "exclusiveMinimum" : "minimum", low},
                             {below ? "exclusiveMaximum" : "maximum", high}};
        const SchemaTexts texts(schema.dump());
        int n = 0;
        for (int x = -1100; x <= 1100; x += x > -120 && x < 120 ? 1 : 7) {
          const bool fits = (above ? x > low : x >= low) && (below ? x < high : x <= high);
          n += fits ? 1 : 0;
          ASSERT_EQ(fits, texts.accepts(std::to_string(x))) << schema << " " << x;
        }
        EXPECT_TRUE(texts.ok() || n == 0) << schema << " " << texts.errors();
      }
    }
  }
}

// Every number of up to two places near the bounds, in each of its spellings.
TEST(SchemaNumbers, bounds_of_numbers_are_exact) {
  const std::vector<double> bounds = {-19.99, -2, -0.5, -0.01, 0, 0.05, 0.5, 1, 2.25, 19.99, 20};
  for (const double low : bounds) {
    for (const double high : bounds) {
      if (high < low) {
        continue;
      }
      for (const bool exclusive : {false, true}) {
        const json schema = {{"type", "number"},
                             {exclusive ? "exclusiveMinimum" : "minimum", low},
                             {exclusive ? "exclusiveMaximum" : "maximum", high}};
        const SchemaTexts texts(schema.dump());
        const auto isNear = [](int hundredths, double bound) {
          return std::abs(hundredths / 100.0 - bound) < 0.1;
        };
        for (int hundredths = -2105; hundredths <= 2105; hundredths += 5) {
          if (!allCases() && !isNear(hundredths, low) && !isNear(hundredths, high) &&
              hundredths % 35 != 0) {
            continue;
          }
          for (const int x : {hundredths, hundredths + 1, hundredths - 1}) {
            const double value = x / 100.0;
            const bool fits =
                exclusive ? value > low && value < high : value >= low && value <= high;
            char spelled[32];
            std::snprintf(spelled, sizeof(spelled), "%.2f", value);
            ASSERT_EQ(fits && x != 0, texts.accepts(spelled) && x != 0) << schema << " " << spelled;
            std::snprintf(spelled, sizeof(spelled), "%.4f", value);
            ASSERT_EQ(fits && x != 0, texts.accepts(spelled) && x != 0) << schema << " " << spelled;
            if (x % 100 == 0) {
              ASSERT_EQ(fits, texts.accepts(std::to_string(x / 100))) << schema << " " << x;
            }
          }
        }
      }
    }
  }
}

TEST(SchemaNumbers, bounds_may_be_large_or_written_with_exponents) {
  expectTexts(R"({"type": "integer", "minimum": 1e3, "maximum": 2.5e3})", {"1000", "2500", "1999"},
              {"999", "2501", "10000", "100"});
  expectTexts(R"({"type": "integer", "exclusiveMinimum": 9007199254740989})",
              {"9007199254740990", "9007199254740991"},
              {"9007199254740989", "1", "90071992547409900"});
  expectTexts(R"({"type": "integer", "minimum": -1e300, "maximum": -123456789012})",
              {"-123456789012", "-9007199254740991"}, {"-123456789011", "0", "123456789013"});
  expectTexts(R"({"type": "number", "exclusiveMinimum": 0.01, "maximum": 19.99})",
              {"0.011", "0.0100001", "19.99", "19.9900", "5"},
              {"0.01", "0.0100", "19.991", "0", "20"});
  expectTexts(R"({"type": "number", "minimum": 0.5, "maximum": 0.5})", {"0.5", "0.50"},
              {"0.51", "0.49", "0", "5e-1"});
  expectTexts(R"({"type": "integer", "minimum": 1e30})", {"1000000000000000000000000000000"},
              {"999999999999999999999999999999", "1e30"});
  expectTexts(
      R"({"type": "integer", "minimum": 9007199254740993, "maximum": 18446744073709551615})",
      {"9007199254740993", "9223372036854775807", "18446744073709551615"},
      {"9007199254740992", "18446744073709551616"});
  // As doubles, the next whole numbers are the bound.
  expectTexts(R"({"type": "integer", "exclusiveMinimum": 9007199254740992})",
              {"9007199254740999000"}, {"9007199254740993"});
  expectRefused(R"({"type": "integer", "minimum": 0.2, "maximum": 0.8})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
  expectRefused(R"({"type": "number", "minimum": 1e9999999})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
  expectRefused(R"({"type": "number", "minimum": 1e-9999999})", ORIEL_ERROR_UNSUPPORTED,
                "\"minimum\"");
}

TEST(SchemaNumbers, multiples_of_integers_are_exact) {
  for (const int step : {1, 2, 3, 5, 7, 10, 12, 25, 60, 97, 100, 360, 1000}) {
    const json schema = {{"type", "integer"}, {"multipleOf", step}, {"minimum", -500}};
    const SchemaTexts texts(schema.dump());
    ASSERT_TRUE(texts.ok()) << texts.errors();
    for (int x = -2100; x <= 2100; ++x) {
      ASSERT_EQ(x >= -500 && x % step == 0, texts.accepts(std::to_string(x))) << step << " " << x;
    }
  }
  expectTexts(R"({"type": "number", "multipleOf": 10})", {"0", "10", "-200"}, {"5", "10.0", "1e1"});
  expectTexts(R"({"allOf": [{"multipleOf": 2}, {"multipleOf": 3}], "type": "integer"})",
              {"0", "6", "-12"}, {"2", "3", "4", "9"});
  expectTexts(R"({"type": "integer", "multipleOf": 2.5})", {"0", "5", "-10"}, {"2", "4", "7"});
}

// Validators divide doubles, so for them 19.99 is not a multiple of 0.01. Written numbers must be multiples both ways.
TEST(SchemaNumbers, multiples_of_fractions_hold_in_floating_point_too) {
  const struct {
    const char* step;
    double value;
    int places;
  } kSteps[] = {{"0.01", 0.01, 2}, {"0.1", 0.1, 1},   {"0.5", 0.5, 1},     {"0.05", 0.05, 2},
                {"1.5", 1.5, 1},   {"0.25", 0.25, 2}, {"0.001", 0.001, 3}, {"0.2", 0.2, 1}};
  for (const auto& step : kSteps) {
    const SchemaTexts texts(std::string("{\"type\": \"number\", \"multipleOf\": ") + step.step +
                            "}");
    ASSERT_TRUE(texts.ok()) << texts.errors();
    const int scale = static_cast<int>(std::lround(std::pow(10, step.places)));
    const int exact = static_cast<int>(std::lround(step.value * scale));
    int n = 0;
    for (int x = -2000; x <= 2000; ++x) {
      char spelled[32];
      std::snprintf(spelled, sizeof(spelled), "%.*f", step.places, static_cast<double>(x) / scale);
      const double quotient = std::strtod(spelled, nullptr) / step.value;
      const bool divides = quotient == std::floor(quotient);
      const bool accepted = texts.accepts(spelled);
      n += accepted ? 1 : 0;
      EXPECT_FALSE(accepted && (!divides || x % exact != 0)) << step.step << " " << spelled;
      if (x != 0) {
        EXPECT_EQ(divides && x % exact == 0, accepted) << step.step << " " << spelled;
      }
    }
    EXPECT_GT(n, 100) << step.step;
    for (const std::string& text : texts.make(300)) {
      const double quotient = std::strtod(text.c_str(), nullptr) / step.value;
      EXPECT_EQ(quotient, std::floor(quotient)) << step.step << " " << text;
    }
  }
}

TEST(SchemaNumbers, steps_that_are_too_fine_are_refused_by_name) {
  expectRefused(R"({"type": "number", "multipleOf": 0.123456789})", ORIEL_ERROR_UNSUPPORTED,
                "multipleOf");
  expectRefused(R"({"type": "integer", "multipleOf": 123457})", ORIEL_ERROR_UNSUPPORTED,
                "multipleOf");
  expectRefused(R"({"type": "integer", "multipleOf": 0})", ORIEL_ERROR_ARGUMENT, "multipleOf");
  expectRefused(R"({"type": "integer", "multipleOf": -2})", ORIEL_ERROR_ARGUMENT, "multipleOf");
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_numbers
